"""The machine code of the thread pool. It offers, joins, finishes and awaits work without Python and its lock.

    pool_launch(launch, workers, worker)           run a grid, together with up to `workers` others
    pool_share(nest, slots, size, step, arena)     the same for a nest of a running program; called by kernels (fork.py)
    pool_serve(worker)                             the main loop of a worker; never returns
    pool_reset()                                   forget all workers and jobs, at the start and in a forked child
    pool_watch(signals)                            print one line on a fatal signal, if kernels have run; bit n of
                                                   `signals` is signal n
    pool_poll(arena, waits)                        called by a running program now and then: 0, or the fault
                                                   code with which the program is to end
    pool_main(thread)                              set the system's id of the thread that runs Python's
                                                   signal handlers, 0 for none

**Jobs.** Work on offer is stored in one of JOBS slots: a function, its two arguments, and a state with the tickets that
are left (high half) and the workers that run (low half). A worker takes a ticket with one compare-and-swap. The owner
withdraws the remaining tickets when its own part is done, and waits until no worker runs. A thread that joins while
tickets are left wakes FAN_OUT more, so that many threads start in few steps. The system is called only to sleep
(`machine_code.py`).

**Idle workers.** A sleeping worker takes some thirty microseconds to start, a polling one less than one. A worker polls
for as long as work took to arrive of late: where launches follow each other in 60 us, for 120 us; where a millisecond
is between them, for LEAST_NS only, because nearly all of the time would be wasted. Then it sleeps. While it polls it
yields to other threads every microsecond or so. If a yield takes long, the core is shared, and the worker does not poll
for some time; for longer, each time that this happens again. If this process used the core at the same time, as much as
two threads can, the other thread belongs to another pool (OpenMP's, in torch) that polls without yielding: a sleeping
worker takes the core from it as soon as it is woken, and leaves it as soon as it has worked. Otherwise it is another
program. A descheduled worker then gets its core back late and its owner waits for it, so only long launches wake a
worker (`Pool.least_ns`).

**Cores.** Linux often wakes a worker on the core of the thread that woke it, and lets the two share it for milliseconds
while another core is idle. So running threads mark their cores, a worker that finds itself on a marked core moves to an
unmarked one, and a thread that has woken others yields once, so that they can run and see where they are. The new core
may be busy with another program, so the worker moves before it takes a ticket, when no owner waits for it yet. An
affinity that the user sets is kept. Other systems are left alone.

**Crashes.** @running holds pointers to the names of the kernel that runs, or NULL, and of the last one that was
started: hints, since launches of several threads share them. A store outside of an array often kills the process later,
when the allocator finds its lists corrupted and aborts. After the line is printed the signal is raised again for the
previous handler (Python's faulthandler, or the system's), so that the process ends as it would have.

**Polls.** A launch with a fault code ends: every program that polls it leaves. The owner of a launch, if it is Python's
main thread, runs the handlers of pending signals, five times a second at most, since it takes Python's lock for it. An
exception that they raise (KeyboardInterrupt, or that of a test runner's alarm) is kept in the launch, and set again
when all programs have left.

A program that waits for another one (`waits` is WAITS) must not keep it from starting; one that waits for its ticket at
an ordered atomic (RESTS) knows that its predecessor runs. If no program has begun for some time and others are left,
threads are started for them, twice as many each time. If that is not possible and nothing happens for ten seconds, the
launch fails with the code STARVED instead of waiting for ever.
"""

import signal
import sys

from tilework.targets.cpu.run.interface import (
    CONTROL_FIELDS,
    EXPORTS,
    FULL,
    INTERRUPTED,
    LAUNCH_FIELDS,
    MOST_EXTRA,
    NO_MEMORY,
    STARVED,
    WORKER,
    WORKER_FIELDS,
    fatal_signals,
)
from tilework.targets.cpu.run.machine_code import EPOCH, NULL, Code, Platform, Record, code, int32, memory, num, system
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import array, i1, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

