"""System functions for the code of the pool: sleep, clocks, threads, by Linux futexes, POSIX or Windows SRW locks."""

from tilework.targets.cpu.run.machine_code import NULL, Code, code, int32, memory, num
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import Value

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
