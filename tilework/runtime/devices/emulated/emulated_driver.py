"""``TILEWORK_DEVICE=emulator``, ``emulator:sm_80`` or ``emulator:gfx942``: programs run, as they are, on a GPU that is
not there.

    TILEWORK_DEVICE=emulator python softmax.py

Kernels are compiled as for a real GPU, and their PTX (for AMD's: their LLVM text) is executed by the emulator, on the
NumPy arrays and CPU tensors themselves: nothing is copied. A launch is checked, and is over when it returns. Nothing of
CUDA or ROCm is needed. Its clock counts what warps do (`emulated_library.py`), so that an autotuner here finds the
configuration with the fewest steps, which need not be the fastest one on a GPU.
"""

import gc
import linecache
import re
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from math import prod
from typing import Any

import numpy as np

from tilework import knobs
from tilework.errors import PerformanceWarning, SanitizerError
from tilework.oracles.emulator.counters import Counters, Counts
from tilework.oracles.emulator.findings import SHOWN, Finding
from tilework.oracles.emulator.memory import END
from tilework.oracles.emulator.memory import Extent as Lent
from tilework.oracles.emulator.syntax import EmulatorError, Trapped
from tilework.oracles.interpreter.allowed_memory import LANGUAGE, REGISTERED, Region, is_near
from tilework.oracles.interpreter.arguments import region_of
from tilework.runtime.devices import launcher
from tilework.runtime.devices.checked_launch import HELP_UNKNOWN, KernelAccessError, distance, rendered, source_line
from tilework.runtime.devices.cuda.driver import CudaDriver, CudaLauncher
from tilework.runtime.devices.emulated.emulated_library import EmulatedLibrary
from tilework.runtime.devices.gpu.gpu_driver import GpuDriver
from tilework.runtime.devices.gpu.gpu_launcher import Functions, GpuLauncher
from tilework.runtime.devices.hip_driver import HipDriver, HipLauncher
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.runtime.devices.host.evaluator_launcher import as_array
from tilework.runtime.devices.launcher import Extent, Scratch, declared_types

# ---- A launch in the emulator, on the memory of its arguments; findings are reported at the user's line


class EmulatedLauncher(GpuLauncher):
    """Runs one kernel; `counters` is what its last launch did, line by line."""

    def __init__(self, functions: Functions, source: object, metadata: object) -> None:
        super().__init__(functions, source, metadata)
        self.names = list(declared_types(source) or ())
        self.counters: Counters | None = None

    def allocate(self, grid: Extent, stream: int) -> Scratch:
        """Scratch memory; a program that sets no allocator gets it too."""
        with launcher.otherwise(HostScratch):
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
        trap = RuntimeError(f"device-side assert triggered: {error}") if isinstance(error, Trapped) else error
        raise trap from None

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


NVIDIA = {f"sm_{index}": index for index in (80, 86, 87, 89, 90)}
AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
DEFAULT = "sm_90"
CAPACITY = 16 << 30


def emulated_driver() -> "EmulatedDriver":
    """The architecture that TILEWORK_DEVICE names."""
    device = knobs.runtime.device
    arch = (device or "").partition(":")[2] or DEFAULT
    if arch not in (*NVIDIA, *AMD):
        raise ValueError(f"TILEWORK_DEVICE={device}: the emulator is one of {', '.join((*NVIDIA, *AMD))}, not {arch!r}")
    if arch in NVIDIA:
        from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda  # lazily: each with its emulator

        return EmulatedCudaDriver(EmulatedCuda(capacity=CAPACITY, arch=NVIDIA[arch], checks=True))
    from tilework.runtime.devices.emulated.emulated_libhip import EmulatedHip  # lazily: as above

    return EmulatedHipDriver(EmulatedHip(capacity=CAPACITY, arch=arch))


class EmulatedDriver(GpuDriver):
    """Runs kernels in the emulator."""

    selected_by = ("emulator",)
    reads_line_tables = True
    torch_build = None  # torch does not know this device

    def __init__(self, library: object) -> None:
        super().__init__()
        self.gpus.found.use(library)
        self.host = CpuDriver()

    @classmethod
    def is_active(cls) -> bool:
        return (knobs.runtime.device or "").startswith("emulator")

    def launches_natively(self) -> bool:
        return False

    def get_active_torch_device(self) -> Any:
        """The device of the tensors of programs."""
        return self.host.get_active_torch_device()

    def check_arguments(self, args: Sequence[object]) -> None:
        """The memory is that of the host."""
        self.host.check_arguments(args)

    def get_empty_cache_for_benchmark(self) -> Any:
        """There is no cache to be emptied."""

    def clear_cache(self, cache: object) -> None:
        """There is no cache to be emptied."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return a benchmarker of one call: the clock counts steps, which are the same every time."""
        from tilework.runtime.tuning.benchmark import summarize, timed  # lazily: most programs time nothing

        def steps(fn: Callable[[], object], quantiles: Sequence[float] | None = None, return_mode: str = "mean") -> Any:
            start, end = timed(self.gpus, fn)
            self.gpus.synchronize()
            return summarize([start.elapsed_time(end)], quantiles, return_mode)

        return steps


