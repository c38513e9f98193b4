"""LLVM accepts what is written for every kind of CPU: some of `cpu_code_cases.py`, in processes that an abort of LLVM
ends."""

from pathlib import Path

import pytest

from tests.python_programs import run_python
from tests.targets.other_cpus import CPUS

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("arch", sorted({cpu.facts.arch for cpu in CPUS.values()}))
def test_all_casts_and_kernels_of_odd_tiles_compile(arch: str) -> None:
    named = [word for name, cpu in CPUS.items() if cpu.facts.arch == arch for word in ("--cpu", name)]
    done = run_python("-m", "tests.targets.cpu_code_cases", "--few", *named, cwd=ROOT, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
