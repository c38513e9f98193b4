"""Rules that read and write memory: loads, stores, atomics, block pointers, tensor descriptors, and AMD's buffer
accesses.

Atomics are sequential: lanes that share an address are applied one after the other, in row-major order, and each sees
the result of the one before it. The offset of a buffer access has 31 bits in hardware; a negative or larger one is a
fault, because the hardware would take it for masked off.

"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType
from xdsl.ir import Attribute, Operation

from tilework.ir import amdg, tt, ttg
from tilework.ir.enums import DescriptorReduceKind, PaddingOption, RMWOp
from tilework.ir.types import PointerType, TensorDescType, array_values, element_type, is_float, shape_of
from tilework.numerics.rounding import Array, narrow, to_tf32
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.values import (
    BlockView,
    DescriptorAt,
    Fault,
    evaluates,
    memory_bytes,
    rules,
    signed,
    storage,
    unsigned,
    wide,
)

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

Descriptor = BlockView | DescriptorAt


def pointee(type: Attribute) -> Attribute:
    """Return the pointee type of a pointer, or of a tensor of pointers."""
    element = element_type(type)
    if not isinstance(element, PointerType):
        raise Fault(f"needs a pointer, not {type}")
    return element.pointee


@evaluates(tt.LoadOp, elementwise=True)
def eval_load(machine: "Machine", op: Operation, pointer: Any, mask: Array | None = None, *other: Array) -> Array:
    if isinstance(pointer, BlockView):
        address, inside = pointer.at(pointer.offsets, machine.integers(op, "boundaryCheck"))
        pad_with_nan = machine.integer(op, "padding") == PaddingOption.NAN
        return machine.memory.load(address, inside, pointer.element, padding(pointer.element, pad_with_nan))
    return machine.memory.load(machine.spread(pointer), mask, pointee(op.operands[0].type), other[0] if other else None)


@evaluates(tt.StoreOp)
def eval_store(machine: "Machine", op: Operation, pointer: Any, value: Array, mask: Array | None = None) -> None:
    if isinstance(pointer, BlockView):
        address, inside = pointer.at(pointer.offsets, machine.integers(op, "boundaryCheck"))
        machine.memory.store(address, value, inside, pointer.element)
    else:
        machine.memory.store(machine.spread(pointer), value, mask, pointee(op.operands[0].type))


@evaluates(ttg.FetchOp)
def eval_fetch(machine: "Machine", op: Operation, pointer: Any, mask: Array | None = None) -> None:
    """A prefetch has no result, but its addresses must be valid."""
    machine.memory.load(machine.spread(pointer), mask, pointee(op.operands[0].type), None)


def padding(element: Attribute, with_nan: bool) -> Array:
    """Return the value of elements out of bounds."""
    return np.asarray(np.nan if with_nan and is_float(element) else 0).astype(storage(element))


@evaluates(tt.MakeTensorPtrOp)
def eval_make_tensor_ptr(machine: "Machine", op: Operation, base: Array, *sizes: Array) -> BlockView:
    type_ = op.results[0].type
    assert isinstance(type_, PointerType) and isinstance(type_.pointee, TensorType), "a pointer to a block"
    block = type_.pointee
    rank = len(shape_of(block))
    shape, strides, offsets = (tuple(int(n) for n in sizes[k * rank : (k + 1) * rank]) for k in range(3))
    return BlockView(int(base), shape, strides, block.element_type, shape_of(block), offsets)


@evaluates(tt.MakeTensorDescOp)
def eval_make_tensor_desc(machine: "Machine", op: Operation, base: Array, *sizes: Array) -> BlockView:
    type_ = op.results[0].type
    assert isinstance(type_, TensorDescType) and isinstance(type_.block, TensorType), "a descriptor of a block"
    rank = len(shape_of(type_.block))
    shape, strides = (tuple(int(n) for n in sizes[k * rank : (k + 1) * rank]) for k in range(2))
    with_nan = machine.integer(op, "padding", PaddingOption.ZERO) == PaddingOption.NAN
    return BlockView(int(base), shape, strides, type_.block.element_type, shape_of(type_.block), (), with_nan)


def descriptor(machine: "Machine", value: Descriptor) -> BlockView:
    """Return the descriptor itself: one that the kernel wrote to memory is read from there."""
    if isinstance(value, BlockView):
        return value
    assert isinstance(value.type, TensorDescType), "a descriptor of a block"
    if (found := machine.tensormaps.get(value.address)) is None:
        raise Fault("uses a descriptor that no ttng.tensormap_create has written")
    if not found.is_acquired:
        raise Fault("uses a descriptor without a ttng.tensormap_fenceproxy_acquire after it was written")
    return replace(found.view, element=element_type(value.type.block), block=shape_of(value.type.block))


Locate = Callable[..., tuple[Array, Array]]  # from a descriptor and indices to (addresses, in bounds)


def block_at(view: BlockView, *indices: Any) -> tuple[Array, Array]:
    """Return the addresses of a descriptor's block, every dimension checked."""
    return view.at(tuple(int(index) for index in indices), tuple(range(len(view.block))))


