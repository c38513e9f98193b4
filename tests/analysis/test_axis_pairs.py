"""Every transfer rule of `analysis/axis_transfer.py` on every pair of operands of a table: what it claims holds for the
values. So do the ranges of `analysis/integer_ranges.py`.

The operands are runs, groups of equal numbers, multiples and their sums, with lengths and divisors that differ, so that
a rule which takes one of two numbers instead of their common divisor claims too much for some pair. Integers wrap
around.
"""

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tests.analysis.test_axis_info import binary
from tilework.analysis.axis_info import AxisInfo, axis_info
from tilework.analysis.axis_transfer import ARITHMETIC
from tilework.analysis.integer_ranges import IntegerRanges
from tilework.ir import arith, tt
from tilework.ir.arith import SelectOp
from tilework.ir.locations import unknown
from tilework.ir.rewrite import constant
from tilework.ir.types import bit_width, i1, i8, i32, i64, int_attr, pointer_type, tensor_type, with_element

Value = tuple[SSAValue, np.ndarray]
SIZE = 16
ARGUMENTS = (  # a divisor, and values of an argument that has it
    (16, (0, 16, -32, 2**31 - 16, -(2**31))),
    (4, (4, -12, 0, 2**31 - 4, -4)),
    (1, (1, 3, -5, 2**31 - 1, -1)),
)
VALUES = list(zip(*(values for _, values in ARGUMENTS), strict=True))
POINTERS = [pointer_type(element) for element in (i8, i32, i64)]
ADDRESS = 1 << 40
UNSIGNED = {arith.DivUIOp, arith.RemUIOp, arith.ShRUIOp, arith.MaxUIOp, arith.MinUIOp}
COMPUTE: dict[type[Operation], Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.DivSIOp: lambda a, b: np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b)),
    arith.DivUIOp: np.floor_divide,
    arith.RemSIOp: np.fmod,
    arith.RemUIOp: np.remainder,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.ShLIOp: np.left_shift,
    arith.ShRSIOp: np.right_shift,
    arith.ShRUIOp: np.right_shift,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.MaxUIOp: np.maximum,
    arith.MinUIOp: np.minimum,
}
COMPARE = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip  # by predicate; the last four without sign


def wrapped(array: np.ndarray) -> np.ndarray:
    """The numbers modulo 2**32, as signed ones."""
    return (array.astype(np.int64) & 0xFFFFFFFF).astype(np.uint32).view(np.int32).astype(np.int64)


def plain(array: np.ndarray) -> np.ndarray:
    """Signed numbers read without sign."""
    return array & 0xFFFFFFFF


