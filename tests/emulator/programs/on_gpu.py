"""Run the table of programs on a real GPU, from the same PTX and inputs, and save the bits that come back.

    python -m tests.emulator.programs.on_gpu results.npz [NAME ...]       on the machine with the GPU
    python -m tests.emulator.programs.compare results.npz                 anywhere: the emulator must give the same bits

Needs NumPy, ml_dtypes and the driver's libcuda; nothing of tilework. A program that fails is reported and the others go
on; the exit code is 1 if any failed or differs from NumPy by more than its tolerance.
"""

import ctypes
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.emulator.programs.table import PROGRAMS, Out, Program

HERE = Path(__file__).parent
DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
LOG, LOG_SIZE = 5, 6  # CU_JIT_ERROR_LOG_BUFFER and its size


def plain(ptx: str) -> str:
    """Without the names of inlined functions: they refer to sections of debug information, which are not checked in."""
    return re.sub(r"(\.loc\s+\d+\s+\d+\s+\d+),[^\n]*", r"\1", ptx)


class GpuError(Exception):
    """A call of the driver that failed."""


class Gpu:
    """The first device, through libcuda."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *args: Any) -> None:
        status = getattr(self.cuda, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise GpuError(f"{name}: {(text.value or b'').decode()} ({status})")

    def load(self, ptx: str) -> ctypes.c_void_p:
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(LOG, LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(8192))
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), plain(ptx).encode(), 2, options, values)
        except GpuError as error:
            raise GpuError(f"{error}: {log.value.decode(errors='replace')}") from None
        return module

    def upload(self, array: np.ndarray) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        data = np.ascontiguousarray(array)
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, data.nbytes)))
        self.call("cuMemcpyHtoD_v2", address, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))
        return address

    def download(self, address: ctypes.c_uint64, like: np.ndarray) -> np.ndarray:
        out = np.empty(like.shape, like.dtype)
        self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), address, ctypes.c_size_t(out.nbytes))
        return out

    def launch(
        self, module: ctypes.c_void_p, name: str, grid: list[int], block: list[int], shared: int, args: list[Any]
    ) -> None:
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, DYNAMIC_SHARED, shared)
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.cast(ctypes.byref(arg), ctypes.c_void_p) for arg in args))
        self.call("cuLaunchKernel", function, *grid, *block, shared, None, pointers, None)
        self.call("cuCtxSynchronize")


def sizes(given: Any) -> list[int]:
    parts = [given] if isinstance(given, int) else list(given)
    return [*parts, 1, 1][:3]


def run(gpu: Gpu, program: Program) -> dict[int, np.ndarray]:
    """The arrays among the arguments after a launch, by index."""
    indices, arrays, passed = {}, {}, []
    for number, argument in enumerate(program.arguments()):
        if isinstance(argument, Out):
            argument = np.zeros(argument.size, argument.dtype)
        if isinstance(argument, np.ndarray) and argument.dtype.names is None:
            arrays[number], indices[number] = argument, gpu.upload(argument)
            passed.append(indices[number])
        elif isinstance(argument, int):
            passed.append(ctypes.c_int32(argument))
        else:
            data = np.asarray(argument).tobytes()
            passed.append((ctypes.c_char * len(data)).from_buffer_copy(data))
    module = gpu.load((HERE / f"{program.module}.ptx").read_text())
    gpu.launch(module, program.name, sizes(program.grid), sizes(program.block), program.shared, passed)
    found = {number: gpu.download(index, arrays[number]) for number, index in indices.items()}
    for index in indices.values():
        gpu.call("cuMemFree_v2", index)
    gpu.call("cuModuleUnload", module)
    return found


def differs(program: Program, found: dict[int, np.ndarray]) -> str:
    """Describe how a result differs from NumPy's by more than the tolerance, if it does."""
    for number, expected in program.expected(*program.arguments()).items():
        width = expected.shape[-1]
        mine = found[number].astype(np.float64).reshape(-1, width)
        wanted = expected.astype(np.float64).reshape(-1, width)
        if not (np.abs(mine - wanted).max(axis=1) <= program.tolerance * np.abs(wanted).max(axis=1)).all():
            return f"argument {number} differs from NumPy by {np.abs(mine - wanted).max():g}"
    return ""


def main(file: str, names: list[str]) -> int:
    gpu, saved, failed = Gpu(), {}, 0
    for program in PROGRAMS:
        if names and program.name not in names:
            continue
        try:
            found = run(gpu, program)
            problem = differs(program, found)
        except GpuError as error:
            found, problem = {}, str(error)
        print(f"{program.name}: {problem or 'as NumPy'}")
        failed += bool(problem)
        saved |= {f"{program.name}.{number}": array.reshape(-1).view(np.uint8) for number, array in found.items()}
    np.savez_compressed(file, **saved)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
