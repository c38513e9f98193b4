"""One barrier in a turn instead of two, for one more buffer: where products run on, and two blocks still have room.

    turn t, 3 stages           3 buffers                                       4 buffers
    barrier                    tile t has arrived                              the same, and product t - 2 is over for all warps
    start product t            of buffer t mod 3                               of buffer t mod 4
    wait for product t - 1
    barrier                    product t - 1 is over for all warps             (none)
    copy tile t + 2            to buffer t + 2 = t - 1 mod 3, which it read    to buffer t + 2 = t - 2 mod 4

`analysis/ring_slots.py` proves it for each loop. Measured on an H200, matmul of f16 by cp.async (benchmarks/results/gpu-h200.txt): 64x128x64 with 4 warps
9 to 20 % more, though three blocks become two; 64x64x64 6 to 11 %. A block that is alone, or would be, gains nothing or loses.
"""

from dataclasses import replace

from xdsl.ir import Operation

from tilework.analysis.cost import carried_registers, occupancy
from tilework.ir import ttg
from tilework.ir.functions import function_around, ops_in_order
from tilework.ir.ttg.memdesc_types import is_memdesc
from tilework.ir.types import tile_bits
from tilework.transforms.ttg.pipeline.load_plans import Kind, LoadPlan, buffer_bits
from tilework.transforms.ttg.pipeline.loops import body_ops
from tilework.transforms.ttg.pipeline.spare_stages import OTHERS
from tilework.transforms.ttg.pipeline.wgmma import BLOCKS, Dot, may_run_on

AHEAD = 2  # buffers beside those that are copied to: what products read, and what they read a turn ago


def with_one_barrier(loop: Operation, plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans with as many buffers as one barrier needs, if all of them are copies and that leaves room for two blocks."""
    dots = [op for op in body_ops(loop) if type(op) is Dot]
    if not dots or not all(is_memdesc(dot.operands[0].type) and may_run_on(loop, dot) for dot in dots):
        return plans
    if not plans or any(plan.kind is not Kind.COPY for plan in plans):
        return plans
    more = [replace(plan, buffers=max(plan.buffers, plan.distance + AHEAD)) for plan in plans]
    shared = sum(plan.buffers * buffer_bits(plan) // 8 for plan in more) + other_bytes(loop)
    room = occupancy(loop, carried_registers(function_around(loop)) + OTHERS, shared)
    return more if room is not None and room.blocks >= BLOCKS else plans


def other_bytes(loop: Operation) -> int:
    """The shared memory that the function has outside of `loop`, which may be alive in it."""
    inside = set(loop.walk())
    allocs = [op for op in ops_in_order(*function_around(loop).regions) if type(op) is ttg.LocalAllocOp]
    return sum(tile_bits(op.results[0].type) // 8 for op in allocs if op not in inside)
