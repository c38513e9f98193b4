"""Attention without ever storing the score matrix: a running maximum and sum per row (flash attention)."""

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case


@tilework.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, scale_log2e, stride_head, stride_row, n,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * stride_head
    rm = tile * BM + tl.arange(0, BM)
    rn = tl.arange(0, BN)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + base + rm[:, None] * stride_row + rd[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    k_ptrs = k_ptr + base + rn[None, :] * stride_row + rd[:, None]
    v_ptrs = v_ptr + base + rn[:, None] * stride_row + rd[None, :]
    end = (tile + 1) * BM if CAUSAL else n
    for start in range(0, end, BN):
        scores = tl.dot(q, tl.load(k_ptrs)) * scale_log2e
        if CAUSAL:
            scores = tl.where(rm[:, None] >= (start + rn)[None, :], scores, -1.0e6)
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        p = tl.math.exp2(scores - new_highest[:, None])
        correction = tl.math.exp2(highest - new_highest)
        total = total * correction + tl.sum(p, 1)
        v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc * correction[:, None])
        highest = new_highest
        k_ptrs += BN * stride_row
        v_ptrs += BN * stride_row
    tl.store(
        out_ptr + base + rm[:, None] * stride_row + rd[None, :], (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    )


def inputs(rng: np.random.Generator) -> Arrays:
    heads, n, d = 2, 64, 32
    draw = lambda: (rng.standard_normal((heads, n, d)) / 2).astype("f2")
    return {
        "q_ptr": draw(), "k_ptr": draw(), "v_ptr": draw(), "out_ptr": draw(),
        "scale_log2e": 1.4426950408889634 / d**0.5, "stride_head": n * d, "stride_row": d, "n": n,
    }  # fmt: skip


def reference(a: Arrays, causal: bool) -> Arrays:
    q, k, v = (a[name].astype("f8") for name in ("q_ptr", "k_ptr", "v_ptr"))
    scores = q @ k.transpose(0, 2, 1) * a["scale_log2e"] / 1.4426950408889634
    if causal:
        scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return {"out_ptr": (p / p.sum(-1, keepdims=True) @ v).astype("f2")}


CASES = [
    Case(
        name="attention_causal" if causal else "attention",
        kernel=attention,
        signature={
            "q_ptr": "*fp16",
            "k_ptr": "*fp16",
            "v_ptr": "*fp16",
            "out_ptr": "*fp16",
            "scale_log2e": "fp32",
            "stride_head": "i32",
            "stride_row": "i32",
            "n": "i32",
        },  # fmt: skip
        constexprs={"BM": 32, "BN": 16, "D": 32, "CAUSAL": causal},
        grid=(2, 2),
        arguments=inputs,
        expected=lambda a, causal=causal: reference(a, causal),
        atol=4e-3,
        divisible=("q_ptr", "k_ptr", "v_ptr", "out_ptr", "stride_head", "stride_row", "n"),
    )
    for causal in (False, True)
]
