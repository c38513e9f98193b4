"""The launch of a kernel on the host or on a GPU, and its line in the log of launches."""

from collections.abc import Callable
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
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.types import f64, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

# ---- the log of launches: the native launcher writes a line for each while a listener is registered
#
# `log` of the context is the address of a block (`LOG` of `layout.py`), or 0. A line (`LINE_FIELDS`) has the identity
# of the entry, the hash of its integers, when it was called and returned, the thread, the grid, and what the device
# reported: when its programs began, how long they took, which two events are around them. When the buffer is full,
# Python is called to empty it.
#
# The block also says which launches fit an entry: all as usual, those with the grid and the integers that it was made
# for (so that their work is that of the launch which the entry was made from), or none.


SIGN = 1 << 63


def signed(value: int) -> Value:
    """An unsigned 64-bit constant, as LLVM text writes it."""
    return num(value - (1 << 64) if value & SIGN else value)


@routine("i64 mark(ptr record, ptr slots, ptr sizes)")
def mark(b: Writer, record: Value, slots: Value, sizes: Value) -> None:
    """See `mark_of` of the layout."""
    mixed = b.alloca(i64)
    b.store(signed(layout.MARK_START), mixed)

    def mix(value: Value) -> None:
        b.store(b.mul(b.xor(b.load(i64, mixed), value), num(layout.MARK_FACTOR)), mixed)

    for axis in range(3):
        mix(b.at(sizes, 8 * axis))
    integers = b.gep(record, b.at(record, layout.INTEGERS_AT))
    with b.loop(0, b.at(record, layout.INTEGER_COUNT)) as index:
        mix(b.load(i64, b.gep(slots, b.load(i64, b.gep(integers, index, i64)), i64)))
    b.finish(b.load(i64, mixed))


def need_loggable(b: Writer, record: Value, slots: Value, sizes: Value) -> None:
    """Leave with "does not fit" if the log needs launches like this one to take the Python path."""
    log = b.context("log")
    with b.if_(b.is_object(log)):
        fits = b.at(log, layout.LOG_FITS)
        b.need(b.icmp("ne", fits, layout.NONE_FIT))
        is_known = b.icmp("sge", b.at(sizes, 0), 0)
        with b.if_(b.and_(b.icmp("eq", fits, layout.SAME_INTEGERS_FIT), is_known)):
            made_of = b.at(record, layout.MARK)
            with b.if_(b.icmp("ne", made_of, layout.ANY_INTEGERS)):
                b.need(b.icmp("eq", b.run("mark", record, slots, sizes), made_of))


@routine("void log_line(ptr record, ptr slots, ptr sizes, i64 called)")
def log_line(b: Writer, record: Value, slots: Value, sizes: Value, called: Value) -> None:
    """Write the line of a launch. Needs the GIL."""
    log = b.context("log")
    with b.if_(b.is_null(log)):
        b.ret()
    with b.if_(b.icmp("uge", b.at(log, layout.LOG_NEXT), b.at(log, layout.LOG_END))):
        with b.if_(b.icmp("eq", call_with(b, b.at(log, layout.LOG_FULL, ptr), []), 0)):
            b.api("PyErr_WriteUnraisable", b.at(log, layout.LOG_FULL, ptr), result=void)
        with b.if_(
            b.or_(b.is_null(b.context("log")), b.icmp("uge", b.at(log, layout.LOG_NEXT), b.at(log, layout.LOG_END)))
        ):
            b.ret()
    line = b.at(log, layout.LOG_NEXT, ptr)
    values = {
        "identity": b.at(record, layout.IDENTITY),
        "mark": b.run("mark", record, slots, sizes),
        "called": called,
        "returned": b.run("now"),
        "thread": b.api("PyThread_get_thread_ident", result=i64),
        "x": b.at(sizes, 0),
        "y": b.at(sizes, 8),
        "z": b.at(sizes, 16),
        "start": b.at(sizes, layout.STARTED_AT),
        "took": b.at(sizes, layout.TOOK_AT),
        "events": b.at(sizes, layout.EVENTS_AT),
    }
    for index, name in enumerate(layout.LINE_FIELDS):
        b.store(values[name], b.gep(line, 8 * index))
    b.store(b.gep(line, layout.LINE), b.gep(log, layout.LOG_NEXT))
    b.ret()


