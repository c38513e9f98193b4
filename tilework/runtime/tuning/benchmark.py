"""Time calls on the active device, in milliseconds.

    >>> do_bench(lambda: add[grid](x, y, out, n, BLOCK=1024), quantiles=[0.5, 0.2, 0.8])
    [0.0132, 0.0131, 0.0136]

One call compiles; five more give an estimate, from which the number of repetitions follows: as many as fill `rep`
milliseconds. On the host they begin when the process's other threads are idle (`let_threads_rest`). Caches are flushed
before each timed call, so that every call finds its inputs in memory. A device is timed with its own events, the host
with its monotonic clock.

Once the autotuner has a best time, a measurement ends early if the call cannot beat that time, or if its median is
known precisely enough:

- before the warm-up, when no call of two rounds of five, some milliseconds apart, took less than 1.5 times the best
  median;
- when none of a tenth of all calls took less than 1.2 times that, or none of a quarter less than 1.05 times;
- when after a quarter the standard error of the median is below 0.2 %.

Noise makes calls slower and almost never faster, so the first measurements of a call that can win include times below
its median. It is abandoned wrongly only if noise slows every one of them by that factor.

After an idle period, a GPU runs for some 0.1 s at clocks that its power limit does not sustain: matrix products on an
H200 are 8 % faster then. The autotuner compares calls that follow others immediately with calls that had to wait for
the compiler. Therefore it warms the GPU up for 0.1 s before the latter.
"""

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
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
REST_S, GLANCE_S = 0.3, 0.004  # how long other threads may go on, and how long one looks whether they do
REST_MS, SETTLE_MS = 30, 100  # a rest of a GPU after which its clocks are high, and for how long they are
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
effort: ContextVar[float] = ContextVar("effort", default=1.0)  # the share of `warmup` and `rep` that is to be spent
settles: ContextVar[bool] = ContextVar("settles", default=False)  # whether a GPU that has rested is warmed up longer
given_up: ContextVar[str | None] = ContextVar("given_up", default=None)  # why the last call was not measured to the end
ENDED: list[float] = []  # when the last call of `do_bench` ended


def do_bench(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[object] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    fast_flush: bool | None = None,
) -> Any:
    """The milliseconds that one call of `fn` takes: the mean, another `return_mode`, or the given quantiles.

    `return_mode` is "mean", "median", "min", "max" or "all" (a list). `warmup` and `rep` are the milliseconds to spend
    on each, and `grad_to_none` lists tensors whose gradients are dropped before each call. Caches are flushed before
    each call. `fast_flush` is accepted for programs written for Triton 3.0 and has no effect.

    Example:
        x = np.random.rand(1000)
        times = tilework.testing.do_bench(lambda: np.sort(x), warmup=1, rep=5, quantiles=[0.2, 0.5, 0.8])
        assert times == sorted(times)
    """
    check_return_mode(return_mode)
    active, clock = driver.active, driver.active.get_device_interface()
    grads = list(grad_to_none or ())
    began = time.monotonic()
    fn()
    clock.synchronize()
    if active.get_current_target().backend == "cpu":
        let_threads_rest()
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

    best, share = time_to_beat.get(), effort.get()
    warmup_ms = max(share * warmup, SETTLE_MS) if must_settle(began) else share * warmup
    warmups, calls = repeats(warmup_ms, estimate), repeats(share * rep, estimate)
    progress = Progress("do_bench", warmups + calls)
    try:
        with progress:
            return measured(
                fn, measure, progress, best, (warmups, calls, repeats(FEW_MS, estimate)), quantiles, return_mode
            )
    finally:
        ENDED[:] = [time.monotonic()]


def must_settle(now: float) -> bool:
    """Return True if the measurement that begins now is one of several, on a GPU that has rested before it."""
    has_rested = not ENDED or 1e3 * (now - ENDED[0]) > REST_MS
    return settles.get() and has_rested and driver.active.get_current_target().backend != "cpu"


