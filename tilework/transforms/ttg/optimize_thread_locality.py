"""Keep work inside threads: reductions of reordered views, gathers, and sums that a loop carries.

    reshape allow_reorder, then reduce    the view gets a layout in which each thread holds what it reduces
    gather                                one warp holds whole rows along the axis, and gathers among its own lanes
    acc += reduce(load) in a loop         each thread accumulates its own part, combined once, after the loop

All three leave conversions and dead ops to `tritongpu-remove-layout-conversions` and `canonicalize`. The third is at
the start of this file. Stage: TTGIR. Cost: one walk.
"""

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import arith, scf, tt, ttg
from tilework.ir.arith import binary
from tilework.ir.encodings import distributed_of, encoding_of, layout_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import follows_tree, num_warps, threads_per_warp
from tilework.ir.nesting import body_of, end_of, only_op
from tilework.ir.rewrite import constant, constant_value, insert_after, recreate, replace_all_uses, replace_op
from tilework.ir.scf import also_carry, also_yield
from tilework.ir.types import axis_of, element_type, int_property, shape_of, tensor_type
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Blocked, Distributed, Slice
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import (
    elems_per_thread,
    is_expensive_view,
    order,
    shape_per_cta,
    thread_order,
    warp_order,
)
from tilework.light_dataclass import light_dataclass
from tilework.transforms.passes import module_pass

# Reductions that a loop carries: accumulate in each thread, and combine the threads once, after the loop.
#
#     %acc = scf.for .. iter_args(%a = %init) {                %part = scf.for .. iter_args(%p = dense<0.0>) {
#       %x = tt.load .. : 32x128, #b                             %x = tt.load .. : 32x128, #b
#       %s = reduce add %x, axis 1 : 32              ==>         %v = tt.reshape %x allow_reorder : 32x16x8, #b1
#       %n = arith.addf %a, %s                                   %s = reduce add %v, axis 2 : 32x16, no shuffles
#       scf.yield %n                                             %n = arith.addf %p, %s
#     }                                                          scf.yield %n
#                                                              }
#                                                              %t = reduce add %part, axis 1 : 32
#                                                              %acc = arith.addf %init, %t
#
# The view splits the axis into threads (16) and the elements of each (8). It must only rename registers: `thread_view`
# inserts the new dimension next to the axis in the order, so that every element keeps its row and its register,
# which `keeps_rows` checks. (The reference compiler always puts it first, which mixes rows when the axis is not the
# fastest.)
#
# Fires for the float operations in `NEUTRAL`, when the same one reduces and accumulates, the accumulator starts as a
# constant and has no other use. The old reduction and accumulator become dead.

NEUTRAL: dict[type[Operation], float] = {
    arith.AddfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.MaximumfOp: -math.inf,
    arith.MaxnumfOp: -math.inf,
    arith.MinimumfOp: math.inf,
    arith.MinnumfOp: math.inf,
}


def accumulate_in_threads(reduces: Sequence[Operation]) -> None:
    """Rewrite each of `reduces` that a loop accumulates."""
    for reduce in reduces:
        if (found := carried_reduction(reduce)) is not None:
            split_reduction(found)


@light_dataclass
class Carried:
    """A reduction whose results a loop accumulates."""

    loop: Operation
    reduce: Operation
    update: Operation
    position: int  # of the accumulator among the values that the loop carries
    view: Blocked
    view_shape: tuple[int, ...]

    @property
    def initial(self) -> OpResult:
        value = self.loop.operands[3 + self.position]
        assert isinstance(value, OpResult)
        return value


# Analysis


def carried_reduction(reduce: Operation) -> Carried | None:
    """Return `reduce` with its loop, if it can be split."""
    update = reduce.results[0].get_user_of_unique_use() if len(reduce.results) == 1 else None
    if update is None or type(update) not in NEUTRAL or combines_with(reduce) is not type(update):
        return None
    loop = update.parent_op()
    if loop is None or type(loop) is not scf.ForOp or reduce.parent is not update.parent:
        return None
    position = accumulator(update, loop)
    if position is None or loop.results[position].first_use is None:
        return None
    start = constant_value(loop.operands[3 + position])
    if start is None or start != start:  # max(NaN, neutral) may not be NaN
        return None
    split = thread_view(reduce)
    return None if split is None else Carried(loop, reduce, update, position, *split)


