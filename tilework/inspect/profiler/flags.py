"""What the profiler is doing, for code that must cost nothing while it does nothing: `flags.profiling_on`."""

from dataclasses import dataclass


@dataclass
class ProfilerFlags:
    """Whether there are sessions; whether kernels are to be instrumented; whether the `proton` command runs this program."""

    profiling_on: bool = False
    instrumentation_on: bool = False
    command_line: bool = False


flags = ProfilerFlags()
