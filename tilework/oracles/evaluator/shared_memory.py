"""The shared memory of one program: bytes, and for each byte the flags that make an access to it an error.

A memory descriptor is a `MemView`: a buffer, and for each element its byte offset, as its encoding says. Views (index,
subslice, trans, reshape) rearrange these offsets, so all of them see each other's writes.

    ttg.local_alloc           before allocation: a new buffer each time; with `allocation.offset`: that part of the one
                              array that all share, so that buffers with the same bytes collide
    ttg.local_store           a write, at once
    ttg.async_copy..., TMA    *coming*: reading or writing these bytes is a fault until a wait has completed the copy
    wgmma, TMA stores         *held*: writing these bytes is a fault until a wait has completed the reader
    ttg.warp_specialize       an mbarrier must order accesses of different regions (`RegionOrder`)

Two more checks hold only for finished code, and are optional: `barriers` (bytes that one thread wrote or read must not
be accessed by another before a barrier) and `fences` (what threads wrote is fenced before tensor cores or TMA read it).
Uninitialised memory has all bits set: NaN, or -1.

Only mbarriers order the regions of a `ttg.warp_specialize`. A region counts its arrivals: everything it did so far
belongs to the step that the next arrival ends. A barrier joins the clocks of the regions that arrive, and passes them
to the regions that wait for the end of the phase; its own step, the phase, orders the copies that it counted:

    producer   writes m (producer, 1)    arrive b: b knows {producer: 1}    writes n (producer, 2)
    consumer   wait b: knows {producer: 1}        reads m        reads n: a fault, (producer, 2) is not known

A region may read bytes whose write it knows, and write bytes whose reads and writes it knows.

Ops that exchange elements through scratch memory overwrite it, so a buffer that is still needed and was given the same
bytes is destroyed, as on the GPU. All of them have barriers inside, except conversions within a warp.

"""

from collections.abc import Callable, Iterable
from copy import copy as shallow_copy
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

from tilework.ir import tt, ttg
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.locations import location_text
from tilework.ir.ttg.memory_types import MemDescType
from tilework.ir.types import bit_width, i8, shape_of
from tilework.layouts.conversion import conversion, scratch_bytes
from tilework.layouts.encodings import Shared
from tilework.layouts.to_linear import to_linear
from tilework.numerics.rounding import UNSIGNED, Array
from tilework.oracles.evaluator.values import BOOL, Fault, Rule, memory_bytes, storage

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

Clocks = dict[object, int]  # by region or barrier


def learn(known: Clocks, other: Clocks) -> None:
    for owner, step in other.items():
        known[owner] = max(known.get(owner, 0), step)


class RegionOrder:
    """The last write and the last reads of each byte, as indices into `events`."""

    def __init__(self) -> None:
        self.events: list[tuple[object, int]] = [(None, 0)]
        self.names: dict[object, str] = {}
        self.written: dict[object, Array] = {}  # by buffer
        self.read: dict[tuple[object, object], Array] = {}  # by buffer and region

    def note_write(self, view: Any, owner: object, step: int) -> None:
        self.note(self.written, view.buffer, view, owner, step)

    def note_read(self, view: Any, owner: object, step: int) -> None:
        self.note(self.read, (view.buffer, owner), view, owner, step)

    def note(self, table: dict[Any, Array], key: Any, view: Any, owner: object, step: int) -> None:
        if (found := table.get(key)) is None:
            found = table[key] = np.zeros(len(view.buffer.data), np.int32)
        if self.events[-1] != (owner, step):
            self.events.append((owner, step))
        found[view.offsets] = len(self.events) - 1

    def check_read(self, view: Any, known: Clocks) -> None:
        if (table := self.written.get(view.buffer)) is not None:
            self.check(table, view, known, "reads shared memory that {} wrote")

    def check_write(self, view: Any, known: Clocks) -> None:
        if (table := self.written.get(view.buffer)) is not None:
            self.check(table, view, known, "writes shared memory that {} wrote")
        for (buffer, _), table in self.read.items():
            if buffer is view.buffer:
                self.check(table, view, known, "writes shared memory that {} read")

    def check(self, table: Array, view: Any, known: Clocks, message: str) -> None:
        for event in np.unique(table[view.offsets]).tolist():
            owner, count = self.events[event]
            if known.get(owner, 0) < count:
                name = self.names.get(owner, "a copy")
                raise Fault(f"{message.format(name)}, and no wait for an mbarrier orders the two")


GARBAGE = 0xFF
COMING, HELD, READ, WRITTEN, UNFENCED = 1, 2, 4, 8, 16
REPEATED = {size: int.from_bytes(b"\1" * size, "little") for size in UNSIGNED}


