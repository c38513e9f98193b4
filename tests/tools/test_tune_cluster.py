"""`tilework tune --workers` on a Ray cluster of this machine, parts of which are killed while they measure.

Ray is not among the packages for tests; ``pip install 'ray[client]'`` into an environment of its own runs these.
`test_tune.py` has the same on a fake cluster.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.python_programs import is_running, run_python, wait_until

ROOT = Path(__file__).parent.parent.parent
COUNT, BEST = 12, 7
PROGRAM = f"""
import os, sys, time
import numpy as np
import tilework
import tilework.language as tl

def bench(call, quantiles):
    call()
    with open(sys.argv[1], "a") as log:
        print(os.getpid(), int(x[0]), file=log)
    time.sleep(0.3)
    return [abs(int(x[0]) - {BEST}) + 1.0] * 3

@tilework.autotune([tilework.Config({{"K": k}}) for k in range({COUNT})], key=["n"], do_bench=bench)
@tilework.jit
def fill(x, n, K: tl.constexpr):
    i = tl.arange(0, 32)
    tl.store(x + i, K + 0.0, mask=i < n)

x = np.zeros(32, np.float32)
fill[(1,)](x, 32)
"""
# `tilework tune` with a shorter wait for machines
COMMAND = "import sys; from tilework.tools import cli, tune; tune.PATIENCE = 5.0; sys.exit(cli.main())"
SECONDS = 240.0
MEMORY = 80 << 20  # of a machine's object store

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the parents of processes from /proc")


class Tuning:
    """A cluster of a head without cores and two machines, and a tuning of four parts that runs on it."""

    def __init__(self, folder: Path) -> None:
        from ray.cluster_utils import Cluster

        self.log, self.cache, self.script = folder / "log", folder / "cache", folder / "work" / "program.py"
        self.log.touch()
        self.script.parent.mkdir()
        self.script.write_text(PROGRAM)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        head = {"num_cpus": 0, "ray_client_server_port": self.port, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args={**head, "object_store_memory": MEMORY})
        self.tuning: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.machines = [self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
        self.cluster.wait_for_nodes()
        command = [sys.executable, "-c", COMMAND, "tune", "--workers", f"ray://127.0.0.1:{self.port}", "--parts", "4"]
        self.tuning = subprocess.Popen(
            [*command, str(self.script), str(self.log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def measured(self) -> list[tuple[int, int]]:
        """Return the process id and the configuration of each measurement so far."""
        lines = self.log.read_text().splitlines()
        return [(int(process), int(k)) for process, k in map(str.split, lines)]

    def busy_with(self, process: int) -> Any:
        """Return the machine that a process runs on."""
        (machine,) = (one for one in self.machines if raylet(one) in ancestors(process))
        return machine

    def end(self) -> tuple[int, list[str], str]:
        """Wait for the command; return its exit code, the lines of its output, and its messages."""
        assert self.tuning is not None
        printed, messages = self.tuning.communicate(timeout=SECONDS)
        return self.tuning.returncode, printed.splitlines(), messages

    def stop(self) -> None:
        if self.tuning is not None:
            self.tuning.kill()
            self.tuning.communicate()
        self.cluster.shutdown()
        for process in {process for process, _ in self.measured()}:
            wait_until(lambda process=process: not is_running(process))


def raylet(machine: Any) -> int:
    return machine.all_processes["raylet"][0].process.pid


def ancestors(process: int) -> Iterator[int]:
    """Yield a process id, that of its parent, and so on."""
    while process > 1:
        yield process
        process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def tuning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tuning]:
    """A tuning that has measured two configurations."""
    for name, value in {
        "RAY_AUTH_MODE": "disabled",
        "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "5",
        "PYTHONPATH": str(ROOT),
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
        "TILEWORK_NATIVE_LAUNCH": "0",
    }.items():
        monkeypatch.setenv(name, value)
    pytest.importorskip("ray")
    pytest.importorskip("grpc", reason="ray[client]")
    started = Tuning(tmp_path)
    try:
        started.start()
        wait_until(lambda: len(started.measured()) > 1, SECONDS)
        yield started
    finally:
        started.stop()


def check_all_is_there(tuning: Tuning) -> None:
    """All configurations have a timing, and a later run measures none."""
    code, printed, _ = tuning.end()
    assert code == 0
    best = {"K": BEST, "num_ctas": 1, "num_stages": 3, "num_warps": 4}
    assert printed == [f"fill (32, 'float32'): 1 ms with {best}, of {COUNT} configurations"]
    assert {k for _, k in tuning.measured()} == {*range(COUNT)}
    check_later_runs_measure(tuning, 0)


def check_later_runs_measure(tuning: Tuning, count: int) -> None:
    known = len(tuning.measured())
    done = run_python(str(tuning.script), str(tuning.log), timeout=SECONDS)
    assert (done.returncode, len(tuning.measured()) - known) == (0, count), done.stderr


def test_a_machine_is_killed(tuning: Tuning) -> None:
    process, _ = tuning.measured()[0]
    tuning.cluster.remove_node(tuning.busy_with(process), allow_graceful=False)
    check_all_is_there(tuning)


def test_a_worker_is_killed(tuning: Tuning) -> None:
    """The worker's program ends too; it would disturb the next program on this machine."""
    process, _ = tuning.measured()[-1]
    _, worker, *_ = ancestors(process)
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: not is_running(process), 2.0)
    check_all_is_there(tuning)


def test_a_machine_comes_when_all_are_killed(tuning: Tuning) -> None:
    for machine in tuning.machines:
        tuning.cluster.remove_node(machine, allow_graceful=False)
    tuning.cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    check_all_is_there(tuning)


@pytest.mark.parametrize("what", ["machines", "head"])
def test_all_is_killed(tuning: Tuning, what: str) -> None:
    """The results of finished parts are kept, and a later run measures the other configurations."""
    wait_until(lambda: any(tuning.cache.glob("*/fill.tuned.json")), SECONDS)
    for machine in tuning.machines if what == "machines" else [tuning.cluster.head_node]:
        tuning.cluster.remove_node(machine, allow_graceful=False)
    code, (line,), messages = tuning.end()
    _, _, kept = line.rpartition(", of ")
    assert code == 1 and "tilework tune: error: no result of part" in messages
    reasons = {"machines": "no machine of the cluster can measure", "head": "the connection to ray://127.0.0.1:"}
    assert reasons[what] in messages
    check_later_runs_measure(tuning, COUNT - int(kept.split()[0]))
