"""The memory of the emulated GPU, and the ports through which instructions access it.

    >>> memory = Memory(1 << 20)
    >>> x = memory.allocate(64)
    >>> memory.write(x, b"abcd")
    >>> memory.read(x, 4)
    b'abcd'

A global address is the address of the bytes in this process, so that a kernel can work on host arrays in place
(`lend`); `allocate` takes memory from one arena. Generic addresses reach shared and local memory through two windows,
at addresses that no process uses. Every access is checked against the allocations, so an access out of bounds is
reported, not done.

A port checks the addresses of all active threads at once, then reads or writes them:

    port = t.port("shared")
    values = port.read(addresses, np.uint32, 4, threads)       # (threads, 4); threads[i] accesses addresses[i]
    port.write(addresses, values, threads)

Ports, and nothing else, report accesses to the watchers (the race checker, the counters), so a new instruction that
uses a port is covered by them. Addresses are uint64 arrays in the port's own space: shared and local addresses start at
0.

The machine runs all threads of a cluster at once, those of block 0 first. The shared memory of a cluster is one space
with a window for each block; a block's own addresses are in its window, as on a GPU, and `mapa` maps an address to
another block:

    >>> hex(in_block(0x410, 1)), hex(in_block(0x40410, 0))
    ('0x40410', '0x410')

A matrix descriptor has as many address bits as a window.

Variables are laid out in the arena (of the module), in the block's window (shared), or per thread (local, parameters).

>>> from tilework.oracles.emulator.parser import parse_ptx
>>> text = ".version 8.0\\n.target sm_80\\n.shared .align 4 .b8 a[6];\\n.extern .shared .align 16 .b8 d[];"
>>> shared_layout(parse_ptx(text + ".entry k() { ret; }"), dynamic=64)
({'a': 0, 'd': 16}, 80)
"""

import bisect
import ctypes
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from tilework.oracles.emulator.syntax import EmulatorError, Function, Instruction, PtxModule, Symbol, Variable

LOCAL_BASE = 1 << 60
SHARED_BASE = 2 << 60
WINDOW = 1 << 60
FIRST = 4096  # the lowest address in use
END = 1 << 48
ALIGNMENT = 256
LEAST_GUARD, MOST_GUARD = 1 << 20, 1 << 28  # bytes around named allocations
# untouched pages cost nothing and may exceed the machine's memory; Python defines the flag since 3.13
NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000 if sys.platform == "linux" else 0)

Array = np.ndarray[Any, Any]


class Extent(NamedTuple):
    """A range of this process's addresses, [start, end). Sectors are counted from `base`."""

    start: int
    end: int
    base: int = 0
    is_writable: bool = True


class Named(NamedTuple):
    """The user's name of an allocation, the bytes of an element, and the bytes of guard space on both sides."""

    name: str
    element: int
    guard: int


class MemoryFault(EmulatorError):
    """An access that is out of bounds or misaligned: the first `thread` that made it, its `address` and `ins`."""

    def __init__(self, what: str, thread: int, address: int, ins: Instruction | None = None) -> None:
        super().__init__(what)
        self.what, self.thread, self.address, self.ins = what, thread, address, ins

    @classmethod
    def first(cls, wrong: Array, addresses: Array, threads: Array, what: str | Callable[[int], str]) -> "MemoryFault":
        """Describe the first access that is `wrong`; `what` is a format of its address, or a function of it."""
        at = int(np.flatnonzero(wrong)[0])
        address = int(addresses[at])
        return cls(what % address if isinstance(what, str) else what(address), int(threads[at]), address)


