"""The launch of a kernel on the host: in the calling thread, or on the threads of the pool.

A short launch keeps the GIL, a long one releases it. Fields of the record: `cost` is the address of a double, the
nanoseconds that one program took last time; `work` is the code that each thread of a large grid runs; `forks` says that
its loop nests can be split between threads (`fork.py`); `pool` is the address of `Pool.fields` (the address of
`pool_launch`, or 0 before the pool exists, the number of workers and so on); `name` is published while the kernel runs,
for messages about crashes. Programs that may wait for each other (`waits`) run in threads of their own, never with the
GIL. Functions of Python: `fault(code, program, x, y, z)` raises the error of a program that failed, and
`share(slots, x, y, z)` runs a grid before the pool has its threads.
"""

from typing import NamedTuple

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import YES, Writer, call_with, routine
from tilework.targets.cpu.run.interface import (
    CONTROL_FIELDS,
    FULL,
    INTERRUPTED,
    LAUNCH,
    LAUNCH_FIELDS,
    NO_MEMORY,
    POOL_FIELDS,
    WORKER_FIELDS,
)
from tilework.targets.cpu.run.machine_code import NULL, Record, int32, memory, num
from tilework.targets.cpu.run.pool import CHUNK_NS, CHUNKS, CROWDED_WAKE_NS, FEWEST_CHUNKS, FORK_NS, JOIN_NS, WAKE_NS
from tilework.targets.cpu.run.pool_code import LAST, MOST_NS
from tilework.targets.llvm.types import f64, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

STACK_ARENA = 4096  # kernels that need more scratch memory get it from the heap
HOLD_NS = 10_000.0  # shorter launches keep the GIL
SPARE, SPARE_SIZE = memory("spare.memory"), memory("spare.size")


@routine("ptr take(i64 size)")
def take(b: Writer, size: Value) -> None:
    """Allocate scratch memory, or take the piece that `give` has kept. Both need the GIL."""
    kept = b.load(ptr, SPARE)
    enough = b.and_(b.is_object(kept), b.icmp("eq", b.load(i64, SPARE_SIZE), size))
    with b.if_(enough):
        b.store(NULL, SPARE)
        b.ret(kept)
    b.finish(b.api("PyMem_RawMalloc", b.add(size, 64)))


@routine("void give(ptr memory, i64 size)")
def give(b: Writer, piece: Value, size: Value) -> None:
    """Keep a piece of scratch memory for the next launch; free the one that was kept before."""
    kept = b.load(ptr, SPARE)
    with b.if_(b.is_object(kept)):
        b.api("PyMem_RawFree", kept, result=void)
    b.store(piece, SPARE)
    b.store(size, SPARE_SIZE)
    b.ret()


@routine("i64 now()")
def now(b: Writer) -> None:
    """Return the monotonic clock in nanoseconds."""
    time = b.alloca(i64, 2)
    b.api("clock_gettime", constant(i32, b.host.clock), time, result=i32)
    b.finish(b.add(b.mul(b.at(time, 0), 1_000_000_000), b.at(time, 8)))


@routine("i32 run_here(ptr entry, ptr record, ptr slots, ptr sizes, i64 total)")
def run_here(b: Writer, entry: Value, record: Value, slots: Value, sizes: Value, total: Value) -> None:
    """Run all programs in this thread; 0 with an exception on failure."""
    scratch = take_scratch(b, record)
    cost = b.at(record, layout.COST, ptr)
    known = b.load(f64, cost)
    programs = b.sitofp(total, f64)
    # a cost of 0 is an unknown one
    short = b.and_(b.fcmp("ogt", known, 0.0), b.fcmp("olt", b.fmul(known, programs), HOLD_NS))
    short = b.and_(short, b.icmp("eq", b.at(record, layout.WAITS), 0))
    (thread,) = b.if_else(short, lambda: [NULL], lambda: [b.api("PyEval_SaveThread")])
    launch, arena = new_launch(b), b.record(scratch.arena, CONTROL_FIELDS)
    launch.set(next=num(1), owner=scratch.arena)  # no other program is to begin
    pool = b.record(b.at(record, layout.POOL, ptr), POOL_FIELDS)
    arena.set(fault=int32(0), fork=NULL, fuel=int32(FULL), poll=pool.get("poll"), launched=launch.base)
    running = pool.get("running")
    has_pool = b.is_object(running)
    with b.if_(has_pool):
        for at in (0, LAST):
            b.store(b.at(record, layout.KERNEL_NAME, ptr), b.gep(running, at))
    start = b.run("now")
    extent = [b.trunc(b.at(sizes, 8 * axis), i32) for axis in range(3)]
    code = b.call(b.at(record, layout.CODE, ptr), i32, [slots, num(0), total, *extent, scratch.arena])
    took = b.sub(b.run("now"), start)
    b.store(b.fdiv(b.sitofp(b.add(took, 1), f64), programs), cost)
    note_time(b, sizes, start, took)
    with b.if_(b.and_(b.icmp("sge", took, JOIN_NS), b.icmp("sgt", total, 1))):
        b.run("note_missed", pool.base, start, took)
    program = arena.get("program")
    with b.if_(has_pool):
        b.store(NULL, running)
    with b.if_(b.is_object(thread)):
        b.api("PyEval_RestoreThread", thread, result=void)
    give_scratch(b, scratch)
    report_fault(b, entry, sizes, code, program, launch)
    b.finish(YES)