class Events(NamedTuple):
    """Two events of the log, or NULL, and how to record one. Read with the GIL: the log may end while the driver is
    called.
    """

    pair: Value
    record: Value

    @classmethod
    def taken(cls, b: Writer, sizes: Value) -> "Events":
        """Reserve two events for a launch, if there is a log that has some left; their address goes into the line."""
        pair, record = b.alloca(ptr), b.alloca(ptr)
        b.store(NULL, pair)
        b.store(NULL, record)
        log = b.context("log")
        with (
            b.if_(b.is_object(log)),
            b.if_(b.icmp("ult", b.at(log, layout.LOG_EVENTS), b.at(log, layout.LOG_EVENTS_END))),
        ):
            next = b.at(log, layout.LOG_EVENTS, ptr)
            b.store(next, pair)
            b.store(b.at(log, layout.LOG_RECORD, ptr), record)
            b.store(b.gep(next, 16), b.gep(log, layout.LOG_EVENTS))
        b.store(b.load(ptr, pair), b.gep(sizes, layout.EVENTS_AT))
        return cls(b.load(ptr, pair), b.load(ptr, record))

    def put(self, b: Writer, index: int, stream: Value) -> None:
        """Record one of the two in a stream."""
        with b.if_(b.is_object(self.pair)):
            b.call(self.record, i32, [b.at(self.pair, 8 * index, ptr), stream])


def clear_log_fields(b: Writer, sizes: Value) -> None:
    """Initialise the fields of the log that the device may fill in."""
    for offset, value in ((layout.STARTED_AT, num(0)), (layout.TOOK_AT, constant(i64, -1)), (layout.EVENTS_AT, num(0))):
        b.store(value, b.gep(sizes, offset))


# ---- the launch on the host: in the calling thread, or on the threads of the pool
#
# A short launch keeps the GIL, a long one releases it. Fields of the record: `cost` is the address of a double, the
# nanoseconds that one program took last time; `work` is the code that each thread of a large grid runs; `forks` says
# that its loop nests can be split between threads (`fork.py`); `pool` is the address of `Pool.fields` (the address of
# `pool_launch`, or 0 before the pool exists, the number of workers and so on); `name` is published while the kernel
# runs, for messages about crashes. Programs that may wait for each other (`waits`) run in threads of their own, never
# with the GIL. Functions of Python: `fault(code, program, x, y, z)` raises the error of a program that failed, and
# `share(slots, x, y, z)` runs a grid before the pool has its threads.


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


# ---- the launch of a kernel on a GPU: get the stream, and call `cuLaunchKernelEx` or `hipModuleLaunchKernel`
#
# The current stream comes from torch's `current_work_stream` (DLPack), if the record has it, else from Python. An entry
# is for one context (on AMD GPUs: one device). A thread that uses another device, or none yet, switches to the context
# for the launch if the arguments choose the device (their guards have checked that the memory is there); else it takes
# the Python path. The driver receives the addresses of the slots; its call may wait for room in the stream, and runs
# without the GIL. Functions of Python: `stream(device)` returns the current stream, `scratch(x, y, z, stream)` the
# addresses of the scratch memory and the objects that keep it alive until the driver has been called, and `fault(code,
# x, y, z)` raises the error of a failed call.


INVALID_VALUE = 1
LARGEST = layout.LARGEST_X, layout.LARGEST_YZ, layout.LARGEST_YZ


@routine("i32 ready_gpu(ptr record)")
def ready_gpu(b: Writer, record: Value) -> None:
    """Return 1 if this thread uses the context of the entry, or may switch to it."""
    with b.if_(b.icmp("eq", b.at(record, layout.SET_CONTEXT), 0)):
        current = b.alloca(i64)
        b.store(num(0), current)
        b.need(b.icmp("eq", b.call(b.at(record, layout.GET_CONTEXT, ptr), i32, [current]), 0))
        b.need(b.icmp("eq", b.load(i64, current), b.at(record, layout.DEVICE_CONTEXT)))
    b.finish(YES)


def call_driver(b: Writer, record: Value, config: Value, addresses: Value) -> Value:
    """Call the driver; its result."""
    call, function = b.at(record, layout.LAUNCH_CALL, ptr), b.at(record, layout.FUNCTION, ptr)

    def by_config() -> list[Value]:
        """As `cuLaunchKernelEx` is called."""
        return [b.call(call, i32, [config, function, addresses, NULL])]

    def by_values() -> list[Value]:
        """As `hipModuleLaunchKernel` is; that for cooperative grids does not look at the last argument."""
        values = [b.at(config, offset, i32) for offset in (*range(0, layout.CONFIG_SHARED, 4), layout.CONFIG_SHARED)]
        stream = b.at(config, layout.CONFIG_STREAM, ptr)
        return [b.call(call, i32, [function, *values, stream, addresses, NULL])]

    (code,) = b.if_else(b.icmp("eq", b.at(record, layout.BY_VALUES), 0), by_config, by_values)
    return code


