"""Objects with the members of torch's tensors where machine code looks for them: native launches of tensors without torch, and without a GPU.

with stand_in_places(monkeypatch):
    x = StandIn(64)
    x.set("count", 0)        # as torch would by resizing it
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import pytest

from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.launch_kernel import CudaLauncher
from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native import machine as native_machine
from tilework.runtime.launch.native.entries import Memory
from tilework.runtime.launch.native.tensor_places import Places

PLACES = Places(16, 168, 160, 162, 40, 144, 152, 16, 59, 48)
KEYS, ELEMENT, DEVICE = 0x1234, 6, 1
SIZES = {"element": 2, "device": 2, "checked": 1}
IN_STORAGE = ("data", "checked", "size")


KEPT: list[Any] = []  # storages: implementations that tests exchange point at them


class StandIn:
    """A tensor of float32 on the emulated GPU; the implementation is a bytes object that it keeps."""

    __slots__ = ("_implementation", "base", "shape", "storage")  # in this order in memory, as Python sorts them
    is_cuda = True

    def __init__(self, *shape: int) -> None:
        self.shape, self.base = shape, DeviceArray(shape, "f4")
        self._implementation = bytes(192)
        self.take(ctypes.create_string_buffer(64))
        values = {"keys": KEYS, "element": ELEMENT, "device": DEVICE, "count": prod(shape)}
        for name, value in {**values, "data": self.base.data_ptr(), "size": 4 * prod(shape)}.items():
            self.set(name, value)

    def take(self, storage: Any) -> None:
        """Have another storage."""
        self.storage = storage
        KEPT.append(storage)
        self.set("storage", ctypes.addressof(storage))

    def place(self, name: str) -> Any:
        holder = self.get("storage") if name in IN_STORAGE else id(self._implementation)
        kind = {1: ctypes.c_uint8, 2: ctypes.c_uint16}.get(SIZES.get(name, 8), ctypes.c_int64)
        return kind.from_address(holder + getattr(PLACES, name))

    def set(self, name: str, value: int) -> None:
        self.place(name).value = value

    def get(self, name: str) -> int:
        return self.place(name).value

    def data_ptr(self) -> int:
        return self.get("data") + 4 * self.get("offset") if self.get("count") else 0

    def numel(self) -> int:
        return self.get("count")

    def element_size(self) -> int:
        return 4

    def stride(self) -> tuple[int, ...]:
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def dtype(self) -> Any:
        return self.base.dtype

    @property
    def device(self) -> Any:
        return self.base.device


class OtherStandIn(StandIn):
    """Of another class."""

    __slots__ = ()


def stand_in_memory(value: Any) -> Memory | None:
    return ("guard_fields", KEYS, ELEMENT | DEVICE << 16 | 4 << 32, None) if type(value) is StandIn else None


@contextmanager
def stand_in_places(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Machine code takes stand-ins for tensors of torch."""
    memory_of = CudaLauncher.memory_of
    monkeypatch.setattr(CudaLauncher, "memory_of", lambda self, value: stand_in_memory(value) or memory_of(self, value))
    context = (ctypes.c_int64 * len(layout.CONTEXT)).from_address(native_machine.address("launch.context"))
    before = list(context)
    first, window = len(context) - len(PLACES), layout.CONTEXT.index("window")
    context[first:], context[window] = list(PLACES), PLACES.window()
    try:
        yield
    finally:
        context[first:], context[window] = before[first:], before[window]
