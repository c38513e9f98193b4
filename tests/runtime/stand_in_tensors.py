"""Objects that offer DLPack's exchange interface as torch's tensors do: native launches of tensors without torch, and
without a GPU.

with stand_in_tensors(monkeypatch):
    x = StandIn(64)
    x.offset = 16        # as torch would by `set_`
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any

import pytest

from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.driver import CudaLauncher
from tilework.runtime.devices.dlpack import CUDA, Tensor
from tilework.runtime.launch.native.entries import Memory, element_bits
from tilework.targets.llvm.compile import jit_load, to_object

ELEMENTS = {"float32": (2, 32), "float64": (2, 64)}
# DLPack's `dltensor_from_py_object_no_sync`: the `Tensor` is the first member of a stand-in, in a buffer
DESCRIBE = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @describe(ptr %object, ptr %out) {
  %member = getelementptr i8, ptr %object, i64 16
  %address = load ptr, ptr %member
  %buffer = getelementptr i8, ptr %address, i64 32
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %buffer, i64 48, i1 false)
  %code = getelementptr i8, ptr %address, i64 80
  %result = load i32, ptr %code
  ret i32 %result
}
"""
HEADER = 32  # of a bytes object


class StandIn:
    """A tensor of float32 on the emulated GPU; `_described` is a bytes object with its `Tensor` and the result of
    `describe`."""

    __slots__ = ("_described", "_sizes", "base", "count", "data", "offset", "shape")  # in this order in memory
    is_cuda = True

    def __init__(self, *shape: int) -> None:
        self._described = bytes(ctypes.sizeof(Tensor) + 8)
        self.shape, self.base, self.count, self.offset = shape, DeviceArray(shape, "f4"), prod(shape), 0
        self.data = self.base.data_ptr()
        self.tell()

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if name in ("base", "count", "data", "offset") and hasattr(self, "data"):
            self.tell()

    def tell(self, result: int = 0) -> None:
        """Write what DLPack says."""
        self._sizes = (ctypes.c_int64 * (2 * len(self.shape)))(*self.shape, *self.stride())
        at = ctypes.addressof(self._sizes)
        code, bits = ELEMENTS[str(self.base.dtype)]
        described = Tensor.from_address(id(self._described) + HEADER)
        found = Tensor(self.data_ptr(), CUDA, 0, len(self.shape), code, bits, 1, at, at + 8 * len(self.shape), 0)
        ctypes.memmove(ctypes.addressof(described), ctypes.addressof(found), ctypes.sizeof(Tensor))
        ctypes.c_int32.from_address(ctypes.addressof(described) + ctypes.sizeof(Tensor)).value = result

    def data_ptr(self) -> int:
        return self.data + 4 * self.offset if self.count and self.data else 0

    def numel(self) -> int:
        return self.count

    def element_size(self) -> int:
        return 4

    def is_neg(self) -> bool:
        return False

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


def stand_in_memory(describe: int) -> Callable[[Any], Memory | None]:
    def memory_of(value: Any) -> Memory | None:
        if type(value) is not StandIn or not value.data_ptr():
            return None
        found = Tensor.from_address(id(value._described) + HEADER)
        return "guard_dlpack", element_bits(found), describe, type(value).is_neg

    return memory_of


@contextmanager
def stand_in_tensors(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Machine code takes stand-ins for tensors of torch."""
    code, real = jit_load(to_object(DESCRIBE), ["describe"]), CudaLauncher.memory_of
    memory = stand_in_memory(code["describe"])
    monkeypatch.setattr(CudaLauncher, "memory_of", lambda self, value: memory(value) or real(self, value))
    yield
    assert code, "alive until here"
