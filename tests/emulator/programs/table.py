"""The programs: what each is launched with, and what NumPy says it must give. Needs NumPy and ml_dtypes only, so that a
machine with a GPU can run the same table.

    Program("tree_sum", "reduce", grid=4, block=256, args=lambda draw: [draw.floats(1000), Out(np.float32, 4), 1000],
            expected=lambda x, out, n: {1: ...})

Arrays among the arguments are copied to the device, `Out` is memory filled with zeros, numbers are passed by value as
int32, or as NumPy scalars. `expected` gives, by the index of an argument, the array after the launch:
exactly, or within `tolerance` relative to the largest element. `approximate` programs need not give the same bits on a
GPU.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tests.emulator.programs import formulas

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Out:
    """Memory for a result."""

    dtype: Any
    size: int


class Draw:
    """Inputs, always the same ones for a program."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def floats(self, *shape: int, dtype: Any = np.float32) -> Array:
        return self.random.standard_normal(shape).astype(dtype)

    def integers(self, low: int, high: int, *shape: int, dtype: Any = np.int32) -> Array:
        return self.random.integers(low, high, shape, dtype=dtype)


@dataclass(frozen=True)
class Program:
    name: str
    module: str
    block: Any
    args: Callable[[Draw], list[Any]]
    expected: Callable[..., dict[int, Array]]
    grid: Any = 1
    shared: int = 0
    tolerance: float = 0.0
    approximate: bool = False

    def arguments(self) -> list[Any]:
        return self.args(Draw(sum(map(ord, self.name))))


BF16 = ml_dtypes.bfloat16
F16 = np.float16
SHAPE = np.array(
    [(5, 7, 1.5, (1, 2, 3))],
    dtype=np.dtype([("rows", "i4"), ("columns", "i4"), ("scale", "f4"), ("flags", "i2", 3)], align=True),
)

