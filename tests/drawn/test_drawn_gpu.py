"""Drawn kernels about descriptors as PTX in the emulator: seeds that have found something."""

from pathlib import Path

import pytest

from tests.drawn.gpu import problem_of


@pytest.mark.parametrize(
    ("seed", "target"), [(7, "cuda:90"), (18, "cuda:90"), (40, "cuda:90"), (53, "cuda:90"), (40, "cuda:80")]
)
def test_descriptors(seed: int, target: str, tmp_path: Path) -> None:
    problem = problem_of(seed, target, tmp_path, about_descriptors=True)
    assert problem is None, f"python -m tests.drawn.gpu --descriptors --target {target} --seed {seed}\n{problem}"
