"""Which accesses to memory must stay in order.

Two accesses may be swapped, or run element by element together, when

    both only read, and neither is volatile,
    their pointers come from different arguments of the kernel, which are assumed not to overlap, or
    they use the same tile of pointers, which are all different: then each element meets only itself.

Anything else stays in order. A pointer whose origin is unknown (it was loaded, or selected) may point anywhere. Each
pair of arguments of which the second rule was used is recorded in `Bases.apart`: the launcher checks that they do not
overlap, and else runs code compiled without the rule (`may_alias`). Functions that kernels call never use it, because
one call may pass the same array twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp
from tilework.ir.enums import MemSemantic, RMWOp
from tilework.ir.nesting import body_of, end_of
from tilework.ir.property_text import is_true
from tilework.ir.types import PointerType, element_type, is_tensor, number_of, shape_of
from tilework.transforms.ttc.loops.index_maps import Digits, is_lazy, sources, whole

THROUGH = frozenset(
    {tt.AddPtrOp, tt.BitcastOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.SplatOp, tt.TransOp, tt.SplitOp}
)
ATOMICS = frozenset({tt.AtomicRMWOp, tt.AtomicCASOp})
MEMORY = frozenset({tt.LoadOp, tt.StoreOp, *ATOMICS})
# Ops that keep different pointers different, given operands that do.
SPREADING = frozenset({tt.AddPtrOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ExtSIOp, arith.ExtUIOp})
VIEWS = frozenset({tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.SplatOp, tt.TransOp, tt.MakeRangeOp})


@dataclass(frozen=True, eq=False)
class Access:
    """One use of memory by a tile; without a pointer it may touch anything."""

    pointer: SSAValue | None
    base: SSAValue | None
    writes: bool
    orders: bool = False  # nothing moves across it: an atomic that may be a lock or a signal, or a volatile load


class Bases:
    """The argument each pointer comes from, remembered, and the pairs of arguments that must not overlap."""

    def __init__(self, may_alias: bool = False) -> None:
        self.may_alias = may_alias
        self.apart: set[frozenset[SSAValue]] = set()
        self.known: dict[SSAValue, SSAValue | None] = {}
        self.spread: dict[SSAValue, bool] = {}

    def of(self, pointer: SSAValue) -> SSAValue | None:
        """The kernel argument `pointer` is computed from, or None."""
        if pointer not in self.known:
            self.known[pointer] = pointer  # while it is being found: a loop that only moves its own pointer
            found = self.find(pointer)
            for other, origin in self.known.items():
                if origin is pointer:
                    self.known[other] = found
        return self.known[pointer]

    def find(self, pointer: SSAValue) -> SSAValue | None:
        start = pointer
        while isinstance(pointer, OpResult) and type(pointer.op) in THROUGH:
            pointer = pointer.op.operands[0]
        if pointer is not start:
            return self.of(pointer)
        if isinstance(pointer, OpResult):
            op = pointer.op
            if type(op) is SelectOp:
                return self.common(op.operands[1:])
            if type(op) is scf.ForOp:
                return self.of(op.regions[0].block.args[1 + pointer.index])
            return None
        assert isinstance(pointer, BlockArgument)
        owner = pointer.block.parent_op()
        if type(owner) is tt.FuncOp:
            return pointer if pointer.block is body_of(owner) and not is_tensor(pointer.type) else None
        if type(owner) is scf.ForOp and pointer.index > 0:
            yielded = end_of(pointer.block)
            origin = self.of(owner.operands[2 + pointer.index])
            moved = self.of(yielded.operands[pointer.index - 1])
            return origin if moved is origin or moved is pointer else None
        return None

    def keep(self, arguments: Sequence[SSAValue]) -> None:
        """Find those of what a loop carries now, while all of it is yielded: behind the loop its results are asked for."""
        for argument in arguments:
            if isinstance(element_type(argument.type), PointerType):
                self.of(argument)

    def common(self, pointers: Sequence[SSAValue]) -> SSAValue | None:
        found = {self.of(pointer) for pointer in pointers}
        return found.pop() if len(found) == 1 else None

    def is_spread(self, pointer: SSAValue) -> bool:
        """The elements of a tile of pointers are all different, as far as strides are not 0."""
        if pointer not in self.spread:
            count = prod(shape_of(pointer.type))
            found: set[tuple[int, int]] = set()
            self.spread[pointer] = is_sum_of_ranges(pointer, whole(count), found) and covered(found) == count
        return self.spread[pointer]


def covered(found: Iterable[tuple[int, int]]) -> int:
    """What the index is known modulo, if these parts of it are: from a step on to a number of which it is a divisor."""
    known = 1
    for low, high in sorted(found):
        if known % low == 0 and high % known == 0:
            known = high
    return known


def is_sum_of_ranges(value: SSAValue, digits: Digits, found: set[tuple[int, int]]) -> bool:
    """Whether `value` is a sum of ranges and uniform numbers; what of the index the ranges have is added to `found`."""
    stack, seen = [(value, digits)], set[tuple[SSAValue, Digits]]()
    while stack:
        value, digits = stack.pop()
        if not is_tensor(value.type) or (value, digits) in seen:
            continue
        seen.add((value, digits))
        if not isinstance(value, OpResult) or not is_lazy(value.op):
            return False
        kind = type(value.op)
        if kind is tt.MakeRangeOp:
            found.update((d.divisor, d.divisor * d.radix) for d in digits if d.divisor and not d.of)
        if kind is arith.ConstantOp:
            continue
        if kind not in SPREADING and kind not in VIEWS:
            return False
        stack += sources(value, digits)
    return True


def access_of(op: Operation, bases: Bases) -> Access:
    """What a load, store or atomic does."""
    kind = type(op)
    pointer = op.operands[0]
    if kind is tt.LoadOp:
        return Access(pointer, bases.of(pointer), False, is_true(op.properties.get("isVolatile")))
    if kind is tt.StoreOp:
        return Access(pointer, bases.of(pointer), True)
    return Access(pointer, bases.of(pointer), True, not is_tensor(pointer.type) or not only_counts(op))


def only_counts(op: Operation) -> bool:
    """A relaxed sum, maximum ...: a tile of them says nothing about other memory. A single one may be part of a lock."""
    if type(op) is tt.AtomicCASOp or number_of(op, "atomic_rmw_op") == RMWOp.EXCH or tt.is_ordered(op):
        return False
    return number_of(op, "sem") == MemSemantic.RELAXED


def conflict(first: Access, second: Access, bases: Bases) -> bool:
    """Whether `second` must wait until all elements of `first` are done."""
    if not first.orders and not second.orders and not first.writes and not second.writes:
        return False
    if not may_overlap(first, second, bases):
        return False
    if first.orders or second.orders or first.base is None or second.base is None:
        return True
    return (
        first.pointer is not second.pointer
        or first.pointer is None
        or not is_tensor(first.pointer.type)
        or not bases.is_spread(first.pointer)
    )


def may_overlap(first: Access, second: Access, bases: Bases) -> bool:
    """Whether the two may touch the same place, or one of them orders all accesses."""
    if first.orders or second.orders or first.base is None or second.base is None:
        return True
    if first.base is second.base or bases.may_alias:
        return True
    bases.apart.add(frozenset((first.base, second.base)))
    return False
