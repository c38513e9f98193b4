"""Store a tile in the cheapest layout by the cost model: that of its pointers, or one nearer to the layout of its
value.

    %y = ttg.convert_layout %x : #mma -> #blocked<{sizePerThread = [1, 8], ...}>    shared memory, two barriers
    tt.store %p, %y
==>
    %y = ttg.convert_layout %x : #mma -> #blocked<{sizePerThread = [16, 8], ...}>   shuffles within a warp
    tt.store %q, %y

The candidates are the coalesced layout; the same with more rows per thread, so that each warp holds all that it stores;
and the layout of the value, without a conversion (`analysis/cost.py`, docs/cost-model.md). A remark at the store
reports the choice and the costs. Pointers and masks must be computed from scalars alone, since they are recomputed, and
nothing else may access the stored memory. Of layouts with equal cost the first is taken.
Stage: TTGIR, before the last `tritongpu-remove-layout-conversions`. Cost: the slices of the pointers of stores behind a
conversion.
"""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Attribute, Operation

from tilework.analysis.cost import DRAM, ISSUE, L2, SECTOR, SHARED, Trip, accesses, occupancy, trip
from tilework.analysis.provenance import parameter_of
from tilework.ir import tt, ttg
from tilework.ir.encodings import layout_of, spread_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import find_num_warps, find_target
from tilework.ir.nesting import ops_around
from tilework.ir.rewrite import defining_op
from tilework.ir.scf import LOOPS, loop_around
from tilework.ir.types import bit_width, is_tensor, shape_of, tile_bits
from tilework.layouts.construct import default_blocked
from tilework.layouts.conversion import conversion
from tilework.layouts.encodings import Blocked, Distributed
from tilework.layouts.to_linear import contig_per_thread, machine_of, order
from tilework.light_dataclass import light_dataclass
from tilework.transforms.passes import function_pass
from tilework.transforms.remarks import is_heard, remark
from tilework.transforms.ttg.coalesce import ACCESSES, access_in
from tilework.transforms.ttg.pipeline.loops import group_dots
from tilework.transforms.ttg.rematerialize import Known, backward_slice

GROUP = 4  # warps of a warp group
GAIN = 0.9  # of the cost: smaller gains are lost to register pressure
IN_WARPS = ("warp", "shuffle")
LOADS = frozenset({tt.LoadOp, ttg.LocalLoadOp})
OF_POINTERS, OF_ROWS, OF_VALUE = (
    "in the layout of its pointers",
    "by the warps that have its rows",
    "in the layout of its value",
)


@light_dataclass
class Way:
    """A layout to store in, the conversion to it, and the cycles of a multiprocessor that conversion and store take."""

    name: str
    encoding: Distributed
    trip: Trip
    cycles: Mapping[str, float]
    fewer: float  # additional cycles of waiting for memory, if fewer blocks fit into shared memory
    total: float


