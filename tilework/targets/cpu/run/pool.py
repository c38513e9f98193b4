"""Threads that run the programs of a grid, and the scratch memory of each.

    kernel = load(data, interface.name)
    run(kernel, interface, slots, (64, 1, 1))

`slots` are the arguments in the layout of `interface.py`. The call returns when every program is done.

The calling thread works too. All threads of a launch take chunks of program ids from one counter, so that slow programs
do not hold up the rest. Worker threads serve all launches of the process: a launch that finds them busy does its work
alone, and waits only for those that have begun. All of this is machine code (`pool_code.py`): once a worker has
started, Python and its lock take no part. The time that one program took last decides whether waking a worker pays.
Small grids that follow each other closely pay together: a worker that is awake polls for the next of them.

In a grid with fewer programs than threads the large nests of each program are shared as well (`fork.py`).
"""

import ctypes
import mmap
import platform
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tilework import knobs
from tilework.process.forks import in_child
from tilework.targets.cpu.run.interface import (
    CONTROL,
    EXPORTS,
    FAULT,
    FUEL,
    FULL,
    INTERRUPTED,
    LAUNCH,
    LAUNCH_OFFSETS,
    MOST_EXTRA,
    NO_MEMORY,
    POOL_FIELDS,
    PROGRAM,
    STARVED,
    WORKER,
    Interface,
    NativeKernel,
    watched_signals,
)
from tilework.targets.cpu.target import available_cores
from tilework.targets.llvm.object_loader import load_object

WAKE_NS = 50_000  # a grid that takes less is done before a sleeping worker could help
CROWDED_WAKE_NS = 200_000  # the same, if the worker must take its core from others
JOIN_NS = 5_000  # an awake worker helps a grid that takes longer, one worker for each multiple of this
START_NS = 100_000  # to start a worker
FORK_NS = 100_000  # nests of a program that takes less are not shared
CHUNKS = 64  # per thread, where there are enough programs: at the end a thread waits for at most so small a part
FEWEST_CHUNKS = 4  # per thread, where there are as many programs
# the least time of a chunk if there are more: threads that access the counter at the same time wait for each other
CHUNK_NS = 1_000
PAGE = mmap.PAGESIZE
FRESH = struct.pack(f"<{FUEL - FAULT}xi{CONTROL - FUEL - 4}x", FULL)  # a control block
BYTES_AT = bytes.__basicsize__ - 1  # where the content of a bytes object begins: the size includes one terminating byte

Grid = tuple[int, int, int]
# fields that a launch has set when it ends
ENDED = [list(LAUNCH_OFFSETS).index(name) for name in ("fault", "program", "count")]


