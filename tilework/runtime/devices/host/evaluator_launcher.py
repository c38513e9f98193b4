"""Launch on the host without machine code: the evaluator executes the kernel's optimised TTIR."""

import ctypes
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilework.language.function import JITCallable
from tilework.runtime.devices.host.pack import bytes_of, exported_array, is_nan, rounds_to_tf32, storage_extent
from tilework.runtime.devices.launcher import Extent, Launcher, Scratch

MOST_PROGRAMS = 2**31


class EvaluatorLauncher(Launcher):
    """Runs one compiled kernel, program after program."""

    def start(self, grid: Extent, stream: int, function: object, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program of the grid, in order."""
        self.evaluate(grid, function, args, scratch)

    def evaluate(self, grid: Extent, function: Any, args: Sequence[Any], scratch: Scratch, races: Any = None) -> None:
        """The same; `races` is memory that looks for races."""
        from tilework.oracles.evaluator import evaluate  # lazily: a whole executor, which few programs use

        if prod(grid) > MOST_PROGRAMS:
            sizes = " x ".join(map(str, grid))
            raise ValueError(f"a grid of {sizes} has {prod(grid)} programs; at most {MOST_PROGRAMS} can be run")
        values: list[Any] = []
        for type, arg in zip(self.signature or ["?"] * len(args), args, strict=True):
            runtime_values(type, arg, values)
        if self.needs_scratch:
            values += [buffer.data_ptr() if buffer is not None else None for buffer in scratch]
        evaluate(function, self.name, values, grid, foreign=True, races=races)


def runtime_values(type: Any, arg: Any, values: list[Any]) -> None:
    """The leaves of an argument that exist at run time, as the evaluator takes them."""
    if type == "constexpr" or isinstance(arg, JITCallable):
        return
    if isinstance(type, tuple):
        for inner, item in zip(type, arg, strict=True):
            runtime_values(inner, item, values)
    elif isinstance(type, str) and type.startswith("tensordesc"):
        flags = {"nan": is_nan(arg), "tf32": rounds_to_tf32(arg)}
        host = (as_array(arg.base), tuple(arg.shape), tuple(arg.strides))
        values.append((*host, *(flag for flag, is_set in flags.items() if is_set)))
    elif (isinstance(type, str) and type.startswith("*")) or hasattr(arg, "data_ptr"):
        values.append(as_array(arg))
    else:
        values.append(arg)


# ---- the host memory of an argument as a NumPy array; the kernel's own pointer types interpret its elements


def as_array(arg: Any) -> Any:
    """Return the memory of a pointer argument; addresses and None are returned as they are."""
    if arg is None or isinstance(arg, int | np.ndarray):
        return arg
    base = getattr(arg, "base", None)
    if base is not None and hasattr(arg, "data_ptr") and not hasattr(arg, "untyped_storage"):
        memory = as_array(base)
        skipped = arg.data_ptr() - memory.ctypes.data
        return memory if skipped == 0 else bytes_at(arg.data_ptr(), memory.nbytes - skipped)
    if hasattr(arg, "data_ptr"):
        # no tensor of torch has negative strides, but a wrapper may
        is_backwards = callable(getattr(arg, "stride", None)) and any(stride < 0 for stride in arg.stride())
        return backwards(arg) if is_backwards else bytes_at(arg.data_ptr(), extent_bytes(arg))
    if hasattr(arg, "__array_interface__"):
        return np.asarray(arg)
    return exported_array(arg)


def bytes_at(address: int, size: int) -> Any:
    """`size` bytes of memory; nothing is copied and nothing keeps it alive."""
    if size == 0 or address == 0:
        return np.empty(0, np.uint8) if address == 0 else address
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address)), np.uint8)


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
