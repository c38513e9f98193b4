"""Elementwise operations in kernels that promise the same bits: of numbers of every kind, in every type, on every
device."""

import os

import pytest

from tests.differential.elementwise_kernels import ROWS, N
from tests.differential.everywhere import CHOSEN, everywhere

QUICK = ("arithmetic bfloat16", "functions float32", "casts float32")
ALL = "REPRODUCIBLE_ALL" in os.environ


@pytest.mark.parametrize("name", ROWS if ALL else QUICK)
def test_the_same_bits(name: str) -> None:
    row = ROWS[name]
    setups = [setup for setup in CHOSEN if not row.needs_fp8 or "sm_80" not in setup]
    everywhere(row.kernel, row.arguments(), {"N": N}, setups=setups)
