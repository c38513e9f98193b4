"""Time calls on the active device, in milliseconds.

    >>> do_bench(lambda: add[grid](x, y, out, n, BLOCK=1024), quantiles=[0.5, 0.2, 0.8])
    [0.0132, 0.0131, 0.0136]

One call compiles; five more give an estimate, from which the number of repetitions follows: as many as fill `rep`
milliseconds. Caches are flushed before each timed call, so that every call finds its inputs in memory. A device is
timed with its own events, the host with its monotonic clock.

When the autotuner has a best time already, a call is not measured to the end once it cannot beat that, or is known
well enough:

- before the warm-up, when no call of two rounds of five, some milliseconds apart, took less than 1.5 times the best
  median;
- when none of a tenth of all calls took less than 1.2 times that, or none of a quarter less than 1.05 times;
- when after a quarter the standard error of the median is below 0.2 %.

Noise makes calls slower and almost never faster, so a call that can win shows times below its own median among its
first ones: to be given up wrongly, every one of these calls must be that much slower than it should.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.progress import Progress

RETURN_MODES: dict[str, Callable[[list[float]], Any]] = {
    "min": min, "max": max, "mean": statistics.mean, "median": statistics.median, "all": list
}  # fmt: skip
ESTIMATE_CALLS = 5
GRAPH_REPLAYS = 10
MOST_REPEATS_OF_NOTHING = 1000

FEW, FEW_MS, HOPELESS = (
    5,
    5,
    1.5,
)  # calls of a round, milliseconds between rounds, and how much too slow all of them are
LOST = ((0.1, 1.2), (0.25, 1.05))  # a part of all calls, and how much too slow all of them are
PRECISE = 0.002  # the standard error of a median that is known well enough, as a part of it

Times = float | list[float]


class Event(Protocol):
    """A moment on a device's clock."""

    def record(self) -> None: ...
    def elapsed_time(self, end: Any) -> float: ...


class Clock(Protocol):
    """The part of a device interface that measures: the host's clock, torch.cuda, or our own module."""

    @property
    def Event(self) -> Callable[..., Event]: ...
    def synchronize(self) -> object: ...


time_to_beat: ContextVar[float] = ContextVar("time_to_beat", default=math.inf)  # milliseconds
given_up: ContextVar[str | None] = ContextVar("given_up", default=None)  # why the last call was not measured to the end


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[object] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    fast_flush: bool | None = None,
) -> Any:
    """Milliseconds of one call of `fn`: the mean, another `return_mode`, or the given quantiles.

    `return_mode` is "mean", "median", "min", "max" or "all" (a list). `warmup` and `rep` are milliseconds to spend,
    `grad_to_none` tensors whose gradients are dropped before each call. Caches are flushed before each call.
    `fast_flush` is accepted for programs written for Triton 3.0, and has no effect.

    Example:
        x = np.random.rand(1000)
        times = tilework.testing.do_bench(lambda: np.sort(x), warmup=1, rep=5, quantiles=[0.2, 0.5, 0.8])
        assert times == sorted(times)
    """
    check_return_mode(return_mode)
    active, clock = driver.active, driver.active.get_device_interface()
    grads = list(grad_to_none or ())
    fn()
    clock.synchronize()
    buffer = active.get_empty_cache_for_benchmark()
    estimate = estimate_ms(clock, lambda: (active.clear_cache(buffer), fn()))

    def measure(count: int) -> list[float]:
        pairs = []
        for _ in range(count):
            drop_gradients(grads)
            active.clear_cache(buffer)
            pairs.append(timed(clock, fn))
            if progress.is_shown:
                progress.step()
        clock.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]

    best, warmups, calls = time_to_beat.get(), repeats(warmup, estimate), repeats(rep, estimate)
    progress = Progress("do_bench", warmups + calls)
    with progress:
        return measured(
            fn, measure, progress, best, (warmups, calls, repeats(FEW_MS, estimate)), quantiles, return_mode
        )


def measured(
    fn: Callable[[], object],
    measure: Callable[[int], list[float]],
    progress: Progress,
    best: float,
    counts: tuple[int, int, int],
    quantiles: Sequence[float] | None,
    return_mode: str,
) -> Times:
    """Time as many calls as needed; `counts`: for warming up, for measuring, and between two short rounds."""
    warmups, calls, pause = counts
    if best < math.inf and min(measure(FEW)) > HOPELESS * best:
        for _ in range(pause):
            fn()
        again = measure(FEW)
        if min(again) > HOPELESS * best:
            given_up.set(reason_of(again, best))
            return summarize(again, quantiles, return_mode)
    for _ in range(warmups):
        fn()
        if progress.is_shown:
            progress.step()
    times: list[float] = []
    for count, slowdown in steps(calls, best):
        times += measure(count)
        if min(times) > slowdown * best:
            given_up.set(reason_of(times, best))
            break
        if best < math.inf and is_precise(times):
            break
    return summarize(times, quantiles, return_mode)


