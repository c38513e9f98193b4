"""TTGIR: memory descriptors share memory, work in the background is done at its wait, and mistakes are found."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pipeline.gpu_inputs import inputs
from tilework.inspect.check_each import Inputs, generate_inputs, public_functions
from tilework.ir.functions import symbol_of
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate

REFERENCE = Path(__file__).parent.parent / "ir" / "reference"
HEAD = """
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#t = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#r = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [0, 1]}>
#nv = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#smem = #ttg.shared_memory
"""
MACHINE = (
    '"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32'
)


def run(parameters: str, results: str, body: str, *args: Any, shared: int | None = None, **options: Any) -> list[Any]:
    """Run `@f`; with `shared`, as a module of which memory has been allocated."""
    facts = MACHINE if shared is None else f"{MACHINE}, ttg.shared = {shared} : i32"
    arrow = f" -> ({results})" if results else ""
    text = f"{HEAD}module attributes {{{facts}}} {{\n tt.func public @f({parameters}){arrow} {{\n{body}\n }}\n}}\n"
    return evaluate(parse_module(text), "f", list(args), **options)


def fails(parameters: str, results: str, body: str, *args: Any, **options: Any) -> str:
    with pytest.raises(EvaluationError) as caught:
        run(parameters, results, body, *args, **options)
    return str(caught.value)


T = "tensor<16x64xf16, #b>"
M = "!ttg.memdesc<16x64xf16, #s, #smem, mutable>"
X = np.arange(1024, dtype=np.float16).reshape(16, 64)


def test_layouts_do_not_change_values() -> None:
    body = """
 %0 = ttg.convert_layout %x : tensor<16x64xf16, #b> -> tensor<16x64xf16, #t>
 tt.return %0 : tensor<16x64xf16, #t>"""
    (out,) = run(f"%x: {T}", "tensor<16x64xf16, #t>", body, X)
    assert (out == X).all()


def test_views_share_memory() -> None:
    body = f"""
 %m = ttg.local_alloc : () -> !ttg.memdesc<2x16x64xf16, #s, #smem, mutable>
 %i = arith.constant 1 : i32
 %b = ttg.memdesc_index %m[%i] : !ttg.memdesc<2x16x64xf16, #s, #smem, mutable> -> {M}
 ttg.local_store %x, %b : {T} -> {M}
 %u = ttg.memdesc_trans %b {{order = array<i32: 1, 0>}} : {M} -> !ttg.memdesc<64x16xf16, #r, #smem, mutable>
 %v = ttg.local_load %u : !ttg.memdesc<64x16xf16, #r, #smem, mutable> -> tensor<64x16xf16, #t>
 tt.return %v : tensor<64x16xf16, #t>"""
    (out,) = run(f"%x: {T}", "tensor<64x16xf16, #t>", body, X)
    assert (out == X.T).all()


def test_a_subslice_is_part_of_its_buffer() -> None:
    part = "!ttg.memdesc<8x64xf16, #s, #smem, mutable, 16x64>"
    body = f"""
 %m = ttg.local_alloc %x : ({T}) -> {M}
 %p = ttg.memdesc_subslice %m[8, 0] : {M} -> {part}
 %z = arith.constant dense<0.0> : tensor<8x64xf16, #b>
 ttg.local_store %z, %p : tensor<8x64xf16, #b> -> {part}
 %v = ttg.local_load %m : {M} -> {T}
 tt.return %v : {T}"""
    (out,) = run(f"%x: {T}", T, body, X)
    assert (out[:8] == X[:8]).all() and (out[8:] == 0).all()


def test_reinterpreted_memory_shows_its_swizzle() -> None:
    """Row 1 of a matrix with vec 8, maxPhase 8 holds columns 8-15 first: what a plain view of the bytes shows."""
    flat = "!ttg.memdesc<1024xf16, #one, #smem, mutable>"
    body = f"""
 %m = ttg.local_alloc %x : ({T}) -> {M}
 %p = ttg.memdesc_reinterpret %m : {M} -> {flat}
 %v = ttg.local_load %p : {flat} -> tensor<1024xf16>
 tt.return %v : tensor<1024xf16>"""
    (out,) = run(f"%x: {T}", "tensor<1024xf16>", body, X)
    assert out[64] == X[1, 8] and out[72] == X[1, 0] and out[0] == X[0, 0]


