"""`make bench-launch`, the part about bundles: what a new process takes until its kernels run, compiled, from the disk
cache, from a bundle.

    python -m benchmarks.bundle_start [--device cuda] [--kernels 20] [--processes 7]

A program with different kernels is recorded on the CPU, and compiled into a bundle for the device. Then new processes
launch every kernel once and wait for the result, which is compared with NumPy's. Those that are served from the bundle
find neither xDSL nor llvmlite nor ml_dtypes nor Triton, no ptxas on their PATH, and no cache; bytecode is there, as
where a wheel was installed. Columns, in milliseconds, the smallest of all processes, on the wall and of CPUs: other
programs take the wall's time, not these. NumPy's BLAS has one thread: others spin after its import, and their time
would be counted.

| column | from, to |
|---|---|
| `import` | `import tilework` and its language; NumPy is there |
| `define` | the definitions of all kernels |
| `open` | `tilework.load`, with all that it imports; nothing elsewhere |
| `first` | `kernel[grid](...)` until the result is there, the first one of the process: driver and thread pool too |
| `ready` | from the end of `import tilework` to that result, all three: the budget is 20 ms. On a GPU its context is
 there before, which is the driver's, and what copies arrays to it |
| `second` | the next launch, of another kernel: it loads the native launcher, too, which the first one does without |
| `next` | the same for each other kernel, in the middle: key, look-up, loading, describing, running |
| `load` | of that what puts the code into memory, by `tilework.metrics`; the budget is 1 ms |
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIRST_BUDGET, LOAD_BUDGET = 20.0, 1.0
COLUMNS = ("import", "define", "open", "first", "ready", "second", "next", "load")
HEADER = """import json, os, sys, time
BUNDLE, DEVICE = os.environ.get("SERVED_FROM"), os.environ["RUNS_ON"]
BLOCKED = ("xdsl", "llvmlite", "ml_dtypes", "triton", "torch") if BUNDLE else ()

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import numpy

class Clock:  # times from one look to the next: on the wall, and of CPUs
    def __init__(self):
        self.look()

    def look(self):
        before, self.now = getattr(self, "now", (0, 0)), (time.perf_counter(), time.process_time())
        return [now - then for now, then in zip(self.now, before)]

clock = Clock()
import tilework
import tilework.language as tl
times = {"import": clock.look()}

