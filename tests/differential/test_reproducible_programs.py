"""Whole programs that promise the same bits: the examples, a training loop, and generated kernels (more with
FUZZ_KERNELS=500)."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.case import Case
from examples.demo import all_cases
from tests.differential.everywhere import CHOSEN, SETUPS, bits, everywhere
from tests.differential.training import SHAPES, fresh, train
from tests.fuzz.amount import amount
from tests.fuzz.reproducible import DIFFERENT, outcome_of
from tilework import knobs
from tilework.errors import CompilationError
from tilework.inspect.replay import Launch, run_on

IS_ALL = "REPRODUCIBLE_ALL" in os.environ
CASES = {
    case.name: case for case in all_cases() if not isinstance(case.arguments(np.random.default_rng(0)).get("a"), list)
}
QUICK_CASES = ("softmax",)
GENERATED = amount(3)
FEW = ("interpreter", "cpu, 2 threads", "sm_80, 8 warps")


@pytest.mark.parametrize("name", CASES if IS_ALL else QUICK_CASES)
def test_example(name: str) -> None:
    case: Case = CASES[name]
    args = case.arguments(np.random.default_rng(5))
    try:
        everywhere(case.kernel, args, case.constexprs, case.grid, CHOSEN if IS_ALL else FEW)
    except CompilationError as error:
        assert name == "layernorm_backward" and "reproducible" in str(error), error  # adds floats by atomics


def trained(setup: str, steps: int) -> dict[str, Any]:
    device, options, threads = SETUPS[setup]
    arrays = fresh()
    with knobs.runtime.scope():
        knobs.runtime.num_threads = threads
        train(
            lambda kernel, args: run_on(device, Launch(kernel, tuple(args.values()), (1, 1, 1), options)), steps, arrays
        )
    return arrays


def test_training() -> None:
    """Hundreds of steps on the CPU learn, and a few are the same everywhere."""
    steps = 3 if IS_ALL else 1
    wanted = trained("cpu, 1 thread", steps)
    for setup in CHOSEN if IS_ALL else FEW:
        found = trained(setup, steps)
        assert all((bits(found[name]) == bits(wanted[name])).all() for name in (*SHAPES, "loss")), setup


@pytest.mark.parametrize("first", range(0, GENERATED, 10))
def test_generated_kernels(first: int, tmp_path: Path) -> None:
    for seed in range(first, min(first + 10, GENERATED)):
        found = outcome_of(seed, tmp_path, CHOSEN if IS_ALL else FEW)
        assert found.kind != DIFFERENT, f"python -m tests.fuzz.reproducible --seed {seed}\n{found.why}"
