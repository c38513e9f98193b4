"""Say what limits each innermost loop, or a kernel without loops, how far it is from that, and what was chosen; nothing is changed.

    kernel.py:31:5: remark: the limit of this loop is tensor cores: an iteration takes at least 1024 cycles, 989 TFLOP/s on the whole GPU
       note: the others: shared memory 1024, L2 768, issue slots 122, MUFU 0, DRAM 0 cycles
       note: 1 block on a multiprocessor, for its shared memory; by this model an iteration takes 1024 cycles, 100% of the limit
       note: dots: wgmma 64x256x16, 1 still runs when the next iteration begins; operands: cp.async into 3 buffers
       note: all warps run the whole loop; tl.range(..., warp_specialize=True) asks for partitions

The numbers are those of `analysis/cost.py` (docs/cost-model.md). Stage: finished TTGIR. Cost: one walk, where somebody listens.
"""

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation

from tilework.analysis.cost import (
    DRAM,
    Cost,
    Occupancy,
    hot_loops,
    loop_cost,
    occupancy,
    own_ops,
    pending,
    ring_size,
    straight_cost,
    together,
)
from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import spread_of, tensor_core_of
from tilework.ir.functions import is_private
from tilework.ir.module_facts import find_num_warps, find_target
from tilework.ir.nesting import ops_around
from tilework.ir.types import bit_width, is_tensor, shape_of
from tilework.layouts.queries import contig_per_thread
from tilework.target import Rates
from tilework.transforms.passes import function_pass
from tilework.transforms.remarks import is_heard, remark

ALL_WARPS = "all warps run the whole loop; tl.range(..., warp_specialize=True) asks for partitions"
COPIES: dict[type[Operation], str] = {
    ttng.AsyncTMACopyGlobalToLocalOp: "TMA",
    ttg.AsyncCopyGlobalToLocalOp: "cp.async",
    tt.LoadOp: "loads into registers",
}


@function_pass("tritongpu-limit-remarks")
def limit_remarks(function: Operation) -> None:
    if is_heard() and type(function) is tt.FuncOp and not is_private(function):
        for codes in limited_codes(function):
            explain(codes)


def limited_codes(function: Operation) -> list[list[Operation]]:
    """What has a limit: each innermost loop, those of the partitions of one together, or a function without loops."""
    groups: dict[Operation, list[Operation]] = {}
    for loop in hot_loops(function):
        groups.setdefault(specialized(loop) or loop, []).append(loop)
    return [*groups.values()] or [[function]]


def specialized(loop: Operation) -> Operation | None:
    """The op whose partitions a loop is in."""
    return next((outer for outer in ops_around(loop) if type(outer) is ttg.WarpSpecializeOp), None)


def explain(codes: Sequence[Operation]) -> None:
    """One remark about a loop, about those of the partitions of one, or about a function."""
    code = codes[0]
    costs = [straight_cost(one) if type(one) is tt.FuncOp else loop_cost(one) for one in codes]
    held, rates = occupancy(code), find_target(code).rates
    known = [cost for cost in costs if cost is not None]
    if not known or held is None or rates is None or not (cost := together(known)).bound:
        return
    what, once = ("kernel", "a program") if type(code) is tt.FuncOp else ("loop", "an iteration")
    text = f"the limit of this {what} is {cost.limit}: {once} takes at least {cost.bound:.0f} cycles{peak(cost, rates)}"
    others = sorted((-cycles, name) for name, cycles in cost.cycles.items() if name != cost.limit)
    remark(
        code,
        text,
        f"the others: {', '.join(f'{name} {-cycles:.0f}' for cycles, name in others)} cycles",
        distance(cost, held, once),
        *choices(codes),
    )


def peak(cost: Cost, rates: Rates) -> str:
    """What the limit means in the units that benchmarks have."""
    per_second = rates.multiprocessors * rates.gigahertz * 1e9 / cost.bound
    if cost.macs:
        return f", {2 * cost.macs * per_second / 1e12:.0f} TFLOP/s on the whole GPU"
    return f", {cost.cycles[DRAM] * rates.dram_bytes * per_second / 1e9:.0f} GB/s" if cost.cycles[DRAM] else ""


def distance(cost: Cost, held: Occupancy, once: str) -> str:
    """How much more than the limit it takes, as far as the model knows."""
    blocks = f"{held.blocks} block{'s' if held.blocks != 1 else ''} on a multiprocessor, for its {held.limit}"
    estimate = cost.estimate(held.blocks)
    waits = "; it waits for its dots before it goes on" if cost.drains and estimate > cost.bound else ""
    return (
        f"{blocks}; by this model {once} takes {estimate:.0f} cycles, {cost.bound / estimate:.0%} of the limit{waits}"
    )


def choices(codes: Sequence[Operation]) -> Iterator[str]:
    """What the compiler chose for the code, a line for each subject."""
    ops = [op for code in codes for op in own_ops(code)]
    ways = [*dict.fromkeys(dot_way(op, ops) for op in ops if type(op) in (tt.DotOp, ttng.WarpGroupDotOp))]
    moved = [*dict.fromkeys(copy_way(op) for op in ops if type(op) in COPIES and is_tile(op))]
    if ways or moved:
        yield "; ".join([*(f"dots: {way}" for way in ways), *(f"operands: {way}" for way in moved if ways)] or moved)
    if type(codes[0]) is not tt.FuncOp:
        yield partitions(codes) if specialized(codes[0]) else ALL_WARPS
    for width in dict.fromkeys(
        store_width(op) for op in ops if type(op) is tt.StoreOp and is_tensor(op.operands[1].type)
    ):
        yield f"stores: a thread writes {width} bytes side by side"


def partitions(loops: Sequence[Operation]) -> str:
    """Who runs the parts of a warp-specialized loop."""
    warps = ", ".join(str(find_num_warps(loop)) for loop in loops)
    in_turn = any(type(op) is ttng.TakeTurnOp for loop in loops for op in loop.walk())
    turns = "; of the first, two groups start their products in turn" if in_turn else ""
    return f"the loop is warp specialized: {len(loops)} partitions of {warps} warps{turns}"


def is_tile(op: Operation) -> bool:
    return type(op) is not tt.LoadOp or is_tensor(op.results[0].type)


def dot_way(op: Operation, ops: list[Operation]) -> str:
    """Which instruction a dot is, and how long it may run."""
    mma = tensor_core_of(op.results[0].type)
    if mma is None:
        return "no tensor cores"
    if not mma.is_hopper:
        return "mma.sync"
    rows, columns, depth = 4 * mma.instr_shape[0], *mma.instr_shape[1:]
    left = min((pending(wait) for wait in ops if type(wait) is ttng.WarpGroupDotWaitOp), default=0)
    still = f"{left} still runs" if left == 1 else f"{left} still run"
    ends = f"{still} when the next iteration begins" if left else "all are waited for in each iteration"
    return f"wgmma {rows}x{columns}x{depth}, {ends}"


def copy_way(op: Operation) -> str:
    """How a tile comes from global memory, and into how many buffers."""
    buffers = None if type(op) is tt.LoadOp else ring_size(op)
    return COPIES[type(op)] + (f" into {buffers} buffers" if buffers else "")


def store_width(op: Operation) -> int:
    value = op.operands[1].type
    return min(max(contig_per_thread(spread_of(value), shape_of(value))) * bit_width(value) // 8, 16)