def let_threads_rest() -> None:
    """Wait until no other thread of this process computes, for at most REST_S.

    The threads of a BLAS library spin for some 0.2 s after a call. A kernel whose threads share cores with them takes
    milliseconds, however short it is.
    """
    end = time.monotonic() + REST_S
    while time.monotonic() < end:
        before = time.process_time()
        time.sleep(GLANCE_S)
        if time.process_time() - before < GLANCE_S / 4:
            return


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
    """Return the reason that a call is not measured to the end."""
    least = min(times)
    beaten = f"{least / best:.2f} times the best median so far, {best:.4g} ms"
    return f"given up after {len(times)} calls: the fastest took {least:.4g} ms, {beaten}"


def steps(total: int, best: float) -> Iterator[tuple[int, float]]:
    """Yield (a number of calls, the ratio to `best` that ends the measurement if no call so far is faster).

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
    """Like `do_bench`, for calls that are shorter than their launch: it replays a CUDA graph of many calls.

    The caches are not flushed between calls. It needs torch and an NVIDIA GPU.

    Example:
        try:
            milliseconds = tilework.testing.do_bench_cudagraph(lambda: None)
        except RuntimeError as error:
            assert "CUDA" in str(error)  # no GPU here, or no torch
    """
    check_return_mode(return_mode)
    cuda = cuda_graphs("do_bench_cudagraph")
    with cuda.stream(cuda.Stream()):
        warm_up_for_capture(cuda, fn, grads := list(grad_to_none or ()))
        count = repeats(rep, estimate_ms(cuda, fn))
        graph = captured(cuda, fn, grads, count)
        times = []
        for _ in range(GRAPH_REPLAYS):
            start, end = timed(cuda, graph.replay)
            cuda.synchronize()
            times.append(start.elapsed_time(end) / count)
    return summarize(times, quantiles, return_mode)


def warm_up_for_capture(cuda: Any, fn: Callable[[], object], grads: Iterable[Any]) -> None:
    """Call `fn` once; cut the tensors whose gradients are dropped out of the graphs of autograd."""
    fn()
    for tensor in grads:
        tensor.detach_()
        tensor.requires_grad_(True)
        tensor.grad = None
    cuda.synchronize()


def captured(cuda: Any, fn: Callable[[], object], grads: Sequence[Any], count: int) -> Any:
    """Return the graph of `count` calls."""
    graph = cuda.CUDAGraph()
    with cuda_graph_without_gc(graph):
        for _ in range(count):
            drop_gradients(grads)
            fn()
    cuda.synchronize()
    return graph


@contextmanager
def cuda_graph_without_gc(*args: Any, **kwargs: Any) -> Iterator[Any]:
    """Capture a CUDA graph, as ``torch.cuda.graph(...)`` does, while Python's cyclic garbage collector is off.

    The collector may free what a capture must not free: memory of the GPU, events, modules of other libraries.

    Example:
        try:
            with tilework.testing.cuda_graph_without_gc(None):
                pass
        except RuntimeError as error:
            assert "CUDA" in str(error)  # no GPU here, or no torch
    """
    graph = cuda_graphs("cuda_graph_without_gc").graph(*args, **kwargs)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with graph as entered:
            yield entered
    finally:
        if was_enabled:
            gc.enable()


def cuda_graphs(name: str) -> Any:
    """The interface that captures CUDA graphs for the function `name`, or an error that says why there is none."""
    target = driver.active.get_current_target()
    cuda = driver.active.get_device_interface()
    if not hasattr(cuda, "CUDAGraph"):
        instead = ": use do_bench here" if name == "do_bench_cudagraph" else ""
        raise RuntimeError(f"{name} captures a CUDA graph, and the active device is {target}{instead}")
    return cuda


def estimate_ms(clock: Clock, call: Callable[[], object]) -> float:
    """Milliseconds per call, from a few of them."""
    start, end = timed(clock, lambda: [call() for _ in range(ESTIMATE_CALLS)])
    clock.synchronize()
    return start.elapsed_time(end) / ESTIMATE_CALLS


def timed(clock: Clock, call: Callable[[], object]) -> tuple[Event, Event]:
    """Return the events before and after a call."""
    start, end = clock.Event(enable_timing=True), clock.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    return start, end


def repeats(budget_ms: float, estimate: float) -> int:
    """Return the number of calls that fit into a budget, at least one."""
    return MOST_REPEATS_OF_NOTHING if estimate == 0 else max(1, int(budget_ms / estimate))


def drop_gradients(tensors: Iterable[Any]) -> None:
    """Drop the gradients of tensors, so that the next call allocates them instead of adding to them."""
    for tensor in tensors:
        tensor.grad = None


def check_return_mode(mode: str) -> None:
    """Refuse a misspelt mode before the measurements, which may take minutes."""
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


# ---- benchmarks over a range of sizes: a table for people, a CSV file for programs, a plot when matplotlib is
# installed.
#
#     @perf_report(Benchmark(
#         x_names=["n"], x_vals=[2**k for k in range(12, 20)], line_arg="provider", line_vals=["tilework", "numpy"],
#         line_names=["tilework", "NumPy"], plot_name="add", args={}))
#     def bench(n, provider):
#         return do_bench(lambda: ...)
#
#     bench.run(print_data=True)
#
#     add:
#           n  tilework     NumPy
#     0  4096  0.013200  0.004100
#     ...
#
# The function returns one value per point, or (value, low, high). Nothing here needs pandas; `return_df=True` does.


class Benchmark:
    """A description of measurements: the points of the x axis, one line per value of `line_arg`, and fixed `args`.

    `x_names` are the arguments that take each value of `x_vals` (for several arguments, a tuple of values).
    `line_names` are the names of `line_vals` in the legend, and `plot_name` names the files. `xlabel`, `ylabel`,
    `x_log`, `y_log` and `styles` control the plot.

    Example:
        benchmark = tilework.testing.Benchmark(
            x_names=["n"],
            x_vals=[64, 128],
            line_arg="library",
            line_vals=["numpy", "tilework"],
            line_names=["NumPy", "tilework"],
            plot_name="sort",
            args={},
        )
        assert benchmark.x_vals == [64, 128]
    """

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Sequence[object],
        line_arg: str,
        line_vals: Sequence[object],
        line_names: Sequence[str],
        plot_name: str,
        args: dict[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Sequence[tuple[str, str]] | None = None,
    ) -> None:
        self.x_names = x_names
        self.x_vals = x_vals
        self.x_log = x_log
        self.line_arg = line_arg
        self.line_vals = line_vals
        self.line_names = line_names
        self.y_log = y_log
        self.styles = styles
        self.xlabel = xlabel
        self.ylabel = ylabel
        self.plot_name = plot_name
        self.args = args


@dataclass
class Table:
    """Named columns and rows of values; a cell without a value is None."""

    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)

    def column(self, name: str) -> list[Any]:
        """One column, top to bottom."""
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def text(self, precision: int = 6) -> str:
        """Aligned to the right under the names, rows numbered."""
        body = [[str(index), *(cell_text(cell, precision) for cell in row)] for index, row in enumerate(self.rows)]
        lines = [["", *self.columns], *body]
        widths = [max(len(line[index]) for line in lines) for index in range(len(self.columns) + 1)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
        )

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show."""
        from tilework.language.notebook import table_html  # lazily: only notebooks need it

        return table_html(self)

    def write_csv(self, path: Path, precision: int) -> None:
        """Write the same values, comma-separated, under one line of names."""
        import csv  # lazily: only reports need it

        with path.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            for row in self.rows:
                writer.writerow([cell_text(cell, precision, missing="") for cell in row])


