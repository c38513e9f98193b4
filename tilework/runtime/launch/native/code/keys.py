"""The key of a call, by which the entries of a kernel with many specialisations are found.

Calls that fit the same entry have the same key, as far as the facts of the parameters say (`runtime/launch/facts.py`);
calls with the same key may still differ, and the guards of the entry decide. An index is ``(entries by key, facts of
the parameters, facts by name)``; keywords that are no parameters are options.
"""

from tilework.runtime.launch import facts
from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import Writer, is_class, read_small_int, routine
from tilework.targets.cpu.run.machine_code import num
from tilework.targets.llvm.types import f64, i8, i32, i64, ptr, void
from tilework.targets.llvm.values import Value

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
