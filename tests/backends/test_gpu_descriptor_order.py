"""Descriptors and the memory behind them, in order: which descriptor is which, and what a load sees of the stores before it.

On sm_90 copies by TMA, on sm_80 the same kernels with pointers. The emulator delays what TMA writes until it is waited for, and
reports accesses that no barrier, wait or proxy fence orders.
"""


import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.backends.gpu_descriptors import Block, drawn, run

ARCHS = pytest.mark.parametrize("arch", [90, 80])
N = 32


@tilework.jit(noinline=True)
def rows_of(x, N: tl.constexpr):
    return tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])


@tilework.jit
def two_calls(x, y, N: tl.constexpr):
    a, b = rows_of(x, N), rows_of(x + 8 * N, N)
    to = tl.make_tensor_descriptor(y, [16, N], [N, 1], [8, N])
    to.store([0, 0], a.load([0, 0]))
    to.store([8, 0], b.load([0, 0]))


@ARCHS
def test_each_call_makes_its_own_descriptor(arch: int) -> None:
    x, y = drawn((16, N), np.float32), np.zeros((16, N), np.float32)
    run(two_calls, {"x": x, "y": y}, {"N": N}, arch=arch)
    np.testing.assert_array_equal(y, x)


@tilework.jit(noinline=True)
def copied(x, y, N: tl.constexpr):
    source, target = rows_of(x, N), rows_of(y, N)
    target.store([0, 0], source.load([0, 0]))
    return source


@tilework.jit
def nested_calls(x, y, N: tl.constexpr):
    program = tl.program_id(0)
    x += program * 16 * N
    y += program * 24 * N
    a, b = copied(x, y, N), copied(x + 8 * N, y + 8 * N, N)
    c = rows_of(y + 16 * N, N)
    c.store([0, 0], a.load([0, 0]) + b.load([0, 0]))


@ARCHS
def test_nested_calls_in_several_programs(arch: int) -> None:
    x, y = drawn((48, N), np.float32), np.zeros((72, N), np.float32)
    run(nested_calls, {"x": x, "y": y}, {"N": N}, grid=3, arch=arch)
    halves = x.reshape(3, 2, 8, N)
    np.testing.assert_array_equal(y.reshape(3, 3, 8, N), np.concatenate([halves, halves.sum(1, keepdims=True)], 1))


@tilework.jit
def carried(x, y, n, N: tl.constexpr):
    """The descriptors of this iteration, of the last one and of the one before that."""
    here = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    last, before = here, here
    for i in range(n):
        here = tl.make_tensor_descriptor(x + i * 8 * N, [8, N], [N, 1], [8, N])
        to = tl.make_tensor_descriptor(y + i * 8 * N, [8, N], [N, 1], [8, N])
        to.store([0, 0], here.load([0, 0]) + 100 * last.load([0, 0]) + 10000 * before.load([0, 0]))
        before, last = last, here
    to = tl.make_tensor_descriptor(y + n * 8 * N, [8, N], [N, 1], [8, N])
    to.store([0, 0], last.load([0, 0]) + before.load([0, 0]))


@ARCHS
@pytest.mark.parametrize("n", [4, 1])
def test_carried(arch: int, n: int) -> None:
    x, y = drawn((8 * n, N), np.float32), np.zeros((8 * n + 8, N), np.float32)
    run(carried, {"x": x, "y": y, "n": n}, {"N": N}, arch=arch)
    tiles = [x[8 * i : 8 * i + 8] for i in range(n)]
    past = [tiles[0], tiles[0], *tiles]
    wanted = [tiles[i] + 100 * past[i + 1] + 10000 * past[i] for i in range(n)]
    np.testing.assert_array_equal(y, np.concatenate([*wanted, past[n] + past[n + 1]]))