@function_pass("tritongpu-store-layouts")
def store_layouts(function: Operation) -> None:
    if find_target(function).rates is None:
        return
    ops = ops_in_order(*function.regions)
    for op in ops:
        if (
            type(op) is tt.StoreOp
            and type(source := defining_op(op.operands[1])) is ttg.ConvertLayoutOp
            and is_only_access(op, ops)
        ):
            buffers = sum(tile_bits(alloc.results[0].type) // 8 for alloc in ops if type(alloc) is ttg.LocalAllocOp)
            choose(op, source, buffers)


def is_only_access(store: Operation, ops: Sequence[Operation]) -> bool:
    """Return True if no other op accesses memory that may be the same.

    As long as all accesses have the layout of their pointers, each thread reads what it has written itself, and kernels
    may rely on it. Parameters may alias: a tile that is read in that layout after the store counts too.
    """
    own, others = parameter_of(store.operands[0]), [op for op in ops if type(op) in ACCESSES and op is not store]
    return (
        own is not None
        and not any((base := parameter_of(op.operands[0])) is None or base is own for op in others)
        and not any(type(op) is tt.CallOp for op in ops)
        and not any(
            type(op) is not tt.StoreOp and is_laid_out_like(op, store) and may_follow(op, store, ops) for op in others
        )
    )


def is_laid_out_like(access: Operation, store: Operation) -> bool:
    """Return True if each thread accesses the same elements of both tiles."""
    one, other = access.operands[0].type, store.operands[0].type
    return is_tensor(one) and shape_of(one) == shape_of(other) and spread_of(one) == spread_of(other)


def may_follow(op: Operation, store: Operation, ops: Sequence[Operation]) -> bool:
    """Return True if `op` may run after `store`: it follows it, or a loop runs both again."""
    if ops.index(op) > ops.index(store):
        return True
    loops = {outer for outer in ops_around(store) if type(outer) in LOOPS}
    return any(outer in loops for outer in ops_around(op))


def choose(store: Operation, source: Operation, buffers: int) -> None:
    """Choose the layout of a store of the result of `source`, in a function with `buffers` bytes of other shared
    memory.
    """
    first, *others = (way_of(store, source, name, encoding, buffers) for name, encoding in layouts(store, source))
    if is_heard():
        others = [way for way in others if is_free(store, way.encoding)]
    cheaper = sorted((way for way in others if way.total < GAIN * first.total), key=lambda way: way.total)
    best = next((way for way in cheaper if is_free(store, way.encoding)), first)
    if is_heard() and others:
        explain(store, best, [first, *others])
    if best is not first:
        access_in(store, best.encoding)


def layouts(store: Operation, source: Operation) -> Iterator[tuple[str, Distributed]]:
    """Yield the candidate layouts, the current one first."""
    computed, stored = source.operands[0].type, store.operands[1].type
    yield OF_POINTERS, spread_of(stored)
    if source.results[0].has_one_use():
        if (rows := own_rows(computed, stored)) is not None:
            yield OF_ROWS, rows
        yield OF_VALUE, spread_of(computed)


def own_rows(computed: Attribute, stored: Attribute) -> Blocked | None:
    """Return the layout with more rows per thread in which each warp holds all that it stores, if there is one."""
    encoding, before, shape = spread_of(stored), layout_of(computed), shape_of(stored)
    if len(shape) < 2 or conversion(before, layout_of(stored)).kind != "shared":
        return None
    dims, held = order(encoding, shape), list(contig_per_thread(encoding, shape))
    warps, lanes, _ = machine_of(encoding)
    held[dims[-1]] = 1
    while held[dims[-1]] * 2 <= shape[dims[-1]]:
        held[dims[-1]] *= 2
        taller = default_blocked(shape, tuple(held), dims, warps, lanes, cga=encoding.cga_bases)
        if conversion(before, layout_of(with_encoding(stored, taller))).kind in IN_WARPS:
            return taller
    return None


def is_free(store: Operation, encoding: Distributed) -> bool:
    """Return True if pointers and mask can be recomputed in a layout without loads."""
    for index, value in enumerate(store.operands):
        if index != 1 and is_tensor(value.type):
            found = backward_slice(value, store, encoding, Known(), must_clone=True)
            if found is None or any(type(op) in LOADS for op in found.ops):
                return False
    return True


def way_of(store: Operation, source: Operation, name: str, encoding: Distributed, buffers: int) -> Way:
    """Estimate the cost of a layout: the conversion through shared memory, its barriers, and the store, in sequence."""
    computed, stored, target = source.operands[0].type, store.operands[1].type, find_target(store)
    rates, shape, bits, coalesced = target.rates, shape_of(stored), bit_width(stored), spread_of(stored)
    assert rates is not None
    result = layout_of(with_encoding(stored, encoding))
    moved = trip(layout_of(computed), result, bits, target.matrix_access)
    fastest = order(coalesced, shape)[0]
    made = accesses(result, fastest, contig_per_thread(coalesced, shape)[fastest], bits)
    busy, slots = (
        moved.shared_bytes / rates.shared_bytes,
        (moved.instructions / rates.issues, made.instructions / rates.issues),
    )
    l2_cycles, written = made.sectors * SECTOR / rates.l2_bytes, made.dram_bytes / rates.dram_bytes
    fewer = waiting(store, moved.scratch) - waiting(store, buffers) if moved.scratch > buffers else 0
    total = max(busy, slots[0]) + moved.barriers * rates.barrier_cycles + max(l2_cycles, written, slots[1]) + fewer
    exposed = total if moved.barriers else total / groups_alternate(store)
    return Way(name, encoding, moved, {DRAM: written, L2: l2_cycles, SHARED: busy, ISSUE: sum(slots)}, fewer, exposed)


def groups_alternate(store: Operation) -> int:
    """Return the warp groups that run dots while another one stores, unless a barrier keeps them together: those of a
    partition of a persistent kernel.
    """
    loop = loop_around(store)
    if loop is None or not any(type(op) is ttg.WarpSpecializeOp for op in ops_around(loop)):
        return 1
    return max((find_num_warps(store) or 1) // GROUP, 1) if group_dots(loop) else 1


def waiting(store: Operation, shared: int) -> float:
    """Return the cycles of memory latency that no other block hides, for blocks with so many bytes of shared memory."""
    rates, held = find_target(store).rates, occupancy(store, shared=shared)
    assert rates is not None and held is not None, "only with rates"
    return rates.memory_cycles / max(held.blocks, 1)


def explain(store: Operation, best: Way, ways: list[Way]) -> None:
    """Report the choice, and the costs of the alternatives."""
    others = "; ".join(f"{way.name} {way.total:.0f}" for way in ways if way is not best)
    remark(
        store,
        f"this store is made {best.name}: {best.total:.0f} cycles; {others}",
        *(f"{way.name}: {parts(way)}" for way in ways),
    )


def parts(way: Way) -> str:
    cycles = ", ".join(f"{resource} {count:.0f}" for resource, count in way.cycles.items())
    blocks = f", {way.fewer:.0f} for fewer blocks" if way.fewer else ""
    return f"{cycles} cycles{blocks}, {way.trip.barriers} barriers, {way.trip.scratch} bytes of shared memory"
