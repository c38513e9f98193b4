"""Memory dependences: the accesses that must be kept in order.

Two accesses may be swapped, or run element by element together, when

    both only read, and neither is volatile,
    their pointers come from different arguments of the kernel, which are assumed not to overlap, or
    they use the same tile of pointers, which are all different: then each element meets only itself.

Anything else is kept in order. A pointer without a known base (it was loaded, or selected) may point anywhere. Each
pair of arguments that the second rule was applied to is recorded in `Bases.apart`: the launcher checks that they do not
overlap, and otherwise runs code compiled without the rule (`may_alias`). Functions that kernels call never use it,
because one call may pass the same array twice.
"""

from collections.abc import Sequence
from itertools import accumulate, islice
from math import prod
from operator import mul

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import arith, scf, tt
from tilework.ir.arith import SelectOp
from tilework.ir.attr_text import is_true
from tilework.ir.enums import MemSemantic, RMWOp
from tilework.ir.nesting import body_of, end_of
from tilework.ir.rewrite import constant_value
from tilework.ir.types import PointerType, element_type, int_property, is_tensor, shape_of
from tilework.light_dataclass import light_dataclass
from tilework.transforms.ttc.loops.index_maps import Digits, Source, is_lazy, sources, whole

THROUGH = frozenset(
    {tt.AddPtrOp, tt.BitcastOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.SplatOp, tt.TransOp, tt.SplitOp}
)
ATOMICS = frozenset({tt.AtomicRMWOp, tt.AtomicCASOp})
MEMORY = frozenset({tt.LoadOp, tt.StoreOp, *ATOMICS})
# Ops that keep different pointers different, given operands that do.
SPREADING = frozenset({tt.AddPtrOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ExtSIOp, arith.ExtUIOp})
WIDENING = frozenset({tt.BroadcastOp, tt.ExpandDimsOp, tt.SplatOp, arith.ExtSIOp})
Steps = dict[tuple[int, int], int]  # (divisor, radix) of a digit of the nest's index, to its stride
VIEWS = frozenset({tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.SplatOp, tt.TransOp, tt.MakeRangeOp})


@light_dataclass(eq=False)
class Access:
    """One memory access of a tile; without a pointer it may touch anything."""

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
            before = len(self.known)
            self.known[pointer] = (
                pointer  # provisional, while it is being found: a loop that only moves its own pointer
            )
            found = self.find(pointer)
            for other in [*islice(reversed(self.known), len(self.known) - before)]:
                if self.known[other] is pointer:
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
            initial = self.of(owner.operands[2 + pointer.index])
            moved = self.of(yielded.operands[pointer.index - 1])
            return initial if moved is initial or moved is pointer else None
        return None

    def keep(self, arguments: Sequence[SSAValue]) -> None:
        """Find the bases of carried pointers now, while the loop still yields them; accesses behind the loop look them
        up."""
        for argument in arguments:
            if isinstance(element_type(argument.type), PointerType):
                self.of(argument)

    def common(self, pointers: Sequence[SSAValue]) -> SSAValue | None:
        found = {self.of(pointer) for pointer in pointers}
        return found.pop() if len(found) == 1 else None

    def is_spread(self, pointer: SSAValue) -> bool:
        """Return True if all pointers of a tile are known to differ; with strides that are arguments they are not."""
        if pointer not in self.spread:
            count = prod(shape_of(pointer.type))
            self.spread[pointer] = are_different(steps_of(pointer, whole(count)), count)
        return self.spread[pointer]


def steps_of(value: SSAValue, digits: Digits) -> Steps | None:
    """The strides of a sum of ranges along the digits of the nest's index; None if unknown."""
    known: dict[Source, Steps] = {}
    stack: list[Source] = [(value, digits)]
    while stack:
        source = stack[-1]
        needed = operands_of(*source)
        if needed is None:
            return None
        if missing := [operand for operand in needed if operand not in known]:
            stack += missing
            continue
        if (steps := combined(*source, [known[operand] for operand in needed])) is None:
            return None
        known[source] = steps
        stack.pop()
    return known[value, digits]


