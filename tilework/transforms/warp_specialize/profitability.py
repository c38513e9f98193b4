"""Decide by the cost model if partitions pay for loops that do not request them (docs/cost-model.md).

    all warps run dots, then other work      tensor cores ####----####----      an iteration takes the sum of both,
                                             other units  ----####----####      divided by the resident blocks
    two consumers with half of the rows      tensor cores ########              one works while the other's dots run

Two consumers, or two warp groups of one, take no longer than the busiest unit; so they pay where a block waits for its
dots, and no other block fills the gap. Otherwise only copy instructions are saved: one producer thread issues a whole
tile by descriptor, and consumers do not wait for each other. Copies by threads are as many as before, by half as many
threads.
"""

from dataclasses import replace

from xdsl.ir import Operation, OpResult

from tilework.analysis.cost import hot_loops, loop_cost, occupancy, registers
from tilework.ir import arith, scf, tt, ttng
from tilework.ir.functions import is_private, ops_in_order
from tilework.ir.nesting import ops_around
from tilework.ir.rewrite import constant_value
from tilework.ir.scf import LOOPS
from tilework.ir.types import bit_width, is_tensor
from tilework.transforms.ttg.pipeline.loops import body_ops, num_stages
from tilework.transforms.ttg.pipeline.wgmma import BLOCKS, half_share, may_run_on
from tilework.transforms.warp_specialize.channels import loads_of_dots, tile_bytes

WARP_SPECIALIZE = "tt.warp_specialize"
OTHERS = 32  # registers of a thread besides accumulators and operands of its dots
FEW = 2  # iterations: too few to overlap
LEAST_GAIN = 1.1  # smaller gains are within the error of a throughput model


def will_split(function: Operation, when: str, default_stages: int) -> bool:
    """Return True if partitions are tried for `function`: a loop requests them, or (`when` is "pays") the cost model
    favours them.
    """
    ops = ops_in_order(*function.regions)
    if (
        when not in ("requested", "pays")
        or is_private(function)
        or not any(type(op) is ttng.WarpGroupDotOp for op in ops)
    ):
        return False
    is_requested = any(WARP_SPECIALIZE in op.attributes for op in ops)
    return is_requested or (when == "pays" and reason_not_to_split(function, default_stages) is None)


def reason_not_to_split(function: Operation, default_stages: int) -> str | None:
    """Return the reason why all warps should run the loops of `function`; None if partitions pay for one of them."""
    loops = [loop for loop in hot_loops(function) if any(type(op) is ttng.WarpGroupDotOp for op in body_ops(loop))]
    loads = loads_of_dots(function) | {op for op in ops_in_order(*function.regions) if type(op) is tt.DescriptorLoadOp}
    reasons = [loop_reason(loop, loads, num_stages(loop, default_stages)) for loop in loops]
    return None if None in reasons else next(iter(reasons), "it has no loop with dots")


def loop_reason(loop: Operation, loads: set[Operation], stages: int) -> str | None:
    dots = [op for op in body_ops(loop) if type(op) is ttng.WarpGroupDotOp]
    inside = loads & set(body_ops(loop))
    if not inside:
        return "its dots read nothing that it loads"
    if is_short(loop):
        return f"it runs no more than {FEW} times"
    once = [load for load in loads if not any(type(op) in LOOPS for op in ops_around(load))]
    shared = stages * sum(map(tile_bytes, inside)) + sum(map(tile_bytes, once))
    sums = sum(registers(dot.results[0].type) for dot in dots)
    operands = sum(registers(kind) * bit_width(kind) // 32 for dot in dots if is_tensor(kind := dot.operands[0].type))
    share = half_share(loop, dots)
    if share is not None and (fits := occupancy(loop, share, shared)) is not None and fits.blocks >= BLOCKS:
        return f"{fits.blocks} blocks share a multiprocessor if dots complete in their iteration"
    held, cost = occupancy(loop, sums + operands + OTHERS, shared), loop_cost(loop)
    if held is None or cost is None:
        return "the target has no cost model"
    waits = not all(may_run_on(loop, dot) for dot in dots)
    gain = replace(cost, drains=waits, latency=0).estimate(held.blocks) / cost.bound
    if gain >= LEAST_GAIN:
        return None
    if held.blocks > 1:
        return f"{held.blocks} blocks on a multiprocessor overlap dots with other work"
    if any(type(load) is tt.LoadOp for load in inside):
        return "its dots already overlap all other work, and threads would copy as much as before"
    return None


def is_short(loop: Operation) -> bool:
    """Return True if a loop over a constant distance runs at most a few times: the masked tiles of causal attention."""
    lower, upper, step = loop.operands[:3]
    distance, by = constant_value(upper), constant_value(step)
    if constant_value(lower) is not None and distance is not None:
        distance -= constant_value(lower) or 0
    elif isinstance(upper, OpResult) and type(upper.op) is arith.AddiOp and lower in upper.op.operands:
        distance = constant_value(upper.op.operands[1 - list(upper.op.operands).index(lower)])
    else:
        return False
    return type(loop) is scf.ForOp and distance is not None and by is not None and distance <= FEW * by