def combines_with(reduce: Operation) -> type[Operation] | None:
    """Return the class of the only op in the region of `reduce`."""
    found = only_op(reduce.regions[0].block)
    return None if found is None else type(found)


def accumulator(update: Operation, loop: Operation) -> int | None:
    """Return the index of the carried value that `update` accumulates, if neither has another use in the loop."""
    (use,) = uses if len(uses := tuple(update.results[0].uses)) == 1 else (None,)
    if use is None or type(use.operation) is not scf.YieldOp or use.operation.parent_op() is not loop:
        return None
    carried = loop.regions[0].blocks[0].args[1 + use.index]
    return use.index if carried in update.operands and carried.get_user_of_unique_use() is update else None


def thread_view(reduce: Operation) -> tuple[Blocked, tuple[int, ...]] | None:
    """Return a layout in which the last, reduced axis is split into threads and the elements of each, and its shape."""
    (source,) = reduce.operands
    encoding, shape = encoding_of(source.type), shape_of(source.type)
    axis: int = int_property(reduce, "axis")
    if not isinstance(encoding, Blocked) or len(shape) < 2 or axis != len(shape) - 1:
        return None
    if not isinstance(source, OpResult) or type(source.op) is not tt.LoadOp:
        return None
    held = min(elems_per_thread(encoding, shape)[axis], shape[axis])
    if held == 1 or any(basis[axis] for basis in encoding.cga):
        return None
    order: list[int] = []
    for dim in encoding.order:
        order += [axis + 1, axis] if dim == axis else [dim]
    view = Blocked(
        (*encoding.size_per_thread[:-1], 1, encoding.size_per_thread[-1]),
        (*encoding.threads_per_warp, 1),
        (*encoding.warps_per_cta, 1),
        tuple(order),
        tuple((*basis, 0) for basis in encoding.cga),
    )
    view_shape = (*shape[:axis], shape[axis] // held, held)
    type_ = with_encoding(tensor_type(view_shape, element_type(source.type)), view)
    return (view, view_shape) if keeps_rows(layout_of(source.type), layout_of(type_), axis) else None


def keeps_rows(before: LinearLayout, after: LinearLayout, axis: int) -> bool:
    """Return True if every register, lane, warp and block keeps its row, and duplicates remain duplicates."""
    for (_, old), (_, new) in zip(before.bases, after.bases, strict=True):
        if len(old) != len(new):
            return False
        for a, b in zip(old, new, strict=True):
            if a[:axis] != b[:axis] or (a[axis] != 0) != any(b[axis:]):
                return False
    return True


# Rewriting


def split_reduction(found: Carried) -> None:
    """Carry a part for each thread, and combine the parts after the loop."""
    reduce, update, location = found.reduce, found.update, found.reduce.location
    source = reduce.operands[0]
    axis = len(found.view_shape) - 2
    element = element_type(source.type)
    viewed = with_encoding(tensor_type(found.view_shape, element), found.view)
    part_type = with_encoding(tensor_type(found.view_shape[:-1], element), Slice(axis + 1, found.view))

    neutral = constant(NEUTRAL[type(update)], part_type, found.initial.op.location)
    insert_after(found.initial.op, neutral)
    loop = found.loop
    (part,) = also_carry(loop, neutral.results)

    view = tt.ReshapeOp.make(source, viewed, location, allow_reorder=True, efficient_layout=True)
    inner = tt.ReduceOp.make((view.results[0],), axis + 1, reduce.regions[0].clone(), location)
    new_update = binary(type(update), part, inner.results[0], update.location)
    insert_after(reduce, view, inner, new_update)
    convert = combine_behind(loop, found.position, new_update.results[0], axis, reduce)
    final = binary(type(update), found.initial, convert.results[0], update.location)
    replace_all_uses(loop.results[found.position], final.results[0])
    insert_after(convert, final)


def combine_behind(loop: Operation, position: int, part: SSAValue, axis: int, reduce: Operation) -> Operation:
    """Yield `part` as the last carried value, and the one at `position` unchanged; return the op that combines the
    parts after `loop`, in the layout of that one.
    """
    body = body_of(loop)
    end_of(body).operands[position] = body.args[1 + position]
    also_yield(body, [part])
    whole = tt.ReduceOp.make((loop.results[-1],), axis, reduce.regions[0].clone(), reduce.location)
    convert = ttg.ConvertLayoutOp.make(whole.results[0], loop.results[position].type, reduce.location)
    insert_after(loop, whole, convert)
    return convert


UNIT = UnitAttr()


@module_pass("tritongpu-optimize-thread-locality")
def optimize_thread_locality(module: ModuleOp) -> None:
    ops = ops_in_order(*module.regions)
    for inner in ops:
        if (rule := RULES.get(type(inner))) is not None:
            rule(inner)
    accumulate_in_threads([inner for inner in ops if type(inner) is tt.ReduceOp and not follows_tree(inner)])


# Reordered views


def reduce_in_threads(view: Operation) -> None:
    """Give a reordered view a layout with the reduced axis inside threads."""
    result, source = view.results[0], view.operands[0].type
    encoding, before = distributed_of(result.type), distributed_of(source)
    axis = reduced_axis(view)
    if axis is None or encoding is None or before is None:
        return
    if is_inside_threads(layout_of(result.type), axis):
        return
    shape = shape_of(result.type)
    dims = (*(dim for dim in order(encoding, shape) if dim != axis), axis)
    local = default_blocked(shape, None, dims, num_warps(view), threads_per_warp(view), cga=encoding.cga_bases)
    if local == encoding or is_expensive_view(shape_of(source), before, shape, local):
        return
    properties = {**view.properties, "efficient_layout": UNIT}
    new = recreate(view, result_types=(with_encoding(result.type, local),), properties=properties)
    replace_op(view, new, ttg.ConvertLayoutOp.make(new.results[0], result.type, view.location))


def reduced_axis(view: Operation) -> int | None:
    """Return the axis along which every user reduces the reordered `view`, or None."""
    if "allow_reorder" not in view.properties or "efficient_layout" in view.properties:
        return None
    axes = {axis_of(use.operation) for use in view.results[0].uses if type(use.operation) is tt.ReduceOp}
    return axes.pop() if len(axes) == 1 else None


def is_inside_threads(layout: LinearLayout, axis: int) -> bool:
    """Return True if lanes, warps and blocks do not divide `axis`."""
    return not any(vector[axis] for name, vectors in layout.bases if name != "register" for vector in vectors)


# Gathers


def gather_in_warps(gather: Operation) -> None:
    """Give each warp whole rows along the axis, of source and indices."""
    source, indices = gather.operands
    encoding, target = distributed_of(source.type), encoding_of(gather.results[0].type)
    shape, axis = shape_of(source.type), axis_of(gather)
    if "efficient_layout" in gather.properties or len(shape) < 2:
        return
    if encoding is None or target is None:
        return
    local = warp_local(encoding, shape, axis, num_warps(gather), threads_per_warp(gather))
    location = gather.location
    converts = [ttg.ConvertLayoutOp.make(v, with_encoding(v.type, local), location) for v in (source, indices)]
    result = gather.results[0].type
    new = recreate(
        gather,
        operands=[convert.results[0] for convert in converts],
        result_types=(with_encoding(result, local),),
        properties={**gather.properties, "efficient_layout": UNIT},
    )
    replace_op(gather, *converts, new, ttg.ConvertLayoutOp.make(new.results[0], result, location))


def warp_local(encoding: Distributed, shape: tuple[int, ...], axis: int, warps: int, lanes: int) -> Blocked:
    """Return a layout with lanes along `axis`, then along the lane dimensions of `encoding`, and warps along others."""
    rank, part = len(shape), shape_per_cta(encoding, shape)
    lane_dims = [dim for dim in thread_order(encoding, shape) if dim != axis]
    warp_dims = [dim for dim in warp_order(encoding, shape) if dim != axis]
    held, lane_grid, warp_grid = [1] * rank, [1] * rank, [1] * rank
    lane_grid[axis] = min(part[axis], lanes)
    held[axis] = part[axis] // lane_grid[axis]
    left = lanes // lane_grid[axis]
    for dim in lane_dims:
        lane_grid[dim] = min(part[dim], left)
        left //= lane_grid[dim]
    lane_grid[axis] *= left
    left = warps
    for dim in warp_dims:
        warp_grid[dim] = min(max(part[dim] // lane_grid[dim], 1), left)
        left //= warp_grid[dim]
    warp_grid[axis] *= left
    return Blocked(tuple(held), tuple(lane_grid), tuple(warp_grid), (axis, *lane_dims), encoding.cga_bases)


RULES = {tt.ReshapeOp: reduce_in_threads, tt.GatherOp: gather_in_warps}
