"""The sanitizer on a real GPU: every report of `tests/runtime/test_cuda_sanitize.py`, and samples that must stay
silent.

    python -m tests.device.check_sanitize
    python -m tests.device.check_sanitize --tools  # NVIDIA's sanitizer on the kernels of the table: nvidia_tools.py

After each report the same process goes on, with the same context. Each line: PASS or FAIL and the name; the exit code
is the number of failures, 99 at most.
"""

import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.device import check_cuda_kernels, nvidia_tools
from tests.device.check_cuda_kernels import allocate, run
from tests.pipeline.gpu import CASES
from tests.runtime import test_cuda_sanitize as tests
from tilework import knobs, set_allocator
from tilework.errors import SanitizerError, SanitizerWarning
from tilework.oracles.interpreter import register_memory
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import DeviceArray


class Registered(DeviceArray):
    """Memory that kernels may reach through addresses they load."""

    def __init__(self, shape: Any, dtype: Any = "uint8") -> None:
        super().__init__(shape, dtype)
        register_memory(self)


def torch_tensors() -> None:
    """Views of torch's tensors: their extent is from the first byte to the last."""
    torch = pytest.importorskip("torch")
    whole = torch.zeros(64, device="cuda")
    out = torch.zeros(64, device="cuda")
    tests.copy[(1,)](whole[:40], out, 40, BLOCK=64)
    text = tests.report(lambda: tests.copy[(1,)](whole[:40], out, 41, BLOCK=64))
    assert "reads element 40 of argument 'x', which has 40 elements" in text
    torch.cuda.synchronize()


def many_programs() -> None:
    """A million lanes that fail at once: one report, and the device goes on."""
    x, out = tests.device(np.zeros(1 << 10, np.float32)), tests.device(np.zeros(1 << 20, np.float32))
    text = tests.report(lambda: tests.copy[(1 << 10,)](x, out, 1 << 20, BLOCK=1024))
    assert "of argument 'x', which has 1024 elements" in text
    assert not out.numpy().any()


def sample(name: str) -> None:
    """A sample kernel with all checks on."""
    set_allocator(allocate)
    check_cuda_kernels.DeviceArray = Registered
    with knobs.runtime.scope(), warnings.catch_warnings():
        knobs.runtime.sanitize = True
        warnings.simplefilter("ignore", SanitizerWarning)
        wrong, _ = run(CASES[name], 4, 3)
    assert wrong is None, wrong


def checks() -> dict[str, Callable[[], None]]:
    found: dict[str, Callable[[], None]] = {"torch_tensors": torch_tensors, "many_programs": many_programs}
    stub = SimpleNamespace(failure=0)
    for name, test in vars(tests).items():
        if not name.startswith("test_"):
            continue
        if name == "test_one_lane_of_a_gather":
            found |= {f"{name}[{lane}]": lambda test=test, lane=lane: test(lane) for lane in (0, 37, 63)}
        else:
            found[name] = lambda test=test: test(*([stub] if test.__code__.co_argcount else []))
    return found | {f"sample {name}": lambda name=name: sample(name) for name in CASES}


def main() -> int:
    if "--tools" in sys.argv:
        return nvidia_tools.main([word for word in sys.argv[1:] if word != "--tools"])
    assert driver.active.get_current_target().backend == "cuda", "this needs a GPU"
    wanted, failures = sys.argv[1:], 0
    for name, check in checks().items():
        if wanted and not any(word in name for word in wanted):
            continue
        start, why = time.perf_counter(), ""
        try:
            check()
        except pytest.skip.Exception as skipped:
            why = f"skipped: {skipped}"
        except (Exception, SanitizerError) as error:
            failures += 1
            why = (
                "".join(traceback.format_exception_only(error)).strip()
                if "-v" not in wanted
                else traceback.format_exc()
            )
        print(
            (
                f"{'FAIL' if why and not why.startswith('skipped') else 'PASS'} {name} "
                f"{time.perf_counter() - start:.1f} s {why}"
            ),
            flush=True,
        )
    return min(failures, 99)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a context that a failed check has broken must not be torn down
