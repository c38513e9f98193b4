"""Float instructions against exact fractions, in every rounding mode, and against NumPy."""

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.ptx import run

BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"f16": np.dtype(np.float16), "bf16": BF16, "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
# bits of the mantissa with the hidden one, exponent of the smallest denormal's unit, largest exponent
SHAPES = {"f16": (11, -24, 15), "bf16": (8, -133, 127), "f32": (24, -149, 127), "f64": (53, -1074, 1023)}


def numbers(type: str, seed: int, count: int = 60) -> np.ndarray:
    dtype = DTYPES[type]
    rng = np.random.default_rng(seed)
    plain = rng.normal(size=count) * 2.0 ** rng.integers(-12, 12, count)
    edges = [0.0, -0.0, 1.0, -1.0, 1.5, math.pi, 3.0, float(np.finfo(np.float32).tiny) if type != "f16" else 6.1e-5]
    raw = rng.integers(0, 2 ** (8 * dtype.itemsize - 1), 20, dtype=np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        finite = raw[np.isfinite(raw.astype(np.float64))]
    return np.concatenate([np.array(edges).astype(dtype), plain.astype(dtype), finite])


def rounded(exact: Fraction, type: str, mode: str) -> float:
    """A fraction in a format, by the definition of the mode."""
    if exact == 0:
        return 0.0
    digits, least, top = SHAPES[type]
    size = abs(exact)
    exponent = (
        math.floor(math.log2(size.numerator) - math.log2(size.denominator))
        if size.numerator.bit_length() < 900
        else size.numerator.bit_length() - size.denominator.bit_length()
    )
    while Fraction(2) ** exponent > size:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    unit = Fraction(2) ** max(exponent - digits + 1, least)
    low = size // unit
    rest = size / unit - low
    away = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1),
        "rz": False,
        "rp": rest > 0 and exact > 0,
        "rm": rest > 0 and exact < 0,
    }[mode]
    value = (low + away) * unit
    limit = (Fraction(2) ** digits - 1) * Fraction(2) ** (top - digits + 1)
    if value > limit:
        infinite = mode == "rn" or (mode == "rp" and exact > 0) or (mode == "rm" and exact < 0)
        return math.copysign(math.inf if infinite else float(limit), 1 if exact > 0 else -1)
    return math.copysign(float(value), 1 if exact > 0 else -1)


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.dtype.itemsize}")


def check(text: str, function: Callable[..., Fraction], type: str, mode: str, *inputs: np.ndarray) -> None:
    got = (
        run(text, *(bits(x) for x in inputs), out=f"u{inputs[0].dtype.itemsize}")
        .view(inputs[0].dtype)
        .astype(np.float64)
    )
    rows = list(zip(*(x.astype(np.float64).tolist() for x in inputs), strict=True))
    for row, value in zip(rows, got.tolist(), strict=True):
        exact = function(*(Fraction(x) for x in row))
        expected = rounded(exact, type, mode)
        assert value == expected, (text, row, value, expected)


MODES = ("rn", "rz", "rm", "rp")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", ("f32", "f64"))
def test_rounding_modes(type: str, mode: str) -> None:
    a, b, c = (numbers(type, seed) for seed in range(3))
    size = min(map(len, (a, b, c)))
    a, b, c = a[:size], b[:size], c[:size]
    check(f"add.{mode}.{type} d, a, b;", lambda x, y: x + y, type, mode, a, b)
    check(f"sub.{mode}.{type} d, a, b;", lambda x, y: x - y, type, mode, a, b)
    check(f"mul.{mode}.{type} d, a, b;", lambda x, y: x * y, type, mode, a, b)
    check(f"fma.{mode}.{type} d, a, b, c;", lambda x, y, z: x * y + z, type, mode, a, b, c)
    divisor = np.where(b == 0, b.dtype.type(3), b)
    check(f"div.{mode}.{type} d, a, b;", lambda x, y: x / y, type, mode, a, divisor)
    check(f"rcp.{mode}.{type} d, a;", lambda x: 1 / x, type, mode, divisor)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", ("f32", "f64"))
