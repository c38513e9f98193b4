"""The part of `make bench-launch` about new processes: `import`, and the first launch of `add`, with and without a
cache.

Three tables. The first has milliseconds of importing and of the first launch, as wall time and as CPU time of all
threads and child processes (the smallest of several processes), beside Triton where it is installed. The second divides
the CPU time of a first launch into phases. The third has the first compilation of a process, which loads the compiler,
and a later one. NumPy has one thread there: those of its BLAS spin after `import numpy`. Without a GPU the kernel is
only compiled for one, if there is a ptxas.

    python -m benchmarks.cold_start [--processes 5] [--triton PYTHON] [--first]      # an interpreter that has Triton;
                                                                                     only the last table
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.cold_start_process import PHASES, TILES

Run = dict[str, Any]
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def measured(
    python: str, folder: str, package: str, device: str, mode: str, settings: Mapping[str, str] | None = None
) -> Run | None:
    """Return what one new process measures; None if it cannot run."""
    environment = {**os.environ, "TRITON_CACHE_DIR": folder, **(settings or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parents[1]), environment.get("PYTHONPATH", "")))
    if device == "cpu":
        environment["TILEWORK_DEVICE"] = "native"
    command = [python, "-m", "benchmarks.cold_start_process", package, device, mode]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def runs(python: str, package: str, device: str, processes: int, mode: str) -> Iterator[tuple[list[Run], list[Run]]]:
    """Pairs of (runs with an empty cache, runs with a full one): all of them, once; nothing if it cannot run here."""
    empty, full = [], []
    with tempfile.TemporaryDirectory() as folder:
        if measured(python, folder, package, device, mode) is None:
            return
        for _ in range(processes):
            shutil.rmtree(folder, ignore_errors=True)
            for found in (empty, full):
                if (run := measured(python, folder, package, device, mode)) is not None:
                    found.append(run)
    yield empty, full


def smallest(found: list[Run], what: str) -> tuple[float, float]:
    """Milliseconds on the wall and of CPU time."""
    return min(run[what][0] for run in found) * 1e3, min(run[what][1] for run in found) * 1e3


def devices() -> list[str]:
    """The host, and the GPU; where there is none, one to compile for."""
    probe = [sys.executable, "-c", "import torch; torch.ones(1, device='cuda')"]
    if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
        return ["cpu", "cuda"]
    return ["cpu", "cuda:90"] if shutil.which("ptxas") else ["cpu"]


def first_compiles(processes: int, device: str) -> Iterator[str]:
    """Yield the lines of the third table for a device."""
    for name in TILES:
        with tempfile.TemporaryDirectory(prefix="tw") as folder:
            settings = (sys.executable, folder, name, device, "first", ONE_THREAD)
            found = [run for _ in range(processes) if (run := measured(*settings)) is not None]
        if found:
            cells = (*smallest(found, "first"), *smallest(found, "warm"))
            yield (
                f"{name + ', ' + device:28}"
                + "".join(f"{cell:10.0f}" for cell in cells)
                + f"{cells[0] / cells[2]:9.1f}x"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--triton", default=sys.executable, help="an interpreter that has Triton")
    parser.add_argument("--first", action="store_true", help="only the last table")
    options = parser.parse_args()
    chosen = devices()
    if not options.first:
        launches(options, chosen)
    columns = ("first", "CPU", "warm", "CPU", "first/warm")
    print(f"{'compilation, ms':28}" + "".join(f"{name:>10}" for name in columns))
    for device in chosen:
        for line in first_compiles(options.processes, "cuda:90" if device == "cuda" else device):
            print(line, flush=True)


def launches(options: argparse.Namespace, chosen: list[str]) -> None:
    """The first two tables."""
    columns = ("import", "CPU", "no cache", "CPU", "cached", "CPU")
    print(f"{'ms, the smallest of ' + str(options.processes):28}" + "".join(f"{name:>10}" for name in columns))
    for device in chosen:
        for package, python in (("tilework", sys.executable), ("triton", options.triton)):
            if package == "triton" and device == "cpu":
                continue
            for empty, full in runs(python, package, device, options.processes, "plain"):
                cells = (*smallest(full, "import"), *smallest(empty, "launch"), *smallest(full, "launch"))
                print(f"{package + ', ' + device:28}" + "".join(f"{cell:10.0f}" for cell in cells))
    print(f"\n{'phases of tilework, CPU ms':28}" + "".join(f"{phase:>14}" for phase in PHASES))
    for device in chosen:
        for pair in runs(sys.executable, "tilework", device, options.processes, "phases"):
            for name, found in zip(("no cache", "cached"), pair, strict=True):
                cells = (min(run["phases"][phase] for run in found) * 1e3 for phase in PHASES)
                print(f"{device + ', ' + name:28}" + "".join(f"{cell:14.1f}" for cell in cells))
    print()


if __name__ == "__main__":
    main()