"""
KERNEL = """
@tilework.jit
def kernel_{number}(x, y, out, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    a = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    b = tl.load(y + i, mask=i < columns, other=0.0)
    a = (a - tl.max(a, 0)) * scale
    e = tl.exp(a)
    tl.store(out + row * columns + i, e / tl.sum(e, 0) + b * {number}, mask=i < columns)

"""
FOOTER = """
times["define"] = clock.look()
rng = numpy.random.default_rng(0)
host = rng.standard_normal((64, 500), dtype="f4"), rng.standard_normal(500, dtype="f4"), numpy.zeros((64, 500), "f4")
given, back = host, lambda array: array
if DEVICE != "cpu":
    from tilework.runtime.devices.active_driver import driver
    given = [driver.active.array_cls.of(array) for array in host]
    back = lambda array: array.numpy()
x, y, out = given
clock.look()
if BUNDLE:
    tilework.load(BUNDLE)
times["open"] = clock.look()
each = []
for kernel in KERNELS:
    clock.look()
    kernel[(64,)](x, y, out, 500, 0.5, BLOCK=512)
    result = back(out)
    each.append(clock.look())
    powers = numpy.exp((host[0] - host[0].max(1, keepdims=True)) * 0.5)
    number = int(kernel.__name__.rpartition("_")[2])
    assert numpy.allclose(result, powers / powers.sum(1, keepdims=True) + host[1] * number, atol=1e-3), kernel
from tilework.runtime.launch.native.machine import machine
counted = tilework.metrics.snapshot()
middle = len(each) // 2
times["first"], times["second"] = each[0], each[min(1, len(each) - 1)]
times["ready"] = [sum(parts) for parts in zip(times["define"], times["open"], each[0])]
times["next"] = [sorted(column)[middle] for column in zip(*each[1:])] if middle else each[0]
times["load"] = 2 * [sorted(counted["load_seconds"].values())[middle]]
heavy = [name for name in ("xdsl", "llvmlite.binding", "ml_dtypes", "triton") if name in sys.modules]
print(json.dumps({"times": times, "heavy": heavy, "native": machine() is not None,
                  "hits": sum(counted["cache_hits"].values()), "compiles": sum(counted["compiles"].values())}))
"""
Run = dict[str, Any]


def program(kernels: int) -> str:
    """The text of the measured process."""
    names = ", ".join(f"kernel_{number}" for number in range(kernels))
    bodies = "".join(KERNEL.format(number=number) for number in range(kernels))
    return f"{HEADER}{bodies}\nKERNELS = [{names}]\n{FOOTER}"


class Workshop:
    """A folder with the program, its cache and its bundle."""

    def __init__(self, folder: Path, device: str, kernels: int) -> None:
        self.folder, self.device, self.script = folder, device, folder / "served_kernels.py"
        self.script.write_text(program(kernels))
        self.bundle = folder / "served.tilebundle"

    def environment(self, device: str, cache: str, **more: str) -> dict[str, str]:
        settings = {
            name: value for name, value in os.environ.items() if not name.startswith(("TILEWORK_", "TRITON_CACHE"))
        }
        settings.pop("PYTHONDONTWRITEBYTECODE", None)
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        chosen = "native" if device == "cpu" else device
        settings |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": paths, "RUNS_ON": device, "TILEWORK_DEVICE": chosen}
        return settings | {"TRITON_CACHE_DIR": str(self.folder / cache), **more}

    def run(self, device: str, cache: str, **more: str) -> Run:
        """Return the measurements of one new process."""
        command = [sys.executable, str(self.script)]
        done = subprocess.run(
            command, env=self.environment(device, cache, **more), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the measured process failed:\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    def make_bundle(self, targets: list[str]) -> None:
        """Record on the CPU, compile for the targets: no GPU takes part."""
        manifest = self.folder / "served.jsonl"
        self.run("cpu", "recorded", TILEWORK_RECORD=str(manifest))
        command = [sys.executable, "-m", "tilework", "precompile", str(manifest), "-o", str(self.bundle)]
        command += [part for target in targets for part in ("--target", target)]
        environment = self.environment("cpu", "recorded", CUDA_VISIBLE_DEVICES="")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"tilework precompile failed:\n{done.stdout}{done.stderr}")

    def served(self, device: str, empty: str) -> Run:
        """A process that has the bundle, and nothing else."""
        return self.run(
            device, empty, SERVED_FROM=str(self.bundle), TILEWORK_NO_JIT="1", PATH=str(self.folder / "nothing")
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--target", help="what the bundle is for; cpu, or cuda:90")
    parser.add_argument("--kernels", type=int, default=20)
    parser.add_argument("--processes", type=int, default=7)
    options = parser.parse_args()
    target = options.target or {"cpu": "cpu", "cuda": "cuda:90"}[options.device]
    with tempfile.TemporaryDirectory() as name:
        shop = Workshop(Path(name), options.device, options.kernels)
        shop.make_bundle([target])
        compiled = [shop.run(options.device, "compiled")]
        runs = [
            (shop.run(options.device, "compiled"), shop.served(options.device, f"empty{number}"))
            for number in range(options.processes)
        ]
        cached, served = zip(*runs, strict=True)
        size = shop.bundle.stat().st_size
    print(f"{f'{options.kernels} kernels, {target}, ms':32}" + "".join(f"{name:>14}" for name in COLUMNS))
    for label, found in (("compiled", compiled), ("from the disk cache", cached), ("from a bundle", served)):
        for clock, words in enumerate(("", ", CPU time")):
            cells = [min(run["times"][column][clock] for run in found) * 1e3 for column in COLUMNS]
            print(f"{label + words:32}" + "".join(f"{cell:14.2f}" for cell in cells))
    launcher = "native" if served[0]["native"] else "Python's"
    print(f"budgets: {FIRST_BUDGET:.0f} ms for ready, {LOAD_BUDGET:.0f} ms for load; "
          f"{size:,} bytes, {launcher} launcher,"
          f" loaded beside: {', '.join(served[0]['heavy']) or 'no compiler'}")  # fmt: skip


if __name__ == "__main__":
    main()
