"""libdevice in NumPy against mpmath: overflow, underflow, subnormal numbers, signed zeros, infinities and NaN."""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import mpmath
import numpy as np
import pytest

from tilework.numerics import libdevice_in_numpy
from tilework.numerics.libdevice_in_numpy import DOUBLE
from tilework.numerics.libdevice_table import SYMBOLS

mp: Any = mpmath.mp  # its functions are made at run time
mpf = mp.mpf
INF, NAN = math.inf, math.nan
F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
TINY, LEAST, LARGE = 2.0**-1022, 2.0**-1074, float(np.finfo(F64).max)
POINTS = [0.1, 0.25, 0.49999999999999994, 0.5, 0.75, 0.9999999, 1.0, 1.0000001, 1.5, 2.5, 3.0, 7.3, 12.0, 26.0, 30.5]
POINTS += [88.7, 90.0, 103.9, 170.5, 250.0, 700.0, 709.7, 711.0, 745.0, 1e3, 1e5, 1e10, 4503599627370497.5, 1e22, 1e30]
POINTS += [1e-3, 1e-8, 1e-20, 1e-40, 1e-45, 1e-160, 1e-300, TINY, LEAST, 1e-310, 1e150, 1e200, 1e308, LARGE]
SIGNED = np.array([*POINTS, *(-x for x in POINTS)])


def call(symbol: str, args: Sequence[Any], result: np.dtype[Any]) -> np.ndarray[Any, Any]:
    computed = libdevice_in_numpy.call(symbol, args, result)
    assert computed is not None, symbol
    return computed


def root_of_squares(*args: Any) -> Any:
    return mp.sqrt(sum(x * x for x in args))


def half_away(x: Any) -> Any:
    return mp.sign(x) * mp.floor(abs(x) + mpf(1) / 2)


def remainder(x: Any, y: Any) -> Any:
    return x - y * mp.nint(x / y)


def inverse_of_erfc(x: Any) -> Any:
    """Compute it in a way that does not lose x, as `mp.erfinv` of 1 - x would."""
    if not 0 < x < 2:
        raise ValueError("outside of the range of erfc")
    if x > 0.1:
        return mp.erfinv(1 - x)
    y = mpf(-NormalDist().inv_cdf(max(float(x) / 2, 2.0**-1074))) / mp.sqrt(2)
    for _ in range(4):  # Newton's method for the logarithm
        value = mp.erfc(y)
        y += mp.log(value / x) * value * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
    return y


def complement(x: Any) -> Any:
    """erfc, which mpmath cannot take far away."""
    return mp.erfc(x) if abs(x) < 1e9 else mpf(0 if x > 0 else 2)


EXACT: dict[str, Callable[..., Any]] = {
    **{name: getattr(mp, name) for name in "floor ceil cbrt exp expm1 log log10 log1p sin cos tan sqrt".split()},
    **{name: getattr(mp, name) for name in "sinh cosh tanh asin acos atan asinh acosh atanh erf sinpi cospi".split()},
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "cyl_bessel_i0": lambda x: mp.besseli(0, x),
    "cyl_bessel_i1": lambda x: mp.besseli(1, x),
    "erfcinv": lambda x: -inverse_of_erfc(2 - x) if x > 1 else inverse_of_erfc(x),
    "erfc": complement,
    "erfcx": lambda x: mp.exp(x * x) * mp.erfc(x) if x < 1e9 else 1 / (x * mp.sqrt(mp.pi)),
    "erfinv": mp.erfinv,
    "exp10": lambda x: mpf(10) ** x,
    "exp2": lambda x: mpf(2) ** x,
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "log2": lambda x: mp.log(x, 2),
    "nearbyint": mp.nint,
    "normcdf": lambda x: complement(-x / mp.sqrt(2)) / 2,
    "normcdfinv": lambda x: mp.sqrt(2) * (inverse_of_erfc(2 - 2 * x) if x > 0.5 else -inverse_of_erfc(2 * x)),
    "rcbrt": lambda x: mp.sign(x) / mp.cbrt(abs(x)),
    "rint": mp.nint,
    "round": half_away,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "tgamma": mp.gamma,
    "trunc": lambda x: mp.sign(x) * mp.floor(abs(x)),
    "y0": lambda x: mp.bessely(0, x) if x > 0 else None,
    "y1": lambda x: mp.bessely(1, x) if x > 0 else None,
}
PAIRS: dict[str, Callable[..., Any]] = {
    "atan2": mp.atan2,
    "fdim": lambda x, y: max(x - y, mpf(0)),
    "fdivide": lambda x, y: x / y,
    "fmod": lambda x, y: x - y * mp.sign(x / y) * mp.floor(abs(x / y)),
    "hypot": root_of_squares,
    "norm3d": root_of_squares,
    "norm4d": root_of_squares,
    "pow": mp.power,
    "remainder": remainder,
    "rhypot": lambda *args: 1 / root_of_squares(*args),
    "rnorm3d": lambda *args: 1 / root_of_squares(*args),
    "rnorm4d": lambda *args: 1 / root_of_squares(*args),
}
OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "jn": mp.besselj,
    "ldexp": lambda x, n: x * mpf(2) ** n,
    "powi": lambda x, n: x**n,
    "scalbn": lambda x, n: x * mpf(2) ** n,
    "yn": mp.bessely,
}
ELSEWHERE = {"ilogb", "logb", "llrint", "llround", "saturate"}
DIGITS = {"fmod": 650, "remainder": 650, "floor": 400, "trunc": 400}
WAVES = {"j0", "j1", "y0", "y1", "jn", "yn", "lgamma"}  # near their zeros the error is that of their height
LIMITS = {
    **dict.fromkeys(("jn", "yn"), 64),
    **dict.fromkeys(WAVES - {"jn", "yn"}, 16),
    "tgamma": 8,
    "erfcx": 6,
    "rcbrt": 3,
}
LIMITS |= {"cyl_bessel_i0": 5, "cyl_bessel_i1": 5, "rsqrt": 3, "lgamma": 8}


