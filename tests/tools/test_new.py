"""`tilework new`: the project that it writes works as it is, and nothing is overwritten."""

import json
import linecache
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.python_programs import run_python
from tests.runtime.forked_script import run_forked
from tilework.tools import new
from tilework.tools.cli import main

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "work" / "saxpy"
    assert main(["new", str(folder)]) == 0
    return folder


def test_the_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "saxpy"]) == 0
    *listed, last = capsys.readouterr().out.splitlines()
    assert sorted(listed) == sorted(str(path.relative_to(tmp_path)) for path in Path(tmp_path, "saxpy").iterdir())
    assert last == "next: cd saxpy && pip install pytest && python -m pytest && python benchmark.py"


def test_its_test_passes(project: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = run_python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=project, env=environment)
    assert done.returncode == 0 and "10 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("mistake", [("factor * x", "factor + x"), ("offsets < n", "offsets < n - 1")])
def test_its_test_notices_a_mistake(project: Path, mistake: tuple[str, str], tmp_path: Path) -> None:
    for path in project.glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text().replace(*mistake))
    (tmp_path / "check.py").write_text(
        "import sys, pytest; sys.path.insert(0, '')\n"
        "sys.modules.pop('saxpy', None)\n"  # of this process, if another test imported it here
        "sys.exit = None\nassert pytest.main(['-q', '-p', 'no:cacheprovider', '-n0', 'test_saxpy.py']) == 1\n"
    )
    code, printed, errors = run_forked(tmp_path / "check.py", {})
    assert code == 0, printed + errors


def test_its_benchmark_runs(project: Path, tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text(
        f"import sys, runpy\nsys.path.insert(0, {str(project)!r})\nsys.argv = ['benchmark.py', '1000', '5000']\n"
        "import numpy as np\nfrom tilework.runtime.devices.host.driver import CpuDriver\n"
        "CpuDriver.get_empty_cache_for_benchmark = lambda driver: np.empty(1 << 16, np.uint8)\n"
        f"runpy.run_path({str(project / 'benchmark.py')!r}, run_name='__main__')\n"
    )
    code, printed, errors = run_forked(tmp_path / "sizes.py", {})
    assert code == 0, errors
    head, *rows = printed.splitlines()
    assert head.split() == ["elements", "saxpy", "NumPy", "GB/s"] and [row.split()[0] for row in rows] == [
        "1000",
        "5000",
    ]
    assert all(float(cell) > 0 for row in rows for cell in row.split()[1:])


def test_the_cells_of_its_notebook_run(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(project))
    document = json.loads((project / "saxpy.ipynb").read_text())
    assert (document["nbformat"], document["metadata"]["kernelspec"]["name"]) == (4, "python3")
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    scope: dict[str, Any] = {}
    for number, cell in enumerate(document["cells"]):
        if cell["cell_type"] == "code":
            text, name = "".join(cell["source"]), f"<cell {number}>"
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            exec(compile(text, name, "exec"), scope)
    assert scope["saxpy_kernel"].__name__ == "saxpy_kernel"
    assert re.fullmatch(r"saxpy [\d.]+ ms, NumPy [\d.]+ ms\n", capsys.readouterr().out)


def test_an_existing_folder_is_left_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "saxpy.py").write_text(changed := (project / "saxpy.py").read_text() + "\n# mine\n")
    assert main(["new", str(project)]) == 1
    assert capsys.readouterr().err == f"tilework new: error: {project} is there already; nothing was written\n"
    assert (project / "saxpy.py").read_text() == changed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("my-kernel", "'my-kernel' cannot be the name of a kernel: try 'my_kernel'"),
        ("2d", "'2d' cannot be the name of a kernel: try 'my_2d'"),
        ("for", "'for' cannot be the name of a kernel: try 'my_for'"),
        ("größe", "'größe' cannot be the name of a kernel: try 'gr__e'"),
        ("-", "try 'my_kernel'"),
        ("random", "'random' is the name of a module that programs import: try 'my_random'"),
        ("benchmark", "try 'my_benchmark'"),
        ("x", "'x' is a name that the files of the project use: try 'my_x'"),
        ("tl", "try 'my_tl'"),
        ("ours", "try 'my_ours'"),
    ],
)
def test_names_that_cannot_be(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "--", name]) == 1
    assert words in capsys.readouterr().err and not list(tmp_path.iterdir())
    new.check_name(f"my_{name}" if name.isascii() and name.isidentifier() else "my_kernel")


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["new", str(tmp_path / "file" / "saxpy")]) == 1
    assert "saxpy cannot be written: Not a directory" in capsys.readouterr().err
