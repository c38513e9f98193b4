"""The kernels of the service: softmax of the rows of a matrix, and matrix multiplication."""

from typing import Any

import numpy as np

import tilework
import tilework.language as tl

Array = np.ndarray[Any, np.dtype[Any]]
TILE, DEPTH = 32, 64


@tilework.jit
def softmax_rows(out, x, columns, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < columns
    row = tl.program_id(0) * columns
    values = tl.load(x + row + i, mask=mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row + i, powers / tl.sum(powers, axis=0), mask=mask)


@tilework.jit
def matmul_tiles(out, a, b, m, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    columns = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    inner = tl.arange(0, DEPTH)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, k, DEPTH):
        left = start + inner[None, :]
        right = start + inner[:, None]
        x = tl.load(a + rows * k + left, mask=(rows < m) & (left < k), other=0.0)
        y = tl.load(b + right * n + columns, mask=(right < k) & (columns < n), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(out + rows * n + columns, total, mask=(rows < m) & (columns < n))


def softmax(x: Array) -> Array:
    """Return the softmax of each row."""
    if x.ndim != 2 or not x.size:
        raise ValueError(f"softmax takes a matrix, not an array of shape {x.shape}")
    rows, columns = x.shape
    out = np.empty_like(x)
    softmax_rows[(rows,)](out, np.ascontiguousarray(x), columns, BLOCK=tilework.next_power_of_2(columns))
    return out


def matmul(a: Array, b: Array) -> Array:
    """``a @ b``"""
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or not (a.size and b.size):
        raise ValueError(f"matmul takes two matrices that fit, not arrays of shapes {a.shape} and {b.shape}")
    (m, k), n = a.shape, b.shape[1]
    out = np.empty((m, n), np.float32)
    grid = (tilework.cdiv(m, TILE), tilework.cdiv(n, TILE))
    matmul_tiles[grid](out, np.ascontiguousarray(a), np.ascontiguousarray(b), m, n, k, TILE=TILE, DEPTH=DEPTH)
    return out
