"""Values that are known to be non-negative: their quotients are rounded down, which all facts about quotients need.

    %x = tt.get_program_id * 128 + tt.make_range            non-negative
    %x % %n, %x // %n                                       non-negative
    %x - %n, an argument, a loaded value                    may be negative

Sums and products of indices are assumed not to overflow, and divisors to be positive. A carried value of a loop is
non-negative if it starts so and remains so. Nothing is assumed of hash functions, which overflow on purpose: factors
above 2**16, shifts, xor, truncated 64-bit integers, products that a loop multiplies again. Those are non-negative only
if their range shows it (`integer_ranges.py`). Facts only; cost: the values from which the value is computed, once per
query.
"""

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.integer_ranges import IntegerRanges
from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import arith, scf, tt, ttg
from tilework.ir.arith import SelectOp
from tilework.ir.functions import function_around
from tilework.ir.nesting import owner_of
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import bit_width, int_property

Query = SSAValue | tuple[SSAValue, SSAValue]  # a value, or the sum of two
Reason = tuple[Callable[[Iterable[bool]], bool], Sequence[Query]]  # non-negative if all, or any, of these are
NON_NEGATIVE: Reason = (all, ())
UNKNOWN: Reason = (any, ())
LARGEST_FACTOR, LARGEST_SHIFT, LARGEST_ADDEND = 1 << 16, 16, 1 << 30  # of indices
MULTIPLICATIONS = frozenset({arith.MuliOp, arith.ShLIOp})
STEPS: dict[type[Operation], int] = {scf.ForOp: 2, arith.CeilDivUIOp: 1}  # the operand that is positive


def is_non_negative(value: SSAValue) -> bool:
    """Return True if no element of `value` is known to be negative."""
    reasons: dict[Query, Reason] = {}
    left: list[Query] = [value]
    while left:
        if (one := left.pop()) not in reasons:
            reasons[one] = sum_reason(*one) if isinstance(one, tuple) else reason_of(one)
            left += reasons[one][1]
    non_negative, changed = {one for one in reasons if not is_growing(one, reasons)}, True
    while changed:
        negative = [
            one for one in non_negative if not reasons[one][0](other in non_negative for other in reasons[one][1])
        ]
        non_negative.difference_update(negative)
        changed = bool(negative)
    return value in non_negative


def is_growing(one: Query, reasons: dict[Query, Reason]) -> bool:
    """Return True if a loop carries a product of its earlier value, or a sum of itself: it overflows soon."""
    parts = reasons[one][1]
    is_sum = parts == one
    if not is_sum and (isinstance(one, tuple) or type(owner_of(one)) not in MULTIPLICATIONS):
        return False
    return sum(one in reached([part], lambda other: reasons[other][1]) for part in parts) > is_sum


def reason_of(value: SSAValue) -> Reason:
    op = owner_of(value)
    if is_step(value):
        return NON_NEGATIVE
    if type(op) is tt.FuncOp:
        return NON_NEGATIVE if IntegerRanges(op).of(value)[0] >= 0 else UNKNOWN  # by an assumption
    if type(op) is scf.ForOp and isinstance(value, BlockArgument) and value.index == 0:
        return all, op.operands[:1]
    if type(op) is ttg.WarpSpecializePartitionsOp:
        captures = op.parent_op()
        assert captures is not None
        return all, (captures.operands[value.index],)  # pyright: ignore[reportAttributeAccessIssue]
    if any(found := sources_of(value)):
        return all, [*found[0], *found[1]]
    rule = None if op is None or isinstance(value, BlockArgument) else RULES.get(type(op))
    return UNKNOWN if op is None or rule is None else rule(op)


def is_step(value: SSAValue) -> bool:
    """Return True if `value` is or was the step of a loop: `building/emitter.py` divides unsigned by positive
    steps."""
    return any(STEPS.get(type(use.operation)) == use.index for use in value.uses)


def sum_reason(one: SSAValue, two: SSAValue) -> Reason:
    """The reason of a sum: a loop may carry ``start - step``, to add the step before it uses it."""
    constants = constant_value(one), constant_value(two)
    if isinstance(constants[0], int) and isinstance(constants[1], int):
        return NON_NEGATIVE if 0 <= constants[0] + constants[1] <= LARGEST_ADDEND else UNKNOWN
    op = defining_op(one)
    if type(op) is arith.SubiOp and op.operands[1] is two:
        return all, op.operands[:1]
    if type(op) is arith.AddiOp and isinstance(more := constant_value(op.operands[1]), int) and more < 0:
        return (all, op.operands[:1]) if isinstance(constants[1], int) and more + constants[1] >= 0 else UNKNOWN
    if any(found := sources_of(one)):
        return all, [(source, two) for source in (*found[0], *found[1])]
    return all, (one, two)


def constant(op: Operation) -> Reason:
    value = constant_value(op.results[0])
    return NON_NEGATIVE if isinstance(value, int) and value >= 0 else UNKNOWN


def make_range(op: Operation) -> Reason:
    return NON_NEGATIVE if int_property(op, "start") >= 0 else UNKNOWN


def every(op: Operation) -> Reason:
    return all, op.operands


def some(op: Operation) -> Reason:
    return any, op.operands


def first(op: Operation) -> Reason:
    return all, op.operands[:1]


def surely(op: Operation) -> Reason:
    """Non-negative for any operands."""
    return NON_NEGATIVE if IntegerRanges(function_around(op)).of(op.results[0])[0] >= 0 else UNKNOWN


def up_to(most: int) -> Callable[[Operation], Reason]:
    """Return a rule: non-negative if every operand is, or surely if one is a larger constant."""

    def rule(op: Operation) -> Reason:
        known = [constant_value(operand) for operand in op.operands]
        return surely(op) if any(isinstance(value, int) and value > most for value in known) else every(op)

    return rule


def added(op: Operation) -> Reason:
    reason = up_to(LARGEST_ADDEND)(op)
    return (all, ((op.operands[0], op.operands[1]),)) if reason[1] else reason


def truncated(op: Operation) -> Reason:
    least, most = IntegerRanges(function_around(op)).of(op.operands[0])
    return NON_NEGATIVE if least >= 0 and most < 1 << (bit_width(op.results[0].type) - 1) else UNKNOWN


def extended(op: Operation) -> Reason:
    return UNKNOWN if bit_width(op.operands[0].type) == 1 else first(op)  # a single bit is a sign


RULES: dict[type[Operation], Callable[[Operation], Reason]] = {
    arith.ConstantOp: constant,
    tt.MakeRangeOp: make_range,
    **dict.fromkeys((tt.GetProgramIdOp, tt.GetNumProgramsOp, arith.ExtUIOp), lambda op: NON_NEGATIVE),
    **dict.fromkeys(
        (tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, ttg.ConvertLayoutOp), first
    ),
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp), first),
    **dict.fromkeys((arith.ShRSIOp, arith.ShRUIOp), first),
    arith.TruncIOp: truncated,
    arith.AddiOp: added,
    arith.MuliOp: up_to(LARGEST_FACTOR),
    arith.ShLIOp: up_to(LARGEST_SHIFT),
    **dict.fromkeys((arith.OrIOp, arith.XOrIOp), surely),
    **dict.fromkeys((arith.MinSIOp, arith.MaxUIOp), every),
    **dict.fromkeys((arith.MaxSIOp, arith.MinUIOp, arith.AndIOp), some),
    arith.ExtSIOp: extended,
    SelectOp: lambda op: (all, op.operands[1:]),
}