PATIENCE_US = 200_000  # that a crashing thread waits while another one prints the line
SAVED = 256  # bytes of a struct sigaction, or more
STDERR = int32(2)
LAST = 8  # bytes behind @running
FIND = "TRITON_SANITIZE=1: an error will name the line and the program\n"
TEXTS = {  # before and after the name of the kernel
    "outside": (
        "tilework: the kernel ",
        f" reads or writes memory outside of its arrays, and the process dies of it. Run it again with {FIND}",
    ),
    "during": (
        "tilework: the process dies of a signal while the kernel ",
        f" runs. If memory outside of its arrays is the cause, run it again with {FIND}",
    ),
    "after": (
        "tilework: the process dies of a signal; the kernel ",
        " has run before. A kernel that writes outside of its arrays (is a mask missing?) corrupts memory of others."
        f" To look for it run again with {FIND}",
    ),
}
FAULTS = [int(getattr(signal, name)) for name in ("SIGSEGV", "SIGBUS") if hasattr(signal, name)]
RUNNING, REPORTING = memory("running"), memory("reporting")


def handler_of(b: Code, which: Value) -> Value:
    """The address of the handler that a signal had before."""
    return b.gep(memory("saved"), b.mul(b.zext(which, i64), SAVED))


@code("void say(ptr name, ptr before, ptr behind)")
def say(b: Code, name: Value, before: Value, behind: Value) -> None:
    for text in (before, name, behind):
        b.run("write", STDERR, text, b.run("strlen", text))
    b.ret()


@code("void crashed(i32 signal)")
def crashed(b: Code, which: Value) -> None:
    if b.platform.is_windows:
        b.ret()
        return
    name, last = (b.load(ptr, b.gep(RUNNING, at), ordering="monotonic", align=8) for at in (0, LAST))

    def report() -> list[Value]:
        is_fault = constant(i32, 0)
        for fault in FAULTS:
            is_fault = b.or_(is_fault, b.zext(b.icmp("eq", which, fault), i32))
        is_idle = b.is_null(name)
        kind = {key: [b.module.string(text) for text in pair] for key, pair in TEXTS.items()}
        texts = [
            b.select(is_idle, after, b.select(b.icmp("ne", is_fault, 0), outside, during))
            for outside, during, after in zip(kind["outside"], kind["during"], kind["after"], strict=True)
        ]
        b.run("say", b.select(is_idle, last, name), *texts)
        b.store(int32(0), REPORTING, ordering="release", align=4)
        return []

    def wait() -> list[Value]:
        b.run("usleep", int32(PATIENCE_US))
        return []

    with b.unless(b.is_null(last)):
        alone = b.icmp("eq", b.atomic_rmw("xchg", REPORTING, constant(i32, 1), ordering="acq_rel"), 0)
        b.if_else(alone, report, wait)
    b.run("sigaction", which, handler_of(b, which), NULL)
    b.run("raise", which)  # it arrives when this returns
    b.ret()


@code("void pool_watch(i64 signals)")
def pool_watch(b: Code, signals: Value) -> None:
    for which in () if b.platform.is_windows else fatal_signals():
        with b.if_(b.icmp("ne", b.and_(signals, 1 << which), 0)):
            b.run("sigaction", int32(which), NULL, handler_of(b, int32(which)))
            b.run("signal", int32(which), memory("crashed"))
    b.ret()


