"""Programs that a cluster of blocks runs (`num_ctas`): each block has a part of every tile, and all of them are one
program."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.pipeline.reference_kernels import KERNELS
from tests.targets.gpu_text import CPU, VERSION, Array, launch
from tilework.errors import PassError
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.language.function import jit
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline


def cluster_ptx(kernel: Any, types: Mapping[str, str], constexprs: Mapping[str, Any], ctas: int) -> str:
    signature = {**types, **dict.fromkeys(constexprs, "constexpr")}
    module = compile_to_ttir(kernel, signature, dict(constexprs), {}, frontend_options(GPUTarget("cuda", 90, 32), {}))
    run_pipeline(module, ttir_pipeline(Target.parse("cuda:90")))
    run_pipeline(
        module, [one for item in ttgir_pipeline(Target.parse("cuda:90"), 4, 3, ctas) for one in parse_pipeline(item)]
    )
    return to_ptx(emit_module(module, 90), PtxSettings(CPU[90], VERSION))


@jit
def square(x, out, T: tl.constexpr):
    at = tl.arange(0, T)[:, None] * T + tl.arange(0, T)[None, :]
    a = tl.load(x + at).to(tl.float16)
    tl.store(out + at, tl.dot(a, a))


@jit
def multiply(x, y, out, T: tl.constexpr):
    at = tl.program_id(0) * T * T + tl.arange(0, T)[:, None] * T + tl.arange(0, T)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)) + tl.num_programs(0))


def test_factors_in_other_blocks_are_refused() -> None:
    with pytest.raises(PassError, match="blocks of a cluster"):
        cluster_ptx(square, {"x": "*fp32", "out": "*fp32"}, {"T": 64}, ctas=2)


@pytest.mark.parametrize("ctas", [2, 4])
def test_clusters_multiply(ctas: int) -> None:
    ptx = cluster_ptx(multiply, {"x": "*fp16", "y": "*fp16", "out": "*fp32"}, {"T": 64}, ctas)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, (2, 64, 64)).astype(np.float16) for _ in range(2))
    out: Array = np.zeros((2, 64, 64), np.float32)
    launch(ptx, "multiply", [x, y, out], warps=4, grid=2 * ctas)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ y.astype(np.float32) + 2)
    with pytest.raises(EmulatorError, match=re.escape("do not divide")):
        launch(ptx, "multiply", [x, y, out], warps=4, grid=2 * ctas + 1)


def test_a_pipelined_loop_has_barriers_in_every_block() -> None:
    kernel, types, constants = KERNELS["matmul_descriptor"]
    signature, gpu = {**types, **dict.fromkeys(constants, "constexpr")}, GPUTarget("cuda", 90, 32)
    module = compile_to_ttir(kernel, signature, constants, {}, frontend_options(gpu, {}))
    passes = [*ttir_pipeline(Target.parse("cuda:90")), *ttgir_pipeline(Target.parse("cuda:90"), 8, 3, 2)]
    run_pipeline(module, [one for item in passes for one in parse_pipeline(item)])
    verify(module)
    text = print_module(module)
    assert set(re.findall(r"memdesc<([0-9x]+)i64", text)) == {"3x2x", "2x"}
    assert "order = [0], CGALayout = [[1]]" in text
    assert "mbarrier.try_wait" in to_ptx(emit_module(module, 90), PtxSettings(CPU[90], VERSION))


@jit
def numbers_and_tiles(x, out, T: tl.constexpr):
    tl.store(out + T, 7)
    tl.atomic_add(out + T + 1, 5)
    at = tl.arange(0, T)
    tl.store(out + at, tl.load(x + at) + 1)


def test_numbers_are_stored_and_added_once() -> None:
    ptx = cluster_ptx(numbers_and_tiles, {"x": "*i32", "out": "*i32"}, {"T": 256}, 2)
    out: Array = np.zeros(258, np.int32)
    launch(ptx, "numbers_and_tiles", [np.arange(256, dtype=np.int32), out], warps=4, grid=2)
    np.testing.assert_array_equal(out, [*range(1, 257), 7, 5])


@jit
def turned_in_place(x, T: tl.constexpr):
    at = tl.arange(0, T)
    tl.store(x + at, at * 3)
    tl.debug_barrier()
    transposed = tl.load(x + (T - 1 - at))
    tl.debug_barrier()
    tl.store(x + at, transposed)


def test_a_barrier_is_one_of_all_blocks() -> None:
    x: Array = np.zeros(256, np.int32)
    launch(cluster_ptx(turned_in_place, {"x": "*i32"}, {"T": 256}, 2), "turned_in_place", [x], warps=4, grid=2)
    np.testing.assert_array_equal(x, np.arange(256)[::-1] * 3)


@jit
def moved_by_copies(x, T: tl.constexpr, SHIFT: tl.constexpr):
    rows = tl.make_tensor_descriptor(x, [4 * T, 16], [16, 1], [T, 16])
    first = rows.load([0, 0])
    rows.store([SHIFT, 0], first + 100)
    rows.store([2 * T, 0], rows.load([T, 0]))


@pytest.mark.parametrize("shift", [4, 12])
def test_what_blocks_copy_is_in_order(shift: int) -> None:
    """The rows that one block stores have been loaded by another one, and are loaded again by the next."""
    x = np.arange(32 * 16, dtype=np.int32).reshape(32, 16)
    wanted = x.copy()
    wanted[shift : shift + 8] = x[:8] + 100
    wanted[16:24] = wanted[8:16]
    ptx = cluster_ptx(moved_by_copies, {"x": "*i32"}, {"T": 8, "SHIFT": shift}, 2)
    launch(ptx, "moved_by_copies", [x], warps=4, grid=2)
    np.testing.assert_array_equal(x, wanted)


def test_rows_that_are_too_short_when_they_are_shared_are_refused() -> None:
    with pytest.raises(PassError, match="rows of 8 bytes"):
        cluster_ptx(short_rows, {"x": "*i32", "out": "*i32"}, {}, ctas=2)


@jit
def short_rows(x, out):
    rows = tl.make_tensor_descriptor(x, [4, 16], [16, 1], [1, 4])
    tl.store(out + tl.arange(0, 1)[:, None] * 4 + tl.arange(0, 4)[None, :], rows.load([2, 0]))


@jit
def pages(table, x, out, n, T: tl.constexpr):
    at = tl.arange(0, T)
    total = tl.zeros((T,), tl.int32)
    for page in tl.range(n, num_stages=3):
        total += tl.load(x + tl.load(table + page) * T + at)
    tl.store(out + at, total)


def test_each_block_has_its_copy_of_a_number_that_is_loaded_early() -> None:
    ptx = cluster_ptx(pages, {"table": "*i32", "x": "*i32", "out": "*i32", "n": "i32"}, {"T": 256}, 2)
    x, out = np.arange(8 * 256, dtype=np.int32).reshape(8, 256), np.zeros(256, np.int32)
    launch(ptx, "pages", [np.array([3, 7, 0, 3, 5], np.int32), x, out, 5], warps=4, grid=2)
    np.testing.assert_array_equal(out, x[[3, 7, 0, 3, 5]].sum(0))


@jit
def picked_and_counted(x, out):
    """All blocks hold all of the tile, and each has it in its own shared memory."""
    at = tl.arange(0, 64)
    same = tl.broadcast_to(tl.load(x + tl.arange(0, 1)) * 2, (64,))
    tl.store(out + at, at + same[37])
    tl.store(out + 64 + at, tl.histogram(same, 64))


def test_tiles_that_every_block_holds_are_picked_from_in_every_block() -> None:
    ptx = cluster_ptx(picked_and_counted, {"x": "*i32", "out": "*i32"}, {}, ctas=2)
    out: Array = np.zeros(128, np.int32)
    launch(ptx, "picked_and_counted", [np.full(1, 7, np.int32), out], warps=4, grid=2)
    np.testing.assert_array_equal(out, [*(np.arange(64) + 14), *(64 * (np.arange(64) == 14))])
