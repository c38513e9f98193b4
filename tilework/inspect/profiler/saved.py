"""Profiles in files, for comparisons: what `tilework profile` saves, and what is read of it.

    {"format": "tilework-profile", "program": "train.py", "device": "cpu, Neoverse-N1, 2 threads", "seconds": 0.316,
     "kernels": [{"name": "add", "signature": "x: *fp32, n: i32, BLOCK=1024", "scope": ["adds"], "calls": 20,
                  "seconds": 0.0514, "tuning": false}], ...}

``--save run.json`` writes this, a page (``--html``) contains it. A .hatchet file, of ``--output`` or of a session of
the program, has less: neither signatures nor the time of the whole program.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilework.errors import UsageError, message_of
from tilework.inspect.page import data_of
from tilework.inspect.profiler.report import Report, Statistics, is_tuning
from tilework.inspect.profiler.viewer import ProfileError, read
from tilework.language.notebook import described
from tilework.version import __version__

FORMAT = "tilework-profile"


@dataclass(frozen=True)
class SavedKernel:
    """All launches of one kernel with one signature in one scope; empty or None is what the file does not say."""

    name: str
    calls: int
    seconds: float
    signature: str = ""
    scope: tuple[str, ...] = ()
    is_tuning: bool = False  # timed by an autotuner


@dataclass(frozen=True)
class SavedProfile:
    """A profile of a program, as a file has it."""

    program: str
    device: str
    kernels: Sequence[SavedKernel]
    seconds: float | None = None  # of the whole program
    compiling: float | None = None
    is_real: bool = True
    tilework: str = ""


def profile_data(report: Report, statistics: Statistics) -> dict[str, Any]:
    """Return a report as JSON."""
    rows = {row.path: row for row in report.kernels}
    kernels: list[dict[str, Any]] = []
    for found in statistics.kernels.values():
        row = rows[(*found.path, found.name)]
        common = {"name": found.name, "scope": list(found.path), "tuning": is_tuning(row)}
        parts = by_signature(found.works, statistics)
        if sum(calls for calls, _ in parts.values()) != found.count:
            parts = {"": (found.count, found.total)}  # the work of some launches is unknown
        for signature, (calls, total) in parts.items():
            kernels.append({**common, "signature": signature, "calls": calls, "seconds": total / 1e9})
    return {
        "format": FORMAT,
        "tilework": __version__,
        "program": report.program,
        "device": report.device,
        "is_real": report.is_real,
        "seconds": report.seconds,
        "compiling": sum(one.seconds for one in report.compilations),
        "kernels": kernels,
    }


def by_signature(works: Any, statistics: Statistics) -> dict[str, tuple[int, int]]:
    """Return launches and nanoseconds of each signature, of the launches whose work is known."""
    found: dict[str, tuple[int, int]] = {}
    for work, (calls, total) in works.items():
        kernels = statistics.compilations_of(work.launcher)
        signature = signature_of(kernels[0]) if kernels else ""
        before = found.get(signature, (0, 0))
        found[signature] = before[0] + calls, before[1] + total
    return found


def signature_of(kernel: Any) -> str:
    """Return types and constants of a compiled kernel, for a GPU also its warps and stages."""
    metadata = kernel.metadata
    options = "" if metadata.target.backend == "cpu" else f"; {metadata.num_warps} warps, {metadata.num_stages} stages"
    return described(kernel) + options


def load(path: str) -> SavedProfile:
    """Return the profile in a file; a UsageError if it has none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(message_of(error)) from None
    except UnicodeDecodeError:
        raise UsageError(no_profile(path)) from None
    if text.lstrip()[:1] == "<":
        try:
            return profile_of(json.loads(data_of(text)), path)
        except ValueError:
            raise UsageError(f"{path} is a page without a profile in it: {HOW}") from None
    try:
        data = json.loads(text)
    except ValueError:
        raise UsageError(no_profile(path)) from None
    return profile_of(data, path) if isinstance(data, dict) else hatchet_profile(path)


HOW = "compare files of `tilework profile` (--save, --html, --output)"


def no_profile(path: str) -> str:
    return f"{path} is no profile: {HOW}"


def profile_of(data: Any, path: str) -> SavedProfile:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageError(no_profile(path))
    kernels = [
        SavedKernel(one["name"], one["calls"], one["seconds"], one["signature"], tuple(one["scope"]), one["tuning"])
        for one in data["kernels"]
    ]
    return SavedProfile(
        data["program"],
        data["device"],
        kernels,
        data["seconds"],
        data["compiling"],
        data["is_real"],
        data["tilework"],
    )


def hatchet_profile(path: str) -> SavedProfile:
    """Return the profile in a file of the profiler's sessions: kernels are the frames that say what they ran on."""
    try:
        tree, _, _, devices = read(path)
    except ProfileError:
        raise UsageError(no_profile(path)) from None
    kernels: list[SavedKernel] = []

    def visit(frame: Any, scope: tuple[str, ...]) -> None:
        for child in frame.children:
            if "device_type" in child.metrics:
                calls, seconds = int(child.metrics["count"]), child.metrics["time (ns)"] / 1e9
                kernels.append(SavedKernel(child.name, calls, seconds, scope=scope))
            visit(child, (*scope, child.name))

    visit(tree.root, ())
    names = [
        f"{kind.lower()} {facts.get('arch', '')}, {facts.get('num_sms', '?')} "
        f"{'threads' if kind == 'CPU' else 'multiprocessors'}"
        for kind, known in devices.items()
        for facts in known.values()
    ]
    return SavedProfile(Path(path).name, "; ".join(names), kernels)
