"""The CUDA driver library without a GPU: the functions of libcuda, called as through ctypes, on top of the PTX emulator.

    cuda = libcuda.Cuda(EmulatedCuda())             # where `libcuda.library()` has one of NVIDIA's
    cuda.cuLaunchKernelEx(...)                      # real PTX is executed
    cuda.loaded.launches[0].stream

Work is queued and runs when its stream, an event or the device is synchronised, so that what should be asynchronous is seen to
be. The clock of events moves by one millisecond per kernel, or, where launches are
counted, by one for each instruction of a warp, sector of global memory and turn of shared memory. A cubin is an ELF magic number and the PTX behind it.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tilework.oracles.emulator import tensor_map
from tilework.oracles.emulator.arenas import Extent, MemoryFault
from tilework.oracles.emulator.counters import Counts
from tilework.oracles.emulator.device import LARGEST_SHARED, Device, LoadedFunction, cluster_of
from tilework.oracles.emulator.layout import frame_layout
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.runtime.devices.emulated.callbacks import CALLBACKS
from tilework.runtime.devices.emulated.results import (
    CAPTURE_UNSUPPORTED,
    ILLEGAL_ADDRESS,
    INVALID_CONTEXT,
    INVALID_DEVICE,
    INVALID_HANDLE,
    INVALID_PTX,
    INVALID_VALUE,
    LAUNCH_FAILED,
    NOT_FOUND,
    NOT_INITIALIZED,
    NOT_READY,
    OK,
    OUT_OF_MEMORY,
    TEXTS,
)
from tilework.targets import driver_library
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.arch import describe

ELF = b"\x7fELF"
PLAIN_SHARED = 48 << 10
PATIENCE = 10_000_000  # instructions of a block, some minutes
H200 = {  # a smaller GPU has less shared memory, and another number
    libcuda.WARP_SIZE: 32,
    libcuda.MAX_REGISTERS: 65536,
    libcuda.CLOCK_RATE: 1_980_000,
    libcuda.MULTIPROCESSORS: 132,
    libcuda.MEMORY_CLOCK_RATE: 3_201_000,
    libcuda.MEMORY_BUS_WIDTH: 6144,
}


class Observer(Protocol):
    """What surrounds a launch on memory of this process: `extents` are lent to it, `done` and `failed` may raise."""

    extents: list[Extent]

    def done(self, device: Device) -> None: ...
    def failed(self, error: EmulatorError) -> None: ...


@dataclass
class Launched:
    """One `cuLaunchKernelEx`."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    attributes: dict[int, Any]
    parameters: list[bytes]
    device: int


@dataclass
class LoadedKernel:
    """A function of a module, and what was set for it."""

    function: LoadedFunction
    device: int
    set: dict[int, int] = field(default_factory=dict)


@dataclass
class Happening:
    """An event."""

    timed: bool
    moment: float | None = None