def cell_text(cell: object, precision: int, missing: str = "NaN") -> str:
    """Floats with a fixed number of digits, everything else as it is."""
    if cell is None:
        return missing
    return f"{cell:.{precision}f}" if isinstance(cell, float) else str(cell)


class Mark:
    """A function with its benchmarks, as returned by `perf_report`.

    Example:
        benchmark = tilework.testing.Benchmark(["n"], [1, 2], "scale", [10], ["ten"], "products", args={})
        mark = tilework.testing.perf_report(benchmark)(lambda n, scale: float(n * scale))
        assert isinstance(mark, tilework.testing.Mark)
    """

    def __init__(self, fn: Callable[..., object], benchmarks: Benchmark | Sequence[Benchmark]) -> None:
        self.fn = fn
        self.benchmarks = benchmarks
        self.reports: list[tuple[Benchmark, Table]] = []  # of the last run

    def __repr__(self) -> str:
        count = 1 if isinstance(self.benchmarks, Benchmark) else len(self.benchmarks)
        state = "\n".join(f"{benchmark.plot_name}:\n{table.text()}" for benchmark, table in self.reports)
        return state or f"Mark({self.fn.__name__}, {count} benchmarks, not run yet)"

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show: the reports of the last run."""
        from tilework.language.notebook import mark_html  # lazily: only notebooks need it

        return mark_html(self)

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        diff_col: bool = False,
        save_precision: int = 6,
        **kwargs: object,
    ) -> Any:
        """Measure all points, then print, save or show the results; other keyword arguments are passed to the function.

        `save_path` is a folder for a table (CSV), a plot if matplotlib is installed, and a page with both. `diff_col`
        adds a column with the difference of two lines. With `return_df`, the result is a pandas data frame per
        benchmark.

        Example:
            import tempfile, pathlib

            lines = [10, 20], ["ten", "twenty"]
            benchmark = tilework.testing.Benchmark(["n"], [1, 2], "scale", *lines, "products", args={})
            mark = tilework.testing.perf_report(benchmark)(lambda n, scale: float(n * scale))
            with tempfile.TemporaryDirectory() as folder:
                mark.run(save_path=folder, save_precision=0)
                assert pathlib.Path(folder, "products.csv").read_text().splitlines()[1].startswith("1,10,20")
        """
        if return_df:
            require("pandas", "return_df=True returns pandas frames; save_path writes the same numbers as CSV")
        if show_plots:
            require("matplotlib", "show_plots=True draws with matplotlib; print_data=True prints the numbers")
        benchmarks = [self.benchmarks] if isinstance(self.benchmarks, Benchmark) else list(self.benchmarks)
        folder = Path(save_path) if save_path else None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self.reports = []
        for benchmark in benchmarks:
            table = self.measure(benchmark, kwargs)
            if (show_plots or folder is not None) and has("matplotlib"):
                draw(benchmark, table, folder, show_plots)
            shown = shown_columns(table, benchmark, diff_col)
            if print_data:
                print(f"{benchmark.plot_name}:\n{shown.text(save_precision)}")
            if folder is not None:
                shown.write_csv(folder / f"{benchmark.plot_name}.csv", save_precision)
            self.reports.append((benchmark, shown))
        if folder is not None:
            write_html(folder, self.reports)
        if not return_df:
            return None
        frames = [data_frame(table) for _, table in self.reports]
        return frames[0] if isinstance(self.benchmarks, Benchmark) else frames

    def measure(self, benchmark: Benchmark, kwargs: dict[str, Any]) -> Table:
        """Call the function at every point of every line."""
        names = list(benchmark.line_names)
        table = Table([*benchmark.x_names, *names, *(f"{n}-min" for n in names), *(f"{n}-max" for n in names)])
        points = list(benchmark.x_vals)
        with Progress(benchmark.plot_name, len(points) * len(names)) as progress:
            for x in points:
                point = list(x) if isinstance(x, list | tuple) else [x] * len(benchmark.x_names)
                if len(point) != (count := len(benchmark.x_names)):
                    raise ValueError(f"expected {count} values for {list(benchmark.x_names)}, got {x!r}")
                named = dict(zip(benchmark.x_names, point, strict=True))
                results = []
                for line in benchmark.line_vals:
                    results.append(self.fn(**named, **{benchmark.line_arg: line}, **benchmark.args, **kwargs))
                    progress.step(", ".join(f"{name}={value}" for name, value in named.items()))
                triples = [result if isinstance(result, list | tuple) else (result, None, None) for result in results]
                table.rows.append([*point, *(triple[part] for part in range(3) for triple in triples)])
        return table


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorate a function that measures one point and returns a value or (value, low, high); `.run(...)` measures all
    points.

    Example:
        from tilework.testing import Benchmark, perf_report

        @perf_report(Benchmark(["n"], [64, 128], "kind", ["quicksort", "stable"], ["quick", "stable"], "sort", {}))
        def bench(n, kind):
            x = np.random.rand(n)
            return tilework.testing.do_bench(lambda: np.sort(x, kind=kind), warmup=1, rep=1)

        bench.run(print_data=True)
    """
    return lambda fn: Mark(fn, benchmarks)


