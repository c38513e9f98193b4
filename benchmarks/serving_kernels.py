"""Kernels of serving language models, of a few to some hundred microseconds, for `serving_rows.py`."""

import tilework as triton
import tilework.language as tl


@triton.jit
def paged_decode(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, o_ptr, scale, pages,
    HEADS: tl.constexpr, QUERIES: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr, PAGE: tl.constexpr,
    SPLITS: tl.constexpr,
):  # fmt: skip
    """Attention of one query of each head to the keys of its sequence, whose pages a table lists.

    One program computes the `QUERIES` heads that share a head of keys, for one of `SPLITS` parts of the pages.
    """
    sequence, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row, d, token = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, PAGE)
    is_query = row[:, None] < QUERIES
    query = (sequence * HEADS + head) * QUERIES + row
    q = tl.load(q_ptr + query[:, None] * D + d[None, :], mask=is_query, other=0.0)
    length = tl.load(lengths_ptr + sequence)
    share = tl.cdiv(tl.cdiv(length, PAGE), SPLITS)
    peak = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for page in range(split * share, tl.minimum((split + 1) * share, tl.cdiv(length, PAGE))):
        at = tl.load(table_ptr + sequence * pages + page).to(tl.int64)
        offset = (at * PAGE + token) * (HEADS * D) + head * D
        is_token = page * PAGE + token < length
        k = tl.load(k_ptr + offset[None, :] + d[:, None], mask=is_token[None, :], other=0.0)
        scores = tl.where(is_token[None, :], tl.dot(q, k) * (scale * 1.4426950408889634), -float("inf"))
        high = tl.maximum(peak, tl.max(scores, 1))
        p = tl.exp2(scores - high[:, None])
        shrink = tl.exp2(peak - high)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + offset[:, None] + d[None, :], mask=is_token[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        peak = high
    target = o_ptr + (query[:, None] * SPLITS + split) * D + d[None, :]
    tl.store(target, (acc / total[:, None]).to(o_ptr.dtype.element_ty), mask=is_query)


@triton.jit
def expert_matmul(
    a_ptr, b_ptr, c_ptr, rows_ptr, experts_ptr, tokens, N, K, choices,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Rows of `a`, sorted by expert, times the matrix [N, K] of their expert; a row without a token is `tokens`."""
    columns = tl.cdiv(N, BN)
    pid_m, pid_n = tl.program_id(0) // columns, tl.program_id(0) % columns
    row = tl.load(rows_ptr + pid_m * BM + tl.arange(0, BM))
    is_token = row[:, None] < tokens
    expert = tl.load(experts_ptr + pid_m).to(tl.int64)
    n, k = pid_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + (row // choices)[:, None] * K + k[None, :]
    b_ptrs = b_ptr + expert * N * K + n[None, :] * K + k[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptrs, mask=is_token & (k[None, :] < K - start), other=0.0)
        b = tl.load(b_ptrs, mask=(n[None, :] < N) & (k[:, None] < K - start), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK
    target = c_ptr + row[:, None] * N + n[None, :]
    tl.store(target, acc.to(c_ptr.dtype.element_ty), mask=is_token & (n[None, :] < N))


@triton.jit
def int4_matmul(
    a_ptr, b_ptr, scales_ptr, c_ptr, M, N, K,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Times weights of 4 bits: eight of a column in one i32 [K / 8, N], a scale for each `GROUP` of a column."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :], mask=m[:, None] < M, other=0.0)
        packed = tl.load(b_ptr + ((start + k) // 8)[:, None] * N + n[None, :])
        scale = tl.load(scales_ptr + (start // GROUP) * N + n)
        weight = ((packed >> ((k % 8) * 4)[:, None]) & 15) - 8
        acc = tl.dot(a, weight.to(a.dtype) * scale[None, :], acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=m[:, None] < M)


@triton.jit
def fp8_matmul(
    a_ptr, b_ptr, scales_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Times weights of 8 bits [N, K], with a scale for each row of them."""
    m = tl.program_id(1) * BM + tl.arange(0, BM)
    n, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :], mask=m[:, None] < M, other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + (start + k)[:, None])
        acc = tl.dot(a, b.to(a.dtype), acc)
    acc *= tl.load(scales_ptr + n)[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=m[:, None] < M)


@triton.jit
def norm_quantize(x_ptr, weight_ptr, out_ptr, scales_ptr, n, eps, BLOCK: tl.constexpr):
    """RMS norm of a row, as int8 with a scale for the row."""
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    mask = column < n
    x = tl.load(x_ptr + row * n + column, mask=mask, other=0.0).to(tl.float32)
    x *= tl.rsqrt(tl.sum(x * x, 0) / n + eps) * tl.load(weight_ptr + column, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), 0), 1e-10) / 127.0
    value = x / scale
    value += tl.where(value >= 0, 0.5, -0.5)
    tl.store(out_ptr + row * n + column, value.to(tl.int8), mask=mask)
    tl.store(scales_ptr + row, scale)


@triton.jit
def largest(x_ptr, out_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr):
    """The `K` largest values of each block of a row, descending: the first step of sampling from the most likely."""
    row, block = tl.program_id(0), tl.program_id(1)
    column = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + column, mask=column < n, other=-float("inf")).to(tl.float32)
    tl.store(out_ptr + (row * tl.num_programs(1) + block) * K + tl.arange(0, K), tl.topk(x, K))


@triton.jit
def sample(x_ptr, out_ptr, n, temperature, seed, BLOCK: tl.constexpr):
    """Sample the index of a token by its logit: the largest of logit / temperature + Gumbel noise."""
    row = tl.program_id(0)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    index = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + column, mask=column < n, other=-float("inf")).to(tl.float32)
        noise = tl.rand(seed, row * n + column)
        x = x / temperature - tl.log(-tl.log(tl.maximum(noise, 1e-20)))
        index = tl.where(x > best, column, index)
        best = tl.maximum(x, best)
    at = tl.argmax(best, 0)
    tl.store(out_ptr + row, tl.sum(tl.where(tl.arange(0, BLOCK) == at, index, 0), 0))
