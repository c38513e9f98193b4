"""Ranks that start together from empty caches: how many compilations, how long, how much CPU time.

    python -m benchmarks.fleet [--ranks 8] [--repeat 3] [--triton PYTHON]      # an interpreter that has Triton

Each rank compiles 12 specialisations of six kernels, in the same order. `each compiles` is what happened before one
compiled for all (TILEWORK_COMPILE_WAIT=0), in the same run. `compiles` is the sum over the ranks; `wall` is from the
common beginning to the end of the last rank, `CPU` that of all ranks and of the programs that they ran, without the
imports before the beginning on the wall, and with them in the CPU time. Of `--repeat` runs in turns, the median.

"2 machines" are two cache folders, each for half of the ranks, with one Redis if there are a server and its package,
else with a folder that both see. Kernels for cuda:90 are only compiled, with ptxas; no GPU is needed.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

KEY = "fleet: no secret, for this benchmark"
TARGETS = {"cpu": "cpu:native", "cuda:90": "cuda:90"}


class Row(NamedTuple):
    """A way to start the ranks."""

    title: str
    target: str
    python: str
    package: str = "tilework"
    settings: tuple[tuple[str, str], ...] = ()
    machines: int = 1


class Run(NamedTuple):
    """The cost of one start: compilations, and seconds of wall and CPU time."""

    compiles: int
    wall: float
    cpu: float


def run(row: Row, ranks: int, folder: Path) -> Run:
    """Start the ranks, let them begin together, and wait for all."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = [start(row, folder / f"machine {rank % row.machines}") for rank in range(ranks)]
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "ready\n", f"{row.title}: a rank has failed"
    began = time.perf_counter()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    printed = [json.loads(process.communicate()[0]) for process in started]
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(sum(rank["compiles"] for rank in printed), wall, cpu)


def start(row: Row, cache: Path) -> "subprocess.Popen[str]":
    environment = {
        **os.environ,
        **dict(row.settings),
        "FLEET_PACKAGE": row.package,
        "TRITON_CACHE_DIR": str(cache),
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join((str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))),
    }
    command = [row.python, "-m", "benchmarks.fleet_process", TARGETS[row.target]]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@contextmanager
def shared_cache(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (the URL of a shared cache, its kind): a new Redis server, or a folder."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None or find_spec("redis") is None:
        (folder / "shared").mkdir()
        yield f"file://{folder / 'shared'}", "a folder"
        return
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [program, "--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}/0", "Redis"
    finally:
        server.kill()
        server.wait()


def rows_of(target: str, triton: str | None) -> list[Row]:
    alone, once = (("TILEWORK_COMPILE_WAIT", "0"),), (("TILEWORK_COMPILE_WAIT", "300"),)
    found = [
        Row(f"{target}, each compiles", target, sys.executable, settings=alone),
        Row(f"{target}, compile once", target, sys.executable, settings=once),
        Row(f"{target}, 2 machines, each compiles", target, sys.executable, settings=alone, machines=2),
        Row(f"{target}, 2 machines, compile once", target, sys.executable, settings=once, machines=2),
    ]
    if triton is not None:
        found.append(Row(f"{target}, Triton", target, triton, "triton"))
    return found


def measured(row: Row, ranks: int) -> tuple[Run, str]:
    """Run once from empty caches, and return the cost."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if row.machines == 1:
            return run(row, ranks, folder), ""
        with shared_cache(folder) as (url, kind):
            settings = (*row.settings, ("TILEWORK_CACHE_URL", url), ("TILEWORK_CACHE_KEY", KEY))
            return run(row._replace(settings=settings), ranks, folder), kind


def can_compile(python: str, package: str, target: str) -> bool:
    """Return True if a rank with this interpreter can compile here."""
    with tempfile.TemporaryDirectory() as folder:
        process = start(Row("", target, python, package), Path(folder))
        process.communicate("\n")
        return process.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--triton", default=sys.executable, help="an interpreter that has Triton")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(f"{options.ranks} ranks, {platform.machine()}, {cores} cores, Python {platform.python_version()}")
    rows: list[Row] = []
    for target in options.targets:
        if not can_compile(sys.executable, "tilework", target):
            print(f"{target}: cannot be compiled for here")
            continue
        has_triton = target != "cpu" and can_compile(options.triton, "triton", target)
        rows += rows_of(target, options.triton if has_triton else None)
    found: dict[Row, list[Run]] = {row: [] for row in rows}
    kinds: dict[Row, str] = {}
    for _ in range(options.repeat):
        for row in rows:
            result, kinds[row] = measured(row, options.ranks)
            found[row].append(result)
    print(f"{'':48}{'compiles':>10}{'wall, s':>10}{'CPU, s':>10}")
    for row, runs in found.items():
        compiles, wall, cpu = (statistics.median(values) for values in zip(*runs, strict=True))
        title = row.title.replace("2 machines", f"2 machines with {kinds[row]}")
        print(f"{title:48}{compiles:10.0f}{wall:10.2f}{cpu:10.2f}")


if __name__ == "__main__":
    main()
