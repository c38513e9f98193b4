"""The log of launches: the native launcher writes a line for each while a listener is registered.

`log` of the context is the address of a block (`LOG` of `layout.py`), or 0. A line (`LINE_FIELDS`) has the identity of
the entry, the hash of its integers, when it was called and returned, the thread, the grid, and what the device
reported: when its programs began, how long they took, which two events are around them. When the buffer is full, Python
is called to empty it.

The block also says which launches fit an entry: all as usual, those with the grid and the integers that it was made for
(so that their work is that of the launch which the entry was made from), or none.
"""

from typing import NamedTuple

from tilework.runtime.launch.native import layout
from tilework.runtime.launch.native.code.guards import Writer, call_with, routine
from tilework.targets.cpu.run.machine_code import NULL, num
from tilework.targets.llvm.types import i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

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
