"""Threads that run the programs of a grid, and the scratch memory of each.

    run_shared(kernel, slots, (64, 1, 1), 64, arena=4096, threads=4)

The calling thread works too. All threads of a launch take chunks of program ids from one counter, so that slow programs do
not hold up the rest. Helpers serve all launches of the process: a launch that finds them busy does its work alone, and
waits only for those that have begun. All of this is machine code (`pool_code.py`): once a helper has started, Python and
its lock take no part. What one program took last time decides whether it is worth waking anybody.

In a grid with fewer programs than threads the large nests of each program are shared as well (`fork.py`).
"""

import ctypes
import mmap
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tilework.backends.cpu.interface import CONTROL, COUNT, FAULT, FORK, PROGRAM
from tilework.backends.cpu.library import NativeKernel
from tilework.backends.cpu.pool_code import EXPORTS, LAUNCH, LAUNCH_PLACES, NO_MEMORY, WORKER, pool_text
from tilework.backends.cpu.target import HostTarget

WAKE_NS = 30_000  # a grid that takes less is done before a helper would have started
FORK_NS = 100_000  # nests of a program that takes less are not shared
CHUNKS = 16  # per thread, where there are enough programs: how finely the work is divided
PAGE = mmap.PAGESIZE

Grid = tuple[int, int, int]


def private_memory(size: int) -> mmap.mmap:
    """Memory of this process alone: what mmap gives by itself would be shared with forked children."""
    private = () if sys.platform == "win32" else (mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,)
    try:
        return mmap.mmap(-1, size, *private)
    except (OSError, OverflowError):
        raise no_memory(size) from None


def no_memory(size: int) -> MemoryError:
    return MemoryError(f"a thread needs {size} bytes of scratch memory for this kernel")


class Arena:
    """Scratch memory of one launch, grown on demand; it starts with the control block."""

    def __init__(self) -> None:
        self.size = 0
        self.worker = ctypes.create_string_buffer(WORKER.size)  # the same, as machine code sees it
        self.grow(PAGE)

    def grow(self, size: int) -> None:
        """New memory of at least `size` bytes, aligned to a page."""
        size = -(-max(size, 2 * self.size, CONTROL) // PAGE) * PAGE
        self.memory = private_memory(size)
        self.size = size
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.fault = ctypes.c_int32.from_address(self.address + FAULT)
        self.program = ctypes.c_int64.from_address(self.address + PROGRAM)
        self.count = ctypes.c_int64.from_address(self.address + COUNT)
        self.fork = ctypes.c_void_p.from_address(self.address + FORK)
        WORKER.pack_into(self.worker, 0, self.address, self.size, 0)

    def at_least(self, size: int) -> int:
        """The address of `size` bytes, whose content is undefined but for a cleared fault code and nobody to share nests."""
        if size > self.size:
            self.grow(size)
        self.fault.value = 0
        self.fork.value = None
        return self.address


class Arenas(threading.local):
    """The arenas of the current thread that no launch uses: mostly one, and none inside of a launch.

    What a kernel prints goes through `sys.stdout`, whose owner may launch kernels in turn; these get arenas of their own.
    """

    def __init__(self) -> None:
        self.free: list[Arena] = []

    @contextmanager
    def at_least(self, size: int) -> Iterator[Arena]:
        """An arena for one launch; see `Arena.at_least`."""
        arena = self.free.pop() if self.free else Arena()
        arena.at_least(size)
        try:
            yield arena
        finally:
            self.free.append(arena)


ARENAS = Arenas()


def compile_pool() -> bytes:
    """The object file of `pool_code.py` for this machine."""
    from tilework.backends.llvm.compile import to_object

    return to_object(pool_text(platform.machine()), 1)


class Pool:
    """The helpers of this process; started when they are first needed.

    `source` makes the object file: `runtime/host.py` puts a cache in its place.
    """

    def __init__(self) -> None:
        self.source: Callable[[], bytes] = compile_pool
        self.lock = threading.Lock()
        self.count = 0
        self.words = (ctypes.c_int64 * 2)()  # for machine code: the address of `pool_launch`, and the helpers asked for
        self.library: Any = None
        self.launch: Callable[..., None] | None = None

    def forget(self) -> None:
        """A forked child has no helpers, whatever its memory says; locks may have been held."""
        self.lock = threading.Lock()
        self.count = self.words[1] = 0
        if self.launch is not None:
            self.reset()

    def load(self) -> None:
        """Put the machine code into memory."""
        from tilework.backends.llvm.compile import jit_load

        library = jit_load(self.source(), EXPORTS)
        self.reset = ctypes.CFUNCTYPE(None)(library["pool_reset"])
        self.serve = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library["pool_serve"])
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self.reset()
        self.library, self.launch = library, kind(library["pool_launch"])
        self.words[0] = library["pool_launch"]

    def start(self, helpers: int) -> Callable[..., None] | None:
        """Have at least so many helpers; the function that launches.

        Fewer, if the system allows no more threads. Who comes while helpers are being started goes on with those that are
        there, or alone (None): it may be the same thread, in a signal handler, and would wait for itself.
        """
        if (self.words[1] < helpers or self.launch is None) and self.lock.acquire(blocking=False):
            try:
                if self.launch is None:
                    self.load()
                while self.count < helpers and self.add_helper():
                    self.count += 1
                self.words[1] = helpers
            finally:
                self.lock.release()
        return self.launch

    def add_helper(self) -> bool:
        """Start a thread; false if that is not possible."""
        worker = ctypes.create_string_buffer(WORKER.size)
        name = f"tilework-{self.count + 1}"
        try:
            threading.Thread(target=self.serve, args=(worker,), name=name, daemon=True).start()
        except (RuntimeError, MemoryError):
            return False
        return True


