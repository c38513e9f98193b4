"""`amdg.buffer_load`, `buffer_store` and atomics, as the neutral rules do loads, stores and atomics, at places in
buffers.

Copies from global memory to LDS that pass no registers, and waits for them.

    llvm.amdgcn.raw.ptr.buffer.load.lds(resource, place of the wave in LDS, bytes of a lane, offset of the lane, 0, 0, 0)

The instruction writes lane after lane. Under a swizzle the element that belongs at the place of a lane is one that
another lane of the wave would copy (`layouts/wave_copy.py`): lanes exchange their offsets. What is masked off has an
offset behind the end of the buffer, and zero is written. Copies that no instruction can do are loads and stores.
"""

from typing import Any

from xdsl.ir import Operation, SSAValue

from tilework.ir import amdg, ttg
from tilework.ir.types import element_type
from tilework.layouts.amd import WaveCopy, wave_copy
from tilework.layouts.banks import offsets_of
from tilework.targets.amd.arch import LDS_COPIES
from tilework.targets.amd.lower import lowers
from tilework.targets.amd.lower.buffer_access import Place, resource_of
from tilework.targets.gpu.atomic_rules import change_tile, exchange_tile
from tilework.targets.gpu.global_access import load, load_tile, pointee, segments, store_tile, width_of
from tilework.targets.gpu.indices import combined, image
from tilework.targets.gpu.lowering import Lowering, Registers, Shared, layout
from tilework.targets.gpu.shared_access import Move
from tilework.targets.gpu.words import held_type
from tilework.targets.llvm.rules import number_of
from tilework.targets.llvm.types import i32, i64, void
from tilework.targets.llvm.values import Value, constant


def places(low: Lowering, base: SSAValue, offsets: SSAValue, size: int) -> Any:
    """The buffer address of each register; offsets count elements of `size` bytes."""
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


@lowers(amdg.BufferLoadToLocalOp)
def lower_buffer_copy(low: Lowering, op: Operation) -> Registers:
    memory, base, offsets, mask, other, _ = segments(op)
    assert memory is not None and base is not None and offsets is not None
    element, buffer, where = pointee(base.type), low[memory], offsets_of(layout(offsets), layout(memory))
    assert isinstance(buffer, Shared)
    move = Move(low, buffer.base, where, element, buffer.offset)
    given = places(low, base, offsets, move.bytes)
    masks: Registers | None = low[mask] if mask is not None else None
    width = number_of(op, "contiguity", 1)
    wave = wave_copy(where, width)
    if wave is not None and other is None and low.gpu.has(LDS_COPIES.get(width * move.bytes, "")):
        for first in range(0, len(given), width):
            copy(low, move, wave, width, where.by_in["warp"], first, given[first], masks[first] if masks else None)
        return ()
    loaded: list[Value] = []
    for register, place in enumerate(given):
        may = masks[register] if masks else None
        loaded += load(low, element, place, 1, may, low[other][register : register + 1] if other is not None else None)
    with low.only_if(low.is_first_copy(layout(offsets), in_block=True)):
        move.store(tuple(loaded))
    return ()


def copy(
    low: Lowering,
    move: Move,
    wave: WaveCopy,
    width: int,
    warps: tuple[int, ...],
    register: int,
    place: Place,
    mask: Value | None,
) -> None:
    """One instruction: `width` elements of each lane, from `register` on."""
    b = low.builder
    warp = low.warp
    if warp.constant is None:
        warp = low.gpu.uniform(b, warp)
    start = combined(b, image(b, [(warp, warps)]), move.fixed[register])
    target = b.gep(move.base, b.mul(b.and_(start, ~(wave.size - 1)), move.bytes))
    inside = b.lshr(b.and_(start, wave.size - 1), width.bit_length() - 1)
    resource, offset, zero = place.where(b, mask)
    if not wave.is_in_order or inside.constant != 0:
        lane = combined(b, image(b, [(b.xor(low.lane, inside), wave.back)]), 0)
        offset = low.gpu.shuffle(b, offset, lane)
    args = [resource, target, constant(i32, width * move.bytes), offset, zero, zero, zero]
    b.call("llvm.amdgcn.raw.ptr.buffer.load.lds", void, args)


@lowers(amdg.AsyncWaitOp)
def lower_wait(low: Lowering, op: Operation) -> Registers:
    low.gpu.wait_copies(low.builder, number_of(op, "num_inst"))
    return ()


@lowers(ttg.AsyncWaitOp, overrides=True)
def lower_group_wait(low: Lowering, op: Operation) -> Registers:
    """Groups are not counted: all copies have arrived."""
    low.gpu.wait_copies(low.builder, 0)
    return ()
