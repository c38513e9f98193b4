"""Kernels that `benchmarks.tune` tunes, for whatever `triton` is in the process."""

import triton
import triton.language as tl

MATMULS = [
    triton.Config({"M": m, "N": n, "K": k}, num_warps=warps, num_stages=stages)
    for m in (64, 128)
    for n in (64, 128)
    for k in (32, 64)
    for warps in (4, 8)
    for stages in (2, 3, 4)
][:40]
ADDS = [triton.Config({"BLOCK": block}, num_warps=4) for block in (256, 512, 1024, 2048)]


@triton.jit
def add(x, y, out, n, SEED: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n) + SEED, mask=i < n)


@triton.jit
def matmul(a, b, c, n, SEED: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.program_id(1) * N + tl.arange(0, N)
    k = tl.arange(0, K)
    acc = tl.full((M, N), SEED, tl.float32)
    for start in range(0, n, K):
        left = tl.load(a + i[:, None] * n + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * n + j[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + i[:, None] * n + j[None, :], acc.to(tl.float16))
