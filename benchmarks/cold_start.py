"""The part of `make bench-launch` about new processes: `import`, and the first launch of `add`, with and without a cache.

Four tables. The first has milliseconds of importing and of the first launch, as the clock on the wall and as CPU time of all
threads and child processes (the smallest of several processes: other programs take the wall's time, not this one), beside
Triton where it is installed. The second divides the CPU time of a first launch into phases. The third has the first compilation of a
process that loads the compiler, of one that asks a compile server, a later one of the second process (the server's, too), and one of the
first, which has the compiler by then. CPU time is that of the process, without the server's. NumPy has one thread there: after `import numpy`
those of its BLAS spin for a tenth of a second, on the cores that the server needs. The fourth has the first compilation of a process that
does something else between the definition of its kernel and that, alone and with a server that it starts itself. Without a GPU the kernel is
only compiled for one, if there is a ptxas.

    python -m benchmarks.cold_start [--processes 5] [--triton PYTHON] [--first]      # an interpreter that has Triton; only the last tables
"""

import argparse
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.cold_start_process import PHASES, TILES

Run = dict[str, Any]
NO_SERVER = {"TILEWORK_COMPILE_SERVER": "off"}
GAPS = ("0", "100", "200", "300", "500")  # milliseconds
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def measured(
    python: str, folder: str, package: str, device: str, mode: str, settings: Mapping[str, str] = NO_SERVER, *more: str
) -> Run | None:
    """What one new process says; None if it cannot run."""
    environment = {**os.environ, "TRITON_CACHE_DIR": folder, **settings}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parents[1]), environment.get("PYTHONPATH", "")))
    if device == "cpu":
        environment["TILEWORK_DEVICE"] = "native"
    command = [python, "-m", "benchmarks.cold_start_process", package, device, mode, *more]
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
    """The lines of the third table for a device: processes with and without a server take turns."""
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        os.chmod(folder, 0o700)
        one("add", device, folder, "start")
        while (served := one("add", device, folder, "use")) is not None and served["loaded"]:
            time.sleep(0.1)  # the server loads the compiler, or this target's
        for name in TILES:
            here, there = [], []
            for _ in range(processes):
                here.append(one(name, device, folder, "off"))
                there.append(one(name, device, folder, "use"))
            served = [run for run in there if run is not None and not run["loaded"]]
            if not served or None in here:
                yield f"{name + ', ' + device:28}   was not compiled by the server"
                continue
            first, asked, warm = smallest(here, "first"), smallest(served, "first"), smallest(here, "warm")
            cells = (*first, *asked, smallest(served, "warm")[0], *warm)
            ratios = f"{first[0] / warm[0]:9.1f}x{asked[0] / warm[0]:9.1f}x"
            yield f"{name + ', ' + device:28}" + "".join(f"{cell:10.0f}" for cell in cells) + ratios
        end_server(folder)


def one(name: str, device: str, folder: str, mode: str, *more: str) -> Run | None:
    """What a new process says of its first compilation."""
    settings = {"XDG_RUNTIME_DIR": folder, "TILEWORK_COMPILE_SERVER": mode, **ONE_THREAD}
    return measured(sys.executable, f"{folder}/cache{time.time_ns()}", name, device, "first", settings, *more)


def after_gaps(processes: int, device: str) -> Iterator[str]:
    """The lines of the fourth table for a device: the smallest and the largest of some processes."""
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        os.chmod(folder, 0o700)
        for gap in GAPS:
            cells = ""
            pairs = [[one("add", device, folder, mode, gap) for mode in ("off", "auto")] for _ in range(processes)]
            for found in zip(*pairs, strict=True):
                times = [run["first"][0] * 1e3 for run in found if run is not None]
                cells += f"{min(times, default=0):10.0f}{max(times, default=0):10.0f}"
            yield f"{'add, ' + device + ', after ' + gap + ' ms':28}{cells}"


def end_server(folder: str) -> None:
    """End the server whose socket is in a folder."""
    for path in Path(folder, "tilework").glob("*"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        os.kill(struct.unpack("3i", data)[0], signal.SIGTERM)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--triton", default=sys.executable, help="an interpreter that has Triton")
    parser.add_argument("--first", action="store_true", help="only the last tables")
    options = parser.parse_args()
    chosen = devices()
    if not options.first:
        launches(options, chosen)
    columns = ("no server", "CPU", "server", "CPU", "later", "warm", "CPU", "none/warm", "srv./warm")
    print(f"{'first compilation, ms':28}" + "".join(f"{name:>10}" for name in columns))
    for device in chosen:
        for line in first_compiles(options.processes, "cuda:90" if device == "cuda" else device):
            print(line, flush=True)
    print(f"\n{'first compilation, ms':28}{'alone':>20}{'with its server':>20}")
    for device in chosen:
        for line in after_gaps(options.processes, "cuda:90" if device == "cuda" else device):
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
