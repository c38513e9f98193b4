"""In which order a reduction combines: any, or that of the axis.

    sum, max, xor ...               any: the function is one op whose arguments may change places
    argmax, (sum, max) of pairs     any: the same can be proved of longer functions (`symmetric.py`)
    (a, b), (c, d) -> (ac, bc + d)  that of the axis: the function may be associative and no more

A GPU combines the registers of a thread first, then lanes, then warps. Of a layout that goes along the axis in this way, elements are
combined in their order; one that `wraps` has registers behind warps, and is combined bit by bit of the index (`follows_axis`).
"""

from xdsl.dialects import arith
from xdsl.ir import Operation, Region

from tilework.analysis.choices import is_choice
from tilework.analysis.symmetric import SYMMETRIC, is_symmetric
from tilework.ir.encodings import layout_of
from tilework.ir.nesting import only_op
from tilework.ir.reproducible import follows_tree
from tilework.ir.types import axis_of
from tilework.layouts.linear import LinearLayout

LEVELS = ("register", "lane", "warp")


def single_op(region: Region) -> type[Operation] | None:
    """The op that is the whole function of two scalars, if the order of the two does not matter to it."""
    found = type(only_op(region.blocks[0])) if len(region.blocks) == 1 else None
    return found if found in SYMMETRIC else None


def lanes_agree(region: Region) -> bool:
    """Whether lanes that combine each other's parts, each its own first, have the same bits.

    A choice may depend on the order where neither is larger. A multiplication, or a division that becomes one, may be fused with
    the addition behind it, and then one lane rounds what another does not.
    """
    if single_op(region) is not None:
        return True
    block = region.blocks[0]
    is_exact = not any(isinstance(op, arith.MulfOp | arith.DivfOp) for op in block.ops)
    return len(region.blocks) == 1 and is_exact and not is_choice(block) and is_symmetric(block)


def follows_axis(op: Operation) -> bool:
    """Whether a reduction must go through the bits of the index from the lowest to the highest, wherever the layout has them."""
    if follows_tree(op):
        return True
    region = op.regions[0]
    if single_op(region) is not None or not wraps(layout_of(op.operands[0].type), axis_of(op)):
        return False
    return len(region.blocks) > 1 or not is_symmetric(region.blocks[0])


def wraps(layout: LinearLayout, axis: int) -> bool:
    """Whether registers, lanes and warps do not follow each other along `axis`."""
    places = [
        (vector[axis], LEVELS.index(level)) for level, vectors in layout.bases if level in LEVELS for vector in vectors
    ]
    levels = [level for place, level in sorted(places) if place]
    return levels != sorted(levels)
