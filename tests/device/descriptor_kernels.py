"""Kernels whose results show whether descriptors stay what they are and whether loads see the stores before them.

    case = CASES["carried"]
    x, y = case.arrays(programs=3, rng=np.random.default_rng(0))
    wanted = case.wanted(x, y)                     what `case.kernel[(3,)](x, y, **case.constants)` leaves in the two

Every program works on blocks of its own: `x` and `y` are as many blocks of (8, N) for each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilework
import tilework.language as tl

Array = np.ndarray[Any, Any]
ROWS, N = 8, 32


@dataclass(frozen=True)
class Case:
    """A kernel, how many blocks of `x` and `y` a program has, and what becomes of those of one program."""

    kernel: Any
    blocks: tuple[int, int]
    expected: Callable[[Array, Array], None]
    options: dict[str, Any] = field(default_factory=dict)
    dtype: Any = np.float32
    needs_barrier_without_tma: bool = False  # threads exchange what they stored

    @property
    def constants(self) -> dict[str, Any]:
        return {"X": self.blocks[0], "Y": self.blocks[1], "N": N, **self.options}

    def arrays(self, programs: int, rng: np.random.Generator) -> tuple[Array, Array]:
        x = rng.integers(-9, 9, size=(programs * self.blocks[0] * ROWS, N)).astype(self.dtype)
        return x, np.zeros((programs * self.blocks[1] * ROWS, N), self.dtype)

    def wanted(self, x: Array, y: Array) -> tuple[Array, Array]:
        x, y = x.copy(), y.copy()
        of_programs = (array.reshape(-1, count, ROWS, N) for array, count in zip((x, y), self.blocks, strict=True))
        for mine in zip(*of_programs, strict=True):
            self.expected(*mine)
        return x, y


@tilework.jit
def own(x, count: tl.constexpr, N: tl.constexpr):
    """The blocks of this program."""
    return x + tl.program_id(0) * count * 8 * N


@tilework.jit(noinline=True)
def block_at(x, N: tl.constexpr):
    return tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])


@tilework.jit
def two_calls(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr):
    x, y = own(x, X, N), own(y, Y, N)
    a, b = block_at(x, N), block_at(x + 8 * N, N)
    to = tl.make_tensor_descriptor(y, [16, N], [N, 1], [8, N])
    to.store([0, 0], a.load([0, 0]))
    to.store([8, 0], b.load([0, 0]))


def expect_copy(x: Array, y: Array) -> None:
    y[:] = x


@tilework.jit(noinline=True)
def copied(x, y, N: tl.constexpr):
    source, target = block_at(x, N), block_at(y, N)
    target.store([0, 0], source.load([0, 0]))
    return source


@tilework.jit
def nested_calls(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr):
    x, y = own(x, X, N), own(y, Y, N)
    a, b = copied(x, y, N), copied(x + 8 * N, y + 8 * N, N)
    block_at(y + 16 * N, N).store([0, 0], a.load([0, 0]) + b.load([0, 0]))


def expect_sum(x: Array, y: Array) -> None:
    y[:2], y[2] = x, x[0] + x[1]


@tilework.jit
def carried(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr):
    """The descriptors of this iteration, of the last one and of the one before that."""
    x, y = own(x, X, N), own(y, Y, N)
    here = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    last, before = here, here
    for i in range(X):
        here = tl.make_tensor_descriptor(x + i * 8 * N, [8, N], [N, 1], [8, N])
        to = tl.make_tensor_descriptor(y + i * 8 * N, [8, N], [N, 1], [8, N])
        to.store([0, 0], here.load([0, 0]) + 100 * last.load([0, 0]) + 10000 * before.load([0, 0]))
        before, last = last, here
    to = tl.make_tensor_descriptor(y + X * 8 * N, [8, N], [N, 1], [8, N])
    to.store([0, 0], last.load([0, 0]) + before.load([0, 0]))


def expect_carried(x: Array, y: Array) -> None:
    past = np.concatenate([x[:1], x[:1], x])
    y[:-1] = x + 100 * past[1:-1] + 10000 * past[:-2]
    y[-1] = past[-1] + past[-2]


@tilework.jit
def kept(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr):
    """A descriptor that an inner loop makes in a branch is kept for all iterations that follow."""
    x, y = own(x, X, N), own(y, Y, N)
    saved = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N], padding_option="nan")
    for i in range(Y):
        for j in range(2):
            made = tl.make_tensor_descriptor(x + (2 * i + j) * 8 * N, [8, N], [N, 1], [8, N])
            if 2 * i + j == 3:
                saved = made
        to = tl.make_tensor_descriptor(y + i * 8 * N, [8, N], [N, 1], [8, N])
        to.store([0, 0], saved.load([0, 0]))


def expect_kept(x: Array, y: Array) -> None:
    y[0], y[1:] = x[0], x[3]


@tilework.jit
def by_while(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr):
    """A while loop that carries a descriptor which a function made."""
    x, y = own(x, X, N), own(y, Y, N)
    here, i = block_at(x, N), 0
    while i < Y:
        following = block_at(x + (i + 1) * 8 * N, N)
        block_at(y + i * 8 * N, N).store([0, 0], here.load([0, 0]) + following.load([0, 0]))
        here = following
        i += 1


def expect_neighbours(x: Array, y: Array) -> None:
    y[:] = x[:-1] + x[1:]


@tilework.jit
def stored(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr, WAY: tl.constexpr):
    """Stored, then loaded: through a descriptor (d) or pointers (p), or added to by TMA (a)."""
    x, y = own(x, X, N), own(y, Y, N)
    d = tl.make_tensor_descriptor(x, [8 * X, N], [N, 1], [8, N])
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    for i in range(Y):
        value = d.load([0, 0]) + i
        if WAY == "dd" or WAY == "dp":
            d.store([8, 0], value)
        elif WAY == "ad":
            d.atomic_add([8, 0], value)
        else:
            tl.store(x + 8 * N + cells, value)
        got = tl.load(x + 8 * N + cells) if WAY == "dp" else d.load([8, 0])
        tl.store(y + i * 8 * N + cells, got)


def expect_stored(x: Array, y: Array) -> None:
    for i in range(len(y)):
        x[1] = y[i] = x[0] + i


def expect_added(x: Array, y: Array) -> None:
    for i in range(len(y)):
        x[1] += x[0] + i
        y[i] = x[1]


@tilework.jit
def chain(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr, WAY: tl.constexpr):
    """Each block becomes what the one before it, just stored, has become: nothing may be loaded ahead."""
    x = own(x, X, N)
    d = tl.make_tensor_descriptor(x, [8 * X, N], [N, 1], [16, N])
    cells = tl.arange(0, 16)[:, None] * N + tl.arange(0, N)[None, :]
    one = (tl.arange(0, N)[:, None] == tl.arange(0, N)[None, :]).to(tl.float16)
    for i in tl.range(0, X // 2 - 1, num_stages=3):
        value = tl.dot(d.load([i * 16, 0]), one).to(tl.float16) + 1
        if WAY == "p":
            tl.store(x + (i + 1) * 16 * N + cells, value)
        else:
            d.store([i * 16 + 16, 0], value)


def expect_chain(x: Array, y: Array) -> None:
    for i in range(2, len(x)):
        x[i] = x[i - 2] + 1


@tilework.jit
def overwritten(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr, WAY: tl.constexpr):
    """The last of two stores stays."""
    x = own(x, X, N)
    cells = tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    d = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    for i in range(5):
        value = tl.zeros((8, N), tl.float32) + i
        if WAY == "dd":
            d.store([0, 0], value)
        elif WAY == "dp":
            d.store([0, 0], -value)
            tl.store(x + cells, value)
        else:
            tl.store(x + cells, -value)
            d.store([0, 0], value)


def expect_last(x: Array, y: Array) -> None:
    x[:] = 4


@tilework.jit(noinline=True)
def add_by_descriptor(d, more):
    d.store([0, 0], d.load([0, 0]) + more)


@tilework.jit(noinline=True)
def add_by_pointer(x, more, N: tl.constexpr):
    cells = x + tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(cells, tl.load(cells) + more)


@tilework.jit
def by_calls(x, y, X: tl.constexpr, Y: tl.constexpr, N: tl.constexpr, WAY: tl.constexpr):
    x, y = own(x, X, N), own(y, Y, N)
    d = tl.make_tensor_descriptor(x, [8, N], [N, 1], [8, N])
    e = tl.make_tensor_descriptor(y, [8, N], [N, 1], [8, N])
    for i in range(4):
        if WAY == "p":
            add_by_pointer(x, i, N)
        else:
            add_by_descriptor(d, i)
    e.store([0, 0], d.load([0, 0]))


def expect_six_more(x: Array, y: Array) -> None:
    x += 6
    y[:] = x


CASES = {
    "two_calls": Case(two_calls, (2, 2), expect_copy),
    "nested_calls": Case(nested_calls, (2, 3), expect_sum),
    "carried": Case(carried, (4, 5), expect_carried),
    "carried_once": Case(carried, (1, 2), expect_carried),
    "kept": Case(kept, (8, 4), expect_kept),
    "by_while": Case(by_while, (4, 3), expect_neighbours),
    "stored_dd": Case(stored, (2, 3), expect_stored, {"WAY": "dd"}),
    "stored_dp": Case(stored, (2, 3), expect_stored, {"WAY": "dp"}),
    "stored_pd": Case(stored, (2, 3), expect_stored, {"WAY": "pd"}),
    "added": Case(stored, (2, 3), expect_added, {"WAY": "ad"}),
    "chain_d": Case(chain, (10, 1), expect_chain, {"WAY": "d"}, np.float16),
    "chain_p": Case(chain, (10, 1), expect_chain, {"WAY": "p"}, np.float16),
    "overwritten_dd": Case(overwritten, (1, 1), expect_last, {"WAY": "dd"}),
    "overwritten_dp": Case(overwritten, (1, 1), expect_last, {"WAY": "dp"}),
    "overwritten_pd": Case(overwritten, (1, 1), expect_last, {"WAY": "pd"}),
    "calls_d": Case(by_calls, (1, 1), expect_six_more, {"WAY": "d"}, needs_barrier_without_tma=True),
    "calls_p": Case(by_calls, (1, 1), expect_six_more, {"WAY": "p"}),
}
