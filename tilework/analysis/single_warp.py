"""Code that single warps execute on their own: TMA copies by the first warp, and stores of a warp's own rows.

Code that the first warp of a region of `ttg.warp_specialize`, or of a loop, executes alone:

    ttng.tensormap_create ...                all warps
    scf.for ... {                            the first one: one thread arms the barriers and issues the copies,
      ttng.wait_barrier %empty[%i]           and a warp that is late at a wait might find the phase after the next
      ttng.barrier_expect %full[%i]          being counted, which has the parity of the one it waits for
      ttng.async_tma_copy_global_to_local
    }

A run is a sequence of consecutive ops of a region's block which only wait, arm barriers, start copies by TMA and
compute scalars for that, and whose results are not used elsewhere. In loops that all warps run no warp waits alone: a
branch leads the others around some fifty instructions, which is 2 to 4 % of attention.

Stores by TMA that each warp makes for the rows that it has computed:

    scf.for ... {                                                      the default region of a ttg.warp_specialize
      ttng.async_tma_store_wait                                        a lane of each warp waits for its own copies
      ttg.local_store %x, %buffer                                      warp 3 writes rows 48 to 63
      ttng.fence_async_shared
      ttng.async_tma_copy_local_to_global %desc[%i, %j] %buffer        and copies these: boxes of 16 rows

No warp waits for another one, so that one warp group runs dots while another stores. The tensor map of `%desc` has
boxes of as many rows, so it must be an argument of the kernel with no other use. No op may wait for all stores
(`global_order.py`): a single thread would have to wait for the copies of all warps.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilework.analysis.allocation import async_regions
from tilework.analysis.global_order import COPIES_OUT, global_order
from tilework.ir import scf, tt, ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.encodings import layout_of
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import find_num_warps, num_ctas
from tilework.ir.rewrite import defining_op
from tilework.ir.scf import loop_around
from tilework.ir.types import is_tensor, shape_of
from tilework.layouts.linear import LinearLayout
from tilework.light_dataclass import light_dataclass

BY_ONE_THREAD = frozenset({ttng.BarrierExpectOp, ttng.AsyncTMACopyGlobalToLocalOp})
ALONE = BY_ONE_THREAD | {ttng.WaitBarrierOp}
EARLY = 3  # slots of a ring buffer


@light_dataclass(frozen=False)
class FirstWarp:
    """The runs by their first ops, and all ops in them."""

    runs: dict[Operation, Sequence[Operation]] = field(default_factory=dict)
    inside: set[Operation] = field(default_factory=set)

    def drop_runs(self, needs_all_warps: Callable[[Operation], bool]) -> None:
        """Let all warps execute the runs outside of partitions that contain an op for all warps; a barrier in front of
        such a run is kept."""
        for first, run in [*self.runs.items()]:
            if any(needs_all_warps(inner) for op in run for inner in op.walk()) and not async_regions(first):
                self.inside -= {inner for op in self.runs.pop(first) for inner in op.walk()}


def first_warp(module: ModuleOp) -> FirstWarp:
    """Return the runs of a module."""
    found = FirstWarp()
    for op in ops_in_order(*module.regions):
        if type(op) is ttg.WarpSpecializeOp:
            for region in (op.default_region, *op.partitions):
                for block in region.blocks:
                    add_runs(block, found, ALONE)
        elif type(op) is scf.ForOp and op not in found.inside and is_early(op.body.block):
            add_runs(op.body.block, found, BY_ONE_THREAD)
    return found


def is_early(block: Block) -> bool:
    """Return True if copies are for an iteration after the next: then they may start a little later."""
    from tilework.analysis.cost import COPIES, ring_size  # lazily: only loops have early copies

    return min((ring_size(op) or 0 for op in block.ops if type(op) in COPIES), default=0) >= EARLY


def add_runs(block: Block, found: FirstWarp, kinds: Set[type[Operation]]) -> None:
    run: list[Operation] = []
    for op in block.ops:
        if op is not block.last_op and is_alone(op, kinds) and (run or not is_scalar(op)):
            run.append(op)
        elif run:
            close(run, found)
            run = []


def close(run: list[Operation], found: FirstWarp) -> None:
    """Keep a run up to its last op with effects, if no value leaves it."""
    while is_scalar(run[-1]):
        run.pop()
    ops = {inner for op in run for inner in op.walk()}
    if BY_ONE_THREAD.isdisjoint(type(op) for op in ops):
        return
    if all(use.operation in ops for op in run for result in op.results for use in result.uses):
        found.runs[run[0]] = run
        found.inside |= ops


def is_scalar(op: Operation) -> bool:
    """Return True for an op without effects and without tensors, which all warps may execute."""
    return not op.regions and is_pure(op) and not any(is_tensor(result.type) for result in op.results)


def is_alone(op: Operation, kinds: Set[type[Operation]]) -> bool:
    if type(op) in (scf.ForOp, scf.IfOp):
        return all(is_alone(inner, kinds) for region in op.regions for block in region.blocks for inner in block.ops)
    return type(op) in kinds or is_scalar(op)


FEWEST_ROWS = 8  # the period of a swizzle: a warp then begins where the pattern does


@light_dataclass(frozen=False)
class WarpStores:
    """The buffer of each store and copy, the rows that a warp has of a descriptor's blocks, and the waits."""

    buffers: dict[Operation, SSAValue] = field(default_factory=dict)
    rows: dict[SSAValue, int] = field(default_factory=dict)
    waits: set[Operation] = field(default_factory=set)

    def are_ordered(self, before: Operation, after: Operation) -> bool:
        """Return True if each warp accesses the same part of a buffer in both ops, and synchronizes its own lanes
        between them."""
        buffer = self.buffers.get(before)
        return buffer is not None and buffer is self.buffers.get(after)