def private_memory(size: int) -> mmap.mmap:
    """Private anonymous memory: Python's mmap would share it with forked children by default."""
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
        self.launch = ctypes.create_string_buffer(LAUNCH.size)
        self.grow(PAGE)

    def grow(self, size: int) -> None:
        """New memory of at least `size` bytes, aligned to a page."""
        size = -(-max(size, 2 * self.size, CONTROL) // PAGE) * PAGE
        self.memory = private_memory(size)
        self.size = size
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.control = memoryview(self.memory)[:CONTROL]
        self.program = ctypes.c_int64.from_address(self.address + PROGRAM)
        WORKER.pack_into(self.worker, 0, self.address, self.size, 0)

    def at_least(self, size: int) -> int:
        """The address of `size` bytes, undefined except for the control block, which is cleared."""
        if size > self.size:
            self.grow(size)
        self.control[:] = FRESH
        return self.address

    def __enter__(self) -> "Arena":
        return self

    def __exit__(self, *error: object) -> None:
        ARENAS.free.append(self)


class Arenas(threading.local):
    """The arenas of the current thread that no launch uses: mostly one, and none inside of a launch.

    A kernel prints through `sys.stdout`, and a user's replacement of it may launch kernels, which get their own arenas.
    """

    def __init__(self) -> None:
        self.free: list[Arena] = []
        self.last_run: tuple[int, int] | None = None  # start and duration of this thread's last launch, in ns

    def at_least(self, size: int) -> Arena:
        """An arena for one launch, to be entered; see `Arena.at_least`."""
        arena = self.free.pop() if self.free else Arena()
        arena.at_least(size)
        return arena


ARENAS = Arenas()


POOL_LEVEL = 1  # of LLVM's optimiser


def host_pool_text() -> str:
    """`pool_code.py` for this machine."""
    from tilework.targets.cpu.run.pool_code import pool_text  # lazily: a pool from the cache does not need it

    return pool_text(platform.machine())


def compile_pool() -> bytes:
    """The object file of the pool."""
    # lazily: loads LLVM, which a kernel from the cache does not need
    from tilework.targets.llvm.compile import to_object

    return to_object(host_pool_text(), POOL_LEVEL)


class Pool:
    """The workers of this process; started when they are first needed.

    `source` returns the object file: `runtime/devices/host/driver.py` replaces it by one with a cache.
    """

    def __init__(self) -> None:
        self.source: Callable[[], bytes] = compile_pool
        self.lock = threading.Lock()
        self.count = 0
        self.fields = (ctypes.c_int64 * len(POOL_FIELDS))()  # for machine code
        self.zero = ctypes.c_int64(0)
        self.fields[4] = self.fields[7] = ctypes.addressof(self.zero)
        self.library: Any = None
        self.launch: Callable[..., None] | None = None

    def forget(self) -> None:
        """A forked child has no workers, whatever its memory says; locks may have been held."""
        self.lock = threading.Lock()
        self.count = self.fields[1] = 0
        if self.launch is not None:
            self.reset()
            self.main(main_thread())

    def load(self) -> None:
        """Put the machine code into memory."""
        library = load_object(self.source(), EXPORTS)
        self.reset = ctypes.CFUNCTYPE(None)(library["pool_reset"])
        self.main = ctypes.CFUNCTYPE(None, ctypes.c_int64)(library["pool_main"])
        self.serve = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library["pool_serve"])
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self.reset()
        self.main(main_thread())
        self.library, self.launch = library, kind(library["pool_launch"])
        self.fields[4], self.fields[3], self.fields[2] = (library[name] for name in ("ready", "running", "pool_poll"))
        self.fields[7], self.fields[0] = library["crowded"], library["pool_launch"]
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(library["pool_watch"])(watched_signals())

    def start(self, workers: int) -> Callable[..., None] | None:
        """Start workers until there are `workers` of them, or as many as the system allows; return the launch function.

        A caller that arrives while workers are being started goes on with those that exist, or alone (None): it may be
        a signal handler in the thread that starts them, and would wait for itself.
        """
        if (self.fields[1] < workers or self.launch is None) and self.lock.acquire(blocking=False):
            try:
                if self.launch is None:
                    self.load()
                while self.count < workers and self.add_worker():
                    self.count += 1
                self.fields[1] = workers
            finally:
                self.lock.release()
        return self.launch

    def least_ns(self) -> int:
        """The least time of a grid that is shared: less if workers are awake, or should be since short grids follow
        each other.
        """
        ready, crowded = (ctypes.c_int64.from_address(self.fields[index]).value for index in (4, 7))
        if ready > 0:
            return JOIN_NS
        if crowded > time.perf_counter_ns():
            return CROWDED_WAKE_NS
        return JOIN_NS if self.fields[5] >= WAKE_NS else WAKE_NS

    def add_worker(self) -> bool:
        """Start a thread; false if that is not possible."""
        worker = ctypes.create_string_buffer(WORKER.size)
        name = f"tilework-{self.count + 1}"
        try:
            threading.Thread(target=self.serve, args=(worker,), name=name, daemon=True).start()
        except (RuntimeError, MemoryError):
            return False
        return True


def main_thread() -> int:
    """The thread that runs signal handlers; 0 in a subinterpreter, which does not."""
    get, get_id = ctypes.pythonapi.PyInterpreterState_Get, ctypes.pythonapi.PyInterpreterState_GetID
    get.restype, get_id.argtypes, get_id.restype = ctypes.c_void_p, [ctypes.c_void_p], ctypes.c_int64
    return (threading.main_thread().ident or 0) if get_id(get()) == 0 else 0


