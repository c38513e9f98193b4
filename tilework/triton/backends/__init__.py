"""The backends by the names Triton gives them.

    >>> backends["nvidia"].compiler, backends["cpu"].driver
    (<class 'tilework.triton.backends.nvidia.compiler.CUDABackend'>, <class 'tilework.runtime.devices.host.driver.CpuDriver'>)

Those that other packages register (entry points `tilework.backends` and `tilework.drivers`) are there too, if they have both.
"""

from dataclasses import dataclass
from typing import Any

from tilework.plugins import plugins
from tilework.runtime.devices.active_driver import GROUP as DRIVERS
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.targets import driver
from tilework.targets.base import BUILTIN, GROUP
from tilework.targets.driver import DriverBase
from tilework.triton.backends import amd, compiler, nvidia
from tilework.triton.backends.compiler import BaseBackend
from tilework.triton.backends.cpu.compiler import CPUBackend
from tilework.triton.backends.nvidia.compiler import CUDABackend

__all__ = ["Backend", "BaseBackend", "DriverBase", "amd", "backends", "compiler", "driver", "nvidia"]


@dataclass(frozen=True)
class Backend:
    """The two halves of a backend, as classes."""

    compiler: Any = None
    driver: Any = None


def discovered() -> dict[str, Backend]:
    """Ours, and those of other packages that register a compiler and a driver under one name."""
    drivers = {entry.name: entry for entry in plugins(DRIVERS)}
    others = [entry for entry in plugins(GROUP) if entry.name in drivers and entry.name not in BUILTIN]
    return {
        "nvidia": Backend(CUDABackend, CudaDriver),
        "cpu": Backend(CPUBackend, CpuDriver),
        **{entry.name: Backend(entry.load(), drivers[entry.name].load()) for entry in others},
    }


backends = discovered()
