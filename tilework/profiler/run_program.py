"""Run a program in this process, collect what its kernels do, and show it."""

import json
import os
import runpy
import shlex
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tilework import knobs
from tilework.as_triton import as_triton, run_script, says_triton
from tilework.profiler.limits import Limits
from tilework.profiler.report import make_report
from tilework.profiler.statistics import Statistics
from tilework.profiler.text import text_of


class Program(NamedTuple):
    """A script or module, and what it is called with."""

    name: str
    arguments: tuple[str, ...]
    is_module: bool = False
    as_triton: bool = False

    def __str__(self) -> str:
        return " ".join([*(["-m"] if self.is_module else []), *map(shlex.quote, (self.name, *self.arguments))])

    def says_triton(self) -> bool:
        return not self.is_module and says_triton(self.name)

    def is_there(self) -> bool:
        """Whether there is such a file, or module."""
        if not self.is_module:
            return os.path.isfile(self.name)
        sys.path.insert(0, os.getcwd())
        try:
            return find_spec(self.name) is not None
        except ImportError:
            return False

    def run(self) -> None:
        """As ``python SCRIPT`` and ``python -m MODULE`` do."""
        if self.as_triton or (self.says_triton() and find_spec("triton") is None):
            as_triton()
        sys.argv = [self.name, *self.arguments]
        if self.is_module:
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, "")
            run_script(Path(self.name))


def run_profiled(
    program: Program, *, html: str | None, trace: str | None, output: str | None, top: int, measure: bool
) -> int:
    """Run it, print the profile, write the files; the exit code of the program."""
    statistics, process = Statistics(traces=trace is not None or html is not None), os.getpid()
    with statistics.collecting():
        code = exit_code_of(program)
    sys.stdout.flush()
    if os.getpid() != process:  # the program has forked, and this is the end of the copy
        return code
    limits = Limits.load()
    if measure:
        limits.measure_again()
    report = make_report(statistics, limits, str(program))
    print(f"\n{text_of(report, top)}")
    if not report.kernels:
        print(f"   {why_nothing(program, code)}")
    files: list[tuple[str | None, Any]] = [
        (output, statistics.tree.text),
        (trace, lambda: json.dumps(trace_of(statistics))),
        (html, lambda: page_of(report, statistics)),
    ]
    for path, make in files:
        if path is not None:
            Path(path).write_text(make(), encoding="utf-8")
            print(f"wrote {path}")
    return code


def page_of(report: Any, statistics: Statistics) -> str:
    from tilework.profiler.page import page  # lazily: few ask for one

    return page(report, statistics)


def exit_code_of(program: Program) -> int:
    """Run it to its end, threads included; what it raises is shown as Python would."""
    try:
        program.run()
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tilework profile: interrupted; this is what was seen until then", file=sys.stderr)
        return 130
    except BaseException as error:
        error.__traceback__ = without_us(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    finally:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
    return 0


def without_us(trace: Any) -> Any:
    """A traceback without the frames that run the program."""
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("tilework", "runpy"):
        trace = trace.tb_next
    return trace


def why_nothing(program: Program, code: int) -> str:
    """Why no kernel was launched, as far as that can be known."""
    if knobs.runtime.interpret:
        return "note: TRITON_INTERPRET=1 is set: kernels run as Python, and have no times of their own"
    if program.says_triton() and not program.as_triton and find_spec("triton") is not None:
        return "help: it says `import triton`, and Triton is installed here: --triton runs it with tilework"
    if code:
        return "note: the program failed before its first launch"
    return "note: kernels of other compilers, and of torch itself, are not seen"


def trace_of(statistics: Statistics) -> dict[str, Any]:
    """All that ran, and all that was compiled, as one file for Chrome."""
    events: list[dict[str, Any]] = []

    def add(name: str, kind: str, start: int, took: float, thread: int | str, args: dict[str, Any]) -> None:
        times = {"ts": (start - statistics.started) / 1e3, "dur": took / 1e3}
        events.append({"name": name, "cat": kind, "ph": "X", **times, "pid": 0, "tid": thread, "args": args})

    for found in statistics.trace.launches if statistics.trace is not None else ():
        for start, took in zip(found.starts, found.durations, strict=True):
            add(found.name, "kernel", start, took, found.stream, {"call_stack": ["ROOT", *found.path, found.name]})
    for one in statistics.compilations:
        took = one.seconds * 1e9
        what = "found" if one.hit else "compiled"
        add(f"{one.name} {what}", "compile", one.end - round(took), took, "compiling", {"cache_hit": one.hit})
    return {"displayTimeUnit": "ms", "traceEvents": sorted(events, key=lambda event: event["ts"])}
