"""Every sample kernel as PTX for Ampere and Hopper, in the emulator, beside the evaluator's result of its TTIR."""

import re

import pytest

from tests.pipeline.gpu import CASES, Config
from tests.targets.gpu_run import check, ptx_of

FP8 = "matmul_fp8e4nv_64x64x32"  # a type that sm_80 does not have
# run with checks by test_gpu_tma.py, test_gpu_async.py and test_gpu_reduce.py
CHECKED = {
    Config("persistent_descriptors", 90),
    Config("chained", 90),
    Config("split_tiles", 90),
    Config("streamed_sum", 80),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_sample(name: str) -> None:
    """Code that is the same for both is run once."""
    ampere, hopper = Config(name, 80), Config(name, 90)
    assert hopper in CHECKED or check(hopper, checks=False) is None
    if name != FP8 and ampere not in CHECKED and code(ampere) != code(hopper):
        assert check(ampere, checks=False) is None


def code(config: Config) -> str:
    """PTX without what names the target."""
    return re.sub(r"^(\.version|\.target|//).*$", "", ptx_of(config), flags=re.MULTILINE)
