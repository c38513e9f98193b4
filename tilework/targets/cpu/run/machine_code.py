"""Functions of the runtime in machine code, written with the builder of LLVM text.

    @code("ptr arena_of(ptr worker, i64 bytes)")
    def arena_of(b: Code, worker: Value, bytes: Value) -> None:
        held = b.record(worker, WORKER_FIELDS)
        with b.if_(b.icmp("uge", held.get("size"), bytes)):
            b.ret(held.get("arena"))
        ...

`b.run("arena_of", worker, bytes)` calls it, or a function of the system's (`RESULTS`), by its name.

The functions at the end are those of the system: sleep, clocks, threads, by Linux futexes, POSIX or Windows SRW locks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tilework.targets.cpu.run.interface import offsets_of
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Block, Function, Module
from tilework.targets.llvm.types import Type, i1, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

NULL = constant(ptr, 0)
TYPES: dict[str, Type] = {"ptr": ptr, "i64": i64, "i32": i32, "i1": i1, "void": void}
FIELD_TYPES: dict[str, Type] = {"Q": ptr, "q": i64, "i": i32}  # by the format characters of `struct`
# result types of functions of the system and of Python
RESULTS: dict[str, Type] = {
    **dict.fromkeys(("malloc", "signal", "CreateThread"), ptr),
    **dict.fromkeys(("write", "strlen", "pthread_self", "syscall"), i64),
    **dict.fromkeys(("free", "PyGILState_Release", "PyErr_Fetch", "Sleep"), void),
    **dict.fromkeys(("AcquireSRWLockExclusive", "ReleaseSRWLockExclusive"), void),
    **dict.fromkeys(("WakeConditionVariable", "WakeAllConditionVariable"), void),
}  # all others an i32
Body = Callable[..., None]  # of a builder and the parameters


def num(value: int) -> Value:
    return constant(i64, value)


def int32(value: int) -> Value:
    return constant(i32, value)


def memory(name: str) -> Value:
    """A global variable."""
    return Value(ptr, f"@{name}")


class Platform(NamedTuple):
    """The platform that code is written for: `sys.platform`, and the name of the processor."""

    system: str
    processor: str

    @property
    def is_windows(self) -> bool:
        return self.system == "win32"

    @property
    def is_linux(self) -> bool:
        return self.system.startswith("linux")


class NativeBuilder(Builder):
    """A builder that knows the result types of the functions that it calls by name."""

    def run(self, name: str, *args: Value) -> Value:
        return self.call(name, RESULTS.get(name, i32), args)

    def is_null(self, address: Value) -> Value:
        return self.icmp("eq", address, NULL)

    def look(self, address: Value, ordering: str) -> Value:
        """Load an i64 that other threads change."""
        return self.load(i64, address, ordering=ordering, align=8)

    def record(self, base: Value, fields: Mapping[str, str]) -> "Record":
        return Record(self, base, fields)


class Code(NativeBuilder):
    """The builder of the pool's functions."""

    def __init__(self, function: Function, platform: Platform) -> None:
        super().__init__(function)
        self.platform = platform

    @contextmanager
    def unless(self, condition: Value) -> Iterator[None]:
        with self.if_(self.not_(condition)):
            yield

    @contextmanager
    def forever(self) -> Iterator[Block]:
        """An endless loop, which the body leaves by a return or a branch; yields its first block."""
        start = self.function.block("forever")
        self.br(start)
        with self.scope():
            self.resume(start)
            yield start
            if not self.block.terminated:
                self.br(start)

    def add_to(self, address: Value, amount: int, ordering: str = "acq_rel") -> Value:
        """Add to an i64 atomically; return the old value."""
        return self.atomic_rmw("add", address, num(amount), ordering=ordering, align=8)


