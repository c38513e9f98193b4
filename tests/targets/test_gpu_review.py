"""Bugs found by a code review of the GPU lowering: each test is one that the samples did not show."""

import re

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.pipeline.gpu import Config
from tests.targets import gpu_run
from tests.targets.gpu_text import blocked, kernel_ptx, launch, module_text, ptx_of, to_module, with_tensors
from tilework.analysis.allocation import module_allocation
from tilework.errors import PassError
from tilework.target import Target
from tilework.targets.nvidia.lower.emit import emit_module


def run(body: str, params: list[str], args: list[object], arch: int = 80) -> None:
    """A body of TTGIR on one warp, `T` having 32 elements."""
    text = with_tensors(module_text(params, body, arch, 1), 32, blocked(1, 1))
    launch(ptx_of(text, arch), "kernel", args, 1)


CARRIED = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %places = tt.make_range {start = 0 : i32, end = 32 : i32} : T<i32>
    %few = arith.constant dense<20> : T<i32>
    %mask = arith.cmpi slt, %places, %few : T<i32>
    %ones = arith.constant dense<1> : T<i32>
    %all = tt.splat %p : !tt.ptr<i32> -> T<!tt.ptr<i32>>
    %at = tt.addptr %all, %places : T<!tt.ptr<i32>>, T<i32>
    %last = scf.for %i = %zero to %n step %one iter_args(%value = %ones) -> (T<i32>) : i32 {
      %old = tt.atomic_rmw add, relaxed, gpu, %at, %value, %mask : (T<!tt.ptr<i32>>, T<i32>, T<i1>) -> T<i32>
      scf.yield %old : T<i32>
    }
    tt.store %at, %last, %mask : T<!tt.ptr<i32>>"""


def test_an_operand_is_read_before_its_register_is_cleared() -> None:
    """The old value is what the next round adds, so that LLVM keeps both in one register if it may."""
    found = np.arange(32, dtype=np.int32)
    run(CARRIED, ["%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}", "%n: i32"], [found, 3])
    memory, value = np.arange(32), np.ones(32, int)
    for _ in range(3):
        memory, value = memory + value, memory
    assert found.tolist() == [*value[:20], *range(20, 32)]


@pytest.mark.parametrize("condition", ["true", "false"])
def test_a_branch_on_a_constant(condition: str) -> None:
    body = f"""
    %c = arith.constant {condition}
    %seven = arith.constant 7 : i32
    %nine = arith.constant 9 : i32
    cf.cond_br %c, ^then(%seven : i32), ^after(%nine : i32)
  ^then(%x: i32):
    cf.br ^after(%x : i32)
  ^after(%y: i32):
    tt.store %p, %y : !tt.ptr<i32>"""
    found = np.zeros(4, np.int32)
    run(body, ["%p: !tt.ptr<i32>"], [found])
    assert found[0] == (7 if condition == "true" else 9)


def test_a_loop_of_branches_carries_bits_as_integers() -> None:
    body = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %true = arith.constant true
    cf.br ^again(%zero, %true, %zero : i32, i1, i32)
  ^again(%i: i32, %flag: i1, %sum: i32):
    %more = arith.cmpi slt, %i, %n : i32
    cf.cond_br %more, ^body, ^after(%flag, %sum : i1, i32)
  ^body:
    %other = arith.xori %flag, %true : i1
    %number = arith.extui %other : i1 to i32
    %next_sum = arith.addi %sum, %number : i32
    %next = arith.addi %i, %one : i32
    cf.br ^again(%next, %other, %next_sum : i32, i1, i32)
  ^after(%last: i1, %all: i32):
    %ten = arith.constant 10 : i32
    %result = arith.select %last, %all, %ten : i32
    tt.store %p, %result : !tt.ptr<i32>"""
    ptx = ptx_of(module_text(["%p: !tt.ptr<i32>", "%n: i32"], body, 80, 1), 80)
    assert "mov.pred" not in ptx and "not.pred" not in ptx
    for n, wanted in ((5, 10), (6, 3)):
        found = np.zeros(4, np.int32)
        launch(ptx, "kernel", [found, n], 1)
        assert found[0] == wanted