SLEEPERS, READY = memory("sleepers"), memory("ready")  # workers that sleep, and those that are awake without work
LEAST_NS, MOST_NS = 10_000, 200_000  # to poll for work
FAR_NS = 2 * MOST_NS  # longer rests count as this long: one among many short ones changes little
FIRST_NS = 50_000  # the usual rest, at the start
LOOKS = 512  # polls of the epoch between two readings of the clock
CROWDED_NS = 20_000  # a yield takes a quarter of one microsecond, unless others use the core
CROWDED = memory("crowded")  # until when other programs are assumed to use the core of some worker
SHORT_NS, LONG_NS = 2_000_000, 128_000_000  # how long that is assumed, the first time and at most
# when the rest began, the usual length of rests, until when the core is shared, and for how long the next time
REST_FIELDS = {"since": "q", "usual": "q", "crowded": "q", "next": "q"}
PAUSES: dict[str, tuple[str, tuple[Value, ...]]] = {  # a short wait of the processor
    **dict.fromkeys(("aarch64", "arm64"), ("llvm.aarch64.isb", (constant(i32, 15),))),
    **dict.fromkeys(("x86_64", "amd64"), ("llvm.x86.sse2.pause", ())),
}


def pause(b: Code) -> None:
    if (found := PAUSES.get(b.platform.processor)) is not None:
        b.call(found[0], void, found[1])


@code("void new_rest(ptr rest)")
def new_rest(b: Code, address: Value) -> None:
    """Initialize the record of a new worker."""
    b.record(address, REST_FIELDS).set(usual=num(FIRST_NS), crowded=num(0), next=num(SHORT_NS))
    b.run("begin_rest", address)
    b.ret()


@code("void begin_rest(ptr rest)")
def begin_rest(b: Code, address: Value) -> None:
    b.record(address, REST_FIELDS).set(since=b.run("now"))
    b.ret()


@code("void end_rest(ptr rest)")
def end_rest(b: Code, address: Value) -> None:
    rest = b.record(address, REST_FIELDS)
    took = b.smin(b.sub(b.run("now"), rest.get("since")), num(FAR_NS))
    rest.set(usual=b.lshr(b.add(b.mul(rest.get("usual"), 3), took), 2))
    b.ret()


@code("i1 look_out(ptr rest, i64 epoch)")
def look_out(b: Code, address: Value, epoch: Value) -> None:
    """Poll until the epoch changes; false if the worker should sleep first."""
    rest = b.record(address, REST_FIELDS)
    with b.if_(b.icmp("slt", rest.get("since"), rest.get("crowded"))):
        b.ret(constant(i1, 0))
    usual, again = rest.get("usual"), rest.get("next")
    long = b.smax(b.smin(b.mul(usual, 2), num(MOST_NS)), num(LEAST_NS))
    end = b.add(rest.get("since"), b.select(b.icmp("slt", usual, MOST_NS), long, num(LEAST_NS)))
    with b.forever():
        with b.loop(0, LOOKS):
            with b.if_(b.icmp("ne", b.look(EPOCH, "monotonic"), epoch)):
                rest.set(next=b.smax(b.lshr(again, 1), num(SHORT_NS)))
                b.ret(constant(i1, 1))
            pause(b)
        time = b.run("now")
        with b.if_(b.icmp("sge", time, end)):
            b.ret(constant(i1, 0))
        if b.platform.is_linux:
            used = b.run("used")
            b.run("make_way")
            took = b.sub(b.run("now"), time)
            with b.if_(b.icmp("sgt", took, CROWDED_NS)):
                until = b.add(b.add(time, took), again)
                rest.set(crowded=until, next=b.smin(b.mul(again, 2), num(LONG_NS)))
                of_two = b.mul(b.sub(b.run("used"), used), 2)
                with b.if_(b.icmp("slt", of_two, b.mul(took, 3))):
                    b.store(until, CROWDED, ordering="monotonic", align=8)
                b.ret(constant(i1, 0))


CORES = 1024  # the most that can be marked
MARKS = memory("cores")
NOWHERE = num(-1)


def mark_of(b: Code, core: Value) -> tuple[Value, Value]:
    """The address of the 64 marks that include a core's, and its bit."""
    return b.gep(MARKS, b.lshr(core, 6), i64), b.shl(num(1), b.and_(core, 63))


@code("void make_way()")
def make_way(b: Code) -> None:
    """Let another thread that waits for this core run."""
    if b.platform.is_linux:
        b.run("sched_yield")
    b.ret()


