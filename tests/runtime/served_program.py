"""Kernels of a program that is recorded, compiled ahead of time and served: what the tests of that launch."""

import enum
from typing import Any, NamedTuple

import numpy as np

import tilework
import tilework.language as tl

SCALE = tl.constexpr(2.0)


class Mode(enum.IntEnum):
    PLAIN = 0
    DOUBLE = 1


class Pair(NamedTuple):
    source: Any
    count: int


@tilework.jit
def scaled(x):
    return x * SCALE


@tilework.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, scaled(tl.load(x + i, mask=i < n)) + tl.load(y + i, mask=i < n), mask=i < n)


@tilework.autotune(
    [tilework.Config({"BLOCK": 32}), tilework.Config({"BLOCK": 64})],
    key=["n"],
    do_bench=lambda call, quantiles: [call() or 1.0] * 3,
)
@tilework.jit
def fill(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, i, mask=i < n)


@tilework.jit
def applied(pair, out, function: tl.constexpr, dtype: tl.constexpr, mode: tl.constexpr, shape: tl.constexpr):
    i = tl.arange(0, shape[0])
    value = function(tl.load(pair.source + i, mask=i < pair.count, other=0)).to(dtype)
    tl.store(out + i, value * (mode + 1), mask=i < pair.count)


def run_add(n: int, block: int = 64) -> None:
    x, out = np.ones(n, np.float32), np.zeros(n, np.float32)
    add[(tilework.cdiv(n, block),)](x, x, out, n, BLOCK=block)
    assert (out == 1 + float(SCALE.value)).all()


def run_fill(n: int) -> None:
    out = np.zeros(n, np.int32)
    fill[lambda meta: (tilework.cdiv(n, meta["BLOCK"]),)](out, n)
    assert (out == np.arange(n)).all()


def run_applied() -> None:
    x, out = np.ones(10, np.float32), np.zeros(10, np.float64)
    applied[(1,)](Pair(x, 10), out, scaled, tl.float64, Mode.DOUBLE, (16, "rows"))
    assert (out == 4).all()
