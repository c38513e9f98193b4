"""Everything around the compiler: launching, devices, caches, autotuning. Start at `launch/jit.py`.

`driver` is the object that knows the active device.
"""

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.failures.crash import show_stack_on_crash

__all__ = ["driver"]

show_stack_on_crash()
