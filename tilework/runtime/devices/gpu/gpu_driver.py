"""The part that drivers of all GPUs share: the current device, its streams, its limits, loading binaries, checking
arguments.

    >>> driver.active.utils.load_binary("add", cubin, shared=0, device=0)
    (module, function, n_regs, n_spills, n_max_threads)

Where torch is loaded and can use the GPU it decides about the current device and stream, and provides events and
graphs, under names that say cuda for every vendor; else `own_interface.py` does. A machine with a usable GPU runs
kernels there; TILEWORK_DEVICE=native and =evaluator select the CPU.
"""

import ctypes
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from tilework import knobs
from tilework.process.triton_version import message
from tilework.runtime.devices.active_driver import DEVICE, location_of
from tilework.runtime.devices.dlpack import CUDA, exchange_api, is_cuda_export
from tilework.runtime.devices.driver import C_TYPES, Driver
from tilework.runtime.devices.gpu.gpu_launcher import GpuLauncher
from tilework.runtime.devices.gpu.own_interface import DeviceArray, Gpus
from tilework.runtime.devices.gpu.parameters import Parameter
from tilework.runtime.devices.launcher import Launcher, refuse_negated
from tilework.runtime.launch.python.specialize import is_array
from tilework.targets import driver_library

FLUSH_BYTES = 256 << 20  # larger than the L2 cache of every GPU
BYTES_OF_A_SPILL = 4


def loaded_torch_build() -> str | None:
    """Return the kind of GPUs that torch was built for, cuda or hip; None if it is not loaded."""
    if (torch := sys.modules.get("torch")) is None:
        return None
    return "cuda" if getattr(getattr(torch, "version", None), "hip", None) is None else "hip"


def torch_for(build: str | None) -> Any:
    """Return torch.cuda if torch is loaded and is this build. Torch is never imported for this."""
    return getattr(sys.modules["torch"], "cuda", None) if build is not None and build == loaded_torch_build() else None


def torch_cuda(build: str | None) -> Any:
    """Return torch.cuda if torch is this build and can use a GPU, else None."""
    found = torch_for(build)
    return found if found is not None and found.is_available() else None


