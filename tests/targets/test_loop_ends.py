"""Loops whose bounds are less than a step away from the ends of their type end, on the CPU and in the emulator."""

# pyright: reportMissingParameterType=false

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.compiler import ASTSource, compile
from tilework.target import GPUTarget

LARGEST = 2**63 - 1
BOUNDS = [
    (LARGEST - 10, LARGEST, 8),
    (LARGEST - 3, LARGEST, 1 << 40),
    (-LARGEST - 1, LARGEST, 1 << 62),
    (LARGEST - 100, LARGEST - 3, 7),
    (2**31 - 11, 2**31 - 1, 8),
    (-(2**31), 2**31 - 1, 1 << 30),
    (-(2**31), 3 - 2**31, 2**31 - 1),
    (-(2**31), -(2**31), 4),
    (9, 2, 3),
    (0, 2**31 - 1, 1 << 30),
    (0, LARGEST, 1 << 62),
    (-(2**31), 2**31 - 1, 2**31 - 3),
    (-5, 2**31 - 1, 2**31 - 1),
    (-70, 30, 10),
    (-70, 31, 32),
]


@tilework.jit
def store_numbers(out, low, high, step, MOST: tl.constexpr):
    count = 0
    for i in range(low, high, step):
        count += 1
        if count < MOST:
            tl.store(out + count, i)
    tl.store(out, count)


def numbers(out, low, high, step, MOST: tl.constexpr):
    store_numbers(out, low, high, step, MOST)


def constant_numbers(out, low, high, step: tl.constexpr, MOST: tl.constexpr):
    store_numbers(out, low, high, step, MOST)


def numbers_from_a_constant(out, low: tl.constexpr, high, step, MOST: tl.constexpr):
    store_numbers(out, low, high, step, MOST)


@pytest.mark.parametrize("kernel", [numbers, constant_numbers, numbers_from_a_constant])
@pytest.mark.parametrize("bounds", BOUNDS, ids=[f"{low:#x} to {high:#x} by {step:#x}" for low, high, step in BOUNDS])
@pytest.mark.parametrize("device", ["native", "emulator"])
def test_the_last_step(kernel: Any, bounds: tuple[int, int, int], device: str, tmp_path: Path) -> None:
    wanted, out = list(range(*bounds)), np.zeros(64, np.int64)
    with emulator(cache=str(tmp_path)) if device == "emulator" else nullcontext():
        tilework.jit(kernel)[(1,)](out, *bounds, 60)
    assert out[: 1 + len(wanted)].tolist() == [len(wanted), *wanted]


@tilework.jit
def weighted_sums(x, out, N: tl.constexpr, BLOCK: tl.constexpr):
    """A loop of few iterations, counted by constants: its bodies replace it."""
    total, seen = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.int32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + at, mask=at < N, other=0.0)
        total += tl.where(at < N, value * (1 + start // BLOCK), 0.0)
        seen += (at < N).to(tl.int32)
        tl.store(x + at, -value, mask=at < N)
    tl.store(out + tl.arange(0, BLOCK), total)
    tl.store(out + BLOCK + tl.arange(0, BLOCK), seen.to(tl.float32))


@pytest.mark.parametrize("n", [64, 65, 128, 200, 256, 300])
def test_short_loops(n: int, tmp_path: Path) -> None:
    x, out = np.arange(1, 321, dtype=np.float32), np.zeros(128, np.float32)
    rows = np.where(np.arange(320) < n, x, 0).reshape(5, 64)
    with emulator(cache=str(tmp_path)):
        weighted_sums[(1,)](x, out, N=n, BLOCK=64, num_warps=1)
    assert (out[:64] == (rows * np.arange(1, 6)[:, None]).sum(0)).all()
    assert (out[64:] == (rows > 0).sum(0)).all()
    assert (x == np.arange(1, 321) * np.where(np.arange(320) < n, -1, 1)).all()


@tilework.jit
def row_sums(x, out, rows):
    total = tl.zeros([128], tl.float32)
    for row in range(rows):
        total += tl.load(x + row * 128 + tl.arange(0, 128))
    tl.store(out + tl.arange(0, 128), total)


def test_loops_compare_at_their_end() -> None:
    """ptxas unrolls such loops, so that several loads are in flight."""
    signature = {"x": "*fp32", "out": "*fp32", "rows": "i32"}
    made = compile(ASTSource(row_sums, signature), target=GPUTarget("cuda", 90, 32))
    assert "bra.uni" not in made.asm["ptx"] and made.asm["ptx"].count("bra") == 2
