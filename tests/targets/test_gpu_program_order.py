"""Programs whose loops run longest start first, and each runs once."""

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.test_gpu_dot import ptx_of
from tilework.oracles.emulator.device import Device

X, Y = 5, 11


@tilework.jit
def triangle(out, seen, X, COUNTS: tl.constexpr):
    x, y = tl.program_id(0), tl.program_id(1)
    total = 0
    for k in range(0, x * 4, 2):
        total += k
    if COUNTS:
        tl.atomic_add(seen, 1)
    tl.store(out + y * X + x, total + y)


def started(counts: bool) -> tuple[str, list[int]]:
    """The code, and what the programs wrote."""
    text = ptx_of(triangle, 90, 1, ("*i32", "*i32", "i32"), (counts,))
    device, out = Device(check=True, together=True), np.full((Y, X), -1, np.int32)
    addresses = [device.upload(out), device.upload(np.zeros(1, np.int32))]
    device.launch(device.load(text).function("triangle"), (X, Y), 32, [*addresses, X, 0, 0], 0)
    device.synchronize()
    return text, device.download(addresses[0], out).tolist()


@pytest.mark.parametrize("counts", [False, True])
def test_long_loops_start_first(counts: bool) -> None:
    """Not where programs might wait for each other."""
    text, out = started(counts)
    assert ("div.u32" in text) != counts
    assert out == [[sum(range(0, x * 4, 2)) + y for x in range(X)] for y in range(Y)]


@tilework.jit
def longer_along(out, X, Y, bound, AXIS: tl.constexpr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    total = 0
    for k in range(0, tl.minimum(tl.program_id(AXIS) * 4, bound), 2):
        total += k
    tl.store(out + (z * Y + y) * X + x, total + 1000 * x + 10000 * y + 100000 * z)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("grid", [(3, 9, 4), (1, 1, 1), (1, 17, 1), (2, 1, 5)])
def test_along_each_axis(axis: int, grid: tuple[int, int, int]) -> None:
    """Every program runs once, whichever axis is reordered."""
    text = ptx_of(longer_along, 90, 1, ("*i32", "i32", "i32", "i32"), (axis,))
    assert ("div.u32" in text) == (axis == 0) and ("nctaid" in text)
    device, out = Device(check=True, together=True), np.full(grid[::-1], -1, np.int32)
    address = device.upload(out)
    device.launch(device.load(text).function("longer_along"), grid, 32, [address, grid[0], grid[1], 12, 0, 0], 0)
    device.synchronize()
    expected = [
        [[sum(range(0, min((x, y, z)[axis] * 4, 12), 2)) + 1000 * x + 10000 * y + 100000 * z for x in range(grid[0])]
         for y in range(grid[1])]
        for z in range(grid[2])
    ]  # fmt: skip
    assert device.download(address, out).tolist() == expected