def reason_of(times: Sequence[float], best: float) -> str:
    """Why a call is given up."""
    least = min(times)
    beaten = f"{least / best:.2f} times the best median so far, {best:.4g} ms"
    return f"given up after {len(times)} calls: the fastest took {least:.4g} ms, {beaten}"


def steps(total: int, best: float) -> Iterator[tuple[int, float]]:
    """In how many calls to measure, and how much slower than `best` the fastest must be to stop after them.

    >>> list(steps(100, 0.5))
    [(10, 1.2), (15, 1.05), (75, inf)]
    """
    done = 0
    for part, slowdown in LOST if best < math.inf else ():
        count = max(FEW, int(part * total)) - done
        if 0 < count < total - done:
            yield count, slowdown
            done += count
    yield total - done, math.inf


def is_precise(times: Sequence[float]) -> bool:
    """Return True if more calls would hardly change the median; never for fewer than fifty."""
    spread = quantile(times, 0.8) - quantile(times, 0.2)  # 1.7 standard deviations, of which the median's error is 1.25
    return len(times) >= 50 and 0.75 * spread / math.sqrt(len(times)) < PRECISE * quantile(times, 0.5)


def do_bench_cudagraph(
    fn: Callable[[], object],
    rep: float = 20,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Like `do_bench`, for calls so short that launching them takes longer: many in one CUDA graph, replayed.

    The caches are not flushed between calls. Needs torch and an NVIDIA GPU.

    Example:
        try:
            milliseconds = tilework.testing.do_bench_cudagraph(lambda: None)
        except RuntimeError as error:
            assert "CUDA" in str(error)  # no GPU here, or no torch
    """
    check_return_mode(return_mode)
    cuda = cuda_graphs()
    grads = list(grad_to_none or ())
    with cuda.stream(cuda.Stream()):
        fn()
        for tensor in grads:
            tensor.detach_()
            tensor.requires_grad_(True)
            tensor.grad = None
        cuda.synchronize()
        estimate = estimate_ms(cuda, fn)
        count = repeats(rep, estimate)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            for _ in range(count):
                drop_gradients(grads)
                fn()
        cuda.synchronize()
        times = []
        for _ in range(GRAPH_REPLAYS):
            start, end = timed(cuda, graph.replay)
            cuda.synchronize()
            times.append(start.elapsed_time(end) / count)
    return summarize(times, quantiles, return_mode)


def cuda_graphs() -> Any:
    """The interface that captures CUDA graphs, or an error that says why there is none."""
    target = driver.active.get_current_target()
    cuda = driver.active.get_device_interface()
    if not hasattr(cuda, "CUDAGraph"):
        raise RuntimeError(
            f"do_bench_cudagraph captures a CUDA graph, and the active device is {target}: use do_bench here"
        )
    return cuda


def estimate_ms(clock: Clock, call: Callable[[], object]) -> float:
    """Milliseconds per call, from a few of them."""
    start, end = timed(clock, lambda: [call() for _ in range(ESTIMATE_CALLS)])
    clock.synchronize()
    return start.elapsed_time(end) / ESTIMATE_CALLS


def timed(clock: Clock, call: Callable[[], object]) -> tuple[Event, Event]:
    """The events before and behind a call."""
    start, end = clock.Event(enable_timing=True), clock.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    return start, end


def repeats(budget_ms: float, estimate: float) -> int:
    """Return the number of calls that fit into a budget, at least one."""
    return MOST_REPEATS_OF_NOTHING if estimate == 0 else max(1, int(budget_ms / estimate))


def drop_gradients(tensors: Iterable[Any]) -> None:
    """Let the call allocate them, instead of adding to those of the call before."""
    for tensor in tensors:
        tensor.grad = None


def check_return_mode(mode: str) -> None:
    """Refuse a misspelt mode before minutes of measuring."""
    assert mode in RETURN_MODES, f"return_mode must be one of {', '.join(RETURN_MODES)}, got {mode!r}"


def summarize(times: list[float], quantiles: Sequence[float] | None, return_mode: str) -> Times:
    """Return the statistic that the caller wants; a single quantile is a float, not a list."""
    if quantiles is not None:
        found = [quantile(times, q) for q in quantiles]
        return found[0] if len(found) == 1 else found
    return RETURN_MODES[return_mode](times)


def quantile(times: Sequence[float], q: float) -> float:
    """Return the interpolated quantile `q` of the times: ``quantile([1, 2, 3, 4], 0.5) == 2.5``."""
    if not 0 <= q <= 1:
        raise ValueError(f"quantiles are between 0 and 1, got {q}")
    ordered = sorted(times)
    position = q * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])
