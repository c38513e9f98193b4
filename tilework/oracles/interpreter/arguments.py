"""Conversion of the arguments of a launch to values of the kernel.

    int 5             an int32 scalar            1              the compile-time 1, as the compiler specialises it
    float             an fp32 scalar             None           None
    an array          a pointer into it          a tuple        a tuple of such values
    a descriptor      a tensor descriptor        a tl.constexpr parameter takes any Python value as it is

An annotation forces the type of a scalar. An array is any object whose memory is in this process: NumPy's arrays,
torch's CPU tensors, objects with `data_ptr()`, `dtype` and a size, and CPU arrays that support DLPack.
"""

import weakref
from dataclasses import replace
from typing import Any

import numpy as np

from tilework.errors import ArgumentError
from tilework.language import core as tl
from tilework.language.dtypes import (
    block_type,
    dtype,
    float32,
    int1,
    int32,
    int64,
    pointer_type,
    uint64,
)
from tilework.language.function import JITCallable
from tilework.language.parameters import ARGUMENT_KINDS, KernelParam, canonicalize_dtype, no_element_type, str_to_ty
from tilework.language.typing.windows import descriptor_padding
from tilework.oracles.interpreter.allowed_memory import REGISTERED, Memory, Region, region_of_array, strided_extent
from tilework.oracles.interpreter.semantic import Semantic
from tilework.oracles.interpreter.tensors import bytes_in_memory, plain, scalar_as, tensor

DLPACK_CPU, DLPACK_CUDA_HOST = 1, 3
INTEGER_TYPES = ((int32, -(2**31), 2**31), (int64, -(2**63), 2**63), (uint64, 2**63, 2**64))


class Arguments:
    """Converts the arguments of one launch; registers their memory in `memory`."""

    def __init__(self, semantic: Semantic, memory: Memory) -> None:
        self.semantic, self.memory = semantic, memory

    def convert(self, param: KernelParam, value: Any) -> Any:
        """Return the value of one parameter."""
        value = python_number(value)
        if param.is_constexpr:
            return plain(value)
        name = f"argument {param.name!r}"
        forced = str_to_ty(param.annotation_type) if param.annotation_type else None
        if forced is not None and not isinstance(value, tl.constexpr):
            return self.forced(name, value, forced, param)
        return self.value(name, value, param.is_const, not param.do_not_specialize)

    def forced(self, name: str, value: Any, type: dtype, param: KernelParam) -> Any:
        """Return the value of a parameter whose annotation gives its type."""
        if value is None:
            return None
        if isinstance(type, pointer_type):
            if isinstance(value, int):
                return tensor(np.asarray(value, dtype=np.int64), type)
            address = self.value(name, value, type.const, True)
            return tl.tensor(address.handle, type)
        if isinstance(value, (bool, int, float)):
            if type.is_int() and isinstance(value, float):
                raise TypeError(f"{name} is annotated as {type}, but {value!r} is a float")
            return tensor(scalar_as(value, type), type)
        return self.value(name, value, param.is_const, not param.do_not_specialize)

    def value(self, name: str, value: Any, is_const: bool = False, specialize: bool = True) -> Any:
        """Return a value of any kind as a launch specialises it."""
        value = python_number(value)
        if isinstance(value, tl.constexpr):
            return value.value
        if value is None or isinstance(value, JITCallable):
            return value
        if isinstance(value, bool):
            return tensor(np.asarray(value), int1)
        if isinstance(value, int):
            element = integer_type(value)
            return 1 if specialize and value == 1 else tensor(scalar_as(int(value), element), element)
        if isinstance(value, float):
            return tensor(scalar_as(float(value), float32), float32)
        if isinstance(value, tuple):
            items = [self.value(f"{name}[{index}]", item) for index, item in enumerate(value)]
            types = [item.type if isinstance(item, tl.base_value) else tl.constexpr_type(item) for item in items]
            return tl.tuple(items, tl.tuple_type(types, getattr(value, "_fields", None)))
        if is_host_descriptor(value):
            return self.descriptor(name, value)
        region, element, owner = region_of(name, value)
        pointer = self.memory.add(region, owner)
        return tl.tensor(pointer, pointer_type(element, const=is_const))

    def descriptor(self, name: str, host: Any) -> tl.tensor_descriptor:
        """Return the descriptor of a `TensorDescriptor` of the host."""
        base = self.value(f"{name}.base", host.base)
        element = base.type.element_ty
        lists = (host.shape, host.strides, host.block_shape)
        shape, strides, block = (tuple(int(size) for size in sizes) for sizes in lists)
        padding = descriptor_padding(getattr(host, "padding", "zero"), element)
        found = self.semantic.descriptor(base, shape, strides, block_type(element, block), padding)
        found.handle = replace(found.handle, rounds_to_tf32=bool(getattr(host, "round_f32_to_tf32", False)))
        return found


