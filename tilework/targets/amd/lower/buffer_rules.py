"""`amdg.buffer_load`, `amdg.buffer_store` and atomics: the neutral rules, at buffer addresses; and copies to LDS.

Copies from global memory to LDS bypass the registers:

    llvm.amdgcn.raw.ptr.buffer.load.lds(resource, LDS address of the wave, bytes per lane, offset of the lane, 0, 0, 0)

The instruction writes the lanes contiguously. With a swizzle, the element at a lane's address is one that another lane
of the wave holds the offset of (`layouts/amd.py`): lanes exchange their offsets. Masked lanes have an offset beyond the
end of the buffer, and write zero. Copies without an instruction are lowered to loads and stores.

Copies stay in flight over barriers and loads from LDS, until `amdg.async_wait`, which counts the later ones.
"""

from typing import Any

from xdsl.ir import Operation, SSAValue

from tilework.ir import amdg, ttg
from tilework.ir.encodings import encoding_of
from tilework.ir.types import element_type, int_property, shape_of
from tilework.layouts.amd import WaveCopy, wave_copy
from tilework.layouts.banks import offsets_of
from tilework.layouts.to_linear import order
from tilework.targets.amd.arch import LDS_COPIES
from tilework.targets.amd.lower import lowers
from tilework.targets.amd.lower.buffer_access import BufferAddress, resource_of
from tilework.targets.gpu.atomic_rules import change_tile, exchange_tile
from tilework.targets.gpu.global_access import load, load_tile, pointee, segments, store_tile, vector_run, width_of
from tilework.targets.gpu.lowering import SHARED_SPACE, Lowering, Registers, Shared, layout
from tilework.targets.gpu.packing import held_type
from tilework.targets.gpu.shared_access import Move
from tilework.targets.gpu.views import combined, xor_columns
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import i32, i64, pointer, void
from tilework.targets.llvm.values import Value, constant


def addresses(low: Lowering, base: SSAValue, offsets: SSAValue, size: int) -> Any:
    """Return the buffer address of each register; offsets count elements of `size` bytes."""
    b, start = low.builder, low.scalar(base)
    resource = resource_of(b, low.gpu.target, start)

    def address(offset: Any) -> BufferAddress:
        return BufferAddress(resource, b.mul(offset, size), lambda: b.gep(start, b.mul(b.sext(offset, i64), size)))

    return tuple([address(offset) for offset in low[offsets]])


def addresses_and_width(
    low: Lowering,
    op: Operation,
    base: SSAValue | None,
    offsets: SSAValue | None,
    mask: SSAValue | None,
    value: SSAValue,
) -> tuple[Any, int]:
    """Return the addresses of the elements of `value`, and how many of them move together: as many as the analysis
    shows, or as the op says.
    """
    assert base is not None and offsets is not None
    bits = held_type(element_type(value.type)).bits
    known = width_of(low, offsets, mask, bits, base)
    axis = order(encoding, shape_of(offsets.type))[0] if (encoding := encoding_of(offsets.type)) is not None else 0
    most = min(vector_run(layout(offsets), axis), low.gpu.target.limits.vector_bits // bits)
    return addresses(low, base, offsets, bits // 8), max(known, min(int_property(op, "contiguity", 1), most))


@lowers(amdg.BufferLoadOp)
def lower_buffer_load(low: Lowering, op: Operation) -> Registers:
    base, offsets, _, mask, other = segments(op)
    return load_tile(low, op, *addresses_and_width(low, op, base, offsets, mask, op.results[0]), mask, other)


@lowers(amdg.BufferStoreOp)
def lower_buffer_store(low: Lowering, op: Operation) -> None:
    value, base, offsets, _, mask = segments(op)
    assert value is not None
    store_tile(low, op, *addresses_and_width(low, op, base, offsets, mask, value), value, mask)


@lowers(amdg.BufferAtomicRMWOp)
def lower_buffer_rmw(low: Lowering, op: Operation) -> Registers:
    value, base, offsets, _, mask = segments(op)
    assert value is not None
    return change_tile(low, op, *addresses_and_width(low, op, base, offsets, mask, value), value, mask)


@lowers(amdg.BufferAtomicCASOp)
def lower_buffer_cas(low: Lowering, op: Operation) -> Registers:
    compared, value, base, offsets, *_ = op.operands
    found, _ = addresses_and_width(low, op, base, offsets, None, value)
    return exchange_tile(low, op, found, compared, value)


@lowers(amdg.BufferLoadToLocalOp)
def lower_buffer_copy(low: Lowering, op: Operation) -> Registers:
    memory, base, offsets, mask, other, _ = segments(op)
    assert memory is not None and base is not None and offsets is not None
    element, buffer, where = pointee(base.type), low[memory], offsets_of(layout(offsets), layout(memory))
    assert isinstance(buffer, Shared)
    move = Move(low, buffer.base, where, element, buffer.offset)
    given = addresses(low, base, offsets, move.bytes)
    masks: Registers | None = low[mask] if mask is not None else None
    width = int_property(op, "contiguity", 1)
    wave = wave_copy(where, width)
    if wave is not None and other is None and low.gpu.has(LDS_COPIES.get(width * move.bytes, "")):
        for first in range(0, len(given), width):
            copy(low, move, wave, width, where.by_in["warp"], first, given[first], masks[first] if masks else None)
        return ()
    loaded: list[Value] = []
    for register, address in enumerate(given):
        may = masks[register] if masks else None
        loaded += load(
            low, element, address, 1, may, low[other][register : register + 1] if other is not None else None
        )
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
    address: BufferAddress,
    mask: Value | None,
) -> None:
    """Emit one instruction, which copies `width` elements of each lane, from `register` on."""
    b = low.builder
    warp = low.warp
    if warp.constant is None:
        warp = low.gpu.uniform(b, warp)
    start = combined(b, xor_columns(b, [(warp, warps)]), move.fixed[register])
    target = b.gep(move.base, b.mul(b.and_(start, ~(wave.size - 1)), move.bytes))
    inside = b.lshr(b.and_(start, wave.size - 1), width.bit_length() - 1)
    resource, offset, zero = address.where(b, mask)
    if not wave.is_in_order or inside.constant != 0:
        lane = combined(b, xor_columns(b, [(b.xor(low.lane, inside), wave.back)]), 0)
        offset = low.gpu.shuffle(b, offset, lane)
    args = [resource, target, constant(i32, width * move.bytes), offset, zero, zero, zero]
    b.call("llvm.amdgcn.raw.ptr.buffer.load.lds", void, args, notes=copy_notes(b))


def copy_notes(b: Builder) -> str:
    """Return the metadata of a copy, and give those of loads from LDS to the module: they do not alias. The kernel
    itself waits for the copies that it reads; LLVM would wait for all of them at every load.
    """
    node = b.module.node
    domain = node('!{!"LDS"}')
    scopes = [node(f'!{{!"{name}", {domain}}}') for name in ("copies", "loads")]
    copies, loads = (node(f"!{{{scope}}}") for scope in scopes)
    b.module.load_notes[pointer(SHARED_SPACE)] = f", !alias.scope {loads}, !noalias {copies}"
    return f", !alias.scope {copies}"


@lowers(amdg.AsyncWaitOp)
def lower_wait(low: Lowering, op: Operation) -> Registers:
    low.gpu.wait_copies(low.builder, int_property(op, "num_inst"))
    return ()


@lowers(ttg.AsyncWaitOp, overrides=True)
def lower_group_wait(low: Lowering, op: Operation) -> Registers:
    """Wait for all copies: there are no groups."""
    low.gpu.wait_copies(low.builder, 0)
    return ()
