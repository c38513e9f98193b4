"""Shape ops, dots and library functions."""

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.evaluator.eval_programs import call
from tilework.oracles.evaluator import EvaluationError

RNG = np.random.default_rng(0)


def unary(text: str, source: str, target: str, value: Any) -> Any:
    return call([source], [target], f"%0 = {text}\n tt.return %0 : {target}", value)[0]


def test_shape_ops() -> None:
    x = np.arange(8, dtype=np.int32)
    square = x.reshape(2, 4)
    trans = unary(
        "tt.trans %a {order = array<i32: 1, 0>} : tensor<2x4xi32> -> tensor<4x2xi32>",
        "tensor<2x4xi32>",
        "tensor<4x2xi32>",
        square,
    )
    assert trans.tolist() == square.T.tolist()
    expanded = unary(
        "tt.expand_dims %a {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>", "tensor<8xi32>", "tensor<8x1xi32>", x
    )
    assert expanded.shape == (8, 1)
    reshaped = unary("tt.reshape %a : tensor<8xi32> -> tensor<2x4xi32>", "tensor<8xi32>", "tensor<2x4xi32>", x)
    assert reshaped.tolist() == square.tolist()
    both = (
        "%0 = tt.join %a, %a : tensor<8xi32> -> tensor<8x2xi32>\n"
        " %l, %r = tt.split %0 : tensor<8x2xi32> -> tensor<8xi32>\n"
    )
    both += "%c = tt.cat %l, %r : tensor<8xi32> -> tensor<16xi32>\n tt.return %c : tensor<16xi32>"
    assert call(["tensor<8xi32>"], ["tensor<16xi32>"], both, x)[0].tolist() == [*x, *x]
    assert int(unary("tt.unsplat %a : tensor<1xi32>", "tensor<1xi32>", "i32", np.array([4], np.int32))) == 4


def test_gather_and_histogram() -> None:
    body = (
        "%0 = tt.gather %a[%b] {axis = 0 : i32} : (tensor<4x2xf32>, tensor<8x2xi32>) -> tensor<8x2xf32>\n"
        " tt.return %0 : tensor<8x2xf32>"
    )
    source, indices = RNG.normal(size=(4, 2)).astype(np.float32), RNG.integers(0, 4, (8, 2)).astype(np.int32)
    (result,) = call(["tensor<4x2xf32>", "tensor<8x2xi32>"], ["tensor<8x2xf32>"], body, source, indices)
    assert (result == np.take_along_axis(source, indices, 0)).all()
    body = "%0 = tt.histogram %a, %b : tensor<8xi32> -> tensor<4xi32>\n tt.return %0 : tensor<4xi32>"
    values, mask = np.array([0, 1, 1, 3, 3, 3, 9, -1], np.int32), np.array([True] * 5 + [False] + [True] * 2)
    (counts,) = call(["tensor<8xi32>", "tensor<8xi1>"], ["tensor<4xi32>"], body, values, mask)
    assert counts.tolist() == [1, 2, 0, 2]


def dot(a: Any, b: Any, c: Any, types: tuple[str, str, str], extra: str = "", **options: Any) -> Any:
    body = f"%0 = tt.dot %a, %b, %c{extra} : {types[0]} * {types[1]} -> {types[2]}\n tt.return %0 : {types[2]}"
    return call(list(types), [types[2]], body, a, b, c, **options)[0]


def test_dot_of_integers_and_batches() -> None:
    a, b = (RNG.integers(-128, 128, shape).astype(np.int8) for shape in ((16, 32), (32, 16)))
    c = RNG.integers(-100, 100, (16, 16)).astype(np.int32)
    result = dot(a, b, c, ("tensor<16x32xi8>", "tensor<32x16xi8>", "tensor<16x16xi32>"))
    assert (result == a.astype(np.int32) @ b.astype(np.int32) + c).all()
    a, b = (RNG.normal(size=shape).astype(np.float16) for shape in ((2, 16, 32), (2, 32, 16)))
    types = ("tensor<2x16x32xf16>", "tensor<2x32x16xf16>", "tensor<2x16x16xf32>")
    result = dot(a, b, np.ones((2, 16, 16), np.float32), types)
    np.testing.assert_allclose(result, a.astype(float) @ b.astype(float) + 1, rtol=1e-4, atol=1e-5)


def test_tf32_is_exact_unless_truncation_is_requested() -> None:
    a = np.full((16, 16), 1 + 2**-12, np.float32)
    b, c = np.eye(16, dtype=np.float32), np.zeros((16, 16), np.float32)
    kind = "tensor<16x16xf32>"
    types = (kind, kind, kind)
    assert (dot(a, b, c, types, ", inputPrecision = tf32") == a).all()
    assert (dot(a, b, c, types, ", inputPrecision = tf32", truncate_tf32=True) == 1).all()


