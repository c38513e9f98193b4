"""Print the diagnostics of passes to standard error, if the environment requests them.

    MLIR_ENABLE_DIAGNOSTICS=remarks,operations python train.py

    train.py:41:9: remark: this load is not coalesced: a warp reads 4 contiguous bytes, a memory sector has 32. ...
       41 |     x = tl.load(x_ptr + rows * stride)
          |         ^^^^^^^
       note: see current operation: %x = tt.load %6 : tensor<1024x!tt.ptr<f32>, #blocked>
          #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

The items of the list: `warnings`; `remarks`, which are about speed (and warnings too); `operations`: each with the
operation that it is about; `stacktraces`: each with the Python stack of the pass that made it.
TILEWORK_PERFORMANCE_REMARKS=1 means `remarks`. Mistakes are exceptions, which have a stack in any case
(TRITON_FRONT_END_DEBUGGING=1 shows the whole of it).

A diagnostic is shown once, at the user's line: for code of the library, at the line that calls it.
"""

import sys
from collections.abc import Iterable
from typing import Any

from tilework import knobs
from tilework.errors import LIBRARY, Diagnostic, span_at
from tilework.light_dataclass import light_dataclass
from tilework.targets.recording import is_recording


@light_dataclass
class Wanted:
    """The diagnostics to print: warnings, optionally remarks, and the detail of each."""

    remarks: bool = False
    operations: bool = False
    stacktraces: bool = False

    def listening(self) -> Any:
        """Collect what passes say inside a `with`."""
        from tilework.transforms.remarks import listening  # lazily: the compiler loads when something is compiled

        return listening(self.operations, self.stacktraces)

    def shown(self, heard: Iterable[Any]) -> list[Any]:
        """The remarks that are to be shown, each once."""
        return list(dict.fromkeys(remark for remark in heard if self.remarks or remark.severity == "warning"))

    def show(self, heard: Iterable[Any]) -> None:
        """Print what was collected, each text once."""
        for text in dict.fromkeys(render(remark) for remark in self.shown(heard)):
            print(text, file=sys.stderr)


def wanted() -> Wanted | None:
    """The diagnostics that the environment requests now; None (the usual case): none."""
    text = knobs.getenv("MLIR_ENABLE_DIAGNOSTICS")
    if not text and not knobs.compilation.performance_remarks:
        return None
    items = {item.strip().lower() for item in (text or "").split(",")}
    remarks = "remarks" in items or knobs.compilation.performance_remarks
    if not remarks and "warnings" not in items:
        return None
    return Wanted(remarks, "operations" in items, "stacktraces" in items)


def wants_remarks() -> bool:
    """Return True if what could be faster is worth looking for."""
    found = wanted()
    return is_recording() or (found is not None and found.remarks)


def wants_limits() -> bool:
    """Return True if what limits each loop is worth saying."""
    return is_recording() or knobs.compilation.performance_remarks


def render(remark: Any) -> str:
    """One remark as a diagnostic; without a location, without source lines."""
    from tilework.ir.locations import source_positions  # lazily: the compiler loads when something is compiled

    spans = [span_at(*position) for position in source_positions(remark.location)]
    own = [found for found in spans if not found.file.startswith(LIBRARY)] or spans
    if not own:
        return "\n".join([f"{remark.severity}: {remark}", *(f"   note: {note}" for note in remark.notes)])
    shown = Diagnostic(own[0], remark.text, notes=remark.notes, callers=tuple(own[1:]), severity=remark.severity)
    return shown.render()
