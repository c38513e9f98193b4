"""Benchmarks: what `test_runtime_benchmark.py` leaves open."""

import csv
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.test_runtime_benchmark import FakeDevice, calls_of, measure, sizes
from tilework import testing
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.tuning import perf_report as reports


@pytest.fixture
def device() -> Iterator[FakeDevice]:
    fake, before = FakeDevice(), driver._active
    driver.set_active(fake)
    yield fake
    driver._active = before


# -- do_bench ------------------------------------------------------------------------------------------------------


def rising(device: FakeDevice) -> Any:
    """One call and five for the estimate of 2 ms, two to warm up, then five that take 1, 2, 4, 8 and 10 ms."""
    steps = iter([2.0] * 8 + [10.0, 1.0, 8.0, 2.0, 4.0])
    return lambda: setattr(device, "now", device.now + next(steps))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("min", 1.0), ("max", 10.0), ("mean", 5.0), ("median", 4.0), ("all", [10.0, 1.0, 8.0, 2.0, 4.0])],
)
def test_6_13_each_return_mode(mode: str, expected: Any, device: FakeDevice) -> None:
    assert testing.do_bench(rising(device), warmup=4, rep=10, return_mode=mode) == expected


def test_6_13_quantiles_instead_of_a_mode(device: FakeDevice) -> None:
    assert testing.do_bench(rising(device), 4, 10, quantiles=[0.5, 0.0, 1.0, 0.625], return_mode="max") == [4, 1, 10, 6]
    assert testing.do_bench(rising(device), 4, 10, quantiles=[0.25]) == 2


def test_6_13_gradients_are_dropped_before_each_timed_call(device: FakeDevice) -> None:
    leaf, seen = SimpleNamespace(grad=None), []

    def call() -> None:
        seen.append(leaf.grad)
        leaf.grad = "new"
        device.now += 50.0

    testing.do_bench(call, warmup=50, rep=100, grad_to_none=[leaf])
    assert seen[-2:] == [None, None] and "new" in seen


def test_6_13_parameters() -> None:
    wanted = {"warmup": 25, "rep": 100, "grad_to_none": None, "quantiles": None, "return_mode": "mean"}
    found = {name: param.default for name, param in inspect.signature(testing.do_bench).parameters.items()}
    assert list(found)[:6] == ["fn", *wanted] and wanted.items() <= found.items()
    found = {name: param.default for name, param in inspect.signature(testing.do_bench_cudagraph).parameters.items()}
    assert found == {
        "fn": inspect.Parameter.empty,
        "rep": 20,
        **{k: v for k, v in wanted.items() if k not in ("warmup", "rep")},
    }


def test_6_13_graphs_return_modes(device: FakeDevice) -> None:
    """Replays take 8 ms each; a call of 5 ms is captured four times in 20 ms."""
    assert testing.do_bench_cudagraph(calls_of(device, 5.0), return_mode="all") == [2.0] * 10
    assert testing.do_bench_cudagraph(calls_of(device, 5.0), quantiles=[0.5, 0.9]) == [2.0, 2.0]
    assert testing.do_bench_cudagraph(calls_of(device, 5.0), rep=40, return_mode="max") == 1.0
    with pytest.raises(AssertionError, match="return_mode"):
        testing.do_bench_cudagraph(calls_of(device, 5.0), return_mode="fastest")


# -- assert_close --------------------------------------------------------------------------------------------------


def test_6_13_default_tolerances() -> None:
    testing.assert_close(np.array([100.0]), np.array([100.0099]))
    with pytest.raises(AssertionError):
        testing.assert_close(np.array([100.0]), np.array([100.0101]))
    with pytest.raises(AssertionError):
        testing.assert_close(np.array([1e6]), np.array([1e6 + 1]))


def test_6_13_tolerances_are_asked_for_the_dtype() -> None:
    seen: list[Any] = []

    def tolerance(dtype: Any) -> float:
        seen.append(dtype)
        return 0.25

    x = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    testing.assert_close(x, np.array([1.2, 2.2], ml_dtypes.bfloat16), atol=tolerance, rtol=tolerance)
    assert seen == [np.dtype(ml_dtypes.bfloat16)] * 2