class Bytes:
    """A byte array with views of every width: `views[4]` is the whole as uint32."""

    def __init__(self, data: Array) -> None:
        self.data = data
        self.views = {width: data[: len(data) // width * width].view(f"u{width}") for width in (1, 2, 4, 8)}

    @classmethod
    def zeros(cls, size: int) -> "Bytes":
        return cls(np.zeros((size + 15) // 16 * 16, np.uint8))


@cache
def everything() -> Bytes:
    """All addresses of this process from `FIRST` on; the caller has checked that the bytes it accesses are mapped."""
    return Bytes(np.frombuffer(memoryview((ctypes.c_uint8 * (END - FIRST)).from_address(FIRST)), np.uint8))


class Memory:
    """Device memory. The system commits its pages when they are first touched."""

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
        self.has_constants = False  # True if some memory is read-only
        self.top = self.bottom + ALIGNMENT
        self.holes: dict[int, list[int]] = {}  # freed allocations by their padded size

    def allocate(self, size: int, align: int = ALIGNMENT) -> int:
        """Return the address of `size` new bytes, which are zero when they are used for the first time."""
        if size < 0:
            raise EmulatorError(f"cannot allocate {size} bytes")
        padded = max(ALIGNMENT, (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT)
        if self.holes.get(padded) and align <= ALIGNMENT:
            start = self.holes[padded].pop()
        else:
            start = (self.top + align - 1) // align * align
            if start + padded + ALIGNMENT > self.bottom + self.capacity:
                raise EmulatorError(f"out of device memory: {size} bytes do not fit")
            self.top = start + padded + ALIGNMENT  # a gap, so that an overrun is detected
        at = bisect.bisect(self.starts, start)
        self.starts.insert(at, start)
        self.ends.insert(at, start + size)
        return start

    def allocate_named(self, size: int, name: str, element: int = 1) -> int:
        """Allocate with guard space around it, so that an access that misses the allocation by less than its size is
        reported with `name`."""
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
        """Return the index of the allocation that contains this address."""
        at = bisect.bisect(self.starts, address) - 1
        return at if at >= 0 and address < max(self.ends[at], self.starts[at] + 1) else None

    def around(self, address: int) -> tuple[int, int]:
        """Return (start, end) of the last allocation that begins at or before an address, or the lowest address."""
        at = bisect.bisect(self.starts, address) - 1
        return (self.starts[at], self.ends[at]) if at >= 0 else (FIRST, FIRST)

    @contextmanager
    def lend(self, extents: Iterable[Extent]) -> Iterator[None]:
        """Give kernels access to memory of this process; extents may overlap."""
        joined: list[Extent] = []
        for given in sorted(extent for extent in extents if extent.start < extent.end):
            extent = given._replace(
                start=given.start & -4
            )  # narrow atomics access the whole 32-bit word around their bytes
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

    def sector_base(self, address: int) -> int:
        """Return the address from which the memory around `address` counts its sectors; 0 for allocations, which are
        aligned."""
        return self.lent[start].base if (start := self.around(address)[0]) in self.lent else 0

    def check_writable(self, addresses: Array, threads: Array) -> None:
        """Raise `MemoryFault` for a write to memory that was lent read-only."""
        for extent in self.lent.values():
            inside = (addresses >= extent.start) & (addresses < extent.end)
            if not extent.is_writable and np.count_nonzero(inside):
                raise MemoryFault.first(inside, addresses, threads, "%#x is read-only")

    def span(self, address: int, size: int) -> slice:
        """Return the slice of the arena at an address; raise `MemoryFault` unless one allocation contains it."""
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
        """Return the reason why `size` bytes at `address` cannot be accessed."""
        at = bisect.bisect(self.starts, address) - 1
        for start, end in zip(self.starts[max(at, 0) : at + 2], self.ends[max(at, 0) : at + 2], strict=True):
            known = self.named.get(start)
            if known is not None and start - known.guard <= address < end + known.guard:
                index, count = (address - start) // known.element, (end - start) // known.element
                what = f"{size} bytes at element {index} of {known.name} are outside of it"
                return f"{what}: it has elements 0 to {count - 1}"
        if at < 0 or address >= self.ends[at] + ALIGNMENT:
            return f"{size} bytes at {address:#x} are not allocated"
        end = self.ends[at]
        allocation = f"an allocation of {end - self.starts[at]} bytes"
        return f"{size} bytes at {address:#x} end {address + size - end} bytes after {allocation}"

    def valid(self, addresses: Array, size: int) -> Array | bool:
        """Return which addresses have `size` bytes within one allocation, or True if all do."""
        low, high = int(addresses.min()), int(addresses.max())
        at = bisect.bisect(self.starts, low) - 1
        slack = 3 if size == 4 else 0  # narrow atomics access the whole 32-bit word
        if at >= 0 and high + size <= self.ends[at] + slack:
            return True
        starts, ends = np.array(self.starts, np.uint64), np.array(self.ends, np.uint64) + np.uint64(slack)
        if not len(starts):
            return np.zeros(len(addresses), bool)
        found = np.searchsorted(starts, addresses, "right").astype(np.int64) - 1
        inside = (found >= 0) & (addresses + np.uint64(size) <= ends[np.maximum(found, 0)])
        return True if inside.all() else inside


SHIFT = {width: np.uint64(width.bit_length() - 1) for width in (1, 2, 4, 8)}
BITS = {width: np.dtype(f"u{width}") for width in (1, 2, 4, 8)}


class Columns(dict[int, Array]):
    """Column indices 0 to count - 1, cached by count."""

    def __missing__(self, count: int) -> Array:
        self[count] = np.arange(count)
        return self[count]


COLUMNS = Columns()


class Watcher(Protocol):
    """Observes accesses before they happen. `kind` is "load", "store", "atomic", or "async load", "async store" for
    accesses of the copy engine and the tensor cores on behalf of a thread. Writes come with their `values`, a row for
    each address."""

    def access(
        self, ins: Instruction | None, space: str, kind: str, addresses: Array, size: int, threads: Array,
        values: Array | None = None,
    ) -> None: ...  # fmt: skip


class Port:
    """Access to one space of one block. `size` is its size in bytes; the arena's bounds are those of its
    allocations."""

    def __init__(self, space: str, data: Bytes, size: int, watcher: Watcher | None = None) -> None:
        self.space, self.data, self.size, self.watcher = space, data, size, watcher

    def check(self, addresses: Array, size: int, align: int, threads: Array) -> None:
        """Raise `MemoryFault` unless all addresses are aligned and in bounds."""
        if align > 1 and np.count_nonzero(wrong := addresses & np.uint64(align - 1)):
            raise MemoryFault.first(wrong, addresses, threads, f"{self.space} address %#x is not a multiple of {align}")
        self.check_bounds(addresses, size, threads)

    def check_bounds(self, addresses: Array, size: int, threads: Array) -> None:
        if int(addresses.max()) + size > self.size:
            what = f"{size} bytes at {self.space} address %#x are outside of its {self.size} bytes"
            raise MemoryFault.first(addresses + np.uint64(size) > self.size, addresses, threads, what)

    def offsets(self, addresses: Array, threads: Array) -> Array:
        """Return the offsets of the addresses in `data`."""
        return addresses

    def checked_offsets(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        """Check the addresses and return their `offsets`. The bitwise or of all addresses is no less than any of them
        and has every misaligned bit, so it usually settles both checks at once."""
        together = int(np.bitwise_or.reduce(addresses))
        if together & (align - 1) or together + size > self.size:
            self.check(addresses, size, align, threads)
        return self.offsets(addresses, threads)

    def read(
        self, addresses: Array, dtype: Any, count: int, threads: Array, ins: Instruction | None = None,
        kind: str = "load", align: int | None = None,
    ) -> Array:  # fmt: skip
        """Return `count` elements at each address, as an array (addresses, count)."""
        if not len(addresses):
            return np.empty((0, count), dtype)
        width = np.dtype(dtype).itemsize
        offsets = self.checked_offsets(addresses, width * count, width * count if align is None else align, threads)
        if self.watcher is not None:
            self.watcher.access(ins, self.space, kind, addresses, width * count, threads)
        first = (offsets >> SHIFT[width]).view(np.int64)
        view = self.data.views[width]
        if count == 1:
            return view[first].view(dtype)[:, None]
        return view[first[:, None] + COLUMNS[count]].view(dtype)

    def write(
        self, addresses: Array, values: Array, threads: Array, ins: Instruction | None = None,
        kind: str = "store", align: int | None = None,
    ) -> None:  # fmt: skip
        """Write `values[i]` (a row of elements) to `addresses[i]`; of several threads at one address the last one
        wins."""
        if not len(addresses):
            return
        width, count = values.dtype.itemsize, values.shape[1]
        offsets = self.checked_offsets(addresses, width * count, width * count if align is None else align, threads)
        if self.watcher is not None:
            self.watcher.access(ins, self.space, kind, addresses, width * count, threads, values)
        first = (offsets >> SHIFT[width]).view(np.int64)
        view, bits = self.data.views[width], np.ascontiguousarray(values).view(BITS[width])
        if count == 1:
            view[first] = bits[:, 0]
        else:
            view[first[:, None] + COLUMNS[count]] = bits

    def read_bytes(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        """Return rows of bytes, which need not be aligned to their size."""
        self.check(addresses, size, align, threads)
        width = element_width(size, align)
        return np.ascontiguousarray(self.read(addresses, f"u{width}", size // width, threads, align=width)).view(
            np.uint8
        )

    def write_bytes(self, addresses: Array, rows: Array, align: int, threads: Array) -> None:
        width = element_width(rows.shape[1], align)
        self.check(addresses, rows.shape[1], align, threads)
        self.write(addresses, np.ascontiguousarray(rows).view(f"u{width}"), threads, align=width)


def element_width(size: int, align: int) -> int:
    """Return the width of the widest element that divides accesses of this size and alignment."""
    width = min(align, 8)
    while size % width:
        width //= 2
    return width


class ArenaPort(Port):
    """Global, constant and parameter memory."""

    def __init__(self, memory: Memory, watcher: Watcher | None = None) -> None:
        super().__init__("global", memory.bytes, 0, watcher)
        self.memory = memory

    def check_bounds(self, addresses: Array, size: int, threads: Array) -> None:
        valid = self.memory.valid(addresses, size)
        if valid is not True:
            raise MemoryFault.first(~np.asarray(valid), addresses, threads, lambda at: self.memory.explain(at, size))

    def offsets(self, addresses: Array, threads: Array) -> Array:
        return addresses - np.uint64(FIRST)

    def write(self, addresses: Array, values: Array, threads: Array, *args: Any, **kwargs: Any) -> None:
        if self.memory.has_constants:
            self.memory.check_writable(addresses, threads)
        super().write(addresses, values, threads, *args, **kwargs)

    def checked_offsets(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        start, end = self.memory.around(int(addresses[0]))
        base = start & -ALIGNMENT  # an allocation starts at a multiple of 256, lent memory anywhere
        inside = addresses - np.uint64(base)
        together = int(np.bitwise_or.reduce(inside))
        if together & (align - 1) or together + size > end - base or (base < start and int(addresses.min()) < start):
            self.check(addresses, size, align, threads)
        return inside + np.uint64(base - FIRST)


class LocalPort(Port):
    """Local memory: the same address refers to different bytes in each thread."""

    def offsets(self, addresses: Array, threads: Array) -> Array:
        return addresses + threads.astype(np.uint64) * np.uint64(self.size)

    def grow(self, size: int, threads: int) -> None:
        """Extend the memory of each thread to `size` bytes, keeping its contents."""
        if size > self.size:
            larger = Bytes.zeros(size * threads)
            larger.data[: size * threads].reshape(threads, size)[:, : self.size] = self.rows(threads)
            self.data, self.size = larger, size

    def rows(self, threads: int) -> Array:
        """Return the bytes of each thread."""
        return self.data.data[: self.size * threads].reshape(threads, self.size)


class GenericPort:
    """Generic addresses, whose space follows from the address. Usually all threads use one space; if not, the spaces
    are accessed one after the other."""

    space = "generic"

    def __init__(self, arena: ArenaPort, shared: Port, local: Port) -> None:
        self.arena, self.shared, self.local = arena, shared, local

    def parts(self, addresses: Array) -> list[tuple[Port, np.uint64, Array | slice]]:
        """Return (port, its base, indices of the addresses) for each space that occurs."""
        return [(getattr(self, name), base, which) for name, base, which in by_window(addresses)]

    def read(self, addresses: Array, dtype: Any, count: int, threads: Array, *args: Any, **kwargs: Any) -> Array:
        if not len(addresses):
            return np.empty((0, count), dtype)
        values = np.empty((len(addresses), count), dtype)
        for port, base, which in self.parts(addresses):
            values[which] = port.read(addresses[which] - base, dtype, count, threads[which], *args, **kwargs)
        return values

    def write(self, addresses: Array, values: Array, threads: Array, *args: Any, **kwargs: Any) -> None:
        if not len(addresses):
            return
        for port, base, which in self.parts(addresses):
            port.write(addresses[which] - base, values[which], threads[which], *args, **kwargs)


def by_window(addresses: Array) -> list[tuple[str, np.uint64, Array | slice]]:
    """Return (``arena``, ``shared`` or ``local``, its base, indices of the addresses) for each space that occurs."""
    if int(addresses.max()) < LOCAL_BASE:
        return [("arena", np.uint64(0), slice(None))]
    found: list[tuple[str, np.uint64, Array | slice]] = []
    rest = np.ones(len(addresses), bool)
    for name, base in (("shared", SHARED_BASE), ("local", LOCAL_BASE), ("arena", 0)):
        inside = rest & (addresses >= base) & (addresses < base + WINDOW) if base else rest
        if np.count_nonzero(inside):
            found.append((name, np.uint64(base), slice(None) if inside.all() else np.flatnonzero(inside)))
        rest = rest & ~inside
    return found


def conflict_free_rounds(addresses: Array) -> list[Array]:
    """Split indices into rounds such that no address occurs twice in a round and the order at each address is kept."""
    if not len(addresses):
        return []
    order = np.argsort(addresses, kind="stable")
    sorted_addresses = addresses[order]
    starts = np.flatnonzero(np.r_[True, sorted_addresses[1:] != sorted_addresses[:-1]])
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    if not np.count_nonzero(rank):
        return [np.arange(len(addresses))]
    by_rank = np.argsort(rank, kind="stable")
    edges = np.flatnonzero(np.diff(rank[by_rank])) + 1
    return [order[part] for part in np.split(by_rank, edges)]


class Watchers:
    """Several watchers as one."""

    def __init__(self, watchers: list[Any]) -> None:
        self.watchers = watchers

    def access(
        self, ins: Instruction | None, space: str, kind: str, addresses: Array, size: int, threads: Array,
        values: Array | None = None,
    ) -> None:  # fmt: skip
        for watcher in self.watchers:
            watcher.access(ins, space, kind, addresses, size, threads, values)


BLOCK_BITS = 18
BLOCK_BYTES = 1 << BLOCK_BITS
WINDOWS = 0xFFFF_FFFF & -BLOCK_BYTES  # the address bits that select the block


def in_block(address: Any, rank: Any) -> Any:
    """Return the address in block `rank` that corresponds to `address`; scalars or arrays."""
    return address & ~np.uint64(WINDOWS) | np.uint64(rank) << np.uint64(BLOCK_BITS)


class ClusterPort(Port):
    """The shared memory of all blocks of a cluster, `each` bytes per block."""

    def __init__(self, blocks: int, each: int, watcher: Watcher | None = None) -> None:
        size = (blocks - 1) * BLOCK_BYTES + each
        super().__init__("shared", Bytes.zeros(size), size, watcher)
        self.each = each

    def check_bounds(self, addresses: Array, size: int, threads: Array) -> None:
        super().check_bounds(addresses, size, threads)
        inside = addresses & np.uint64(BLOCK_BYTES - 1)
        if np.count_nonzero(wrong := inside + np.uint64(size) > self.each):
            what = f"{size} bytes at shared address %#x are outside of its {self.each} bytes"
            raise MemoryFault.first(wrong, inside, threads, what)

    def checked_offsets(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        self.check(addresses, size, align, threads)
        return addresses


LARGEST_FRAMES = 512 << 10
LARGEST_PARAMETER = 32 << 10


def assign_offsets(variables: Iterable[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Lay out variables one after the other, aligned; return their offsets and the end."""
    offsets = {}
    for variable in variables:
        start = (start + variable.align - 1) // variable.align * variable.align
        offsets[variable.name] = start
        start += variable.size
    return offsets, start


def variables_in(module: PtxModule, *spaces: str) -> list[Variable]:
    """Return the variables of the module and of all function bodies. The latter are renamed (``k buffer``), because two
    bodies may use the same name."""
    found = [variable for variable in module.variables.values() if variable.space in spaces]
    for function in module.functions.values():
        found += [
            replace(variable, name=inside(function, name))
            for name, variable in function.variables.items()
            if variable.space in spaces
        ]
    return found


def inside(function: Function, name: str) -> str:
    """Return the module-wide name of a variable of a function body."""
    return f"{function.name} {name}"


def names_in(function: Function, symbols: dict[str, int]) -> dict[str, int]:
    """Return the addresses of the names that a function body can use."""
    return symbols | {
        name: symbols[inside(function, name)] for name in function.variables if inside(function, name) in symbols
    }


def shared_layout(module: PtxModule, dynamic: int) -> tuple[dict[str, int], int]:
    """Return the offsets of shared variables and the bytes a block needs; variables without a size share the `dynamic`
    bytes at the end."""
    shared = variables_in(module, "shared")
    offsets, end = assign_offsets(variable for variable in shared if variable.count is not None)
    open_ended = [variable for variable in shared if variable.count is None]
    align = max((variable.align for variable in open_ended), default=16)
    start = (end + align - 1) // align * align if open_ended or dynamic else end
    offsets |= {variable.name: start for variable in open_ended}
    return offsets, (start + dynamic + 3) // 4 * 4  # narrow atomics access the whole 32-bit word around their bytes


def local_layout(module: PtxModule) -> tuple[dict[str, int], int]:
    """Return the offsets of the module's own local variables, and their size. Those of functions are in a frame for
    each call."""
    offsets, end = assign_offsets(variable for variable in module.variables.values() if variable.space == "local")
    return offsets, (end + 15) // 16 * 16


def frame_layout(function: Function, start: int) -> tuple[dict[str, int], int]:
    """Return the offsets in the local window of the frame of one call: the function's local variables, and copies of
    the parameters whose address it takes."""
    kept = [variable for variable in function.variables.values() if variable.space == "local"]
    if not function.is_kernel:
        taken = {
            operand.name for ins in function.instructions for operand in ins.operands if isinstance(operand, Symbol)
        }
        kept += [variable for variable in function.params if variable.name in taken]
    offsets, end = assign_offsets(kept, start)
    if end > LARGEST_FRAMES:
        raise EmulatorError(
            f"{function.name} needs {end} bytes of local memory in a thread; {LARGEST_FRAMES} are possible"
        )
    return offsets, (end + 15) // 16 * 16


def module_variables(module: PtxModule, memory: Memory, functions: dict[str, int] | None = None) -> dict[str, int]:
    """Allocate and initialise the global and constant variables of a module; return their addresses. Initial values may
    contain addresses of `functions`."""
    variables = variables_in(module, "global", "const")
    symbols = {
        variable.name: memory.allocate(max(1, variable.size), max(256, variable.align)) for variable in variables
    }
    known = {**(functions or {}), **symbols}
    for variable in variables:
        data = bytearray(variable.size)
        data[: len(variable.initial)] = variable.initial
        for offset, symbol, _ in variable.pointers:
            if symbol.name not in known:
                raise EmulatorError(
                    f"{variable.name} is initialised with the address of {symbol.name}, which is not in the module"
                )
            size = 8
            data[offset : offset + size] = (known[symbol.name] + symbol.offset).to_bytes(size, "little")
        if data:
            memory.write(symbols[variable.name], bytes(data))
    return symbols


def local_variables(function: Function, threads: int) -> dict[str, Array]:
    """Return an array (threads, bytes) for each parameter variable that a body declares for its calls."""
    found = {}
    for variable in function.variables.values():
        if variable.space == "param":
            if variable.size > LARGEST_PARAMETER:
                raise EmulatorError(
                    f"the parameter {variable.name} has {variable.size} bytes; {LARGEST_PARAMETER} are possible"
                )
            found[variable.name] = np.zeros((threads, (variable.size + 15) // 16 * 16), np.uint8)
    return found


def parameter_layout(function: Function) -> tuple[dict[str, int], int]:
    """Return the offsets of a kernel's parameters, as the driver lays them out, and their size."""
    return assign_offsets(function.params)