@routine("void note_missed(ptr pool, i64 start, i64 took)")
def note_missed(b: Writer, pool: Value, start: Value, took: Value) -> None:
    """Add up the times of launches in close succession that an awake worker thread would have shared."""
    it = b.record(pool, POOL_FIELDS)
    soon = b.icmp("slt", b.sub(start, it.get("ended", "monotonic")), MOST_NS)
    before = b.select(soon, it.get("missed", "monotonic"), num(0))
    it.set("monotonic", missed=b.add(before, took), ended=b.add(start, took))
    b.ret()


def note_time(b: Writer, sizes: Value, start: Value, took: Value) -> None:
    """Note for the log when the programs began, and how long they took."""
    b.store(start, b.gep(sizes, layout.STARTED_AT))
    b.store(took, b.gep(sizes, layout.TOOK_AT))


def new_launch(b: Writer) -> Record:
    """A record of zeros, on the stack."""
    launch = b.alloca(i8, LAUNCH.size, align=16)
    b.fill(launch, 0, LAUNCH.size)
    return b.record(launch, LAUNCH_FIELDS)


class Scratch(NamedTuple):
    """An arena on the stack, or in memory that must be released."""

    arena: Value
    size: Value
    memory: Value
    is_large: Value


def take_scratch(b: Writer, record: Value) -> Scratch:
    """The arena of the calling thread; leaves with an exception if there is no memory."""
    size = b.at(record, layout.ARENA)
    stack = b.alloca(i8, STACK_ARENA, align=64)
    large = b.icmp("ugt", size, STACK_ARENA)
    (memory,) = b.if_else(large, lambda: [b.run("take", size)], lambda: [stack])
    with b.if_(b.is_null(memory)):
        b.api("PyErr_NoMemory")
        b.ret(constant(i32, 0))
    arena = b.inttoptr(b.and_(b.add(b.ptrtoint(memory, i64), 63), -64), ptr)
    return Scratch(arena, size, memory, large)


def give_scratch(b: Writer, scratch: Scratch) -> None:
    with b.if_(scratch.is_large):
        b.run("give", scratch.memory, scratch.size)


def report_fault(b: Writer, entry: Value, sizes: Value, code: Value, program: Value, launch: Record) -> None:
    """Leave with the exception of a program that failed, or of a signal handler."""
    with b.if_(b.icmp("ne", code, 0)):
        with b.if_(b.icmp("eq", code, INTERRUPTED)):
            b.api("PyErr_Restore", *map(launch.get, ("exception", "value", "trace")), result=void)
            b.ret(constant(i32, 0))
        values = [b.sext(code, i64), program, *(b.at(sizes, 8 * axis) for axis in range(3))]
        call_with(b, b.item(entry, layout.FAULT_CALL), [b.api("PyLong_FromLongLong", value) for value in values])
        b.ret(constant(i32, 0))


