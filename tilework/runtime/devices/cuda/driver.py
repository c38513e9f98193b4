"""NVIDIA GPUs as devices: which one, its streams, its limits, loading and launching binaries.

    >>> driver.active.get_current_target()
    GPUTarget(backend='cuda', arch=90, warp_size=32)
    >>> module, function, n_regs, n_spills, n_max_threads = driver.active.utils.load_binary("add", cubin, shared=0, device=0)

Where torch is loaded and can use the GPU it decides about the current device and stream, and provides events and graphs;
else `device.py` does.

A machine with a GPU that can be used runs kernels there; TILEWORK_DEVICE=native and =evaluator ask for the CPU.
"""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilework import knobs
from tilework.runtime.devices.cuda import device as cuda_device
from tilework.runtime.devices.cuda.parameters import Parameter, parameters_of_ptx
from tilework.runtime.devices.cuda.torch_stream import NO_FUNCTIONS, StreamFunctions, torch_stream_functions
from tilework.runtime.devices.dlpack import is_cuda_export
from tilework.runtime.devices.driver import C_TYPES, Driver
from tilework.runtime.devices.launcher import refuse_negated
from tilework.runtime.devices.memory_places import DEVICE, place_of
from tilework.runtime.launch.specialize import is_array
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.libcuda import library

FLUSH_BYTES = 256 << 20  # larger than the L2 cache of every GPU
PLAIN_SHARED = 48 << 10  # a block has more only when it is asked for
MAGIC = (b"\x7fELF", b"\x50\xed\x55\xba")  # how cubins and fat binaries begin
LOG_BYTES = 8192
BYTES_OF_A_SPILL = 4


def torch_cuda() -> Any:
    """torch.cuda if torch is loaded and can use the GPU, else None. Torch is never imported for this."""
    found = sys.modules.get("torch")
    usable = getattr(found, "cuda", None)
    return usable if usable is not None and usable.is_available() else None


def is_fork_of_cuda_user() -> bool:
    """Whether torch used an NVIDIA GPU in the process that this one was forked from."""
    used = torch_cuda()
    return used is not None and used._is_in_bad_fork() and sys.modules["torch"].version.hip is None


