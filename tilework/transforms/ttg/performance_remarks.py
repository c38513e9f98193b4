"""Remarks about slow parts of finished TTGIR and the limits of its loops; the module is not changed.

    kernel.py:9:17: remark: this load is not coalesced: a warp reads 4 contiguous bytes, a memory sector has 32.
                    Adjacent elements are not known to be contiguous in memory

    access not coalesced      the threads of a warp access runs of bytes shorter than a sector
    vectorization fails       a thread has several elements and reads them one by one: the pointers would allow
                              `origin vec` at a time, the mask `mask` (-1 without a mask)
    narrow access             a thread reads less than 4 bytes at a time
    conversion in a loop      a layout conversion through shared memory in every iteration

The passes that decide report dots without tensor cores and loops that are not pipelined. All use
`remarks.remark`: nothing is computed without a listener.
Stage: TTGIR. Cost: AxisInfo, and one walk.
"""

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.analysis.cost import (
    DRAM,
    Cost,
    Occupancy,
    concurrent_cost,
    hot_loops,
    loop_cost,
    occupancy,
    own_ops,
    ring_size,
)
from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import distributed_of, layout_of, spread_of, tensor_core_of
from tilework.ir.functions import is_private
from tilework.ir.module_facts import find_num_warps, find_target
from tilework.ir.nesting import ops_around
from tilework.ir.scf import loop_around
from tilework.ir.types import bit_width, int_property, is_tensor, shape_of
from tilework.layouts.conversion import conversion, scratch_bytes
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import contig_per_thread, elems_per_thread, order, total_elems_per_thread
from tilework.target import Rates
from tilework.transforms.building.emitter import mask_of
from tilework.transforms.passes import function_pass, module_pass
from tilework.transforms.remarks import is_heard, remark
from tilework.transforms.ttg.coalesce import Access, contiguity_order, pointer_access

# Report what limits each innermost loop, or a kernel without loops, its distance from the limit, and the choices made
# for it.
#
#     kernel.py:31:5: remark: the limit of this loop is tensor cores: an iteration takes at least 1024 cycles,
#                             989 TFLOP/s on the whole GPU
#        note: the others: shared memory 1024, L2 768, issue slots 122, MUFU 0, DRAM 0 cycles
#        note: 1 block on a multiprocessor, for its shared memory; by this model an iteration takes 1024 cycles,
#              100% of the limit
#        note: dots: wgmma 64x256x16, 1 still runs when the next iteration begins; operands: cp.async into 3 buffers
#        note: all warps run the whole loop; tl.range(..., warp_specialize=True) requests partitions
#
# The figures are those of `analysis/cost.py` (docs/cost-model.md).
# Stage: finished TTGIR. Cost: one walk, if there is a listener.

ALL_WARPS = "all warps run the whole loop; tl.range(..., warp_specialize=True) requests partitions"
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
    """Return the pieces of code to report: each innermost loop, the partitions of one loop together, or a function
    without loops.
    """
    groups: dict[Operation, list[Operation]] = {}
    for loop in hot_loops(function):
        groups.setdefault(specialized(loop) or loop, []).append(loop)
    return [*groups.values()] or [[function]]


def specialized(loop: Operation) -> Operation | None:
    """Return the op whose partitions contain a loop."""
    return next((outer for outer in ops_around(loop) if type(outer) is ttg.WarpSpecializeOp), None)


def explain(codes: Sequence[Operation]) -> None:
    """Emit one remark about a loop, about the partitions of a loop, or about a function."""
    code = codes[0]
    costs = map(loop_cost, codes)
    held, rates = occupancy(code), find_target(code).rates
    known = [cost for cost in costs if cost is not None]
    if not known or held is None or rates is None or not (cost := concurrent_cost(known)).bound:
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
    """Return the limit in TFLOP/s or GB/s."""
    per_second = rates.multiprocessors * rates.gigahertz * 1e9 / cost.bound
    if cost.macs:
        return f", {2 * cost.macs * per_second / 1e12:.0f} TFLOP/s on the whole GPU"
    return f", {cost.cycles[DRAM] * rates.dram_bytes * per_second / 1e9:.0f} GB/s" if cost.cycles[DRAM] else ""


