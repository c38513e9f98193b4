"""Print or record the parts of a compilation that the environment requests while its passes run.

    MLIR_ENABLE_DUMP=1           the module before every pass, on standard error (a kernel's name: only that kernel's)
    MLIR_DUMP_PATH=FILE          appended to a file instead
    MLIR_ENABLE_TIMING=1         how long each pass took, on standard error
    MLIR_ENABLE_DIAGNOSTICS=...  what passes have to say, see below
    TRITON_REPRODUCER_PATH=BASE  BASE.make_ttir.repro.mlir and so on: the input of a stage and its passes; the next
                                 kernel overwrites them. `tilework opt FILE --run-reproducer` repeats the stage

Most of the time nothing is requested, and then there is no observer. Some of Triton's variables are about things that
tilework does not have. They change the cache key, as in Triton, and nothing else:

    MLIR_DISABLE_MULTITHREADING         passes run one after the other
    ALLOW_LHS_TMEM_LAYOUT_CONVERSION    nothing is kept in tensor memory
    TRITON_PREFER_TMEM_16x256_LAYOUT    the same
    DISABLE_MMA_V5                      dots on tensor memory are not used
    TRITON_ENABLE_EXPERIMENTAL_CONSAN   TRITON_INSTRUMENTATION_MODE=consan has replaced it

A recording has everything that a compilation does, for tools that show it (`tilework explore`):

    with recording() as seen:
        lower(source, target, ["ttgir"])
    [(step.name, step.seconds) for run in seen.runs for step in run.steps]

Most of the time no recording is active, which a stage checks once. During a recording passes emit their remarks too,
and code for the host has line tables.

Diagnostics of passes are printed to standard error, if the environment requests them:

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
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

from tilework import knobs
from tilework.errors import LIBRARY, Diagnostic, span_at
from tilework.knobs import is_on
from tilework.light_dataclass import light_dataclass


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


# plain classes: every compilation imports this file, and dataclasses take a millisecond to be made


class Step:
    """One pass: as the pipeline names it, how long it took, and the module behind it, with locations."""

    def __init__(self, name: str, seconds: float, text: str) -> None:
        self.name, self.seconds, self.text = name, seconds, text


class PassRun:
    """The passes that ran one after the other on one module: `tag` names them, `text` is what they got."""

    def __init__(self, tag: str, text: str) -> None:
        self.tag, self.text = tag, text
        self.steps: list[Step] = []


class Recording:
    """A record of a compilation: runs of passes, remarks (`transforms/remarks.py`), output of the assembler, seconds
    that recording itself took.
    """

    def __init__(self, with_texts: bool = True) -> None:
        self.with_texts = with_texts
        self.runs: list[PassRun] = []
        self.remarks: list[Any] = []
        self.assembler = ""
        self.overhead = 0.0


RECORDING: ContextVar[Recording | None] = ContextVar("recording", default=None)


def is_recording() -> bool:
    """Return True if a recording is active."""
    return RECORDING.get() is not None


@contextmanager
def recording(with_texts: bool = True) -> Iterator[Recording]:
    """Record what is compiled inside the `with`, in this thread; without texts there are no runs of passes in it."""
    seen = Recording(with_texts)
    token = RECORDING.set(seen)
    try:
        yield seen
    finally:
        RECORDING.reset(token)


class Observer:
    """Sees one stage: the module before and after each pass, and what the passes say."""

    def __init__(
        self,
        kernel: str,
        dumps: bool,
        path: str | None,
        times: bool,
        diagnostics: Wanted | None,
        recording: Recording | None = None,
        tag: str = "",
    ) -> None:
        self.kernel, self.dumps, self.path = kernel, dumps, path
        self.recording, self.tag = recording, tag
        self.run: PassRun | None = None
        self.module: Any = None
        self.spent: list[tuple[str, float]] | None = [] if times else None
        self.started = 0.0
        self.diagnostics = diagnostics
        self.listening = diagnostics.listening() if diagnostics is not None else None
        self.heard: list[Any] = []

    def __enter__(self) -> Self:
        if self.listening is not None:
            self.heard = self.listening.__enter__()
        return self

    def before(self, name: str, module: Any) -> None:
        """Print the module, then start the clock."""
        if self.dumps:
            from tilework.ir.printer import print_module  # lazily: the compiler loads when something is compiled

            text = f"// -----// IR Dump Before {name} ({self.kernel}) //----- //\n{print_module(module)}\n"
            if self.path:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write(text)
            else:
                sys.stderr.write(text)
        self.module = module
        if self.recording is not None and self.recording.with_texts and self.run is None:
            start = time.perf_counter()
            self.run = PassRun(self.tag, located_text(module))
            self.recording.runs.append(self.run)
            self.recording.overhead += time.perf_counter() - start
        self.started = time.perf_counter()

    def after(self, name: str) -> None:
        seconds = time.perf_counter() - self.started
        if self.spent is not None:
            self.spent.append((name, seconds))
        if self.run is not None and self.recording is not None:
            self.run.steps.append(Step(name, seconds, located_text(self.module)))
            self.recording.overhead += time.perf_counter() - self.started - seconds

    def __exit__(self, *error: object) -> None:
        """Print what the passes said and the table of times, also when a pass failed."""
        if self.listening is not None and self.diagnostics is not None:
            self.listening.__exit__(None, None, None)
            if self.recording is not None:
                self.recording.remarks += self.diagnostics.shown(self.heard)
            if (requested := wanted()) is not None:
                requested.show(self.heard)
        if self.spent:
            total = sum(seconds for _, seconds in self.spent)
            lines = [f"{seconds * 1e3:9.3f} ms {seconds / total * 100:5.1f} %  {name}" for name, seconds in self.spent]
            head = f"===- passes of {self.kernel}: {total * 1e3:.3f} ms -==="
            sys.stderr.write("\n".join([head, *lines, ""]))


def observer(module: Any, names: list[str], tag: str) -> Observer | None:
    """The observer of one stage, if the environment or a recording requests one."""
    dump, timing, diagnostics = is_on("MLIR_ENABLE_DUMP"), is_on("MLIR_ENABLE_TIMING"), wanted()
    recording = RECORDING.get()
    write_reproducer(tag, module, names)
    if not dump and not timing and diagnostics is None and recording is None:
        return None
    if recording is not None and diagnostics is None:
        diagnostics = Wanted(remarks=True)
    kernel = kernel_of(module)
    text = knobs.getenv("MLIR_ENABLE_DUMP") or ""
    shown = dump and (text.lower() in ("1", "on", "true", "y", "yes") or text == kernel)
    return Observer(kernel, shown, knobs.getenv("MLIR_DUMP_PATH"), timing, diagnostics, recording, tag)


def located_text(module: Any) -> str:
    from tilework.ir.printer import print_module  # lazily: the compiler loads when something is compiled

    return print_module(module, debuginfo=True)


def kernel_of(module: Any) -> str:
    """The name of the public function."""
    for op in module.ops:
        visibility = op.properties.get("sym_visibility")
        if visibility is not None and visibility.data == "public":
            return op.properties["sym_name"].data
    return "module"


REPRODUCER = """
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(any(%s))",
      disable_threading: false,
      verify_each: false
    }
  }
#-}
"""


def write_reproducer(tag: str, module: Any, names: list[str]) -> None:
    """Write a reproducer if the environment requests one: the input of a stage and the passes it runs."""
    base = knobs.getenv("TRITON_REPRODUCER_PATH")
    if not base:
        return
    from tilework.ir.printer import print_module  # lazily: the compiler loads when something is compiled

    path = base if base == "-" else f"{base}.{tag}.repro.mlir"
    text = print_module(module, debuginfo=True) + REPRODUCER % ",".join(names)
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"// tilework opt {path} --run-reproducer\n{text}")
