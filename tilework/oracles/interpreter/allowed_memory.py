"""The memory that a kernel may access: its arguments, the registered arrays, and nothing else.

Pointers are real addresses, held as int64. While a kernel computes with a pointer, the array (`Pointers`) keeps its
provenance, the argument it came from, so an index that leaves its argument is an error even if another argument begins
there. An address that went through an integer or through memory has lost its provenance, and may point into any known
memory.

    x = np.arange(8.0)                  tl.load(x + 8)
    AccessError: add.py:12: program (0, 0, 0) reads element 8 of argument 'x', which has 8 elements
"""

import ctypes
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tilework.numerics.rounding import UNSIGNED, Array, canonical

LANGUAGE = str(Path(sys.modules["tilework.language"].__file__ or "").parent)
MARK = "__tilework_interpreter__"  # in the globals of every function that the interpreter runs


class AccessError(IndexError):
    """An invalid memory access of a kernel; the message has the line, the program and the element."""


class Pointers(np.ndarray):
    """Addresses with the `Region` they were derived from; views and sums of them keep it."""

    provenance: "Region | None"

    def __array_finalize__(self, source: Any) -> None:
        self.provenance = getattr(source, "provenance", None)


def pointing(addresses: Any, like: Any) -> Array:
    """Return addresses that were computed from `like`, with its provenance."""
    result = np.asarray(addresses)
    if (provenance := getattr(like, "provenance", None)) is None:
        return result
    result = result.view(Pointers)
    result.provenance = provenance
    return result