class Record:
    """Fields in memory, by their names (`interface.py`)."""

    def __init__(self, b: NativeBuilder, base: Value, fields: Mapping[str, str]) -> None:
        self.b, self.base = b, base
        self.fields, self.offsets = fields, offsets_of(fields)

    def at(self, name: str) -> Value:
        return self.b.gep(self.base, self.offsets[name])

    def get(self, name: str, ordering: str = "") -> Value:
        type = FIELD_TYPES[self.fields[name]]
        return self.b.load(type, self.at(name), ordering=ordering, align=type.bits // 8)

    def set(self, ordering: str = "", **values: Value) -> None:
        for name, value in values.items():
            self.b.store(value, self.at(name), ordering=ordering, align=value.type.bits // 8)

    def change(self, name: str, old: int, new: Value, ordering: str = "monotonic") -> Value:
        """Compare and swap: store `new` if the field is `old`; return whether it was."""
        expected, align = constant(new.type, old), new.type.bits // 8
        return self.b.compare_exchange(self.at(name), expected, new, ordering=ordering, align=align)[1]


class Functions:
    """The functions of a module, each with the Python function that writes its body.

    A head is written as in C: ``ptr arena_of(ptr worker, i64 bytes)``.
    """

    def __init__(self, *attributes: str) -> None:
        self.attributes = attributes
        self.bodies: dict[str, Body] = {}

    def __call__(self, head: str) -> Callable[[Body], Body]:
        """Register a function."""
        result, name = head.partition("(")[0].split()
        known = RESULTS.setdefault(name, TYPES[result])
        assert known is TYPES[result], f"two functions called {name}"

        def register(body: Body) -> Body:
            self.bodies[head] = body
            return body

        return register

    def write(self, module: Module, make: Callable[[Function], NativeBuilder], exports: Sequence[str]) -> None:
        """Write all registered functions, each with a builder of its own; those that are not exported are internal."""
        for head, body in self.bodies.items():
            start, _, listed = head.removesuffix(")").partition("(")
            name = start.split()[1]
            params = [(TYPES[part.split()[0]], part.split()[1]) for part in listed.split(", ") if part]
            linkage = "" if name in exports else "internal"
            function = module.function(name, RESULTS[name], params, linkage=linkage, attributes=self.attributes)
            body(make(function), *function.args)


code = Functions()  # of the pool


LOCK, WORK, DONE, EPOCH = (memory(name) for name in ("lock", "work", "done", "epoch"))
FUTEX = {"aarch64": 98, "x86_64": 202}  # the id of the system call
FUTEX_WAIT, FUTEX_WAKE = 128, 129  # of this process only
MONOTONIC, REALTIME, PROCESS_TIME = {"darwin": 6}, 0, 2  # clocks; on Linux the first is 1
SECOND, NAP = 1_000_000_000, 50_000_000  # ns
# the function of each request on POSIX systems and on Windows
REQUESTS: dict[str, tuple[tuple[str, tuple[Value, ...]], tuple[str, tuple[Value, ...]]]] = {
    "take_lock": (("pthread_mutex_lock", (LOCK,)), ("AcquireSRWLockExclusive", (LOCK,))),
    "give_lock": (("pthread_mutex_unlock", (LOCK,)), ("ReleaseSRWLockExclusive", (LOCK,))),
    "sleep": (("pthread_cond_wait", (WORK, LOCK)), ("SleepConditionVariableSRW", (WORK, LOCK, int32(-1), int32(0)))),
    "wake_one": (("pthread_cond_signal", (WORK,)), ("WakeConditionVariable", (WORK,))),
    "wake_owners": (("pthread_cond_broadcast", (DONE,)), ("WakeAllConditionVariable", (DONE,))),
}


def system(b: Code, *requests: str) -> None:
    for request in requests:
        name, args = REQUESTS[request][b.platform.is_windows]
        b.run(name, *args)


@code("void prepare()")
def prepare(b: Code) -> None:
    if b.platform.is_windows:
        for lock in (LOCK, WORK, DONE):
            b.store(num(0), lock)
    else:
        b.run("pthread_mutex_init", LOCK, NULL)
        b.run("pthread_cond_init", WORK, NULL)
        b.run("pthread_cond_init", DONE, NULL)
    b.ret()


def futex(b: Code, what: int, value: Value) -> None:
    """Wait for, or wake, the low half of the epoch. A waking thread takes no lock: many would wait for each other."""
    b.run("syscall", num(FUTEX[b.platform.processor]), EPOCH, num(what), b.trunc(value, i32), NULL)


@code("void sleep_through(i64 epoch)")
def sleep_through(b: Code, epoch: Value) -> None:
    """Sleep until the epoch changes."""
    if not (has_futex := b.platform.is_linux and b.platform.processor in FUTEX):
        system(b, "take_lock")
    with b.forever():
        with b.if_(b.icmp("ne", b.look(EPOCH, "seq_cst"), epoch)):
            if not has_futex:
                system(b, "give_lock")
            b.ret()
        if has_futex:
            futex(b, FUTEX_WAIT, epoch)
        else:
            system(b, "sleep")


@code("void wake_sleepers(i64 count)")
def wake_sleepers(b: Code, count: Value) -> None:
    if b.platform.is_linux and b.platform.processor in FUTEX:
        futex(b, FUTEX_WAKE, count)
    else:
        system(b, "take_lock")
        with b.loop(0, count):
            system(b, "wake_one")
        system(b, "give_lock")
    b.ret()


def clock(b: Code, which: int) -> tuple[Value, Value, Value]:
    """The address of a time, its seconds and its nanoseconds."""
    time = b.alloca(i64, 2, align=8)
    b.run("clock_gettime", int32(which), time)
    return time, b.load(i64, time), b.load(i64, b.gep(time, 8))


@code("i64 now()")
def now(b: Code) -> None:
    """Nanoseconds of a monotonic clock."""
    if b.platform.is_windows:  # ticks, and ticks per second
        slots = [b.alloca(i64, align=8) for _ in range(2)]
        for name, slot in zip(("Counter", "Frequency"), slots, strict=True):
            b.run(f"QueryPerformance{name}", slot)
        ticks, rate = (b.load(i64, slot) for slot in slots)
        rest = b.udiv(b.mul(b.urem(ticks, rate), SECOND), rate)
        b.ret(b.add(b.mul(b.udiv(ticks, rate), SECOND), rest))
        return
    _, seconds, rest = clock(b, MONOTONIC.get(b.platform.system, 1))
    b.ret(b.add(b.mul(seconds, SECOND), rest))


@code("i64 used()")
def used(b: Code) -> None:
    """Processor time of all threads of this process in nanoseconds; 0 on systems other than Linux."""
    if not b.platform.is_linux:
        b.ret(num(0))
        return
    _, seconds, rest = clock(b, PROCESS_TIME)
    b.ret(b.add(b.mul(seconds, SECOND), rest))


@code("i64 this_thread()")
def this_thread(b: Code) -> None:
    b.ret(b.zext(b.run("GetCurrentThreadId"), i64) if b.platform.is_windows else b.run("pthread_self"))


@code("void pause_some(i32 microseconds)")
def pause_some(b: Code, microseconds: Value) -> None:
    if b.platform.is_windows:
        b.run("Sleep", b.udiv(microseconds, 1000))
    else:
        b.run("usleep", microseconds)
    b.ret()


@code("void sleep_some()")
def sleep_some(b: Code) -> None:
    """Sleep until a worker is done, or for a twentieth of a second."""
    if b.platform.is_windows:
        b.run("SleepConditionVariableSRW", DONE, LOCK, int32(NAP // 1_000_000), int32(0))
    else:
        time, seconds, rest = clock(b, REALTIME)
        later = b.add(rest, NAP)
        carry = b.icmp("sge", later, SECOND)
        b.store(b.select(carry, b.sub(later, SECOND), later), b.gep(time, 8))
        b.store(b.add(seconds, b.zext(carry, i64)), time)
        b.run("pthread_cond_timedwait", DONE, LOCK, time)
    b.ret()


@code("i1 start_thread(ptr launch)")
def start_thread(b: Code, launch: Value) -> None:
    """Start a thread that runs `extra_thread(launch)`; return False if the system refuses."""
    begin = memory("extra_thread")
    if b.platform.is_windows:
        thread = b.run("CreateThread", NULL, num(0), begin, launch, int32(0), NULL)
        good = b.not_(b.is_null(thread))
        with b.if_(good):
            b.run("CloseHandle", thread)
    else:
        thread = b.alloca(i64, align=8)
        good = b.icmp("eq", b.run("pthread_create", thread, NULL, begin, launch), 0)
        with b.if_(good):
            b.run("pthread_detach", b.load(i64, thread))
    b.ret(good)