def test_6_13_special_values() -> None:
    testing.assert_close(np.array([np.nan, np.inf, -np.inf]), np.array([np.nan, np.inf, -np.inf]))
    for other in ([0.0, np.inf, -np.inf], [np.nan, np.inf, np.inf], [np.nan, 1e30, -np.inf]):
        with pytest.raises(AssertionError):
            testing.assert_close(np.array([np.nan, np.inf, -np.inf]), np.array(other))


# -- Benchmark and perf_report -------------------------------------------------------------------------------------


def test_6_13_a_benchmark_holds_what_it_is_given() -> None:
    required = "x_names x_vals line_arg line_vals line_names plot_name args".split()
    optional = {"xlabel": "", "ylabel": "", "x_log": False, "y_log": False, "styles": None}
    parameters = inspect.signature(testing.Benchmark).parameters
    assert list(parameters) == [*required, *optional]
    assert {name: parameters[name].default for name in optional} == optional
    given = {name: object() for name in (*required, *optional)}
    made = testing.Benchmark(**given)
    assert {name: getattr(made, name) for name in given} == given


def without(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    monkeypatch.setattr(reports, "has", lambda library: library not in libraries)
    for library in libraries:
        monkeypatch.setitem(sys.modules, library, None)


def test_6_13_without_matplotlib_and_pandas_there_is_all_but_plots(
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
    for wish, library in (({"show_plots": True}, "matplotlib"), ({"return_df": True}, "pandas")):
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


def test_6_13_what_is_drawn(plots: FakePlots, tmp_path: Path) -> None:
    benchmark = sizes([1, 2], xlabel="size", ylabel="ms", x_log=True, styles=[("red", "-"), ("blue", "--")])
    testing.perf_report(benchmark)(lambda n, provider, scale: (n, n - 1, n + 1) if provider == "a" else n).run(
        save_path=str(tmp_path)
    )
    drawn = [entry for entry in plots.log if entry[0] == "plot"]
    assert [entry[1] for entry in drawn] == [([1, 2], [1, 2]), ([1, 2], [1, 2])]
    assert [(entry[2]["label"], entry[2]["color"], entry[2]["ls"]) for entry in drawn] == [
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


def test_6_13_plots_are_shown_without_being_saved(
    plots: FakePlots, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    testing.perf_report(sizes([1], y_log=True))(measure).run(show_plots=True)
    names = [name for name, _, _ in plots.log]
    assert (
        names[-2:] == ["show", "close"] and ("set_yscale", ("log",), {}) in plots.log and not list(tmp_path.iterdir())
    )
    assert ("set_xlabel", ("n",), {}) in plots.log, "the names of the sizes, unless there is a label"


def test_6_13_nothing_is_drawn_unless_asked_for(plots: FakePlots) -> None:
    testing.perf_report(sizes([1]))(measure).run(print_data=True)
    assert plots.log == []


def test_6_13_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = ModuleType("pandas")
    pandas.DataFrame = lambda rows, columns: (rows, columns)  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    monkeypatch.setattr(reports, "has", lambda library: True)
    frame = testing.perf_report(sizes([1, 2]))(measure).run(return_df=True)
    assert frame == ([[1, 2.0, 2.5], [2, 4.0, 4.5]], ["n", "A", "B"])
    assert testing.perf_report([sizes([1])])(measure).run(return_df=True) == [([[1, 2.0, 2.5]], ["n", "A", "B"])]


def test_6_13_points_are_numbers_for_all_names_or_tuples() -> None:
    seen: list[tuple[int, int, str, float]] = []

    def note(n: int, m: int, provider: str, scale: int, extra: float = 0.0) -> float:
        seen.append((n, m, provider, extra))
        return 1.0

    benchmark = sizes([4, (1, 2)], x_names=["n", "m"])
    testing.perf_report(benchmark)(note).run(extra=0.5)
    assert seen == [(4, 4, "a", 0.5), (4, 4, "b", 0.5), (1, 2, "a", 0.5), (1, 2, "b", 0.5)]


def test_6_13_a_report_is_a_mark() -> None:
    mark = testing.perf_report(sizes([1]))(measure)
    assert isinstance(mark, testing.Mark) and mark.fn is measure
    defaults = {name: param.default for name, param in inspect.signature(mark.run).parameters.items()}
    wanted = {"show_plots": False, "print_data": False, "save_path": "", "return_df": False}
    assert list(defaults)[:4] == list(wanted) and wanted.items() <= defaults.items()
