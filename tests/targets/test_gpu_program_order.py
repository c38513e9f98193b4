"""Programs whose loops run longest start first, and each runs once."""

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.gpu_tiles import compiled
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
    device, out = Device(check=True), np.full((Y, X), -1, np.int32)
    places = [device.upload(out), device.upload(np.zeros(1, np.int32))]
    device.launch(device.load(text).function("triangle"), (X, Y), 32, [*places, X, 0, 0], 0)
    device.synchronize()
    return text, device.download(places[0], out).tolist()


@pytest.mark.parametrize("counts", [False, True])
def test_long_loops_start_first(counts: bool) -> None:
    """Not where programs might wait for each other."""
    text, out = started(counts)
    assert ("div.u32" in text) != counts
    assert out == [[sum(range(0, x * 4, 2)) + y for x in range(X)] for y in range(Y)]


@pytest.mark.parametrize("pairs", ["", "tilework.pairs, "])
def test_programs_in_pairs_keep_their_numbers(pairs: str) -> None:
    """Each computes the other's number from its own."""
    facts = (
        f'"tilework.longest-first", {pairs}"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90"'
    )
    text = compiled(
        f"""module attributes {{{facts}, "ttg.threads-per-warp" = 32 : i32}} {{
        tt.func public @k(%p: !tt.ptr<i32>) {{ %x = tt.get_program_id x : i32 tt.store %p, %x : !tt.ptr<i32> tt.return }} }}""",
        90,
    )
    assert ("div.u32" in text) != bool(pairs)
