"""The host's clock with the interface of a device that has events: calls are finished when they return."""

import time


class HostEvent:
    """A moment on the host's clock, with the interface of a device event."""

    def __init__(self, enable_timing: bool = True) -> None:
        self.moment = 0

    def record(self) -> None:
        """Remember now."""
        self.moment = time.perf_counter_ns()

    def elapsed_time(self, end: "HostEvent") -> float:
        """Milliseconds from this moment to `end`."""
        return (end.moment - self.moment) / 1e6


class HostClock:
    """The device interface of the host: calls are finished when they return."""

    Event = HostEvent

    @staticmethod
    def synchronize() -> None:
        """Nothing is under way."""
