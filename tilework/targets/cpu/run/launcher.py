"""The launcher: LLVM text of functions that Python calls as it calls functions written in C.

`launch(self, args, nargs, kwnames)` is `kernel[grid](*args)`. `self` is the tuple ``(state, grid)``, and `state` a list:
first what to call when nothing fits, then entries, each of which describes one way in which the kernel was launched:

    (kernel, keyword names, watched, contents, types, expected, record, fault, shared, names, meta)

An entry fits if the call has the same shape, every argument passes its guard, every watched dictionary still holds what it
held (``dict, key, value`` three by three; an ellipsis stands for a key that is not there), and every container of
`contents` (``list, items`` two by two) has the same size and items, where an ellipsis stands for any. Guards also put the
arguments into the slots of 8 bytes that the machine code takes (`interface.py`). The numbers are in `record` (`launcher_layout.py`); a guard
is the address of a function of `launcher_guards.py` with its settings. On a fit the kernel runs right here, with the GIL
released if it is not short, or on the threads of the pool (`pool_code.py`); `shared(slots, x, y, z)` starts those. Nothing is
ever decided against the Python path: whatever does not fit is called again there, with the same arguments.

Objects are read through Python's C API, except for the class of an object and the members of a NumPy array, whose places
the user of this module verifies first. `launch.context` holds the addresses that differ between processes.
"""

from typing import NamedTuple

from tilework.targets.cpu.run.interface import FAULT, FORK, FUEL, FULL, INTERRUPTED, LAUNCHED, NO_MEMORY, POLL, PROGRAM
from tilework.targets.cpu.run.launch_record import LAUNCH, LAUNCH_PLACES
from tilework.targets.cpu.run.launcher_guards import NULL, WRITERS, YES, Writer, is_class, num, read_int
from tilework.targets.cpu.run.launcher_layout import (
    CONTENTS,
    CONTEXT,
    EXPECTED,
    FAULT_CALL,
    FORKS,
    GUARD,
    HEADER,
    KERNEL,
    KERNEL_NAME,
    KEYWORDS,
    META,
    MOST_SLOTS,
    NAMES,
    POOL,
    RECORD,
    SHARED,
    THREADS,
    TYPES,
    WAITS,
    WATCHED,
    WORK,
)
from tilework.targets.cpu.run.pool import CHUNKS, FORK_NS, WAKE_NS
from tilework.targets.llvm.module import Block, Module
from tilework.targets.llvm.types import array, f64, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

MOST_PROGRAMS = 2**31
STACK_ARENA = 4096  # kernels that need more scratch memory get it from the heap
HOLD_NS = 10_000.0  # shorter launches keep the GIL


def launcher_text(monotonic_clock: int) -> str:
    """The whole module; `monotonic_clock` is the number of the clock for `clock_gettime`."""
    module = Module("launcher")
    module.global_variable("launch.context", array(i64, len(CONTEXT)), "zeroinitializer")
    module.global_variable("spare.memory", ptr, "null", linkage="internal")
    module.global_variable("spare.size", i64, "0", linkage="internal")
    for write in WRITERS:
        write(module)
    write_extent(module)
    write_fits(module)
    write_missed(module)
    write_meta(module)
    write_arena(module)
    write_clock(module, monotonic_clock)
    write_inline(module)
    write_shared(module)
    write_launch(module)
    write_bind(module)
    return module.text()


def write_extent(module: Module) -> None:
    """`extent(grid, sizes)`: three sizes from a tuple of one to three ints; 0 if it is anything else."""
    function = module.function("extent", i32, [(ptr, "grid"), (ptr, "sizes")], linkage="internal")
    b = Writer(function)
    grid, sizes = function.args
    b.need(is_class(b, grid, "tuple"))
    count = b.api("PyTuple_Size", grid, result=i64)
    b.need(b.icmp("sge", count, 1))
    b.need(b.icmp("sle", count, 3))
    for axis in range(3):
        b.store(num(1), b.gep(sizes, 8 * axis))
    with b.loop(0, count) as axis:
        size = b.item(grid, axis)
        b.need(is_class(b, size, "int"))
        value = read_int(b, size)
        b.need(b.icmp("ult", value, num(MOST_PROGRAMS)))
        b.store(value, b.gep(sizes, axis, i64))
    plane = b.mul(b.at(sizes, 0), b.at(sizes, 8))
    b.need(b.icmp("ule", plane, num(MOST_PROGRAMS)))
    b.need(b.icmp("ule", b.mul(plane, b.at(sizes, 16)), num(MOST_PROGRAMS)))
    b.finish(YES)


