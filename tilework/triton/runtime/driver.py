"""Names that Triton's driver module imports."""

from tilework.runtime.devices.driver import Driver as DriverBase
from tilework.triton.backends import backends

__all__ = ["DriverBase", "backends"]
