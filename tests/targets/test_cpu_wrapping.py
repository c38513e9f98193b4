"""Numbers that wrap around within a tile: ``start + tl.arange(0, B) < n`` where `start` is near the largest number."""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tilework
from tilework import language as tl
from tilework.oracles.interpreter import InterpretedFunction
from tilework.targets.cpu import machines
from tilework.targets.cpu.target import HostTarget

FAR = 2**31 - 20
STARTS = [0, FAR, 2**31 - 64, 2**31 - 63, -(2**31)]
NUMBERS = [  # n, far, big
    (100, 0, 2**40),
    (2**31 - 1, -(2**62), 2**62),
    (-(2**31) + 5, 2**63 - 9, 2**63 - 1),
    (20, -(2**63), 30),
]


@tilework.jit(do_not_specialize=["start", "n", "far", "big"])
def masked(out, small, spread, wide, start: tl.int32, n: tl.int32, far: tl.int64, big: tl.int64, B: tl.constexpr):
    i = tl.arange(0, B)
    x = start + i
    tl.store(out + i, i + 1, mask=x < n)
    tl.store(out + B + i, tl.load(out + i) + 1, mask=x >= n)
    tl.store(out + 2 * B + i, tl.load(out + i, mask=n >= x, other=7))
    tl.store(out + 3 * B + i, 1, mask=(x < n) & (i < 40))
    tl.store(out + 4 * B + i, 1, mask=(x > n) & (x + 8 < 100) & (n < 1000))
    tl.store(small + i, i.to(tl.int8), mask=x < n)
    tl.store(small + B + i, tl.load(small + i, mask=x <= n, other=7))
    tl.store(spread + 3 * i, i, mask=x < n)
    tl.store(wide + i, i, mask=x < big)
    tl.store(wide + B + i, i, mask=far + i < big)
    tl.store(wide + 2 * B + i, i, mask=far + i > big)
    tl.store(wide + 3 * B + i, i, mask=x.to(tl.int64) + far >= big)
    tl.store(wide + 4 * B + i, i, mask=(3 * x).to(tl.int64) - (2 * x).to(tl.int64) < big)
    tl.atomic_add(wide + 5 * B + i, x.to(tl.int64))


@tilework.jit(do_not_specialize=["start", "n"])
def long(out, x, start: tl.int32, n: tl.int32, B: tl.constexpr, D: tl.constexpr):
    """A body that is not emitted twice, and one with pieces."""
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=start + i < n, other=0.5)
    tl.store(out + i, tl.exp(v) + tl.sin(v) * tl.log(v + 2), mask=start + i < n)
    index = i % D + 2 * D * (i // D)
    tl.store(out + B + index, tl.load(x + index, mask=start + i >= n, other=3.0))


def results(launch: Any, sizes: Sequence[tuple[int, Any]], *args: Any, **constants: Any) -> list[np.ndarray]:
    """The arrays that a kernel fills."""
    arrays = [np.zeros(*size) for size in sizes]
    launch[(1,)](*arrays, *args, **constants)
    return arrays


def check_masked(start: int, B: int) -> None:
    sizes = [(5 * B, np.int32), (2 * B, np.int8), (3 * B, np.int32), (6 * B, np.int64)]
    for numbers in NUMBERS:
        found = results(masked, sizes, start, *numbers, B=B)
        wanted = results(InterpretedFunction(masked.fn), sizes, start, *numbers, B=B)
        for got, expected in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(got, expected, f"start = {start}, n, far, big = {numbers}")


@pytest.mark.parametrize("start", STARTS)
def test_masks_that_wrap_around_within_a_tile(start: int) -> None:
    check_masked(start, 64)


def test_masks_that_wrap_around_where_no_lanes_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without such loads and stores."""
    machine = replace(HostTarget.detect(), features=frozenset(), vector_bytes=16)
    monkeypatch.setattr(HostTarget, "detect", staticmethod(lambda: machine))
    monkeypatch.setattr(machines, "named_machine", machines.named_machine.__wrapped__)  # without what it remembers
    for start in STARTS:
        check_masked(start, 32)  # no other test has this size in the cache


@pytest.mark.parametrize("start", [0, FAR])
def test_masks_that_wrap_around_in_long_bodies_and_in_pieces(start: int) -> None:
    x = np.linspace(0, 3, 192, dtype=np.float32)
    for n in (30, 2**31 - 5, -(2**31) + 9):
        found, wanted = (
            results(launch, [(256, np.float32)], x, start, n, B=64, D=16)[0]
            for launch in (long, InterpretedFunction(long.fn))
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=f"n = {n}")


@tilework.jit(do_not_specialize=["start", "by"])
def coming_back(out, copy, given, start: tl.int32, by: tl.int32, S: tl.constexpr, R: tl.constexpr, B: tl.constexpr):
    """Numbers that wrap around again and again, and where they come to the array."""
    i, j = tl.arange(0, B), tl.arange(0, R)
    for way in tl.static_range(4):
        if way < 2:
            at, index = start + i * (by if way == 0 else S), i
        else:
            at, index = start + j[:, None] * (by if way == 2 else S) + i[None, :], j[:, None] * B + i[None, :]
        inside = (at >= 0) & (at < 100)
        tl.store(out + way * B * R + index, tl.load(given + at, mask=inside, other=-1))
        tl.store(copy + at, at * 3 + way, mask=inside)


@pytest.mark.parametrize(("by", "B"), [(3, 64), (1 << 28, 64), (1 << 28, 4), ((1 << 27) + 1, 64), (-1640531535, 32)])
def test_addresses_that_wrap_around_and_come_back(by: int, B: int) -> None:
    """An address is the sum of a pointer and the number that is left in 32 bits, whatever the stride of the tile is."""
    given = np.arange(100, dtype=np.int32) * 7
    found, wanted = (
        results(launch, [(4 * 64 * B, np.int32), (100, np.int32)], given, 5, by, S=by, R=64, B=B)
        for launch in (coming_back, InterpretedFunction(coming_back.fn))
    )
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, expected)


@tilework.jit(do_not_specialize=["start", "other"])
def distances(out, wide, given, start: tl.int32, other: tl.int32, B: tl.constexpr):
    i = tl.arange(0, B)
    x, y = start + i * 3, other + i * 3
    tl.store(out + i, tl.load(given + ((x - y) & 63) + i))
    tl.store(wide + i, x.to(tl.int64) - y.to(tl.int64))


@pytest.mark.parametrize("start", [7, FAR])
def test_numbers_that_are_equally_far_apart_in_all_lanes(start: int) -> None:
    """In 64 bits they are not, where one of them has wrapped around."""
    given = np.arange(128, dtype=np.int32) * 7
    found, wanted = (
        results(launch, [(64, np.int32), (64, np.int64)], given, start, 2, B=64)
        for launch in (distances, InterpretedFunction(distances.fn))
    )
    for got, expected in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, expected)
