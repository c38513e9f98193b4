"""Kernels that do one thing as fast as the machine can: what `limits.py` measures it with."""

from typing import Any

import tilework
import tilework.language as tl


@tilework.jit
def copy(source: Any, target: Any, BLOCK: tl.constexpr):
    """Moves memory, and nothing else."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + i, tl.load(source + i))


@tilework.jit
def multiply_add(target: Any, scale: Any, steps: Any, BLOCK: tl.constexpr):
    """Fused multiply-adds of numbers in registers; eight chains, so that none waits for another."""
    i = tl.arange(0, BLOCK)
    start = i.to(tl.float32)
    a, b, c, d = start, start + 1, start + 2, start + 3
    e, f, g, h = start + 4, start + 5, start + 6, start + 7
    for _ in range(steps):
        a = a * scale + start
        b = b * scale + start
        c = c * scale + start
        d = d * scale + start
        e = e * scale + start
        f = f * scale + start
        g = g * scale + start
        h = h * scale + start
    tl.store(target + tl.program_id(0) * BLOCK + i, a + b + c + d + e + f + g + h)


@tilework.jit
def dots(
    left: Any, right: Any, target: Any, steps: Any, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr
):
    """Products of the same two tiles, added up."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(left + m[:, None] * K + k[None, :])
    b = tl.load(right + k[:, None] * N + n[None, :])
    total = tl.zeros((M, N), OUT)
    for _ in range(steps):
        total = tl.dot(a, b, total, out_dtype=OUT)
    tl.store(target + tl.program_id(0) * M * N + m[:, None] * N + n[None, :], total)
