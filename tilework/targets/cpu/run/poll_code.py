"""The machine code that a running program calls now and then: part of `pool_code.py`.

    pool_poll(arena, waits)       0, or the fault code with which the program is to end
    pool_main(thread)             set the system's id of the thread that runs Python's signal handlers, 0 for none

A launch with a fault code ends: every program that polls it leaves. The owner of a launch, if it is Python's main
thread, runs the handlers of pending signals, five times a second at most, since it takes Python's lock for it. An
exception that they raise (KeyboardInterrupt, or that of a test runner's alarm) is kept in the launch, and set again
when all programs have left.

A program that waits for another one (`waits` is WAITS) must not keep it from starting; one that waits for its ticket at
an ordered atomic (RESTS) knows that its predecessor runs. If no program has begun for some time and others are left,
threads are started for them, twice as many each time. If that is not possible and nothing happens for ten seconds, the
launch fails with the code STARVED instead of waiting for ever.
"""

from tilework.targets.cpu.run.interface import CONTROL_FIELDS, FULL, INTERRUPTED, STARVED
from tilework.targets.cpu.run.launch_record import LAUNCH_FIELDS, MOST_EXTRA, WORKER, WORKER_FIELDS
from tilework.targets.cpu.run.machine_code import NULL, Code, code, int32, memory, num
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import Value

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
    """Wait until the threads that were started have ended; signals are handled meanwhile."""
    left = b.record(launch, LAUNCH_FIELDS)
    with b.forever():
        with b.loop(0, 512):
            with b.if_(b.icmp("eq", left.get("extra", "acquire"), 0)):
                b.ret()
            b.run("pause_some", int32(100))
        b.run("check_signals", launch)