def rows_at(view: BlockView, rows: Array, column: Array) -> tuple[Array, Array]:
    """Return the addresses of the chosen rows from `column` on, every dimension checked."""
    width = view.block[-1]
    indices = (rows.astype(np.int64)[:, None], int(column) + np.arange(width, dtype=np.int64)[None, :])
    return view.of_indices(indices, (len(rows), width), (0, 1))


def read_window(machine: "Machine", desc: Descriptor, locate: Locate, *indices: Any) -> Array:
    """Return the elements of a descriptor at `indices`."""
    view = descriptor(machine, desc)
    address, inside = locate(view, *indices)
    values = machine.memory.load(address, inside, view.element, padding(view.element, view.pad_with_nan))
    return to_tf32(values.view(np.uint32), "rn").view(np.float32) if view.round_to_tf32 else values


def write_window(machine: "Machine", desc: Descriptor, value: Array, locate: Locate, *indices: Any) -> None:
    view = descriptor(machine, desc)
    address, inside = locate(view, *indices)
    machine.memory.store(address, value.reshape(address.shape), inside, view.element)


def update_window(machine: "Machine", op: Operation, desc: Descriptor, value: Array, *indices: Any) -> None:
    """Combine elements with memory by the reduction of `op`."""
    view = descriptor(machine, desc)
    address, inside = block_at(view, *indices)
    combine = combine_of(machine.integer(op, "kind"), view.element)
    update(machine, address, value.reshape(address.shape), inside, view.element, combine)


rules(
    {
        tt.AdvanceOp: lambda machine, op, pointer, *steps: pointer.advanced(tuple(int(step) for step in steps)),
        tt.DescriptorLoadOp: lambda machine, op, desc, *indices: read_window(machine, desc, block_at, *indices).reshape(
            shape_of(op.results[0].type)
        ),
        tt.DescriptorStoreOp: lambda machine, op, desc, value, *indices: write_window(
            machine, desc, value, block_at, *indices
        ),
        tt.DescriptorReduceOp: update_window,
        tt.DescriptorGatherOp: lambda machine, op, desc, *rows: read_window(machine, desc, rows_at, *rows),
        tt.DescriptorScatterOp: lambda machine, op, desc, rows, column, value: write_window(
            machine, desc, value, rows_at, rows, column
        ),
    }
)


Combine = Callable[[Array, Array], Array]


def add_float(old: Array, value: Array) -> Array:
    return narrow(np.asarray(wide(old) + wide(value)), old.dtype)


def on_unsigned(function: Combine) -> Combine:
    """Return `function` on the unsigned bits of both operands."""
    return lambda old, value: np.asarray(function(unsigned(old), unsigned(value))).view(old.dtype)


RMW_RULES: dict[int, Combine] = {
    RMWOp.AND: on_unsigned(np.bitwise_and),
    RMWOp.OR: on_unsigned(np.bitwise_or),
    RMWOp.XOR: on_unsigned(np.bitwise_xor),
    RMWOp.ADD: np.add,
    RMWOp.FADD: add_float,
    RMWOp.MAX: np.maximum,
    RMWOp.MIN: np.minimum,
    RMWOp.UMAX: on_unsigned(np.maximum),
    RMWOp.UMIN: on_unsigned(np.minimum),
    RMWOp.EXCH: lambda old, value: value,
}


@evaluates(tt.AtomicRMWOp)
def eval_atomic_rmw(machine: "Machine", op: Operation, pointer: Array, value: Array, *mask: Array) -> Array:
    combine = RMW_RULES[machine.integer(op, "atomic_rmw_op")]
    return update(machine, pointer, value, mask[0] if mask else None, pointee(op.operands[0].type), combine)


@evaluates(tt.OrderedBeginOp, tt.OrderedEndOp)
def eval_turn(machine: "Machine", op: Operation) -> None:
    """Programs run one after the other, x fastest."""


@evaluates(tt.AtomicCASOp)
def eval_atomic_cas(
    machine: "Machine", op: Operation, pointer: Array, expected: Array, value: Array, *mask: Array
) -> Array:
    return exchange_all(machine, pointer, expected, value, pointee(op.operands[0].type), mask[0] if mask else None)