def test_a_buffer_index_out_of_range_is_found_where_the_buffer_is_used() -> None:
    body = f"""
 %m = ttg.local_alloc : () -> !ttg.memdesc<2x16x64xf16, #s, #smem, mutable>
 %i = arith.constant 2 : i32
 %b = ttg.memdesc_index %m[%i] : !ttg.memdesc<2x16x64xf16, #s, #smem, mutable> -> {M}
 ttg.local_store %x, %b : {T} -> {M}
 tt.return"""
    assert "index is out of range" in fails(f"%x: {T}", "", body, X)


# Copies by threads


COPY = f"""
 %m = ttg.local_alloc : () -> {M}
 %i = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = #b}}>>
 %j = tt.expand_dims %i {{axis = 0 : i32}} : tensor<64xi32, #ttg.slice<{{dim = 0, parent = #b}}>> -> tensor<1x64xi32, #b>
 %k = tt.broadcast %j : tensor<1x64xi32, #b> -> tensor<16x64xi32, #b>
 %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #b>
 %q = tt.addptr %s, %k : tensor<16x64x!tt.ptr<f16>, #b>, tensor<16x64xi32, #b>
 %c = ttg.async_copy_global_to_local %q, %m : tensor<16x64x!tt.ptr<f16>, #b> -> <16x64xf16, #s, #smem, mutable>
"""  # noqa: E501
LOADED = f"""
 %v = ttg.local_load %m : {M} -> {T}
 tt.return %v : {T}"""
ROW = np.arange(64, dtype=np.float16)


def test_a_copy_is_there_after_its_wait() -> None:
    body = f"{COPY} %g = ttg.async_commit_group tokens %c\n %w = ttg.async_wait %g {{num = 0 : i32}}\n{LOADED}"
    (out,) = run("%p: !tt.ptr<f16>", T, body, ROW)
    assert (out == ROW).all()


@pytest.mark.parametrize(
    "mistake",
    [
        "",
        " %g = ttg.async_commit_group tokens %c",
        " %g = ttg.async_commit_group tokens %c\n %w = ttg.async_wait %g {num = 1 : i32}",
        " %w = ttg.async_wait %c {num = 0 : i32}",
    ],
    ids=["no commit and no wait", "no wait", "too large num", "no commit"],
)
def test_reading_a_copy_too_early_is_found(mistake: str) -> None:
    message = fails("%p: !tt.ptr<f16>", T, f"{COPY}{mistake}{LOADED}", ROW)
    assert "ttg.local_load reads shared memory that ttg.async_copy_global_to_local has not finished" in message


def test_writing_over_a_copy_is_found() -> None:
    body = f"{COPY} ttg.local_store %x, %m : {T} -> {M}\n tt.return"
    assert "has not finished writing" in fails(f"%p: !tt.ptr<f16>, %x: {T}", "", body, ROW, X)


def test_masked_lanes_of_a_copy_are_zero_whatever_other_says() -> None:
    """``cp.async`` can only fill with zero: a pass that forgets the `select` for another value is caught."""
    masked = COPY.replace("%q, %m :", "%q, %m mask %n other %o :")
    extra = """ %n = arith.constant dense<false> : tensor<16x64xi1, #b>
 %o = arith.constant dense<7.0> : tensor<16x64xf16, #b>"""
    tail = f" %g = ttg.async_commit_group tokens %c\n %w = ttg.async_wait %g {{num = 0 : i32}}\n{LOADED}"
    (out,) = run("%p: !tt.ptr<f16>", T, extra + masked + tail, ROW)
    assert (out == 0).all()


# Dots of warp groups

A = "!ttg.memdesc<64x64xf16, #nv, #smem>"
D = "tensor<64x64xf32, #mma>"
DOT = f"""
 %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> {A}
 %n = ttg.local_alloc %y : (tensor<64x64xf16, #b>) -> {A}
 FENCE
 %c = arith.constant dense<1.0> : {D}
 %d = ttng.warp_group_dot %m, %n, %c {{inputPrecision = 0 : i32, isAsync = true}} : {A} * {A} -> {D}
"""
DOT_ARGS = "%x: tensor<64x64xf16, #b>, %y: tensor<64x64xf16, #b>"
RNG = np.random.default_rng(3)
LHS, RHS = (RNG.integers(-4, 5, size=(64, 64)).astype(np.float16) for _ in range(2))
FENCED = DOT.replace("FENCE", "ttng.fence_async_shared {bCluster = false}")


