"""The launcher: LLVM text of functions that Python calls as it calls functions written in C.

`launch(self, args, nargs, kwnames)` is `kernel[grid](*args)`. `self` is the tuple ``(state, grid)``, and `state` a
list: first what to call when nothing fits, then the index of the entries if they are many, or else the
entries, each of which describes one way in which the kernel was launched:

    (kernel, keyword names, watched, contents, record, fault, device call, names, meta, kept)

An entry fits if the call has the same number of arguments and the same keywords, every guard accepts its argument,
every watched dictionary still holds the same values (``key, value`` pairs, in groups of one dictionary each; an
ellipsis means that the key is absent), and every container of `contents` (``list, items`` pairs) has the same size and
items, where an ellipsis means any item. The lists of hooks must be empty. A dictionary whose version has not changed is
not read again. Guards also put the arguments into the 8-byte slots that the device takes. `record` holds all integers
(`layout.py`); a guard is the address of a function of `guards.py` with its settings. If an entry fits, the routine of
its device runs the kernel (`device_launch.py`). If none fits, the Python path is called with the same
arguments.

Objects are read through Python's C API, except for the class and the reference count of an object, ints of one digit
and the version of a dictionary, whose layout `machine.py` verifies first, and the fields of NumPy arrays. Torch tensors
are read through DLPack. `launch.context` holds the addresses that differ between processes.
"""

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code import descriptor_guards  # noqa: F401  # pyright: ignore[reportUnusedImport]  registers guards
from tilework.runtime.launch.native.code.device_launch import clear_log_fields, need_loggable
from tilework.runtime.launch.native.code.guards import (
    GUARDS,
    YES,
    Host,
    Writer,
    is_class,
    need_guards,
    read_small_int,
    routine,
)
from tilework.runtime.launch.python import specialize as facts
from tilework.targets.cpu.run.machine_code import NULL, memory, num
from tilework.targets.llvm.module import Block, Module
from tilework.targets.llvm.types import array, f64, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

MOST_PROGRAMS = 2**31


def launcher_text(monotonic_clock: int, tuple_items: int) -> str:
    """The whole module; `monotonic_clock` is the id of the clock for `clock_gettime`, `tuple_items` where tuples keep
    items.
    """
    module, host = Module("launcher"), Host(monotonic_clock, tuple_items)
    module.global_variable("launch.context", array(i64, len(layout.CONTEXT)), "zeroinitializer")
    module.global_variable("spare.memory", ptr, "null", linkage="internal")
    module.global_variable("spare.size", i64, "0", linkage="internal")
    for functions in (routine, GUARDS):
        functions.write(module, lambda function: Writer(function, host), layout.EXPORTS)
    return module.text()


@routine("i32 extent(ptr grid, ptr sizes)")
def extent(b: Writer, grid: Value, sizes: Value) -> None:
    """Store the three sizes of a grid, a tuple of one to three ints; return 0 for any other object."""
    b.need(is_class(b, grid, "tuple"))
    count = b.size(grid)
    b.need(b.icmp("sge", count, 1))
    b.need(b.icmp("sle", count, 3))
    for axis in range(3):
        b.store(num(1), b.gep(sizes, 8 * axis))
    with b.loop(0, count) as axis:
        size = b.item(grid, axis)
        b.need(is_class(b, size, "int"))
        value = read_small_int(b, size)
        b.need(b.icmp("ult", value, num(MOST_PROGRAMS)))
        b.store(value, b.gep(sizes, axis, i64))
    plane = b.mul(b.at(sizes, 0), b.at(sizes, 8))
    b.need(b.icmp("ule", plane, num(MOST_PROGRAMS)))
    b.need(b.icmp("ule", b.mul(plane, b.at(sizes, 16)), num(MOST_PROGRAMS)))
    b.finish(YES)


