"""Rules of what only AMD GPUs have: accesses at offsets from one pointer, of which the hardware sees 31 bits.

An offset that is negative or beyond is a fault: the hardware would take it for one that is masked off.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Attribute, Operation

from tilework.ir import amdg
from tilework.ir.types import array_values, element_type
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.access_rules import RMW_RULES, exchange_all, pointee, update
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import memory_bytes, signed
from tilework.oracles.evaluator.table import evaluates, rules

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

BYTES = (1 << 31) - 2  # of a buffer


rules({amdg.InThreadTransposeOp: lambda machine, op, src: src, amdg.InstructionSchedHintOp: lambda machine, op: None})


def segmented(op: Operation, operands: tuple[Any, ...]) -> list[Any]:
    """The operands by their segments; None for those that are not given."""
    left = iter(operands)
    return [next(left) if count else None for count in array_values(op.properties["operandSegmentSizes"])]


def addresses(base: Array, offsets: Array, mask: Array | None, element: Attribute) -> Array:
    size = memory_bytes(element)
    bytes = signed(offsets).astype(np.int64) * size
    wrong = (bytes < 0) | (bytes + size > BYTES)
    if mask is not None:
        wrong = wrong & mask
    if wrong.any():
        raise Fault(f"has the offset {int(np.asarray(bytes)[wrong][0])}, which no buffer of 31 bits reaches")
    return np.asarray(base + bytes)


@evaluates(amdg.BufferLoadOp)
def eval_buffer_load(machine: "Machine", op: Operation, *operands: Any) -> Array:
    base, offsets, _, mask, other = segmented(op, operands)
    element = element_type(op.results[0].type)
    return machine.memory.load(addresses(base, offsets, mask, element), mask, element, other)


@evaluates(amdg.BufferStoreOp)
def eval_buffer_store(machine: "Machine", op: Operation, *operands: Any) -> None:
    value, base, offsets, _, mask = segmented(op, operands)
    element = element_type(op.operands[0].type)
    machine.memory.store(addresses(base, offsets, mask, element), value, mask, element)


@evaluates(amdg.BufferAtomicRMWOp)
def eval_buffer_rmw(machine: "Machine", op: Operation, *operands: Any) -> Array:
    value, base, offsets, _, mask = segmented(op, operands)
    element = element_type(op.results[0].type)
    combine = RMW_RULES[machine.integer(op, "atomic_rmw_op")]
    return update(machine, addresses(base, offsets, mask, element), value, mask, element, combine)


@evaluates(amdg.BufferAtomicCASOp)
def eval_buffer_cas(machine: "Machine", op: Operation, expected: Array, value: Array, base: Array, offsets: Array, *stride: Array) -> Array:  # fmt: skip
    element = element_type(op.results[0].type)
    return exchange_all(machine, addresses(base, offsets, None, element), expected, value, element)


@evaluates(amdg.BufferLoadToLocalOp)
def eval_copy(machine: "Machine", op: Operation, *operands: Any) -> None:
    """Elements that are masked off become zero."""
    view, base, offsets, mask, _, _ = segmented(op, operands)
    element = pointee(op.operands[1].type)
    values = machine.memory.load(addresses(base, offsets, mask, element), mask, element)
    machine.open_copies.append(machine.shared.start(view, values.reshape(view.places.shape), op, True))
