"""Repeat a launch: in the interpreter, in the evaluator, as code of the CPU, and on emulated GPUs.

    launch = Launch(add, (x, y, out, 1000, 1024), (4, 1, 1), {"num_warps": 8})
    with Kept(list(names_of(launch.fn, launch.values))) as kept:
        run_on("emulator:sm_90", launch)
        after = kept.arrays()               the results, as NumPy arrays
        kept.restore()                      the next run starts from the same bytes
    isolated(lambda: compare(launch))       the same in a fork of this process; a `Died` if the fork does not survive

Each run binds, specialises and compiles for its device as a program there would. Recording is off during these
runs, and the active device is restored afterwards. Launches are repeated on the arguments themselves, so that
overlapping arrays, strided views, tables of addresses and descriptors keep their meaning. Where processes cannot fork
(Windows, a GPU that is in use) `isolated` runs the work in this process.

`count` repeats a launch on an emulated GPU, with copies of its arguments, and returns counters by source line.

    launch = Launch.of(add, (x, y, out, n, 1024), (4,)).copied()
    count(source, GPUTarget.parse("cuda:90"), {}, launch)["total"]["sectors"]

A launch in the emulator takes about a million times as long as on a GPU, so only the first programs of a grid run. PTX
is counted: AMD GPUs and CPUs are not.
"""

import copy
import json
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Self

import numpy as np

from tilework import knobs
from tilework.aot.in_processes import results
from tilework.errors import SanitizerError
from tilework.language.grid import GridArguments, grid_extent
from tilework.numerics.rounding import FLOATS
from tilework.oracles.interpreter.allowed_memory import ON_WRITE, REGISTERED, strided_extent
from tilework.oracles.interpreter.arguments import register_memory
from tilework.runtime.devices.active_driver import default_driver, driver
from tilework.runtime.devices.emulated.emulated_driver import arrays_in, pointed_arrays
from tilework.runtime.devices.host.evaluator_launcher import bytes_at
from tilework.runtime.devices.host.pack import storage_extent
from tilework.runtime.launch.python.jit import DeviceCaches
from tilework.runtime.launch.python.specialize import call_of, dtype_code
from tilework.runtime.recording.recorder import QUIET
from tilework.targets.base import GPUTarget

INTERPRETER, EVALUATOR, NATIVE = "interpreter", "evaluator", "native"
GPUS = ("emulator:sm_80", "emulator:sm_90", "emulator:gfx942")
DEVICES = (INTERPRETER, EVALUATOR, NATIVE, *GPUS)
LARGEST = 256 << 20  # bytes of arguments that are copied
PROGRAMS = 16  # of a grid that are run: the interpreter and the emulators are slow


