"""The kernels whose compilation by Triton is kept in `tests/ir/reference`, with the arguments that it was given.

    kernel, types, constants = KERNELS["matmul_f16"]

Every pointer and integer has `tt.divisibility = 16`.
"""

from typing import Any

import tilework as tw
import tilework.language as tl


@tw.jit
def vadd(x, y, z, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(z + offs, tl.load(x + offs, mask=mask) + tl.load(y + offs, mask=mask), mask=mask)


@tw.jit
def softmax(out, inp, stride_in, stride_out, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(inp + row * stride_in + cols, mask=mask, other=-float("inf"))
    v = v - tl.max(v, axis=0)
    e = tl.exp(v)
    tl.store(out + row * stride_out + cols, e / tl.sum(e, axis=0), mask=mask)


@tw.jit
def layernorm(x, y, w, b, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(x + row * stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n_cols
    d = tl.where(mask, v - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n_cols + eps)
    o = d * rstd * tl.load(w + cols, mask=mask) + tl.load(b + cols, mask=mask)
    tl.store(y + row * stride + cols, o, mask=mask)


@tw.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    stride_am,
    stride_bk,
    stride_cm,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    width = GROUP * num_n
    group = pid // width
    first = group * GROUP
    size = min(num_m - first, GROUP)
    pm = first + (pid % width) % size
    pn = (pid % width) // size
    rm = (pm * BM + tl.arange(0, BM)) % M
    rn = (pn * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    pa = a + rm[:, None] * stride_am + rk[None, :]
    pb = b + rk[:, None] * stride_bk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(pb, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * stride_bk
    om = pm * BM + tl.arange(0, BM)
    on = pn * BN + tl.arange(0, BN)
    tl.store(
        c + om[:, None] * stride_cm + on[None, :],
        acc.to(c.dtype.element_ty),
        mask=(om[:, None] < M) & (on[None, :] < N),
    )


@tw.jit
def matmul_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    num_n = tl.cdiv(N, BN)
    width = GROUP * num_n
    group = pid // width
    first = group * GROUP
    size = min(num_m - first, GROUP)
    om = (first + (pid % width) % size) * BM
    on = ((pid % width) // size) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = a.load([om, k * BK])
        y = b.load([k * BK, on])
        acc = tl.dot(x, y, acc)
    c.store([om, on], acc.to(c.dtype))


@tw.jit
def attention(
    Q,
    K,
    V,
    out,
    scale_log2e,
    stride_h,
    stride_s,
    N,
    BM: tl.constexpr,
    BN: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    pm = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * stride_h
    rm = pm * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    q = tl.load(Q + base + rm[:, None] * stride_s + rd[None, :])
    m_i = tl.full((BM,), -float("inf"), tl.float32)
    l_i = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    pk = K + base + rn[None, :] * stride_s + rd[:, None]
    pv = V + base + rn[:, None] * stride_s + rd[None, :]
    hi = (pm + 1) * BM if CAUSAL else N
    for n in range(0, hi, BN):
        k = tl.load(pk)
        s = tl.dot(q, k) * scale_log2e
        if CAUSAL:
            s = tl.where(rm[:, None] >= (n + rn)[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.math.exp2(s - m_new[:, None])
        alpha = tl.math.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(pv)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_new
        pk += BN * stride_s
        pv += BN * stride_s
    tl.store(out + base + rm[:, None] * stride_s + rd[None, :], (acc / l_i[:, None]).to(out.dtype.element_ty))


@tw.jit
def row_cumsum(x, y, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(x + row * stride + cols, mask=mask, other=0.0)
    tl.store(y + row * stride + cols, tl.cumsum(v, 0), mask=mask)


@tw.jit
def row_sort(x, y, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + cols)
    tl.store(y + row * stride + cols, tl.sort(v))


@tw.jit
def transpose(x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    v = tl.load(x + rm[:, None] * N + rn[None, :], mask=mask)
    tl.store(y + rm[:, None] + rn[None, :] * M, v, mask=mask)


@tw.jit
def hist_atomic(x, h, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    v = tl.load(x + offs, mask=mask, other=0)
    tl.atomic_add(h + v, 1, mask=mask)


def matmul_of(operand: str, out: str, **tile: int) -> tuple[Any, dict[str, str], dict[str, Any]]:
    numbers = dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), "i32")
    return matmul, {"a": operand, "b": operand, "c": out, **numbers}, {**tile, "GROUP": 8}


def attention_of(**constants: Any) -> tuple[Any, dict[str, str], dict[str, Any]]:
    numbers = {"scale_log2e": "fp32", **dict.fromkeys(("stride_h", "stride_s", "N"), "i32")}
    return attention, {**dict.fromkeys(("Q", "K", "V", "out"), "*fp16"), **numbers}, constants


BLOCKS = {"a": "tensordesc<fp16[128, 64]>", "b": "tensordesc<fp16[64, 256]>", "c": "tensordesc<fp16[128, 256]>"}
KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, Any]]] = {
    "add": (vadd, {**dict.fromkeys("xyz", "*fp32"), "n": "i32"}, {"BLOCK": 1024}),
    "softmax": (
        softmax,
        {**dict.fromkeys(("out", "inp"), "*fp32"), **dict.fromkeys(("stride_in", "stride_out", "n_cols"), "i32")},
        {"BLOCK": 4096},
    ),
    "layernorm": (
        layernorm,
        {**dict.fromkeys("xywb", "*bf16"), "stride": "i32", "n_cols": "i32", "eps": "fp32"},
        {"BLOCK": 8192},
    ),
    "transpose": (transpose, {"x": "*fp32", "y": "*fp32", "M": "i32", "N": "i32"}, {"BM": 64, "BN": 64}),
    "matmul_f16": matmul_of("*fp16", "*fp16", BM=128, BN=256, BK=64),
    "matmul_f16_small": matmul_of("*fp16", "*fp16", BM=64, BN=64, BK=32),
    "matmul_tf32": matmul_of("*fp32", "*fp32", BM=128, BN=128, BK=32),
    "matmul_fp8": matmul_of("*fp8e4nv", "*fp16", BM=128, BN=128, BK=64),
    "matmul_descriptor": (
        matmul_tma,
        {**BLOCKS, **dict.fromkeys("MNK", "i32")},
        {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8},
    ),
    "attention": attention_of(BM=128, BN=64, D=64, CAUSAL=False),
    "attention_causal": attention_of(BM=128, BN=64, D=128, CAUSAL=True),
    "cumsum": (row_cumsum, {"x": "*fp32", "y": "*fp32", "stride": "i32", "n_cols": "i32"}, {"BLOCK": 2048}),
    "sort": (row_sort, {"x": "*fp32", "y": "*fp32", "stride": "i32"}, {"BLOCK": 64}),
    "histogram": (hist_atomic, {"x": "*i32", "h": "*i32", "n": "i32"}, {"BLOCK": 1024}),
}