def operands_of(value: SSAValue, digits: Digits) -> Sequence[Source] | None:
    """The values that an element of a sum of ranges is computed from; None for anything else."""
    if not is_tensor(value.type):
        return ()
    if not isinstance(value, OpResult) or not is_lazy(value.op):
        return None
    kind = type(value.op)
    if kind is arith.ConstantOp or kind is tt.MakeRangeOp:
        return ()
    return sources(value, digits) if kind in SPREADING or kind in VIEWS else None


def combined(value: SSAValue, digits: Digits, steps: Sequence[Steps]) -> Steps | None:
    """The steps of a value, from those of its operands."""
    op = value.op if isinstance(value, OpResult) and is_tensor(value.type) else None
    kind = type(op)
    if op is None or kind is arith.ConstantOp:
        return {}
    if kind is tt.MakeRangeOp:
        weights = accumulate((digit.radix for digit in digits), mul, initial=1)
        moving = [(digit, weight) for digit, weight in zip(digits, weights, strict=False) if digit.divisor]
        return None if any(digit.of for digit, _ in moving) else {(d.divisor, d.radix): weight for d, weight in moving}
    if len(steps) == 1:
        return steps[0]
    one, other = steps
    if kind is not arith.MuliOp:
        sign = -1 if kind is arith.SubiOp else 1
        added = {part: one.get(part, 0) + sign * other.get(part, 0) for part in one | other}
        return {part: step for part, step in added.items() if step}
    if one and other:
        return None
    moving, factor = one or other, uniform_integer(op.operands[1] if one else op.operands[0])
    if not moving or factor == 0:
        return {}
    return None if factor is None else {part: step * factor for part, step in moving.items()}


def uniform_integer(value: SSAValue) -> int | None:
    """The integer that all elements of `value` are, if it is a constant."""
    while isinstance(value, OpResult) and type(value.op) in WIDENING:
        value = value.op.operands[0]
    known = constant_value(value)
    return known if isinstance(known, int) else None


def are_different(steps: Steps | None, count: int) -> bool:
    """Return True if all `count` elements of a sum of ranges differ: smaller strides together never reach a larger
    one."""
    known, reached = 1, 0
    for divisor, radix in sorted(steps or ()):
        if divisor != known:
            return False
        known *= radix
    for (_, radix), step in sorted((steps or {}).items(), key=lambda item: abs(item[1])):
        if abs(step) <= reached:
            return False
        reached += abs(step) * (radix - 1)
    return known == count


def access_of(op: Operation, bases: Bases) -> Access:
    """The access of a load, store or atomic."""
    kind = type(op)
    pointer = op.operands[0]
    if kind is tt.LoadOp:
        return Access(pointer, bases.of(pointer), False, is_true(op.properties.get("isVolatile")))
    if kind is tt.StoreOp:
        return Access(pointer, bases.of(pointer), True)
    return Access(pointer, bases.of(pointer), True, not is_tensor(pointer.type) or not only_counts(op))


def only_counts(op: Operation) -> bool:
    """Return True for a relaxed addition, maximum ...: a tile of them orders no other memory. A single one may be part
    of a lock."""
    if type(op) is tt.AtomicCASOp or int_property(op, "atomic_rmw_op") == RMWOp.EXCH or tt.is_ordered(op):
        return False
    return int_property(op, "sem") == MemSemantic.RELAXED


def conflict(first: Access, second: Access, bases: Bases) -> bool:
    """Return True if `second` must wait until all elements of `first` are done."""
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
    """Return True if the two may touch the same address, or one of them orders all accesses."""
    if first.orders or second.orders or first.base is None or second.base is None:
        return True
    if first.base is second.base or bases.may_alias:
        return True
    bases.apart.add(frozenset((first.base, second.base)))
    return False
