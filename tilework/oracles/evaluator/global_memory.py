"""The memory that a program may access: the arrays it was given, and nothing else.

A pointer is the integer address of real memory, so a store is visible in the caller's array. Every access is checked
against the registered extents:

    memory = Memory()
    x = memory.register("x", np.arange(8, dtype=np.float32))
    memory.load(np.array([x, x + 4]), None, f32)    # array([0., 1.])
    memory.load(np.array([x + 32]), None, f32)      # Fault: reads element 8 of argument 'x', which has 8 elements

While a program computes with a pointer, the bits above the address (48 of them are in use) hold the id of the array it
came from, its provenance. An index that leaves its array is thus an error also if another array begins there. A pointer
that becomes an integer or goes to memory loses the id, and may then access every registered array.

Arrays may be views with strides: the extent is then from their first to their last byte.

A kernel may load pointers from a table of addresses, to arrays that a launch does not know. Such an address is looked
up in the memory map of this process, so that a wrong one is an error and not a crash. On systems without such a map
(Linux has /proc/self/maps) every such access is an error.

`RaceMemory` finds races between programs: it records which programs have read and written each address.

    memory = RaceMemory(programs=4, granule=4)          # instead of `Memory`
    memory.begin(0), memory.begin(1), ...               # programs run one after another; on a device they run at once

Two accesses to the same address race if they come from different programs, at least one writes, not both are atomic,
and nothing orders them. Each *cell* of memory (`granule` bytes) has its last writer, two readers of different programs,
and its last atomic update; two readers are enough, because a writer races with one of them if it races with any.

Happens-before is tracked exactly, as far as it was established in this run. The atomics of a program split its
execution into *segments*: their ids grow, and never repeat. An atomic on an address acquires the clocks stored there
(`known[q]`: the segment up to which everything of program q is visible), and stores those of this program:

    program 0    store x         segment 1                   program 1    atomic on flag       known[0] = 1
                 atomic on flag  stores {0: 1}                        load x               segment 1 is known: no race

So locks and counters order what they guard, whatever their `sem`. A volatile load counts as an atomic one that acquires
from the last writer of its cell; a scalar store to a cell that the same program has updated atomically (the release of
a lock) counts as an atomic update. Atomics of many lanes at once (histograms) order nothing.

Of two writes the second is `harmless` if it does not change memory: programs that all write the same value agree
whatever their order is.
"""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Attribute, Operation

from tilework.ir import tt
from tilework.ir.types import PointerType, element_type
from tilework.numerics.rounding import UNSIGNED, Array
from tilework.oracles.evaluator.values import BOOL, Fault, memory_bytes, storage

MAP = "/proc/self/maps"


def mapped_bytes(address: int) -> np.ndarray | None:
    """Return the mapped, readable memory around `address` as bytes, read-only if it is mapped so; None: not mapped."""
    if not os.path.exists(MAP):
        return None
    with open(MAP) as lines:
        for line in lines:
            extent, permissions, *_ = line.split(maxsplit=2)
            start, end = (int(part, 16) for part in extent.split("-"))
            if start <= address < end:
                if permissions[0] != "r":
                    return None
                array = np.frombuffer(memoryview((ctypes.c_uint8 * (end - start)).from_address(start)), np.uint8)
                array.flags.writeable = permissions[1] == "w"
                return array
    return None


ADDRESS_BITS = 48
ADDRESS_MASK = np.int64((1 << ADDRESS_BITS) - 1)


@dataclass
class Extent:
    """One registered array: bytes `start` to `end`, viewed as bytes or as integers of one size."""

    name: str
    array: Array
    start: int
    end: int
    views: dict[int, Array] = field(default_factory=dict)  # by size

    def as_integers(self, size: int) -> Array:
        """Return the extent as unsigned integers of `size` bytes, without an incomplete one at the end."""
        if (view := self.views.get(size)) is None:
            count = (self.end - self.start) // size
            buffer = memoryview((ctypes.c_uint8 * (count * size)).from_address(self.start))
            view = self.views[size] = np.frombuffer(buffer, dtype=UNSIGNED[size])
        return view


