"""The promotion and operator tables, executed: every operator on every pair of types.

Each row of cells is a kernel: compiled from Python, evaluated on NumPy and compared with NumPy's own answers. The types
that the table gives are asserted inside the kernel; a cell that the table calls an error must be one, alone.
"""

from typing import Any

import numpy as np
import pytest

import tilework
from tests.frontend.semantic.arith_kernel import NUMPY
from tests.frontend.semantic.operator_kernels import (
    BITWISE,
    COMPARISONS,
    DIVISIONS,
    OPERATORS,
    SHIFTS,
    apply,
    apply_row,
    defined_operands,
    expected,
    pairs,
    same,
    values,
)
from tests.frontend.semantic.promotion_table import ENTRIES, SHORT
from tilework.errors import CompilationError
from tilework.language.dtypes import dtype

NAMES = list(SHORT.values())
TABLE = {(SHORT[a], SHORT[b]): "error" if cell == "E" else SHORT[cell] for a, b, cell in ENTRIES}


def common_type(op: str, left: str, right: str) -> str:
    """The type in which two tensors meet, or "error"."""
    cell, a, b = TABLE[left, right], dtype(left), dtype(right)
    if cell == "error" or ((op in BITWISE or op == "//") and dtype(cell).is_floating()):
        return "error"
    if op in DIVISIONS and a.is_int() and b.is_int() and a.is_int_signed() != b.is_int_signed():
        return "error"
    return "fp32" if op in DIVISIONS and cell in ("fp16", "bf16") else cell


def result_type(op: str, common: str) -> str:
    if op in COMPARISONS:
        return "int1"
    return "fp32" if op == "/" and dtype(common).is_int() else common


def is_refused(function: Any, operands: list[Any], result: str) -> bool:
    """A CompilationError that speaks about operands, not about the insides of the compiler."""
    try:
        apply_row([(function, operands, result)])
    except CompilationError as error:
        text = error.diagnostic().render()
        return "Cannot" in text or "invalid operands" in text or "unexpected type" in text or "out of range" in text
    return False


@pytest.mark.parametrize("left", NAMES)
@pytest.mark.filterwarnings("ignore:(divide|invalid|overflow):RuntimeWarning")
def test_two_tensors(left: str) -> None:
    wrong, cells, wanted = [], [], {}
    for op, function in OPERATORS.items():
        for right in NAMES:
            common = common_type(op, left, right)
            x, y = pairs(left, right)
            if common == "error":
                if not is_refused(function, [(x[:2], left), (y[:2], right)], left):
                    wrong.append(f"{left} {op} {right} is not refused")
                continue
            y = defined_operands(op, x, y, common)
            cells.append((function, [(x, left), (y, right)], result_type(op, common)))
            wanted[f"{left} {op} {right}"] = expected(op, x, y, common)
    for cell, got in zip(wanted, apply_row(cells), strict=True):
        if not same(got, wanted[cell]):
            wrong.append(cell)
    assert not wrong


NUMBERS = [True, 3, -2, 200, 2**31, 2**40, 0.5, -0.0, 1e50, float("inf"), float("nan")]


def number_type(number: int | float) -> str:
    """Return the result type of two tensors."""
    if isinstance(number, bool):
        return "int1"
    if isinstance(number, int):
        ranges = {"int32": (-(2**31), 2**31), "uint32": (2**31, 2**32), "int64": (-(2**63), 2**63)}
        return next(name for name, (low, high) in ranges.items() if low <= number < high)
    return "fp64" if np.isfinite(number) and abs(number) > 3.5e38 else "fp32"


