"""`where`, minimum and maximum, clamp, mathematics, inline assembly and library calls."""

from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.frontend.semantic.arith_kernel import NUMPY, Kernel
from tests.frontend.semantic.test_arith import FLOATS, INTS, build, samples
from tilework import jit
from tilework.language.dtypes import (
    bfloat16,
    block_type,
    dtype,
    float16,
    float32,
    float64,
    int1,
    int8,
    int32,
    int64,
    pointer_type,
    uint32,
)
from tilework.language.elementwise_builtins import PropagateNan

WITH_NAN = np.array([np.nan, 1, 2, np.nan] * 4, np.float32)
NUMBERS = np.array([3, np.nan, 1, np.nan] * 4, np.float32)


@pytest.mark.parametrize("name", [*INTS, "int1", *FLOATS])
def test_where(name: str) -> None:
    k = build("where", int1, dtype(name), dtype(name))
    assert k.ops == ["arith.select"]
    mask, x, y = samples("int1"), samples(name), samples(name)[::-1].copy()
    np.testing.assert_array_equal(k.run(mask, x, y), np.where(mask, x, y))


@pytest.mark.parametrize(
    ("x", "y", "name"),
    [(int32, 1, "int32"), (0, 1, "int32"), (1, 0.5, "fp32"), (float16, 1.5, "fp16"), (float16, float32, "fp32")],
)
def test_where_promotes(x: Any, y: Any, name: str) -> None:
    assert build("where", int1, x, y).results[0].type == block_type(dtype(name), [16])


def test_where_broadcasts_all_three() -> None:
    k = Kernel(int1, block_type(int32, [16]), float32, block_type(int1, [4, 1]))
    flag, block, scalar, column = k.args
    assert str(k.semantic.where(flag, block, 0).type) == "<['16'], int32>"
    assert str(k.semantic.where(column, block, scalar).type) == "<['4', '16'], fp32>"
    assert k.semantic.where(flag, scalar, 1).type == float32
    k.returns()


def test_where_of_a_number_warns() -> None:
    with pytest.warns(UserWarning, match="non-boolean condition"):
        k = build("where", int32, float32, float32)
    assert k.ops == ["arith.cmpi", "arith.select"]


def test_where_of_pointers() -> None:
    pointer = pointer_type(float32)
    assert build("where", int1, pointer, pointer).ops == ["arith.select"]
    with pytest.raises(TypeError, match="pointer<fp32> and 0"):
        build("where", int1, pointer, 0)
    with pytest.raises(TypeError, match="two pointers of one type"):
        build("where", int1, pointer, pointer_type(float16))


@pytest.mark.parametrize(
    ("method", "stem", "compute"), [("minimum", "min", np.minimum), ("maximum", "max", np.maximum)]
)
@pytest.mark.parametrize("name", [*INTS, "int1", *FLOATS])
def test_extremes(method: str, stem: str, compute: Any, name: str) -> None:
    k = build(method, dtype(name), dtype(name))
    element = dtype(name)
    suffix = "numf" if name in FLOATS else ("si" if element.is_int_signed() else "ui")
    assert k.ops[-1] == f"arith.{stem}{suffix}"
    x, y = samples(name), samples(name)[::-1].copy()
    wide = np.float32 if name == "bf16" else NUMPY[name]
    np.testing.assert_array_equal(k.run(x, y), compute(x.astype(wide), y.astype(wide)))


def test_extremes_and_nan() -> None:
    np.testing.assert_array_equal(build("minimum", float32, float32).run(WITH_NAN, NUMBERS), np.fmin(WITH_NAN, NUMBERS))
    k = build("maximum", float32, float32, PropagateNan.ALL)
    assert k.ops == ["arith.maximumf"]
    np.testing.assert_array_equal(k.run(WITH_NAN, NUMBERS), np.maximum(WITH_NAN, NUMBERS))
    with pytest.raises(ValueError, match="propagate_nan"):
        build("minimum", float32, float32, "ALL")


