"""Kernels whose loops are left early or skip iterations, with arrays that end where the loop does: who reads further
reads outside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilework
import tilework.language as tl

SIZE, BLOCK_K = 32, 16
LIMIT, MORE = 5 * BLOCK_K, 9 * BLOCK_K  # where the loop ends, and where its range does


@tilework.jit
def matmul(a, b, c, steps, n, limit, HOW: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """``c = a @ b`` over the first `limit` of `n`; `steps` says which blocks count, and ends with -1."""
    rows, inner = tl.arange(0, SIZE), tl.arange(0, BLOCK)
    left = a + inner[:, None] + rows[None, :] * BLOCK  # each block is stored by itself, and transposed
    right = b + inner[:, None] * SIZE + rows[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    done = 0
    for k in range(0, n, BLOCK):
        if HOW == "break":
            if k >= limit:
                break
        elif HOW == "table":
            if tl.load(steps + k // BLOCK) < 0:
                break
        elif HOW == "both":
            if (k * 2 >= limit * 2) | (done > 100):
                break
            if tl.load(steps + k // BLOCK) == 0:
                continue
        elif HOW == "continue":
            if tl.load(steps + k // BLOCK) == 0:
                continue
        elif HOW == "pointers":
            if k >= limit:
                break
            if k == 2 * BLOCK:
                left += BLOCK * SIZE
                right += BLOCK * SIZE
                continue
        x = tl.load(left if HOW == "pointers" else left + k * SIZE)
        y = tl.load(right if HOW == "pointers" else right + k * SIZE)
        total = tl.dot(x.T, y, total)
        left += BLOCK * SIZE if HOW == "pointers" else 0
        right += BLOCK * SIZE if HOW == "pointers" else 0
        done += 1
        if HOW == "end":
            if k + BLOCK >= limit:
                break
    else:
        total += 1000.0
    tl.store(c + rows[:, None] * SIZE + rows[None, :], total + done)


@tilework.jit
def attention(q, k, v, out, kinds, n, limit, HOW: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    """One block of queries; `kinds` says of each block of keys whether it counts."""
    rows, keys, offsets = tl.arange(0, SIZE), tl.arange(0, BLOCK), tl.arange(0, SIZE)
    queries = tl.load(q + rows[:, None] * SIZE + offsets[None, :])
    best = tl.full((SIZE,), -1e30, tl.float32)
    weight = tl.zeros((SIZE,), tl.float32)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, n, BLOCK):
        if HOW == "break":
            if start >= limit:
                break
        elif HOW == "continue":
            if tl.load(kinds + start // BLOCK) == 0:
                continue
        block = start + keys
        scores = tl.dot(queries, tl.load(k + block[None, :] * SIZE + offsets[:, None]))
        above = tl.maximum(best, tl.max(scores, 1))
        parts = tl.exp(scores - above[:, None])
        scale = tl.exp(best - above)
        values = tl.load(v + block[:, None] * SIZE + offsets[None, :])
        total = tl.dot(parts.to(tl.float16), values, total * scale[:, None])
        weight = weight * scale + tl.sum(parts, 1)
        best = above
    tl.store(out + rows[:, None] * SIZE + offsets[None, :], total / weight[:, None])


@dataclass(frozen=True)
class Exit:
    """A launch, and what it must give."""

    kernel: Any
    how: str
    arguments: Callable[[], list[Any]]
    expected: Callable[..., np.ndarray[Any, Any]]
    out: int

    def __str__(self) -> str:
        return f"{self.kernel.__name__}-{self.how}"


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    generated = np.random.default_rng(0).integers(-8, 9, shape)
    return (generated / 8).astype(np.float16)


def matmul_arguments(how: str) -> list[Any]:
    """Blocks 1 and 3 do not count where `steps` is looked at; nothing is stored behind the last block that does."""
    steps = np.array([1, 0, 1, 0, 1, 0, 0, 0, 0], np.int32)
    if how == "table":
        steps = np.array([1, 1, 1, 1, 1, -1], np.int32)
    if how == "both":
        steps = steps[:5]
    return [numbers(5, SIZE, BLOCK_K), numbers(LIMIT, SIZE), np.zeros((SIZE, SIZE), np.float32), steps, MORE, LIMIT]


def matmul_expected(how: str, a, b, c, steps, n: int, limit: int) -> np.ndarray[Any, Any]:
    counts = {"both": (0, 2, 4), "continue": (0, 2, 4), "pointers": (0, 1, 3, 4)}.get(how, range(5))
    blocks = b.reshape(5, BLOCK_K, SIZE)
    total = np.sum([a[i].astype(np.float32) @ blocks[i].astype(np.float32) for i in counts], axis=0)
    return total + len(counts) + (1000 if how == "continue" else 0)


def attention_arguments(how: str) -> list[Any]:
    kinds = np.array([1, 0, 1, 1, 0], np.int32) if how == "break" else np.array([1, 0, 1, 1, 1, 0, 0, 0, 0], np.int32)
    out = np.zeros((SIZE, SIZE), np.float32)
    return [numbers(SIZE, SIZE), numbers(LIMIT, SIZE), numbers(LIMIT, SIZE), out, kinds, MORE, LIMIT]


def attention_expected(how: str, q, k, v, out, kinds, n: int, limit: int) -> np.ndarray[Any, Any]:
    kept = np.repeat(np.ones(5, bool) if how == "break" else kinds[:5] != 0, BLOCK_K)
    scores = q.astype(np.float32) @ k[kept].astype(np.float32).T
    parts = np.exp(scores - scores.max(1, keepdims=True))
    return (parts / parts.sum(1, keepdims=True)) @ v[kept].astype(np.float32)


EXITS = [
    *(Exit(matmul, how, lambda how=how: matmul_arguments(how), matmul_expected, 2) for how in ("break", "table", "both",
        "continue", "pointers", "end")),
    *(Exit(attention, how, lambda how=how: attention_arguments(how), attention_expected, 3) for how in ("break",
        "continue")),
]  # fmt: skip
