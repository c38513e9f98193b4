"""What the parts of a compilation take."""

import time

from tilework import knobs


class Timer:
    """Microseconds of the parts of one compilation."""

    def __init__(self, ir_initialization: int) -> None:
        self.ir_initialization = ir_initialization
        self.lowering_stages: list[tuple[str, int]] = []
        self.store_results = 0

    def times(self) -> knobs.CompileTimes:
        """What the compilation listener receives."""
        return knobs.CompileTimes(self.ir_initialization, self.lowering_stages, self.store_results)


def microseconds(start: float) -> int:
    """Whole microseconds since `start`, at least one."""
    return max(1, int((time.perf_counter() - start) * 1e6))
