"""Reductions, scans and dots in kernels that promise the same bits: one order on every device, with any number of warps."""

from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from tests.differential.everywhere import everywhere

RNG = np.random.default_rng(5)


def wild(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Numbers of many magnitudes: their sum depends on the order."""
    return (RNG.standard_normal(shape) * 10.0 ** RNG.uniform(-3, 3, shape)).astype(dtype)


@tilework.jit
def weighted(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a * 0.5 + c, b + d * 0.25  # neither commutative nor associative


@tilework.jit
def reductions(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    block = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, M), tl.sum(block, axis=1))
    tl.store(out + M + tl.arange(0, N), tl.sum(block, axis=0))
    left, right = tl.reduce((block.reshape(M * N), block.reshape(M * N)), 0, weighted)
    tl.store(out + M + N, left + right + tl.sum(block))


def test_a_reduction_is_one_tree() -> None:
    x = wild(8, 32)
    found = everywhere(reductions, {"x": x, "out": np.zeros(41, np.float32)}, {"M": 8, "N": 32})["out"]
    tree = x
    while tree.shape[1] > 1:
        tree = tree[:, 0::2] + tree[:, 1::2]
    assert (found[:8] == tree[:, 0]).all()
