"""The viewer's tables and filters, and the command that runs programs in a session."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.forked_script import run_forked
from tilework.inspect.profiler import viewer
from tilework.tools.proton import main as proton_main
from tilework.tools.proton import parse_arguments

H200 = {"arch": "90", "bus_width": 6144, "clock_rate": 1980000, "memory_clock_rate": 3201000, "num_sms": 132}


def node(name: str, *children: Any, **metrics: Any) -> dict[str, Any]:
    named = {key.replace("time", "time (ns)"): value for key, value in metrics.items()}
    return {"children": list(children), "frame": {"name": name, "type": "function"}, "metrics": named}


def kernel(name: str, time: int, **more: Any) -> dict[str, Any]:
    return node(name, time=time, count=2, device_id="0", device_type="CUDA", **more)


@pytest.fixture
def file(tmp_path: Path) -> str:
    inner = node("__proton_launch_metadata", kernel("helper", 5))
    tree = node(
        "ROOT",
        node("scope", kernel("matmul", 1500, flops16=1e9, bytes=1000), inner),
        kernel("/p/test.py:1@foo", 500, bytes=3e6),
        node("empty"),
        count=0, time=0, flops16=0, bytes=0,
    )  # fmt: skip
    path = tmp_path / "p.hatchet"
    path.write_text("\n" + json.dumps([tree, {"CUDA": {"0": H200}}]))
    return str(path)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert viewer.main(list(arguments)) == code
    found = capsys.readouterr()
    return found.out if code == 0 else found.err


def test_trees_and_filters(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    tree = "2000.000 100.000 ROOT\n├─ 1500.000 75.000 scope\n│  └─ 1500.000 75.000 matmul\n└─ 500.000 25.000 {}\n"
    columns = ("-m", "time/ns,time/%")
    assert shown(capsys, *columns, file) == tree.format("/p/test.py:1@foo")
    forms = {"file_function_line": "test.py:1@foo", "function_line": "1@foo", "file_function": "test.py@foo"}
    for form, name in forms.items():
        assert shown(capsys, *columns, "-f", form, file) == tree.format(name)
    kept = "2000.000 ROOT\n└─ 1500.000 scope\n   └─ 1500.000 matmul\n"
    for option in (("-i", "mat.*"), ("-i", "scope"), ("-e", ".*foo"), ("-t", "1000")):
        assert shown(capsys, "-m", "time/ns", *option, file) == kept, option
    assert shown(capsys, "-m", "time/ns", "-d", "0", file) == "2000.000 ROOT\n"
    assert shown(capsys, file) == ""


def test_columns(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    tree, columns = viewer.parse(["avg_time/us", "tflop16/s", "gbyte/s", "util", "count"], file)
    assert columns == ["avg_time/us (inc)", "tflop16/s (inc)", "gbyte/s (inc)", "util", "count (inc)"]
    rows = {frame.name: [frame.metrics[column] for column in columns] for frame in tree.root.walk()}
    peak = viewer.max_flops("CUDA", "90", 16, 132, 1980000)
    assert rows["matmul"][:3] == pytest.approx([0.75, 1e9 / 1.5e-6 / 1e12, 1000 / 1.5e-6 / 1e9])
    assert rows["matmul"][3] == pytest.approx(1e9 / peak / 1.5e-6) and rows["scope"][3] != rows["scope"][3]
    assert rows["/p/test.py:1@foo"][3] == pytest.approx(3e6 / viewer.max_bps("CUDA", "90", 6144, 3201000) / 5e-7)
    assert rows["ROOT"][4] == 4
    text = shown(capsys, "-m", "time/us", "--print-sorted", file)
    assert "Sorted kernels by metric time/us (inc)\nmatmul" in text and f"{'matmul':105} 1.5" in text
    listed = shown(capsys, "-l", file)
    assert listed.startswith("Available inclusive metrics:\n- bytes\n- count\n") and "- device_id\n" in listed
    assert shown(capsys, "-m", "time/ns", "-diff", file, file).startswith("0.000 ROOT\n")


MISTAKES = (
    (("-m", "zz"), "Metric zz is not found. Use the --list flag to list available metrics"),
    (("-m", "time/x"), "Unsupported unit x"),
    (("-m", "tflop8/s"), "Metric tflop8/s is not found"),
    (("-m", "time/ns", "-i", "("), "is no regular expression"),
)


@pytest.mark.parametrize(("arguments", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_mistakes_are_one_line(arguments: Any, words: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = shown(capsys, *arguments, file, code=1)
    assert error.startswith("proton-viewer: error: ") and words in error and error.count("\n") == 1


def test_files_that_are_no_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("{}")
    assert "is no profile" in shown(capsys, "-l", str(tmp_path / "x"), code=1)
    assert "cannot be read" in shown(capsys, "-l", str(tmp_path / "none"), code=1)
    with pytest.raises(SystemExit):
        viewer.main(["-i", "a", "-e", "b", "x"])
    assert "Cannot specify both include and exclude" in capsys.readouterr().err


PROGRAM = """
import sys
import numpy as np
import triton.profiler as proton
from tests.inspection.profiled_kernel import double
assert proton.start("ignored") is None
with proton.scope("part"):
    double[(4,)](np.ones(256, "f4"), 256, BLOCK=64)
proton.finalize()
if sys.argv[1:] == ["raise"]:
    raise ValueError("a mistake")
sys.exit(3)
"""


@pytest.mark.parametrize(("argument", "code"), [("exit", 3), ("raise", 1)])
def test_the_command_runs_a_program_in_its_session(tmp_path: Path, argument: str, code: int) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "command.py").write_text(
        "import sys, os\nfrom triton.profiler.proton import main\n"
        f"code = main(['-n', 'out', 'program.py', {argument!r}]); sys.stdout.flush(); os._exit(code)\n"
    )
    found, printed, errors = run_forked(tmp_path / "command.py", {}, says_triton=True)
    assert found == code, errors
    assert (code == 1) == ("An error occurred while executing the script: a mistake" in printed)
    (part,) = json.loads((tmp_path / "out.hatchet").read_text())[0]["children"]
    assert part["frame"]["name"] == "part" and part["children"][0]["metrics"]["count"] == 1
    assert not (tmp_path / "ignored.hatchet").exists()


@pytest.mark.parametrize(
    "options", [["-k", "None"], ["-k", "triton"], ["--hook=triton", "-c", "python", "-d", "trace"], ["-m", "x"]]
)
def test_options_of_the_command(options: list[str]) -> None:
    """As Triton's command takes them; the mode is not used."""
    found, program = parse_arguments([*options, "script.py", "-k", "of the script"])
    assert program == ["script.py", "-k", "of the script"] and found.hook in (None, "None", "triton")


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert proton_main(["-b", "instrumentation", "x.py"]) == 2 and "clocks" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        proton_main([])
    assert "a script, or pytest, is missing" in capsys.readouterr().err
