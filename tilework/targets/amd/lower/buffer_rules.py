"""`amdg.buffer_load`, `buffer_store` and atomics, as the neutral rules do loads, stores and atomics, at places in buffers."""

from typing import Any

from xdsl.ir import Operation, SSAValue

from tilework.ir import amdg
from tilework.ir.types import element_type
from tilework.targets.amd.lower.buffer_access import Place, resource_of
from tilework.targets.amd.lower.own_rules import lowers
from tilework.targets.gpu.atomic_rules import change_tile, exchange_tile
from tilework.targets.gpu.global_access import load_tile, segments, store_tile, width_of
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.words import held_type
from tilework.targets.llvm.types import i64


def places(low: Lowering, base: SSAValue, offsets: SSAValue, size: int) -> Any:
    """Where each register lies; offsets count elements of `size` bytes."""
    b, start = low.builder, low.scalar(base)
    resource = resource_of(b, low.gpu.target, start)

    def place(offset: Any) -> Place:
        return Place(resource, b.mul(offset, size), lambda: b.gep(start, b.mul(b.sext(offset, i64), size)))

    return tuple([place(offset) for offset in low[offsets]])


def place_of(
    low: Lowering, base: SSAValue | None, offsets: SSAValue | None, mask: SSAValue | None, value: SSAValue
) -> tuple[Any, int]:
    """The places of the elements of `value`, and how many of them move together."""
    assert base is not None and offsets is not None
    bits = held_type(element_type(value.type)).bits
    return places(low, base, offsets, bits // 8), width_of(low, offsets, mask, bits, base)


@lowers(amdg.BufferLoadOp)
def lower_buffer_load(low: Lowering, op: Operation) -> Registers:
    base, offsets, _, mask, other = segments(op)
    return load_tile(low, op, *place_of(low, base, offsets, mask, op.results[0]), mask, other)


@lowers(amdg.BufferStoreOp)
def lower_buffer_store(low: Lowering, op: Operation) -> None:
    value, base, offsets, _, mask = segments(op)
    assert value is not None
    store_tile(low, op, *place_of(low, base, offsets, mask, value), value, mask)


@lowers(amdg.BufferAtomicRMWOp)
def lower_buffer_rmw(low: Lowering, op: Operation) -> Registers:
    value, base, offsets, _, mask = segments(op)
    assert value is not None
    return change_tile(low, op, *place_of(low, base, offsets, mask, value), value, mask)


@lowers(amdg.BufferAtomicCASOp)
def lower_buffer_cas(low: Lowering, op: Operation) -> Registers:
    compared, value, base, offsets, *_ = op.operands
    found, _ = place_of(low, base, offsets, None, value)
    return exchange_tile(low, op, found, compared, value)
