"""Loops with `break` and `continue` are pipelined on GPUs, and read nothing that the program does not read."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.exit_kernels import BLOCK_K, EXITS, SIZE, Exit, matmul
from tests.runtime.emulator_fixture import emulator

DEVICES = ("sm_80", "sm_90", "gfx942")
ALL = [(case, device) for case in EXITS for device in DEVICES]
FEW = [(case, device) for case, device in ALL if f"{case}-{device}" in ("matmul-both-sm_90", "matmul-pointers-gfx942")]
CHOSEN = ALL if int(os.environ.get("DIFFERENTIAL_EXAMPLES", "0")) >= len(ALL) else FEW


def launched(case: Exit, device: str, cache: Path):
    """Run a case; its compiled kernel."""
    case.kernel.device_caches.clear()
    arguments = case.arguments()
    with emulator(device, str(cache)):
        kernel = case.kernel[(1,)](*arguments, HOW=case.how, SIZE=SIZE, BLOCK=BLOCK_K, num_warps=4, num_stages=3)
    case.kernel.device_caches.clear()
    expected = case.expected(case.how, *arguments)
    np.testing.assert_allclose(arguments[case.out], expected, rtol=2e-3, atol=2e-3)
    return kernel


def compiled_without_exits(case: Exit, device: str) -> str:
    with emulator(device):
        kernel = case.kernel.warmup(
            *case.arguments(), HOW="none", SIZE=SIZE, BLOCK=BLOCK_K, num_warps=4, num_stages=3, grid=(1,)
        )
    case.kernel.device_caches.clear()
    return kernel.asm["ttgir"]


def main_loop(ttgir: str) -> list[str]:
    """The ops of the loop with products."""
    loops = [part.split("\n    }")[0] for part in ttgir.split("scf.for")[1:]]
    (found,) = [loop for loop in loops if "tt.dot " in loop or "warp_group_dot " in loop]
    return re.findall(r"\b(?:tt|ttg|ttng|amdg|scf)\.[a-z_]+(?= )", found)


@pytest.mark.parametrize(("case", "device"), CHOSEN, ids=str)
def test_a_loop_that_is_left_or_skips_is_pipelined(case: Exit, device: str, tmp_path: Path) -> None:
    ttgir = launched(case, device, tmp_path).asm["ttgir"]
    loop = main_loop(ttgir)
    if case.how in ("break", "end", "table"):
        assert loop == main_loop(compiled_without_exits(case, device)), "the loop is what it is without exits"
    if device.startswith("gfx"):
        before = ttgir.split("scf.for")[0]
        assert before.count("amdg.buffer_load") >= (2 if case.kernel is matmul else 3), "the first blocks, and queries"
    else:
        assert loop.count("ttg.async_copy_global_to_local") >= 2 and "ttg.async_wait" in loop
        assert "tt.load" not in loop
    assert ("scf.if" in loop) == (case.how in ("both", "continue", "pointers"))