@routine("i32 fits(ptr entry, ptr record, ptr args, i64 nargs, ptr kwnames, ptr frame)")
def fits(b: Writer, entry: Value, record: Value, args: Value, nargs: Value, kwnames: Value, frame: Value) -> None:
    """Return 1 if a call fits an entry, and fill the slots."""
    b.need(b.icmp("eq", nargs, b.at(record, layout.POSITIONAL)))
    keywords = b.at(record, layout.KEYWORD_COUNT)
    (given,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.size(kwnames)])
    b.need(b.icmp("eq", given, keywords))
    names = b.item(entry, layout.KEYWORDS)
    with b.loop(0, keywords) as position:
        b.need(b.icmp("eq", b.item(kwnames, position), b.item(names, position)))
    b.copy_fours(frame, b.gep(record, b.at(record, layout.SLOTS_AT)), b.at(record, layout.SLOT_COUNT))
    objects = b.gep(frame, 8 * layout.OBJECTS)
    b.copy_words(objects, args, b.add(nargs, keywords))
    guards = b.gep(record, b.at(record, layout.GUARDS_AT))
    need_guards(b, guards, b.mul(b.at(record, layout.GUARD_COUNT), layout.GUARD.size), frame)
    need_unchanged(b, entry, record)
    need_loggable(b, record, frame, b.gep(frame, 8 * layout.FRAME))
    ready = b.at(record, layout.READY, ptr)
    (usable,) = b.if_else(b.is_null(ready), lambda: [YES], lambda: [b.call(ready, i32, [record])])
    b.need(b.icmp("ne", usable, 0))
    b.finish(YES)


def record_of(b: Writer, entry: Value) -> Value:
    return b.at(b.item(entry, layout.RECORD), layout.BYTES_START, ptr)


@routine("ptr first_fit(ptr entries, i64 first, ptr args, i64 nargs, ptr kwnames, ptr frame)")
def first_fit(b: Writer, entries: Value, first: Value, *call: Value) -> None:
    """Return the first entry of a list that a call fits, a new reference, or NULL."""
    with b.loop(first, b.size(entries)) as index:
        b.need(b.icmp("slt", index, b.size(entries)))  # what a guard called may have removed entries
        entry = b.load(ptr, b.gep(b.at(entries, layout.LIST_ITEMS, ptr), index, ptr))
        b.keep_here(entry)
        with b.if_(b.icmp("ne", b.run("fits", entry, record_of(b, entry), *call), 0)):
            b.ret(entry)
        b.api("PyErr_Clear", result=void)
        b.drop(entry)
    b.finish(NULL)


@routine("ptr missed(ptr state, ptr grid, ptr args, i64 nargs, ptr kwnames)")
def missed(b: Writer, state: Value, grid: Value, args: Value, nargs: Value, kwnames: Value) -> None:
    """The Python path, ``state[0](grid, *args, **kwargs)``."""
    b.api("PyErr_Clear", result=void)
    (named,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.size(kwnames)])
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


@routine("ptr meta(ptr entry, ptr grid, ptr args)")
def meta(b: Writer, entry: Value, grid: Value, args: Value) -> None:
    """Call a callable grid with a dictionary of the arguments."""
    values = b.api("PyDict_Copy", b.item(entry, layout.META))
    b.need(b.is_object(values))
    names = b.item(entry, layout.NAMES)
    with b.loop(0, b.size(names)) as position:
        name = b.item(names, position)
        with b.if_(is_class(b, name, "str")):  # None: an option, not a parameter
            b.api("PyDict_SetItem", values, name, b.load(ptr, b.gep(args, position, ptr)), result=i32)
    result = b.call_object(grid, [values])
    b.drop(values)
    b.finish(result)


@routine("ptr launch(ptr self, ptr args, i64 nargs, ptr kwnames)")
def launch(b: Writer, self: Value, *call: Value) -> None:
    """See the module docstring."""
    b.finish(b.run("launch_with", b.item(self, 0), b.item(self, 1), *call))


