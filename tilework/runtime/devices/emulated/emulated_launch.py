"""A launch in the emulator, on the memory of its arguments; findings are reported at the user's line."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from tilework.oracles.emulator.counters import Counters
from tilework.oracles.emulator.findings import Finding
from tilework.oracles.emulator.memory import Extent as Lent
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.oracles.interpreter.allowed_memory import REGISTERED, Region
from tilework.oracles.interpreter.arguments import region_of
from tilework.runtime.devices import allocators
from tilework.runtime.devices.cuda.launch_kernel import CudaLauncher
from tilework.runtime.devices.emulated.emulated_library import EmulatedLibrary
from tilework.runtime.devices.emulated.found import error_of, failure_of, warn_of_slow_lines
from tilework.runtime.devices.emulated.pointed_arrays import pointed_arrays
from tilework.runtime.devices.gpu.gpu_launcher import Functions, GpuLauncher
from tilework.runtime.devices.hip.hip_driver import HipLauncher
from tilework.runtime.devices.launcher import Extent, Scratch, declared_types


class EmulatedLauncher(GpuLauncher):
    """Runs one kernel; `counters` is what its last launch did, line by line."""

    def __init__(self, functions: Functions, source: object, metadata: object) -> None:
        super().__init__(functions, source, metadata)
        self.names = list(declared_types(source) or ())
        self.counters: Counters | None = None

    def allocate(self, grid: Extent, stream: int) -> Scratch:
        """Scratch memory; a program that sets no allocator gets it too."""
        with allocators.otherwise(HostScratch):
            return super().allocate(grid, stream)

    def start(self, grid: Extent, stream: int, function: int, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program of the grid; inside of a graph, when the graph is replayed."""
        library = self.gpus.library()
        emulated: EmulatedLibrary = library.loaded
        launch = ObservedLaunch(self, grid, args, scratch)
        with emulated.lock:  # the thread that launches reports the findings
            with emulated.observed(launch):
                super().start(grid, stream, function, args, scratch)
            if stream not in emulated.captures:
                library.wait_for_stream(stream)


class EmulatedCudaLauncher(EmulatedLauncher, CudaLauncher):
    """Of NVIDIA's."""


class EmulatedHipLauncher(EmulatedLauncher, HipLauncher):
    """Of AMD's."""


class HostScratch:
    """Scratch memory of this process."""

    def __init__(self, size: int, alignment: int, stream: int | None) -> None:
        self.memory = np.zeros(size + alignment, np.uint8)
        self.alignment = alignment

    def data_ptr(self) -> int:
        start = self.memory.ctypes.data
        return start + -start % self.alignment


class ObservedLaunch:
    """The observer around one launch; it keeps the arguments alive."""

    def __init__(self, launcher: EmulatedLauncher, grid: Extent, args: Sequence[Any], scratch: Scratch) -> None:
        self.launcher = launcher
        names = launcher.names or [str(position) for position in range(len(args))]
        given = [pair for name, arg in zip(names, args, strict=False) for pair in arrays_in(name, arg)]
        known = [(array, region) for reference, region in REGISTERED if (array := reference()) is not None]
        bare = [arg for type, arg in zip(launcher.signature or (), args, strict=False) if is_pointer(type, arg)]
        for name, array in given:
            try:
                known.append((array, region_of(f"argument {name!r}", array)[0]))
            except TypeError:  # it says where it is, but not how large
                bare.append(array.data_ptr())
        self.arrays = [*known, *pointed_arrays([array for _, array in given], bare)]
        self.extents = [lent(array, region) for array, region in self.arrays]
        programs = prod(grid) * launcher.num_ctas
        for buffer, size in zip(scratch, (launcher.scratch_size, launcher.profile_size), strict=True):
            if buffer is not None:
                self.extents.append(Lent(buffer.data_ptr(), buffer.data_ptr() + programs * size))

    def failed(self, error: EmulatorError) -> None:
        """The kernel could not go on."""
        raise failure_of(error) from None

    def done(self, findings: Sequence[Finding], counters: Counters | None) -> None:
        """All programs have run."""
        if counters is not None:
            self.launcher.counters = Counters()
            self.launcher.counters.lines = dict(counters.lines)
        if findings:
            raise error_of(findings, [region for _, region in self.arrays])
        if self.launcher.counters is not None:
            warn_of_slow_lines(self.launcher.name, self.launcher.counters)


def is_pointer(type: object, arg: object) -> bool:
    """Return True if an argument is a bare address."""
    return isinstance(arg, int) and arg != 0 and str(type).startswith("*")


def arrays_in(name: str, arg: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of an argument, and how the user calls them."""
    if isinstance(arg, tuple):
        for position, item in enumerate(arg):
            yield from arrays_in(f"{name}[{position}]", item)
    elif hasattr(arg, "block_shape") and hasattr(arg, "base"):
        yield name, arg.base
    elif hasattr(arg, "dtype") and (hasattr(arg, "data_ptr") or getattr(arg, "shape", ()) != ()):
        yield name, arg


def lent(array: Any, region: Region) -> Lent:
    """The extent of an array. On a GPU the memory that a view is part of would be aligned."""
    start, root = region.start, array
    while isinstance(getattr(root, "base", None), np.ndarray):
        root = root.base
    if hasattr(array, "untyped_storage"):
        start = array.untyped_storage().data_ptr()
    elif isinstance(root, np.ndarray):
        start = root.ctypes.data
    return Lent(region.start, region.end, 0 if start % 16 else start, region.is_writable)
