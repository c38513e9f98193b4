"""Elementary functions: f32 against f64 on dense samples, f64 against exact values, special cases, rounding modes."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from tests.targets.llvm_run import elementwise, new_module, ulps
from tilework.numerics.libdevice_table import SYMBOLS
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.folding import round_fraction
from tilework.targets.llvm.math.rounding import MODES
from tilework.targets.llvm.math.table import FUNCTIONS
from tilework.targets.llvm.types import Type, f32, f64, i32, i64, vector

REFERENCE = Path(__file__).with_name("elementary_reference.txt")
mp: Any = mpmath.mp  # its functions are made at run time
INF, NAN = math.inf, math.nan
# where an argument is an integer
SIGNATURES = {"jn": [i32, f64], "yn": [i32, f64], "powi": [f64, i32]}


def reference() -> dict[str, list[list[float]]]:
    rows: dict[str, list[list[float]]] = {}
    for line in REFERENCE.read_text().splitlines():
        name, *numbers = line.split()
        rows.setdefault(name, []).append([float.fromhex(number) for number in numbers])
    return rows


ROWS = reference()
EXACT: dict[str, Callable[..., Any]] = {
    "j0": lambda x: mp.besselj(0, x),
    "j1": lambda x: mp.besselj(1, x),
    "y0": lambda x: mp.bessely(0, x),
    "y1": lambda x: mp.bessely(1, x),
    "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "cyl_bessel_i0": lambda x: mp.besseli(0, x),
    "cyl_bessel_i1": lambda x: mp.besseli(1, x),
}


WAVES = {"j0": 0, "j1": 1, "y0": 0, "y1": 1}  # and their order


def accuracy(name: str, args: list[np.ndarray], value: np.ndarray) -> tuple[np.ndarray | float, np.ndarray]:
    """The largest error that is documented for f64, and the size whose units in the last place count."""
    size = np.abs(value)
    if name == "lgamma":
        reflected = np.array([math.lgamma(1 - x) if x < 0 else 0.0 for x in args[0]])
        return 8.0, np.where(args[0] < 0, np.maximum(np.maximum(size, 1.0), reflected), size)
    if name in ("cyl_bessel_i0", "cyl_bessel_i1"):
        return 16.0, size
    if name not in WAVES and name not in ("jn", "yn"):
        return 2.0, size
    order = np.abs(args[0]) if len(args) == 2 else np.full_like(value, WAVES[name])
    x = np.abs(args[-1])
    waves = x > np.maximum(order, 0.5)
    return 16.0 + order, np.where(waves, np.maximum(size, np.sqrt(2 / np.pi / np.where(waves, x, 1.0))), size)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("width", [1, 2])
def test_f64_is_as_accurate_as_documented(name: str, width: int) -> None:
    *args, high, low = (np.array(column) for column in zip(*ROWS[name]))
    got = elementwise(name, SIGNATURES.get(name, [f64] * len(args)), width)(*args)
    limit, size = accuracy(name, args, high)
    error = ulps(got, high, low) * np.spacing(np.abs(high)) / np.spacing(size) / limit
    worst = int(np.argmax(error))
    assert error[worst] < 1.0, f"{name}({[float(arg[worst]) for arg in args]}) = {got[worst]}, not {high[worst]}"


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "lgamma", "cyl_bessel_i0", "cyl_bessel_i1"])
def test_f32_by_way_of_f64_is_within_one_unit(name: str) -> None:
    """Next to a zero too: f64 has 29 bits more. Nearly half of a unit is the last rounding."""
    columns = np.array([row for row in ROWS[name] if abs(row[0]) < 1e4])
    x = np.concatenate([columns[:, 0], np.random.default_rng(19).uniform(0.5, 60, 300)]).astype(np.float32)
    x = x[(x > 0) | (x != np.floor(x))]  # those that become poles
    got = elementwise(name, [f32])(x)
    with mp.workdps(60):
        exact = [EXACT[name](mp.mpf(float(value))) for value in x]
        high = np.array([float(value) for value in exact])
        low = np.array([float(value - mp.mpf(part)) for value, part in zip(exact, high)])
    error = np.where(np.abs(high) < 3e38, ulps(got, high, low), 0.0)
    worst = int(np.argmax(error))
    assert error[worst] < 0.51, f"{name}({x[worst]!r}) is off by {error[worst]} units"


def dense() -> np.ndarray:
    """Every 65537th bit pattern of f32 (all exponents, signs, infinities, NaN), and intervals of interest."""
    patterns = np.arange(0, 2**32, 65537, dtype=np.uint64).astype(np.uint32).view(np.float32)
    patterns = np.where(np.isnan(patterns), np.float32(NAN), patterns)  # NumPy warns about signalling ones
    draw = np.random.default_rng(3)
    inside = [draw.uniform(-a, a, 6000) for a in (1.0, 4.0, 20.0, 105.0, 1000.0)]
    turns = np.arange(1, 3000) * (math.pi / 2)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        INF,
        -INF,
        NAN,
        1e-45,
        2.0**-126,
        3.4028235e38,
        88.72284,
        -103.97,
        -87.33655,
        128.0,
        -149.0,
        -150.0,
    ]
    return np.concatenate([patterns, *(part.astype(np.float32) for part in (*inside, turns, np.array(edges)))])


DENSE = dense()
NUMPY_REFERENCE = {
    name: getattr(np, name)
    for name in "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh cbrt sqrt".split()
}
NUMPY_REFERENCE |= {f"a{name}": getattr(np, f"arc{name}") for name in "sin cos tan sinh cosh tanh".split()}
NUMPY_REFERENCE |= {
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
}
PYTHON_REFERENCE = {"erf": math.erf, "erfc": math.erfc}
# computed in f32, most of them with sums of two
SINGLE = frozenset("pow tan asin acos atan atan2 sinh cosh log10 asinh acosh atanh erfc sinpi cospi cbrt hypot".split())


BY_PARTS = frozenset("log10 tan sinh cosh cbrt asin acos asinh acosh atanh".split())  # to the last sum, which rounds


def allowed(name: str) -> float:
    return 0.9 if name in BY_PARTS else 1.5 if name in SINGLE else 2.0


@pytest.mark.parametrize("name", NUMPY_REFERENCE)
def test_f32_is_within_two_units(name: str) -> None:
    with np.errstate(all="ignore"):
        exact = NUMPY_REFERENCE[name](DENSE.astype(np.float64))
    error = ulps(elementwise(name, [f32])(DENSE), exact)
    worst = int(np.argmax(error))
    assert error[worst] < allowed(name), f"{name}({DENSE[worst]!r}) is off by {error[worst]} units"


@pytest.mark.parametrize("name", PYTHON_REFERENCE)
def test_f32_error_functions(name: str) -> None:
    exact = np.array([PYTHON_REFERENCE[name](float(x)) for x in DENSE])
    assert np.max(ulps(elementwise(name, [f32])(DENSE), exact)) < allowed(name)


@pytest.mark.parametrize(
    "name",
    "erfcx erfinv erfcinv normcdf normcdfinv lgamma tgamma sinpi cospi j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1".split(),
)
def test_f32_agrees_with_f64(name: str) -> None:
    """f64 is the reference for functions that Python lacks; it is checked against exact values above."""
    sample = DENSE[:: 20 if "j" in name or "y" in name else 5]
    exact = elementwise(name, [f64], 2)(sample.astype(np.float64))
    assert np.max(ulps(elementwise(name, [f32])(sample), exact)) < allowed(name)


@pytest.mark.parametrize("name", sorted(SINGLE - {"tan"}) + ["erfinv", "erfcx", "normcdf"])
def test_common_functions_of_f32_need_no_f64(name: str) -> None:
    """Most GPUs have one unit for f64 beside 64 for f32; `tan` of huge angles alone is reduced in f64."""
    module = new_module()
    count = 2 if name in ("atan2", "pow", "hypot") else 1
    function = module.function("f", vector(f32, 4), [(vector(f32, 4), f"x{i}") for i in range(count)])
    b = Builder(function)
    b.ret(FUNCTIONS[name](b, function.args))
    assert "double" not in module.text()


@pytest.mark.parametrize("name", ["jn", "yn", "powi"])
def test_f32_functions_of_an_integer_agree_with_f64(name: str) -> None:
    draw = np.random.default_rng(14)
    x = np.concatenate([draw.uniform(0, 100, 2000), 10.0 ** draw.uniform(-30, 30, 1000)]).astype(np.float32)
    n = draw.integers(-9, 60, len(x)).astype(np.int32)
    types = SIGNATURES[name]
    args = [n if type is i32 else x for type in types]
    exact = elementwise(name, types, 2)(*[arg.astype(np.float64) if arg is x else arg for arg in args])
    got = elementwise(name, [i32 if type is i32 else f32 for type in types])(*args)
    assert np.max(ulps(got, exact)) < 2.0


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "fmod", "remainder"])
def test_f32_functions_of_two_arguments(name: str) -> None:
    draw = np.random.default_rng(4)
    x = np.concatenate([draw.permutation(DENSE)[:20000], draw.uniform(0, 4, 20000).astype(np.float32)])
    y = np.concatenate([draw.permutation(DENSE)[:20000], draw.uniform(-30, 30, 20000).astype(np.float32)])
    with np.errstate(all="ignore"):
        wide = (x.astype(np.float64), y.astype(np.float64))
        if name == "remainder":
            exact = np.array([ieee_remainder(*pair) for pair in zip(*wide)])
        else:
            exact = {"pow": np.power, "atan2": np.arctan2, "hypot": np.hypot, "fmod": np.fmod}[name](*wide)
    error = ulps(elementwise(name, [f32, f32])(x, y), exact)
    worst = int(np.argmax(error))
    assert error[worst] < (1e-9 if name in ("fmod", "remainder") else allowed(name)), (
        f"{name}({x[worst]!r}, {y[worst]!r})"
    )


def ieee_remainder(x: float, y: float) -> float:
    return math.remainder(x, y) if math.isfinite(x) and y != 0 and not math.isnan(y) else NAN


def test_f64_remainders_are_exact() -> None:
    draw = np.random.default_rng(5)
    patterns = draw.integers(-(2**63), 2**63, (2, 4000), dtype=np.int64).view(np.float64)
    x, y = np.concatenate(
        [patterns, draw.uniform(-1e3, 1e3, (2, 4000)), [[5e-324, 1.0, 1e308], [1.0, 5e-324, 3e-310]]], axis=1
    )
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(elementwise("fmod", [f64, f64], 2)(x, y), np.fmod(x, y))
    expected = np.array([ieee_remainder(float(a), float(b)) for a, b in zip(x, y)])
    np.testing.assert_array_equal(elementwise("remainder", [f64, f64], 2)(x, y), expected)


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(-INF, 0.0), (INF, INF), (0.0, 1.0), (1e30, INF), (-1e30, 0.0)],
    "exp2": [(-INF, 0.0), (INF, INF), (3.0, 8.0), (-1.0, 0.5)],
    "log": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0)],
    "log2": [(0.0, -INF), (8.0, 3.0), (0.125, -3.0), (INF, INF), (-2.0, NAN)],
    "log1p": [(-1.0, -INF), (-0.0, -0.0), (-2.0, NAN), (INF, INF)],
    "expm1": [(-0.0, -0.0), (-INF, -1.0), (INF, INF)],
    "sin": [(-0.0, -0.0), (INF, NAN), (-INF, NAN)],
    "cos": [(0.0, 1.0), (INF, NAN)],
    "tan": [(-0.0, -0.0), (INF, NAN)],
    "sinpi": [(1.0, 0.0), (-1.0, -0.0), (0.5, 1.0), (INF, NAN)],
    "cospi": [(0.5, 0.0), (1.0, -1.0), (2.0**60, 1.0), (INF, NAN)],
    "tanh": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "sinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "cosh": [(0.0, 1.0), (-INF, INF)],
    "asin": [(-0.0, -0.0), (1.5, NAN), (1.0, math.pi / 2)],
    "acos": [(1.0, 0.0), (-1.0, math.pi), (1.5, NAN)],
    "atan": [(-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2)],
    "asinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (INF, INF)],
    "atanh": [(-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN)],
    "erf": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0)],
    "erfcx": [(INF, 0.0), (-INF, INF), (0.0, 1.0), (-30.0, INF)],
    "normcdfinv": [(0.0, -INF), (1.0, INF), (0.5, 0.0), (-1.0, NAN)],
    "j0": [(0.0, 1.0), (-0.0, 1.0), (INF, 0.0), (-INF, 0.0)],
    "j1": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (-INF, -0.0)],
    "y0": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (-INF, NAN)],
    "y1": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, 0.0), (5e-324, -INF)],
    "cyl_bessel_i0": [(0.0, 1.0), (INF, INF), (-INF, INF), (800.0, INF)],
    "cyl_bessel_i1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "erfinv": [(1.0, INF), (-1.0, -INF), (2.0, NAN), (-0.0, -0.0)],
    "cbrt": [(-0.0, -0.0), (-27.0, -3.0), (INF, INF)],
    "tgamma": [
        (1.0, 1.0),
        (5.0, 24.0),
        (0.0, INF),
        (-0.0, -INF),
        (-1.0, NAN),
        (INF, INF),
        (-INF, NAN),
        (1e-310, INF),
        (-5e-324, -INF),
    ],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-1.0, INF), (-INF, INF)],
    "rsqrt": [(0.0, INF), (4.0, 0.5), (INF, 0.0), (-1.0, NAN)],
    "logb": [(0.0, -INF), (8.0, 3.0), (INF, INF), (0.75, -1.0)],
    "round": [(2.5, 3.0), (-2.5, -3.0), (0.49999999999999994, 0.0)],
    "rint": [(2.5, 2.0), (-0.5, -0.0)],
    "saturate": [(NAN, 0.0), (2.0, 1.0), (-1.0, 0.0), (0.25, 0.25)],
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("type", [f32, f64], ids=str)
def test_special_values(name: str, type: Type) -> None:
    pairs = SPECIAL[name] + ([] if name == "saturate" else [(NAN, NAN)])
    got = elementwise(name, [type], 4 if type is f32 else 2)(np.array([x for x, _ in pairs]))
    expected = np.array([y for _, y in pairs], got.dtype)
    if name == "round" and type is f32:
        got, expected = got[:2], expected[:2]  # the third argument is 1/2 in f32
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got[expected == 0]), np.signbit(expected[expected == 0]))


def test_special_powers_are_those_of_c() -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, INF, -INF, NAN, 1e300, -1e300]
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    for type, number in ((f32, np.float32), (f64, np.float64)):
        with np.errstate(all="ignore"):
            base, exponent = x.astype(number), y.astype(number)
            expected = np.power(base, exponent)
        got = elementwise("pow", [type, type])(base, exponent)
        np.testing.assert_allclose(got, expected, rtol=float(2 * np.finfo(number).eps))
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


def test_special_angles() -> None:
    values = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-300, 1e300, 5e-324]
    y, x = (grid.ravel() for grid in np.meshgrid(values, values))
    got = elementwise("atan2", [f64, f64])(y, x)
    expected = np.arctan2(y, x)
    np.testing.assert_allclose(got, expected, rtol=3e-16)
    np.testing.assert_array_equal(
        np.signbit(got), np.signbit(expected) & ~np.isnan(expected) | (np.isnan(got) & np.signbit(got))
    )


def rounded(type: Type, exact: Fraction, mode: str) -> float:
    """An exact number in `type`, rounded in a mode, by comparing the nearest float with it."""
    near = round_fraction(type, exact, 0.0)
    limit = np.finfo(np.float32 if type is f32 else np.float64).max
    number = np.float32 if type is f32 else np.float64
    if mode == "rn" or (math.isfinite(near) and Fraction(near) == exact):
        return near
    above = math.isfinite(near) and Fraction(near) > exact
    down = mode == "rd" or (mode == "rz" and exact > 0)
    if math.isinf(near):
        near_finite = math.copysign(float(limit), near)
        return near_finite if (near > 0) == down else near
    if down == above:
        return float(np.nextafter(number(near), number(-INF if down else INF)))
    return near


@pytest.mark.parametrize("type", [f32, f64], ids=str)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "fma", "sqrt", "rcp"])
def test_rounding_modes(op: str, mode: str, type: Type) -> None:
    draw = np.random.default_rng(6)
    number = np.float32 if type is f32 else np.float64
    exponents = (-140, 127) if type is f32 else (-300, 300)
    count = {"fma": 3, "sqrt": 1, "rcp": 1}.get(op, 2)
    args = [(draw.uniform(1, 2, 200) * 2.0 ** draw.integers(*exponents, 200)).astype(number) for _ in range(count)]
    args = [
        np.concatenate([arg, draw.uniform(-4, 4, 200).astype(number), np.array([3.0, 1.0], number)]) for arg in args
    ]
    if op == "sqrt":
        args = [np.abs(args[0])]
    got = elementwise(f"{op}_{mode}", [type] * count)(*args)
    for *numbers, result in zip(*args, got):
        x, *rest = (Fraction(float(value)) for value in numbers)
        if op == "sqrt":
            square = round_root(type, x, mode)
            assert result == number(square), (numbers, result)
            continue
        exact = {
            "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
            "fma": lambda a, b, c: a * b + c, "rcp": lambda a: 1 / a,
        }[op](x, *rest)  # fmt: skip
        assert result == number(rounded(type, exact, mode)), (op, mode, numbers, result)


def round_root(type: Type, x: Fraction, mode: str) -> float:
    """The square root of an exact number, rounded: 200 bits of it decide."""
    scaled = x * Fraction(4) ** 200 * Fraction(4) ** 1100
    root = Fraction(math.isqrt(scaled.numerator // scaled.denominator), 2**1300)
    exact = root if root * root == x else root + Fraction(1, 2**1301)
    return rounded(type, exact, mode)


CONVERSIONS = [
    name
    for name in FUNCTIONS
    if "2" in name and name[-3:-2] == "_" and name.split("2")[0] in ("float", "double", "int", "uint", "ll", "ull")
]
KINDS: dict[str, tuple[Type, int, int]] = {
    "int": (i32, -(2**31), 2**31 - 1),
    "uint": (i32, 0, 2**32 - 1),
    "ll": (i64, -(2**63), 2**63 - 1),
    "ull": (i64, 0, 2**64 - 1),
}
ROUNDERS = {"rn": round, "rz": math.trunc, "rd": math.floor, "ru": math.ceil}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversions(name: str) -> None:
    source, target = name[:-3].split("2")
    mode = name[-2:]
    draw = np.random.default_rng(8)
    if source in KINDS:
        type, low, high = KINDS[source]
        numbers = [low, high, 0, 1, 2**24 + 1, min(high, 2**53 + 1)] + [
            int(v) for v in draw.integers(max(low, -(2**63)), min(high, 2**63 - 1), 100)
        ]
        wrap = [n - (1 << type.bits) if n >= 1 << (type.bits - 1) else n for n in numbers]
        got = elementwise(name, [type])(np.array(wrap, np.int32 if type is i32 else np.int64))
        real = f32 if target == "float" else f64
        assert list(got) == [rounded(real, Fraction(n), mode) for n in numbers]
        return
    real = f32 if source == "float" else f64
    dtype = np.float32 if real is f32 else np.float64
    numbers = np.concatenate(
        [draw.uniform(-10, 10, 50), draw.uniform(-1e19, 2e19, 50), [0.5, 1.5, -0.5, 1e30, -1e30]]
    ).astype(dtype)
    got = elementwise(name, [real])(numbers)
    if target == "float":
        assert list(got) == [rounded(f32, Fraction(float(n)), mode) for n in numbers]
        return
    type, low, high = KINDS[target]
    expected = [min(max(ROUNDERS[mode](float(n)), low), high) for n in numbers]
    assert [int(g) & type.mask for g in got] == [e & type.mask for e in expected]
    assert elementwise(name, [real])(np.array([NAN]))[0] == 0


def test_integer_functions() -> None:
    draw = np.random.default_rng(9)
    x, y, z = (draw.integers(-(2**31), 2**31, 400).astype(np.int32) for _ in range(3))
    x[:4], y[:4] = [0, -1, 2**31 - 1, -(2**31)], [-1, -(2**31), 2**31 - 1, 1]
    a, b = x.astype(object), y.astype(object)
    ua, ub = a & 0xFFFFFFFF, b & 0xFFFFFFFF

    def low24(v: int) -> int:
        return ((v & 0xFFFFFF) ^ 0x800000) - 0x800000

    expected = {
        "mulhi": (a * b) >> 32, "umulhi": (ua * ub) >> 32, "hadd": (a + b) >> 1, "uhadd": (ua + ub) >> 1,
        "rhadd": (a + b + 1) >> 1, "urhadd": (ua + ub + 1) >> 1, "umul24": (ua & 0xFFFFFF) * (ub & 0xFFFFFF),
        "mul24": np.array([low24(p) * low24(q) for p, q in zip(a, b)], object),
    }  # fmt: skip
    for name, values in expected.items():
        got = elementwise(name, [i32, i32])(x, y)
        assert [int(g) & 0xFFFFFFFF for g in got] == [int(v) & 0xFFFFFFFF for v in values], name
    total = elementwise("sad", [i32] * 3)(x, y, z)
    assert [int(g) & 0xFFFFFFFF for g in total] == [
        (abs(p - q) + r) & 0xFFFFFFFF for p, q, r in zip(a, b, z.astype(object))
    ]
    total = elementwise("usad", [i32] * 3)(x, y, z)
    assert [int(g) & 0xFFFFFFFF for g in total] == [
        (abs(p - q) + r) & 0xFFFFFFFF for p, q, r in zip(ua, ub, z.astype(object))
    ]
    for name, rule in {
        "clz": lambda v: 32 - v.bit_length(), "popc": lambda v: v.bit_count(), "ffs": lambda v: (v & -v).bit_length(),
        "brev": lambda v: int(f"{v:032b}"[::-1], 2),
    }.items():  # fmt: skip
        assert [int(g) & 0xFFFFFFFF for g in elementwise(name, [i32])(x)] == [rule(int(v)) for v in ua], name
    got = elementwise("byte_perm", [i32] * 3)(x, y, z)
    for p, q, r, g in zip(ua, ub, z.astype(object), got):
        both = (p | q << 32).to_bytes(8, "little")
        picks = [(r >> 4 * k) & 15 for k in range(4)]
        spelled = [(255 if both[k & 7] & 128 else 0) if k & 8 else both[k & 7] for k in picks]
        assert int(g) & 0xFFFFFFFF == int.from_bytes(bytes(spelled), "little")


@pytest.mark.parametrize("type", [f32, f64], ids=str)
def test_ldexp_rounds_once_everywhere(type: Type) -> None:
    dtype, draw = (np.float32, np.float64)[type is f64], np.random.default_rng(11)
    limits = np.finfo(dtype)
    reach = limits.maxexp - limits.minexp + limits.nmant + 2
    of_numbers = draw.integers(limits.minexp - limits.nmant, limits.maxexp, 20000)
    x = np.ldexp(draw.uniform(-2, 2, 20000), of_numbers).astype(dtype)
    n = np.concatenate(
        [draw.integers(-reach, reach, 16000), draw.integers(-5, 5, 3000), draw.integers(-(2**31), 2**31, 1000)]
    )
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(
            elementwise("ldexp", [type, i32])(x, n.astype(np.int32)), np.ldexp(x, n.astype(np.int32))
        )


def test_bits_of_floats() -> None:
    x = np.array([1.5, -0.0, 3e-310, 1e300])
    got = (
        elementwise("double2hiint", [f64])(x).astype(np.int64) << 32
        | elementwise("double2loint", [f64])(x).astype(np.int64) & 0xFFFFFFFF
    )
    np.testing.assert_array_equal(got, x.view(np.int64))
    np.testing.assert_array_equal(elementwise("as_float", [i64])(x.view(np.int64)), x)
    np.testing.assert_array_equal(elementwise("ilogb", [f64])(x), [0, -(2**31), -1029, 996])
    np.testing.assert_array_equal(elementwise("signbit", [f64])(x), [0, 1, 0, 0])
    exponents = np.array([3, -5, 1020, -2000], np.int32)
    np.testing.assert_array_equal(elementwise("ldexp", [f64, i32])(x, exponents), np.ldexp(x, exponents))
    y = np.array([2.0, 1.0, -1.0, INF])
    np.testing.assert_array_equal(elementwise("nextafter", [f64, f64])(x, y), np.nextafter(x, y))
    np.testing.assert_array_equal(elementwise("fdim", [f64, f64])(x, y), np.maximum(x - y, 0.0))
    for name, rule in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items():
        np.testing.assert_array_equal(
            elementwise(name, [f32])(np.array([1.0, INF, NAN, -INF])), rule([1.0, INF, NAN, -INF])
        )


def test_norms() -> None:
    args = [np.array([3.0, 1e200, 1e-200, INF, 0.0]), np.array([4.0, 1e200, 1e-200, NAN, 0.0])]
    np.testing.assert_allclose(elementwise("hypot", [f64, f64])(*args), np.hypot(*args), rtol=3e-16)
    four = np.array([1.0, 2.0, 1e160])
    np.testing.assert_allclose(elementwise("norm4d", [f64] * 4)(four, four, four, four), 2 * four, rtol=3e-16)
    np.testing.assert_allclose(elementwise("rnorm3d", [f32] * 3)(*[np.array([1.0])] * 3), [1 / math.sqrt(3)], rtol=1e-7)


def test_bessel_functions_of_integer_order() -> None:
    j, y = elementwise("jn", [i32, f64], 2), elementwise("yn", [i32, f64], 2)
    # negative orders and arguments: both change the sign if the order is odd
    n, x = np.array([3, -3, 3, -3, 2, -2]), np.array([4.0, 4.0, -4.0, -4.0, -4.0, 4.0])
    np.testing.assert_array_equal(np.sign(j(n, x)), [1, -1, -1, 1, 1, 1])
    np.testing.assert_array_equal(np.isnan(y(n, x)), x < 0)
    # the Wronskian ties Y to J: J_{n+1} Y_n - J_n Y_{n+1} = 2 / (pi x)
    n, z = np.arange(0, 12), np.full(12, 7.5)
    np.testing.assert_allclose(j(n + 1, z) * y(n, z) - j(n, z) * y(n + 1, z), 2 / (np.pi * z), rtol=1e-12)


def test_bessel_functions_at_the_ends() -> None:
    j, y = elementwise("jn", [i32, f64], 2), elementwise("yn", [i32, f64], 2)
    n = np.array([0, 1, 2, 50, 2, 50, 0, 2, 2**31 - 1, 2**31 - 1, -(2**31), 400])
    x = np.array([0.0, 0.0, 0.0, 0.0, INF, INF, NAN, NAN, NAN, 1.0, 1.0, 1e-300])
    np.testing.assert_array_equal(j(n, x), [1, 0, 0, 0, 0, 0, NAN, NAN, NAN, 0, 0, 0])
    np.testing.assert_array_equal(y(n, x), [-INF, -INF, -INF, -INF, 0, 0, NAN, NAN, NAN, -INF, -INF, -INF])
    # into subnormal numbers: (x/2)^n / n!
    tiny = 2.0 ** np.array([-533.0, -530.0])
    np.testing.assert_array_equal(j(np.array([2, 2]), tiny), tiny / 8 * tiny)


def test_every_libdevice_symbol_has_a_function() -> None:
    from tilework.language.extra.cuda.libdevice import TABLE

    symbols = {symbol for rows in TABLE.values() for symbol, _ in rows.values()}
    assert symbols and not sorted(symbols - set(SYMBOLS))
    assert {known.function for known in SYMBOLS.values()} <= set(FUNCTIONS)


def test_the_callers_fast_math_flags_stay_outside() -> None:
    module = new_module()
    function = module.function("f", f32, [(f32, "x")])
    b = Builder(function)
    with b.fast_math("reassoc", "nnan"):
        (x,) = function.args
        b.ret(b.fadd(FUNCTIONS["log"](b, [FUNCTIONS["exp"](b, [x])]), x))
    assert module.text().count("reassoc") == 1


def test_a_long_function_is_there_once() -> None:
    module = new_module()
    wide = vector(f32, 8)
    function = module.function("f", wide, [(wide, "x")])
    b = Builder(function)
    b.ret(FUNCTIONS["tgamma"](b, [FUNCTIONS["tgamma"](b, [function.args[0]])]))
    assert module.text().count("define internal <2 x float> @tilework.tgamma.v2f32") == 1
    assert module.text().count("call <2 x float> @tilework.tgamma.v2f32") == 8
