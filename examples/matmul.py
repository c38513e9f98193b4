"""Matrix multiplication three ways: with pointers and a masked K loop, with block pointers, with tensor descriptors."""

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case


@tilework.jit
def program_tile(M, N, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Return the tile of this program: `GROUP` rows of tiles at a time, so that neighbours share inputs in cache."""
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    width = GROUP * tiles_n
    first = pid // width * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + (pid % width) % rows, (pid % width) // rows


@tilework.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = program_tile(M, N, BM, BN, GROUP)
    rm = (tile_m * BM + tl.arange(0, BM)) % M
    rn = (tile_n * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * stride_am + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * stride_bk + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * stride_bk
    om = tile_m * BM + tl.arange(0, BM)
    on = tile_n * BN + tl.arange(0, BN)
    mask = (om[:, None] < M) & (on[None, :] < N)
    tl.store(c_ptr + om[:, None] * stride_cm + on[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@tilework.jit
def matmul_block_pointers(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = program_tile(M, N, BM, BN, GROUP)
    a_block = tl.make_block_ptr(a_ptr, (M, K), (stride_am, 1), (tile_m * BM, 0), (BM, BK), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (stride_bk, 1), (0, tile_n * BN), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc)
        a_block = tl.advance(a_block, (0, BK))
        b_block = tl.advance(b_block, (BK, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (stride_cm, 1), (tile_m * BM, tile_n * BN), (BM, BN), (1, 0))
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@tilework.jit
def matmul_descriptors(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tile_m, tile_n = program_tile(M, N, BM, BN, GROUP)
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_am, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [stride_bk, 1], [BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_cm, 1], [BM, BN])
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([tile_m * BM, k]), b_desc.load([k, tile_n * BN]), acc)
    c_desc.store([tile_m * BM, tile_n * BN], acc.to(c_desc.dtype))


def inputs(rng: np.random.Generator) -> Arrays:
    m, n, k = 72, 88, 56
    return {
        "a_ptr": rng.standard_normal((m, k)).astype("f2"),
        "b_ptr": rng.standard_normal((k, n)).astype("f2"),
        "c_ptr": rng.standard_normal((m, n)).astype("f2"),
        "M": m, "N": n, "K": k, "stride_am": k, "stride_bk": n, "stride_cm": n,
    }  # fmt: skip


def reference(a: Arrays) -> Arrays:
    return {"c_ptr": (a["a_ptr"].astype("f4") @ a["b_ptr"].astype("f4")).astype("f2")}


SIGNATURE = {
    "a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16",
    "M": "i32", "N": "i32", "K": "i32", "stride_am": "i32", "stride_bk": "i32", "stride_cm": "i32",
}  # fmt: skip

CASES = [
    Case(
        name=kernel.__name__,
        kernel=kernel,
        signature=SIGNATURE,
        constexprs={"BM": 32, "BN": 32, "BK": 16, "GROUP": 2},
        grid=(9,),
        arguments=inputs,
        expected=reference,
        atol=2e-2,
        divisible=("a_ptr", "b_ptr", "c_ptr"),
    )
    for kernel in (matmul, matmul_block_pointers, matmul_descriptors)
]