def test_extremes_take_strong_numbers() -> None:
    assert build("maximum", float16, 1.0).results[0].dtype == float32
    assert build("minimum", bfloat16, float16).results[0].dtype == float32
    assert build("minimum", int8, 3).results[0].dtype == int32
    with pytest.raises(TypeError, match="invalid operands of type"):
        build("minimum", pointer_type(float32), pointer_type(float32))


@pytest.mark.parametrize(
    ("operands", "name"),
    [
        ((float32, 0.0, 1.0), "fp32"),
        ((float16, float16, float16), "fp16"),
        ((bfloat16, bfloat16, bfloat16), "fp32"),
        ((float16, float16, 2.0), "fp32"),
        ((float32, 0, 1), "fp32"),
        ((int32, 0.0, 1.0), "fp32"),
        ((float32, float64, 1.0), "fp64"),
        ((0.5, float32, 1.0), "fp32"),
    ],
)
def test_clamp(operands: tuple[Any, ...], name: str) -> None:
    k = build("clamp", *operands)
    assert k.ops[-1] == "tt.clampf"
    assert k.results[0].type == block_type(dtype(name), [16])


def test_clamp_values() -> None:
    x = samples("fp32")
    np.testing.assert_array_equal(build("clamp", float32, 0.0, 5.0).run(x), np.clip(x, 0, 5))
    with pytest.raises(TypeError, match="Only floating point clamp"):
        build("clamp", int32, 0, 1)


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "floor", "ceil", "erf"])
def test_math(name: str) -> None:
    for element in (float32, float64):
        k = Kernel(block_type(element, [16]))
        assert k.returns(k.semantic.math_op(name, k.args[0])).ops == [f"math.{name}"]
    k = Kernel(float16)
    with pytest.raises(ValueError, match=r"Expected dtype \['fp32', 'fp64'\] but got fp16"):
        k.semantic.math_op(name, k.args[0])
    assert k.semantic.math_op(name, 1.0).dtype == float32
    k = Kernel(float16)
    assert k.returns(k.semantic.math_method(name, k.args[0])).ops == [
        "arith.extf",
        f"math.{name}",
        "arith.truncf",
    ]  # x.exp()


@jit
def methods(x, out):
    i = tl.arange(0, 8)
    value = tl.load(x + i)
    tl.store(out + i, value.exp() + value.floor())


def test_methods_take_halves_where_functions_do_not() -> None:
    x = np.linspace(-2, 2, 8).astype(np.float16)
    for function in (methods, jit(methods.fn, interpret=True)):
        out = np.zeros_like(x)
        function[(1,)](x, out)
        wide = x.astype(np.float32)
        np.testing.assert_array_equal(out, np.exp(wide).astype(np.float16) + np.floor(x))


def test_precise_functions() -> None:
    k = Kernel(float32)
    x = k.args[0]
    k.returns(k.semantic.math_op("sqrt_rn", x), k.semantic.div_rn(x, 2), k.semantic.div_rn(1.0, x))
    assert k.ops == ["tt.precise_sqrt", "tt.precise_divf", "tt.precise_divf"]
    k = Kernel(float64)
    with pytest.raises(ValueError, match=r"Expected dtype \['fp32'\] but got fp64"):
        k.semantic.math_op("sqrt_rn", k.args[0])
    with pytest.raises(ValueError, match=r"Expected dtype \['fp32'\] but got fp64"):
        k.semantic.div_rn(k.args[0], k.args[0])


@pytest.mark.parametrize("name", [*INTS, "int1", *FLOATS, "fp8e5", "fp8e4nv"])
def test_abs(name: str) -> None:
    k = build("abs", dtype(name))
    x = samples(name)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(k.run(x), np.abs(x))
    assert k.results[0].dtype.name == name


