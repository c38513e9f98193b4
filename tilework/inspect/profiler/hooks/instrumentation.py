"""Clocks inside of kernels (``backend="instrumentation"``): tilework does not compile them, and says so.

What it offers instead: `tilework explore` and the emulator count what each line does, the cost model says what limits a loop.
"""

from tilework.inspect.profiler.flags import flags
from tilework.inspect.profiler.hooks.hook import Hook
from tilework.inspect.profiler.mode import InstrumentationMode, interpret_mode

WHY_NOT = (
    'backend="instrumentation" puts clocks into kernels, which tilework does not compile. TILEWORK_DEVICE=emulator counts what each'
    " line does (kernel.counters), TILEWORK_PERFORMANCE_REMARKS=1 says what limits a loop; the other backends time whole kernels"
)


class InstrumentationHook(Hook):
    """Knows the modes; a session cannot have it."""

    priority = 0

    def __init__(self, mode_obj: str | InstrumentationMode | None) -> None:
        self.mode: InstrumentationMode = interpret_mode(mode_obj)

    def activate(self) -> None:
        raise NotImplementedError(WHY_NOT)

    def deactivate(self) -> None:
        flags.instrumentation_on = False
