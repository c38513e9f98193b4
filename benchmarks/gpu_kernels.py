"""The kernels that `gpu.py` and `small_kernels.py` measure, written once for both compilers."""

import tilework as triton
import tilework.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def softmax(out_ptr, in_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(in_ptr + row * columns + offsets, mask=offsets < columns, other=-float("inf"))
    x = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * columns + offsets, x / tl.sum(x, axis=0), mask=offsets < columns)


@triton.jit
def layernorm(out_ptr, in_ptr, w_ptr, b_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(in_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centred = tl.where(mask, x - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * columns + offsets, centred * scale * w + b, mask=mask)


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, SPECIALIZE: tl.constexpr = False,
):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    pid_m = first + (pid % (GROUP * columns)) % size
    pid_n = (pid % (GROUP * columns)) // size
    rm = (pid_m * BM + tl.arange(0, BM)) % M
    rn = (pid_n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * stride_a + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * stride_b + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=SPECIALIZE):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * stride_b
    rm = pid_m * BM + tl.arange(0, BM)
    rn = pid_n * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * stride_c + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def attend(
    acc, total, peak, q, k_ptrs, v_ptrs, rm, rn, begin, end, scale,
    BN: tl.constexpr, D: tl.constexpr, MASKED: tl.constexpr, SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """The keys from `begin` to `end`; `scale` is for powers of two."""
    k_ptrs += begin * D
    v_ptrs += begin * D
    for start in tl.range(begin, end, BN, warp_specialize=SPECIALIZE):
        scores = tl.dot(q, tl.load(k_ptrs)) * scale
        if MASKED:
            scores = tl.where(rm[:, None] >= start + rn[None, :], scores, -float("inf"))
        high = tl.maximum(peak, tl.max(scores, 1))
        p = tl.exp2(scores - high[:, None])
        shrink = tl.exp2(peak - high)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(tl.float16), tl.load(v_ptrs), acc)
        peak = high
        k_ptrs += BN * D
        v_ptrs += BN * D
    return acc, total, peak


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
    CAUSAL: tl.constexpr = False, SPECIALIZE: tl.constexpr = False,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64) * length * D
    row = tl.program_id(0) * BM
    rm = row + tl.arange(0, BM)
    rn, rd = tl.arange(0, BN), tl.arange(0, D)
    q = tl.load(q_ptr + head + rm[:, None] * D + rd[None, :])
    k_ptrs = k_ptr + head + rn[None, :] * D + rd[:, None]
    v_ptrs = v_ptr + head + rn[:, None] * D + rd[None, :]
    peak = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    scale *= 1.4426950408889634
    end = row if CAUSAL else length
    acc, total, peak = attend(
        acc, total, peak, q, k_ptrs, v_ptrs, rm, rn, 0, end, scale, BN, D, MASKED=False, SPECIALIZE=SPECIALIZE
    )
    if CAUSAL:
        acc, total, peak = attend(
            acc, total, peak, q, k_ptrs, v_ptrs, rm, rn, row, row + BM, scale, BN, D, MASKED=True, SPECIALIZE=False
        )
    tl.store(o_ptr + head + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def matmul_descriptors(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    SPECIALIZE: tl.constexpr = False,
):  # fmt: skip
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    row = (first + (pid % (GROUP * columns)) % size) * BM
    column = ((pid % (GROUP * columns)) // size) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=SPECIALIZE):
        acc = tl.dot(a.load([row, k * BK]), b.load([k * BK, column]), acc)
    c.store([row, column], acc.to(c.dtype))


@triton.jit
def transpose(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    x = tl.load(x_ptr + rm[:, None] * N + rn[None, :], mask=mask)
    tl.store(y_ptr + rm[:, None] + rn[None, :] * M, x, mask=mask)


@triton.jit
def cumsum(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
    tl.store(y_ptr + row * columns + offsets, tl.cumsum(x, 0), mask=offsets < columns)


@triton.jit
def sort(x_ptr, y_ptr, BLOCK: tl.constexpr):
    row, offsets = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(y_ptr + row * BLOCK + offsets, tl.sort(tl.load(x_ptr + row * BLOCK + offsets)))


@triton.jit
def histogram(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(counts_ptr + tl.load(x_ptr + offsets, mask=mask, other=0), 1, mask=mask)


# Of a few microseconds


@triton.jit
def nothing(x):
    pass


@triton.jit
def one_store(x):
    tl.store(x, 1.0)


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