PROGRAMS = [
    Program("tree_sum", "reduce", 256, lambda d: [d.floats(1000), Out(np.float32, 4), 1000], formulas.tree_sum, grid=4),
    Program("shuffle_sum", "reduce", 128, lambda d: [d.floats(1500), Out(np.float32, 2), 1500], formulas.shuffle_sum,
            grid=2),
    Program("integer_redux", "reduce", 64, lambda d: [d.integers(-1000, 1000, 64), Out(np.int32, 8)],
            formulas.integer_redux),
    Program(
        "dot_f64", "reduce", 128, lambda d: [d.floats(1000, dtype=np.float64), d.floats(1000, dtype=np.float64),
                                             Out(np.float64, 1), 1000],
        lambda x, y, out, n: {2: np.array([x @ y])}, tolerance=1e-12,
    ),
    Program("doubling_scan", "scan", 256, lambda d: [d.integers(-99, 99, 256), Out(np.int32, 256)],
            lambda x, out: {1: np.cumsum(x, dtype=np.int32)}),
    Program("warp_scan", "scan", 64, lambda d: [d.floats(64), Out(np.float32, 64)], formulas.warp_scan),
    Program(
        "tree_scan", "scan", 128, lambda d: [d.integers(0, 2**31, 256, dtype=np.uint32), Out(np.uint32, 256)],
        lambda x, out: {1: np.r_[0, np.cumsum(x, dtype=np.uint32)[:-1]].astype(np.uint32)}, shared=1024,
    ),
    Program(
        "transpose_padded", "transpose", (32, 8), lambda d: [d.floats(50, 70), Out(np.float32, 3500), 50, 70],
        lambda x, out, rows, columns: {1: x.T}, grid=(3, 2),
    ),
    Program("transpose_conflicts", "transpose", (32, 8), lambda d: [d.floats(32, 32), Out(np.float32, 1024)],
            lambda x, out: {1: x.T}),
    Program("transpose_scattered", "transpose", (32, 8), lambda d: [d.floats(32, 32), Out(np.float32, 1024)],
            lambda x, out: {1: x.T}),
    Program("votes", "warps", 64, lambda d: [d.integers(-50, 50, 64), Out(np.uint32, 256)], formulas.votes),
    Program("shuffles", "warps", 64, lambda d: [d.integers(-1000, 1000, 64), Out(np.int32, 384)], formulas.shuffles),
    Program("divergent", "warps", 64, lambda d: [d.integers(1, 60, 64), Out(np.int32, 64)], formulas.divergent),
    Program("exchange", "warps", 64, lambda d: [d.integers(-99, 99, 64), Out(np.int32, 64)], formulas.exchange),
    Program(
        "gemm_f16", "matrices", 128, lambda d: [d.floats(64, 64, dtype=F16), d.floats(64, 64, dtype=F16),
                                                Out(np.float32, 4096), 64],
        lambda a, b, c, n: {2: a.astype(float) @ b.astype(float)}, tolerance=1e-5,
    ),
    Program(
        "gemm_bf16", "matrices", 128, lambda d: [d.floats(64, 64).astype(BF16), d.floats(64, 64).astype(BF16),
                                                 Out(np.float32, 4096), 64],
        lambda a, b, c, n: {2: a.astype(float) @ b.astype(float)}, tolerance=1e-5,
    ),
    Program(
        "gemm_s8", "matrices", 32, lambda d: [d.integers(-128, 128, 16, 64, dtype=np.int8),
                                              d.integers(-128, 128, 8, 64, dtype=np.int8), Out(np.int32, 128), 64],
        lambda a, b, c, n: {2: a.astype(np.int32) @ b.astype(np.int32).T},
    ),
    Program(
        "gemm_tf32", "matrices", 32, lambda d: [d.floats(16, 32), d.floats(8, 32), Out(np.float32, 128), 32],
        lambda a, b, c, n: {2: a.astype(float) @ b.astype(float).T}, tolerance=2e-3,
    ),
    Program(
        "gemm_f64", "matrices", 32, lambda d: [d.floats(8, 16, dtype=np.float64), d.floats(8, 16, dtype=np.float64),
                                               Out(np.float64, 64), 16],
        lambda a, b, c, n: {2: a @ b.T}, tolerance=1e-14,
    ),
    Program(
        "wgmma_f16", "warpgroup", 128, lambda d: [d.floats(64, 64, dtype=F16), d.floats(64, 64, dtype=F16),
                                                  Out(np.float32, 4096)],
        lambda a, b, c: {2: a.astype(float) @ b.astype(float).T}, tolerance=1e-5,
    ),
    Program("ring", "warpgroup", 128, lambda d: [d.floats(7 * 96), Out(np.float32, 7 * 96), 7],
            lambda x, out, n: {1: 2 * x}),
    Program(
        "bulk_out", "warpgroup", 128, lambda d: [Out(np.float32, 640), 5],
        lambda out, n: {0: (np.arange(5)[:, None] * 1000 + np.arange(128)).astype(np.float32)},
    ),
    Program("own_copies", "pipeline", 64, lambda d: [d.floats(5 * 256), Out(np.float32, 5 * 256), 5],
            formulas.own_copies),
    Program(
        "shared_copies", "pipeline", 128, lambda d: [d.floats(4 * 128), Out(np.float32, 4 * 128), 4],
        lambda x, out, n: {1: x.reshape(4, 128)[:, ::-1]},
    ),
    Program(
        "zero_fill", "pipeline", 32, lambda d: [d.floats(20 * 4), Out(np.float32, 128), 20],
        lambda x, out, n: {1: np.r_[x, np.zeros(48, np.float32)]},
    ),
    Program(
        "producer_consumer", "barriers", 128, lambda d: [d.integers(0, 100, 320), Out(np.int32, 320), 5],
        lambda x, out, n: {1: 2 * (x.reshape(5, 64)[:, ::-1] + 1)},
    ),
    Program("counting", "barriers", 128, lambda d: [d.integers(1, 9, 128), Out(np.int32, 128)], formulas.counting),
    Program(
        "last_block", "barriers", 64, lambda d: [d.integers(0, 100, 8 * 64).astype(np.float32), Out(np.float32, 8),
                                                 Out(np.float32, 1)],
        lambda x, parts, out: {1: x.reshape(8, 64).sum(1), 2: np.array([x.sum()])}, grid=8,
    ),
    Program(
        "histogram", "atomics", 128, lambda d: [d.integers(0, 256, 3000, dtype=np.uint8), Out(np.uint32, 64), 3000],
        lambda x, out, n: {1: np.bincount(x % 64, minlength=64).astype(np.uint32)}, grid=3,
    ),
    Program(
        "all_kinds", "atomics", 64, lambda d: [d.integers(-5000, 5000, 128), Out(np.int32, 7), Out(np.uint64, 1),
                                               Out(np.float32, 1)],
        formulas.all_kinds, grid=2,
    ),
    Program(
        "compare_and_swap", "atomics", 96, lambda d: [np.abs(d.floats(96)), Out(np.float32, 1)],
        lambda x, most: {1: np.array([x.max()])},
    ),
    Program(
        "half_math", "halves", 64, lambda d: [d.floats(64, dtype=F16), d.floats(64, dtype=F16), Out(F16, 640), 64],
        formulas.half_math,
    ),
    Program(
        "half_pairs", "halves", 32, lambda d: [d.floats(64, dtype=F16), d.floats(64, dtype=F16), Out(F16, 256), 32],
        formulas.half_pairs,
    ),
    Program(
        "bfloat_math", "halves", 64, lambda d: [d.floats(64).astype(BF16), d.floats(64).astype(BF16), Out(BF16, 320),
                                                64], formulas.bfloat_math,
    ),
    Program("functions", "calls", 64, lambda d: [d.floats(64), Out(np.float32, 64), SHAPE], formulas.functions,
            tolerance=1e-6),
    Program("choose", "calls", 64, lambda d: [d.integers(0, 10, 64), Out(np.int32, 64)], formulas.choose),
    Program("sort_each", "calls", 32, lambda d: [d.integers(-99, 99, 256), Out(np.int32, 256)], formulas.sort_each),
    Program("pointers", "calls", 48, lambda d: [d.integers(-99, 99, 48), Out(np.int32, 48)], formulas.pointers),
    Program("wide_division", "integers", 64, lambda d: [*formulas.long_pairs(d, 64), Out(np.int64, 384), 64],
            formulas.wide_division),
    Program( "bits", "integers", 64, lambda d: [d.integers(0, 2**32, 64, dtype=np.uint32),
                                                d.integers(0, 2**32, 64, dtype=np.uint32), Out(np.uint32, 640), 64],
                                                formulas.bits, ),
    Program( "small", "integers", 64, lambda d: [d.integers(-128, 128, 64, dtype=np.int8),
                                                 d.integers(0, 2**16, 64, dtype=np.uint16), Out(np.int16, 256), 64],
                                                 formulas.small, ),
    Program( "doubles", "reals", 64, lambda d: [d.floats(64, dtype=np.float64), d.floats(64, dtype=np.float64),
                                                Out(np.float64, 512), 64], formulas.doubles, tolerance=1e-15, ),
    Program("singles", "reals", 64, lambda d: [d.floats(64), d.floats(64), Out(np.float32, 512), 64], formulas.singles,
            tolerance=2e-7),
    Program("elementary", "reals", 64, lambda d: [d.floats(64), Out(np.float32, 576), 64], formulas.elementary,
            tolerance=1e-6, approximate=True),
    Program("approximate", "reals", 64, lambda d: [d.floats(64), Out(np.float32, 384), 64], formulas.approximate,
            tolerance=1e-3, approximate=True),
    Program("elementary_f64", "reals", 64, lambda d: [d.floats(64, dtype=np.float64), Out(np.float64, 256), 64],
            formulas.elementary_f64, tolerance=1e-14),
    Program( "softmax", "kernels", 128, lambda d: [d.floats(3, 200), Out(np.float32, 600), 200], formulas.softmax,
            grid=3, tolerance=1e-6, approximate=True, ),
    Program("stencil", "kernels", (16, 8), lambda d: [d.floats(21, 37), Out(np.float32, 21 * 37), 37, 21],
            formulas.stencil, grid=(3, 3), tolerance=1e-6),
    Program( "tiled_product", "kernels", (16, 16),
            lambda d: [d.floats(32, 32), d.floats(32, 32), Out(np.float32, 32 * 32), 32],
            lambda a, b, c, n: {2: a.astype(float) @ b.astype(float)}, grid=(2, 2), tolerance=1e-6, ),
    Program("sort_bitonic", "kernels", 256, lambda d: [d.integers(-9999, 9999, 256)], lambda x: {0: np.sort(x)},
            shared=1024),
]  # fmt: skip
BY_NAME = {program.name: program for program in PROGRAMS}
