"""The casts, executed: every pair of types, both roundings, every bitcast, at the edges of the ranges.

The reference computes with exact fractions: a float format is (mantissa bits, smallest normal exponent, largest value).
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.semantic.arith_kernel import NUMPY
from tests.frontend.semantic.operator_kernels import launch, same
from tests.rows import row
from tilework.errors import CompilationError
from tilework.language.dtypes import dtype

FORMATS = {
    "fp64": (52, -1022, (2 - 2.0**-52) * 2.0**1023),
    "fp32": (23, -126, (2 - 2.0**-23) * 2.0**127),
    "fp16": (10, -14, 65504.0),
    "bf16": (7, -126, (2 - 2.0**-7) * 2.0**127),
    "fp8e5": (2, -14, 57344.0),
    "fp8e4nv": (3, -6, 448.0),
}
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
NAMES = ["int1", *INTEGERS, *FORMATS]
FP8 = ("fp8e5", "fp8e4nv")
LANES = 32


@tilework.jit
def cast(x, z, T: tl.constexpr, ROUNDING: tl.constexpr, BITCAST: tl.constexpr, LANES: tl.constexpr):
    i = tl.arange(0, LANES)
    value = tl.load(x + i).to(T, fp_downcast_rounding=ROUNDING, bitcast=BITCAST)
    tl.static_assert(value.dtype == T)
    tl.store(z + i, value)


def run(x: np.ndarray, source: str, target: str, rounding: str | None = None, bitcast: bool = False) -> np.ndarray:
    out = np.zeros(x.size, NUMPY[target])
    constants = {"T": dtype(target), "ROUNDING": rounding, "BITCAST": bitcast, "LANES": x.size}
    launch(cast, [source, target], [x, out], **constants)
    return out


def samples(name: str) -> np.ndarray:
    """Both ends of the range, the values between two neighbours of narrower types, and random ones."""
    kind = NUMPY[name]
    if name == "int1":
        return np.array([0, 1] * (LANES // 2), kind)
    rng = np.random.default_rng(0)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        ties = [2**k + d for k in (8, 11, 12, 24, 25, 53, 54, 62) for d in (1, 3) if 2**k + d <= info.max]
        fixed = [info.min, info.max, info.min + 1, info.max - 1, 0, 1, *ties]
        return np.array([*fixed, *rng.integers(info.min, info.max, LANES - len(fixed), kind).tolist()], kind)
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, 0.75, -0.75, 1.5, 300.5, -300.5, 70000.0, -70000.0, 3e9, -3e9]
    edges += [1e19, -1e19, 1e30, 65519.0, 65520.0, 448.0, 464.0, 465.0, 57344.0, 61440.0, 2.0**-15, 2.0**-24 * 1.5]
    edges += [1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-23, 1 + 3 * 2.0**-8, 2.0**-10, 1 + 2.0**-8, 1 + 2.0**-4]
    with np.errstate(over="ignore"):
        return np.array(edges).astype(np.float32 if kind.itemsize < 4 else kind).astype(kind)


def rounded(value: float | int, name: str, to_zero: bool = False) -> float:
    """The neighbour of `value` in the format `name`."""
    if value == 0 or value != value:
        return float(value)
    mantissa, smallest, largest = FORMATS[name]
    saturated = largest if name in FP8 or to_zero else math.inf
    if isinstance(value, float) and math.isinf(value):
        return math.copysign(largest if name in FP8 else math.inf, value)
    magnitude = abs(Fraction(value))
    exponent = max(math.floor(math.log2(magnitude)) if magnitude < 2**1000 else 1000, smallest)
    while Fraction(2) ** exponent > magnitude and exponent > smallest:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    quantum = Fraction(2) ** (exponent - mantissa)
    steps = magnitude / quantum
    nearest = (math.floor(steps) if to_zero else round(steps)) * quantum
    return math.copysign(saturated if nearest > Fraction(largest) else float(nearest), value)


def integer(value: float, kind: dtype) -> int:
    """Towards zero; saturated at 16, 32 or 64 bits, of which a narrower type keeps the low ones; NaN is 0."""
    bits = max(16, kind.primitive_bitwidth)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.is_int_signed() else (0, 2**bits - 1)
    if math.isnan(value):
        return 0
    return min(max(math.trunc(value) if math.isfinite(value) else (high if value > 0 else low), low), high)


def reference(x: np.ndarray, source: str, target: str, to_zero: bool = False) -> np.ndarray:
    """The cast of each element, with exact arithmetic."""
    kind, numpy_kind = dtype(target), NUMPY[target]
    numbers: list[Any] = [int(v) for v in x] if dtype(source).is_int() else [float(v) for v in x]
    if target == "int1":
        return np.array([v != 0 for v in numbers])
    if kind.is_int():
        whole = [v if isinstance(v, int) else integer(v, kind) for v in numbers]
        return np.array([v % 2**kind.primitive_bitwidth for v in whole], np.uint64).astype(numpy_kind)
    return np.array([rounded(v, target, to_zero) for v in numbers], np.float64).astype(numpy_kind)


def is_unsupported(source: str, target: str) -> bool:
    a, b = dtype(source), dtype(target)
    return (a.is_fp8() and b.is_int()) or (b.is_fp8() and (a.is_int() or source == "fp64"))


@row("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_every_pair(source: str, target: str) -> None:
    x = samples(source)
    if is_unsupported(source, target):
        with pytest.raises(CompilationError, match=f"cannot cast .* to {target}"):
            run(x, source, target)
    elif source == target:
        assert same(run(x, source, target), x)
    else:
        assert same(run(x, source, target), reference(x, source, target))


@pytest.mark.parametrize(("source", "target"), [("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "fp8e5")])
def test_towards_zero(source: str, target: str) -> None:
    x = samples(source)
    x = x[np.isfinite(x)][:16]
    assert same(run(x, source, target, "rtz"), reference(x, source, target, to_zero=True))
    assert same(run(x, source, target, "rtne"), reference(x, source, target))


@row("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_bitcasts(source: str, target: str) -> None:
    """Every pattern of bits survives; types of another width are refused with both widths named."""
    a, b = dtype(source).primitive_bitwidth, dtype(target).primitive_bitwidth
    x = samples(source)
    if a != b:
        with pytest.raises(CompilationError, match=f"Cannot bitcast data-type of size {a} to data-type of size {b}"):
            run(x, source, target, bitcast=True)
    else:
        bits = f"u{NUMPY[target].itemsize}" if a > 1 else np.bool_
        assert (run(x, source, target, bitcast=True).view(bits) == x.view(bits)).all()


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8e5", "fp8e4nv"])
def test_every_pattern_widens_exactly(name: str) -> None:
    kind = NUMPY[name]
    every = np.arange(2 ** (8 * kind.itemsize), dtype=f"u{kind.itemsize}").view(kind)
    with np.errstate(invalid="ignore"):
        exact = every.astype(np.float64)
    assert same(run(every, name, "fp64"), exact)
    assert same(run(every, name, "fp32"), exact.astype(np.float32))
