"""Stores by TMA that each warp makes for itself, of the rows that it has computed.

    scf.for ... {                                                      the default region of a ttg.warp_specialize
      ttng.async_tma_store_wait                                        a lane of each warp waits for its own copies
      ttg.local_store %x, %buffer                                      warp 3 writes rows 48 to 63
      ttng.fence_async_shared
      ttng.async_tma_copy_local_to_global %desc[%i, %j] %buffer        and copies these: boxes of 16 rows

No warp waits for another one, so that one warp group multiplies while another stores. The map of `%desc` describes boxes of as many
rows, so it must be an argument of the kernel that nothing else uses; and nobody may wait for all that was stored (`global_order.py`),
which one thread would do for all.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.allocation import async_regions
from tilework.analysis.global_order import COPIES_OUT, global_order
from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import layout_of
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import find_num_warps, num_ctas
from tilework.ir.nesting import loop_around
from tilework.ir.rewrite import defining_op
from tilework.ir.types import shape_of
from tilework.layouts.linear import LinearLayout

FEWEST_ROWS = 8  # the pattern of a swizzle: with these a warp begins where the pattern does


@dataclass
class WarpStores:
    """The buffer of each store and copy, the rows that a warp has of a descriptor's blocks, and the waits."""

    buffers: dict[Operation, SSAValue] = field(default_factory=dict)
    rows: dict[SSAValue, int] = field(default_factory=dict)
    waits: set[Operation] = field(default_factory=set)

    def have(self, before: Operation, after: Operation) -> bool:
        """Whether each warp touches the same part of a buffer in both, and waits for its own lanes between them."""
        buffer = self.buffers.get(before)
        return buffer is not None and buffer is self.buffers.get(after)


def warp_stores(module: ModuleOp) -> WarpStores:
    """Those of a module: all its stores by TMA are such, or none."""
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
    """Note a copy and what fills its buffer, if warps can do it for themselves."""
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
    """How many rows of the buffer a warp has, where partitions run and the copy is in a loop of all other warps."""
    shape, warps = shape_of(copy.operands[-1].type), find_num_warps(copy)
    regions = async_regions(copy)
    if len(shape) != 2 or warps is None or num_ctas(copy) != 1 or loop_around(copy) is None:
        return None
    rows = shape[0] // warps
    is_apart = bool(regions) and regions[0][1] == 0 and rows >= FEWEST_ROWS
    return rows if is_apart and step_of(layout_of(copy.operands[-1].type), rows, warps) is not None else None


def step_of(memory: LinearLayout, rows: int, warps: int) -> int | None:
    """How many elements the rows of a warp are behind those of the warp before; None if that differs."""
    places = memory.pseudoinvert()
    starts = [places.apply({"dim0": rows * warp, "dim1": 0})["offset"] for warp in range(warps)]
    step = starts[1] if warps > 1 else 0
    return step if starts == [step * warp for warp in range(warps)] else None


def holds_rows(layout: LinearLayout, rows: int) -> bool:
    """Whether warp number w holds the rows from ``w * rows`` on, and no other one does."""
    warps, inside = layout.by_in["warp"], (*layout.by_in["lane"], *layout.by_in["register"])
    in_order = all(layout.vector(column) == (rows << bit, 0) for bit, column in enumerate(warps))
    return in_order and all(layout.vector(column)[0] < rows for column in inside)


def is_parameter(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument) and type(value.block.parent_op()) is tt.FuncOp


def has_other_uses(found: WarpStores) -> bool:
    uses: Iterable[Operation] = (use.operation for descriptor in found.rows for use in descriptor.uses)
    return not all(op in found.buffers for op in uses)
