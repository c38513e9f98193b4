"""Copies that run beside the threads: cp.async of 4 to 16 bytes per thread, cp.async.bulk of whole rows, and their waits.

    cp.async.cg.shared.global  [%r1], [%rd1], 16, %r2;                  %r2 bytes are read, the rest is zero
    cp.async.commit_group;   cp.async.wait_group 1;                      all groups of this thread but the last one are done
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes  [%r1], [%rd1], 256, [%r3];
    cp.async.bulk.global.shared::cta.bulk_group  [%rd1], [%r1], 256;

Addresses are checked when a copy is issued; its bytes move when somebody waits for them (see `pending`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.rounding import BF16
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.clusters import in_block
from tilework.oracles.emulator.floats import Format
from tilework.oracles.emulator.pending import Access, operations
from tilework.oracles.emulator.rules.atom import FUNCTIONS, float_max, float_min
from tilework.oracles.emulator.rules.barriers import Barriers, each, per_thread, shared_address
from tilework.oracles.emulator.rules.ld_st import space_of
from tilework.oracles.emulator.syntax import EmulatorError, Imm, Instruction, Not, Operand, Reg
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule

BULK_UNIT = 16


@rule("cp")
def cp(ins: Instruction, t: Translator) -> Op:
    kinds = ins.modifiers
    if kinds[:2] == ("reduce", "async"):
        return bulk_copy(ins, t)
    if kinds[:1] != ("async",):
        raise Unsupported(ins)
    if "bulk" in kinds:
        if kinds[2:3] in (("commit_group",), ("wait_group",)):
            return group_operation(ins, t, "bulk")
        return (lambda mask: None) if "prefetch" in kinds else bulk_copy(ins, t)
    if kinds[1:2] == ("mbarrier",):
        return arrive_after_copies(ins, t)
    if kinds[1:2] in (("commit_group",), ("wait_group",), ("wait_all",)):
        return group_operation(ins, t, "cp.async")
    return copy(ins, t)


def group_operation(ins: Instruction, t: Translator, kind: str) -> Op:
    """commit_group, wait_group[.read] N, wait_all."""
    if "commit_group" in ins.modifiers:
        return lambda mask: operations(t).commit(kind, t.active(mask))
    if "wait_all" in ins.modifiers:
        return lambda mask: operations(t).wait(kind, t.active(mask), 0, uncommitted=True)
    (left,) = ins.operands
    if not isinstance(left, Imm) or left.value < 0:
        raise Unsupported(ins, "the number of groups that may be left is a constant")
    only_read = "read" in ins.modifiers
    return lambda mask: operations(t).wait(kind, t.active(mask), left.value, only_read)


# one piece per thread


def copy(ins: Instruction, t: Translator) -> Op:
    kinds = set(ins.modifiers)
    size = ins.operands[2].value if isinstance(ins.operands[2], Imm) else 0
    if size not in ((16,) if "cg" in kinds else (4, 8, 16)) or not kinds & {"ca", "cg"} or "global" not in kinds:
        raise Unsupported(ins, f"copies of {size} bytes")
    rest = list(ins.operands[3:])
    if "L2::cache_hint" in kinds:
        rest.pop()
    to, source, lengths = t.address(ins.operands[0]), t.address(ins.operands[1]), source_lengths(ins, t, rest, size)
    shared, arena = t.port("shared"), t.port("global")

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        places, sources, bytes = to(threads), source(threads), lengths(threads)
        if (bytes > size).any():
            raise EmulatorError(f"a copy of {size} bytes that reads {int(bytes.max())}")
        shared.check(places, size, size, threads)
        for length in np.unique(bytes).tolist():
            some = slice(None) if (bytes == length).all() else bytes == length
            issue(threads[some], places[some], sources[some], length)

    def issue(threads: Array, places: Array, sources: Array, length: int) -> None:
        if length:
            arena.check(sources, length, size, threads)

        def store(which: Array, fetched: Any) -> None:
            move(ins, t, places[which], sources[which], length, threads[which], size)

        reads, writes = (Access("global", sources, length),) if length else (), (Access("shared", places, size),)
        operations(t).issue(ins, "cp.async", threads, reads, writes, store=store)

    return op


def source_lengths(ins: Instruction, t: Translator, rest: list[Operand], size: int) -> Callable[[Array], Array]:
    """How many bytes each thread reads: all, as many as it says, or none where a predicate says so."""
    if not rest:
        return lambda threads: np.full(len(threads), size, np.uint32)
    (given,) = rest
    if isinstance(given, Not) or (isinstance(given, Reg) and t.registers[given.name].dtype.kind == "b"):
        ignored = t.predicate(given)
        return lambda threads: np.where(ignored()[threads], 0, size).astype(np.uint32)
    lengths = per_thread(t, given)
    return lambda threads: lengths[threads]


def move(
    ins: Instruction, t: Translator, places: Array, sources: Array, length: int, threads: Array, size: int
) -> None:
    """`length` bytes from each source, zeros up to `size`."""
    data = np.zeros((len(threads), size // 4), np.uint32)
    if length == size:
        data = t.port("global").read(sources, np.uint32, size // 4, threads, ins, "async load", align=size)
    elif length:
        data.view(np.uint8)[:, :length] = t.port("global").read(
            sources, np.uint8, length, threads, ins, "async load", align=size
        )
    t.port("shared").write(places, data, threads, ins, "async store", align=size)


def arrive_after_copies(ins: Instruction, t: Translator) -> Op:
    """cp.async.mbarrier.arrive[.noinc]: an arrival when all copies that the thread issued before are done. Without .noinc the
    barrier expects one arrival more for it."""
    where, barriers = shared_address(t, ins.operands[0], space_of(ins)), Barriers(t, ins)

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        addresses = where(threads)
        if "noinc" not in ins.modifiers:
            for thread, address in each(threads, addresses):
                barriers.expect_more(address, thread)
        for address in np.unique(addresses).tolist():
            mine = threads[addresses == address]

            def store(which: Array, fetched: Any, mine: Array = mine, address: int = address) -> None:
                for thread in mine.tolist():
                    barriers.arrive(address, thread)

            operations(t).issue(ins, "signal", mine, barrier=address, store=store)

    return op


# rows


class Signal:
    """How a bulk copy tells that it is done: an mbarrier counts its bytes, or the thread waits for its group."""

    def __init__(self, ins: Instruction, t: Translator, operand: Operand | None) -> None:
        self.t, self.barriers = t, Barriers(t, ins)
        space = "generic" if "shared" not in " ".join(ins.modifiers) else "shared"
        self.where = shared_address(t, operand, space) if operand is not None else None

    def address(self, thread: int) -> int | None:
        return None if self.where is None else int(self.where(np.array([thread]))[0])

    def done(self, address: int | None, thread: int, size: int) -> None:
        if address is not None:
            self.barriers.transfer(address, thread, -size)


def receivers(t: Translator, mask: int | None, address: int, bell: int | None) -> list[tuple[int, int | None]]:
    """Where a copy goes and what it signals, in each block that a multicast mask names; without one in one block."""
    if mask is None or bell is None:
        return [(address, bell)]
    if not 0 < mask < 1 << t.block.blocks:
        raise EmulatorError(f"a copy for the blocks {mask:#x} of a cluster of {t.block.blocks}")
    ranks = [rank for rank in range(t.block.blocks) if mask >> rank & 1]
    return [(int(in_block(address, rank)), int(in_block(bell, rank))) for rank in ranks]


def bulk_copy(ins: Instruction, t: Translator) -> Op:
    kinds = set(ins.modifiers)
    if "cp_mask" in kinds or "ignore_oob" in kinds:
        raise Unsupported(ins, "this form needs sm_100 or newer")
    spaces = [modifier.split("::")[0] for modifier in ins.modifiers if modifier.split("::")[0] in ("shared", "global")]
    by_barrier = "mbarrier::complete_tx::bytes" in kinds
    if len(spaces) != 2 or by_barrier == ("bulk_group" in kinds) or by_barrier != (spaces[0] == "shared"):
        raise Unsupported(ins)
    to, source, sizes = t.address(ins.operands[0]), t.address(ins.operands[1]), per_thread(t, ins.operands[2])
    signal = Signal(ins, t, ins.operands[3] if by_barrier else None)
    multicast = per_thread(t, ins.operands[4], dtype=np.uint16) if "multicast::cluster" in kinds else None
    target, origin = t.port(spaces[0]), t.port(spaces[1])
    reduce = reduction(ins, t) if "reduce" in kinds else None

    def op(mask: Mask) -> None:
        for thread in t.active(mask).tolist():
            place = int(to(np.array([thread]))[0])
            wanted = None if multicast is None else int(multicast[thread])
            for address, bell in receivers(t, wanted, place, signal.address(thread)):
                issue(thread, address, bell)

    def issue(thread: int, address: int, bell: int | None) -> None:
        one, size = np.array([thread]), int(sizes[thread])
        if size % BULK_UNIT:
            raise EmulatorError(f"a bulk copy of {size} bytes, which is not a multiple of {BULK_UNIT}")
        units = np.arange(0, size, BULK_UNIT, dtype=np.uint64)
        places, sources, threads = np.uint64(address) + units, source(one) + units, np.full(len(units), thread)
        if size:
            target.check(places, BULK_UNIT, BULK_UNIT, threads)
            origin.check(sources, BULK_UNIT, BULK_UNIT, threads)

        def fetch(which: Array) -> Array:
            return origin.read(sources, np.uint64, 2, threads, ins, "async load")

        def store(which: Array, data: Array) -> None:
            if reduce is not None and size:
                data = reduce(target.read(places, np.uint64, 2, threads, ins, "async load"), data)
            target.write(places, data, threads, ins, "async store")
            signal.done(bell, thread, size)

        access = (Access(spaces[1], sources, BULK_UNIT),), (Access(spaces[0], places, BULK_UNIT),)
        operations(t).issue(ins, "bulk", one, *access, bell, fetch=fetch, store=store)

    return op


def reduction(ins: Instruction, t: Translator) -> Callable[[Array, Array], Array]:
    """From old and new bits to the bits of the result."""
    name = next((modifier for modifier in ins.modifiers if modifier in FUNCTIONS and modifier != "exch"), None)
    if name is None:
        raise Unsupported(ins)
    type = ins.modifiers[-1]
    if type == "s64" and name == "add":
        raise Unsupported(ins, "s64 is added as u64")
    return combine(name, BF16 if type == "bf16" else np.dtype(t.type_of(type, ins)))


def combine(name: str, dtype: Any) -> Callable[[Array, Array], Array]:
    """From old and new bits to the bits of the result. NaNs come out in the GPU's own form."""
    function, canonical = FUNCTIONS[name], None
    if dtype.kind not in "iu":
        function = {"min": float_min, "max": float_max}.get(name, function)
        canonical = Format.of_numbers(dtype).canonical

    def apply(old: Array, new: Array) -> Array:
        numbers = old.view(dtype), new.view(dtype)
        with np.errstate(all="ignore"):
            found = function(*numbers).astype(dtype)
        return np.ascontiguousarray(found if canonical is None else canonical(found, numbers)).view(old.dtype)

    return apply
