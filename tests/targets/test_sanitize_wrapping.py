"""Addresses whose integers wrap around: products, sums and differences, in one step and carried by loops."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.sanitized import report


def floats(count: int, dtype: Any = np.float32) -> Any:
    return np.arange(count).astype(dtype)


@tilework.jit(sanitize=True)
def scaled(x, out, step, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * step, mask=i < n, other=0.0))


@tilework.jit(sanitize=True)
def shifted(x, start, by):
    tl.store(x + (start + by), 1.0)


@tilework.jit(sanitize=True)
def lowered(x, start, by):
    tl.store(x + (start - by), 1.0)


@tilework.jit(sanitize=True)
def unsigned(x, start, by, less):
    tl.store(x + (start.to(tl.uint32) + by.to(tl.uint32) - less.to(tl.uint32)), 1.0)


def test_products_that_wrap_around() -> None:
    x, out = floats(16), np.zeros(16, np.float32)
    scaled[(1,)](x, out, 2**28, 1, BLOCK=16)  # the other lanes are masked off
    text = report(lambda: scaled[(1,)](x, out, 2**28, 16, BLOCK=16))
    assert "int32 overflow detected for operation mul, in the address of argument 'x'" in text
    assert "program (0, 0, 0)" in text and "tl.load(x + i * step" in text


@pytest.mark.parametrize(("big", "name"), [(2**31 - 1, "int32"), (2**63 - 1, "int64")])
def test_sums_and_differences_that_wrap_around(big: int, name: str) -> None:
    x = np.zeros(8, np.float32)
    shifted[(1,)](x, big - 3, -(big - 3) + 2)
    assert x[2] == 1
    assert f"{name} overflow detected for operation add" in report(lambda: shifted[(1,)](x, big, big))
    lowered[(1,)](x, big, big - 5)
    assert x[5] == 1
    assert f"{name} overflow detected for operation sub" in report(lambda: lowered[(1,)](x, -big, big))


@tilework.jit(sanitize=True)
def wide(x, i, step):
    tl.store(x + i.to(tl.int64) * step, 1.0)


def test_products_of_64_bits() -> None:
    x = np.zeros(8, np.float32)
    wide[(1,)](x, 2, 3)
    wide[(1,)](x, -2, -3)
    assert x[6] == 1
    for i, step in ((2**20, 2**44), (-(2**31), 2**62), (2**30, -(2**62) + 1)):
        assert "int64 overflow detected for operation mul" in report(lambda i=i, step=step: wide[(1,)](x, i, step))
    assert "int64 overflow detected for operation addptr" in report(lambda: wide[(1,)](x, 2**20, 2**42))


def test_unsigned_sums_may_be_large_but_not_wrap() -> None:
    x = np.zeros(8, np.float32)
    unsigned[(1,)](x, 2**31 - 1, 5, 2**31 + 1)
    assert x[3] == 1
    assert "int32 overflow detected for operation add" in report(lambda: unsigned[(1,)](x, -1, 5, 2**31))
    assert "int32 overflow detected for operation sub" in report(lambda: unsigned[(1,)](x, 3, 5, 2**31))


@tilework.jit(sanitize=True)
def hashing(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK) + tl.load(x).to(tl.int32)
    tl.store(out + i, tl.load(x + ((i * 1103515245 + 12345) & (BLOCK - 1))))


def test_numbers_that_are_brought_back_into_range_may_wrap() -> None:
    hashing[(1,)](floats(16), np.zeros(16, np.float32), BLOCK=16)


@tilework.jit(sanitize=True)
def striding(x, step, rounds, WHILE: tl.constexpr):
    i = 0
    if WHILE:
        r = 0
        while r < rounds:
            i += step
            r += 1
    else:
        for _ in range(rounds):
            i += step
    tl.store(x + i, 1.0)


@pytest.mark.parametrize("loops", [False, True])
def test_sums_that_loops_carry(loops: bool) -> None:
    x = np.zeros(8, np.float32)
    striding[(1,)](x, 2, 3, WHILE=loops)
    assert x[6] == 1
    assert "int32 overflow detected for operation add" in report(lambda: striding[(1,)](x, 2**30, 4, WHILE=loops))
