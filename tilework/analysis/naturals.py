"""Which integers are natural numbers: those that are rounded down when they are divided, as all that is known of quotients needs.

    %x = tt.get_program_id * 128 + tt.make_range            natural
    %x % %n, %x // %n                                       natural
    %x - %n, an argument, what is loaded                    may be negative

Integers are taken not to overflow, and divisors to be positive. What a loop carries is natural if it starts so and stays so. Facts only; cost:
what the value is computed from, once per question.
"""

from collections.abc import Callable, Iterable, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.integer_ranges import IntegerRanges
from tilework.analysis.value_flows import sources_of
from tilework.ir import tt, ttg
from tilework.ir.arith_ext import SelectOp
from tilework.ir.nesting import owner_of
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import bit_width

Question = SSAValue | tuple[SSAValue, SSAValue]  # whether a value is natural, or the sum of two
Reason = tuple[Callable[[Iterable[bool]], bool], Sequence[Question]]  # it is, if all, or any, of these are
NATURAL: Reason = (all, ())
UNKNOWN: Reason = (any, ())
STEPS: dict[type[Operation], int] = {scf.ForOp: 2, arith.CeilDivUIOp: 1}  # which operand is positive


def is_natural(value: SSAValue) -> bool:
    """Whether no element of `value` is negative, as far as this can be seen."""
    reasons: dict[Question, Reason] = {}
    left: list[Question] = [value]
    while left:
        if (one := left.pop()) not in reasons:
            reasons[one] = sum_reason(*one) if isinstance(one, tuple) else reason_of(one)
            left += reasons[one][1]
    natural, changed = set(reasons), True
    while changed:
        negative = [one for one in natural if not reasons[one][0](other in natural for other in reasons[one][1])]
        natural.difference_update(negative)
        changed = bool(negative)
    return value in natural


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
        return NATURAL if numbers[0] + numbers[1] >= 0 else UNKNOWN
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


def extended(op: Operation) -> Reason:
    return UNKNOWN if bit_width(op.operands[0].type) == 1 else first(op)  # a bit is its own sign


RULES: dict[type[Operation], Callable[[Operation], Reason]] = {
    arith.ConstantOp: constant,
    tt.MakeRangeOp: make_range,
    **dict.fromkeys((tt.GetProgramIdOp, tt.GetNumProgramsOp, arith.ExtUIOp), lambda op: NATURAL),
    **dict.fromkeys(
        (tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, ttg.ConvertLayoutOp), first
    ),
    **dict.fromkeys((arith.TruncIOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp), first),
    **dict.fromkeys((arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp), first),
    arith.AddiOp: lambda op: (all, ((op.operands[0], op.operands[1]),)),
    **dict.fromkeys((arith.MuliOp, arith.MinSIOp, arith.MaxUIOp, arith.OrIOp, arith.XOrIOp), every),
    **dict.fromkeys((arith.MaxSIOp, arith.MinUIOp, arith.AndIOp), some),
    arith.ExtSIOp: extended,
    SelectOp: lambda op: (all, op.operands[1:]),
}
