"""Differences that rounding explains, and others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzz.kernels import CPU, HEADER, Kernel
from tests.fuzz.rounding import RoundingError
from tests.fuzz.rules import FP16, FP32, FP64, INT32

SOURCE = """@jit
def kernel(x, out16, wide, whole, most, ones, halves):
    i = tl.arange(0, 64)
    a = tl.load(x + i)
    tl.store(out16 + i, tl.cumsum(a, 0))
    tl.store(wide + i, tl.log(a.to(tl.float32) + 9.0).to(tl.float64))
    tl.store(whole + i, tl.exp2(tl.arange(0, 64).to(tl.float32)).to(tl.int64).to(tl.int32))
    tl.store(most + i, tl.max(a, 0).to(tl.float32) + tl.zeros([64], tl.float32))
    numbers = (i + 1).to(tl.float32)
    tl.store(ones + i, (numbers / numbers).to(tl.int32))
    tl.store(halves + i, numbers.to(tl.float64) / numbers.to(tl.float64) / 2)
"""
TYPES = {"x": FP16, "out16": FP16, "wide": FP64, "whole": INT32, "most": FP32, "ones": INT32, "halves": FP64}


@pytest.fixture
def rounding(tmp_path: Path) -> RoundingError:
    kernel = Kernel(0, HEADER + SOURCE, {name: f"*{t.code}" for name, t in TYPES.items()}, (), TYPES, [], CPU)
    return RoundingError(kernel, tmp_path, arguments, (1,))


def arguments() -> dict[str, Any]:
    arrays = {name: np.zeros(64, dtype.numpy) for name, dtype in TYPES.items()}
    return arrays | {"x": np.random.default_rng(0).normal(size=64).astype(np.float16)}


def test_another_order_of_a_running_sum(rounding: RoundingError) -> None:
    exact = rounding.runs[0]["out16"]
    halves = arguments()["x"].reshape(2, 32)
    inner = np.add.accumulate(halves, axis=1)
    other = (inner + np.array([[0], [inner[0, -1]]], np.float16)).astype(np.float16).reshape(64)
    assert rounding.explains("out16", other, exact).all()
    wrong = exact.copy()
    wrong[40:] += exact[39]  # a partial sum added twice
    assert not rounding.explains("out16", wrong, exact)[40:].any()


def test_the_precision_is_that_of_the_function(rounding: RoundingError) -> None:
    """An f32 logarithm that is stored as f64 may be off by its own ulps, and by no more."""
    exact = rounding.runs[0]["wide"]
    assert rounding.explains("wide", exact * (1 + 2.0**-23), exact).all()
    assert not rounding.explains("wide", exact * (1 + 2.0**-18), exact).any()


def test_integers_and_extremes(rounding: RoundingError) -> None:
    exact = rounding.runs[0]["whole"]
    assert not rounding.explains("whole", exact + 100, exact)[:20].any()
    most = rounding.runs[0]["most"]
    assert rounding.explains("most", most, most).all() and not rounding.explains("most", most * 1.5, most).any()


def test_a_quotient_of_f32_may_be_off(rounding: RoundingError) -> None:
    """As on an H200, where ``(82.0 / 82.0).to(tl.int32)`` was 0; quotients of f64 are rounded correctly."""
    exact, halves = rounding.runs[0]["ones"], rounding.runs[0]["halves"]
    assert (exact == 1).all() and rounding.explains("ones", np.zeros_like(exact), exact).all()
    assert not rounding.explains("ones", exact + 1, exact).any()
    assert not rounding.explains("halves", halves * (1 + 2.0**-52), halves).any()
