"""The layouts that an op can have: from its operands to its results, and back.

    forward(reduce axis=1, #blocked)                     #ttg.slice<{dim = 1, parent = #blocked}>
    backward(expand_dims axis=1, #blocked)               #ttg.slice<{dim = 1, parent = #blocked}>
    backward(addf, #mma)                                 #mma: elementwise ops have one layout
    backward(tt.dot, #mma)                               None: its layouts are not free

Also: ops that determine their own layouts (`is_anchor`), that may be cloned (`can_clone`), and that compute their
result in any layout at no cost (`absorbs`).
"""

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import arith, scf, tt, ttg, ttng, ub
from tilework.ir.effects import ELEMENTWISE, is_pure, writes
from tilework.ir.encodings import layout_of
from tilework.ir.module_facts import find_num_warps, threads_per_warp
from tilework.ir.types import array_values, axis_of, is_block_pointer, is_tensor, shape_of
from tilework.layouts.conversion import conversion
from tilework.layouts.encodings import Blocked, Distributed, Linear, Slice
from tilework.layouts.infer import (
    can_split,
    infer_join,
    infer_reshape,
    infer_split,
    infer_trans,
    inverse,
    is_split_blocked,
)
from tilework.layouts.to_linear import is_expensive_view, to_linear, total_elems_per_thread
from tilework.transforms.building.tma import LOADS, STORES

Rule = Callable[[Operation, Distributed], Distributed | None]

# Ops whose tensor operands and results all have one layout.
SAME_LAYOUT = frozenset(
    {
        *(kind.name for kind in ELEMENTWISE),
        tt.BroadcastOp.name,
        tt.MapElementwiseOp.name,
        tt.AtomicRMWOp.name,
        tt.AtomicCASOp.name,
    }
)
ATOMICS = frozenset({tt.AtomicRMWOp.name, tt.AtomicCASOp.name})
MEMORY = frozenset({tt.LoadOp.name, tt.StoreOp.name, *ATOMICS})
DOTS = frozenset({tt.DotOp.name, tt.DotScaledOp.name, ttng.WarpGroupDotOp.name})
DESCRIPTOR_OPS = frozenset(kind.name for kind in (*LOADS, *STORES))
VIEWS = frozenset({tt.ExpandDimsOp.name, tt.ReshapeOp.name, tt.TransOp.name, tt.JoinOp.name, tt.SplitOp.name})


def encoding(value: SSAValue) -> Distributed | None:
    """Return the layout of a tensor; None for other values."""
    type = value._type  # pyright: ignore[reportPrivateUsage]  # the property costs as much as the rest
    return getattr(type.encoding, "data", None) if type.__class__ is TensorType else None  # pyright: ignore


# From operands to results


def forward(op: Operation, layout: Distributed) -> Distributed | None:
    """Return the layout of the results of `op` if its operands have `layout`; None if there is no rule."""
    name = op.name
    if name in SAME_LAYOUT:
        return layout
    rule = FORWARD.get(name)
    return rule(op, layout) if rule is not None else None


def keep_blocked(op: Operation, layout: Distributed) -> Distributed | None:
    return layout if isinstance(layout, Blocked) else None  # scans of others are converted, as in Triton


def order_of(op: Operation) -> tuple[int, ...]:
    return array_values(op.properties["order"])


def reshaped(op: Operation, layout: Distributed, source: SSAValue, target: SSAValue) -> Distributed | None:
    """Return the layout through a reshape that keeps the order of elements; one that does not has no rule."""
    if "allow_reorder" in op.properties:
        return None
    return infer_reshape(shape_of(source.type), layout, shape_of(target.type))


def split(layout: Distributed, whole: SSAValue) -> Distributed | None:
    shape = shape_of(whole.type)
    return infer_split(layout, shape) if is_split_blocked(layout) or can_split(layout, shape) else None


def backward_fp4(op: Operation, layout: Distributed) -> Distributed | None:
    """Return the layout of the bytes: that of the values without the register bit that selects a half."""
    axis, shape = axis_of(op), shape_of(op.results[0].type)
    whole = to_linear(layout, shape)
    registers, *others = whole.bases
    step = tuple(int(dim == axis) for dim in range(len(shape)))
    if not registers[1] or registers[1][0] != step:
        return None
    bases = {
        name: [tuple(value >> 1 if dim == axis else value for dim, value in enumerate(vector)) for vector in vectors]
        for name, vectors in ((registers[0], registers[1][1:]), *others)
    }
    outs = {name: size >> 1 if dim == axis else size for dim, (name, size) in enumerate(whole.outs)}
    return Linear(type(whole)(bases, outs))


FORWARD: dict[str, Rule] = {
    tt.ReduceOp.name: lambda op, layout: Slice(axis_of(op), layout),
    tt.ExpandDimsOp.name: lambda op, layout: layout.before_slice(axis_of(op)),
    tt.ReshapeOp.name: lambda op, layout: reshaped(op, layout, op.operands[0], op.results[0]),
    tt.TransOp.name: lambda op, layout: infer_trans(layout, order_of(op), shape_of(op.operands[0].type)),
    tt.JoinOp.name: lambda op, layout: infer_join(layout, shape_of(op.operands[0].type)),
    tt.SplitOp.name: lambda op, layout: split(layout, op.operands[0]),
    tt.ScanOp.name: keep_blocked,
    tt.SortRunsOp.name: lambda op, layout: layout,
    ttng.WarpGroupDotWaitOp.name: lambda op, layout: layout,
}


