"""The cost of profiling: kernels of some microseconds, launched with and without it, alternating in one run.

    python -m benchmarks.profiler_overhead

A row is a way to profile, and a kernel. Rounds of launches without and with it alternate; the time is that of the whole
loop, from before the first launch to behind the last one, so that everything counts: on the host the time of all its
threads on their cores (others may use the machine meanwhile), on a GPU the time until the device is done. The overhead
is the median of the ratios of neighbouring rounds.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
import tilework.profiler as proton
from tilework.inspect.profiler.limits import device_facts
from tilework.inspect.profiler.report import Statistics
from tilework.runtime.devices.active_driver import driver

TARGETS_US = (5, 50, 500)
ROUNDS, ROUND_SECONDS = 20, 0.02


@tilework.jit
def busy(p, steps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(p + i)
    for _ in range(steps):
        x = x * 0.5 + 1.0
    tl.store(p + i, x)


@contextmanager
def session(folder: str, **settings: Any) -> Iterator[None]:
    proton.start(f"{folder}/profile", **settings)
    try:
        yield
    finally:
        proton.finalize()


@contextmanager
def command(folder: str) -> Iterator[None]:
    """Profile as `tilework profile` does while a program runs."""
    with Statistics().collecting():
        yield


WAYS: dict[str, Callable[[str], Any]] = {
    "proton.start()": session,
    "tilework profile": command,
    'hook="triton"': lambda folder: session(folder, hook="triton"),
    'context="python"': lambda folder: session(folder, context="python"),
}


def launcher_of(microseconds: float) -> tuple[Callable[[], Any], Callable[[], None], float]:
    """(a launch that takes so long, a function that waits for all, what it takes)."""
    active: Any = driver.active
    data = np.ones(1024, "f4")
    array = active.array_cls.of(data) if hasattr(active, "array_cls") else data
    wait = active.get_device_interface().synchronize
    launch = busy[(1,)]
    steps, found = 64, 0.0
    for _ in range(12):
        launch(array, steps, BLOCK=1024)
        found = min(timed(lambda steps=steps: launch(array, steps, BLOCK=1024), wait, 20) for _ in range(5)) * 1e6
        if 0.9 < found / microseconds < 1.1:
            break
        steps = max(16, round(steps * microseconds / found) // 16 * 16)
    return lambda: launch(array, steps, BLOCK=1024), wait, found


def timed(call: Callable[[], Any], wait: Callable[[], None], count: int) -> float:
    """Seconds of one of so many calls."""
    clock = time.perf_counter if hasattr(driver.active, "array_cls") else time.process_time
    start = clock()
    for _ in range(count):
        call()
    wait()
    return (clock() - start) / count


def overhead(
    way: Callable[[str], Any], call: Callable[[], Any], wait: Callable[[], None], found_us: float
) -> tuple[float, float]:
    """(median ratio of a launch with and without, microseconds that it takes longer)."""
    count = max(20, round(ROUND_SECONDS / found_us * 1e6))
    ratios, differences = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            without = timed(call, wait, count)
            with way(folder):
                call()  # the first one may take the Python path, once for a session
                wait()
                inside = timed(call, wait, count)
            after = timed(call, wait, count)
            base = (without + after) / 2
            ratios.append(inside / base)
            differences.append((inside - base) * 1e6)
    return statistics.median(ratios), statistics.median(differences)


def main() -> None:
    print(f"{device_facts()}; {ROUNDS} rounds of at least {ROUND_SECONDS * 1e3:.0f} ms each way\n")
    print(f"{'profiled by':20}{'kernel us':>12}{'more us':>10}{'overhead':>11}")
    for microseconds in TARGETS_US:
        call, wait, found = launcher_of(microseconds)
        for name, way in WAYS.items():
            ratio, more = overhead(way, call, wait, found)
            print(f"{name:20}{found:12.1f}{more:10.2f}{100 * (ratio - 1):10.1f} %")


if __name__ == "__main__":
    main()
