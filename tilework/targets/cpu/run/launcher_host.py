"""How the native launcher runs a kernel on the host: in the calling thread, or on the threads of the pool.

A short launch keeps the GIL, a long one releases it. `cost` of the record is the address of a double, the nanoseconds that one
program took last time. `work` is the code that each thread of a large grid runs, `forks` whether its nests can be shared (`fork.py`), and
`pool` the address of words: that of `pool_launch`, or 0 before the pool is there, how many helpers it was asked for, the addresses
of `pool_poll` and of the word that holds the `name` of the kernel that is running. Programs that may wait for each other (`waits`) run
in threads of their own, and never with the GIL. Calls of Python: `fault(code, program, x, y, z)` raises what a program that failed
means, `share(slots, x, y, z)` runs a grid before the pool has its threads.
"""

from typing import NamedTuple

from tilework.targets.cpu.run.interface import FAULT, FORK, FUEL, FULL, INTERRUPTED, LAUNCHED, NO_MEMORY, POLL, PROGRAM
from tilework.targets.cpu.run.launch_record import LAUNCH, LAUNCH_PLACES
from tilework.targets.cpu.run.launcher_guards import NULL, YES, Writer, call_with, num
from tilework.targets.cpu.run.launcher_layout import (
    ARENA,
    CODE,
    COST,
    DEVICE_CALL,
    FAULT_CALL,
    FORKS,
    KERNEL_NAME,
    POOL,
    SLOT_COUNT,
    STARTED_AT,
    THREADS,
    TOOK_AT,
    WAITS,
    WORK,
)
from tilework.targets.cpu.run.pool import CHUNKS, FORK_NS, WAKE_NS
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import f64, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

STACK_ARENA = 4096  # kernels that need more scratch memory get it from the heap
HOLD_NS = 10_000.0  # shorter launches keep the GIL


def write_host(module: Module, monotonic_clock: int) -> None:
    """`run_host` and what it calls."""
    module.global_variable("spare.memory", ptr, "null", linkage="internal")
    module.global_variable("spare.size", i64, "0", linkage="internal")
    write_arena(module)
    write_clock(module, monotonic_clock)
    write_inline(module)
    write_shared(module)
    write_run(module)


def write_arena(module: Module) -> None:
    """`take(size)` and `give(memory, size)`: scratch memory; one piece is kept for the next launch. Both need the GIL."""
    function = module.function("take", ptr, [(i64, "size")], linkage="internal")
    b = Writer(function)
    (size,) = function.args
    spare, spare_size = Value(ptr, "@spare.memory"), Value(ptr, "@spare.size")
    kept = b.load(ptr, spare)
    enough = b.and_(b.is_object(kept), b.icmp("eq", b.load(i64, spare_size), size))
    with b.if_(enough):
        b.store(NULL, spare)
        b.ret(kept)
    b.finish(b.api("PyMem_RawMalloc", b.add(size, 64)))

    function = module.function("give", void, [(ptr, "memory"), (i64, "size")], linkage="internal")
    b = Writer(function)
    memory, size = function.args
    kept = b.load(ptr, spare)
    with b.if_(b.is_object(kept)):
        b.api("PyMem_RawFree", kept, result=void)
    b.store(memory, spare)
    b.store(size, spare_size)
    b.ret()


def write_clock(module: Module, clock: int) -> None:
    """`now()`: nanoseconds."""
    function = module.function("now", i64, [], linkage="internal")
    b = Writer(function)
    place = b.alloca(i64, 2)
    b.api("clock_gettime", constant(i32, clock), place, result=i32)
    b.finish(b.add(b.mul(b.at(place, 0), 1_000_000_000), b.at(place, 8)))


