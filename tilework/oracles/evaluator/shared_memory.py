"""The shared memory of one program: bytes, and for each byte what would make touching it a mistake.

A memory descriptor is a `MemView`: a buffer, and for each element the byte at which it lies, as its encoding says. Views
(index, subslice, trans, reshape) rearrange these places, so all of them see each other's writes.

    ttg.local_alloc           before allocation: a buffer of its own each time; with `allocation.offset`: that part of the
                              one array that all share, so that buffers which were given the same bytes by mistake collide
    ttg.local_store           a write, at once
    ttg.async_copy..., TMA    *coming*: reading or writing these bytes is a fault until the copy is waited for
    wgmma, TMA stores         *held*: writing these bytes is a fault until the reader is waited for
    ttg.warp_specialize       what another region wrote or read must be known from an mbarrier (`region_order.py`)

Two more checks hold only for finished code, and are asked for: `barriers` (bytes that one thread wrote or read must not be
touched by another before a barrier) and `fences` (what threads wrote is fenced before tensor cores or TMA read it).
Memory that nobody wrote reads as garbage, all bits set: NaN, or -1.
"""

from collections.abc import Iterable
from copy import copy as shallow_copy
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation

from tilework.ir.encodings import encoding_of
from tilework.ir.locations import location_text
from tilework.ir.ttg.memdesc_types import MemDescType
from tilework.ir.types import i8
from tilework.layouts.encodings import Shared
from tilework.layouts.to_linear import to_linear
from tilework.numerics.rounding import UNSIGNED, Array
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import BOOL, memory_bytes, storage
from tilework.oracles.evaluator.region_order import Clocks, RegionOrder, learn

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
    """A memory descriptor: the byte of each element in `buffer`."""

    buffer: Buffer
    places: Array
    element: Attribute

    def viewed(self, places: Array) -> "MemView":
        """The same memory, elements in another arrangement."""
        return MemView(self.buffer, places, self.element)

    @property
    def words(self) -> Array:
        """The places counted in elements."""
        return self.places // memory_bytes(self.element)


@lru_cache(maxsize=1024)
def layout_places(type: MemDescType) -> tuple[Array, Array, int]:
    """Where each element of a whole buffer lies: its byte in a block, the block, and the bytes of one block."""
    encoding, size = encoding_of(type), memory_bytes(type.element_type)
    assert isinstance(encoding, Shared), type
    shape = type.dims[len(type.dims) - encoding.rank :]
    layout = to_linear(encoding, shape)
    inverse = layout.pseudoinvert()
    offset, block = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for axis, extent in enumerate(shape):
        index = np.arange(extent).reshape([-1 if dim == axis else 1 for dim in range(len(shape))])
        for bit in range(extent.bit_length() - 1):
            image = dict(zip(inverse.out_names, inverse.basis(f"dim{axis}", bit), strict=True))
            is_set = (index >> bit) & 1
            offset = offset ^ (is_set * image["offset"])
            block = block ^ (is_set * image.get("block", 0))
    span = layout.in_size("offset")
    count = prod(type.dims[: len(type.dims) - encoding.rank])
    if len(type.dims) > encoding.rank:
        offset = offset[None] + np.arange(count).reshape(-1, *[1] * len(shape)) * span
        block = np.broadcast_to(block[None], offset.shape)
    return offset * size, block, count * span * size


