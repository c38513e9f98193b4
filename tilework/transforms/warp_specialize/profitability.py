"""Decide by the cost model if partitions pay for loops that do not request them (docs/cost-model.md).

    dots, then other work, of one block      tensor cores ####----####----       all warps run both: an iteration takes their sum,
                                                 other units  ----####----####       divided by the blocks that a multiprocessor has
    two consumers, each with half of the rows    tensor cores ########              one works while the other's dots run

Two consumers, or two groups of warps of one, take no longer than the busiest unit; so they pay where a block waits for
its dots, and no other block fills the gap. Otherwise only the instructions of copies are saved: one producer thread
starts a whole tile by descriptor, and consumers do not wait for each other. Copies by threads are as many as before, by
half as many threads.
"""

from dataclasses import replace

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, OpResult

from tilework.analysis.cost import hot_loops, loop_cost, occupancy, registers
from tilework.ir import tt, ttng
from tilework.ir.functions import is_private, ops_in_order
from tilework.ir.nesting import LOOPS, ops_around
from tilework.ir.rewrite import constant_value
from tilework.ir.types import bit_width, is_tensor
from tilework.transforms.ttg.pipeline.loops import body_ops, num_stages
from tilework.transforms.ttg.pipeline.wgmma import BLOCKS, half_share, may_run_on
from tilework.transforms.warp_specialize.channels import loads_of_dots, tile_bytes

WARP_SPECIALIZE = "tt.warp_specialize"
OTHERS = 32  # registers of a thread beside accumulators and operands of its dots
FEW = 2  # iterations, of which nothing overlaps
LEAST_GAIN = 1.1  # what a model of throughput does not see is less


def will_split(function: Operation, when: str, default_stages: int) -> bool:
    """Return True if partitions are tried for `function`: a loop requests them, or (`when` is "pays") the cost model
    favours them."""
    ops = ops_in_order(*function.regions)
    if when not in ("asked", "pays") or is_private(function) or not any(type(op) is ttng.WarpGroupDotOp for op in ops):
        return False
    asks = any(WARP_SPECIALIZE in op.attributes for op in ops)
    return asks or (when == "pays" and reason_not_to_split(function, default_stages) is None)


def reason_not_to_split(function: Operation, default_stages: int) -> str | None:
    """The reason why all warps should run the loops of `function`; None if partitions pay for one of them."""
    loops = [loop for loop in hot_loops(function) if any(type(op) is ttng.WarpGroupDotOp for op in body_ops(loop))]
    loads = loads_of_dots(function) | {op for op in ops_in_order(*function.regions) if type(op) is tt.DescriptorLoadOp}
    reasons = [loop_reason(loop, loads, num_stages(loop, default_stages)) for loop in loops]
    return None if None in reasons else next(iter(reasons), "it has no loop with products")


def loop_reason(loop: Operation, loads: set[Operation], stages: int) -> str | None:
    dots = [op for op in body_ops(loop) if type(op) is ttng.WarpGroupDotOp]
    inside = loads & set(body_ops(loop))
    if not inside:
        return "its products read nothing that it loads"
    if is_short(loop):
        return f"it runs no more than {FEW} times"
    once = [load for load in loads if not any(type(op) in LOOPS for op in ops_around(load))]
    shared = stages * sum(map(tile_bytes, inside)) + sum(map(tile_bytes, once))
    sums = sum(registers(dot.results[0].type) for dot in dots)
    factors = sum(registers(kind) * bit_width(kind) // 32 for dot in dots if is_tensor(kind := dot.operands[0].type))
    share = half_share(loop, dots)
    if share is not None and (room := occupancy(loop, share, shared)) is not None and room.blocks >= BLOCKS:
        return f"{room.blocks} blocks share a multiprocessor if products end in their iteration"
    held, cost = occupancy(loop, sums + factors + OTHERS, shared), loop_cost(loop)
    if held is None or cost is None:
        return "the target has no cost model"
    waits = not all(may_run_on(loop, dot) for dot in dots)
    gain = replace(cost, drains=waits, latency=0).estimate(held.blocks) / cost.bound
    if gain >= LEAST_GAIN:
        return None
    if held.blocks > 1:
        return f"{held.blocks} blocks on a multiprocessor overlap products with other work"
    if any(type(load) is tt.LoadOp for load in inside):
        return "its products run on under everything else, and threads would copy as much as before"
    return None


def is_short(loop: Operation) -> bool:
    """Return True if a loop between constants, or over a constant distance, runs at most a few times: the masked tiles
    of causal attention."""
    lower, upper, step = loop.operands[:3]
    distance, by = constant_value(upper), constant_value(step)
    if constant_value(lower) is not None and distance is not None:
        distance -= constant_value(lower) or 0
    elif isinstance(upper, OpResult) and type(upper.op) is arith.AddiOp and lower in upper.op.operands:
        distance = constant_value(upper.op.operands[1 - list(upper.op.operands).index(lower)])
    else:
        return False
    return type(loop) is scf.ForOp and distance is not None and by is not None and distance <= FEW * by