@routine("ptr launch_with(ptr state, ptr grid, ptr args, i64 nargs, ptr kwnames)")
def launch_with(b: Writer, state: Value, grid: Value, args: Value, nargs: Value, kwnames: Value) -> None:
    """Run the first entry that fits, or the Python path."""
    slots, chosen = b.alloca(i64, layout.FRAME_WORDS, align=64), b.alloca(ptr)
    sizes = b.gep(slots, 8 * layout.FRAME)
    (called,) = b.if_else(b.is_object(b.context("log")), lambda: [b.run("now")], lambda: [num(0)])
    plain = b.icmp("ne", b.run("extent", grid, sizes), 0)
    with b.if_(b.icmp("eq", plain, 0)):
        b.store(num(-1), sizes)
    missed, matched, ready = b.new_block("missed"), b.new_block("matched"), b.new_block("ready")
    usable = b.if_else(plain, lambda: [constant(i32, 1)], lambda: [b.api("PyCallable_Check", grid, result=i32)])[0]
    b.need(b.icmp("ne", usable, 0), missed)
    call = [args, nargs, kwnames]
    first = b.run("first_fit", state, num(layout.FIRST_ENTRY), *call, slots)
    b.store(first, chosen)
    b.need(b.is_null(first), matched)
    index = b.load(ptr, b.gep(b.at(state, layout.LIST_ITEMS, ptr), 8 * layout.INDEX))
    b.need(is_class(b, index, "tuple"), missed)
    entries = b.run("entries_of", index, *call)
    with b.if_(b.is_object(entries)):
        b.store(b.run("first_fit", entries, num(0), *call, slots), chosen)
        b.drop(entries)
    b.need(b.is_null(b.load(ptr, chosen)), matched)
    b.br(missed)

    b.enter(missed)
    b.ret(b.run("missed", state, grid, args, nargs, kwnames))

    b.enter(matched)
    entry = b.load(ptr, chosen)
    record = record_of(b, entry)
    b.need(b.not_(plain), ready)
    write_callable_grid(b, entry, record, slots, sizes, ready)

    b.enter(ready)
    total = b.mul(b.mul(b.at(sizes, 0), b.at(sizes, 8)), b.at(sizes, 16))
    run = b.at(record, layout.RUN, ptr)
    clear_log_fields(b, sizes)
    (done,) = b.if_else(
        b.icmp("eq", total, 0), lambda: [YES], lambda: [b.call(run, i32, [entry, record, slots, sizes, total])]
    )
    kernel = b.item(entry, layout.KERNEL)
    b.keep_here(kernel)
    with b.if_(b.icmp("eq", done, 0)):
        b.drop(entry)
        b.drop(kernel)
        b.ret(NULL)
    with b.if_(b.and_(b.is_object(b.context("log")), b.icmp("ne", total, 0))):
        b.run("log_line", record, slots, sizes, called)
    b.drop_here(entry)
    b.finish(kernel)


def write_callable_grid(b: Writer, entry: Value, record: Value, slots: Value, sizes: Value, ready: Block) -> None:
    """Call a callable grid, and compare the arguments again, because the call may have changed anything.

    If the entry no longer fits, the launch starts over with the sizes that the callable returned, so that it is called
    once. If it returned another callable, or raised a KeyError, the Python path starts from the grid and reports the
    mistake: it names the parameter that the grid misspells.
    """
    state, grid, args, nargs, kwnames = b.function.args
    result = b.run("meta", entry, grid, args)
    with b.if_(b.is_null(result)):
        b.drop(entry)
        with b.if_(b.icmp("ne", b.api("PyErr_ExceptionMatches", b.context("key_error"), result=i32), 0)):
            b.ret(b.run("missed", state, grid, args, nargs, kwnames))
        b.ret(NULL)
    good = b.icmp("ne", b.run("extent", result, sizes), 0)
    (fits,) = b.if_else(
        good, lambda: [b.run("fits", entry, record, args, nargs, kwnames, slots)], lambda: [constant(i32, 0)]
    )
    with b.if_(b.icmp("eq", fits, 0)):
        b.drop(entry)
        b.api("PyErr_Clear", result=void)
        is_sizes = b.icmp("eq", b.api("PyCallable_Check", result, result=i32), 0)
        call = [args, nargs, kwnames]
        (given,) = b.if_else(
            is_sizes,
            lambda: [b.run("launch_with", state, result, *call)],
            lambda: [b.run("missed", state, grid, *call)],
        )
        b.drop(result)
        b.ret(given)
    b.drop(result)
    b.br(ready)


