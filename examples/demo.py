"""`make demo`: compile every example to TTIR, run it, and compare the result with NumPy.

There is no machine code yet: the evaluator executes the optimised TTIR op by op on real arrays.
"""

import copy
import importlib
import sys
import time
from typing import Any

import numpy as np

from examples.case import Case

EXAMPLES = ("add", "softmax", "matmul", "attention", "layernorm", "dropout", "grouped_gemm", "sort")


def all_cases() -> list[Case]:
    """The cases of every example file."""
    return [case for name in EXAMPLES for case in importlib.import_module(f"examples.{name}").CASES]


def run_case(case: Case, module: Any, seed: int = 0) -> float:
    """Evaluate a compiled module on drawn inputs; the largest difference from NumPy."""
    from tilework.evaluator import evaluate

    arrays = case.arguments(np.random.default_rng(seed))
    expected = case.expected(copy.deepcopy(arrays))
    names = [name for name in case.kernel.arg_names if name in case.signature]
    evaluate(module, case.kernel.__name__, [arrays[name] for name in names], case.grid, memory=case.memory(arrays))
    worst = 0.0
    for name, wanted in expected.items():
        pairs = zip(arrays[name], wanted, strict=True) if isinstance(wanted, list) else [(arrays[name], wanted)]
        for got, want in pairs:
            worst = max(worst, float(np.max(np.abs(got.astype("f8") - want.astype("f8")))))
    return worst


def compile_case(case: Case, capability: int = 90) -> tuple[Any, int, float]:
    """The optimised module of a case, its number of ops before the passes, and the seconds it took."""
    from tilework.backends.base import GPUTarget, find_backend
    from tilework.compiler import ASTSource, frontend_options

    target = GPUTarget("cuda", capability, 32)
    start = time.perf_counter()
    module = ASTSource(case.kernel, case.types, case.constexprs, case.attrs).module(frontend_options(target, {}))
    ops = sum(1 for _ in module.walk())
    module = find_backend(target).stages({})["ttir"](module)
    return module, ops, time.perf_counter() - start


def main() -> int:
    compile_case(all_cases()[0])  # the first compile loads xDSL; the table shows what comes after
    print(f"{'kernel':24}{'compile':>10}{'ops':>7}{'TTIR ops':>10}{'max error':>12}   result")
    failures = 0
    for case in all_cases():
        module, ops, seconds = compile_case(case)
        error = run_case(case, module)
        good = error <= case.atol
        failures += not good
        final = sum(1 for _ in module.walk())
        print(
            f"{case.name:24}{seconds * 1e3:7.1f} ms{ops:7}{final:10}{error:12.1e}"
            f"   {'equal to NumPy' if good else f'WRONG, allowed {case.atol:.0e}'}"
        )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
