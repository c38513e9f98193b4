"""Drawn kernels about descriptors as PTX in the emulator: seeds that have found something."""

from pathlib import Path

import pytest

from tests.drawn.gpu import problem_of


@pytest.mark.parametrize(("seed", "arch"), [(7, 90), (18, 90), (40, 90), (53, 90), (40, 80)])
def test_descriptors(seed: int, arch: int, tmp_path: Path) -> None:
    problem = problem_of(seed, arch, tmp_path, about_descriptors=True)
    assert problem is None, f"python -m tests.drawn.gpu --descriptors --arch {arch} --seed {seed}\n{problem}"
