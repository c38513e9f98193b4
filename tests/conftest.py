"""The same examples in every run: a failure in CI is a failure here. `--hypothesis-profile=explore` draws new ones.

Tests are about the CPU and emulated GPUs, also on a machine that has a real one (for that there is tests/device).
"""

import contextlib
import gc
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.quick import QUICK
from tests.shared_folder import shared_by_workers
from tilework.runtime.devices.cuda.driver import CudaDriver

HERE = Path(__file__).parent

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")

os.environ["TILEWORK_COMPILE_SERVER"] = (
    "off"  # what tests start is compiled by what they test, and leaves no server behind
)

if CudaDriver.is_active():
    os.environ["TILEWORK_DEVICE"] = "native"


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for programs that tests start: what each of them would compile first, the native launcher, is compiled once."""
    folder = shared_by_workers(tmp_path_factory) / "warm_cache"
    folder.mkdir(exist_ok=True)
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only what tests/quick.py lists: some of every folder")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --quick, all that is not listed."""
    if not config.getoption("quick") or collection_path.is_dir():
        return None
    place = collection_path.relative_to(HERE)
    return None if {str(place), *map(str, place.parents)} & set(QUICK) else True


def import_share(config: pytest.Config) -> None:
    """Each worker imports some files first: pytest rewrites their asserts, which takes longer than everything else that a worker does
    before its first test, and the others find them rewritten."""
    number, count = int(config.workerinput["workerid"][2:]), config.workerinput["workercount"]  # type: ignore[attr-defined]
    files = sorted(
        file for name in config.args if (path := Path(name)).is_dir() for file in path.resolve().rglob("test_*.py")
    )
    for file in [file for file in files if pytest_ignore_collect(file, config) is None][number::count]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting it will tell
            importlib.import_module(".".join(file.relative_to(HERE.parent).with_suffix("").parts))


def say_less(interactor: Any) -> None:
    """A worker tells how a test ended. That it began, and that it was set up and torn down well, is half of what it sends, and nobody's
    news."""
    send = interactor.sendevent

    def sendevent(name: str, **facts: Any) -> None:
        report = facts.get("data", {}) if name == "testreport" else {}
        if name != "logstart" and (report.get("when", "call") == "call" or report["outcome"] != "passed"):
            send(name, **facts)

    interactor.sendevent = sendevent


def pytest_sessionstart(session: pytest.Session) -> None:
    for plugin in session.config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor" and session.config.getoption("durations") is None:
            say_less(plugin)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Nothing that is imported or collected becomes garbage: the collector does not look through all of it again and again."""
    gc.disable()
    if hasattr(session.config, "workerinput"):
        import_share(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)  # garbage is modules, which live for a test
        gc.enable()
