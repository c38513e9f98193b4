"""AMD's runtime library without a GPU: what only HIP has, on top of the emulator of LLVM text; see
`emulated_library.py`.

A code object is loaded if it is for the architecture of the device, and the LLVM text from which it was built follows
it in the file (`targets/amd/kernel_notes.py`): that text runs. Its notes list the parameters of the kernel.
"""

import ctypes
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.errors import StageError
from tilework.oracles.emulator.findings import CheckFailed, Finding
from tilework.oracles.emulator.llvm.ir import dtype_of
from tilework.oracles.emulator.llvm.run_llvm import LoadedKernel, load_kernel, wave_size
from tilework.oracles.emulator.llvm.wave_counters import WaveCounters
from tilework.oracles.emulator.memory import Memory
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
from tilework.targets.amd import libhip
from tilework.targets.amd.arch import describe
from tilework.targets.amd.kernel_notes import Argument, KernelNotes, read_notes, text_behind

VERSION = 70_051_831  # 7.0
LARGEST_BLOCK = 1024
MI300 = {  # a smaller GPU has other lanes, and another name
    "max_num_regs": 65536,
    "multiprocessor_count": 304,
    "sm_clock_rate": 2_100_000,
    "mem_clock_rate": 1_300_000,
    "mem_bus_width": 8192,
    "max_threads_per_sm": 2048,
    "cooperativeLaunch": 1,
}


class LlvmDevice:
    """The memory of a GPU, and how launches run: of a larger grid the first `most_blocks`, counted or not."""

    def __init__(self, capacity: int) -> None:
        self.memory = Memory(capacity)
        self.most_blocks: int | None = None
        self.max_instructions = PATIENCE  # of a block
        self.is_counting = False


@dataclass
class LoadedObject:
    """A module."""

    text: str
    notes: KernelNotes
    device: int


@dataclass
class LoadedFunction:
    """A function of a module, and what it was found to do in its last launch."""

    kernel: LoadedKernel
    notes: KernelNotes
    device: int
    findings: list[Finding]

    @property
    def given(self) -> list[Argument]:
        """The parameters that launches pass; the runtime adds the hidden ones."""
        return [one for one in self.notes.arguments if not one.kind.startswith("hidden_")]


def adapted_launch(hip: Any, function: int, *rest: Any) -> tuple[Any, ...]:
    *values, addresses = rest
    return function, *values, address_array(addresses, hip.objects[function].given)


