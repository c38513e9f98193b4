"""The kernels that `small_kernels.py` measures, written once for both compilers."""

import tilework as triton
import tilework.language as tl


@triton.jit
def nothing(x):
    pass


@triton.jit
def one_store(x):
    tl.store(x, 1.0)


@triton.jit
def small_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def small_softmax(x, out, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * n + column, value / tl.sum(value, 0), mask=mask)


@triton.jit
def rms_norm(x, weight, out, n, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < n
    value = tl.load(x + row * n + column, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    tl.store(out + row * n + column, (value * scale * tl.load(weight + column, mask=mask)).to(tl.bfloat16), mask=mask)


@triton.jit
def gather_rows(x, indices, out, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    source = tl.load(indices + row)
    tl.store(out + row * n + column, tl.load(x + source * n + column, mask=column < n), mask=column < n)


@triton.jit
def silu_times(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    value = tl.load(x + at, mask=mask).to(tl.float32)
    tl.store(out + at, (value * tl.sigmoid(value)).to(tl.bfloat16) * tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def row_sums(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + column, mask=column < n, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


@triton.jit
def small_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        total = tl.dot(left, tl.load(b + (start + k)[:, None] * N + n[None, :]), total)
    tl.store(c + m[:, None] * N + n[None, :], total.to(tl.float16))
