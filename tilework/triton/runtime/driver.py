"""Names that Triton's driver module imports."""

from tilework.targets.driver import DriverBase
from tilework.triton.backends import backends

__all__ = ["DriverBase", "backends"]
