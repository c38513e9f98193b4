"""The memory of the emulated GPU: this process's own for global, constant and parameter bytes, and windows for shared and local.

    >>> memory = Memory(1 << 20)
    >>> x = memory.allocate(64)
    >>> memory.write(x, b"abcd")
    >>> memory.read(x, 4)
    b'abcd'

A global address is the address that the bytes have in this process, so that a kernel can work on arrays where they are
(`lend`); what is allocated here lies in one arena. The windows through which generic addresses reach shared and local memory
are where no process has memory. Every access names its bytes, so an access outside of an allocation is found, not made.
"""

import bisect
import ctypes
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tilework.oracles.emulator.syntax import EmulatorError, Instruction

LOCAL_BASE = 1 << 60
SHARED_BASE = 2 << 60
WINDOW = 1 << 60
FIRST = 4096  # below there is nothing
END = 1 << 48
ALIGNMENT = 256
LEAST_GUARD, MOST_GUARD = 1 << 20, 1 << 28  # bytes around named allocations
# pages that are never touched cost nothing, and may be more than the machine has; Python knows the flag from 3.13 on
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)

Array = np.ndarray[Any, Any]


class Extent(NamedTuple):
    """Bytes of this process, to the one after the last. Sectors are counted from `origin`."""

    start: int
    end: int
    origin: int = 0
    is_writable: bool = True


class Named(NamedTuple):
    """What a user calls an allocation, the bytes of an element of it, and how many bytes on both sides belong to nobody."""

    name: str
    element: int
    guard: int


class MemoryFault(EmulatorError):
    """An access that is out of bounds or misaligned; `thread` is the first thread that made it, `address` where, `ins` how."""

    def __init__(self, what: str, thread: int, address: int, ins: Instruction | None = None) -> None:
        super().__init__(what)
        self.what, self.thread, self.address, self.ins = what, thread, address, ins

    @classmethod
    def first(cls, wrong: Array, addresses: Array, threads: Array, what: str | Callable[[int], str]) -> "MemoryFault":
        """About the first access that is `wrong`; `what` has a place for its address, or makes words of it."""
        at = int(np.flatnonzero(wrong)[0])
        address = int(addresses[at])
        return cls(what % address if isinstance(what, str) else what(address), int(threads[at]), address)


