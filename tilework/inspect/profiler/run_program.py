"""Run a program in this process, collect what its kernels do, and show it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from tilework.inspect.profiler.limits import Limits
from tilework.inspect.profiler.report import make_report
from tilework.inspect.profiler.statistics import Statistics
from tilework.inspect.profiler.text import text_of
from tilework.tools.program import Program

INTERRUPTED = "tilework profile: interrupted; this is what was seen until then"


def run_profiled(
    program: Program, *, html: str | None, trace: str | None, output: str | None, top: int, measure: bool
) -> int:
    """Run it, print the profile, write the files; the exit code of the program."""
    statistics, process = Statistics(traces=trace is not None or html is not None), os.getpid()
    with statistics.collecting():
        code = program.exit_code(INTERRUPTED)
    sys.stdout.flush()
    if os.getpid() != process:  # the program has forked, and this is the end of the copy
        return code
    limits = Limits.load()
    if measure:
        limits.measure_again()
    report = make_report(statistics, limits, str(program))
    print(f"\n{text_of(report, top)}")
    if not report.kernels:
        print(f"   {program.why_nothing(code)}")
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
    from tilework.inspect.profiler.page import page  # lazily: few ask for one

    return page(report, statistics)


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
