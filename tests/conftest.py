"""The same examples in every run: a failure in CI is a failure here. `--hypothesis-profile=explore` draws new ones.

Tests are about the CPU and emulated GPUs, also on a machine that has a real one (for that there is tests/device).
"""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tilework.runtime.devices.cuda.driver import CudaDriver

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")

if CudaDriver.is_active():
    os.environ["TILEWORK_DEVICE"] = "native"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Nothing that is imported or collected becomes garbage: the collector does not look through all of it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()