def test_abs_of_fp8e4b15_clears_the_sign() -> None:
    assert build("abs", dtype("fp8e4b15")).ops == ["arith.andi"]
    with pytest.raises(AssertionError, match="Unexpected dtype pointer"):
        build("abs", pointer_type(float32))


@pytest.mark.parametrize(
    ("operands", "name"),
    [
        ((float32, float32, float32), "fp32"),
        ((float16, float16, float16), "fp16"),
        ((bfloat16, bfloat16, bfloat16), "bf16"),
        ((float16, float16, float32), "fp32"),
        ((float32, 2.0, 1), "fp32"),
        ((2.0, float16, float64), "fp64"),
    ],
)
def test_fma(operands: tuple[Any, ...], name: str) -> None:
    k = build("fma", *operands)
    assert k.ops[-1] == "math.fma"
    assert k.results[0].type == block_type(dtype(name), [16])


def test_fma_of_integers() -> None:
    with pytest.raises(TypeError, match="fma takes floats"):
        build("fma", int32, int32, int32)


def test_umulhi() -> None:
    k = build("umulhi", uint32, uint32)
    x, y = np.full(16, 0xFFFF0000, np.uint32), np.arange(16, dtype=np.uint32) << 20
    assert k.ops == ["tt.mulhiui"]
    np.testing.assert_array_equal(k.run(x, y), (x.astype(np.uint64) * y >> 32).astype(np.uint32))
    assert build("umulhi", int32, int64).results[0].dtype == int64
    assert build("umulhi", uint32, 3).results[0].dtype == uint32
    with pytest.raises(ValueError, match=r"Expected dtype .* but got int8"):
        build("umulhi", int8, int8)


def test_fdiv() -> None:
    assert build("fdiv", float32, float32).ops == ["arith.divf"]
    assert build("fdiv", float64, 2.0).ops == ["arith.divf"]
    k = build("fdiv", float16, 2.0)
    assert k.results[0].dtype == float16
    np.testing.assert_array_equal(k.run(samples("fp16")), samples("fp16") / np.float16(2))
    with pytest.raises(TypeError, match="floating scalar type"):
        build("fdiv", int32, int32)
    with pytest.raises(TypeError, match="same type, got fp32 and fp64"):
        build("fdiv", float32, float64)


def test_inline_assembly() -> None:
    k = Kernel(block_type(int32, [16]), float32, pointer_type(float32))
    block, scalar, pointer = k.args
    first, second = k.semantic.inline_asm_elementwise(
        "add $0, $2, $3;", "=r,=r,r,r", [block, scalar, 1], [int32, float16], True, 2
    )
    (alone,) = k.semantic.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], [int32], False, 1)
    (address,) = k.semantic.inline_asm_elementwise("mov.b64 $0, $1;", "=l,l", [pointer], [int64], True, 1)
    k.returns(first, second, alone, address)
    assert [str(value.type) for value in (first, second, alone, address)] == [
        "<['16'], int32>",
        "<['16'], fp16>",
        "int32",
        "int64",
    ]


def test_library_calls() -> None:
    k = Kernel(float32, block_type(float32, [16]), int32)
    scalar, block, integer = k.args
    symbols = {(float32, float32): ("__nv_powf", float32), (float32, int32): ("__nv_powif", float32)}

    def power(x: Any, y: Any) -> Any:
        return k.semantic.extern_elementwise("", "", [x, y], symbols, True)

    results = [power(scalar, block), power(scalar, integer), power(scalar, 2.0)]
    k.returns(*results)
    assert [str(value.type) for value in results] == ["<['16'], fp32>", "fp32", "fp32"]
    found = [op.properties["symbol"] for op in k.all_ops if op.name == "tt.extern_elementwise"]
    assert [symbol.data for symbol in found] == ["__nv_powf", "__nv_powif", "__nv_powf"]  # pyright: ignore
    with pytest.raises(ValueError, match=r"\(int32, fp32\); it exists for: fp32, fp32; fp32, int32"):
        power(integer, scalar)
