"""Bytes across the rows of shared memory: matrices exchange rows so that none of them has two in the same banks."""

import re
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tests.targets.gpu_text import launch, ptx_of
from tilework.layouts.banks import offsets_of
from tilework.layouts.encodings import NvmmaShared
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import to_linear
from tilework.targets.nvidia.lower.matrix_load import matrix_form, row_conflicts
from tilework.tools.tensor_descriptor import TensorDescriptor

# of a left factor of 8 bits, which is transposed: 32 values of K, 16 columns for each warp
REGISTERS = [[0, 1], [1, 0], [2, 0], [16, 0]]
LANES = [[4, 0], [8, 0], [0, 2], [0, 4], [0, 8]]
WARPS = [[0, 16], [0, 32]]


@pytest.mark.parametrize("span", [32, 64, 128])
def test_no_matrix_has_two_rows_in_the_same_banks(span: int) -> None:
    warps = [(0, 16 << bit) for bit in range((span // 16).bit_length() - 1)]
    bases = {"register": REGISTERS, "lane": LANES, "warp": warps, "block": []}
    factor = LinearLayout(bases, ("dim0", "dim1"))
    shared = to_linear(NvmmaShared(span, False, 8), (32, span))
    form = matrix_form(offsets_of(factor, shared), 8, 1 << 30)
    assert form is not None and form.is_transposed
    assert row_conflicts(form.rows, 8) == 0
    assert form.swap is not None


def test_bytes_are_stored_and_loaded_in_matrices_with_exchanged_rows() -> None:
    plain = "#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>"
    factor = f"#ttg.linear<{{register = {REGISTERS}, lane = {LANES}, warp = {WARPS}, block = []}}>"
    form = "swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8"
    memory = f"!ttg.memdesc<32x64xi8, #ttg.nvmma_shared<{{{form}}}>, #ttg.shared_memory, mutable>"
    rows, columns = (
        f"tensor<{size}xi32, #ttg.slice<{{dim = {dim}, parent = {plain}}}>>" for size, dim in ((32, 1), (64, 0))
    )
    index, pointers, bytes = (f"tensor<32x64x{type}, {plain}>" for type in ("i32", "!tt.ptr<i8>", "i8"))
    transposed = f"tensor<32x64xi8, {factor}>"
    text = f"""
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"}} {{
  tt.func public @copy(%x: !tt.ptr<i8>, %y: !tt.ptr<i8>) {{
    %r = tt.make_range {{end = 32 : i32, start = 0 : i32}} : {rows}
    %c = tt.make_range {{end = 64 : i32, start = 0 : i32}} : {columns}
    %r1 = tt.expand_dims %r {{axis = 1 : i32}} : {rows} -> tensor<32x1xi32, {plain}>
    %c1 = tt.expand_dims %c {{axis = 0 : i32}} : {columns} -> tensor<1x64xi32, {plain}>
    %size = arith.constant dense<64> : tensor<32x1xi32, {plain}>
    %start = arith.muli %r1, %size : tensor<32x1xi32, {plain}>
    %r2 = tt.broadcast %start : tensor<32x1xi32, {plain}> -> {index}
    %c2 = tt.broadcast %c1 : tensor<1x64xi32, {plain}> -> {index}
    %at = arith.addi %r2, %c2 : {index}
    %xs = tt.splat %x : !tt.ptr<i8> -> {pointers}
    %ys = tt.splat %y : !tt.ptr<i8> -> {pointers}
    %xp = tt.addptr %xs, %at : {pointers}, {index}
    %yp = tt.addptr %ys, %at : {pointers}, {index}
    %v = tt.load %xp : {pointers}
    %f = ttg.convert_layout %v : {bytes} -> {transposed}
    %m = ttg.local_alloc %f : ({transposed}) -> {memory}
    %g = ttg.local_load %m : {memory} -> {transposed}
    %w = ttg.convert_layout %g : {transposed} -> {bytes}
    tt.store %yp, %w : {pointers}
    tt.return
  }}
}}"""  # noqa: E501
    ptx = ptx_of(text, 90)
    assert {"ldmatrix", "stmatrix"} == set(re.findall(r"(ldmatrix|stmatrix)\S*\.trans", ptx))
    x = np.random.default_rng(0).integers(-128, 128, (32, 64)).astype(np.int8)
    y = np.zeros_like(x)
    launch(ptx, "copy", [x, y], 4)
    assert np.array_equal(x, y)


@tilework.jit
def across(a, b, c, K):
    acc = tl.zeros((64, 128), dtype=tl.int32)
    for k in tl.range(0, K, 64, warp_specialize=True):
        acc = tl.dot(a.load([0, k]), b.load([k, 0]), acc, out_dtype=tl.int32)
    c.store([0, 0], acc)


def test_a_factor_that_lies_across_is_read_at_once(tmp_path: Path) -> None:
    """Without conflicts, at an address that is known before the loop, and while the other factor may still be on its
    way."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((64, 128), (128, 128)))
    c = np.zeros((64, 128), np.int32)
    maps = [TensorDescriptor.from_tensor(x, block) for x, block in ((a, [64, 64]), (b, [64, 128]), (c, [64, 128]))]
    with emulator("sm_90", str(tmp_path)):
        kernel = across[(1,)](*maps, 128, num_warps=8, num_stages=2)
    assert np.array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
    assert kernel.counters.total.conflicts == 0
    ptx = kernel.asm["ptx"]
    loop = ptx[ptx[: ptx.index("ldmatrix")].rindex("nounroll") : ptx.index("wgmma.mma_async")]
    waiting, reading = loop[: loop.index("ldmatrix")], loop[loop.index("ldmatrix") :]
    assert waiting.count("mbarrier.try_wait") == reading.count("mbarrier.try_wait") == 1
    assert not re.findall(r"\b(and|or|xor)\.b32", waiting[waiting.index("mbarrier.try_wait") :])
