"""Where torch keeps what the native launcher reads of a tensor, found by looking at tensors that differ in it.

    tensor_places()        # where the Python object has the address of the implementation, and what stands where in that

Asking a tensor for an attribute costs 100 ns, reading its member 1 ns, but the members move between versions of torch. So
they are searched for; if the search does not end in exactly one place for each, there is no answer. The set of dispatch keys
stands for the layout and everything else that makes a tensor special. A storage is `checked` if torch has to look before
it gives its address away: the memory may be shared until somebody writes, or be there in name only.
"""

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

from tilework.runtime.launch.native.layout import WINDOW

IMPLEMENTATION_BYTES = 192  # how much of an implementation is looked at; it is larger in every version of torch 2
STORAGE_BYTES = 64
DEVICES = {"cpu": 0, "cuda": 1}  # as torch numbers them


class Places(NamedTuple):
    """Bytes from the start of what holds them: `implementation` in the object, four in the storage, the rest between."""

    implementation: int
    keys: int
    element: int
    device: int
    storage: int
    offset: int
    count: int
    data: int
    checked: int
    size: int

    def window(self) -> int:
        """Where all that a launch reads of an implementation but its storage lies close together; 0 if it does not."""
        members = {self.keys: 8, self.element: 2, self.device: 2, self.offset: 8, self.count: 8}
        start, end = min(members), max(at + size for at, size in members.items())
        return start if end <= start + WINDOW <= IMPLEMENTATION_BYTES else 0


def word_at(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def half_at(address: int) -> int:
    return ctypes.c_uint16.from_address(address).value


def byte_at(address: int) -> int:
    return ctypes.c_uint8.from_address(address).value


def device_bytes(tensor: Any) -> int:
    """A device as torch keeps it: the number of its kind and its index, a byte each."""
    return DEVICES[tensor.device.type] | (tensor.device.index if tensor.device.index is not None else 255) << 8


def only(candidates: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """The one place that fits, if it is one."""
    found = [at for at in candidates if fits(at)]
    return found[0] if len(found) == 1 else None


@cache
def tensor_places() -> Places | None:
    """The places; None if they are not clear. Nothing is put on a GPU for this: its streams may be recording a graph.

    Nor is anything computed: `torch.zeros` may be a kernel, of a library that replaces torch's operators.
    """
    import numpy as np  # lazily: torch, which is optional, is loaded already
    import torch

    dtypes = (torch.float32, torch.float64, torch.int32, torch.uint8, torch.float16)
    # of five dimensions, for which an implementation has room: no word of it is left as it was found
    shapes = ((3, 2, 1, 4, 2), (5, 3, 2, 1, 3), (2, 5, 3, 2, 1))
    views = [(7 + 4 * index, 7 + 4 * index + prod(shape), shape) for index, shape in enumerate(shapes)]
    samples = {
        d: [torch.empty(end, dtype=d, device="cpu")[at:].view(shape) for at, end, shape in views[:2]] for d in dtypes
    }
    at, end, shape = views[2]
    tensors = [
        *(t for group in samples.values() for t in group),
        torch.from_numpy(np.zeros(end, "f4"))[at:].view(shape),
    ]
    elsewhere = [torch.empty(shape, device="meta") for shape in shapes]
    if any(type(tensor) is not torch.Tensor for tensor in (*tensors, *elsewhere)):
        return None
    share: Any = getattr(torch, "_lazy_clone", lambda tensor: tensor)
    shared = [share(torch.empty(size, device="cpu")) for size in (3, 50, 700)]

    def values(read: Callable[[int], int], at: int, group: Sequence[Any]) -> set[int]:
        return {read(tensor._cdata + at) for tensor in group}

    def tells_kinds(at: int) -> bool:
        here, away = values(word_at, at, tensors), values(word_at, at, elsewhere)
        return len(here) == len(away) == 1 and here != away

    def tells_dtypes(at: int) -> bool:
        each = [values(half_at, at, group) for group in samples.values()]
        return all(len(one) == 1 for one in each) and len(set.union(*each)) == len(each)

    def holds(of: Callable[[Any], int], read: Callable[[int], int] = word_at) -> Callable[[int], bool]:
        return lambda at: all(read(tensor._cdata + at) == of(tensor) for tensor in tensors)

    def storage_holds(of: Callable[[Any], int]) -> Callable[[int], bool]:
        storages = [tensor.untyped_storage() for tensor in tensors]
        return lambda at: all(word_at(storage._cdata + at) == of(storage) for storage in storages)

    def tells_shared(at: int) -> bool:
        plain, copies = ({byte_at(t.untyped_storage()._cdata + at) for t in group} for group in (tensors, shared))
        return plain == {0} and copies == {1}

    words, of_storage = range(0, IMPLEMENTATION_BYTES, 8), range(0, STORAGE_BYTES, 8)
    members = range(16, torch.Tensor.__basicsize__ - 7, 8)
    size = only(of_storage, storage_holds(lambda storage: storage.nbytes()))
    found = (
        only(members, lambda at: all(word_at(id(t) + at) == t._cdata for t in (*tensors, *elsewhere))),
        only(words, tells_kinds),
        only(range(0, IMPLEMENTATION_BYTES, 2), tells_dtypes),
        only(range(0, IMPLEMENTATION_BYTES), holds(device_bytes, half_at)),
        only(words, holds(lambda tensor: tensor.untyped_storage()._cdata)),
        only(words, holds(lambda tensor: tensor.storage_offset())),
        only(words, holds(lambda tensor: tensor.numel())),
        only(of_storage, storage_holds(lambda storage: storage.data_ptr())),
        None if size is None else only(range(size + 8, size + 16), tells_shared),
        size,
    )
    return None if None in found else Places(*(at or 0 for at in found))


def tensor_facts(tensor: Any) -> tuple[int, int] | None:
    """(dispatch keys as a signed number, element type, device and bytes of an element as one) of a tensor; None if it is special."""
    if tensor.device.type not in DEVICES or not tensor.numel() or (places := tensor_places()) is None:
        return None
    implementation = word_at(id(tensor) + places.implementation)
    storage, size = word_at(implementation + places.storage), tensor.element_size()
    device = half_at(implementation + places.device)
    if not storage or device != device_bytes(tensor):
        return None
    if word_at(storage + places.data) + word_at(implementation + places.offset) * size != tensor.data_ptr():
        return None
    keys = ctypes.c_int64.from_address(implementation + places.keys).value
    return keys, half_at(implementation + places.element) | device << 16 | size << 32
