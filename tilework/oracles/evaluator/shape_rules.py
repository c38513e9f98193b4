"""Rules that move elements, make them, or reinterpret them, without computing on them."""

from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.enums import RoundingMode
from tilework.ir.types import PointerType, element_type, shape_of
from tilework.numerics.rounding import Array, is_float8, narrow, narrow_to_zero, saturate
from tilework.oracles.evaluator.arith_rules import reinterpret
from tilework.oracles.evaluator.floats import INT64, memory_bytes, signed, storage, unsigned
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.table import evaluates

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine


@evaluates(tt.SplatOp, tt.BroadcastOp)
def eval_broadcast(machine: "Machine", op: Operation, src: Array) -> Array:
    return np.broadcast_to(src, shape_of(op.results[0].type))


@evaluates(tt.UnsplatOp)
def eval_unsplat(machine: "Machine", op: Operation, src: Array) -> Array:
    return src.reshape(())


@evaluates(tt.ReshapeOp, tt.ExpandDimsOp)
def eval_reshape(machine: "Machine", op: Operation, src: Array) -> Array:
    """Elements keep their row-major order, also where `allow_reorder` would permit another."""
    return src.reshape(shape_of(op.results[0].type))


@evaluates(tt.CatOp)
def eval_cat(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    return np.concatenate((lhs, rhs))


@evaluates(tt.JoinOp)
def eval_join(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    return np.stack((lhs, rhs), axis=-1)


@evaluates(tt.SplitOp)
def eval_split(machine: "Machine", op: Operation, src: Array) -> tuple[Array, Array]:
    return src[..., 0], src[..., 1]


@evaluates(tt.TransOp)
def eval_trans(machine: "Machine", op: Operation, src: Array) -> Array:
    return src.transpose(machine.integers(op, "order"))


@evaluates(tt.MakeRangeOp)
def eval_make_range(machine: "Machine", op: Operation) -> Array:
    return np.arange(machine.integer(op, "start"), machine.integer(op, "end"), dtype=np.int32)


@evaluates(tt.GatherOp)
def eval_gather(machine: "Machine", op: Operation, src: Array, indices: Array) -> Array:
    """An index outside the axis is undefined; it is taken modulo the size."""
    axis = machine.integer(op, "axis")
    return np.take_along_axis(src, indices.astype(INT64) % src.shape[axis], axis)


@evaluates(tt.HistogramOp)
def eval_histogram(machine: "Machine", op: Operation, src: Array, *mask: Array) -> Array:
    """How often each of 0 .. bins-1 occurs; values outside are not counted."""
    (bins,) = shape_of(op.results[0].type)
    counted = unsigned(src[mask[0]] if mask else src)
    inside = counted[counted < bins]
    return np.bincount(inside.astype(INT64), minlength=bins).astype(storage(op.results[0].type))


@evaluates(tt.AddPtrOp, elementwise=True)
def eval_addptr(machine: "Machine", op: Operation, pointer: Array, offset: Array) -> Array:
    element = element_type(op.results[0].type)
    assert isinstance(element, PointerType), "tt.addptr moves a pointer"
    return np.asarray(pointer + signed(offset).astype(INT64) * np.int64(memory_bytes(element.pointee)))


@evaluates(tt.IntToPtrOp, elementwise=True)
def eval_int_to_ptr(machine: "Machine", op: Operation, src: Array) -> Array:
    return src


@evaluates(tt.PtrToIntOp, elementwise=True)
def eval_ptr_to_int(machine: "Machine", op: Operation, src: Array) -> Array:
    return plain(src)


@evaluates(tt.BitcastOp, elementwise=True)
def eval_bitcast(machine: "Machine", op: Operation, src: Array) -> Array:
    return reinterpret(np.asarray(src), op.results[0].type)


@evaluates(tt.FpToFpOp, elementwise=True)
def eval_fp_to_fp(machine: "Machine", op: Operation, src: Array) -> Array:
    """8-bit floats saturate when rounding to nearest; towards zero never overflows."""
    dtype = storage(op.results[0].type)
    if machine.integer(op, "rounding", RoundingMode.RTNE) == RoundingMode.RTZ:
        return narrow_to_zero(src, dtype)
    return narrow(saturate(src, dtype) if is_float8(dtype) else src, dtype)