@routine("ptr bind(ptr self, ptr grid)")
def bind(b: Writer, holder: Value, grid: Value) -> None:
    """Return the function `kernel[grid]`; `self` is a list of the state and of the last launch over a tuple."""
    is_tuple = is_class(b, grid, "tuple")  # anything else may keep large objects alive
    with b.if_(is_tuple):
        last = b.api("PyList_GetItem", holder, num(1))
        is_none = b.icmp("eq", last, b.context("none"))
        (of,) = b.if_else(is_none, lambda: [NULL], lambda: [b.item(b.api("PyCFunction_GetSelf", last), 1)])
        with b.if_(b.icmp("eq", of, grid)):
            b.keep(last)
            b.ret(last)
    both = b.api("PyTuple_New", num(2))
    b.need(b.is_object(both))
    for index, object in enumerate((b.api("PyList_GetItem", holder, num(0)), grid)):
        b.keep(object)
        b.api("PyTuple_SetItem", both, num(index), object, result=i32)
    made = b.api("PyCFunction_NewEx", b.context("definition"), both, NULL)
    b.drop(both)
    with b.if_(b.and_(is_tuple, b.is_object(made))):
        b.keep(made)
        b.api("PyList_SetItem", holder, num(1), made, result=i32)
    b.finish(made)


# ---- bound launches: `kernel.bind(...)` is called with the arguments that change


@routine("ptr launch_bound(ptr self, ptr args, i64 nargs, ptr kwnames)")
def launch_bound(b: Writer, self: Value, args: Value, nargs: Value, kwnames: Value) -> None:
    """Launch with all arguments, bound and given. A call that is not simply values for names is left to Python.

    `self` is ``(state, Python, names, values, keywords)``; the grid is the last of the values.
    """
    names, values, keywords = (
        b.item(self, at) for at in (layout.BOUND_NAMES, layout.BOUND_VALUES, layout.BOUND_KEYWORDS)
    )
    (named,) = b.if_else(is_class(b, keywords, "tuple"), lambda: [b.size(keywords)], lambda: [num(0)])
    last = b.sub(b.size(names), 1)
    positional = b.sub(last, named)
    merged, other = b.alloca(ptr, layout.MOST_OBJECTS), b.new_block("other")
    found = b.alloca(i64)

    b.need(b.icmp("sle", nargs, positional), other)
    with b.loop(nargs, b.add(last, 1)) as index:
        b.store(b.item(values, index), b.gep(merged, index, ptr))
    with b.loop(0, nargs) as index:
        b.store(b.load(ptr, b.gep(args, index, ptr)), b.gep(merged, index, ptr))
    (given,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.size(kwnames)])
    with b.loop(0, given) as index:
        name, given_at = b.item(kwnames, index), b.add(nargs, index)
        b.store(num(-1), found)
        with b.loop(nargs, b.add(last, 1)) as at, b.if_(b.icmp("eq", b.item(names, at), name)):
            b.store(at, found)
        position = b.load(i64, found)
        b.need(b.icmp("sge", position, 0), other)
        b.store(b.load(ptr, b.gep(args, given_at, ptr)), b.gep(merged, position, ptr))
    grid = b.load(ptr, b.gep(merged, last, ptr))
    shape = b.select(b.icmp("eq", named, 0), NULL, keywords)
    b.ret(b.run("launch_with", b.item(self, layout.STATE), grid, merged, positional, shape))
    b.enter(other)
    b.finish(b.api("PyObject_Vectorcall", b.item(self, layout.BY_PYTHON), args, nargs, kwnames))


# ---- the inputs of the Python path beside the arguments: an entry is valid while they are unchanged


def need_unchanged(b: Writer, entry: Value, record: Value, otherwise: Block | None = None) -> None:
    """Continue if an entry is still valid. No dictionary is compared while Python reports no change."""
    changes = b.ptrtoint(b.context("changes"), i64)
    seen = b.load(i64, b.gep(record, b.at(record, layout.GROUPS_AT)))
    with b.if_(b.or_(b.icmp("eq", changes, 0), b.icmp("ne", changes, seen))):
        b.need(b.icmp("ne", b.run("as_watched", entry, record), 0), otherwise)
    empties = b.gep(record, b.at(record, layout.EMPTIES_AT))
    with b.loop(0, b.at(record, layout.EMPTY_COUNT)) as index:
        b.need(b.icmp("eq", b.at(b.load(ptr, b.gep(empties, index, ptr)), layout.SIZE), 0), otherwise)
    contents = b.item(entry, layout.CONTENTS)
    with b.loop(0, b.size(contents), 2) as position:
        holder, items = b.item(contents, position), b.item(contents, b.add(position, 1))
        size = b.size(items)
        b.need(b.icmp("eq", b.api("PyObject_Size", holder, result=i64), size), otherwise)
        with b.loop(0, size) as index:
            item = b.item(items, index)
            with b.if_(b.icmp("ne", item, b.context("missing"))):
                b.need(b.icmp("eq", b.api("PyList_GetItem", holder, index), item), otherwise)


