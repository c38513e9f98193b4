"""Mistakes of beginners: pointers taken for arrays or values, functions of the host, methods of lists."""

import math

import numpy as np

import tilework
import tilework.language as tl

STRICT = False


@tilework.jit
def index_loads_and_stores(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p[i] = p[i] * 2


@tilework.jit
def index_stores(p, n, BLOCK: tl.constexpr):
    p[0] = 1.0


@tilework.jit
def index_two_axes(p, n, BLOCK: tl.constexpr):
    x = p[n, 0]


@tilework.jit
def pointer_times_number(p, n, BLOCK: tl.constexpr):
    x = p * 2


@tilework.jit
def number_minus_pointer(p, n, BLOCK: tl.constexpr):
    x = 2 - p


@tilework.jit
def pointer_plus_float(p, n, BLOCK: tl.constexpr):
    x = p + 1.5


@tilework.jit
def pointer_compared(p, n, BLOCK: tl.constexpr):
    x = tl.where(p + tl.arange(0, BLOCK) > 0, 1.0, 0.0)


@tilework.jit
def pointer_in_condition(p, n, BLOCK: tl.constexpr):
    if p > 0:
        tl.store(p, 1.0)


@tilework.jit
def pointer_in_function(p, n, BLOCK: tl.constexpr):
    x = tl.exp(p + tl.arange(0, BLOCK))


@tilework.jit
def pointer_in_maximum(p, n, BLOCK: tl.constexpr):
    x = tl.maximum(p, 0.0)


@tilework.jit
def pointers_summed(p, n, BLOCK: tl.constexpr):
    x = tl.sum(p + tl.arange(0, BLOCK), 0)


@tilework.jit
def pointer_negated(p, n, BLOCK: tl.constexpr):
    x = -p


@tilework.jit
def print_without_text(p, n, BLOCK: tl.constexpr):
    print(n)


@tilework.jit
def math_of_tile(p, n, BLOCK: tl.constexpr):
    x = math.sqrt(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def math_of_number(p, n, BLOCK: tl.constexpr):
    x = math.floor(tl.load(p))


@tilework.jit
def math_without_counterpart(p, n, BLOCK: tl.constexpr):
    x = math.gamma(tl.load(p))


@tilework.jit
def numpy_of_tile(p, n, BLOCK: tl.constexpr):
    x = np.exp(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def numpy_sum(p, n, BLOCK: tl.constexpr):
    x = np.sum(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def append(p, n, BLOCK: tl.constexpr):
    r = []
    r.append(n)


@tilework.jit
def shape_of_pointer(p, n, BLOCK: tl.constexpr):
    x = p.shape[1]


@tilework.jit
def length_of_pointer(p, n, BLOCK: tl.constexpr):
    x = len(p)


@tilework.jit
def stride_of_pointer(p, n, BLOCK: tl.constexpr):
    x = p.stride(0)


@tilework.jit
def sum_of_list(p, n, BLOCK: tl.constexpr):
    x = sum([n, 2, 3])


@tilework.jit
def tile_mask_for_one_address(p, n, BLOCK: tl.constexpr):
    x = tl.load(p, mask=tl.arange(0, BLOCK) < n)


@tilework.jit
def tile_for_one_address(p, n, BLOCK: tl.constexpr):
    tl.store(p, tl.zeros((BLOCK,), tl.float32))


@tilework.jit
def result_of_store(p, n, BLOCK: tl.constexpr):
    x = tl.store(p, 1.0)
    y = x + 1