def test_every_function_is_compared() -> None:
    assert {*EXACT, *PAIRS, *OF_INTEGERS, *ELSEWHERE} == set(DOUBLE)


def wanted(exact: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The exact value, or None where there is none."""
    try:
        value = exact(*args)
    except (ZeroDivisionError, ValueError):
        return None
    return value if isinstance(value, mpf) and mp.isfinite(value) else None


def as_double(value: Any) -> float:
    """A number of mpmath as the nearest float, subnormal ones too."""
    size, sign = abs(value), -1.0 if value < 0 else 1.0
    if size >= mpf(2) ** 1024:
        return sign * math.inf
    if size < mpf(2) ** -1021:
        return sign * math.ldexp(int(mp.nint(size * mpf(2) ** 1074)), -1074)
    return float(value)


def compare(name: str, exact: Callable[..., Any], columns: list[np.ndarray], dtype: np.dtype, limit: float) -> int:
    """Compare where the exact value exists, in units of the last place of `dtype`."""
    symbol = next(s for s, known in SYMBOLS.items() if known.function == name and known.result == dtype.char)
    got = call(symbol, columns, dtype)
    assert got is not None and got.dtype == dtype
    compared = 0
    with mp.workdps(DIGITS.get(name, 40)):
        for result, *values in zip(got.tolist(), *(column.tolist() for column in columns), strict=True):
            value = wanted(exact, tuple(v if isinstance(v, int) else mpf(v) for v in values))
            if value is None or (abs(values[-1]) > 1e22 and (name in WAVES or name in ("sinpi", "cospi", "tgamma"))):
                continue
            compared += 1
            with np.errstate(over="ignore"):
                near = dtype.type(as_double(value))
            size = min(abs(float(near)), float(np.nextafter(np.finfo(dtype).max, 0, dtype=dtype)))
            spacing = float(np.spacing(dtype.type(size)))
            if name in WAVES:
                spacing = max(spacing, float(np.spacing(dtype.type(1 if name == "lgamma" else min(abs(near) + 1, 1)))))
            if np.isinf(near) or math.isinf(result):
                largest = float(np.finfo(dtype).max)
                assert result == near or abs(value) > mpf(largest) * (1 - mpf(2) ** -50), (name, values, result, value)
                continue
            assert abs(mpf(result) - value) <= limit * mpf(spacing), (name, values, result, float(value), spacing)
            if value == 0 or near == 0:
                assert abs(result) <= limit * spacing
            elif result != 0:
                assert math.copysign(1, result) == mp.sign(value)
    return compared


@pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
def test_functions_of_one_number(dtype: np.dtype) -> None:
    for name, exact in EXACT.items():
        bound = 1e8 if name in WAVES else math.inf  # a series of mpmath takes long there
        x = np.unique(SIGNED[np.abs(SIGNED) <= np.finfo(dtype).max].astype(dtype))
        x = x[:: 3 if name in WAVES else 1]
        x = x[np.abs(x) < (1e6 if name == "tgamma" or "bessel" in name else bound)]
        limit = (0.51 if dtype == F32 else 2.5) if name not in LIMITS else (1 if dtype == F32 else LIMITS[name])
        assert compare(name, exact, [x], dtype, limit) > 8, name


@pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
def test_functions_of_several_numbers(dtype: np.dtype) -> None:
    info = np.finfo(dtype)
    sizes = [
        1.0,
        1.5,
        3.0,
        0.1,
        17.25,
        -2.0,
        1e30,
        -1e30,
        1e-30,
        1e-40,
        info.max,
        info.max / 2,
        info.tiny,
        info.smallest_subnormal,
    ]
    sizes += [1e200, -1e200, 1e-200, 1e-310, 0.75 * float(info.max)] if dtype == F64 else [0.75 * float(info.max)]
    x, y = (grid.ravel() for grid in np.meshgrid(np.array(sizes, dtype), np.array(sizes, dtype)))
    for name, exact in PAIRS.items():
        columns = [x, y]
        if name.endswith(("3d", "4d")):
            columns += [np.roll(y, 7), np.roll(x, 3)][: 1 if name.endswith("3d") else 2]
        if name == "fdivide" and dtype == F64:
            continue
        limit = 0.51 if dtype == F32 else 3 if name[:2] in ("rh", "rn") else 1.5
        compare(name, exact, columns, dtype, limit)
    largest = np.full(4, info.max, dtype)
    for name in ("rhypot", "rnorm3d", "rnorm4d"):  # the norm overflows, its reciprocal does not
        arity = {"rhypot": 2, "rnorm3d": 3, "rnorm4d": 4}[name]
        compare(name, PAIRS[name], [largest] * arity, dtype, 3)


@pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
def test_functions_with_integers(dtype: np.dtype) -> None:
    orders = np.array([0, 1, 2, 3, 7, 20, 50, -3, -4], np.int32)
    x = np.array([1e-310, 1e-30, 1e-3, 0.5, 1.9, 2.5, 7.5, 30.0, 150.5, 199.0, 201.0, 1000.25, 1e6], dtype)
    n, points = (grid.ravel() for grid in np.meshgrid(orders, x[x > 0]))
    for name in ("jn", "yn"):
        compare(name, OF_INTEGERS[name], [n, points], dtype, 1 if dtype == F32 else 64)
    n = np.array([0, 1, -1, 5, -7, 127, -140, 1023, -1060, 2000, -2000, 2**31 - 1, -(2**31)], np.int32)
    bases = np.array([1.5, -3.0, 1e-40, 1e30, 0.999, -(2.0**-149), 1.0], dtype)
    n, points = (grid.ravel() for grid in np.meshgrid(n, bases))
    for name in ("ldexp", "scalbn", "powi"):
        compare(name, OF_INTEGERS[name], [points, n], dtype, 0.51 if dtype == F32 else 1.5)


ONE_SPECIAL = {  # of 0, -0, inf, -inf; NaN gives NaN
    "exp": [1, 1, INF, 0],
    "expm1": [0, -0.0, INF, -1],
    "log": [-INF, -INF, INF, NAN],
    "log1p": [0, -0.0, INF, NAN],
    "sqrt": [0, -0.0, INF, NAN],
    "rsqrt": [INF, -INF, 0, NAN],
    "cbrt": [0, -0.0, INF, -INF],
    "rcbrt": [INF, -INF, 0, -0.0],
    "sin": [0, -0.0, NAN, NAN],
    "sinpi": [0, -0.0, NAN, NAN],
    "cospi": [1, 1, NAN, NAN],
    "sinh": [0, -0.0, INF, -INF],
    "cosh": [1, 1, INF, INF],
    "tanh": [0, -0.0, 1, -1],
    "asinh": [0, -0.0, INF, -INF],
    "atan": [0, -0.0, math.pi / 2, -math.pi / 2],
    "erf": [0, -0.0, 1, -1],
    "erfc": [1, 1, 0, 2],
    "erfcx": [1, 1, 0, INF],
    "erfinv": [0, -0.0, NAN, NAN],
    "erfcinv": [INF, INF, NAN, NAN],
    "normcdf": [0.5, 0.5, 1, 0],
    "normcdfinv": [-INF, -INF, NAN, NAN],
    "lgamma": [INF, INF, INF, INF],
    "tgamma": [INF, -INF, INF, NAN],
    "j0": [1, 1, 0, 0],
    "j1": [0, -0.0, 0, -0.0],
    "y0": [-INF, -INF, 0, NAN],
    "cyl_bessel_i0": [1, 1, INF, INF],
    "cyl_bessel_i1": [0, -0.0, INF, -INF],
    "round": [0, -0.0, INF, -INF],
    "rint": [0, -0.0, INF, -INF],
    "logb": [-INF, -INF, INF, INF],
    "abs": [0, 0, INF, INF],
}


@pytest.mark.parametrize("dtype", [F32, F64], ids=["f32", "f64"])
def test_zeros_infinities_and_nan(dtype: np.dtype) -> None:
    tail = "f" if dtype == F32 else ""
    for name, wanted in ONE_SPECIAL.items():
        got = call(
            f"__nv_{'f' if name == 'abs' else ''}{name}{tail}", [np.array([0.0, -0.0, INF, -INF, NAN], dtype)], dtype
        )
        np.testing.assert_array_equal(got, np.array([*wanted, NAN], dtype), err_msg=name)
        zeros = [index for index, value in enumerate(wanted) if value == 0]
        assert np.signbit(got)[zeros].tolist() == [math.copysign(1, wanted[index]) < 0 for index in zeros], name
    x, y = np.array([INF, NAN, INF, 0.0], dtype), np.array([NAN, -INF, INF, -0.0], dtype)
    assert call(f"__nv_hypot{tail}", [x, y], dtype).tolist() == [INF, INF, INF, 0]
    assert call(f"__nv_rnorm3d{tail}", [x, y, y], dtype).tolist() == [0, 0, 0, INF]
    np.testing.assert_array_equal(call(f"__nv_fdim{tail}", [x, y], dtype), [NAN, NAN, 0, 0])
    halves = np.array([0.49999999999999994, -0.5, 2.5, -2.5, 4503599627370497.5, -0.25], dtype)
    with mp.workdps(40):
        want = np.array([float(half_away(mpf(float(x)))) for x in halves])
    np.testing.assert_array_equal(call(f"__nv_round{tail}", [halves], dtype), want.astype(dtype))
    assert np.signbit(call(f"__nv_round{tail}", [halves], dtype)).tolist() == [False, True, False, True, False, True]
    tiny = np.array([2.0**-149, 1.5 * 2.0**-140, 0.0, NAN, -INF, 3.0], dtype)
    assert call(f"__nv_ilogb{tail}", [tiny], np.dtype("i4")).tolist() == [-149, -140, -(2**31), -(2**31), 2**31 - 1, 1]
    large = np.array([2.5, -3.5, 1e30, -1e30, NAN, -0.5], dtype)
    assert call(f"__nv_llrint{tail}", [large], np.dtype("i8")).tolist() == [2, -4, 2**63 - 1, -(2**63), 0, 0]
    assert call(f"__nv_llround{tail}", [large], np.dtype("i8")).tolist() == [3, -4, 2**63 - 1, -(2**63), 0, -1]
    if dtype == F32:
        assert call("__nv_saturatef", [np.array([NAN, 2, -1, 0.25, -0.0], F32)], F32).tolist() == [0, 1, 0, 0.25, 0]


def test_bits_of_doubles() -> None:
    x = np.array([0x3FF8000012345678, 0x8000000000000001, 0x7FEFFFFFFFFFFFFF], np.uint64).view(F64)
    high, low = (call(f"__nv_double2{part}int", [x], np.dtype("i4")) for part in ("hi", "lo"))
    assert call("__nv_hiloint2double", [high, low], F64).view(np.uint64).tolist() == x.view(np.uint64).tolist()
    nan = np.array([0x7FF0000000000001, 0xFFF8000000000007], np.uint64)  # casts of bits keep the payload
    back = call("__nv_longlong_as_double", [nan.view(np.int64)], F64)
    assert call("__nv_double_as_longlong", [back], np.dtype("i8")).view(np.uint64).tolist() == nan.tolist()
    got = call("__nv_rcp64h", [x[:1]], F64).view(np.uint64)  # only the upper words are looked at
    assert got == np.array(1 / 1.5).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
