"""Elementwise operations in kernels that promise the same bits: of numbers of every kind, in every type, on every device."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.differential.everywhere import CHOSEN, everywhere
from tilework.language.extra import libdevice
from tilework.numerics.rounding import BF16, E4M3FN, E5M2, F16, F32, F64, FORMAT_OF, UNSIGNED

IS_ALL = "REPRODUCIBLE_ALL" in os.environ
N = 256 if IS_ALL else 64
RNG = np.random.default_rng(17)


def some(*rows: Any) -> Sequence[Any]:
    """The first row, or all of them with REPRODUCIBLE_ALL=1."""
    return rows if IS_ALL else rows[:1]


def drawn(dtype: Any, size: int = N) -> np.ndarray[Any, Any]:
    """Random patterns, ordinary numbers, and all that is special."""
    dtype = np.dtype(dtype)
    word = UNSIGNED[dtype.itemsize]
    if dtype.kind in "iu":
        small = RNG.integers(-9 if dtype.kind == "i" else 0, 9, size).astype(dtype)
        return np.where(RNG.random(size) < 0.5, small, RNG.integers(0, 2**63, size).astype(word).view(dtype))
    format = FORMAT_OF[dtype]
    sign, infinity = 1 << (format.bits - 1), format.overflow
    codes = [
        0,
        1,
        2,
        format.largest,
        infinity,
        format.nan,
        infinity | 1,
        infinity - 1,
        1 << format.fraction,
        (1 << format.fraction) - 1,
    ]
    special = RNG.choice([*codes, *(code | sign for code in codes)], size).astype(word)
    patterns = RNG.integers(0, 2**63, size).astype(word)
    ordinary = (RNG.standard_normal(size) * 2.0 ** RNG.integers(-6, 6, size)).astype(dtype).view(word)
    kinds = [special, patterns, ordinary, ordinary]
    return np.choose(RNG.integers(0, 4, size), kinds).astype(word).view(dtype)


@tilework.jit
def arithmetic(x: Any, y: Any, z: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b, c = tl.load(x + i), tl.load(y + i), tl.load(z + i)
    tl.store(out + i, a * b + c)
    tl.store(out + N + i, a / b)
    tl.store(out + 2 * N + i, a % b)
    tl.store(out + 3 * N + i, tl.fma(a, b, c))
    tl.store(out + 4 * N + i, tl.minimum(a, b))
    tl.store(out + 5 * N + i, tl.maximum(a, b))
    tl.store(out + 6 * N + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 7 * N + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 8 * N + i, tl.abs(a) - b)
    tl.store(out + 9 * N + i, -a)
    tl.store(out + 10 * N + i, tl.where(a < b, a, c))
    tl.store(out + 11 * N + i, tl.where((a == b) | (b >= c), b * c, a))
    tl.store(out + 12 * N + i, a - b * c)
    tl.store(out + 13 * N + i, tl.clamp(a, tl.minimum(b, c), tl.maximum(b, c)))


@pytest.mark.parametrize("dtype", some(BF16, F16, F32, F64), ids=str)
def test_arithmetic(dtype: Any) -> None:
    args = {"x": drawn(dtype), "y": drawn(dtype), "z": drawn(dtype), "out": np.zeros(14 * N, dtype)}
    everywhere(arithmetic, args, {"N": N})


@tilework.jit
def functions(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.exp(a))
    tl.store(out + N + i, tl.exp2(a))
    tl.store(out + 2 * N + i, tl.log(a))
    tl.store(out + 3 * N + i, tl.log2(a))
    tl.store(out + 4 * N + i, tl.sin(a))
    tl.store(out + 5 * N + i, tl.cos(a))
    tl.store(out + 6 * N + i, tl.sqrt(a))
    tl.store(out + 7 * N + i, tl.rsqrt(a))
    tl.store(out + 8 * N + i, tl.erf(a))
    tl.store(out + 9 * N + i, tl.floor(a) + tl.ceil(b))
    tl.store(out + 10 * N + i, tl.sigmoid(a))
    tl.store(out + 11 * N + i, libdevice.tanh(a))
    tl.store(out + 12 * N + i, libdevice.pow(a, b))
    tl.store(out + 13 * N + i, libdevice.copysign(a, b))
    tl.store(out + 14 * N + i, libdevice.atan2(a, b))


@pytest.mark.parametrize("dtype", some(F32, F64), ids=str)
def test_functions(dtype: Any) -> None:
    everywhere(functions, {"x": drawn(dtype), "y": drawn(dtype), "out": np.zeros(15 * N, dtype)}, {"N": N})


@tilework.jit
def precise(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.div_rn(a, b))
    tl.store(out + N + i, tl.sqrt_rn(a))
    tl.store(out + 2 * N + i, tl.fdiv(a, b))
    tl.store(out + 3 * N + i, tl.softmax(a))
    seed = tl.load(y).to(tl.int32, bitcast=True)
    tl.store(out + 4 * N + i, tl.rand(seed, i))
    tl.store(out + 5 * N + i, tl.randn(seed, i))
    tl.store(out + 6 * N + i, a.to(tl.int32, bitcast=True).to(tl.float32))


def test_precise_operations_and_random_numbers() -> None:
    everywhere(precise, {"x": drawn(F32), "y": drawn(F32), "out": np.zeros(7 * N, F32)}, {"N": N})


@tilework.jit
def casts(
    x: Any,
    halves: Any,
    brains: Any,
    singles: Any,
    doubles: Any,
    bytes: Any,
    shorts: Any,
    words: Any,
    longs: Any,
    unsigned: Any,
    N: tl.constexpr,
) -> None:
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(halves + i, a.to(tl.float16))
    tl.store(brains + i, a.to(tl.bfloat16))
    tl.store(singles + i, a.to(tl.float32))
    tl.store(doubles + i, a.to(tl.float64))
    tl.store(bytes + i, a.to(tl.int8))
    tl.store(shorts + i, a.to(tl.int16))
    tl.store(words + i, a.to(tl.int32))
    tl.store(longs + i, a.to(tl.int64))
    tl.store(unsigned + i, a.to(tl.uint32))


@tilework.jit
def float8_casts(x: Any, e4: Any, e5: Any, toward_zero: Any, back: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a = tl.load(x + i)
    tl.store(e4 + i, a.to(tl.float8e4nv))
    tl.store(e5 + i, a.to(tl.float8e5))
    tl.store(toward_zero + i, a.to(tl.float32).to(tl.float8e5, fp_downcast_rounding="rtz"))
    tl.store(back + i, a.to(tl.float8e4nv).to(tl.float32) + a.to(tl.float8e5).to(tl.float32))


@pytest.mark.parametrize("dtype", some(F32, F16, BF16), ids=str)
def test_casts_to_8_bits(dtype: Any) -> None:
    kinds = {"e4": E4M3FN, "e5": E5M2, "toward_zero": E5M2, "back": F32}
    args = {"x": drawn(dtype), **{name: np.zeros(N, kind) for name, kind in kinds.items()}}
    everywhere(float8_casts, args, {"N": N}, places=[place for place in CHOSEN if "sm_80" not in place])


@pytest.mark.parametrize("dtype", some(F32, F16, BF16, F64, "i1", "i4", "i8", "u4"), ids=str)
def test_casts(dtype: Any) -> None:
    kinds = {"halves": F16, "brains": BF16, "singles": F32, "doubles": F64}
    kinds |= {"bytes": "i1", "shorts": "i2", "words": "i4", "longs": "i8", "unsigned": "u4"}
    everywhere(casts, {"x": drawn(dtype), **{name: np.zeros(N, kind) for name, kind in kinds.items()}}, {"N": N})


@tilework.jit
def integers(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b)
    tl.store(out + N + i, a % b)
    tl.store(out + 2 * N + i, a << b)
    tl.store(out + 3 * N + i, a >> b)
    tl.store(out + 4 * N + i, a * b + (a ^ b))
    tl.store(out + 5 * N + i, tl.minimum(a, b) - tl.maximum(a, b))
    tl.store(out + 6 * N + i, tl.abs(a))


@pytest.mark.parametrize("dtype", some("i1", "i2", "i4", "i8", "u1", "u4", "u8"))
def test_integers(dtype: Any) -> None:
    everywhere(integers, {"x": drawn(dtype), "y": drawn(dtype), "out": np.zeros(7 * N, dtype)}, {"N": N})
