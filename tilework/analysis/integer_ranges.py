"""The range of the elements of an integer, as signed integers of its width.

    %pid = tt.get_program_id x                            [0, 2**31)
    %r = tt.make_range {start = 0, end = 64}              [0, 63]
    arith.remsi %n, %c16                                  [-15, 15], or [0, 15] if %n is not negative
    llvm.intr.assume (arith.cmpi sge, %n, %c0)            %n is not negative
    scf.for %k = %c0 to %n step %c64                      [0, largest %n - 1]

A value that may wrap around may be anything. A carried value of a loop moves by a bounded amount in each iteration,
also through branches and inner loops, or is in a range that an iteration does not leave. A loop that never runs keeps
the initial values. An assumption counts if it is in the first block of the function, so that it holds for every access.
Facts only; cost: the queried values, once.
"""

from collections.abc import Callable, Sequence
from itertools import product

from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import amdg, arith, scf, tt, ttg
from tilework.ir.arith import EQ, NE, SGE, SGT, SLE, SLT, SWAPPED, ULT, SelectOp, predicate_of
from tilework.ir.llvm import AssumeOp
from tilework.ir.nesting import body_of, end_of
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import bit_width

Range = tuple[int, int]
MOST_PROGRAMS = (1 << 31) - 1
DEEPEST = 200  # values between a queried one and those it is computed from
FEW = 16  # iterations of a loop that are followed one by one
SETTLED = 3  # iterations after which the range of a carried value should no longer grow
TRIALS = 10_000  # values computed for such iterations, of a function
SAME = (
    tt.SplatOp,
    tt.BroadcastOp,
    tt.ExpandDimsOp,
    tt.ReshapeOp,
    tt.TransOp,
    ttg.ConvertLayoutOp,
    amdg.InThreadTransposeOp,
)
OF_BITS = {
    *SAME,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    SelectOp,
}  # rules that hold for single bits
NEVER_FALSE: dict[int, Callable[[Range, Range], bool]] = {
    EQ: lambda a, b: a == b and a[0] == a[1],
    NE: lambda a, b: a[1] < b[0] or b[1] < a[0],
    SLT: lambda a, b: a[1] < b[0],
    SLE: lambda a, b: a[1] <= b[0],
    SGT: lambda a, b: a[0] > b[1],
    SGE: lambda a, b: a[0] >= b[1],
}  # by predicate


def everything(type: Attribute) -> Range:
    bits = bit_width(type)
    return (0, 1) if bits == 1 else (-(1 << bits - 1), (1 << bits - 1) - 1)