def test_the_counter_of_a_loop_does_not_wrap() -> None:
    """The sum behind the last round is beyond the largest i32, with an end that is constant."""
    body = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %end = arith.constant 2147483647 : i32
    %count = scf.for %i = %start to %end step %step iter_args(%so_far = %zero) -> (i32) : i32 {
      %more = arith.addi %so_far, %one : i32
      scf.yield %more : i32
    }
    tt.store %p, %count : !tt.ptr<i32>"""
    text = module_text(["%p: !tt.ptr<i32>", "%start: i32", "%step: i32"], body, 80, 1)
    llvm = emit_module(to_module(text), 80)
    assert "i64" not in llvm and "add nsw i32" not in llvm
    found = np.zeros(4, np.int32)
    launch(ptx_of(text, 80), "kernel", [found, 2147483000, 300], 1)
    assert found[0] == 3


MEMORY = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>"
WHOLE = f"!ttg.memdesc<64x32xf32, {MEMORY}, #ttg.shared_memory, mutable>"
PART = f"!ttg.memdesc<32x32xf32, {MEMORY}, #ttg.shared_memory, mutable, 64x32>"


def test_parts_of_buffers_that_meet_are_refused() -> None:
    """The start of a subview is a compile-time fact, not a run-time value: the compiler must not guess one of two."""
    tile = (
        "tensor<32x32xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, "
        "1], order = [1, 0]}>>"
    )
    body = f"""
    %memory = ttg.local_alloc : () -> {WHOLE}
    %first = ttg.memdesc_subslice %memory[0, 0] : {WHOLE} -> {PART}
    %second = ttg.memdesc_subslice %memory[32, 0] : {WHOLE} -> {PART}
    %one = scf.if %c -> ({PART}) {{
      scf.yield %first : {PART}
    }} else {{
      scf.yield %second : {PART}
    }}
    %x = ttg.local_load %one : {PART} -> {tile}"""
    with pytest.raises(PassError, match="one or another part of a buffer"):
        emit_module(to_module(module_text(["%c: i1"], body, 80, 1)), 80)


@tilework.jit(noinline=True)
def total(x_ptr):
    return tl.sum(tl.load(x_ptr + tl.arange(0, 64)))


@tilework.jit
def calls(x_ptr, y_ptr):
    tl.store(y_ptr, total(x_ptr) + total(x_ptr + 64))


def test_functions_with_barriers_are_convergent() -> None:
    """LLVM takes the mark off a call if the function does not have it."""
    found = np.zeros(4, np.float32)
    ptx = kernel_ptx(calls, {"x_ptr": "*fp32", "y_ptr": "*fp32"}, {}, 80)
    launch(ptx, "calls", [np.arange(128, dtype=np.float32), found], 4)
    assert found[0] == 127 * 64 and len(re.findall(r"\bcall\b", ptx)) == 2


SMALL = (
    "!ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, "
    "#ttg.shared_memory, mutable>"
)
SWIZZLED = (
    "!ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>,"
    " #ttg.shared_memory, mutable>"
)
FRAMES = f"""
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func private @inner() attributes {{noinline = true}} {{
    %memory = ttg.local_alloc : () -> {SWIZZLED}
    ttg.local_dealloc %memory : {SWIZZLED}
    tt.return
  }}
  tt.func public @outer() {{
    %small = ttg.local_alloc : () -> {SMALL}
    tt.call @inner() : () -> ()
    ttg.local_dealloc %small : {SMALL}
    tt.return
  }}
}}"""  # noqa: E501


def test_the_frame_of_a_callee_is_aligned_as_its_buffers_are() -> None:
    """Tensor cores and TMA swizzle by the bits of the address itself."""
    allocation = module_allocation(to_module(FRAMES), Target.parse("cuda:90"))["outer"]
    (call,) = [buffer for buffer in allocation.buffers if buffer.kind == "call"]
    (small,) = allocation.explicit.values()
    assert call.offset % 1024 == 0 and not call.bytes.overlaps(small.bytes)


def test_one_barrier_in_each_round_of_a_loop_that_tma_feeds() -> None:
    """The mbarriers order the rest: the threads that wait, the thread that arms them, and what the copies write."""
    ptx = gpu_run.ptx_of(Config("persistent_descriptors", 90))
    loops = [loop for loop in re.split(r"\$L__BB\d+_\d+:", ptx) if "wgmma.mma_async" in loop and "try_wait" in loop]
    assert [loop.count("bar.sync") for loop in loops] == [1]
