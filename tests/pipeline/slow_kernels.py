"""Kernels that are slow on a GPU, each for one reason."""

import tilework
import tilework.language as tl


@tilework.jit
def strided(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets * stride)
    tl.store(y_ptr + offsets, x)


@tilework.jit
def unaligned(x_ptr, y_ptr, start, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start + offsets)
    tl.store(y_ptr + offsets, x)


@tilework.jit
def exact_dot(a_ptr, b_ptr, c_ptr, n, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        a = tl.load(a_ptr + rows * n + columns + k)
        b = tl.load(b_ptr + (rows + k) * BLOCK + columns)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + rows * BLOCK + columns, acc)


@tilework.jit
def transposed(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    for k in range(0, n):
        x = tl.load(x_ptr + k * BLOCK * BLOCK + rows * BLOCK + columns)
        tl.store(y_ptr + k * BLOCK * BLOCK + columns * BLOCK + rows, x)


@tilework.jit
def masked(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, offsets < n).to(tl.int8), offsets < n)