class CudaUtils:
    """What the runtime asks a driver about devices and binaries."""

    def __init__(self) -> None:
        self._parameters: dict[int, tuple[Parameter, ...] | None] = {}
        self._properties: dict[int, dict[str, int]] = {}

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Limits and clocks (kHz) of a device."""
        if (known := self._properties.get(device)) is not None:
            return known
        attributes = {
            "max_shared_mem": libcuda.MAX_SHARED_OPTIN,
            "max_num_regs": libcuda.MAX_REGISTERS,
            "multiprocessor_count": libcuda.MULTIPROCESSORS,
            "warpSize": libcuda.WARP_SIZE,
            "sm_clock_rate": libcuda.CLOCK_RATE,
            "mem_clock_rate": libcuda.MEMORY_CLOCK_RATE,
            "mem_bus_width": libcuda.MEMORY_BUS_WIDTH,
        }
        found = {name: library().device_attribute(number, device) for name, number in attributes.items()}
        self._properties[device] = found
        return found

    def load_binary(self, name: str, binary: bytes | str, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """(module, function, registers, spills, most threads) of a kernel in a cubin or in PTX.

        `shared` is the dynamic shared memory that launches will ask for. Spills are counted in registers.
        """
        data = binary.encode() if isinstance(binary, str) else binary
        check_format(name, data)
        cuda_device.ensure_context(device)
        cuda = library()
        module = load_module(name, data)
        function = ctypes.c_void_p()
        if code := cuda.code("cuModuleGetFunction", ctypes.byref(function), module, name.encode()):
            cuda.code("cuModuleUnload", module)
            cuda.check(code, f" (no kernel {name!r} in the binary)")
        handle = function.value or 0
        if shared + cuda.function_attribute(libcuda.FUNCTION_SHARED, handle) > PLAIN_SHARED:
            cuda.cuFuncSetAttribute(handle, libcuda.FUNCTION_MAX_DYNAMIC_SHARED, shared)
        self._parameters[handle] = declared_parameters(handle, name, data)
        spilled = cuda.function_attribute(libcuda.FUNCTION_LOCAL, handle) // BYTES_OF_A_SPILL
        registers = cuda.function_attribute(libcuda.FUNCTION_REGISTERS, handle)
        return module, handle, registers, spilled, cuda.function_attribute(libcuda.FUNCTION_MAX_THREADS, handle)

    def parameters(self, function: int) -> tuple[Parameter, ...] | None:
        """What a loaded function declares; None if nothing can tell."""
        return self._parameters.get(function)

    def set_printf_fifo_size(self, size: int) -> None:
        """Bytes for what kernels print between two synchronisations; it must be set before the first kernel that prints."""
        cuda_device.ensure_context()
        library().cuCtxSetLimit(libcuda.LIMIT_PRINTF_FIFO, size)

    def fill_tma_descriptor(self, *args: Any, **kwargs: Any) -> Any:
        """A tensor map: (base, swizzle, elem_size, elem_type, block_size, shape, strides, padding=0); see `tensor_map.py`."""
        # lazily: only launches on a GPU need it
        from tilework.runtime.devices.cuda.tensor_map import fill_tma_descriptor

        return fill_tma_descriptor(*args, **kwargs)


def is_ptx(data: bytes) -> bool:
    """Whether a binary is text; the debug information of a cubin may hold PTX too."""
    return not data.startswith(MAGIC) and b".version" in data


def check_format(name: str, data: bytes) -> None:
    """Only what the driver can load goes there."""
    if not data.startswith(MAGIC) and not is_ptx(data):
        raise RuntimeError(
            f"{name} cannot be loaded on a CUDA device: its last stage is neither a cubin nor PTX. TILEWORK_DEVICE=native runs"
            " kernels on the CPU"
        )


def load_module(name: str, data: bytes) -> int:
    """Load a binary; the assembler's words are part of the error."""
    module, log = ctypes.c_void_p(), ctypes.create_string_buffer(LOG_BYTES)
    options = (ctypes.c_int * 2)(libcuda.JIT_ERROR_LOG, libcuda.JIT_ERROR_LOG_SIZE)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
    cuda = library()
    code = cuda.code("cuModuleLoadDataEx", ctypes.byref(module), data + b"\0", 2, options, values)
    text = log.value.decode(errors="replace").strip()
    cuda.check(code, f" (loading {name})" + (f"\n{text}" if text else ""))
    return module.value or 0


def declared_parameters(function: int, name: str, data: bytes) -> tuple[Parameter, ...] | None:
    """From the text of PTX, which knows types; else from the driver, which knows sizes; old drivers know nothing."""
    if is_ptx(data) and (found := parameters_of_ptx(data.decode(), name)) is not None:
        return found
    cuda = library()
    if not cuda.has("cuFuncGetParamInfo"):
        return None
    sizes, offset, size = [], ctypes.c_size_t(), ctypes.c_size_t()
    places = (ctypes.byref(offset), ctypes.byref(size))
    while cuda.code("cuFuncGetParamInfo", function, len(sizes), *places) == libcuda.SUCCESS:
        sizes.append(Parameter(size.value, ""))
    return tuple(sizes)


def device_arrays(arg: Any) -> Iterator[Any]:
    """The memory on GPUs in an argument."""
    if isinstance(arg, tuple):
        for item in arg:
            yield from device_arrays(item)
    elif place_of(arg) == DEVICE:
        yield getattr(arg, "base", None) if hasattr(arg, "block_shape") else arg


def device_number(array: Any) -> int | None:
    """The GPU that an array is on; None if it does not say."""
    device = getattr(array, "device", None)
    number = device if isinstance(device, int) else getattr(device, "index", getattr(device, "id", None))
    return number if isinstance(number, int) else None