class GpuUtils:
    """Queries of the runtime about devices and binaries."""

    def __init__(self, gpus: Gpus) -> None:
        self.gpus = gpus
        self._parameters: dict[int, tuple[Parameter, ...] | None] = {}
        self._properties: dict[int, dict[str, Any]] = {}

    def get_device_properties(self, device: int) -> dict[str, Any]:
        """Limits and clocks (kHz) of a device."""
        if (known := self._properties.get(device)) is None:
            known = self._properties[device] = self.find_properties(device)
        return known

    @abstractmethod
    def find_properties(self, device: int) -> dict[str, Any]:
        """Query the driver for them."""

    def load_binary(self, name: str, binary: bytes | str, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """(module, function, registers, spills, most threads) of a kernel in a binary.

        `shared` is the dynamic shared memory of launches. Spills are counted in registers.
        """
        data = binary.encode() if isinstance(binary, str) else binary
        self.check_format(name, data)
        self.gpus.ensure_context(device)
        library = self.gpus.library()
        module = self.load_module(name, data)
        function = ctypes.c_void_p()
        if code := library.code("find_function", ctypes.byref(function), module, name.encode()):
            library.code("unload_module", module)
            library.check(code, f" (no kernel {name!r} in the binary)")
        handle = function.value or 0
        self.prepare(handle, shared)
        self._parameters[handle] = self.declared(handle, name, data)
        spilled = library.function_attribute(driver_library.FUNCTION_LOCAL, handle) // BYTES_OF_A_SPILL
        registers = library.function_attribute(driver_library.FUNCTION_REGISTERS, handle)
        most = library.function_attribute(driver_library.FUNCTION_MAX_THREADS, handle)
        return module, handle, registers, spilled, most

    @abstractmethod
    def check_format(self, name: str, data: bytes) -> None:
        """Only what the driver can load goes there."""

    @abstractmethod
    def load_module(self, name: str, data: bytes) -> int:
        """Load a binary; what the driver says about it is part of the error."""

    def prepare(self, function: int, shared: int) -> None:  # noqa: B027  most need nothing
        """Request the resources that launches need."""

    @abstractmethod
    def declared(self, function: int, name: str, data: bytes) -> tuple[Parameter, ...] | None:
        """Return the parameters of a function; None if they cannot be found."""

    @staticmethod
    def build_signature_metadata(types: Sequence[str]) -> bytes:
        """The types of the values that a kernel takes, for `launch`."""
        from tilework.runtime.devices.gpu.described_launch import signature_metadata  # lazily: few programs need it

        return signature_metadata(list(types))

    def parameters(self, function: int) -> tuple[Parameter, ...] | None:
        """The parameters that a loaded function declares; None if they are unknown."""
        return self._parameters.get(function)


def device_arrays(arg: object) -> Iterator[Any]:
    """The memory on GPUs in an argument."""
    if isinstance(arg, tuple):
        for item in arg:
            yield from device_arrays(item)
    elif location_of(arg) == DEVICE:
        yield getattr(arg, "base", None) if hasattr(arg, "block_shape") else arg


def device_index(array: object) -> int | None:
    """The GPU that an array is on; None if it does not say."""
    device = getattr(array, "device", None)
    index = device if isinstance(device, int) else getattr(device, "index", getattr(device, "id", None))
    return index if isinstance(index, int) else None


class GpuDriver(Driver):
    """Runs kernels on the GPUs of a vendor."""

    has_own_memory = True
    torch_build: ClassVar[str | None] = None  # cuda, hip: the torch that decides about devices and streams
    kind: ClassVar[str]  # the prefix of a device index: ``cuda``
    description: ClassVar[str]  # for messages: ``an NVIDIA GPU``
    gpus: ClassVar[Gpus]
    array_cls: ClassVar[type[DeviceArray]]
    kernel_launcher: ClassVar[type[GpuLauncher]]
    pointer_type: ClassVar[str]  # in C
    descriptor_type: ClassVar[str]
    utils: GpuUtils

    def __init__(self) -> None:
        self._torch: Any = None  # torch.cuda once it was seen to be in use
        self._device: Any = None
        self._raw_stream: Any = None
        self._plain: set[type] = set()  # classes whose instances have no memory
        self._count: int | None = None  # of devices
        self._kinds: dict[int, str | None] = {}  # of devices, by index

    @classmethod
    def torch_cuda(cls) -> Any:
        return torch_cuda(cls.torch_build)

    @classmethod
    def is_active(cls) -> bool:
        """Return True if kernels go to a GPU: one can be used, and the user does not select the CPU.

        Where torch uses the GPUs of another vendor, those are meant. A process forked from one that used the GPU cannot
        use it, but compiles for it, as torch's compile workers do.
        """
        is_requested = knobs.runtime.device in cls.selected_by
        is_open = knobs.runtime.device in (None, "auto") and cls.is_likely()
        if not (is_requested or is_open) or not cls.gpus.found.is_installed():
            return False
        build = loaded_torch_build()
        if not is_requested and build != cls.torch_build and torch_cuda(build) is not None:
            return False
        return cls.gpus.found.why_unusable() is None or cls.is_fork_of_user()

    @classmethod
    def is_likely(cls) -> bool:
        """Return True if it is worth looking for the library, which takes longer than this."""
        return True

    @classmethod
    def is_fork_of_user(cls) -> bool:
        """Return True if torch used such a GPU in the process that this one was forked from."""
        used = cls.torch_cuda()
        return used is not None and used._is_in_bad_fork()

    @classmethod
    def why_inactive(cls) -> str:
        return f"{cls.description}, and none can be used: {cls.gpus.found.why_unusable()}"

    def map_python_to_cpp_type(self, ty: str) -> str:
        is_descriptor = ty.startswith(("tensordesc", "nvTmaDesc"))
        return self.pointer_type if ty.startswith("*") else self.descriptor_type if is_descriptor else C_TYPES[ty]

    def launcher_cls(self, source: object, metadata: object) -> Launcher:
        launcher = self.kernel_launcher
        if getattr(metadata, "sanitizer", None):
            from tilework.runtime.devices.checked_launch import checked  # lazily: only checked launches need it

            launcher = checked(launcher)
        return launcher(self.utils, source, metadata)

    # the current device and stream

    def _initialized_torch(self) -> Any:
        """torch.cuda once it uses the GPU; before that the choice is ours."""
        if self._torch is None:
            found = torch_for(self.torch_build)
            if found is None or not found.is_initialized():
                return None
            native = getattr(sys.modules["torch"], "_C", None)  # a query there costs 0.1 us, of torch.cuda 1 to 8 us
            self._device = getattr(native, "_cuda_getDevice", found.current_device)
            stream_of = lambda device: found.current_stream(device).cuda_stream  # noqa: E731
            self._raw_stream = getattr(native, "_cuda_getCurrentRawStream", stream_of)
            self._torch = found
        return self._torch

    def get_current_device(self) -> int:
        return self.gpus.current_device() if self._initialized_torch() is None else self._device()

    def device_kind(self) -> str | None:
        """``cuda:2`` for devices like the third, if the two before are others."""
        if self._is_alone():
            return None
        device = self.get_current_device()
        if device not in self._kinds:
            facts = [(self.architecture(index), self.utils.get_device_properties(index)) for index in range(device + 1)]
            first = facts.index(facts[device])
            self._kinds[device] = f"{self.kind}:{first}" if first else None
        return self._kinds[device]

    def set_current_device(self, device: int) -> None:
        (self.torch_cuda() or self.gpus).set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        if self._initialized_torch() is None:
            return self.gpus.current_stream()
        return self._raw_stream(self._device() if device is None else device)

    def on_device_of(self, args: Sequence[object]) -> Any:
        if self._is_alone():
            return None
        found = (device_index(array) for arg in args for array in device_arrays(arg))
        indices = {index for index in found if index is not None}
        current = self.get_current_device()
        return self._on_device(*indices, before=current) if len(indices) == 1 and current not in indices else None

    def _is_alone(self) -> bool:
        """Return True if there is one device, so that no query is needed."""
        if self._count is None:
            self._count = self.gpus.device_count()
        return self._count == 1

    def is_chosen_by(self, args: Sequence[object]) -> bool:
        found = [array for arg in args for array in device_arrays(arg)]
        if self._is_alone() or not found or any(getattr(array, "is_cuda", None) is not True for array in found):
            return False
        return {device_index(array) for array in found} == {self.get_current_device()}

    @contextmanager
    def _on_device(self, device: int, before: int) -> Iterator[None]:
        stream = getattr(self.gpus.thread, "stream", None)
        self.set_current_device(device)
        try:
            yield
        finally:
            self.set_current_device(before)
            self.gpus.thread.stream = stream

    def launches_natively(self) -> bool:
        return True

    def stream_call(self) -> tuple[Callable[[int], int], int, tuple[int, int]] | None:
        """(Python function, device, (function for machine code or 0, kind of device)) for the stream of native
        launches, or None.

        Machine code queries torch through DLPack's exchange interface.
        """
        if not self.launches_natively():
            return None
        device = self.get_current_device()
        if self._torch is None:
            return self._stream_on, device, (0, 0)
        tensor = getattr(sys.modules["torch"], "Tensor", object)
        api = exchange_api(tensor) if self.torch_build == "cuda" else None
        return self._raw_stream, device, (0, 0) if api is None else (api.current_stream, CUDA)

    def _stream_on(self, device: int) -> int:
        """Without torch a thread has a stream of its own on its device, and the default one on others."""
        is_here = self._is_alone() or self.gpus.current_device() == device
        return self.gpus.current_stream() if is_here else 0

    @abstractmethod
    def architecture(self, device: int) -> Any:
        """The target of code for a device."""

    def get_active_torch_device(self) -> Any:
        import torch  # lazily: torch is optional

        return torch.device("cuda", self.get_current_device())

    # benchmarks

    def get_device_interface(self) -> Any:
        """The module that times and synchronises work: torch.cuda, or our own object with the same names."""
        return self.torch_cuda() or self.gpus

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer that fills the L2 cache when it is cleared."""
        if self.torch_cuda() is not None:
            torch = sys.modules["torch"]
            return torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        return self.array_cls(FLUSH_BYTES)

    def clear_cache(self, cache: Any) -> None:
        if isinstance(cache, DeviceArray):
            cache.fill(0)
        else:
            cache.zero_()

    # arguments

    def check_arguments(self, args: Sequence[object]) -> None:
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
        """Query the driver about memory that does not declare itself to be on the GPU."""
        if not address:
            return
        self.gpus.ensure_context()
        found, library = ctypes.c_uint64(), self.gpus.library()
        if library.code("get_pointer_attribute", ctypes.byref(found), driver_library.POINTER_DEVICE_ADDRESS, address):
            library.forget_error()
            raise self._unreachable(position, "ordinary host memory")
        if found.value != address:
            raise self._unreachable(position, f"host memory that the GPU sees at {found.value:#x}, which can be passed")

    def _unreachable(self, position: int, what: str) -> ValueError:
        is_cuda, indexed = self.kind == "cuda", f"Pointer argument (at {position})"
        argument = message("pointer-argument", position=position) if is_cuda else indexed
        return ValueError(
            f"{argument} cannot be accessed from Triton (cpu tensor?): the active device is a"
            f" GPU, and argument {position} is {what}. Copy it to the GPU, pin it, or set TILEWORK_DEVICE=native to run"
            " kernels on the CPU"
        )
