"""Counters of programs that take turns (`targets/gpu/atomic_rules.py`): one for each launch, in the memory of its
device.

The last program of a launch sets its counter to 0 again. Launches of one kernel take one counter after the other, so
that several can run at the same time, in as many streams as there are counters.
"""

from itertools import count
from typing import NamedTuple

from tilework.runtime.devices.gpu.own_interface import DeviceArray

COUNTERS = 1024
BYTES = 4


class Counter(NamedTuple):
    """The address of a counter."""

    address: int

    def data_ptr(self) -> int:
        return self.address


class TurnCounters:
    """Those of one kernel."""

    def __init__(self, array_cls: type[DeviceArray]) -> None:
        self.array_cls = array_cls
        self.arrays: dict[int, DeviceArray] = {}  # by device
        self.numbers = count()

    def next(self) -> Counter:
        """For a launch on the current device."""
        device = self.array_cls.gpus.current_device()
        if (array := self.arrays.get(device)) is None:
            array = self.array_cls(COUNTERS * BYTES)
            array.fill(0)
            self.array_cls.gpus.synchronize()
            self.arrays[device] = array
        return Counter(array.data_ptr() + next(self.numbers) % COUNTERS * BYTES)