def python_number(value: Any) -> Any:
    """Return the Python number that a NumPy scalar equals, and anything else as it is."""
    number = value.item() if isinstance(value, np.generic) else value
    return number if isinstance(number, bool | int | float) else value


def integer_type(value: int) -> dtype:
    for element, first, end in INTEGER_TYPES:
        if first <= value < end:
            return element
    raise OverflowError(f"the integer argument {value} does not fit in 64 bits")


def is_host_descriptor(value: Any) -> bool:
    return all(hasattr(value, name) for name in ("base", "shape", "strides", "block_shape"))


def region_of(name: str, value: Any, on_host: bool = True) -> tuple[Region, dtype, Any]:
    """Return the memory of an array-like argument, its element type, and its owner; memory of a device if `on_host` is
    false."""
    if isinstance(value, np.ndarray):
        return region_of_array(name, value), element_of(name, value.dtype), value
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return region_of_tensor(name, value, on_host), element_of(name, value.dtype), value
    if hasattr(value, "__cuda_array_interface__"):
        if not on_host:
            facts = value.__cuda_array_interface__
            array_type, data, shape = np.dtype(facts["typestr"]), int(facts["data"][0]), tuple(facts["shape"])
            steps = facts.get("strides") or [
                array_type.itemsize * int(np.prod(shape[axis:])) for axis in range(1, len(shape) + 1)
            ]
            extent = strided_extent(data, shape, steps, array_type.itemsize)
            return Region(name, *extent, data, array_type.itemsize, (name, data)), element_of(name, array_type), value
        raise ValueError(f"{name} is GPU memory ({type(value).__name__}): the interpreter needs arrays of the host")
    if hasattr(value, "__dlpack__"):
        device = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else DLPACK_CPU
        if device not in (DLPACK_CPU, DLPACK_CUDA_HOST):
            raise ValueError(f"{name} is on DLPack device {device}: the interpreter needs arrays of the host")
        array = np.from_dlpack(value)
        return region_of_array(name, array), element_of(name, array.dtype), array
    raise ArgumentError(f"failed to specialize argument of type: {type(value).__name__} ({name}): {ARGUMENT_KINDS}")


def register_memory(array: Any, name: str = "registered memory") -> Any:
    """Allow kernels to access `array` through addresses they load or compute; it is held weakly. Returns it.

    A NumPy array; for the sanitizer on a GPU, memory of that device.

    rows = [register_memory(np.zeros(64, np.float32)) for _ in range(8)]
    table = np.array([row.ctypes.data for row in rows])          # a kernel may now load through these addresses
    """
    REGISTERED[:] = [entry for entry in REGISTERED if entry[0]() is not None]
    is_array = isinstance(array, np.ndarray)
    region = region_of_array(name, array) if is_array else region_of(name, array, on_host=False)[0]
    REGISTERED.append((weakref.ref(array), region))
    return array


def element_of(name: str, array_type: Any) -> dtype:
    try:
        return array_type if isinstance(array_type, dtype) else str_to_ty(canonicalize_dtype(array_type))
    except KeyError:
        raise TypeError(f"{name}: {no_element_type(array_type)}") from None


def region_of_tensor(name: str, value: Any, on_host: bool = True) -> Region:
    """Return the extent of an object with `data_ptr()`, from its sizes and strides, or its size in bytes."""
    device = str(getattr(value, "device", "cpu"))
    if on_host and device.split(":")[0] not in ("cpu", "None", ""):
        raise ValueError(f"{name} is on {device}: the interpreter needs arrays of the host")
    data = int(value.data_ptr())
    itemsize = bytes_in_memory(element_of(name, value.dtype))
    storage: object = (name, data)
    if hasattr(value, "untyped_storage"):
        storage = int(value.untyped_storage().data_ptr())
    shape = getattr(value, "shape", None)
    strides = value.stride() if callable(getattr(value, "stride", None)) else None
    if shape is not None and strides is not None:
        steps = [int(stride) * itemsize for stride in strides]
        start, end = strided_extent(data, [int(size) for size in shape], steps, itemsize)
        return Region(name, start, end, data, itemsize, storage)
    if shape is not None:
        count = int(np.prod([int(size) for size in shape], dtype=np.int64))
    elif hasattr(value, "numel"):
        count = int(value.numel())
    elif isinstance(nbytes := getattr(value, "nbytes", None), int):
        count = nbytes // itemsize
    else:
        raise TypeError(f"{name} has data_ptr() but no size: give it shape, numel() or nbytes")
    return Region(name, data, data + count * itemsize, data, itemsize, storage)
