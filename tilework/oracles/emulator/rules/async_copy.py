"""Asynchronous copies: cp.async of 4 to 16 bytes per thread, cp.async.bulk of whole rows, tensor copies (TMA), and
their waits.

    cp.async.cg.shared.global  [%r1], [%rd1], 16, %r2;             %r2 bytes are read, the rest is zero
    cp.async.commit_group;   cp.async.wait_group 1;                all groups of this thread but the last are complete
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes  [%r1], [%rd1], 256, [%r3];
    cp.async.bulk.global.shared::cta.bulk_group  [%rd1], [%r1], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes  [%r1], [%rd1, {%r2, %r3}], [%r4];
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group  [%rd1, {%r2, %r3}], [%r1];

Addresses are checked when a copy is issued; its bytes move when a thread waits for them (see `async_operations`).

The coordinates of a tensor copy are counted in elements, innermost first, and may be out of bounds: such elements are
filled on loads and skipped on stores. The innermost coordinate must be a multiple of 16 bytes; otherwise an H200 ends a
kernel with "illegal instruction". In shared memory the rows of the box are consecutive, at the span of the swizzle if
there is one, with 16-byte pieces swizzled on absolute addresses. The mbarrier counts the bytes of the whole box. Loads
of tf32 round to nearest even; .ftz types are not flushed. `tensor_map.encode_tensor_map` builds tensor maps.

"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.numerics.rounding import BF16, to_tf32
from tilework.oracles.emulator.async_operations import Access, operations
from tilework.oracles.emulator.memory import LOCAL_BASE, Array, in_block
from tilework.oracles.emulator.rules.floating import Format
from tilework.oracles.emulator.rules.load_store import FUNCTIONS, float_max, float_min, space_of
from tilework.oracles.emulator.rules.mbarrier import Barriers, each, per_thread, shared_address
from tilework.oracles.emulator.syntax import Address, EmulatorError, Imm, Instruction, Not, Operand, Reg, Vector
from tilework.oracles.emulator.tensor_map import (
    FIELDS,
    NAN_HALF,
    PIECE,
    SIZE,
    TensorMap,
    TensorMapError,
    decode,
    element_dtype,
    replace_field,
)
from tilework.oracles.emulator.translate import WARP, Mask, Op, Translator, Unsupported, rule

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
        targets, sources, bytes = to(threads), source(threads), lengths(threads)
        if (bytes > size).any():
            raise EmulatorError(f"a copy of {size} bytes that reads {int(bytes.max())}")
        shared.check(targets, size, size, threads)
        for length in np.unique(bytes).tolist():
            some = slice(None) if (bytes == length).all() else bytes == length
            issue(threads[some], targets[some], sources[some], length)

    def issue(threads: Array, targets: Array, sources: Array, length: int) -> None:
        if length:
            arena.check(sources, length, size, threads)

        def store(which: Array, fetched: Any) -> None:
            move(ins, t, targets[which], sources[which], length, threads[which], size)

        reads, writes = (Access("global", sources, length),) if length else (), (Access("shared", targets, size),)
        operations(t).issue(ins, "cp.async", threads, reads, writes, store=store)

    return op


def source_lengths(ins: Instruction, t: Translator, rest: list[Operand], size: int) -> Callable[[Array], Array]:
    """Return a function from threads to the bytes that each reads: all, the given count, or none if a predicate says
    so."""
    if not rest:
        return lambda threads: np.full(len(threads), size, np.uint32)
    (given,) = rest
    if isinstance(given, Not) or (isinstance(given, Reg) and t.registers[given.name].dtype.kind == "b"):
        ignored = t.predicate(given)
        return lambda threads: np.where(ignored()[threads], 0, size).astype(np.uint32)
    lengths = per_thread(t, given)
    return lambda threads: lengths[threads]


def move(
    ins: Instruction, t: Translator, targets: Array, sources: Array, length: int, threads: Array, size: int
) -> None:
    """Copy `length` bytes from each source, and zeros up to `size`."""
    data = np.zeros((len(threads), size // 4), np.uint32)
    if length == size:
        data = t.port("global").read(sources, np.uint32, size // 4, threads, ins, "async load", align=size)
    elif length:
        data.view(np.uint8)[:, :length] = t.port("global").read(
            sources, np.uint8, length, threads, ins, "async load", align=size
        )
    t.port("shared").write(targets, data, threads, ins, "async store", align=size)


def arrive_after_copies(ins: Instruction, t: Translator) -> Op:
    """cp.async.mbarrier.arrive[.noinc]: arrive when all copies that the thread has issued are complete. Without .noinc
    the barrier expects one more arrival for it."""
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
    """The completion mechanism of a bulk copy: an mbarrier counts its bytes, or the thread waits for its group."""

    def __init__(self, ins: Instruction, t: Translator, operand: Operand | None) -> None:
        self.t, self.barriers = t, Barriers(t, ins)
        space = "generic" if "shared" not in " ".join(ins.modifiers) else "shared"
        self.where = shared_address(t, operand, space) if operand is not None else None

    def address(self, thread: int) -> int | None:
        return None if self.where is None else int(self.where(np.array([thread]))[0])

    def done(self, address: int | None, thread: int, size: int) -> None:
        if address is not None:
            self.barriers.transfer(address, thread, -size)


def receivers(t: Translator, mask: int | None, address: int, mbarrier: int | None) -> list[tuple[int, int | None]]:
    """Return (address, mbarrier) of a copy in each block of a multicast mask; without a mask in one block."""
    if mask is None or mbarrier is None:
        return [(address, mbarrier)]
    if not 0 < mask < 1 << t.block.blocks:
        raise EmulatorError(f"a copy for the blocks {mask:#x} of a cluster of {t.block.blocks}")
    ranks = [rank for rank in range(t.block.blocks) if mask >> rank & 1]
    return [(int(in_block(address, rank)), int(in_block(mbarrier, rank))) for rank in ranks]


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
    target, source_port = t.port(spaces[0]), t.port(spaces[1])
    reduce = reduction(ins, t) if "reduce" in kinds else None

    def op(mask: Mask) -> None:
        for thread in t.active(mask).tolist():
            target_address = int(to(np.array([thread]))[0])
            wanted = None if multicast is None else int(multicast[thread])
            for address, mbarrier in receivers(t, wanted, target_address, signal.address(thread)):
                issue(thread, address, mbarrier)

    def issue(thread: int, address: int, mbarrier: int | None) -> None:
        one, size = np.array([thread]), int(sizes[thread])
        if size % BULK_UNIT:
            raise EmulatorError(f"a bulk copy of {size} bytes, which is not a multiple of {BULK_UNIT}")
        units = np.arange(0, size, BULK_UNIT, dtype=np.uint64)
        targets, sources, threads = np.uint64(address) + units, source(one) + units, np.full(len(units), thread)
        if size:
            target.check(targets, BULK_UNIT, BULK_UNIT, threads)
            source_port.check(sources, BULK_UNIT, BULK_UNIT, threads)

        def fetch(which: Array) -> Array:
            return source_port.read(sources, np.uint64, 2, threads, ins, "async load")

        def store(which: Array, data: Array) -> None:
            if reduce is not None and size:
                data = reduce(target.read(targets, np.uint64, 2, threads, ins, "async load"), data)
            target.write(targets, data, threads, ins, "async store")
            signal.done(mbarrier, thread, size)

        access = (Access(spaces[1], sources, BULK_UNIT),), (Access(spaces[0], targets, BULK_UNIT),)
        operations(t).issue(ins, "bulk", one, *access, mbarrier, fetch=fetch, store=store)

    return op


def reduction(ins: Instruction, t: Translator) -> Callable[[Array, Array], Array]:
    """Return a function from old and new bits to the bits of the result."""
    name = next((modifier for modifier in ins.modifiers if modifier in FUNCTIONS and modifier != "exch"), None)
    if name is None:
        raise Unsupported(ins)
    type = ins.modifiers[-1]
    if type == "s64" and name == "add":
        raise Unsupported(ins, "s64 is added as u64")
    return combine(name, BF16 if type == "bf16" else np.dtype(t.type_of(type, ins)))


def combine(name: str, dtype: Any) -> Callable[[Array, Array], Array]:
    """Return a function from old and new bits to the bits of the result. NaNs have the GPU's canonical form."""
    function, canonical = FUNCTIONS[name], None
    if dtype.kind not in "iu":
        function = {"min": float_min, "max": float_max}.get(name, function)
        canonical = Format.of_dtype(dtype).canonical

    def apply(old: Array, new: Array) -> Array:
        operands = old.view(dtype), new.view(dtype)
        with np.errstate(all="ignore"):
            found = function(*operands).astype(dtype)
        return np.ascontiguousarray(found if canonical is None else canonical(found, operands)).view(old.dtype)

    return apply


