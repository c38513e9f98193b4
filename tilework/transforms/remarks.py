"""Remarks and warnings of passes: why a pass did less than it could.

    remark(loop, "the loop is not pipelined: it has a barrier")
    warning(loop, "the loop is not warp specialized: all warps run the whole of it")

A remark says what could be faster, a warning that the compiler ignores a request of the user. Nothing is emitted
without a listener: a knob or a test collects the reasons with `listening`.

    with listening() as remarks:
        run_pipeline(module, passes)
    for found in remarks: print(found)          kernel.py:12:4: remark: the loop is not pipelined: ...
"""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation

from tilework.ir.printer import ModulePrinter
from tilework.light_dataclass import light_dataclass


@light_dataclass
class Remark:
    """A message, the op it is about, and its source location; `notes` for listeners that want more."""

    op: str
    text: str
    location: LocationAttr
    severity: str = "remark"
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.op}: {self.text}"


@light_dataclass
class Listener:
    """A collector of remarks, which adds the op, or the stack of the pass that emits a remark, if requested."""

    heard: list[Remark] = field(default_factory=list)
    operations: bool = False
    stacktraces: bool = False


LISTENER: ContextVar[Listener | None] = ContextVar("remarks", default=None)


def remark(op: Operation, text: str, *notes: str) -> None:
    """Report `text` about `op` to all listeners."""
    report(op, text, "remark", notes)


def warning(op: Operation, text: str) -> None:
    """Warn all listeners that the compiler ignores a request of the user."""
    report(op, text, "warning")


def report(op: Operation, text: str, severity: str, more: tuple[str, ...] = ()) -> None:
    if (listener := LISTENER.get()) is None:
        return
    notes = [f"see current operation: {operation_text(op)}"] if listener.operations else []
    if listener.stacktraces:
        stack = "".join(traceback.format_stack()[:-2])  # without this function and the one that calls it
        notes.append(f"diagnostic emitted with trace:\n{stack.rstrip()}")
    listener.heard.append(Remark(op.name, text, op.location, severity, (*notes, *more)))


def operation_text(op: Operation) -> str:
    """The op as it is now, of a loop or a branch only the head; then what the names of layouts in it mean."""
    root = op
    while (parent := root.parent_op()) is not None:
        root = parent
    printer = ModulePrinter(root, debuginfo=False, nameloc_prefix=True)
    printer.op(op)
    lines = printer.texts.finish(printer.out).splitlines()
    head = next(line for line in lines if not line.startswith("#"))
    meant = [line for line in lines if line.startswith("#") and line.partition(" ")[0] in head]
    return "\n      ".join([head.strip(), *meant])


def is_heard() -> bool:
    """Return True if there is a listener: reasons that are expensive to find are only computed then."""
    return LISTENER.get() is not None


@contextmanager
def listening(operations: bool = False, stacktraces: bool = False) -> Iterator[list[Remark]]:
    """Collect the remarks made inside the `with`."""
    listener = Listener(operations=operations, stacktraces=stacktraces)
    token = LISTENER.set(listener)
    try:
        yield listener.heard
    finally:
        LISTENER.reset(token)
