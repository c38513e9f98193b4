"""`make demo`: compile every example for this machine's CPU, run it, and compare result and speed with NumPy."""

import copy
import importlib
import importlib.util
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from examples.case import Case

EXAMPLES = ("add", "softmax", "matmul", "attention", "layernorm", "dropout", "grouped_gemm", "sort")


def all_cases() -> list[Case]:
    """The cases of every example file."""
    return [case for name in EXAMPLES for case in importlib.import_module(f"examples.{name}").CASES]


def run_case(case: Case, module: Any, seed: int = 0) -> float:
    """Evaluate a compiled module on generated inputs; the largest difference from NumPy."""
    from tilework.oracles.evaluator import evaluate

    arrays = case.arguments(np.random.default_rng(seed))
    expected = case.expected(copy.deepcopy(arrays))
    names = [name for name in case.kernel.arg_names if name in case.signature]
    evaluate(module, case.kernel.__name__, [arrays[name] for name in names], case.grid, memory=case.memory(arrays))
    return largest_error(arrays, expected)


def largest_error(arrays: dict[str, Any], expected: dict[str, Any]) -> float:
    """The largest difference between what is and what should be."""
    worst = 0.0
    for name, wanted in expected.items():
        pairs = zip(arrays[name], wanted, strict=True) if isinstance(wanted, list) else [(arrays[name], wanted)]
        for got, want in pairs:
            worst = max(worst, float(np.max(np.abs(got.astype("f8") - want.astype("f8")))))
    return worst


def compile_case(case: Case, capability: int = 90) -> tuple[Any, int, float]:
    """The optimised module of a case, its number of ops before the passes, and the seconds it took."""
    from tilework.compiler import ASTSource
    from tilework.runtime.compile.sources import frontend_options
    from tilework.targets.base import GPUTarget, find_backend

    target = GPUTarget("cuda", capability, 32)
    start = time.perf_counter()
    module = ASTSource(case.kernel, case.types, case.constexprs, case.attrs).module(frontend_options(target, {}))
    ops = sum(1 for _ in module.walk())
    backend = find_backend(target)
    module = backend.stages(backend.parse_options({}))["ttir"](module)
    return module, ops, time.perf_counter() - start


def time_of(call: Callable[[], Any], seconds: float = 0.03) -> float:
    """Median milliseconds of one call."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or (len(times) < 3 and sum(times) < seconds) or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


# the same work in torch, where it has a function for it; `t` is torch and `a` the arguments as tensors
TORCH: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "add": lambda t, a: t.add(a["x_ptr"], a["y_ptr"]),
    "softmax": lambda t, a: t.softmax(a["in_ptr"], 1),
    **dict.fromkeys(
        ("matmul", "matmul_block_pointers", "matmul_descriptors"), lambda t, a: t.matmul(a["a_ptr"], a["b_ptr"])
    ),
    "attention": lambda t, a: t.nn.functional.scaled_dot_product_attention(a["q_ptr"], a["k_ptr"], a["v_ptr"]),
    "attention_causal": lambda t, a: t.nn.functional.scaled_dot_product_attention(
        a["q_ptr"], a["k_ptr"], a["v_ptr"], is_causal=True
    ),
    "layernorm_forward": lambda t, a: t.layer_norm(a["x_ptr"], a["w_ptr"].shape, a["w_ptr"], a["b_ptr"]),
    "dropout": lambda t, a: t.dropout(a["x_ptr"], 0.3, True),
    "sort": lambda t, a: t.sort(a["x_ptr"], 1),
}


def time_of_torch(case: Case, inputs: dict[str, Any]) -> float | None:
    """Milliseconds of the same work in torch; None where torch is not installed or has no function for it."""
    work = TORCH.get(case.name)
    if work is None or importlib.util.find_spec("torch") is None:
        return None
    torch = importlib.import_module("torch")
    tensors = {
        name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in inputs.items()
    }
    return time_of(lambda: work(torch, tensors))


def launch_case(case: Case, seed: int = 0) -> tuple[float, float, float, float | None, float]:
    """Compile and launch a case on the CPU: milliseconds of the first call, of a call, of NumPy, of torch, and the
    error."""
    arrays = case.arguments(np.random.default_rng(seed))
    inputs = copy.deepcopy(arrays)
    expected = case.expected(inputs)
    arguments = {name: arrays[name] for name in case.signature}
    launch = lambda: case.kernel[case.grid](**arguments, **case.constexprs)
    start = time.perf_counter()
    launch()
    first = (time.perf_counter() - start) * 1e3
    error = largest_error(arrays, expected)
    return first, time_of(launch), time_of(lambda: case.expected(inputs)), time_of_torch(case, inputs), error


def main() -> int:
    import tempfile

    from tilework import knobs

    failures = 0
    warnings.filterwarnings("ignore", "tl.make_block_ptr is deprecated")  # one example is about it
    with knobs.cache.scope(), knobs.runtime.scope(), tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        launch_case(all_cases()[0])  # the first compile loads xDSL and LLVM; the table shows what comes after
        knobs.compilation.always_compile = True
        print(f"{'kernel':24}{'compile':>11}{'run':>11}{'NumPy':>11}{'torch':>11}{'max error':>12}   result")
        for case in all_cases():
            case.kernel.device_caches.clear()
            first, own, numpy, torch, error = launch_case(case)
            good = error <= case.atol
            failures += not good
            print(
                f"{case.name:24}{first:8.1f} ms{own:8.3f} ms{numpy:8.3f} ms"
                f"{'-' if torch is None else f'{torch:.3f} ms':>11}{error:12.1e}"
                f"   {'equal to NumPy' if good else f'WRONG, allowed {case.atol:.0e}'}"
            )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
