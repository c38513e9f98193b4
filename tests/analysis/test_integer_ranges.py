"""Every rule of `analysis/integer_ranges.py` on every pair of operands of a table: each value is in the claimed range.

The operands consist of two bytes, one of which takes all its values and one those near its ends.
"""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from xdsl.ir import Block, Operation, Region, SSAValue

from tests.analysis.test_axis_info import binary
from tests.analysis.test_axis_pairs import COMPARE, COMPUTE, UNSIGNED
from tilework.analysis.integer_ranges import RULES, SAME, IntegerRanges
from tilework.ir import arith, tt
from tilework.ir.arith import SelectOp
from tilework.ir.locations import unknown
from tilework.ir.rewrite import constant
from tilework.ir.types import bit_width, i1, i8, i16, i64, int_attr

EDGES = (-128, -127, -65, -64, -2, -1, 0, 1, 2, 7, 8, 63, 64, 65, 126, 127)
FIRST, SECOND = (grid.ravel() for grid in np.meshgrid(np.arange(-128, 128), EDGES))
DIVISIONS = (arith.DivSIOp, arith.RemSIOp, arith.DivUIOp, arith.RemUIOp)
SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
Value = tuple[SSAValue, np.ndarray, np.ndarray]  # with its numbers, and where it has one


def wrapped(array: np.ndarray, bits: int) -> np.ndarray:
    """The numbers modulo 2**bits, as signed ones; of one bit, 0 or 1."""
    array = array.astype(np.int64) & ((1 << bits) - 1)
    return array if bits == 1 else array - ((array >> (bits - 1)) << bits)


class Function:
    """A function of two bytes."""

    def __init__(self) -> None:
        self.block = Block(arg_types=[i8, i8])
        exists = np.ones(FIRST.shape, bool)
        self.arguments = [(self.block.args[0], FIRST, exists), (self.block.args[1], SECOND, exists)]

    def add(self, op: Operation, array: np.ndarray, exists: np.ndarray) -> Value:
        self.block.add_op(op)
        return op.results[0], wrapped(array, bit_width(op.results[0].type)), exists

    def constant(self, number: int) -> Value:
        return self.add(constant(number, i8, unknown), np.full(FIRST.shape, number), self.arguments[0][2])

    def compute(self, kind: type[Operation], one: Value, other: Value) -> Value:
        (_, a, _), (_, b, _) = one, other
        bits = bit_width(one[0].type)
        exists = one[2] & other[2]
        if kind in DIVISIONS:
            exists = exists & (b != 0)
            b = np.where(b == 0, 1, b)
            if kind in (arith.DivSIOp, arith.RemSIOp):
                exists = exists & ~((a == -(1 << (bits - 1))) & (b == -1))
        if kind in SHIFTS:
            fits = (b >= 0) & (b < bits)
            exists, b = exists & fits, np.where(fits, b, 0)
        if kind in UNSIGNED:
            a, b = a & ((1 << bits) - 1), b & ((1 << bits) - 1)
        return self.add(binary(kind, one[0], other[0]), COMPUTE[kind](a, b), exists)

    def compare(self, predicate: int, one: Value, other: Value) -> Value:
        op = arith.CmpiOp.create(
            operands=(one[0], other[0]),
            result_types=(i1,),
            properties={"predicate": int_attr(predicate, i64)},
            location=unknown,
        )
        a, b = (side[1] if predicate < 6 else side[1] & 255 for side in (one, other))
        return self.add(op, COMPARE[predicate](a, b), one[2] & other[2])

    def cast(self, kind: type[Operation], one: Value, type: object) -> Value:
        bits = bit_width(one[0].type)
        array = one[1] & ((1 << bits) - 1) if kind is arith.ExtUIOp else -one[1] if bits == 1 else one[1]
        op = kind.create(operands=(one[0],), result_types=(type,), location=unknown)  # type: ignore[list-item]
        return self.add(op, array, one[2])

    def operands(self) -> list[Value]:
        """The table: anything, one number, and spans on each side of 0 and around it."""
        numbers = {number: self.constant(number) for number in (-128, -7, -1, 0, 1, 3, 4, 16, 127)}
        any_byte, edge = self.arguments
        small = self.compute(arith.AndIOp, any_byte, numbers[16])
        rest = self.compute(arith.RemSIOp, edge, numbers[3])
        spans = [small, rest, *(self.compute(arith.AddiOp, small, numbers[number]) for number in (-128, -7, 1))]
        halves = [self.compute(kind, any_byte, numbers[number]) for kind, number in HALVES]
        return [*numbers.values(), any_byte, edge, *spans, *halves]

    def check(self, values: list[Value]) -> None:
        self.block.add_op(tt.ReturnOp.make((), unknown))
        ranges = IntegerRanges(tt.FuncOp.make("f", [i8, i8], [], Region(self.block), unknown))
        for value, array, exists in values:
            low, high = ranges.of(value)
            found = array[exists]
            assert not found.size or (low <= found.min() and found.max() <= high), (
                f"{value.owner}: [{low}, {high}], but there are {found.min()} and {found.max()}"
            )


HALVES = ((arith.MaxSIOp, 0), (arith.MinSIOp, -1), (arith.DivSIOp, 4), (arith.ShRSIOp, 3))
CASES: dict[str, Callable[[Function, Value, Value], Value]] = {
    **{kind.name: lambda function, a, b, kind=kind: function.compute(kind, a, b) for kind in COMPUTE},
    **{
        f"cmpi {number}": lambda function, a, b, number=number: function.compare(number, a, b)
        for number in range(len(COMPARE))
    },
}


def test_every_rule_is_here() -> None:
    others = {arith.ConstantOp, tt.GetProgramIdOp, tt.GetNumProgramsOp, tt.MakeRangeOp, arith.CmpiOp, SelectOp}
    assert set(RULES) == {*COMPUTE, *others, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, *SAME}


@pytest.mark.parametrize("case", CASES)
def test_ranges_hold_for_every_pair(case: str) -> None:
    function = Function()
    table = function.operands()
    function.check([*table, *(CASES[case](function, one, other) for one, other in product(table, table))])


def test_ranges_of_casts_and_choices_hold() -> None:
    function = Function()
    table = function.operands()
    bits = [function.compare(2, one, other) for one, other in zip(table, table[5:], strict=False)]
    wide = [function.cast(kind, one, i16) for kind, one in product((arith.ExtSIOp, arith.ExtUIOp), [*table, *bits])]
    products = [function.compute(arith.MuliOp, one, other) for one, other in zip(wide, wide[7:], strict=False)]
    narrow = [function.cast(arith.TruncIOp, one, i8) for one in [*wide, *products]]
    chosen = [
        function.add(
            SelectOp.make(bit[0], one[0], other[0], unknown), np.where(bit[1], one[1], other[1]), one[2] & other[2]
        )
        for bit, one, other in product(bits[::5], table[::2], table[1::2])
    ]
    function.check([*bits, *wide, *products, *narrow, *chosen])
