"""``TILEWORK_DEVICE=emulator`` inside of a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from tilework import knobs
from tilework.runtime.devices.active_driver import default_driver
from tilework.runtime.devices.active_driver import driver as drivers
from tilework.targets.amd import libhip
from tilework.targets.nvidia import libcuda


@contextmanager
def emulator(arch: str = "", cache: str | None = None) -> Iterator[None]:
    """Kernels run on the emulated GPU in the block; those that are launched in it must not have been launched
    before."""
    before, libraries = drivers._active, [(one.FOUND, one.FOUND.found) for one in (libcuda, libhip)]
    with knobs.runtime.scope(), knobs.cache.scope():
        knobs.runtime.device = f"emulator:{arch}" if arch else "emulator"
        if cache is not None:
            knobs.cache.dir = cache
        drivers.set_active(default_driver())
        try:
            yield
        finally:
            drivers._active = before
            for owner, loaded in libraries:
                owner.found = loaded
