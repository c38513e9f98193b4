"""The copy engine: boxes of tensors between global and shared memory (TMA), and the tensor maps that describe them.

    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes  [%r1], [%rd1, {%r2, %r3}], [%r4];
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group  [%rd1, {%r2, %r3}], [%r1];

Coordinates are counted in elements, innermost first, and may lie outside of the tensor: those elements are filled on loads and left
out on stores. The innermost one must be a multiple of 16 bytes; an H200 ends a kernel with "illegal instruction" where it is not. In
shared memory the rows of the box follow each other, at the span of the swizzle if there is one, with 16-byte pieces swizzled on
absolute addresses. The mbarrier is told of the whole box. Loads of tf32 round to nearest even; .ftz types are not flushed. Tensor
maps are made by `tensor_map.encode_tensor_map`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tilework.numerics.rounding import to_tf32
from tilework.oracles.emulator.arenas import LOCAL_BASE, Array
from tilework.oracles.emulator.pending import Access, operations
from tilework.oracles.emulator.rules.async_copy import Signal, combine, receivers
from tilework.oracles.emulator.rules.atom import FUNCTIONS
from tilework.oracles.emulator.rules.barriers import per_thread
from tilework.oracles.emulator.rules.ld_st import space_of
from tilework.oracles.emulator.syntax import Address, EmulatorError, Imm, Instruction, Operand, Vector
from tilework.oracles.emulator.tensor_map import (
    FIELDS,
    NAN_HALF,
    PIECE,
    SIZE,
    TensorMap,
    TensorMapError,
    decode,
    number_type,
    replace_field,
)
from tilework.oracles.emulator.translate import WARP, Mask, Op, Translator, Unsupported, rule

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
    """``[map, {c0, c1}]``: from a thread to its tensor map, the coordinates, and where the map is read if it may change there."""
    if not isinstance(operand, Address) or len(operand.parts) != 1 or not isinstance(operand.parts[0], Vector):
        raise Unsupported(ins, "a tensor is [map, {coordinates}]")
    if len(operand.parts[0].items) != rank:
        raise Unsupported(ins, f"{rank} dimensions and {len(operand.parts[0].items)} coordinates")
    where, port = t.address(operand), t.port("generic")
    coordinates = [per_thread(t, item, dtype=np.int32) for item in operand.parts[0].items]

    def read(thread: int) -> tuple[TensorMap, list[int], tuple[Access, ...]]:
        one = np.array([thread])
        place = where(one)
        own = (Access("global", place, SIZE, is_map=True),) if int(place[0]) < LOCAL_BASE else ()
        found = decode(port.read(place, np.uint64, SIZE // 8, one, ins, "async load", align=64).tobytes())
        if found.rank != rank:
            raise TensorMapError(f"a tensor map of {found.rank} dimensions is used with {rank}")
        return found, [int(values[thread]) for values in coordinates], own

    return read


@dataclass
class Box:
    """One box, for one thread: where its rows lie in global memory and its 16-byte pieces in shared memory."""

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
        """The box from global memory, with what lies outside filled: (rows, elements)."""
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
        """The part of the box that is in the tensor, from shared memory."""
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
            for address, bell in receivers(t, wanted, int(to(one)[0]), signal.address(thread)):
                issue(Box(map, start, address, thread, ins, t), one, bell, own)

    def issue(box: Box, one: Array, bell: int | None, own: tuple[Access, ...]) -> None:
        def store(which: Array, data: Array) -> None:
            box.put(data)
            signal.done(bell, box.thread, box.map.copy_bytes)

        read, write = box.accesses()
        fetch = lambda which: box.load()  # noqa: E731
        operations(t).issue(ins, "bulk", one, (read, *own), (write,), bell, fetch=fetch, store=store)

    return op


def store(ins: Instruction, t: Translator, rank: int) -> Op:
    """A box to global memory, or combined with what is there. A reduction of f16 or bf16 works on whole pieces of 16 bytes (measured on
    an H200): it also changes what follows the end of a row whose length is not a multiple of them."""
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
        reduce = combine(name, number_type(box.map.type)) if name is not None else None
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
