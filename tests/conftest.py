"""The same examples in every run: a failure in CI is a failure here. `--hypothesis-profile=explore` draws new ones.

Tests are about the CPU and emulated GPUs, also on a machine that has a real one (for that there is tests/device).
"""

import os
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


@pytest.fixture(autouse=True)
def own_knobs() -> Iterator[None]:
    """A test that selects a device, a version of Triton or another default does so for itself only, in whatever order
    its fixtures run."""
    with knobs.language.scope(), knobs.runtime.scope():
        yield


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
