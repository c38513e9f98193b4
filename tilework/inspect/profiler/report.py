"""A profile as a table: one row per kernel and place, with what it reaches and what the machine could.

tilework profile softmax.py
  time ms     %  calls   avg us    GB/s  TFLOP/s  of limit  launch us  compile ms
   61.320  82.1    512  119.766   35.03   0.0088      61 %        1.1      cached  softmax
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tilework.inspect.profiler.estimate import SIMD, Estimate, estimate
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.profiler.stacks import Path
from tilework.inspect.profiler.statistics import Compilation, KernelTimes, Statistics
from tilework.inspect.profiler.work import Work

MEMORY, ARITHMETIC = "memory", "arithmetic"
WIDTH_KINDS = {"flops": SIMD, "flops8": "int8", "flops16": "fp16", "flops32": "fp32", "flops64": "fp64"}
COLUMNS = ("time ms", "%", "calls", "avg us", "GB/s", "TFLOP/s", "of limit", "launch us", "compile ms")


@dataclass
class Row:
    """A frame of the tree: a scope, or a kernel with what it did. Seconds, bytes and operations are those of all its launches."""

    name: str
    path: Path
    seconds: float = 0.0
    calls: int = 0
    bytes: float | None = None
    flops: Mapping[str, float] | None = None
    is_told: bool = False  # by the kernel's author; otherwise estimated
    bounds: Mapping[str, float] = field(default_factory=dict)  # seconds that memory and arithmetic need at least
    overhead: float | None = None  # seconds of one launch beside its programs
    compilations: Sequence[Compilation] = ()
    device_type: str = ""
    children: list["Row"] = field(default_factory=list)

    @property
    def is_kernel(self) -> bool:
        return bool(self.device_type)

    @property
    def gigabytes(self) -> float | None:
        """Per second."""
        return self.bytes / self.seconds / 1e9 if self.bytes is not None and self.seconds else None

    @property
    def teraflops(self) -> float | None:
        return sum(self.flops.values()) / self.seconds / 1e12 if self.flops is not None and self.seconds else None

    @property
    def limit(self) -> str | None:
        """What bounds it: the machine's memory, or its arithmetic."""
        return max(self.bounds, key=lambda name: self.bounds[name]) if self.bounds else None

    @property
    def share(self) -> float | None:
        """How much of the limit it reaches, 1 for all."""
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
    """All of it."""

    root: Row
    program: str
    device: str
    seconds: float
    compilations: Sequence[Compilation]
    bandwidth: float | None
    rates: Mapping[str, float]
    is_real: bool = True  # an emulated device counts steps, not time

    @property
    def kernels(self) -> list[Row]:
        return [row for row in self.root.walk() if row.is_kernel]


def make_report(statistics: Statistics, limits: Limits, program: str) -> Report:
    """Put together what was collected; measures what the machine can do, if nobody has."""
    root = Row("all kernels", ())
    rates: dict[str, float] = {}
    for found in statistics.kernels.values():
        row = kernel_row(found, statistics, limits, rates)
        at(root, found.path).children.append(row)
    total(root)
    bandwidth = limits.bandwidth if statistics.kernels else None
    facts = (limits.device, statistics.seconds, statistics.compilations, bandwidth, rates)
    return Report(root, program, *facts, is_real=limits.is_real)


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
    """One kernel at one place."""
    row = Row(found.name, (*found.path, found.name), found.total / 1e9, found.count, device_type=found.device_type)
    row.compilations = [one for one in statistics.compilations if one.name == found.name]
    if found.overhead_count:
        row.overhead = found.overhead / found.overhead_count / 1e9
    seen = sum(launches for launches, _ in found.works.values())
    if not seen or not limits.is_real:
        return row
    needs = [(needed(work, statistics), launches) for work, (launches, _) in found.works.items()]
    scale = found.count / seen  # of a kernel with very many works some were looked at
    row.is_told = all(told for (_, told), _ in needs) and seen == found.count
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
    """What a launch needs, and whether its author says so; what is not said is estimated."""
    told = dict(work.told)
    flops = {WIDTH_KINDS[name]: value for name, value in told.items() if name in WIDTH_KINDS}
    if flops and "bytes" in told:
        return Estimate(flops, told["bytes"]), True
    module = module_of(work.launcher, tuple(statistics.compilations_of(work.launcher)))
    found = estimate(module, work) if module is not None else Estimate(None, None)
    return Estimate(flops or found.flops, told.get("bytes", found.bytes)), False


@cache
def module_of(launcher: Any, kernels: tuple[Any, ...]) -> Any:
    """The TTIR of what a launcher launches; None if there is none, as for kernels that come as PTX."""
    from tilework.ir.parser import parse_module  # lazily: the IR is needed for estimates only

    for kernel in kernels:
        if "ttir" in kernel.asm:
            return parse_module(kernel.asm["ttir"], f"{kernel.name}.ttir")
    return None
