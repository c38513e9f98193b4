"""The listener inside a program that is explained: it writes modules, counts in the emulator, compares devices.

A folder with `settings.json` asks for it: ``{"targets": ["cuda:90"], "questions": ["slow", "different"], "programs":
4}``. All of it happens at the first launch of each specialisation, before the launch itself, on its own arguments,
which are put back.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilework.errors import TritonError
from tilework.inspect.compilation import module_for, settings_for
from tilework.inspect.counters import PROGRAMS, counted_lines, emulating
from tilework.inspect.explain.different import findings_of, kernel_span, limited
from tilework.inspect.findings import Finding
from tilework.inspect.replay import Died, Kept, Launch, OutOfReach, isolated, launched, names_of
from tilework.language.grid import grid_extent
from tilework.runtime.devices.emulated.emulated_launch import arrays_in
from tilework.runtime.recording.recorder import QUIET, Recorder, is_tuning
from tilework.runtime.workers import async_compile
from tilework.target import GPUTarget

MOST_COMPARED = 20  # launches
MOST_COUNTED = 2  # specialisations of a kernel
COUNTING_SECONDS = 20.0
COUNTS = ("wavefronts", "conflicts", "tile_sectors", "least_sectors", "sectors", "requests")


class Watcher:
    """Listens to the events of `knobs.hooks` beside a recorder."""

    def __init__(self, recorder: Recorder, settings: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self.targets = [GPUTarget.parse(text) for text in settings.get("targets", ())]
        self.questions = settings.get("questions", ())
        self.devices = settings.get("devices", ())
        self.compared = 0
        self.counted_of: Counter[str] = Counter()

    def __call__(self, what: str, facts: dict[str, Any]) -> None:
        if QUIET.is_quiet:
            return
        if what == "compiled" and "slow" in self.questions:
            self.keep_modules(facts)
        elif what == "ready":
            self.see_launch(facts)

    def keep_modules(self, facts: Mapping[str, Any]) -> None:
        """Write the module of a specialisation before any pass, for its own target or for the requested ones."""
        source, compiled = facts["source"], facts["target"]
        if not hasattr(source, "fn"):
            return
        from tilework.ir.printer import print_module  # with the compiler

        for target in self.targets or [compiled]:
            path = os.path.join(
                self.recorder.folder or "", f"{facts['kernel'].hash}-{target.backend}-{target.arch}.ttir"
            )
            known = {"kernel": source.fn._fn_name, "key": facts["kernel"].hash, "target": str(target)}
            settings = settings_for(vars(facts["options"]), compiled, target)
            try:
                Path(path).write_text(
                    print_module(module_for(source, target, settings), debuginfo=True), encoding="utf-8"
                )
                self.recorder.write("module", path=path, settings=settings, **known)
            except (TritonError, ValueError) as error:
                self.recorder.write("module", failure=str(error), **known)

    def see_launch(self, facts: Mapping[str, Any]) -> None:
        """The first launch of a specialisation."""
        fn, kernel, grid = facts["fn"], facts["kernel"], facts["grid"]
        if isinstance(kernel, async_compile.FutureKernel):
            return
        extent = grid_extent(grid(dict(zip(fn.arg_names, facts["values"], strict=True))) if callable(grid) else grid)
        x, y, z = (*extent, 1, 1)[:3]
        launch = Launch(fn, tuple(facts["values"]), (x, y, z), facts["options"])
        counted = {} if is_tuning() else self.counted(launch, kernel.metadata.target)
        size = size_of(launch)
        self.recorder.write("launch", kernel=fn._fn_name, key=kernel.hash, grid=extent, bytes=size, counted=counted)
        if "different" in self.questions and not is_tuning() and launch.programs:
            self.compare(launch)

    def counted(self, launch: Launch, compiled: GPUTarget) -> dict[str, Any]:
        """Counters of a launch by line, for each NVIDIA target."""
        wanted = [target for target in self.targets or [compiled] if target.backend == "cuda"]
        if "slow" not in self.questions or not launch.programs or not wanted:
            return {}
        self.counted_of[launch.fn._fn_name] += 1
        if self.counted_of[launch.fn._fn_name] > MOST_COUNTED:
            return {}
        return {str(target): counts_apart(launch, target) for target in wanted}

    def compare(self, launch: Launch) -> None:
        self.compared += 1
        if self.compared > MOST_COMPARED:
            return
        print(f"tilework explain: comparing {launch.fn.__name__} on {len(self.devices)} devices", file=sys.stderr)
        found = isolated(lambda: [asdict(finding) for finding in findings_of(launch, self.devices)])
        if isinstance(found, Died):
            found = [asdict(fatal(launch, found))]
        for finding in found:
            self.recorder.write("different", kernel=launch.fn._fn_name, finding=finding)


def fatal(launch: Launch, died: Died) -> Finding:
    """A launch that no device may repeat."""
    name = launch.fn.__name__
    help = "TRITON_SANITIZE=1 finds accesses out of bounds; --device chooses the devices one by one"
    return Finding(
        name,
        f"{name} kills its process ({died.how}) on one of the devices",
        kernel_span(launch.fn),
        help=help,
        severity="error",
        weight=30.0,
    )


def counts_apart(launch: Launch, target: GPUTarget) -> dict[str, Any]:
    """The same as `counts_of`, in a copy of the process."""
    found = isolated(lambda: counts_of(launch, target))
    return {"why": f"the emulator's process ended: {found.how}"} if isinstance(found, Died) else found


def size_of(launch: Launch) -> int:
    """The bytes of all arrays of a launch."""
    named = names_of(launch.fn, launch.values)
    return sum(int(getattr(array, "nbytes", 0)) for name, value in named for _, array in arrays_in(name, value))


def counts_of(launch: Launch, target: GPUTarget) -> dict[str, Any]:
    """Counts of the first programs of a launch, by line; `why` there are none, if so."""
    print(f"tilework explain: counting {launch.fn.__name__} in the emulator ({target})", file=sys.stderr)
    try:
        with Kept(list(names_of(launch.fn, launch.values))), limited(COUNTING_SECONDS), emulating(f"sm_{target.arch}"):
            counters = launched(launch).counters
    except OutOfReach as error:
        return {"why": str(error)}
    except Exception as error:  # a kernel that fails in the emulator is no reason not to say the rest
        return {"why": f"{type(error).__name__}: {error}"}
    lines = [
        {"file": file, "line": line, **{name: getattr(counts, name) for name in COUNTS}}
        for (file, line), counts in counted_lines(counters)
    ]
    return {"programs": min(launch.programs, PROGRAMS), "lines": lines}


def watch(recorder: Recorder) -> Watcher:
    """Return the watcher for the settings in a recorder's folder."""
    return Watcher(recorder, json.loads(Path(recorder.folder or "", "settings.json").read_text()))