@routine("i32 as_watched(ptr entry, ptr record)")
def as_watched(b: Writer, entry: Value, record: Value) -> None:
    """Return 1 if every watched dictionary holds what it held.

    A dictionary whose version has not changed is not read. Count and version are read before the dictionary, because
    comparing keys may call code that changes anything.
    """
    seen = b.gep(record, b.at(record, layout.GROUPS_AT))
    watched, groups = b.item(entry, layout.WATCHED), b.gep(seen, 8)
    changes = b.ptrtoint(b.context("changes"), i64)
    unversioned = b.is_null(b.context("versions"))
    with b.loop(0, b.mul(b.at(record, layout.GROUP_COUNT), layout.GROUP.size), layout.GROUP.size) as offset:
        group = b.gep(groups, offset)
        holder = b.load(ptr, group)
        version = b.at(holder, layout.DICT_VERSION)
        with b.if_(b.or_(unversioned, b.icmp("ne", version, b.at(group, 8)))):
            with b.loop(b.at(group, 16), b.at(group, 24), 2) as position:
                found = b.api("PyDict_GetItemWithError", holder, b.item(watched, position))
                value = b.item(watched, b.add(position, 1))
                b.need(b.icmp("eq", found, b.select(b.icmp("eq", value, b.context("missing")), NULL, value)))
            b.store(version, b.gep(group, 8))
    b.store(changes, seen)
    b.finish(YES)


@routine("i32 dictionary_changes(i32 event, ptr dictionary, ptr key, ptr value)")
def dictionary_changes(b: Writer, *about: Value) -> None:
    """The callback of Python (since 3.12) before a watched dictionary changes."""
    changes = b.gep(memory("launch.context"), 8 * layout.CONTEXT.index("changes"))
    b.store(b.add(b.load(i64, changes), 1), changes)
    b.finish(constant(i32, 0))


# ---- the key of a call, by which the entries of a kernel with many specialisations are found
#
# Calls that fit the same entry have the same key, as far as the facts of the parameters say (`python/specialize.py`);
# calls with the same key may still differ, and the guards of the entry decide. An index is ``(entries by key, facts of
# the parameters, facts by name)``; keywords that are no parameters are options.


SPREAD = 0x9E3779B97F4A7C15  # 2^64 by the golden ratio
POSITIVE, NEGATIVE = 8, 16  # integers of more than 32 bits; the facts themselves are the other bits


def mixed(b: Writer, *values: Value) -> Value:
    """Return a 64-bit hash of some 64-bit values."""
    found = num(0)
    for value in values:
        both = b.mul(b.xor(found, value), num(SPREAD))
        found = b.xor(both, b.lshr(both, 29))
    return found


def if_fact(b: Writer, known: Value, fact: int, value: Value) -> Value:
    """A value if the fact counts, else 0."""
    return b.select(b.icmp("ne", b.and_(known, fact), 0), value, num(0))


