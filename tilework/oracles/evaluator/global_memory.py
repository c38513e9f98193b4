"""The memory a program may touch: the arrays it was given, and nothing else.

A pointer is the integer address of real memory, so a store is seen in the caller's array. Every access is checked
against the registered extents:

    memory = Memory()
    x = memory.register("x", np.arange(8, dtype=np.float32))
    memory.load(np.array([x, x + 4]), None, f32)    # array([0., 1.])
    memory.load(np.array([x + 32]), None, f32)      # Fault: reads element 8 of argument 'x', which has 8 elements

While a program computes with a pointer, the bits above the address (48 of them are in use) hold the number of the array
it came from. An index that leaves its array is thus an error also where another array begins. A pointer that becomes
an integer or goes to memory loses the number, and is then good for every registered array.

Arrays may be views with strides: the extent is then from their first to their last byte.
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from tilework.ir.types import PointerType
from tilework.numerics.rounding import UNSIGNED, Array
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import BOOL, memory_bytes, storage
from tilework.oracles.evaluator.foreign_rules import mapped_bytes

ADDRESS_BITS = 48
ADDRESS_MASK = np.int64((1 << ADDRESS_BITS) - 1)


@dataclass
class Extent:
    """One registered array: bytes `start` to `end`, seen as bytes or as integers of one size."""

    name: str
    array: Array
    start: int
    end: int
    words: dict[int, Array] = field(default_factory=dict)

    def as_words(self, size: int) -> Array:
        """The extent as unsigned integers of `size` bytes; a rest that fills none is left out."""
        if (words := self.words.get(size)) is None:
            count = (self.end - self.start) // size
            buffer = memoryview((ctypes.c_uint8 * (count * size)).from_address(self.start))
            words = self.words[size] = np.frombuffer(buffer, dtype=UNSIGNED[size])
        return words


class Memory:
    """The registered extents, and checked access to them."""

    def __init__(self, foreign: bool = False) -> None:
        self.extents: list[Extent] = []
        self.foreign = foreign  # pointers without an array may reach any memory of this process

    def register(self, name: str, array: Array) -> int:
        """Allow access to `array` under the name that errors show; a pointer to it."""
        address = array.__array_interface__["data"][0]
        reach = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
        low = address + sum(step for step in reach if step < 0)
        high = address + sum(step for step in reach if step > 0) + array.itemsize
        self.extents.append(Extent(name, array, low, high if array.size else low))
        return address | len(self.extents) << ADDRESS_BITS

    def load(self, pointer: Array, mask: Array | None, type: Attribute, other: Array | None = None) -> Array:
        """The elements of `type` at `pointer`; lanes that are masked off give `other`, or zero without one."""
        size, dtype = memory_bytes(type), storage(type)
        pointer = np.asarray(pointer)
        if mask is not None:
            mask = np.broadcast_to(mask, pointer.shape)
            if mask.all():
                mask = None
        active = pointer.reshape(-1) if mask is None else pointer[mask]
        words = self.gather(active, size)
        values = words != 0 if dtype == BOOL else words.view(dtype)
        if mask is None:
            return values.reshape(pointer.shape)
        result = np.zeros(pointer.shape, dtype) if other is None else np.array(np.broadcast_to(other, pointer.shape))
        result[mask] = values
        return result

    def store(self, pointer: Array, value: Array, mask: Array | None, type: Attribute) -> None:
        """Write each active lane; of lanes with the same address the last one stays."""
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
        """The words of `size` bytes at a flat array of pointers."""
        words = np.empty(pointer.size, UNSIGNED[size])
        for extent, lanes, offset in self.places(pointer, size, "reads"):
            if not (offset % size).any():
                words[lanes] = extent.as_words(size)[offset // size]
            else:
                spread = extent.as_words(1)[offset[:, None] + np.arange(size)]
                words[lanes] = np.ascontiguousarray(spread).view(UNSIGNED[size]).reshape(-1)
        return words

    def scatter(self, pointer: Array, words: Array, size: int) -> None:
        """Write a flat array of words of `size` bytes."""
        places = self.places(pointer, size, "writes")
        for extent, _, _ in places:
            if not extent.array.flags.writeable:
                raise Fault(f"writes to argument '{extent.name}', which is read-only")
        for extent, lanes, offset in places:
            if not (offset % size).any():
                extent.as_words(size)[offset // size] = words[lanes]
            else:
                spread = np.ascontiguousarray(words[lanes]).view(np.uint8).reshape(-1, size)
                extent.as_words(1)[offset[:, None] + np.arange(size)] = spread

    def places(self, pointer: Array, size: int, verb: str) -> list[tuple[Extent, Any, Array]]:
        """Which lanes fall into which extent, and at which offset in bytes; a lane in none is a fault."""
        if pointer.size == 0:
            return []
        first, last = int(pointer.min()) >> ADDRESS_BITS, int(pointer.max()) >> ADDRESS_BITS
        if first == last:  # by far the usual case: every lane comes from one array
            return self.places_of(first, pointer, slice(None), size, verb)
        number = pointer >> ADDRESS_BITS
        return [
            place
            for one in np.unique(number)
            for place in self.places_of(int(one), pointer[number == one], np.flatnonzero(number == one), size, verb)
        ]

    def places_of(
        self, number: int, pointer: Array, lanes: Any, size: int, verb: str
    ) -> list[tuple[Extent, Any, Array]]:
        """The same for pointers into array `number`; 0 stands for any array."""
        address = plain(pointer)
        candidates = self.extents[number - 1 : number] if number else self.extents
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
            if self.foreign and number == 0 and (array := mapped_bytes(stray)) is not None:
                self.register("memory", array)
                return self.places_of(number, pointer, lanes, size, verb)
            raise Fault(explain(candidates, int(address[missing][0]), size, verb))
        return [place for place in found if place[2].size]


def plain(pointer: Array) -> Array:
    """The address in a pointer."""
    return np.asarray(pointer) & ADDRESS_MASK


def explain(extents: list[Extent], address: int, size: int, verb: str) -> str:
    """Words for an access outside `extents`, counted from the nearest one."""
    if address == 0:
        return f"{verb} the null pointer"
    if not extents:
        return f"{verb} address {address:#x}, which belongs to no argument"
    near = min(extents, key=lambda extent: max(extent.start - address, address - extent.end, 0))
    count = (near.end - near.start) // size
    index = (address - near.start) // size
    return f"{verb} element {index} of argument '{near.name}', which has {count} elements of {size} bytes"
