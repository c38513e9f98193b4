"""The same examples in every run: a failure in CI is a failure here. `--hypothesis-profile=explore` draws new ones.

Tests are about the CPU and emulated GPUs, also on a machine that has a real one (for that there is tests/device).
"""

import os

from hypothesis import settings

from tilework.runtime.cuda import CudaDriver

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeatable")

if CudaDriver.is_active():
    os.environ["TILEWORK_DEVICE"] = "native"