def write_fits(module: Module) -> None:
    """`fits(entry, args, nargs, kwnames, slots)`: compare a call with an entry, and fill the slots."""
    params = [(ptr, "entry"), (ptr, "args"), (i64, "nargs"), (ptr, "kwnames"), (ptr, "slots")]
    function = module.function("fits", i32, params, linkage="internal")
    b = Writer(function)
    entry, args, nargs, kwnames, slots = function.args
    record = b.api("PyBytes_AsString", b.item(entry, RECORD))
    b.need(b.icmp("eq", nargs, b.at(record, 0)))
    keywords = b.at(record, 8)
    (given,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.api("PyTuple_Size", kwnames, result=i64)])
    b.need(b.icmp("eq", given, keywords))
    names = b.item(entry, KEYWORDS)
    with b.loop(0, keywords) as position:
        b.need(b.icmp("eq", b.item(kwnames, position), b.item(names, position)))
    b.copy(slots, b.gep(record, b.at(record, 48)), b.mul(b.at(record, 16), 8))
    types, expected = b.item(entry, TYPES), b.item(entry, EXPECTED)
    with b.loop(0, b.add(nargs, keywords)) as position:
        settings = b.gep(b.gep(record, b.mul(position, GUARD.size)), HEADER.size)
        arg = b.load(ptr, b.gep(args, position, ptr))
        slot = b.gep(slots, b.sext(b.at(settings, 28, i32), i64), i64)
        values = [arg, settings, b.item(types, position), b.item(expected, position), slot]
        b.need(b.icmp("ne", b.call(b.at(settings, 0, ptr), i32, values), 0))
    watched = b.item(entry, WATCHED)
    with b.loop(0, b.api("PyTuple_Size", watched, result=i64), 3) as position:
        holder, key = b.item(watched, position), b.item(watched, b.add(position, 1))
        found = b.api("PyDict_GetItemWithError", holder, key)
        value = b.item(watched, b.add(position, 2))
        b.need(b.icmp("eq", found, b.select(b.icmp("eq", value, b.context("missing")), NULL, value)))
    contents = b.item(entry, CONTENTS)
    with b.loop(0, b.api("PyTuple_Size", contents, result=i64), 2) as position:
        holder, items = b.item(contents, position), b.item(contents, b.add(position, 1))
        size = b.api("PyTuple_Size", items, result=i64)
        b.need(b.icmp("eq", b.api("PyObject_Size", holder, result=i64), size))
        with b.loop(0, size) as index:
            item = b.item(items, index)
            with b.if_(b.icmp("ne", item, b.context("missing"))):
                b.need(b.icmp("eq", b.api("PyList_GetItem", holder, index), item))
    b.finish(YES)


def write_missed(module: Module) -> None:
    """`missed(state, grid, args, nargs, kwnames)`: the Python path, ``state[0](grid, *args, **kwargs)``."""
    params = [(ptr, "state"), (ptr, "grid"), (ptr, "args"), (i64, "nargs"), (ptr, "kwnames")]
    function = module.function("missed", ptr, params, linkage="internal")
    b = Writer(function)
    state, grid, args, nargs, kwnames = function.args
    b.api("PyErr_Clear", result=void)
    (named,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.api("PyTuple_Size", kwnames, result=i64)])
    size = b.mul(b.add(nargs, named), 8)
    memory = b.api("PyMem_Malloc", b.add(size, 16))
    with b.if_(b.is_null(memory)):
        b.ret(b.api("PyErr_NoMemory"))
    b.store(grid, b.gep(memory, 8))
    b.copy(b.gep(memory, 16), args, size)
    python = b.api("PyList_GetItem", state, num(0))
    b.keep(python)
    count = b.or_(b.add(nargs, 1), num(1 << 63))  # PY_VECTORCALL_ARGUMENTS_OFFSET
    result = b.api("PyObject_Vectorcall", python, b.gep(memory, 8), count, kwnames)
    b.drop(python)
    b.api("PyMem_Free", memory, result=void)
    b.finish(result)


