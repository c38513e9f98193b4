"""Every example under ``TILEWORK_DEVICE=emulator``, compared with NumPy."""

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from examples.case import Case
from examples.demo import all_cases, largest_error
from tests.runtime.emulator_fixture import emulator
from tilework.errors import PerformanceWarning
from tilework.runtime.devices.launcher import NullAllocator, set_allocator

# the emulator runs one warp after the other, and tiles are small; 4 elsewhere
WARPS = {"grouped_gemm": 1, "matmul": 2, "matmul_block_pointers": 2, "matmul_descriptors": 2}


@pytest.fixture(scope="module", autouse=True)
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    for case in all_cases():
        case.kernel.device_caches.clear()
    set_allocator(NullAllocator())  # as a user's program may leave it: scratch memory is there nevertheless
    with emulator(cache=str(Path(tmp_path_factory.mktemp("cache")))):
        yield
    for case in all_cases():
        case.kernel.device_caches.clear()


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
def test_an_example_is_equal_to_numpy(case: Case) -> None:
    arrays = case.arguments(np.random.default_rng(0))
    expected = case.expected(copy.deepcopy(arrays))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PerformanceWarning)
        arguments = {name: arrays[name] for name in case.signature}
        kernel = case.kernel[case.grid](**arguments, **case.constexprs, num_warps=WARPS.get(case.name, 4))
    assert largest_error(arrays, expected) <= case.atol
    assert kernel.metadata.target.backend == "cuda" and kernel.counters.total.threads > 0