ALIGNMENT = 128  # of a box in shared memory


@rule("cp.tensor")
def tensor_copy(ins: Instruction, t: Translator) -> Op:
    kinds = set(ins.modifiers)
    if any("gather4" in kind or "scatter4" in kind for kind in kinds):
        raise Unsupported(ins, "this form needs sm_100 or newer")
    if any("im2col" in kind for kind in kinds):
        raise Unsupported(ins, "only tiles are copied, not im2col")
    rank = next((int(kind[0]) for kind in ins.modifiers if kind in ("1d", "2d", "3d", "4d", "5d")), 0)
    if not rank:
        raise Unsupported(ins, "it names no number of dimensions")
    if "prefetch" in kinds:
        source = tensor_operand(ins, t, ins.operands[0], rank)
        return lambda mask: [source(thread) for thread in t.active(mask).tolist()] and None
    if "mbarrier::complete_tx::bytes" in kinds:
        return load(ins, t, rank)
    if "bulk_group" in kinds:
        return store(ins, t, rank)
    raise Unsupported(ins)


def tensor_operand(
    ins: Instruction, t: Translator, operand: Operand, rank: int
) -> Callable[[int], tuple[TensorMap, list[int], tuple[Access, ...]]]:
    """``[map, {c0, c1}]``: return a function from a thread to its tensor map, the coordinates, and the access that
    reads the map if it may change."""
    if not isinstance(operand, Address) or len(operand.parts) != 1 or not isinstance(operand.parts[0], Vector):
        raise Unsupported(ins, "a tensor is [map, {coordinates}]")
    if len(operand.parts[0].items) != rank:
        raise Unsupported(ins, f"{rank} dimensions and {len(operand.parts[0].items)} coordinates")
    where, port = t.address(operand), t.port("generic")
    coordinates = [per_thread(t, item, dtype=np.int32) for item in operand.parts[0].items]

    def read(thread: int) -> tuple[TensorMap, list[int], tuple[Access, ...]]:
        one = np.array([thread])
        address = where(one)
        own = (Access("global", address, SIZE, is_map=True),) if int(address[0]) < LOCAL_BASE else ()
        found = decode(port.read(address, np.uint64, SIZE // 8, one, ins, "async load", align=64).tobytes())
        if found.rank != rank:
            raise TensorMapError(f"a tensor map of {found.rank} dimensions is used with {rank}")
        return found, [int(values[thread]) for values in coordinates], own

    return read


@dataclass
class Box:
    """One box of one thread: its rows in global memory and its 16-byte pieces in shared memory."""

    map: TensorMap
    start: Sequence[int]
    shared: int
    thread: int
    ins: Instruction
    t: Translator
    by_pieces: bool = False

    def __post_init__(self) -> None:
        if self.shared % ALIGNMENT:
            raise EmulatorError(f"a box at shared address {self.shared:#x}, which is not a multiple of {ALIGNMENT}")
        if self.start[0] * self.map.width % PIECE:
            what = f"{self.start[0]} elements of {self.map.width} bytes are not a multiple of {PIECE} bytes"
            raise EmulatorError(f"a box at coordinate {self.start[0]} of the first dimension: {what}")
        addresses, inside = self.map.rows(self.start)
        self.columns = self.map.columns(self.start[0], PIECE // self.map.width if self.by_pieces else 1)
        self.used = np.flatnonzero(inside) if self.columns.stop > self.columns.start else np.zeros(0, np.int64)
        self.rows = addresses[self.used] + np.uint64(self.columns.start * self.map.width)
        self.length = self.columns.stop - self.columns.start
        self.pieces = self.map.pieces(self.shared)
        self.by_row, self.by_piece = np.full(len(self.rows), self.thread), np.full(len(self.pieces), self.thread)
        self.bits = np.dtype(f"u{self.map.width}")
        if len(self.rows):
            self.t.port("global").check(self.rows, self.length * self.map.width, self.map.width, self.by_row)
        self.t.port("shared").check(self.pieces, PIECE, PIECE, self.by_piece)

    def accesses(self) -> tuple[Access, Access]:
        """(in global, in shared memory)."""
        return Access("global", self.rows, self.length * self.map.width), Access("shared", self.pieces, PIECE)

    def read_rows(self) -> Array:
        return self.t.port("global").read(
            self.rows, self.bits, self.length, self.by_row, self.ins, "async load", align=self.map.width
        )

    def load(self) -> Array:
        """Return the box from global memory, with elements out of bounds filled: (rows, elements)."""
        box = np.zeros((int(np.prod(self.map.counts[1:])), self.map.box[0]), self.bits)
        if self.map.fill == "nan":
            box.view(np.uint16)[:] = NAN_HALF
        if len(self.rows):
            rows = self.read_rows()
            box[self.used, self.columns] = to_tf32(rows, "rn") if self.map.type.startswith("tf32") else rows
        return box

    def put(self, box: Array) -> None:
        self.t.port("shared").write(
            self.pieces, box.reshape(-1).view(np.uint64).reshape(-1, 2), self.by_piece, self.ins, "async store"
        )

    def take(self) -> Array:
        """Return the part of the box that is in the tensor, from shared memory."""
        data = self.t.port("shared").read(self.pieces, np.uint64, 2, self.by_piece, self.ins, "async load")
        return data.view(self.bits).reshape(-1, self.map.box[0])[self.used, self.columns]

    def store(self, rows: Array, reduce: Callable[[Array, Array], Array] | None) -> None:
        if not len(self.rows):
            return
        if reduce is not None:
            rows = reduce(self.read_rows(), np.ascontiguousarray(rows))
        self.t.port("global").write(self.rows, rows, self.by_row, self.ins, "async store", align=self.map.width)


def load(ins: Instruction, t: Translator, rank: int) -> Op:
    to, source = t.address(ins.operands[0]), tensor_operand(ins, t, ins.operands[1], rank)
    signal = Signal(ins, t, ins.operands[2])
    multicast = per_thread(t, ins.operands[3], dtype=np.uint16) if "multicast::cluster" in ins.modifiers else None

    def op(mask: Mask) -> None:
        for thread in t.active(mask).tolist():
            one, wanted = np.array([thread]), None if multicast is None else int(multicast[thread])
            map, start, own = source(thread)
            for address, mbarrier in receivers(t, wanted, int(to(one)[0]), signal.address(thread)):
                issue(Box(map, start, address, thread, ins, t), one, mbarrier, own)

    def issue(box: Box, one: Array, mbarrier: int | None, own: tuple[Access, ...]) -> None:
        def store(which: Array, data: Array) -> None:
            box.put(data)
            signal.done(mbarrier, box.thread, box.map.copy_bytes)

        read, write = box.accesses()
        fetch = lambda which: box.load()  # noqa: E731
        operations(t).issue(ins, "bulk", one, (read, *own), (write,), mbarrier, fetch=fetch, store=store)

    return op


def store(ins: Instruction, t: Translator, rank: int) -> Op:
    """Store a box to global memory, or combine it with the contents. A reduction of f16 or bf16 works on whole pieces
    of 16 bytes (measured on an H200): it also changes what follows the end of a row whose length is not a multiple of
    16 bytes."""
    target, source = tensor_operand(ins, t, ins.operands[0], rank), t.address(ins.operands[1])
    name = next((kind for kind in ins.modifiers if kind in FUNCTIONS and kind != "exch"), None)
    if ("reduce" in ins.modifiers) != (name is not None):
        raise Unsupported(ins)

    def op(mask: Mask) -> None:
        for thread in t.active(mask).tolist():
            one = np.array([thread])
            map, start, own = target(thread)
            by_pieces = name is not None and map.type in ("f16", "bf16")
            issue(Box(map, start, int(source(one)[0]), thread, ins, t, by_pieces), one, own)

    def issue(box: Box, one: Array, own: tuple[Access, ...]) -> None:
        reduce = combine(name, element_dtype(box.map.type)) if name is not None else None
        write, read = box.accesses()
        move = lambda which, rows: box.store(rows, reduce)  # noqa: E731
        fetch = lambda which: box.take()  # noqa: E731
        operations(t).issue(ins, "bulk", one, (read, *own), (write,), fetch=fetch, store=move)

    return op


@rule("tensormap.replace")
def replace(ins: Instruction, t: Translator) -> Op:
    """``tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 0, 64``."""
    field = next((modifier for modifier in ins.modifiers if modifier in FIELDS), None)
    if field is None or "tile" not in ins.modifiers:
        raise Unsupported(ins)
    where, port = t.address(ins.operands[0]), t.port(space_of(ins))
    ordinal = ins.operands[1].value if len(ins.operands) == 3 and isinstance(ins.operands[1], Imm) else 0
    values = per_thread(t, ins.operands[-1], dtype=np.dtype(np.uint64 if ins.modifiers[-1] == "b64" else np.uint32))

    def op(mask: Mask) -> None:
        for thread in t.active(mask).tolist():
            one = np.array([thread])
            old = port.read(where(one), np.uint64, SIZE // 8, one, ins, align=64).tobytes()
            value = int(values[thread]) % (1 << 8 * values.dtype.itemsize)
            new = np.frombuffer(replace_field(old, field, value, ordinal), np.uint64)
            port.write(where(one), new[None], one, ins, align=64)

    return op


@rule("tensormap.cp_fenceproxy")
def copy_map(ins: Instruction, t: Translator) -> Op:
    """tensormap.cp_fenceproxy: a warp copies a tensor map from shared to global memory, where copies can use it."""
    to, source = t.address(ins.operands[0]), t.address(ins.operands[1])
    if not isinstance(ins.operands[2], Imm) or ins.operands[2].value != SIZE:
        raise Unsupported(ins, f"a tensor map has {SIZE} bytes")

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        leaders = threads[np.unique(threads // WARP, return_index=True)[1]]
        data = t.port("shared").read(source(leaders), np.uint64, SIZE // 8, leaders, ins)
        t.port("global").write(to(leaders), data, leaders, ins)

    return op
