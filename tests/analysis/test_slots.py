"""The buffers of a ring that the accesses of a loop refer to, where the loop carries the buffers themselves."""

import pytest

from tilework.analysis.alias import Slot, in_other_slots, slots_of
from tilework.ir import amdg, ttg
from tilework.ir.parser import parse_module

LOOP = """
#b = #ttg.blocked<{{sizePerThread = [8], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}}>
#s = #ttg.swizzled_shared<{{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}}>
#smem = #ttg.shared_memory
!buffer = !ttg.memdesc<2048xf16, #s, #smem, mutable>
module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950",
                   "ttg.threads-per-warp" = 64 : i32}} {{
tt.func public @f(%p: !tt.ptr<f16>, %at: tensor<2048xi32, #b>, %n: i32) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %ring = ttg.local_alloc : () -> !ttg.memdesc<3x2048xf16, #s, #smem, mutable>
  %x = ttg.memdesc_index %ring[{first}] : !ttg.memdesc<3x2048xf16, #s, #smem, mutable> -> !buffer
  %y = ttg.memdesc_index %ring[{second}] : !ttg.memdesc<3x2048xf16, #s, #smem, mutable> -> !buffer
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%j = %c1, %u = %x, %v = %y) -> (i32, !buffer, !buffer) : i32 {{
    {wait}
    %k = arith.addi %j, %c1 : i32
    %e = arith.cmpi sge, %k, %c3 : i32
    %l = arith.select %e, %c0, %k : i32
    %m = ttg.memdesc_index %ring[%l] : !ttg.memdesc<3x2048xf16, #s, #smem, mutable> -> !buffer
    %t = amdg.buffer_load_to_local %p[%at] into %m {{contiguity = 8 : i32}} : <f16>[tensor<2048xi32, #b>] -> <2048xf16, #s, #smem, mutable>
    %d = ttg.local_load {read} : !buffer -> tensor<2048xf16, #b>
    scf.yield %l, %v, %m : i32, !buffer, !buffer
  }}
  tt.return
}}
}}
"""  # noqa: E501
WAIT = "%w = amdg.async_wait {num_inst = 1 : i32}"


@pytest.mark.parametrize(
    ("change", "slot", "is_apart"),
    [
        ({}, Slot(3, 0), True),
        ({"read": "%v"}, Slot(3, 1), True),
        ({"read": "%m"}, Slot(3, 2), False),  # what is being copied
        ({"first": "%c1"}, None, False),  # not the order in which the ring is filled
        ({"second": "%c0"}, None, False),
        ({"wait": ""}, Slot(3, 0), False),  # no barrier between two iterations
    ],
)
def test_a_loop_that_carries_buffers(change: dict[str, str], slot: Slot | None, is_apart: bool) -> None:
    given = {"first": "%c0", "second": "%c1", "read": "%u", "wait": WAIT, **change}
    ops = list(parse_module(LOOP.format(**given)).walk())
    (copy,) = (op for op in ops if type(op) is amdg.BufferLoadToLocalOp)
    (load,) = (op for op in ops if type(op) is ttg.LocalLoadOp)
    ((_, found),) = slots_of(load)
    assert found is None if slot is None else found is not None and (found.start - slot.start) % 3 == 0
    assert in_other_slots(copy, load) is is_apart