@code("i64 mark_core()")
def mark_core(b: Code) -> None:
    """Mark the core of this thread; return the core, or -1 if it is marked already or not known."""
    if b.platform.is_linux:
        narrow = b.run("sched_getcpu")
        with b.if_(b.icmp("ult", narrow, CORES)):
            core = b.zext(narrow, i64)
            marks, bit = mark_of(b, core)
            before = b.atomic_rmw("or", marks, bit, align=8)
            b.ret(b.select(b.icmp("eq", b.and_(before, bit), 0), core, NOWHERE))
    b.ret(NOWHERE)


@code("void leave_core(i64 core)")
def leave_core(b: Code, core: Value) -> None:
    """Take the mark away."""
    if b.platform.is_linux:
        with b.if_(b.icmp("sge", core, 0)):
            marks, bit = mark_of(b, core)
            b.atomic_rmw("and", marks, b.not_(bit), align=8)
    b.ret()


@code("i64 find_core()")
def find_core(b: Code) -> None:
    """`mark_core`, after a move to a free core if need be; the affinity is restored afterwards."""
    here = b.run("mark_core")
    if b.platform.is_linux:
        allowed, free, found = (b.alloca(array(i8, CORES // 8), align=8) for _ in range(3))

        def choose(name: str, cores: Value) -> Value:
            return b.run(f"sched_{name}affinity", int32(0), num(CORES // 8), cores)

        with b.if_(b.icmp("sge", here, 0)):
            b.ret(here)
        with b.if_(b.icmp("slt", choose("get", allowed), 0)):
            b.ret(here)
        with b.loop_carrying(0, CORES // 64, 1, [num(0)]) as loop:
            idle = b.not_(b.look(b.gep(MARKS, loop.index, i64), "monotonic"))
            both = b.and_(b.load(i64, b.gep(allowed, loop.index, i64)), idle)
            b.store(both, b.gep(free, loop.index, i64))
            loop.next([b.or_(loop.carried[0], both)])
        with b.if_(b.icmp("ne", loop.results[0], 0)):
            choose("set", free)
            there = b.run("mark_core")
            choose("get", found)
            with b.loop_carrying(0, CORES // 64, 1, [num(0)]) as loop:
                wanted, other = (b.load(i64, b.gep(cores, loop.index, i64)) for cores in (free, found))
                loop.next([b.or_(loop.carried[0], b.xor(wanted, other))])
            with b.if_(b.icmp("eq", loop.results[0], 0)):
                choose("set", allowed)
            b.ret(there)
    b.ret(here)


@code("void forget_cores()")
def forget_cores(b: Code) -> None:
    b.fill(MARKS, 0, CORES // 8)
    b.ret()


JOBS = 32  # launches and nests that can be on offer at the same time
# polls of a job by its owner, which yields after OWNER_SPINS of them, and sleeps after OWNER_ROUNDS yields
OWNER_SPINS, OWNER_ROUNDS = 2000, 8
FAN_OUT = 4  # in a virtual machine waking a thread takes it some ten microseconds, and the waker some two
NEST_CHUNKS = 4  # per thread
PAGE = 4096

LINE = 64  # bytes of a job
JOB_FIELDS = {"state": "q", "code": "Q", "first": "Q", "second": "q", "core": "q"}  # `core` is the owner's
CLAIMED, WAITING, ACTIVE, TICKET = 1 << 31, 1 << 30, (1 << 30) - 1, 1 << 32  # fields of a job's state

GLOBALS = {"lock": 128, "work": 128, "done": 128, "epoch": 64, "sleepers": 64, "ready": 64, "crowded": 64}
GLOBALS |= {
    "jobs": JOBS * LINE,
    "cores": CORES // 8,
    "main_thread": 8,
    "saved": 64 * SAVED,
    "reporting": 4,
}  # bytes; all begin as zeros
RUNNING, SHARE, POLL = (memory(name) for name in ("running", "pool_share", "pool_poll"))


def pool_text(architecture: str, platform: str = sys.platform) -> str:
    """The whole module for a machine; `architecture` is what `platform.machine()` calls it."""
    module = Module("pool")
    for name, size in GLOBALS.items():
        linkage = "" if name in EXPORTS else "internal"
        module.global_variable(name, array(i8, size), "zeroinitializer", linkage=linkage, align=64)
    module.global_variable("running", array(ptr, 2), "zeroinitializer", align=8)
    target = Platform(platform, architecture.lower())
    code.write(module, lambda function: Code(function, target), EXPORTS)
    return module.text()


@code("void pool_reset()")
def pool_reset(b: Code) -> None:
    b.run("prepare")
    for counter in (EPOCH, SLEEPERS, READY, CROWDED):
        b.store(num(0), counter)
    b.run("forget_cores")
    b.fill(memory("jobs"), 0, JOBS * LINE)
    b.ret()


@code("void wake(i64 wanted)")
def wake(b: Code, wanted: Value) -> None:
    """Wake sleepers, if fewer workers are ready than wanted.

    A thread that changes the epoch and then finds no sleeper, and a worker that counts itself as a sleeper and then
    finds the epoch unchanged, cannot both be wrong: all these accesses are sequentially consistent.
    """
    b.add_to(EPOCH, 1, "seq_cst")
    missing = b.sub(wanted, b.look(READY, "seq_cst"))
    with b.if_(b.icmp("sgt", missing, 0)), b.if_(b.icmp("sgt", b.look(SLEEPERS, "seq_cst"), 0)):
        b.run("wake_sleepers", b.umin(missing, num(FAN_OUT)))
        b.run("make_way")
    b.ret()


def job_at(b: Code, index: Value) -> Record:
    return b.record(b.gep(memory("jobs"), b.mul(index, LINE)), JOB_FIELDS)


@code("ptr open(ptr code, ptr first, i64 second, i64 workers)")
def open_job(b: Code, function: Value, first: Value, second: Value, workers: Value) -> None:
    """Offer work; return its job, or null if no workers are wanted or no slot is free."""
    with b.if_(b.icmp("sgt", workers, 0)), b.loop(0, JOBS) as index:
        job = job_at(b, index)
        with b.if_(job.change("state", 0, num(CLAIMED), "acquire")):
            job.set(code=function, first=first, second=second, core=b.run("mark_core"))
            job.set("release", state=b.or_(b.mul(workers, TICKET), CLAIMED))
            b.run("wake", workers)
            b.ret(job.base)
    b.ret(NULL)


@code("void close(ptr job, ptr launch)")
def close_job(b: Code, address: Value, launch: Value) -> None:
    """Withdraw the remaining tickets and wait for the running workers, handling signals."""
    job = b.record(address, JOB_FIELDS)

    def leave_if_done(*before: str) -> None:
        with b.if_(b.icmp("eq", b.and_(job.get("state", "acquire"), ACTIVE), 0)):
            system(b, *before)
            job.set("release", state=num(0))
            b.ret()

    with b.if_(b.is_null(address)):
        b.ret()
    b.run("leave_core", job.get("core"))
    b.atomic_rmw("and", address, num(TICKET - 1), ordering="acq_rel", align=8)
    with b.loop(0, OWNER_ROUNDS):
        with b.loop(0, OWNER_SPINS):
            leave_if_done()
            pause(b)
        b.run("make_way")
    system(b, "take_lock")
    b.atomic_rmw("or", address, num(WAITING), ordering="acq_rel", align=8)
    with b.forever():
        leave_if_done("give_lock")
        b.run("sleep_some")
        system(b, "give_lock")
        b.run("check_signals", launch)
        system(b, "take_lock")


@code("void pool_serve(ptr worker)")
def pool_serve(b: Code, worker: Value) -> None:
    """The main loop of a worker. It chooses its core before it takes a ticket, because the owner waits for all workers
    with a ticket, and another thread may be running on that core.
    """
    rest = b.alloca(i64, len(REST_FIELDS), align=8)
    b.run("new_rest", rest)
    b.add_to(READY, 1, "seq_cst")
    with b.forever() as begin:
        seen = b.look(EPOCH, "seq_cst")
        with b.loop(0, JOBS) as index:
            job, skip, leave = job_at(b, index), b.function.block("skip"), b.function.block("leave")
            with b.if_(b.icmp("ult", job.get("state", "monotonic"), TICKET)):
                b.br(skip)
            core = b.run("find_core")

            def join(found: Value) -> tuple[Value, Value]:
                with b.if_(b.icmp("ult", found, TICKET)):
                    b.br(leave)
                taken = b.add(found, 1 - TICKET)
                return b.compare_exchange(job.base, found, taken, ordering="acquire", align=8)

            left = b.add(b.until(job.get("state", "monotonic"), join), 1 - TICKET)
            b.add_to(READY, -1, "seq_cst")
            with b.if_(b.icmp("uge", left, TICKET)):
                b.run("wake", b.lshr(left, 32))
            b.run("end_rest", rest)
            function, first, second = (job.get(name) for name in ("code", "first", "second"))
            b.call(function, void, [first, second, worker])
            b.run("leave_core", core)
            before = b.atomic_rmw("sub", job.base, num(1), ordering="acq_rel", align=8)
            with b.if_(b.icmp("eq", b.and_(before, WAITING | ACTIVE), WAITING | 1)):
                system(b, "take_lock", "wake_owners", "give_lock")
            b.add_to(READY, 1, "seq_cst")
            b.run("begin_rest", rest)
            b.br(begin)
            b.enter(leave)
            b.run("leave_core", core)
            b.br(skip)
            b.enter(skip)
        with b.if_(b.run("look_out", rest, seen)):
            b.br(begin)
        b.add_to(READY, -1, "seq_cst")
        b.add_to(SLEEPERS, 1, "seq_cst")
        b.run("sleep_through", seen)
        b.add_to(SLEEPERS, -1, "seq_cst")
        b.add_to(READY, 1, "seq_cst")


@code("ptr arena_of(ptr worker, i64 bytes)")
def arena_of(b: Code, worker: Value, bytes: Value) -> None:
    """The scratch memory of a thread, at least `bytes` large; null if allocation fails."""
    held = b.record(worker, WORKER_FIELDS)
    with b.if_(b.icmp("uge", held.get("size"), bytes)):
        b.ret(held.get("arena"))
    b.run("free", held.get("block"))
    block = b.run("malloc", b.add(bytes, PAGE))
    none = b.is_null(block)
    start = b.inttoptr(b.and_(b.add(b.ptrtoint(block, i64), PAGE - 1), -PAGE), ptr)
    arena = b.select(none, NULL, start)
    held.set(block=block, size=b.select(none, num(0), bytes), arena=arena)
    b.ret(arena)


@code("void run_launch(ptr launch, i64 unused, ptr worker)")
def run_launch(b: Code, launch: Value, unused: Value, worker: Value) -> None:
    """The part of one thread: programs until none are left, in the kernel's `NAME_work`."""
    it = b.record(launch, LAUNCH_FIELDS)
    address = b.run("arena_of", worker, it.get("arena"))
    with b.if_(b.is_null(address)):
        it.set("monotonic", fault=int32(NO_MEMORY), next=it.get("total"))
        b.ret()
    arena, sharers = b.record(address, CONTROL_FIELDS), it.get("sharers")
    share = b.select(b.icmp("sgt", sharers, 1), SHARE, NULL)
    arena.set(fault=int32(0), fuel=int32(FULL), poll=POLL, launched=launch, fork=share, sharers=sharers)
    given = [it.get("slots"), it.at("next"), *(it.get(name) for name in ("total", "chunk", "x", "y", "z")), address]
    failed = b.call(it.get("code"), i32, given)
    with b.if_(b.icmp("ne", failed, 0)), b.if_(it.change("fault", 0, failed)):
        it.set(program=arena.get("program"))
    b.ret()


@code("void pool_launch(ptr launch, i64 workers, ptr worker)")
def pool_launch(b: Code, launch: Value, workers: Value, worker: Value) -> None:
    it = b.record(launch, LAUNCH_FIELDS)
    it.set(owner=b.run("arena_of", worker, it.get("arena")))
    outer = b.load(ptr, RUNNING, ordering="monotonic", align=8)
    for at in (0, LAST):
        b.store(it.get("name"), b.gep(RUNNING, at), ordering="monotonic", align=8)
    job = b.run("open", memory("run_launch"), launch, num(0), workers)
    b.run("run_launch", launch, num(0), worker)
    it.set(count=b.record(b.load(ptr, worker), CONTROL_FIELDS).get("count"))
    b.run("close", job, launch)
    b.run("wait_for_extra", launch)
    b.store(outer, RUNNING, ordering="monotonic", align=8)
    b.ret()


@code("void pool_share(ptr nest, ptr slots, i64 size, i64 step, ptr arena)")
def pool_share(b: Code, nest: Value, slots: Value, size: Value, step: Value, address: Value) -> None:
    arena = b.record(address, CONTROL_FIELDS)
    threads = arena.get("sharers")
    portion = b.mul(b.mul(threads, NEST_CHUNKS), step)
    chunk = b.mul(b.udiv(b.sub(b.add(size, portion), 1), portion), step)
    job = b.run("open", nest, slots, chunk, b.sub(threads, 1))
    b.call(nest, void, [slots, chunk, NULL])
    b.run("close", job, arena.get("launched"))
    b.ret()


SIGNALS_NS, STALL_NS, PATIENCE_NS = 200_000_000, 300_000, 10_000_000_000
WAITS, RESTS = 1, 2  # for programs that may not have begun, for one that has
MAIN_THREAD = memory("main_thread")


@code("void pool_main(i64 thread)")
def pool_main(b: Code, thread: Value) -> None:
    b.store(thread, MAIN_THREAD, ordering="monotonic", align=8)
    b.ret()


@code("i32 check_signals(ptr launch)")
def check_signals(b: Code, launch: Value) -> None:
    """Run the handlers, if this is the main thread; return INTERRUPTED if one of them raised an exception."""
    it = b.record(launch, LAUNCH_FIELDS)
    mine = b.icmp("eq", b.look(MAIN_THREAD, "monotonic"), b.run("this_thread"))
    with b.unless(b.and_(mine, b.not_(b.is_null(launch)))):
        b.ret(int32(0))
    with b.if_(b.icmp("ne", it.get("fault", "monotonic"), 0)):
        b.ret(int32(0))
    state = b.run("PyGILState_Ensure")
    bad = b.icmp("ne", b.run("PyErr_CheckSignals"), 0)
    with b.if_(bad):
        b.run("PyErr_Fetch", *(it.at(name) for name in ("exception", "value", "trace")))
        it.set("monotonic", fault=int32(INTERRUPTED))
    b.run("PyGILState_Release", state)
    b.ret(b.select(bad, int32(INTERRUPTED), int32(0)))


@code("i32 pool_poll(ptr arena, i32 waits)")
def pool_poll(b: Code, address: Value, waits: Value) -> None:
    arena = b.record(address, CONTROL_FIELDS)
    arena.set(fuel=int32(FULL))
    launch = arena.get("launched")
    it = b.record(launch, LAUNCH_FIELDS)

    def leave_with(code: Value) -> None:
        with b.if_(b.icmp("ne", code, 0)):
            arena.set(fault=code)
            b.ret(code)

    leave_with(it.get("fault", "monotonic"))
    time = b.run("now")
    with b.if_(b.icmp("eq", it.get("owner"), address)):
        deadline = it.get("deadline")
        first = b.icmp("eq", deadline, 0)
        with b.if_(b.or_(first, b.icmp("sge", time, deadline))):
            it.set(deadline=b.add(time, SIGNALS_NS))
            with b.unless(first):
                leave_with(b.run("check_signals", launch))
    with b.if_(b.icmp("eq", waits, WAITS)):
        b.run("let_others", launch, time)
    with b.if_(b.icmp("eq", waits, RESTS)):
        b.run("pause_some", int32(20))
    b.ret(int32(0))


@code("ptr extra_thread(ptr launch)")
def extra_thread(b: Code, launch: Value) -> None:
    """The main function of a thread that was started for programs that wait."""
    worker = b.alloca(i64, len(WORKER_FIELDS), align=8)
    b.fill(worker, 0, WORKER.size)
    b.run("run_launch", launch, num(0), worker)
    b.run("free", b.record(worker, WORKER_FIELDS).get("block"))
    b.add_to(b.record(launch, LAUNCH_FIELDS).at("extra"), -1)
    b.ret(NULL)


@code("void let_others(ptr launch, i64 now)")
def let_others(b: Code, launch: Value, time: Value) -> None:
    """Let other programs begin, and sleep a little: longer, the more threads wait."""
    it = b.record(launch, LAUNCH_FIELDS)
    following = it.get("next", "monotonic")
    left = b.sub(it.get("total"), following)
    with b.if_(b.icmp("sgt", left, 0)):
        b.run("start_more", launch, time, following, left)
    b.run("pause_some", b.add(b.mul(b.trunc(it.get("started", "monotonic"), i32), 4), 20))
    b.ret()


@code("void start_more(ptr launch, i64 now, i64 next, i64 left)")
def start_more(b: Code, launch: Value, time: Value, following: Value, left: Value) -> None:
    """Start threads if no program has begun for some time; give up if that does not help."""
    it = b.record(launch, LAUNCH_FIELDS)
    with b.if_(b.icmp("ne", it.get("seen", "monotonic"), following)):
        it.set("monotonic", seen=following, since=time)
        b.ret()
    waited = b.sub(time, it.get("since", "monotonic"))
    with b.if_(b.icmp("sle", waited, STALL_NS)):
        b.ret()
    with b.unless(it.change("starting", 0, num(1), "acq_rel")):
        b.ret()
    started = it.get("started", "monotonic")
    wanted = b.smin(b.smin(b.add(started, 1), left), b.sub(num(MOST_EXTRA), started))
    new = b.run("start_threads", launch, wanted)
    some = b.icmp("sgt", new, 0)
    with b.if_(some):
        it.set("monotonic", started=b.add(started, new), since=time)
    hopeless = b.and_(b.not_(some), b.icmp("sgt", waited, PATIENCE_NS))
    with b.if_(hopeless), b.if_(it.change("fault", 0, int32(STARVED))):
        it.set(program=following)
    it.set("release", starting=num(0))
    b.ret()


@code("i64 start_threads(ptr launch, i64 count)")
def start_threads(b: Code, launch: Value, count: Value) -> None:
    """Return how many threads could be started."""
    extra = b.record(launch, LAUNCH_FIELDS).at("extra")
    with b.loop(0, count) as index:
        b.add_to(extra, 1)
        with b.unless(b.run("start_thread", launch)):
            b.add_to(extra, -1)
            b.ret(index)
    b.ret(count)


@code("void wait_for_extra(ptr launch)")
def wait_for_extra(b: Code, launch: Value) -> None:
    """Wait until the threads that were started have ended, handling signals."""
    left = b.record(launch, LAUNCH_FIELDS)
    with b.forever():
        with b.loop(0, 512):
            with b.if_(b.icmp("eq", left.get("extra", "acquire"), 0)):
                b.ret()
            b.run("pause_some", int32(100))
        b.run("check_signals", launch)