class Function:
    """A function of the arguments, with the concrete value of everything in it."""

    def __init__(self, arguments: tuple[int, ...]) -> None:
        self.block = Block(arg_types=[*[i32] * len(arguments), *POINTERS])
        self.arguments = [
            (argument, np.asarray(number)) for argument, number in zip(self.block.args, arguments, strict=False)
        ]
        self.checked: list[Value] = []

    def add(self, op: Operation, array: np.ndarray) -> Value:
        self.block.add_op(op)
        return op.results[0], array

    def constant(self, number: int) -> Value:
        return self.add(constant(number, tensor_type((SIZE,), i32), unknown), np.full(SIZE, number))

    def compute(self, kind: type[Operation], one: Value, other: Value) -> Value | None:
        """`kind` of two values; None where some element has no value."""
        (_, a), (_, b) = one, other
        if kind in (arith.DivSIOp, arith.RemSIOp, arith.DivUIOp, arith.RemUIOp) and (
            np.any(b == 0) or np.any((a == -(2**31)) & (b == -1))
        ):
            return None
        if kind in (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp) and np.any((b < 0) | (b >= 32)):
            return None
        if kind in UNSIGNED:
            a, b = plain(a), plain(b)
        return self.add(binary(kind, one[0], other[0]), wrapped(COMPUTE[kind](a, b)))

    def compare(self, predicate: int, one: Value, other: Value) -> Value:
        op = arith.CmpiOp.create(
            operands=(one[0], other[0]),
            result_types=(with_element(one[0].type, i1),),
            properties={"predicate": int_attr(predicate, i64)},
            location=unknown,
        )
        arrays = (one[1], other[1]) if predicate < 6 else (plain(one[1]), plain(other[1]))
        return self.add(op, COMPARE[predicate](*arrays))

    def operands(self) -> list[Value]:
        """The table."""
        line = tensor_type((SIZE,), i32)
        number = {value: self.constant(value) for value in (0, 1, 2, 4, 5, 6, 8, -16, 64)}
        run = self.add(tt.MakeRangeOp.make(0, SIZE, unknown), np.arange(SIZE))
        later = self.add(tt.MakeRangeOp.make(24, 24 + SIZE, unknown), np.arange(24, 24 + SIZE))
        given = [
            self.add(tt.SplatOp.make(value, line, unknown), np.full(SIZE, array)) for value, array in self.arguments
        ]
        twos, eights = (self.made(arith.DivSIOp, run, number[length]) for length in (2, 8))
        fours, short = self.made(arith.RemSIOp, run, number[4]), self.made(arith.RemUIOp, run, number[8])
        sums = [self.made(arith.AddiOp, run, value) for value in (*given, number[5], number[-16], twos)]
        sums += [self.made(arith.AddiOp, twos, fours), self.made(arith.AddiOp, eights, given[1])]
        products = [self.made(arith.MuliOp, value, number[4]) for value in (run, twos, eights)]
        return [*number.values(), run, later, *given, twos, eights, fours, short, *sums, *products]

    def made(self, kind: type[Operation], one: Value, other: Value) -> Value:
        made = self.compute(kind, one, other)
        assert made is not None
        return made

    def tiles(self) -> list[Value]:
        """Some of the table along each axis of a tile."""
        found: list[Value] = []
        for axis, (value, array) in product((0, 1), self.operands()[::3]):
            op = tt.ExpandDimsOp.make(value, axis, unknown)
            narrow = self.add(op, np.expand_dims(array, axis))
            wide = tensor_type((SIZE, SIZE), i32)
            found.append(
                self.add(tt.BroadcastOp.make(narrow[0], wide, unknown), np.broadcast_to(narrow[1], (SIZE, SIZE)))
            )
        return found

    def finish(self) -> tt.FuncOp:
        self.block.add_op(tt.ReturnOp.make((), unknown))
        divisors = [divisor for divisor, _ in ARGUMENTS] + [16] * len(POINTERS)
        attributes: list[dict[str, Attribute]] = [{"tt.divisibility": int_attr(divisor, i32)} for divisor in divisors]
        types = [*[i32] * len(ARGUMENTS), *POINTERS]
        return tt.FuncOp.make("f", types, [], Region(self.block), unknown, arg_attrs=attributes)

    def claims(self, checked: list[Value]) -> Iterator[tuple[AxisInfo, Value]]:
        facts = axis_info(self.finish())
        return ((facts.of(value[0]), value) for value in checked)


def broken(info: AxisInfo, array: np.ndarray, step: int = 1) -> str | None:
    """A claim that does not hold for `array`, as text; numbers that follow each other are `step` apart."""
    is_boolean = array.dtype == bool
    array = array.astype(np.int64)
    if info.constant is not None and not np.all(plain(array) == plain(np.asarray(info.constant))):
        return f"constant {info.constant}"
    for axis, (run, divisor, equal) in enumerate(zip(*info[:3], strict=True)):
        lines = np.moveaxis(array, axis, -1).reshape(-1, array.shape[axis])
        runs = lines.reshape(len(lines), -1, min(run, lines.shape[1]))
        if not np.all(plain(np.diff(runs, axis=-1)) == step):
            return f"contiguity {run}"
        if not is_boolean and not np.all(runs[..., 0] % divisor == 0):
            return f"divisibility {divisor}"
        groups = lines.reshape(len(lines), -1, min(equal, lines.shape[1]))
        if not np.all(np.diff(groups, axis=-1) == 0):
            return f"constancy {equal}"
    return None


CASES: dict[str, Callable[[Function, Value, Value], Value | None]] = {
    **{kind.name: lambda function, a, b, kind=kind: function.compute(kind, a, b) for kind in COMPUTE},
    **{
        f"cmpi {number}": lambda function, a, b, number=number: function.compare(number, a, b)
        for number in range(len(COMPARE))
    },
}


