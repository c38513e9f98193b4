"""Stages for memory that would lie idle.

A block whose sums leave no room for another one has the shared memory of its multiprocessor for itself. If the stages that were asked
for bring tiles later than products use them up, it gets as many as keep products busy: one that they read, one that they have just read,
and those that come while memory lets wait. A tile of 256x128x32 in bf16 keeps tensor cores busy for 512 cycles, memory takes 700: 4 stages.
Where several blocks share a multiprocessor they hide each other's waits, and more stages would leave room for fewer of them.
"""

from collections.abc import Sequence
from math import ceil

from xdsl.ir import Operation

from tilework.analysis.cost import carried_registers, loop_cost, occupancy
from tilework.ir.functions import function_around
from tilework.ir.module_facts import find_target
from tilework.ir.types import tile_bits
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.loops import NUM_STAGES, group_dots

OTHERS = 24  # registers of a thread beside the sums
SHARE = 0.75  # of shared memory that stages may take: there is more in a kernel


def enough_stages(loop: Operation, stages: int, loads: Sequence[Operation]) -> int:
    """The stages of `loop`, whose products read what `loads` load: those asked for, or more."""
    rates = find_target(loop).rates
    if rates is None or stages < 2 or NUM_STAGES in loop.attributes or not has_own_products(loop):
        return stages
    cost = loop_cost(loop)
    room = occupancy(loop, carried_registers(function_around(loop)) + OTHERS, 0)
    if cost is None or room is None or room.blocks > 1:
        return stages
    enough = 2 + ceil(rates.memory_cycles / cost.bound)
    tiles = sum(tile_bits(load.results[0].type) // 8 for load in loads)
    fitting = int(rates.shared_memory * SHARE) // tiles
    if min(enough, fitting) <= stages:
        return stages
    remark(loop, f"{min(enough, fitting)} stages instead of {stages}: no other block has room for its registers")
    return min(enough, fitting)


def has_own_products(loop: Operation) -> bool:
    """A loop of warp group products, the only one of its function: what others would need is not known."""
    dots = group_dots(function_around(loop))
    return bool(dots) and all(dot.parent_op() is loop for dot in dots)
