"""`ttg.local_gather`, `ttg.local_scatter` and `ttg.warp_id`: kernels of TTGIR in the checking emulator and in the
evaluator, beside NumPy."""

import re
from typing import Any

import numpy as np
import pytest

from tests.targets.test_gpu_async import (
    BITS,
    Array,
    blocked,
    compiled,
    generated,
    kernel,
    launched,
    loaded,
    memory,
    nvmma,
    stored,
    swizzled,
)
from tilework.errors import PassError
from tilework.ir.parser import parse_module
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.oracles.evaluator import EvaluationError, evaluate
from tilework.target import Target
from tilework.targets.amd.code_object import metadata
from tilework.targets.amd.lower.emit import emit_module as emit_for_amd

ROWS, COLUMNS = 64, 32
BASES = [*([row, 0] for row in (1, 2, 4, 8, 16, 32)), [3, 1], *([0, column] for column in (2, 4, 8, 16))]
LAYOUTS = {
    "plain": swizzled(1, 1, 1),
    "swizzled": swizzled(8, 1, 4),
    "transposed": swizzled(4, 2, 4, "0, 1"),
    "nvmma": nvmma(32, 16),
    "linear": f"#ttg.shared_linear<{{offset = {BASES}}}, alignment = 16>",
}


def indexed_text(element: str, shared: str, axis: int, rows: int, each: int) -> str:
    """Gather rows of %x by %i into %y; scatter these by %j, along the same axis, and store the whole tile to %z."""
    source, part = blocked(COLUMNS, each, 4), blocked(COLUMNS, 1, 4)
    whole, some = memory(ROWS, COLUMNS, element, shared), f"tensor<{rows}x{COLUMNS}x"
    back, indices, values = (
        f"tensor<{ROWS}x{COLUMNS}x{element}, {source}>",
        f"{some}i32, {part}>",
        f"{element}, {part}>",
    )
    return kernel(f"x: {element}, i: i32, j: i32, y: {element}, z: {element}", f"""
    {loaded("x", ROWS, COLUMNS, element, source)}
    {loaded("i", rows, COLUMNS, "i32", part)}
    {loaded("j", rows, COLUMNS, "i32", part)}
    %m = ttg.local_alloc : () -> {whole}
    ttg.local_store %xv, %m : {back} -> {whole}
    %g = ttg.local_gather %m[%iv] {{axis = {axis} : i32}} : {whole}, {indices} -> {some}{values}
    {stored("y", "%g", rows, COLUMNS, element, part)}
    ttg.local_scatter %m[%jv], %g {{axis = {axis} : i32}} : {whole}, {indices}, {some}{values}
    %w = ttg.local_load %m : {whole} -> {back}
    {stored("z", "%w", ROWS, COLUMNS, element, source)}""")  # fmt: skip


def arguments(element: str, axis: int, rows: int) -> list[Array]:
    """A tile, indices, indices of which none occurs twice along the axis, and two tiles for results."""
    x, rng = generated((ROWS, COLUMNS), element), np.random.default_rng(rows)
    size = (ROWS, COLUMNS)[axis]
    indices = rng.integers(0, size, (rows, COLUMNS))
    distinct = np.argsort(rng.random((ROWS, COLUMNS)), axis)[:rows]
    found = [x, indices.astype(np.int32), distinct.astype(np.int32), generated((rows, COLUMNS), element, 1)]
    return [*found, np.zeros_like(x)]


def expected(x: Array, indices: Array, distinct: Array, axis: int) -> list[Array]:
    """The results, by NumPy."""
    picked = np.take_along_axis(x if axis == 0 else x[: len(indices)], indices, axis)
    whole = x.copy()
    np.put_along_axis(whole if axis == 0 else whole[: len(indices)], distinct, picked, axis)
    return [picked, whole]


def on_amd(text: str, args: list[Array]) -> None:
    llvm = emit_for_amd(parse_module(text), Target.parse("hip:gfx1100"))
    run(llvm, [*args, 0, 0], grid=1, threads=128, lds_bytes=metadata(llvm)["shared"], arch="gfx1100")