def has(library: str) -> bool:
    """Return True if an optional library is installed."""
    return find_spec(library) is not None


def require(library: str, otherwise: str) -> None:
    """Import an optional library."""
    if not has(library):
        raise RuntimeError(f"{library} is not installed: {otherwise}")


def shown_columns(table: Table, benchmark: Benchmark, diff_col: bool) -> Table:
    """The table without the ranges, and on request with the difference of two lines."""
    keep = len(benchmark.x_names) + len(benchmark.line_names)
    shown = Table(table.columns[:keep], [row[:keep] for row in table.rows])
    if diff_col and len(benchmark.line_names) == 2:
        shown.columns.append("Diff")
        for row in shown.rows:
            row.append(row[-1] - row[-2])
    return shown


def draw(benchmark: Benchmark, table: Table, folder: Path | None, show: bool) -> None:
    """One line per `line_vals`, with its range shaded where the function gave one."""
    import matplotlib.pyplot as plt  # lazily: an optional dependency

    figure, axes = plt.subplots()
    xs = table.column(benchmark.x_names[0])
    for index, name in enumerate(benchmark.line_names):
        color, style = benchmark.styles[index] if benchmark.styles else (None, None)
        (line,) = axes.plot(xs, table.column(name), label=name, color=color, ls=style)
        low, high = table.column(f"{name}-min"), table.column(f"{name}-max")
        if None not in low and None not in high:
            axes.fill_between(xs, low, high, alpha=0.15, color=line.get_color())
    axes.legend()
    axes.set_xlabel(benchmark.xlabel or ", ".join(benchmark.x_names))
    axes.set_ylabel(benchmark.ylabel)
    axes.set_xscale("log" if benchmark.x_log else "linear")
    axes.set_yscale("log" if benchmark.y_log else "linear")
    if folder is not None:
        figure.savefig(folder / f"{benchmark.plot_name}.png")
    if show:
        plt.show()
    plt.close(figure)


def write_html(folder: Path, tables: Sequence[tuple[Benchmark, Table]]) -> None:
    """``results.html``: every plot there is, with its table."""
    import html  # lazily: only reports need it

    parts = ["<html><body>"]
    for benchmark, table in tables:
        name = html.escape(benchmark.plot_name)
        parts.append(f"<h2>{name}</h2>")
        if (folder / f"{benchmark.plot_name}.png").exists():
            parts.append(f'<img src="{name}.png"/>')
        parts.append(f"<pre>{html.escape(table.text())}</pre>")
    (folder / "results.html").write_text("\n".join([*parts, "</body></html>", ""]))


def data_frame(table: Table) -> Any:
    """The table for pandas."""
    import pandas  # lazily: an optional dependency

    return pandas.DataFrame(table.rows, columns=table.columns)
