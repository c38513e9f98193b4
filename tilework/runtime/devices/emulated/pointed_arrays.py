"""The arrays whose addresses an argument holds, as those of a grouped matrix multiplication do: a kernel may load and
use them.

    table = np.array([row.ctypes.data for row in rows])
    gather[grid](table, out)                                  # the kernel reaches the rows through the table

On a GPU an address is enough. Here every access is checked against the arrays of a launch, so those that are pointed to
are looked for among all that are alive. The address of something that has been freed is then an address in no array.
"""

import gc
import sys
import weakref
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import Any

import numpy as np

from tilework.oracles.emulator.memory import END
from tilework.oracles.interpreter.allowed_memory import Region
from tilework.oracles.interpreter.arguments import region_of
from tilework.runtime.devices.host.evaluator_launcher import as_array

LOWEST = min(
    1 << 32, id(None)
)  # smaller values are sizes and indices; a heap may begin below 4 GiB, but not before the interpreter
LARGEST = 1 << 44
BATCH = 1000
ARRAY, CONTAINER = 1, 2  # a container may hold arrays without the collector knowing it
Found = tuple[Any, Region]
RECENT: list[tuple[Any, Region]] = []  # what was found last, by weak references


def pointed_arrays(arrays: Iterable[object], addresses: Iterable[int]) -> list[Found]:
    """The live arrays that `addresses` and 64-bit integers in `arrays` point into."""
    wanted = np.array(sorted({*addresses, *(value for array in arrays for value in addresses_in(array))}), np.int64)
    if not len(wanted):
        return []
    found = [(array, region) for reference, region in RECENT if (array := reference()) is not None]
    if not all(any(region.start <= address < region.end for _, region in found) for address in wanted):
        found = [pair for pair in live_arrays() if is_pointed(pair[1], wanted)]
        RECENT[:] = [(weakref.ref(array), region) for array, region in found]
    return [pair for pair in found if is_pointed(pair[1], wanted)]


def addresses_in(array: object) -> list[int]:
    """The elements that can be addresses."""
    if str(getattr(array, "dtype", "")).removeprefix("torch.") not in ("int64", "uint64"):
        return []
    memory = as_array(array)
    size = memory.size // 8 * 8 if memory.dtype == np.uint8 else None
    values = memory.reshape(-1)[:size].view(np.int64) if size is not None else memory.reshape(-1).view(np.int64)
    return np.unique(values[(values >= LOWEST) & (values < END)]).tolist()


def is_pointed(region: Region, wanted: Any) -> bool:
    """Return True if one of the sorted addresses is inside of an extent."""
    if region.end - region.start > LARGEST:  # what the emulator sees all memory through
        return False
    at = int(np.searchsorted(wanted, region.start))
    return at < len(wanted) and int(wanted[at]) < region.end


def live_arrays() -> Iterator[Found]:
    """Yield every live NumPy array and tensor, and its extent."""
    seen: set[int] = set()
    waiting: list[Any] = gc.get_objects()
    for frame in sys._current_frames().values():
        while frame is not None:
            waiting.append(frame)  # `f_locals` would keep what it shows alive
            frame = frame.f_back
    kinds = Kinds()
    items = [item for item in kinds.known(waiting) if kinds[type(item)] == ARRAY]
    while waiting:
        batch = waiting[-BATCH:]
        del waiting[-BATCH:]
        for item in kinds.known(gc.get_referents(*batch)):
            is_array = kinds[type(item)] == ARRAY
            if (is_array or not gc.is_tracked(item)) and id(item) not in seen:
                seen.add(id(item))
                (items if is_array else waiting).append(item)
        batch.clear()  # our own frame is among them, and would keep them alive
    for item in items:
        try:
            yield item, region_of("memory that an argument points to", item)[0]
        except (TypeError, ValueError, RuntimeError):  # of objects, on a GPU, without memory
            continue


class Kinds(dict[type, int]):
    """Return the kinds of objects that a type may be."""

    def known(self, items: list[Any]) -> Iterator[Any]:
        """Those that are something: without Python code for each of the millions that are not."""
        return compress(items, map(self.__getitem__, map(type, items)))

    def __missing__(self, kind: type) -> int:
        is_array = issubclass(kind, np.ndarray) or hasattr(kind, "untyped_storage")
        self[kind] = ARRAY if is_array else CONTAINER if kind in (tuple, dict) else 0
        return self[kind]
