"""Generated kernels in generated orders of warming up, launching, failing and leaving, while others are compiled."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tilework
from tests.fuzz.amount import amount
from tests.fuzz.comparison import annotated, arguments
from tests.fuzz.kernels import CPU, generate_kernel
from tests.fuzz.run import load
from tilework import knobs
from tilework.runtime.compile.compiled import CompiledKernel

KERNELS, STEPS = 3, 14


class Left(Exception):
    """Leaves the block."""


def launch(fn: Any, kernel: Any) -> dict[str, Any]:
    values = arguments(kernel, kernel.seed)
    assert type(fn[kernel.grid](**values)) is CompiledKernel
    return {name: values[name] for name in kernel.inputs}


@pytest.mark.parametrize("seed", range(amount(2)))
@pytest.mark.filterwarnings("ignore")
def test_launches_in_any_order(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    kernels = [generate_kernel(1000 * seed + number, CPU) for number in range(KERNELS)]
    with knobs.cache.scope(), knobs.runtime.scope(), warnings.catch_warnings(), ThreadPoolExecutor(2) as pool:
        warnings.simplefilter("ignore")
        knobs.runtime.num_threads = 1  # programs that add to the same address do it in order
        knobs.cache.dir = str(tmp_path / "alone")
        alone = [launch(load(annotated(kernel), tmp_path), kernel) for kernel in kernels]
        knobs.cache.dir = str(tmp_path / "together")
        functions = [load(annotated(kernel), tmp_path) for kernel in kernels]
        for _ in range(3):
            try:
                with tilework.AsyncCompileMode(pool):
                    for _ in range(STEPS // 3):
                        step(random, functions, kernels, alone)
            except Left:
                pass
            unfinished = [made for fn in functions for entry in fn.device_caches.values() for made in entry[0].values()]
            assert all(type(made) is CompiledKernel for made in unfinished)
        for fn, kernel, expected in zip(functions, kernels, alone, strict=True):
            check(launch(fn, kernel), expected, kernel.seed)


def step(random: Random, functions: list[Any], kernels: list[Any], alone: list[dict[str, Any]]) -> None:
    """One generated thing to do with a generated kernel."""
    number, choice = random.randrange(len(kernels)), random.random()
    fn, kernel = functions[number], kernels[number]
    if choice < 0.5:
        made = fn.warmup(**arguments(kernel, kernel.seed), grid=kernel.grid)
        if choice < 0.1:
            made.result() if isinstance(made, tilework.FutureKernel) else None
    elif choice < 0.9:
        check(launch(fn, kernel), alone[number], kernel.seed)
    else:
        raise Left


def check(found: dict[str, Any], expected: dict[str, Any], seed: int) -> None:
    for name, values in expected.items():
        assert np.asarray(found[name]).tobytes() == np.asarray(values).tobytes(), f"seed {seed}: {name}"
