"""Pointers of a tile that a loop moves on together: one of them is carried, and all of them are right."""

import re

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.gpu_text import kernel_ptx, launch


@tilework.jit
def walk(x_ptr, y_ptr, out_ptr, rows, stride, SIZE: tl.constexpr):
    r, c = tl.arange(0, 16), tl.arange(0, SIZE)
    x_ptrs = x_ptr + r[:, None] * stride + c[None, :]
    y_ptrs = y_ptr + c
    total = tl.zeros((16, SIZE), tl.int32)
    for _ in range(2):
        for k in range(0, rows):
            total += tl.load(x_ptrs) * (k + 1)
            x_ptrs += stride
            if k % 2 == 0:
                y_ptrs += SIZE
            x_ptrs += k
        total += tl.load(y_ptrs)[None, :]
        x_ptrs -= rows * (rows - 1) // 2
    tl.store(out_ptr + r[:, None] * SIZE + c[None, :], total + tl.load(x_ptrs))


def test_pointers_that_a_loop_moves_on_are_one() -> None:
    """Of different registers, steps that change, through nested loops and behind them; one whose steps depend on a
    branch."""
    types = {"x_ptr": "*i32", "y_ptr": "*i32", "out_ptr": "*i32", "rows": "i32", "stride": "i32"}
    text = kernel_ptx(walk, types, {"SIZE": 64}, 90, 2)
    assert text.count("begin inline asm\n\tadd.s64") == 3
    rng = np.random.default_rng(3)
    rows, stride, size = 3, 80, 64
    x, y = rng.integers(-99, 99, 4096, np.int32), rng.integers(-99, 99, 640, np.int32)
    out, wanted, at = np.zeros((16, size), np.int32), np.zeros((16, size), np.int32), 0
    index = np.arange(16)[:, None] * stride + np.arange(size)
    for outer in range(2):
        for k in range(rows):
            wanted += x[index + at] * (k + 1)
            at += stride + k
        wanted += y[(outer + 1) * 2 * size + np.arange(size)]
        at -= 3
    launch(text, "walk", [x, y, out, rows, stride], 2)
    np.testing.assert_array_equal(out, wanted + x[index + at])


@tilework.jit
def mix_rows(x_ptr, w_ptr, out_ptr, columns, SIZE: tl.constexpr):
    c = tl.arange(0, SIZE)
    start = tl.program_id(0) * columns
    row = tl.load(x_ptr + start + c, mask=c < columns, other=0)
    tl.store(out_ptr + start + c, row ^ tl.load(w_ptr + c, mask=c < columns, other=0), mask=c < columns)


def test_a_tile_is_one_pointer_and_constants_and_what_all_programs_load_stays_cached() -> None:
    types = {"x_ptr": "*i32", "w_ptr": "*i32", "out_ptr": "*i32", "columns": "i32"}
    text = kernel_ptx(mix_rows, types, {"SIZE": 512}, 90, 1)
    loads = [line.split("ld.global", 1)[1] for line in text.splitlines() if "ld.global" in line]
    assert [".L1::evict_last" in load for load in loads] == [False] * 16 + [True] * 16
    assert (
        text.count("mul.wide") == 3
    )  # the start of a row, and the offset of a thread in it as it loads and as it stores
    x, w = np.arange(1000, dtype=np.int32), np.arange(500, dtype=np.int32)
    out = np.zeros(1000, np.int32)
    launch(text, "mix_rows", [x, w, out, 500], 1, 2)
    np.testing.assert_array_equal(out, x ^ np.tile(w, 2))


@tilework.jit
def product(a_ptr, b_ptr, out_ptr, stride, K, SIZE: tl.constexpr):
    r, k = tl.arange(0, SIZE), tl.arange(0, 32)
    a_ptrs, b_ptrs = a_ptr + r[:, None] * (16 * stride) + k[None, :], b_ptr + k[:, None] * SIZE + r[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for _ in range(0, K, 32):
        total = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), total)
        a_ptrs += 32
        b_ptrs += 32 * SIZE
    tl.store(out_ptr + r[:, None] * SIZE + r[None, :], total)


