"""The CUDA driver on a real GPU: every check that `tests/runtime/test_cuda_*.py` makes on the emulated one, and what
only a GPU has.

    python -m tests.device.check_cuda_driver [WORD ...]        only the checks whose names contain one of the words

Needs an NVIDIA GPU of compute capability 9.0 or later, its driver and NumPy. It goes through all checks without torch
first and, if torch is installed, once more with it: then torch decides about device and stream, and provides events and
graphs. Each check prints a line with PASS or FAIL; the exit code is the number of failures, 99 at most.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tests.device.cuda_checks  # noqa: F401  it fills the first part of the table
from tests.device import kernels
from tests.device.kernels import expect_scaled, ramp, scaling
from tests.device.table import check, expect, expect_error, run
from tilework import knobs, testing
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.targets.nvidia import libcuda

ROOT = Path(__file__).parent.parent.parent


# -- streams, events, graphs, benchmarks ---------------------------------------------------------------------------


@check
def the_current_stream_is_used() -> None:
    interface, x, seen = driver.active.get_device_interface(), ramp(), []
    enter = lambda data: seen.append(data.get()["stream"])  # noqa: E731
    side = interface.Stream()
    knobs.runtime.launch_enter_hook.add(enter)
    try:
        with interface.stream(side):
            expect(driver.active.get_current_stream(0), side.cuda_stream)
            scaling()[(1, 1, 1)](x, 100, 2.0)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
    side.synchronize()
    expect(seen, [side.cuda_stream])
    expect(driver.active.get_current_stream(0), 0)
    expect_scaled(x, 2.0)


@check
def events() -> str:
    interface, x = driver.active.get_device_interface(), ramp(kernels.LARGE)
    kernel = scaling()[(kernels.LARGE // 128, 1, 1)]
    kernel(x, kernels.LARGE, 1.0)
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    kernel(x, kernels.LARGE, 1.0)
    end.record()
    interface.synchronize()
    assert start.elapsed_time(end) > 0, start.elapsed_time(end)
    return f"{start.elapsed_time(end):.4f} ms for {8 * kernels.LARGE >> 20} MiB of traffic"


@check
def flush_buffer() -> None:
    buffer = driver.active.get_empty_cache_for_benchmark()
    expect(buffer.nbytes, 256 << 20)
    driver.active.clear_cache(buffer)
    driver.active.synchronize()


@check
def do_bench() -> str:
    x = ramp(kernels.LARGE)
    kernel = scaling()[(kernels.LARGE // 128, 1, 1)]
    found = testing.do_bench(lambda: kernel(x, kernels.LARGE, 1.0), warmup=5, rep=20, quantiles=[0.5, 0.2, 0.8])
    assert len(found) == 3 and found[1] <= found[0] <= found[2] and found[0] > 0, found
    return f"{found[0]:.4f} ms"


@check
def do_bench_cudagraph() -> str:
    x, kernel = ramp(), scaling()[(1, 1, 1)]
    ms = testing.do_bench_cudagraph(lambda: kernel(x, 100, 1.0), rep=5)
    assert ms > 0, ms
    expect_scaled(x, 1.0)
    interface = driver.active.get_device_interface()
    return f"{ms * 1000:.2f} us per launch, in {getattr(interface, '__name__', 'tilework')}"


@check
def graphs_replay_what_was_recorded() -> None:
    interface, x, kernel = driver.active.get_device_interface(), ramp(), scaling()[(1, 1, 1)]
    kernel(x, 100, 1.0)
    interface.synchronize()
    graph = interface.CUDAGraph()
    with interface.graph(graph):
        kernel(x, 100, 2.0)
        kernel(x, 100, 3.0)
    expect_scaled(x, 1.0)
    graph.replay()
    graph.replay()
    interface.synchronize()
    expect_scaled(x, 36.0)


@check
def peak_rates() -> str:
    return f"{testing.get_dram_gbps():.0f} GB/s by clock and bus"


@check
def torch_tensors() -> str:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return "not in this round"
    x = torch.arange(100, dtype=torch.float32, device="cuda")
    scaling()[(1, 1, 1)](x, 100, 2.0)
    assert (x.cpu() == torch.arange(100) * 2).all()
    host = torch.arange(100, dtype=torch.float32)
    expect_error(ValueError, "Pointer argument (at 0)", lambda: scaling()[(1, 1, 1)](host, 100, 2.0))
    held = host.pin_memory()
    scaling()[(1, 1, 1)](held, 100, 2.0)
    torch.cuda.synchronize()
    assert (held == host * 2).all()
    return str(driver.active.get_active_torch_device())


BROKEN = """
from tests.device.kernels import cuda_device, scaling
from tests.device.table import expect_error
from tilework import knobs
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.active_driver import driver
knobs.runtime.device = "cuda"
driver.set_active(CudaDriver())
scaling()[(1, 1, 1)](16, 100, 2.0)
print(expect_error(RuntimeError, "Triton Error [CUDA]: an illegal memory access", cuda_device.synchronize))
"""


@check
def an_illegal_access_is_an_error() -> str:
    """In a process of its own, because no context survives it."""
    done = subprocess.run(
        [sys.executable, "-c", BROKEN], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    expect((done.returncode, done.stderr[-400:] if done.returncode else ""), (0, ""))
    return done.stdout.strip().splitlines()[-1]


def main(words: list[str]) -> int:
    """Both rounds; how many checks failed."""
    knobs.runtime.device = "cuda"
    if (reason := libcuda.FOUND.why_unusable()) is not None:
        print(f"FAIL  no GPU can be used: {reason}")
        return 1
    driver.set_active(CudaDriver())
    failed = run(words, "without torch")
    try:
        torch: Any = __import__("torch")
    except ImportError:
        torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))
    if torch.cuda.is_available():
        torch.cuda.init()
        driver.set_active(CudaDriver())
        failed += run(words, "with torch")
    else:
        print("torch is not installed, or cannot use the GPU: no second round")
    print(f"{failed} failed")
    return min(failed, 99)


if __name__ == "__main__":
    os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="tilework-check-"))
    sys.exit(main(sys.argv[1:]))
