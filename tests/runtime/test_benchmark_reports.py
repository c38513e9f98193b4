"""`Benchmark` and `perf_report`: tables, files, plots."""

import csv
import inspect
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tilework import testing
from tilework.runtime.tuning import benchmark as reports


def sizes(x: Any, **changes: Any) -> testing.Benchmark:
    return testing.Benchmark(
        **{"x_names": ["n"], "x_vals": x, "line_arg": "provider", "line_vals": ["a", "b"], "line_names": ["A", "B"],
           "plot_name": "speed", "args": {"scale": 2}} | changes
    )  # fmt: skip


def measure(n: int, provider: str, scale: int, offset: float = 0.0) -> float:
    return n * scale + (0.5 if provider == "b" else 0.0) + offset


def test_report_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    testing.perf_report(sizes([1, 20]))(measure).run(print_data=True)
    assert capsys.readouterr().out == "\n".join(
        ["speed:", "    n          A          B", "0   1   2.000000   2.500000", "1  20  40.000000  40.500000", ""]
    )


def test_report_writes_csv_and_html(tmp_path: Path) -> None:
    mark = testing.perf_report([sizes([1, 2])])(measure)
    assert mark.run(save_path=str(tmp_path / "out"), diff_col=True, save_precision=2, offset=1.0) is None
    rows = list(csv.reader((tmp_path / "out" / "speed.csv").open()))
    assert rows == [["n", "A", "B", "Diff"], ["1", "3.00", "3.50", "0.50"], ["2", "5.00", "5.50", "0.50"]]
    assert "speed" in (tmp_path / "out" / "results.html").read_text()


def test_points_may_be_tuples_and_results_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = sizes([(1, 2), 3], x_names=["n", "m"], line_vals=["a"], line_names=["A"])
    mark = testing.perf_report(benchmark)(lambda n, m, provider, scale: (n * m, 0, 9))
    table = mark.measure(benchmark, {})
    assert table.columns == ["n", "m", "A", "A-min", "A-max"]
    assert table.rows == [[1, 2, 2, 0, 9], [3, 3, 9, 0, 9]]
    with pytest.raises(ValueError, match="expected 2 values"):
        testing.perf_report(sizes([(1, 2, 3)], x_names=["n", "m"]))(measure).run()


def test_optional_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "has", lambda library: False)
    mark = testing.perf_report(sizes([1]))(measure)
    with pytest.raises(RuntimeError, match="pandas is not installed"):
        mark.run(return_df=True)
    with pytest.raises(RuntimeError, match="matplotlib is not installed"):
        mark.run(show_plots=True)


