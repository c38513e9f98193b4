"""Triton reads the TTGIR that we print: whole kernels to the cubin, and a module with every op as it is."""

from functools import cache
from pathlib import Path

import pytest

from tests.triton.peer import Answer, run_triton, triton_python
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module

REFERENCE = Path(__file__).parent.parent / "ir" / "reference"
KERNELS = {
    f"{path.parent.name}:{path.stem}": path
    for path in sorted([*REFERENCE.glob("sm_80/*.ttgir"), *REFERENCE.glob("sm_90/*.ttgir")])
}
EVERY_OP = REFERENCE.parent / "ttg_ops.mlir"


@pytest.fixture(autouse=True)
def needs_triton() -> None:
    if triton_python() is None:
        pytest.skip("Triton is not installed here; TRITON_PYTHON may name an interpreter that has it")


@cache
def ask() -> Answer:
    """One run of Triton over all texts; importing it is slow."""
    texts = [
        {"key": key, "arch": int(key[3:5]), "stage": "ttgir", "text": print_module(parse_module(path.read_text()))}
        for key, path in KERNELS.items()
    ]
    every_op = print_module(parse_module(EVERY_OP.read_text()))
    python = triton_python()
    assert python is not None
    return run_triton(python, {"texts": texts, "modules": [{"key": "every_op", "stage": "ttgir", "text": every_op}]})


@pytest.mark.parametrize("key", KERNELS)
def test_triton_compiles_our_ttgir(key: str) -> None:
    assert key not in ask().refused, ask().refused[key]


def test_triton_prints_every_op_as_we_do() -> None:
    assert "every_op" not in ask().refused, ask().refused["every_op"]
    theirs = ask().printed["every_op"].strip()
    ours = print_module(parse_module(theirs)).strip()
    assert ours == theirs
    assert parse_module(theirs).is_structurally_equivalent(parse_module(EVERY_OP.read_text()))
