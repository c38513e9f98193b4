"""Buffers that copies fill in turn while products run on: as few barriers as they allow, and the emulator finds one
that is missing."""

import re

import numpy as np
import pytest

from tests.targets.test_gpu_dot import ACCUMULATORS, launch, many_dots, numbers, ptx_of
from tilework.analysis import alias
from tilework.oracles.emulator.check import CheckFailed
from tilework.transforms.ttg.pipeline import lower_loads

TURNS = 6


def text_of(m: int, n: int, k: int) -> str:
    return ptx_of(many_dots, 90, 4, ("*fp16", "*fp16", "*fp32", "i32"), (m, n, k, False, ACCUMULATORS["fp32"]))


def run(text: str, m: int, n: int, k: int) -> None:
    """Six products are those of NumPy."""
    rng = np.random.default_rng(4)
    a, b = numbers(rng, "fp16", TURNS, m, k), numbers(rng, "fp16", TURNS, k, n)
    c = np.zeros((m, n), np.float32)
    launch(text, "many_dots", 4, a, b, c, TURNS)
    np.testing.assert_array_equal(c, np.matmul(a.astype("f8"), b.astype("f8")).sum(0))


def barriers(text: str) -> list[int]:
    """In the loops of products."""
    loops = [part for part in re.split(r"\$L__BB\d+_\d+:", text) if "wgmma.mma_async" in part]
    return [loop.partition("bra.uni")[0].count("bar.sync") for loop in loops]


def test_with_one_buffer_more_a_turn_has_one_barrier() -> None:
    text = text_of(64, 64, 32)
    assert barriers(text) == [1] and '"shared": 32768' in text  # four of 8 KB
    run(text, 64, 64, 32)


def test_a_block_that_is_alone_has_two() -> None:
    """One buffer more gains nothing there."""
    text = text_of(128, 128, 64)
    assert barriers(text) == [2] and '"shared": 98304' in text  # three of 32 KB


def test_the_emulator_finds_the_barrier_that_three_buffers_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower_loads, "AHEAD", 1)
    monkeypatch.setattr(alias, "iterations_in_flight", lambda body: 0)
    text = text_of(64, 32, 32)
    with pytest.raises(CheckFailed, match="used before its wait: cp"):
        run(text, 64, 32, 32)