class Buffer:
    """Bytes and their flags."""

    def __init__(self, size: int) -> None:
        size = -(-max(size, 1) // 8) * 8
        self.data = np.full(size, GARBAGE, np.uint8)
        self.flags = np.zeros(size, np.uint8)


@dataclass(frozen=True, eq=False)
class MemView:
    """A memory descriptor: the byte offset of each element in `buffer`."""

    buffer: Buffer
    offsets: Array
    element: Attribute

    def viewed(self, offsets: Array) -> "MemView":
        """Return the same memory with the elements in another arrangement."""
        return MemView(self.buffer, offsets, self.element)

    @property
    def element_indices(self) -> Array:
        """The offsets counted in elements."""
        return self.offsets // memory_bytes(self.element)


@lru_cache(maxsize=1024)
def layout_offsets(type: MemDescType) -> tuple[Array, Array, int]:
    """Return for each element of a whole buffer its byte offset in a block, the block, and the bytes of one block."""
    encoding, size = encoding_of(type), memory_bytes(type.element_type)
    assert isinstance(encoding, Shared), type
    shape = type.dims[len(type.dims) - encoding.rank :]
    layout = to_linear(encoding, shape)
    inverse = layout.pseudoinvert()
    offset, block = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for axis, extent in enumerate(shape):
        index = np.arange(extent).reshape([-1 if dim == axis else 1 for dim in range(len(shape))])
        for bit in range(extent.bit_length() - 1):
            basis = dict(zip(inverse.out_names, inverse.basis(f"dim{axis}", bit), strict=True))
            is_set = (index >> bit) & 1
            offset = offset ^ (is_set * basis["offset"])
            block = block ^ (is_set * basis.get("block", 0))
    span = layout.in_size("offset")
    count = prod(type.dims[: len(type.dims) - encoding.rank])
    if len(type.dims) > encoding.rank:
        offset = offset[None] + np.arange(count).reshape(-1, *[1] * len(shape)) * span
        block = np.broadcast_to(block[None], offset.shape)
    return offset * size, block, count * span * size


@dataclass(eq=False)
class Copy:
    """A copy into shared memory in flight, and the op that started it."""

    target: MemView
    values: Array
    op: Operation
    by_threads: bool


@dataclass(eq=False)
class Reader:
    """An asynchronous op that still reads shared memory."""

    sources: list[MemView]
    op: Operation


@dataclass(eq=False)
class SharedMemory:
    """The shared memory of the running program; `size` is that of one block, None before allocation."""

    size: int | None = None
    blocks: int = 1
    barriers: bool = False
    fences: bool = False
    frame: int = 0  # offset of the buffers of the running function
    coming: list[Copy] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    touched: dict[Buffer, Array] = field(default_factory=dict)  # READ and WRITTEN, since these warps' last barrier
    order: RegionOrder | None = None  # set while other warps run other code
    known: Clocks = field(default_factory=dict)  # steps of other regions that happen before
    unfenced: set[Buffer] = field(default_factory=set)  # written by threads since the last fence

    def __post_init__(self) -> None:
        self.arena = None if self.size is None else Buffer(self.size * self.blocks)

    def begin_region(self, order: RegionOrder, name: str) -> None:
        """Begin code that runs beside that of other warps."""
        self.order, self.known = order, {None: 0, self: 1}
        order.names[self] = name

    def of_other_warps(self, order: RegionOrder, name: str) -> "SharedMemory":
        """Return the same memory as seen by warps that have barriers of their own."""
        found = shallow_copy(self)
        found.touched = {}
        found.begin_region(order, name)
        return found

    def publish(self, clocks: Clocks) -> None:
        """Arrive: add the clocks of these warps to `clocks`, and begin a new step."""
        if self.order is not None:
            learn(clocks, self.known)
            self.known[self] += 1

    def allocate(self, type: MemDescType, offset: int | None) -> MemView:
        """Return new memory; at `offset` of the block if one was assigned."""
        offsets, block, span = layout_offsets(type)
        if offset is None or self.arena is None or self.size is None:
            return MemView(Buffer(span * self.blocks), offsets + block * span, type.element_type)
        start = offset + self.frame
        if start + span > self.size:
            raise Fault(f"has bytes {start} to {start + span} of shared memory, of which there are {self.size}")
        return MemView(self.arena, offsets + block * self.size + start, type.element_type)

    def read(self, view: MemView, asynchronous: bool = False) -> Array:
        """Return the elements of `view`."""
        found = self.flagged(view)
        if found & COMING:
            raise Fault(f"reads shared memory that {self.culprit(view)} has not finished writing: a wait is missing")
        if self.barriers and found & WRITTEN:
            raise Fault("reads shared memory that other threads wrote since the last barrier: a barrier is missing")
        if self.fences and asynchronous and found & UNFENCED:
            raise Fault("reads shared memory that threads wrote, and no ttng.fence_async_shared came between")
        if self.barriers:
            self.mark(view, READ)
        if self.order is not None:
            self.order.check_read(view, self.known)
            self.order.note_read(view, self, self.known[self])
        dtype, size = storage(view.element), memory_bytes(view.element)
        bits = view.buffer.data.view(UNSIGNED[size])[view.element_indices]
        return bits != 0 if dtype == BOOL else bits.view(dtype)

    def write(self, view: MemView, values: Array) -> None:
        """Store `values` by threads."""
        self.check_write(view)
        self.put(view, values)
        if self.order is not None:
            self.order.note_write(view, self, self.known[self])
        if self.barriers:
            self.mark(view, WRITTEN)
        if self.fences:
            self.mark(view, UNFENCED)

    def put(self, view: MemView, values: Array) -> None:
        """Change the bytes without any check."""
        size = memory_bytes(view.element)
        values = np.ascontiguousarray(np.broadcast_to(values, view.offsets.shape))
        view.buffer.data.view(UNSIGNED[size])[view.element_indices] = values.view(UNSIGNED[size])

    def check_write(self, view: MemView) -> None:
        found = self.flagged(view)
        if found & COMING:
            raise Fault(f"writes shared memory that {self.culprit(view)} has not finished writing: a wait is missing")
        if found & HELD:
            raise Fault(f"writes shared memory that {self.holder(view)} still reads: a wait is missing")
        if self.barriers and found & (READ | WRITTEN):
            verb = "read" if found & READ else "wrote"
            raise Fault(f"writes shared memory that other threads {verb} since the last barrier: a barrier is missing")
        if self.order is not None:
            self.order.check_write(view, self.known)

    def start(self, view: MemView, values: Array, op: Operation, by_threads: bool) -> Copy:
        """Begin to copy `values`: the memory is undefined until `finish`."""
        self.check_write(view)
        copy = Copy(view, values, op, by_threads)
        self.coming.append(copy)
        self.put(
            view, np.full(memory_bytes(view.element), GARBAGE, np.uint8).view(UNSIGNED[memory_bytes(view.element)])
        )
        self.mark(view, COMING)
        return copy

    def finish(self, copies: Iterable[Copy], phase: tuple[object, int] | None = None) -> None:
        """Complete copies, so that their data may be read; copies by threads need a barrier before other threads read.

        `phase` is the mbarrier that counted them, with the index of the next phase.
        """
        for copy in copies:
            if copy in self.coming:
                self.coming.remove(copy)
                self.unmark(copy.target, COMING | UNFENCED)
                self.put(copy.target, copy.values)
                if phase is None and copy.by_threads and self.barriers:
                    self.mark(copy.target, WRITTEN)
                if self.order is not None:
                    self.order.note_write(copy.target, *(phase or (self, self.known[self])))

    def hold(self, sources: list[MemView], op: Operation) -> Reader:
        """Record that `op` reads `sources` asynchronously until `release`."""
        reader = Reader(sources, op)
        self.readers.append(reader)
        for view in sources:
            self.mark(view, HELD)
        return reader

    def release(self, readers: Iterable[Reader], by_warps: bool = False) -> None:
        """Complete readers. With `by_warps` each warp waited for its own part only: others may still read until the
        next barrier."""
        done = list(readers)
        self.readers[:] = [reader for reader in self.readers if reader not in done]
        for reader in done:
            for view in reader.sources:
                self.unmark(view, HELD)
                if by_warps and self.barriers:
                    self.mark(view, READ)
                if self.order is not None:
                    self.order.note_read(view, self, self.known[self])
        for reader in self.readers if done else ():
            for view in reader.sources:
                self.mark(view, HELD)

    def barrier(self) -> None:
        """Order all accesses before the barrier, at which all threads have arrived."""
        self.touched.clear()

    def fence(self) -> None:
        """Make what threads wrote visible to tensor cores and TMA."""
        for buffer in self.unfenced:
            buffer.flags &= np.uint8(0xFF & ~UNFENCED)
        self.unfenced.clear()

    def scratch(self, offset: int, size: int, is_synchronising: bool) -> None:
        """Let an op use `size` bytes as scratch memory, which destroys them. Most of these ops have barriers inside."""
        if self.arena is None or self.size is None or size == 0:
            return
        start = offset + self.frame
        if start + size > self.size:
            raise Fault(f"uses bytes {start} to {start + size} of shared memory, of which there are {self.size}")
        for block in range(self.blocks):
            view = MemView(self.arena, np.arange(size) + start + block * self.size, i8)
            self.check_write(view)
            self.put(view, np.full(size, GARBAGE, np.uint8))
        if is_synchronising:
            self.barrier()
        for block in range(self.blocks if self.barriers else 0):
            self.mark(MemView(self.arena, np.arange(size) + start + block * self.size, i8), READ)

    def flagged(self, view: MemView) -> int:
        """Return the union of the flags of the bytes of `view`."""
        if view.offsets.size and int(view.offsets.min()) < 0:
            raise Fault("uses a buffer whose index is out of range")
        found, size = 0, memory_bytes(view.element)
        for flags in (view.buffer.flags, self.touched.get(view.buffer)):
            if flags is not None and flags.any():
                found |= int(np.bitwise_or.reduce(flags.view(UNSIGNED[size])[view.element_indices], axis=None))
        return int(np.bitwise_or.reduce(np.frombuffer(found.to_bytes(size, "little"), np.uint8)))

    def mark(self, view: MemView, flag: int) -> None:
        size, flags = memory_bytes(view.element), view.buffer.flags
        if flag & (READ | WRITTEN) and (flags := self.touched.get(view.buffer)) is None:
            flags = self.touched[view.buffer] = np.zeros_like(view.buffer.flags)
        flags.view(UNSIGNED[size])[view.element_indices] |= UNSIGNED[size].type(REPEATED[size] * flag)
        if flag & UNFENCED:
            self.unfenced.add(view.buffer)

    def unmark(self, view: MemView, flag: int) -> None:
        size = memory_bytes(view.element)
        view.buffer.flags.view(UNSIGNED[size])[view.element_indices] &= UNSIGNED[size].type(
            REPEATED[size] * (0xFF & ~flag)
        )

    def culprit(self, view: MemView) -> str:
        """Describe the copy in flight to `view`."""
        return next((described(copy.op) for copy in self.coming if overlap(copy.target, view)), "a copy")

    def holder(self, view: MemView) -> str:
        """Describe the op that still reads `view`."""
        found = (r for r in self.readers if any(overlap(source, view) for source in r.sources))
        return next((described(reader.op) for reader in found), "an asynchronous op")


def assigned_offset(op: Operation) -> int | None:
    """Return the offset of the bytes that allocation gave `op`, if it ran."""
    attribute = op.attributes.get("allocation.offset")
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def overlap(a: MemView, b: MemView) -> bool:
    """Return True if two views share an element."""
    return a.buffer is b.buffer and bool(np.isin(a.offsets, b.offsets).any())


def described(op: Operation) -> str:
    """Describe an op in a message: its name and its line."""
    location = location_text(op.location, innermost=True)
    return f"{op.name} of {location}" if location else op.name


OWN_MEMORY = (ttg.LocalAllocOp, tt.CallOp, tt.FuncOp)  # their offsets are those of buffers


def uses_scratch(op: Operation) -> bool:
    """Return True if `op` was given scratch memory."""
    return assigned_offset(op) is not None and not isinstance(op, OWN_MEMORY)


def with_scratch(rule: Rule) -> Callable[..., Any]:
    """Return `rule` for an op that writes to its scratch memory."""

    def run(machine: "Machine", op: Operation, *operands: Any) -> Any:
        offset = assigned_offset(op)
        assert offset is not None
        machine.shared.scratch(offset, scratch_size(op), not is_within_warps(op))
        return rule(machine, op, *operands)

    return run


def scratch_size(op: Operation) -> int:
    """Return a lower bound of the bytes that `op` uses."""
    if type(op) is ttg.ConvertLayoutOp:
        return scratch_bytes(
            layout_of(op.operands[0].type), layout_of(op.results[0].type), bit_width(op.operands[0].type)
        )
    if type(op) is tt.ReduceOp:
        return reduce_size(op)
    return sum(memory_bytes(value.type) for value in (*op.operands[:1], *op.results[:1]) if shape_of(value.type))


def reduce_size(op: Operation) -> int:
    """Return the bytes of one partial result for each warp along the axis."""
    attribute = op.properties["axis"]
    assert isinstance(attribute, IntegerAttr)
    source, axis = op.operands[0].type, attribute.value.data
    warps = dict(layout_of(source).bases)["warp"]
    count = 1 << sum(vector[axis] != 0 for vector in warps)
    shape = [count if dim == axis else size for dim, size in enumerate(shape_of(source))]
    blocks = 1 << sum(any(vector) for vector in dict(layout_of(source).bases)["block"])
    return 0 if count == 1 else prod(shape) // blocks * sum(memory_bytes(operand.type) for operand in op.operands)


def is_within_warps(op: Operation) -> bool:
    """Return True if no warp reads what another one wrote."""
    if type(op) is not ttg.ConvertLayoutOp:
        return False
    return conversion(layout_of(op.operands[0].type), layout_of(op.results[0].type)).kind == "warp"