class IntegerRanges:
    """The ranges of the values of a function, computed on demand."""

    def __init__(self, function: Operation) -> None:
        self.known: dict[SSAValue, Range] = {}
        self.depth = 0
        self.tried: list[list[SSAValue]] = []  # values whose ranges depend on one that is tried, innermost last
        self.trials = 0
        self.assumed: dict[SSAValue, list[tuple[int, SSAValue]]] = {}
        for op in function.regions[0].blocks[0].ops:
            if type(op) is AssumeOp:
                self.assume(op.operands[0])

    def assume(self, condition: SSAValue) -> None:
        op = defining_op(condition)
        if op is None:
            return
        if type(op) is arith.AndIOp:
            for operand in op.operands:
                self.assume(operand)
        elif type(op) is arith.CmpiOp and (predicate := predicate_of(op)) in (EQ, SLT, SLE, SGT, SGE):
            one, two = op.operands
            if bit_width(one.type) == 1:
                return
            self.assumed.setdefault(one, []).append((predicate, two))
            self.assumed.setdefault(two, []).append((SWAPPED[predicate], one))

    def of(self, value: SSAValue) -> Range:
        """Return the least and the greatest value of an element."""
        if (found := self.known.get(value)) is not None:
            return found
        anything = self.known[value] = everything(value.type)
        if self.tried:
            self.tried[-1].append(value)
            self.trials += 1
        if self.depth < DEEPEST:
            self.depth += 1
            found = self.find(value) or anything
            self.depth -= 1
            self.known[value] = self.narrowed(value, found)
        return self.known[value]

    def narrowed(self, value: SSAValue, found: Range) -> Range:
        """Return the range under the assumptions; a contradiction is code that never runs."""
        low, high = found
        for predicate, other in self.assumed.get(value, ()) if low < high else ():
            least, most = self.of(other)
            if predicate in (EQ, SGT, SGE):
                low = max(low, least + (predicate == SGT))
            if predicate in (EQ, SLT, SLE):
                high = min(high, most - (predicate == SLT))
        return (low, high) if low <= high else found

    def find(self, value: SSAValue) -> Range | None:
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            return self.in_loop(loop, value.index - 1, False) if type(loop) is scf.ForOp else None
        assert isinstance(value, OpResult)
        op = value.op
        if type(op) is scf.ForOp:
            return self.in_loop(op, value.index, True)
        if type(op) is scf.IfOp:
            return joined([self.of(end_of(region.blocks[0]).operands[value.index]) for region in op.regions])
        rule = RULES.get(type(op))
        if rule is None or (op.operands and bit_width(op.operands[0].type) == 1 and type(op) not in OF_BITS):
            return None
        found = rule(op, [self.of(operand) for operand in op.operands])
        return found if found is not None and is_inside(found, everything(value.type)) else None

    def in_loop(self, loop: Operation, index: int, is_result: bool) -> Range | None:
        """Return the range of the counter of a loop, or of a carried value."""
        if index < 0:
            low, high = self.between(loop)
            return (low, max(low, high)) if self.trips(loop) is not None else None
        trips, body = self.trips(loop), body_of(loop)
        initial, argument, following = loop.operands[3 + index], body.args[1 + index], end_of(body).operands[index]
        if trips == 0:
            return self.of(initial)
        if trips is not None and (amount := self.moved(following, argument)) is not None:
            found = plus(self.of(initial), repeated(amount, trips if is_result else trips - 1))
            return found if is_inside(found, everything(initial.type)) else None
        if is_result:
            return joined([self.of(initial), self.after(argument, self.of(argument), following)])
        return self.settled(argument, self.of(initial), following, trips)

    def settled(self, argument: SSAValue, start: Range, following: SSAValue, trips: int | None) -> Range | None:
        """Return the range of a carried value: the initial one as it grows in few iterations, or does not grow any
        more, or else what an iteration makes of any value."""
        found, is_short = start, trips is not None and trips <= FEW
        for done in range(1, (trips if is_short and trips is not None else SETTLED) + 1):
            if done == trips:
                return found
            grown = joined([start, self.after(argument, found, following)])
            if grown == found:
                return found
            found = grown
        found = everything(argument.type)
        for _ in range(2):
            found = joined([start, self.after(argument, found, following)])
        return found

    def after(self, argument: SSAValue, assumed: Range, following: SSAValue) -> Range:
        """Return the range of the next value of a carried one, if that is in the range `assumed`."""
        if self.trials > TRIALS:
            return everything(following.type)
        before, self.known[argument] = self.known.get(argument), assumed
        self.tried.append([])
        found = self.of(following)
        for value in self.tried.pop():
            self.known.pop(value, None)
        if before is None:
            self.known.pop(argument, None)
        else:
            self.known[argument] = before
        return found

    def between(self, loop: Operation) -> Range:
        """Return the least and the greatest value of the counter of a loop."""
        return self.of(loop.operands[0])[0], self.of(loop.operands[1])[1] - 1

    def trips(self, loop: Operation) -> int | None:
        """Return how many iterations a loop has at most; None if that is not known."""
        (low, high), least = self.between(loop), self.of(loop.operands[2])[0]
        return None if least <= 0 or "unsignedCmp" in loop.properties else max(0, (high - low) // least + 1)

    def moved(self, value: SSAValue, base: SSAValue) -> Range | None:
        """Return the range of `value` - `base`, if that is a sum, or one of several."""
        if value is base:
            return 0, 0
        op = defining_op(value)
        if op is None:
            return None
        if type(op) is arith.AddiOp:
            for one, two in (op.operands, tuple(reversed(op.operands))):
                if (before := self.moved(one, base)) is not None:
                    return plus(before, self.of(two))
        elif type(op) is arith.SubiOp and (before := self.moved(op.operands[0], base)) is not None:
            least, most = self.of(op.operands[1])
            return plus(before, (-most, -least))
        elif type(op) in (SelectOp, scf.IfOp):
            ends = [end_of(region.blocks[0]).operands for region in op.regions]
            ways = op.operands[1:] if type(op) is SelectOp else [end[value.index] for end in ends]  # pyright: ignore
            found = [self.moved(way, base) for way in ways]
            return None if None in found else joined([one for one in found if one is not None])
        elif type(op) is scf.ForOp and (trips := self.trips(op)) is not None:
            index, body = value.index, body_of(op)  # pyright: ignore[reportAttributeAccessIssue]
            before, amount = self.moved(op.operands[3 + index], base), (0, 0)
            if trips and before is not None:
                amount = self.moved(end_of(body).operands[index], body.args[1 + index])
            return None if before is None or amount is None else plus(before, repeated(amount, trips))
        return None


def plus(a: Range, b: Range) -> Range:
    return a[0] + b[0], a[1] + b[1]


def repeated(amount: Range, times: int) -> Range:
    """Return the range of the sum of `times` amounts or fewer."""
    return times * min(0, amount[0]), times * max(0, amount[1])


def is_inside(found: Range, other: Range) -> bool:
    return other[0] <= found[0] and found[1] <= other[1]


def signed_predicate(op: Operation, sides: Sequence[Range]) -> int:
    """Return the predicate as a signed one, which unsigned ones are if nothing is negative; -1 if it has none."""
    predicate = predicate_of(op)
    if predicate < ULT:
        return predicate
    return predicate - 4 if all(low >= 0 for low, _ in sides) else -1


def joined(ranges: Sequence[Range]) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


Rule = Callable[[Operation, Sequence[Range]], Range | None]


def of_constant(op: Operation, known: Sequence[Range]) -> Range | None:
    value = constant_value(op.results[0])
    return (value, value) if isinstance(value, int) else None


def make_range(op: Operation, known: Sequence[Range]) -> Range:
    start, end = (op.properties[name].value.data for name in ("start", "end"))  # pyright: ignore
    return start, end - 1


def corners(function: Callable[[int, int], int]) -> Rule:
    """Return the rule of a function that is monotonic in each of its operands."""

    def rule(op: Operation, known: Sequence[Range]) -> Range:
        found = [function(a, b) for a, b in product(*known)]
        return min(found), max(found)

    return rule


def if_non_negative(rule: Rule) -> Rule:
    """Return the rule of an unsigned op, for operands that are not negative."""
    return lambda op, known: rule(op, known) if all(low >= 0 for low, _ in known) else None


def divide(op: Operation, known: Sequence[Range]) -> Range | None:
    (a, b), divisor = known
    if divisor[0] <= 0:
        return None
    found = [abs(x) // y * (1 if x >= 0 else -1) for x in (a, b) for y in divisor]
    return min(found), max(found)


def remainder(op: Operation, known: Sequence[Range]) -> Range | None:
    """A remainder is at most as large as the dividend and smaller than the divisor, with the sign of the dividend."""
    (low, high), divisor = known
    if divisor[0] <= 0:
        return None
    most = divisor[1] - 1
    return max(-most, min(low, 0)), min(most, max(high, 0))


def conjunction(op: Operation, known: Sequence[Range]) -> Range | None:
    """The result is at most the smallest of the operands that are not negative."""
    non_negative = [high for low, high in known if low >= 0]
    return (0, min(non_negative)) if non_negative else None


def disjunction(op: Operation, known: Sequence[Range]) -> Range | None:
    return 0, (1 << max(high for _, high in known).bit_length()) - 1


def shift_left(op: Operation, known: Sequence[Range]) -> Range | None:
    (low, high), (least, most) = known
    if not 0 <= least <= most < 64:
        return None
    found = [x << y for x in (low, high) for y in (least, most)]
    return min(found), max(found)


def shift_right(op: Operation, known: Sequence[Range]) -> Range | None:
    (low, high), (least, most) = known
    if not 0 <= least <= most < 64:
        return None
    return min(low >> least, low >> most), max(high >> least, high >> most)


def same(op: Operation, known: Sequence[Range]) -> Range:
    return known[0]


def extend_signed(op: Operation, known: Sequence[Range]) -> Range:
    return (-1, 0) if bit_width(op.operands[0].type) == 1 else known[0]


def compare(op: Operation, known: Sequence[Range]) -> Range:
    test = NEVER_FALSE.get(signed_predicate(op, known))
    return (1, 1) if test is not None and test(known[0], known[1]) else (0, 1)


RULES: dict[type[Operation], Rule] = {
    arith.ConstantOp: of_constant,
    tt.GetProgramIdOp: lambda op, known: (0, MOST_PROGRAMS - 1),
    tt.GetNumProgramsOp: lambda op, known: (1, MOST_PROGRAMS),
    tt.MakeRangeOp: make_range,
    **dict.fromkeys(SAME, same),
    arith.AddiOp: corners(lambda a, b: a + b),
    arith.SubiOp: corners(lambda a, b: a - b),
    arith.MuliOp: corners(lambda a, b: a * b),
    arith.DivSIOp: divide,
    arith.RemSIOp: remainder,
    arith.DivUIOp: if_non_negative(divide),
    arith.RemUIOp: if_non_negative(remainder),
    arith.AndIOp: conjunction,
    arith.OrIOp: if_non_negative(disjunction),
    arith.XOrIOp: if_non_negative(disjunction),
    arith.ShLIOp: shift_left,
    arith.ShRSIOp: shift_right,
    arith.ShRUIOp: if_non_negative(shift_right),
    arith.MinSIOp: corners(min),
    arith.MaxSIOp: corners(max),
    arith.MinUIOp: if_non_negative(corners(min)),
    arith.MaxUIOp: if_non_negative(corners(max)),
    arith.ExtSIOp: extend_signed,
    arith.ExtUIOp: lambda op, known: known[0] if known[0][0] >= 0 else (0, (1 << bit_width(op.operands[0].type)) - 1),
    arith.TruncIOp: same,
    arith.CmpiOp: compare,
    SelectOp: lambda op, known: joined(known[1:]),
}