POOL = Pool()

in_child(POOL.forget)


class Programs:
    """The work of a launch: `total` programs of a kernel, each thread with so many bytes of scratch memory."""

    def __init__(self, kernel: NativeKernel, slots: bytes, grid: Grid, total: int, arena: int) -> None:
        self.kernel, self.slots, self.grid, self.total, self.arena = kernel, slots, grid, total, arena


Failure = tuple[int, int]  # fault code, linear program id


def is_short(kernel: NativeKernel, total: int) -> bool:
    """Return True if a grid is done before a worker would have started, by the time of one program last time."""
    cost = kernel.program_ns
    return cost is not None and cost * total < POOL.least_ns()


def run_inline(work: Programs) -> Failure | None:
    """Run every program in this thread; return the failure, if there is one."""
    if POOL.start(0) is not None:
        return run_launch(work, workers=0, chunk=work.total, sharers=1)
    with ARENAS.at_least(work.arena) as memory:
        code = work.kernel.range(work.slots, 0, work.total, *work.grid, memory.address)
        return (code, memory.program.value) if code else None


def is_worth_sharing(kernel: NativeKernel) -> bool:
    """Return True if the nests of a program are large, by the time it took last time without help."""
    return kernel.has_forks and kernel.program_ns is not None and kernel.program_ns >= FORK_NS


