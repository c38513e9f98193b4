"""Shapes: what does not broadcast, is not a power of two, or is not known at compile time."""

import tilework
import tilework.language as tl


@tilework.jit
def shapes_do_not_broadcast(p, n, BLOCK: tl.constexpr):
    a = tl.arange(0, BLOCK)
    b = tl.arange(0, 32)
    tl.store(p + a, a + b)


@tilework.jit
def not_a_power_of_two(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, 100)
    tl.store(p + offsets, 0.0)


@tilework.jit
def full_not_a_power_of_two(p, n, BLOCK: tl.constexpr):
    x = tl.full((33,), 1.0, tl.float32)


@tilework.jit
def range_of_runtime_size(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, n)


@tilework.jit
def zeros_of_runtime_size(p, n, BLOCK: tl.constexpr):
    x = tl.zeros((n,), tl.float32)


@tilework.jit
def missing_constexpr(p, n, BLOCK):
    x = tl.zeros((BLOCK,), tl.float32)


@tilework.jit
def reshape_changes_size(p, n, BLOCK: tl.constexpr):
    x = tl.reshape(tl.arange(0, BLOCK), (BLOCK, 2))


@tilework.jit
def axis_out_of_range(p, n, BLOCK: tl.constexpr):
    x = tl.sum(tl.arange(0, BLOCK), axis=1)


@tilework.jit
def expand_dims_axis(p, n, BLOCK: tl.constexpr):
    x = tl.expand_dims(tl.arange(0, BLOCK), 5)


@tilework.jit
def sliced_block(p, n, BLOCK: tl.constexpr):
    x = tl.arange(0, BLOCK)[10:]


@tilework.jit
def transpose_of_a_row(p, n, BLOCK: tl.constexpr):
    x = tl.arange(0, BLOCK).T


@tilework.jit
def dot_too_small(p, n, BLOCK: tl.constexpr):
    a = tl.zeros((16, 8), tl.float16)
    b = tl.zeros((8, 16), tl.float16)
    c = tl.dot(a, b)


@tilework.jit
def dot_k_differs(p, n, BLOCK: tl.constexpr):
    a = tl.zeros((16, 32), tl.float16)
    b = tl.zeros((64, 16), tl.float16)
    c = tl.dot(a, b)


@tilework.jit
def bad_program_axis(p, n, BLOCK: tl.constexpr):
    pid = tl.program_id(20)


@tilework.jit
def too_many_elements(p, n, BLOCK: tl.constexpr):
    x = tl.zeros((2048, 1024), tl.float32)


SIGNATURES = {"missing_constexpr": "*fp32, i32, i32"}
