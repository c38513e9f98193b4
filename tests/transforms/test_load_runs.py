"""Loads of packed weights: what pointers repeat is loaded once, and results are those of NumPy."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework as tw
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.printer import print_module
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

RUNS = parse_pipeline("tt-load-runs")
K, N, GROUP = 128, 64, 64
TYPES = {"a": "*fp16", "b": "*i32", "scales": "*fp16", "o": "*fp32", "size": "i32", "first": "i32"}


@tw.jit
def packed_dot(
    a, b, scales, o, size, first, BITS: tl.constexpr, IS_CARRIED: tl.constexpr, MASK: tl.constexpr,
    IS_ALONG_K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Weights of some bits, packed along K, in rows or columns of memory, with a mask or without."""
    EACH: tl.constexpr = 32 // BITS
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    row: tl.constexpr = tl.constexpr(1) if IS_ALONG_K else BN
    column: tl.constexpr = 128 // EACH if IS_ALONG_K else tl.constexpr(1)
    pointers = b + (rk // EACH)[:, None] * row + rn[None, :] * column
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(first, size, BK):
        x = tl.load(a + rm[:, None] * size + (start + rk)[None, :])
        at = pointers if IS_CARRIED else b + ((start + rk) // EACH)[:, None] * row + rn[None, :] * column
        if MASK == "columns":
            packed = tl.load(at, mask=rn[None, :] < 50, other=0)
        elif MASK == "groups":
            packed = tl.load(at, mask=(rk // EACH)[:, None] % 3 < 2, other=0)
        elif MASK == "elements":
            packed = tl.load(at, mask=rk[:, None] % 3 < 2, other=0)
        else:
            packed = tl.load(at)
        weights = ((packed >> ((rk % EACH) * BITS)[:, None]) & ((1 << BITS) - 1)) - (1 << BITS - 1)
        scale = tl.load(scales + (start // 64) * BN + rn)
        acc = tl.dot(x, weights.to(x.dtype) * scale[None, :], acc)
        pointers += (BK // EACH) * row
    tl.store(o + rm[:, None] * BN + rn[None, :], acc)


def ttir(kernel: Any, types: dict[str, str], constants: dict[str, Any]) -> str:
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    module = compile_to_ttir(kernel, signature, constants, {}, frontend_options(GPUTarget("cuda", 90, 32), {}))
    run_pipeline(module, [*ttir_pipeline(Target.parse("cuda:90")), *RUNS])
    return print_module(module)


def loaded(text: str, element: str) -> list[str]:
    return re.findall(rf"tt\.load .* : tensor<(\w+)x!tt\.ptr<{element}>", text)


def run(
    tmp_path: Path, bits: int, carried: bool, mask: str, along_k: bool, rows: int, depth: int, **options: int
) -> None:
    each, rng = 32 // bits, np.random.default_rng(bits + rows)
    a = rng.integers(-2, 3, (rows, K)).astype(np.float16)
    words = rng.integers(-(2**31), 2**31, (K // each, N)).astype(np.int32)
    scales = rng.choice([0.25, 0.5, 1.0], (K // GROUP, N)).astype(np.float16)
    out = np.zeros((rows, N), np.float32)
    given = np.ascontiguousarray(words.T) if along_k else words
    with emulator("sm_90", str(tmp_path)):
        packed_dot[(1,)](a, given, scales, out, K, 0, bits, carried, mask, along_k, rows, N, depth, **options)
    k = np.arange(K)
    weights = words[k // each]
    if mask == "columns":
        weights = np.where(np.arange(N) < 50, weights, 0)
    elif mask != "none":
        inside = k % depth
        weights = np.where(((inside // each if mask == "groups" else inside) % 3 < 2)[:, None], weights, 0)
    weights = ((weights >> ((k % each) * bits)[:, None]) & ((1 << bits) - 1)) - (1 << bits - 1)
    expected = a.astype(np.float64) @ (weights * scales[k // GROUP].astype(np.float64))
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("rows", "depth", "stages"), [(16, 64, 3), (64, 32, 2), (32, 64, 1)])
@pytest.mark.parametrize("carried", [False, True])
def test_weights_of_a_few_bits(bits: int, rows: int, depth: int, stages: int, carried: bool, tmp_path: Path) -> None:
    run(tmp_path, bits, carried, "none", False, rows, depth, num_warps=4, num_stages=stages)


@pytest.mark.parametrize("mask", ["columns", "groups", "elements"])
@pytest.mark.parametrize("along_k", [False, True])
def test_masks_and_words_along_k(mask: str, along_k: bool, tmp_path: Path) -> None:
    run(tmp_path, 4, False, mask, along_k, 16, 64, num_warps=4, num_stages=2)


@pytest.mark.parametrize(
    ("mask", "carried", "first", "shape"),
    [("none", False, 0, "8x64"), ("none", True, 0, "8x64"), ("columns", True, 0, "8x64"), ("groups", False, 0, "8x64"),
     ("elements", False, 0, "64x64"), ("none", False, None, "64x64")],
)  # fmt: skip
def test_the_smaller_tile(mask: str, carried: bool, first: int | None, shape: str) -> None:
    """Masks must be equal in runs too, and runs aligned: a loop may start anywhere."""
    constants = {"BITS": 4, "IS_CARRIED": carried, "MASK": mask, "IS_ALONG_K": False, "BM": 16, "BN": N, "BK": 64}
    types = dict(TYPES)
    if first is not None:
        constants["first"] = first
        del types["first"]
    assert loaded(ttir(packed_dot, types, constants), "i32") == [shape]


@tw.jit
def other_uses(x, y, o, USE: tl.constexpr):
    i, j = tl.arange(0, 32), tl.arange(0, 16)
    tile = tl.load(x + (i // 4)[:, None] * 16 + j[None, :], volatile=USE == "volatile")
    if USE == "stored":
        tl.store(o + i[:, None] * 16 + j[None, :], tile)
    if USE == "both":
        tl.store(o + i[:, None] * 16 + j[None, :], tile + 1)
    if USE == "index":
        tile = tl.load(y + tile.to(tl.int32))
    tl.store(o + j, tl.sum(tile, 0))


@pytest.mark.parametrize(
    ("use", "shapes"),
    [("summed", ["8x16"]), ("stored", ["32x16"]), ("both", ["32x16"]), ("volatile", ["32x16"]),
     ("index", ["32x16", "32x16"])],
)  # fmt: skip
def test_only_tiles_that_are_combined(use: str, shapes: list[str]) -> None:
    assert loaded(ttir(other_uses, {"x": "*fp32", "y": "*fp32", "o": "*fp32"}, {"USE": use}), "f32") == shapes


@tw.jit
def two_carried(x, o, n, RUN: tl.constexpr):
    """Pointers and a mask that a loop carries, one computed from the other."""
    i, j = tl.arange(0, 64), tl.arange(0, 16)
    offset = (i // RUN) * 16
    pointers, total = x + offset[:, None] + j[None, :], tl.zeros((16,), tl.float32)
    for _ in range(n):
        total += tl.sum(tl.load(pointers, mask=offset[:, None] < 400, other=1.0), 0)
        pointers += (offset * 0 + 16)[:, None]
        offset += 64
    tl.store(o + j, total)


@pytest.mark.parametrize("run", [1, 2, 16, 64])
@pytest.mark.parametrize("trips", [0, 1, 5])
def test_several_carried_tiles(run: int, trips: int, tmp_path: Path) -> None:
    x = np.arange(2048, dtype=np.float32)
    out, i, j = np.zeros(16, np.float32), np.arange(64) // run * 16, np.arange(16)
    with emulator("sm_90", str(tmp_path)):
        two_carried[(1,)](x, out, trips, run, num_warps=1)
    tiles = [np.where((i + 64 * t < 400)[:, None], x[(i + 16 * t)[:, None] + j], 1) for t in range(trips)]
    np.testing.assert_array_equal(out, sum([tile.sum(0) for tile in tiles], np.zeros(16)))
