"""Benchmarks of kernels alone: what the profiler measures of each call."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tilework.inspect.profiler import data
from tilework.inspect.profiler.profile import deactivate, finalize, scope, start
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.tuning.benchmark import (
    captured,
    cuda_graphs,
    drop_gradients,
    estimate_ms,
    repeats,
    warm_up_for_capture,
)

TIME = "time (ns)"


def kernel_times(fn: Callable[[], object], warmup: float, rep: float, grads: Sequence[Any]) -> list[float]:
    """Return the milliseconds that the kernels of each call of `fn` take; see `tilework.testing.do_bench_proton`."""
    active, clock = driver.active, driver.active.get_device_interface()
    fn()
    clock.synchronize()
    buffer = active.get_empty_cache_for_benchmark()

    def call() -> None:
        drop_gradients(grads)
        active.clear_cache(buffer)
        fn()

    estimate = estimate_ms(clock, call)
    for _ in range(repeats(warmup, estimate)):
        call()
    with tempfile.TemporaryDirectory() as folder:  # the session's file is not of interest
        session = start(str(Path(folder, "calls")))
        if session is None:
            raise RuntimeError("do_bench_proton needs the profiler, which TRITON_PROTON_DISABLE=1 turns off")
        try:
            for number in range(repeats(rep, estimate)):
                drop_gradients(grads)
                active.clear_cache(buffer)
                with scope(str(number)):
                    fn()
            clock.synchronize()
            deactivate(session, flushing=True)
            root, _ = data.get(session)
        finally:
            finalize(session)
    times = [nanoseconds(call) / 1e6 for call in root["children"] if call["frame"]["name"].isdecimal()]
    if not any(times):
        raise RuntimeError("do_bench_proton measures kernels, and the call launches none that the profiler sees")
    return times


def kernel_times_of_graph(fn: Callable[[], object], rep: float, grads: Sequence[Any]) -> list[float]:
    """Return the milliseconds that the kernels of each replay of a graph of one call take."""
    cuda = cuda_graphs("do_bench_cudagraph_proton")
    with cuda.stream(cuda.Stream()):
        warm_up_for_capture(cuda, fn, grads)
        return kernel_times(captured(cuda, fn, grads, 1).replay, 0, rep, ())


def nanoseconds(node: dict[str, Any]) -> float:
    """Return the time of all kernels below a node of the profile."""
    return node["metrics"].get(TIME, 0) + sum(map(nanoseconds, node["children"]))