@routine("i32 run_gpu(ptr entry, ptr record, ptr slots, ptr sizes, i64 total)")
def run_gpu(b: Writer, entry: Value, record: Value, slots: Value, sizes: Value, _total: Value) -> None:
    """Put the kernel into the stream; 0 with an exception on failure."""
    handle = current_stream(b, entry, record)
    extent = [b.at(sizes, 8 * axis) for axis in range(3)]
    blocks = [b.mul(extent[0], b.at(record, layout.CLUSTER)), *extent[1:]]
    for size, most in zip(blocks, LARGEST, strict=True):
        with b.if_(b.icmp("ugt", size, num(most))):
            fail(b, entry, constant(i32, INVALID_VALUE), extent)
            b.ret(constant(i32, 0))
    config, addresses = b.alloca(i8, layout.CONFIG_BYTES, align=16), b.alloca(ptr, layout.MOST_SLOTS)
    b.copy(config, b.gep(record, layout.CONFIG), num(layout.CONFIG_BYTES))
    for axis, size in enumerate(blocks):
        b.store(b.trunc(size, i32), b.gep(config, 4 * axis))
    b.store(handle, b.gep(config, layout.CONFIG_STREAM))
    offsets, count = b.gep(record, layout.PARAMETERS), b.at(record, layout.PARAMETER_COUNT)
    b.copy_fours(addresses, offsets, count, b.ptrtoint(slots, i64))
    allocate, kept = b.item(b.item(entry, layout.DEVICE_CALL), 2), b.alloca(ptr)
    b.store(NULL, kept)
    with b.if_(b.icmp("ne", allocate, b.context("none"))):
        b.store(scratch(b, record, allocate, [*extent, handle], slots), kept)
    set, here = b.at(record, layout.SET_CONTEXT, ptr), b.at(record, layout.DEVICE_CONTEXT)
    before = b.alloca(i64)  # the driver of AMD's GPUs writes half of it
    b.store(b.select(b.is_object(set), num(0), here), before)
    with b.if_(b.is_object(set)):
        b.call(b.at(record, layout.GET_CONTEXT, ptr), i32, [before])
    events, stream = Events.taken(b, sizes), b.inttoptr(handle, ptr)

    def start() -> Value:
        events.put(b, 0, stream)
        code = call_driver(b, record, config, addresses)
        events.put(b, 1, stream)
        return code

    code = in_context(b, set, here, b.load(i64, before), start)
    with b.if_(b.is_object(b.load(ptr, kept))):
        b.drop(b.load(ptr, kept))
    with b.if_(b.icmp("ne", code, 0)):
        fail(b, entry, code, extent)
        b.ret(constant(i32, 0))
    b.finish(YES)


def current_stream(b: Writer, entry: Value, record: Value, otherwise: Block | None = None) -> Value:
    """Return the current stream; leave with the exception of torch or of Python."""
    get_stream = b.at(record, layout.GET_STREAM, ptr)

    def from_torch() -> list[Value]:
        """From torch."""
        kind, device = (b.trunc(b.at(record, at), i32) for at in (layout.STREAM_KIND, layout.DEVICE_INDEX))
        stream = b.alloca(i64)
        b.need(b.icmp("eq", b.call(get_stream, i32, [kind, device, stream]), 0), otherwise)
        return [b.load(i64, stream)]

    def through_python() -> list[Value]:
        call = b.item(entry, layout.DEVICE_CALL)
        return [b.take_int(b.call_object(b.item(call, 0), [b.item(call, 1)]), otherwise)]

    (handle,) = b.if_else(b.is_object(get_stream), from_torch, through_python)
    return handle


def in_context(b: Writer, set: Value, here: Value, before: Value, start: Callable[[], Value]) -> Value:
    """Call the driver without the GIL, in the context of the entry; its result."""
    is_elsewhere = b.icmp("ne", before, here)
    with b.if_(is_elsewhere):
        b.call(set, i32, [b.inttoptr(here, ptr)])
    thread = b.api("PyEval_SaveThread")
    code = start()
    b.api("PyEval_RestoreThread", thread, result=void)
    with b.if_(is_elsewhere):
        b.call(set, i32, [b.inttoptr(before, ptr)])
    return code


def scratch(b: Writer, record: Value, allocate: Value, values: list[Value], slots: Value) -> Value:
    """Put the addresses of scratch memory into the last two slots; return the object that keeps it alive. Leave with
    the allocator's exception.
    """
    objects = [b.api("PyLong_FromLongLong", value) for value in values[:3]]
    objects.append(b.api("PyLong_FromUnsignedLongLong", values[3]))
    found = b.call_object(allocate, objects)
    for object in objects:
        b.drop(object)
    b.need(b.is_object(found))
    first = b.sub(b.at(record, layout.PARAMETER_COUNT), 2)
    for index in range(2):
        offset = b.load(i64, b.gep(b.gep(record, layout.PARAMETERS), b.add(first, index), i64))
        address = b.api("PyLong_AsUnsignedLongLongMask", b.item(found, index), result=i64)
        b.store(address, b.gep(slots, offset))
    return found


def fail(b: Writer, entry: Value, code: Value, extent: list[Value]) -> None:
    """Raise the exception of a result."""
    values = [b.api("PyLong_FromLongLong", value) for value in (b.sext(code, i64), *extent)]
    call_with(b, b.item(entry, layout.FAULT_CALL), values)
