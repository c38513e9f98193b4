"""The part of `make bench-launch` about new processes: what the first launch of a kernel takes when the cache has it.

One process fills a cache with 20 different kernels, a second one launches them all and takes the time of each: from
`kernel[grid](...)` until the result is there. The first launch also pays for what every process does once (imports, the
hash of the compiler's own sources, loading LLVM and the launcher); it stands in a column of its own. Beside it:
importing NumPy, which the arguments need anyhow, and compiling the same kernels in the first process.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS, PROCESSES, BUDGET_MS = 20, 5, 15.0
HEADER = """import json, sys, time
start = time.perf_counter()
import numpy
numpy_ms = (time.perf_counter() - start) * 1e3
start = time.perf_counter()
import tilework
import tilework.language as tl
tilework_ms = (time.perf_counter() - start) * 1e3
heavy = [name for name in ("xdsl", "llvmlite") if name in sys.modules]

"""
KERNEL = """
@tilework.jit
def kernel_{number}(x, y, out, rows, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + i, mask=i < columns, other={number}.0)
    b = tl.load(y + i, mask=i < columns, other=0.0)
    a = (a - tl.max(a, 0)) * scale + b * {number}
    e = tl.exp(a)
    tl.store(out + row * columns + i, e / tl.sum(e, 0), mask=i < columns)

"""
FOOTER = """
x = numpy.ones((64, 500), numpy.float32)
y, out = numpy.ones(500, numpy.float32), numpy.empty((64, 500), numpy.float32)
times, busy = [], []
for kernel in KERNELS:
    start, cpu = time.perf_counter(), time.process_time()
    kernel[(64,)](x, y, out, 64, 500, 0.5, BLOCK=512)
    times.append((time.perf_counter() - start) * 1e3)
    busy.append((time.process_time() - cpu) * 1e3)
modules = {name: name in sys.modules for name in ("xdsl", "tilework.frontend.generator", "llvmlite.binding")}
measured = {"numpy": numpy_ms, "tilework": tilework_ms, "times": times}
print(json.dumps({**measured, "busy": busy, "at_import": heavy, "modules": modules}))
"""


def program() -> str:
    """The text of the measured process."""
    names = ", ".join(f"kernel_{number}" for number in range(KERNELS))
    kernels = "".join(KERNEL.format(number=number) for number in range(KERNELS))
    return f"{HEADER}{kernels}\nKERNELS = [{names}]\n{FOOTER}"


def run(path: Path, environment: dict[str, str]) -> dict[str, object]:
    """Return the measurements of one process."""
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.py"
        path.write_text(program())
        environment = {**os.environ, "TRITON_CACHE_DIR": str(Path(folder) / "cache"), "TILEWORK_DEVICE": "native"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPATH"] = os.pathsep.join((str(Path(__file__).parents[1]), environment.get("PYTHONPATH", "")))
        compiled = run(path, environment)
        loaded = [run(path, environment) for _ in range(PROCESSES)]
    print(
        f"{KERNELS} kernels in a new "
        f"process{'import numpy':>15}{'import tilework':>17}{'once':>10}{'per kernel':>12}{'most':>9}{'CPU time':>11}"
    )
    for name, runs in (("compiled", [compiled]), ("from the disk cache", loaded)):
        cells = [statistics.median(figures(run)[column] for run in runs) for column in range(6)]
        print(
            f"{name:28}{cells[0]:12.1f} ms{cells[1]:14.1f} ms{cells[2]:7.1f} ms{cells[3]:9.1f} ms{cells[4]:6.1f} "
            f"ms{cells[5]:8.1f} ms"
        )
    there = [name for name, is_there in loaded[0]["modules"].items() if is_there]  # type: ignore[attr-defined]
    print(
        f"budget {BUDGET_MS:.0f} ms per kernel; medians of {PROCESSES} processes; "
        f"loaded with the kernels: {', '.join(there)}"
    )


def figures(run: dict[str, object]) -> tuple[float, ...]:
    """(numpy, tilework, once, per kernel, most, CPU time per kernel) of a process. `once` is the first kernel's time
    without that of the others; the CPU time is what a machine that does nothing else would take."""
    first, *others = run["times"]  # type: ignore[misc]
    each = statistics.median(others)
    busy = statistics.median(run["busy"][1:])  # type: ignore[index]
    return run["numpy"], run["tilework"], first - each, each, max(others), busy  # type: ignore[return-value]


if __name__ == "__main__":
    main()
