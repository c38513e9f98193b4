"""Which device runs kernels: the GPU if there is one that we can drive, else the host.

    >>> driver.active.get_current_target()
    GPUTarget(backend='cpu', arch='host', warp_size=1)

The choice is made at first use, so importing tilework touches no device. TILEWORK_DEVICE decides it: ``cuda`` asks for an
NVIDIA GPU and is an error where none can be used, ``native`` and ``evaluator`` for the host; without it a GPU comes first if
kernels written in Python can be compiled for it (see `cuda.py`). `set_active` overrides all that.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tilework import knobs
from tilework.backends.plugins import plugins

DRIVERS = ("tilework.runtime.cuda:CudaDriver", "tilework.runtime.host:CpuDriver")
GROUP = "tilework.drivers"


def registered_drivers() -> list[Any]:
    """Driver classes, those of GPUs first: of other packages, then ours; the host comes last."""
    found = [entry.load() for entry in plugins(GROUP)]
    for text in DRIVERS:
        module, _, name = text.partition(":")
        found.append(getattr(import_module(module), name))
    return found


def default_driver() -> Any:
    """The one driver to use: a GPU's if exactly one is usable, else the host's."""
    candidates = [cls for cls in registered_drivers() if cls.is_active()]
    gpus = [cls for cls in candidates if cls.__name__ != "CpuDriver"]
    if len(gpus) > 1:
        names = ", ".join(cls.__name__ for cls in gpus)
        raise RuntimeError(f"{len(gpus)} active drivers ({names}). There should only be one.")
    if not candidates:
        raise RuntimeError("0 active drivers ([]). There should only be one.")
    if knobs.runtime.device == "cuda" and not gpus:
        from tilework.backends.cuda.libcuda import why_unusable

        raise RuntimeError(f"TILEWORK_DEVICE=cuda asks for an NVIDIA GPU, and none can be used: {why_unusable()}")
    return (gpus or candidates)[0]()


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
