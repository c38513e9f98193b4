"""The part of `make bench-launch` about new processes: `import`, and the first launch of `add`, with and without a cache.

Two tables. The first has milliseconds of importing and of the first launch, as the clock on the wall and as CPU time of all
threads and child processes (the smallest of several processes: other programs take the wall's time, not this one), beside
Triton where it is installed. The second divides the CPU time of a first launch into phases. Without a GPU the kernel is only compiled for one,
if there is a ptxas.

    python -m benchmarks.cold_start [--processes 5] [--triton PYTHON]      # an interpreter that has Triton
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cold_start_process import PHASES

Run = dict[str, Any]


def measured(python: str, folder: str, package: str, device: str, mode: str) -> Run | None:
    """What one new process says; None if it cannot run."""
    environment = {**os.environ, "TRITON_CACHE_DIR": folder}
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--triton", default=sys.executable, help="an interpreter that has Triton")
    options = parser.parse_args()
    chosen = devices()
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


if __name__ == "__main__":
    main()