class CudaDriver(Driver):
    """Runs kernels on NVIDIA GPUs."""

    asked_by = ("cuda",)
    has_own_memory = True

    def __init__(self) -> None:
        self.utils: CudaUtils = CudaUtils()
        self._torch: Any = None  # torch.cuda once it was seen to be in use
        self._device: Any = None
        self._raw_stream: Any = None
        self._plain: set[type] = set()  # classes whose instances have no memory
        self._count: int | None = None  # of devices
        self._kinds: dict[int, str | None] = {}  # of devices, by number

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels go to a GPU: there is one that can be used, and nobody asks for the CPU.

        A process forked from one that used CUDA cannot use it, but compiles for the GPU, as torch's compile workers do.
        """
        if knobs.runtime.device not in (None, "auto", "cuda") or not libcuda.is_installed():
            return False
        return libcuda.why_unusable() is None or is_fork_of_cuda_user()

    @classmethod
    def why_inactive(cls) -> str:
        return f"an NVIDIA GPU, and none can be used: {libcuda.why_unusable()}"

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        if getattr(metadata, "sanitizer", None):
            # lazily: only checked launches need it
            from tilework.runtime.sanitize.cuda_checked_launch import SanitizedCudaLauncher

            return SanitizedCudaLauncher(self.utils, source, metadata)
        # lazily: only launches on a GPU need it
        from tilework.runtime.devices.cuda.launch_kernel import CudaLauncher
        from tilework.runtime.devices.cuda.proved_launch import with_proof

        return with_proof(CudaLauncher(self.utils, source, metadata), source, metadata)

    def map_python_to_cpp_type(self, ty: str) -> str:
        is_map = ty.startswith(("tensordesc", "nvTmaDesc"))
        return "CUdeviceptr" if ty.startswith("*") else "CUtensorMap" if is_map else C_TYPES[ty]

    # the current device and stream

    def _initialized_torch(self) -> Any:
        """torch.cuda once it uses the GPU; before that the choice is ours."""
        if self._torch is None:
            module = sys.modules.get("torch")
            found = getattr(module, "cuda", None)
            if found is None or not found.is_initialized():
                return None
            native = getattr(module, "_C", None)  # asking there costs 0.1 us, asking torch.cuda 1 to 8 us
            self._device = getattr(native, "_cuda_getDevice", found.current_device)
            stream_of = lambda device: found.current_stream(device).cuda_stream  # noqa: E731
            self._raw_stream = getattr(native, "_cuda_getCurrentRawStream", stream_of)
            self._torch = found
        return self._torch

    def get_current_device(self) -> int:
        return cuda_device.current_device() if self._initialized_torch() is None else self._device()

    def device_kind(self) -> str | None:
        """``cuda:2`` for devices like the third, if the two before are others."""
        if self._is_alone():
            return None
        device = self.get_current_device()
        if device not in self._kinds:
            facts = [
                (self.get_device_capability(number), self.utils.get_device_properties(number))
                for number in range(device + 1)
            ]
            first = facts.index(facts[device])
            self._kinds[device] = f"cuda:{first}" if first else None
        return self._kinds[device]

    def set_current_device(self, device: int) -> None:
        (torch_cuda() or cuda_device).set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        if self._initialized_torch() is None:
            return cuda_device.current_stream()
        return self._raw_stream(self._device() if device is None else device)

    def on_device_of(self, args: Sequence[Any]) -> Any:
        if self._is_alone():
            return None
        found = (device_number(array) for arg in args for array in device_arrays(arg))
        numbers = {number for number in found if number is not None}
        current = self.get_current_device()
        return self._on_device(*numbers, before=current) if len(numbers) == 1 and current not in numbers else None

    def _is_alone(self) -> bool:
        """Whether there is one device, so that nothing has to be asked."""
        if self._count is None:
            self._count = cuda_device.device_count()
        return self._count == 1

    def is_chosen_by(self, args: Sequence[Any]) -> bool:
        found = [array for arg in args for array in device_arrays(arg)]
        if self._is_alone() or not found or any(getattr(array, "is_cuda", None) is not True for array in found):
            return False
        return {device_number(array) for array in found} == {self.get_current_device()}

    @contextmanager
    def _on_device(self, device: int, before: int) -> Iterator[None]:
        stream = getattr(cuda_device._thread, "stream", None)
        self.set_current_device(device)
        try:
            yield
        finally:
            self.set_current_device(before)
            cuda_device._thread.stream = stream

    def launches_natively(self) -> bool:
        return type(self) is CudaDriver

    def stream_call(self) -> tuple[Any, int, StreamFunctions] | None:
        """What native launches call for the stream, and with which device; None if they must not.

        The last are addresses of torch's own functions, for machine code; 0 if there are none.
        """
        if not self.launches_natively():
            return None
        device = self.get_current_device()
        if self._torch is None:
            return self._stream_on, device, NO_FUNCTIONS
        return self._raw_stream, device, torch_stream_functions(device)

    def _stream_on(self, device: int) -> int:
        """Without torch a thread has a stream of its own on its device, and the default one on others."""
        is_here = self._is_alone() or cuda_device.current_device() == device
        return cuda_device.current_stream() if is_here else 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return cuda_device.get_device_capability(self.get_current_device() if device is None else device)

    def get_current_target(self) -> GPUTarget:
        major, minor = self.get_device_capability()
        return GPUTarget("cuda", 10 * major + minor, 32)

    def get_active_torch_device(self) -> Any:
        import torch  # lazily: torch is optional

        return torch.device("cuda", self.get_current_device())

    # benchmarks

    def get_device_interface(self) -> Any:
        """What times and synchronises work: torch.cuda, or our own module with the same names."""
        return torch_cuda() or cuda_device

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer that fills the L2 cache when it is cleared."""
        if torch_cuda() is not None:
            torch = sys.modules["torch"]
            return torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        return cuda_device.DeviceArray(FLUSH_BYTES)

    def clear_cache(self, cache: Any) -> None:
        if isinstance(cache, cuda_device.DeviceArray):
            cache.fill(0)
        else:
            cache.zero_()

    # arguments

    def check_arguments(self, args: Sequence[Any]) -> None:
        """Refuse memory that the GPU cannot reach, before anything runs; pinned host memory it can."""
        for position, arg in enumerate(args):
            if type(arg) not in self._plain:
                self._check_argument(position, arg)

    def _check_argument(self, position: int, arg: Any) -> None:
        """One argument of a class whose instances may have memory."""
        if getattr(arg, "is_cuda", False) is True:
            return refuse_negated(position, arg)
        if isinstance(arg, tuple):
            for item in arg:
                self._check_argument(position, item)
        elif hasattr(arg, "block_shape") and hasattr(arg, "base"):
            self._check_argument(position, arg.base)
        elif hasattr(arg, "data_ptr"):
            self._check_address(position, arg.data_ptr())
        elif hasattr(arg, "__cuda_array_interface__") or is_cuda_export(arg):
            return
        elif is_array(arg):
            self._check_address(position, arg.__array_interface__["data"][0])
        elif hasattr(arg, "__dlpack__") and not hasattr(arg, "__array_interface__"):
            raise self._unreachable(position, "memory that only DLPack describes")
        else:
            self._plain.add(type(arg))

    def _check_address(self, position: int, address: int) -> None:
        """Ask the driver about memory that does not say that it is on the GPU."""
        if not address:
            return
        cuda_device.ensure_context()
        found = ctypes.c_uint64()
        if library().code("cuPointerGetAttribute", ctypes.byref(found), libcuda.POINTER_DEVICE_ADDRESS, address):
            raise self._unreachable(position, "ordinary host memory")
        if found.value != address:
            raise self._unreachable(position, f"host memory that the GPU sees at {found.value:#x}, which can be passed")

    def _unreachable(self, position: int, what: str) -> ValueError:
        return ValueError(
            f"Pointer argument (at {position}) cannot be accessed from Triton (cpu tensor?): the active device is a GPU, and"
            f" this is {what}. Copy it to the GPU, pin it, or set TILEWORK_DEVICE=native to run kernels on the CPU"
        )
