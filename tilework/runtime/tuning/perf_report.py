"""Benchmarks over a range of sizes: a table for people, a CSV file for programs, a plot when matplotlib is installed.

    @perf_report(Benchmark(
        x_names=["n"], x_vals=[2**k for k in range(12, 20)], line_arg="provider", line_vals=["tilework", "numpy"],
        line_names=["tilework", "NumPy"], plot_name="add", args={}))
    def bench(n, provider):
        return do_bench(lambda: ...)

    bench.run(print_data=True)

    add:
          n  tilework     NumPy
    0  4096  0.013200  0.004100
    ...

The function returns one value per point, or (value, low, high). Nothing here needs pandas; `return_df=True` does.
"""

import csv
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tilework.runtime.progress import Progress


class Benchmark:
    """A description of measurements: the points of the x axis, one line per value of `line_arg`, fixed `args` for both.

    `x_names` are the arguments that take each value of `x_vals` (a tuple of values, for several); `line_names` are the
    names of `line_vals` in the legend, `plot_name` names the files. `xlabel`, `ylabel`, `x_log`, `y_log` and `styles`
    are for the plot.

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
    """Named columns and rows of values; a cell is None where there is nothing to say."""

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
    """A function with its benchmarks: what `perf_report` makes.

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
        """Measure everything, then print, save or show it; other keyword arguments go to the function.

        `save_path` is a folder for a table (CSV), a plot if matplotlib is installed, and a page with both. `diff_col`
        adds the difference of two lines. With `return_df` the result is a pandas frame per benchmark.

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
    """Decorate a function of one point, which returns a value or (value, low, high); `.run(...)` measures them all.

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
