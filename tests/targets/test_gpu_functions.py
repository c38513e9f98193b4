"""Elementary functions by approximate instructions, which are modelled as results that are off by up to a unit.

`benchmarks/gpu_functions.py` measures all arguments on a GPU; a model that errs at random is worse than one.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.targets.llvm_run import ulps
from tilework.targets.gpu.elementary import FORMULAS
from tilework.targets.llvm.math.in_numpy import ArrayBuilder, Constants, Held, held
from tilework.targets.llvm.math.lanes import Lanes
from tilework.targets.llvm.types import f32
from tilework.targets.llvm.values import Value, constant

INF, NAN = math.inf, math.nan
SMALLEST = np.float32(2.0**-126)
RANDOM = np.random.default_rng(11)
STATE = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def seeded() -> None:
    """A test draws the same numbers whichever tests ran before it."""
    RANDOM.bit_generator.state = STATE


def approximate(function: Callable[..., Any], flushes: bool = True) -> Callable[..., Held]:
    """A function of f32 that is rounded and then off by up to one unit, and may flush subnormal numbers to zero."""

    def flushed(x: np.ndarray) -> np.ndarray:
        return np.where(np.abs(x) < SMALLEST, np.copysign(np.float32(0), x), x) if flushes else x

    def call(b: Any, *args: Any) -> Held:
        exact = function(*(flushed(b.held(arg).array).astype(np.float64) for arg in args)).astype(np.float32)
        off = RANDOM.integers(-1, 2, exact.shape, np.int32)
        moves = np.isfinite(exact) & (np.abs(exact) < 3e38) & (np.abs(exact) >= SMALLEST)
        return Held(f32, flushed((exact.view(np.int32) + np.where(moves, off, 0).astype(np.int32)).view(np.float32)))

    return call


class GpuConstants(Constants):
    approximations = {
        "exp2": approximate(np.exp2),
        "log2": approximate(np.log2),
        "reciprocal": approximate(lambda x: 1.0 / x),
        "rsqrt": approximate(lambda x: 1.0 / np.sqrt(x)),
        "sqrt": approximate(np.sqrt, flushes=False),
        "divide": approximate(np.divide, flushes=False),
    }


class GpuBuilder(ArrayBuilder):
    def __init__(self) -> None:
        super().__init__()
        self.module = GpuConstants()


def compute(name: str, x: np.ndarray, *others: np.ndarray | Value) -> np.ndarray:
    builder: Any = GpuBuilder()
    values = [other if isinstance(other, Value) else held(np.ascontiguousarray(other)) for other in (x, *others)]
    lanes = [Lanes(builder, value) for value in values]
    with np.errstate(all="ignore"):
        made: Any = FORMULAS[name](*lanes).v
    return np.broadcast_to(builder.held(made).array, x.shape)


LARGEST = 3.4028235e38
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, INF, -INF, NAN, 1e-45, -1e-45, float(SMALLEST), LARGEST, -LARGEST]
PATTERNS = np.arange(0, 2**32, 65537, dtype=np.uint64).astype(np.uint32).view(np.float32)
DENSE = np.concatenate([
    np.where(np.isnan(PATTERNS), np.float32(NAN), PATTERNS), np.array(EDGES, np.float32),
    *(RANDOM.uniform(-size, size, 12000).astype(np.float32) for size in (0.01, 1.0, 4.0, 20.0, 110.0, 1000.0)),
])  # fmt: skip
erfc = np.vectorize(math.erfc, otypes=[np.float64])
# the function, and the largest error with instructions that err by a unit and a half
ONE: dict[str, tuple[Callable[..., Any], float]] = {
    "exp": (np.exp, 2.5), "exp10": (lambda x: np.power(10.0, x), 2.5), "expm1": (np.expm1, 1.5),
    "tanh": (np.tanh, 3.0), "sinh": (np.sinh, 4.0), "cosh": (np.cosh, 3.0),
    "log": (np.log, 1.0), "log2": (np.log2, 1.0), "log10": (np.log10, 1.0), "log1p": (np.log1p, 1.0),
    "asinh": (np.arcsinh, 2.0), "acosh": (np.arccosh, 2.5), "atanh": (np.arctanh, 2.5),
    "cbrt": (np.cbrt, 1.0), "rcbrt": (lambda x: 1.0 / np.cbrt(x), 1.5),
    "sin": (np.sin, 1.6), "cos": (np.cos, 1.6), "tan": (np.tan, 2.5),
    "asin": (np.arcsin, 1.5), "acos": (np.arccos, 1.5), "atan": (np.arctan, 2.0),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), 2.0), "erfc": (erfc, 5.5),
    "normcdf": (lambda x: erfc(x * -math.sqrt(0.5)) / 2, 6.0),
}  # fmt: skip
TWO: dict[str, tuple[Callable[..., Any], float]] = {
    "pow": (np.power, 3.0), "hypot": (np.hypot, 1.5), "fmod": (np.fmod, 0.0),
}  # fmt: skip


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """In units; a result that may be off by some may also overflow next to the largest number."""
    overflows = np.isinf(got) & (np.abs(exact) > 3.4028e38) & (np.sign(got) == np.sign(exact))
    return np.where(overflows, 0.0, ulps(got, exact))


def check(name: str, args: list[np.ndarray], exact: np.ndarray, limit: float) -> None:
    got = compute(name, *args)
    error = errors(got, exact)
    worst = int(np.argmax(error))
    described = f"{name}({[float(arg[worst]) for arg in args]}) = {got[worst]!r}, not {exact[worst]!r}"
    assert error[worst] <= limit, f"{described}: off by {error[worst]:.2f}"
    zeros = exact == 0
    assert np.array_equal(np.signbit(got[zeros]), np.signbit(exact[zeros])), name


@pytest.mark.parametrize("name", ONE)
def test_functions_are_as_accurate_as_documented(name: str) -> None:
    function, limit = ONE[name]
    with np.errstate(all="ignore"):
        check(name, [DENSE], function(DENSE.astype(np.float64)), limit)


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_arguments_are_as_accurate_as_documented(name: str) -> None:
    function, limit = TWO[name]
    pairs = [(RANDOM.choice(DENSE, 60000), RANDOM.choice(DENSE, 60000))]
    pairs += [(RANDOM.uniform(0, 4, 40000), RANDOM.uniform(-20, 20, 40000)), (np.repeat(EDGES, 14), np.tile(EDGES, 14))]
    pairs += [(RANDOM.uniform(0.99, 1.01, 20000), RANDOM.uniform(-5000, 5000, 20000))]
    x, y = (np.concatenate(column).astype(np.float32) for column in zip(*pairs))
    with np.errstate(all="ignore"):
        check(name, [x, y], function(x.astype(np.float64), y.astype(np.float64)), limit)


@pytest.mark.parametrize("exponent", [-1, 0, 1, 2, 3, 4])
def test_small_exponents_are_multiplications(exponent: int) -> None:
    with np.errstate(all="ignore"):
        exact = np.power(DENSE.astype(np.float64), float(exponent))
    error = errors(compute("pow", DENSE, constant(f32, float(exponent))), exact)
    assert error.max() <= 2.0, DENSE[int(np.argmax(error))]


def test_powers_of_integers() -> None:
    """Those beyond 2^24 are no f32: their last bit decides the sign, and bases next to 1 need all of them."""
    n = np.concatenate([RANDOM.integers(-50, 50, 20000), RANDOM.integers(-(2**31), 2**31, 20000)]).astype(np.int32)
    edges = np.array([0, 1, -1, 2**24 + 1, -(2**24) - 1, 2**31 - 1, -(2**31)], np.int32)
    near = np.exp(RANDOM.uniform(-80, 80, n.size) / np.where(n == 0, 1, n)) * RANDOM.choice([-1.0, 1.0], n.size)
    x = np.concatenate([near, np.repeat(EDGES, edges.size)]).astype(np.float32)
    n = np.concatenate([n, np.tile(edges, len(EDGES))])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), n.astype(np.float64))
    error = errors(compute("powi", x, n), exact)
    worst = int(np.argmax(error))
    assert error[worst] <= 3.0, (x[worst], n[worst], error[worst])


def test_every_formula_is_tested() -> None:
    assert {*ONE, *TWO, "powi"} == {*FORMULAS}
