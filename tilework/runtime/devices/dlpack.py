"""What an object says about its memory through DLPack, read without keeping the memory: its owner is an argument of the launch.

    >>> exported(jax_array, stream=0)
    Exported(address=139637976727552, code='bf16', device=0)

GPU arrays of a type that the CUDA array interface has no letter for (JAX's bf16 and fp8) can be had in no other way.
"""

import ctypes
from typing import Any, NamedTuple

CUDA, ROCM = 2, 10  # DLPack's numbers of kinds of devices
CODES = {(0, bits): f"i{bits}" for bits in (8, 16, 32, 64)} | {(1, bits): f"u{bits}" for bits in (8, 16, 32, 64)}
CODES |= {(2, 16): "fp16", (2, 32): "fp32", (2, 64): "fp64", (4, 16): "bf16", (6, 8): "u1"}
CODES |= {(10, 8): "fp8e4nv", (11, 8): "fp8e4b8", (12, 8): "fp8e5", (13, 8): "fp8e5b16"}
DEFAULT_STREAMS = {CUDA: 1, ROCM: 0}  # how DLPack calls those that drivers call 0


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_uint64), ("kind", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
    )  # fmt: skip


class Exported(NamedTuple):
    """Where memory begins, the code of its elements' type, and which device it is on."""

    address: int
    code: str
    device: int


def is_cuda_export(arg: Any) -> bool:
    """Whether an object offers memory of a GPU through DLPack."""
    is_export = hasattr(arg, "__dlpack__") and hasattr(arg, "__dlpack_device__")
    return is_export and int(arg.__dlpack_device__()[0]) in DEFAULT_STREAMS


def exported(arg: Any, stream: int) -> Exported:
    """What the capsule says that `arg` gives for work on a stream, which it waits for by itself."""
    chosen = stream or DEFAULT_STREAMS[int(arg.__dlpack_device__()[0])]
    capsule, pointer = arg.__dlpack__(stream=chosen), ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = Tensor.from_address(pointer(capsule, b"dltensor"))
    code = CODES.get((tensor.code, tensor.bits))
    if code is None or tensor.lanes != 1:
        kind = f"DLPack's type {tensor.code} with {tensor.bits} bits"
        raise TypeError(f"kernels have no element type for an argument of type {type(arg).__name__}: it is {kind}")
    return Exported(tensor.data + tensor.offset, code, tensor.device)