class Bytes:
    """Bytes that can be read in any width: `of(np.uint32)` is a view of them all."""

    def __init__(self, data: Array) -> None:
        self.data = data
        self.views = {width: data[: len(data) // width * width].view(f"u{width}") for width in (1, 2, 4, 8)}

    @classmethod
    def zeros(cls, size: int) -> "Bytes":
        return cls(np.zeros((size + 15) // 16 * 16, np.uint8))


@cache
def everything() -> Bytes:
    """All addresses of this process from `FIRST` on; who reads or writes there knows that they are memory."""
    return Bytes(np.frombuffer(memoryview((ctypes.c_uint8 * (END - FIRST)).from_address(FIRST)), np.uint8))


class Memory:
    """Device memory. Its pages are committed by the system when they are first touched."""

    def __init__(self, capacity: int = 16 << 30) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
        self.pages = mmap.mmap(-1, capacity, flags=flags)
        self.bytes = everything()
        self.bottom = np.frombuffer(self.pages, np.uint8).ctypes.data
        self.capacity = capacity
        self.starts: list[int] = []  # of live allocations, sorted
        self.ends: list[int] = []
        self.lent: dict[int, Extent] = {}  # by their starts
        self.named: dict[int, Named] = {}  # by their starts
        self.has_constants = False  # whether some of it must not be written
        self.top = self.bottom + ALIGNMENT
        self.holes: dict[int, list[int]] = {}  # freed allocations by their padded size

    def allocate(self, size: int, align: int = ALIGNMENT) -> int:
        """The address of `size` new bytes, which are zero the first time only."""
        if size < 0:
            raise EmulatorError(f"cannot allocate {size} bytes")
        padded = max(ALIGNMENT, (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)
        if self.holes.get(padded) and align <= ALIGNMENT:
            start = self.holes[padded].pop()
        else:
            start = (self.top + align - 1) // align * align
            if start + padded + ALIGNMENT > self.bottom + self.capacity:
                raise EmulatorError(f"out of device memory: {size} bytes do not fit")
            self.top = start + padded + ALIGNMENT  # a gap, so that running over an end is found
        at = bisect.bisect(self.starts, start)
        self.starts.insert(at, start)
        self.ends.insert(at, start + size)
        return start

    def allocate_named(self, size: int, name: str, element: int = 1) -> int:
        """As `allocate`, far from everything else: an access that misses it by less than its size, or by a little, is told with `name`."""
        guard = min(max(LEAST_GUARD, (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT), MOST_GUARD)
        self.top += guard
        start = self.allocate(size)
        self.top += guard
        self.named[start] = Named(name, element, guard)
        return start

    def free(self, address: int) -> None:
        at = self.index(address)
        if at is None or self.starts[at] != address:
            raise EmulatorError(f"free of {address:#x}, which is not the start of an allocation")
        size = self.ends[at] - address
        del self.starts[at], self.ends[at]
        self.holes.setdefault(max(ALIGNMENT, (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT), []).append(address)

    def index(self, address: int) -> int | None:
        """Which allocation holds this address."""
        at = bisect.bisect(self.starts, address) - 1
        return at if at >= 0 and address < max(self.ends[at], self.starts[at] + 1) else None

    def around(self, address: int) -> tuple[int, int]:
        """(start, end) of the allocation that begins at or before an address; the first address if there is none."""
        at = bisect.bisect(self.starts, address) - 1
        return (self.starts[at], self.ends[at]) if at >= 0 else (FIRST, FIRST)

    @contextmanager
    def lend(self, extents: Iterable[Extent]) -> Iterator[None]:
        """Let kernels reach memory of this process; extents may overlap."""
        joined: list[Extent] = []
        for given in sorted(extent for extent in extents if extent.start < extent.end):
            extent = given._replace(
                start=given.start & -4
            )  # code for narrow atomics uses the whole word around its bytes
            if joined and extent.start < joined[-1].end:
                writable = joined[-1].is_writable or extent.is_writable
                joined[-1] = joined[-1]._replace(end=max(extent.end, joined[-1].end), is_writable=writable)
            elif self.index(extent.start) is None:  # else it was allocated here
                joined.append(extent)
        for extent in joined:
            at = bisect.bisect(self.starts, extent.start)
            self.starts.insert(at, extent.start)
            self.ends.insert(at, extent.end)
            self.lent[extent.start] = extent
        before, self.has_constants = self.has_constants, not all(extent.is_writable for extent in self.lent.values())
        try:
            yield
        finally:
            for extent in joined:
                at = bisect.bisect(self.starts, extent.start) - 1
                del self.starts[at], self.ends[at], self.lent[extent.start]
            self.has_constants = before

    def origin(self, address: int) -> int:
        """What the memory around an address is aligned to; what is allocated here is aligned to everything."""
        return self.lent[start].origin if (start := self.around(address)[0]) in self.lent else 0

    def check_writable(self, addresses: Array, threads: Array) -> None:
        """`MemoryFault` for a write to what was lent to be read."""
        for extent in self.lent.values():
            inside = (addresses >= extent.start) & (addresses < extent.end)
            if not extent.is_writable and np.count_nonzero(inside):
                raise MemoryFault.first(inside, addresses, threads, "%#x is read-only")

    def span(self, address: int, size: int) -> slice:
        """The bytes of the arena at an address; `MemoryFault` if they are not all allocated together."""
        at = self.index(address)
        if size and (at is None or address + size > self.ends[at]):
            raise MemoryFault(self.explain(address, size), 0, address)
        return slice(address - FIRST, address - FIRST + size)

    def read(self, address: int, size: int) -> bytes:
        return self.bytes.data[self.span(address, size)].tobytes()

    def write(self, address: int, data: Any) -> None:
        values = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1).view(np.uint8)
        self.bytes.data[self.span(address, values.size)] = values

    def explain(self, address: int, size: int) -> str:
        """Why `size` bytes at `address` cannot be accessed."""
        at = bisect.bisect(self.starts, address) - 1
        for start, end in zip(self.starts[max(at, 0) : at + 2], self.ends[max(at, 0) : at + 2], strict=True):
            known = self.named.get(start)
            if known is not None and start - known.guard <= address < end + known.guard:
                number, count = (address - start) // known.element, (end - start) // known.element
                return f"{size} bytes at element {number} of {known.name} are outside of it: it has elements 0 to {count - 1}"
        if at < 0 or address >= self.ends[at] + ALIGNMENT:
            return f"{size} bytes at {address:#x} are not allocated"
        end = self.ends[at]
        return f"{size} bytes at {address:#x} end {address + size - end} bytes after an allocation of {end - self.starts[at]} bytes"

    def valid(self, addresses: Array, size: int) -> Array | bool:
        """Which of the addresses have `size` bytes inside of one allocation; True when all do, found quickly."""
        low, high = int(addresses.min()), int(addresses.max())
        at = bisect.bisect(self.starts, low) - 1
        slack = 3 if size == 4 else 0  # code for narrow atomics uses the whole word around its bytes
        if at >= 0 and high + size <= self.ends[at] + slack:
            return True
        starts, ends = np.array(self.starts, np.uint64), np.array(self.ends, np.uint64) + np.uint64(slack)
        if not len(starts):
            return np.zeros(len(addresses), bool)
        found = np.searchsorted(starts, addresses, "right").astype(np.int64) - 1
        inside = (found >= 0) & (addresses + np.uint64(size) <= ends[np.maximum(found, 0)])
        return True if inside.all() else inside