@dataclass(eq=False)
class Region:
    """One array in memory: bytes `start` to `end`; the array's first element is at `data`."""

    name: str
    start: int
    end: int
    data: int
    itemsize: int
    storage: object
    is_writable: bool = True
    views: dict[int, Array] = field(default_factory=dict)  # by size

    def pointer(self) -> Pointers:
        """Return the address of the first element."""
        result = np.asarray(self.data, dtype=np.int64).view(Pointers)
        result.provenance = self
        return result

    def as_integers(self, size: int) -> tuple[int, Array]:
        """Return the address of the first aligned integer of `size` bytes, and all of them."""
        first = -(-self.start // size) * size
        if size not in self.views:
            count = max(0, self.end - first) // size
            buffer = memoryview((ctypes.c_uint8 * (count * size)).from_address(first))
            self.views[size] = np.frombuffer(buffer, dtype=UNSIGNED[size])
        return first, self.views[size]


# called with the addresses and the size of the elements that a launch writes
ON_WRITE: ContextVar[Callable[[Array, int], None] | None] = ContextVar("on_write", default=None)
REGISTERED: list[tuple[Any, Region]] = []  # (weak reference to the array, its region)


def region_of_array(name: str, array: Array) -> Region:
    """Return the extent of a NumPy array, also of a view with strides."""
    data = array.__array_interface__["data"][0]
    start, end = strided_extent(data, array.shape, array.strides, array.itemsize)
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return Region(name, start, end, data, array.itemsize, id(base), bool(array.flags.writeable))


def strided_extent(data: int, shape: Any, byte_strides: Any, itemsize: int) -> tuple[int, int]:
    """Return the first byte and the byte after the last of an array."""
    if 0 in shape:
        return data, data
    reaches = [(size - 1) * stride for size, stride in zip(shape, byte_strides, strict=True)]
    return data + sum(min(0, reach) for reach in reaches), data + itemsize + sum(max(0, reach) for reach in reaches)


class Memory:
    """All regions of one launch, and checked access to them."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.keep: list[Any] = []  # owners of the memory, kept alive during the launch
        self.program: tuple[int, int, int] = (0, 0, 0)
        self.is_reproducible = False  # all NaNs are stored as one bit pattern
        self.on_write = ON_WRITE.get()
        for reference, region in REGISTERED:
            if (array := reference()) is not None:
                self.keep.append(array)
                self.regions.append(region)

    def add(self, region: Region, owner: Any) -> Pointers:
        """Allow access to a region; return a pointer to it."""
        self.regions.append(region)
        self.keep.append(owner)
        return region.pointer()

    def load(self, addresses: Array, mask: Array | None, dtype: np.dtype[Any]) -> Array:
        """Return the elements at `addresses`; zero where the mask is false."""
        addresses = np.asanyarray(addresses)
        if not addresses.shape and (mask is None or mask):
            integers, index = self.element_at(addresses, dtype.itemsize, False)
            found = integers[index : index + 1].view(dtype) if dtype != np.bool_ else integers[index : index + 1] != 0
            return found.reshape(()).copy()
        flat = (np.asarray(addresses) if mask is None else np.asarray(addresses)[mask]).reshape(-1)
        found = np.empty(flat.size, UNSIGNED[dtype.itemsize])
        for region, chosen in self.find(flat, dtype.itemsize, getattr(addresses, "provenance", None), False):
            first, integers = region.as_integers(dtype.itemsize)
            found[chosen] = integers[(flat[chosen] - first) // dtype.itemsize]
        if mask is None:
            result = found.reshape(addresses.shape)
        else:
            result = np.zeros(addresses.shape, found.dtype)
            result[mask] = found
        return result != 0 if dtype == np.bool_ else result.view(dtype)

    def store(self, addresses: Array, values: Array, mask: Array | None) -> None:
        """Write `values` where the mask is true; of several for one address the last one wins."""
        addresses = np.asanyarray(addresses)
        values = canonical(values) if self.is_reproducible else values
        size = values.dtype.itemsize
        if not addresses.shape and not values.shape:
            if mask is None or mask:
                integers, index = self.element_at(addresses, size, True)
                integers[index] = values.view(UNSIGNED[size])
                if self.on_write is not None:
                    self.on_write(np.asarray(addresses).reshape(1), size)
            return
        bits = np.ascontiguousarray(values).view(UNSIGNED[size]).reshape(values.shape)
        lanes, bits = (np.asarray(addresses), bits) if mask is None else (np.asarray(addresses)[mask], bits[mask])
        lanes, bits = lanes.reshape(-1), bits.reshape(-1)
        for region, chosen in self.find(lanes, size, getattr(addresses, "provenance", None), True):
            first, integers = region.as_integers(size)
            integers[(lanes[chosen] - first) // size] = bits[chosen]
        if self.on_write is not None:
            self.on_write(lanes, size)

    def element_at(self, address: Array, size: int, writing: bool) -> tuple[Array, int]:
        """Return the integers of the region of one address, and the address's index in them; checked as by `find`."""
        region, start = getattr(address, "provenance", None), int(address)
        is_inside = region is not None and region.start <= start and start + size <= region.end
        if region is None or not is_inside or start % size or (writing and not region.is_writable):
            ((region, _),) = self.find(np.asarray(address).reshape(1), size, region, writing)
        first, integers = region.as_integers(size)
        return integers, (start - first) // size

    def find(self, addresses: Array, size: int, provenance: Region | None, writing: bool) -> list[tuple[Region, Any]]:
        """Return the regions that `addresses` point into, each with its lanes; raise AccessError for the first access
        that is misaligned, out of bounds, or a write to read-only memory."""
        if not addresses.size:
            return []
        if size > 1 and int(np.bitwise_or.reduce(addresses)) & (size - 1):
            raise self.fault(int(addresses[addresses % size != 0][0]), size, provenance, writing, "misaligned")
        low, high = int(addresses.min()), int(addresses.max()) + size
        if provenance is not None and provenance.start <= low and high <= provenance.end:
            found: list[tuple[Region, Any]] = [(provenance, slice(None))]
        else:
            found = self.search(addresses, size, provenance, writing)
        if writing:
            for region, chosen in found:
                if not region.is_writable:
                    raise self.fault(int(addresses[chosen][0]), size, region, writing, "read-only")
        return found

    def search(self, addresses: Array, size: int, provenance: Region | None, writing: bool) -> list[tuple[Region, Any]]:
        """Like `find`, lane by lane: provenance allows only its own array and others that share its memory."""
        missing = np.ones(addresses.shape, np.bool_)
        found: list[tuple[Region, Any]] = []
        for region in self.regions:
            if provenance is not None and region.storage != provenance.storage:
                continue
            inside = missing & (addresses >= region.start) & (addresses + size <= region.end)
            if inside.any():
                found.append((region, inside))
                missing &= ~inside
        if missing.any():
            raise self.fault(int(addresses[missing][0]), size, provenance, writing, "outside")
        return found

    def fault(self, address: int, size: int, region: Region | None, writing: bool, kind: str) -> AccessError:
        """Return the error about one access."""
        verb = "writes" if writing else "reads"
        subject = f"{kernel_line()}: program {self.program} {verb}"
        if region is None:
            nearest = min(self.regions, key=lambda r: max(r.start - address, address - r.end), default=None)
            dangling = f"{subject} address {address:#x}, which is in no array the kernel was given"
            if kind == "misaligned":
                return AccessError(f"{subject} {size} bytes at address {address:#x}, which is not a multiple of {size}")
            if nearest is None or not is_near(address, nearest):
                return AccessError(dangling)
            distance = (address - nearest.data) // nearest.itemsize
            return AccessError(f"{dangling} (the nearest is {nearest.name}: it would be element {distance} of it)")
        count = (region.end - region.start) // region.itemsize
        index, rest = divmod(address - region.data, region.itemsize)
        what = f"{subject} element {index} of {region.name}"
        if kind == "read-only":
            return AccessError(f"{what}, which is read-only")
        if kind == "misaligned":
            off = f"plus {rest} bytes: address {address:#x} is not a multiple of {size}"
            return AccessError(f"{what} {off} (misaligned)")
        return AccessError(f"{what}, which has {count} elements (out of bounds)")


def is_near(address: int, region: Region) -> bool:
    """Return True if an address is so close to a region that a wrong index of it is likely."""
    reach = max(4096, region.end - region.start)
    return region.start - reach <= address < region.end + reach


def kernel_line() -> str:
    """Return the running line of the kernel, ``file:line``: the innermost one outside of the language's own library."""
    frame: Any = sys._getframe(1)
    library = None
    while frame is not None:
        if MARK in frame.f_globals:
            shown = f"{frame.f_code.co_filename}:{frame.f_lineno}"
            if not frame.f_code.co_filename.startswith(LANGUAGE):
                return shown
            library = library or shown
        frame = frame.f_back
    return library or "<kernel>"
