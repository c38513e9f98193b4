"""The statistics of `tilework profile`, and their report: a row per kernel and scope, against the limits of the
machine.

tilework profile softmax.py
  time ms     %  calls   avg us    GB/s  TFLOP/s  of limit  launch us  compile ms
   61.320  82.1    512  119.766   35.03   0.0088      61 %        1.1      cached  softmax

`text_of` is the report for a terminal, with advice: one or two sentences with the kernel, the reason, and the next
command. The first rule of `RULES` that applies gives the advice. Compilations and time outside of kernels come first
where they dominate the program; then launches that cost as much as their kernels; then the kernel whose optimisation
would save the most time.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tilework.inspect.findings import counted
from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.estimate import SIMD, Estimate, estimate
from tilework.inspect.profiler.launches import Launches, Path, Value, Work, work_of
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.profiler.recorder import RECORDER
from tilework.inspect.profiler.sessions import TraceData, TreeData, trace_event
from tilework.inspect.profiler.stacks import flags
from tilework.inspect.profiler.viewer import with_branches
from tilework.process.events import LISTENERS


@dataclass
class CompileEvent:
    """One kernel that was compiled, or found in the cache."""

    kernel: Any
    hit: bool
    seconds: float
    end: int  # when, on the host's clock

    @property
    def name(self) -> str:
        return self.kernel.name


@dataclass
class KernelTimes:
    """Launches of one kernel in one scope. Times are nanoseconds; only native launches have overheads."""

    path: Path
    name: str
    device_type: str
    count: int = 0
    total: int = 0
    shortest: int | None = None
    longest: int = 0
    overhead: int = 0
    overhead_count: int = 0
    works: dict[Work, list[int]] = field(default_factory=dict)  # launches and nanoseconds of each kind

    def add(self, launches: Launches) -> None:
        times = launches.durations
        total = sum(times)
        self.count += len(times)
        self.total += total
        self.shortest = min(times) if self.shortest is None else min(self.shortest, *times)
        self.longest = max(self.longest, *times)
        self.overhead += sum(launches.overheads)
        self.overhead_count += len(launches.overheads)
        if launches.work is not None:
            seen = self.works.setdefault(launches.work, [0, 0])
            seen[0] += len(times)
            seen[1] += total


class Statistics:
    """A session of `tilework profile`."""

    context = "shadow"

    def __init__(self, *, traces: bool = False) -> None:
        self.kernels: dict[tuple[Path, str, str], KernelTimes] = {}
        self.compilations: list[CompileEvent] = []
        self.tree = TreeData()
        self.trace = TraceData() if traces else None
        self.started = self.ended = 0

    def add(self, launches: Launches) -> None:
        key = (launches.path, launches.name, launches.device_type)
        found = self.kernels.get(key)
        if found is None:
            found = self.kernels[key] = KernelTimes(*key)
        found.add(launches)
        self.tree.add(launches)
        if self.trace is not None:
            self.trace.add(launches)

    def add_metrics(self, path: Path, metrics: dict[str, Value]) -> None:
        self.tree.add_metrics(path, metrics)

    def touch(self, path: Path) -> None:
        self.tree.touch(path)

    def listen(self, what: str, facts: dict[str, Any]) -> None:
        """Events of the runtime: compilations, and configurations that an autotuner measures."""
        if what == "compiled":
            self.compilations.append(
                CompileEvent(facts["kernel"], facts["hit"], facts["seconds"], time.perf_counter_ns())
            )
        elif what == "measuring":
            stacks.set_state(f"autotuning {facts['tuner'].__name__}" if facts["begins"] else None)

    def compilations_of(self, launcher: Any) -> list[Any]:
        """The kernel that a launcher launches, if it was compiled here."""
        return [one.kernel for one in self.compilations if one.kernel._loaded.launch is launcher]

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect inside of the block."""
        self.started = time.perf_counter_ns()
        LISTENERS.append(self.listen)
        RECORDER.work_of, RECORDER.tools, flags.profiling_on = work_of, [self], True
        RECORDER.set_sinks([])
        try:
            yield
        finally:
            self.ended = time.perf_counter_ns()
            RECORDER.work_of, RECORDER.tools, flags.profiling_on = None, [], False
            RECORDER.set_sinks([])
            LISTENERS.remove(self.listen)

    @property
    def seconds(self) -> float:
        return (self.ended - self.started) / 1e9


