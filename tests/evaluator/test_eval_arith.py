"""Integers against Python's, floats against NumPy's, casts against the language's table."""

import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.evaluator.eval_programs import binary, call, cast

WIDTHS = (8, 16, 32, 64)
SPECIAL = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e38])


def wrap(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if width > 1 and value >> (width - 1) else value


def unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def c_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else 0


SIGNED = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": c_quotient,
    "remsi": lambda a, b: a - b * c_quotient(a, b) if b else 0,
    "floordivsi": lambda a, b: a // b if b else 0,
    "minsi": min,
    "maxsi": max,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
}
UNSIGNED = {
    "divui": lambda a, b: a // b if b else 0,
    "remui": lambda a, b: a % b if b else 0,
    "minui": min,
    "maxui": max,
}


def edges(width: int) -> np.ndarray:
    """Pairs of interesting values of a width, as two arrays."""
    top = 1 << (width - 1)
    values = [0, 1, 2, 3, 7, -1, -2, -7, top - 1, -top, top // 3, -top // 5]
    return np.array([(a, b) for a in values for b in values][:128], dtype=f"int{width}").T


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SIGNED)
def test_signed_ops_wrap_around(name: str, width: int) -> None:
    lhs, rhs = edges(width)
    result = binary(f"arith.{name}", f"tensor<128xi{width}>", lhs, rhs)
    assert result.tolist() == [wrap(SIGNED[name](int(a), int(b)), width) for a, b in zip(lhs, rhs, strict=True)]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_ops(name: str, width: int) -> None:
    lhs, rhs = edges(width)
    result = binary(f"arith.{name}", f"tensor<128xi{width}>", lhs, rhs)
    pairs = [(unsigned(int(a), width), unsigned(int(b), width)) for a, b in zip(lhs, rhs, strict=True)]
    assert result.tolist() == [wrap(UNSIGNED[name](a, b), width) for a, b in pairs]


@pytest.mark.parametrize("width", WIDTHS)
def test_shifts_are_defined_for_every_count(width: int) -> None:
    value = -(1 << (width - 2)) - 3
    for count in (0, 1, width - 1, width, width + 5):
        shift = min(count, width)
        left = binary("arith.shli", f"i{width}", value, wrap(count, width))
        logical = binary("arith.shrui", f"i{width}", value, wrap(count, width))
        arithmetic = binary("arith.shrsi", f"i{width}", value, wrap(count, width))
        assert int(left) == wrap(value << shift, width)
        assert int(logical) == wrap(unsigned(value, width) >> shift, width)
        assert int(arithmetic) == value >> shift


@pytest.mark.parametrize("name", ["addi", "subi", "muli", "andi", "ori", "xori", "minsi", "maxui", "divui"])
def test_booleans_are_one_bit_integers(name: str) -> None:
    rule = SIGNED.get(name) or UNSIGNED[name]
    for a in (0, 1):
        for b in (0, 1):
            signs = (-1, -1) if name == "minsi" else (1, 1)
            expected = bool(rule(signs[0] * a, signs[1] * b) & 1)
            assert bool(binary(f"arith.{name}", "i1", bool(a), bool(b))) is expected