def chunk_of(kernel: NativeKernel, total: int, threads: int) -> int:
    """Return the number of programs that a thread takes at once."""
    long = int(CHUNK_NS / kernel.program_ns) if kernel.program_ns else 1
    return max(1, total // (threads * CHUNKS), min(long, total // (threads * FEWEST_CHUNKS)))


def run_shared(work: Programs, threads: int, waits: bool = False) -> Failure | None:
    """Run every program, with workers; return the failure, if there is one.

    With fewer programs than threads the nests of each are shared too. Programs that may wait for each other are not
    taken several at once, since those of one thread run one after the other.
    """
    kernel, total = work.kernel, work.total
    sharers = threads if total < threads and is_worth_sharing(kernel) else 1
    workers = min(threads, total) - 1
    if kernel.program_ns is not None and not waits:
        workers = min(workers, int(kernel.program_ns * total / JOIN_NS))
    chunk = 1 if waits else chunk_of(kernel, total, workers + 1)
    POOL.fields[5] = 0
    if POOL.start(max(workers, sharers - 1)) is None:
        return run_inline(work)
    return run_launch(work, workers, chunk, sharers)


def run_unknown(work: Programs, threads: int) -> Failure | None:
    """Run every program of a kernel for the first time, where workers would have to be started for it.

    Programs run in this thread, one, two, four and so on, until that has taken as long as starting a worker would; only
    then as many are started as the rest is worth.
    """
    if POOL.start(0) is None:
        return run_inline(work)
    kernel, total, failure = work.kernel, work.total, None
    start, done, some = time.perf_counter_ns(), 0, 1
    while done < total and time.perf_counter_ns() - start < START_NS:
        end = min(done + some, total)
        if (failure := run_launch(work, 0, some, 1, done, end)) is not None:
            return failure
        done, some = end, 2 * some
    if rest := total - done:
        workers = min(threads - 1, rest - 1, int((kernel.program_ns or 0) * rest // START_NS))
        POOL.start(workers)
        failure = run_launch(work, workers, chunk_of(kernel, rest, workers + 1), 1, done)
    ARENAS.last_run = start, time.perf_counter_ns() - start
    return failure


def run_launch(
    work: Programs, workers: int, chunk: int, sharers: int, first: int = 0, end: int | None = None
) -> Failure | None:
    """The same, in the pool's machine code, from the program `first` on.

    The known time of a program does not change if its nests were shared, so that the next launch decides the same.
    """
    kernel, slots, end = work.kernel, id(work.slots) + BYTES_AT, work.total if end is None else end
    assert POOL.launch is not None, "the pool has been started"
    with ARENAS.at_least(work.arena) as memory:
        launch = memory.launch
        sizes = *work.grid, 0, work.arena
        LAUNCH.pack_into(launch, 0, kernel.work_address, slots, first, end, chunk, *sizes, sharers, 0, 0)
        struct.pack_into("<Q", launch, LAUNCH_OFFSETS["name"], kernel.name_address)
        struct.pack_into("<q", launch, LAUNCH_OFFSETS["ticket"], first)
        start = time.perf_counter_ns()
        POOL.launch(launch, workers, memory.worker)
        took = time.perf_counter_ns() - start
        ARENAS.last_run = start, took
        fault, program, ran = (LAUNCH.unpack_from(launch)[index] for index in ENDED)
        if fault == INTERRUPTED:
            raise_kept(launch)
    if ran and sharers == 1:
        kernel.program_ns = took / ran
    if fault == NO_MEMORY:
        raise no_memory(work.arena)
    return (fault, program) if fault else None


def raise_kept(launch: Any) -> None:
    """Raise the exception of a signal handler that ran during a launch (`pool_code.py`)."""
    restore = ctypes.pythonapi.PyErr_Restore
    restore.argtypes, restore.restype = [ctypes.c_void_p] * 3, None
    restore(*(ctypes.c_void_p.from_buffer(launch, LAUNCH_OFFSETS["exception"] + 8 * index).value for index in range(3)))


MOST_PROGRAMS = 2**31
MOST_THREADS = 4096  # more would take what the process needs for itself

ErrorOf = Callable[[Interface, Grid, int, int], Exception]  # of a fault code and a linear program id


def run(kernel: NativeKernel, interface: Interface, slots: bytes, grid: Grid, error_of: ErrorOf | None = None) -> None:
    """Run all programs of `grid`; a failed assert raises a RuntimeError, or the exception that `error_of` returns."""
    total = grid[0] * grid[1] * grid[2]
    if total < 1:
        return
    work = Programs(kernel, slots, grid, total, interface.arena)
    if (is_short(kernel, total) and not interface.waits) or (total == 1 and not is_worth_sharing(kernel)):
        failure = run_inline(work)
    elif total > MOST_PROGRAMS:
        raise ValueError(
            f"a grid of {' x '.join(map(str, grid))} has {total} programs; at most {MOST_PROGRAMS} can be run"
        )
    elif (threads := thread_count()) == 1 and not interface.waits:
        failure = run_inline(work)
    elif kernel.program_ns is None and not interface.waits and POOL.fields[1] < min(threads, total) - 1:
        failure = run_unknown(work, threads)
    else:
        failure = run_shared(work, threads, interface.waits)
    if failure is not None:
        error = fault_error if failure[0] < 0 else error_of or fault_error
        raise error(interface, grid, *failure)


def starved_error(interface: Interface, total: int, begun: int) -> RuntimeError:
    """The error of programs that wait for others for which there is no thread."""
    return RuntimeError(
        f"kernel {interface.name}: {begun} of {total} programs have begun and wait, and no thread can be started for"
        f" another. Programs that wait for each other need a thread each: launch fewer of them at a time (at most"
        f" {MOST_EXTRA} are certain to run, if the system allows that many threads), or let each do more of the work"
    )


def thread_count() -> int:
    """TILEWORK_NUM_THREADS, or one per core."""
    wanted = knobs.runtime.num_threads
    if wanted is None:
        return available_cores()
    if not 1 <= wanted <= MOST_THREADS:
        raise ValueError(f"TILEWORK_NUM_THREADS must be at least 1 and at most {MOST_THREADS}, got {wanted}")
    return wanted


def fault_error(interface: Interface, grid: Grid, code: int, linear: int) -> RuntimeError:
    """The error of a failed assert."""
    if code == STARVED:
        return starved_error(interface, grid[0] * grid[1] * grid[2], linear)
    faults = interface.faults
    message, location = faults[code - 1] if 0 < code <= len(faults) else (f"fault {code}", "")
    program = (linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1]))
    where = f"{location}: " if location else ""
    return RuntimeError(f"{where}device-side assert triggered: {message} [kernel {interface.name}, program {program}]")
