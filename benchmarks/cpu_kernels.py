"""The kernels of `make bench-cpu`, each with a few tile configurations to choose from."""

from typing import Any

import tilework
import tilework.language as tl

RSQRT2 = tl.constexpr(0.7071067811865476)
LOG2E = tl.constexpr(1.4426950408889634)


def configs(*choices: dict[str, Any]) -> list[tilework.Config]:
    return [tilework.Config(choice) for choice in choices]


BLOCKS = configs(*({"BLOCK": block} for block in (1024, 8192, 65536)))
# for what memory limits: sizes, and whether stores go past the caches
LARGE_BLOCKS = configs(*({"BLOCK": block, "CACHE": cache} for block in (65536, 262144) for cache in ("", ".cs")))


@tilework.autotune(configs=LARGE_BLOCKS, key=["n"])
@tilework.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, CACHE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    total = tl.load(x_ptr + i, mask=mask) + tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, total, mask=mask, cache_modifier=CACHE)


@tilework.autotune(configs=BLOCKS, key=["n"])
@tilework.jit
def exp(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=mask)), mask=mask)


@tilework.autotune(configs=BLOCKS, key=["n"])
@tilework.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(out_ptr + i, 0.5 * x * (1.0 + tl.erf(x * RSQRT2)), mask=mask)


@tilework.autotune(configs=configs({"BLOCK": 1 << 20}), key=["n"])
@tilework.jit
def exp_once(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


@tilework.autotune(configs=configs({"BLOCK": 4096}, {"BLOCK": 65536}), key=["n"], reset_to_zero=["out_ptr"])
@tilework.jit
def sum_all(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Each program sums a stretch of its own."""
    size = tl.cdiv(tl.cdiv(n, BLOCK), tl.num_programs(0)) * BLOCK
    first = tl.program_id(0) * size
    total = 0.0
    for start in range(first, min(first + size, n), BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0))
    tl.atomic_add(out_ptr, total)


@tilework.autotune(
    configs=configs(*({"ROWS": rows, "CACHE": cache} for rows in (1, 4, 16) for cache in ("", ".cs"))), key=["n_cols"]
)
@tilework.jit
def softmax(out_ptr, in_ptr, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr, CACHE: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    x = tl.load(in_ptr + rows * n_cols + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + rows * n_cols + cols, e / tl.sum(e, axis=1)[:, None], mask=mask, cache_modifier=CACHE)


@tilework.autotune(configs=configs({"ROWS": 1}, {"ROWS": 4}), key=["n_cols"])
@tilework.jit
def layernorm(out_ptr, in_ptr, w_ptr, b_ptr, n_cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = cols < n_cols
    x = tl.load(in_ptr + rows * n_cols + cols, mask=mask, other=0.0)
    mean = tl.sum(x, axis=1)[:, None] / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=1)[:, None] / n_cols + eps)
    y = centred * rstd * tl.load(w_ptr + cols, mask=mask) + tl.load(b_ptr + cols, mask=mask)
    tl.store(out_ptr + rows * n_cols + cols, y, mask=mask)


@tilework.autotune(configs=configs({"ROWS": 1}, {"ROWS": 8}), key=["n_cols"])
@tilework.jit
def cumsum(out_ptr, in_ptr, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK)[None, :]
    mask = cols < n_cols
    x = tl.load(in_ptr + rows * n_cols + cols, mask=mask, other=0.0)
    tl.store(out_ptr + rows * n_cols + cols, tl.cumsum(x, axis=1), mask=mask)


@tilework.autotune(configs=configs({"ROWS": 1}, {"ROWS": 8}), key=["n_rows"])
@tilework.jit
def sort_rows(out_ptr, in_ptr, n_rows, ROWS: tl.constexpr, COLS: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, COLS)[None, :]
    x = tl.load(in_ptr + rows * COLS + cols)
    tl.store(out_ptr + rows * COLS + cols, tl.sort(x))


@tilework.autotune(
    configs=configs(*({"BM": m, "BN": n} for m, n in ((16, 16), (32, 32), (64, 64), (16, 128)))), key=["M", "N"]
)
@tilework.jit
def transpose(out_ptr, in_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    x = tl.load(in_ptr + rm[:, None] * N + rn[None, :], mask=mask)
    tl.store(out_ptr + rn[:, None] * M + rm[None, :], x.T, mask=mask.T)


# small ones for many cores, deep ones for AMX
TILES = configs(
    *(
        {"BM": m, "BN": n, "BK": k}
        for m, n, k in ((64, 128, 128), (128, 128, 128), (256, 256, 256), (512, 256, 128), (128, 128, 512))
    )
)


@tilework.autotune(configs=TILES, key=["M", "N", "K"])
@tilework.jit
def matmul(c_ptr, a_ptr, b_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.int32 if a_ptr.dtype.element_ty == tl.int8 else tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rm[:, None] * K + (k + rk)[None, :])
        b = tl.load(b_ptr + (k + rk)[:, None] * N + rn[None, :])
        acc = tl.dot(a, b, acc, out_dtype=acc.dtype)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty))


@tilework.autotune(
    configs=configs(*({"BM": m, "BN": n} for m, n in ((32, 64), (64, 64), (64, 128), (128, 128)))), key=["n"]
)
@tilework.jit
def attention(out_ptr, q_ptr, k_ptr, v_ptr, scale, n, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    base = tl.program_id(1) * n * D
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :]) * (scale * LOG2E)
    peak = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, n, BN):
        rn = start + tl.arange(0, BN)
        k = tl.load(k_ptr + base + rn[None, :] * D + rd[:, None])
        s = tl.dot(q, k)
        new_peak = tl.maximum(peak, tl.max(s, axis=1))
        p = tl.exp2(s - new_peak[:, None])
        shrink = tl.exp2(peak - new_peak)
        total = total * shrink + tl.sum(p, axis=1)
        v = tl.load(v_ptr + base + rn[:, None] * D + rd[None, :])
        acc = tl.dot(p, v, acc * shrink[:, None])
        peak = new_peak
    tl.store(out_ptr + base + rm[:, None] * D + rd[None, :], acc / total[:, None])
