"""Generated kernels as machine code, against the interpreter; `python -m tests.fuzz.cpu` runs more of them."""

from pathlib import Path

import pytest

from tests.fuzz.amount import amount
from tests.fuzz.comparison import explain
from tests.fuzz.cpu import compare, kind
from tests.fuzz.kernels import CPU, generate_kernel

KERNELS, CHUNK = amount(12), 4


@pytest.mark.parametrize("first", range(0, KERNELS, CHUNK))
@pytest.mark.filterwarnings("ignore")
def test_machine_code_agrees_with_the_interpreter(first: int, tmp_path: Path) -> None:
    for seed in range(first, first + CHUNK):
        kernel = generate_kernel(seed, CPU, odd=seed % 4 == 1)
        try:
            problem = compare(kernel, tmp_path)
        except Exception as error:
            raise AssertionError(explain(kernel, repr(error))) from error
        assert problem is None, explain(kernel, problem)


@pytest.mark.parametrize(("seed", "about"), [(3, "about_loops"), (71, "about_hashes"), (5, "about_strides")])
@pytest.mark.filterwarnings("ignore")
def test_generated_loops_and_hashes(seed: int, about: str, tmp_path: Path) -> None:
    kernel = generate_kernel(seed, CPU, **{about: True})
    problem = compare(kernel, tmp_path)
    assert problem is None, explain(kernel, problem)


def test_failures_of_one_kind_are_counted_together() -> None:
    assert kind("out_f: index 3: 1.5, interpreter 2.0") == kind("out_f: index 14: -0.25, interpreter nan")
