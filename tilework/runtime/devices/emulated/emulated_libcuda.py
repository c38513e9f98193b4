"""The CUDA driver library without a GPU: what only NVIDIA's has, on top of the PTX emulator; see `emulated_library.py`.

Where launches are counted the clock of events counts instructions of warps, sectors of global memory and wavefronts of
shared memory. A cubin is the magic bytes of ELF and the PTX behind them.
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilework.oracles.emulator import tensor_map
from tilework.oracles.emulator.counters import Counts
from tilework.oracles.emulator.device import LARGEST_SHARED, Device, LoadedFunction, cluster_of
from tilework.oracles.emulator.memory import frame_layout
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.runtime.devices.emulated.emulated_library import (
    PATIENCE,
    TEXTS,
    EmulatedLibrary,
    Launched,
    Reference,
    Result,
    address_array,
    given,
)
from tilework.targets import driver_library
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.arch import describe

ELF = b"\x7fELF"
PLAIN_SHARED = 48 << 10
H200 = {  # a smaller GPU has less shared memory, and another capability
    libcuda.WARP_SIZE: 32,
    libcuda.MAX_REGISTERS: 65536,
    libcuda.CLOCK_RATE: 1_980_000,
    libcuda.MULTIPROCESSORS: 132,
    libcuda.MEMORY_CLOCK_RATE: 3_201_000,
    libcuda.MEMORY_BUS_WIDTH: 6144,
}


@dataclass
class LoadedKernel:
    """A function of a module, and what was set for it."""

    function: LoadedFunction
    device: int
    set: dict[int, int] = field(default_factory=dict)


def adapted_launch(cuda: Any, config: int, function: int, addresses: int, extra: None) -> tuple[Any, ...]:
    parameters = cuda.objects[function].function.function.params
    return Reference(driver_library.LaunchConfig, config), function, address_array(addresses, parameters), None


class EmulatedCuda(EmulatedLibrary):
    """The functions of the library. With `checks` launches are checked and counted."""

    names, functions = libcuda.NAMES, libcuda.FUNCTIONS
    adapted = {
        "cuLaunchKernelEx": adapted_launch,
        "cuCtxGetCurrent": lambda cuda, address: (Reference(ctypes.c_void_p, address),),
        "cuCtxSetCurrent": lambda cuda, context: (ctypes.c_void_p(context),),
    }

    def __init__(self, devices: int = 1, capacity: int = 1 << 30, arch: int = 90, checks: bool = False) -> None:
        watching = {
            "check": True,
            "together": True,
            "collect": True,
            "counters": True,
            "replicas": True,
            "max_instructions": PATIENCE,
        }
        super().__init__([Device(capacity, **watching if checks else {}) for _ in range(devices)])
        target = describe(str(arch))
        assert target is not None
        facts = {
            libcuda.MAJOR: arch // 10,
            libcuda.MINOR: arch % 10,
            libcuda.MAX_SHARED_OPTIN: target.limits.shared_bytes,
        }
        self.facts = H200 | facts
        self.limits = {libcuda.LIMIT_PRINTF_FIFO: 1 << 20}
        self.initialized = False
        self.retained: list[int] = []

    def current(self) -> int | None:
        context = getattr(self.thread, "context", None)
        return None if context is None else context - 1

    # initialisation, devices, contexts

    def cuInit(self, flags: int) -> int:
        self.initialized = True
        return Result.OK

    def cuDriverGetVersion(self, version: object) -> int:
        return given(version, 12080)

    def cuGetErrorString(self, code: int, text: object) -> int:
        return given(text, TEXTS.get(code, "unknown error").encode())

    def cuDeviceGetCount(self, count: object) -> int:
        return super().count_devices(count) if self.initialized else Result.NOT_INITIALIZED

    def cuDeviceGetAttribute(self, value: object, attribute: int, device: int) -> int:
        if device >= len(self.devices):
            return Result.INVALID_DEVICE
        return given(value, self.facts[attribute])

    def cuDevicePrimaryCtxRetain(self, context: object, device: int) -> int:
        self.retained.append(device)
        return given(context, device + 1)

    def cuCtxGetCurrent(self, context: object) -> int:
        return given(context, getattr(self.thread, "context", None))

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:
        self.thread.context = context.value
        return Result.OK

    def cuCtxGetDevice(self, device: object) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        return given(device, self.thread.context - 1)

    def cuCtxSetLimit(self, limit: int, value: int) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        self.limits[limit] = value
        return Result.OK if limit in self.limits else Result.INVALID_VALUE

    def cuCtxGetLimit(self, value: object, limit: int) -> int:
        return given(value, self.limits[limit])

    # code

    def cuModuleLoadDataEx(self, module: Any, data: bytes, count: int, options: Any, values: Any) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        assert data.endswith(b"\0"), "PTX is a C string"
        try:
            loaded = self.device.load(data.removeprefix(ELF).rstrip(b"\0"))
        except EmulatorError as error:
            settings = {options[index]: values[index] for index in range(count)}
            text = f"ptxas: {error}".encode()[: settings[libcuda.JIT_ERROR_LOG_SIZE] - 1] + b"\0"
            ctypes.memmove(settings[libcuda.JIT_ERROR_LOG], text, len(text))
            return Result.INVALID_PTX
        return given(module, self.keep(loaded))

    def cuModuleGetFunction(self, function: object, module: int, name: bytes) -> int:
        try:
            found = self.objects[module].function(name.decode())
        except EmulatorError:
            return Result.NOT_FOUND
        return given(function, self.keep(LoadedKernel(found, self.thread.context - 1)))

    def cuFuncGetAttribute(self, value: object, attribute: int, function: int) -> int:
        kernel = self.objects[function]
        names = {0: "max_threads_per_block", 1: "shared_size_bytes", 3: "local_size_bytes", 4: "num_regs"}
        facts = kernel.function.attributes
        facts["local_size_bytes"] += frame_layout(kernel.function.function, 0)[1]
        return given(value, facts[names[attribute]] if attribute in names else kernel.set.get(attribute, 0))

    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> int:
        kernel = self.objects[function]
        static = kernel.function.attributes["shared_size_bytes"]
        if attribute == driver_library.FUNCTION_MAX_DYNAMIC_SHARED and static + value > LARGEST_SHARED:
            return Result.INVALID_VALUE
        kernel.set[attribute] = value
        return Result.OK

    def cuFuncGetParamInfo(self, function: int, index: int, offset: object, size: object) -> int:
        parameters = self.objects[function].function.function.params
        if index >= len(parameters):
            return Result.INVALID_VALUE
        return given(size, parameters[index].size)

    def cuLaunchKernelEx(self, config: Any, function: int, addresses: Any, extra: None) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        given, kernel = config._obj, self.objects[function]
        if self.thread.context - 1 != kernel.device:
            return Result.INVALID_HANDLE
        attributes = attributes_of(given)
        parameters = kernel.function.function.params
        assert len(addresses) >= len(parameters), "the driver would read past the end of the parameters"
        values = [ctypes.string_at(addresses[index], variable.size) for index, variable in enumerate(parameters)]
        grid, block = tuple(given.grid), tuple(given.block)
        launched = Launched(
            kernel.function.name, grid, block, given.shared, given.stream or 0, attributes, values, kernel.device
        )
        facts = kernel.function.attributes
        allowed = kernel.set.get(driver_library.FUNCTION_MAX_DYNAMIC_SHARED, PLAIN_SHARED - facts["shared_size_bytes"])
        if given.shared > allowed or np.prod(block) > facts["max_threads_per_block"]:
            return Result.INVALID_VALUE
        cluster = attributes.get(libcuda.LAUNCH_CLUSTER, cluster_of(kernel.function.function))
        device = self.devices[kernel.device]
        try:
            device.check_launch(kernel.function, grid, block, given.shared, cluster)
        except EmulatorError:
            return Result.INVALID_VALUE
        self.launches.append(launched)
        shared = given.shared
        launch = lambda: device.launch(kernel.function, grid, block, values, shared, cluster)  # noqa: E731

        def outcome() -> Any:
            assert device.checker is not None
            return device.checker.findings, device.counters, steps_of(device)

        return self.enqueue(given.stream, self.watched(device, launch, outcome))

    # tensor maps

    def cuTensorMapEncodeTiled(
        self, target: int, type: int, rank: int, base: int, sizes: Any, strides: Any, box: Any, steps: Any,
        interleave: int, swizzle: int, promotion: int, fill: int,
    ) -> int:  # fmt: skip
        assert target % 64 == 0
        try:
            bits = tensor_map.encode_tensor_map(
                tensor_map.TYPES[type], base, sizes[:rank], strides[: rank - 1], box[:rank], steps[:rank],
                tensor_map.INTERLEAVES[interleave], tensor_map.SWIZZLES[swizzle], tensor_map.PROMOTIONS[promotion],
                tensor_map.FILLS[fill],
            )  # fmt: skip
        except EmulatorError:
            return Result.INVALID_VALUE
        ctypes.memmove(target, bits, len(bits))
        return Result.OK

    def cuTensorMapEncodeIm2col(self, *_: Any) -> int:
        """Refuse maps of images: the emulator has no copies by them."""
        return Result.NOT_SUPPORTED


def steps_of(device: Device) -> int:
    """Counters of the last launch: instructions, sectors of global memory, wavefronts of shared memory."""
    total = device.counters.total if device.counters is not None else Counts()
    return sum(total.instructions.values()) + total.sectors + total.wavefronts


def attributes_of(config: driver_library.LaunchConfig) -> dict[int, Any]:
    """Return the attributes of a launch: flag or dimensions by id."""
    found = {}
    for index in range(config.attribute_count):
        address = config.attributes + index * ctypes.sizeof(libcuda.LaunchAttribute)
        attribute = libcuda.LaunchAttribute.from_address(address)
        value = attribute.value
        found[attribute.id] = tuple(value.dimensions) if attribute.id == libcuda.LAUNCH_CLUSTER else value.flag
    return found