def test_a_dot_is_there_after_its_wait() -> None:
    body = f"{FENCED} %w = ttng.warp_group_dot_wait %d {{pendings = 0 : i32}} : {D}\n tt.return %w : {D}"
    (out,) = run(DOT_ARGS, D, body, LHS, RHS, fences=True)
    assert (out == LHS.astype(np.float32) @ RHS.astype(np.float32) + 1).all()


def test_a_false_use_flag_drops_the_accumulator() -> None:
    body = FENCED.replace("%c {inputPrecision", "%c, %no {inputPrecision").replace("isAsync = true", "isAsync = false")
    (out,) = run(DOT_ARGS, D, f" %no = arith.constant false\n{body} tt.return %d : {D}", LHS, RHS)
    assert (out == LHS.astype(np.float32) @ RHS.astype(np.float32)).all()


@pytest.mark.parametrize(
    "use",
    [
        f" %w = arith.addf %d, %d : {D}\n tt.return %w : {D}",
        f" %w = ttng.warp_group_dot_wait %d {{pendings = 1 : i32}} : {D}\n %z = math.exp %w : {D}\n tt.return %z : {D}",
        f" %w = ttng.warp_group_dot_wait %c {{pendings = 0 : i32}} : {D}\n %z = math.exp %d : {D}\n tt.return %z : {D}",
    ],
    ids=["no wait", "too many pendings", "not passed through the wait"],
)
def test_using_a_dot_too_early_is_found(use: str) -> None:
    assert "asynchronous dot before its ttng.warp_group_dot_wait" in fails(DOT_ARGS, D, FENCED + use, LHS, RHS)


def test_a_returned_dot_must_have_been_waited_for() -> None:
    assert "before its ttng.warp_group_dot_wait" in fails(DOT_ARGS, D, f"{FENCED} tt.return %d : {D}", LHS, RHS)


def test_writing_what_a_dot_still_reads_is_found() -> None:
    mutable = FENCED.replace("#smem>", "#smem, mutable>")
    body = f"{mutable} ttg.local_store %x, %n : tensor<64x64xf16, #b> -> !ttg.memdesc<64x64xf16, #nv, #smem, mutable>"
    message = fails(DOT_ARGS, "", f"{body}\n tt.return", LHS, RHS)
    assert "ttg.local_store writes shared memory that ttng.warp_group_dot still reads" in message


def test_a_missing_fence_is_found() -> None:
    body = (
        f"{DOT.replace('FENCE', '')} %w = ttng.warp_group_dot_wait %d {{pendings = 0 : i32}} : {D}\n tt.return %w : {D}"
    )
    assert "no ttng.fence_async_shared came between" in fails(DOT_ARGS, D, body, LHS, RHS, fences=True)
    run(DOT_ARGS, D, body, LHS, RHS)


# Barriers between threads

STORED = f"""
 %m = ttg.local_alloc {{allocation.offset = 0 : i32}} : () -> {M}
 ttg.local_store %x, %m : {T} -> {M}
BARRIER
 %v = ttg.local_load %m : {M} -> {T}
 tt.return %v : {T}"""


@pytest.mark.parametrize("barrier", ["ttg.barrier all", "ttg.barrier global_read|local"])
def test_barriers_are_counted_when_requested(barrier: str) -> None:
    (out,) = run(f"%x: {T}", T, STORED.replace("BARRIER", barrier), X, shared=2048, barriers=True)
    assert (out == X).all()
    for missing in (STORED.replace("BARRIER", ""), STORED.replace("BARRIER", "ttg.barrier global_read|global_write")):
        run(f"%x: {T}", T, missing, X, shared=2048)
        message = fails(f"%x: {T}", T, missing, X, shared=2048, barriers=True)
        assert "ttg.local_load reads shared memory that other threads wrote since the last barrier" in message


def test_a_barrier_before_memory_is_used_again() -> None:
    again = STORED.replace("BARRIER", "ttg.barrier local").replace(
        f" tt.return %v : {T}", f"ttg.local_store %v, %m : {T} -> {M}\n tt.return %v : {T}"
    )
    message = fails(f"%x: {T}", T, again, X, shared=2048, barriers=True)
    assert "ttg.local_store writes shared memory that other threads read since the last barrier" in message


