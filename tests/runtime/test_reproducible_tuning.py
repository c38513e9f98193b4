"""Tuning a reproducible kernel cannot change its bits."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.runtime.tuning.config import FixedByFirst

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def total(x: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    sums = 0.0
    for start in range(0, n, BLOCK):
        sums += tl.sum(tl.load(x + start + tl.arange(0, BLOCK)))
    tl.store(out, sums)


CONFIGS = [
    tilework.Config({"BLOCK": 32}, num_warps=1),
    tilework.Config({"BLOCK": 256}, num_warps=4),
    tilework.Config({"BLOCK": 32}, num_warps=4, num_stages=2),
]


def tuned(kernel: Any) -> Any:
    return tilework.autotune(CONFIGS, key=["n"], do_bench=lambda call, quantiles: [float(call() is None)] * 3)(kernel)


def test_the_first_configuration_decides_what_is_computed() -> None:
    x, out = np.linspace(0, 1, 512, dtype=np.float32), np.zeros(1, np.float32)
    free, fixed = tuned(total), tuned(tilework.jit(reproducible=True)(total))
    with pytest.warns(FixedByFirst, match="BLOCK is 256 and 32 in the first configuration"):
        fixed[(1,)](x, out, 512)
    assert set(fixed.configs_timings) == {CONFIGS[0], CONFIGS[2]} and fixed.best_config.kwargs["BLOCK"] == 32
    assert "may change the bits" in fixed.pruned[CONFIGS[1]]
    free[(1,)](x, out, 512)
    assert set(free.configs_timings) == set(CONFIGS)
    with pytest.warns(FixedByFirst):
        free[(1,)](x, out, 512, reproducible=True)  # what was found for other launches is not for this one
    assert free.best_config.kwargs["BLOCK"] == 32
