"""Generated kernels: every pass keeps what they compute; the elementwise ones agree with NumPy."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.amount import amount
from tests.fuzz.comparison import SCALARS, difference, explain, random_array
from tests.fuzz.kernels import generate_elementwise, generate_kernel
from tests.fuzz.rounding import RoundingError
from tests.fuzz.run import capability, compile_generated, pipelines, prove
from tests.pipeline.compiled import first_difference, location_difference
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.oracles.evaluator import evaluate
from tilework.transforms.registry import run_pipeline

KERNELS, ELEMENTWISE, READ_BACK, CHUNK = amount(12), amount(20), amount(8), 4


@pytest.mark.parametrize("first", range(0, KERNELS, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_passes_keep_results(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        kernel = generate_kernel(seed, capability(seed), odd=seed % 4 == 1)
        try:
            reports = prove(kernel, tmp_path)
        except Exception as error:
            raise AssertionError(explain(kernel, repr(error))) from error
        for report in reports:
            assert report.ok and not report.unchecked, explain(kernel, report)


@pytest.mark.parametrize("first", range(0, READ_BACK, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_the_text_of_generated_kernels_is_read_as_the_same_module(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        kernel = generate_kernel(seed, capability(seed))
        module = compile_generated(kernel, tmp_path)
        located = parse_module(print_module(module, debuginfo=True))
        problem = first_difference(module, located) or location_difference(module, located)
        assert problem is None, explain(kernel, problem)
        run_pipeline(module, pipelines(seed)[0])
        problem = first_difference(module, parse_module(print_module(module)))
        assert problem is None, explain(kernel, problem)


@pytest.mark.parametrize("first", range(0, ELEMENTWISE, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_elementwise_kernels_agree_with_numpy(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        kernel = generate_elementwise(seed, odd=seed % 4 == 1)
        module = compile_generated(kernel, tmp_path)
        random = np.random.default_rng(seed)
        arrays = {name: random_array(dtype, random) for name, dtype in kernel.inputs.items()}
        inputs = {name: array.copy() for name, array in arrays.items()}
        arguments = [arrays.get(name, SCALARS.get(name)) for name in kernel.signature]
        evaluate(module, "kernel", arguments, (2,))
        names = list(kernel.signature)
        fresh = lambda names=names, inputs=inputs: dict(
            zip(names, [inputs[n].copy() if n in inputs else SCALARS.get(n) for n in names], strict=True)
        )
        rounding = RoundingError(kernel, tmp_path, fresh, (2,))
        for pid in range(2):
            environment = {**SCALARS, **inputs, "pid": pid}
            for index, value in kernel.stores:
                pointer, base = index.split(":")
                with np.errstate(all="ignore"):
                    wanted = np.broadcast_to(value.compute(environment), value.shape).ravel()
                start = int(base) + pid * wanted.size
                whole = arrays[pointer].copy()
                got = whole[start : start + wanted.size]
                if difference(got, wanted, value.dtype):  # libm differs between machines, and % makes much of it
                    got[:] = wanted
                    explained = rounding.explains(pointer, arrays[pointer], whole)
                    got[:] = np.where(
                        explained[start : start + wanted.size], got, arrays[pointer][start : start + wanted.size]
                    )
                problem = difference(got, wanted, value.dtype)
                assert problem is None, explain(kernel, f"{value.text}: {problem}")


def test_the_same_seed_gives_the_same_kernel() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert generate_kernel(5).source == generate_kernel(5).source