def exchange_all(
    machine: "Machine", pointer: Array, expected: Array, value: Array, element: Attribute, mask: Array | None = None
) -> Array:
    """Compare as bits, so that NaN equals itself and -0.0 differs from 0.0."""
    shape = np.broadcast_shapes(np.shape(value), np.shape(expected))
    pairs = np.empty(shape, dtype=[("expected", expected.dtype), ("value", value.dtype)])
    pairs["expected"], pairs["value"] = expected, value

    def exchange(old: Array, pair: Array) -> Array:
        wanted = np.ascontiguousarray(pair["expected"])
        return np.where(unsigned(old) == unsigned(wanted), pair["value"], old)

    return update(machine, pointer, pairs, mask, element, exchange)


def update(
    machine: "Machine", pointer: Array, value: Array, mask: Array | None, type: Attribute, combine: Combine
) -> Array:
    """Replace memory by `combine(old, value)` in each active lane, in order; return the old values, zero if masked off.

    Lanes run in rounds: the first lane of every address together, then the second ones, ...
    """
    address = machine.spread(pointer)
    active = np.ones(address.size, bool) if mask is None else np.broadcast_to(mask, address.shape).reshape(-1)
    lanes = np.flatnonzero(active)
    flat, values = address.reshape(-1), np.broadcast_to(value, address.shape).reshape(-1)
    old = np.zeros(address.size, storage(type))
    for round_ in rounds(plain(flat[lanes])):
        chosen = lanes[round_]
        before = machine.memory.load(flat[chosen], None, type)
        old[chosen] = before
        after = np.asarray(combine(before, values[chosen])).astype(before.dtype)
        machine.memory.store(flat[chosen], after, None, type)
    return old.reshape(address.shape)


def rounds(address: Array) -> list[Array]:
    """Return the indices of the first occurrence of each address, of the second occurrences, and so on."""
    order = np.argsort(address, kind="stable")
    ordered = address[order]
    is_first = np.ones(len(ordered), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(is_first)
    rank = np.arange(len(ordered)) - np.repeat(starts, np.diff(np.append(starts, len(ordered))))
    return [np.sort(order[rank == round_]) for round_ in range(int(rank.max(initial=-1)) + 1)]


REDUCE_RULES: dict[int, tuple[int, int]] = {  # for signed and for unsigned elements
    DescriptorReduceKind.ADD: (RMWOp.ADD, RMWOp.ADD),
    DescriptorReduceKind.MIN: (RMWOp.MIN, RMWOp.UMIN),
    DescriptorReduceKind.MAX: (RMWOp.MAX, RMWOp.UMAX),
    DescriptorReduceKind.AND: (RMWOp.AND, RMWOp.AND),
    DescriptorReduceKind.OR: (RMWOp.OR, RMWOp.OR),
    DescriptorReduceKind.XOR: (RMWOp.XOR, RMWOp.XOR),
}


def combine_of(kind: int, element: Attribute) -> Combine:
    """Return the function by which a reduction of `kind` combines elements in memory."""
    if kind not in REDUCE_RULES:
        raise Fault(f"reduces with {DescriptorReduceKind(kind).keyword}, which the evaluator does not know")
    is_unsigned = isinstance(element, IntegerType) and element.signedness.data == Signedness.UNSIGNED
    if is_float(element) and kind == DescriptorReduceKind.ADD:
        return add_float
    return RMW_RULES[REDUCE_RULES[kind][is_unsigned]]


BYTES = (1 << 31) - 2  # of a buffer


rules({amdg.InThreadTransposeOp: lambda machine, op, src: src, amdg.InstructionSchedHintOp: lambda machine, op: None})


def segmented(op: Operation, operands: tuple[Any, ...]) -> list[Any]:
    """Return the operands by their segments; None for missing ones."""
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
def eval_buffer_cas(
    machine: "Machine", op: Operation, expected: Array, value: Array, base: Array, offsets: Array, *stride: Array
) -> Array:
    element = element_type(op.results[0].type)
    return exchange_all(machine, addresses(base, offsets, None, element), expected, value, element)


@evaluates(amdg.BufferLoadToLocalOp)
def eval_copy(machine: "Machine", op: Operation, *operands: Any) -> None:
    """Masked-off elements become zero."""
    view, base, offsets, mask, _, _ = segmented(op, operands)
    element = pointee(op.operands[1].type)
    values = machine.memory.load(addresses(base, offsets, mask, element), mask, element)
    machine.open_copies.append(machine.shared.start(view, values.reshape(view.offsets.shape), op, True))
