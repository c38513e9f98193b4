"""`ttg.convert_layout` by shuffles, run in the emulator: generated layouts of one warp, and how many words they take;
through shared memory, what is loaded at once."""

import numpy as np
import pytest

from tests.targets.gpu_tiles import Tile, blocked, compiled, element, module_text, run
from tilework.ir.encodings import layout_of
from tilework.ir.parser import parse_module
from tilework.ir.ttg import ConvertLayoutOp
from tilework.layouts.conversion import conversion

DTYPES = ("float16", "int8", "int32", "int16")


def linear(bits: list[int], held: int) -> Tile:
    """Registers have the first `held` of these bits of the index, lanes the others."""
    registers, lanes = ([[1 << bit] for bit in some] for some in (bits[:held], bits[held:]))
    return Tile((1 << len(bits),), f"#ttg.linear<{{register = {registers}, lane = {lanes}, warp = [], block = []}}>")


def converted(source: Tile, result: Tile, dtype: str) -> tuple[str, str]:
    """The op, and the module around it."""
    kind = element(dtype)
    text = f"%y = ttg.convert_layout %x : {source.type(kind)} -> {result.type(kind)}"
    return text, module_text(text, [("x", source, np.zeros(source.shape, dtype))], [("y", result, dtype)], 1, 80)


@pytest.mark.parametrize("seed", range(12))
def test_generated_layouts_of_a_warp(seed: int) -> None:
    """One bit at most goes from registers to lanes; all may change places among themselves."""
    rng, dtype = np.random.default_rng(seed), DTYPES[seed % 4]
    held = int(rng.integers(1, 5))
    fixed = int(rng.integers(0, held + 1))
    bits = [*range(fixed), *(fixed + rng.permutation(5 + held - fixed)).tolist()]
    goes = list(bits)
    if fixed < held:
        goes[held - 1], goes[held + 2] = goes[held + 2], goes[held - 1]
    goes = [*goes[:fixed], *rng.permutation(goes[fixed:held]).tolist(), *rng.permutation(goes[held:]).tolist()]
    source, result = linear(bits, held), linear(goes, held)
    text, module = converted(source, result, dtype)
    (op,) = (op for op in parse_module(module).walk() if isinstance(op, ConvertLayoutOp))
    assert conversion(layout_of(op.operands[0].type), layout_of(op.results[0].type)).kind in ("shuffle", "none")
    x = rng.integers(-100, 100, source.shape).astype(dtype)
    (found,) = run(text, [("x", source, x)], [("y", result, dtype)], 1)
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(("dtype", "count"), [("int32", 16), ("float16", 8), ("int8", 4)])
def test_neighbours_that_stay_together_travel_as_words(dtype: str, count: int) -> None:
    """Eight registers, of which the highest bit goes to lanes: each lane reads both that it may want, and selects."""
    source, result = linear([0, 1, 7, 2, 3, 4, 5, 6], 3), linear([0, 1, 4, 3, 2, 7, 5, 6], 3)
    assert compiled(converted(source, result, dtype)[1], 80).count("shfl") == count


def transposed(rows: int, columns: int, warps: int, arch: int) -> str:
    """The PTX that loads a tile of f32 row by row, and stores it column by column."""
    by_rows = Tile((rows, columns), blocked((1, 4), (2, 16), (warps, 1), (1, 0)))
    by_columns = Tile((rows, columns), blocked((4, 1), (16, 2), (1, warps), (0, 1)))
    text = f"%y = ttg.convert_layout %x : {by_rows.type('f32')} -> {by_columns.type('f32')}"
    x = np.zeros((rows, columns), np.float32)
    return compiled(module_text(text, [("x", by_rows, x)], [("y", by_columns, "float32")], warps, arch), arch)


def test_a_tile_of_many_registers_is_loaded_before_it_is_written_to_shared_memory() -> None:
    """ptxas would load it in halves, to have 32 registers. Of 16 words it loads all by itself."""
    text = transposed(64, 64, 4, 90)
    assert text.count("bar.warp.sync") == 1
    assert text.rindex("ld.global") < text.index("bar.warp.sync") < text.index("st.shared")
    for rows, warps, arch in ((64, 8, 90), (32, 4, 90)):
        assert "bar.warp.sync" not in transposed(rows, 64, warps, arch)
