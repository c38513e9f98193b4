"""Triton of today compiles what we print for the modules of its first versions."""

from functools import cache

import pytest

from tests.ir.old_modules import GROUPED, HOPPER, MATMUL, TRANSPOSED
from tests.triton.peer import Answer, run_triton, triton_python
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module

MODULES = {"matmul": (80, MATMUL), "grouped": (80, GROUPED), "transposed": (80, TRANSPOSED), "hopper": (90, HOPPER)}


@pytest.fixture(autouse=True)
def needs_triton() -> None:
    if triton_python() is None:
        pytest.skip("Triton is not installed here; TRITON_PYTHON may name an interpreter that has it")


@cache
def ask() -> Answer:
    """One run of Triton over all modules; importing it is slow."""
    python = triton_python()
    assert python is not None
    texts = [
        {"key": key, "arch": arch, "stage": "ttgir", "text": print_module(parse_module(text))}
        for key, (arch, text) in MODULES.items()
    ]
    return run_triton(python, {"texts": texts})


@pytest.mark.parametrize("key", MODULES)
def test_triton_compiles_the_translation(key: str) -> None:
    assert key not in ask().refused, ask().refused[key]
