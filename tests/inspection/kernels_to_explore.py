"""Kernels of which the tests know every line, and a program that launches one."""

import numpy as np

import tilework
import tilework.language as tl


@tilework.jit
def halved(x):
    return x * 0.5


@tilework.jit
def scaled_sum(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    total = halved(x + y)
    tl.store(out_ptr + offsets, total, mask=mask)


def launch(size: int = 1000) -> np.ndarray:
    x, y, out = (np.ones(size, np.float32) for _ in range(3))
    scaled_sum[(tilework.cdiv(size, 256),)](x, y, out, size, BLOCK=256)
    return out


if __name__ == "__main__":
    print(launch().sum())