def test_dot_scaled_unpacks_and_scales() -> None:
    types = ("tensor<16x16xi8>", "tensor<16x1xi8>", "tensor<32x16xf8E4M3FN>", "tensor<16x16xf32>")
    body = f"""%0 = tt.dot_scaled %a scale %b, %c, %d lhs = e2m1 rhs = e4m3 {{fastMath = false}} : {types[0]}, {types[1]} * {types[2]} -> {types[3]}
 tt.return %0 : {types[3]}"""  # noqa: E501
    packed = RNG.integers(-128, 128, (16, 16)).astype(np.int8)
    scale = RNG.integers(120, 134, (16, 1)).astype(np.uint8)
    rhs = RNG.normal(size=(32, 16)).astype(ml_dtypes.float8_e4m3fn)
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    bits = packed.view(np.uint8)
    lhs = np.stack((table[bits & 15], table[bits >> 4]), -1).reshape(16, 32)
    (result,) = call(list(types), [types[3]], body, packed, scale.view(np.int8), rhs, np.zeros((16, 16), np.float32))
    np.testing.assert_allclose(
        result, (lhs * 2.0 ** (scale.astype(int) - 127)) @ rhs.astype(float), rtol=1e-5, atol=1e-4
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [(n, getattr(np, n)) for n in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "floor", "ceil")]
    + [("erf", np.vectorize(math.erf)), ("rsqrt", lambda x: 1 / np.sqrt(x)), ("absf", np.abs)],
)
def test_math(name: str, wanted: Any) -> None:
    for type_, dtype in (("f32", np.float32), ("f64", np.float64)):
        x = RNG.uniform(0.1, 4, 64).astype(dtype)
        result = unary(f"math.{name} %a : tensor<64x{type_}>", f"tensor<64x{type_}>", f"tensor<64x{type_}>", x)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, wanted(x.astype(float)), rtol=1e-6)


def extern(symbol: str, source: str, target: str, *args: Any) -> Any:
    names = ", ".join("%abc"[0] + letter for letter in "abc"[: len(args)])
    types = ", ".join([source] * len(args))
    body = (
        f'%0 = tt.extern_elementwise {names} {{libname = "", libpath = "", pure = true, symbol = "{symbol}"}}'
        f" : ({types}) -> {target}\n tt.return %0 : {target}"
    )
    return call([source] * len(args), [target], body, *args)[0]


def test_libdevice_symbols() -> None:
    assert float(extern("__nv_tanhf", "f32", "f32", 0.5)) == np.float32(math.tanh(0.5))
    assert float(extern("__nv_pow", "f64", "f64", 2.0, 0.5)) == 2**0.5
    assert float(extern("__nv_erff", "f32", "f32", 0.5)) == np.float32(math.erf(0.5))
    assert float(extern("__nv_fabsf", "f32", "f32", -0.5)) == 0.5
    assert int(extern("__nv_clz", "i32", "i32", 1)) == 31
    assert int(extern("__nv_popc", "i32", "i32", -1)) == 32
    assert int(extern("__nv_ffs", "i32", "i32", 8)) == 4
    assert int(extern("__nv_brev", "i32", "i32", 1)) == -(2**31)
    assert int(extern("__nv_mulhi", "i32", "i32", -(2**31), 4)) == -2
    assert int(extern("__nv_float2int_ru", "f32", "i32", 1.2)) == 2
    assert int(extern("__nv_float_as_int", "f32", "i32", 1.0)) == 0x3F800000
    assert bool(extern("__nv_isnanf", "f32", "i1", math.nan)) is True
    assert float(extern("__nv_remainder", "f64", "f64", 5.0, 3.0)) == -1.0
    assert float(extern("__nv_fdiv_rn", "f32", "f32", 1.0, 3.0)) == np.float32(1) / np.float32(3)
    third = Fraction(1, 3)
    down, up = (Fraction(float(extern(f"__nv_fdiv_{mode}", "f32", "f32", 1.0, 3.0))) for mode in ("rd", "ru"))
    assert down < third < up and up - down == Fraction(1, 2**25)
    assert float(extern("__nv_double2float_ru", "f64", "f32", 1 + 2.0**-40)) == 1 + 2.0**-23
    assert float(extern("__nv_int2float_rz", "i32", "f32", 2**24 + 1)) == 2.0**24
    assert float(extern("__nv_fast_fdividef", "f32", "f32", 1.0, 4.0)) == 0.25
    with pytest.raises(EvaluationError, match="calls '__nv_nothingf', which the evaluator does not know"):
        extern("__nv_nothingf", "f32", "f32", 1.0)


def test_clamp() -> None:
    x = np.array([-5, 0.5, 5, np.nan], np.float32)
    for propagate, last in (("none", -1.0), ("all", math.nan)):
        body = f"%0 = tt.clampf %a, %b, %c, propagateNan = {propagate} : tensor<4xf32>\n tt.return %0 : tensor<4xf32>"
        low, high = np.full(4, -1, np.float32), np.full(4, 1, np.float32)
        (result,) = call(["tensor<4xf32>"] * 3, ["tensor<4xf32>"], body, x, low, high)
        assert result[:3].tolist() == [-1, 0.5, 1]
        assert np.array_equal(result[3], np.float32(last), equal_nan=True)
