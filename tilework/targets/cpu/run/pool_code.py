"""The machine code of the thread pool: how work is offered, joined, finished and waited for, without Python and its
lock.

    pool_launch(launch, workers, worker)     run a grid, together with up to `workers` others
    pool_share(nest, slots, size, step, arena)     the same for a nest of a running program; called by kernels (fork.py)
    pool_serve(worker)                       the life of a worker; never returns
    pool_reset()                             forget everybody, at the start and in a forked child
    pool_poll(arena, waits), pool_main(thread)     see `poll_code.py`
    pool_watch(signals)                      see `crash_code.py`

Work on offer stands in one of JOBS places: a function, its two arguments, and a word with the tickets that are left
(high half) and the workers at work (low half). Workers take a ticket with one compare-and-swap; the owner takes the
tickets away when its own part is done, and waits until no worker is at work. Whoever joins while tickets are left wakes
FAN_OUT more, so that many threads start in few steps. A worker without work looks out for it as long as work usually
takes to come, if that is soon, and makes way for others meanwhile; then it sleeps (`rest_code.py`).

The system is asked only for sleep (`system_code.py`).

`cores.py` keeps workers off the core of the thread that woke them.
"""

import sys

from tilework.targets.cpu.run import poll_code, rest_code  # noqa: F401  # registers their functions
from tilework.targets.cpu.run.cores import CORES
from tilework.targets.cpu.run.crash_code import LAST, SAVED
from tilework.targets.cpu.run.interface import CONTROL_FIELDS, FULL, NO_MEMORY
from tilework.targets.cpu.run.launch_record import EXPORTS, LAUNCH_FIELDS, WORKER_FIELDS
from tilework.targets.cpu.run.machine_code import NULL, Code, Platform, Record, code, memory, num, word
from tilework.targets.cpu.run.rest_code import CROWDED, READY, REST_FIELDS, SLEEPERS, pause
from tilework.targets.cpu.run.system_code import EPOCH, system
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import array, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value

JOBS = 32  # launches and nests that can be on offer at the same time
OWNER_SPINS, OWNER_TURNS = (
    2000,
    8,
)  # looks of the owner of a job at its workers, who makes way after each turn, before it sleeps
FAN_OUT = 4  # a thread of a virtual machine takes some ten microseconds to wake, and the one who wakes it some two
NEST_CHUNKS = 4  # per thread
PAGE = 4096

LINE = 64  # bytes of a job
JOB_FIELDS = {"word": "q", "code": "Q", "first": "Q", "second": "q", "core": "q"}  # `core` is the owner's
CLAIMED, WAITING, ACTIVE, TICKET = 1 << 31, 1 << 30, (1 << 30) - 1, 1 << 32  # parts of a job's word