class EmulatedCudaDriver(EmulatedDriver, CudaDriver):
    """NVIDIA's."""

    kernel_launcher = EmulatedCudaLauncher


class EmulatedHipDriver(EmulatedDriver, HipDriver):
    """AMD's."""

    kernel_launcher = EmulatedHipLauncher


# ---- findings of the emulator in a launch, reported at the user's line
#
#     kernel.py:9:5: error: block (7, 0, 0) reads element 1000 of argument 'x', which has 1000 elements (out of bounds)
#         9 |     v = tl.load(x + i)
#           |     ^
#     kernel.py:12: PerformanceWarning: double: 992 of 1024 wavefronts of shared memory are bank conflicts
#
# Mistakes are errors (`SanitizerError`, for accesses also an `IndexError`). What is only slow is a
# `PerformanceWarning`, once for each line.


VERBS = {"ld": "reads", "st": "writes", "atom": "updates", "red": "updates", "cp": "copies"}  # of PTX, then of LLVM
VERBS |= {"atomicrmw": "updates", "cmpxchg": "updates", "atomic": "updates", "load": "reads", "store": "writes"}
OPCODE = re.compile(rf"\b({'|'.join(VERBS)})(?:\.|\s)")
ADDRESS = re.compile(r"global address (0x[0-9a-f]+)")
FEW = 32  # wavefronts or sectors: not worth a warning
TWICE = 2
WARNED: dict[Any, Any] = {}  # Python shows each warning once


def error_of(findings: Sequence[Finding], regions: Sequence[Region]) -> SanitizerError:
    """All that was found as one exception."""
    different = list({(one.kind, *(site.locations for site in one.sites)): one for one in reversed(findings)}.values())
    texts = [finding_text(finding, regions) for finding in different[: -SHOWN - 1 : -1]]
    if len(different) > SHOWN:
        texts.append(f"... and {len(different) - SHOWN} more")
    kind = KernelAccessError if any(finding.address is not None for finding in findings) else SanitizerError
    return kind("\n".join(texts))


def finding_text(finding: Finding, regions: Sequence[Region]) -> str:
    """One finding with the lines that it is about."""
    if not finding.sites:
        return f"{finding.kind}: {finding.what}"
    locations = [location_of(site.locations) for site in finding.sites]
    title, help = f"{finding.kind}: {finding.what}", ""
    if finding.address is not None:
        title, help = access_text(finding, finding.address, regions)
    title = ADDRESS.sub(lambda match: element_text(int(match[1], 16), regions) or match[0], title)
    notes = [f"and {source_line(location)}" for location in locations[1:] if location != locations[0]]
    site = finding.sites[0]
    return rendered(locations[0], title, help=help, notes=(*notes, f"{site.language} line {site.line}: {site.text}"))


def access_text(finding: Finding, address: int, regions: Sequence[Region]) -> tuple[str, str]:
    """The sentence about a bad access, and what to do."""
    opcode = OPCODE.search(finding.sites[0].text)
    subject = f"block {finding.block} {VERBS[opcode[1]] if opcode else 'accesses'}"
    near = min(regions, key=lambda region: distance(address, region), default=None)
    if near is None or not is_near(address, near):
        return f"{subject} address {address:#x}, which is in no array the kernel was given", HELP_UNKNOWN
    index, rest = divmod(address - near.data, near.itemsize)
    what = f"{subject} element {index}{f' plus {rest} bytes' if rest else ''} of {near.name}"
    if near.start <= address < near.end:
        return f"{what}: {finding.what}", ""
    return f"{what}, which has {(near.end - near.start) // near.itemsize} elements (out of bounds)", ""


def element_text(address: int, regions: Sequence[Region]) -> str:
    """The user's name for the element at an address; empty if it is in no array."""
    for region in regions:
        if region.start <= address < region.end:
            return f"element {(address - region.data) // region.itemsize} of {region.name}"
    return ""


def warn_of_slow_lines(kernel: str, counters: Counters) -> None:
    """A warning for each line of the user's whose accesses take twice what they need."""
    for (file, line), counts in sorted(counters.lines.items()):
        if file != "PTX":
            for text in slow_accesses(counts):
                warnings.warn_explicit(f"{kernel}: {text}", PerformanceWarning, file, line, registry=WARNED)


