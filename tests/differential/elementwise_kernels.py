"""Elementwise operations of every type on numbers of every kind: kernels that must give the same bits everywhere.

row = ROWS["arithmetic float32"]
everywhere(row.kernel, row.arguments(), {"N": N})
"""

from typing import Any, NamedTuple

import numpy as np

import tilework
import tilework.language as tl
from tilework.language.extra import libdevice
from tilework.numerics.rounding import BF16, E4M3FN, E5M2, F16, F32, F64, FORMAT_OF, UNSIGNED

N = 64
Array = np.ndarray[Any, Any]


def random_values(dtype: Any, random: np.random.Generator) -> Array:
    """Random patterns, ordinary numbers, and all that is special."""
    dtype = np.dtype(dtype)
    word = UNSIGNED[dtype.itemsize]
    if dtype.kind in "iu":
        small = random.integers(-9 if dtype.kind == "i" else 0, 9, N).astype(dtype)
        return np.where(random.random(N) < 0.5, small, random.integers(0, 2**63, N).astype(word).view(dtype))
    format = FORMAT_OF[dtype]
    sign, infinity, least = 1 << (format.bits - 1), format.overflow, 1 << format.fraction
    codes = [0, 1, 2, format.largest, infinity, format.nan, infinity | 1, infinity - 1, least, least - 1]
    special = random.choice([*codes, *(code | sign for code in codes)], N).astype(word)
    patterns = random.integers(0, 2**63, N).astype(word)
    ordinary = (random.standard_normal(N) * 2.0 ** random.integers(-6, 6, N)).astype(dtype).view(word)
    return np.choose(random.integers(0, 4, N), [special, patterns, ordinary, ordinary]).astype(word).view(dtype)


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


class Row(NamedTuple):
    """A kernel, the types of its inputs, and those of its outputs with how many blocks each has."""

    kernel: Any
    inputs: tuple[Any, ...]
    outputs: dict[str, tuple[Any, int]]
    needs_fp8: bool = False

    def arguments(self) -> dict[str, Array]:
        random = np.random.default_rng(17)
        given = [random_values(dtype, random) for dtype in self.inputs]
        room = {name: np.zeros(blocks * N, dtype) for name, (dtype, blocks) in self.outputs.items()}
        return dict(zip(self.kernel.arg_names, given)) | room


FLOATS = (BF16, F16, F32, F64)
CAST = {
    "halves": (F16, 1), "brains": (BF16, 1), "singles": (F32, 1), "doubles": (F64, 1),
    "bytes": ("i1", 1), "shorts": ("i2", 1), "words": ("i4", 1), "longs": ("i8", 1), "unsigned": ("u4", 1),
}  # fmt: skip
TINY = {"e4": (E4M3FN, 1), "e5": (E5M2, 1), "toward_zero": (E5M2, 1), "back": (F32, 1)}
ROWS: dict[str, Row] = {
    **{f"arithmetic {dtype}": Row(arithmetic, (dtype,) * 3, {"out": (dtype, 14)}) for dtype in FLOATS},
    **{f"functions {dtype}": Row(functions, (dtype,) * 2, {"out": (dtype, 15)}) for dtype in (F32, F64)},
    "precise operations and random numbers": Row(precise, (F32, F32), {"out": (F32, 7)}),
    **{f"casts {np.dtype(dtype)}": Row(casts, (dtype,), CAST) for dtype in (*FLOATS, "i1", "i4", "i8", "u4")},
    **{f"casts to 8 bits {dtype}": Row(float8_casts, (dtype,), TINY, needs_fp8=True) for dtype in (F32, F16, BF16)},
    **{
        f"integers {np.dtype(dtype)}": Row(integers, (dtype,) * 2, {"out": (dtype, 7)})
        for dtype in ("i1", "i2", "i4", "i8", "u1", "u4", "u8")
    },
}
