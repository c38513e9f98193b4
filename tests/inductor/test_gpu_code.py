"""Inductor's code for NVIDIA GPUs, compiled for a Hopper and run in the emulator, beside eager torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
ROOT = Path(__file__).parent.parent.parent


def test_programs_for_gpus_in_the_emulator(tmp_path: Path) -> None:
    """Pointwise, reductions, scans, scatters, and the templates for matrix products, convolutions and attention."""
    names = ("pointwise", "softmax", "long_reduction", "gathers", "matmul", "convolution", "flex_attention")
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    command = [sys.executable, "-m", "tilework.as_triton", "-m", "tests.inductor.emulated", *names]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stdout.count("  same") == len(names), done.stdout + done.stderr[-3000:]
