"""Every sample kernel as PTX for Ampere and Hopper, in the emulator, beside the evaluator's result of its TTIR."""

import pytest

from tests.pipeline.gpu import CASES, Config
from tests.targets.gpu_run import check

FP8 = "matmul_fp8e4nv_64x64x32"  # a type that sm_80 does not have
CONFIGS = [Config(name, arch) for name in sorted(CASES) for arch in (80, 90) if (name, arch) != (FP8, 80)]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_sample(config: Config) -> None:
    assert check(config, checks=False) is None