# ---- the report

MEMORY, ARITHMETIC = "memory", "arithmetic"
WIDTH_KINDS = {"flops": SIMD, "flops8": "int8", "flops16": "fp16", "flops32": "fp32", "flops64": "fp64"}
COLUMNS = ("time ms", "%", "calls", "avg us", "GB/s", "TFLOP/s", "of limit", "launch us", "compile ms")


@dataclass
class Row:
    """A frame of the tree: a scope, or a kernel with what it did. Seconds, bytes and operations are those of all its
    launches."""

    name: str
    path: Path
    seconds: float = 0.0
    calls: int = 0
    bytes: float | None = None
    flops: Mapping[str, float] | None = None
    is_reported: bool = False  # by the kernel's author; otherwise estimated
    bounds: Mapping[str, float] = field(default_factory=dict)  # seconds that memory and arithmetic need at least
    overhead: float | None = None  # seconds of one launch beside its programs
    compilations: Sequence[CompileEvent] = ()
    device_type: str = ""
    children: list["Row"] = field(default_factory=list)

    @property
    def is_kernel(self) -> bool:
        return bool(self.device_type)

    @property
    def gigabytes(self) -> float | None:
        """Return gigabytes per second."""
        return self.bytes / self.seconds / 1e9 if self.bytes is not None and self.seconds else None

    @property
    def teraflops(self) -> float | None:
        return sum(self.flops.values()) / self.seconds / 1e12 if self.flops is not None and self.seconds else None

    @property
    def limit(self) -> str | None:
        """The binding limit: memory or arithmetic."""
        return max(self.bounds, key=lambda name: self.bounds[name]) if self.bounds else None

    @property
    def share(self) -> float | None:
        """The fraction of the limit that it reaches."""
        return self.bounds[self.limit] / self.seconds if self.limit is not None and self.seconds else None

    @property
    def compile_seconds(self) -> float:
        return sum(one.seconds for one in self.compilations)

    def walk(self) -> Iterator["Row"]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class Report:
    """The whole report: rows by scope, kernels, compilations."""

    root: Row
    program: str
    device: str
    seconds: float
    compilations: Sequence[CompileEvent]
    bandwidth: float | None
    rates: Mapping[str, float]
    is_real: bool = True  # an emulated device counts steps, not time
    disturbed: str = ""  # what disturbed the measurement of the limits

    @property
    def kernels(self) -> list[Row]:
        return [row for row in self.root.walk() if row.is_kernel]


def make_report(statistics: Statistics, limits: Limits, program: str) -> Report:
    """Build the report of the statistics; measures the limits of the machine if they are unknown."""
    root = Row("all kernels", ())
    rates: dict[str, float] = {}
    for found in statistics.kernels.values():
        row = kernel_row(found, statistics, limits, rates)
        at(root, found.path).children.append(row)
    total(root)
    bandwidth = limits.bandwidth if statistics.kernels else None
    facts = (limits.device, statistics.seconds, statistics.compilations, bandwidth, rates)
    return Report(root, program, *facts, is_real=limits.is_real, disturbed=limits.disturbed)


def at(root: Row, path: Path) -> Row:
    """The row of a scope."""
    row = root
    for depth, name in enumerate(path):
        found = next((child for child in row.children if child.name == name and not child.is_kernel), None)
        if found is None:
            found = Row(name, path[: depth + 1])
            row.children.append(found)
        row = found
    return row


def total(row: Row) -> None:
    """Times and calls of a scope are those of all below it; the longest comes first."""
    for child in row.children:
        total(child)
    if not row.is_kernel:
        row.seconds, row.calls = sum(c.seconds for c in row.children), sum(c.calls for c in row.children)
    row.children.sort(key=lambda child: -child.seconds)


