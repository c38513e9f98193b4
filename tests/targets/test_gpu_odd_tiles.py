"""Tiles of odd sizes on emulated GPUs: see `gpu_odd_tiles.py`, which runs all of them."""

import os
import random

import numpy as np
import pytest

from tests.targets.gpu_odd_tiles import Case, all_cases, run_case
from tilework.ir import tt
from tilework.oracles.emulator.findings import CheckFailed
from tilework.transforms.tt import pad_tiles

ALL = os.environ.get("TILEWORK_ALL_TILE_SIZES") == "1"
SMALL = [case for case in all_cases() if np.prod(case[2]) <= 150]
GENERATED = random.Random(17).sample(SMALL, 12)


@pytest.mark.parametrize("case", all_cases() if ALL else GENERATED, ids=str)
def test_odd_tiles_give_what_numpy_gives(case: Case) -> None:
    run_case(*case)


@pytest.mark.parametrize("gpu", ["cuda:90", "hip:gfx942"])
def test_a_store_without_its_mask_is_found(gpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(pad_tiles.RULES, tt.StoreOp, lambda padding, op: None)
    with pytest.raises((AssertionError, CheckFailed)):
        run_case("unmasked", gpu, (3, 5))
