"""Kernels that the checks of the CUDA driver launch: see `tests/runtime/cuda_programs.py`."""

import ctypes
from typing import Any

import numpy as np

from tests.runtime import cuda_programs as programs
from tests.runtime.cuda_programs import kernel_of
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.targets.nvidia import libcuda

LARGE = 1 << 22  # elements for checks that keep the device busy
SCALE = {"p": "*fp32", "n": "i32", "a": "fp32"}


def ramp(count: int = 100) -> DeviceArray:
    return DeviceArray.of(np.arange(count, dtype=np.float32))


def expect_scaled(x: DeviceArray, by: float) -> None:
    found, wanted = x.numpy(), np.arange(x.shape[0], dtype=np.float32) * np.float32(by)
    if not (found == wanted).all():
        at = int(np.flatnonzero(found != wanted)[0])
        raise AssertionError(f"element {at} is {found[at]}, expected {wanted[at]}")


def scaling(hidden: int = 2, **facts: Any) -> Any:
    return kernel_of(programs.scale(hidden), "scale", SCALE, **facts)


def pinned(count: int) -> Any:
    """A NumPy array in pinned memory; it is never freed."""
    cuda_device.ensure_context()
    address = ctypes.c_void_p()
    libcuda.library().cuMemHostAlloc(ctypes.byref(address), 4 * count, 0)
    return np.ctypeslib.as_array((ctypes.c_uint32 * count).from_address(address.value or 0))
