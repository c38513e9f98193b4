"""Print a profile as a tree: `proton-viewer -m time/ms,time/% matmul.hatchet`, or from Python, without pandas or
Hatchet.

    tree, metrics = parse(["time/ms", "tflop16/s"], "matmul.hatchet", include="matmul.*")
    print_tree(tree, metrics)
    tree.dataframe                               # one row per frame, if pandas is installed

Metrics of the file have their own names. Derived ones are times (``time/ms``, ``avg_time/us``, ``cpu_time/ns``), rates
(``tflop16/s``, ``gbyte/s``), percentages (``time/%``) and ``util``, the fraction of the GPU's peak that was reached.

Peak rates of GPUs follow from their units and clocks; clocks are in kHz, `width` is the bits of an operand.

>>> max_bps("CUDA", "90", 6144, 3201000) / 1e12
4.916736
"""

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

# operations per second of 8-bit operands; wider ones take as many times as long
flops_by_device: dict[str, dict[str, Callable[[float, float], float]]] = {
    "CUDA": {
        "80": lambda num_sms, clock_rate: 624e12,
        "89": lambda num_sms, clock_rate: 330.3e12,
        "90": lambda num_sms, clock_rate: num_sms / 114 * clock_rate / 1755e3 * 1513e12,
        "100": lambda num_sms, clock_rate: num_sms * 16384 * clock_rate / 1e3 * 1e6,
    },
}
amd_fp8_flops_by_arch = {"gfx90a": 1024, "gfx942": 4096, "gfx950": 8192}
amd_bps_by_arch = {"gfx90a": 3.2e12, "gfx942": 5.3e12, "gfx950": 8.0e12}


def max_flops(device_type: str, arch: str, width: int, num_sms: float, clock_rate: float) -> float:
    """Operations per second of dense matrix multiplications."""
    if device_type == "HIP":
        if arch not in amd_fp8_flops_by_arch:
            raise ValueError(f"Unsupported architecture: {arch}")
        return amd_fp8_flops_by_arch[arch] * num_sms * clock_rate * 1e3 / (width / 8)
    if device_type not in flops_by_device:
        raise ValueError(f"Unsupported device type: {device_type}")
    if arch not in flops_by_device[device_type]:
        raise ValueError(f"Unsupported architecture: {arch}")
    return flops_by_device[device_type][arch](num_sms, clock_rate) / (width / 8)


def max_bps(device_type: str, arch: str, bus_width: float, memory_clock_rate: float) -> float:
    """Return the bytes per second of memory."""
    if device_type == "CUDA":
        return 2 * bus_width * memory_clock_rate * 1e3 / 8
    if device_type != "HIP":
        raise ValueError(f"Unsupported device type: {device_type}")
    if arch not in amd_bps_by_arch:
        raise ValueError(f"Unsupported architecture: {arch}")
    return amd_bps_by_arch[arch]


Value = Any


class ProfileError(ValueError):
    """A profile that cannot be read, or a request that does not fit it."""


@dataclass
class Frame:
    """A node: its metrics are values of the file, and columns that are derived from them."""

    name: str
    metrics: dict[str, Value]
    children: list["Frame"] = field(default_factory=list)

    def walk(self) -> Iterator["Frame"]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class FrameTree:
    """A profile: its frames, and which metrics are summed up the tree."""

    root: Frame
    inclusive: list[str]
    exclusive: list[str]

    @property
    def inc_metrics(self) -> list[str]:
        return self.inclusive

    @property
    def exc_metrics(self) -> list[str]:
        return self.exclusive

    @property
    def dataframe(self) -> Any:
        """One row per frame, as pandas has it."""
        try:
            import pandas as pd  # lazily: an optional package
        except ImportError:
            raise ImportError(
                "`dataframe` needs pandas: pip install pandas. `tree.root.walk()` needs nothing"
            ) from None
        return pd.DataFrame([{"name": frame.name, **frame.metrics} for frame in self.root.walk()])

    def kept(self, keeps: Callable[[Frame, tuple[Frame, ...]], bool]) -> "FrameTree":
        """Return a tree of the frames for which `keeps(frame, frames above it)` holds, and the frames above these."""

        def visit(frame: Frame, above: tuple[Frame, ...]) -> Frame | None:
            children = [kept for child in frame.children if (kept := visit(child, (*above, frame))) is not None]
            if not children and not keeps(frame, above) and above:
                return None
            return Frame(frame.name, frame.metrics, children)

        root = visit(self.root, ())
        assert root is not None, "the root is kept"
        return FrameTree(root, self.inclusive, self.exclusive)

    def without(self, drops: Callable[[Frame], bool]) -> "FrameTree":
        """Return the tree without frames for which `drops` holds, and all below them; the root is kept."""

        def visit(frame: Frame) -> Frame:
            return Frame(frame.name, frame.metrics, [visit(child) for child in frame.children if not drops(child)])

        return FrameTree(visit(self.root), self.inclusive, self.exclusive)