def write_meta(module: Module) -> None:
    """`meta(entry, grid, args)`: what a callable grid gives for a dictionary of the arguments."""
    function = module.function("meta", ptr, [(ptr, "entry"), (ptr, "grid"), (ptr, "args")], linkage="internal")
    b = Writer(function)
    entry, grid, args = function.args
    values = b.api("PyDict_Copy", b.item(entry, META))
    b.need(b.is_object(values))
    names = b.item(entry, NAMES)
    with b.loop(0, b.api("PyTuple_Size", names, result=i64)) as position:
        name = b.item(names, position)
        with b.if_(is_class(b, name, "str")):  # None: an option, not a parameter
            b.api("PyDict_SetItem", values, name, b.load(ptr, b.gep(args, position, ptr)), result=i32)
    place = b.alloca(ptr)
    b.store(values, place)
    result = b.api("PyObject_Vectorcall", grid, place, num(1), NULL)
    b.drop(values)
    b.finish(result)


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
    cost = b.at(record, 40, ptr)
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
    code = b.call(b.at(record, 24, ptr), i32, [slots, num(0), total, *extent, scratch.arena])
    took = b.sub(b.call("now", i64, []), start)
    b.store(b.fdiv(b.sitofp(b.add(took, 1), f64), programs), cost)
    program = b.at(scratch.arena, PROGRAM)
    with b.if_(has_pool):
        b.store(NULL, running)
    with b.if_(b.is_object(thread)):
        b.api("PyEval_RestoreThread", thread, result=void)
    give_scratch(b, scratch)
    report_fault(b, entry, sizes, code, program, launch)
    b.finish(YES)


class Scratch(NamedTuple):
    """An arena on the stack, or in memory that must be given back."""

    arena: Value
    size: Value
    memory: Value
    is_large: Value


def take_scratch(b: Writer, record: Value) -> Scratch:
    """The arena of the calling thread; leaves with an exception if there is no memory."""
    size = b.at(record, 32)
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


def call_with(b: Writer, function: Value, objects: list[Value]) -> Value:
    """Call a Python function with new objects, which are given up; whether it succeeded, as an i1."""
    places = b.alloca(ptr, len(objects))
    for index, object in enumerate(objects):
        b.store(object, b.gep(places, 8 * index))
    result = b.api("PyObject_Vectorcall", function, places, num(len(objects)), NULL)
    for object in objects:
        b.drop(object)
    done = b.is_object(result)
    with b.if_(done):
        b.drop(result)
    return done


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
        packed = b.api("PyBytes_FromStringAndSize", slots, b.mul(b.at(record, 16), 8))
        extent = [b.api("PyLong_FromLongLong", b.at(sizes, 8 * axis)) for axis in range(3)]
        b.ret(b.zext(call_with(b, b.item(entry, SHARED), [packed, *extent]), i32))
    scratch = take_scratch(b, record)
    cost = b.at(record, 40, ptr)
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


