"""Kernels as they are in programs that serve models, on every device and against NumPy: pages of keys, weights of four
bits."""

import numpy as np

import tilework.language as tl
from tests.differential.harness import launch
from tilework.language.function import jit


@jit
def paged(
    out,
    q,
    keys,
    values,
    tables,
    lengths,
    scale,
    most,
    G: tl.constexpr,
    GP: tl.constexpr,
    D: tl.constexpr,
    PAGE: tl.constexpr,
):
    """One query of each sequence; G heads share keys, GP is a size that dots take."""
    b, h, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    n = tl.load(lengths + b)
    rg, rd, rp = tl.arange(0, GP), tl.arange(0, D), tl.arange(0, PAGE)
    at = ((b * heads + h) * G + rg)[:, None] * D + rd[None, :]
    x = tl.load(q + at, mask=rg[:, None] < G, other=0.0)
    top = tl.full([GP], float("-inf"), tl.float32)
    total, acc = tl.zeros([GP], tl.float32), tl.zeros([GP, D], tl.float32)
    for page in range(0, tl.cdiv(n, PAGE)):
        rows = (tl.load(tables + b * most + page).to(tl.int64) * PAGE + rp) * heads * D + h * D
        left = n - page * PAGE
        s = tl.dot(x, tl.load(keys + rows[None, :] + rd[:, None], mask=rp[None, :] < left, other=0.0)) * scale
        s = tl.where(rp[None, :] < left, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        p, shrink = tl.exp(s - new[:, None]), tl.exp(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(values + rows[:, None] + rd[None, :], mask=rp[:, None] < left, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new
    tl.store(out + at, (acc / tl.where(total == 0.0, 1.0, total)[:, None]).to(tl.float16), mask=rg[:, None] < G)


def test_pages_of_keys() -> None:
    """A sequence may be empty, and tables hold nonsense behind their ends."""
    heads, g, d, page = 2, 3, 32, 16
    rng, lengths = np.random.default_rng(0), np.array([0, 1, 37], np.int32)
    tables = np.full((3, 4), 1 << 30, np.int32)
    tables[1, 0], tables[2, :3] = 5, (7, 0, 3)
    q = rng.standard_normal((3, heads, g, d)).astype(np.float16)
    keys, values = (rng.standard_normal((8, page, heads, d)).astype(np.float16) for _ in range(2))
    given = {"out": np.zeros_like(q), "q": q, "keys": keys, "values": values, "tables": tables, "lengths": lengths}
    constants = {"G": g, "GP": 16, "D": d, "PAGE": page}
    out = launch(paged, {**given, "scale": d**-0.5, "most": 4}, constants, (3, heads), atol=4e-3)["out"]
    wanted = np.zeros(q.shape)
    for b in (1, 2):
        rows = [(tables[b, i // page], i % page) for i in range(lengths[b])]
        k, v = (np.stack([held[row] for row in rows], 1).astype(np.float64) for held in (keys, values))
        weights = np.exp(q[b].astype(np.float64) @ k.transpose(0, 2, 1) * d**-0.5)
        wanted[b] = weights / weights.sum(2, keepdims=True) @ v
    np.testing.assert_allclose(out.astype(np.float64), wanted, atol=4e-3)


@jit
def quantised(
    x, packed, scales, zeros, out, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Eight weights along K are in a word, and eight zeros along N."""
    rm, rn, rk = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(x + rm[:, None] * K + (k + rk)[None, :], mask=(rm[:, None] < M) & ((k + rk)[None, :] < K), other=0)
        rw = k // 8 + tl.arange(0, BK // 8)
        words = tl.load(packed + rw[:, None] * N + rn[None, :], mask=(rw[:, None] * 8 < K) & (rn[None, :] < N), other=0)
        w = ((words[:, None, :] >> (tl.arange(0, 8) * 4)[None, :, None]) & 15).reshape(BK, BN)
        ok, group = ((k + rk)[:, None] < K) & (rn[None, :] < N), (k + rk) // GROUP
        z = tl.load(zeros + group[:, None] * tl.cdiv(N, 8) + (rn // 8)[None, :], mask=ok, other=0)
        s = tl.load(scales + group[:, None] * N + rn[None, :], mask=ok, other=0)
        acc = tl.dot(a, (w - ((z >> ((rn % 8) * 4)[None, :]) & 15)).to(tl.float16) * s, acc)
    tl.store(out + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def packed_words(digits: np.ndarray) -> np.ndarray:
    """Along the first dimension."""
    digits = np.pad(digits.astype(np.uint32), ((0, -len(digits) % 8), (0, 0)))
    return np.bitwise_or.reduce([digits[i::8] << np.uint32(4 * i) for i in range(8)]).view(np.int32)


def test_weights_of_four_bits() -> None:
    m, n, k, group = 21, 43, 96, 32
    rng = np.random.default_rng(1)
    x, w, z = rng.integers(-3, 4, (m, k)).astype(np.float16), rng.integers(0, 16, (k, n)), rng.integers(0, 16, (3, n))
    scales = (2.0 ** rng.integers(-3, 2, (3, n))).astype(np.float16)
    given = {"x": x, "packed": packed_words(w), "scales": scales, "zeros": np.ascontiguousarray(packed_words(z.T).T)}
    sizes = {"M": m, "N": n, "K": k}
    constants = {"GROUP": group, "BM": 16, "BN": 32, "BK": 32}
    out = launch(quantised, {**given, "out": np.zeros((m, n), np.float32), **sizes}, constants, (2, 2))["out"]
    wanted = x.astype(np.float64) @ ((w - z.repeat(group, 0)) * scales.repeat(group, 0).astype(np.float64))
    np.testing.assert_array_equal(out, wanted)
