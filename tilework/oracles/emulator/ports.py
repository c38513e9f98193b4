"""How instructions reach memory: a port checks the addresses of all active threads at once, then reads or writes them.

    port = t.port("shared")
    values = port.read(addresses, np.uint32, 4, threads)       # (threads, 4) words; threads[i] made addresses[i]
    port.write(addresses, values, threads)

Whoever watches (the race checker, the counters) is told of every access here and nowhere else, so a new instruction that
uses a port is watched without more. Addresses are uint64 arrays, of the port's own space: shared and local ones start at 0.
"""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tilework.oracles.emulator.arenas import (
    ALIGNMENT,
    FIRST,
    LOCAL_BASE,
    SHARED_BASE,
    WINDOW,
    Array,
    Bytes,
    Memory,
    MemoryFault,
)

if TYPE_CHECKING:
    from tilework.oracles.emulator.syntax import Instruction


SHIFT = {width: np.uint64(width.bit_length() - 1) for width in (1, 2, 4, 8)}
BITS = {width: np.dtype(f"u{width}") for width in (1, 2, 4, 8)}


class Columns(dict[int, Array]):
    """The numbers of the elements of a row, by their count."""

    def __missing__(self, count: int) -> Array:
        self[count] = np.arange(count)
        return self[count]


COLUMNS = Columns()


class Watcher(Protocol):
    """Told of accesses before they happen. `kind` is "load", "store", "atomic", or "async load", "async store" for what the
    copy engine and the tensor cores do on behalf of a thread. Writes come with their `values`, a row for each address."""

    def access(
        self, ins: "Instruction | None", space: str, kind: str, addresses: Array, size: int, threads: Array, values: Array | None = None,
    ) -> None: ...  # fmt: skip


class Port:
    """One space of one block. `size` bytes of it exist; the arena's bounds are those of its allocations."""

    def __init__(self, space: str, data: Bytes, size: int, watcher: Watcher | None = None) -> None:
        self.space, self.data, self.size, self.watcher = space, data, size, watcher

    def check(self, addresses: Array, size: int, align: int, threads: Array) -> None:
        """`MemoryFault` unless all addresses are aligned and inside."""
        if align > 1 and np.count_nonzero(wrong := addresses & np.uint64(align - 1)):
            raise MemoryFault.first(wrong, addresses, threads, f"{self.space} address %#x is not a multiple of {align}")
        self.check_bounds(addresses, size, threads)

    def check_bounds(self, addresses: Array, size: int, threads: Array) -> None:
        if int(addresses.max()) + size > self.size:
            what = f"{size} bytes at {self.space} address %#x are outside of its {self.size} bytes"
            raise MemoryFault.first(addresses + np.uint64(size) > self.size, addresses, threads, what)

    def places(self, addresses: Array, threads: Array) -> Array:
        """Where the addresses lie in `data`."""
        return addresses

    def checked_places(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        """`places` after `check`. The or of all addresses is no less than any and shows a bit that one is misaligned by, so it mostly
        answers both questions at once."""
        together = int(np.bitwise_or.reduce(addresses))
        if together & (align - 1) or together + size > self.size:
            self.check(addresses, size, align, threads)
        return self.places(addresses, threads)

    def read(
        self, addresses: Array, dtype: Any, count: int, threads: Array, ins: "Instruction | None" = None,
        kind: str = "load", align: int | None = None,
    ) -> Array:  # fmt: skip
        """`count` elements at each address, as an array (addresses, count)."""
        if not len(addresses):
            return np.empty((0, count), dtype)
        width = np.dtype(dtype).itemsize
        places = self.checked_places(addresses, width * count, width * count if align is None else align, threads)
        if self.watcher is not None:
            self.watcher.access(ins, self.space, kind, addresses, width * count, threads)
        first = (places >> SHIFT[width]).view(np.int64)
        view = self.data.views[width]
        if count == 1:
            return view[first].view(dtype)[:, None]
        return view[first[:, None] + COLUMNS[count]].view(dtype)

    def write(
        self, addresses: Array, values: Array, threads: Array, ins: "Instruction | None" = None,
        kind: str = "store", align: int | None = None,
    ) -> None:  # fmt: skip
        """`values[i]` (a row of elements) to `addresses[i]`; of several threads at one address the last one stays."""
        if not len(addresses):
            return
        width, count = values.dtype.itemsize, values.shape[1]
        places = self.checked_places(addresses, width * count, width * count if align is None else align, threads)
        if self.watcher is not None:
            self.watcher.access(ins, self.space, kind, addresses, width * count, threads, values)
        first = (places >> SHIFT[width]).view(np.int64)
        view, bits = self.data.views[width], np.ascontiguousarray(values).view(BITS[width])
        if count == 1:
            view[first] = bits[:, 0]
        else:
            view[first[:, None] + COLUMNS[count]] = bits

    def read_bytes(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        """Rows of bytes, which need not be aligned to their size."""
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
    """The widest element that accesses of this size and alignment consist of."""
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

    def places(self, addresses: Array, threads: Array) -> Array:
        return addresses - np.uint64(FIRST)

    def write(self, addresses: Array, values: Array, threads: Array, *args: Any, **kwargs: Any) -> None:
        if self.memory.has_constants:
            self.memory.check_writable(addresses, threads)
        super().write(addresses, values, threads, *args, **kwargs)

    def checked_places(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        start, end = self.memory.around(int(addresses[0]))
        base = start & -ALIGNMENT  # an allocation starts at a multiple of 256, memory that is lent anywhere
        inside = addresses - np.uint64(base)
        together = int(np.bitwise_or.reduce(inside))
        if together & (align - 1) or together + size > end - base or (base < start and int(addresses.min()) < start):
            self.check(addresses, size, align, threads)
        return inside + np.uint64(base - FIRST)


class LocalPort(Port):
    """Memory of one thread: the same address means other bytes in another thread."""

    def places(self, addresses: Array, threads: Array) -> Array:
        return addresses + threads.astype(np.uint64) * np.uint64(self.size)

    def grow(self, size: int, threads: int) -> None:
        """Make room for `size` bytes in each thread; what is there stays."""
        if size > self.size:
            larger = Bytes.zeros(size * threads)
            larger.data[: size * threads].reshape(threads, size)[:, : self.size] = self.rows(threads)
            self.data, self.size = larger, size

    def rows(self, threads: int) -> Array:
        """The bytes of each thread."""
        return self.data.data[: self.size * threads].reshape(threads, self.size)


class GenericPort:
    """Any space, told by the address. All threads are mostly in one; if not, each space is served in turn."""

    space = "generic"

    def __init__(self, arena: ArenaPort, shared: Port, local: Port) -> None:
        self.arena, self.shared, self.local = arena, shared, local

    def parts(self, addresses: Array) -> list[tuple[Port, np.uint64, Array | slice]]:
        """(port, its base, which addresses) of the spaces that occur."""
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
    """(``arena``, ``shared`` or ``local``, its base, which generic addresses) of the spaces that occur."""
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


def in_turns(addresses: Array) -> list[Array]:
    """Rounds of indices such that no address occurs twice in a round and the order at each address is kept."""
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
        self, ins: "Instruction | None", space: str, kind: str, addresses: Array, size: int, threads: Array, values: Array | None = None,
    ) -> None:  # fmt: skip
        for watcher in self.watchers:
            watcher.access(ins, space, kind, addresses, size, threads, values)
