"""libdevice, executed: every function of libdevice with every combination of types.

The evaluator and the interpreter implement each function on their own (a recurrence here, an integral there), so their
agreement is the proof; `ANCHORS` are values from tables.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from arith_kernel import NUMPY
from operator_kernels import call_binary, call_ternary, call_unary, launch

import tilework
import tilework.language as tl
from tilework.language.extra.cuda import libdevice
from tilework.language.extra.cuda.libdevice import TABLE
from tilework.oracles.interpreter import libdevice as interpreted

LANES = 32
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.25, 3.0, -3.0, 0.1, 0.75, 10.0, 30.5, -20.0, 1e-3, 1e-20, 5.0]
FLOATS += [100.25, 250.0, 0.999, -0.999, 2.0, 7.0, 1.25, 1e30, 12.0, -7.5, math.inf, -math.inf, math.nan]
ROUNDINGS = ("rn", "rz", "rd", "ru")
CASES = [(name, types) for name, symbols in TABLE.items() for types in symbols]


@tilework.jit
def call_quaternary(v, w, x, y, z, f: tl.constexpr, LANES: tl.constexpr):
    i = tl.arange(0, LANES)
    tl.store(z + i, f(tl.load(v + i), tl.load(w + i), tl.load(x + i), tl.load(y + i)))


KERNELS = {1: call_unary, 2: call_binary, 3: call_ternary, 4: call_quaternary}


def inputs(name: str, types: tuple[tl.dtype, ...]) -> list[np.ndarray]:
    """Ordinary numbers, edges and NaN; every argument in another order."""
    rng = np.random.default_rng(0)
    arrays = []
    for position, kind in enumerate(types):
        numpy_kind = NUMPY[kind.name]
        if name in ("jn", "yn", "ldexp", "scalbn", "pow") and kind.name == "int32":
            array = rng.integers(0 if name in ("jn", "yn") else -5, 8, LANES).astype(np.int32)
        elif kind.is_int():
            info = np.iinfo(numpy_kind)
            edges = [info.min, info.max, 0, 1, 2**24 + 1, 2**31 - 129]
            array = np.array([*edges, *rng.integers(info.min, info.max, LANES - 6, numpy_kind).tolist()], numpy_kind)
        else:
            array = np.array(FLOATS, numpy_kind)
        arrays.append(np.roll(array, 5 * position))
    return arrays


def evaluated(name: str, types: tuple[tl.dtype, ...], arrays: list[np.ndarray]) -> np.ndarray:
    result = TABLE[name][types][1].name
    out = np.zeros(arrays[0].size, NUMPY[result])
    names = [kind.name for kind in types] + [result]
    launch(KERNELS[len(types)], names, [*arrays, out], f=getattr(libdevice, name), LANES=out.size)
    return out


def interpreter_result(name: str, types: tuple[tl.dtype, ...], arrays: list[np.ndarray]) -> np.ndarray:
    symbol, result = TABLE[name][types]
    return interpreted.call(symbol, arrays, NUMPY[result.name])


@pytest.mark.parametrize(
    ("name", "types"), CASES, ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value))
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_two_implementations_agree(name: str, types: tuple[tl.dtype, ...]) -> None:
    arrays = inputs(name, types)
    left, right = evaluated(name, types, arrays), interpreter_result(name, types, arrays)
    assert left.dtype == right.dtype
    if left.dtype.kind not in "f" or any(f"_{mode}" in name for mode in ROUNDINGS):
        np.testing.assert_array_equal(left, right)
        if left.dtype.kind == "f":
            assert (np.signbit(left) == np.signbit(right))[~np.isnan(left)].all()
        return
    near = 2e-14 if left.dtype == np.float64 else 1.2e-7
    np.testing.assert_allclose(left, right, rtol=near, atol=near if name[0] in "jy" else 0)
    assert (np.signbit(left) == np.signbit(right))[~np.isnan(left) & (np.abs(left) > near)].all()


ANCHORS = {
    "j0": [(2.5, -0.048383776468198), (60.0, -0.09147180408906187), (1000.0, 0.024786686152420176)],
    "j1": [(2.5, 0.49709410246427405), (-60.0, -0.046598383758166315)],
    "y0": [(0.001, -4.471416611375923), (2.5, 0.4980703596152319), (60.0, 0.0473589522094494)],
    "y1": [(0.001, -636.6221672311394), (2.5, 0.1459181379667858), (1000.0, -0.024784331292351778)],
    "cyl_bessel_i0": [(0.5, 1.0634833707413236), (100.0, 1.0737517071310738e42)],
    "cyl_bessel_i1": [(0.5, 0.2578943053908963), (-100.0, -1.0683693903381625e42)],
    "erfinv": [(0.1, 0.08885599049425769), (-0.999, -2.3267537655135246)],
    "erfcinv": [(1e-20, 6.601580622355143), (1.5, -0.4769362762044699)],
    "normcdfinv": [(1e-05, -4.264890793922825), (0.975, 1.9599639845400538)],
    "erfcx": [(0.5, 0.6156903441929259), (5.0, 0.11070463773306863), (50.0, 0.011281536265323773)],
    "normcdf": [(-3.0, 0.0013498980316300946)],
    "lgamma": [(0.5, 0.5723649429247001), (30.5, 72.9534711841694)],
    "tgamma": [(-1.5, 2.363271801207355), (10.5, 1133278.3889487856)],
    "sinpi": [(0.5, 1.0), (1e6, 0.0), (-1.25, math.sqrt(0.5))],
    "cospi": [(0.5, 0.0), (1e6 + 1, -1.0), (1.75, math.sqrt(0.5))],
}
OF_ORDER = {
    "jn": [(5, 2.5, 0.01950162513450322), (20, 2.5, 3.309079383658777e-17), (-3, 2.5, -0.21660039103911352)],
    "yn": [(5, 2.5, -3.8301760007407517), (3, 1000.0, 0.024765269345790947), (-3, 2.5, 0.756055496753671)],
}


@pytest.mark.parametrize("run", [evaluated, interpreter_result])
def test_values_from_tables(run: Any) -> None:
    for name, points in ANCHORS.items():
        x, wanted = (np.array(column) for column in zip(*points))
        padded = np.resize(x, 4)
        np.testing.assert_allclose(run(name, (tl.float64,), [padded])[: x.size], wanted, rtol=1e-13, atol=1e-300)
    for name, points in OF_ORDER.items():
        order, x, wanted = (np.array(column) for column in zip(*points))
        arrays = [np.resize(order.astype(np.int32), 4), np.resize(x, 4)]
        np.testing.assert_allclose(run(name, (tl.int32, tl.float64), arrays)[:3], wanted, rtol=1e-12)


EXACT = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}


@pytest.mark.parametrize("run", [evaluated, interpreter_result])
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("kind", [tl.float32, tl.float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_directed_rounding(kind: tl.dtype, mode: str, run: Any) -> None:
    """No number of the format lies between the result and the exact value, on the side that the direction asks for."""
    rng = np.random.default_rng(3)
    numpy_kind = NUMPY[kind.name]
    largest, smallest = np.finfo(numpy_kind).max, np.finfo(numpy_kind).smallest_subnormal
    for name, exact in EXACT.items():
        arity = exact.__code__.co_argcount
        arrays = [rng.normal(size=32).astype(numpy_kind) for _ in range(arity)]
        for place, array in enumerate(arrays):
            array[:4] = np.roll([largest, -largest, smallest, -smallest * 3], place)
        results = run(f"{name}_{mode}", (kind,) * arity, arrays)
        for result, *values in zip(results, *arrays):
            assert_rounded(result, exact(*(Fraction(float(v)) for v in values)), mode)
    roots = np.abs(rng.normal(size=32)).astype(numpy_kind)
    for result, x in zip(run(f"sqrt_{mode}", (kind,), [roots]), roots):
        square, direction = Fraction(float(x)), mode
        below, above = (Fraction(float(np.nextafter(result, numpy_kind.type(end)))) for end in (0, np.inf))
        got = Fraction(float(result))
        low = got if direction in ("rd", "rz") else (below + got) / 2 if direction == "rn" else below
        high = above if direction in ("rd", "rz") else (above + got) / 2 if direction == "rn" else got
        assert low**2 <= square <= high**2


def assert_rounded(result: Any, exact: Fraction, mode: str) -> None:
    down = mode == "rd" or (mode == "rz" and exact > 0)
    up = mode == "ru" or (mode == "rz" and exact < 0)
    infinity = result.dtype.type(np.inf)
    below, above = np.nextafter(result, -infinity), np.nextafter(result, infinity)
    value, low, high = (
        Fraction(float(v)) if np.isfinite(v) else math.copysign(math.inf, v) for v in (result, below, above)
    )
    if down:
        assert value <= exact and (exact < high or math.isinf(value))
    elif up:
        assert value >= exact and (exact > low or math.isinf(value))
    elif math.isfinite(value):
        assert math.isinf(high) or math.isinf(low) or abs(value - exact) <= min(abs(low - exact), abs(high - exact))


@pytest.mark.parametrize("run", [evaluated, interpreter_result])
def test_the_sign_of_an_exact_zero(run: Any) -> None:
    """A sum that cancels is +0, but -0 when rounding down; (+0) + (+0) is +0 in every direction."""
    x, y = np.array([1.5, 0.0, 0.0, -0.0]), np.array([-1.5, 0.0, -0.0, -0.0])
    for mode in ROUNDINGS:
        down = mode == "rd"
        signs = np.signbit(run(f"add_{mode}", (tl.float64, tl.float64), [x, y]))
        assert signs.tolist() == [down, False, down, True]
        signs = np.signbit(run(f"fma_{mode}", (tl.float64,) * 3, [x, np.ones(4), y]))
        assert signs.tolist() == [down, False, down, True]