def kernel_row(found: KernelTimes, statistics: Statistics, limits: Limits, rates: dict[str, float]) -> Row:
    """The row of one kernel in one scope."""
    row = Row(found.name, (*found.path, found.name), found.total / 1e9, found.count, device_type=found.device_type)
    row.compilations = [one for one in statistics.compilations if one.name == found.name]
    if found.overhead_count:
        row.overhead = found.overhead / found.overhead_count / 1e9
    seen = sum(launches for launches, _ in found.works.values())
    if not seen or not limits.is_real:
        return row
    needs = [(needed(work, statistics), launches) for work, (launches, _) in found.works.items()]
    scale = found.count / seen  # of a kernel with very many works some were looked at
    row.is_reported = all(reported for (_, reported), _ in needs) and seen == found.count
    if all(need.bytes is not None for (need, _), _ in needs):
        row.bytes = scale * sum((need.bytes or 0.0) * count for (need, _), count in needs)
    if all(need.flops is not None for (need, _), _ in needs):
        row.flops = {}
        for (need, _), count in needs:
            for kind, value in (need.flops or {}).items():
                row.flops[kind] = row.flops.get(kind, 0.0) + scale * value * count
    row.bounds = bounds_of(row, limits, rates)
    return row


def bounds_of(row: Row, limits: Limits, rates: dict[str, float]) -> dict[str, float]:
    """The seconds that each part of the machine needs at least for a row, where both are known."""
    found: dict[str, float] = {}
    if row.bytes and (bandwidth := limits.bandwidth):
        found[MEMORY] = row.bytes / bandwidth
    for kind, flops in (row.flops or {}).items():
        if flops and (rate := limits.rate(kind)):
            rates[limits.measured_as(kind)] = rate
            found[ARITHMETIC] = max(found.get(ARITHMETIC, 0.0), flops / rate)
    return found


def needed(work: Work, statistics: Statistics) -> tuple[Estimate, bool]:
    """Return the operations and bytes of a launch, and True if its author gave them; missing ones are estimated."""
    reported = dict(work.reported)
    flops = {WIDTH_KINDS[name]: value for name, value in reported.items() if name in WIDTH_KINDS}
    if flops and "bytes" in reported:
        return Estimate(flops, reported["bytes"]), True
    module = module_of(work.launcher, tuple(statistics.compilations_of(work.launcher)))
    found = estimate(module, work) if module is not None else Estimate(None, None)
    return Estimate(flops or found.flops, reported.get("bytes", found.bytes)), False


@cache
def module_of(launcher: Any, kernels: tuple[Any, ...]) -> Any:
    """The TTIR of what a launcher launches; None if there is none, as for kernels that come as PTX."""
    from tilework.ir.parser import parse_module  # lazily: the IR is needed for estimates only

    for kernel in kernels:
        if "ttir" in kernel.asm:
            return parse_module(kernel.asm["ttir"], f"{kernel.name}.ttir")
    return None


def trace_of(statistics: Statistics) -> dict[str, Any]:
    """All that ran, and all that was compiled, as one file for Chrome."""
    first = statistics.started
    events = list(statistics.trace.events(first)) if statistics.trace is not None else []
    for one in statistics.compilations:
        took, what = one.seconds * 1e9, "found" if one.hit else "compiled"
        start = one.end - round(took) - first
        events.append(trace_event(f"{one.name} {what}", "compile", start, took, "compiling", {"cache_hit": one.hit}))
    events = [{**event, "pid": 0} for event in events]
    return {"displayTimeUnit": "ms", "traceEvents": sorted(events, key=lambda event: event["ts"])}


DISTURBED = "these limits may be too low, and are not kept: while they were measured, {}; profile again when it is idle"
WIDTH = 9
NOTES = {
    "~": "~ estimated from the kernel's IR and its arguments; launch_metadata of @jit gives exact figures",
    "%*": "* more than a copy from memory gets: the data comes from caches",
    "%!": "! more than was measured: the machine was busy then (--measure measures again), or the estimate is too high",
}


