"""`torch.compile` with tilework as its Triton, beside eager torch and beside what Inductor uses otherwise.

    python -m benchmarks.torch_compile                   on the CPU: eager, Inductor's C++, tilework
    python -m benchmarks.torch_compile --device cuda     on a GPU: eager, Inductor with Triton (where it is installed), tilework

Each compiler has a process of its own with empty caches. A row: the time of a call beside that of eager in the same process, the
seconds of the first call (compiling, everything), and how far the result is from eager, relative to its largest element.
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
from functools import partial
from typing import Any

LIMIT = 100  # seconds for one compiler
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


def microseconds(call: Callable[[], Any], device: str, seconds: float = 0.3) -> float:
    """Of one call: the median of some rounds."""
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(3):
        call()
    wait()
    start = time.perf_counter()
    call()
    wait()
    count = max(1, int(seconds / 9 / max(time.perf_counter() - start, 1e-6)))
    rounds = []
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(count):
            call()
        wait()
        rounds.append((time.perf_counter() - start) / count)
    return 1e6 * statistics.median(rounds)


def child(compiler: str, device: str, words: list[str]) -> None:
    """In the process of one compiler: a line of JSON for each model."""
    import torch
    from torch._inductor import config

    config.cpu_backend = "cpp" if compiler == "cpp" else "triton"
    config.max_autotune_gemm_backends = "TRITON"
    torch.compile(lambda x: x + 1)(torch.ones(3, device=device))  # what is loaded once
    for name, (function, args, options) in cases(device).items():
        if words and not any(word in name for word in words):
            continue
        row: dict[str, Any] = {"name": name}
        try:
            with torch.no_grad():
                torch._dynamo.reset()
                compiled = torch.compile(function, **options)
                start = time.perf_counter()
                found = compiled(*args)
                row["first"] = time.perf_counter() - start
                expected = function(*args)
                row["error"] = ((found - expected).abs().max() / expected.abs().max()).item()
                row["eager"], row["time"] = (microseconds(partial(f, *args), device) for f in (function, compiled))
        except Exception as error:
            row["problem"] = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
        print(json.dumps(row), flush=True)


def measure(compiler: str, device: str, words: list[str]) -> dict[str, dict[str, Any]]:
    """The rows of one compiler, by name; empty with a note if it cannot be used."""
    under = ["-m", "tilework.as_triton"] if compiler == "tilework" else []
    command = [
        sys.executable,
        *under,
        "-m",
        "benchmarks.torch_compile",
        "--child",
        compiler,
        "--device",
        device,
        *words,
    ]
    with tempfile.TemporaryDirectory() as folder:
        settings = {name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"}
        settings["TORCHINDUCTOR_CACHE_DIR"] = folder
        try:
            done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=LIMIT, check=False)
            printed, problem = done.stdout, "" if done.returncode == 0 else " ".join(done.stderr.split())[-300:]
        except subprocess.TimeoutExpired as expired:
            printed = expired.stdout.decode() if isinstance(expired.stdout, bytes) else expired.stdout or ""
            problem = f"not done after {LIMIT} s"
    if problem:
        print(f"{TITLES[compiler]}: {problem}", flush=True)
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {row["name"]: row for row in rows}


def usable(compiler: str) -> bool:
    return compiler != "cpp" or any(shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++"))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="models whose name contains a word")
    parser.add_argument("--device", default="cpu", choices=tuple(NAMES))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.child:
        return child(given.child, given.device, given.words)
    compilers = [name for name in NAMES[given.device] if usable(name)]
    rows = {name: measure(name, given.device, given.words) for name in compilers}
    print(f"{'':28}" + "".join(f"{TITLES[name]:>44}" for name in compilers))
    print(f"{'':28}" + f"{'eager us':>12}{'us':>12}{'first s':>9}{'error':>11}" * len(compilers))
    for name in dict.fromkeys(name for found in rows.values() for name in found):
        cells = [cell(rows[compiler].get(name)) for compiler in compilers]
        print(f"{name:28}" + "".join(cells), flush=True)


def cell(row: dict[str, Any] | None) -> str:
    if row is None or "problem" in row:
        return f"{(row or {}).get('problem', '-')[:42]:>44}"
    return f"{row['eager']:12.1f}{row['time']:12.1f}{row['first']:9.2f}{row['error']:11.1e}"


if __name__ == "__main__":
    main(sys.argv[1:])
