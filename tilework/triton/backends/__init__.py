"""The backends by the names Triton gives them.

    >>> backends["nvidia"].compiler, backends["cpu"].driver
    (<class 'tilework.triton.backends.nvidia.compiler.CUDABackend'>, <class 'tilework.runtime.devices.host.driver.CpuDriver'>)

Those that other packages register (entry points `tilework.backends` and `tilework.drivers`) are there too, if they have both.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from tilework.plugins import plugins
from tilework.runtime.devices.active_driver import GROUP as DRIVERS
from tilework.targets.base import GROUP
from tilework.triton.backends import amd, compiler, driver, nvidia
from tilework.triton.backends.amd.compiler import HIPBackend
from tilework.triton.backends.compiler import BaseBackend
from tilework.triton.backends.cpu.compiler import CPUBackend
from tilework.triton.backends.driver import DriverBase
from tilework.triton.backends.nvidia.compiler import CUDABackend

__all__ = ["Backend", "BaseBackend", "DriverBase", "amd", "backends", "compiler", "driver", "nvidia"]

OURS = {
    "cuda": ("nvidia", CUDABackend),
    "hip": ("amd", HIPBackend),
    "cpu": ("cpu", CPUBackend),
}  # what they are called there


@dataclass(frozen=True)
class Backend:
    """The two halves of a backend, as classes."""

    compiler: Any = None
    driver: Any = None


@cache
def discovered() -> dict[str, Backend]:
    """Ours, and those of other packages that register a compiler and a driver under one name."""
    drivers = {plugin.name: plugin.load() for plugin in plugins(DRIVERS)}
    found = {name: Backend(cls, drivers[target]) for target, (name, cls) in OURS.items()}
    others = (plugin for plugin in plugins(GROUP) if plugin.name in drivers and plugin.name not in OURS)
    return found | {plugin.name: Backend(plugin.load(), drivers[plugin.name]) for plugin in others}


def __getattr__(name: str) -> Any:
    """`backends` is made when it is asked for: the packages that it loads import this one."""
    if name != "backends":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return discovered()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
