"""The memory a kernel may touch: its arguments, the arrays that were registered, and nothing else.

Pointers are real addresses, held as int64. While a kernel computes with a pointer, the array (`Pointers`) remembers the
argument it came from, so an index that leaves its argument is an error even where another argument begins. An address
that went through an integer or through memory has lost its origin, and may point into any known memory.

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

from tilework.numerics.nans import canonical
from tilework.numerics.rounding import UNSIGNED, Array

LANGUAGE = str(Path(sys.modules["tilework.language"].__file__ or "").parent)
MARK = "__tilework_interpreter__"  # in the globals of every function that the interpreter runs


class AccessError(IndexError):
    """Memory that a kernel must not touch; the text says where and what."""


class Pointers(np.ndarray):
    """Addresses that know the `Region` they were made from; views and sums of them know it too."""

    origin: "Region | None"

    def __array_finalize__(self, source: Any) -> None:
        self.origin = getattr(source, "origin", None)


def pointing(addresses: Any, like: Any) -> Array:
    """Addresses that were computed from `like`: they have its origin."""
    result = np.asarray(addresses)
    if (origin := getattr(like, "origin", None)) is None:
        return result
    result = result.view(Pointers)
    result.origin = origin
    return result


@dataclass(eq=False)
class Region:
    """One array in memory: bytes `start` to `end`, of which the array's own first element is at `data`."""

    name: str
    start: int
    end: int
    data: int
    itemsize: int
    storage: object
    is_writable: bool = True
    words: dict[int, Array] = field(default_factory=dict)

    def pointer(self) -> Pointers:
        """The address of the first element."""
        result = np.asarray(self.data, dtype=np.int64).view(Pointers)
        result.origin = self
        return result

    def as_words(self, size: int) -> tuple[int, Array]:
        """The address of the first aligned word of `size` bytes, and all of them."""
        first = -(-self.start // size) * size
        if size not in self.words:
            count = max(0, self.end - first) // size
            buffer = memoryview((ctypes.c_uint8 * (count * size)).from_address(first))
            self.words[size] = np.frombuffer(buffer, dtype=UNSIGNED[size])
        return first, self.words[size]


# called with the addresses and the size of elements that a launch writes
ON_WRITE: ContextVar[Callable[[Array, int], None] | None] = ContextVar("on_write", default=None)
REGISTERED: list[tuple[Any, Region]] = []  # (weak reference to the array, its region)


def region_of_array(name: str, array: Array) -> Region:
    """The extent of a NumPy array, also of a view with strides."""
    data = array.__array_interface__["data"][0]
    start, end = strided_extent(data, array.shape, array.strides, array.itemsize)
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return Region(name, start, end, data, array.itemsize, id(base), bool(array.flags.writeable))


def strided_extent(data: int, shape: Any, byte_strides: Any, itemsize: int) -> tuple[int, int]:
    """The first byte and the byte after the last of an array."""
    if 0 in shape:
        return data, data
    reaches = [(size - 1) * stride for size, stride in zip(shape, byte_strides, strict=True)]
    return data + sum(min(0, reach) for reach in reaches), data + itemsize + sum(max(0, reach) for reach in reaches)


class Memory:
    """All regions of one launch, and checked access to them."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.keep: list[Any] = []  # what owns the memory must live as long as the launch
        self.program: tuple[int, int, int] = (0, 0, 0)
        self.is_reproducible = False  # NaNs are written as one pattern
        self.on_write = ON_WRITE.get()
        for reference, region in REGISTERED:
            if (array := reference()) is not None:
                self.keep.append(array)
                self.regions.append(region)

    def add(self, region: Region, owner: Any) -> Pointers:
        """Allow access to a region; a pointer to it."""
        self.regions.append(region)
        self.keep.append(owner)
        return region.pointer()

    def load(self, addresses: Array, mask: Array | None, dtype: np.dtype[Any]) -> Array:
        """The elements at `addresses`; zero where the mask is false."""
        addresses = np.asanyarray(addresses)
        if not addresses.shape and (mask is None or mask):
            words, place = self.word(addresses, dtype.itemsize, False)
            found = words[place : place + 1].view(dtype) if dtype != np.bool_ else words[place : place + 1] != 0
            return found.reshape(()).copy()
        flat = (np.asarray(addresses) if mask is None else np.asarray(addresses)[mask]).reshape(-1)
        found = np.empty(flat.size, UNSIGNED[dtype.itemsize])
        for region, chosen in self.find(flat, dtype.itemsize, getattr(addresses, "origin", None), False):
            first, words = region.as_words(dtype.itemsize)
            found[chosen] = words[(flat[chosen] - first) // dtype.itemsize]
        if mask is None:
            result = found.reshape(addresses.shape)
        else:
            result = np.zeros(addresses.shape, found.dtype)
            result[mask] = found
        return result != 0 if dtype == np.bool_ else result.view(dtype)

    def store(self, addresses: Array, values: Array, mask: Array | None) -> None:
        """Write `values` where the mask is true; of several for one address the last stays."""
        addresses = np.asanyarray(addresses)
        values = canonical(values) if self.is_reproducible else values
        size = values.dtype.itemsize
        if not addresses.shape and not values.shape:
            if mask is None or mask:
                words, place = self.word(addresses, size, True)
                words[place] = values.view(UNSIGNED[size])
                if self.on_write is not None:
                    self.on_write(np.asarray(addresses).reshape(1), size)
            return
        bits = np.ascontiguousarray(values).view(UNSIGNED[size]).reshape(values.shape)
        lanes, bits = (np.asarray(addresses), bits) if mask is None else (np.asarray(addresses)[mask], bits[mask])
        lanes, bits = lanes.reshape(-1), bits.reshape(-1)
        for region, chosen in self.find(lanes, size, getattr(addresses, "origin", None), True):
            first, words = region.as_words(size)
            words[(lanes[chosen] - first) // size] = bits[chosen]
        if self.on_write is not None:
            self.on_write(lanes, size)

    def word(self, address: Array, size: int, writing: bool) -> tuple[Array, int]:
        """The words of the region of one address, and which of them it is; checked as by `find`."""
        region, place = getattr(address, "origin", None), int(address)
        is_inside = region is not None and region.start <= place and place + size <= region.end
        if region is None or not is_inside or place % size or (writing and not region.is_writable):
            ((region, _),) = self.find(np.asarray(address).reshape(1), size, region, writing)
        first, words = region.as_words(size)
        return words, (place - first) // size

    def find(self, addresses: Array, size: int, origin: Region | None, writing: bool) -> list[tuple[Region, Any]]:
        """The regions that `addresses` point into, each with the lanes that do; raises AccessError about the first
        access that is misaligned, outside, or a write to read-only memory."""
        if not addresses.size:
            return []
        if size > 1 and int(np.bitwise_or.reduce(addresses)) & (size - 1):
            raise self.fault(int(addresses[addresses % size != 0][0]), size, origin, writing, "misaligned")
        low, high = int(addresses.min()), int(addresses.max()) + size
        if origin is not None and origin.start <= low and high <= origin.end:
            found: list[tuple[Region, Any]] = [(origin, slice(None))]
        else:
            found = self.search(addresses, size, origin, writing)
        if writing:
            for region, chosen in found:
                if not region.is_writable:
                    raise self.fault(int(addresses[chosen][0]), size, region, writing, "read-only")
        return found

    def search(self, addresses: Array, size: int, origin: Region | None, writing: bool) -> list[tuple[Region, Any]]:
        """As `find`, lane by lane: an origin allows only its own array and others that share its memory."""
        missing = np.ones(addresses.shape, np.bool_)
        found: list[tuple[Region, Any]] = []
        for region in self.regions:
            if origin is not None and region.storage != origin.storage:
                continue
            inside = missing & (addresses >= region.start) & (addresses + size <= region.end)
            if inside.any():
                found.append((region, inside))
                missing &= ~inside
        if missing.any():
            raise self.fault(int(addresses[missing][0]), size, origin, writing, "outside")
        return found

    def fault(self, address: int, size: int, region: Region | None, writing: bool, kind: str) -> AccessError:
        """The error about one access."""
        verb = "writes" if writing else "reads"
        place = f"{kernel_line()}: program {self.program} {verb}"
        if region is None:
            nearest = min(self.regions, key=lambda r: max(r.start - address, address - r.end), default=None)
            dangling = f"{place} address {address:#x}, which is in no array the kernel was given"
            if kind == "misaligned":
                return AccessError(f"{place} {size} bytes at address {address:#x}, which is not a multiple of {size}")
            if nearest is None or not is_near(address, nearest):
                return AccessError(dangling)
            distance = (address - nearest.data) // nearest.itemsize
            return AccessError(f"{dangling} (the nearest is {nearest.name}: it would be element {distance} of it)")
        count = (region.end - region.start) // region.itemsize
        index, rest = divmod(address - region.data, region.itemsize)
        what = f"{place} element {index} of {region.name}"
        if kind == "read-only":
            return AccessError(f"{what}, which is read-only")
        if kind == "misaligned":
            off = f"plus {rest} bytes: address {address:#x} is not a multiple of {size}"
            return AccessError(f"{what} {off} (misaligned)")
        return AccessError(f"{what}, which has {count} elements (out of bounds)")


def is_near(address: int, region: Region) -> bool:
    """Close enough to a region to be a mistake in an index of it."""
    reach = max(4096, region.end - region.start)
    return region.start - reach <= address < region.end + reach


def kernel_line() -> str:
    """The line of the kernel that is running, ``file:line``: the innermost one outside the language's own library."""
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