def with_branches(
    node: Any, below: Callable[[Any, int], Sequence[Any]], head: str = "", rest: str = "", level: int = 0
) -> Iterator[tuple[str, Any]]:
    """(prefix, node) of a tree, line by line; `below` gives the nodes below one at a level."""
    yield head, node
    nodes = below(node, level)
    for index, child in enumerate(nodes):
        corner, line = ("└─ ", "   ") if index == len(nodes) - 1 else ("├─ ", "│  ")
        yield from with_branches(child, below, rest + corner, rest + line, level + 1)


def read(filename: Any) -> tuple[FrameTree, list[str], list[str], dict[str, Any]]:
    """(tree, inclusive metrics, exclusive metrics, devices) of a file; inclusive metrics are summed up the tree."""
    try:
        text = filename.read() if hasattr(filename, "read") else open(filename).read()  # noqa: SIM115
        data = json.loads(text)
        root, devices = data[0], data[1] if len(data) > 1 else {}
        frame = frame_of(root)
    except OSError as error:
        raise ProfileError(f"the profile {filename} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        name = getattr(filename, "name", filename)
        raise ProfileError(
            f"{name} is no profile of the viewer's format: it reads .hatchet files of data='tree'"
        ) from None
    inclusive = sorted(frame.metrics)
    frame.metrics = {}
    drop_internal(frame)
    names = {name: None for found in frame.walk() for name in found.metrics}
    exclusive = [name for name in names if name not in inclusive]
    total(frame, inclusive)
    tree = FrameTree(frame, inclusive, exclusive)
    return tree, inclusive, exclusive, devices


def frame_of(node: dict[str, Any]) -> Frame:
    metrics = {name: str(value) if isinstance(value, list) else value for name, value in node["metrics"].items()}
    return Frame(node["frame"]["name"], metrics, [frame_of(child) for child in node["children"]])


def drop_internal(frame: Frame) -> None:
    """Leave out what a launch's metadata launched, and what holds nothing."""
    for child in frame.children:
        drop_internal(child)
    frame.children = [
        child
        for child in frame.children
        if child.name != "__proton_launch_metadata" and (child.children or child.metrics)
    ]


def total(frame: Frame, inclusive: list[str]) -> None:
    """Inclusive metrics of a frame are its own and those below it."""
    for child in frame.children:
        total(child, inclusive)
    for name in inclusive:
        values = [part.metrics[name] for part in (frame, *frame.children) if name in part.metrics]
        if values:
            frame.metrics[name] = sum(values)


def as_float(value: Value) -> float:
    """A metric as a float; NaN for one that a frame does not have."""
    return math.nan if value is None or isinstance(value, str) else float(value)


TIMES = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
TIME_BASES = {"time": "time (ns)", "cpu_time": "cpu_time (ns)"}
SCALES = {"": 1.0, "g": 1e9, "t": 1e12}
WIDTHS = ("8", "16", "32", "64")
RATE = re.compile(r"([gt]?)(flop|byte)(8|16|32|64)?/s")
FRAME_NAME = re.compile(r"(?P<file>.*):(?P<line>\d+)@(?P<function>.*)")
FORMATS: dict[str, Callable[[str, str, str], str]] = {
    "file_function_line": lambda file, line, function: f"{PurePath(file).name}:{line}@{function}",
    "function_line": lambda file, line, function: f"{line}@{function}",
    "file_function": lambda file, line, function: f"{PurePath(file).name}@{function}",
}
DEVICES = ("CUDA", "HIP")
NOT_FOUND = "Metric {} is not found. Use the --list flag to list available metrics"


# ---- what frames could reach


def get_min_time_flops(rows: Any, device_info: dict[str, Any]) -> Any:
    """The seconds that the operations of each frame take at least; `rows` is a tree, or its `dataframe`."""
    return each(rows, lambda metrics: min_time_flops(metrics, device_info))


def get_min_time_bytes(rows: Any, device_info: dict[str, Any]) -> Any:
    """The seconds that moving the bytes of each frame takes at least."""
    return each(rows, lambda metrics: min_time_bytes(metrics, device_info))


def each(rows: Any, compute: Callable[[Any], float]) -> Any:
    if isinstance(rows, FrameTree):
        return [compute(frame.metrics) for frame in rows.root.walk()]
    import pandas as pd  # lazily: the caller has pandas

    values = [compute(row) for _, row in rows.iterrows()]
    return pd.DataFrame({"min_time": values}, index=rows.index)


def device_of(metrics: Any, device_info: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    kind, index = metrics.get("device_type"), metrics.get("device_id")
    found = device_info.get(kind, {}).get(str(index)) if isinstance(kind, str) else None
    return None if found is None else (str(kind), found)


def min_time_flops(metrics: Any, device_info: dict[str, Any]) -> float:
    if (device := device_of(metrics, device_info)) is None:
        return math.nan
    kind, facts = device
    seconds = 0.0
    for width in WIDTHS:
        flops = as_float(metrics.get(f"flops{width}"))
        if flops > 0:
            peak = max_flops(kind, facts["arch"], int(width), facts["num_sms"], facts["clock_rate"])
            seconds += flops / peak
    return seconds


def min_time_bytes(metrics: Any, device_info: dict[str, Any]) -> float:
    if (device := device_of(metrics, device_info)) is None:
        return math.nan
    kind, facts = device
    count = as_float(metrics.get("bytes"))
    if not count > 0:
        return 0.0
    return count / max_bps(kind, facts["arch"], facts["bus_width"], facts["memory_clock_rate"])


# ---- columns


def derive_metrics(
    tree: FrameTree, metrics: Sequence[str], inclusive: Sequence[str], exclusive: Sequence[str], device_info: Any
) -> list[str]:
    """Compute the requested columns of each frame; the names of the columns, those that are summed up the tree with ``
    (inc)``."""
    names = []
    for metric in metrics:
        column, compute = column_of(metric, tree, inclusive, exclusive, device_info)
        for frame in tree.root.walk():
            frame.metrics[column] = compute(frame)
        names.append(column)
    return names


def column_of(
    metric: str, tree: FrameTree, inclusive: Sequence[str], exclusive: Sequence[str], device_info: Any
) -> tuple[str, Callable[[Frame], Any]]:
    """The name of a column, and what is in it."""

    def value(name: str) -> Callable[[Frame], float]:
        if name not in inclusive and name not in exclusive:
            raise ProfileError(NOT_FOUND.format(metric))
        return lambda frame: as_float(frame.metrics.get(name))

    def named(name: str) -> str:
        return f"{metric} (inc)" if name in inclusive else metric

    if metric == "util":
        return metric, lambda frame: utilization(frame, device_info)
    if (rate := RATE.fullmatch(metric)) is not None:
        return f"{metric} (inc)", rate_of(rate, metric, inclusive, value("time (ns)"))
    if metric in (*inclusive, *exclusive):
        is_text = any(isinstance(frame.metrics.get(metric), str) for frame in tree.root.walk())
        return named(metric), (lambda frame: frame.metrics.get(metric, "")) if is_text else value(metric)
    base, slash, unit = metric.rpartition("/")
    if unit == "%":
        return percentage(base, tree, inclusive, exclusive, value, metric)
    is_average, kind = base.startswith("avg_"), base.removeprefix("avg_")
    if not slash or kind not in TIME_BASES:
        raise ProfileError(NOT_FOUND.format(metric))
    if unit not in TIMES:
        raise ProfileError(f"Unsupported unit {unit}")
    time, scale = value(TIME_BASES[kind]), TIMES[unit]
    if is_average:
        count = value("count")
        return named(TIME_BASES[kind]), lambda frame: over(time(frame), scale * count(frame))
    return named(TIME_BASES[kind]), lambda frame: time(frame) / scale


def rate_of(rate: Any, metric: str, inclusive: Sequence[str], time: Callable[[Frame], float]) -> Callable[..., float]:
    """Return operations or bytes per second."""
    scale, kind, width = SCALES[rate[1]], rate[2], rate[3]
    names = ["bytes"] if kind == "byte" else [f"flops{width}"] if width else ["flops", *(f"flops{w}" for w in WIDTHS)]
    present = [name for name in names if name in inclusive]
    if not present or (kind == "byte" and width):
        raise ProfileError(NOT_FOUND.format(metric))

    def compute(frame: Frame) -> float:
        parts = [as_float(frame.metrics[name]) for name in present if name in frame.metrics]
        return over(sum(parts), time(frame) / 1e9 * scale) if parts else math.nan

    return compute


def percentage(
    base: str, tree: FrameTree, inclusive: Sequence[str], exclusive: Sequence[str], value: Any, metric: str
) -> tuple[str, Callable[[Frame], Any]]:
    """A metric as a part of the root's; of one that is not summed up, as a part of all."""
    name = TIME_BASES.get(base, base)
    get = value(name)
    if name in inclusive:
        whole = get(tree.root)
        return f"{metric} (inc)", lambda frame: over(100 * get(frame), whole)
    parts = [get(frame) for frame in tree.root.walk()]
    whole = sum(part for part in parts if not math.isnan(part))
    return metric, lambda frame: over(100 * get(frame), whole)


def over(value: float, divisor: float) -> float:
    return value / divisor if divisor else math.nan


def utilization(frame: Frame, device_info: Any) -> float:
    """The fraction of the time that the device needs at its peak; NaN for frames without a device."""
    if frame.children or device_of(frame.metrics, device_info) is None:
        return math.nan
    least = max(min_time_flops(frame.metrics, device_info), min_time_bytes(frame.metrics, device_info))
    return over(least, as_float(frame.metrics.get("time (ns)")) / 1e9)


# ---- frames


def filter_frames(
    tree: FrameTree,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
    metric: str | None = None,
) -> FrameTree:
    """Paths through frames that match `include`, or all but what is below those that match `exclude`; none below
    `threshold`."""
    if include and exclude:
        raise ProfileError("Cannot specify both include and exclude")
    if include:
        wanted = compiled(include)
        tree = tree.kept(lambda frame, above: any(wanted.fullmatch(part.name) for part in (*above, frame)))
    if exclude:
        unwanted = compiled(exclude)
        tree = tree.without(lambda frame: bool(unwanted.fullmatch(frame.name)))
    if threshold is not None and metric is not None:
        tree = tree.without(lambda frame: not as_float(frame.metrics.get(metric)) >= threshold)
    return tree


def compiled(pattern: str) -> "re.Pattern[str]":
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ProfileError(f"{pattern!r} is no regular expression: {error}") from None


def format_frames(tree: FrameTree, format: str | None) -> FrameTree:
    """Shorter names for frames of Python: ``/p/test.py:1@foo`` as ``test.py:1@foo``, ``1@foo``, ``test.py@foo``."""
    if format in (None, "full"):
        return tree
    if format not in FORMATS:
        raise ProfileError(f"Unknown format: {format}. There are full, {', '.join(FORMATS)}")
    for frame in tree.root.walk():
        if (parts := FRAME_NAME.fullmatch(frame.name)) is not None:
            frame.name = FORMATS[format](parts["file"], parts["line"], parts["function"])
    return tree


# ---- the viewer


def parse(
    metrics: Sequence[str],
    filename: Any,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[FrameTree, list[str]]:
    """(tree, columns) of a file: what `print_tree` prints."""
    tree, inclusive, exclusive, device_info = read(filename)
    columns = derive_metrics(tree, metrics, inclusive, exclusive, device_info)
    return filter_frames(tree, include, exclude, threshold, columns[0] if columns else None), columns


def print_tree(
    tree: FrameTree,
    metrics: Sequence[str],
    depth: int = 100,
    format: str | None = None,
    print_sorted: bool = False,
) -> None:
    """The tree, a line for each frame: its columns and its name."""
    format_frames(tree, format)
    for line in tree_lines(tree.root, metrics, depth):
        print(line)
    if print_sorted:
        print_sorted_kernels(tree, metrics)


def tree_lines(root: Frame, metrics: Sequence[str], depth: int) -> list[str]:
    tree = with_branches(root, lambda frame, level: ordered(frame, metrics) if level < depth else [])
    rows = [(head, *(shown(frame.metrics.get(name)) for name in metrics), frame.name) for head, frame in tree]
    return [head + " ".join(cells) for head, *cells in rows]


def ordered(frame: Frame, metrics: Sequence[str]) -> list[Frame]:
    """The largest first, by the first metric."""

    def key(child: Frame) -> float:
        value = as_float(child.metrics.get(metrics[0])) if metrics else math.nan
        return math.inf if math.isnan(value) else -value

    return sorted(frame.children, key=key)


def shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{as_float(value):.3f}"


def print_sorted_kernels(tree: FrameTree, metrics: Sequence[str]) -> None:
    """The kernels once more, as a list for each metric."""
    leaves = [frame for frame in tree.root.walk() if not frame.children and frame is not tree.root]
    for metric in metrics:
        print(f"Sorted kernels by metric {metric}")
        for frame in sorted(leaves, key=lambda frame: -as_float(frame.metrics.get(metric))):
            name = f"{frame.name[:100]}..." if len(frame.name) > 100 else frame.name
            value = frame.metrics.get(metric)
            print(f"{name:105} {value if isinstance(value, str) else f'{as_float(value):.4}'}")


def apply_diff_profile(
    tree: FrameTree,
    derived_metrics: Sequence[str],
    diff_file: Any,
    metrics: Sequence[str],
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> FrameTree:
    """A tree minus the profile of another file, frame by frame."""
    other, _ = parse(metrics, diff_file, include, exclude, threshold)
    return subtracted(tree, other, derived_metrics)


def subtracted(tree: FrameTree, other: FrameTree, columns: Sequence[str]) -> FrameTree:
    def visit(mine: Frame | None, theirs: Frame | None) -> Frame:
        some = mine or theirs
        assert some is not None, "a frame is in one of them"
        values = {}
        for column in columns:
            left, right = (
                0.0 if side is None else as_float(side.metrics.get(column, some.metrics.get(column)))
                for side in (mine, theirs)
            )
            values[column] = left - right
        sides = [{child.name: child for child in side.children} if side else {} for side in (mine, theirs)]
        names = list(dict.fromkeys([*sides[0], *sides[1]]))
        return Frame(some.name, values, [visit(sides[0].get(name), sides[1].get(name)) for name in names])

    return FrameTree(visit(tree.root, other.root), tree.inclusive, tree.exclusive)


def show_metrics(file_name: Any) -> None:
    """Print the metrics of a file."""
    _, inclusive, exclusive, _ = read(file_name)
    for title, names in (("inclusive", inclusive), ("exclusive", exclusive)):
        print(f"Available {title} metrics:")
        for name in names if title == "inclusive" else dict.fromkeys(["name", *names]):
            print(f"- {name.partition('(')[0].strip().lower()}")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="proton-viewer",
        description="Print a profile as a tree of frames with their metrics.",
        epilog="example: proton-viewer -m time/ms,time/% -i 'matmul.*' proton.hatchet",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("-l", "--list", action="store_true", help="list the metrics of the file")
    columns = "columns, separated by commas: those of --list, " + METRICS_HELP
    add("-m", "--metrics", type=lambda text: text.split(","), metavar="A[,B]", help=columns)
    add("-i", "--include", metavar="REGEX", help="keep only paths through frames whose whole name matches")
    add("-e", "--exclude", metavar="REGEX", help="drop frames whose whole name matches, and everything below them")
    add("-t", "--threshold", type=float, metavar="X", help="drop frames whose first metric is below X")
    add("-d", "--depth", type=int, default=100, metavar="N", help="the number of levels to print (default: 100)")
    add("-f", "--format", choices=("full", *FORMATS), default="full", help="how to show Python frames")
    add("--print-sorted", action="store_true", help="after the tree, print the kernels sorted by each metric")
    add("-diff", "--diff-profile", metavar="FILE2", help="subtract another profile")
    add("file", metavar="FILE", nargs="*", help="a profile (.hatchet)")
    return made


METRICS_HELP = (
    "time/s|ms|us|ns, avg_time/..., cpu_time/..., avg_cpu_time/..., flop[8|16|32|64]/s and byte/s with g or t before,"
    " METRIC/%%, util"
)


def main(argv: Sequence[str] | None = None) -> int:
    """The command `proton-viewer`; mistakes are one line."""
    made = parser()
    args = made.parse_args(argv)
    if len(args.file) != 1:
        made.error(f"exactly one profile can be shown, but {len(args.file)} are given")
    if args.include and args.exclude:
        made.error("Cannot specify both include and exclude")
    try:
        if args.list:
            show_metrics(args.file[0])
        elif args.metrics:
            filters = (args.include, args.exclude, args.threshold)
            tree, columns = parse(args.metrics, args.file[0], *filters)
            if args.diff_profile:
                tree = apply_diff_profile(tree, columns, args.diff_profile, args.metrics, *filters)
            print_tree(tree, columns, args.depth, args.format, args.print_sorted)
    except ValueError as error:  # the file, a metric or a pattern
        print(f"proton-viewer: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
