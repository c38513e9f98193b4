"""Addresses computed from quotients and remainders: vectors where no quotient changes, lane by lane elsewhere, and
always the same values."""

import numpy as np
import pytest

import tilework
from tilework import language as tl

N = 1 << 16
DATA = np.random.default_rng(0).integers(0, 1000, N).astype(np.int32)
TABLE = np.random.default_rng(1).integers(0, 8, N).astype(np.int32)


def divide(x: np.ndarray, divisor: int) -> tuple[np.ndarray, np.ndarray]:
    """(quotient, rest) as kernels divide: towards zero."""
    quotient = np.sign(x) * (np.abs(x) // divisor)
    return quotient, x - quotient * divisor


@tilework.jit(do_not_specialize=["start", "n"])
def split(out, quotients, data, table, start, n, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x, mask = start + i, i < n
    row, column = x // D, x % D
    group = (x % (4 * D)) // D
    chosen = tl.load(table + group, mask=mask)
    picked = tl.load(data + (column + 64 * chosen), mask=mask)
    tl.store(out + i, tl.load(data + (column + 3 * D * row), mask=mask) * 8 + picked, mask=mask)
    tl.store(quotients + i, row * 1000 + column, mask=mask)


@pytest.mark.parametrize(("divisor", "block"), [(64, 128), (100, 64), (16, 100)])
def test_quotients_and_rests_are_exact_wherever_a_tile_starts(divisor: int, block: int) -> None:
    for start in (0, 16, 37, -64, -100):
        n = 3 * block - 5
        out, quotients = np.full((2, 3 * block), -1, np.int32)
        split[(3,)](out, quotients, DATA[N // 2 :], TABLE[N // 2 :], start, n, divisor, block)
        x = start + np.arange(n)
        (row, column), (group, _) = divide(x, divisor), divide(divide(x, 4 * divisor)[1], divisor)
        picked = DATA[N // 2 + column + 64 * TABLE[N // 2 + group]]
        assert np.array_equal(out[:n], DATA[N // 2 + column + 3 * divisor * row] * 8 + picked)
        assert np.array_equal(quotients[:n], row * 1000 + column)
        assert (out[n:] == -1).all() and (quotients[n:] == -1).all()


@tilework.jit
def numbers(out, data, start, D: tl.constexpr, B: tl.constexpr):
    x = start + tl.arange(0, B)
    tl.store(out + tl.arange(0, B), x // D + tl.load(data + (x & 63)))


def test_what_wraps_around_is_divided_as_it_is() -> None:
    start, out = 2**31 - 50, np.zeros(128, np.int32)
    numbers[(1,)](out, DATA, start, 100, 128)
    x = (start + np.arange(128)).astype(np.int32).astype(np.int64)
    assert np.array_equal(out, divide(x, 100)[0] + DATA[x & 63])


@tilework.jit
def sums(out, data, n, D: tl.constexpr, B: tl.constexpr):
    total = tl.zeros((B,), tl.int32)
    for first in range(0, n, B):
        x = first + tl.arange(0, B)
        total += tl.load(data + (x % D + 2 * D * (x // D)), mask=x < n, other=0)
    most = tl.max(tl.load(data + (tl.arange(0, B) >> 5) * 96 + (tl.arange(0, B) & 31)), 0)
    tl.store(out, tl.sum(total, 0))
    tl.store(out + 1, most)


def test_sums_take_every_piece_once() -> None:
    out = np.zeros(2, np.int32)
    sums[(1,)](out, DATA, 1000, 96, 128)
    x = np.arange(1000)
    assert out[0] == DATA[x % 96 + 192 * (x // 96)].sum()
    assert out[1] == DATA[np.arange(128) // 32 * 96 + np.arange(128) % 32].max()


@tilework.jit
def add_row(out, data, row, B: tl.constexpr):
    x = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + x, tl.load(data + (x % 64 + 192 * (x // 64))) + tl.load(row + x % 64))


def test_a_row_of_a_wider_array_is_loaded_in_vectors() -> None:
    data, row = np.random.default_rng(2).random((2, 192 * 8), np.float32)
    out = np.zeros(512, np.float32)
    kernel = add_row[(2,)](out, data, row, 256)
    assert np.array_equal(out.reshape(8, 64), data.reshape(8, 192)[:, :64] + row[:64])
    loads = [line for line in kernel.asm["llir"].splitlines() if "= load <" in line and "x float>" in line]
    assert len(loads) == 2