def test_buffers_at_the_same_bytes_collide() -> None:
    body = f"""
 %m = ttg.local_alloc %x {{allocation.offset = 0 : i32}} : ({T}) -> {M}
 %n = ttg.local_alloc %y {{allocation.offset = 1024 : i32}} : ({T}) -> {M}
 %v = ttg.local_load %m : {M} -> {T}
 tt.return %v : {T}"""
    (out,) = run(f"%x: {T}, %y: {T}", T, body, X, X + 1, shared=3072)
    assert (out[:8] == X[:8]).all() and not (out[8:] == X[8:]).any()
    apart = body.replace("offset = 1024", "offset = 2048")
    assert (run(f"%x: {T}, %y: {T}", T, apart, X, X + 1, shared=4096)[0] == X).all()
    assert "of which there are 3072" in fails(f"%x: {T}, %y: {T}", T, apart, X, X, shared=3072)


def test_a_conversion_destroys_what_lies_in_its_scratch_memory() -> None:
    body = f"""
 %m = ttg.local_alloc %x {{allocation.offset = 0 : i32}} : ({T}) -> {M}
 %0 = ttg.convert_layout %x {{allocation.offset = OFFSET : i32}} : {T} -> tensor<16x64xf16, #t>
 %v = ttg.local_load %m : {M} -> {T}
 tt.return %v : {T}"""
    assert (run(f"%x: {T}", T, body.replace("OFFSET", "2048"), X, shared=4096)[0] == X).all()
    assert not (run(f"%x: {T}", T, body.replace("OFFSET", "0"), X, shared=4096)[0] == X).all()


# TMA and its barriers

TMA_ARGS = "%d: !tt.tensordesc<tensor<16x64xf16, #nv>>"
BUFFER = "!ttg.memdesc<16x64xf16, #nv, #smem, mutable>"
BAR = "!ttg.memdesc<1xi64, #one, #smem, mutable>"
TMA = f"""
 %true = arith.constant true
 %i = arith.constant 0 : i32
 %ph = arith.constant 0 : i32
 %m = ttg.local_alloc : () -> {BUFFER}
 %b = ttg.local_alloc : () -> {BAR}
 ttng.init_barrier %b, 1 : {BAR}
 ttng.barrier_expect %b, 2048, %true : {BAR}
 ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %true : !tt.tensordesc<tensor<16x64xf16, #nv>>, {BAR} -> {BUFFER}
 ttng.wait_barrier %b, %ph : {BAR}
 %v = ttg.local_load %m : {BUFFER} -> {T}
 ttng.inval_barrier %b : {BAR}
 tt.return %v : {T}"""  # noqa: E501
HOST = (X, (16, 64), (64, 1))


def test_a_tma_copy_is_there_after_its_barrier() -> None:
    assert (run(TMA_ARGS, T, TMA, HOST)[0] == X).all()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (f" ttng.wait_barrier %b, %ph : {BAR}\n", "", "a wait is missing"),
        ("%ph = arith.constant 0", "%ph = arith.constant 1", "waits for ever: phase 1 of the barrier, of parity 1"),
        ("%b, 2048, %true", "%b, 4096, %true", "waits for ever: phase 0 of the barrier, of parity 0, is not over"),
        ("init_barrier %b, 1", "init_barrier %b, 2", "1 of 2 arrivals came"),
        (f" ttng.init_barrier %b, 1 : {BAR}\n", "", "not initialised"),
        (f" ttng.barrier_expect %b, 2048, %true : {BAR}\n", "", "waits for ever"),
    ],
    ids=["no wait", "wrong phase", "too many bytes", "too few arrivals", "no barrier", "nothing announced"],
)
def test_mistakes_with_tma_barriers_are_found(old: str, new: str, words: str) -> None:
    assert old in TMA
    assert words in fails(TMA_ARGS, T, TMA.replace(old, new), HOST)


STORE = f"""
 %i = arith.constant 0 : i32
 %m = ttg.local_alloc %x : ({T}) -> {BUFFER}
 ttng.fence_async_shared {{bCluster = false}}
 ttng.async_tma_copy_local_to_global %d[%i, %i] %m : !tt.tensordesc<tensor<16x64xf16, #nv>>, {BUFFER}
 ttng.async_tma_store_wait {{pendings = 0 : i32}}
 ttg.local_store %x, %m : {T} -> {BUFFER}
 tt.return"""
WAIT = " ttng.async_tma_store_wait {pendings = 0 : i32}\n"


