"""What the ops of `amdg` on whole tensors compute: slices, tiles side by side, scaled 4- and 8-bit floats, and copies
from LDS. Buffer accesses are in `access_rules.py`.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Attribute, Operation

from tilework.ir import amdg
from tilework.ir.encodings import dot_operand_of
from tilework.ir.enums import ScaleDotElemType
from tilework.ir.types import bf16, element_type, f8E4M3FN, f8E5M2, shape_of, with_element
from tilework.numerics.rounding import Array, decode_e8m0, narrow, unpack_e2m1
from tilework.oracles.evaluator.access_rules import pointee
from tilework.oracles.evaluator.values import evaluates, storage

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine
    from tilework.oracles.evaluator.shared_memory import MemView

NIBBLE = 4
BYTES: dict[int, Attribute] = {ScaleDotElemType.E4M3: f8E4M3FN, ScaleDotElemType.E5M2: f8E5M2}


@evaluates(amdg.ExtractSliceOp)
def eval_extract_slice(machine: "Machine", op: Operation, source: Array) -> Array:
    starts = machine.integers(op, "static_offsets")
    sizes = shape_of(op.results[0].type)
    return source[tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))]


@evaluates(amdg.ConcatOp)
def eval_concat(machine: "Machine", op: Operation, *sources: Array) -> Array:
    """Place the tiles in the order of a grid, its last dimension first."""
    shape, part = shape_of(op.results[0].type), sources[0].shape
    found = np.empty(shape, sources[0].dtype)
    grid = [whole // size for whole, size in zip(shape, part, strict=True)]
    for index, source in zip(np.ndindex(*grid), sources, strict=True):
        found[tuple(slice(at * size, (at + 1) * size) for at, size in zip(index, part, strict=True))] = source
    return found


def factor(scale: Array, type: Attribute) -> Array:
    """Return scales as floats: those of bf16, or powers of two by their exponents."""
    return scale.astype(np.float32) if element_type(type) == bf16 else decode_e8m0(scale.view(np.uint8))


def scaled(op: Operation, values: Array, scale: Array) -> Array:
    product = values.astype(np.float64) * scale.astype(np.float64)
    return narrow(product, storage(op.results[0].type))


@evaluates(amdg.ScaledUpcastFp4Op)
def eval_scaled_upcast_fp4(machine: "Machine", op: Operation, source: Array, scale: Array) -> Array:
    return scaled(op, unpack_e2m1(source, machine.integer(op, "axis")), factor(scale, op.operands[1].type))


@evaluates(amdg.ScaledUpcastFp8Op)
def eval_scaled_upcast_fp8(machine: "Machine", op: Operation, source: Array, scale: Array) -> Array:
    return scaled(op, source, factor(scale, op.operands[1].type))


@evaluates(amdg.UpcastMxfpOp)
def eval_upcast_mxfp(machine: "Machine", op: Operation, source: Array, scale: Array) -> Array:
    operand = dot_operand_of(op.operands[0].type)
    assert operand is not None
    kind, k = machine.integer(op, "fp_type"), operand.k_dim
    if kind == ScaleDotElemType.E2M1:
        values = unpack_e2m1(source, k)
    elif kind in BYTES and source.dtype.itemsize == 1:
        values = source.view(storage(with_element(op.operands[0].type, BYTES[kind])))
    else:
        values = source
    scales = np.repeat(decode_e8m0(scale.view(np.uint8)), amdg.SCALE_AXIS_ELEMENTS, axis=-1)
    return scaled(op, values, scales if k == values.ndim - 1 else scales.swapaxes(-1, -2))


@evaluates(amdg.LocalLoadPackedTransposedOp)
def eval_local_load_packed_transposed(machine: "Machine", op: Operation, view: "MemView", *token: Any) -> Array:
    """Load bytes of two 4-bit values, which are neighbours across K in memory and along K in the result."""
    operand = dot_operand_of(op.results[0].type)
    assert operand is not None
    k = operand.k_dim
    stored = machine.shared.read(view).astype(np.uint8)
    halves = np.stack([stored & 0xF, stored >> NIBBLE], axis=-1)
    halves = halves if k == 0 else halves.swapaxes(1, 2)
    wide = halves.reshape((stored.shape[0], -1) if k == 0 else (-1, stored.shape[1]))
    low, high = (wide[first::2] if k == 0 else wide[:, first::2] for first in (0, 1))
    return np.asarray(low | high << NIBBLE).view(np.int8)


@evaluates(amdg.AsyncCopyLocalToGlobalOp)
def eval_async_copy_local_to_global(
    machine: "Machine", op: Operation, view: "MemView", pointers: Array, *mask: Array
) -> None:
    """The copy reads LDS when it starts; the elements are in memory then, which the next wait only confirms."""
    values = machine.shared.read(view).reshape(pointers.shape)
    machine.memory.store(pointers, values, mask[0] if mask else None, pointee(op.operands[1].type))
