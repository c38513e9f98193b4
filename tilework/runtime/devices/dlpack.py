"""The memory of an object as DLPack describes it, read without keeping the memory: its owner is an argument of the
launch.

    >>> exported(jax_array, stream=0)
    Exported(address=139637976727552, code='bf16', device=0)

It is the only interface of GPU arrays whose type the CUDA array interface cannot name (JAX's bf16 and fp8).
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

CUDA, ROCM = 2, 10  # DLPack's ids of kinds of devices
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


class ExchangeApi(NamedTuple):
    """Addresses of two functions of a library's `DLPackExchangeAPI`, which C code calls with the GIL; 0 and -1 as
    results.

    `describe(object, DLTensor*)` fills in a `Tensor` that owns nothing; `current_stream(kind, device, void**)` is the
    stream that the library puts work into.
    """

    describe: int
    current_stream: int


class ExchangeHeader(ctypes.Structure):
    """The start of `DLPackExchangeAPI`; the functions follow from version 1 on."""

    _fields_ = (("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p))


EXCHANGE_MAJOR = 1
DESCRIBE, CURRENT_STREAM = 3, 4  # among the functions behind the header


@cache
def exchange_api(cls: type) -> ExchangeApi | None:
    """The functions that a class offers as ``__dlpack_c_exchange_api__`` (torch since 2.10); None if it does not."""
    capsule = getattr(cls, "__dlpack_c_exchange_api__", None)
    if type(capsule).__name__ != "PyCapsule":
        return None
    address = capsule_pointer(capsule, b"dlpack_exchange_api")
    while address and ExchangeHeader.from_address(address).major != EXCHANGE_MAJOR:
        address = ExchangeHeader.from_address(address).previous
    if not address:
        return None
    functions = (ctypes.c_uint64 * 5).from_address(address + ctypes.sizeof(ExchangeHeader))
    return ExchangeApi(functions[DESCRIBE], functions[CURRENT_STREAM])


def described(arg: object, api: ExchangeApi) -> Tensor | None:
    """The `Tensor` of an object, whose shape and strides the object keeps; None if DLPack cannot describe it."""
    describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(api.describe)
    found = Tensor()
    try:
        return found if describe(arg, ctypes.addressof(found)) == 0 else None
    except (RuntimeError, TypeError, ValueError, BufferError):  # a sparse tensor, or one of another device
        return None


def capsule_pointer(capsule: object, name: bytes) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name) or 0


class Exported(NamedTuple):
    """The address of memory, the code of its elements' type, and its device."""

    address: int
    code: str
    device: int


def is_cuda_export(arg: Any) -> bool:
    """Return True if an object offers memory of a GPU through DLPack."""
    is_export = hasattr(arg, "__dlpack__") and hasattr(arg, "__dlpack_device__")
    return is_export and int(arg.__dlpack_device__()[0]) in DEFAULT_STREAMS


def exported(arg: Any, stream: int) -> Exported:
    """The memory in the capsule that `arg` exports for work on a stream; the exporter synchronises the stream."""
    chosen = stream or DEFAULT_STREAMS[int(arg.__dlpack_device__()[0])]
    capsule = arg.__dlpack__(stream=chosen)
    tensor = Tensor.from_address(capsule_pointer(capsule, b"dltensor"))
    code = CODES.get((tensor.code, tensor.bits))
    if code is None or tensor.lanes != 1:
        kind = f"DLPack's type {tensor.code} with {tensor.bits} bits"
        raise TypeError(f"kernels have no element type for an argument of type {type(arg).__name__}: it is {kind}")
    return Exported(tensor.data + tensor.offset, code, tensor.device)
