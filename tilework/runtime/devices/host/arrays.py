"""Host memory of an argument as a NumPy array: the bridge from torch, DLPack and others to the evaluator.

Only the address and the extent matter here; elements are interpreted by the kernel's own pointer types.
"""

import ctypes
from typing import Any

import numpy as np

from tilework.runtime.devices.host.pack import bytes_of, exported_array, storage_extent


def as_array(arg: Any) -> Any:
    """The memory behind a pointer argument; addresses and None stay what they are."""
    if arg is None or isinstance(arg, int | np.ndarray):
        return arg
    base = getattr(arg, "base", None)
    if base is not None and hasattr(arg, "data_ptr") and not hasattr(arg, "untyped_storage"):
        memory = as_array(base)
        skipped = arg.data_ptr() - memory.ctypes.data
        return memory if skipped == 0 else bytes_at(arg.data_ptr(), memory.nbytes - skipped)
    if hasattr(arg, "data_ptr"):
        return backwards(arg) if has_negative_strides(arg) else bytes_at(arg.data_ptr(), extent_bytes(arg))
    if hasattr(arg, "__array_interface__"):
        return np.asarray(arg)
    return exported_array(arg)


def bytes_at(address: int, size: int) -> Any:
    """`size` bytes of memory; nothing is copied and nothing keeps it alive."""
    if size == 0 or address == 0:
        return np.empty(0, np.uint8) if address == 0 else address
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


def has_negative_strides(tensor: Any) -> bool:
    """No tensor of torch has them, but what wraps one may."""
    return callable(getattr(tensor, "stride", None)) and any(stride < 0 for stride in tensor.stride())


def backwards(tensor: Any) -> Any:
    """The memory of a wrapper that begins inside of its storage and reads what is in front."""
    extent = storage_extent(tensor)
    if extent is None:
        raise TypeError(f"{type(tensor).__name__} has negative strides, and does not say what is in front of it")
    size = tensor.element_size()
    strides = [stride * size for stride in tensor.stride()]
    return np.ndarray(tensor.shape, f"u{size}", bytes_at(*extent), tensor.data_ptr() - extent[0], strides)


def extent_bytes(tensor: Any) -> int:
    """From the first element of a tensor to the end of its storage."""
    if (extent := storage_extent(tensor)) is not None:
        start, size = extent
        return max(start + size - tensor.data_ptr(), 0)
    if (size := bytes_of(tensor)) is not None:
        return size
    raise TypeError(f"{type(tensor).__name__} does not say how large its memory is: give it `nbytes`")
