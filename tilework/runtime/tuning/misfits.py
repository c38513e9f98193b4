"""Kernels that the device cannot run, refused before code is made of them."""

from collections.abc import Iterator
from contextlib import contextmanager

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.jit import JITFunction


@contextmanager
def refusing_misfits(kernel: JITFunction | None) -> Iterator[None]:
    """While this holds, compiling such a kernel for the active device raises DoesNotFit; None for what is not compiled."""
    from tilework.runtime.compile.stages import device_limits  # lazily: only compiling needs it

    utils = None if kernel is None else driver.active.utils
    limits = None if utils is None else utils.get_device_properties(driver.active.get_current_device())
    token = device_limits.set(limits)
    try:
        yield
    finally:
        device_limits.reset(token)
