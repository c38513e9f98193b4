"""The examples, interpreted: the same kernels and inputs as `make demo`, against NumPy."""

import copy
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from examples.case import Case
from examples.demo import all_cases
from tilework.language.function import JITFunction
from tilework.oracles.interpreter import InterpretedFunction, register_memory

CASES = all_cases()


def launch_argument(code: str, value: Any) -> Any:
    """A descriptor of the examples, (array, shape, strides), as the launch interface takes it."""
    if not code.startswith("tensordesc"):
        return value
    base, shape, strides = value
    block = [int(size) for size in re.findall(r"\d+", code[code.index("[") :])]
    return SimpleNamespace(base=base, shape=shape, strides=strides, block_shape=block, padding="zero")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_example(case: Case) -> None:
    arrays = case.arguments(np.random.default_rng(0))
    expected = case.expected(copy.deepcopy(arrays))
    args = {name: launch_argument(code, arrays[name]) for name, code in case.signature.items()}
    further = [register_memory(array) for array in case.memory(arrays)]
    kernel = case.kernel
    assert isinstance(kernel, JITFunction)
    InterpretedFunction(kernel.fn)[case.grid](**args, **case.constexprs)
    for name, wanted in expected.items():
        pairs = zip(arrays[name], wanted, strict=True) if isinstance(wanted, list) else [(arrays[name], wanted)]
        for got, want in pairs:
            np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=1e-5, atol=case.atol)
    del further
