"""Triton's own IR before and behind each of its passes, executed: all of it computes the same, so the evaluator is
right about every op that appears, and about when copies, products and barriers are done.

`reference_passes.tar.xz` holds the dumps, described in the shared reference;
`python -m tests.pipeline.test_reference_passes` runs all of them.
"""

import sys
import tarfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from tests.pipeline.gpu_inputs import inputs
from tests.transforms.ttg.reference import steps
from tilework.inspect.check_each import PROMISES, Inputs, difference, generate_inputs, public_functions
from tilework.inspect.check_each import run as run_once
from tilework.ir.functions import symbol_of
from tilework.ir.parser import parse_module

ARCHIVE = Path(__file__).with_name("reference_passes.tar.xz")
MAX_STEPS = 1_000_000
QUICK = ("sm_80/matmul_f16_small", "sm_90/matmul_f16", "sm_90/matmul_descriptor", "sm_90/attention", "sm_80/transpose")


@cache
def folder() -> TemporaryDirectory[str]:
    """The dumps, unpacked; removed when the process ends."""
    unpacked = TemporaryDirectory()
    with tarfile.open(ARCHIVE) as archive:
        options: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
        archive.extractall(unpacked.name, **options)
    return unpacked


def kernels() -> list[str]:
    with tarfile.open(ARCHIVE) as archive:
        return [name.removesuffix(".passes") for name in archive.getnames()]


def problems(kernel: str) -> list[str]:
    """Describe the failures of each module of a dump, compared with the first one; each text once."""
    found: list[str] = []
    seen: set[str] = set()
    has: set[str] = set()
    first = None
    for step in steps(Path(folder().name) / f"{kernel}.passes"):
        for when, text in (("before", step.before), ("after", step.after)):
            has |= PROMISES.get(step.name, set()) if when == "after" else set()
            if not text.strip() or text in seen:
                continue
            seen.add(text)
            module = parse_module(text)
            (function,) = public_functions(module)
            if first is None:
                given, grid = inputs(Path(kernel).name, module)
                arguments = generate_inputs(function, np.random.default_rng(0), 0, given)
                assert isinstance(arguments, Inputs)
                start = arguments.arena.copy()
                first = run_once(module, symbol_of(function), arguments, grid, MAX_STEPS)
                continue
            arguments.arena[:] = start
            outcome = run_once(module, symbol_of(function), arguments, grid, MAX_STEPS, has)
            if (what := difference(first, outcome)) is not None:
                found.append(f"{kernel}, {when} {step.name}: {what}")
    assert first is not None and len(seen) > 5, "a dump has modules"
    return found


@pytest.mark.parametrize("kernel", QUICK)
def test_tritons_passes_keep_what_a_kernel_computes(kernel: str) -> None:
    assert problems(kernel) == []


if __name__ == "__main__":
    total = {kernel: problems(kernel) for kernel in kernels()}
    for kernel, found in total.items():
        print(kernel, found or "ok")
    sys.exit(any(total.values()))
