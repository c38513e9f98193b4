"""Names that Triton's driver module imports."""

from tilework.runtime.devices.active_driver import default_driver as _create_driver
from tilework.runtime.devices.driver import Driver as DriverBase
from tilework.triton.backends import backends

__all__ = ["DriverBase", "_create_driver", "backends"]
