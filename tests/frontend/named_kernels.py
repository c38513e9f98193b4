"""Kernels whose IR with locations is compared with Triton's: `named_kernels.ttir` is the output of Triton 3.6."""

import tilework
import tilework.language as tl


@tilework.jit
def straight(src, N, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offset = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offset < N
    x_plus_1 = tl.load(src + offset, mask=mask, other=0.0) + 1.0
    tl.store(src + offset, x_plus_1, mask=mask)


@tilework.jit
def loop(src, N, M, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    ptrs = src + tl.arange(0, BLOCK_SIZE)
    for i in range(0, N):
        x = tl.load(ptrs + i)
        acc += x
        ptrs += M
    tl.store(src + pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE), acc)


@tilework.jit
def branches(src, N, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offsets = tl.arange(0, BLOCK_SIZE)
    if pid > N:
        x = tl.load(src + offsets)
        y = x * 2.0
    else:
        x = tl.load(src + offsets + 1)
        y = x + 2.0
    tl.store(src + offsets, y)


@tilework.jit
def early_return(src, N, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= N:
        return
    offsets = tl.arange(0, BLOCK_SIZE)
    x = tl.load(src + offsets)
    tl.store(src + offsets, x * x)


@tilework.jit
def while_loop(src, N, BLOCK_SIZE: tl.constexpr):
    offsets = tl.arange(0, BLOCK_SIZE)
    acc = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    i = 0
    while i < N:
        acc += tl.load(src + offsets + i)
        i += 1
    tl.store(src + offsets, acc)


@tilework.jit
def helper(a, b):
    c = a * b
    return c + 1


@tilework.jit
def call(src, N, BLOCK_SIZE: tl.constexpr):
    o = tl.arange(0, BLOCK_SIZE)
    x = tl.load(src + o)
    y = helper(x, x)
    m = tl.max(y, 0)
    s = tl.sum(tl.exp(y - m), axis=0)
    z = y / s
    tl.store(src + o, z)


@tilework.jit
def tuples(src, N, BLOCK_SIZE: tl.constexpr):
    o = tl.arange(0, BLOCK_SIZE)
    a, b = tl.load(src + o), tl.load(src + o + N)
    a, b = b, a
    t = (a, b)
    if N > 3:
        t = (b, a)
    for k in tl.static_range(2):
        a = a + t[k]
    for j in range(3):
        for i in range(j, N, 2):
            if i > 4:
                a += b
                b = a
    tl.store(src + o, a + b)


@tilework.jit
def numbers(src, x_ptr, N, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid.to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    h = tl.load(x_ptr + offs, mask=offs < N, other=0)
    y = h * 2.0 + 1
    z = tl.where(y > 0, y, 0.5)
    w = tl.maximum(z.to(tl.float32), 0.0)
    if N == 4:
        return
    q = w
    for i in tl.range(0, N, 2, num_stages=2):
        if i % 2 == 0:
            q = w * 2
        else:
            w = w + i
    n = 1
    if pid == 0:
        n = 2
    tl.store(src + offs, q + w + n, mask=offs < N)
    tl.atomic_add(src, 1.0)


@tilework.jit
def loop_first(src, N):
    for i in range(10):
        v = tl.load(src + i)
        if v > 1.0:
            tl.store(src + i, v * 0.5)
    tl.store(src, 0.0)


@tilework.jit
def branch_in_while(src, N):
    x = tl.load(src)
    k = tl.program_id(0)
    while k > 0:
        if k % 3 == 0:
            x = x * 2
        k -= 1
    tl.store(src, x)


@tilework.jit
def blocks(src, N):
    if N > 3:
        x = 1.0
        if N > 5:
            return
    else:
        x = 2.0
    for k in range(N):
        if k % 3 == 0:
            x = x * 2
    tl.store(src, x)


@tilework.jit
def ternary(src, N):
    x = tl.load(src)
    y = x if N > 2 else x + 1
    z = x * (y if N > 3 else -y)
    tl.store(src, z)
