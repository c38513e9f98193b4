"""Branches and loops."""

import tilework
import tilework.language as tl


@tilework.jit
def merged_branch(p, n, BLOCK: tl.constexpr):
    x = n
    y = 1.0
    if n > 3:
        x = n * 2
        z = x + 1
    else:
        y = 2.0
        z = x - 1
    tl.store(p, x + z + y)


@tilework.jit
def early_return(p, n, BLOCK: tl.constexpr):
    if n < 0:
        return
    x = n
    if n > 5:
        x = 5
    tl.store(p, x)


@tilework.jit
def nested_loops(p, n, BLOCK: tl.constexpr):
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    offsets = tl.arange(0, BLOCK)
    for i in range(n):
        for j in tl.range(0, i, 2, num_stages=2):
            acc += tl.load(p + offsets + j)
        offsets += BLOCK
    tl.store(p + offsets, acc)


@tilework.jit
def counted_down(p, n, BLOCK: tl.constexpr):
    for i in range(n, 0, -2):
        tl.store(p + i, i)


@tilework.jit
def while_loop(p, n, BLOCK: tl.constexpr):
    total = 0
    while (n > 0) & (total < BLOCK):
        total += n
        n -= 1
    tl.store(p, total)


@tilework.jit
def ternary(p, n, BLOCK: tl.constexpr):
    x = n if n > 3 else -n
    tl.store(p, x)
