"""Python that the tile language does not have."""

import tilework
import tilework.language as tl


@tilework.jit
def multiple_targets(p, n, BLOCK: tl.constexpr):
    a = b = n


@tilework.jit
def subscript_assignment(p, n, BLOCK: tl.constexpr):
    x = tl.arange(0, BLOCK)
    x[0] = 1


@tilework.jit
def attribute_assignment(p, n, BLOCK: tl.constexpr):
    p.value = 1


@tilework.jit
def lambda_expression(p, n, BLOCK: tl.constexpr):
    f = lambda x: x + 1


@tilework.jit
def dict_display(p, n, BLOCK: tl.constexpr):
    x = {"a": 1}


@tilework.jit
def try_statement(p, n, BLOCK: tl.constexpr):
    try:
        tl.store(p, 1.0)
    except ValueError:
        pass


@tilework.jit
def raise_statement(p, n, BLOCK: tl.constexpr):
    raise ValueError("no")


@tilework.jit
def import_statement(p, n, BLOCK: tl.constexpr):
    import math


@tilework.jit
def nested_function(p, n, BLOCK: tl.constexpr):
    def f(x):
        return x


@tilework.jit
def keyword_expansion(p, n, BLOCK: tl.constexpr):
    tl.store(p, 1.0, **n)


@tilework.jit
def walrus(p, n, BLOCK: tl.constexpr):
    if (m := n) > 3:
        tl.store(p, m)


@tilework.jit
def unpack_too_few(p, n, BLOCK: tl.constexpr):
    a, b, c = 1, 2


@tilework.jit
def unpack_a_tensor(p, n, BLOCK: tl.constexpr):
    a, b = tl.arange(0, 2)
