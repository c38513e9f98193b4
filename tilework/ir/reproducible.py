"""Whether a module promises the same bits everywhere (`@tilework.jit(reproducible=True)`): one attribute of it, absent in all others.

    module attributes {tilework.reproducible} { ... }

Passes, lowerings and the evaluator ask `is_reproducible` of any op inside; the frontend and the interpreter have the option itself.

What a reduction or a scan combines then follows one tree, which the size along the axis decides alone. Neighbours are combined first,
by the lowest bit of their indices, then pairs of neighbours by the next one; the lower index is the first operand, and where a side
has no elements the other is taken as it is. Of five elements:

    reduce      ((x0 x1) (x2 x3)) x4
    scan        bit 0    x0   (x0 x1)   x2            (x2 x3)              x4            where the bit is 1, the other half's total
                bit 1    x0   (x0 x1)   (x0 x1) x2    (x0 x1) (x2 x3)      x4            comes in front; in reverse, where it
                bit 2    x0   (x0 x1)   (x0 x1) x2    (x0 x1) (x2 x3)      (...) x4      is 0
"""

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from tilework.ir.nesting import only_op

REPRODUCIBLE = "tilework.reproducible"
IN_ORDER = (
    "tilework.in-order"  # of a reduction: by the tree in any module, so that elements are combined in their order
)
ANY_ORDER: frozenset[type[Operation]] = frozenset({
    arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp,
    arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp,
    arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp,  # of zeros with signs +0 is the larger one
})  # fmt: skip


def mark_reproducible(module: Operation) -> None:
    module.attributes[REPRODUCIBLE] = UnitAttr()


def is_reproducible(op: Operation) -> bool:
    """Whether the module around `op` (or `op` itself) must compute the same bits on every target."""
    around = op
    while (outer := around.parent_op()) is not None:
        around = outer
    return REPRODUCIBLE in around.attributes


def follows_tree(op: Operation) -> bool:
    """Whether a reduction or a scan must combine by the tree: its function gives other bits in another order."""
    blocks = op.regions[0].blocks
    if len(blocks) == 1 and type(only_op(blocks[0])) in ANY_ORDER:
        return False
    return IN_ORDER in op.attributes or is_reproducible(op)
