"""The work of the compiler grows with the length of a kernel, not faster: functions called by each stage are counted,
because times are noisy. `python -m benchmarks.growth` measures seconds."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.growth_kernels import CURVES, Curve, source_of
from tilework.runtime.compile.sources import frontend_options
from tilework.targets.base import GPUTarget, find_backend
from tilework.targets.gpu import codegen
from tilework.targets.llvm import split_functions

LEAST = 32  # parts
BOUND = 1.15
STEP = {"frontend": 320, "ttir": 340, "ttcir": 620}
STAGES = {"cpu": ("ttir", "ttcir", "llir"), "cuda:90": ("ttir", "ttgir", "llir")}


def calls(curve: Curve, n: int, target: str, folder: Path) -> Counter[str]:
    """Count the functions that each stage calls for a kernel of `n` parts."""
    device = GPUTarget.parse(target)
    backend = find_backend(device)
    source = source_of(curve, n, folder)
    found: Counter[str] = Counter()
    current = "frontend"

    def count(frame: Any, event: str, argument: Any) -> None:
        if event == "call" or event == "c_call":
            found[current] += 1

    stages = backend.stages(backend.parse_options({}))
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        product = source.module(frontend_options(device, {}))
        for current in STAGES[target]:  # noqa: B007
            product = stages[current](product)
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("target", STAGES)
@pytest.mark.parametrize("name", CURVES)
def test_work_is_linear(target: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second half of a kernel costs at most twice as much as the quarter before it."""
    curve = CURVES[name]
    monkeypatch.setattr(split_functions, "LONGEST", 24)  # all of them are split
    monkeypatch.setattr(split_functions, "PART", 12)
    monkeypatch.setattr(split_functions, "SLACK", 3)
    monkeypatch.setattr(codegen, "LONG", 24)
    calls(curve, LEAST * 4, target, tmp_path)  # loads, and fills caches of constants
    small, middle, large = (calls(curve, LEAST * factor, target, tmp_path) for factor in (1, 2, 4))
    growth = {stage: (large[stage] - middle[stage]) / (2 * (middle[stage] - small[stage])) for stage in large}
    assert all(value < BOUND for value in growth.values()), growth


def test_a_step_is_cheap(tmp_path: Path) -> None:
    """An unrolled step ``x = x * 0.5 + k`` calls at most so many functions on the CPU: 10,000 of them compile in less
    than 8 s."""
    curve = CURVES["static_range"]
    calls(curve, 400, "cpu", tmp_path)  # loads, and fills caches of constants
    small, large = (calls(curve, n, "cpu", tmp_path) for n in (200, 400))
    per_step = {stage: (large[stage] - small[stage]) / 200 for stage in STEP}
    assert all(per_step[stage] <= most for stage, most in STEP.items()), per_step
