"""Every tutorial runs with small sizes, as a script and as a notebook, and becomes a page with its recorded figures.

No time is looked at: caches are not emptied before each call that is measured, which takes most of the time.
"""

import ast
import dataclasses
import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import numpy as np
import pytest

from docsite import chart, figures, notebooks, recordings, tutorials
from tilework.runtime.devices.host.driver import CpuDriver

SCRIPTS = tutorials.scripts()
PROVIDED = {"numpy", "tilework", *sys.stdlib_module_names}
every_tutorial = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)


@pytest.fixture(autouse=True)
def caches_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuDriver, "get_empty_cache_for_benchmark", lambda driver: np.empty(1 << 16, np.uint8))


def notebook_of(script: Path) -> dict[str, Any]:
    return json.loads(notebooks.text_of(script, tutorials.cells_of(script)))


@every_tutorial
def test_a_script_runs_by_itself_and_leaves_no_file(script: Path, tmp_path: Path) -> None:
    cells = figures.record(script, tmp_path, ["--quick"])
    assert list(tmp_path.iterdir()) == []
    assert any(cell.output for cell in cells) and any(cell.figures for cell in cells)
    for figure in (figure for cell in cells for figure in cell.figures):
        assert len(ElementTree.fromstring(getattr(chart, figure.kind)(**figure.arguments))) > 10
    headings = {(script.stem, cell.heading) for cell in tutorials.cells_of(script)}
    assert {key for key in figures.FIGURES_OF_VALUES if key[0] == script.stem} <= headings


@every_tutorial
def test_a_script_imports_what_every_installation_has(script: Path) -> None:
    for cell in tutorials.cells_of(script):
        allowed = PROVIDED | {"torch"} if cell.heading == figures.ON_GPU else PROVIDED
        assert imported_by(cell.code) <= allowed, cell.heading


def imported_by(code: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or ".").partition(".")[0])
    return found


@every_tutorial
def test_a_notebook_is_nbformat_4(script: Path) -> None:
    notebook = notebook_of(script)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    identifiers = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identifiers)) == len(identifiers)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", identifier) for identifier in identifiers)
    prose = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    assert prose[0].startswith("# ") and not re.search(r"\]\((?!https?:)", "".join(prose))
    nbformat.validate(nbformat.from_dict(notebook))


