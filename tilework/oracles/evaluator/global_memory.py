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

"""

import ctypes
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from tilework.ir.types import PointerType
from tilework.numerics.rounding import UNSIGNED, Array
from tilework.oracles.evaluator.rules import Fault
from tilework.oracles.evaluator.values import BOOL, memory_bytes, storage

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
