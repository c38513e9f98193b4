"""Which integers are natural numbers: those that are rounded down when they are divided, as all that is known of quotients needs.

    %x = tt.get_program_id * 128 + tt.make_range            natural
    %x % %n, %x // %n                                       natural
    %x - %n, an argument, what is loaded                    may be negative

Sums and products of indices are taken not to overflow, and divisors to be positive. What a loop carries is natural if it starts so and stays
so. Nothing is taken of what hash functions do, which overflow on purpose: factors above 2**16, shifts, xor, numbers of 64 bits that are cut
off, products that a loop multiplies again. Those are natural only where they cannot be anything else (`integer_ranges.py`). Facts only; cost: what the value is
computed from, once per question.
"""

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.integer_ranges import IntegerRanges
from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import tt, ttg
from tilework.ir.arith_ext import SelectOp
from tilework.ir.functions import function_around
from tilework.ir.nesting import owner_of
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import bit_width

Question = SSAValue | tuple[SSAValue, SSAValue]  # whether a value is natural, or the sum of two
Reason = tuple[Callable[[Iterable[bool]], bool], Sequence[Question]]  # it is, if all, or any, of these are
NATURAL: Reason = (all, ())
UNKNOWN: Reason = (any, ())
LARGEST_FACTOR, LARGEST_SHIFT, LARGEST_ADDEND = 1 << 16, 16, 1 << 30  # of indices
PRODUCTS = frozenset({arith.MuliOp, arith.ShLIOp})
STEPS: dict[type[Operation], int] = {scf.ForOp: 2, arith.CeilDivUIOp: 1}  # which operand is positive


def is_natural(value: SSAValue) -> bool:
    """Whether no element of `value` is negative, as far as this can be seen."""
    reasons: dict[Question, Reason] = {}
    left: list[Question] = [value]
    while left:
        if (one := left.pop()) not in reasons:
            reasons[one] = sum_reason(*one) if isinstance(one, tuple) else reason_of(one)
            left += reasons[one][1]
    natural, changed = {one for one in reasons if not is_growing(one, reasons)}, True
    while changed:
        negative = [one for one in natural if not reasons[one][0](other in natural for other in reasons[one][1])]
        natural.difference_update(negative)
        changed = bool(negative)
    return value in natural


def is_growing(one: Question, reasons: dict[Question, Reason]) -> bool:
    """Whether a loop carries a product of what it was, or a sum of itself: it becomes too large soon."""
    parts = reasons[one][1]
    is_sum = parts == one
    if not is_sum and (isinstance(one, tuple) or type(owner_of(one)) not in PRODUCTS):
        return False
    return sum(one in reached([part], lambda other: reasons[other][1]) for part in parts) > is_sum


def reason_of(value: SSAValue) -> Reason:
    op = owner_of(value)
    if is_step(value):
        return NATURAL
    if type(op) is tt.FuncOp:
        return NATURAL if IntegerRanges(op).of(value)[0] >= 0 else UNKNOWN  # by an assumption
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
    """A loop goes on by `value`, or did: `building/iterations.py` divides without signs by what is positive."""
    return any(STEPS.get(type(use.operation)) == use.index for use in value.uses)


def sum_reason(one: SSAValue, two: SSAValue) -> Reason:
    """Of a sum: a loop may carry ``start - step``, to add the step before it uses it."""
    numbers = constant_value(one), constant_value(two)
    if isinstance(numbers[0], int) and isinstance(numbers[1], int):
        return NATURAL if 0 <= numbers[0] + numbers[1] <= LARGEST_ADDEND else UNKNOWN
    op = defining_op(one)
    if type(op) is arith.SubiOp and op.operands[1] is two:
        return all, op.operands[:1]
    if type(op) is arith.AddiOp and isinstance(more := constant_value(op.operands[1]), int) and more < 0:
        return (all, op.operands[:1]) if isinstance(numbers[1], int) and more + numbers[1] >= 0 else UNKNOWN
    if any(found := sources_of(one)):
        return all, [(source, two) for source in (*found[0], *found[1])]
    return all, (one, two)


def constant(op: Operation) -> Reason:
    number = constant_value(op.results[0])
    return NATURAL if isinstance(number, int) and number >= 0 else UNKNOWN


def make_range(op: Operation) -> Reason:
    return NATURAL if op.properties["start"].value.data >= 0 else UNKNOWN  # pyright: ignore


def every(op: Operation) -> Reason:
    return all, op.operands


def some(op: Operation) -> Reason:
    return any, op.operands


def first(op: Operation) -> Reason:
    return all, op.operands[:1]


def surely(op: Operation) -> Reason:
    """Whatever the numbers are that it is computed from."""
    return NATURAL if IntegerRanges(function_around(op)).of(op.results[0])[0] >= 0 else UNKNOWN


def up_to(most: int) -> Callable[[Operation], Reason]:
    """Every operand, or surely where one is a larger constant."""

    def rule(op: Operation) -> Reason:
        known = [constant_value(operand) for operand in op.operands]
        return surely(op) if any(isinstance(number, int) and number > most for number in known) else every(op)

    return rule


def added(op: Operation) -> Reason:
    reason = up_to(LARGEST_ADDEND)(op)
    return (all, ((op.operands[0], op.operands[1]),)) if reason[1] else reason


def truncated(op: Operation) -> Reason:
    least, most = IntegerRanges(function_around(op)).of(op.operands[0])
    return NATURAL if least >= 0 and most < 1 << (bit_width(op.results[0].type) - 1) else UNKNOWN


def extended(op: Operation) -> Reason:
    return UNKNOWN if bit_width(op.operands[0].type) == 1 else first(op)  # a bit is its own sign


RULES: dict[type[Operation], Callable[[Operation], Reason]] = {
    arith.ConstantOp: constant,
    tt.MakeRangeOp: make_range,
    **dict.fromkeys((tt.GetProgramIdOp, tt.GetNumProgramsOp, arith.ExtUIOp), lambda op: NATURAL),
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
