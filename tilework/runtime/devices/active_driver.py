"""Which device runs kernels: the GPU if there is one that we can drive, else the host.

    >>> driver.active.get_current_target()
    GPUTarget(backend='cpu', arch='host', warp_size=1)

The choice is made at first use, so importing tilework touches no device. TILEWORK_DEVICE decides it: ``cuda`` asks for an
NVIDIA GPU and is an error where none can be used, ``native`` and ``evaluator`` for the host; without it kernels go to a GPU
if one can be used. `set_active` overrides all that.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tilework import knobs
from tilework.plugins import plugins

DRIVERS = ("tilework.runtime.devices.cuda.driver:CudaDriver", "tilework.runtime.devices.host.driver:CpuDriver")
GROUP = "tilework.drivers"
ON_HOST = ("native", "evaluator")  # values of TILEWORK_DEVICE


def registered_drivers() -> list[Any]:
    """Driver classes, those of GPUs first: of other packages, then ours; the host comes last."""
    found = [entry.load() for entry in plugins(GROUP)]
    for text in DRIVERS:
        module, _, name = text.partition(":")
        found.append(getattr(import_module(module), name))
    return found


def default_driver() -> Any:
    """The one driver that is active: that of a GPU, or the host's."""
    drivers = registered_drivers()
    found = [drivers[-1]] if knobs.runtime.device in ON_HOST else [cls for cls in drivers if cls.is_active()]
    if knobs.runtime.device == "cuda" and drivers[-1] in found:
        from tilework.targets.nvidia.libcuda import why_unusable

        raise RuntimeError(f"TILEWORK_DEVICE=cuda asks for an NVIDIA GPU, and none can be used: {why_unusable()}")
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found)
        raise RuntimeError(f"{len(found)} active drivers ([{names}]). There should only be one.")
    return found[0]()


class DriverConfig:
    """The driver in use, made when it is first asked for."""

    def __init__(self, make: Callable[[], Any] = default_driver) -> None:
        self._make = make
        self._default: Any = None
        self._active: Any = None

    @property
    def default(self) -> Any:
        """The driver that was found on this machine."""
        if self._default is None:
            self._default = self._make()
        return self._default

    @property
    def active(self) -> Any:
        """The driver that launches use."""
        if self._active is None:
            self._active = self.default
        return self._active

    def set_active(self, driver: Any) -> None:
        """Use `driver` from now on."""
        self._active = driver

    def reset_active(self) -> None:
        """Go back to the driver that was found."""
        self._active = self.default


driver = DriverConfig()
