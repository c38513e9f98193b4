"""A kernel that scales an array, on the emulated CUDA driver."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilework
from tests.runtime import cuda_programs as programs
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda

SCALE = {"p": "*fp32", "n": "i32", "a": "fp32"}


@tilework.jit
def scale(p, n, a):
    pass


@pytest.fixture
def cuda(tmp_path: Path) -> Iterator[EmulatedCuda]:
    with knobs.cache.scope(), emulated_cuda(ptx=programs.scale()) as library:
        knobs.cache.dir = str(tmp_path)
        scale.device_caches.clear()
        yield library
    scale.device_caches.clear()


def ramp(count: int = 100) -> DeviceArray:
    return DeviceArray.of(np.arange(count, dtype=np.float32))


def expect_scaled(x: DeviceArray, by: float = 2.0) -> None:
    assert (x.numpy() == np.arange(x.shape[0], dtype=np.float32) * by).all()
