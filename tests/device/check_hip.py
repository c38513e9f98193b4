"""AMD GPUs: the driver on a real one, then the sample kernels.

    python -m tests.device.check_hip [WORD ...]        only the checks and kernels whose names contain one of the words

Needs an AMD GPU, ROCm 6 or later, and NumPy. Each check prints a line with PASS or FAIL; the exit code is the number of
failures, 99 at most. Torch is not used; what it does differently (device and stream) is in
`driver.active.get_current_stream`.
"""

import subprocess
import sys
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from tests.device import check_cuda_kernels
from tests.device.table import check, expect, expect_error, run
from tests.pipeline.gpu import CASES
from tilework import knobs, testing
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.hip_driver import GPUS as hip_device
from tilework.runtime.devices.hip_driver import DeviceArray, HipDriver
from tilework.targets.amd import libhip


@tilework.jit
def scale(p, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, tl.load(p + i, mask=i < n) * a, mask=i < n)


def ramp() -> DeviceArray:
    return DeviceArray.of(np.arange(100, dtype=np.float32))


def expect_scaled(x: DeviceArray, by: float) -> None:
    np.testing.assert_array_equal(x.numpy(), np.arange(100, dtype=np.float32) * np.float32(by))


@check
def the_library() -> str:
    expect([name for name in libhip.FUNCTIONS if not libhip.library().has(name)], [])
    assert isinstance(driver.active, HipDriver)
    facts = driver.active.utils.get_device_properties(0)
    assert facts["warpSize"] in (32, 64) and facts["max_shared_mem"] >= 1 << 16 and facts["arch"].startswith("gfx")
    return f"{hip_device.device_count()} devices, {driver.active.get_current_target()}, {facts}"


@check
def launches_through_python_and_in_machine_code() -> str:
    x = ramp()
    kernel = scale[(2,)](x, 100, 2.0, BLOCK=64)
    for _ in range(3):
        scale[(2,)](x, 100, 2.0, BLOCK=64)
    expect_scaled(x, 16)
    notes = kernel.metadata
    expect((kernel.n_regs, kernel.n_spills), (notes.n_regs, notes.n_spills))
    return f"{kernel.n_regs} registers, {kernel.n_max_threads} threads at most"


@check
def streams_graphs_and_time() -> str:
    x, side, graph = ramp(), hip_device.Stream(), hip_device.CUDAGraph()
    with hip_device.stream(side):
        scale[(2,)](x, 100, 2.0, BLOCK=64)
        expect_scaled(x, 2)
        with hip_device.graph(graph):
            scale[(2,)](x, 100, 2.0, BLOCK=64)
        graph.replay()
        expect_scaled(x, 4)
    return f"{testing.do_bench(lambda: scale[(2,)](x, 100, 1.0, BLOCK=64), warmup=1, rep=2):.4f} ms"


@check
def a_cooperative_grid() -> None:
    x = ramp()
    for _ in range(2):
        scale[(2,)](x, 100, 2.0, BLOCK=64, launch_cooperative_grid=True)
    expect_scaled(x, 4)


@check
def what_is_refused() -> str:
    expect_error(
        ValueError, "cannot be accessed from Triton", lambda: scale[(1,)](np.zeros(64, "f4"), 64, 2.0, BLOCK=64)
    )
    expect_error(ValueError, "there is no HIP device 99", lambda: hip_device.set_device(99))
    load: Any = driver.active.utils.load_binary
    expect_error(RuntimeError, "Triton Error [HIP]:  Code: ", lambda: load("scale", b"\x7fELF" + bytes(60), 0, 0))
    return expect_error(RuntimeError, "1 x 70000 x 1 blocks", lambda: scale[(1, 70000)](ramp(), 100, 2.0, BLOCK=64))


@check
def every_device() -> str:
    for device in range(hip_device.device_count()):
        hip_device.set_device(device)
        x = ramp()
        scale[(2,)](x, 100, 2.0, BLOCK=64)
        expect_scaled(x, 2)
    hip_device.set_device(0)
    return f"{hip_device.device_count()} devices"


BROKEN = """
from tests.device.check_hip import ramp, scale, use_hip, hip_device
from tests.device.table import expect_error
use_hip()
scale[(1,)](16, 64, 2.0, BLOCK=64)
print(expect_error(RuntimeError, "Triton Error [HIP]:  Code: 7", hip_device.synchronize))
"""


def an_illegal_access_is_an_error() -> str:
    """In a process of its own, because the GPU cannot be used after it."""
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, timeout=300, check=False)
    expect((done.returncode, done.stderr[-400:] if done.returncode else ""), (0, ""))
    return done.stdout.strip().splitlines()[-1]


def use_hip() -> None:
    knobs.runtime.device = "hip"
    driver.set_active(HipDriver())


def main(words: list[str]) -> int:
    if (reason := libhip.FOUND.why_unusable()) is not None:
        print(f"FAIL  no GPU can be used: {reason}")
        return 1
    use_hip()
    check(an_illegal_access_is_an_error)
    failed = run(words, "without torch")
    check_cuda_kernels.DeviceArray = DeviceArray  # pyright: ignore[reportAttributeAccessIssue]
    names = [name for name in sorted(CASES) if not words or any(word in name for word in words)]
    sys.argv[1:] = [*names, "--stages", "2"]
    return min(99, failed + (check_cuda_kernels.main() if names else 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