@routine("i64 argument_hash(ptr object, i64 facts)")
def argument_hash(b: Writer, object: Value, known: Value) -> None:
    """Return the 64 bits that an argument contributes to a key."""
    cls = b.at(object, layout.TYPE)
    with b.if_(is_class(b, object, "int")):
        value = read_small_int(b, object)
        is_one = b.icmp("eq", value, 1)
        one = b.select(is_one, num(facts.ONE), num(0))
        multiple = b.select(b.icmp("eq", b.and_(value, 15), 0), num(facts.MULTIPLE), num(0))
        large = b.select(b.icmp("sgt", value, 2**31 - 1), num(POSITIVE), num(0))
        width = b.select(b.icmp("slt", value, -(2**31)), num(NEGATIVE), large)
        parts = ((facts.VALUE, value), (facts.ONE, one), (facts.MULTIPLE, multiple), (facts.WIDTH, width))
        b.ret(mixed(b, cls, *(if_fact(b, known, fact, part) for fact, part in parts)))
    with b.if_(is_class(b, object, "float")):
        bits = b.bitcast(b.api("PyFloat_AsDouble", object, result=f64), i64)
        b.ret(mixed(b, cls, if_fact(b, known, facts.VALUE, bits)))
    with b.if_(is_class(b, object, "str")):
        b.ret(mixed(b, cls, b.api("PyObject_Hash", object, result=i64)))
    with b.if_(is_class(b, object, "tuple")):
        inner = b.select(b.icmp("ne", b.and_(known, facts.VALUE), 0), num(facts.VALUE), num(facts.ITEM))
        hash = b.alloca(i64)
        b.store(mixed(b, cls, b.size(object)), hash)
        with b.loop(0, b.size(object)) as index:
            b.store(mixed(b, b.load(i64, hash), b.run("argument_hash", b.item(object, index), inner)), hash)
        b.ret(b.load(i64, hash))
    with b.if_(is_class(b, object, "array")):
        address = if_fact(b, known, facts.MULTIPLE, b.and_(b.at(object, layout.ARRAY_DATA), 15))
        b.ret(mixed(b, cls, b.at(object, layout.ARRAY_DTYPE), is_zero(b, address)))
    with b.if_(b.or_(is_class(b, object, "tensor"), is_class(b, object, "parameter"))):
        found = b.alloca(i64, layout.DL_WORDS)
        b.fill(found, 0, 8 * layout.DL_WORDS)
        with b.if_(b.icmp("ne", b.call(b.context("describe"), i32, [object, found]), 0)):
            b.api("PyErr_Clear", result=void)
            b.ret(cls)
        start = b.add(b.at(found, layout.DL_DATA), b.at(found, layout.DL_OFFSET))
        address = if_fact(b, known, facts.MULTIPLE, b.and_(start, 15))
        element = b.zext(b.at(found, layout.DL_ELEMENT, i32), i64)
        b.ret(mixed(b, cls, element, b.at(found, layout.DL_KIND), is_zero(b, address)))
    b.finish(mixed(b, cls, if_fact(b, known, facts.VALUE, b.ptrtoint(object, i64))))


def is_zero(b: Writer, value: Value) -> Value:
    return b.zext(b.icmp("eq", value, 0), i64)


@routine("i64 call_key(ptr index, ptr args, i64 nargs, ptr kwnames)")
def call_key(b: Writer, index: Value, args: Value, nargs: Value, kwnames: Value) -> None:
    """The key of a call."""
    by_position, by_name, hash = b.item(index, layout.INDEX_FACTS), b.item(index, layout.INDEX_NAMED), b.alloca(i64)
    b.need(b.icmp("sle", nargs, b.size(by_position)))  # too many arguments: the Python path says so
    b.store(nargs, hash)
    first = b.at(by_position, layout.BYTES_START, ptr)
    with b.loop(0, nargs) as position:
        known = b.zext(b.load(i8, b.gep(first, position)), i64)
        part = b.run("argument_hash", b.load(ptr, b.gep(args, position, ptr)), known)
        b.store(mixed(b, b.load(i64, hash), part), hash)
    (named,) = b.if_else(b.is_null(kwnames), lambda: [num(0)], lambda: [b.size(kwnames)])
    with b.loop(0, named) as index:
        name = b.item(kwnames, index)
        found = b.api("PyDict_GetItemWithError", by_name, name)
        (known,) = b.if_else(
            b.is_null(found),
            lambda: [num(facts.OPTION)],
            lambda: [b.api("PyLong_AsLongLong", found, result=i64)],
        )
        part = b.run("argument_hash", b.load(ptr, b.gep(args, b.add(nargs, index), ptr)), known)
        b.store(mixed(b, b.load(i64, hash), b.ptrtoint(name, i64), part), hash)
    b.finish(b.load(i64, hash))


@routine("ptr launch_key(ptr index, ptr args, i64 nargs, ptr kwnames)")
def launch_key(b: Writer, index: Value, *call: Value) -> None:
    """The key as a Python int: a function for Python, whose `self` is an index."""
    b.finish(b.api("PyLong_FromUnsignedLongLong", b.run("call_key", index, *call)))


@routine("ptr entries_of(ptr index, ptr args, i64 nargs, ptr kwnames)")
def entries_of(b: Writer, index: Value, *call: Value) -> None:
    """The list of the entries with the key of a call, a new reference, or NULL."""
    key = b.run("launch_key", index, *call)
    b.need(b.is_object(key))
    found = b.api("PyDict_GetItemWithError", b.item(index, layout.INDEX_TABLE), key)
    b.drop(key)
    b.need(b.is_object(found))
    b.keep(found)
    b.finish(found)
