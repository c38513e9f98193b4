"""The profile that the profiler's picture shows: the fastest of some runs of `training_step.py`, measured once.

    python -m docsite.pictures.recorded_profile        measure it here, and write profile.json

The page says if others used the machine while its limits were measured; then record it again when it is idle.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from docsite.pictures.training_step import KERNELS, main
from tilework.inspect.profiler.launches import Launches
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.profiler.report import CompileEvent, KernelTimes, Report, Row, Statistics, at, make_report, total
from tilework.inspect.profiler.sessions import TraceData

FILE = Path(__file__).parent / "profile.json"
PROGRAM = "training_step.py"
RUNS = 5
KEPT = ("name", "path", "seconds", "calls", "bytes", "flops", "is_reported", "bounds", "overhead", "device_type")


def record() -> dict[str, Any]:
    """Measure the program where its kernels are in the cache."""
    main()
    return min((run() for _ in range(RUNS)), key=lambda data: sum(row["seconds"] for row in data["rows"]))


def run() -> dict[str, Any]:
    for kernel in KERNELS:
        kernel.device_caches.clear()  # found in the cache again, as by a new process
    statistics = Statistics(traces=True)
    with statistics.collecting():
        main()
    return data_of(make_report(statistics, Limits.load(), PROGRAM), statistics)


def data_of(report: Report, statistics: Statistics) -> dict[str, Any]:
    assert statistics.trace is not None
    first = statistics.started
    launches = [
        [
            list(one.path),
            one.name,
            one.device_type,
            one.stream,
            [start - first for start in one.starts],
            list(one.durations),
        ]
        for one in statistics.trace.launches
    ]
    compilations = [[one.name, one.hit, one.seconds, one.end - first] for one in statistics.compilations]
    rows = [{name: getattr(row, name) for name in KEPT} for row in report.kernels]
    facts = {"device": report.device, "seconds": report.seconds, "bandwidth": report.bandwidth, "rates": report.rates}
    return {**facts, "disturbed": report.disturbed, "rows": rows, "compilations": compilations, "launches": launches}


def recorded() -> tuple[Report, Statistics]:
    """The report of the record, and as much of its statistics as the page shows."""
    data = json.loads(FILE.read_text())
    statistics = Statistics(traces=True)
    statistics.ended = round(data["seconds"] * 1e9)
    statistics.trace = TraceData()
    for path, name, device_type, stream, starts, durations in data["launches"]:
        statistics.trace.add(Launches(tuple(path), name, device_type, 0, stream, starts, durations))
    for name, *facts in data["compilations"]:
        statistics.compilations.append(CompileEvent(SimpleNamespace(name=name), *facts))
    root = Row("all kernels", ())
    for found in data["rows"]:
        row = Row(**{**found, "path": tuple(found["path"])})
        row.compilations = [one for one in statistics.compilations if one.name == row.name]
        at(root, row.path[:-1]).children.append(row)
        times = KernelTimes(row.path[:-1], row.name, row.device_type, row.calls, round(row.seconds * 1e9))
        statistics.kernels[times.path, times.name, times.device_type] = times
    total(root)
    facts = (data["device"], data["seconds"], statistics.compilations, data["bandwidth"], data["rates"])
    return Report(root, PROGRAM, *facts, disturbed=data["disturbed"]), statistics


if __name__ == "__main__":
    FILE.write_text(json.dumps(record()) + "\n")