def warp_stores(module: ModuleOp) -> WarpStores:
    """Return the warp stores of a module: all its stores by TMA are such, or none."""
    found = WarpStores()
    for function in functions(module):
        if not has_body(function):
            continue
        ops = ops_in_order(*function.regions)
        copies = [op for op in ops if type(op) in COPIES_OUT]
        if not all(add(copy, found) for copy in copies):
            return WarpStores()
        found.waits.update(op for op in ops if type(op) is ttng.AsyncTMAStoreWaitOp)
    if not found.rows or has_other_uses(found) or global_order(module).waits:
        return WarpStores()
    return found


def add(copy: Operation, found: WarpStores) -> bool:
    """Record a copy and the stores that fill its buffer, if warps can do it on their own; return True then."""
    descriptor, *_, buffer = copy.operands
    alloc, rows = defining_op(buffer), rows_of_warps(copy)
    if (
        type(copy) is not ttng.AsyncTMACopyLocalToGlobalOp
        or not is_parameter(descriptor)
        or type(alloc) is not ttg.LocalAllocOp
        or alloc.operands
        or rows is None
        or found.rows.setdefault(descriptor, rows) != rows
    ):
        return False
    users = [use.operation for use in buffer.uses]
    stores = [op for op in users if type(op) is ttg.LocalStoreOp]
    if not all(type(op) in (ttg.LocalStoreOp, ttg.LocalDeallocOp) or type(op) in COPIES_OUT for op in users):
        return False
    found.buffers.update((op, buffer) for op in (copy, *stores))
    return all(holds_rows(layout_of(store.operands[0].type), rows) for store in stores)


def rows_of_warps(copy: Operation) -> int | None:
    """Return the rows of the buffer that a warp has, if partitions run and the copy is in a loop of all other warps."""
    shape, warps = shape_of(copy.operands[-1].type), find_num_warps(copy)
    regions = async_regions(copy)
    if len(shape) != 2 or warps is None or num_ctas(copy) != 1 or loop_around(copy) is None:
        return None
    rows = shape[0] // warps
    is_apart = bool(regions) and regions[0][1] == 0 and rows >= FEWEST_ROWS
    return rows if is_apart and step_of(layout_of(copy.operands[-1].type), rows, warps) is not None else None


def step_of(memory: LinearLayout, rows: int, warps: int) -> int | None:
    """Return the elements between the rows of a warp and those of the warp before; None if that differs."""
    inverse = memory.pseudoinvert()
    starts = [inverse.apply({"dim0": rows * warp, "dim1": 0})["offset"] for warp in range(warps)]
    step = starts[1] if warps > 1 else 0
    return step if starts == [step * warp for warp in range(warps)] else None


def holds_rows(layout: LinearLayout, rows: int) -> bool:
    """Return True if warp w holds the rows from ``w * rows`` on, and no other one does."""
    warps, inside = layout.by_in["warp"], (*layout.by_in["lane"], *layout.by_in["register"])
    in_order = all(layout.vector(column) == (rows << bit, 0) for bit, column in enumerate(warps))
    return in_order and all(layout.vector(column)[0] < rows for column in inside)


def is_parameter(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) and type(value.block.parent_op()) is tt.FuncOp


def has_other_uses(found: WarpStores) -> bool:
    uses: Iterable[Operation] = (use.operation for descriptor in found.rows for use in descriptor.uses)
    return not all(op in found.buffers for op in uses)
