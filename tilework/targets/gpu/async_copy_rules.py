"""Copies from global to shared memory in the background, their groups and waits.

One instruction moves some bytes (4, 8 or 16, say) that are side by side in the registers of pointers, in global and in shared
memory, and under one bit of the mask. Where none is so narrow, or the GPU has none, elements are loaded and stored like any
others, which is done even before the wait. Elements that are masked off become zero,
whatever `other` says: where that is not zero, the pipeliner selects behind the wait. Where several threads hold the same
element, one copies it, in every block of a cluster.
"""

from xdsl.ir import Operation

from tilework.ir import ttg
from tilework.layouts.banks import offsets_of
from tilework.targets.gpu.device import Copy
from tilework.targets.gpu.global_access import hints_of, load, pointee, segments, width_of
from tilework.targets.gpu.indices import combined
from tilework.targets.gpu.lowering import Lowering, Registers, Shared, layout, lowers, number_of
from tilework.targets.gpu.shared_access import Move
from tilework.targets.llvm.values import Value


@lowers(ttg.AsyncCopyGlobalToLocalOp)
def lower_async_copy(low: Lowering, op: Operation) -> Registers:
    pointers, memory, mask, _ = segments(op)
    assert pointers is not None and memory is not None
    element = pointee(pointers.type)
    buffer: Shared = low[memory]
    move = Move(low, buffer.base, offsets_of(layout(pointers), layout(memory)), element, buffer.origin)
    known = width_of(low, pointers, mask, move.held.bits)
    shortest, longest = low.gpu.copy_bytes or (1 << 30, move.bytes)
    told = min(number_of(op, "contiguity", 1), longest // move.bytes)
    width = min(max(known, told), in_order(move))
    addresses: Registers = low[pointers]
    masks: Registers | None = low[mask] if mask is not None else None
    if width * move.bytes < shortest:
        loaded: list[Value] = []
        for first in range(0, len(addresses), known):
            loaded += load(low, element, addresses[first], known, masks[first] if masks else None, hints=hints_of(op))
        with low.only_if(low.is_first_copy(layout(pointers), in_block=True)):
            move.store(tuple(loaded))
        low.gpu.stored_for_matrices(low.builder, memory.type)
        return ()
    mine = low.is_first_copy(layout(pointers), in_block=True)
    for first in range(0, len(addresses), width):
        if not first & move.copies:
            target, apart = place_of(low, move, first)
            mask = masks[first] if masks else None
            asked = Copy(target, apart, addresses[first], width * move.bytes, mask, mine)
            low.gpu.async_copy(low.builder, asked)
    return ()


def in_order(move: Move) -> int:
    """How many registers, from the first on, are neighbours in shared memory, aligned and in this order."""
    run = 0
    while run < move.run and move.columns[run] == 1 << run:
        run += 1
    return 1 << run


def place_of(low: Lowering, move: Move, register: int) -> tuple[Value, int]:
    """Where `register` goes in shared memory: an address, and how many bytes behind it."""
    b, offset = low.builder, move.fixed[register]
    moved = combined(b, move.spread, offset & move.spread.mask)
    return b.gep(move.base, b.mul(moved, move.bytes)), (offset & ~move.spread.mask) * move.bytes


@lowers(ttg.AsyncCommitGroupOp)
def lower_commit_group(low: Lowering, op: Operation) -> Registers:
    low.gpu.commit_copies(low.builder)
    return ()


@lowers(ttg.AsyncWaitOp)
def lower_wait(low: Lowering, op: Operation) -> Registers:
    """What this thread copied has arrived; a barrier follows (`analysis/membar.py`), which makes it everyone's."""
    low.gpu.wait_copies(low.builder, number_of(op, "num"))
    return ()
