"""Threads that run the programs of a grid, and the scratch memory of each.

    run_shared(kernel, slots, (64, 1, 1), 64, arena=4096, threads=4)

The calling thread works too. All threads of a launch take chunks of program ids from one counter, in machine code, so
that slow programs do not hold up the rest. Helpers wait in a queue shared by all launches: a launch that finds them busy
with another one does its work alone and waits only for helpers that have begun. What one program took last time decides
whether it is worth waking anybody.

A grid with fewer programs than threads is run by helpers alone, with the address of `share_nest` in their arenas: the
machine code calls it for a large nest (`fork.py`), and it lets further helpers join. The calling thread only waits, so
that Ctrl-C, which Python raises in the main thread, never ends such a call half way.
"""

import ctypes
import mmap
import os
import threading
import time
from queue import SimpleQueue

from tilework.backends.cpu.interface import CONTROL, COUNT, FAULT, FORK, PROGRAM
from tilework.backends.cpu.library import NativeKernel
from tilework.backends.cpu.target import HostTarget

WAKE_NS = 60_000  # a grid that takes less is done before a helper would have started
FORK_NS = 300_000  # nests of a program that takes less are not shared
PAUSE = 100  # launches without sharing, after one that it made no faster
BEGIN_S = 0.002  # how long a launch waits for a helper before it does its work alone
CHUNKS = 16  # per thread, where there are enough programs: how finely the work is divided
NEST_CHUNKS = 4  # per thread
PAGE = mmap.PAGESIZE

Grid = tuple[int, int, int]


