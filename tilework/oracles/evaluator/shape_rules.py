"""Rules that move, create or reinterpret elements without computing on them."""

from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.enums import RoundingMode
from tilework.ir.types import PointerType, element_type, shape_of
from tilework.numerics.rounding import Array, is_float8, narrow, narrow_to_zero, saturate
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.rules import evaluates, rules
from tilework.oracles.evaluator.values import INT64, memory_bytes, signed, storage, unsigned

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine


rules(
    {
        tt.SplatOp: lambda machine, op, src: np.broadcast_to(src, shape_of(op.results[0].type)),
        tt.BroadcastOp: lambda machine, op, src: np.broadcast_to(src, shape_of(op.results[0].type)),
        tt.UnsplatOp: lambda machine, op, src: src.reshape(()),
        # in row-major order, also where `allow_reorder` would permit another
        tt.ReshapeOp: lambda machine, op, src: src.reshape(shape_of(op.results[0].type)),
        tt.ExpandDimsOp: lambda machine, op, src: src.reshape(shape_of(op.results[0].type)),
        tt.CatOp: lambda machine, op, lhs, rhs: np.concatenate((lhs, rhs)),
        tt.JoinOp: lambda machine, op, lhs, rhs: np.stack((lhs, rhs), axis=-1),
        tt.SplitOp: lambda machine, op, src: [src[..., 0], src[..., 1]],
        tt.TransOp: lambda machine, op, src: src.transpose(machine.integers(op, "order")),
        tt.MakeRangeOp: lambda machine, op: np.arange(
            machine.integer(op, "start"), machine.integer(op, "end"), dtype=np.int32
        ),
    }
)
rules(
    {
        tt.IntToPtrOp: lambda machine, op, src: src,
        tt.PtrToIntOp: lambda machine, op, src: plain(src),
    },
    elementwise=True,
)


@evaluates(tt.ResizeOp)
def eval_resize(machine: "Machine", op: Operation, src: Array) -> Array:
    """The undefined elements are copies of others, which would change every sum, sort and dot that uses them."""
    return src[
        np.ix_(*(np.arange(size) % have for size, have in zip(shape_of(op.results[0].type), src.shape, strict=True)))
    ]


@evaluates(tt.GatherOp)
def eval_gather(machine: "Machine", op: Operation, src: Array, indices: Array) -> Array:
    """An index outside of the axis is undefined; it is taken modulo the size."""
    axis = machine.integer(op, "axis")
    return np.take_along_axis(src, indices.astype(INT64) % src.shape[axis], axis)


@evaluates(tt.SortRunsOp)
def eval_sort_runs(machine: "Machine", op: Operation, src: Array) -> Array:
    """Execute the steps of the sorting network, so that the result is defined also for runs that are not bitonic."""
    bits, order = (machine.integer(op, name) for name in ("bits", "order"))
    is_signed = machine.integer(op, "signed")
    keys = (signed(src) if is_signed else unsigned(src)).reshape(-1).copy()
    index = np.arange(keys.size)
    for stage in range(bits if machine.integer(op, "merges") else 1, bits + 1):
        downwards = index >> stage & 1 if stage < bits or order == tt.SortOrder.IN_TURNS else order
        for bit in reversed(range(stage)):
            other = keys[index ^ 1 << bit]
            wants_larger = (index >> bit & 1) != downwards
            keys = np.where(wants_larger, np.maximum(keys, other), np.minimum(keys, other))
    return keys.view(src.dtype).reshape(src.shape)


@evaluates(tt.HistogramOp)
def eval_histogram(machine: "Machine", op: Operation, src: Array, *mask: Array) -> Array:
    """Count the occurrences of 0 .. bins-1; other values are not counted."""
    (bins,) = shape_of(op.results[0].type)
    return histogram(src[mask[0]] if mask else src, bins).astype(storage(op.results[0].type))


def histogram(src: Array, bins: int) -> Array:
    counted = unsigned(src).reshape(-1)
    return np.bincount(counted[counted < bins].astype(INT64), minlength=bins)


@evaluates(tt.AddPtrOp, elementwise=True)
def eval_addptr(machine: "Machine", op: Operation, pointer: Array, offset: Array) -> Array:
    element = element_type(op.results[0].type)
    assert isinstance(element, PointerType), "tt.addptr moves a pointer"
    return np.asarray(pointer + signed(offset).astype(INT64) * np.int64(memory_bytes(element.pointee)))


@evaluates(tt.FpToFpOp, elementwise=True)
def eval_fp_to_fp(machine: "Machine", op: Operation, src: Array) -> Array:
    """8-bit floats saturate when rounding to nearest; towards zero never overflows."""
    dtype = storage(op.results[0].type)
    if machine.integer(op, "rounding", RoundingMode.RTNE) == RoundingMode.RTZ:
        return narrow_to_zero(src, dtype)
    return narrow(saturate(src, dtype) if is_float8(dtype) else src, dtype)
