"""Arguments that are the same or overlapping memory: all devices load and store in the order of the program.

Each launch gets views of one array, at the offsets of its parameters; `None` stands for an array of its own. On GPUs
the order of different threads is promised to reproducible kernels only, so the emulators run these.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.settings import few_examples
from tilework import jit
from tilework.inspect.replay import EVALUATOR, INTERPRETER, NATIVE, Launch, run_on

Array = np.ndarray[Any, Any]
Offsets = Sequence[int | None]
SIZE = 512
REPRODUCIBLE = {"reproducible": True}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "interpreter": (INTERPRETER, {}),
    "evaluator": (EVALUATOR, {}),
    "native": (NATIVE, {}),
    "native, reproducible": (NATIVE, REPRODUCIBLE),
    "native, sanitized": (NATIVE, {"sanitize": True}),
    "native, races": (NATIVE, {"sanitize": "race"}),
    "sm_80": ("emulator:sm_80", {**REPRODUCIBLE, "num_warps": 2}),
    "sm_90": ("emulator:sm_90", {**REPRODUCIBLE, "num_warps": 4}),
    "gfx942": ("emulator:gfx942", {**REPRODUCIBLE, "num_warps": 2}),
}
QUICK = ("interpreter", "evaluator", "native", "native, reproducible", "sm_80")
HOST = QUICK[:4]


def memory(offsets: Offsets) -> tuple[Array, list[Array]]:
    """An array of its own for each parameter without a place, all in one, and views of it for the parameters."""
    whole = np.arange(SIZE * (1 + len(offsets)), dtype=np.int32) * 7 % 1009
    views = [
        whole[index:SIZE] if index is not None else whole[SIZE * (1 + number) : SIZE * (2 + number)].copy()
        for number, index in enumerate(offsets)
    ]
    return whole, views


def run_in(way: str, kernel: Any, offsets: Offsets, constants: Sequence[Any]) -> list[Array]:
    """All arrays after a launch."""
    device, options = WAYS[way]
    whole, views = memory(offsets)
    run_on(device, Launch(kernel, (*views, *constants), (1, 1, 1), options))
    return [whole, *views]


def check(kernel: Any, offsets: Offsets, constants: Sequence[Any], ways: Sequence[str] = tuple(WAYS)) -> list[Array]:
    """All devices agree; what the first one computed."""
    first, *others = ways
    wanted = run_in(first, kernel, offsets, constants)
    for way in others:
        for mine, theirs in zip(run_in(way, kernel, offsets, constants), wanted, strict=True):
            np.testing.assert_array_equal(mine, theirs, err_msg=f"{way}, {kernel.__name__}, arguments at {offsets}")
    return wanted


@jit
def shifted(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(b + i + 1, tl.load(a + i))


@jit
def reversed_copy(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(b + N - 1 - i, tl.load(a + i))


@jit
def elementwise(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(b + i, tl.load(a + i) * 3 + 1)


@jit
def reductions(a, b, N: tl.constexpr):
    i = tl.arange(0, N // 8)[:, None] * 8 + tl.arange(0, 8)[None, :]
    x = tl.load(a + i)
    tl.store(b + i, x - tl.max(x, 1)[:, None])
    y = tl.load(a + i)
    tl.store(b + i, y + tl.sum(y, 0)[None, :])


@jit
def written_twice(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(b + i, x + 1)
    tl.store(a + i + 2, tl.load(b + i) * 2)
    tl.store(b + i, tl.load(a + i) + x)


@jit
def transposed(a, b, N: tl.constexpr):
    r, c = tl.arange(0, 8), tl.arange(0, 8)
    x = tl.load(a + r[:, None] * 8 + c[None, :])
    tl.store(b + c[None, :] * 8 + r[:, None], x)
    tl.store(a + N + r, tl.sum(tl.load(b + r[:, None] * 8 + c[None, :]), 1))


@jit
def scanned(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(b + i + 1, tl.cumsum(tl.load(a + i), 0))
    tl.store(a + i, tl.load(b + i) - tl.load(b + N - 1 - i))


@jit
def looped(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.int32)
    for k in range(3):
        total += tl.load(a + i + k)
        tl.store(b + i + k + 1, total)
        total -= tl.load(a + N - i)


@jit
def products(a, b, N: tl.constexpr):
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    x = (tl.load(a + i) % 5).to(tl.int8)
    tl.store(b + i, tl.dot(x, x))
    tl.store(a + i, tl.load(b + i) + x)


@jit
def numbers(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(b + 3, 1000)
    y = tl.load(a + i) + tl.load(a + 3)
    tl.store(b + i, x + y)
    tl.store(b, tl.load(a + N - 1))


@jit
def gathered(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    j = tl.load(a + i) % N
    tl.store(b + i, tl.load(a + j))
    tl.store(b + N + i, tl.load(a + i))


@jit(noinline=True)
def reverse_apart(source, target, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(target + N - 1 - i, tl.load(source + i))


@jit
def called(a, b, N: tl.constexpr):
    reverse_apart(a, b, N)
    reverse_apart(a, a, N)
    reverse_apart(b, b + 5, N)


@jit
def chosen(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    p = tl.where(i % 2 == 0, a + i, b + i)
    tl.store(b + N - 1 - i, tl.load(p))
    tl.store(a + i, tl.load(p) + 1)


@jit
def left_early(a, b, N: tl.constexpr):
    for k in tl.range(N, num_stages=2):
        x = tl.load(a + k)
        if x % 8 == 5:
            break
        tl.store(b + k + 1, x + 1)


KERNELS = (
    *(shifted, reversed_copy, elementwise, reductions, written_twice, transposed, scanned, looped, products),
    *(numbers, gathered, called, chosen, left_early),
)
OFFSETS: tuple[Offsets, ...] = ((8, 8), (8, 9), (9, 8), (8, 24), (70, 8), (None, 8), (8, None))


@pytest.mark.parametrize("offsets", OFFSETS, ids=str)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_order_of_a_program(kernel: Any, offsets: Offsets) -> None:
    check(kernel, offsets, (64,), HOST if offsets != (8, 8) else tuple(WAYS))


def test_what_the_order_gives() -> None:
    """The oracles agree with NumPy."""
    for kernel in (shifted, reversed_copy):
        for offsets in OFFSETS[:5]:
            whole, (a, b) = memory(offsets)
            x = a[:64].copy()
            b[slice(1, 65) if kernel is shifted else slice(63, None, -1)] = x
            np.testing.assert_array_equal(check(kernel, offsets, (64,), ("native",))[0], whole)


@jit
def in_place(a, row, column, ROW: tl.constexpr, COLUMN: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    p = a + 256 + i * (ROW if ROW is not None else row) + j * (COLUMN if COLUMN is not None else column)
    tl.store(p, tl.load(p) * 2 + 1)


STRIDES = ((16, 1), (1, 16), (15, 1), (1, 1), (2, 3), (-16, 1), (1, -1), (0, 1), (8, 2), (5, -7), (3, 11))


@pytest.mark.parametrize("strides", STRIDES, ids=str)
def test_pointers_of_a_tile_that_meet(strides: tuple[int, int]) -> None:
    """All of a tile is loaded before any of it is stored, also where rows or columns overlap."""
    for known in ((True, True), (False, True), (True, False)):
        constants = [stride if is_known else None for stride, is_known in zip(strides, known, strict=True)]
        whole, (a,) = memory((0,))
        i, j = np.ogrid[:8, :16]
        at = 256 + i * strides[0] + j * strides[1]
        a[at] = a[at] * 2 + 1
        found = check(in_place, (0,), (*strides, *constants, 8, 16), ("native", "native, reproducible", "evaluator"))
        np.testing.assert_array_equal(found[0], whole)


@jit
def step(a, b, c, v, w, KIND: tl.constexpr, WHICH: tl.constexpr, OFFSET: tl.constexpr, STRIDE: tl.constexpr):
    """One statement of a generated program; `v` is what was loaded last, `w` what is stored."""
    N: tl.constexpr = v.shape[0]
    i = tl.arange(0, N)
    if WHICH == 0:
        p = a
    elif WHICH == 1:
        p = b
    else:
        p = c
    tile = p + 64 + OFFSET + i * STRIDE
    if KIND == "load":
        v = tl.load(tile)
    elif KIND == "masked":
        v = tl.load(tile, mask=i < N - OFFSET, other=-1)
    elif KIND == "store":
        tl.store(tile, w)
    elif KIND == "some":
        tl.store(tile, w, mask=i > OFFSET)
    elif KIND == "one":
        w += tl.load(p + OFFSET)
    elif KIND == "put":
        tl.store(p + OFFSET, tl.sum(v, 0))
    elif KIND == "add":
        w += v
    elif KIND == "sum":
        w -= tl.sum(v, 0)
    elif KIND == "scan":
        v = tl.cumsum(v, 0)
    elif KIND == "flip":
        w = tl.flip(w)
    elif KIND == "rows":
        w += tl.broadcast_to(tl.sum(v.reshape((N // 8, 8)), 1)[:, None], (N // 8, 8)).reshape((N,))
    elif KIND == "loop":
        for k in range(OFFSET % 4):
            w += tl.load(tile + k)
            tl.store(p + 65 + i, w)
    return v, w


@jit
def generated(a, b, c, STEPS: tl.constexpr, N: tl.constexpr):
    v = tl.arange(0, N)
    w = v * 3
    for number in tl.static_range(len(STEPS)):  # pyright: ignore[reportArgumentType]  a tuple at compile time
        v, w = step(a, b, c, v, w, STEPS[number][0], STEPS[number][1], STEPS[number][2], STEPS[number][3])


def steps(kinds: str) -> Any:
    named = st.sampled_from(kinds.split())
    return st.tuples(named, st.integers(0, 2), st.integers(0, 12), st.sampled_from((1, -1, 2)))


PROGRAMS = st.lists(
    st.one_of(
        steps("load masked"), steps("store some"), steps("add sum scan flip rows"), steps("one put"), steps("loop")
    ),
    min_size=3,
    max_size=9,
).map(tuple)


@few_examples
@given(PROGRAMS, st.lists(st.sampled_from((None, 0, 0, 1, 2, 5, 40, 150)), min_size=3, max_size=3))
def test_generated_programs(program: tuple[tuple[str, int, int, int], ...], offsets: list[int | None]) -> None:
    check(generated, offsets, (program, 32), QUICK)