def test_a_tma_store_holds_its_memory_until_the_wait() -> None:
    out = np.zeros((16, 64), np.float16)
    run(f"{TMA_ARGS}, %x: {T}", "", STORE, (out, (16, 64), (64, 1)), X, fences=True)
    assert (out == X).all()
    host = (out, (16, 64), (64, 1))
    assert "still reads" in fails(f"{TMA_ARGS}, %x: {T}", "", STORE.replace(WAIT, ""), host, X)
    early = STORE.replace(WAIT, "").replace(f" ttg.local_store %x, %m : {T} -> {BUFFER}\n", "")
    assert "ends while a TMA store still reads" in fails(f"{TMA_ARGS}, %x: {T}", "", early, host, X)
    unfenced = STORE.replace(" ttng.fence_async_shared {bCluster = false}\n", "")
    assert "fence_async_shared" in fails(f"{TMA_ARGS}, %x: {T}", "", unfenced, host, X, fences=True)


MAP = f"""
 %i = arith.constant 0 : i32
 %n = arith.constant 64 : i32
 %h = arith.constant 16 : i32
 %one = arith.constant 1 : i32
 %st = arith.constant 128 : i64
 %w = ttg.global_scratch_alloc {{alignment = 128 : i32, nbytes = 128 : i32}} : !tt.ptr<i8>
 ttng.tensormap_create %w, %p, [%n, %h], [%n, %h], [%st], [%one, %one] {{elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
 ttng.tensormap_fenceproxy_acquire %w : !tt.ptr<i8>
 %d = ttng.reinterpret_tensor_descriptor %w : !tt.ptr<i8> to !tt.tensordesc<tensor<16x64xf16, #nv>>
 {TMA}"""  # noqa: E501


def test_a_descriptor_that_the_kernel_makes() -> None:
    body = MAP.replace(" %i = arith.constant 0 : i32\n", "", 1)
    assert (run("%p: !tt.ptr<f16>", T, body, X)[0] == X).all()
    unfenced = body.replace(" ttng.tensormap_fenceproxy_acquire %w : !tt.ptr<i8>\n", "")
    assert "without a ttng.tensormap_fenceproxy_acquire" in fails("%p: !tt.ptr<f16>", T, unfenced, X)


ROWS = np.array([3, 0, 5, 9, 1, 2, 15, 14], np.int32)
GATHER = f"""
 %true = arith.constant true
 %i = arith.constant 0 : i32
 %m = ttg.local_alloc : () -> !ttg.memdesc<8x64xf16, #nv, #smem, mutable>
 %b = ttg.local_alloc : () -> {BAR}
 ttng.init_barrier %b, 1 : {BAR}
 ttng.barrier_expect %b, 1024, %true : {BAR}
 ttng.async_tma_gather %d[%r, %i] %m, %b, %true : !tt.tensordesc<tensor<1x64xf16, #nv>>, tensor<8xi32, #ttg.slice<{{dim = 1, parent = #b}}>>, i32, {BAR}, !ttg.memdesc<8x64xf16, #nv, #smem, mutable>, i1
 ttng.wait_barrier %b, %i : {BAR}
 %v = ttg.local_load %m : !ttg.memdesc<8x64xf16, #nv, #smem, mutable> -> tensor<8x64xf16, #b>
 ttng.fence_async_shared {{bCluster = false}}
 ttng.async_tma_scatter %o[%r, %i] %m : !tt.tensordesc<tensor<1x64xf16, #nv>>, tensor<8xi32, #ttg.slice<{{dim = 1, parent = #b}}>>, i32, !ttg.memdesc<8x64xf16, #nv, #smem, mutable>
 ttng.async_tma_store_wait {{pendings = 0 : i32}}
 tt.return %v : tensor<8x64xf16, #b>"""  # noqa: E501


def test_rows_by_number_come_and_go() -> None:
    desc, out = "!tt.tensordesc<tensor<1x64xf16, #nv>>", np.zeros((16, 64), np.float16)
    parameters = f"%d: {desc}, %o: {desc}, %r: tensor<8xi32, #ttg.slice<{{dim = 1, parent = #b}}>>"
    (found,) = run(parameters, "tensor<8x64xf16, #b>", GATHER, HOST, (out, (16, 64), (64, 1)), ROWS)
    assert (found == X[ROWS]).all() and (out[ROWS] == X[ROWS]).all() and not out[4].any()


def test_a_tma_reduction_adds_to_memory() -> None:
    body = STORE.replace("async_tma_copy_local_to_global %d", "async_tma_reduce add, %d")
    out = np.ones((16, 64), np.float16)
    run(f"{TMA_ARGS}, %x: {T}", "", body, (out, (16, 64), (64, 1)), X)
    assert (out == X + 1).all()