def distance(cost: Cost, held: Occupancy, once: str) -> str:
    """Return the estimate of the model, as a share of the limit."""
    blocks = f"{held.blocks} block{'s' if held.blocks != 1 else ''} on a multiprocessor, for its {held.limit}"
    estimate = cost.estimate(held.blocks)
    waits = "; it waits for its dots before it goes on" if cost.drains and estimate > cost.bound else ""
    return (
        f"{blocks}; by this model {once} takes {estimate:.0f} cycles, {cost.bound / estimate:.0%} of the limit{waits}"
    )


def choices(codes: Sequence[Operation]) -> Iterator[str]:
    """Yield the choices of the compiler for the code, a line for each subject."""
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
        yield f"stores: a thread writes {width} contiguous bytes"


def partitions(loops: Sequence[Operation]) -> str:
    """Describe the partitions and warps of a warp-specialized loop."""
    warps = ", ".join(str(find_num_warps(loop)) for loop in loops)
    has_ping_pong = any(type(op) is ttng.PingPongWaitOp for loop in loops for op in loop.walk())
    ping_pong = "; two warp groups of the first start their dots in ping-pong order" if has_ping_pong else ""
    return f"the loop is warp specialized: {len(loops)} partitions of {warps} warps{ping_pong}"


def is_tile(op: Operation) -> bool:
    return type(op) is not tt.LoadOp or is_tensor(op.results[0].type)


def dot_way(op: Operation, ops: list[Operation]) -> str:
    """Describe the instruction of a dot, and how long it may run."""
    mma = tensor_core_of(op.results[0].type)
    if mma is None:
        return "no tensor cores"
    if not mma.is_hopper:
        return "mma.sync"
    rows, columns, depth = 4 * mma.instr_shape[0], *mma.instr_shape[1:]
    left = min((int_property(wait, "pendings") for wait in ops if type(wait) is ttng.WarpGroupDotWaitOp), default=0)
    still = f"{left} still runs" if left == 1 else f"{left} still run"
    ends = f"{still} when the next iteration begins" if left else "all are waited for in each iteration"
    return f"wgmma {rows}x{columns}x{depth}, {ends}"


def copy_way(op: Operation) -> str:
    """Describe the copies of a tile from global memory, and their buffers."""
    buffers = None if type(op) is tt.LoadOp else ring_size(op)
    return COPIES[type(op)] + (f" into {buffers} buffers" if buffers else "")


