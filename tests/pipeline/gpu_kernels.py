"""Kernels that reach what the examples do not: other element types, transposed operands, nested loops, TMA stores."""

from typing import Any

import ml_dtypes
import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case

DTYPES: dict[str, np.dtype[Any]] = {
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "i8": np.dtype(np.int8),
}


@tilework.jit
def typed_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr, B_TRANSPOSED: tl.constexpr,
):  # fmt: skip
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + (rm % M)[:, None] * K + rk[None, :]
    if B_TRANSPOSED:
        b_ptrs = b_ptr + (rn % N)[None, :] * K + rk[:, None]
    else:
        b_ptrs = b_ptr + rk[:, None] * N + (rn % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k * BK, other=0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k * BK, other=0)
        acc = tl.dot(a, b, acc, out_dtype=ACC)
        a_ptrs += BK
        b_ptrs += BK if B_TRANSPOSED else BK * N
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@tilework.jit
def persistent_descriptors(
    a_ptr, b_ptr, c_ptr, M, N, K, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Tiles one after the other, each stored by TMA while the loop goes on."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BN, BK])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BM, BN])
    across = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * across, PROGRAMS):
        row, column = (tile // across) * BM, (tile % across) * BN
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(a_desc.load([row, k]), b_desc.load([column, k]).T, acc)
        c_desc.store([row, column], acc.to(c_desc.dtype))


@tilework.jit
def streamed_sum(x_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    """A loop that reads, computes and writes, and carries a sum and an index of the largest."""
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in tl.range(0, n, BLOCK, num_stages=3):
        inside = start + offsets < n
        x = tl.load(x_ptr + start + offsets, mask=inside, other=0.0)
        total += x
        tl.store(y_ptr + start + offsets, x * scale + tl.cumsum(x, 0), mask=inside)
    best = tl.argmax(total, 0)
    tl.store(y_ptr + n, tl.sum(total, 0))
    tl.store(y_ptr + n + 1, best.to(tl.float32))


@tilework.jit
def split_tiles(x_ptr, y_ptr, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """Join, split, reshape, transposition and a gather, on one tile."""
    index = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tl.load(x_ptr + index)
    even, odd = tl.split(tl.reshape(x, (ROWS, COLUMNS // 2, 2)))
    both = tl.reshape(tl.join(odd, even), (ROWS, COLUMNS))
    transposed = tl.trans(both)
    picked = tl.gather(x, (index * 7 % COLUMNS).to(tl.int32), 1)
    tl.store(y_ptr + tl.trans(index), transposed + tl.trans(picked))


def matmul_arguments(dtype: str, out: str, sizes: tuple[int, int, int], transposed: bool) -> Any:
    m, n, k = sizes

    def draw(rng: np.random.Generator) -> Arrays:
        shape = (n, k) if transposed else (k, n)
        if dtype == "i8":
            a, b = rng.integers(-9, 9, size=(m, k)), rng.integers(-9, 9, size=shape)
        else:
            a, b = rng.standard_normal((m, k)) / 2, rng.standard_normal(shape) / 2
        outputs = {"i32": np.int32, "fp32": np.float32, "fp16": np.float16}
        return {
            "a_ptr": a.astype(DTYPES[dtype]),
            "b_ptr": b.astype(DTYPES[dtype]),
            "c_ptr": np.zeros((m, n), outputs[out]),
            "M": m,
            "N": n,
            "K": k,
        }

    return draw


def product(transposed: bool) -> Any:
    def expected(arrays: Arrays) -> Arrays:
        a, b = arrays["a_ptr"].astype("f8"), arrays["b_ptr"].astype("f8")
        return {"c_ptr": (a @ (b.T if transposed else b)).astype(arrays["c_ptr"].dtype)}

    return expected


POINTERS = ("a_ptr", "b_ptr", "c_ptr")
NUMBERS = ("M", "N", "K")
SIZES = (80, 96, 336)


def matmul_case(dtype: str, transposed: bool = False, block: tuple[int, int, int] = (64, 64, 32)) -> Case:
    """A product of matrices of `dtype`."""
    acc, out = (tl.int32, "i32") if dtype == "i8" else (tl.float32, "fp32")
    bm, bn, bk = block
    sizes = (
        (32, 32, 144) if bm == 16 else (80, 96, 5 * bk + 16)
    )  # six steps, the last one not whole: buffers are used again
    return Case(
        name=f"matmul_{dtype}{'_bt' if transposed else ''}_{bm}x{bn}x{bk}",
        kernel=typed_matmul,
        signature={"a_ptr": f"*{dtype}", "b_ptr": f"*{dtype}", "c_ptr": f"*{out}", **dict.fromkeys(NUMBERS, "i32")},
        constexprs={"BM": bm, "BN": bn, "BK": bk, "ACC": acc, "B_TRANSPOSED": transposed},
        grid=(-(-sizes[0] // bm), -(-sizes[1] // bn)),
        arguments=matmul_arguments(dtype, out, sizes, transposed),
        expected=product(transposed),
        atol=0.1,
        divisible=(*POINTERS, *NUMBERS),
    )


def tile_reference(a: Arrays) -> Arrays:
    x = a["x_ptr"].reshape(32, 64)
    swapped = x.reshape(32, 32, 2)[:, :, ::-1].reshape(32, 64)
    index = np.arange(32)[:, None] * 64 + np.arange(64)[None, :]
    return {"y_ptr": (swapped + np.take_along_axis(x, index * 7 % 64, 1)).reshape(-1)}


def stream_reference(a: Arrays) -> Arrays:
    x, y, n = a["x_ptr"], a["y_ptr"].copy(), a["n"]
    padded = np.zeros(-(-n // 128) * 128, np.float32)
    padded[:n] = x[:n]
    rows = padded.reshape(-1, 128)
    y[:n] = (rows * a["scale"] + np.cumsum(rows, 1)).reshape(-1)[:n]
    y[n], y[n + 1] = rows.sum(), np.argmax(rows.sum(0))
    return {"y_ptr": y}


KERNELS = [
    *[matmul_case(dtype) for dtype in DTYPES],
    matmul_case("fp16", transposed=True),
    matmul_case("i8", transposed=True),
    matmul_case("fp8e5", transposed=True),
    matmul_case("fp16", block=(128, 128, 64)),
    matmul_case("fp32", block=(64, 128, 32)),
    matmul_case("fp16", block=(16, 16, 16)),
    Case(
        name="persistent_descriptors",
        kernel=persistent_descriptors,
        signature={**dict.fromkeys(POINTERS, "*fp16"), **dict.fromkeys(NUMBERS, "i32")},
        constexprs={"PROGRAMS": 2, "BM": 64, "BN": 64, "BK": 64},
        grid=(2,),
        arguments=matmul_arguments("fp16", "fp16", SIZES, True),
        expected=product(True),
        atol=0.1,
        divisible=(*POINTERS, *NUMBERS),
    ),
    Case(
        name="streamed_sum",
        kernel=streamed_sum,
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "scale": "fp32"},
        constexprs={"BLOCK": 128},
        grid=(1,),
        arguments=lambda rng: {
            "x_ptr": rng.standard_normal(1000, dtype="f4"),
            "y_ptr": np.zeros(1002, np.float32),
            "n": 1000,
            "scale": 0.5,
        },
        expected=stream_reference,
        atol=1e-3,
        divisible=("x_ptr", "y_ptr"),
    ),
    Case(
        name="split_tiles",
        kernel=split_tiles,
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32"},
        constexprs={"COLUMNS": 64, "ROWS": 32},
        grid=(1,),
        arguments=lambda rng: {
            "x_ptr": rng.standard_normal(2048, dtype="f4"),
            "y_ptr": np.zeros(2048, np.float32),
        },
        expected=tile_reference,
        divisible=("x_ptr", "y_ptr"),
    ),
]
