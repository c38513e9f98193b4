"""Kernels with large spaces of configurations, for `benchmarks.tune_search` and whatever `triton` is in the process."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import triton
import triton.language as tl

Values = Mapping[str, Sequence[Any]]


@triton.jit
def matmul(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid = tl.program_id(0)
    first = pid // (GROUP * tiles_n) * GROUP
    rows = min(tiles_m - first, GROUP)
    tile_m, tile_n = first + pid % (GROUP * tiles_n) % rows, pid % (GROUP * tiles_n) // rows
    rm, rn, rk = tile_m * BM + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a + (rm % M)[:, None] * K + rk[None, :]
    b_ptrs = b + rk[:, None] * N + (rn % N)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, tl.cdiv(K, BK)):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], acc.to(c.dtype.element_ty), mask=(rm < M)[:, None] & (rn < N)[None, :])


@triton.jit
def attention(q, k, v, out, scale, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    base = tl.program_id(1).to(tl.int64) * n * D
    rm, rn, rd = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    query = tl.load(q + base + rm[:, None] * D + rd[None, :])
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    k_ptrs = k + base + rn[None, :] * D + rd[:, None]
    v_ptrs = v + base + rn[:, None] * D + rd[None, :]
    for _ in range(0, n, BN):
        scores = tl.dot(query, tl.load(k_ptrs)) * scale
        new_highest = tl.maximum(highest, tl.max(scores, 1))
        p = tl.math.exp2(scores - new_highest[:, None])
        correction = tl.math.exp2(highest - new_highest)
        total = total * correction + tl.sum(p, 1)
        values = tl.load(v_ptrs)
        acc = tl.dot(p.to(values.dtype), values, acc * correction[:, None])
        highest = new_highest
        k_ptrs += BN * D
        v_ptrs += BN * D
    tl.store(out + base + rm[:, None] * D + rd[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def layernorm(x, w, b, out, rows, cols, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, BLOCK)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, cols, BLOCK):
        value = tl.load(x + r[:, None] * cols + (start + j)[None, :]).to(tl.float32)
        total += value
        squares += value * value
    mean = tl.sum(total, 1) / cols
    rstd = 1 / tl.sqrt(tl.sum(squares, 1) / cols - mean * mean + eps)
    for start in range(0, cols, BLOCK):
        value = tl.load(x + r[:, None] * cols + (start + j)[None, :]).to(tl.float32)
        value = (value - mean[:, None]) * rstd[:, None]
        value = value * tl.load(w + start + j)[None, :] + tl.load(b + start + j)[None, :]
        tl.store(out + r[:, None] * cols + (start + j)[None, :], value.to(out.dtype.element_ty))


@triton.jit
def softmax(x, out, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, BLOCK)
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, cols, BLOCK):
        value = tl.load(x + r[:, None] * cols + (start + j)[None, :])
        new_highest = tl.maximum(highest, tl.max(value, 1))
        total = total * tl.exp(highest - new_highest) + tl.sum(tl.exp(value - new_highest[:, None]), 1)
        highest = new_highest
    for start in range(0, cols, BLOCK):
        value = tl.load(x + r[:, None] * cols + (start + j)[None, :])
        value = tl.exp(value - highest[:, None]) / total[:, None]
        tl.store(out + r[:, None] * cols + (start + j)[None, :], value)


@triton.jit
def transpose(x, out, rows, cols, BM: tl.constexpr, BN: tl.constexpr, TILES: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    for tile in range(TILES):
        j = (tl.program_id(1) * TILES + tile) * BN + tl.arange(0, BN)
        mask = (i < rows)[:, None] & (j < cols)[None, :]
        value = tl.load(x + i[:, None] * cols + j[None, :], mask=mask)
        tl.store(out + j[None, :] * rows + i[:, None], value, mask=mask)


class Row(NamedTuple):
    """A kernel with arguments: `space` and `size` are those on a GPU, `host` on the CPU."""

    kernel: Any
    key: list[str]
    arguments: Callable[..., tuple[Any, ...]]  # of a function that makes an array, and a size
    grid: Callable[[dict[str, Any]], tuple[int, ...]]
    space: Values
    size: tuple[int, ...]
    host: Values
    host_size: tuple[int, ...]
    where: Callable[..., bool] | None = None


def of_matmul(draw: Any, m: int, n: int, k: int) -> tuple[Any, ...]:
    return draw(m, k), draw(k, n), draw(m, n), m, n, k


def of_attention(draw: Any, heads: int, n: int, d: int) -> tuple[Any, ...]:
    return (*(draw(heads, n, d) for _ in range(4)), 1.4427 / d**0.5, n, d)


def of_layernorm(draw: Any, rows: int, cols: int) -> tuple[Any, ...]:
    return draw(rows, cols), draw(cols), draw(cols), draw(rows, cols), rows, cols, 1e-5


def of_rows(draw: Any, rows: int, cols: int) -> tuple[Any, ...]:
    return draw(rows, cols, wide=True), draw(rows, cols, wide=True), rows, cols


def of_transpose(draw: Any, rows: int, cols: int) -> tuple[Any, ...]:
    return draw(rows, cols, wide=True), draw(cols, rows, wide=True), rows, cols


def cdiv(a: int, b: int) -> int:
    return -(-a // b)


TILES: Values = {
    "BM": [64, 128, 256],
    "BN": [64, 128, 256],
    "BK": [32, 64, 128],
    "GROUP": [1, 8],
    "num_warps": [4, 8],
    "num_stages": [2, 3, 4],
}
HOST_TILES: Values = {"BM": [8, 16, 32, 64, 128], "BN": [16, 32, 64, 128], "BK": [16, 32, 64, 128], "GROUP": [1, 2, 8]}
TILES_OF_ROWS: Values = {
    "ROWS": [1, 2, 4, 8],
    "BLOCK": [256, 512, 1024, 2048, 4096],
    "num_warps": [1, 2, 4, 8, 16],
    "num_stages": [1, 2, 3],
}
HOST_ROWS: Values = {"ROWS": [1, 2, 4, 8, 16, 32], "BLOCK": [8, 16, 32, 64, 128, 256, 512, 1024]}
PRODUCTS = {
    "kernel": matmul,
    "key": ["M", "N", "K"],
    "arguments": of_matmul,
    "grid": lambda meta: (cdiv(meta["M"], meta["BM"]) * cdiv(meta["N"], meta["BN"]),),
    "space": TILES,
    "host": HOST_TILES,
    "where": lambda BM, BN: BM * BN < 256 * 256,
}
OF_ROWS = {
    "key": ["rows", "cols"],
    "grid": lambda meta: (cdiv(meta["rows"], meta["ROWS"]),),
    "space": TILES_OF_ROWS,
    "host": HOST_ROWS,
    "host_size": (512, 1024),
}
ROWS = {
    "matmul": Row(**PRODUCTS, size=(4096, 4096, 4096), host_size=(384, 384, 384)),
    "attention": Row(
        kernel=attention,
        key=["n"],
        arguments=of_attention,
        grid=lambda meta: (meta["n"] // meta["BM"], meta["q"].shape[0]),
        space={
            "BM": [16, 32, 64, 128, 256],
            "BN": [16, 32, 64, 128],
            "num_warps": [2, 4, 8],
            "num_stages": [1, 2, 3, 4],
        },
        size=(64, 4096, 64),
        host={"BM": [4, 8, 16, 32, 64, 128], "BN": [8, 16, 32, 64, 128, 256]},
        host_size=(4, 512, 64),
    ),
    "layernorm": Row(kernel=layernorm, arguments=of_layernorm, size=(16384, 4096), **OF_ROWS),
    "softmax": Row(kernel=softmax, arguments=of_rows, size=(16384, 4096), **OF_ROWS),
    "thin": Row(**PRODUCTS, size=(512, 4096, 4096), host_size=(64, 512, 512)),
    "transpose": Row(
        kernel=transpose,
        key=["rows", "cols"],
        arguments=of_transpose,
        grid=lambda meta: (cdiv(meta["rows"], meta["BM"]), cdiv(meta["cols"], meta["BN"] * meta["TILES"])),
        space={
            "BM": [16, 32, 64, 128, 256],
            "BN": [16, 32, 64, 128, 256],
            "TILES": [1, 2, 4],
            "num_warps": [1, 2, 4, 8],
        },
        size=(8192, 8192),
        host={"BM": [4, 8, 16, 32, 64, 128], "BN": [4, 8, 16, 32, 64, 128], "TILES": [1, 2, 4]},
        host_size=(1024, 1024),
        where=lambda BM, BN: BM * BN <= 128 * 128,
    ),
}