def store_width(op: Operation) -> int:
    value = op.operands[1].type
    return min(max(contig_per_thread(spread_of(value), shape_of(value))) * bit_width(value) // 8, 16)


SECTOR_BYTES = 32
WORD_BYTES = 4
COUNTED: dict[type[Operation], str] = {tt.LoadOp: "numElems", tt.StoreOp: "elemsPerThread"}
VERBS: dict[type[Operation], tuple[str, str]] = {
    tt.LoadOp: ("load", "reads"),
    tt.StoreOp: ("store", "writes"),
    tt.AtomicRMWOp: ("atomic", "accesses"),
    tt.AtomicCASOp: ("atomic", "accesses"),
    ttg.AsyncCopyGlobalToLocalOp: ("load", "reads"),
}
WAYS = {"warp": "within each warp", "shared": "between warps", "cluster": "between the blocks of the cluster"}


@module_pass("tritongpu-performance-remarks")
def performance_remarks(module: ModuleOp) -> None:
    if not is_heard():
        return
    facts = axis_info(module)
    for inner in module.walk():
        if (access := pointer_access(inner)) is not None:
            reasons = [*scalar_access(access, facts), *slow_access(access, facts)]
            if reasons:
                remark(inner, ". ".join(reasons))
        elif type(inner) is ttg.ConvertLayoutOp:
            remark_conversion(inner)


def scalar_access(access: Access, facts: AxisFacts) -> Iterator[str]:
    """Report a thread that moves its elements one by one, in Triton's wording."""
    encoding = distributed_of(access.type)
    if type(access.op) not in COUNTED or encoding is None:
        return
    shape = shape_of(access.type)
    dims, count = order(encoding, shape), total_elems_per_thread(encoding, shape)
    width = facts.contiguity(access.pointers, dims, contig_per_thread(encoding, shape))
    possible = min(find_target(access.op).limits.vector_bits // access.bits, width)
    mask = mask_of(access.op)
    masked = -1 if mask is None else facts.mask_alignment(mask, dims)
    if count > 1 and (possible == 1 or masked == 1):
        widths = f"vec = 1 origin vec = {possible} {COUNTED[type(access.op)]} = {count} mask is {masked}"
        yield f"Warning: vectorization fails {widths}"


def slow_access(access: Access, facts: AxisFacts) -> Iterator[str]:
    """Report accesses in runs shorter than a memory sector, and narrow ones."""
    noun, verb = VERBS[type(access.op)]
    dim, size = contiguity_order(facts, access)[0], max(access.bits // 8, 1)
    info, layout = facts.of(access.pointers), layout_of(access.type)
    known = max(info.contiguity[dim], max(info.constancy))
    covered = warp_run(layout, dim)
    run = min(known, covered) * size
    if run < min(SECTOR_BYTES, covered_by_warp(layout) * size):
        reason = (
            "Adjacent elements are not known to be contiguous in memory"
            if known < covered
            else f"Its layout is not contiguous along dimension {dim}, as memory is"
            if covered < shape_of(access.type)[dim]
            else f"The tile has only {shape_of(access.type)[dim]} elements along dimension {dim}"
        )
        text = f"a warp {verb} {run} contiguous bytes, a memory sector has {SECTOR_BYTES}. {reason}"
        yield f"this {noun} is not coalesced: {text}"
    elif (found := narrow_reason(access, facts, dim, size)) is not None:
        width, reason = found
        yield f"this {noun} is narrow: a thread {verb} {width * size} bytes at a time. {reason}"


def warp_run(layout: LinearLayout, dim: int) -> int:
    """Return the number of adjacent elements along `dim` that a warp accesses."""
    bases = dict(layout.bases)
    steps = {vector[dim] for level in ("register", "lane") for vector in bases[level] if is_along(vector, dim)}
    run = 1
    while run in steps:
        run *= 2
    return run


def is_along(vector: tuple[int, ...], dim: int) -> bool:
    return all((step != 0) == (axis == dim) for axis, step in enumerate(vector))


def covered_by_warp(layout: LinearLayout) -> int:
    """Return the number of distinct elements that a warp holds."""
    bases = dict(layout.bases)
    return 1 << sum(any(vector) for level in ("register", "lane") for vector in bases[level])


def narrow_reason(access: Access, facts: AxisFacts, dim: int, size: int) -> tuple[int, str] | None:
    """Return the elements that a thread moves at a time and the reason why not more, if they are less than 32 bits."""
    encoding = distributed_of(access.type)
    if encoding is None:
        return None
    held = elems_per_thread(encoding, shape_of(access.type))[dim]
    aligned = facts.alignment(access.pointers, (dim,))
    mask = mask_of(access.op)
    masked = held if mask is None else facts.mask_alignment(mask, (dim,))
    width = min(held, aligned, masked)
    if width * size >= WORD_BYTES or held * size < WORD_BYTES or max(facts.of(access.pointers).constancy) > 1:
        return None
    if aligned <= masked:
        return width, f"Its addresses are only known to be multiples of {aligned * size} bytes"
    return width, f"Its mask may change every {masked} elements"


def remark_conversion(op: Operation) -> None:
    """Report a layout conversion through shared memory, if it is in a loop."""
    if loop_around(op) is None:
        return
    source, result = op.operands[0].type, op.results[0].type
    before, after = spread_of(source), spread_of(result)
    way = conversion(layout_of(source), layout_of(result)).kind
    if way not in WAYS:
        return
    size = scratch_bytes(layout_of(source), layout_of(result), bit_width(source))
    remark(
        op,
        f"a layout conversion goes through shared memory in every iteration, {WAYS[way]}, {size} bytes at a time: "
        f"from {before.description} to {after.description}",
    )