# Triton's own code, right and with one thing wrong


def launch(text: str, name: str, arch: str = "sm_90", fences: bool = True) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays after a kernel of the reference; its parameters get the names they have in the TTIR."""
    module = parse_module(text)
    named = parse_module((REFERENCE / arch / f"{name}.ttir").read_text())
    for own, other in zip(*(public_functions(m)[0].regions[0].blocks[0].args for m in (module, named)), strict=True):
        own.name_hint = other.name_hint
    given, grid = inputs(name, module)
    (function,) = public_functions(module)
    generated = generate_inputs(function, np.random.default_rng(0), 0, given)
    assert isinstance(generated, Inputs)
    evaluate(module, symbol_of(function), generated.args, grid, fences=fences)
    return {key: array.copy() for key, array in generated.arrays}


MATMULS = ["sm_80/matmul_f16", "sm_90/matmul_f16", "sm_90/matmul_tf32", "sm_90/matmul_fp8", "sm_90/matmul_descriptor"]


@pytest.mark.parametrize("kernel", MATMULS)
def test_tritons_matmul_multiplies(kernel: str) -> None:
    arch, name = kernel.split("/")
    found = launch((REFERENCE / f"{kernel}.ttgir").read_text(), name, arch)
    a, b, c = (found[key].astype(np.float64) for key in "abc")
    wanted = a.reshape(48, -1) @ b.reshape(-1, 48)
    assert np.abs(c.reshape(48, 48) - wanted).max() < 1e-2 * np.abs(wanted).max()


HALFWAY = sorted((REFERENCE / "pipeliner").glob("*.ttgir"))


@pytest.mark.parametrize("path", HALFWAY, ids=lambda path: path.stem)
def test_halfway_through_the_pipeliner(path: Path) -> None:
    """Between Triton's steps there are predicated stages; they compute what the unpipelined loop did."""
    arch, name = re.fullmatch(r"(sm_\d+)_(\w+)_(?:lower|expand)_loops", path.stem).groups()  # pyright: ignore
    found = launch(path.read_text(), name, arch, fences=False)
    wanted = launch((REFERENCE / arch / f"{name}.ttir").read_text(), name, arch)
    assert any(not (array == 0).all() for array in found.values())
    for key, array in found.items():
        error = np.abs(array.astype(np.float64) - wanted[key].astype(np.float64)).max()
        assert error <= 1e-2 * np.abs(wanted[key].astype(np.float64)).max()


MISTAKES = [
    ("sm_80/matmul_f16", "{num = 2 : i32}", "{num = 4 : i32}", "a wait is missing"),
    ("sm_80/matmul_f16", "memdesc<2x", "memdesc<3x", None),
    ("sm_90/matmul_f16", "{num = 2 : i32}", "{num = 3 : i32}", "a wait is missing"),
    ("sm_90/matmul_f16", "{pendings = 1 : i32}", "{pendings = 2 : i32}", "still reads"),
    ("sm_90/matmul_f16", "{pendings = 0 : i32}", "{pendings = 1 : i32}", "before its ttng.warp_group_dot_wait"),
    ("sm_90/matmul_descriptor", "{pendings = 1 : i32}", "{pendings = 2 : i32}", "still reads"),
    (
        "sm_90/matmul_descriptor",
        "ttng.barrier_expect %acc_52, 49152",
        "ttng.barrier_expect %acc_52, 32768",
        "waits for",
    ),
    ("sm_90/matmul_descriptor", "arith.xori", "arith.ori", "waits for ever"),
    ("sm_90/matmul_descriptor", "ttng.fence_async_shared {bCluster = false}", "", "no ttng.fence_async_shared"),
    ("sm_90/attention", "{pendings = 0 : i32}", "{pendings = 1 : i32}", "before its ttng.warp_group_dot_wait"),
    ("sm_90/attention", "ttng.fence_async_shared {bCluster = false}", "", "no ttng.fence_async_shared"),
]


@pytest.mark.parametrize(("kernel", "old", "new", "words"), MISTAKES)
def test_one_mistake_in_tritons_code_is_found(kernel: str, old: str, new: str, words: str | None) -> None:
    text = (REFERENCE / f"{kernel}.ttgir").read_text()
    assert old in text
    wrong = re.sub(re.escape(old), new, text)
    arch, name = kernel.split("/")
    if words is None:
        launch(wrong, name, arch)
        return
    with pytest.raises(EvaluationError, match=re.escape(words)):
        launch(wrong, name, arch)