# From results to operands


def backward(op: Operation, layout: Distributed) -> Distributed | None:
    """Return the layout that the operands of `op` need for results in `layout`; None if there is no rule."""
    name = op.name
    if name in SAME_LAYOUT:
        return layout
    rule = BACKWARD.get(name)
    return rule(op, layout) if rule is not None else None


BACKWARD: dict[str, Rule] = {
    tt.LoadOp.name: lambda op, layout: layout,
    tt.GatherOp.name: lambda op, layout: layout,
    tt.ReduceOp.name: lambda op, layout: layout.before_slice(axis_of(op)),
    tt.ExpandDimsOp.name: lambda op, layout: Slice(axis_of(op), layout),
    tt.ReshapeOp.name: lambda op, layout: reshaped(op, layout, op.results[0], op.operands[0]),
    tt.TransOp.name: lambda op, layout: infer_trans(layout, inverse(order_of(op)), shape_of(op.results[0].type)),
    tt.JoinOp.name: lambda op, layout: split(layout, op.results[0]),
    tt.SplitOp.name: lambda op, layout: infer_join(layout, shape_of(op.results[0].type)),
    tt.ScanOp.name: keep_blocked,
    ttg.Fp4ToFpOp.name: backward_fp4,
    ub.PoisonOp.name: lambda op, layout: layout,
}


def laid_out_operands(op: Operation) -> Sequence[int]:
    """Return the operands that follow the layout of the results: of a gather only the indices."""
    return (1,) if op.name == tt.GatherOp.name else range(len(op._operands))


# Ops that are tied to a layout


def is_anchor(op: Operation) -> bool:
    """Return True if `op` has its preferred layout, which other ops should follow."""
    name = op.name
    if name == tt.LoadOp.name or name == tt.StoreOp.name:
        return is_expensive_access(op)
    if name == tt.GatherOp.name:
        return "efficient_layout" in op.properties
    if name == tt.ReshapeOp.name:
        return "allow_reorder" in op.properties
    return name in DOTS or name in ATOMICS or name in DESCRIPTOR_OPS


def is_expensive_access(op: Operation) -> bool:
    """Return True for an access of a block pointer, or of a tensor with an element for every thread."""
    pointer = op._operands[0].type
    if is_block_pointer(pointer):
        return True
    elements = prod(shape_of(pointer)) if is_tensor(pointer) else 1
    if elements == 1:
        return False
    return elements >= (find_num_warps(op) or 1) * threads_per_warp(op)


def can_clone(op: Operation) -> bool:
    """Return True if a copy of `op` may be computed next to it."""
    name = op.name
    if name == tt.LoadOp.name:
        return not writes(op) and not is_expensive_access(op)
    if name == tt.GatherOp.name:
        return "efficient_layout" not in op.properties
    if name in DOTS or name in ATOMICS or name == scf.WhileOp.name:
        return False
    return name == scf.IfOp.name or not writes(op)


def moves_no_data(op: Operation) -> bool:
    """Return True if every thread computes its elements of the result from its own elements of the operands."""
    name = op.name
    if name in VIEWS or name in (tt.BroadcastOp.name, ttg.Fp4ToFpOp.name, ttg.ConvertLayoutOp.name):
        return True
    return name in SAME_LAYOUT and name not in ATOMICS and is_pure(op)


# Conversions that cost nothing


def is_renaming(source: Attribute, target: Attribute) -> bool:
    """Return True for a conversion in which every thread keeps its elements: at most registers are permuted."""
    return conversion(layout_of(source), layout_of(target)).kind in ("none", "register")


def absorbs(op: Operation, layout: Distributed) -> bool:
    """Return True if `op` computes its result in `layout` at no additional cost."""
    rule = ABSORBS.get(op.name)
    return rule is not None and rule(op, layout)


def convert_absorbs(op: Operation, layout: Distributed) -> bool:
    """Return False for other values converted to the layout of an accumulator, which dots determine."""
    return not layout.is_accumulator or encoding(op._operands[0]) == layout


def cat_absorbs(op: Operation, layout: Distributed) -> bool:
    """Return True if each thread holds at least as many elements as it gets from both operands."""
    result, own = op.results[0].type, encoding(op.results[0])
    if own is None:
        return False
    shape = shape_of(result)
    return total_elems_per_thread(layout, shape) >= total_elems_per_thread(own, shape)


def reshape_absorbs(op: Operation, layout: Distributed) -> bool:
    """Return True for a reordering reshape in which threads keep their elements."""
    source = encoding(op._operands[0])
    if source is None or "allow_reorder" not in op.properties or "efficient_layout" in op.properties:
        return False
    return not is_expensive_view(shape_of(op._operands[0].type), source, shape_of(op.results[0].type), layout)


ABSORBS: dict[str, Callable[[Operation, Distributed], bool]] = {
    arith.ConstantOp.name: lambda op, layout: True,
    tt.SplatOp.name: lambda op, layout: True,
    tt.MakeRangeOp.name: lambda op, layout: True,
    tt.HistogramOp.name: lambda op, layout: True,
    ttg.LocalLoadOp.name: lambda op, layout: True,
    ttg.ConvertLayoutOp.name: convert_absorbs,
    tt.CatOp.name: cat_absorbs,
    tt.ReshapeOp.name: reshape_absorbs,
}
