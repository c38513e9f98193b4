"""`tilework tune`: results that later runs find, measured here or on a Ray cluster."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.python_programs import run_python
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.tools import cli, tune

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
import sys
import numpy as np
import tilework
import tilework.language as tl

def bench(call, quantiles):
    call()
    measured.append(1)
    return [float(len(measured))] * 3

measured = []

@tilework.autotune([tilework.Config({"BLOCK": 2**k}) for k in range(4, 7)], key=["n"], do_bench=bench)
@tilework.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 3, mask=i < n)

x = np.ones(32, np.float32)
scale[lambda meta: (-(-32 // meta["BLOCK"]),)](x, 32)
assert sys.argv[1:] == ["--size", "3"], sys.argv
print("measured", len(measured))
"""
TUNED = (
    "scale (32, 'float32'): 1 ms with {'BLOCK': 16, 'num_ctas': 1, 'num_stages': 3, 'num_warps': 4}, "
    "of 3 configurations"
)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("TILEWORK_NATIVE_LAUNCH", "0")  # each of the caches would get its own, which takes half a second
    (tmp_path / "work").mkdir()
    path = tmp_path / "work" / "program.py"
    path.write_text(PROGRAM)
    return path


def run(*command: str, code: int = 0) -> list[str]:
    done = run_python(*command)
    assert done.returncode == code, done.stderr
    return done.stdout.splitlines()


def test_later_runs_find_the_results(program: Path) -> None:
    arguments = (str(program), "--size", "3")
    assert run("-m", "tilework", "tune", *arguments) == ["measured 3", TUNED]
    assert run(*arguments) == ["measured 0"]
    assert run("-m", "tilework", "tune", str(program), code=1) == ["nothing new was tuned"], (
        "it ends as the program does"
    )
    program.write_text(PROGRAM.replace("* 3", "* 4"))
    assert run(*arguments) == ["measured 3"], "another kernel"


def test_a_program_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["tune", "absent.py"]) == 2
    assert "there is no file absent.py" in capsys.readouterr().err


def test_without_ray(program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert cli.main(["tune", "--workers", "auto", str(program)]) == 2
    assert "pip install 'tilework[ray]'" in capsys.readouterr().err


def test_parts_are_put_together(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tune as the machines of a cluster do, one after the other, in folders of their own."""
    monkeypatch.chdir(program.parent)
    package = tune.triton_key()
    done = [tune.measure_part("program.py", ["--size", "3"], False, package, f"{part}/2") for part in range(2)]
    assert [(code, text, len(files)) for code, text, files in done] == [(0, "measured 2\n", 2), (0, "measured 1\n", 1)]
    store = EntryStore(str(tmp_path / "cache"))
    tune.save(store, {path: text for _, _, files in done for path, text in files.items()})
    assert tune.report(store, {}).startswith("scale (32, 'float32'): 1 ms with ")
    assert run(str(program), "--size", "3") == ["measured 0"]
    assert tune.measure_part("program.py", [], False, "another version", "0/1")[0] == 1


@pytest.fixture
def cluster() -> Iterator[str]:
    """A Ray cluster of one machine, as its clients call it."""
    pytest.importorskip("ray")
    pytest.importorskip("grpc", reason="ray[client]")
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address=127.0.0.1"]
    command += [
        f"--port={ports[0]}",
        f"--ray-client-server-port={ports[1]}",
        "--num-cpus=2",
        "--include-dashboard=false",
    ]
    command += ["--min-worker-port=0", "--max-worker-port=0"]
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled", "PYTHONPATH": str(ROOT)}
    head = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield f"ray://127.0.0.1:{ports[1]}"
    finally:
        head.terminate()
        try:
            head.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(head.pid, signal.SIGKILL)


def test_on_a_cluster(program: Path, cluster: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    (line,) = run("-m", "tilework", "tune", "--workers", cluster, "--parts", "2", str(program), "--size", "3")
    assert line.startswith("scale (32, 'float32'): 1 ms with ") and line.endswith("of 3 configurations")
    assert run(str(program), "--size", "3") == ["measured 0"]