def write_inline(module: Module) -> None:
    """`run_here(entry, record, slots, sizes, total)`: run all programs in this thread; 0 with an exception on failure."""
    params = [(ptr, "entry"), (ptr, "record"), (ptr, "slots"), (ptr, "sizes"), (i64, "total")]
    function = module.function("run_here", i32, params, linkage="internal")
    b = Writer(function)
    entry, record, slots, sizes, total = function.args
    scratch = take_scratch(b, record)
    cost = b.at(record, COST, ptr)
    known = b.load(f64, cost)
    programs = b.sitofp(total, f64)
    # a cost of 0 is an unknown one
    short = b.and_(b.fcmp("ogt", known, 0.0), b.fcmp("olt", b.fmul(known, programs), HOLD_NS))
    short = b.and_(short, b.icmp("eq", b.at(record, WAITS), 0))
    (thread,) = b.if_else(short, lambda: [NULL], lambda: [b.api("PyEval_SaveThread")])
    b.store(constant(i32, 0), b.gep(scratch.arena, FAULT))
    b.store(NULL, b.gep(scratch.arena, FORK))
    launch = b.alloca(i8, LAUNCH.size, align=16)
    b.fill(launch, 0, LAUNCH.size)
    b.store(num(1), b.gep(launch, LAUNCH_PLACES["next"]))  # nobody is to begin
    b.store(scratch.arena, b.gep(launch, LAUNCH_PLACES["owner"]))
    b.store(constant(i32, FULL), b.gep(scratch.arena, FUEL))
    pool = b.at(record, POOL, ptr)
    b.store(b.at(pool, 16, ptr), b.gep(scratch.arena, POLL))
    running = b.at(pool, 24, ptr)
    has_pool = b.is_object(running)
    with b.if_(has_pool):
        b.store(b.at(record, KERNEL_NAME, ptr), running)
    b.store(launch, b.gep(scratch.arena, LAUNCHED))
    start = b.call("now", i64, [])
    extent = [b.trunc(b.at(sizes, 8 * axis), i32) for axis in range(3)]
    code = b.call(b.at(record, CODE, ptr), i32, [slots, num(0), total, *extent, scratch.arena])
    took = b.sub(b.call("now", i64, []), start)
    b.store(b.fdiv(b.sitofp(b.add(took, 1), f64), programs), cost)
    note_time(b, sizes, start, took)
    program = b.at(scratch.arena, PROGRAM)
    with b.if_(has_pool):
        b.store(NULL, running)
    with b.if_(b.is_object(thread)):
        b.api("PyEval_RestoreThread", thread, result=void)
    give_scratch(b, scratch)
    report_fault(b, entry, sizes, code, program, launch)
    b.finish(YES)


def note_time(b: Writer, sizes: Value, start: Value, took: Value) -> None:
    """For the log: when the programs began, and how long they took."""
    b.store(start, b.gep(sizes, STARTED_AT))
    b.store(took, b.gep(sizes, TOOK_AT))


class Scratch(NamedTuple):
    """An arena on the stack, or in memory that must be given back."""

    arena: Value
    size: Value
    memory: Value
    is_large: Value


def take_scratch(b: Writer, record: Value) -> Scratch:
    """The arena of the calling thread; leaves with an exception if there is no memory."""
    size = b.at(record, ARENA)
    stack = b.alloca(i8, STACK_ARENA, align=64)
    large = b.icmp("ugt", size, STACK_ARENA)
    (memory,) = b.if_else(large, lambda: [b.call("take", ptr, [size])], lambda: [stack])
    with b.if_(b.is_null(memory)):
        b.api("PyErr_NoMemory")
        b.ret(constant(i32, 0))
    arena = b.inttoptr(b.and_(b.add(b.ptrtoint(memory, i64), 63), -64), ptr)
    return Scratch(arena, size, memory, large)


def give_scratch(b: Writer, scratch: Scratch) -> None:
    with b.if_(scratch.is_large):
        b.call("give", void, [scratch.memory, scratch.size])


def report_fault(b: Writer, entry: Value, sizes: Value, code: Value, program: Value, launch: Value) -> None:
    """Leave with the exception of a program that failed, or of a signal handler."""
    with b.if_(b.icmp("ne", code, 0)):
        with b.if_(b.icmp("eq", code, INTERRUPTED)):
            kept = [b.at(launch, LAUNCH_PLACES["exception"] + 8 * index, ptr) for index in range(3)]
            b.api("PyErr_Restore", *kept, result=void)
            b.ret(constant(i32, 0))
        numbers = [b.sext(code, i64), program, *(b.at(sizes, 8 * axis) for axis in range(3))]
        call_with(b, b.item(entry, FAULT_CALL), [b.api("PyLong_FromLongLong", number) for number in numbers])
        b.ret(constant(i32, 0))


