"""ldmatrix, stmatrix, movmatrix and mma.sync against formulas over all lanes and registers."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.tensor_programs import (
    HEADER,
    elements_of,
    matrix_of,
    mma_text,
    names,
    pack,
    registers_in_and_out,
    run_registers,
)
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.oracles.emulator.translate import Unsupported

BF16, E4M3, E5M2 = (np.dtype(t) for t in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))


# layouts, written as the PTX manual does: g = lane / 4, q = lane % 4


def index_c(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + 8 * (i // 2), lane % 4 * 2 + i % 2


def index_a(bits: int, rows: int = 16):
    """A: an element i of a thread, `per` of them in 32 bits, then the row 8 below, then the columns further right."""
    per = max(1, 32 // bits)

    def position(lane: int, i: int) -> tuple[int, int]:
        register = i // per
        row = lane // 4 + (8 * (register % 2) if rows == 16 else 0)
        block = register // 2 if rows == 16 else register
        return row, lane % 4 * per + i % per + 4 * per * block

    return position


def index_b(bits: int):
    per = max(1, 32 // bits)
    return lambda lane, i: (lane % 4 * per + i % per + 4 * per * (i // per), lane // 4)


TYPES = {
    "f16": np.float16,
    "bf16": BF16,
    "tf32": np.float32,
    "f32": np.float32,
    "e4m3": E4M3,
    "e5m2": E5M2,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
    "f64": np.float64,
}
FLOATS = (
    [(k, d, "f16", "f16", d) for k in (8, 16) for d in ("f32", "f16")]
    + [(k, "f32", "bf16", "bf16", "f32") for k in (8, 16)]
    + [(k, "f32", "tf32", "tf32", "f32") for k in (4, 8)]
)
SMALL = [(k, d, a, b, d) for k in (16, 32) for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
BYTES = [(k, "s32", a, b, "s32") for k in (16, 32) for a in ("s8", "u8") for b in ("s8", "u8")]


def run_mma(rows: int, k: int, d: str, a: str, b: str, c: str, extra: str = "", seed: int = 0):
    """(what came out, A, B, C) for small random integers."""
    bits = 8 * np.dtype(TYPES[a]).itemsize
    word = np.uint64 if a == "f64" else np.uint32
    rng = np.random.default_rng(seed)
    low = 0 if "u8" in (a, b) else -4
    left, right, added = rng.integers(low, 5, (rows, k)), rng.integers(low, 5, (k, 8)), rng.integers(-9, 9, (rows, 8))
    count_a, count_b, count_c = rows * k // 32, k * 8 // 32, rows * 8 // 32
    parts = [
        pack(elements_of(index_a(bits, rows), left, count_a), TYPES[a], word),
        pack(elements_of(index_b(bits), right, count_b), TYPES[b], word),
        pack(elements_of(index_c, added, count_c), TYPES[c], word),
    ]  # fmt: skip
    outs = count_c * np.dtype(TYPES[d]).itemsize // np.dtype(word).itemsize
    text = mma_text(
        f"m{rows}n8k{k}.row.col.{extra}{d}.{a}.{b}.{c}",
        outs,
        *(part.shape[1] for part in parts),
        bits=8 * np.dtype(word).itemsize,
    )
    found = run_registers(text, np.concatenate(parts, axis=1), outs).view(TYPES[d])
    return matrix_of(index_c, found, (rows, 8)), left, right, added


@pytest.mark.parametrize(("k", "d", "a", "b", "c"), FLOATS + SMALL + BYTES)
def test_mma_of_16_rows(k: int, d: str, a: str, b: str, c: str) -> None:
    found, left, right, added = run_mma(16, k, d, a, b, c)
    np.testing.assert_array_equal(found.astype(np.int64), left @ right + added)


@pytest.mark.parametrize(("rows", "k"), [(8, 4), (16, 4), (16, 8), (16, 16)])
def test_mma_of_doubles(rows: int, k: int) -> None:
    found, left, right, added = run_mma(rows, k, "f64", "f64", "f64", "f64")
    np.testing.assert_array_equal(found, left @ right + added)


@pytest.mark.parametrize(("a", "b"), [("s8", "s8"), ("u8", "s8")])
def test_mma_of_bytes_with_8_rows(a: str, b: str) -> None:
    found, left, right, added = run_mma(8, 16, "s32", a, b, "s32")
    np.testing.assert_array_equal(found, left @ right + added)


@pytest.mark.parametrize("which", ["A", "B"])
def test_every_element_of_f16_has_its_place(which: str) -> None:
    """A single one in each lane and element, a different number in every element of the other matrix."""
    rng = np.random.default_rng(3)
    count = 8 if which == "A" else 4
    left, right = rng.permutation(256).reshape(16, 16), rng.permutation(128).reshape(16, 8)
    rows, expected = [], []
    for lane in range(32):
        for index in range(count):
            one = np.zeros((32, count))
            one[lane, index] = 1
            if which == "A":
                a, b = one, elements_of(index_b(16), right, 4)
                row, k = index_a(16)(lane, index)
                product = np.zeros((16, 8))
                product[row] = right[k]
            else:
                a, b = elements_of(index_a(16), left, 8), one
                k, column = index_b(16)(lane, index)
                product = np.zeros((16, 8))
                product[:, column] = left[:, k]
            rows.append(
                np.concatenate([pack(a, np.float16), pack(b, np.float16), np.zeros((32, 4), np.uint32)], axis=1)
            )
            expected.append(product)
    text = mma_text("m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2, 4)
    found = run_registers(text, np.concatenate(rows), 4, threads=128).view(np.float32).reshape(-1, 32, 4)
    for block, product in zip(found, expected, strict=True):
        np.testing.assert_array_equal(matrix_of(index_c, block, (16, 8)), product)


@pytest.mark.parametrize(("rows", "k"), [(8, 32), (16, 32), (16, 64)])
@pytest.mark.parametrize(("a", "b"), [("s4", "s4"), ("u4", "s4"), ("u4", "u4")])
def test_mma_of_nibbles(rows: int, k: int, a: str, b: str) -> None:
    rng = np.random.default_rng(1)
    left = rng.integers(*((-8, 8) if a == "s4" else (0, 16)), (rows, k))
    right = rng.integers(*((-8, 8) if b == "s4" else (0, 16)), (k, 8))

    def pack_nibbles(elements: np.ndarray) -> np.ndarray:
        pairs = (elements & 15).astype(np.uint8).reshape(32, -1, 2)
        return np.ascontiguousarray(pairs[..., 0] | pairs[..., 1] << 4).view(np.uint32)

    parts = [
        pack_nibbles(elements_of(index_a(4, rows), left, rows * k // 32)),
        pack_nibbles(elements_of(index_b(4), right, k // 4)),
    ]
    count = rows // 4
    parts.append(np.full((32, count), 7, np.uint32))
    text = mma_text(f"m{rows}n8k{k}.row.col.s32.{a}.{b}.s32", count, *(part.shape[1] for part in parts))
    found = run_registers(text, np.concatenate(parts, axis=1), count).view(np.int32)
    np.testing.assert_array_equal(matrix_of(index_c, found, (rows, 8)), left @ right + 7)


@pytest.mark.parametrize(("rows", "k"), [(8, 128), (16, 128), (16, 256)])
@pytest.mark.parametrize("combine", ["xor", "and"])
def test_mma_of_bits(rows: int, k: int, combine: str) -> None:
    rng = np.random.default_rng(2)
    left, right = rng.integers(0, 2, (rows, k)), rng.integers(0, 2, (k, 8))
    parts = [
        np.packbits(elements_of(position(1), matrix, count).astype(np.uint8), axis=1, bitorder="little").view(np.uint32)
        for position, matrix, count in (
            (lambda bits: index_a(bits, rows), left, rows * k // 32),
            (index_b, right, k // 4),
        )
    ]
    count = rows // 4
    parts.append(np.full((32, count), 3, np.uint32))
    text = mma_text(f"m{rows}n8k{k}.row.col.s32.b1.b1.s32.{combine}.popc", count, *(part.shape[1] for part in parts))
    found = run_registers(text, np.concatenate(parts, axis=1), count).view(np.int32)
    together = left[:, :, None] ^ right[None] if combine == "xor" else left[:, :, None] & right[None]
    np.testing.assert_array_equal(matrix_of(index_c, found, (rows, 8)), together.sum(axis=1) + 3)


@pytest.mark.parametrize(("extra", "expected"), [("satfinite.", 2**31 - 1), ("", -(2**31) + 31)])
def test_integers_saturate_or_wrap(extra: str, expected: int) -> None:
    a, b = np.full((32, 16), 1, np.int8).view(np.uint32), np.full((32, 8), 1, np.int8).view(np.uint32)
    c = np.full((32, 4), 2**31 - 1, np.uint32)
    text = mma_text(f"m16n8k32.row.col.{extra}s32.s8.s8.s32", 4, 4, 2, 4)
    found = run_registers(text, np.concatenate([a, b, c], axis=1), 4).view(np.int32)
    assert (found == expected).all()


def test_the_same_registers_as_a_and_as_b() -> None:
    """Two registers are A of one instruction (16 x 8), and B of the next (16 x 8, by columns)."""
    values = np.random.default_rng(5).integers(-3, 4, (32, 4)).astype(np.float16)
    body = """
    mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%o0, %o1, %o2, %o3}, {%i0, %i1}, {%i0}, {%i2, %i2, %i2, %i2};
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%o4, %o5, %o6, %o7}, {%i0, %i1, %i1, %i0}, {%i0, %i1}, {%i2, %i2,
    %i2, %i2};"""
    bits = np.concatenate([values.view(np.uint32), np.zeros((32, 1), np.uint32)], axis=1)
    found = run_registers(registers_in_and_out(body, 3, 8), bits, 8).view(np.float32)
    a8, b8 = matrix_of(index_a(16), values, (16, 8)), matrix_of(index_b(16), values[:, :2], (8, 8))
    a16, b16 = (
        matrix_of(index_a(16), values[:, [0, 1, 2, 3, 2, 3, 0, 1]], (16, 16)),
        matrix_of(index_b(16), values, (16, 8)),
    )
    np.testing.assert_array_equal(
        matrix_of(index_c, found[:, :4], (16, 8)), a8.astype(np.float32) @ b8.astype(np.float32)
    )
    np.testing.assert_array_equal(
        matrix_of(index_c, found[:, 4:], (16, 8)), a16.astype(np.float32) @ b16.astype(np.float32)
    )


# loads and stores


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("threads", [32, 96])
def test_ldmatrix(count: int, transposed: bool, threads: int) -> None:
    """Each warp stores its 16-byte rows in a scrambled order and loads them from there."""
    rng = np.random.default_rng(count)
    warps = threads // 32
    order = np.concatenate([rng.permutation(32) + 32 * warp for warp in range(warps)])
    data = rng.integers(0, 1 << 16, (threads, 8)).astype(np.uint16)
    values = np.concatenate([data.view(np.uint32), (order * 16).astype(np.uint32)[:, None]], axis=1)
    trans = ".trans" if transposed else ""
    body = f"""
    .reg .b32 %a, %base; mov.u32 %base, smem; add.u32 %a, %i4, %base;
    st.shared.v4.b32 [%a], {{%i0, %i1, %i2, %i3}}; bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {names("o", 0, count)}, [%a];"""
    text = registers_in_and_out(body, 5, count, shared=16 * threads)
    found = run_registers(text, values, count, threads).view(np.uint16).reshape(threads, count, 2)
    for thread in range(threads):
        warp, lane = divmod(thread, 32)
        for matrix in range(count):
            for element in (0, 1):
                row, column = lane // 4, lane % 4 * 2 + element
                row, column = (column, row) if transposed else (row, column)
                assert found[thread, matrix, element] == data[32 * warp + 8 * matrix + row, column]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_stmatrix(count: int, transposed: bool) -> None:
    rng = np.random.default_rng(count)
    data = rng.integers(0, 1 << 16, (32, 2 * count)).astype(np.uint16)
    order = rng.permutation(32)
    values = np.concatenate([data.view(np.uint32), (order * 16).astype(np.uint32)[:, None]], axis=1)
    trans = ".trans" if transposed else ""
    body = f"""
    .reg .b32 %a, %base; mov.u32 %base, smem; add.u32 %a, %i{count}, %base;
    stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%a], {names("i", 0, count)}; bar.warp.sync 0xffffffff;
    ld.shared.v4.b32 {{%o0, %o1, %o2, %o3}}, [%a];"""
    text = registers_in_and_out(body, count + 1, 4, shared=512)
    found = run_registers(text, values, 4).view(np.uint16).reshape(32, 8)
    for lane in range(32):
        for matrix in range(count):
            for element in (0, 1):
                row, column = lane // 4, lane % 4 * 2 + element
                row, column = (column, row) if transposed else (row, column)
                assert found[8 * matrix + row, column] == data[lane, 2 * matrix + element]


def test_movmatrix() -> None:
    data = np.random.default_rng(0).integers(0, 1 << 16, (8, 8)).astype(np.uint16)
    text = registers_in_and_out("    movmatrix.sync.aligned.m8n8.trans.b16 %o0, %i0;", 1, 1)
    found = run_registers(text, data.reshape(32, 2).view(np.uint32), 1)
    np.testing.assert_array_equal(found.view(np.uint16).reshape(8, 8), data.T)


def test_ldmatrix_takes_generic_addresses() -> None:
    body = """
    .reg .b64 %g; .reg .b32 %a, %base; mov.u32 %base, smem; shl.b32 %a, %lane, 4; add.u32 %a, %a, %base;
    cvt.u64.u32 %g, %a; cvta.shared.u64 %g, %g;
    st.shared.b32 [%a], %i0; bar.warp.sync 0xffffffff;
    ldmatrix.sync.aligned.m8n8.x1.b16 {%o0}, [%g];"""
    found = run_registers(
        registers_in_and_out(body, 1, 1, shared=512), np.arange(32, dtype=np.uint32)[:, None] + 100, 1
    )
    np.testing.assert_array_equal(found[::4, 0], np.arange(8) + 100)


# numbers


def one_sum(types: str, a: list[float], b: list[float], c: float, dtype: Any, k: int) -> float:
    """Row 0 times column 0 plus c."""
    left, right, added = np.zeros((16, k)), np.zeros((k, 8)), np.zeros((16, 8))
    left[0, : len(a)], right[: len(b), 0], added[0, 0] = a, b, c
    bits = 8 * np.dtype(dtype).itemsize
    parts = [
        pack(elements_of(index_a(bits), left, 16 * k // 32), dtype),
        pack(elements_of(index_b(bits), right, k // 4), dtype), pack(elements_of(index_c, added, 4), np.float32),
    ]  # fmt: skip
    found = run_registers(
        mma_text(f"m16n8k{k}.row.col.{types}", 4, *(part.shape[1] for part in parts)), np.concatenate(parts, axis=1), 4
    )
    return float(found.view(np.float32)[0, 0])


@pytest.mark.parametrize(
    ("types", "dtype", "k"),
    [("f32.f16.f16.f32", np.float16, 16), ("f32.bf16.bf16.f32", BF16, 16), ("f32.tf32.tf32.f32", np.float32, 8)],
)
def test_sums_are_cut_off(types: str, dtype: object, k: int) -> None:
    """Terms are cut towards zero 25 binary places below the largest exponent, and so is the f32 result."""
    assert one_sum(types, [2.0**-12], [2.0**-12], -1.0, dtype, k) == -1 + 2.0**-24
    assert one_sum(types, [2.0**-12], [2.0**-12], 1.0, dtype, k) == 1  # 1 + 2^-24 is cut to f32
    assert one_sum(types, [2.0**-13] * 4, [2.0**-13] * 4, 1.0, dtype, k) == 1  # each is below the 25th place
    assert one_sum(types, [2.0**-12] * 2, [2.0**-12] * 2, 1.0, dtype, k) == 1 + 2.0**-23
    assert one_sum(types, [3.0], [2.0**-12], 2.0**-12, dtype, k) == 2.0**-10


@pytest.mark.parametrize(
    ("a", "c", "expected"),
    [(np.inf, 1.0, np.inf), (-np.inf, np.inf, np.nan), (np.nan, 1.0, np.nan), (1.0, -np.inf, -np.inf)],
)
def test_infinity_and_nan(a: float, c: float, expected: float) -> None:
    found = one_sum("f32.f16.f16.f32", [a, 1.0], [1.0, 2.0], c, np.float16, 16)
    np.testing.assert_equal(found, expected)


def test_doubles_are_fused_in_order() -> None:
    """1 - 1 cancels exactly before the tiny product is added last."""
    left, right, added = np.zeros((8, 4)), np.zeros((4, 8)), np.zeros((8, 8))
    left[0], right[:, 0], added[0, 0] = [1, 1, 2.0**-60, 0], [1, -1, 1, 0], 2.0**-70
    parts = [elements_of(index_a(64, 8), left, 1), elements_of(index_b(64), right, 1), elements_of(index_c, added, 2)]
    values = np.concatenate(parts, axis=1).view(np.uint64)
    found = run_registers(mma_text("m8n8k4.row.col.f64.f64.f64.f64", 2, 1, 1, 2, 64), values, 2).view(np.float64)
    assert found[0, 0] == 2.0**-60


# mistakes


def test_a_misaligned_row_is_an_error() -> None:
    body = """
    .reg .b32 %a; mad.lo.u32 %a, %lane, 16, 8;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%o0, %o1, %o2, %o3}, [%a];"""
    with pytest.raises(MemoryFault, match=r"0x8 is not a multiple of 16(.|\n)*ldmatrix"):
        run_registers(registers_in_and_out(body, 1, 4, shared=1024), np.zeros((32, 1), np.uint32), 4)


def test_a_row_outside_of_shared_memory_is_an_error() -> None:
    body = """
    .reg .b32 %a; shl.b32 %a, %lane, 4;
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%a], {%i0, %i0, %i0, %i0};"""
    with pytest.raises(MemoryFault, match="outside of its 256 bytes"):
        run_registers(registers_in_and_out(body, 1, 1, shared=256), np.zeros((32, 1), np.uint32), 1)


def test_part_of_a_warp_is_an_error() -> None:
    body = """
    .reg .pred %p; setp.lt.u32 %p, %lane, 16;
    @%p mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%o0, %o1, %o2, %o3}, {%i0, %i1}, {%i0}, {%i0, %i0, %i0,
    %i0};"""
    with pytest.raises(EmulatorError, match="lane 16 of warp 0 is not here"):
        run_registers(registers_in_and_out(body, 2, 4), np.zeros((32, 2), np.uint32), 4)


@pytest.mark.parametrize(
    ("instruction", "why"),
    [
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%o0, %o1}, [%t]", "sm_100"),
        (("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%o0, %o1, %o2, %o3}, {%i0, %i0, "
          "%i0, %i0}, {%i0, %i0, %i0, %i0}, {%i0, %i0, %i0, %i0}, %i0, 0"), "sparse"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%o0, %o1}, {%i0}, {%i0}, {%i0, %i0}",
         "the shape m8n8k4 for f16"),
        (("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%o0, %o1, %o2, %o3}, {%i0, %i0, %i0, %i0}, {%i0, "
          "%i0}, {%i0, %i0, %i0, %i0}"), "A of f16 and B of bf16"),
        ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f32 {%o0, %o1}, {%i0, %i0}, {%i0}, {%i0, %i0, %i0, %i0}",
         "C of f32 and D of f16"),
        (("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%o0, %o1, %o2, %o3}, {%i0, %i0}, {%i0, %i0}, {%i0, "
          "%i0, %i0, %i0}"), "registers"),
    ],
)  # fmt: skip
def test_forms_that_are_not_there(instruction: str, why: str) -> None:
    text = registers_in_and_out(f"    {instruction};", 1, 4)
    assert HEADER in text
    with pytest.raises(Unsupported, match=why):
        run_registers(text, np.zeros((32, 1), np.uint32), 4)
