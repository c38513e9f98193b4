"""The facts that a TTGIR module has about its target, in its attributes:

    module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90",
                       "ttg.threads-per-warp" = 32 : i32} { ... }

Each function takes any op inside the module. The number of warps may differ in a function that has the attribute, and
in the partitions of a `ttg.warp_specialize`.

``module attributes {tilework.reproducible}`` promises the same bits on every target
(`@tilework.jit(reproducible=True)`). Passes, lowerings and the evaluator call `is_reproducible` with any op inside; the
frontend and the interpreter have the option itself. Reductions and scans then combine in one tree, which depends on the
size along the axis alone. Neighbours are combined first, by the lowest bit of their indices, then pairs of neighbours
by the next one; the lower index is the first operand, and where a side has no elements the other is taken as it is. Of
five elements:

    reduce      ((x0 x1) (x2 x3)) x4
    scan        bit 0    x0   (x0 x1)   x2            (x2 x3)           x4         where the bit is 1, the other half's
                bit 1    x0   (x0 x1)   (x0 x1) x2    (x0 x1) (x2 x3)   x4         total comes in front; in reverse,
                bit 2    x0   (x0 x1)   (x0 x1) x2    (x0 x1) (x2 x3)   (...) x4   where it is 0
"""

from collections.abc import Mapping

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation

from tilework.errors import PassError
from tilework.ir import arith
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import only_op
from tilework.ir.ttg.warp_specialize_ops import WarpSpecializeOp, WarpSpecializePartitionsOp
from tilework.ir.types import array_values, i32, int_attr, string_attr
from tilework.target import Limits, Target

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
    """Return True if the module around `op` (or `op` itself) must compute the same bits on every target."""
    around = op
    while (outer := around.parent_op()) is not None:
        around = outer
    return REPRODUCIBLE in around.attributes


def follows_tree(op: Operation) -> bool:
    """Return True if a reduction or a scan must combine by the tree: its function gives other bits in another order."""
    blocks = op.regions[0].blocks
    if len(blocks) == 1 and type(only_op(blocks[0])) in ANY_ORDER:
        return False
    return IN_ORDER in op.attributes or is_reproducible(op)


NUM_WARPS = "ttg.num-warps"
NUM_CTAS = "ttg.num-ctas"
THREADS_PER_WARP = "ttg.threads-per-warp"
TARGET = "ttg.target"
TOTAL_WARPS = "ttg.total-num-warps"  # those of partitions too
MAX_REGISTERS = "ttg.maxnreg"  # of a thread
SANITIZER_FACTS = "tilework.sanitizer"  # JSON: what the sanitizer's checks are about
MOST_TRIPS = "tilework.most-trips"  # on a loop: an expected bound of its iterations
LONGEST_FIRST = "tilework.longest-first"  # the axis: programs with the largest id along it start first
RECTANGLES = "tilework.rectangles"  # JSON: how a launch makes the descriptors among the hidden arguments
TENSOR_MAP = "tt.nv_tma_desc"  # of a pointer argument: what it points to, a tensor map, is passed by value
# an argument that is, with the next ones, a descriptor for which a launch creates no tensor map
DESCRIBED = "tilework.described"
ANY_GPU = Target("gpu", "any", warp_size=32, limits=Limits(threads=1024, registers=1 << 16))


class MissingFact(PassError):
    """A module without the attribute that a query needs."""

    def __init__(self, name: str) -> None:
        super().__init__(f'the module has no attribute "{name}": it is not TTGIR yet')
        self.name = name


def integer(attributes: Mapping[str, Attribute], name: str) -> int | None:
    value = attributes.get(name)
    return value.value.data if isinstance(value, IntegerAttr) else None


def num_warps(op: Operation) -> int:
    """The warps that run `op`."""
    if (count := find_num_warps(op)) is None:
        raise MissingFact(NUM_WARPS)
    return count


def find_num_warps(op: Operation) -> int | None:
    """The warps that run `op`, or None where nothing says so."""
    inner, outer = op, op.parent_op()
    if (count := integer(op.attributes, NUM_WARPS)) is not None:
        return count
    while outer is not None:
        if isinstance(outer, WarpSpecializePartitionsOp):
            holder = outer.parent_op()
            region = inner.parent_region()
            if isinstance(holder, WarpSpecializeOp) and region is not None:
                return array_values(holder.properties["partitionNumWarps"])[outer.regions.index(region)]
        if (count := integer(outer.attributes, NUM_WARPS)) is not None:
            return count
        inner, outer = outer, outer.parent_op()
    return None


def partition_warps(function: Operation) -> int:
    """The warps that a function has beside its own, for the partitions of its warp-specialized loops."""
    ops = [op for op in ops_in_order(*function.regions) if type(op) is WarpSpecializeOp]
    return max((sum(array_values(op.properties["partitionNumWarps"])) for op in ops), default=0)


def fact(op: Operation, name: str) -> Attribute | None:
    """Return the attribute `name` of `op`, or of the innermost op around it that has one."""
    around: Operation | None = op
    while around is not None:
        if (value := around.attributes.get(name)) is not None:
            return value
        around = around.parent_op()
    return None


def target(op: Operation) -> Target:
    """Return the target of ``ttg.target = "cuda:90"`` of the module."""
    if (found := find_target(op)) is ANY_GPU:
        raise MissingFact(TARGET)
    return found


def find_target(op: Operation) -> Target:
    """The target of the module; where nothing says so, a GPU that has no more than every other."""
    name = fact(op, TARGET)
    return Target.parse(name.data) if isinstance(name, StringAttr) else ANY_GPU


def chosen_target(op: Operation, name: str) -> Target:
    """Return the target that an option of a pass names, or else that of the module."""
    return Target.parse(name) if name else find_target(op)


def threads_per_warp(op: Operation) -> int:
    """The lanes of a warp: those of the target, unless the module says otherwise."""
    threads = fact(op, THREADS_PER_WARP)
    return threads.value.data if isinstance(threads, IntegerAttr) else find_target(op).warp_size


def num_ctas(op: Operation) -> int:
    """The blocks of a cluster, 1 unless the module says otherwise."""
    blocks = fact(op, NUM_CTAS)
    return blocks.value.data if isinstance(blocks, IntegerAttr) else 1


def machine_attributes(warps: int, ctas: int, target: Target, threads: int) -> dict[str, Attribute]:
    """The attributes of a module for this machine."""
    return {
        NUM_CTAS: int_attr(ctas, i32),
        NUM_WARPS: int_attr(warps, i32),
        TARGET: string_attr(str(target)),
        THREADS_PER_WARP: int_attr(threads, i32),
    }
