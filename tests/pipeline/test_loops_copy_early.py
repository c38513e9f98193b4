"""Loops whose copies start as soon as they may, and have as many stages as there is memory for."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.compiler import ASTSource, GPUTarget, lower
from tilework.runtime.launch.python.jit import jit

TILE = 64


@jit
def scaled_scores(q, k, v, scales, out, tiles, ROWS: tl.constexpr, KEYS: tl.constexpr, DEPTH: tl.constexpr):
    """Two products that end in their turn, and a scale for each tile, as quantized attention has."""
    i, j, d = tl.arange(0, ROWS)[:, None], tl.arange(0, KEYS), tl.arange(0, DEPTH)
    left, total = tl.load(q + i * DEPTH + d[None, :]), tl.zeros((ROWS, DEPTH), tl.float32)
    for tile in range(tiles):
        start = tile * KEYS * DEPTH
        scores = tl.dot(left, tl.load(k + start + j[None, :] * DEPTH + d[:, None])).to(tl.float32) * tl.load(
            scales + tile
        )
        values = tl.load(v + start + j[:, None] * DEPTH + d[None, :])
        total += tl.dot(scores.to(tl.float16), values, out_dtype=tl.float16)
    tl.store(out + i * DEPTH + d[None, :], total)


def test_copies_of_a_turn_start_behind_its_only_barrier(tmp_path: Path) -> None:
    tiles, draw = 4, np.random.default_rng(1)
    q, k = (draw.integers(-3, 4, shape).astype(np.int8) for shape in ((TILE, TILE), (tiles, TILE, TILE)))
    v = draw.integers(-2, 3, (tiles, TILE, TILE)).astype(np.float16)
    scales = np.array([0.5, 1, 0.25, 2], np.float32) / 8
    out = np.zeros((TILE, TILE), np.float32)
    with emulator("sm_90", str(tmp_path)):
        made = scaled_scores[(1,)](q, k, v, scales, out, tiles, TILE, TILE, TILE, num_warps=4, num_stages=3)
    scores = np.einsum("ik,tjk->tij", q.astype(np.float32), k.astype(np.float32)) * scales[:, None, None]
    expected = np.einsum("tij,tjk->ik", scores.astype(np.float16).astype(np.float32), v.astype(np.float32))
    np.testing.assert_allclose(out, expected, rtol=2e-3, atol=0.2)
    assert "memdesc<3x1xf32" in made.asm["ttgir"], "scales have as many buffers as what products read"
    turn = made.asm["ptx"].partition("cp.async.wait_group \t3")[2].partition("cp.async.wait_group")[0]
    assert turn.count("bar.sync") == 1


@pytest.mark.parametrize(("depth", "warps", "order"), [(64, 4, "dots, copies"), (128, 8, "dot, copies, dot")])
def test_copies_start_behind_the_last_product_or_the_first_if_registers_are_limited(
    depth: int, warps: int, order: str
) -> None:
    text = ttgir(scaled_scores, "*i8 *i8 *fp16 *fp32 *fp32 i32", {"ROWS": 128, "KEYS": 64, "DEPTH": depth}, warps)
    turn = text.partition("scf.for")[2].partition("scf.yield")[0]
    found = re.findall(r"ttg\.async_copy_global|ttng\.warp_group_dot ", turn)
    assert [name[:4] for name in found] == [
        *["ttng"] * (2 if order.startswith("dots") else 1),
        *["ttg."] * 3,
        *["ttng"] * order.endswith("dot"),
    ]


def ttgir(kernel: Any, types: str, constants: dict[str, Any], warps: int, stages: int = 3) -> str:
    """Return the TTGIR of a kernel whose arguments are multiples of 16."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = {**dict(zip(names, types.split(), strict=True)), **dict.fromkeys(constants, "constexpr")}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(len(names))}
    source = ASTSource(kernel, signature, constants, aligned)
    return lower(source, GPUTarget("cuda", 90, 32), ["ttgir"], num_warps=warps, num_stages=stages)["ttgir"]


