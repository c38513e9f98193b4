"""The cores that a process of the tests may use."""

import os


def use_cores(number: int) -> None:
    """Bind this thread and what it starts to two cores: kernels start a thread per core, and `number` such processes
    run beside it."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[(number + offset) % len(cores)] for offset in (0, 1)})
