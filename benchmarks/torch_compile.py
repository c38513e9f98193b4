"""`torch.compile` with tilework as its Triton, beside eager torch and beside what Inductor uses otherwise.

    python -m benchmarks.torch_compile                   on the CPU: eager, Inductor's C++, tilework
    python -m benchmarks.torch_compile --device cuda     on a GPU: eager, Inductor with Triton (where it is installed),
                                                         tilework
    python -m benchmarks.torch_compile --threads 1       with one thread each, in seconds of the processor: other
                                                         processes count less

Each compiler has a process of its own with empty caches. A row: the time of a call beside that of eager in the same
process, the seconds of the first call (compiling, everything), and how far the result is from eager, relative to its
largest element.

The processes are measured in turns, a row at a time, and wait while another one is measured. With Triton or tilework
Inductor has a pool of processes that compile. They start in the background, and importing torch takes them seconds in
which they would occupy the cores: nothing is measured before the pool is ready. `others` is the part of the machine's
time that went to processes which are not ours while a row was measured: where it is not near 0, run it again.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from math import nan
from typing import Any

ROUNDS, ROUND = 9, 0.06  # how often each process is measured, and for how many seconds
NAMES = {"cpu": ("cpp", "tilework"), "cuda": ("triton", "tilework")}
TITLES = {"cpp": "Inductor's C++", "triton": "Inductor, Triton", "tilework": "Inductor, tilework"}


def cases(device: str) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Name to (function, arguments, options of torch.compile)."""
    import torch
    from torch.nn import functional as F

    from tests.inductor.training import Transformer

    torch.manual_seed(0)
    large = 4 if device == "cuda" else 1
    small, rows = torch.randn(64, 256, device=device), torch.randn(1024 * large, 1024, device=device)
    flat = torch.randn(large << 20, device=device)
    weight, bias = torch.randn(1024, device=device), torch.randn(1024, device=device)
    model = Transformer(words=1000, width=64).to(device)
    tokens = torch.randint(0, 1000, (8, 65), device=device)

    def step(tokens: Any) -> Any:
        scores = model(tokens[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())

    found = {
        "softmax 64x256": (lambda x: x.softmax(-1), (small,), {}),
        "softmax of 1024 columns": (lambda x: x.softmax(-1), (rows,), {}),
        "layer norm, gelu": (lambda x: F.gelu(F.layer_norm(x, (1024,), weight, bias)), (rows,), {}),
        "pointwise chain": (lambda x, y: (x.sin() * y.sigmoid() + x.tanh()).relu() - 0.5 * y, (flat, flat.flip(0)), {}),
        "sum of all": (lambda x: (x * x).sum(), (flat,), {}),
        "cumsum": (lambda x: x.cumsum(-1), (rows,), {}),
        **elementwise(flat, flat[: large << 16]),
        "transformer, loss": (step, (tokens,), {}),
    }
    if device == "cuda":
        a, b = (torch.randn(2048, 2048, device=device, dtype=torch.float16) for _ in range(2))
        found["matmul 2048 f16, templates"] = (
            lambda a, b: (a @ b).relu(),
            (a, b),
            {"mode": "max-autotune-no-cudagraphs"},
        )
        found["softmax 64x256, CUDA graph"] = (lambda x: x.softmax(-1), (small,), {"mode": "reduce-overhead"})
    return found


def elementwise(flat: Any, middle: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Functions that take most of their time in one elementary function."""
    import torch
    from torch.nn import functional as F

    functions = {"erf": torch.erf, "gelu": F.gelu, "gelu, tanh": partial(F.gelu, approximate="tanh")}
    dtypes = {"f32": torch.float32, "bf16": torch.bfloat16}
    inputs = {f"{kind} {x.numel() >> 10}k": x.to(dtype) for kind, dtype in dtypes.items() for x in (middle, flat)}
    return {
        f"{name}, {size}": (function, (x,), {}) for name, function in functions.items() for size, x in inputs.items()
    }


def seconds_of(call: Callable[[], Any], device: str, count: int) -> float:
    """Of one call, the mean of some."""
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    clock = time.process_time if torch.get_num_threads() == 1 and device == "cpu" else time.perf_counter
    call()  # wakes threads, fills caches
    wait()
    start = clock()
    for _ in range(count):
        call()
    wait()
    return (clock() - start) / count


def child(compiler: str, device: str, threads: int | None) -> None:
    """In the process of one compiler: the first call of the row that a line of stdin names, then its times for every
    empty line."""
    import torch
    from torch._inductor import config
    from torch._inductor.async_compile import AsyncCompile

    config.cpu_backend = "cpp" if compiler == "cpp" else "triton"
    config.max_autotune_gemm_backends = "TRITON"
    if threads is not None:
        torch.set_num_threads(threads)
    torch.compile(lambda x: x + 1)(torch.ones(3, device=device))  # what is loaded once
    AsyncCompile.wait_pool_ready()
    known = cases(device)
    say({"names": list(known)})
    calls: list[tuple[str, Callable[[], Any], int]] = []
    with torch.no_grad():
        for line in sys.stdin:
            if not line.strip():
                say({name: seconds_of(call, device, count) for name, call, count in calls})
                continue
            function, args, options = known[line.strip()]
            try:
                torch._dynamo.reset()
                compiled = torch.compile(function, **options)
                start = time.perf_counter()
                found = compiled(*args)
                first = time.perf_counter() - start
                expected = function(*args)
                error = ((found - expected).abs().max() / expected.abs().max()).item()
                both = {"eager": partial(function, *args), "time": partial(compiled, *args)}
                once = {name: seconds_of(call, device, 2) for name, call in both.items()}
                calls = [(name, call, max(1, int(ROUND / once[name]))) for name, call in both.items()]
                say({"first": first, "error": error})
            except Exception as error:
                say({"problem": f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"})


def say(words: dict[str, Any]) -> None:
    print(json.dumps(words), flush=True)


class Process:
    """The process of one compiler, which answers questions."""

    def __init__(self, compiler: str, device: str, threads: int | None, folder: str) -> None:
        under = ["-m", "tilework.as_triton"] if compiler == "tilework" else []
        words = ["--child", compiler, "--device", device, *(["--threads", str(threads)] if threads else [])]
        settings = {name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"}
        settings["TORCHINDUCTOR_CACHE_DIR"] = folder
        if threads:
            settings["TILEWORK_NUM_THREADS"] = str(threads)
        self.title, self.log = TITLES[compiler], os.path.join(folder, "log")
        command = [sys.executable, *under, "-m", "benchmarks.torch_compile", *words]
        with open(self.log, "w") as log:
            self.running = subprocess.Popen(
                command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def answer(self, question: str | None = None) -> dict[str, Any]:
        assert self.running.stdin is not None and self.running.stdout is not None
        if question is not None:
            self.running.stdin.write(question + "\n")
            self.running.stdin.flush()
        for line in self.running.stdout:
            if line.startswith("{"):
                return json.loads(line)
        with open(self.log) as log:
            raise SystemExit(f"{self.title}: {' '.join(log.read().split())[-300:]}")

    def cpu_seconds(self) -> float:
        """Used so far."""
        with open(f"/proc/{self.running.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """Used so far by all processes of the machine."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, soft = (int(word) for word in file.readline().split()[1:8])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def measure(processes: list[Process], name: str) -> tuple[list[dict[str, Any]], float]:
    """The cells of a row, and the part of the machine that others had meanwhile."""
    cells = [process.answer(name) for process in processes]
    rounds: list[list[dict[str, float]]] = [[] for _ in processes]
    before, own, start = busy_seconds(), sum(map(Process.cpu_seconds, processes)), time.perf_counter()
    for _ in range(ROUNDS):
        for cell, process, found in zip(cells, processes, rounds, strict=True):
            if "problem" not in cell:
                found.append(process.answer(""))
    used = busy_seconds() - before - (sum(map(Process.cpu_seconds, processes)) - own)
    others = max(0.0, used) / (time.perf_counter() - start) / (os.cpu_count() or 1)
    for cell, found in zip(cells, rounds, strict=True):
        for kind in ("eager", "time") if found else ():
            cell[kind] = 1e6 * statistics.median(times[kind] for times in found)
    return cells, others


def usable(compiler: str) -> bool:
    return compiler != "cpp" or any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++"))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="models whose name contains a word")
    parser.add_argument("--device", default="cpu", choices=tuple(NAMES))
    parser.add_argument("--threads", type=int, help="of every compiler")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        return child(given.child, given.device, given.threads)
    compilers = [name for name in NAMES[given.device] if usable(name)]
    print(f"load average {os.getloadavg()[0]:.2f} at the start", flush=True)
    with ExitStack() as stack:
        folders = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in compilers]
        processes = []
        for compiler, folder in zip(compilers, folders, strict=True):
            processes.append(Process(compiler, given.device, given.threads, folder))
            stack.callback(processes[-1].running.kill)
            names = processes[-1].answer()["names"]
        print(f"{'':28}" + "".join(f"{TITLES[name]:>44}" for name in compilers))
        print(
            f"{'':28}" + f"{'eager us':>12}{'us':>12}{'first s':>9}{'error':>11}" * len(compilers) + "   ratio  others"
        )
        for name in names:
            if not given.words or any(word in name for word in given.words):
                cells, others = measure(processes, name)
                times = [cell.get("time", nan) for cell in cells]
                ratio = f"{times[-1] / times[0]:8.2f}{100 * others:7.0f}%"
                print(f"{name:28}" + "".join(map(text_of, cells)) + ratio, flush=True)


def text_of(cell: dict[str, Any]) -> str:
    if "problem" in cell:
        return f"{cell['problem'][:42]:>44}"
    return f"{cell['eager']:12.1f}{cell['time']:12.1f}{cell['first']:9.2f}{cell['error']:11.1e}"


if __name__ == "__main__":
    main(sys.argv[1:])