@every_tutorial
def test_jupyter_executes_a_notebook(script: Path, tmp_path: Path, warm_cache: Path) -> None:
    """In a kernel of its own, with small sizes; it leaves no file behind."""
    notebook = notebook_of(script)
    setup = f"import sys\nsys.argv.append('--quick')\nsys.path.insert(0, {str(tutorials.ROOT)!r})"
    notebook["cells"].insert(0, notebooks.notebook_cell("code", setup, "small-sizes"))
    (tmp_path / "tutorial.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "tutorial.ipynb", "--output", "run"]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(warm_cache), "TILEWORK_DEVICE": "native"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert {path.name for path in tmp_path.iterdir()} == {"tutorial.ipynb", "run.ipynb"}
    executed = json.loads((tmp_path / "run.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in executed["cells"] for output in cell.get("outputs", ())]
    assert any(output["output_type"] == "stream" for output in outputs)


@every_tutorial
def test_a_page_shows_a_recording_of_the_code_that_it_has(script: Path) -> None:
    recording = recordings.recording_of(script.stem)
    wanted = f"python -m docsite.figures record {script.stem[:2]}"
    assert recording is not None, f"there is no recording: {wanted}"
    assert recording.code == tutorials.digest(tutorials.cells_of(script)), f"its code has changed: {wanted}"
    assert "--quick" not in recording.command
    page = tutorials.page_of(script, recording)
    assert page.startswith("# ") and "```python" in page and "```text" in page and "tilework" in page
    assert page.count("<figure>") == sum(len(cell.figures) for cell in recording.cells) > 0
    where = {html.escape(cell.where) for cell in recording.cells if cell.where}
    assert where and all(one in page for one in (*where, recording.date, recording.commit, recording.command))
    for cell, recorded in zip(tutorials.cells_of(script), recording.cells, strict=True):
        is_measured = bool(recorded.figures) and (script.stem, cell.heading) not in figures.FIGURES_OF_VALUES
        assert bool(recorded.where) == is_measured, cell.heading
    assert f"({script.stem}.ipynb)" in page and f"({script.name})" in page
    links = re.findall(r"\]\((\d\d_\w+)\.md\)", page)
    assert all((script.parent / f"{name}.py").is_file() for name in links), links


SMALL = '''"""# Small

Head.
"""

x = 1

# %%
# ## Twice
#
# See [it](02_next.py) and [Python](../python.md#a).

print(x + x)
'''


def small(folder: Path, source: str = SMALL) -> Path:
    script = folder / "01_small.py"
    script.write_text(source)
    return script


def test_a_page_has_prose_code_and_output_in_order(tmp_path: Path) -> None:
    script = small(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    code = tutorials.digest(tutorials.cells_of(script))
    recording = recordings.Recording(code, "record", "2026-11-19", "abcdef12", figures.record(script, work))
    page = tutorials.page_of(script, recording)
    assert page.startswith(
        "# Small\n\nHead.\n\n*Download: [01_small.py](01_small.py), [notebook](01_small.ipynb).*\n\n"
        f"```python\nx = 1\n```\n\n## Twice\n\nSee [it](02_next{'.md'}) and [Python](../python.md#a).\n\n"
        "```python\nprint(x + x)\n```\n\n```text\n2\n```\n"
    )
    script.write_text(SMALL.replace("x = 1", "x = 2"))
    assert "```text" not in tutorials.page_of(script, recording), "the output is that of other code"


def test_a_notebook_has_the_same_with_links_to_the_site(tmp_path: Path) -> None:
    cells = notebook_of(small(tmp_path))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code"]
    prose = "".join(cells[2]["source"])
    assert re.search(r"\[it\]\(https://\S+/tutorials/02_next\.html\)", prose)
    assert re.search(r"\[Python\]\(https://\S+/python\.html#a\)", prose)
    assert "".join(cells[3]["source"]) == "print(x + x)"


def test_an_error_of_a_tutorial_is_at_its_line(tmp_path: Path) -> None:
    script = small(tmp_path, '"""# Wrong"""\n\nx = 1\n\n# %%\n# Prose.\n\ny = 1 / 0\n')
    with pytest.raises(ZeroDivisionError) as caught:
        figures.record(script, tmp_path)
    assert caught.traceback[-1].lineno == 7 and Path(caught.traceback[-1].path) == script


def test_a_recording_is_what_was_written_and_names_its_machines(tmp_path: Path) -> None:
    figure = recordings.Figure("lines", figures.plain({"x": [1, 2], "series": {"a": np.array([0.123456, 2.0])}}))
    assert figure.arguments == {"x": [1, 2], "series": {"a": [0.1235, 2.0]}}
    cells = (recordings.RecordedCell("one\ntwo"), recordings.RecordedCell("no GPU"))
    host = recordings.Recording("c", "record", "2026-11-19", "abcdef12", cells)
    on_gpu = dataclasses.replace(
        host, cells=(recordings.RecordedCell(""), recordings.RecordedCell("fast", (figure,), "a GPU"))
    )
    merged = recordings.merged(host, on_gpu)
    assert [cell.output for cell in merged.cells] == ["one\ntwo", "fast"] and merged.cells[1].where == "a GPU"
    assert recordings.read(merged.text()) == merged and recordings.merged(host, None) == host


REPORTS = '''"""# Reports"""
from tilework.testing import Benchmark, perf_report

@perf_report(Benchmark(["n"], [1, 2], "way", [10], ["ten"], "products", {}))
def host(n, way):
    return float(n * way)

host.run(print_data=True)

# %%
# ## On a GPU

@perf_report(Benchmark(["n"], ["a", "b"], "way", ["x"], ["length"], "lengths", {}))
def gpu(n, way):
    return float(len(n + way))

gpu.run(print_data=True)
'''


def test_reports_are_drawn_and_a_gpu_measures_its_own_cells_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = small(tmp_path, REPORTS)
    host, gpu = figures.record(script, tmp_path)
    assert [figure.kind for figure in (*host.figures, *gpu.figures)] == ["lines", "bars"]
    assert host.figures[0].arguments["series"] == {"ten": [10.0, 20.0]} and host.where == figures.host_machine()
    monkeypatch.setattr(figures, "gpu_machine", lambda: "a GPU")
    host, gpu = figures.record(script, tmp_path, only_gpu=True)
    assert host == recordings.RecordedCell("") and gpu.where == "a GPU" and "length" in gpu.output


def test_a_busy_machine_records_nothing_or_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = recordings.RecordedCell("", (), "a machine")
    monkeypatch.setattr(figures, "in_a_process", lambda script, device, sizes: [cell] if device == "native" else None)
    monkeypatch.setattr(figures, "gpu_is_here", lambda: False)
    for share, busy, note in (
        (0.4, False, None),
        (0.4, True, " (other programs used 60 % of its cores)"),
        (0.99, False, ""),
    ):
        folder = tmp_path / f"{share} {busy}"
        monkeypatch.setattr(figures, "share_of_cores", lambda share=share: share)
        code = figures.record_all(SCRIPTS[:1], folder, "abcdef12", quick=False, busy=busy)
        assert code == (note is None) and folder.exists() == (note is not None)
        if note is not None:
            found = recordings.read((folder / f"{SCRIPTS[0].stem}.json").read_text(encoding="utf-8"))
            assert found.cells[0].where == f"a machine{note}" and found.commit == "abcdef12"
    assert "nothing is recorded on a busy machine" in capsys.readouterr().err


def test_charts_place_values_where_they_belong() -> None:
    axis = chart.axis([1024, 4096], True, 0, 100, from_zero=False)
    assert [axis.position(value) for value in (1024, 2048, 4096)] == [0, 50, 100] and axis.ticks == [1024, 2048, 4096]
    axis = chart.axis([3, 47], False, 0, 100, from_zero=True)
    assert axis.ticks == [0, 10, 20, 30, 40, 50] and axis.position(25) == 50
    svg = chart.bars("<1 & 2>", ["a"], {"one": [2.0], "two": [4.0]}, x_label="x", y_label="y")
    bars = ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect")
    heights = [float(bar.attrib["height"]) for bar in bars]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
