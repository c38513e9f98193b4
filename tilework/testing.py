"""Timing, benchmark reports and comparisons for authors of kernels.

    ms = do_bench(lambda: add[grid](x, y, out, n, BLOCK=1024))
    assert_close(out, x + y)
    assert_close(call(tl.exp, x), np.exp(x))     # one function of the language, tried on arrays

`call` is explained in `runtime/launch/python/call.py`, `do_bench` in `runtime/tuning/benchmark.py`, `perf_report` in
`runtime/tuning/benchmark.py`. The rest is here: comparing arrays, and what a GPU could reach at best. The peak rates
multiply units by clocks; see the tables.
"""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.call import call
from tilework.runtime.launch.python.specialize import dtype_code
from tilework.runtime.tuning.benchmark import (
    Benchmark,
    Mark,
    check_return_mode,
    cuda_graph_without_gc,
    do_bench,
    do_bench_cudagraph,
    perf_report,
    summarize,
)

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "call",
    "cuda_graph_without_gc",
    "cuda_memcheck",
    "do_bench",
    "do_bench_cudagraph",
    "do_bench_cudagraph_proton",
    "do_bench_proton",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
    "set_gpu_clock",
]

DEFAULT_ATOL = 1e-2
DEFAULT_RTOL = 0.0
Tolerance = float | Callable[[Any], float] | None

SUBCORES = 4  # schedulers per multiprocessor, in every generation since Volta
# multiply-adds count twice; fp16 operations per clock and subcore of the tensor cores, by compute capability
TENSOR_OPS = {70: 256, 75: 256, 80: 512, 86: 256, 87: 256, 89: 256, 90: 1024, 100: 2048, 103: 2048, 120: 256}
TENSOR_RATIO = {"fp32": 0.5, "fp16": 1, "bf16": 1, "i8": 2, "u8": 2, "fp8": 2}
# (fp32, fp16) operations per clock and subcore of the ordinary units
SIMD_OPS = {70: (32, 64), 75: (32, 64), 80: (32, 128), 86: (64, 64), 87: (64, 64), 89: (64, 64), 90: (64, 128)}
SIMD_OPS |= {100: (64, 128), 103: (64, 128), 120: (64, 64)}