@routine("i32 run_shared(ptr entry, ptr record, ptr slots, ptr sizes, i64 total)")
def run_shared(b: Writer, entry: Value, record: Value, slots: Value, sizes: Value, total: Value) -> None:
    """Divide the programs among the threads of the pool.

    Before it has enough of them, Python does, and starts them.
    """
    pool, threads = b.record(b.at(record, layout.POOL, ptr), POOL_FIELDS), b.at(record, layout.THREADS)
    code, cost = pool.get("launch"), b.at(record, layout.COST, ptr)
    few, known = b.icmp("slt", total, threads), b.load(f64, cost)
    unknown = b.fcmp("ole", known, 0.0)
    one = b.select(unknown, constant(f64, float(CHUNK_NS)), known)
    long = b.fcmp("oge", known, float(FORK_NS))
    forks = b.and_(b.icmp("ne", b.at(record, layout.FORKS), 0), b.and_(few, long))
    expected = b.fmul(known, b.sitofp(total, f64))
    unlimited = b.or_(b.icmp("ne", b.at(record, layout.WAITS), 0), unknown)
    worth = b.select(unlimited, threads, b.add(b.fptosi(b.fmul(expected, 1 / JOIN_NS), i64), 1))
    parties = b.smin(b.smin(threads, total), worth)
    pool.set("monotonic", missed=num(0))
    wanted = b.sub(b.select(forks, threads, parties), 1)
    with b.if_(b.or_(b.is_null(code), b.icmp("slt", pool.get("workers"), wanted))):
        packed = b.api("PyBytes_FromStringAndSize", slots, b.mul(b.at(record, layout.SLOT_COUNT), 8))
        extent = [b.api("PyLong_FromLongLong", b.at(sizes, 8 * axis)) for axis in range(3)]
        b.ret(b.zext(call_with(b, b.item(entry, layout.DEVICE_CALL), [packed, *extent]), i32))
    scratch = take_scratch(b, record)
    at_once = b.smin(
        b.fptosi(b.fdiv(constant(f64, float(CHUNK_NS)), one), i64), b.udiv(total, b.mul(parties, FEWEST_CHUNKS))
    )
    several = b.smax(b.smax(b.udiv(total, b.mul(parties, CHUNKS)), at_once), num(1))  # `chunk_of`
    chunk = b.select(b.icmp("ne", b.at(record, layout.WAITS), 0), num(1), several)
    launch, worker = new_launch(b), b.record(b.alloca(i64, len(WORKER_FIELDS), align=16), WORKER_FIELDS)
    launch.set(code=b.at(record, layout.WORK, ptr), slots=slots, total=total, chunk=chunk, arena=scratch.size)
    x, y, z = (b.trunc(b.at(sizes, 8 * axis), i32) for axis in range(3))
    name = b.at(record, layout.KERNEL_NAME, ptr)
    launch.set(x=x, y=y, z=z, sharers=b.select(forks, threads, num(1)), name=name)
    worker.set(arena=scratch.arena, size=scratch.size, block=NULL)
    thread = b.api("PyEval_SaveThread")
    start = b.run("now")
    b.call(code, void, [launch.base, b.sub(parties, 1), worker.base])
    took = b.sub(b.run("now"), start)
    note_time(b, sizes, start, took)
    b.api("PyEval_RestoreThread", thread, result=void)
    ran = launch.get("count")
    with b.if_(b.and_(b.icmp("sgt", ran, 0), b.not_(forks))):
        b.store(b.fdiv(b.sitofp(b.add(took, 1), f64), b.sitofp(ran, f64)), cost)
    give_scratch(b, scratch)
    fault = launch.get("fault")
    with b.if_(b.icmp("eq", fault, NO_MEMORY)):
        b.api("PyErr_NoMemory")
        b.ret(constant(i32, 0))
    report_fault(b, entry, sizes, fault, launch.get("program"), launch)
    b.finish(YES)


@routine("i64 least_ns(ptr pool)")
def least_ns(b: Writer, pool: Value) -> None:
    """`Pool.least_ns`."""
    it = b.record(pool, POOL_FIELDS)
    ready, crowded = (b.look(it.get(name), "monotonic") for name in ("ready", "crowded"))
    with b.if_(b.icmp("sgt", ready, 0)):
        b.ret(num(JOIN_NS))
    with b.if_(b.icmp("ne", crowded, 0)), b.if_(b.icmp("sgt", crowded, b.run("now"))):
        b.ret(num(CROWDED_WAKE_NS))
    together = b.icmp("sge", it.get("missed", "monotonic"), WAKE_NS)
    b.finish(b.select(together, num(JOIN_NS), num(WAKE_NS)))


@routine("i32 run_host(ptr entry, ptr record, ptr slots, ptr sizes, i64 total)")
def run_host(b: Writer, *call: Value) -> None:
    """Run all programs, here or on several threads."""
    _, record, _, _, total = call
    cost = b.load(f64, b.at(record, layout.COST, ptr))
    expected = b.fmul(cost, b.sitofp(total, f64))
    (least,) = b.if_else(
        b.fcmp("olt", expected, float(JOIN_NS)),
        lambda: [constant(f64, float(JOIN_NS))],
        lambda: [b.sitofp(b.run("least_ns", b.at(record, layout.POOL, ptr)), f64)],
    )
    known_short = b.and_(b.fcmp("ogt", cost, 0.0), b.fcmp("olt", expected, least))
    whole = b.or_(b.fcmp("olt", cost, float(FORK_NS)), b.icmp("eq", b.at(record, layout.FORKS), 0))
    one_thread = b.or_(known_short, b.icmp("eq", b.at(record, layout.THREADS), 1))
    alone = b.and_(b.icmp("eq", total, 1), whole)
    here = b.or_(alone, b.and_(one_thread, b.icmp("eq", b.at(record, layout.WAITS), 0)))
    (done,) = b.if_else(here, lambda: [b.run("run_here", *call)], lambda: [b.run("run_shared", *call)])
    b.finish(done)