CASES = [("f32", 0, 64, 4), ("f16", 0, 32, 8), ("f8E5M2", 1, 2, 4), ("i64", 1, 64, 2), ("f16", 0, 1, 2)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("element", "axis", "rows", "each"), CASES)
def test_elements_by_index(layout: str, element: str, axis: int, rows: int, each: int) -> None:
    shared = LAYOUTS[layout].replace("elementBitWidth = 16", f"elementBitWidth = {min(BITS[element], 32)}")
    text = indexed_text(element, shared, axis, rows, each)
    x, indices, distinct, y, z = arguments(element, axis, rows)
    ptx = compiled(text)
    assert ptx.count("bar.sync") == 3  # behind the store, the gather and the scatter
    for execute in (
        lambda args: launched(ptx, args),
        lambda args: on_amd(text, args),
        lambda args: evaluate(parse_module(text), "k", args),
    ):
        y[...], z[...] = 0, 0
        execute([x, indices, distinct, y, z])
        for found, wanted in zip((y, z), expected(x, indices, distinct, axis), strict=True):
            np.testing.assert_array_equal(found.view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))


def test_a_part_of_a_buffer() -> None:
    text = indexed_text("f16", swizzled(1, 1, 1), 0, 32, 8)
    whole = memory(64, 32, "f16", swizzled(1, 1, 1))
    part = whole.replace("64x32", "32x32").replace("mutable>", "mutable, 64x32>")
    text = text.replace("%g = ttg", f"%p = ttg.memdesc_subslice %m[32, 0] : {whole} -> {part}\n    %g = ttg")
    text = re.sub(r"(ttg.local_(?:gather|scatter)) %m(.*?) : !ttg.memdesc<.*?mutable>,", rf"\1 %p\2 : {part},", text)
    x, indices, distinct, y, z = arguments("f16", 0, 32)
    indices, distinct = indices % 32, np.ascontiguousarray(np.argsort(distinct, 0).astype(np.int32))
    launched(compiled(text), [x, indices, distinct, y, z])
    picked, half = expected(x[32:], indices, distinct, 0)
    np.testing.assert_array_equal(y, picked)
    np.testing.assert_array_equal(z, np.concatenate([x[:32], half]))


def test_clusters_are_refused() -> None:
    layout = LAYOUTS["plain"]
    text = indexed_text("f32", layout, 0, 64, 4).replace('"ttg.num-ctas" = 1', '"ttg.num-ctas" = 2')
    text = text.replace("order = [1, 0]}", "order = [1, 0], CGALayout = [[1, 0]]}")
    with pytest.raises(PassError, match="indexed access to shared memory in a cluster"):
        compiled(text)


def test_scratch_memory_of_tools_is_refused() -> None:
    scratch = '{alignment = 16 : i32, backend = "proton", nbytes = 64 : i32}'
    with pytest.raises(PassError, match="scratch memory of the backend 'proton' cannot be compiled for cuda:90"):
        compiled(kernel("x: i32", f"%g = ttg.global_scratch_alloc {scratch} : !tt.ptr<i8>"))


IDS = """
    %c = arith.constant 0 : i32
    %w = ttg.warp_id HINT
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #l>
    %ws = tt.splat %w : i32 -> tensor<128xi32, #l>
    %p = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #l>
    %q = tt.addptr %p, %r : tensor<128x!tt.ptr<i32>, #l>, tensor<128xi32, #l>
    tt.store %q, %ws : tensor<128x!tt.ptr<i32>, #l>"""


@pytest.mark.parametrize("hint", ["", "{omitUniformHint}"])
def test_the_index_of_a_warp(hint: str) -> None:
    layout = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
    text = kernel("x: i32", IDS.replace("#l", layout).replace("HINT", hint))
    x: Any = np.zeros(128, np.int32)
    ptx = compiled(text)
    assert ("shfl" in ptx) == (not hint)
    launched(ptx, [x])
    np.testing.assert_array_equal(x, np.arange(128) // 32)
    with pytest.raises(EvaluationError, match="differs between the warps"):
        evaluate(parse_module(text), "k", [x])
