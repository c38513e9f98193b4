"""Every example runs clean under the sanitizer, with the same result but for products and sums that are fused or not.

Clean means without warnings too, and without races between programs.
"""

import copy
import warnings
from typing import Any

import numpy as np
import pytest

from examples.case import Case
from examples.demo import all_cases
from tilework import knobs
from tilework.errors import SanitizerWarning
from tilework.oracles.interpreter import register_memory


def run(case: Case, sanitize: bool | str) -> dict[str, Any]:
    """The arrays of an example after a launch."""
    arrays = case.arguments(np.random.default_rng(3))
    for array in case.memory(arrays):
        register_memory(array)
    with knobs.runtime.scope(), warnings.catch_warnings():
        warnings.simplefilter("error", SanitizerWarning)
        knobs.runtime.sanitize = sanitize
        arguments = {name: arrays[name] for name in case.signature}
        kernel = case.kernel[case.grid](**arguments, **case.constexprs)
    if sanitize != "race":
        assert ("ttc.check" in kernel.asm["ttcir"]) == sanitize
    return arrays


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_an_example_runs_clean(case: Case) -> None:
    plain = run(case, False)
    for mode, tolerance in ((True, 1e-5), ("race", 2e-3)):
        checked = run(case, mode)
        for name in case.expected(copy.deepcopy(plain)):
            both = [plain[name], checked[name]]
            pairs = zip(*both, strict=True) if isinstance(plain[name], list) else [both]
            for one, other in pairs:
                np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance / 10)