def slow_accesses(counts: Counts) -> list[str]:
    """Advice for a line."""
    found = []
    if counts.wavefronts > FEW and counts.wavefronts >= TWICE * (counts.wavefronts - counts.conflicts):
        found.append(f"{counts.conflicts} of {counts.wavefronts} wavefronts of shared memory are bank conflicts")
    if counts.tile_sectors > FEW and counts.tile_sectors >= TWICE * counts.least_sectors:
        least = f"{counts.least_sectors} would hold what threads want"
        found.append(f"accesses are not coalesced: {counts.tile_sectors} sectors of global memory are touched, {least}")
    return found


def location_of(locations: Sequence[tuple[str, int]]) -> str:
    """``file:line:column`` of the innermost line outside of the language's own library."""
    own = [location for location in locations if not location[0].startswith(LANGUAGE)]
    return with_column(*(own or locations)[0]) if locations else "<kernel>"


def with_column(file: str, line: int) -> str:
    text = linecache.getline(file, line)
    return f"{file}:{line}:{len(text) - len(text.lstrip())}"


# ---- the arrays whose addresses an argument holds, as those of a grouped matrix multiplication do: a kernel may load
# and use them.
#
#     table = np.array([row.ctypes.data for row in rows])
#     gather[grid](table, out)                                  # the kernel reaches the rows through the table
#
# On a GPU an address is enough. Here every access is checked against the arrays of a launch, so those that are pointed
# to are looked for among all that are alive. The address of something that has been freed is then an address in no
# array.


LOWEST = min(
    1 << 32, id(None)
)  # smaller values are sizes and indices; a heap may begin below 4 GiB, but not before the interpreter
LARGEST = 1 << 44
BATCH = 1000
ARRAY, CONTAINER = 1, 2  # a container may hold arrays without the collector knowing it
Found = tuple[Any, Region]
RECENT: list[tuple[Any, Region]] = []  # what was found last, by weak references


def pointed_arrays(arrays: Iterable[object], addresses: Iterable[int]) -> list[Found]:
    """The live arrays that `addresses` and 64-bit integers in `arrays` point into."""
    wanted = np.array(sorted({*addresses, *(value for array in arrays for value in addresses_in(array))}), np.int64)
    if not len(wanted):
        return []
    found = [(array, region) for reference, region in RECENT if (array := reference()) is not None]
    if not all(any(region.start <= address < region.end for _, region in found) for address in wanted):
        found = [pair for pair in live_arrays() if is_pointed(pair[1], wanted)]
        RECENT[:] = [(weakref.ref(array), region) for array, region in found]
    return [pair for pair in found if is_pointed(pair[1], wanted)]


def addresses_in(array: object) -> list[int]:
    """The elements that can be addresses."""
    if str(getattr(array, "dtype", "")).removeprefix("torch.") not in ("int64", "uint64"):
        return []
    memory = as_array(array)
    size = memory.size // 8 * 8 if memory.dtype == np.uint8 else None
    values = memory.reshape(-1)[:size].view(np.int64) if size is not None else memory.reshape(-1).view(np.int64)
    return np.unique(values[(values >= LOWEST) & (values < END)]).tolist()


def is_pointed(region: Region, wanted: Any) -> bool:
    """Return True if one of the sorted addresses is inside of an extent."""
    if region.end - region.start > LARGEST:  # what the emulator sees all memory through
        return False
    at = int(np.searchsorted(wanted, region.start))
    return at < len(wanted) and int(wanted[at]) < region.end


def live_arrays() -> Iterator[Found]:
    """Yield every live NumPy array and tensor, and its extent."""
    seen: set[int] = set()
    waiting: list[Any] = gc.get_objects()
    for frame in sys._current_frames().values():
        while frame is not None:
            waiting.append(frame)  # `f_locals` would keep what it shows alive
            frame = frame.f_back
    kinds = Kinds()
    items = [item for item in kinds.known(waiting) if kinds[type(item)] == ARRAY]
    while waiting:
        batch = waiting[-BATCH:]
        del waiting[-BATCH:]
        for item in kinds.known(gc.get_referents(*batch)):
            is_array = kinds[type(item)] == ARRAY
            if (is_array or not gc.is_tracked(item)) and id(item) not in seen:
                seen.add(id(item))
                (items if is_array else waiting).append(item)
        batch.clear()  # our own frame is among them, and would keep them alive
    for item in items:
        try:
            yield item, region_of("memory that an argument points to", item)[0]
        except (TypeError, ValueError, RuntimeError):  # of objects, on a GPU, without memory
            continue


class Kinds(dict[type, int]):
    """Return the kinds of objects that a type may be."""

    def known(self, items: list[Any]) -> Iterator[Any]:
        """Those that are something: without Python code for each of the millions that are not."""
        return compress(items, map(self.__getitem__, map(type, items)))

    def __missing__(self, kind: type) -> int:
        is_array = issubclass(kind, np.ndarray) or hasattr(kind, "untyped_storage")
        self[kind] = ARRAY if is_array else CONTAINER if kind in (tuple, dict) else 0
        return self[kind]
