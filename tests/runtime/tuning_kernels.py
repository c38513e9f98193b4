"""Kernels that worker processes can import."""

import os

import tilework.language as tl
from tilework.runtime.launch.python.jit import jit

print("importing tuning_kernels")  # must not disturb the conversation with workers

GLOBAL = tl.constexpr(1)


@tl.core.builtin
def crash_in_workers(value, _semantic=None):
    """Kills a compiler that runs in another process than the tests."""
    if os.environ.get("TILEWORK_COMPILE_WORKERS") == "0":
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