@jit
def long_product(a, b, c, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STAGES: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for step in tl.range(0, n, num_stages=STAGES):
        total = tl.dot(
            tl.load(a + i * n * K + step * K + k[None, :]), tl.load(b + j * n * K + step * K + k[:, None]), total
        )
    tl.store(c + i * N + j, total)


@pytest.mark.parametrize(
    ("tile", "requested", "buffers"),
    [
        ((256, 128, 32), None, 4),  # 512 cycles of products, 700 until memory answers
        ((256, 128, 64), None, 3),
        ((256, 128, 32), 3, 3),  # of the loop itself
        ((128, 128, 32), None, 4),  # three, as another block has room, and the one that saves a barrier
    ],
)
def test_a_block_that_is_alone_has_the_stages_that_keep_its_products_busy(
    tile: tuple[int, int, int], requested: int | None, buffers: int
) -> None:
    constants = {**dict(zip("MNK", tile, strict=True)), "STAGES": requested}
    text = ttgir(long_product, "*fp16 *fp16 *fp32 i32", constants, 8)
    assert f"memdesc<{buffers}x{tile[0]}x{tile[2]}xf16" in text


@jit
def of_heads(a, b, out, width, HEADS: tl.constexpr, TILE: tl.constexpr):
    """Arrays of [rows, heads, width]: what is left of a head makes a block of three dimensions."""
    i, j = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :]
    head = tl.program_id(0) * width
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, width, TILE):
        left = tl.load(a + head + i * (HEADS * width) + k + j, mask=k + j < width, other=0.0)
        right = tl.load(b + head + j * (HEADS * width) + k + i, mask=k + i < width, other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out + tl.program_id(0) * TILE * TILE + i * TILE + j, total)


def test_blocks_of_more_dimensions_than_their_tiles_are_copied_ahead(tmp_path: Path) -> None:
    heads, width, draw = 2, 208, np.random.default_rng(2)
    a, b = (draw.integers(-4, 5, (TILE, heads, width)).astype(np.float16) for _ in range(2))
    out = np.zeros((heads, TILE, TILE), np.float32)
    with emulator("sm_90", str(tmp_path)):
        made = of_heads[(heads,)](a, b, out, width, heads, TILE, num_warps=4, num_stages=3, auto_tma=True)
    np.testing.assert_array_equal(out, np.einsum("ihk,jhk->hij", a.astype(np.float32), b.astype(np.float32)))
    assert "tensordesc<tensor<1x64x64xf16" in made.asm["ttgir"]
    assert len(re.findall(r"local_alloc : .*memdesc<3x64x64xf16", made.asm["ttgir"])) == 2, (
        "none goes through registers"
    )


@jit
def scaled_weights(a, b, scales, zeros, out, tiles, TILE: tl.constexpr):
    """Weights of 32 bits with a scale and a zero for each tile of a column."""
    i, j, k = tl.arange(0, TILE)[:, None], tl.arange(0, TILE)[None, :], tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for tile in range(tiles):
        left = tl.load(a + i * tiles * TILE + tile * TILE + k[None, :])
        weights = tl.load(b + (tile * TILE + k[:, None]) * TILE + j).to(tl.float16)
        scale, zero = tl.load(scales + tile * TILE + j), tl.load(zeros + tile * TILE + j)
        total = tl.dot(left, (weights - zero) * scale, total)
    tl.store(out + i * TILE + j, total)


@pytest.mark.parametrize(("stages", "buffers"), [(5, 4), (4, 4)])
def test_small_tiles_get_no_buffer_that_would_cost_a_block(stages: int, buffers: int) -> None:
    """A fifth buffer of the scales leaves no room for the second block; where there is room they have one more."""
    text = ttgir(scaled_weights, "*fp16 *i32 *fp16 *fp16 *fp32 i32", {"TILE": TILE}, 4, stages)
    sizes = [int(size) for size in re.findall(r"memdesc<(\d)x1x64xf16", text)]
    assert set(sizes) == {buffers}
