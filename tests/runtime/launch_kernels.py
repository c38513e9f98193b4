"""Two kernels with sources and targets, shared by tests of launching and compiling."""

from typing import Any

import tilework
import tilework.language as tl
from tilework.compiler import ASTSource
from tilework.targets.base import GPUTarget

AMPERE, HOPPER, BLACKWELL = (GPUTarget("cuda", capability, 32) for capability in (80, 90, 100))
HOST = GPUTarget("cpu", "host", 1)
SIGNATURE = {"p": "*fp32", "value": "fp32", "n": "i32"}


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):  # pyright: ignore[reportArgumentType]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@tilework.jit
def add_one(x, y, n, BLOCK: tl.constexpr = 64):  # pyright: ignore[reportArgumentType]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, tl.load(x + i, mask=mask) + 1, mask=mask)


def fill_source(kernel: Any = fill) -> ASTSource:
    return ASTSource(kernel, SIGNATURE, {"BLOCK": 16})


def entries(kernel: Any) -> int:
    """Return the count of kernels compiled from it."""
    return len(kernel.device_caches[0][0])
