"""The stream that torch uses at this moment, as machine code asks for it: two functions of torch's library.

    current, handle = torch_stream_functions(0)      # addresses of c10::cuda::getCurrentCUDAStream, and of what makes a handle of its result

Asking through Python takes longer than starting a kernel should. The first gives two words, a device and a number, and the second
the driver's handle. They are called through ctypes first, in streams that differ, and must say what Python says.
"""

import ctypes
import os
import sys
from typing import Any

StreamFunctions = tuple[int, int]
NO_FUNCTIONS: StreamFunctions = (0, 0)
CUDA_NAMES = "_ZN3c104cuda20getCurrentCUDAStreamEa", "_ZNK3c104cuda10CUDAStream6streamEv"
HIP_NAMES = "_ZN3c103hip19getCurrentHIPStreamEa", "_ZNK3c103hip9HIPStream6streamEv"
LIBRARIES = {False: ("libc10_cuda.so", [CUDA_NAMES]), True: ("libc10_hip.so", [HIP_NAMES, CUDA_NAMES])}  # by `is_hip`
HIP = 6  # torch's number of the kind of device, which tensors do not have: they say cuda
# handles that nothing is ever sent to; torch takes odd ones for streams of its own, and ends the process
TRIED = (2, 1 << 40)

_found: dict[int, StreamFunctions] = {}  # by device


class Stream(ctypes.Structure):
    """c10::Stream."""

    _fields_ = (("device", ctypes.c_uint64), ("id", ctypes.c_int64))


def torch_stream_functions(device: int, is_hip: bool = False) -> StreamFunctions:
    """The addresses of both, 0 if they are not what they should be. While a graph is recorded nothing is tried."""
    if device not in _found:
        torch = sys.modules["torch"]
        if torch.cuda.is_current_stream_capturing():
            return NO_FUNCTIONS
        try:
            _found[device] = tried(torch, device, is_hip)
        except (OSError, AttributeError, RuntimeError, TypeError):
            _found[device] = NO_FUNCTIONS
    return _found[device]


def tried(torch: Any, device: int, is_hip: bool) -> StreamFunctions:
    file, spellings = LIBRARIES[is_hip]
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", file))
    names = next((names for names in spellings if all(hasattr(library, name) for name in names)), spellings[0])
    current, handle = (getattr(library, name) for name in names)
    current.argtypes, current.restype = [ctypes.c_int8], Stream
    handle.argtypes, handle.restype = [ctypes.c_void_p], ctypes.c_void_p

    def agrees() -> bool:
        stream, known = current(device), torch.cuda.current_stream(device)
        kind, index = stream.device & 0xFF, stream.device >> 8 & 0xFF
        kinds = (known.device_type, HIP) if is_hip else (known.device_type,)
        if (stream.id, index) != (known.stream_id, known.device_index) or kind not in kinds:
            return False  # the other one throws if it is given something else, and nobody would catch it
        return (handle(ctypes.byref(stream)) or 0) == torch._C._cuda_getCurrentRawStream(device)

    with torch.cuda.stream(torch.cuda.default_stream(device)):
        right = (
            agrees() and current(device).id == torch._C._cuda_getCurrentRawStream(device) == 0
        )  # machine code knows that
    right = right and agrees()
    for number in TRIED:
        with torch.cuda.stream(torch.cuda.ExternalStream(number, device=device)):
            right = right and agrees() and torch._C._cuda_getCurrentRawStream(device) == number
    if not right:
        return NO_FUNCTIONS
    found = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (current, handle))
    return next(found), next(found)
