"""A pytest plugin: write, for each test, its duration and the lines of the rooms that it executes.

    pytest -p tests.mutants.reach          with MUTANTS_REACH=folder in the environment

Each process writes ``reach-<pid>.jsonl.gz`` with one line per test: ``{"test": id, "seconds": s, "passed": p, "starts":
b, "hits": {file: mask}}``, where bit n of the hexadecimal mask stands for line n. Lines that other programs execute are
not seen: `starts` is true for a test that starts some. Python 3.12 reports lines at little cost (`sys.monitoring`);
Python 3.11 reports calls, and a call counts for all lines of its function.

Functions of the rooms that cache their results are emptied between tests: otherwise only the first test of a process
would reach them.
"""

import functools
import gzip
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.mutants.cores import use_cores
from tests.mutants.rooms import all_files

ROOT = Path(__file__).resolve().parents[2]
FILES = {str(file): str(file.relative_to(ROOT)) for file in all_files(ROOT)}
MODULES = {name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in FILES.values()}
CACHED: list[Any] = []


class Recorder:
    """The lines of the rooms that were executed since `start`, by file."""

    def __init__(self) -> None:
        self.hits: dict[str, set[int]] = {}
        self.monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
        if self.monitoring is not None:
            self.tool = self.monitoring.COVERAGE_ID
            self.monitoring.use_tool_id(self.tool, "tests.mutants")
            self.monitoring.register_callback(self.tool, self.monitoring.events.LINE, self.line)
            self.monitoring.set_events(self.tool, self.monitoring.events.LINE)
        else:
            sys.setprofile(self.call)
            threading.setprofile(self.call)

    def line(self, code: CodeType, line: int) -> Any:
        if code.co_filename in FILES:
            self.hits.setdefault(code.co_filename, set()).add(line)
        return self.monitoring.DISABLE  # until the next `start`

    def call(self, frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename in FILES:
            self.hits.setdefault(frame.f_code.co_filename, set()).update(lines_of(frame.f_code))

    def start(self) -> None:
        self.hits.clear()
        if sys.version_info >= (3, 12):
            self.monitoring.restart_events()

    def stop(self) -> None:
        if sys.version_info >= (3, 12):
            self.monitoring.set_events(self.tool, 0)
            self.monitoring.free_tool_id(self.tool)
        else:
            sys.setprofile(None)

    def masks(self) -> dict[str, str]:
        return {FILES[file]: hex(sum(1 << line for line in lines)) for file, lines in tuple(self.hits.items())}


@functools.cache
def lines_of(code: CodeType) -> frozenset[int]:
    return frozenset(line for _, _, line in code.co_lines() if line)


class Reach:
    """The plugin."""

    def __init__(self) -> None:
        self.recorder = Recorder()
        path = Path(os.environ["MUTANTS_REACH"]) / f"reach-{os.getpid()}.jsonl.gz"
        self.file, self.count = gzip.open(path, "wt"), 0  # noqa: SIM115
        self.passed, self.starts, self.seconds = True, False, 0.0
        sys.addaudithook(self.audit)

    def audit(self, event: str, arguments: Any) -> None:
        if event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
            self.starts = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        for function in CACHED:
            function.cache_clear()
        self.passed, self.starts, self.seconds = True, False, 0.0
        self.recorder.start()
        result = yield
        entry = {"test": item.nodeid, "seconds": round(self.seconds, 3), "passed": self.passed, "starts": self.starts}
        self.file.write(json.dumps({**entry, "hits": self.recorder.masks()}) + "\n")
        self.count += 1
        if self.count % 100 == 0:  # a run that is stopped leaves this much
            self.file.flush()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds += report.duration
        self.passed &= report.outcome == "passed"

    def pytest_sessionfinish(self) -> None:
        self.recorder.stop()
        self.file.close()


def keep_track(decorate: Callable[..., Any]) -> Callable[..., Any]:
    """`functools.cache` or `lru_cache`, which adds what it makes of functions of the rooms to CACHED."""

    def track(wrapper: Any) -> Any:
        if getattr(wrapper, "__module__", None) in MODULES:
            CACHED.append(wrapper)
        return wrapper

    def tracked(*args: Any, **kwargs: Any) -> Any:
        made = decorate(*args, **kwargs)
        return track(made) if hasattr(made, "cache_clear") else lambda function: track(made(function))

    return tracked


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    if worker is not None:
        use_cores(int(worker["workerid"][2:]))
    if worker is not None or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(Reach())


functools.cache = keep_track(functools.cache)  # before tilework is imported
functools.lru_cache = keep_track(functools.lru_cache)  # type: ignore[assignment]
