"""Print or record the parts of a compilation that the environment requests while its passes run.

    MLIR_ENABLE_DUMP=1           the module before every pass, on standard error (a kernel's name: only that kernel's)
    MLIR_DUMP_PATH=FILE          appended to a file instead
    MLIR_ENABLE_TIMING=1         how long each pass took, on standard error
    MLIR_ENABLE_DIAGNOSTICS=...  what passes have to say, see `diagnostics.py`
    TRITON_REPRODUCER_PATH=BASE  BASE.make_ttir.repro.mlir and so on: the module that a stage got, and its passes; the
    next
                                 kernel overwrites them. `tilework opt FILE --run-reproducer` repeats the stage

Most of the time nothing is requested, and then there is no observer. Some of Triton's variables are about things that
tilework does not have. They change the cache key, as in Triton, and nothing else:

    MLIR_DISABLE_MULTITHREADING         passes run one after the other
    ALLOW_LHS_TMEM_LAYOUT_CONVERSION    nothing is kept in tensor memory
    TRITON_PREFER_TMEM_16x256_LAYOUT    the same
    DISABLE_MMA_V5                      dots on tensor memory are not used
    TRITON_ENABLE_EXPERIMENTAL_CONSAN   TRITON_INSTRUMENTATION_MODE=consan has replaced it
"""

import sys
import time
from typing import Any, Self

from tilework import knobs
from tilework.knobs import is_on
from tilework.targets.diagnostics import Wanted, wanted
from tilework.targets.recording import RECORDING, PassRun, Recording, Step


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