def test_beside_wgmma_distances_of_a_stride_that_is_given_are_hidden_from_the_assembler() -> None:
    """Those between rows of `b` are constants, which it shall see; beside mma.sync it sees all."""
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "out_ptr": "*fp32", "stride": "i32", "K": "i32"}
    text, before = (kernel_ptx(product, types, {"SIZE": 64}, arch, 4) for arch in (90, 80))
    (zero,) = re.findall(r"cvt\.u64\.u32 (%rd\d+), %lane;", text)
    assert len(re.findall(rf"xor\.b64 .*{zero}\b", text)) == 2 and "%lane" not in before
    a, b = np.random.default_rng(5).integers(-3, 4, (2, 64 * 96)).astype(np.float16)
    out = np.zeros((64, 64), np.float32)
    launch(text, "product", [a, b, out, 6, 96], 4)
    np.testing.assert_array_equal(out, a.reshape(64, 96).astype(np.float32) @ b.reshape(96, 64).astype(np.float32))


@tilework.jit
def shifted(x_ptr, out_ptr, stride, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    r, c = tl.arange(0, SIZE // 64)[:, None], tl.arange(0, 64)[None, :]
    rows = tl.load(x_ptr + 640 + r * stride + (c + 4))
    total = tl.load(x_ptr + 128 + i) + tl.load(x_ptr + 2048 + i) + tl.load(x_ptr + (i - 4) + 4)
    tl.store(out_ptr + i, total + tl.reshape(rows, (SIZE,)))


def test_constant_offsets_are_added_last() -> None:
    """Addresses of vectors that differ by constants share one product."""
    text = kernel_ptx(shifted, {"x_ptr": "*i32", "out_ptr": "*i32", "stride": "i32"}, {"SIZE": 1024}, 90, 4)
    assert text.count("mul.wide.s32") == 11  # eight rows, the vectors of `i`, and two of `i - 4`, which may wrap
    x, out = np.random.default_rng(5).integers(-99, 99, 4096, np.int32), np.zeros(2048, np.int32)
    launch(text, "shifted", [x, out, 80], 4, 2)
    i = np.arange(2048)
    rows = x[640 + np.arange(16)[:, None] * 80 + np.arange(64) + 4].ravel()
    np.testing.assert_array_equal(out, x[128 + i] + x[2048 + i] + x[i] + np.tile(rows, 2))


@tilework.jit
def swap_halves(x_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    x_ptr += tl.program_id(0) * ROWS * N
    out_ptr += tl.program_id(0) * ROWS * N
    at = tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N // 2)[None, :]
    first, second = tl.load(x_ptr + at), tl.load(x_ptr + at + N // 2)
    tl.store(out_ptr + at, second)
    tl.store(out_ptr + at + N // 2, first)


def test_rows_and_halves_are_one_pointer_with_constants() -> None:
    """A thread has four rows of both halves: their distances are constants of its accesses."""
    text = kernel_ptx(swap_halves, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"ROWS": 16, "N": 128}, 90, 2)
    assert text.count("ld.global") == text.count("st.global") == 8
    assert len(re.findall(r"mul\.wide|mad\.wide|shl\.b64", text)) <= 4
    x = np.random.default_rng(1).standard_normal((48, 128), np.float32)
    out = np.zeros_like(x)
    launch(text, "swap_halves", [x, out], 2, 3)
    np.testing.assert_array_equal(out, np.roll(x, 64, 1))


@tilework.jit
def integers(first_ptr, second_ptr, N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, N)
    value = (at * A + B) * C
    tl.store(first_ptr + at, value.to(tl.int64))
    tl.store(second_ptr + at, (value + at).to(tl.uint32, bitcast=True).to(tl.int64))


@pytest.mark.parametrize("c", [1, 3, -1, 1 << 12])
@pytest.mark.parametrize("b", [0, 64, -64, (1 << 31) - 1, -(1 << 31)])
@pytest.mark.parametrize("a", [1, 128, -5, 1 << 20, (1 << 31) - 1])
def test_products_and_sums_wrap(a: int, b: int, c: int) -> None:
    """Constants are collected only where nothing can wrap, and what is extended afterwards has the bits of 32."""
    text = kernel_ptx(
        integers, {"first_ptr": "*i64", "second_ptr": "*i64"}, {"N": 512, "A": a, "B": b, "C": c}, 90, 1, True
    )
    first, second = np.zeros((2, 512), np.int64)
    launch(text, "integers", [first, second], 1)
    at = np.arange(512)
    value = ((at * a + b) * c).astype(np.int32)
    np.testing.assert_array_equal(first, value)
    np.testing.assert_array_equal(second, (value.astype(np.int64) + at).astype(np.uint32).astype(np.int64))