class EmulatedHip(EmulatedLibrary):
    """The functions of the library."""

    names, functions = libhip.NAMES, libhip.FUNCTIONS
    adapted = {
        "hipModuleLaunchKernel": lambda hip, *given: (*adapted_launch(hip, *given[:-1]), given[-1]),
        "hipModuleLaunchCooperativeKernel": adapted_launch,
        "hipGetDevice": lambda hip, address: (Reference(ctypes.c_int, address),),
    }

    def __init__(self, devices: int = 1, capacity: int = 1 << 30, arch: str = "gfx942") -> None:
        super().__init__([LlvmDevice(capacity) for _ in range(devices)])
        target = describe(arch)
        assert target is not None
        self.arch, self.lds = target.label, target.limits.shared_bytes
        self.facts = MI300 | {
            "max_shared_mem": self.lds,
            "warpSize": target.warp_size,
            "arch": f"{arch}:sramecc+:xnack-".encode(),
        }
        self.forgotten = 0  # errors

    def current(self) -> int:
        return getattr(self.thread, "device", 0)

    def driver_version(self, version: object) -> int:
        return given(version, VERSION)

    def hipGetErrorString(self, code: int) -> bytes:
        return TEXTS.get(code, "unknown error").encode()

    def hipGetLastError(self) -> int:
        self.forgotten += 1
        return Result.OK

    def hipGetDevice(self, device: object) -> int:
        return given(device, self.current())

    def hipSetDevice(self, device: int) -> int:
        if not 0 <= device < len(self.devices):
            return Result.INVALID_DEVICE
        self.thread.device = device
        return Result.OK

    def hipGetDevicePropertiesR0600(self, properties: Any, device: int) -> int:
        if not 0 <= device < len(self.devices):
            return Result.INVALID_DEVICE
        for name, (offset, form) in libhip.PROPERTIES.items():
            struct.pack_into(f"<{form}", properties._obj, offset, self.facts[name])
        return Result.OK

    # code

    def load_module(self, module: object, data: bytes, count: int, options: object, values: object) -> int:
        try:
            text, notes = text_behind(data), read_notes(data)
        except StageError:
            return Result.INVALID_IMAGE
        if notes.target.partition("--")[2].partition(":")[0] != self.arch:
            return Result.NO_BINARY
        return given(module, self.keep(LoadedObject(text, notes, self.current())))

    def find_function(self, function: Any, module: int, name: bytes) -> int:
        loaded: LoadedObject = self.objects[module]
        if loaded.notes.name != name.decode():
            return Result.NOT_FOUND
        kernel = load_kernel(loaded.text, self.arch, loaded.notes.name, self.devices[loaded.device].memory)
        return given(function, self.keep(LoadedFunction(kernel, loaded.notes, loaded.device, [])))

    def get_function_attribute(self, value: object, attribute: int, function: int) -> int:
        notes: KernelNotes = self.objects[function].notes
        facts = {
            driver_library.FUNCTION_MAX_THREADS: min(notes.max_threads, LARGEST_BLOCK),
            driver_library.FUNCTION_SHARED: notes.lds_bytes,
            driver_library.FUNCTION_LOCAL: notes.private_bytes,
            driver_library.FUNCTION_REGISTERS: notes.vgprs,
        }
        return given(value, facts[attribute])

    def hipModuleLaunchKernel(self, function: int, *rest: Any) -> int:
        *given, extra = rest
        assert extra is None, "arguments are given one by one"
        return self.launch_with(function, {}, *given)

    def hipModuleLaunchCooperativeKernel(self, function: int, *given: Any) -> int:
        return self.launch_with(function, {driver_library.LAUNCH_COOPERATIVE: 1}, *given)

    def launch_with(
        self, function: int, attributes: dict[int, Any], gx: int, gy: int, gz: int, bx: int, by: int, bz: int,
        shared: int, stream: int | None, addresses: Any,
    ) -> int:  # fmt: skip
        loaded: LoadedFunction = self.objects[function]
        if self.current() != loaded.device:
            return Result.INVALID_HANDLE
        grid, block, kernel = (gx, gy, gz), (bx, by, bz), loaded.kernel
        if min(*grid, *block) < 1 or bx * by * bz > min(loaded.notes.max_threads, LARGEST_BLOCK) or shared > self.lds:
            return Result.INVALID_VALUE
        assert len(addresses) >= len(loaded.given), "the runtime would read past the end of the parameters"
        raw = [ctypes.string_at(addresses[index], one.size) for index, one in enumerate(loaded.given)]
        parameters = zip(kernel.function.params, raw, strict=True)
        values = [np.frombuffer(data, dtype_of(kind))[0] for (kind, _), data in parameters]
        self.launches.append(
            Launched(loaded.notes.name, grid, block, shared, stream or 0, attributes, raw, loaded.device)
        )

        device = self.devices[loaded.device]
        counters = WaveCounters(self.arch, wave_size(self.arch), device.memory) if device.is_counting else None

        def launch() -> None:
            loaded.findings = []
            limits = {"max_instructions": device.max_instructions, "most_groups": device.most_blocks}
            try:
                kernel.launch(grid, block, values, shared, counters=counters, **limits)
            except CheckFailed as error:
                loaded.findings = error.findings
                raise

        outcome = lambda: (loaded.findings, counters, kernel.executed)  # noqa: E731
        return self.enqueue(stream, self.watched(device, launch, outcome))
