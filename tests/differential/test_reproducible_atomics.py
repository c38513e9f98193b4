"""The results of ordered atomics have the same bits everywhere, NaNs too: processors make them with signs and payloads
of their own."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.differential.everywhere import everywhere

SETUPS = ("interpreter", "evaluator", "cpu, 2 threads", "sm_80, 1 warp", "gfx942, 4 warps")


@tilework.jit
def added(x: Any, out: Any, old: Any, N: tl.constexpr) -> None:
    offsets = tl.arange(0, N)
    tl.store(old + offsets, tl.atomic_add(out + offsets // 2, tl.load(x + offsets), ordered=True))


@pytest.mark.parametrize(("bits", "sign", "nan"), [(16, 0x8000, 0x7E00), (32, 1 << 31, 0x7FC00000)])
def test_a_sum_that_is_no_number_is_one_pattern(bits: int, sign: int, nan: int) -> None:
    """Of infinities, of a negative one, of one with a payload, and of one that is added."""
    patterns, kind = f"u{bits // 8}", f"f{bits // 8}"
    infinity = np.array(np.inf, kind).view(patterns).item()
    out = np.array([infinity, nan | sign, nan + 1, 0], patterns).view(kind)
    x = np.array([sign | infinity, 0, 0, 0, 0, 0, nan + 5, 0], patterns).view(kind)
    arguments = {"x": x, "out": out, "old": np.zeros(8, kind)}
    found = everywhere(added, arguments, {"N": 8}, (1,), SETUPS)
    assert found["out"].view(patterns).tolist() == [nan] * 4