def weak_type(op: str, number: int | float, name: str) -> str:
    """One operand is weak; comparisons take numbers as they are."""
    own, other = number_type(number), dtype(name)
    if op in COMPARISONS or dtype(own).kind().value > other.kind().value:
        return common_type(op, name, own)
    if (op in BITWISE or op == "//") and other.is_floating():
        return "error"
    if other.is_int() and not other.get_int_min_value() <= number <= other.get_int_max_value():
        return "error"
    return "fp32" if op in DIVISIONS and name in ("fp16", "bf16") else name


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:shifting:UserWarning")
@pytest.mark.filterwarnings("ignore:(divide|invalid|overflow):RuntimeWarning")
def test_a_number_beside_a_tensor(name: str, first: bool) -> None:
    wrong, cells, wanted = [], [], []
    for op, function in OPERATORS.items():
        for number in NUMBERS:
            common = weak_type(op, number, name)
            x = np.tile(values(name), 2)
            if common == "error":
                if not is_refused(function, in_order(x, name, number, first), name):
                    wrong.append(f"{op} {number} is not refused")
                continue
            if op in SHIFTS and not first and not 0 <= number < dtype(name).primitive_bitwidth:
                continue  # an undefined value
            repeated = number_array(number, NUMPY[common if op not in COMPARISONS else number_type(number)], x.size)
            if first:
                x = defined_operands(op, repeated, x, common)
            lhs, rhs = (repeated, x) if first else (x, repeated)
            cells.append((function, in_order(x, name, number, first), result_type(op, common)))
            exact = expected_shift(lhs, rhs, common, x) if op == ">>" and first else expected(op, lhs, rhs, common)
            wanted.append((f"{op} {number}", exact))
    actual = apply_row(cells)
    wrong += [cell for got, (cell, exact) in zip(actual, wanted, strict=True) if not same(got, exact)]
    assert not wrong


def in_order(x: np.ndarray, name: str, number: Any, first: bool) -> list[Any]:
    return [number, (x, name)] if first else [(x, name), number]


def number_array(number: int | float, kind: np.dtype, size: int) -> np.ndarray:
    """`number` in every element; beyond the range of an fp8 type it is the largest value."""
    if kind.itemsize == 1 and kind.kind not in "biu":
        limit = 57344.0 if kind.name == "float8_e5m2" else 448.0
        number = min(max(number, -limit), limit) if number == number else number
    with np.errstate(over="ignore"):
        return np.full(size, number, np.float64 if isinstance(number, float) else None).astype(kind)


def expected_shift(number: np.ndarray, counts: np.ndarray, common: str, tensor: np.ndarray) -> np.ndarray:
    """``number >> tensor``: the tensor's sign decides. The count of a bool is 0."""
    kind = "i" if tensor.dtype.kind == "i" else "u"
    if NUMPY[common].kind == "b":
        return number
    bits = number.astype(NUMPY[common]).view(f"{kind}{NUMPY[common].itemsize}")
    return (bits >> counts.astype(bits.dtype)).view(NUMPY[common])


@tilework.jit
def negative(x):
    return -x


@tilework.jit
def inverted(x):
    return ~x


@tilework.jit
def opposite(x):
    return not x


@tilework.jit
def unchanged(x):
    return +x


@pytest.mark.parametrize("name", NAMES)
def test_unary(name: str) -> None:
    x, kind = values(name), dtype(name)
    with np.errstate(over="ignore"):
        minus = x.copy() if name == "int1" else x - x - x if not kind.is_floating() else zero_minus(x)
    assert same(apply(negative, {0: name}, name, x), minus)
    if kind.is_int():
        assert same(apply(inverted, {0: name}, name, x), ~x)
    else:
        assert is_a_compilation_error(inverted, name, "unary invert")
    if name == "int1":
        assert same(apply(opposite, {0: name}, name, x), ~x)
    else:
        assert is_a_compilation_error(opposite, name, "takes bools")
    assert is_a_compilation_error(unchanged, name, "unary plus")


def zero_minus(x: np.ndarray) -> np.ndarray:
    return (0.0 - x.astype(np.float64)).astype(x.dtype)


def is_a_compilation_error(f: Any, name: str, text: str) -> bool:
    with pytest.raises(CompilationError) as caught:
        apply(f, {0: name}, name, values(name))
    return text in caught.value.diagnostic().render()
