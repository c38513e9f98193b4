"""Generated kernels of Python that Triton does not have: all devices agree. ``DIFFERENTIAL_EXAMPLES=40`` draws more;
the GPU's are in `tests/device/check_generated.py`."""

import os
from pathlib import Path

import pytest

from tests.fuzz import cpu
from tests.fuzz.comparison import explain
from tests.fuzz.gpu import problem_of
from tests.fuzz.kernels import CPU, generate_kernel
from tests.fuzz.run import prove

SEEDS = range(int(os.environ.get("DIFFERENTIAL_EXAMPLES", "1")))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore")
def test_machine_code_agrees_with_the_interpreter(seed: int, tmp_path: Path) -> None:
    kernel = generate_kernel(seed, CPU, about_python=True)
    problem = cpu.compare(kernel, tmp_path)
    assert problem is None, explain(kernel, problem)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore")
def test_passes_keep_results(seed: int, tmp_path: Path) -> None:
    kernel = generate_kernel(seed, about_python=True)
    for report in prove(kernel, tmp_path):
        assert report.ok and not report.unchecked, explain(kernel, report)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "hip:gfx942"])
@pytest.mark.parametrize("seed", SEEDS)
def test_emulated_gpus_agree_with_the_interpreter(seed: int, target: str, tmp_path: Path) -> None:
    problem = problem_of(seed, target, tmp_path, about_python=True)
    assert problem is None, f"python -m tests.fuzz.gpu --python --target {target} --seed {seed}\n{problem}"
