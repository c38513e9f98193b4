"""`tt.sort_runs` on GPUs, run in the emulator: generated layouts, orders and types against NumPy; what the code of a
row consists of."""

import re

import numpy as np
import pytest

from tests.targets.gpu_tiles import Tile, blocked, compiled, element, layout, module_text, run
from tilework.errors import PassError
from tilework.ir.tt import SortOrder

DTYPES = ("int32", "int64", "int8", "int16")


def sort_text(tile: Tile, dtype: str, bits: int, order: int, signed: bool = True, merges: str = "false") -> str:
    settings = f"bits = {bits} : i32, merges = {merges}, order = {order} : i32, signed = {str(signed).lower()}"
    return f"%y = tt.sort_runs %x {{{settings}}} : {tile.type(element(dtype))}"


@pytest.mark.parametrize("seed", range(12))
def test_generated_layouts(seed: int) -> None:
    """Bits of the index are in registers, lanes and warps in any order, with copies."""
    rng = np.random.default_rng(seed)
    warps, rows, columns = (int(2 ** rng.integers(*range_)) for range_ in ((0, 4), (0, 4), (1, 9)))
    columns = min(columns, 512 * warps // rows)  # 16 elements of each thread
    tile = Tile((rows, columns), layout(rng, (rows, columns), warps))
    dtype, order = DTYPES[seed % len(DTYPES)], SortOrder(seed % 3)
    total = (rows * columns).bit_length() - 1
    bits = int(rng.integers(1, total + 1))
    is_signed = seed % 5 > 0
    x = rng.integers(-100, 100, tile.shape).astype(dtype)
    keys = x if is_signed else x.view(f"u{dtype}")
    expected = np.sort(keys.reshape(-1, 1 << bits), axis=1).view(dtype)
    falls = slice(order == SortOrder.ALTERNATING, None, 1 + (order == SortOrder.ALTERNATING))
    if order != SortOrder.UPWARDS:
        expected[falls] = expected[falls, ::-1]
    text = sort_text(tile, dtype, bits, order, is_signed)
    (found,) = run(text, [("x", tile, x)], [("y", tile, dtype)], warps, (80, 90)[seed % 2])
    np.testing.assert_array_equal(found, expected.reshape(tile.shape))


@pytest.mark.parametrize("rows", [16, 4])
def test_threads_that_have_elements_of_several_rows(rows: int) -> None:
    """They exchange them first for more of one row; some fall in lanes then."""
    tile = Tile((rows, 2048 // rows), blocked((1, 4), (1, 32), (4 if rows > 4 else 1, 1 if rows > 4 else 4), (1, 0)))
    x = np.random.default_rng(rows).integers(-9999, 9999, tile.shape).astype(np.int32)
    bits = tile.shape[1].bit_length() - 1
    (found,) = run(sort_text(tile, "int32", bits, SortOrder.ALTERNATING), [("x", tile, x)], [("y", tile, "int32")], 4)
    expected = np.sort(x, axis=1)
    expected[1::2] = expected[1::2, ::-1]
    np.testing.assert_array_equal(found, expected)


COPIES = (
    "#ttg.linear<{register = [], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [[0, 1], [0, 2]], block = []}>"
)


@pytest.mark.parametrize(("rows", "encoding"), [(32, ""), (128, ""), (1, COPIES)])
def test_rows_that_only_warps_share(rows: int, encoding: str) -> None:
    """Columns of a tile that was transposed: warps cannot compare, so registers or lanes take the bits of a row
    first."""
    tile = Tile((rows, 4), encoding or blocked((1, 1), (32, 1), (1, 4), (0, 1)))
    x = np.random.default_rng(rows).integers(-9999, 9999, tile.shape).astype(np.int32)
    (found,) = run(sort_text(tile, "int32", 2, SortOrder.UPWARDS), [("x", tile, x)], [("y", tile, "int32")], 4)
    np.testing.assert_array_equal(found, np.sort(x, axis=1))


def test_the_steps_of_a_row() -> None:
    """1024 elements on one warp: 191 comparisons in threads, then 40 - 15 + 12 steps in registers, and 3 by
    shuffles."""
    tile = Tile((1024,), blocked((4,), (32,), (1,), (0,)))
    x = np.zeros(tile.shape, np.int32)
    text = compiled(module_text(sort_text(tile, "int32", 10, 0), [("x", tile, x)], [("y", tile, "int32")], 1, 90), 90)
    counts = [len(re.findall(rf"\t{name}\.", text)) for name in ("(?:min|max)", "shfl", r"st\.shared", r"ld\.shared")]
    assert counts == [2 * 191 + 32 * 37 + 64 * 3, 32 * 3, 3 * 8 + 3 * 32 + 8, 3 * 32 + 3 * 8 + 8]


@pytest.mark.parametrize(("size", "held"), [(8, 1), (32, 1), (64, 2)])
def test_what_each_warp_has_whole_stays_in_it(size: int, held: int) -> None:
    """Warps with copies of a row sort each their own: nothing passes through shared memory."""
    tile = Tile((size,), blocked((held,), (32,), (4,), (0,)))
    x = np.random.default_rng(size).integers(-9999, 9999, tile.shape).astype(np.int32)
    text, y = sort_text(tile, "int32", size.bit_length() - 1, SortOrder.UPWARDS), [("y", tile, "int32")]
    assert "st.shared" not in compiled(module_text(text, [("x", tile, x)], y, 4, 90), 90)
    (found,) = run(text, [("x", tile, x)], y, 4)
    np.testing.assert_array_equal(found, np.sort(x))


def test_merging_is_refused() -> None:
    tile = Tile((64,), blocked((1,), (32,), (2,), (0,)))
    with pytest.raises(PassError, match="only merged"):
        run(
            sort_text(tile, "int32", 3, 0, merges="true"),
            [("x", tile, np.zeros(64, np.int32))],
            [("y", tile, "int32")],
            2,
        )
