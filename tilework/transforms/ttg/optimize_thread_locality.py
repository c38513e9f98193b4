"""Keep work inside threads: reductions of reordered views, gathers, and sums that a loop carries.

    reshape allow_reorder, then reduce    the view is laid out so that each thread holds what it reduces
    gather                                one warp holds whole rows along the axis: it gathers among its own lanes
    acc += reduce(load) in a loop         each thread accumulates its own part; threads are combined once, after the loop

All three leave conversions and dead ops behind, for `tritongpu-remove-layout-conversions` and `canonicalize`. The third is
`carried_reductions.py`. Stage: TTGIR. Cost: one walk.
"""

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation

from tilework.ir import tt, ttg
from tilework.ir.encodings import (
    distributed_of,
    encoding_of,
    layout_of,
    with_encoding,
)
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import follows_tree, num_warps, threads_per_warp
from tilework.ir.rewrite import recreate, replace_op
from tilework.ir.types import axis_of, shape_of
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Blocked, Distributed
from tilework.layouts.linear import LinearLayout
from tilework.layouts.queries import is_expensive_view, order, shape_per_cta, thread_order, warp_order
from tilework.transforms.passes import module_pass
from tilework.transforms.ttg.carried_reductions import accumulate_in_threads

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
    """Lay a reordered view out with the axis that is reduced inside threads."""
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
    """The axis along which every user reduces the reordered `view`; None if there is no such axis."""
    if "allow_reorder" not in view.properties or "efficient_layout" in view.properties:
        return None
    axes = {axis_of(use.operation) for use in view.results[0].uses if type(use.operation) is tt.ReduceOp}
    return axes.pop() if len(axes) == 1 else None


def is_inside_threads(layout: LinearLayout, axis: int) -> bool:
    """No lane, warp or block moves along `axis`."""
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
    """Lanes along `axis` first, then along the dimensions that lanes have in `encoding`; warps along the others."""
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