@dataclass(eq=False)
class Copy:
    """A copy into shared memory that is under way, and the op that started it."""

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
    frame: int = 0  # where the buffers of the running function begin
    coming: list[Copy] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    touched: dict[Buffer, Array] = field(default_factory=dict)  # READ and WRITTEN, since these warps' last barrier
    order: RegionOrder | None = None  # where other warps run other code
    known: Clocks = field(default_factory=dict)  # of what those did
    unfenced: set[Buffer] = field(default_factory=set)  # written by threads since the last fence

    def __post_init__(self) -> None:
        self.arena = None if self.size is None else Buffer(self.size * self.blocks)

    def begin_region(self, order: RegionOrder, name: str) -> None:
        """Other warps run other code from here on."""
        self.order, self.known = order, {None: 0, self: 1}
        order.names[self] = name

    def of_other_warps(self, order: RegionOrder, name: str) -> "SharedMemory":
        """The same memory, as warps see it that have barriers of their own."""
        found = shallow_copy(self)
        found.touched = {}
        found.begin_region(order, name)
        return found

    def tell(self, told: Clocks) -> None:
        """Arrive: those who wait know what these warps did and knew so far."""
        if self.order is not None:
            learn(told, self.known)
            self.known[self] += 1

    def allocate(self, type: MemDescType, offset: int | None) -> MemView:
        """New memory; at `offset` of the block where one was assigned."""
        places, block, span = layout_places(type)
        if offset is None or self.arena is None or self.size is None:
            return MemView(Buffer(span * self.blocks), places + block * span, type.element_type)
        start = offset + self.frame
        if start + span > self.size:
            raise Fault(f"has bytes {start} to {start + span} of shared memory, of which there are {self.size}")
        return MemView(self.arena, places + block * self.size + start, type.element_type)

    def read(self, view: MemView, asynchronous: bool = False) -> Array:
        """The elements of `view`."""
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
        words = view.buffer.data.view(UNSIGNED[size])[view.words]
        return words != 0 if dtype == BOOL else words.view(dtype)

    def write(self, view: MemView, values: Array) -> None:
        """Threads store `values`."""
        self.check_write(view)
        self.put(view, values)
        if self.order is not None:
            self.order.note_write(view, self, self.known[self])
        if self.barriers:
            self.mark(view, WRITTEN)
        if self.fences:
            self.mark(view, UNFENCED)

    def put(self, view: MemView, values: Array) -> None:
        """Change the bytes, and check nothing."""
        size = memory_bytes(view.element)
        values = np.ascontiguousarray(np.broadcast_to(values, view.places.shape))
        view.buffer.data.view(UNSIGNED[size])[view.words] = values.view(UNSIGNED[size])

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
        """Begin to copy `values`: the memory is worth nothing until `finish`."""
        self.check_write(view)
        copy = Copy(view, values, op, by_threads)
        self.coming.append(copy)
        self.put(
            view, np.full(memory_bytes(view.element), GARBAGE, np.uint8).view(UNSIGNED[memory_bytes(view.element)])
        )
        self.mark(view, COMING)
        return copy

    def finish(self, copies: Iterable[Copy], phase: tuple[object, int] | None = None) -> None:
        """The copies are done, and their data may be read; what threads copied and waited for, by others after a barrier.

        `phase` is the mbarrier that counted them, with the number of the phase behind.
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
        """`op` reads `sources` in the background until `release`."""
        reader = Reader(sources, op)
        self.readers.append(reader)
        for view in sources:
            self.mark(view, HELD)
        return reader

    def release(self, readers: Iterable[Reader], by_warps: bool = False) -> None:
        """The readers are done. With `by_warps` each warp waited for its own part only: others may read on until the next barrier."""
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
        """All threads have come here."""
        self.touched.clear()

    def fence(self) -> None:
        """What threads wrote is seen by tensor cores and TMA."""
        for buffer in self.unfenced:
            buffer.flags &= np.uint8(0xFF & ~UNFENCED)
        self.unfenced.clear()

    def scratch(self, offset: int, size: int, is_synchronising: bool) -> None:
        """An op uses `size` bytes for itself; what was there is lost. Most of these have barriers inside."""
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
        """The flags that any byte of `view` has."""
        if view.places.size and int(view.places.min()) < 0:
            raise Fault("uses a buffer whose number is out of range")
        found, size = 0, memory_bytes(view.element)
        for flags in (view.buffer.flags, self.touched.get(view.buffer)):
            if flags is not None and flags.any():
                found |= int(np.bitwise_or.reduce(flags.view(UNSIGNED[size])[view.words], axis=None))
        return int(np.bitwise_or.reduce(np.frombuffer(found.to_bytes(size, "little"), np.uint8)))

    def mark(self, view: MemView, flag: int) -> None:
        size, flags = memory_bytes(view.element), view.buffer.flags
        if flag & (READ | WRITTEN) and (flags := self.touched.get(view.buffer)) is None:
            flags = self.touched[view.buffer] = np.zeros_like(view.buffer.flags)
        flags.view(UNSIGNED[size])[view.words] |= UNSIGNED[size].type(REPEATED[size] * flag)
        if flag & UNFENCED:
            self.unfenced.add(view.buffer)

    def unmark(self, view: MemView, flag: int) -> None:
        size = memory_bytes(view.element)
        view.buffer.flags.view(UNSIGNED[size])[view.words] &= UNSIGNED[size].type(REPEATED[size] * (0xFF & ~flag))

    def culprit(self, view: MemView) -> str:
        """The copy that is on its way to `view`."""
        return next((described(copy.op) for copy in self.coming if overlap(copy.target, view)), "a copy")

    def holder(self, view: MemView) -> str:
        """The op that still reads `view`."""
        found = (r for r in self.readers if any(overlap(source, view) for source in r.sources))
        return next((described(reader.op) for reader in found), "an asynchronous op")


def assigned_offset(op: Operation) -> int | None:
    """The first of the bytes that allocation gave `op`, if it ran."""
    attribute = op.attributes.get("allocation.offset")
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def overlap(a: MemView, b: MemView) -> bool:
    """Whether two views have an element at the same place."""
    return a.buffer is b.buffer and bool(np.isin(a.places, b.places).any())


def described(op: Operation) -> str:
    """An op in a message: its name and its line."""
    place = location_text(op.location, innermost=True)
    return f"{op.name} of {place}" if place else op.name