@tilework.jit
def kept(x, first, y, n, N: tl.constexpr):
    """A host descriptor until one is made that is kept for all iterations, in a branch of an inner loop."""
    saved = first
    for i in range(n):
        for j in range(2):
            made = tl.make_tensor_descriptor(x + (2 * i + j) * 8 * N, [8, N], [N, 1], [8, N])
            if 2 * i + j == 1:
                saved = made
        to = tl.make_tensor_descriptor(y + i * 8 * N, [8, N], [N, 1], [8, N])
        to.store([0, 0], saved.load([0, 0]))


@ARCHS
def test_kept(arch: int) -> None:
    x, first, y = drawn((64, N), np.float32), drawn((8, N), np.float32), np.zeros((32, N), np.float32)
    run(kept, {"x": x, "first": Block(first, (8, N)), "y": y, "n": 4}, {"N": N}, arch=arch)
    np.testing.assert_array_equal(y, np.concatenate([x[8:16]] * 4))


@tilework.jit
def grown(x, y, n, N: tl.constexpr):
    """A while loop that carries a descriptor which a function made."""
    here, i = rows_of(x, N), 0
    while i < n:
        following = rows_of(x + (i + 1) * 8 * N, N)
        to = rows_of(y + i * 8 * N, N)
        to.store([0, 0], here.load([0, 0]) + following.load([0, 0]))
        here = following
        i += 1


@ARCHS
def test_carried_by_while(arch: int) -> None:
    x, y = drawn((32, N), np.float32), np.zeros((24, N), np.float32)
    run(grown, {"x": x, "y": y, "n": 3}, {"N": N}, arch=arch)
    np.testing.assert_array_equal(y, x[:24] + x[8:])


@tilework.jit
def stored_and_loaded(x, y, N: tl.constexpr, WAY: tl.constexpr):
    """Through a descriptor (d) or pointers (p): what is stored, then loaded."""
    d = tl.make_tensor_descriptor(x, [16, N], [N, 1], [8, N])
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    value = d.load([0, 0]) + 1
    if WAY == "dd" or WAY == "dp":
        d.store([8, 0], value)
    elif WAY == "ad":
        d.atomic_add([8, 0], value)
    else:
        tl.store(x + 8 * N + cells, value)
    got = tl.load(x + 8 * N + cells) if WAY == "dp" else d.load([8, 0])
    tl.store(y + cells, got)


@ARCHS
@pytest.mark.parametrize("way", ["dd", "dp", "pd", "ad"])
def test_stored_then_loaded(arch: int, way: str) -> None:
    x, y = drawn((16, N), np.float32), np.zeros((8, N), np.float32)
    wanted = x[:8] + 1 + (x[8:] if way == "ad" else 0)
    run(stored_and_loaded, {"x": x, "y": y}, {"N": N, "WAY": way}, arch=arch)
    np.testing.assert_array_equal(y, wanted)


@tilework.jit
def chain(x, n, N: tl.constexpr, BY_POINTER: tl.constexpr):
    """Each row block is what the one before it, just stored, has become: nothing may be loaded ahead."""
    d = tl.make_tensor_descriptor(x, [16 * n, N], [N, 1], [16, N])
    cells = tl.arange(0, 16)[:, None] * N + tl.arange(0, N)[None, :]
    one = (tl.arange(0, N)[:, None] == tl.arange(0, N)[None, :]).to(tl.float16)
    for i in tl.range(0, n - 1, num_stages=3):
        value = tl.dot(d.load([i * 16, 0]), one).to(tl.float16) + 1
        if BY_POINTER:
            tl.store(x + (i + 1) * 16 * N + cells, value)
        else:
            d.store([i * 16 + 16, 0], value)


@ARCHS
@pytest.mark.parametrize("by_pointer", [False, True])
def test_chain(arch: int, by_pointer: bool) -> None:
    x = drawn((80, N), np.float16)
    wanted = np.concatenate([x[:16] + i for i in range(5)])
    run(chain, {"x": x, "n": 5}, {"N": N, "BY_POINTER": by_pointer}, arch=arch)
    np.testing.assert_array_equal(x, wanted)


