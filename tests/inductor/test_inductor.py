"""`torch.compile` with tilework as its Triton, on the CPU and without a C++ compiler. `python -m tests.inductor.sweep`
has more."""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parent.parent.parent


def is_installed() -> bool:
    """Return True if the distribution `triton` of this environment is tilework."""
    return any(found.version.endswith("+tilework") for found in distributions(name="triton"))


@pytest.fixture
def run(tmp_path: Path):
    """Run a module of tests/inductor under as_triton, with caches of its own, and return what it printed."""

    def runner(module: str, *arguments: str, prefix=("-m", "tilework.as_triton"), **environment: str) -> str:
        tools = tmp_path / "tools"
        tools.mkdir(exist_ok=True)
        for tool in ("env", "ldconfig", "uname"):  # no compiler among them
            if (found := shutil.which(tool)) and not (tools / tool).exists():
                (tools / tool).symlink_to(found)
        settings = {
            **{name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"},
            "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
            "CXX": "/nonexistent", "PATH": str(tools), **environment,
        }  # fmt: skip
        command = [sys.executable, *prefix, "-m", f"tests.inductor.{module}", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
        return done.stdout

    return runner


def test_models_agree_with_eager(run) -> None:
    names = ("pointwise", "softmax", "long_reduction", "cooperative_reductions", "scans", "long_scan", "scatters")
    names += ("random_numbers", "dynamic_shapes", "a_kernel_of_the_users")
    assert run("sweep", *names).count("  ok\n") == len(names)


def test_a_transformer_trains_as_in_eager(run) -> None:
    assert "training " in (printed := run("sweep", "training")) and "  ok\n" in printed


@pytest.mark.parametrize("method", ["subprocess", "fork", "spawn"])
def test_compile_workers_see_tilework(run, method: str) -> None:
    assert "compiled here: 0" in run("processes", "workers", method)


def test_warm_starts_compile_nothing(run, tmp_path: Path) -> None:
    """From the folders of another process, from torch's cache without ours, and from one file on an empty machine."""
    file = str(tmp_path / "artifacts")
    assert re.search(r"compiled here: [1-9]", run("processes", "save", file))
    assert "compiled here: 0" in run("processes", "warm")
    shutil.rmtree(tmp_path / "cache" / "triton")
    assert "compiled here: 0" in run("processes", "warm")
    shutil.rmtree(tmp_path / "cache")
    assert "compiled here: 0" in run("processes", "load", file)


IN_GRAPH = {
    "cdiv": {"True": 1, "None": 2, "False": 4},  # one graph, one more when a size has changed, one for each size
    "next_power_of_2": {"True": 3, "None": 4, "False": 4},  # one for each block size
}


def test_dynamo_takes_no_frame_of_the_launcher(run) -> None:
    """At graph breaks too, whatever is launched; sizes of grids and blocks stay symbolic."""
    printed = run("frames").splitlines()
    assert len(printed) == 21 and all(line.endswith("others={}") for line in printed), printed
    for name, counts in IN_GRAPH.items():
        for dynamic, count in counts.items():
            start = f"{name} dynamic={dynamic} "
            found = [line.split()[3] for line in printed if line.startswith(start)]
            assert found == [f"frames={count}"] * 2, (start, found)


def test_dynamo_takes_no_frame_of_the_launcher_by_our_own_name(run) -> None:
    """Where `packages/triton` is installed, torch has the name `triton` without `as_triton` too."""
    printed = run("frames", prefix=()).splitlines()
    assert len(printed) == (21 if is_installed() else 15), printed
    assert all(line.endswith("others={}") for line in printed), printed


def test_copied_kernels_find_what_they_import(run, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    assert run("imported_names", str(folder)).count(" ok\n") == 10


@pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor writes C++")
def test_a_package_of_aot_inductor_calls_kernels(run, tmp_path: Path) -> None:
    """Also for another size than it was made with; an assert of the kernel is an error of the caller's."""
    printed = run("ahead_of_time", str(tmp_path / "model.pt2"), CXX="g++", PATH=os.environ["PATH"])
    assert "ok\n" in printed and re.search("refused: .*too large", printed)
