"""The examples launched as a user launches them: `kernel[grid](...)` on NumPy arrays and on torch tensors."""

import copy
from typing import Any

import numpy as np
import pytest

from examples.case import Case
from examples.demo import all_cases

CASES = all_cases()


def launch(case: Case, arrays: dict[str, Any], wrap: Any = lambda array: array) -> dict[str, Any]:
    """Run a case; the arguments as they were passed."""
    passed = {name: wrap(arrays[name]) for name in case.signature}
    case.kernel[case.grid](**passed, **case.constexprs)
    return passed


def compare(case: Case, got: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, wanted in expected.items():
        pairs = zip(got[name], wanted, strict=True) if isinstance(wanted, list) else [(got[name], wanted)]
        for actual, want in pairs:
            np.testing.assert_allclose(np.asarray(actual).astype("f8"), want.astype("f8"), atol=case.atol, rtol=1e-5)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_numpy_arrays(case: Case) -> None:
    arrays = case.arguments(np.random.default_rng(1))
    expected = case.expected(copy.deepcopy(arrays))
    compare(case, {**arrays, **launch(case, arrays)}, expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_torch_tensors(case: Case) -> None:
    torch = pytest.importorskip("torch")
    arrays = case.arguments(np.random.default_rng(2))
    expected = case.expected(copy.deepcopy(arrays))
    wrap = lambda value: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
    compare(case, {**arrays, **launch(case, arrays, wrap)}, expected)
