"""Loops of dots that are split where a mask becomes true for whole tiles: the same bits, fewer masks."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework as tw
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.module_facts import MOST_TRIPS
from tilework.ir.printer import print_module
from tilework.oracles.evaluator import evaluate
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

SPLIT = parse_pipeline("tt-split-masked-loops")
TYPES = {"a": "*fp16", "b": "*fp16", "o": "*fp32", "first": "i32", "last": "i32", "at": "i32", "size": "i32"}


@tw.jit
def masked(a, b, o, first, last, at, size, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr, MASK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 16)
    rows = at + tl.program_id(0) * BM + rm
    x = tl.load(a + rm[:, None] * 16 + rk[None, :])
    y = tl.load(b + rk[:, None] * BN + rn[None, :])
    columns = first + rn
    total = tl.zeros((BM, BN), tl.float32)
    for n in range(first, last, STEP):
        s = tl.dot(x, y)
        if MASK == "causal":
            s = tl.where(rows[:, None] >= (n + rn)[None, :], s, -100.0)
        elif MASK == "both":
            s = tl.where((rows[:, None] >= n + rn[None, :]) & ((n + rn)[None, :] < size), s, -100.0)
        elif MASK == "later":
            s = tl.where(rows[:, None] <= (n + rn)[None, :], s, -100.0)
        elif MASK == "window":
            s = tl.where((rows[:, None] >= (n + rn)[None, :]) & (rows[:, None] - (n + rn)[None, :] < 24), s, -100.0)
        elif MASK == "carried":
            s = tl.where(rows[:, None] > columns[None, :], s, -100.0)
            columns += STEP
        elif MASK == "scaled":
            s = tl.where(rows[:, None] > (n * 4 + rn)[None, :], s, -100.0)
        elif MASK == "remainder":
            s = tl.where(rows[:, None] > (n + rn)[None, :] % 7, s, -100.0)
        elif MASK == "wide":
            s = tl.where(rows.to(tl.int64)[:, None] > (n + rn)[None, :], s, -100.0)
        total = total * 0.5 + s
    tl.store(o + tl.program_id(0) * BM * BN + rm[:, None] * BN + rn[None, :], total)


def ttir(mask: str, step: int, kernel: Any = masked) -> Any:
    constants = {"BM": 16, "BN": 16, "STEP": step, "MASK": mask}
    signature = {**TYPES, **dict.fromkeys(constants, "constexpr")}
    module = compile_to_ttir(kernel, signature, constants, {}, frontend_options(GPUTarget("cuda", 90, 32), {}))
    run_pipeline(module, ttir_pipeline(Target.parse("cuda:90")))
    return module


def values(module: Any, *numbers: int, programs: int = 2) -> Any:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (16, 16)).astype(np.float16) for _ in range(2))
    out = np.zeros((programs, 16, 16), np.float32)
    evaluate(module, None, [a, b, out, *numbers], (programs,))
    return out


def loops(module: Any) -> int:
    return print_module(module).count("scf.for")


EXTREME = 2**31 - 40
BOUNDS = [  # first, last, the first row, size
    (0, 64, 0, 50), (0, 70, 33, 70), (5, 61, 20, 7), (0, 0, 0, 0), (48, 16, 0, 9), (-40, 30, -20, 3),
    (0, 48, -100, 100), (0, 48, 100, -5), (0, 48, 2**31 - 20, 40), (EXTREME, 2**31 - 1, EXTREME + 8, EXTREME),
    (0, 48, -(2**31), 2**31 - 1),
]  # fmt: skip


@pytest.mark.parametrize("step", [16, 8, 32])
@pytest.mark.parametrize("mask", ["causal", "both", "later", "window", "carried", "scaled"])
def test_bits(mask: str, step: int) -> None:
    """Also where a sum wraps around: then the masks remain."""
    before, after = ttir(mask, step), ttir(mask, step)
    run_pipeline(after, SPLIT)
    assert (loops(before), loops(after)) == (1, 2)
    rng = np.random.default_rng(step)
    random_bounds = [tuple(int(n) for n in rng.integers(-80, 80, 4)) for _ in range(6)]
    for numbers in [*BOUNDS, *random_bounds]:
        if numbers[0] == EXTREME and step == 32:
            continue  # the counter itself would wrap around
        np.testing.assert_array_equal(values(after, *numbers), values(before, *numbers), str(numbers))


@pytest.mark.parametrize("mask", ["remainder", "wide", "none"])
def test_a_mask_that_is_not_linear_in_the_counter_stays(mask: str) -> None:
    module = ttir(mask, 16)
    run_pipeline(module, SPLIT)
    assert loops(module) == 1


@pytest.mark.parametrize(("mask", "first", "is_split"), [("row", 0, False), ("row", -1, True), ("last", 0, False)])
def test_a_loop_whose_iterations_all_need_the_mask_stays(mask: str, first: int, is_split: bool) -> None:
    """A program that splits its loop itself has one for the tiles of the diagonal."""

    @tw.jit
    def on_the_diagonal(
        a, b, o, first, last, at, size, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr, MASK: tl.constexpr
    ):
        rm, rk = tl.arange(0, BM), tl.arange(0, 16)
        row = tl.program_id(0) * BM
        x, y = tl.load(a + rm[:, None] * 16 + rk[None, :]), tl.load(b + rk[:, None] * BN + rm[None, :])
        total = tl.zeros((BM, BN), tl.float32)
        for n in range(row + STEP * BN, row + BM, BN):
            columns = (n + rm)[None, :]
            seen = (row + rm)[:, None] >= columns if MASK == "row" else (row + rm)[:, None] + BM <= columns
            total += tl.where(seen, tl.dot(x, y), 0.0)
        tl.store(o + rm[:, None] * BN + rm[None, :], total)

    module = ttir(mask, first, on_the_diagonal)
    run_pipeline(module, SPLIT)
    assert loops(module) == (2 if is_split else 1)


def test_only_one_of_two_loops_has_the_mask() -> None:
    module = ttir("causal", 16)
    run_pipeline(module, SPLIT)
    first, second = print_module(module).split("scf.for")[1:]
    assert ("arith.select" in first, "arith.select" in second) == (False, True)


@tw.jit
def diagonal(
    a, b, o, first, last, at, size, BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr, MASK: tl.constexpr
):
    tile = tl.program_id(0)
    rows, rn, rk = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, 16)
    x = tl.load(a + (rows % 16)[:, None] * 16 + rk[None, :])
    y = tl.load(b + rk[:, None] * BN + rn[None, :])
    total = tl.zeros((BM, BN), tl.float32)
    end = (tile + 1) * BM if MASK == "causal" else tl.minimum((tile + 1) * BM, size)
    for n in range(tile * BM, size, STEP) if MASK == "later" else range(0, end, STEP):
        if MASK == "later":
            s = tl.where(rows[:, None] <= (n + rn)[None, :], tl.dot(x, y), 0)
        elif MASK == "both":
            s = tl.where((rows[:, None] >= (n + rn)[None, :]) & ((n + rn)[None, :] < size), tl.dot(x, y), 0)
        else:
            s = tl.where(rows[:, None] >= (n + rn)[None, :], tl.dot(x, y), 0)
        total = total * 0.5 + s
    tl.store(o + rows[:, None] * BN + rn[None, :], total)


@pytest.mark.parametrize(
    ("mask", "step", "trips"), [("causal", 16, 1), ("causal", 8, 3), ("both", 16, 1), ("later", 16, 1)]
)
def test_iterations_that_need_the_mask_are_counted(mask: str, step: int, trips: int) -> None:
    before, after = ttir(mask, step, diagonal), ttir(mask, step, diagonal)
    run_pipeline(after, SPLIT)
    assert re.findall(rf'"{MOST_TRIPS}" = (\d+)', print_module(after)) == [str(trips)]
    for size in (0, 1, 16, 40, 48):
        np.testing.assert_array_equal(
            values(after, 0, 0, 0, size, programs=3), values(before, 0, 0, 0, size, programs=3)
        )


@tw.jit
def sequences(q, k, v, o, starts, scale, stride, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    start = tl.load(starts + tl.program_id(1))
    length = tl.load(starts + tl.program_id(1) + 1) - start
    rm, rn, rd = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    x = tl.load(q + (start + rm)[:, None] * stride + rd[None, :], mask=rm[:, None] < length, other=0.0)
    top = tl.full((BM,), -1.0e5, tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, tl.minimum(length, (tl.program_id(0) + 1) * BM), BN):
        at = n + rn
        y = tl.load(k + (start + at)[None, :] * stride + rd[:, None], mask=at[None, :] < length, other=0.0)
        s = tl.dot(x, y) * scale
        s = tl.where((rm[:, None] >= at[None, :]) & (at[None, :] < length), s, -1.0e6)
        high = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - high[:, None])
        factor = tl.exp2(top - high)
        total = total * factor + tl.sum(p, 1)
        z = tl.load(v + (start + at)[:, None] * stride + rd[None, :], mask=at[:, None] < length, other=0.0)
        acc = tl.dot(p.to(tl.float16), z, acc * factor[:, None])
        top = high
    out = o + (start + rm)[:, None] * stride + rd[None, :]
    tl.store(out, acc / total[:, None], mask=rm[:, None] < length)


def test_loads_lose_their_masks_with_the_scores() -> None:
    types = {"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp32", "starts": "*i32", "scale": "fp32", "stride": "i32"}
    constants = {"BM": 64, "BN": 32, "D": 16}
    options = frontend_options(GPUTarget("cuda", 90, 32), {})
    signature = {**types, **dict.fromkeys(constants, "constexpr")}
    module = compile_to_ttir(sequences, signature, constants, {}, options)
    run_pipeline(module, [*ttir_pipeline(Target.parse("cuda:90")), *SPLIT])
    first, second = print_module(module).split("scf.for")[1:]
    masked = [
        [len(re.findall("%", load)) > 1 for load in re.findall(r"tt\.load ([^:]*) :", text)] for text in (first, second)
    ]
    assert masked == [[False, False], [True, True]]


@pytest.mark.parametrize(("columns", "warps"), [(64, 4), (32, 8)])
def test_causal_attention_of_odd_lengths(columns: int, warps: int, tmp_path: Path) -> None:
    lengths = (200, 1, 128, 0, 77)
    starts = np.cumsum((0, *lengths)).astype(np.int32)
    rng = np.random.default_rng(1)
    q, k, v = ((rng.standard_normal((sum(lengths), 32)) / 2).astype(np.float16) for _ in range(3))
    out = np.zeros(q.shape, np.float32)
    with emulator("sm_90", str(tmp_path)):
        sequences[2, len(lengths)](
            q, k, v, out, starts, 0.25, 32, BM=128, BN=columns, D=32, num_warps=warps, num_stages=2
        )
    for begin, end in pairwise(starts):
        scores = q[begin:end].astype("f8") @ k[begin:end].astype("f8").T * 0.25
        p = np.where(np.tri(end - begin, dtype=bool), np.exp2(scores), 0)
        np.testing.assert_allclose(out[begin:end], p / p.sum(1, keepdims=True) @ v[begin:end], atol=3e-3)
