"""The promotion tables of the language, compared entry by entry."""

from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.frontend.semantic.promotion_table import ENTRIES, SHORT
from tests.rows import row
from tilework.frontend.semantic.building import converted_constant
from tilework.language.dtypes import dtype, float16, float32, int8, int32, uint8, uint32
from tilework.language.typing.promotion import (
    DIVISIONS,
    LEFT_WEAK,
    NOT_WEAK,
    RIGHT_WEAK,
    check_weak_range,
    constant_dtype,
    promote,
)


def test_the_table_is_complete() -> None:
    assert len(ENTRIES) == 15 * 15


@row(("left", "right", "expected"), ENTRIES)
def test_two_tensors(left: str, right: str, expected: str) -> None:
    if expected == "E":
        with pytest.raises(TypeError, match="fp8e"):
            promote(SHORT[left], SHORT[right], NOT_WEAK, "+")
    else:
        assert promote(SHORT[left], SHORT[right], NOT_WEAK, "+").name == SHORT[expected]


@pytest.mark.parametrize("operator", sorted(DIVISIONS))
@row(("left", "right", "expected"), ENTRIES)
def test_two_tensors_divided(left: str, right: str, expected: str, operator: str) -> None:
    """16-bit results become fp32; integers of different signs are refused."""
    a, b = dtype(SHORT[left]), dtype(SHORT[right])
    if a.is_int() and b.is_int() and a.is_int_signed() != b.is_int_signed():
        with pytest.raises(TypeError, match=r"Cannot use .* because they have different signedness"):
            promote(a.name, b.name, NOT_WEAK, operator)
    elif expected == "E":
        with pytest.raises(TypeError):
            promote(a.name, b.name, NOT_WEAK, operator)
    else:
        wanted = "f32" if expected in ("f16", "bf16") else expected
        assert promote(a.name, b.name, NOT_WEAK, operator).name == SHORT[wanted]


WEAK = [  # weak number, tensor type, result, result of a division
    (True, "int1", "int1", "int1"),
    (True, "uint8", "uint8", None),
    (True, "int64", "int64", "int64"),
    (True, "fp16", "fp16", "fp32"),
    (True, "bf16", "bf16", "fp32"),
    (True, "fp8e5", "fp8e5", "fp8e5"),
    (7, "int1", "int32", "error"),
    (7, "int8", "int8", "int8"),
    (7, "uint64", "uint64", "uint64"),
    (7, "fp16", "fp16", "fp32"),
    (7, "bf16", "bf16", "fp32"),
    (7, "fp32", "fp32", "fp32"),
    (7, "fp64", "fp64", "fp64"),
    (7, "fp8e4nv", "fp8e4nv", "fp8e4nv"),
    (2**40, "int1", "int64", "error"),
    (2**31, "int1", "uint32", "uint32"),
    (0.5, "int1", "fp32", "fp32"),
    (0.5, "int32", "fp32", "fp32"),
    (1e50, "int8", "fp64", "fp64"),
    (0.5, "fp16", "fp16", "fp32"),
    (1e50, "fp16", "fp16", "fp32"),
    (0.5, "bf16", "bf16", "fp32"),
    (0.5, "fp64", "fp64", "fp64"),
    (0.5, "fp8e5", "fp8e5", "fp8e5"),
]


@row(("number", "tensor", "expected", "divided"), WEAK)
def test_a_number_beside_a_tensor(number: int | float, tensor: str, expected: str, divided: str | None) -> None:
    own = constant_dtype(number).name
    assert promote(own, tensor, LEFT_WEAK, "*").name == expected
    assert promote(tensor, own, RIGHT_WEAK, "*").name == expected
    if divided == "error":
        with pytest.raises(TypeError, match="different signedness"):
            promote(tensor, own, RIGHT_WEAK, "%")
    else:
        assert promote(tensor, own, RIGHT_WEAK, "%").name == (divided or expected)


@row(
    ("value", "name"),
    [
        (True, "int1"),
        (5, "int32"),
        (-(2**31), "int32"),
        (2**31, "uint32"),
        (2**32 - 1, "uint32"),
        (2**32, "int64"),
        (-(2**31) - 1, "int64"),
        (2**40, "int64"),
        (2**63, "uint64"),
        (2**64 - 1, "uint64"),
        (0.0, "fp32"),
        (1e10, "fp32"),
        (1e50, "fp64"),
        (1e-40, "fp64"),
        (2.0**-126, "fp32"),
        ((2 - 2.0**-23) * 2.0**127, "fp32"),
        (inf, "fp32"),
        (nan, "fp32"),
    ],
)
def test_dtype_of_a_number(value: int | float, name: str) -> None:
    assert constant_dtype(value).name == name


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integers_that_no_type_holds(value: int) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        constant_dtype(value)


@pytest.mark.parametrize("value", ["text", None, [1]])
def test_objects_that_are_no_numbers(value: object) -> None:
    with pytest.raises(TypeError, match="to tensor"):
        constant_dtype(value)


def test_range_of_a_weak_integer() -> None:
    check_weak_range(255, uint8)
    check_weak_range(-128, int8)
    check_weak_range(10**30, float32)
    with pytest.raises(ValueError, match="Scalar 300 is out of range for type uint8"):
        check_weak_range(300, uint8)
    with pytest.raises(ValueError, match="out of range"):
        check_weak_range(-129, int8)
    with pytest.raises(ValueError, match="negative scalar -1"):
        check_weak_range(-1, uint8)


def test_a_pointer_is_no_number() -> None:
    with pytest.raises(TypeError, match=r"invalid operands of type pointer<fp32> and int32"):
        promote("pointer<fp32>", "int32", NOT_WEAK, "*")


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_round_once(value: int) -> None:
    assert converted_constant(value, constant_dtype(value), float32) == float(np.int64(value).astype(np.float32))


def test_conversion_of_constants() -> None:
    assert converted_constant(-1, int32, uint32) == 2**32 - 1
    assert converted_constant(2**31, uint32, int32) == -(2**31)
    assert converted_constant(0.1, float32, dtype("fp64")) == float(np.float32(0.1))
    assert converted_constant(100000, int32, float16) == inf
    assert str(converted_constant(-0.0, float32, float16)) == "-0.0"