@tilework.jit
def overwritten(x, d, N: tl.constexpr, WAY: tl.constexpr):
    """The last of two stores stays."""
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    e = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    for i in range(3):
        if WAY == "dd":
            e.store([0, 0], tl.zeros((8, N), tl.float32) + i)
        elif WAY == "dp":
            e.store([0, 0], tl.zeros((8, N), tl.float32) - i)
            tl.store(x + cells, tl.zeros((8, N), tl.float32) + i)
        else:
            tl.store(x + cells, tl.zeros((8, N), tl.float32) - i)
            e.store([0, 0], tl.zeros((8, N), tl.float32) + i)


@ARCHS
@pytest.mark.parametrize("way", ["dd", "dp", "pd"])
def test_overwritten(arch: int, way: str) -> None:
    x, d = drawn((8, N), np.float32), drawn((8, N), np.float32)
    run(overwritten, {"x": x, "d": Block(d, (8, N))}, {"N": N, "WAY": way}, arch=arch)
    np.testing.assert_array_equal(x, np.full_like(x, 2))


@tilework.jit(noinline=True)
def put(d, more):
    d.store([0, 0], d.load([0, 0]) + more)


@tilework.jit(noinline=True)
def put_plainly(x, more, N: tl.constexpr):
    cells = x + tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(cells, tl.load(cells) + more)


@tilework.jit
def by_calls(x, y, N: tl.constexpr, PLAINLY: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    e = tl.make_tensor_descriptor(y, [8, N], [N, 1], [8, N])
    for i in range(2):
        if PLAINLY:
            put_plainly(x, i + 1, N)
        else:
            put(d, i + 1)
    e.store([0, 0], d.load([0, 0]))


@pytest.mark.parametrize(("arch", "plainly"), [(90, False), (90, True), (80, True)])
def test_calls_are_in_order(arch: int, plainly: bool) -> None:
    x, y = drawn((8, N), np.float32), np.zeros((8, N), np.float32)
    wanted = x + 3
    run(by_calls, {"x": x, "y": y}, {"N": N, "PLAINLY": plainly}, arch=arch)
    np.testing.assert_array_equal(y, wanted)


@tilework.jit
def handed_over(x, flag, N: tl.constexpr, PLAINLY: tl.constexpr, TMA: tl.constexpr):
    """Programs wait for the one before them, and go on from what it has stored."""
    program = tl.program_id(0)
    d = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    while tl.atomic_add(flag, 0, sem="acquire") != program:
        pass
    value = d.load([0, 0]) + 1
    if PLAINLY:
        tl.store(x + cells, value)
    else:
        d.store([0, 0], value)
    if PLAINLY or not TMA:
        tl.debug_barrier()
    tl.atomic_xchg(flag, program + 1, sem="release")


@ARCHS
@pytest.mark.parametrize("plainly", [False, True])
def test_programs_hand_over(arch: int, plainly: bool) -> None:
    x, flag = drawn((8, N), np.float32), np.zeros(1, np.int32)
    wanted = x + 3
    constants = {"N": N, "PLAINLY": plainly, "TMA": arch == 90}
    run(handed_over, {"x": x, "flag": flag}, constants, grid=3, arch=arch)
    np.testing.assert_array_equal(x, wanted)


@tilework.jit
def two_arguments(d, e, x, y, N: tl.constexpr):
    """Arguments that are the same memory: a barrier orders what is done through the one and the other."""
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    d.store([0, 0], d.load([0, 0]) + 1)
    tl.debug_barrier()
    tl.store(y + cells, e.load([0, 0]) + tl.load(x + cells))


@ARCHS
def test_barrier_orders_other_arguments(arch: int) -> None:
    x, y = drawn((8, N), np.float32), np.zeros((8, N), np.float32)
    wanted = 2 * (x + 1)
    run(two_arguments, {"d": Block(x, (8, N)), "e": Block(x, (8, N)), "x": x, "y": y}, {"N": N}, arch=arch)
    np.testing.assert_array_equal(y, wanted)
