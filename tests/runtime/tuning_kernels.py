"""Kernels that worker processes can import."""

import os
import sys

import tilework.language as tl
from tilework.runtime.launch.python.jit import jit

print("importing tuning_kernels")  # must not disturb the messages of workers

GLOBAL = tl.constexpr(1)


@tl.core.builtin
def crash_in_workers(value, _semantic=None):
    """Kill the compiler if it runs in another process than the tests. Workers are started with `-c` and arguments; what
    `is_worker` and the environment say would be a part of the key, which another process then does not have."""
    if sys.argv[0] == "-c" and len(sys.argv) > 1:
        os.abort()
    return value


@jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) + GLOBAL, mask=i < n)


@jit
def fragile(x, n, BLOCK: tl.constexpr):
    if BLOCK == 32:
        crash_in_workers(n)
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i.to(tl.float32), mask=i < n)


@jit
def talkative(x, BLOCK: tl.constexpr):
    tl.static_print("block is", BLOCK)
    tl.store(x + tl.arange(0, BLOCK), 0.0)


@jit
def broken(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), undefined_name)  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
