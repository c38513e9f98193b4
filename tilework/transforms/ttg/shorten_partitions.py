"""Fewer instructions in loops of partitions that tensor cores wait for, such as attention with short rows.

Two warps of a scheduler hide little: an iteration takes as long as its own chain of instructions. Where the cost model says
that tensor cores are not the limit, sums over rows meet behind the loop (`carried_row_sums.py`), and the product of a
carried sum with factors of its rows is marked: where all factors of a warp are 1, a branch leads around it
(`targets/nvidia/lower/emit.py`). Where several blocks share a multiprocessor, what a branch keeps apart costs more.
Stage: TTGIR, behind the last pass that chooses layouts. Cost: one walk.
"""

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from tilework.analysis.cost import TENSOR, loop_cost
from tilework.ir import ttg, ttng
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import is_reproducible
from tilework.transforms.passes import function_pass
from tilework.transforms.ttg.carried_row_sums import carry_row_sums
from tilework.transforms.ttg.layouts.dead_loop_arguments import cut_dead_loop_arguments
from tilework.transforms.ttg.pipeline.loops import body_ops, loops_in

SKIP_ONES = "tilework.skip-ones"
SUM = 2  # the operand that is the sum so far


@function_pass("tritongpu-shorten-partitions")
def shorten_partitions(function: Operation) -> None:
    special = [op for op in ops_in_order(*function.regions) if type(op) is ttg.WarpSpecializeOp]
    for loop in (loop for op in special for loop in loops_in(op)):
        shorten(loop)
    if special:
        cut_dead_loop_arguments(function)


def shorten(loop: Operation) -> None:
    dots = [op for op in body_ops(loop) if type(op) is ttng.WarpGroupDotOp]
    cost = loop_cost(loop) if dots else None
    if cost is None or cost.limit == TENSOR:
        return
    if not is_reproducible(loop):
        carry_row_sums(loop)
    for dot in dots:
        scaled = dot.operands[SUM].owner
        if type(scaled) is arith.MulfOp and scaled.parent is dot.parent:
            scaled.attributes[SKIP_ONES] = UnitAttr()
