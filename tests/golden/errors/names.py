"""Names: undefined, global, hidden, out of scope."""

import math

import numpy as np

import tilework
import tilework.language as tl

SCALE = 3
ANNOTATED: tl.constexpr = 4
LIMITS = [1, 2, 3]


def plain_function(x):
    return x + 1


@tilework.jit
def undefined_name(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(p + offset, 1.0)


@tilework.jit
def undefined_augmented(p, n, BLOCK: tl.constexpr):
    total += n


@tilework.jit
def mutable_global(p, n, BLOCK: tl.constexpr):
    tl.store(p, n * SCALE)


@tilework.jit
def annotated_global(p, n, BLOCK: tl.constexpr):
    tl.store(p, n * ANNOTATED)


@tilework.jit
def global_list(p, n, BLOCK: tl.constexpr):
    tl.store(p, n * LIMITS[0])


@tilework.jit
def python_function(p, n, BLOCK: tl.constexpr):
    tl.store(p, plain_function(n))


@tilework.jit
def numpy_function(p, n, BLOCK: tl.constexpr):
    tl.store(p, np.sqrt(n))


@tilework.jit
def python_builtin(p, n, BLOCK: tl.constexpr):
    tl.store(p, sum([n, n]))


@tilework.jit
def defined_in_one_branch(p, n, BLOCK: tl.constexpr):
    if n > 3:
        x = n + 1
    tl.store(p, x)


@tilework.jit
def defined_in_loop(p, n, BLOCK: tl.constexpr):
    for i in range(n):
        x = i * 2
    tl.store(p, x)


@tilework.jit
def unknown_language_name(p, n, BLOCK: tl.constexpr):
    tl.store(p, tl.sqroot(1.0))


@tilework.jit
def math_of_runtime_value(p, n, BLOCK: tl.constexpr):
    tl.store(p, math.sqrt(n))