@dataclass(frozen=True)
class Launch:
    """A kernel with all its arguments in order, a grid, and options; `kept` keeps targets of pointer tables alive."""

    fn: Any
    values: tuple[Any, ...]
    grid: tuple[int, int, int]
    options: Mapping[str, Any] = field(default_factory=dict)
    kept: Any = None

    @classmethod
    def of(cls, fn: Any, values: Sequence[Any], grid: Any, options: Mapping[str, Any] | None = None) -> "Launch":
        """A launch with a grid as users write it: of one to three sizes, or a function of the arguments."""
        if callable(grid):
            grid = grid(GridArguments(zip(fn.arg_names, values, strict=True), fn.__name__))
        return cls(fn, tuple(values), grid_extent(grid), options or {})

    def copied(self, kept: Any = None) -> "Launch | None":
        """The same with copies of its arrays as they are now, in the memory of the host; None if they are large."""
        return None if self.bytes > LARGEST else replace(self, values=tuple(map(copied, self.values)), kept=kept)

    @property
    def bytes(self) -> int:
        """The bytes of all arrays."""
        named = names_of(self.fn, self.values)
        return sum(int(getattr(array, "nbytes", 0)) for name, value in named for _, array in arrays_in(name, value))

    def first_programs(self) -> "Launch":
        """The same with a smaller grid, if it is a large one."""
        x = min(self.grid[0], PROGRAMS)
        y = min(self.grid[1], max(PROGRAMS // max(x, 1), 1))
        return replace(self, grid=(x, y, min(self.grid[2], max(PROGRAMS // max(x * y, 1), 1))))

    @property
    def programs(self) -> int:
        return prod(self.grid)

    def call(self, options: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments of this launch with `options`."""
        return call_of(self.fn, self.values, options)


def copied(argument: Any) -> Any:
    """The argument, with arrays of its own in the memory of the host."""
    if isinstance(argument, tuple):
        return tuple(map(copied, argument)) if type(argument) is tuple else argument
    if hasattr(argument, "block_shape") and hasattr(argument, "base"):  # a descriptor
        made = copy.copy(argument)
        made.base = copied(argument.base)
        return made
    if isinstance(argument, np.ndarray):
        return copied_array(argument)
    if hasattr(argument, "detach") and hasattr(argument, "data_ptr"):
        return argument.detach().cpu().clone()
    return argument


def copied_array(array: Any) -> Any:
    """Copy an array to the same offset modulo 256 bytes that it has in its base: the offset decides which sectors are
    touched."""
    if not array.flags.c_contiguous:
        return array.copy(order="K")
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = (array.ctypes.data - root.ctypes.data) % 256
    whole = np.empty(array.nbytes + start, np.uint8)
    made = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def run_on(device: str, launch: Launch) -> Any:
    """Run a launch once; the compiled kernel, if there is one."""
    with silence():
        if device == INTERPRETER:
            return interpreted(launch)
        with active(device):
            return launched(launch)


def launched(launch: Launch) -> Any:
    """Compile and launch on the active device, as if for the first time; return the compiled kernel."""
    args, kwargs = launch.call(launch.options)
    return unlaunched(launch.fn).run(*args, grid=launch.grid, warmup=False, **kwargs)


def interpreted(launch: Launch) -> None:
    from tilework.oracles.interpreter import InterpretedFunction  # lazily: a whole executor
    from tilework.oracles.interpreter.function import COMPILER_OPTIONS

    fn = launch.fn
    kernel = InterpretedFunction(fn.fn, debug=fn.debug, do_not_specialize=fn.do_not_specialize)
    kernel.sanitize, kernel.reproducible = None, fn.reproducible
    options = {name: value for name, value in launch.options.items() if name in COMPILER_OPTIONS}
    args, kwargs = launch.call(options)
    kernel[launch.grid](*args, **kwargs)


def unlaunched(fn: Any) -> Any:
    """The same kernel without anything that was compiled of it."""
    made = copy.copy(fn)
    made.device_caches = DeviceCaches(made.create_binder)
    made._compiled_as = {}
    made.pre_run_hooks = []
    return made


@contextmanager
def silence() -> Iterator[None]:
    """Do not record the launches of this thread inside the `with`, and ignore warnings."""
    before, QUIET.is_quiet = QUIET.is_quiet, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        QUIET.is_quiet = before


@contextmanager
def active(device: str) -> Iterator[None]:
    """Make the device that TILEWORK_DEVICE=`device` selects the active one inside the `with`."""
    from tilework.runtime.devices.cuda.device import GPUS as NVIDIA  # lazily: few change the device
    from tilework.runtime.devices.hip_driver import GPUS as AMD

    before = (driver._active, driver._host)
    libraries = [(gpus.found, gpus.found.found) for gpus in (NVIDIA, AMD)]
    with knobs.runtime.scope():
        knobs.runtime.device = device
        knobs.runtime.explain = None
        try:
            driver.set_active(default_driver())
            yield
        finally:
            driver._active, driver._host = before
            for library, found in libraries:
                library.found = found


INTEGERS: dict[str, np.dtype[Any]] = {
    "u1": np.dtype(np.uint8),
    **{f"{sign}{bits}": np.dtype(f"{sign}{bits // 8}") for sign in "iu" for bits in (8, 16, 32, 64)},
}
Array = np.ndarray[Any, Any]


class OutOfReach(Exception):
    """Arguments that cannot be kept: they are large, or not in the memory of the host."""


class Kept:
    """See the module."""

    def __init__(self, named: Sequence[tuple[str, Any]]) -> None:
        """`named` are the arguments by name."""
        self.named = [pair for name, value in named for pair in arrays_in(name, value)]
        for name, array in self.named:
            if not is_on_host(array):
                raise OutOfReach(f"`{name}` is in the memory of a device")
        bare = [value for _, value in named if isinstance(value, int) and value > 1 << 32]
        given = {id(array) for _, array in self.named}
        pointed = [
            array for array, _ in pointed_arrays([array for _, array in self.named], bare) if id(array) not in given
        ]
        for index, array in enumerate(pointed):  # register the targets of address tables
            self.named.append((f"pointed{index}", register_memory(array)))
        others = [array for reference, _ in REGISTERED if (array := reference()) is not None]
        extents = dict.fromkeys(extent_of(array) for array in (*(array for _, array in self.named), *others))
        self.extents = [(address, size) for address, size in extents if size]
        self.marks: list[Array] = []  # the bytes that were written
        self.memory = [bytes_at(address, size) for address, size in self.extents]
        if (total := sum(memory.nbytes for memory in self.memory)) > LARGEST:
            raise OutOfReach(f"the arguments have {total / 1e6:.0f} MB, and at most {LARGEST / 1e6:.0f} MB are copied")
        self.before = [memory.copy() for memory in self.memory]

    def restore(self) -> None:
        """Restore all bytes; memory that has not changed is not written, because it may be read-only."""
        for memory, before in zip(self.memory, self.before, strict=True):
            if not np.array_equal(memory, before):
                memory[:] = before

    def arrays(self) -> dict[str, Array]:
        """A copy of every array as it is now."""
        return {name: values_of(array) for name, array in self.named}

    @contextmanager
    def noting_writes(self) -> Iterator[None]:
        """Remember which bytes the interpreter writes inside the `with`."""
        self.marks = [np.zeros(size, np.bool_) for _, size in self.extents]

        def note(addresses: Array, size: int) -> None:
            for (start, length), marks in zip(self.extents, self.marks, strict=True):
                offsets = addresses[(addresses >= start) & (addresses + size <= start + length)] - start
                for byte in range(size):
                    marks[offsets + byte] = True

        token = ON_WRITE.set(note)
        try:
            yield
        finally:
            ON_WRITE.reset(token)

    def written(self) -> dict[str, Array]:
        """The elements of each array that were written under `noting_writes`; arrays whose layout is not known are left
        out."""
        found = {name: self.marks_of(array) for name, array in self.named}
        return {name: marks for name, marks in found.items() if marks is not None}

    def marks_of(self, array: Any) -> Array | None:
        layout = layout_of(array)
        if layout is None:
            return None
        data, shape, strides, itemsize = layout
        first, end = strided_extent(data, shape, strides, itemsize)
        for (start, size), marks in zip(self.extents, self.marks, strict=False):
            if start <= first and end <= start + size:
                return np.ndarray(shape, np.bool_, buffer=marks, offset=data - start, strides=strides).copy()
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()


def is_on_host(array: Any) -> bool:
    if hasattr(array, "is_cpu"):
        return bool(array.is_cpu)
    return not hasattr(array, "__cuda_array_interface__")


def extent_of(array: Any) -> tuple[int, int]:
    """(address, bytes) of all memory that an array is a part of."""
    if (extent := storage_extent(array)) is not None:
        return extent
    if not isinstance(array, np.ndarray):
        base = getattr(array, "base", None)
        if base is not None and hasattr(array, "data_ptr"):
            return extent_of(base)  # a wrapper that reads memory as another type
        if hasattr(array, "data_ptr"):
            return array.data_ptr(), int(getattr(array, "nbytes", 0))
        array = np.asarray(array)
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    low, high = np.lib.array_utils.byte_bounds(root) if root.size else (root.ctypes.data,) * 2
    return low, high - low


def layout_of(array: Any) -> tuple[int, tuple[int, ...], tuple[int, ...], int] | None:
    """(address, shape, strides in bytes, bytes of an element) of an array or tensor; None where it has none."""
    if not isinstance(array, np.ndarray) and hasattr(array, "contiguous"):
        size = array.element_size()
        return array.data_ptr(), tuple(array.shape), tuple(stride * size for stride in array.stride()), size
    if not isinstance(array, np.ndarray):
        base = getattr(array, "base", None)
        return None if base is None else layout_of(base)
    return array.ctypes.data, array.shape, array.strides, array.itemsize


def values_of(array: Any) -> Array:
    """The elements of an array or tensor as a NumPy array of its own."""
    if isinstance(array, np.ndarray):
        return array.copy()
    if not hasattr(array, "contiguous"):
        base = getattr(array, "base", None)
        return values_of(base) if base is not None else np.array(array)
    whole = array.detach().contiguous()
    code = dtype_code(whole.dtype)
    held = FLOATS.get(code) or INTEGERS.get(code, INTEGERS["u1"])
    memory = bytes_at(whole.data_ptr(), whole.numel() * whole.element_size())
    made = memory.copy().view(held) if isinstance(memory, np.ndarray) else np.empty(0, held)
    return made.reshape(tuple(whole.shape)) if made.size == whole.numel() else made


def names_of(fn: Any, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """The arguments of a launch by name, or by index without a kernel in Python."""
    names = [str(index) for index in range(len(values))] if fn is None else fn.arg_names
    yield from zip(names, values, strict=False)


SECONDS = 900.0  # after which a copy is given up: another thread held a lock when it was made, perhaps


@dataclass(frozen=True)
class Died:
    """The end of a forked process that returned nothing."""

    how: str


def isolated(work: Callable[[], Any], seconds: float = SECONDS) -> Any:
    """The result of `work`, which JSON must have a form for."""

    def answer(index: int) -> str:
        return json.dumps(work(), default=str)

    has_own_memory = getattr(driver.active, "has_own_memory", False)
    if not hasattr(os, "fork") or has_own_memory or multiprocessing.current_process().daemon:
        return json.loads(answer(0))
    _, text, error = next(results(answer, 1, 1, seconds=seconds))
    return json.loads(text) if error is None else Died(error)


class TakesTooLong(Exception):
    """A run that exceeded its time limit."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """An exception after so many seconds, where there are alarms: in the main thread, on Unix."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(signal_id: int, frame: Any) -> None:
        raise TakesTooLong

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


COUNTED_PROGRAMS = 4  # of a grid that run in the emulator
MOST_INSTRUCTIONS = 400_000  # of a block
NO_LAUNCH = (
    "no launch is known: explore a program that launches the kernel, or give `.explore` its arguments and a grid"
)
UNPLACED = ("PTX", "LLVM")  # the files of code that has no line
# what a page shows of each line: [name, title, meaning]
SHARES = ("coalescing", "used", "of the bytes that were moved, those that threads wanted")
COLUMNS = {
    "cuda": (
        ("instructions", "instructions", "of warps"),
        ("sectors", "sectors", "of 32 bytes of global memory, moved"),
        SHARES,
        ("wavefronts", "wavefronts", "of shared memory"),
        ("conflicts", "conflicts", "wavefronts that even use of the banks would save"),
        ("tensor", "tensor ops", "multiplications and additions of tensor cores"),
    ),
    "hip": (
        ("instructions", "instructions", "of waves, in LLVM's text: before code generation"),
        ("sectors", "requests", "of 64 bytes of global memory"),
        SHARES,
        ("wavefronts", "LDS cycles", "of the banks of LDS, lanes in order"),
        ("conflicts", "conflicts", "cycles that even use of the banks would save"),
        ("tensor", "matrix ops", "multiplications and additions of matrix instructions"),
    ),
}
COUNTING_SECONDS = 20.0
COUNTS = ("wavefronts", "conflicts", "tile_sectors", "least_sectors", "sectors", "requests")


def count(source: Any, target: GPUTarget, settings: Mapping[str, Any], launch: Launch | None) -> dict[str, Any]:
    """Return counts by line and in total; {"why": reason} if nothing could be counted."""
    if launch is None:
        return {"why": NO_LAUNCH}
    from tilework.runtime.devices.emulated.emulated_driver import AMD, NVIDIA  # lazily: with the emulator

    arch = f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch)
    if arch not in (*NVIDIA, *AMD):
        return {"why": f"the emulator has no {arch}; it has {', '.join((*NVIDIA, *AMD))}"}
    try:
        counters, found = emulated(source, target, settings, launch, arch)
    except Exception as error:  # any error of the user's kernel is shown beside the other facts
        return {"why": f"the launch failed in the emulator: {error}"}
    return {
        "by": "the emulator",
        "columns": COLUMNS[target.backend],
        "grid": list(launch.grid),
        "programs": min(launch.programs, COUNTED_PROGRAMS),
        "of": launch.programs,
        "total": shown_counts(counters.total),
        "lines": [(line, shown_counts(counts)) for line, counts in counted_lines(counters)],
        "findings": found,
    }


def counted_lines(counters: Any) -> list[tuple[tuple[str, int], Any]]:
    """((file, line), counts) of all code that has a source line, in order."""
    return [(line, counts) for line, counts in sorted(counters.lines.items()) if line[0] not in UNPLACED]


@contextmanager
def emulating(arch: str) -> Iterator[None]:
    """Launch on an emulated GPU that runs the first programs of a grid only; nothing is recorded."""
    with silence(), active(f"emulator:{arch}"):
        gpu: Any = driver.active
        for device in gpu.gpus.library().loaded.devices:
            device.most_blocks, device.max_instructions = COUNTED_PROGRAMS, MOST_INSTRUCTIONS
            device.is_counting = True
        yield


def emulated(
    source: Any, target: GPUTarget, settings: Mapping[str, Any], launch: Launch, arch: str
) -> tuple[Any, list[str]]:
    """The counters of one launch, and the errors that the sanitizer found in it."""
    # lazily: with the emulator
    from tilework.runtime.compile.cached import compile
    from tilework.runtime.compile.compiled import launch_kernel
    from tilework.runtime.devices.active_driver import driver

    found: list[str] = []
    with emulating(arch):
        kernel = compile(source, target, dict(settings))
        stream = driver.active.get_current_stream(driver.active.get_current_device())
        chosen = kernel.justified(launch.grid, launch.values)
        try:
            launch_kernel(chosen, launch.grid, stream, launch.values)
        except SanitizerError as error:
            found = str(error).splitlines()
        return chosen.counters, found


def shown_counts(counts: Any) -> dict[str, Any]:
    """The counts of a line that a page shows."""
    return {
        "instructions": sum(counts.instructions.values()),
        "kinds": dict(sorted(counts.instructions.items())),
        "sectors": counts.sectors,
        "coalescing": round(counts.coalescing, 4) if counts.sectors else None,
        "wavefronts": counts.wavefronts,
        "conflicts": counts.conflicts,
        "tensor": counts.tensor_operations,
    }


def counts_apart(launch: Launch, target: GPUTarget) -> dict[str, Any]:
    """The same as `counts_of`, in a copy of the process."""
    found = isolated(lambda: counts_of(launch, target))
    return {"why": f"the emulator's process ended: {found.how}"} if isinstance(found, Died) else found


def counts_of(launch: Launch, target: GPUTarget) -> dict[str, Any]:
    """Counts of the first programs of a launch, by line; `why` there are none, if so."""
    print(f"tilework explain: counting {launch.fn.__name__} in the emulator ({target})", file=sys.stderr)
    try:
        with Kept(list(names_of(launch.fn, launch.values))), limited(COUNTING_SECONDS), emulating(f"sm_{target.arch}"):
            counters = launched(launch).counters
    except OutOfReach as error:
        return {"why": str(error)}
    except Exception as error:  # any error in the emulator is reported beside the other facts
        return {"why": f"{type(error).__name__}: {error}"}
    lines = [
        {"file": file, "line": line, **{name: getattr(counts, name) for name in COUNTS}}
        for (file, line), counts in counted_lines(counters)
    ]
    return {"programs": min(launch.programs, COUNTED_PROGRAMS), "lines": lines}
