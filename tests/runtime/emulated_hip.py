"""The HIP driver is active, and kernels run in the emulator of LLVM text.

with emulated_hip(devices=2) as hip:
    kernel[(4,)](DeviceArray.of(x), n, BLOCK=64)
    hip.launches[0].stream
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.runtime.hidden_gpu import no_gpu_for_torch
from tilework import knobs
from tilework.process import plugins
from tilework.runtime.devices.active_driver import driver as drivers
from tilework.runtime.devices.emulated.emulated_libhip import EmulatedHip
from tilework.runtime.devices.hip_driver import HipDriver
from tilework.targets import base
from tilework.targets.amd import libhip
from tilework.targets.amd.pipeline import HipBackend


class TextBackend(HipBackend):
    """The compiler, whose code objects carry what the emulator executes."""

    @property
    def is_emulated(self) -> bool:
        return True


@contextmanager
def emulated_hip(devices: int = 1, arch: str = "gfx942", capacity: int = 1 << 30) -> Iterator[EmulatedHip]:
    """The HIP driver is active in the block, on an emulated library."""
    library = EmulatedHip(devices, capacity, arch)
    before, loaded = drivers._active, libhip.FOUND.found
    with knobs.runtime.scope(), no_gpu_for_torch():
        knobs.runtime.device = "hip"
        libhip.FOUND.use(library)
        plugins.prefer(base.GROUP, "hip", "tests.runtime.emulated_hip:TextBackend")
        drivers.set_active(HipDriver())
        try:
            yield library
        finally:
            drivers._active, libhip.FOUND.found = before, loaded
            plugins.prefer(base.GROUP, "hip", None)