def text_of(report: Report, most: int = 40) -> str:
    """Return the report as text for a terminal."""
    lines = [headline(report), *compile_lines(report), ""]
    if report.kernels:
        rows = [
            (cells_of(row, report), head + row.name)
            for head, row in with_branches(report.root, lambda row, _: row.children)
        ]
        for cells, name in [(COLUMNS, ""), *rows[:most]]:
            lines.append(f"  {'  '.join(f'{cell:>{WIDTH}}' for cell in cells)}  {name}".rstrip())
        if len(rows) > most:
            lines.append(f"  ... and {len(rows) - most} more; --top N shows more of them")
        body = "\n".join(lines)
        lines += ["", *limit_lines(report), *(f"  {note}" for sign, note in NOTES.items() if sign in body), ""]
    lines.append(f"look first: {advice(report)}")
    return "\n".join(lines)


def headline(report: Report) -> str:
    root = report.root
    names = {row.name for row in report.kernels}
    share = f"{100 * root.seconds / report.seconds:.0f} % of it in " if report.is_real else ""
    part = f", {share}{counted(len(names), 'kernel')}" if names else ""
    launches = f", {counted(root.calls, 'launch', 'launches')}" if names else ""
    return f"{report.program}: {report.seconds:.3f} s{part}{launches}; {report.device}"


def compile_lines(report: Report) -> list[str]:
    found = report.compilations
    if not found:
        return []
    hits, rest = [one for one in found if one.hit], [one for one in found if not one.hit]
    parts = [
        f"{len(group)} {verb} in {sum(one.seconds for one in group) * 1e3:.0f} ms"
        for group, verb in ((rest, "compiled"), (hits, "taken from the cache"))
        if group
    ]
    return [f"{counted(len(found), 'specialisation')} of kernels: {', '.join(parts)}"]


def limit_lines(report: Report) -> list[str]:
    if not report.is_real:
        return ["  an emulated device has no limits, and its clock counts steps, not time"]
    if report.bandwidth is None:
        return ["  the limits of this machine cannot be measured"]
    rates = ", ".join(f"{kind} {rate / 1e12:.3g} TFLOP/s" for kind, rate in report.rates.items())
    text = f"limits of this machine, measured: copies {report.bandwidth / 1e9:.3g} GB/s{', ' if rates else ''}{rates}"
    return [f"  {text}", *([f"  {DISTURBED.format(report.disturbed)}"] if report.disturbed else [])]


def cells_of(row: Row, report: Report) -> Sequence[str]:
    whole = report.root.seconds
    sign = "" if row.is_reported else "~"
    return (
        f"{row.seconds * 1e3:.3f}",
        f"{100 * row.seconds / whole:.1f}" if whole else "",
        str(row.calls),
        f"{row.seconds / row.calls * 1e6:.2f}" if row.calls else "",
        figure(row.gigabytes, sign),
        figure(row.teraflops, sign),
        share_text(row),
        f"{row.overhead * 1e6:.2f}" if row.overhead is not None else "",
        compile_text(row),
    )


def figure(value: float | None, sign: str) -> str:
    """Return a value with three significant digits."""
    return "" if value is None else f"{sign}{value:.3g}" if value < 100 else f"{sign}{value:.0f}"


def share_text(row: Row) -> str:
    if row.share is None:
        return ""
    if row.share > 1:
        return f"{100 * row.share:.0f} %{'*' if row.limit == MEMORY else '!'}"
    return f"{100 * row.share:.0f} % {'mem' if row.limit == MEMORY else 'ari'}"


def compile_text(row: Row) -> str:
    if not row.compilations:
        return ""
    return f"{row.compile_seconds * 1e3:.0f}{' hit' if all(one.hit for one in row.compilations) else ''}"


MUCH = 0.5  # of the program's time
GOOD = 0.7  # of the limit
OVERHEAD = 0.5  # of a kernel's time
TUNING = "autotuning "

Rule = Callable[[Report], str | None]


def advice(report: Report) -> str:
    """Return the advice of the first rule that applies."""
    rules = RULES if report.is_real else (nothing, kernel)  # steps cannot be compared with seconds
    return next(text for rule in rules if (text := rule(report)) is not None)