def test_every_rule_of_two_integers_is_here() -> None:
    assert set(ARITHMETIC) == set(COMPUTE)


@pytest.mark.parametrize("arguments", VALUES, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_claims_hold_for_every_pair(case: str, arguments: tuple[int, ...]) -> None:
    for operands in (Function.operands, Function.tiles):
        function = Function(arguments)
        table = operands(function)
        made = [made for one, other in product(table, table) if (made := CASES[case](function, one, other)) is not None]
        check(function, [*table, *made])


@pytest.mark.parametrize("arguments", VALUES, ids=str)
def test_claims_about_choices_hold(arguments: tuple[int, ...]) -> None:
    function = Function(arguments)
    table = function.operands()
    tests = [function.compare(2, one, other) for one, other in zip(table, table[5:], strict=False)]
    made = [
        function.add(SelectOp.make(test[0], one[0], other[0], unknown), np.where(test[1], one[1], other[1]))
        for test, one, other in product(tests[::4], table[::2], table[1::2])
    ]
    check(function, [*tests, *made])


@pytest.mark.parametrize("arguments", VALUES, ids=str)
@pytest.mark.parametrize("case", COMPUTE, ids=lambda kind: kind.name)
def test_ranges_hold_for_every_pair(case: type[Operation], arguments: tuple[int, ...]) -> None:
    function = Function(arguments)
    table = function.operands()
    made = [made for one, other in product(table, table) if (made := function.compute(case, one, other)) is not None]
    ranges = IntegerRanges(function.finish())
    for value, array in [*function.arguments, *table, *made]:
        least, greatest = ranges.of(value)
        assert least <= array.min() and array.max() <= greatest, f"[{least}, {greatest}] of {value.owner}: {array}"


@pytest.mark.parametrize("pointer", range(len(POINTERS)))
@pytest.mark.parametrize("arguments", VALUES, ids=str)
def test_claims_about_addresses_hold(arguments: tuple[int, ...], pointer: int) -> None:
    """An offset counts elements, an address bytes; one of other elements steps by their size."""
    function = Function(arguments)
    table, size = function.operands(), bit_width(POINTERS[pointer].pointee) // 8
    type = tensor_type((SIZE,), POINTERS[pointer])
    base = function.add(tt.SplatOp.make(function.block.args[3 + pointer], type, unknown), np.full(SIZE, ADDRESS))
    first = [function.add(tt.AddPtrOp.make(base[0], one[0], unknown), base[1] + one[1] * size) for one in table]
    second = [
        function.add(tt.AddPtrOp.make(one[0], other[0], unknown), one[1] + other[1] * size)
        for one, other in product(first, table)
    ]
    check(function, [*first, *second], size)


@pytest.mark.parametrize("pointer", range(len(POINTERS)))
def test_claims_about_addresses_of_other_elements_hold(pointer: int) -> None:
    function = Function((16, -12, 3))
    table, size = function.operands(), bit_width(POINTERS[pointer].pointee) // 8
    type = tensor_type((SIZE,), POINTERS[pointer])
    base = function.add(tt.SplatOp.make(function.block.args[3 + pointer], type, unknown), np.full(SIZE, ADDRESS))
    made: list[Value] = []
    for one, target in product(table, POINTERS):
        address = function.add(tt.AddPtrOp.make(base[0], one[0], unknown), base[1] + one[1] * size)
        made.append(function.add(tt.BitcastOp.make(address[0], tensor_type((SIZE,), target), unknown), address[1]))
    facts = dict(zip(POINTERS, (1, 4, 8), strict=True))
    for info, (value, array) in function.claims(made):
        step = facts[value.type.element_type]  # type: ignore[attr-defined]
        assert (problem := broken(info, array, step)) is None, f"{problem} of {value.owner}: {array}"


def check(function: Function, values: list[Value], step: int = 1) -> None:
    for info, (value, array) in function.claims(values):
        assert (problem := broken(info, array, step)) is None, f"{problem} of {value.owner}: {array}"