POOL = Pool()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.forget)


def default_threads() -> int:
    """One per core that this process may use."""
    return HostTarget.detect().cores


def is_short(kernel: NativeKernel, total: int) -> bool:
    """Whether a grid is done before a helper would have started, going by what one program took last time."""
    cost = kernel.program_ns
    return cost is not None and cost * total < WAKE_NS


def run_inline(kernel: NativeKernel, slots: bytes, grid: Grid, total: int, arena: int) -> tuple[int, int] | None:
    """Run every program in this thread; (fault code, linear program id) if one failed."""
    with ARENAS.at_least(arena) as memory:
        start = time.perf_counter_ns()
        code = kernel.range(slots, 0, total, *grid, memory.address)
        kernel.program_ns = (time.perf_counter_ns() - start) / total
        return (code, memory.program.value) if code else None


def is_worth_sharing(kernel: NativeKernel) -> bool:
    """Whether the nests of a program are large, going by what it took last time without help."""
    return kernel.has_forks and kernel.program_ns is not None and kernel.program_ns >= FORK_NS


def run_shared(
    kernel: NativeKernel, slots: bytes, grid: Grid, total: int, arena: int, threads: int
) -> tuple[int, int] | None:
    """Run every program, with helpers; (fault code, linear program id) if one failed.

    With fewer programs than threads the nests of each are shared too; what a program takes without help then stays as it
    was known, so that the next launch decides the same.
    """
    sharers = threads if total < threads and is_worth_sharing(kernel) else 1
    helpers = min(threads, total) - 1
    chunk = max(1, total // ((helpers + 1) * CHUNKS))
    code = ctypes.cast(kernel.work, ctypes.c_void_p).value  # pyright: ignore[reportArgumentType]
    place = ctypes.cast(ctypes.c_char_p(slots), ctypes.c_void_p).value
    launch = ctypes.create_string_buffer(LAUNCH.pack(code, place, 0, total, chunk, *grid, 0, arena, sharers, 0, 0))
    start_launch = POOL.start(threads - 1)
    if start_launch is None:
        return run_inline(kernel, slots, grid, total, arena)
    with ARENAS.at_least(arena) as memory:
        start = time.perf_counter_ns()
        start_launch(launch, helpers, memory.worker)
        took = time.perf_counter_ns() - start
    fault, program, ran = (kind.from_buffer(launch, LAUNCH_PLACES[name]).value for name, kind in RESULTS)
    if ran and sharers == 1:
        kernel.program_ns = took / ran
    if fault == NO_MEMORY:
        raise no_memory(arena)
    return (fault, program) if fault else None


RESULTS = (("fault", ctypes.c_int32), ("program", ctypes.c_int64), ("count", ctypes.c_int64))
