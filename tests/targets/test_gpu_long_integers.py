"""Integers of 64 bits that are known to fit 32 are computed there; near the limits nothing may wrap."""

import re

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.gpu_text import kernel_ptx, launch


@tilework.jit
def long_integers(values_ptr, flags_ptr, N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, N)
    row = tl.program_id(1).to(tl.int64)
    wide = (row * B + at.to(tl.int64)) * A + C
    out = tl.program_id(1) * N + at
    tl.store(values_ptr + out, wide + (at.to(tl.int64) * A + C))
    tl.store(flags_ptr + out, (wide < 40000 * A).to(tl.int32) + 2 * (wide >= C + B).to(tl.int32))


@pytest.mark.parametrize("c", [0, 64, (1 << 31) - 1, 1 << 31, -1, -(1 << 40)])
@pytest.mark.parametrize("b", [1, 32768, 32769])  # 65534 rows of 32768 still fit 31 bits
@pytest.mark.parametrize("a", [1, 8, 1 << 24, 1 << 25, (1 << 31) - 1])
def test_integers_near_the_limit_of_32_bits(a: int, b: int, c: int) -> None:
    types = {"values_ptr": "*i64", "flags_ptr": "*i32"}
    text = kernel_ptx(long_integers, types, {"N": 128, "A": a, "B": b, "C": c}, 90, 1, True)
    values, flags = np.zeros((3, 128), np.int64), np.zeros((3, 128), np.int32)
    launch(text, "long_integers", [values, flags], 1, (1, 3))
    row, at = np.arange(3)[:, None], np.arange(128)
    wide = (row * b + at) * a + c
    np.testing.assert_array_equal(values, wide + at * a + c)
    np.testing.assert_array_equal(flags, (wide < 40000 * a) + 2 * (wide >= c + b))


@tilework.jit
def row_mask(x_ptr, out_ptr, COLUMNS: tl.constexpr, N: tl.constexpr):
    at = tl.program_id(1).to(tl.int64) * N + tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < COLUMNS, other=0), mask=at < COLUMNS)


def test_a_mask_of_long_integers_is_compared_in_32_bits() -> None:
    """A grid has at most 65535 programs along its second axis, so their offsets fit."""
    text = kernel_ptx(row_mask, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"COLUMNS": 32000, "N": 512}, 90, 1)
    assert re.search(r"setp\.\w+\.[su]32", text) and not re.search(r"setp\.\w+\.[su]64", text)