def test_plots(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    testing.perf_report(sizes([1, 2], styles=[("red", "-"), ("blue", "--")], x_log=True))(measure).run(
        save_path=str(tmp_path)
    )
    assert (tmp_path / "speed.png").stat().st_size > 0


def test_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = testing.perf_report(sizes([1, 2]))(measure).run(return_df=True)
    assert isinstance(frame, pandas.DataFrame) and list(frame["B"]) == [2.5, 4.5]
    assert isinstance(testing.perf_report([sizes([1])])(measure).run(return_df=True), list)


def test_a_benchmark_holds_what_it_is_given() -> None:
    required = "x_names x_vals line_arg line_vals line_names plot_name args".split()
    optional = {"xlabel": "", "ylabel": "", "x_log": False, "y_log": False, "styles": None}
    parameters = inspect.signature(testing.Benchmark).parameters
    assert list(parameters) == [*required, *optional]
    assert {name: parameters[name].default for name in optional} == optional
    given: dict[str, Any] = {name: object() for name in (*required, *optional)}
    made = testing.Benchmark(**given)
    assert {name: getattr(made, name) for name in given} == given


def without(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    monkeypatch.setattr(reports, "has", lambda library: library not in libraries)
    for library in libraries:
        monkeypatch.setitem(sys.modules, library, None)


def test_without_matplotlib_and_pandas_there_is_all_but_plots(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "matplotlib", "pandas")
    mark = testing.perf_report([sizes([1, 2]), sizes([4], plot_name="other")])(measure)
    assert mark.run(print_data=True, save_path=str(tmp_path / "a" / "b")) is None
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["other.csv", "results.html", "speed.csv"]
    rows = list(csv.reader((tmp_path / "a" / "b" / "other.csv").open()))
    assert rows == [["n", "A", "B"], ["4", "8.000000", "8.500000"]]
    printed = capsys.readouterr().out
    assert printed.startswith("speed:\n") and "other:\n" in printed
    wishes: list[tuple[dict[str, Any], str]] = [({"show_plots": True}, "matplotlib"), ({"return_df": True}, "pandas")]
    for wish, library in wishes:
        with pytest.raises(RuntimeError, match=f"{library} is not installed"):
            mark.run(**wish)


class FakePlots(ModuleType):
    """The part of matplotlib.pyplot that is used; remembers what was drawn."""

    def __init__(self) -> None:
        super().__init__("matplotlib.pyplot")
        self.log: list[tuple[Any, ...]] = []

    def subplots(self) -> tuple[Any, Any]:
        note = lambda name: lambda *args, **kwargs: self.log.append((name, args, kwargs))
        line = SimpleNamespace(get_color=lambda: "green")
        names = "fill_between legend set_xlabel set_ylabel set_xscale set_yscale".split()
        axes = SimpleNamespace(
            plot=lambda *args, **kwargs: self.log.append(("plot", args, kwargs)) or [line],
            **{name: note(name) for name in names},
        )
        return SimpleNamespace(savefig=lambda path: Path(path).write_bytes(b"png")), axes

    def show(self) -> None:
        self.log.append(("show", (), {}))

    def close(self, figure: Any) -> None:
        self.log.append(("close", (), {}))


@pytest.fixture
def plots(monkeypatch: pytest.MonkeyPatch) -> FakePlots:
    fake = FakePlots()
    monkeypatch.setattr(reports, "has", lambda library: True)
    package = ModuleType("matplotlib")
    package.pyplot = fake  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "matplotlib", package)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", fake)
    return fake


def test_what_is_generated(plots: FakePlots, tmp_path: Path) -> None:
    benchmark = sizes([1, 2], xlabel="size", ylabel="ms", x_log=True, styles=[("red", "-"), ("blue", "--")])
    testing.perf_report(benchmark)(lambda n, provider, scale: (n, n - 1, n + 1) if provider == "a" else n).run(
        save_path=str(tmp_path)
    )
    generated = [entry for entry in plots.log if entry[0] == "plot"]
    assert [entry[1] for entry in generated] == [([1, 2], [1, 2]), ([1, 2], [1, 2])]
    assert [(entry[2]["label"], entry[2]["color"], entry[2]["ls"]) for entry in generated] == [
        ("A", "red", "-"),
        ("B", "blue", "--"),
    ]
    (shade,) = [entry for entry in plots.log if entry[0] == "fill_between"]
    assert shade[1] == ([1, 2], [0, 1], [2, 3])
    settings = {name: args for name, args, _ in plots.log if name.startswith("set_")}
    assert settings == {
        "set_xlabel": ("size",),
        "set_ylabel": ("ms",),
        "set_xscale": ("log",),
        "set_yscale": ("linear",),
    }
    assert (tmp_path / "speed.png").read_bytes() == b"png" and "show" not in [name for name, _, _ in plots.log]
    assert '<img src="speed.png"/>' in (tmp_path / "results.html").read_text()


def test_plots_are_shown_without_being_saved(plots: FakePlots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    testing.perf_report(sizes([1], y_log=True))(measure).run(show_plots=True)
    names = [name for name, _, _ in plots.log]
    assert (
        names[-2:] == ["show", "close"] and ("set_yscale", ("log",), {}) in plots.log and not list(tmp_path.iterdir())
    )
    assert ("set_xlabel", ("n",), {}) in plots.log, "the names of the sizes, unless there is a label"


def test_nothing_is_generated_unless_requested(plots: FakePlots) -> None:
    testing.perf_report(sizes([1]))(measure).run(print_data=True)
    assert plots.log == []


def test_frames_as_a_pandas_would_make_them(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = ModuleType("pandas")
    pandas.DataFrame = lambda rows, columns: (rows, columns)  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    monkeypatch.setattr(reports, "has", lambda library: True)
    frame = testing.perf_report(sizes([1, 2]))(measure).run(return_df=True)
    assert frame == ([[1, 2.0, 2.5], [2, 4.0, 4.5]], ["n", "A", "B"])
    assert testing.perf_report([sizes([1])])(measure).run(return_df=True) == [([[1, 2.0, 2.5]], ["n", "A", "B"])]


def test_points_are_numbers_for_all_names_or_tuples() -> None:
    seen: list[tuple[int, int, str, float]] = []

    def note(n: int, m: int, provider: str, scale: int, extra: float = 0.0) -> float:
        seen.append((n, m, provider, extra))
        return 1.0

    benchmark = sizes([4, (1, 2)], x_names=["n", "m"])
    testing.perf_report(benchmark)(note).run(extra=0.5)
    assert seen == [(4, 4, "a", 0.5), (4, 4, "b", 0.5), (1, 2, "a", 0.5), (1, 2, "b", 0.5)]


def test_a_report_is_a_mark() -> None:
    mark = testing.perf_report(sizes([1]))(measure)
    assert isinstance(mark, testing.Mark) and mark.fn is measure
    defaults = {name: param.default for name, param in inspect.signature(mark.run).parameters.items()}
    wanted = {"show_plots": False, "print_data": False, "save_path": "", "return_df": False}
    assert list(defaults)[:4] == list(wanted) and wanted.items() <= defaults.items()