def write_launch(module: Module) -> None:
    """`launch`: see the module docstring."""
    params = [(ptr, "self"), (ptr, "args"), (i64, "nargs"), (ptr, "kwnames")]
    function = module.function("launch", ptr, params)
    b = Writer(function)
    self, args, nargs, kwnames = function.args
    slots, sizes, chosen = b.alloca(i64, MOST_SLOTS, align=16), b.alloca(i64, 3), b.alloca(ptr)
    state, grid = b.item(self, 0), b.item(self, 1)
    plain = b.icmp("ne", b.call("extent", i32, [grid, sizes]), 0)
    missed, matched, ready = b.new_block("missed"), b.new_block("matched"), b.new_block("ready")
    usable = b.if_else(plain, lambda: [constant(i32, 1)], lambda: [b.api("PyCallable_Check", grid, result=i32)])[0]
    search = b.new_block("search")
    b.cond_br(b.icmp("ne", usable, 0), search, missed)
    b.resume(search)
    with b.loop(1, b.api("PyList_Size", state, result=i64)) as index:
        entry = b.api("PyList_GetItem", state, index)  # null: entries were removed by what a guard called
        there = b.new_block("there")
        b.cond_br(b.is_object(entry), there, missed)
        b.resume(there)
        b.keep(entry)
        b.store(entry, chosen)
        found = b.call("fits", i32, [entry, args, nargs, kwnames, slots])
        other = b.new_block("other")
        b.cond_br(b.icmp("ne", found, 0), matched, other)
        b.resume(other)
        b.api("PyErr_Clear", result=void)
        b.drop(entry)
    b.br(missed)

    b.enter(missed)
    b.ret(b.call("missed", ptr, [state, grid, args, nargs, kwnames]))

    b.enter(matched)
    entry = b.load(ptr, chosen)
    ask = b.new_block("ask")
    b.cond_br(plain, ready, ask)
    b.resume(ask)
    write_ask(b, entry, self, args, nargs, kwnames, slots, sizes, ready)

    b.enter(ready)
    record = b.api("PyBytes_AsString", b.item(entry, RECORD))
    total = b.mul(b.mul(b.at(sizes, 0), b.at(sizes, 8)), b.at(sizes, 16))
    cost = b.load(f64, b.at(record, 40, ptr))
    known_short = b.and_(b.fcmp("ogt", cost, 0.0), b.fcmp("olt", b.fmul(cost, b.sitofp(total, f64)), float(WAKE_NS)))
    whole = b.or_(b.fcmp("olt", cost, float(FORK_NS)), b.icmp("eq", b.at(record, FORKS), 0))
    one_thread = b.or_(known_short, b.icmp("eq", b.at(record, THREADS), 1))
    alone = b.and_(b.icmp("eq", total, 1), whole)
    here = b.or_(alone, b.and_(one_thread, b.icmp("eq", b.at(record, WAITS), 0)))

    def run() -> list[Value]:
        return list(
            b.if_else(
                here,
                lambda: [b.call("run_here", i32, [entry, record, slots, sizes, total])],
                lambda: [b.call("run_shared", i32, [entry, record, slots, sizes, total])],
            )
        )

    (done,) = b.if_else(b.icmp("eq", total, 0), lambda: [constant(i32, 1)], run)
    kernel = b.item(entry, KERNEL)
    b.keep(kernel)
    b.drop(entry)
    with b.if_(b.icmp("eq", done, 0)):
        b.drop(kernel)
        b.ret(NULL)
    b.finish(kernel)


def write_ask(
    b: Writer,
    entry: Value,
    self: Value,
    args: Value,
    nargs: Value,
    kwnames: Value,
    slots: Value,
    sizes: Value,
    ready: Block,
) -> None:
    """Call a callable grid, and compare once more: it may have changed anything.

    The Python path gets what it gave instead of the grid, so that it is called once; but a callable must not be called in
    turn, so for one the Python path starts from the grid and finds the mistake.
    """
    state, grid = b.item(self, 0), b.item(self, 1)
    result = b.call("meta", ptr, [entry, grid, args])
    with b.if_(b.is_null(result)):
        b.drop(entry)
        b.ret(NULL)
    good = b.icmp("ne", b.call("extent", i32, [result, sizes]), 0)
    (fits,) = b.if_else(
        good, lambda: [b.call("fits", i32, [entry, args, nargs, kwnames, slots])], lambda: [constant(i32, 0)]
    )
    with b.if_(b.icmp("eq", fits, 0)):
        b.drop(entry)
        is_sizes = b.icmp("eq", b.api("PyCallable_Check", result, result=i32), 0)
        given = b.call("missed", ptr, [state, b.select(is_sizes, result, grid), args, nargs, kwnames])
        b.drop(result)
        b.ret(given)
    b.drop(result)
    b.br(ready)


def write_bind(module: Module) -> None:
    """`bind(state, grid)`: the function `kernel[grid]`."""
    function = module.function("bind", ptr, [(ptr, "state"), (ptr, "grid")])
    b = Writer(function)
    state, grid = function.args
    both = b.api("PyTuple_New", num(2))
    b.need(b.is_object(both))
    for index, object in enumerate((state, grid)):
        b.keep(object)
        b.api("PyTuple_SetItem", both, num(index), object, result=i32)
    made = b.api("PyCFunction_NewEx", b.context("definition"), both, NULL)
    b.drop(both)
    b.finish(made)