def test_square_roots(type: str, mode: str) -> None:
    a = np.abs(numbers(type, 4))
    got = run(f"sqrt.{mode}.{type} d, a;", bits(a), out=f"u{a.dtype.itemsize}").view(a.dtype)
    for x, y in zip(a.tolist(), got.tolist(), strict=True):
        low, high = (Fraction(float(np.nextafter(a.dtype.type(y), a.dtype.type(way)))) for way in (-np.inf, np.inf))
        exact, value = Fraction(x), Fraction(y)
        if mode in ("rz", "rm"):
            assert value**2 <= exact < high**2
        elif mode == "rp":
            assert value**2 >= exact and (y == 0 or low**2 < exact)
        else:
            assert ((value + low) / 2) ** 2 <= exact <= ((value + high) / 2) ** 2 or y == 0


@pytest.mark.parametrize("type", ("f16", "bf16"))
def test_halves(type: str) -> None:
    a, b, c = (numbers(type, seed) for seed in range(3))
    size = min(map(len, (a, b, c)))
    a, b, c = a[:size], b[:size], c[:size]
    for name, function in (("add", lambda x, y: x + y), ("sub", lambda x, y: x - y), ("mul", lambda x, y: x * y)):
        check(f"{name}.rn.{type} d, a, b;", function, type, "rn", a, b)
    check(f"fma.rn.{type} d, a, b, c;", lambda x, y, z: x * y + z, type, "rn", a, b, c)
    packed = lambda x: np.ascontiguousarray(np.stack([x, x[::-1]], 1)).view(np.uint32)[:, 0]  # noqa: E731
    got = (
        run(f"fma.rn.{type}x2 d, a, b, c;", packed(a), packed(b), packed(c), out=np.uint32).view(a.dtype).reshape(-1, 2)
    )
    single = run(f"fma.rn.{type} d, a, b, c;", bits(a), bits(b), bits(c), out=np.uint16).view(a.dtype)
    np.testing.assert_array_equal(bits(np.ascontiguousarray(got[:, 0])), bits(single))
    np.testing.assert_array_equal(bits(np.ascontiguousarray(got[:, 1])), bits(np.ascontiguousarray(single[::-1])))


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38], np.float32)


def grid() -> tuple[np.ndarray, np.ndarray]:
    a, b = np.meshgrid(SPECIAL, SPECIAL)
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


def float32(text: str, *inputs: np.ndarray) -> np.ndarray:
    return run(text, *(bits(x) for x in inputs), out=np.uint32).view(np.float32)


def test_special_values() -> None:
    a, b = grid()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(float32("add.f32 d, a, b;", a, b), a + b)
        np.testing.assert_array_equal(float32("mul.f32 d, a, b;", a, b), a * b)
        np.testing.assert_array_equal(float32("div.rn.f32 d, a, b;", a, b), a / b)
        is_missing = np.isnan(a + b)
    missing = run("add.f32 d, a, b;", bits(a), bits(b), out=np.uint32)[is_missing]
    assert (missing == 0x7FFFFFFF).all()


def test_flushing_denormals() -> None:
    a, b = grid()
    flushed = lambda x: np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)  # noqa: E731
    with np.errstate(all="ignore"):
        expected = flushed(flushed(a) * flushed(b))
    got = float32("mul.rn.ftz.f32 d, a, b;", a, b)
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(expected[got == 0]))


