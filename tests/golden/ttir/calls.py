"""Functions: inlined and not, tuples in and out, constants, early returns, poison."""

import tilework
import tilework.language as tl


@tilework.jit
def min_max(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@tilework.jit
def scaled(x, factor, offset: tl.constexpr):
    return x * factor + offset


@tilework.jit(noinline=True)
def stored(p, x):
    tl.store(p, x)
    return x + 1


@tilework.jit
def maybe(x):
    if x > 3:
        return x


@tilework.jit
def constants_beside_values(x, N: tl.constexpr):
    if x > 3:
        return x, 1, N, None
    return 5, 2, N, None


@tilework.jit
def next_of(N: tl.constexpr):
    return N + 1


@tilework.jit
def carried(t, x):
    a, (b, c) = t
    return a + x, (c, b)


@tilework.jit
def tuple_results(p, n, BLOCK: tl.constexpr):
    low, high = min_max(n, 7)
    tl.store(p, low)
    tl.store(p + 1, high)


@tilework.jit
def constants(p, n, BLOCK: tl.constexpr):
    tl.store(p, scaled(n, 2, 1) + scaled(n, n, 1))


@tilework.jit
def not_inlined(p, n, BLOCK: tl.constexpr):
    x = stored(p, n)
    tl.store(p, x)


@tilework.jit
def undefined_result(p, n, BLOCK: tl.constexpr):
    tl.store(p, maybe(n))


@tilework.jit
def carried_tuple(p, n, BLOCK: tl.constexpr):
    t = (n, (1, 2))
    for i in range(n):
        t = carried(t, i)
    tl.store(p, t[0] + t[1][0])


@tilework.jit
def returned_constants(p, n, BLOCK: tl.constexpr):
    a, b, c, _ = constants_beside_values(n, 8)
    tl.store(p, a + b + c)
    tl.store(p + next_of(BLOCK), n)