def do_bench_proton(
    fn: Callable[[], object],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Like `do_bench`, but counts only the kernels of a call, which the profiler measures, not the time to launch them.

    For a call that launches several kernels, their times are added. The profiler records launches of tilework kernels,
    and on NVIDIA GPUs all kernels.

    Example:
        @tilework.jit
        def fill(out, N: tl.constexpr):
            tl.store(out + tl.arange(0, N), 1.0)

        out = np.zeros(1024, np.float32)
        times = tilework.testing.do_bench_proton(lambda: fill[(1,)](out, N=1024), warmup=1, rep=2, return_mode="all")
        assert all(milliseconds > 0 for milliseconds in times)
    """
    from tilework.inspect.profiler.kernel_times import kernel_times  # lazily: the profiler loads when it measures

    check_return_mode(return_mode)
    return summarize(kernel_times(fn, warmup, rep, list(grad_to_none or ())), quantiles, return_mode)


def do_bench_cudagraph_proton(
    fn: Callable[[], object],
    rep: float = 20,
    grad_to_none: Iterable[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Like `do_bench_proton`, for calls on an NVIDIA GPU that take longer to start than to run.

    The call is captured in a CUDA graph, and the graph replayed, with flushed caches. What the call computes on the
    host is not repeated.

    Example:
        try:
            milliseconds = tilework.testing.do_bench_cudagraph_proton(lambda: None)
        except RuntimeError as error:
            assert "CUDA" in str(error)  # no GPU here, or no torch
    """
    from tilework.inspect.profiler.kernel_times import kernel_times_of_graph  # lazily: as above

    check_return_mode(return_mode)
    return summarize(kernel_times_of_graph(fn, rep, list(grad_to_none or ())), quantiles, return_mode)


def assert_close(x: Any, y: Any, atol: Tolerance = None, rtol: Tolerance = None, err_msg: str = "") -> None:
    """Fail unless ``|x - y| <= atol + rtol * |y|`` everywhere; NaNs are equal to each other.

    Tolerances are floats or functions of the dtype. By default, `atol` is 0.01 and `rtol` is 0, as in Triton. NumPy
    arrays, torch tensors, lists and scalars of less precise types are compared as float32.

    Example:
        assert_close(np.float16([1, 2]), [1.001, 2])
        assert_close([1.0, 2.0], [1.0, 2.0], atol=0)
        try:
            assert_close([1.0], [1.1])
        except AssertionError as error:
            assert "Mismatched elements" in str(error)
        else:
            raise ValueError("they are not close")
    """
    import numpy as np  # lazily: few launches need NumPy, which is slow to load

    left, right = comparable(x), comparable(y)
    kind = getattr(y, "dtype", right.dtype)
    absolute = DEFAULT_ATOL if atol is None else atol(kind) if callable(atol) else atol
    relative = DEFAULT_RTOL if rtol is None else rtol(kind) if callable(rtol) else rtol
    np.testing.assert_allclose(left, right, atol=absolute, rtol=relative, equal_nan=True, err_msg=err_msg)


def comparable(value: Any) -> Any:
    """A NumPy array of a type that NumPy can compare; bf16 and fp8 become float32."""
    import numpy as np  # lazily: few launches need NumPy, which is slow to load

    value = getattr(value, "base", value) if type(value).__name__ == "TensorWrapper" else value
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if value.dtype.is_floating_point and value.dtype.itemsize < 4:
            value = value.float()
        value = value.numpy()
    array = np.asarray(value)
    return array if array.dtype.kind in "biufc" else array.astype(np.float32)


def device_properties(device: int | None) -> dict[str, Any]:
    """Units and clocks of a GPU; an error on the host, which has none of them."""
    target = driver.active.get_current_target()
    if target.backend == "cpu":
        raise RuntimeError("peak rates are those of a GPU, and the active device is the CPU")
    device = driver.active.get_current_device() if device is None else device
    return driver.active.utils.get_device_properties(device) | {"capability": capability(target.arch)}


def capability(arch: Any) -> int:
    """90 for compute capability 9.0; unknown members of a known family count as its first one."""
    found = int(arch)
    if found in TENSOR_OPS:
        return found
    known = [member for member in TENSOR_OPS if member <= found]
    if not known:
        raise RuntimeError(f"no peak rates are known for compute capability {found // 10}.{found % 10}")
    return max(known)


def get_dram_gbps(device: int | None = None) -> float:
    """The peak bandwidth of the GPU's memory, in GB/s: two transfers per clock. On the CPU it is an error.

    Example:
        try:
            gigabytes = tilework.testing.get_dram_gbps()
        except RuntimeError as error:
            assert "CPU" in str(error)
    """
    properties = device_properties(device)
    return properties["mem_clock_rate"] * properties["mem_bus_width"] * 2 / 1e6 / 8


def get_max_tensorcore_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """The peak rate of dense dots on tensor cores at `clock_rate` kHz; fp32 means tf32. On the CPU it is an error.

    Example:
        try:
            teraflops = tilework.testing.get_max_tensorcore_tflops(tl.float16, clock_rate=1_700_000)
        except RuntimeError as error:
            assert "CPU" in str(error)
    """
    properties = device_properties(device)
    code = dtype_code(dtype)
    ratio = TENSOR_RATIO.get("fp8" if code.startswith("fp8") else code)
    cc = properties["capability"]
    if ratio is None or (cc < 80 and code != "fp16") or (code.startswith("fp8") and cc < 89):
        raise RuntimeError(f"tensor cores of compute capability {cc // 10}.{cc % 10} do not multiply {code}")
    return peak_tflops(properties, clock_rate, TENSOR_OPS[cc] * ratio)


def get_max_simd_tflops(dtype: Any, clock_rate: float, device: int | None = None) -> float:
    """The peak rate of multiply-adds outside the tensor cores at `clock_rate` kHz. On the CPU it is an error.

    Example:
        try:
            teraflops = tilework.testing.get_max_simd_tflops(tl.float32, clock_rate=1_700_000)
        except RuntimeError as error:
            assert "CPU" in str(error)
    """
    properties = device_properties(device)
    code = dtype_code(dtype)
    if code not in ("fp32", "fp16", "bf16"):
        raise RuntimeError(f"peak rates are known for fp32, fp16 and bf16, not for {code}")
    return peak_tflops(properties, clock_rate, SIMD_OPS[properties["capability"]][code != "fp32"])


def peak_tflops(properties: dict[str, Any], clock_khz: float, ops: float) -> float:
    """Return the TFLOPS of a GPU whose subcores all execute `ops` operations per clock."""
    return properties["multiprocessor_count"] * SUBCORES * clock_khz * ops * 1e-9


def nvsmi(attrs: Sequence[str]) -> list[int]:
    """Values that nvidia-smi reports for the first GPU: ``nvsmi(["clocks.current.sm"])``.

    Example:
        try:
            (megahertz,) = tilework.testing.nvsmi(["clocks.current.sm"])
        except RuntimeError as error:
            assert "nvidia-smi" in str(error)  # it is not here
    """
    query = f"--query-gpu={','.join(attrs)}"
    text = run_tool("nvidia-smi", "-i", "0", query, "--format=csv,noheader,nounits")
    return [int(value) for value in text.strip().split(",")]


def run_tool(name: str, *arguments: str) -> str:
    """The output of a program of NVIDIA's driver or toolkit."""
    if shutil.which(name) is None:
        raise RuntimeError(f"{name} is not on the PATH: it comes with NVIDIA's driver or toolkit, and needs a GPU")
    done = subprocess.run([name, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Iterator[tuple[float, float]]:
    """Fix the clocks (MHz) of the first GPU inside the block, and yield (peak fp16 TFLOPS, GB/s) at these clocks.

    This needs permission to change clocks. They are released when the block ends, even after an exception.

    Example:
        try:
            with tilework.testing.set_gpu_clock(1350, 1215) as (teraflops, gigabytes):
                pass  # measure here
        except RuntimeError as error:
            assert "nvidia-smi" in str(error)
    """
    try:
        run_tool("nvidia-smi", "-i", "0", "-pm", "1")
        run_tool("nvidia-smi", "-i", "0", f"--lock-gpu-clocks={ref_sm_clock},{ref_sm_clock}")
        run_tool("nvidia-smi", "-i", "0", f"--lock-memory-clocks={ref_mem_clock},{ref_mem_clock}")
        sm_clock, mem_clock = nvsmi(["clocks.current.sm", "clocks.current.memory"])
        for name, now, wanted in (("SM", sm_clock, ref_sm_clock), ("memory", mem_clock, ref_mem_clock)):
            if abs(now - wanted) >= 10:
                raise RuntimeError(f"the {name} clock is {now} MHz although {wanted} MHz were requested")
        properties = device_properties(None)
        tflops = peak_tflops(properties, ref_sm_clock * 1e3, TENSOR_OPS[properties["capability"]])
        yield tflops, properties["mem_bus_width"] * ref_mem_clock * 2 / 8e3
    finally:
        if shutil.which("nvidia-smi") is not None:
            for reset in ("--reset-gpu-clocks", "--reset-memory-clocks"):
                subprocess.run(["nvidia-smi", "-i", "0", reset], capture_output=True, check=False)


def cuda_memcheck(**target_kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a pytest test under compute-sanitizer if its arguments include `target_kwargs`; other cases run as usual.

    The test must take the fixture `request`, which provides its name.

    Example:
        @tilework.testing.cuda_memcheck(size=1024)
        def test_copy(size, request):
            return None

        test_copy(size=16, request=None)  # runs as usual
    """

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def wrapper(*args: Any, **kwargs: Any) -> None:
            if not target_kwargs.items() <= kwargs.items() or parent_is("compute-sanitizer"):
                test(*args, **kwargs)
                return
            node = kwargs["request"].node
            command = [sys.executable, "-m", "pytest", "-vs", f"{node.path}::{node.name}"]
            text = run_tool("compute-sanitizer", "--target-processes", "all", *command)
            assert "ERROR SUMMARY: 0 errors" in text, text

        return wrapper

    return decorate


def parent_is(name: str) -> bool:
    """Return True if the parent process is called `name`; the system cuts names to 15 characters."""
    try:
        with open(f"/proc/{os.getppid()}/comm") as file:
            return file.read().strip() == name[:15]
    except OSError:
        return False