@pytest.mark.parametrize("width", (1, *WIDTHS))
def test_integer_comparisons(width: int) -> None:
    values = [0, 1, -1, (1 << (width - 1)) - 1, -(1 << (width - 1))]
    orders = {"lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
    for a in values:
        for b in values:
            sa, sb = (-unsigned(a, 1), -unsigned(b, 1)) if width == 1 else (a, b)
            left, right = (bool(a & 1), bool(b & 1)) if width == 1 else (a, b)
            for name, compare in orders.items():
                signed = binary(f"arith.cmpi s{name},", f"i{width}", left, right, "i1")
                without = binary(f"arith.cmpi u{name},", f"i{width}", left, right, "i1")
                assert bool(signed) is compare(sa, sb)
                assert bool(without) is compare(unsigned(a, width), unsigned(b, width))
            assert bool(binary("arith.cmpi eq,", f"i{width}", left, right, "i1")) is (sa == sb)


@pytest.mark.parametrize(
    ("predicate", "compare", "with_nan"),
    [(f"o{n}", getattr(operator, n), False) for n in ("gt", "ge", "lt", "le", "eq", "ne")]
    + [(f"u{n}", getattr(operator, n), True) for n in ("gt", "ge", "lt", "le", "eq", "ne")],
)
def test_float_comparisons(predicate: str, compare: object, with_nan: bool) -> None:
    lhs, rhs = (grid.reshape(-1).astype(np.float32) for grid in np.meshgrid(SPECIAL, SPECIAL))
    result = binary(f"arith.cmpf {predicate},", "tensor<64xf32>", lhs, rhs, "tensor<64xi1>")
    nan = np.isnan(lhs) | np.isnan(rhs)
    assert result.tolist() == np.where(nan, with_nan, compare(lhs, rhs)).tolist()  # pyright: ignore


@pytest.mark.parametrize("name", ["addf", "subf", "mulf", "divf"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_float_ops_round_once(name: str, dtype: type) -> None:
    rng = np.random.default_rng(0)
    lhs, rhs = (rng.normal(size=256).astype(dtype) for _ in range(2))
    exact = {"addf": operator.add, "subf": operator.sub, "mulf": operator.mul, "divf": operator.truediv}[name]
    type_ = {np.float16: "f16", ml_dtypes.bfloat16: "bf16", np.float32: "f32", np.float64: "f64"}[dtype]
    result = binary(f"arith.{name}", f"tensor<256x{type_}>", lhs, rhs)
    assert result.dtype == dtype
    for got, a, b in zip(result, lhs, rhs, strict=True):
        wanted = exact(Fraction(float(a)), Fraction(float(b)))
        gap = abs(Fraction(float(got)) - wanted)
        for neighbour in (np.nextafter(got, dtype(np.inf)), np.nextafter(got, dtype(-np.inf))):
            assert gap <= abs(Fraction(float(neighbour)) - wanted)


def test_minimum_and_maximum_treat_nan_as_queried() -> None:
    lhs, rhs = np.array([1, np.nan], np.float32), np.array([np.nan, 2], np.float32)
    assert binary("arith.maxnumf", "tensor<2xf32>", lhs, rhs).tolist() == [1, 2]
    assert binary("arith.minnumf", "tensor<2xf32>", lhs, rhs).tolist() == [1, 2]
    assert np.isnan(binary("arith.maximumf", "tensor<2xf32>", lhs, rhs)).all()
    assert np.isnan(binary("arith.minimumf", "tensor<2xf32>", lhs, rhs)).all()


def test_remainder_has_the_sign_of_the_dividend() -> None:
    lhs, rhs = np.array([-7.5, 7.5, 3.0, 1.0], np.float32), np.array([2, -2, np.inf, 0], np.float32)
    result = binary("arith.remf", "tensor<4xf32>", lhs, rhs)
    assert result[:3].tolist() == [-1.5, 1.5, 3.0] and np.isnan(result[3])


@given(st.integers(-(2**63), 2**63 - 1))
def test_long_integers_become_floats_with_one_rounding(value: int) -> None:
    assert float(cast("arith.sitofp", "i64", "f32", value)) == float(np.float32(np.int64(value)))
    got = float(cast("arith.sitofp", "i64", "bf16", value))
    below, above = (float(np.nextafter(ml_dtypes.bfloat16(got), ml_dtypes.bfloat16(s * np.inf))) for s in (-1, 1))
    assert abs(Fraction(got) - value) <= min(abs(Fraction(below) - value), abs(Fraction(above) - value))


def test_float_to_integer_truncates_and_saturates() -> None:
    values = np.array([1.9, -1.9, 3e9, -3e9, np.nan, np.inf, 300.0, -300.0], np.float32)
    assert cast("arith.fptosi", "tensor<8xf32>", "tensor<8xi32>", values).tolist() == [
        1,
        -1,
        2**31 - 1,
        -(2**31),
        0,
        2**31 - 1,
        300,
        -300,
    ]
    unsigned32 = cast("arith.fptoui", "tensor<8xf32>", "tensor<8xi32>", values).view(np.uint32)
    assert unsigned32.tolist() == [1, 0, 3000000000, 0, 0, 2**32 - 1, 300, 0]
    assert cast("arith.fptosi", "tensor<8xf32>", "tensor<8xi8>", values)[-2:].tolist() == [44, -44]


def test_integer_casts() -> None:
    assert int(cast("arith.trunci", "i32", "i8", 0x1FF)) == -1
    assert int(cast("arith.extsi", "i8", "i32", -3)) == -3
    assert int(cast("arith.extui", "i8", "i32", -3)) == 253
    assert int(cast("arith.extsi", "i1", "i32", True)) == -1
    assert int(cast("arith.extui", "i1", "i32", True)) == 1
    assert bool(cast("arith.trunci", "i32", "i1", 3)) is True
    assert float(cast("arith.uitofp", "i1", "f32", True)) == 1.0
    assert float(cast("arith.uitofp", "i32", "f32", -1)) == 2.0**32


def test_double_to_narrow_rounds_once() -> None:
    value = 1 + 2**-8 + 2**-40  # through f32 this is a tie, and would go down to 1
    assert float(cast("arith.truncf", "f64", "bf16", value)) == 1 + 2**-7
    assert float(cast("arith.truncf", "f64", "f16", 1 + 2**-11 + 2**-40)) == 1 + 2**-10


def test_rounding_to_zero() -> None:
    value = np.array([1.999, -1.999, 70000.0, 1e-9], np.float32)
    half = cast("tt.fp_to_fp, rounding = rtz", "tensor<4xf32>", "tensor<4xf16>", value, "->")
    assert half.tolist() == [float.fromhex("0x1.ff8p+0"), -float.fromhex("0x1.ff8p+0"), 65504.0, 0.0]


@pytest.mark.parametrize(("type_", "largest"), [("f8E5M2", 57344.0), ("f8E4M3FN", 448.0)])
def test_eight_bit_floats_saturate(type_: str, largest: float) -> None:
    value = np.array([1e6, -1e6, np.inf, np.nan], np.float32)
    result = cast("tt.fp_to_fp, rounding = rtne", "tensor<4xf32>", f"tensor<4x{type_}>", value, "->")
    assert result[:3].astype(float).tolist() == [largest, -largest, largest] and np.isnan(float(result[3]))


def test_fma_rounds_once() -> None:
    body = "%0 = math.fma %a, %b, %c : f32\n tt.return %0 : f32"
    x = np.float32(1 + 2**-23)
    (result,) = call(["f32"] * 3, ["f32"], body, x, x, np.float32(-1))
    assert float(result) == float(np.float32(float(x) * float(x) - 1.0))
    (double,) = call(["f64"] * 3, ["f64"], body.replace("f32", "f64"), 1 + 2.0**-52, 1 + 2.0**-52, -1.0)
    assert float(double) == 2.0**-51 + 2.0**-104


def test_mulhiui() -> None:
    assert int(binary("tt.mulhiui", "i32", -1, -1)) == -2
    assert int(binary("tt.mulhiui", "i64", 2**62, 12)) == 3
    assert int(binary("tt.mulhiui", "i64", -1, -1)) == -2


def test_select_and_constants() -> None:
    body = (
        "%n = arith.constant dense<0x7FC00000> : tensor<4xf32>\n"
        "%0 = arith.select %a, %b, %n : tensor<4xi1>, tensor<4xf32>\n tt.return %0 : tensor<4xf32>"
    )
    mask, value = np.array([True, False, True, False]), np.arange(4, dtype=np.float32)
    (result,) = call(["tensor<4xi1>", "tensor<4xf32>"], ["tensor<4xf32>"], body, mask, value)
    assert result[[0, 2]].tolist() == [0, 2] and np.isnan(result[[1, 3]]).all()