def nothing(report: Report) -> str | None:
    if report.kernels:
        return None
    return "no kernel was launched, so there is nothing to look at"


def tuning(report: Report) -> str | None:
    seconds = sum(row.seconds for row in report.kernels if is_tuning(row))
    if seconds < MUCH * report.seconds:
        return None
    row = max((row for row in report.kernels if is_tuning(row)), key=lambda row: row.seconds)
    return (
        f"{percent(seconds / report.seconds)} of the time the autotuner times configurations, most for `{row.name}`."
        f" Keep its results for later runs: tilework tune {report.program}"
    )


def compiling(report: Report) -> str | None:
    seconds = sum(one.seconds for one in report.compilations)
    if seconds < MUCH * report.seconds or seconds < report.root.seconds:
        return None
    slowest = max(report.compilations, key=lambda one: one.seconds)
    missed = sum(not one.hit for one in report.compilations)
    return (
        f"{percent(seconds / report.seconds)} of the time is compiling: {counted(missed, 'kernel')} not in the cache,"
        f" `{slowest.name}` took {slowest.seconds * 1e3:.0f} ms. A second run finds all there; why one is compiled"
        f" again says: tilework explain --why compiled {report.program}"
    )


def launching(report: Report) -> str | None:
    rows = [row for row in candidates(report) if row.overhead and row.overhead * row.calls > OVERHEAD * row.seconds]
    if not rows:
        return None
    row = max(rows, key=lambda row: (row.overhead or 0.0) * row.calls)
    if (row.overhead or 0.0) * row.calls < 0.1 * report.seconds:
        return None
    return (
        f"`{row.name}` runs for {row.seconds / row.calls * 1e6:.1f} us, and each of its {row.calls} launches costs"
        f" {(row.overhead or 0.0) * 1e6:.1f} us more. Let a launch do more work, fuse it with its neighbours, or call"
        f" `{row.name}.bind(..., grid=grid)` once; what its launches need says: tilework explain {report.program}"
    )


def outside(report: Report) -> str | None:
    inside = report.root.seconds + sum(one.seconds for one in report.compilations)
    if inside > (1 - MUCH) * report.seconds:
        return None
    return (
        f"{percent(1 - inside / report.seconds)} of the time is outside of kernels and their compiling, in the"
        f" program itself. Where: python -m cProfile -s tottime {report.program}. Of the kernels: {slowest(report)}"
    )


def kernel(report: Report) -> str | None:
    return slowest(report)


def slowest(report: Report) -> str:
    """The kernel that would save most if it reached its limit."""

    def lost(row: Row) -> float:
        return row.seconds * (1 - min(row.share if row.share is not None else 0.5, 1.0))

    row = max(candidates(report) or report.kernels, key=lost)
    whole = report.root.seconds
    part = f"`{row.name}` has {percent(row.seconds / whole if whole else 0)} of the kernels' time"
    next_command = f"tilework explain --why slow {report.program}"
    if row.share is None:
        return f"{part}; what limits it is not known here. Next: {next_command}"
    limit = "the memory's bandwidth" if row.limit == MEMORY else "the arithmetic"
    guess = "" if row.is_reported else ", as far as can be estimated"
    if row.share > 1 and row.limit == MEMORY:
        return (
            f"{part}, and its data comes from caches: {row.gigabytes or 0:.1f} GB/s are more than a copy gets from"
            f" memory. Next: {next_command}"
        )
    if row.share >= GOOD:
        reaches = f"{part} and reaches {percent(row.share)} of {limit}{guess}"
        return f"{reaches}: make it need less, by fusing it with its neighbours"
    return f"{part} and reaches {percent(row.share)} of {limit}{guess}. Next: {next_command}"


def candidates(report: Report) -> list[Row]:
    return [row for row in report.kernels if not is_tuning(row)]


def is_tuning(row: Row) -> bool:
    return any(part.startswith(TUNING) for part in row.path)


def percent(part: float) -> str:
    return f"{100 * part:.0f} %"


RULES: tuple[Rule, ...] = (nothing, tuning, compiling, launching, outside, kernel)
