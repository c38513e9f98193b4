"""`make bench-compile`: AST to optimised TTIR, warm, beside Triton's own time for the same kernels when it is
installed.

Triton is looked for in this interpreter, or in the one named by TRITON_PYTHON (a virtual environment that has it). Both
compilers are measured in this run, alternating, and the median is shown. The budgets are those of the design. The
second table goes on from there to TTGIR, the third has the stages of the CPU backend.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import cpu_compile, gpu_compile
from examples.case import Case
from examples.demo import all_cases

ROUNDS = 15
BUDGET_MS = {"add": 15.0, "matmul": 40.0, "attention": 60.0}
SIZES = {
    "add": {"BLOCK": 1024},
    "softmax": {"BLOCK": 4096},
    "matmul": {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8},
    "matmul_block_pointers": {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8},
    "matmul_descriptors": {"BM": 128, "BN": 256, "BK": 64, "GROUP": 8},
    "attention": {"BM": 128, "BN": 64, "D": 64, "CAUSAL": False},
    "attention_causal": {"BM": 128, "BN": 64, "D": 64, "CAUSAL": True},
}


def ours(case: Case, rounds: int = ROUNDS) -> tuple[float, float, dict[str, float]]:
    """Median milliseconds in the frontend, in the passes, and in each pass."""
    from tilework.compiler import ASTSource
    from tilework.runtime.compile.sources import frontend_options
    from tilework.target import Target
    from tilework.targets.base import GPUTarget
    from tilework.transforms.registry import get_pass, ttir_pipeline

    options = frontend_options(GPUTarget("cuda", 90, 32), {})
    source = ASTSource(case.kernel, case.types, {**case.constexprs, **SIZES.get(case.name, {})}, case.attrs)
    front: list[float] = []
    passes: dict[str, list[float]] = {}
    for round in range(rounds + 2):
        gc.collect()
        start = time.perf_counter()
        module = source.module(options)
        if round >= 2:
            front.append(time.perf_counter() - start)
        for name in ttir_pipeline(Target.parse("cuda:90")):
            start = time.perf_counter()
            get_pass(name)().apply(None, module)  # pyright: ignore[reportArgumentType]
            if round >= 2:
                passes.setdefault(name, []).append(time.perf_counter() - start)
    each = {name: statistics.median(times) * 1e3 for name, times in passes.items()}
    return statistics.median(front) * 1e3, sum(each.values()), each


def triton_python() -> str | None:
    """An interpreter that has Triton, or None."""
    candidate = os.environ.get("TRITON_PYTHON", sys.executable)
    found = subprocess.run([candidate, "-c", "import triton"], capture_output=True, check=False)
    return candidate if found.returncode == 0 else None


def triton_times(python: str) -> dict[str, float]:
    """Triton's median milliseconds for the same work: its AST walk and its TTIR passes."""
    script = Path(__file__).with_name("triton_compile_time.py")
    request = [
        {
            "name": case.name,
            "kernel": case.kernel.__name__,
            "file": case.kernel.where.file,
            "signature": case.types,
            "constexprs": {**case.constexprs, **SIZES.get(case.name, {})},
            "attrs": [[list(path), facts] for path, facts in case.attrs.items()],
        }
        for case in all_cases()
    ]
    done = subprocess.run([python, str(script)], input=json.dumps(request), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    python = triton_python()
    theirs = triton_times(python) if python else {}
    print(f"{'kernel':24}{'frontend':>10}{'passes':>10}{'total':>10}{'budget':>10}{'Triton':>10}   slowest pass")
    for case in all_cases():
        front, rest, each = ours(case)
        slowest = max(each, key=lambda name: each[name])
        budget = f"{BUDGET_MS[case.name]:7.0f} ms" if case.name in BUDGET_MS else ""
        other = f"{theirs[case.name]:7.1f} ms" if case.name in theirs else "-"
        print(
            f"{case.name:24}{front:7.1f} ms{rest:7.1f} ms{front + rest:7.1f} ms{budget:>10}{other:>10}"
            f"   {slowest} {each[slowest]:.1f} ms"
        )
    print()
    gpu_compile.main(python)
    print()
    cpu_compile.main()
    if not theirs:
        print("Triton was not found: pip install triton, or set TRITON_PYTHON to an interpreter that has it")


if __name__ == "__main__":
    main()
