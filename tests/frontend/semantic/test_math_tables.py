"""Mathematical functions, executed: every function with every type it takes, and the types it refuses.

References are Python's `math`, exact fractions, or NumPy in float64, element by element.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.semantic.arith_kernel import NUMPY
from tests.frontend.semantic.operator_kernels import apply, pairs, same, values
from tests.frontend.semantic.test_cast_tables import rounded
from tilework.errors import CompilationError
from tilework.language.dtypes import dtype

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
STANDARD = ["fp16", "bf16", "fp32", "fp64"]
FLOATS = [*STANDARD, "fp8e5", "fp8e4nv"]
ALL = ["int1", *INTEGERS, *FLOATS]


@tilework.jit
def sigmoid(x):
    return tl.sigmoid(x)


UNARY: dict[Any, tuple[Callable[[float], float], tuple[str, ...]]] = {
    tl.exp: (math.exp, ("fp32", "fp64")),
    tl.exp2: (lambda x: 2.0**x, ("fp32", "fp64")),
    tl.log: (math.log, ("fp32", "fp64")),
    tl.log2: (math.log2, ("fp32", "fp64")),
    tl.sin: (math.sin, ("fp32", "fp64")),
    tl.cos: (math.cos, ("fp32", "fp64")),
    tl.erf: (math.erf, ("fp32", "fp64")),
    tl.sqrt: (math.sqrt, ("fp32", "fp64")),
    tl.sqrt_rn: (math.sqrt, ("fp32",)),
    tl.rsqrt: (lambda x: 1 / math.sqrt(x) if x else math.copysign(math.inf, x), ("fp32", "fp64")),
    tl.floor: (lambda x: math.copysign(float(math.floor(x)), x), ("fp32", "fp64")),
    tl.ceil: (lambda x: math.copysign(float(math.ceil(x)), x), ("fp32", "fp64")),
    sigmoid: (lambda x: 1 / (1 + math.exp(-x)), ("fp32", "fp64")),
}
EXACT = (tl.sqrt, tl.sqrt_rn, tl.floor, tl.ceil)
INPUTS = [0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 3.75, -2.5, 1e-3, 10.0, 80.0, -80.0, math.pi, 0.1, 7.0, 4.0]
AT_INFINITY = {  # +inf, -inf
    **{tl.exp: (math.inf, 0.0), tl.exp2: (math.inf, 0.0), sigmoid: (1.0, 0.0), tl.erf: (1.0, -1.0)},
    **dict.fromkeys((tl.log, tl.log2, tl.sqrt, tl.sqrt_rn), (math.inf, math.nan)),
    **dict.fromkeys((tl.sin, tl.cos), (math.nan, math.nan)),
    **{tl.rsqrt: (0.0, math.nan), tl.floor: (math.inf, -math.inf), tl.ceil: (math.inf, -math.inf)},
}


def name_of(f: Any) -> str:
    return f.__name__


def guarded(f: Callable[[float], float], x: float) -> float:
    """`f`, with the values of IEEE 754 where Python raises."""
    try:
        return f(x)
    except ValueError:
        return -math.inf if x == 0 else math.nan


@pytest.mark.parametrize("f", UNARY, ids=name_of)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unary(f: Any) -> None:
    reference, types = UNARY[f]
    for name in types:
        kind = NUMPY[name]
        x = np.array(INPUTS, kind)
        wanted = np.array([guarded(reference, float(v)) for v in x], kind)
        actual = apply(f, {0: name}, name, x)
        tolerance = 0.0 if f in EXACT else 4 * float(np.finfo(kind).eps)
        np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=0 if f in EXACT else tolerance)
        assert (np.signbit(actual) == np.signbit(wanted))[~np.isnan(wanted)].all()
        limits = np.array([math.inf, -math.inf, math.nan, math.nan], kind)
        expected = np.array([*AT_INFINITY[f], math.nan, math.nan], kind)
        assert same(apply(f, {0: name}, name, limits), expected)


@pytest.mark.parametrize("f", UNARY, ids=name_of)
def test_unary_refuses_other_types(f: Any) -> None:
    for name in set(ALL) - set(UNARY[f][1]):
        with pytest.raises(CompilationError) as caught:
            apply(f, {0: name}, name, values(name))
        text = caught.value.diagnostic().render()
        assert "Expected dtype ['fp32'" in text and f"but got {name}" in text, (f, name)


@pytest.mark.parametrize("name", ALL)
def test_abs(name: str) -> None:
    x = values(name)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = x if dtype(name).is_int_unsigned() else np.abs(x)
    assert same(apply(tl.abs, {0: name}, name, x), wanted)


@tilework.jit
def minimum_all(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


@tilework.jit
def maximum_all(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


EXTREMES = {tl.minimum: np.fmin, tl.maximum: np.fmax, minimum_all: np.minimum, maximum_all: np.maximum}


@pytest.mark.parametrize("f", EXTREMES, ids=name_of)
@pytest.mark.parametrize("name", ["int1", *INTEGERS, *STANDARD])
def test_extremes(f: Any, name: str) -> None:
    """bf16 gives fp32; a NaN loses, or stays."""
    x, y = pairs(name, name)
    result = "fp32" if name == "bf16" else name
    actual = apply(f, {0: name, 1: name}, result, x, y)
    wanted = EXTREMES[f](x.astype(NUMPY[result]), y.astype(NUMPY[result]))
    np.testing.assert_array_equal(actual, wanted)


@tilework.jit
def clamp_all(x, low, high):
    return tl.clamp(x, low, high, propagate_nan=tl.PropagateNan.ALL)


@pytest.mark.parametrize("name", STANDARD)
def test_clamp(name: str) -> None:
    x = values(name)
    low, high = np.full(8, -1.5, np.float32).astype(x.dtype), np.full(8, 3.0, np.float32).astype(x.dtype)
    result = "fp32" if name == "bf16" else name
    types = {0: name, 1: name, 2: name}
    wanted = np.clip(x.astype(NUMPY[result]), -1.5, 3.0)
    np.testing.assert_array_equal(apply(clamp_all, types, result, x, low, high), wanted)
    np.testing.assert_array_equal(
        apply(tl.clamp, types, result, x, low, high), np.where(np.isnan(wanted), NUMPY[result].type(-1.5), wanted)
    )


@pytest.mark.parametrize("name", ["int1", *INTEGERS])
def test_clamp_refuses_integers(name: str) -> None:
    x = values(name)
    with pytest.raises(CompilationError) as caught:
        apply(tl.clamp, {0: name, 1: name, 2: name}, name, x, x, x)
    assert isinstance(caught.value.__cause__, TypeError)
    assert "Only floating point clamp is supported" in str(caught.value.__cause__)


@pytest.mark.parametrize("name", STANDARD)
def test_fma_rounds_once(name: str) -> None:
    """x * y + z with exact fractions, for products that a separate multiplication would round."""
    rng = np.random.default_rng(1)
    kind = NUMPY[name]
    x, y = (rng.uniform(-2, 2, 64).astype(np.float64).astype(kind) for _ in range(2))
    z = (-(x.astype(np.float64) * y.astype(np.float64))).astype(kind)
    actual = apply(tl.fma, {0: name, 1: name, 2: name}, name, x, y, z)
    exact = [Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)) for a, b, c in zip(x, y, z)]
    assert any(exact)
    assert actual.astype(np.float64).tolist() == [rounded_fraction(e, name) for e in exact]


def rounded_fraction(value: Fraction, name: str) -> float:
    return rounded(value, name) if value else 0.0  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("name", ["int32", "int1", "fp8e5"])
def test_fma_refuses(name: str) -> None:
    x = values(name)
    with pytest.raises(CompilationError, match="fma takes floats"):
        apply(tl.fma, {0: name, 1: name, 2: name}, name, x, x, x)


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64"])
def test_umulhi(name: str) -> None:
    x, y = pairs(name, name)
    bits = 8 * x.dtype.itemsize
    high = [(int(a) % 2**bits) * (int(b) % 2**bits) >> bits for a, b in zip(x, y)]
    assert same(apply(tl.umulhi, {0: name, 1: name}, name, x, y), np.array(high, np.uint64).astype(x.dtype))


@pytest.mark.parametrize("name", sorted(set(ALL) - {"int32", "uint32", "int64", "uint64"}))
def test_umulhi_refuses(name: str) -> None:
    x = values(name)
    with pytest.raises(CompilationError, match=f"but got {name}"):
        apply(tl.umulhi, {0: name, 1: name}, name, x, x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_div_rn_rounds_correctly() -> None:
    x, y = pairs("fp32", "fp32")
    assert same(apply(tl.div_rn, {0: "fp32", 1: "fp32"}, "fp32", x, y), (x.astype(np.float64) / y).astype(np.float32))
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=64).astype(np.float32) for _ in range(2))
    exact = [rounded_fraction(Fraction(float(a)) / Fraction(float(b)), "fp32") for a, b in zip(x, y)]
    assert apply(tl.div_rn, {0: "fp32", 1: "fp32"}, "fp32", x, y).tolist() == exact


@pytest.mark.parametrize("name", sorted(set(ALL) - {"fp32"}))
def test_div_rn_refuses(name: str) -> None:
    x = values(name)
    with pytest.raises(CompilationError, match=f"but got {name}"):
        apply(tl.div_rn, {0: name, 1: name}, name, x, x)


@pytest.mark.parametrize("name", STANDARD)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_fdiv(name: str) -> None:
    x, y = pairs(name, name)
    wanted = (x.astype(np.float64) / y.astype(np.float64)).astype(NUMPY[name])
    assert same(apply(tl.fdiv, {0: name, 1: name}, name, x, y), wanted)


def test_fdiv_refuses_mixed_types_and_integers() -> None:
    x, h, n = values("fp32"), values("fp16"), values("int32")
    with pytest.raises(CompilationError, match="same type, got fp32 and fp16"):
        apply(tl.fdiv, {0: "fp32", 1: "fp16"}, "fp32", x, h)
    with pytest.raises(CompilationError, match="floating scalar type, got int32"):
        apply(tl.fdiv, {0: "int32", 1: "int32"}, "fp32", n, n)


@tilework.jit
def add(x, y):
    return tl.add(x, y)


@tilework.jit
def sub(x, y):
    return tl.sub(x, y, sanitize_overflow=False)


@tilework.jit
def mul(x, y):
    return tl.mul(x, y)


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operators_as_functions(name: str) -> None:
    x, y = pairs(name, name)
    for f, wanted in ((add, x + y), (sub, x - y), (mul, x * y)):
        assert same(apply(f, {0: name, 1: name}, name, x, y), wanted)


@tilework.jit
def cdiv(x, y):
    return tl.cdiv(x, y)


@pytest.mark.parametrize("name", INTEGERS)
def test_cdiv(name: str) -> None:
    """(x + (y - 1)) // y in the type, truncating."""
    x = np.array([0, 1, 5, 6, 7, 100, 120, 3], NUMPY[name])
    y = np.array([1, 2, 3, 3, 3, 7, 8, 5], NUMPY[name])
    wanted = [math.ceil(Fraction(int(a), int(b))) for a, b in zip(x, y)]
    assert apply(cdiv, {0: name, 1: name}, name, x, y).tolist() == wanted


@pytest.mark.parametrize("name", ALL)
def test_where(name: str) -> None:
    x, y = values(name), values(name)[::-1].copy()
    mask = np.array([0, 1] * 4, np.bool_)
    assert same(apply(tl.where, {0: "int1", 1: name, 2: name}, name, mask, x, y), np.where(mask, x, y))
