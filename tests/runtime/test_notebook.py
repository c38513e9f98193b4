"""Display of kernels in notebooks and at prompts, and the lookup of their source."""

import inspect
import linecache
import os
import sys
import tempfile
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.layouts.encodings import Blocked, NvidiaMma, NvmmaShared, Slice, SwizzledShared
from tilework.layouts.linear import LinearLayout
from tilework.runtime.tuning.benchmark import Benchmark, perf_report

CELL = """@tilework.jit
def scale(x, by, BLOCK: tl.constexpr = 8):
    "Multiply <x> by a number."
    i = tl.arange(0, BLOCK)
    tl.store(x + i, by * tl.load(x + i))
"""
EMPTY = {"rect", "path", "polyline", "line", "br"}


class Outline(HTMLParser):
    """The tags, whose ends must fit, and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def run_cell(text: str, name: str, **more: Any) -> dict[str, Any]:
    """As a notebook runs a cell."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"tilework": tilework, "tl": tl, "__name__": "__main__", **more}
    exec(compile(text, name, "exec"), scope)
    return scope


def test_kernels_of_cells_run_and_are_shown() -> None:
    kernel = run_cell(CELL, os.path.join(tempfile.gettempdir(), "ipykernel_1", "4711.py"))["scale"]
    x = np.ones(8, np.float32)
    compiled = kernel[(1,)](x, 3.0)
    assert x.tolist() == [3.0] * 8
    assert list(inspect.signature(kernel).parameters) == ["x", "by", "BLOCK"]
    shown = Outline(kernel._repr_html_())
    assert "Multiply <x> by a number." in shown.text and "x: *fp32, by: fp32, BLOCK=8" in shown.text
    interpreted = Outline(tilework.jit(kernel.fn, interpret=True)._repr_html_())
    assert "Multiply <x> by a number." in interpreted.text and "compiled" not in interpreted.text
    assert repr(compiled).startswith("CompiledKernel(scale for cpu: x: *fp32, by: fp32, BLOCK=8;")
    stages = Outline(compiled._repr_html_())
    assert stages.tags.count("details") == len([stage for stage in compiled.asm if stage != "obj"])
    assert "tt.store" in stages.text
    assert repr(compiled.asm).startswith("AsmDict(source: ") and " bytes, ttir: " in repr(compiled.asm)


def test_autotuners_are_shown_before_and_after_tuning() -> None:
    kernel = run_cell(CELL.replace("BLOCK: tl.constexpr = 8", "BLOCK: tl.constexpr"), "<cell>")["scale"]
    configs = [tilework.Config({"BLOCK": size}) for size in (8, 4)]
    times = iter([1.0, 2.0])
    tuner = tilework.autotune(configs, key=["by"], do_bench=lambda call, quantiles: next(times))(kernel)
    assert Outline(tuner._repr_html_()).text.count("not measured") == 2
    tuner[(1,)](np.ones(8, np.float32), 2)
    assert "best: BLOCK: 8," in repr(tuner) and "2 configs" in repr(tuner)
    assert (
        "BLOCK: 8, num_warps: 4, num_ctas: 1, num_stages: 3, maxnreg: None ✓1 ms" in Outline(tuner._repr_html_()).text
    )
    assert str(inspect.signature(tuner)).startswith("(x, by, BLOCK")
    with pytest.raises(RuntimeError, match=r"scale\[grid\]"):
        tuner(1, 2)


def test_benchmarks_show_their_last_report() -> None:
    points: Any = (size for size in (64, 128, 256))  # any iterable will do, as in Triton
    benchmark = Benchmark(["n"], points, "who", ["a", "b"], ["A<", "B"], "speed", {}, x_log=True)
    mark = perf_report(benchmark)(lambda n, who: n / 2 if who == "a" else (1.0, 0.5, 1.5))
    assert "not run yet" in repr(mark) and "not run yet" in mark._repr_html_()
    mark.run()
    shown = Outline(mark._repr_html_())
    assert shown.tags.count("polyline") == 2 and "A<" in shown.text and "32" in shown.text
    assert repr(mark).startswith("speed:\n")


@pytest.mark.parametrize(
    ("layout", "cells"),
    [
        (Blocked((1, 2), (8, 4), (1, 2), (1, 0)), 16 * 16),
        (Slice(1, Blocked((1, 2), (8, 4), (1, 2), (1, 0))), 16),
        (NvidiaMma(2, 0, (1, 2), (16, 8)), 16 * 16),
        (SwizzledShared(8, 1, 8, (1, 0)), 8 * 64),
        (NvmmaShared(128, False, 16), 8 * 64),
        (LinearLayout({"offset": [(1,), (2,)], "block": []}, {"dim0": 4}), 4),
    ],
)
def test_layouts_are_pictures(layout: Any, cells: int) -> None:
    shown = Outline(layout._repr_html_())
    assert shown.tags.count("svg") == 1 and shown.tags.count("rect") >= cells


def test_other_layouts_are_tables() -> None:
    shown = Outline(LinearLayout({"x": [(1,), (2,)]}, {"y": 4})._repr_html_())
    assert "table" in shown.tags and "(1,), (2,)" in shown.text


def test_exec_needs_the_text_beside_the_function() -> None:
    scope: dict[str, Any] = {"tilework": tilework, "tl": tl}
    with pytest.raises(ValueError, match=r"no source for `scale`; it was made by exec .*`__source__`"):
        exec(CELL, scope)
    exec(CELL, {**scope, "__source__": CELL})
    for wrong in ("def other(): pass", CELL.replace("by *", "2 *"), "\n" + CELL, "def scale(", CELL + "\0"):
        with pytest.raises(ValueError, match="no source"):
            exec(CELL, {**scope, "__source__": wrong})
    inner = "def outer():\n" + "".join(f"    {line}\n" for line in CELL.splitlines()) + "    return scale\n"
    exec(inner, nested := {**scope, "__source__": inner})
    assert nested["outer"]().src == CELL.partition("\n")[2]


def test_the_plain_prompt_has_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["x = 1", "@tilework.jit", "def scale(x):", "    tl.store(x, 0)", "y = 2", *CELL.splitlines(), "", "z = 3"]
    history = SimpleNamespace(get_current_history_length=lambda: len(typed), get_history_item=lambda at: typed[at - 1])
    monkeypatch.setitem(sys.modules, "readline", history)  # type: ignore[arg-type]
    scope: dict[str, Any] = {"tilework": tilework, "tl": tl}
    exec(compile(CELL, "<stdin>", "exec"), scope)
    assert scope["scale"].src == CELL.partition("\n")[2]
    with pytest.raises(ValueError, match=r"plain prompt .* use Python 3.13 or later, IPython"):
        exec(compile(CELL.replace("by *", "2 *"), "<stdin>", "exec"), scope)


def test_dir_is_complete() -> None:
    for module in (tilework, tl, tilework.runtime, tl.extra):
        names = dir(module)
        assert [name for name in names if not hasattr(module, name)] == []
        assert set(getattr(module, "__all__", ())) <= set(names)
    assert {"autotune", "compile", "testing"} <= set(dir(tilework)) and "Autotuner" in dir(tilework.runtime)
