"""Generated programs: the kernels that prove the passes, run by the interpreter and by the compiled code."""

from pathlib import Path

import pytest

from tests.fuzz.amount import amount
from tests.fuzz.comparison import arguments, difference, explain, interpreted
from tests.fuzz.kernels import generate_kernel
from tests.fuzz.run import capability, compile_generated
from tilework.oracles.evaluator import evaluate
from tilework.target import Target
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

KERNELS, CHUNK = amount(24), 8


@pytest.mark.parametrize("first", range(0, KERNELS, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_generated_kernels(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        kernel = generate_kernel(seed, capability(seed))
        module = compile_generated(kernel, tmp_path)
        run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse(f"cuda:{capability(seed)}")))))
        compiled, wanted = arguments(kernel, seed), interpreted(kernel, tmp_path)
        evaluate(module, "kernel", list(compiled.values()), kernel.grid)
        for name, dtype in kernel.inputs.items():
            problem = difference(compiled[name], wanted[name], dtype)
            assert problem is None, explain(kernel, f"{name}: {problem}")