class EmulatedCuda:
    """The functions of the library; everything else is for tests to look at. With `checks` launches are checked and counted."""

    def __init__(self, devices: int = 1, capacity: int = 1 << 30, arch: int = 90, checks: bool = False) -> None:
        watching = {"check": True, "collect": True, "counters": True, "replicas": True, "max_instructions": PATIENCE}
        self.devices = [Device(capacity, **watching if checks else {}) for _ in range(devices)]
        target = describe(str(arch))
        assert target is not None
        facts = {
            libcuda.MAJOR: arch // 10,
            libcuda.MINOR: arch % 10,
            libcuda.MAX_SHARED_OPTIN: target.limits.shared_bytes,
        }
        self.facts = H200 | facts
        self.objects: dict[int, Any] = {}
        self.queue: list[tuple[int, Callable[[], Any]]] = []
        self.captures: dict[int, list[Callable[[], Any]]] = {}
        self.launches: list[Launched] = []
        self.limits = {libcuda.LIMIT_PRINTF_FIFO: 1 << 20}
        self.texts: dict[int, ctypes.c_char_p] = {}
        self.thread = threading.local()
        self.initialized, self.clock, self.failure, self.fault = False, 0.0, OK, ""
        self.retained: list[int] = []
        self.cleared = 0  # bytes that were set
        self.lock = threading.RLock()
        self.callbacks: dict[str, Any] = {}

    # what the functions below share

    @property
    def device(self) -> Device:
        return self.devices[self.thread.context - 1]

    def has_context(self) -> bool:
        return getattr(self.thread, "context", None) is not None

    def keep(self, thing: Any) -> int:
        handle = 0x1000 + 16 * len(self.objects)
        self.objects[handle] = thing
        return handle

    def enqueue(self, stream: int | None, work: Callable[[], Any]) -> int:
        if stream and stream not in self.objects:
            return INVALID_HANDLE
        if self.failure:
            return self.failure
        with self.lock:
            if (recording := self.captures.get(stream or 0)) is not None:
                recording.append(work)
            else:
                self.queue.append((stream or 0, work))
        return OK

    def run(self, is_due: Callable[[int], bool]) -> int:
        """Do the work of some streams, in order."""
        with self.lock:
            before, due = self.queue, [work for stream, work in self.queue if is_due(stream)]
            self.queue = [(stream, work) for stream, work in self.queue if not is_due(stream)]
            while due:
                try:
                    due.pop(0)()
                except EmulatorError as error:
                    self.failure = ILLEGAL_ADDRESS if isinstance(error, MemoryFault) else LAUNCH_FAILED
                    self.fault = str(error)
                except BaseException:  # of an observer: what comes after it waits for the next time
                    self.queue = [*((stream, work) for stream, work in before if work in due), *self.queue]
                    raise
        return self.failure

    def address(self, name: str) -> int:
        """Where machine code calls a function."""
        if name not in self.callbacks:
            self.callbacks[name] = CALLBACKS[name](self)
        return ctypes.cast(self.callbacks[name], ctypes.c_void_p).value or 0

    # initialisation, devices, contexts

    def cuInit(self, flags: int) -> int:
        self.initialized = True
        return OK

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 12080
        return OK

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = TEXTS.get(code, "unknown error").encode()
        return OK

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = len(self.devices)
        return OK if self.initialized else NOT_INITIALIZED

    def cuDeviceGet(self, device: Any, number: int) -> int:
        device._obj.value = number
        return OK if number < len(self.devices) else INVALID_DEVICE

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> int:
        if device >= len(self.devices):
            return INVALID_DEVICE
        value._obj.value = self.facts[attribute]
        return OK

    def cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> int:
        self.retained.append(device)
        context._obj.value = device + 1
        return OK

    def cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = getattr(self.thread, "context", None)
        return OK

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:
        self.thread.context = context.value
        return OK

    def cuCtxGetDevice(self, device: Any) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        device._obj.value = self.thread.context - 1
        return OK

    def cuCtxSynchronize(self) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        return CAPTURE_UNSUPPORTED if self.captures else self.run(lambda stream: True)

    def cuCtxSetLimit(self, limit: int, value: int) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        self.limits[limit] = value
        return OK if limit in self.limits else INVALID_VALUE

    def cuCtxGetLimit(self, value: Any, limit: int) -> int:
        value._obj.value = self.limits[limit]
        return OK

    # code

    def cuModuleLoadDataEx(self, module: Any, data: bytes, count: int, options: Any, values: Any) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        assert data.endswith(b"\0"), "PTX is a C string"
        try:
            loaded = self.device.load(data.removeprefix(ELF).rstrip(b"\0"))
        except EmulatorError as error:
            places = {options[index]: values[index] for index in range(count)}
            text = f"ptxas: {error}".encode()[: places[libcuda.JIT_ERROR_LOG_SIZE] - 1] + b"\0"
            ctypes.memmove(places[libcuda.JIT_ERROR_LOG], text, len(text))
            return INVALID_PTX
        module._obj.value = self.keep(loaded)
        return OK

    def cuModuleGetFunction(self, function: Any, module: int, name: bytes) -> int:
        try:
            found = self.objects[module].function(name.decode())
        except EmulatorError:
            return NOT_FOUND
        function._obj.value = self.keep(LoadedKernel(found, self.thread.context - 1))
        return OK

    def cuModuleUnload(self, module: int) -> int:
        self.objects[module] = None
        return OK

    def cuFuncGetAttribute(self, value: Any, attribute: int, function: int) -> int:
        kernel = self.objects[function]
        names = {0: "max_threads_per_block", 1: "shared_size_bytes", 3: "local_size_bytes", 4: "num_regs"}
        facts = kernel.function.attributes
        facts["local_size_bytes"] += frame_layout(kernel.function.function, 0)[1]
        value._obj.value = facts[names[attribute]] if attribute in names else kernel.set.get(attribute, 0)
        return OK

    def cuFuncSetAttribute(self, function: int, attribute: int, value: int) -> int:
        kernel = self.objects[function]
        static = kernel.function.attributes["shared_size_bytes"]
        if attribute == driver_library.FUNCTION_MAX_DYNAMIC_SHARED and static + value > LARGEST_SHARED:
            return INVALID_VALUE
        kernel.set[attribute] = value
        return OK

    def cuFuncGetParamInfo(self, function: int, index: int, offset: Any, size: Any) -> int:
        parameters = self.objects[function].function.function.params
        if index >= len(parameters):
            return INVALID_VALUE
        size._obj.value = parameters[index].size
        return OK

    def cuLaunchKernelEx(self, config: Any, function: int, addresses: Any, extra: None) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        given, kernel = config._obj, self.objects[function]
        if self.thread.context - 1 != kernel.device:
            return INVALID_HANDLE
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
            return INVALID_VALUE
        cluster = attributes.get(libcuda.LAUNCH_CLUSTER, cluster_of(kernel.function.function))
        device = self.devices[kernel.device]
        try:
            device.check_launch(kernel.function, grid, block, given.shared, cluster)
        except EmulatorError:
            return INVALID_VALUE
        self.launches.append(launched)
        shared, observer = given.shared, getattr(self.thread, "observer", None)

        def work() -> None:
            if observer is None:
                self.clock += 1.0
                return device.launch(kernel.function, grid, block, values, shared, cluster)
            with device.memory.lend(observer.extents):
                try:
                    device.launch(kernel.function, grid, block, values, shared, cluster)
                except EmulatorError as error:
                    observer.failed(error)
            self.clock += steps_of(device)
            return observer.done(device)

        return self.enqueue(given.stream, work)

    @contextmanager
    def observed(self, observer: Observer) -> Iterator[None]:
        """What this thread launches in the block is surrounded by an observer, whenever it runs."""
        self.thread.observer = observer
        try:
            yield
        finally:
            self.thread.observer = None

    # memory

    def cuMemAlloc_v2(self, address: Any, size: int) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        try:
            address._obj.value = self.device.allocate(size)
        except EmulatorError:
            return OUT_OF_MEMORY
        return OK

    def cuMemFree_v2(self, address: int) -> int:
        for device in self.devices:
            if device.memory.index(address) is not None:
                device.free(address)
                return OK
        return INVALID_VALUE

    def cuMemHostAlloc(self, address: Any, size: int, flags: int) -> int:
        return self.cuMemAlloc_v2(address, size)

    def cuMemFreeHost(self, address: ctypes.c_void_p) -> int:
        return self.cuMemFree_v2(address.value or 0)

    def cuPointerGetAttribute(self, value: Any, attribute: int, address: int) -> int:
        assert attribute == driver_library.POINTER_DEVICE_ADDRESS
        if not any(device.memory.index(address) is not None for device in self.devices):
            return INVALID_VALUE
        value._obj.value = address
        return OK

    def cuMemcpyHtoDAsync_v2(self, target: int, source: int, size: int, stream: int) -> int:
        data, device = ctypes.string_at(source, size), self.device
        return self.enqueue(stream, lambda: device.memory.write(target, data))

    def cuMemcpyDtoHAsync_v2(self, target: int, source: int, size: int, stream: int) -> int:
        device = self.device
        return self.enqueue(stream, lambda: ctypes.memmove(target, device.memory.read(source, size), size))

    def cuMemsetD8Async(self, target: int, value: int, size: int, stream: int) -> int:
        device = self.device

        def work() -> None:
            device.memory.bytes.data[device.memory.span(target, size)] = value
            self.cleared += size

        return self.enqueue(stream, work)

    # streams, graphs, events

    def cuStreamCreate(self, stream: Any, flags: int) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        stream._obj.value = self.keep("stream")
        return OK

    def cuStreamDestroy_v2(self, stream: int) -> int:
        return self.run(lambda one: one == stream)

    def cuStreamSynchronize(self, stream: int) -> int:
        return CAPTURE_UNSUPPORTED if stream in self.captures else self.run(lambda one: one == stream)

    def cuStreamBeginCapture_v2(self, stream: int, mode: int) -> int:
        if not stream:
            return CAPTURE_UNSUPPORTED
        self.captures[stream] = []
        return OK

    def cuStreamEndCapture(self, stream: int, graph: Any) -> int:
        if stream not in self.captures:
            return INVALID_VALUE
        graph._obj.value = self.keep(self.captures.pop(stream))
        return OK

    def cuGraphInstantiateWithFlags(self, executable: Any, graph: int, flags: int) -> int:
        executable._obj.value = self.keep(list(self.objects[graph]))
        return OK

    def cuGraphLaunch(self, executable: int, stream: int) -> int:
        work = self.objects[executable]
        return self.enqueue(stream, lambda: [step() for step in work])

    def cuGraphExecDestroy(self, executable: int) -> int:
        return OK

    def cuGraphDestroy(self, graph: Any) -> int:
        return OK

    def cuEventCreate(self, event: Any, flags: int) -> int:
        if not self.has_context():
            return INVALID_CONTEXT
        event._obj.value = self.keep(Happening(not flags & driver_library.EVENT_DISABLE_TIMING))
        return OK

    def cuEventRecord(self, event: int, stream: int) -> int:
        return self.enqueue(stream, lambda: setattr(self.objects[event], "moment", self.clock))

    def cuEventSynchronize(self, event: int) -> int:
        return self.run(lambda stream: True)

    def cuEventElapsedTime(self, milliseconds: Any, start: int, end: int) -> int:
        first, last = self.objects[start], self.objects[end]
        if not (first.timed and last.timed):
            return INVALID_HANDLE
        if first.moment is None or last.moment is None:
            return NOT_READY
        milliseconds._obj.value = last.moment - first.moment
        return OK

    def cuEventDestroy_v2(self, event: int) -> int:
        return OK

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
            return INVALID_VALUE
        ctypes.memmove(target, bits, len(bits))
        return OK


def steps_of(device: Device) -> int:
    """What the warps of the last launch did: instructions, sectors of global memory, turns of shared memory."""
    total = device.counters.total if device.counters is not None else Counts()
    return sum(total.instructions.values()) + total.sectors + total.turns


def attributes_of(config: driver_library.LaunchConfig) -> dict[int, Any]:
    """The attributes of a launch: number to flag or dimensions."""
    found = {}
    for index in range(config.attribute_count):
        place = config.attributes + index * ctypes.sizeof(libcuda.LaunchAttribute)
        attribute = libcuda.LaunchAttribute.from_address(place)
        value = attribute.value
        found[attribute.id] = tuple(value.dimensions) if attribute.id == libcuda.LAUNCH_CLUSTER else value.flag
    return found
