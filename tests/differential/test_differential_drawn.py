"""Drawn programs: the kernels that prove the passes, run by the interpreter and by the compiled code."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzz.amount import amount
from tests.fuzz.kernels import Kernel, draw_kernel
from tests.fuzz.run import capability, compile_drawn, load
from tests.fuzz.test_passes import SCALARS, difference, draw_array, explain
from tilework.oracles.evaluator import evaluate
from tilework.oracles.interpreter import InterpretedFunction
from tilework.target import Target
from tilework.transforms.pipelines import ttir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline

KERNELS, CHUNK = amount(24), 8
GRID = (2,)


def annotated(kernel: Kernel) -> Kernel:
    """Parameters with the types of the signature, which an interpreted launch would take from the arguments."""

    def annotate(match: re.Match[str]) -> str:
        parameters = ", ".join(f'{name}: "{kernel.signature[name]}"' for name in match.group(1).split(", "))
        return f"def kernel({parameters}):"

    return replace(kernel, source=re.sub(r"def kernel\((.*)\):", annotate, kernel.source))


def arguments(kernel: Kernel, seed: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    arrays = {name: draw_array(dtype, random) for name, dtype in kernel.inputs.items()}
    numbers = SCALARS | kernel.numbers
    return {name: arrays.get(name, numbers.get(name)) for name in kernel.signature}


@pytest.mark.parametrize("first", range(0, KERNELS, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_drawn_kernels(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        kernel = draw_kernel(seed, capability(seed))
        module = compile_drawn(kernel, tmp_path)
        run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse(f"cuda:{capability(seed)}")))))
        compiled, interpreted = arguments(kernel, seed), arguments(kernel, seed)
        evaluate(module, "kernel", list(compiled.values()), GRID)
        InterpretedFunction(load(annotated(kernel), tmp_path).fn)[GRID](**interpreted)
        for name, dtype in kernel.inputs.items():
            problem = difference(compiled[name], interpreted[name], dtype)
            assert problem is None, explain(kernel, f"{name}: {problem}")
