"""The log of launches: the native launcher writes a line for each, as long as somebody asks for them.

`log` of the context is the address of a block (`LOG` of `launcher_layout.py`), or 0. A line (`LINE_FIELDS`) has the identity of the entry, the
mark of its numbers, when it was called and returned, the thread, the grid, and what the device said: when its programs began, how long
they took, which two events are around them. Where there is no more room Python is called, which takes the lines away.

The block also says which launches fit an entry: all as usual, those with the grid and the integers that it was made for (whoever
knows the work of that launch then knows theirs), or none.
"""

from typing import NamedTuple

from tilework.targets.cpu.run.launcher_guards import NULL, Writer, call_with, num
from tilework.targets.cpu.run.launcher_layout import (
    ANY_NUMBERS,
    EVENTS_AT,
    IDENTITY,
    LINE,
    LINE_FIELDS,
    LOG_END,
    LOG_EVENTS,
    LOG_EVENTS_END,
    LOG_FITS,
    LOG_FULL,
    LOG_NEXT,
    LOG_RECORD,
    MARK,
    MARK_FACTOR,
    MARK_START,
    NONE_FIT,
    NUMBER_COUNT,
    NUMBERS_AT,
    SAME_NUMBERS_FIT,
    STARTED_AT,
    TOOK_AT,
)
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

SIGN = 1 << 63


def signed(value: int) -> Value:
    """A word whose highest bit may be set."""
    return num(value - (1 << 64) if value & SIGN else value)


def write_log(module: Module) -> None:
    write_mark(module)
    write_line(module)


def write_mark(module: Module) -> None:
    """`mark(record, slots, sizes)`: see `mark_of` of the layout."""
    function = module.function("mark", i64, [(ptr, "record"), (ptr, "slots"), (ptr, "sizes")], linkage="internal")
    b = Writer(function)
    record, slots, sizes = function.args
    place = b.alloca(i64)
    b.store(signed(MARK_START), place)

    def mix(value: Value) -> None:
        b.store(b.mul(b.xor(b.load(i64, place), value), num(MARK_FACTOR)), place)

    for axis in range(3):
        mix(b.at(sizes, 8 * axis))
    numbers = b.gep(record, b.at(record, NUMBERS_AT))
    with b.loop(0, b.at(record, NUMBER_COUNT)) as index:
        mix(b.load(i64, b.gep(slots, b.load(i64, b.gep(numbers, index, i64)), i64)))
    b.finish(b.load(i64, place))


def need_loggable(b: Writer, record: Value, slots: Value, sizes: Value) -> None:
    """Leave with "does not fit" where the log wants launches like this one to take the Python path."""
    log = b.context("log")
    with b.if_(b.is_object(log)):
        fits = b.at(log, LOG_FITS)
        b.need(b.icmp("ne", fits, NONE_FIT))
        is_known = b.icmp("sge", b.at(sizes, 0), 0)
        with b.if_(b.and_(b.icmp("eq", fits, SAME_NUMBERS_FIT), is_known)):
            made_of = b.at(record, MARK)
            with b.if_(b.icmp("ne", made_of, ANY_NUMBERS)):
                b.need(b.icmp("eq", b.call("mark", i64, [record, slots, sizes]), made_of))


def write_line(module: Module) -> None:
    """`log_line(record, slots, sizes, called)`: a launch has been done. Needs the GIL."""
    params = [(ptr, "record"), (ptr, "slots"), (ptr, "sizes"), (i64, "called")]
    function = module.function("log_line", void, params, linkage="internal")
    b = Writer(function)
    record, slots, sizes, called = function.args
    log = b.context("log")
    with b.if_(b.is_null(log)):
        b.ret()
    with b.if_(b.icmp("uge", b.at(log, LOG_NEXT), b.at(log, LOG_END))):
        with b.if_(b.icmp("eq", call_with(b, b.at(log, LOG_FULL, ptr), []), 0)):
            b.api("PyErr_WriteUnraisable", b.at(log, LOG_FULL, ptr), result=void)
        with b.if_(b.or_(b.is_null(b.context("log")), b.icmp("uge", b.at(log, LOG_NEXT), b.at(log, LOG_END)))):
            b.ret()
    line = b.at(log, LOG_NEXT, ptr)
    values = {
        "identity": b.at(record, IDENTITY),
        "mark": b.call("mark", i64, [record, slots, sizes]),
        "called": called,
        "returned": b.call("now", i64, []),
        "thread": b.api("PyThread_get_thread_ident", result=i64),
        "x": b.at(sizes, 0),
        "y": b.at(sizes, 8),
        "z": b.at(sizes, 16),
        "start": b.at(sizes, STARTED_AT),
        "took": b.at(sizes, TOOK_AT),
        "events": b.at(sizes, EVENTS_AT),
    }
    for index, name in enumerate(LINE_FIELDS):
        b.store(values[name], b.gep(line, 8 * index))
    b.store(b.gep(line, LINE), b.gep(log, LOG_NEXT))
    b.ret()


class Events(NamedTuple):
    """Two events of the log, or NULL, and how to record one. Read with the GIL: the log may end while the driver is called."""

    pair: Value
    record: Value

    @classmethod
    def taken(cls, b: Writer, sizes: Value) -> "Events":
        """For a launch, where there is a log and it has some left; they are noted for the line."""
        pair, record = b.alloca(ptr), b.alloca(ptr)
        b.store(NULL, pair)
        b.store(NULL, record)
        log = b.context("log")
        with b.if_(b.is_object(log)), b.if_(b.icmp("ult", b.at(log, LOG_EVENTS), b.at(log, LOG_EVENTS_END))):
            next = b.at(log, LOG_EVENTS, ptr)
            b.store(next, pair)
            b.store(b.at(log, LOG_RECORD, ptr), record)
            b.store(b.gep(next, 16), b.gep(log, LOG_EVENTS))
        b.store(b.load(ptr, pair), b.gep(sizes, EVENTS_AT))
        return cls(b.load(ptr, pair), b.load(ptr, record))

    def put(self, b: Writer, index: int, stream: Value) -> None:
        """Record one of the two in a stream."""
        with b.if_(b.is_object(self.pair)):
            b.call(self.record, i32, [b.at(self.pair, 8 * index, ptr), stream])


def clear_log_words(b: Writer, sizes: Value) -> None:
    """Nothing is known yet of when the programs run."""
    for place, value in ((STARTED_AT, num(0)), (TOOK_AT, constant(i64, -1)), (EVENTS_AT, num(0))):
        b.store(value, b.gep(sizes, place))
