"""The same examples in every run: a failure in CI is a failure here. `--hypothesis-profile=explore` draws new ones.

Tests are about the CPU and emulated GPUs, also on a machine that has a real one (for that there is tests/device).
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.quick import QUICK
from tests.shared_folder import shared_by_workers
from tilework import knobs
from tilework.runtime.devices.cuda.driver import CudaDriver

HERE = Path(__file__).parent

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=30, database=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")

if CudaDriver.is_active():
    os.environ["TILEWORK_DEVICE"] = "native"


@pytest.fixture(autouse=True, scope="session")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this run alone: a kernel that an earlier run left on the disk would not be compiled, and so not be
    tested (what compiles shows warnings, for one)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_HOME", str(shared_by_workers(tmp_path_factory) / "home"))
        patch.delenv("TRITON_CACHE_DIR", raising=False)
        yield


@pytest.fixture(autouse=True)
def own_knobs() -> Iterator[None]:
    """A test that selects a device, a version of Triton or another default does so for itself only, in whatever order
    its fixtures run."""
    with knobs.language.scope(), knobs.runtime.scope():
        yield


@pytest.fixture(autouse=True)
def own_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that runs a program in this process, as some commands do, leaves it as `__main__` for itself only:
    processes that later tests spawn would run it."""
    for name in ("argv", "path"):
        monkeypatch.setattr(sys, name, [*getattr(sys, name)])
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture(scope="session")
def warm_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for programs that tests start: what each of them would compile first, the native launcher, is compiled
    once."""
    folder = shared_by_workers(tmp_path_factory) / "warm_cache"
    folder.mkdir(exist_ok=True)
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only what tests/quick.py lists: some of every folder")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --quick, all that is not listed."""
    if not config.getoption("quick") or collection_path.is_dir():
        return None
    path = collection_path.relative_to(HERE)
    return None if {str(path), *map(str, path.parents)} & set(QUICK) else True
