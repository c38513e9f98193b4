"""Reductions and scans, with functions of the library and of the user."""

import tilework
import tilework.language as tl


@tilework.jit
def product(a, b):
    return a * b


@tilework.jit
def later(a, i, b, j):
    take = b >= a
    return tl.where(take, b, a), tl.where(take, j, i)


@tilework.jit
def library_sum(p, n, BLOCK: tl.constexpr):
    tl.store(p, tl.sum(tl.load(p + tl.arange(0, BLOCK)), axis=0))


@tilework.jit
def own_reduction(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value, index = tl.reduce((tl.load(p + offsets), offsets), 0, later)
    tl.store(p + index, value)


@tilework.jit
def own_scan(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(p + offsets)
    tl.store(p + offsets, tl.associative_scan(x, 0, product, reverse=True))
