"""Kernels that ask for warp specialisation, and how to run them in the evaluator.

case = Case("descriptors", (128, 64, 32), warps=4, stages=3, size=(136, 64, 160))
run(case, when="requested")          the result, by NumPy what it should be, and the TTGIR
"""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilework as tw
import tilework.language as tl
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.oracles.evaluator import evaluate
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

Array = np.ndarray[Any, Any]
HOPPER = Target.parse("cuda:90")


@tw.jit
def blocks(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    om, on = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=True, num_stages=STAGES):
        acc = tl.dot(a.load([om, k * BK]), b.load([on, k * BK]).T, acc)
    c.store([om, on], acc.to(c.dtype))


@tw.jit
def descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    da = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    dc = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    blocks(da, db, dc, M, N, K, BM, BN, BK, STAGES)


@tw.jit
def tiles(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, FLAT: tl.constexpr
):
    num_n = tl.cdiv(N, BN)
    step = tl.num_programs(0)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(M, BM) * num_n, step, flatten=FLAT, warp_specialize=True, num_stages=STAGES
    ):
        om, on = (tile // num_n) * BM, (tile % num_n) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([om, k * BK]), b.load([on, k * BK]).T, acc)
        c.store([om, on], acc.to(c.dtype))


@tw.jit
def pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr):
    rm, rn = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * K + rk[None, :]
    pb = b + rn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=True, num_stages=STAGES):
        left = K - k * BK
        x = tl.load(pa + k * BK, mask=(rm[:, None] < M) & (rk[None, :] < left), other=0.0)
        y = tl.load(pb + k * BK, mask=(rn[None, :] < N) & (rk[:, None] < left), other=0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@tw.jit
def attend(x, k, v, top, total, acc, begin, end, scale, BN: tl.constexpr, STAGES: tl.constexpr):
    for n in tl.range(begin, end, BN, warp_specialize=True, num_stages=STAGES):
        s = tl.dot(x, k.load([n, 0]).T) * scale
        higher = tl.maximum(top, tl.max(s, 1))
        p = tl.math.exp2(s - higher[:, None])
        alpha = tl.math.exp2(top - higher)
        total = total * alpha + tl.sum(p, 1)
        y = v.load([n, 0])
        acc = tl.dot(p.to(tl.float16), y, acc * alpha[:, None])
        top = higher
    return top, total, acc


@tw.jit
def attention(
    q,
    k,
    v,
    o,
    N,
    scale,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
    LOOPS: tl.constexpr = 1,  # pyright: ignore[reportArgumentType]
):
    om = tl.program_id(0) * BM
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    x = q.load([om, 0])
    middle = N if LOOPS == 1 else N // (2 * BN) * BN
    top, total, acc = attend(x, k, v, top, total, acc, 0, middle, scale, BN, STAGES)
    if LOOPS == 2:
        top, total, acc = attend(x, k, v, top, total, acc, middle, N, scale, BN, STAGES)
    o.store([om, 0], (acc / total[:, None]).to(o.dtype))


KERNELS = {"blocks": blocks, "descriptors": descriptors, "tiles": tiles, "flat tiles": tiles, "pointers": pointers}


@dataclass(frozen=True)
class Case:
    """A product: which kernel, with which tiles, for arrays of which size."""

    kernel: str
    tile: tuple[int, int, int]
    warps: int
    stages: int
    size: tuple[int, int, int]


def ttgir(kernel: Any, types: dict[str, str], constants: dict[str, Any], warps: int, when: str) -> Any:
    """The finished TTGIR of a kernel; all pointers and numbers are multiples of 16."""
    known = [name for name, type in types.items() if type.startswith("*") or type == "i32"]
    attrs = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in known}
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    module = compile_to_ttir(kernel, signature, constants, attrs, frontend_options(GPUTarget("cuda", 90, 32), {}))
    run_pipeline(module, ttir_pipeline(HOPPER))
    passes = [re.sub(r"(when|partitions)=\w+", rf"\1={when}", item) for item in ttgir_pipeline(HOPPER, warps, 3, 1)]
    run_pipeline(module, [one for item in passes for one in parse_pipeline(item)])
    verify(module)
    return module


def block(shape: tuple[int, int]) -> str:
    return f"tensordesc<fp16[{shape[0]}, {shape[1]}]>"


def host(array: Array) -> Any:
    return array, array.shape, (array.shape[1], 1)


def compiled(case: Case, when: str = "requested") -> Any:
    (bm, bn, bk), kernel = case.tile, KERNELS[case.kernel]
    types = dict.fromkeys("abc", "*fp16")
    if has_descriptors(case):
        types = {"a": block((bm, bk)), "b": block((bn, bk)), "c": block((bm, bn))}
    constants: dict[str, Any] = {"BM": bm, "BN": bn, "BK": bk, "STAGES": case.stages}
    if kernel is tiles:
        constants["FLAT"] = case.kernel == "flat tiles"
    return ttgir(kernel, {**types, **dict.fromkeys("MNK", "i32")}, constants, case.warps, when)


def has_descriptors(case: Case) -> bool:
    return case.kernel in ("blocks", "tiles", "flat tiles")


def run(case: Case, module: Any) -> None:
    """Run the module on small numbers, whose products are exact, and compare."""
    m, n, k = case.size
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    c = np.full((m, n), 7, np.float16)
    arrays = [host(array) if has_descriptors(case) else array for array in (a, b, c)]
    grid = (2,) if "tiles" in case.kernel else (-(-m // case.tile[0]), -(-n // case.tile[1]))
    evaluate(module, None, [*arrays, m, n, k], grid, fences=True)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T, str(case))


def partitions(module: Any) -> int:
    return print_module(module).count("num_warps(")
