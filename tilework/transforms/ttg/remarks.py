"""Why a pass did less than it could: one hook for all reasons.

    remark(loop, "the loop is not pipelined: it has a barrier")

Nothing is said unless somebody listens: whoever wants the reasons (a knob, a test) collects them with `listening`.

    with listening() as remarks:
        run_pipeline(module, passes)
    for found in remarks: print(found)          kernel.py:12:4: remark: the loop is not pipelined: ...
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Operation


@dataclass(frozen=True)
class Remark:
    """What happened, to which op, and where that came from."""

    op: str
    text: str
    location: LocationAttr

    def __str__(self) -> str:
        return f"{self.op}: {self.text}"


LISTENER: ContextVar[list[Remark] | None] = ContextVar("remarks", default=None)


def remark(op: Operation, text: str) -> None:
    """Tell whoever listens that `text` is so for `op`."""
    if (listener := LISTENER.get()) is not None:
        listener.append(Remark(op.name, text, op.location))


def is_heard() -> bool:
    """Whether somebody listens: reasons that take work to find are only looked for then."""
    return LISTENER.get() is not None


@contextmanager
def listening() -> Iterator[list[Remark]]:
    """Collect the remarks made inside the `with`."""
    remarks: list[Remark] = []
    token = LISTENER.set(remarks)
    try:
        yield remarks
    finally:
        LISTENER.reset(token)
