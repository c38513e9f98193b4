"""What files of profiles say about devices: enough for a reader to compute what they could reach."""

import platform
from typing import Any

from tilework.runtime.devices.active_driver import driver
from tilework.targets.cpu.processor import available_cores


class Devices:
    """The devices that kernels ran on, by kind and number."""

    def __init__(self) -> None:
        self.facts: dict[str, dict[str, dict[str, Any]]] = {}

    def add(self, kind: str, number: int) -> None:
        known = self.facts.setdefault(kind, {})
        if str(number) not in known:
            known[str(number)] = facts_of(kind, number)


def facts_of(kind: str, number: int) -> dict[str, Any]:
    """Architecture, units, clocks in kHz; 0 for what the host does not tell."""
    if kind == "CPU":
        unknown = dict.fromkeys(("clock_rate", "memory_clock_rate", "bus_width"), 0)
        return {"arch": platform.machine(), "num_sms": available_cores(), **unknown}
    active = driver.active
    found = active.utils.get_device_properties(number)
    return {
        "arch": str(active.get_current_target().arch),
        "num_sms": found["multiprocessor_count"],
        "clock_rate": found["sm_clock_rate"],
        "memory_clock_rate": found["mem_clock_rate"],
        "bus_width": found["mem_bus_width"],
    }