def write_shared(module: Module) -> None:
    """`run_shared(entry, record, slots, sizes, total)`: divide the programs among the threads of the pool.

    Before it has enough of them, Python does, and starts them.
    """
    params = [(ptr, "entry"), (ptr, "record"), (ptr, "slots"), (ptr, "sizes"), (i64, "total")]
    function = module.function("run_shared", i32, params, linkage="internal")
    b = Writer(function)
    entry, record, slots, sizes, total = function.args
    pool, threads = b.at(record, POOL, ptr), b.at(record, THREADS)
    code = b.load(ptr, pool)
    with b.if_(b.or_(b.is_null(code), b.icmp("slt", b.at(pool, 8), b.sub(threads, 1)))):
        packed = b.api("PyBytes_FromStringAndSize", slots, b.mul(b.at(record, SLOT_COUNT), 8))
        extent = [b.api("PyLong_FromLongLong", b.at(sizes, 8 * axis)) for axis in range(3)]
        b.ret(b.zext(call_with(b, b.item(entry, DEVICE_CALL), [packed, *extent]), i32))
    scratch = take_scratch(b, record)
    cost = b.at(record, COST, ptr)
    few = b.icmp("slt", total, threads)
    long = b.fcmp("oge", b.load(f64, cost), float(FORK_NS))
    forks = b.and_(b.icmp("ne", b.at(record, FORKS), 0), b.and_(few, long))
    parties = b.smin(threads, total)
    several = b.smax(b.udiv(total, b.mul(parties, CHUNKS)), num(1))
    chunk = b.select(b.icmp("ne", b.at(record, WAITS), 0), num(1), several)
    launch, worker = b.alloca(i8, LAUNCH.size, align=16), b.alloca(i64, 3, align=16)
    b.fill(launch, 0, LAUNCH.size)
    extent = [b.trunc(b.at(sizes, 8 * axis), i32) for axis in range(3)]
    values = [b.at(record, WORK, ptr), slots, num(0), total, chunk, *extent, constant(i32, 0), scratch.size]
    values += [b.select(forks, threads, num(1)), num(0), num(0), b.at(record, KERNEL_NAME)]
    places = (0, 8, 16, 24, 32, 40, 44, 48, 52, 56, 64, 72, 80, LAUNCH_PLACES["name"])
    for place, value in zip(places, values, strict=True):
        b.store(value, b.gep(launch, place))
    for place, value in enumerate((scratch.arena, scratch.size, num(0))):
        b.store(value, b.gep(worker, 8 * place))
    thread = b.api("PyEval_SaveThread")
    start = b.call("now", i64, [])
    b.call(code, void, [launch, b.sub(parties, 1), worker])
    took = b.sub(b.call("now", i64, []), start)
    note_time(b, sizes, start, took)
    b.api("PyEval_RestoreThread", thread, result=void)
    ran = b.at(launch, LAUNCH_PLACES["count"])
    with b.if_(b.and_(b.icmp("sgt", ran, 0), b.not_(forks))):
        b.store(b.fdiv(b.sitofp(b.add(took, 1), f64), b.sitofp(ran, f64)), cost)
    give_scratch(b, scratch)
    fault = b.at(launch, LAUNCH_PLACES["fault"], i32)
    with b.if_(b.icmp("eq", fault, NO_MEMORY)):
        b.api("PyErr_NoMemory")
        b.ret(constant(i32, 0))
    report_fault(b, entry, sizes, fault, b.at(launch, LAUNCH_PLACES["program"]), launch)
    b.finish(YES)


def write_run(module: Module) -> None:
    """`run_host(entry, record, slots, sizes, total)`: run all programs, here or on several threads."""
    params = [(ptr, "entry"), (ptr, "record"), (ptr, "slots"), (ptr, "sizes"), (i64, "total")]
    function = module.function("run_host", i32, params)
    b = Writer(function)
    record, total = function.args[1], function.args[4]
    cost = b.load(f64, b.at(record, COST, ptr))
    known_short = b.and_(b.fcmp("ogt", cost, 0.0), b.fcmp("olt", b.fmul(cost, b.sitofp(total, f64)), float(WAKE_NS)))
    whole = b.or_(b.fcmp("olt", cost, float(FORK_NS)), b.icmp("eq", b.at(record, FORKS), 0))
    one_thread = b.or_(known_short, b.icmp("eq", b.at(record, THREADS), 1))
    alone = b.and_(b.icmp("eq", total, 1), whole)
    here = b.or_(alone, b.and_(one_thread, b.icmp("eq", b.at(record, WAITS), 0)))
    args = list(function.args)
    (done,) = b.if_else(here, lambda: [b.call("run_here", i32, args)], lambda: [b.call("run_shared", i32, args)])
    b.finish(done)