class Arena:
    """Scratch memory of one thread, grown on demand; it starts with the control block."""

    def __init__(self) -> None:
        self.size = 0
        self.grow(PAGE)

    def grow(self, size: int) -> None:
        """New memory of at least `size` bytes, aligned to a page."""
        self.size = -(-max(size, 2 * self.size, CONTROL) // PAGE) * PAGE
        self.memory = mmap.mmap(-1, self.size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.fault = ctypes.c_int32.from_address(self.address + FAULT)
        self.program = ctypes.c_int64.from_address(self.address + PROGRAM)
        self.count = ctypes.c_int64.from_address(self.address + COUNT)
        self.fork = ctypes.c_void_p.from_address(self.address + FORK)

    def at_least(self, size: int) -> int:
        """The address of `size` bytes, whose content is undefined but for a cleared fault code and nobody to share nests."""
        if size > self.size:
            self.grow(size)
        self.fault.value = 0
        self.fork.value = None
        return self.address


class Arenas(threading.local):
    """The arena of the current thread, and how many threads may share a nest that it comes to."""

    def __init__(self) -> None:
        self.arena = Arena()
        self.threads = 1


ARENAS = Arenas()


class Shared:
    """Work that helpers may join until it is closed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.helpers = 0
        self.closed = False
        self.idle = threading.Lock()  # held while helpers are at work and the owner waits for them

    def assist(self) -> None:
        """What a helper does."""
        raise AssertionError("a kind of work says how to assist")

    def help(self) -> None:
        """The part of a helper: nothing, if the launch is over."""
        with self.lock:
            if self.closed:
                return
            self.helpers += 1
        try:
            self.assist()
        finally:
            with self.lock:
                self.helpers -= 1
                if self.closed and not self.helpers:
                    self.idle.release()

    def finish(self) -> None:
        """Wait for the helpers that have begun; those that come later find the launch closed."""
        with self.lock:
            self.closed = True
            waiting = self.helpers > 0
            if waiting:
                self.idle.acquire()
        interrupt: KeyboardInterrupt | None = None
        while waiting:
            try:
                waiting = not self.idle.acquire()  # released by the last helper
            except KeyboardInterrupt as pressed:  # helpers still use the arrays: they must not be freed yet
                interrupt = pressed
        if interrupt is not None:
            raise interrupt


class Job(Shared):
    """One launch that several threads work on; `nest_threads` of them share the large nests of each program."""

    def __init__(
        self, kernel: NativeKernel, slots: bytes, grid: Grid, total: int, arena: int, chunk: int, nest_threads: int = 1
    ) -> None:
        super().__init__()
        self.kernel, self.slots, self.grid, self.total = kernel, slots, grid, total
        self.arena, self.chunk, self.nest_threads = arena, chunk, nest_threads
        self.next = ctypes.c_int64(0)
        self.failure: tuple[int, int] | None = None
        self.begun = threading.Lock()  # released by the one helper of a launch that shares its nests
        self.begun.acquire()

    def work(self, nest_threads: int = 1) -> int:
        """Take chunks until there are none; the number of programs this thread ran."""
        arena = ARENAS.arena
        address = arena.at_least(self.arena)
        if nest_threads > 1:
            ARENAS.threads, arena.fork.value = nest_threads, SHARE_NEST
        code = self.kernel.work(
            self.slots, ctypes.addressof(self.next), self.total, self.chunk, *self.grid, address
        )
        if code:
            self.failure = (code, arena.program.value)
        return arena.count.value

    def assist(self) -> None:
        if self.nest_threads > 1:
            self.begun.release()
        self.work(self.nest_threads)


class NestJob(Shared):
    """A nest of a program that is running: `function` takes chunks of its outermost loop."""

    def __init__(self, function: int, slots: int, chunk: int) -> None:
        super().__init__()
        self.function, self.slots, self.chunk = NEST(function), slots, chunk

    def assist(self) -> None:
        self.function(self.slots, self.chunk)


NEST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
def share_nest(function: int, slots: int, size: int, step: int) -> None:
    """Called by the machine code of a helper: run `size` indices, in multiples of `step`, together with others."""
    threads = ARENAS.threads
    chunk = -(-size // (NEST_CHUNKS * threads * step)) * step
    job = NestJob(function, slots, chunk)
    POOL.ask(job, threads - 1)
    job.assist()
    job.finish()


SHARE_NEST = ctypes.cast(share_nest, ctypes.c_void_p).value


class Pool:
    """The helpers of this process; started when they are first needed."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[Shared] = SimpleQueue()
        self.count = 0
        self.lock = threading.Lock()

    def ask(self, job: Shared, helpers: int) -> None:
        """Let up to `helpers` helpers join a job."""
        self.start(helpers)
        for _ in range(helpers):
            self.queue.put(job)

    def start(self, helpers: int) -> None:
        """Have at least so many."""
        if self.count < helpers:
            with self.lock:
                while self.count < helpers:
                    self.count += 1
                    name = f"tilework-{self.count}"
                    threading.Thread(target=serve, args=(self.queue,), name=name, daemon=True).start()


def serve(queue: "SimpleQueue[Shared]") -> None:
    """The life of a helper."""
    while True:
        job = queue.get()
        job.help()
        del job  # or the arrays of the last launch would live until the next


POOL = Pool()


def forget_threads() -> None:
    """A forked child has no helpers, whatever its memory says."""
    global POOL
    POOL = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_threads)


def default_threads() -> int:
    """One per core that this process may use."""
    return HostTarget.detect().cores


def is_short(kernel: NativeKernel, total: int) -> bool:
    """Whether a grid is done before a helper would have started, going by what one program took last time."""
    cost = kernel.program_ns
    return cost is not None and cost * total < WAKE_NS


def run_inline(kernel: NativeKernel, slots: bytes, grid: Grid, total: int, arena: int) -> tuple[int, int] | None:
    """Run every program in this thread; (fault code, linear program id) if one failed."""
    memory = ARENAS.arena
    address = memory.at_least(arena)
    start = time.perf_counter_ns()
    code = kernel.range(slots, 0, total, *grid, address)
    kernel.program_ns = (time.perf_counter_ns() - start) / total
    return (code, memory.program.value) if code else None


def run_shared(
    kernel: NativeKernel, slots: bytes, grid: Grid, total: int, arena: int, threads: int
) -> tuple[int, int] | None:
    """Run every program, with helpers; (fault code, linear program id) if one failed."""
    threads = min(threads, total)
    job = Job(kernel, slots, grid, total, arena, max(1, total // (threads * CHUNKS)))
    POOL.ask(job, threads - 1)
    try:
        start = time.perf_counter_ns()
        ran = job.work()
        if ran:
            kernel.program_ns = (time.perf_counter_ns() - start) / ran
    finally:
        job.finish()
    return job.failure


def is_worth_sharing(kernel: NativeKernel) -> bool:
    """Whether the nests of a program are large, going by what it took last time, and help has not been in vain lately."""
    if not kernel.has_forks or kernel.program_ns is None or kernel.program_ns < FORK_NS:
        return False
    if kernel.pause:
        kernel.pause -= 1
        return False
    return True


def run_forked(
    kernel: NativeKernel, slots: bytes, grid: Grid, total: int, arena: int, threads: int
) -> tuple[int, int] | None:
    """Run fewer programs than there are threads; (fault code, linear program id) if one failed.

    What a program takes without help stays as it was known, so that the next launch decides the same. If it took no less
    with help, because the cores have other things to do, the next launches do without.
    """
    job = Job(kernel, slots, grid, total, arena, 1, threads)
    start = time.perf_counter_ns()
    POOL.start(threads)
    POOL.ask(job, 1)
    try:
        if not job.begun.acquire(timeout=BEGIN_S):
            job.work()
    finally:
        job.finish()
    alone = (kernel.program_ns or 0) * total
    if time.perf_counter_ns() - start >= alone:
        kernel.pause = PAUSE
    return job.failure