def test_saturation() -> None:
    a = np.array([-1.0, -0.0, 0.25, 1.0, 7.0, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(float32("add.sat.f32 d, a, a;", a), np.array([0, 0, 0.5, 1, 1, 0, 1], np.float32))


def test_minimum_and_maximum() -> None:
    a, b = grid()
    low, high = float32("min.f32 d, a, b;", a, b), float32("max.f32 d, a, b;", a, b)
    np.testing.assert_array_equal(low, np.fmin(a, b))
    np.testing.assert_array_equal(high, np.fmax(a, b))
    zeros = (a == 0) & (b == 0)
    assert (np.signbit(low) == (np.signbit(a) | np.signbit(b)))[zeros].all()
    assert (np.signbit(high) == (np.signbit(a) & np.signbit(b)))[zeros].all()
    assert (np.isnan(float32("max.NaN.f32 d, a, b;", a, b)) == (np.isnan(a) | np.isnan(b))).all()


def test_signs_and_classes() -> None:
    a, b = grid()
    nan = np.uint32(0x7FFFFFFF)  # an H200 gives this one for every NaN (`nan_rows.py`)
    negative, size = (np.where(np.isnan(a), nan, found) for found in (bits(a) ^ np.uint32(1 << 31), bits(a) & nan))
    np.testing.assert_array_equal(bits(float32("neg.f32 d, a;", a)), negative)
    np.testing.assert_array_equal(bits(float32("abs.f32 d, a;", a)), size)
    np.testing.assert_array_equal(bits(float32("copysign.f32 d, a, b;", a, b)), bits(np.copysign(b, a)))
    for name, expected in (
        ("finite", np.isfinite(a)),
        ("infinite", np.isinf(a)),
        ("number", ~np.isnan(a)),
        ("notanumber", np.isnan(a)),
    ):
        assert (run(f"testp.{name}.f32 d, a;", bits(a), out=bool) == expected).all()
    assert (run("testp.subnormal.f32 d, a;", bits(a), out=bool) == ((a != 0) & (np.abs(a) < 2.0**-126))).all()


def test_comparisons() -> None:
    a, b = grid()
    missing = np.isnan(a) | np.isnan(b)
    for name, expected in (
        ("eq", a == b),
        ("ne", (a != b) & ~missing),
        ("lt", a < b),
        ("le", a <= b),
        ("gt", a > b),
        ("ge", a >= b),
    ):
        assert (run(f"setp.{name}.f32 d, a, b;", bits(a), bits(b), out=bool) == expected).all()
        assert (run(f"setp.{name}u.f32 d, a, b;", bits(a), bits(b), out=bool) == (expected | missing)).all()
    assert (run("setp.num.f32 d, a, b;", bits(a), bits(b), out=bool) == ~missing).all()
    assert (run("setp.nan.f32 d, a, b;", bits(a), bits(b), out=bool) == missing).all()
    whole = run("set.lt.f32.f32 d, a, b;", bits(a), bits(b), out=np.uint32).view(np.float32)
    np.testing.assert_array_equal(whole, (a < b).astype(np.float32))


APPROXIMATE = {
    "ex2.approx.f32": (np.exp2, -20, 20), "lg2.approx.f32": (np.log2, 0.001, 100), "sin.approx.f32": (np.sin, -3, 3),
    "cos.approx.f32": (np.cos, -3, 3), "tanh.approx.f32": (np.tanh, -4, 4), "sqrt.approx.f32": (np.sqrt, 0.001, 100),
    "rsqrt.approx.f32": (lambda x: 1 / np.sqrt(x), 0.001, 100), "rcp.approx.f32": (lambda x: 1 / x, 0.001, 100),
}  # fmt: skip


@pytest.mark.parametrize("name", APPROXIMATE)
def test_approximations(name: str) -> None:
    function, low, high = APPROXIMATE[name]
    a = np.linspace(low, high, 512).astype(np.float32)
    np.testing.assert_allclose(float32(f"{name} d, a;", a), function(a.astype(np.float64)), rtol=2**-23, atol=1e-30)


def test_limits_of_approximations() -> None:
    a = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(float32("ex2.approx.f32 d, a;", a), np.array([1, 1, np.inf, 0, np.nan], np.float32))
    np.testing.assert_array_equal(
        float32("lg2.approx.f32 d, a;", a), np.array([-np.inf, -np.inf, np.inf, np.nan, np.nan], np.float32)
    )
    np.testing.assert_array_equal(
        float32("rcp.approx.f32 d, a;", a), np.array([np.inf, -np.inf, 0, -0.0, np.nan], np.float32)
    )
    np.testing.assert_array_equal(
        float32("sin.approx.f32 d, a;", a), np.array([0, -0.0, np.nan, np.nan, np.nan], np.float32)
    )
    x, y = np.array([1, np.inf, 2], np.float32), np.array([2.0**127, 2.0**127, 3], np.float32)
    np.testing.assert_array_equal(
        float32("div.approx.f32 d, a, b;", x, y), np.array([0, np.nan, np.float32(2) / np.float32(3)], np.float32)
    )
    np.testing.assert_array_equal(float32("div.full.f32 d, a, b;", x[2:], y[2:]), x[2:] / y[2:])