GLOBALS = {"lock": 128, "work": 128, "done": 128, "epoch": 64, "sleepers": 64, "ready": 64, "crowded": 64}
GLOBALS |= {
    "jobs": JOBS * LINE,
    "cores": CORES // 8,
    "main_thread": 8,
    "saved": 64 * SAVED,
    "telling": 4,
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
    for place in (EPOCH, SLEEPERS, READY, CROWDED):
        b.store(num(0), place)
    b.run("forget_cores")
    b.fill(memory("jobs"), 0, JOBS * LINE)
    b.ret()


@code("void wake(i64 wanted)")
def wake(b: Code, wanted: Value) -> None:
    """Some of those who are wanted beside those who are ready. The one who changes the epoch and then finds nobody to
    wake, and the one who notes that he is no longer ready but sleeps and then finds the epoch unchanged, cannot be
    wrong both: all these accesses are sequentially consistent.
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
    """Offer work: its job, or null if no help is wanted or no place is free."""
    with b.if_(b.icmp("sgt", workers, 0)), b.loop(0, JOBS) as index:
        job = job_at(b, index)
        with b.if_(job.change("word", 0, num(CLAIMED), "acquire")):
            job.set(code=function, first=first, second=second, core=b.run("mark_core"))
            job.set("release", word=b.or_(b.mul(workers, TICKET), CLAIMED))
            b.run("wake", workers)
            b.ret(job.base)
    b.ret(NULL)


@code("void close(ptr job, ptr launch)")
def close_job(b: Code, place: Value, launch: Value) -> None:
    """Take back what is left of the offer, and wait for the workers at work; signals are looked after meanwhile."""
    job = b.record(place, JOB_FIELDS)

    def leave_if_done(*before: str) -> None:
        with b.if_(b.icmp("eq", b.and_(job.get("word", "acquire"), ACTIVE), 0)):
            system(b, *before)
            job.set("release", word=num(0))
            b.ret()

    with b.if_(b.is_null(place)):
        b.ret()
    b.run("leave_core", job.get("core"))
    b.atomic_rmw("and", place, num(TICKET - 1), ordering="acq_rel", align=8)
    with b.loop(0, OWNER_TURNS):
        with b.loop(0, OWNER_SPINS):
            leave_if_done()
            pause(b)
        b.run("make_way")
    system(b, "take_lock")
    b.atomic_rmw("or", place, num(WAITING), ordering="acq_rel", align=8)
    with b.forever():
        leave_if_done("give_lock")
        b.run("sleep_some")
        system(b, "give_lock")
        b.run("check_signals", launch)
        system(b, "take_lock")


@code("void pool_serve(ptr worker)")
def pool_serve(b: Code, worker: Value) -> None:
    """A worker chooses its core before it takes a ticket: the owner waits for whoever has one, and another thread may
    be running there.
    """
    rest = b.alloca(i64, len(REST_FIELDS), align=8)
    b.run("new_rest", rest)
    b.add_to(READY, 1, "seq_cst")
    with b.forever() as begin:
        seen = b.look(EPOCH, "seq_cst")
        with b.loop(0, JOBS) as index:
            job, skip, leave = job_at(b, index), b.function.block("skip"), b.function.block("leave")
            with b.if_(b.icmp("ult", job.get("word", "monotonic"), TICKET)):
                b.br(skip)
            core = b.run("find_core")

            def join(found: Value) -> tuple[Value, Value]:
                with b.if_(b.icmp("ult", found, TICKET)):
                    b.br(leave)
                taken = b.add(found, 1 - TICKET)
                return b.compare_exchange(job.base, found, taken, ordering="acquire", align=8)

            left = b.add(b.until(job.get("word", "monotonic"), join), 1 - TICKET)
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
    """Scratch memory of a thread, of at least so many bytes; null if there is none."""
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
    place = b.run("arena_of", worker, it.get("arena"))
    with b.if_(b.is_null(place)):
        it.set("monotonic", fault=word(NO_MEMORY), next=it.get("total"))
        b.ret()
    arena, sharers = b.record(place, CONTROL_FIELDS), it.get("sharers")
    share = b.select(b.icmp("sgt", sharers, 1), SHARE, NULL)
    arena.set(fault=word(0), fuel=word(FULL), poll=POLL, launched=launch, fork=share, sharers=sharers)
    given = [it.get("slots"), it.at("next"), *(it.get(name) for name in ("total", "chunk", "x", "y", "z")), place]
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
def pool_share(b: Code, nest: Value, slots: Value, size: Value, step: Value, place: Value) -> None:
    arena = b.record(place, CONTROL_FIELDS)
    threads = arena.get("sharers")
    portion = b.mul(b.mul(threads, NEST_CHUNKS), step)
    chunk = b.mul(b.udiv(b.sub(b.add(size, portion), 1), portion), step)
    job = b.run("open", nest, slots, chunk, b.sub(threads, 1))
    b.call(nest, void, [slots, chunk, NULL])
    b.run("close", job, arena.get("launched"))
    b.ret()
