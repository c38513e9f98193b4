"""Tensor cores: D = A·B + C as the H200 computes it, and the layouts of the matrices in registers.

Floats (f16, bf16, tf32, and fp8 in wgmma). All products of one output and its accumulator are added at once:

    1. products are exact;
    2. every term is shifted to the largest exponent of them all and truncated after `fraction` binary digits;
    3. the terms are added exactly, and the sum is truncated (f32 results) or rounded to nearest (f16 results).

The exponent of a product is the sum of its factors' exponents, before it is normalised, so 1.5 · 1.5 = 2.25 has
exponent 0; a denormal number has the exponent of the smallest normal one, and a product with zero has none; the largest
exponent is at least -133. Hopper keeps 25 binary digits, and 13 for fp8, whose f32 results have 13 digits too:

    >>> one, small, smaller = (Factor.of(np.full((1, 1, 1), x), E4M3) for x in (1, 2.0**-13, 2.0**-14))
    >>> fused(small, one, np.ones((1, 1, 1))).item() == 1 + 2.0**-13, fused(smaller, one, np.ones((1, 1, 1))).item()
    (True, 1.0)

f64 is a chain of fused multiply-adds in the order of k. Integers are exact, and wrap around or saturate at the end.

The layout of a fragment is given by bases, as in linear layouts: `elements` are the (row, column) that each bit of the
index within a thread's fragment adds, `lanes` those that each bit of the lane adds. An accumulator of 16 x 8:

    >>> layout = Fragment((16, 8), ((0, 1), (8, 0)), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)))
    >>> layout.coordinates[:, 5].tolist()                 # the four elements of lane 5
    [[1, 2], [1, 3], [9, 2], [9, 3]]

"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilework.numerics.rounding import E4M3FN as FP8_E4M3
from tilework.numerics.rounding import E5M2 as FP8_E5M2
from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.rules.floating import Format
from tilework.process.forks import cached_property

LEAST = 2.0**-133  # lower bound of the largest exponent
LARGEST = {np.float32: 2.0**100, np.float64: 2.0**500}  # above all scales of non-zero products
COLUMNS = 64  # outputs are computed this many columns at a time, to fit the cache


@dataclass(frozen=True)
class Multiplicand:
    """A type of A and B. `fraction` binary digits are kept of every term; an instruction with a larger k is a chain of
    steps of k = `depth`."""

    name: str
    bits: int
    least: float  # the smallest normal number
    fraction: int
    depth: int
    compute: Any  # products and scaled terms are exact in it
    short: bool = False  # f32 results are truncated to `fraction` digits as well


F16 = Multiplicand("f16", 16, 2.0**-14, 25, 16, np.float32)
BF16 = Multiplicand("bf16", 16, 2.0**-126, 25, 16, np.float64)
TF32 = Multiplicand("tf32", 32, 2.0**-126, 25, 8, np.float64)
E4M3 = Multiplicand("e4m3", 8, 2.0**-6, 13, 32, np.float32, short=True)
E5M2 = Multiplicand("e5m2", 8, 2.0**-14, 13, 32, np.float32, short=True)
FLOATS = {kind.name: kind for kind in (F16, BF16, TF32, E4M3, E5M2)}
FAMILIES = ({"f16"}, {"bf16"}, {"tf32"}, {"f64"}, {"e4m3", "e5m2"}, {"s8", "u8"}, {"s4", "u4"}, {"b1"})
RESULTS = {
    **dict.fromkeys(("f16", "e4m3", "e5m2"), ("f32", "f16")),
    "bf16": ("f32",),
    "tf32": ("f32",),
    "f64": ("f64",),
}
INTEGERS = {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}

BYTES = np.arange(256, dtype=np.uint8)
FP8 = {
    "e4m3": BYTES.view(FP8_E4M3).astype(np.float32),
    "e5m2": BYTES.view(FP8_E5M2).astype(np.float32),
}


def are_multiplied(a: str, b: str) -> bool:
    """Return True if an instruction takes A and B of these types."""
    return any({a, b} <= family for family in FAMILIES)


def results(a: str) -> tuple[str, ...]:
    """Return the types that C and D may have."""
    return RESULTS.get(a, ("s32",))


def bits_of(type: str) -> int:
    """Return the width of an element of A or B."""
    return FLOATS[type].bits if type in FLOATS else {"f64": 64, **INTEGERS}[type]


def elements_of(packed: Array, type: str) -> Array:
    """Return the elements packed in rows of bytes or registers, low bits first, in the type in which they are
    multiplied (float64 for integers).

    >>> elements_of(np.array([[0x3C004000]], np.uint32), "f16")
    array([[2., 1.]], dtype=float32)
    """
    raw = np.ascontiguousarray(packed)
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
        case _:
            raise KeyError(type)


def powers_of_two(values: Array, least: float) -> Array:
    """Return the power of two that the hardware takes as the magnitude of each number: at least `least`, zero for zero,
    infinite for NaN too."""
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
        """Build from an array (any, rows, k)."""
        values = np.ascontiguousarray(matrix.transpose(2, 0, 1), kind.compute)
        return cls(kind, values, powers_of_two(values, kind.least))

    def part(self, start: int) -> "Factor":
        if start == 0 and len(self.values) <= self.kind.depth:
            return self
        here = slice(start, start + self.kind.depth)
        return Factor(self.kind, self.values[here], self.sizes[here])


def fused(a: Factor, b: Factor, c: Array, result: str = "f32") -> Array:
    """Return C + A·B, (any, M, N), in steps of k; `result` is the type of C and D, "f32" or "f16"."""
    if b.values.shape[2] < a.values.shape[2]:  # NumPy is faster where the last dimension is the longer one
        return fused(b, a, c.swapaxes(1, 2), result).swapaxes(1, 2)
    found = c
    for start in range(0, len(a.values), a.kind.depth):
        found = step(a.part(start), b.part(start), np.ascontiguousarray(found, np.float64), result)
    return found


def step(a: Factor, b: Factor, c: Array, result: str) -> Array:
    """Return one sum."""
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
    """Convert sums to the type of the result: f16 to nearest, f32 truncated."""
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
    """f64: a chain of fused multiply-adds."""
    double = Format.of("f64")
    with np.errstate(all="ignore"):
        for k in range(a.shape[-1]):
            left = np.broadcast_to(a[..., :, k, None], c.shape)
            right = np.broadcast_to(b[..., None, k, :], c.shape)
            c = double.canonical(double.fma(left, right, c), (left, right, c))
    return c


def integral(a: Array, b: Array, c: Array, saturate: bool = False, bitwise: str = "") -> Array:
    """s32: exact, then wrapped or saturated. `bitwise` is "xor" or "and" for single bits, whose ones are counted."""
    products = np.matmul(a, b)
    if bitwise == "xor":
        products = a.sum(axis=-1)[..., :, None] + b.sum(axis=-2)[..., None, :] - 2 * products
    found = products.astype(np.int64) + c
    if saturate:
        found = np.clip(found, -(1 << 31), (1 << 31) - 1)
    return found.astype(np.uint64).astype(np.uint32).view(np.int32)


LANES = 32
Bases = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Fragment:
    """The layout of a matrix in the registers of one warp."""

    shape: tuple[int, int]
    elements: Bases
    lanes: Bases

    @property
    def count(self) -> int:
        """Elements per thread."""
        return 1 << len(self.elements)

    @cached_property
    def coordinates(self) -> Array:
        """(element, lane, 2): row and column."""
        index, lane = np.arange(self.count), np.arange(LANES)
        found = np.zeros((self.count, LANES, 2), np.int64)
        for bit, base in enumerate(self.elements):
            found += (index >> bit & 1)[:, None, None] * np.array(base)
        for bit, base in enumerate(self.lanes):
            found += (lane >> bit & 1)[None, :, None] * np.array(base)
        return found

    @cached_property
    def scatter(self) -> Array:
        """For lane and element, in this order, the row-major index of the matrix element."""
        rows, columns = self.coordinates[..., 0], self.coordinates[..., 1]
        return (rows * self.shape[1] + columns).T.reshape(-1).copy()

    @cached_property
    def gather(self) -> Array:
        """For each matrix element, in row-major order, its index in (lane, element)."""
        return np.argsort(self.scatter)

    def matrix(self, values: Array) -> Array:
        """Convert a fragment (warps, 32, count) to matrices (warps, rows, columns)."""
        return values.reshape(len(values), -1).take(self.gather, axis=1).reshape(-1, *self.shape)

    def fragment(self, matrix: Array) -> Array:
        """Convert matrices (warps, rows, columns) to a fragment (warps, 32, count)."""
        return matrix.reshape(len(matrix), -1).take(self.scatter, axis=1).reshape(-1, LANES, self.count)


def powers(start: int, stop: int) -> list[int]:
    """``powers(2, 16)`` is [2, 4, 8]."""
    found = []
    while start < stop:
        found.append(start)
        start *= 2
    return found


@cache
def operand_a(rows: int, depth: int, bits: int) -> Fragment:
    """The layout of A (rows x k), elements of `bits`; the four lanes of a row hold 32 bits each (64 for f64) side by
    side."""
    packed = max(1, 32 // bits)
    elements = [(0, step) for step in powers(1, packed)] + [(step, 0) for step in powers(8, rows)]
    elements += [(0, step) for step in powers(4 * packed, depth)]
    return Fragment((rows, depth), tuple(elements), ((0, packed), (0, 2 * packed), (1, 0), (2, 0), (4, 0)))


@cache
def operand_b(depth: int, bits: int) -> Fragment:
    """The layout of B (k x 8)."""
    packed = max(1, 32 // bits)
    elements = [(step, 0) for step in powers(1, packed)] + [(step, 0) for step in powers(4 * packed, depth)]
    return Fragment((depth, 8), tuple(elements), ((packed, 0), (2 * packed, 0), (0, 1), (0, 2), (0, 4)))


@cache
def accumulator(rows: int, columns: int = 8) -> Fragment:
    """The layout of C and D (rows x columns): pairs of neighbours, then the row 8 below, then the next 8 columns."""
    elements = [(0, 1)] + [(step, 0) for step in powers(8, rows)] + [(0, step) for step in powers(8, columns)]
    return Fragment((rows, columns), tuple(elements), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)))
