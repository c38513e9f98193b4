"""Which device runs kernels: the GPU if there is one that we can drive, else the host.

    >>> driver.active.get_current_target()
    GPUTarget(backend='cpu', arch='host', warp_size=1)

The choice is made at first use, so importing tilework touches no device. TILEWORK_DEVICE decides it: ``cuda`` asks for an
NVIDIA GPU and is an error where none can be used, ``native`` and ``evaluator`` for the host, ``emulator`` for a GPU that is
not there; without it kernels go to a GPU if one can be used. `set_active` overrides all that.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilework import knobs

if TYPE_CHECKING:
    from tilework.runtime.devices.driver import Driver

GROUP = "tilework.drivers"
EMULATOR = "emulator"


def registered_drivers() -> "list[type[Driver]]":
    """The driver classes of all packages, ours too; the host comes last. The emulator is for those who ask for it."""
    from tilework.plugins import plugins  # lazily: who imports tilework may launch nothing

    found = (plugin.load() for plugin in plugins(GROUP) if plugin.name != EMULATOR)
    return sorted(found, key=lambda cls: -cls.priority)


def default_driver() -> "Driver":
    """The one driver that is active; of several those of the highest priority count."""
    asked = knobs.runtime.device
    if (asked or "").partition(":")[0] == EMULATOR:
        from tilework.plugins import plugins  # lazily: who imports tilework may launch nothing

        return next(plugin for plugin in plugins(GROUP) if plugin.name == EMULATOR).load()()
    drivers = registered_drivers()
    if asked is not None and asked not in (names := [name for cls in drivers for name in cls.asked_by]):
        raise ValueError(f"TILEWORK_DEVICE is {', '.join(sorted(names))} or emulator[:sm_90], not {asked!r}")
    if wanted := [cls for cls in drivers if asked in cls.asked_by]:
        if not wanted[0].is_active():
            raise RuntimeError(f"TILEWORK_DEVICE={asked} asks for {wanted[0].why_inactive()}")
        return wanted[0]()
    found = [cls for cls in drivers if cls.is_active()]
    if len(found) != 1:
        names = ", ".join(cls.__name__ for cls in found)
        raise RuntimeError(f"{len(found)} active drivers ([{names}]). There should only be one.")
    return found[0]()


class DriverConfig:
    """The driver in use, made when it is first asked for."""

    def __init__(self, make: "Callable[[], Driver]" = default_driver) -> None:
        self._make = make
        self._default: Driver | None = None
        self._active: Driver | None = None

    @property
    def default(self) -> "Driver":
        """The driver that was found on this machine."""
        if self._default is None:
            self._default = self._make()
        return self._default

    @property
    def active(self) -> "Driver":
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
