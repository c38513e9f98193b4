"""Every function of libdevice with every combination of types.

Kernels in the evaluator, against the functions themselves, whose values `tests/numerics` compares with mpmath.
"""

import math

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.semantic.arith_kernel import NUMPY
from tests.frontend.semantic.operator_kernels import call_binary, call_ternary, call_unary, launch
from tilework.language.extra.cuda import libdevice
from tilework.language.extra.cuda.libdevice import TABLE
from tilework.numerics import libdevice_in_numpy

LANES = 32
FLOATS = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.25, 3.0, -3.0, 0.1, 0.75, 10.0, 30.5, -20.0, 1e-3, 1e-20, 5.0]
FLOATS += [100.25, 250.0, 0.999, -0.999, 2.0, 7.0, 1.25, 1e30, 12.0, -7.5, math.inf, -math.inf, math.nan]


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


@pytest.mark.parametrize("first", range(8))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kernels_call_the_function(first: int) -> None:
    for name in list(TABLE)[first::8]:
        check_function(name)


def check_function(name: str) -> None:
    for types, (symbol, result) in TABLE[name].items():
        arrays = inputs(name, types)
        got, wanted = evaluated(name, types, arrays), libdevice_in_numpy.call(symbol, arrays, NUMPY[result.name])
        assert wanted is not None and got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted, name)
        if got.dtype.kind == "f":
            assert (np.signbit(got) == np.signbit(wanted))[~np.isnan(got)].all()
