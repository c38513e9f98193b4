"""The arithmetic of tensor cores: D = A·B + C, as the H200 computes it.

Floats (f16, bf16, tf32, and fp8 in wgmma). All products of one output and its accumulator are added at once, not one after the other:

    1. products are exact;
    2. every term is shifted to the largest exponent of them all and cut off (towards zero) after `fraction` binary places;
    3. the terms are added exactly, and the sum is cut off (f32 results) or rounded to nearest (f16 results).

The exponent of a product is the sum of its factors' exponents, before it is normalised, so 1.5 · 1.5 = 2.25 has exponent 0; a
denormal number has the exponent of the smallest normal one, and a product with zero has none; the largest is at least -133. Hopper keeps 25 places, and 13 for fp8, whose f32 results have 13 places too:

    >>> one, small, smaller = (Factor.of(np.full((1, 1, 1), x), E4M3) for x in (1, 2.0**-13, 2.0**-14))
    >>> fused(small, one, np.ones((1, 1, 1))).item() == 1 + 2.0**-13, fused(smaller, one, np.ones((1, 1, 1))).item()
    (True, 1.0)

f64 is a chain of fused multiply-adds in the order of k. Integers are exact, and wrap around or saturate at the end.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.numerics.rounding import E4M3FN as FP8_E4M3
from tilework.numerics.rounding import E5M2 as FP8_E5M2
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.floats import Format

LEAST = 2.0**-133  # the largest exponent is at least this
LARGEST = {np.float32: 2.0**100, np.float64: 2.0**500}  # above all scales that are not for zero products
COLUMNS = 64  # outputs are computed this many columns at a time, to stay in the cache


@dataclass(frozen=True)
class Multiplicand:
    """A type of A and B. `fraction` places are kept of every term; an instruction with a larger k is a chain of steps of k = `depth`."""

    name: str
    bits: int
    least: float  # the smallest normal number
    fraction: int
    depth: int
    compute: Any  # products and scaled terms are exact in it
    short: bool = False  # f32 results are cut to `fraction` places as well


F16 = Multiplicand("f16", 16, 2.0**-14, 25, 16, np.float32)
BF16 = Multiplicand("bf16", 16, 2.0**-126, 25, 16, np.float64)
TF32 = Multiplicand("tf32", 32, 2.0**-126, 25, 8, np.float64)
E4M3 = Multiplicand("e4m3", 8, 2.0**-6, 13, 32, np.float32, short=True)
E5M2 = Multiplicand("e5m2", 8, 2.0**-14, 13, 32, np.float32, short=True)
FLOATS = {kind.name: kind for kind in (F16, BF16, TF32, E4M3, E5M2)}
FAMILIES = ({"f16"}, {"bf16"}, {"tf32"}, {"f64"}, {"e4m3", "e5m2"}, {"s8", "u8"}, {"s4", "u4"}, {"b1"})
RESULTS = {"f16": ("f32", "f16"), "e4m3": ("f32", "f16"), "e5m2": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)}  # fmt: skip
INTEGERS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}

BYTES = np.arange(256, dtype=np.uint8)
FP8 = {
    "e4m3": BYTES.view(FP8_E4M3).astype(np.float32),
    "e5m2": BYTES.view(FP8_E5M2).astype(np.float32),
}


def are_multiplied(a: str, b: str) -> bool:
    """Whether an instruction takes A and B of these types."""
    return any({a, b} <= family for family in FAMILIES)


def results(a: str) -> tuple[str, ...]:
    """The types that C and D may have."""
    return RESULTS.get(a, ("s32",))


def bits_of(type: str) -> int:
    """How wide an element of A or B is."""
    return FLOATS[type].bits if type in FLOATS else {"f64": 64, **INTEGERS}[type]


def numbers(words: Array, type: str) -> Array:
    """The elements in rows of bytes or words, low bits first, in the type that products are computed in (float64 for integers).

    >>> numbers(np.array([[0x3C004000]], np.uint32), "f16")
    array([[2., 1.]], dtype=float32)
    """
    raw = np.ascontiguousarray(words)
    match type:
        case "f16":
            with np.errstate(invalid="ignore"):  # signalling NaNs
                return raw.view(np.float16).astype(np.float32)
        case "bf16":
            return (raw.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
        case "tf32":  # the low 13 bits are not looked at
            return (raw.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
        case "e4m3" | "e5m2":
            return FP8[type][raw.view(np.uint8)]
        case "f64":
            return raw.view(np.float64)
        case "s8" | "u8":
            return raw.view(np.int8 if type == "s8" else np.uint8).astype(np.float64)
        case "s4" | "u4":
            bytes = raw.view(np.uint8)
            nibbles = (
                np.stack([bytes & np.uint8(15), bytes >> np.uint8(4)], axis=-1)
                .reshape(*bytes.shape[:-1], -1)
                .astype(np.float64)
            )
            return np.where(nibbles >= 8, nibbles - 16, nibbles) if type == "s4" else nibbles
        case "b1":
            return np.unpackbits(raw.view(np.uint8), axis=-1, bitorder="little").astype(np.float64)
    raise KeyError(type)


def powers_of_two(values: Array, least: float) -> Array:
    """The power of two that the hardware takes as the size of each number: at least `least`, zero for zero, infinite for NaN too."""
    bits, mask = (np.uint32, 0x7F800000) if values.dtype == np.float32 else (np.uint64, 0x7FF0_0000_0000_0000)
    found = (values.view(bits) & bits(mask)).view(values.dtype)
    if found.min() < least:
        found = np.maximum(found, values.dtype.type(least))
        found *= values != 0
    return found


@dataclass(frozen=True, eq=False)
class Factor:
    """A, or the transpose of B, ready to be multiplied. k comes first, so that NumPy adds long rows: (k, any, rows)."""

    kind: Multiplicand
    values: Array
    sizes: Array

    @classmethod
    def of(cls, matrix: Array, kind: Multiplicand) -> "Factor":
        """From (any, rows, k)."""
        values = np.ascontiguousarray(matrix.transpose(2, 0, 1), kind.compute)
        return cls(kind, values, powers_of_two(values, kind.least))

    def part(self, start: int) -> "Factor":
        if start == 0 and len(self.values) <= self.kind.depth:
            return self
        here = slice(start, start + self.kind.depth)
        return Factor(self.kind, self.values[here], self.sizes[here])


def fused(a: Factor, b: Factor, c: Array, result: str = "f32") -> Array:
    """C + A·B, (any, M, N), in steps of k; `result` is the type of C and D, "f32" or "f16"."""
    if b.values.shape[2] < a.values.shape[2]:  # NumPy is faster where the last dimension is the longer one
        return fused(b, a, c.swapaxes(1, 2), result).swapaxes(1, 2)
    found = c
    for start in range(0, len(a.values), a.kind.depth):
        found = step(a.part(start), b.part(start), np.ascontiguousarray(found, np.float64), result)
    return found


def step(a: Factor, b: Factor, c: Array, result: str) -> Array:
    """One sum."""
    kind = a.kind
    with np.errstate(all="ignore"):
        size_c = np.maximum(powers_of_two(c, 2.0**-14 if result == "f16" else 2.0**-126), LEAST)
        found = np.empty(c.shape, np.float64)
        for start in range(0, c.shape[2], COLUMNS):
            part = slice(start, start + COLUMNS)
            terms = np.empty((len(a.values), *c[..., part].shape), kind.compute)
            np.multiply(a.sizes[..., None], b.sizes[:, :, None, part], out=terms)
            top = np.maximum(terms.max(axis=0), size_c[..., part])
            scale = 2.0**kind.fraction / top
            np.multiply(a.values[..., None], b.values[:, :, None, part], out=terms)
            terms *= np.minimum(scale, LARGEST[kind.compute]).astype(kind.compute)
            sums = terms.astype(np.int32).sum(axis=0, dtype=np.int32) + np.trunc(c[..., part] * scale)
            sums *= top
            np.multiply(sums, 2.0**-kind.fraction, out=found[..., part])
            if not np.isfinite(top).all():  # inf · 0 is NaN in `top`
                plain = (a.values[..., None] * b.values[:, :, None, part]).sum(axis=0) + c[..., part]
                np.copyto(found[..., part], plain, where=~np.isfinite(top))
        return finish(found, kind, result)


def finish(sums: Array, kind: Multiplicand, result: str) -> Array:
    """Sums in the type of the result: f16 to nearest, f32 cut off."""
    if result == "f16":
        found = sums.astype(np.float16) + np.float16(0)  # a zero is positive
        return np.where(np.isnan(found), np.uint16(0x7FFF).view(np.float16), found)
    bits = 52 - (kind.fraction if kind.short else 23)
    cut = (sums.view(np.uint64) & np.uint64(-(1 << bits) & 0xFFFF_FFFF_FFFF_FFFF)).view(np.float64)
    found = cut.astype(np.float32)
    size = np.abs(found)
    if not float(size.min()) >= 2.0**-126:  # denormals may have been rounded up, a zero is positive, NaN has one form
        found = np.where((size > np.abs(cut)) & (size < 1), np.nextafter(found, np.float32(0)), found) + np.float32(0)
        found = np.where(np.isnan(sums), np.uint32(0x7FFFFFFF).view(np.float32), found)
    return found


def chained(a: Array, b: Array, c: Array) -> Array:
    """f64: one fused multiply-add after the other."""
    double = Format.of("f64")
    with np.errstate(all="ignore"):
        for k in range(a.shape[-1]):
            left = np.broadcast_to(a[..., :, k, None], c.shape)
            right = np.broadcast_to(b[..., None, k, :], c.shape)
            c = double.canonical(double.fma(left, right, c), (left, right, c))
    return c


def integral(a: Array, b: Array, c: Array, saturate: bool = False, bitwise: str = "") -> Array:
    """s32: exact, then wrapped or saturated. `bitwise` is "xor" or "and" for single bits, of which the ones are counted."""
    products = np.matmul(a, b)
    if bitwise == "xor":
        products = a.sum(axis=-1)[..., :, None] + b.sum(axis=-2)[..., None, :] - 2 * products
    found = products.astype(np.int64) + c
    if saturate:
        found = np.clip(found, -(1 << 31), (1 << 31) - 1)
    return found.astype(np.uint64).astype(np.uint32).view(np.int32)
