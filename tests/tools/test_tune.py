"""`tilework tune`: results that later runs find, measured here or on a Ray cluster."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.python_programs import is_running, run_python, wait_until
from tilework import knobs
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


def test_timings_of_other_machines(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of two machines has measured a part; a third one measures nothing, and keeps its own timings."""
    for part in range(2):
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("TRITON_CACHE_DIR", str(tmp_path / f"host{part}"))
            elsewhere.setenv("TRITON_CACHE_AUTOTUNING", "1")
            elsewhere.setenv("TILEWORK_TUNING_PART", f"{part}/2")
            run(str(program), "--size", "3")
    hosts = [str(tmp_path / f"host{part}") for part in range(2)]
    capsys.readouterr()
    assert cli.main(["tune", "--merge", *hosts]) == 0
    assert capsys.readouterr().out.startswith("scale (32, 'float32'): 1 ms with ")
    assert run(str(program), "--size", "3") == ["measured 0"]
    assert cli.main(["tune", "--merge", *hosts]) == 0
    (damaged,) = (tmp_path / "host1").glob("*/*.timing.json")
    damaged.write_text('{"kernel": "scale", "timings": {"x": "fast"}}')
    assert cli.main(["tune", "--merge", *hosts]) == 1
    assert f"{damaged}: this is no file of timings" in capsys.readouterr().err
    assert run(str(program), "--size", "3") == ["measured 0"], "nothing is lost"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a program to tune, --merge or --export"),
        (["--workers", "auto"], "--workers needs a program to tune"),
        (["--merge", "absent"], "--merge: there is no folder absent"),
        (["--merge", "."], "--merge: . is not a cache folder with timings of autotuners"),
        (["--merge", "redis://host"], "--merge takes folders, and redis://host is an address: `tilework cache pull`"),
        (["--export", "tuned.py"], "has no results of this version with sizes in `key=`"),
    ],
)
def test_mistakes(
    arguments: list[str],
    message: str,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(program.parent)
    assert cli.main(["tune", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_export_overwrites_no_program(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(program.parent)
    for file, message in [
        (program.name, "is a file that --export has not written: name another one, or delete it"),
        ("absent/tuned.py", "--export: there is no folder absent"),
        (".", "is a directory"),
    ]:
        assert cli.main(["tune", "--export", file]) == 2
        assert message in capsys.readouterr().err
    assert program.read_text() == PROGRAM


@pytest.mark.parametrize(
    "change", [{"types": [1.0]}, {"types": None}, {"shape": {"n": "3"}}, {"shape": [3]}, {"device": 7}]
)
def test_damaged_facts(change: dict[str, object], program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("-m", "tilework", "tune", str(program), "--size", "3")
    [damaged] = Path(knobs.cache.dir).rglob("*.tuned.json")
    damaged.write_text(json.dumps({**json.loads(damaged.read_text()), **change}))
    assert cli.main(["tune", "--export", str(program.parent / "tuned.py")]) == 2
    assert f"{damaged}: this is no file of timings" in capsys.readouterr().err


def test_trees_are_exported(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = program.parent / "tuned.py"
    line, written = run("-m", "tilework", "tune", "--export", str(file), str(program), "--size", "3")[1:]
    assert line == TUNED and written == f"{file}: scale by 1 shapes"
    program.write_text(PROGRAM.replace('key=["n"]', 'key=["n"], choose=choose_scale').replace("import sys", FROM, 1))
    assert run(str(program), "--size", "3") == ["measured 0"]


FROM = "import sys\nfrom tuned import choose_scale"


class Died(Exception):
    """An error like Ray's about a process or machine that is gone."""


class FakeRay:
    """A Ray cluster of two machines, which counts what is submitted, and whose parts fail before they succeed.

    `failures` has for a part what its first attempts end with: an exception, or the exit code of the program. With
    `machines=0` no part ever has a result.
    """

    exceptions = SimpleNamespace(RayError=Died)

    def __init__(self, failures: dict[int, list[Exception | int]], machines: int = 2) -> None:
        self.failures, self.submitted, self.machines = failures, list[int](), machines

    def init(self, **settings: object) -> AbstractContextManager[None]:
        return nullcontext()

    def nodes(self) -> list[dict[str, object]]:
        return [{"Alive": part < self.machines, "Resources": {"CPU": 1.0}} for part in range(2)]

    def remote(self, function: object) -> "FakeRay":
        return self

    def options(self, **options: object) -> SimpleNamespace:
        return SimpleNamespace(remote=lambda *given: self.submit(int(given[-1].partition("/")[0])))

    def submit(self, part: int) -> tuple[int, int]:
        self.submitted.append(part)
        return (part, len(self.submitted))

    def wait(self, tasks: list[object], num_returns: int, timeout: float) -> tuple[list[object], list[object]]:
        return (tasks[:num_returns], tasks[num_returns:]) if self.machines else ([], tasks)

    def get(self, task: tuple[int, int]) -> tune.Result:
        part = task[0]
        failure, *self.failures[part] = self.failures.get(part) or [0]
        if isinstance(failure, Exception):
            raise failure
        return failure, f"part {part}", {f"{part}/scale.x.timing.json": TIMINGS}


DIED = Died("The node of the task died.\nmore")
TIMINGS = '{"kernel": "scale", "key": "(1,)", "timings": {"{}": [2.0, 1.0, 3.0]}}'


def on_fake_cluster(program: Path, ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return (the exit code of a tuning in three parts, the number of stored results)."""
    monkeypatch.setitem(sys.modules, "ray", ray)
    code = cli.main(["tune", "--workers", "auto", "--parts", "3", str(program), "--size", "3"])
    return code, len([*(program.parent.parent / "cache").glob("*/scale.tuned.json")])


def test_parts_whose_machine_died_are_measured_again(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = FakeRay({1: [DIED, -signal.SIGTERM]})
    assert on_fake_cluster(program, ray, monkeypatch) == (0, 3)
    assert ray.submitted == [0, 1, 2, 1, 1]
    assert capsys.readouterr().err.splitlines() == [
        "tilework tune: part 1 of 3 is measured again: The node of the task died.",
        "tilework tune: part 1 of 3 is measured again: its program was killed by SIGTERM",
    ]


def test_a_part_that_dies_everywhere(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ray = FakeRay({1: [DIED] * 9})
    assert on_fake_cluster(program, ray, monkeypatch) == (1, 2) and len(ray.submitted) == 5
    assert "3 times without a result: The node of the task died." in capsys.readouterr().err


def test_a_cluster_that_is_gone(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The connection breaks when one part has its result."""
    ray = FakeRay({1: [ConnectionError("GRPC connection failed\nmore")]})
    assert on_fake_cluster(program, ray, monkeypatch) == (1, 1)
    message = "no result of part 1, 2 of 3: the connection to auto is lost: GRPC connection failed\n"
    assert message in capsys.readouterr().err


def test_a_cluster_without_machines(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tune, "PATIENCE", 0.0)
    assert on_fake_cluster(program, FakeRay({}, machines=0), monkeypatch) == (1, 0)
    assert "no result of part 0, 1, 2 of 3: no machine of the cluster can measure" in capsys.readouterr().err


def test_shares_of_a_cluster() -> None:
    def node(cpus: float, gpus: float = 0, is_alive: bool = True) -> dict[str, object]:
        return {"Alive": is_alive, "Resources": {"CPU": cpus} | ({"GPU": gpus} if gpus else {})}

    assert tune.share_of([node(16, 8), node(16, 8, is_alive=False), node(4)]) == ({"GPU": 1, "CPU": 1}, 8)
    assert tune.share_of([node(0), node(8), node(8), node(8, is_alive=False)]) == ({"CPU": 8}, 2), "whole machines"
    assert tune.share_of([node(0)]) == ({"CPU": 1}, 1), "machines may come"
    assert tune.has_room([node(0), node(8)], {"CPU": 8}) and not tune.has_room(
        [node(8), node(4, 1)], {"GPU": 1, "CPU": 8}
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills a program with its parent")
def test_a_program_ends_with_its_worker(tmp_path: Path) -> None:
    """Kill a process that measures a part, as the system does when memory runs out."""
    program, note = tmp_path / "program.py", tmp_path / "process"
    program.write_text(f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)\n")
    code = f"from tilework.tools import tune; tune.measure_part({str(program)!r}, [], False, tune.triton_key(), '0/1')"
    worker = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        wait_until(lambda: note.is_file() and bool(note.read_text()))
    finally:
        worker.kill()
        worker.wait()
    wait_until(lambda: not is_running(int(note.read_text())))


@pytest.fixture
def cluster() -> Iterator[str]:
    """Run a Ray cluster of one machine, and return its address."""
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