class Memory:
    """The registered extents, and checked access to them."""

    def __init__(self, foreign: bool = False) -> None:
        self.extents: list[Extent] = []
        self.foreign = foreign  # pointers without an array may reach any memory of this process

    def register(self, name: str, array: Array) -> int:
        """Allow access to `array` under the name that errors show; return a pointer to it."""
        address = array.__array_interface__["data"][0]
        reach = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
        low = address + sum(step for step in reach if step < 0)
        high = address + sum(step for step in reach if step > 0) + array.itemsize
        self.extents.append(Extent(name, array, low, high if array.size else low))
        return address | len(self.extents) << ADDRESS_BITS

    def load(self, pointer: Array, mask: Array | None, type: Attribute, other: Array | None = None) -> Array:
        """Return the elements of `type` at `pointer`; masked-off lanes give `other`, or zero without one."""
        size, dtype = memory_bytes(type), storage(type)
        pointer = np.asarray(pointer)
        if mask is not None:
            mask = np.broadcast_to(mask, pointer.shape)
            if mask.all():
                mask = None
        active = pointer.reshape(-1) if mask is None else pointer[mask]
        bits = self.gather(active, size)
        values = bits != 0 if dtype == BOOL else bits.view(dtype)
        if mask is None:
            return values.reshape(pointer.shape)
        result = np.zeros(pointer.shape, dtype) if other is None else np.array(np.broadcast_to(other, pointer.shape))
        result[mask] = values
        return result

    def store(self, pointer: Array, value: Array, mask: Array | None, type: Attribute) -> None:
        """Write each active lane; of lanes with the same address the last one wins."""
        pointer = np.asarray(pointer)
        value = np.broadcast_to(plain(value) if isinstance(type, PointerType) else value, pointer.shape)
        if mask is None:
            active, chosen = pointer.reshape(-1), value.reshape(-1)
        else:
            mask = np.broadcast_to(mask, pointer.shape)
            active, chosen = pointer[mask], value[mask]
        size = memory_bytes(type)
        self.scatter(active, np.ascontiguousarray(chosen).view(UNSIGNED[size]), size)

    def gather(self, pointer: Array, size: int) -> Array:
        """Return the integers of `size` bytes at a flat array of pointers."""
        bits = np.empty(pointer.size, UNSIGNED[size])
        for extent, lanes, offset in self.locate(pointer, size, "reads"):
            if not (offset % size).any():
                bits[lanes] = extent.as_integers(size)[offset // size]
            else:
                spread = extent.as_integers(1)[offset[:, None] + np.arange(size)]
                bits[lanes] = np.ascontiguousarray(spread).view(UNSIGNED[size]).reshape(-1)
        return bits

    def scatter(self, pointer: Array, bits: Array, size: int) -> None:
        """Write a flat array of integers of `size` bytes."""
        found = self.locate(pointer, size, "writes")
        for extent, _, _ in found:
            if not extent.array.flags.writeable:
                raise Fault(f"writes to argument '{extent.name}', which is read-only")
        for extent, lanes, offset in found:
            if not (offset % size).any():
                extent.as_integers(size)[offset // size] = bits[lanes]
            else:
                spread = np.ascontiguousarray(bits[lanes]).view(np.uint8).reshape(-1, size)
                extent.as_integers(1)[offset[:, None] + np.arange(size)] = spread

    def locate(self, pointer: Array, size: int, verb: str) -> list[tuple[Extent, Any, Array]]:
        """Return (extent, lanes, offsets in bytes) of each extent that lanes access; a lane outside of all is a
        fault."""
        if pointer.size == 0:
            return []
        first, last = int(pointer.min()) >> ADDRESS_BITS, int(pointer.max()) >> ADDRESS_BITS
        if first == last:  # by far the usual case: every lane comes from one array
            return self.locate_in(first, pointer, slice(None), size, verb)
        array_id = pointer >> ADDRESS_BITS
        return [
            part
            for one in np.unique(array_id)
            for part in self.locate_in(int(one), pointer[array_id == one], np.flatnonzero(array_id == one), size, verb)
        ]

    def locate_in(
        self, array_id: int, pointer: Array, lanes: Any, size: int, verb: str
    ) -> list[tuple[Extent, Any, Array]]:
        """Like `locate` for pointers into array `array_id`; 0 means any array."""
        address = plain(pointer)
        candidates = self.extents[array_id - 1 : array_id] if array_id else self.extents
        low, high = int(address.min()), int(address.max()) + size
        for extent in candidates:
            if extent.start <= low and high <= extent.end:
                return [(extent, lanes, address - extent.start)]
        missing = np.ones(address.shape, BOOL)
        found: list[tuple[Extent, Any, Array]] = []
        positions = np.arange(address.size) if isinstance(lanes, slice) else lanes
        for extent in candidates:
            inside = missing & (address >= extent.start) & (address <= extent.end - size)
            found.append((extent, positions[inside], address[inside] - extent.start))
            missing &= ~inside
        if missing.any():
            stray = int(address[missing][0])
            if self.foreign and array_id == 0 and (array := mapped_bytes(stray)) is not None:
                self.register("memory", array)
                return self.locate_in(array_id, pointer, lanes, size, verb)
            raise Fault(explain(candidates, int(address[missing][0]), size, verb))
        return [part for part in found if part[2].size]


def plain(pointer: Array) -> Array:
    """Return the address in a pointer, without the id of its array."""
    return np.asarray(pointer) & ADDRESS_MASK


def explain(extents: list[Extent], address: int, size: int, verb: str) -> str:
    """Describe an access outside of `extents`, relative to the nearest one."""
    if address == 0:
        return f"{verb} the null pointer"
    if not extents:
        return f"{verb} address {address:#x}, which belongs to no argument"
    near = min(extents, key=lambda extent: max(extent.start - address, address - extent.end, 0))
    count = (near.end - near.start) // size
    index = (address - near.start) // size
    return f"{verb} element {index} of argument '{near.name}', which has {count} elements of {size} bytes"


MOST_POLLS = 2000  # of a program that waits
SYNCHRONISING = 32  # most lanes of an atomic that orders programs
ATOMIC = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.DescriptorReduceOp)
ACCESSES = (
    *ATOMIC,
    tt.LoadOp,
    tt.StoreOp,
    tt.DescriptorLoadOp,
    tt.DescriptorStoreOp,
    tt.DescriptorGatherOp,
    tt.DescriptorScatterOp,
)
READS, WRITES, UPDATES = "reads", "writes", "updates"


@dataclass(frozen=True)
class Race:
    """Two accesses that nothing orders; the second one is by the running program."""

    first: Operation
    second: Operation
    verbs: tuple[str, str]
    programs: tuple[int, int]
    name: str
    element: int
    is_harmless: bool


class RaceFound(Exception):
    """A race that is not harmless."""

    def __init__(self, race: Race) -> None:
        super().__init__(f"program {race.programs[1]} {race.verbs[1]} what program {race.programs[0]} {race.verbs[0]}")
        self.race = race


class Cells:
    """The accesses to the memory from `start` to `end`: by kind of access the segment (0: none) and the id of the
    op."""

    def __init__(self, start: int, end: int, granule: int) -> None:
        self.start, self.end = start, end
        count = -(-(end - start) // granule)
        self.writer, self.reader, self.other, self.updater = (np.zeros((2, count), np.int32) for _ in range(4))

    def take(self, old: "Cells", granule: int) -> None:
        """Copy the accesses to a part of the memory."""
        part = slice((old.start - self.start) // granule, (old.start - self.start) // granule + old.writer.shape[1])
        for name in ("writer", "reader", "other", "updater"):
            getattr(self, name)[:, part] = getattr(old, name)


def granule_of(root: Operation) -> int:
    """Return the size of the smallest element that a module accesses."""
    found = [element_type(op.operands[0].type) for op in root.walk() if type(op) in ACCESSES]
    return min((memory_bytes(type.pointee) for type in found if isinstance(type, PointerType)), default=1)


class RaceMemory(Memory):
    """Memory that detects races between programs; see the module docstring."""

    def __init__(self, programs: int, granule: int, foreign: bool = False) -> None:
        super().__init__(foreign)
        self.granule = granule
        self.cells: list[Cells] = []
        self.of_extent: dict[int, Cells] = {}
        self.program, self.segment = 0, 0
        self.idle, self.last_polled = 0, 0
        self.owners = np.full(1024, -1, np.int32)  # the program of each segment
        self.known = np.zeros(programs, np.int32)
        self.left: dict[int, Array] = {}  # by address, the clocks stored there
        self.ops: list[Operation] = []
        self.ids: dict[Operation, int] = {}
        self.op: Operation | None = None
        self.harmless: dict[tuple[Operation, Operation], Race] = {}

    def begin(self, program: int) -> None:
        """Begin another program, which knows nothing of the others."""
        self.program = program
        self.known[:] = 0
        self.idle = self.last_polled = 0
        self.new_segment()

    def new_segment(self) -> None:
        self.segment += 1
        if self.segment == self.owners.size:
            self.owners = np.concatenate([self.owners, np.full(self.owners.size, -1, np.int32)])
        self.owners[self.segment] = self.program

    def watched(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return the rule of an op that accesses memory."""

        def run(machine: Any, op: Operation, *operands: Any) -> Any:
            self.op = op
            try:
                return rule(machine, op, *operands)
            finally:
                self.op = None

        return run

    def gather(self, pointer: Array, size: int) -> Array:
        bits = super().gather(pointer, size)
        if self.op is not None and type(self.op) not in ATOMIC:
            volatile: Any = self.op.properties.get("isVolatile")
            access = self.read
            if volatile is not None and volatile.value.data:
                access = self.acquire
                self.wait(pointer)
            for extent, cells, index, _ in self.cells_of(pointer, size, READS):
                access(extent, cells, index)
        return bits

    def scatter(self, pointer: Array, bits: Array, size: int) -> None:
        if self.op is None:
            return super().scatter(pointer, bits, size)
        parts = self.cells_of(pointer, size, WRITES)
        if type(self.op) in ATOMIC:
            if pointer.size == 1 and bool((super().gather(pointer, size) == bits).all()):
                self.wait(pointer)
            for extent, cells, index, _ in parts:
                self.update(extent, cells, index)
            return super().scatter(pointer, bits, size)
        before = super().gather(pointer, size)
        changed = before != bits
        for extent, cells, index, lanes in parts:
            if pointer.size == 1 and bool((self.owners[cells.updater[0, index]] == self.program).all()):
                self.update(extent, cells, index)
            else:
                self.write(extent, cells, index, np.repeat(changed[lanes], max(1, size // self.granule)))
        super().scatter(pointer, bits, size)

    def wait(self, pointer: Array) -> None:
        """Count polls of one address: programs run one after another, so no other program changes its contents."""
        address = int(pointer.reshape(-1)[0]) if pointer.size == 1 else 0
        self.idle = self.idle + 1 if address == self.last_polled else 0
        self.last_polled = address
        if address and self.idle > MOST_POLLS:
            raise Fault(f"waits for another program: it has looked {MOST_POLLS} times at what does not change")

    def cells_of(self, pointer: Array, size: int, verb: str) -> list[tuple[Extent, Cells, Array, Any]]:
        """Return the cells of an access, those of one lane next to each other; scratch memory is private to a
        program."""
        found = []
        for extent, lanes, offset in self.locate(pointer, size, verb):
            if extent.name == "scratch memory":
                continue
            cells = self.of_extent.get(id(extent)) or self.add_cells(extent)
            index = (offset + (extent.start - cells.start)) // self.granule
            if size > self.granule:
                index = (index[:, None] + np.arange(size // self.granule)).reshape(-1)
            found.append((extent, cells, index, lanes))
        return found

    def add_cells(self, extent: Extent) -> Cells:
        """Create cells for an extent; overlapping arrays share their cells."""
        same = [cells for cells in self.cells if cells.start < extent.end and extent.start < cells.end]
        start = min([extent.start, *(cells.start for cells in same)])
        made = Cells(start, max([extent.end, *(cells.end for cells in same)]), self.granule)
        for old in same:
            made.take(old, self.granule)
            self.cells.remove(old)
        self.cells.append(made)
        for other in self.extents:
            if made.start <= other.start and other.end <= made.end and other.end > other.start:
                self.of_extent[id(other)] = made
        return made

    # accesses

    def read(self, extent: Extent, cells: Cells, index: Array) -> None:
        self.refuse(extent, cells, index, cells.writer, (WRITES, READS))
        self.refuse(extent, cells, index, cells.updater, (UPDATES, READS))
        owner = self.owners[cells.reader[0, index]]
        first = (owner == self.program) | (cells.reader[0, index] == 0)
        self.leave(cells.reader, index[first])
        self.leave(cells.other, index[~first])

    def write(self, extent: Extent, cells: Cells, index: Array, changed: Array) -> None:
        self.refuse(extent, cells, index, cells.writer, (WRITES, WRITES), ~changed)
        self.refuse(extent, cells, index, cells.reader, (READS, WRITES))
        self.refuse(extent, cells, index, cells.other, (READS, WRITES))
        self.refuse(extent, cells, index, cells.updater, (UPDATES, WRITES))
        self.leave(cells.writer, index)

    def update(self, extent: Extent, cells: Cells, index: Array) -> None:
        orders = index.size <= SYNCHRONISING
        if orders:
            self.take_over(cells, index)
        for accesses, verb in ((cells.writer, WRITES), (cells.reader, READS), (cells.other, READS)):
            self.refuse(extent, cells, index, accesses, (verb, UPDATES))
        self.leave(cells.updater, index)
        if orders:
            mine = self.known.copy()
            mine[self.program] = self.segment
            for cell in index.tolist():
                address = cells.start + cell * self.granule
                self.left[address] = np.maximum(self.left[address], mine) if address in self.left else mine
            self.new_segment()

    def acquire(self, extent: Extent, cells: Cells, index: Array) -> None:
        """A volatile load."""
        self.take_over(cells, index)
        segments = cells.writer[0, index]
        segments = segments[segments > 0]
        np.maximum.at(self.known, self.owners[segments], segments)

    def take_over(self, cells: Cells, index: Array) -> None:
        """Acquire the clocks that other programs have stored at these cells."""
        for cell in index.tolist():
            if (left := self.left.get(cells.start + cell * self.granule)) is not None:
                np.maximum(self.known, left, out=self.known)

    def leave(self, accesses: Array, index: Array) -> None:
        accesses[0, index] = self.segment
        accesses[1, index] = self.op_id()

    def op_id(self) -> int:
        """Return the id of the running op."""
        assert self.op is not None
        if self.op not in self.ids:
            self.ids[self.op] = len(self.ops)
            self.ops.append(self.op)
        return self.ids[self.op]

    def refuse(
        self,
        extent: Extent,
        cells: Cells,
        index: Array,
        accesses: Array,
        verbs: tuple[str, str],
        harmless: Array | None = None,
    ) -> None:
        """Report a race if one of `accesses` is by another program and not ordered before."""
        segments = accesses[0, index]
        owners = self.owners[segments]
        bad = (segments > self.known[owners]) & (owners != self.program) & (segments > 0)
        if not bad.any():
            return
        if harmless is not None and (wrong := bad & ~harmless).any():
            bad, harmless = wrong, None
        lane = int(np.flatnonzero(bad)[0])
        address = cells.start + int(index[lane]) * self.granule
        assert self.op is not None
        race = Race(
            self.ops[accesses[1, index[lane]]],
            self.op,
            verbs,
            (int(owners[lane]), self.program),
            extent.name,
            (address - extent.array.__array_interface__["data"][0]) // extent.array.itemsize,
            harmless is not None,
        )
        if not race.is_harmless:
            raise RaceFound(race)
        self.harmless.setdefault((race.first, race.second), race)
