"""`do_bench`, `do_bench_cudagraph`, comparisons, peak rates, clocks."""

import inspect
import math
import time
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs, testing
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.tuning import benchmark
from tilework.runtime.tuning.benchmark import quantile
from tilework.targets.base import GPUTarget


class FakeDevice:
    """A driver whose clock moves only when a call says so, and that records what is done to it."""

    def __init__(self, backend: str = "cuda", arch: int = 90) -> None:
        self.now, self.flushes, self.replays = 0.0, 0, 0
        self.target = GPUTarget(backend, arch, 32)
        self.utils = SimpleNamespace(get_device_properties=lambda device: dict(H100))
        device = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                assert enable_timing

            def record(self) -> None:
                self.at = device.now

            def elapsed_time(self, end: Any) -> float:
                return end.at - self.at

        class Graph:
            def replay(self) -> None:
                device.replays += 1
                device.now += 8.0

        self.interface = SimpleNamespace(
            Event=Event,
            synchronize=lambda: None,
            stream=nullcontext,
            Stream=lambda: None,
            CUDAGraph=Graph,
            graph=nullcontext,
        )

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_device_interface(self) -> Any:
        return self.interface

    def get_empty_cache_for_benchmark(self) -> str:
        return "buffer"

    def clear_cache(self, buffer: str) -> None:
        assert buffer == "buffer"
        self.flushes += 1


H100 = {"multiprocessor_count": 132, "mem_clock_rate": 2_619_000, "mem_bus_width": 5120, "sm_clock_rate": 1_980_000}


@pytest.fixture
def device() -> Iterator[FakeDevice]:
    fake = FakeDevice()
    before = driver._active
    driver.set_active(fake)
    yield fake
    driver._active = before


def calls_of(device: FakeDevice, cost: float) -> Any:
    def call() -> None:
        call.count += 1
        device.now += cost

    call.count = 0
    return call


def test_repetitions_follow_from_the_estimate(device: FakeDevice) -> None:
    call = calls_of(device, 2.0)
    assert testing.do_bench(call, warmup=10, rep=41) == 2.0
    assert call.count == 1 + 5 + 5 + 20
    assert device.flushes == 5 + 20


def test_a_slow_call_is_timed_once(device: FakeDevice) -> None:
    call = calls_of(device, 1000.0)
    assert testing.do_bench(call, return_mode="all") == [1000.0]
    assert call.count == 1 + 5 + 1 + 1


def test_return_modes_and_quantiles(device: FakeDevice) -> None:
    steps = iter([1.0] * 11 + [float(n) for n in range(1, 11)])
    times = testing.do_bench(lambda: setattr(device, "now", device.now + next(steps)), 5, 10, return_mode="all")
    assert times == [float(n) for n in range(1, 11)]
    for mode, expected in (("min", 1.0), ("max", 1.0), ("mean", 1.0), ("median", 1.0)):
        assert testing.do_bench(calls_of(device, 1.0), return_mode=mode) == expected
    assert testing.do_bench(calls_of(device, 1.0), quantiles=[0.5, 0.2, 0.8]) == [1.0, 1.0, 1.0]
    assert testing.do_bench(calls_of(device, 1.0), quantiles=[0.5]) == 1.0
    with pytest.raises(AssertionError, match="return_mode"):
        testing.do_bench(calls_of(device, 1.0), return_mode="average")


def test_quantiles_are_interpolated() -> None:
    values = list(np.random.default_rng(0).uniform(size=17))
    for q in (0, 0.1, 0.2, 0.5, 0.8, 1):
        assert math.isclose(quantile(values, q), float(np.quantile(values, q)))
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile(values, 1.5)


def test_gradients_are_dropped_and_old_arguments_accepted(device: FakeDevice) -> None:
    leaf = SimpleNamespace(grad="old")
    testing.do_bench(calls_of(device, 50.0), grad_to_none=[leaf], fast_flush=False)
    assert leaf.grad is None


def test_the_host_has_a_clock() -> None:
    ms = testing.do_bench(lambda: time.sleep(0.002), warmup=1, rep=5)
    assert 1.9 <= ms <= 500


def test_graph_times_are_per_call(device: FakeDevice) -> None:
    assert testing.do_bench_cudagraph(calls_of(device, 5.0), rep=20) == 2.0
    assert device.replays == 10


def test_graphs_need_cuda() -> None:
    with pytest.raises(RuntimeError, match=r"active device is cpu: use do_bench"):
        testing.do_bench_cudagraph(lambda: None)


def test_close() -> None:
    nan = np.array([1.0, np.nan])
    testing.assert_close(nan, nan + 0.005)
    testing.assert_close(np.ones(4, ml_dtypes.bfloat16), np.ones(4, np.float32))
    testing.assert_close([1, 2], np.array([1, 2]))
    testing.assert_close(3.0, 3.001)
    with pytest.raises(AssertionError, match="in the last row"):
        testing.assert_close(np.ones(3), np.full(3, 1.02), err_msg="in the last row")
    with pytest.raises(AssertionError):
        testing.assert_close(np.ones(3), np.ones(2))


def test_close_with_tolerances_by_dtype() -> None:
    seen = []
    testing.assert_close(
        np.full(2, 1.5, np.float16), np.ones(2, np.float16), atol=lambda dtype: seen.append(dtype) or 1
    )
    assert seen == [np.dtype(np.float16)]
    testing.assert_close(np.full(2, 150.0), np.full(2, 100.0), atol=0, rtol=0.6)
    with pytest.raises(AssertionError):
        testing.assert_close(np.full(2, 150.0), np.full(2, 100.0), atol=0, rtol=lambda dtype: 0.4)


def test_peak_rates(device: FakeDevice) -> None:
    assert math.isclose(testing.get_dram_gbps(), 3352.3, rel_tol=1e-4)
    assert math.isclose(testing.get_max_tensorcore_tflops(tl.float16, 1_830_000), 989.4, rel_tol=1e-3)
    assert math.isclose(testing.get_max_tensorcore_tflops(tl.float8e5, 1_830_000), 1978.8, rel_tol=1e-3)
    assert math.isclose(testing.get_max_simd_tflops(tl.float32, 1_980_000), 66.9, rel_tol=1e-3)
    with pytest.raises(RuntimeError, match="do not multiply fp64"):
        testing.get_max_tensorcore_tflops(tl.float64, 1)
    with pytest.raises(RuntimeError, match="not for i8"):
        testing.get_max_simd_tflops(tl.int8, 1)


def test_peak_rates_of_older_gpus(device: FakeDevice) -> None:
    device.target = GPUTarget("cuda", 80, 32)
    device.utils = SimpleNamespace(get_device_properties=lambda _: H100 | {"multiprocessor_count": 108})
    assert math.isclose(testing.get_max_tensorcore_tflops(np.dtype(np.float16), 1_410_000), 311.9, rel_tol=1e-3)
    assert math.isclose(testing.get_max_simd_tflops(tl.float32, 1_410_000), 19.5, rel_tol=1e-3)
    device.target = GPUTarget("cuda", 70, 32)
    with pytest.raises(RuntimeError, match=r"7\.0 do not multiply bf16"):
        testing.get_max_tensorcore_tflops(tl.bfloat16, 1)


def test_hardware_helpers_without_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match="active device is the CPU"):
        testing.get_dram_gbps()
    with pytest.raises(RuntimeError, match="nvidia-smi is not on the PATH"):
        testing.nvsmi(["clocks.current.sm"])
    with pytest.raises(RuntimeError, match="nvidia-smi"), testing.set_gpu_clock():
        raise AssertionError("not reached")


def test_clocks_are_locked_and_released(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **settings: Any) -> Any:
        commands.append(command)
        return SimpleNamespace(returncode=0, stdout="1350, 1215\n", stderr="")

    monkeypatch.setattr(testing.shutil, "which", lambda name: name)
    monkeypatch.setattr(testing.subprocess, "run", run)
    with testing.set_gpu_clock() as (tflops, gbps):
        assert math.isclose(tflops, 132 * 4 * 1024 * 1.35e-3)
        assert math.isclose(gbps, 5120 / 8 * 2 * 1.215)
    assert commands[1][-1] == "--lock-gpu-clocks=1350,1350"
    assert [command[-1] for command in commands[-2:]] == ["--reset-gpu-clocks", "--reset-memory-clocks"]


def test_memcheck_runs_chosen_cases_in_the_sanitizer(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    @testing.cuda_memcheck(size=3)
    def case(size: int, request: Any = None) -> None:
        ran.append(size)

    request = SimpleNamespace(node=SimpleNamespace(path="test_x.py", name="case[3]"))
    case(size=2)
    monkeypatch.setattr(testing, "run_tool", lambda *command: ran.append(command[-1]) or "ERROR SUMMARY: 0 errors")
    case(size=3, request=request)
    assert ran == [2, "test_x.py::case[3]"]
    monkeypatch.setattr(testing, "run_tool", lambda *command: "ERROR SUMMARY: 2 errors")
    with pytest.raises(AssertionError, match="2 errors"):
        case(size=3, request=request)


def test_torch_tensors_compare() -> None:
    torch = pytest.importorskip("torch")
    testing.assert_close(torch.ones(4, dtype=torch.bfloat16, requires_grad=True), np.ones(4))
    with pytest.raises(AssertionError):
        testing.assert_close(torch.ones(4), torch.zeros(4))


def rising(device: FakeDevice) -> Any:
    """One call and five for the estimate of 2 ms, two to warm up, then five that take 1, 2, 4, 8 and 10 ms."""
    steps = iter([2.0] * 8 + [10.0, 1.0, 8.0, 2.0, 4.0])
    return lambda: setattr(device, "now", device.now + next(steps))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("min", 1.0), ("max", 10.0), ("mean", 5.0), ("median", 4.0), ("all", [10.0, 1.0, 8.0, 2.0, 4.0])],
)
def test_each_return_mode(mode: str, expected: Any, device: FakeDevice) -> None:
    assert testing.do_bench(rising(device), warmup=4, rep=10, return_mode=mode) == expected


def test_quantiles_instead_of_a_mode(device: FakeDevice) -> None:
    assert testing.do_bench(rising(device), 4, 10, quantiles=[0.5, 0.0, 1.0, 0.625], return_mode="max") == [4, 1, 10, 6]
    assert testing.do_bench(rising(device), 4, 10, quantiles=[0.25]) == 2


def test_gradients_are_dropped_before_each_timed_call(device: FakeDevice) -> None:
    leaf, seen = SimpleNamespace(grad=None), []

    def call() -> None:
        seen.append(leaf.grad)
        leaf.grad = "new"
        device.now += 50.0

    testing.do_bench(call, warmup=50, rep=100, grad_to_none=[leaf])
    assert seen[-2:] == [None, None] and "new" in seen


def test_parameters() -> None:
    wanted = {"warmup": 25, "rep": 100, "grad_to_none": None, "quantiles": None, "return_mode": "mean"}
    found = {name: param.default for name, param in inspect.signature(testing.do_bench).parameters.items()}
    assert list(found)[:6] == ["fn", *wanted] and wanted.items() <= found.items()
    found = {name: param.default for name, param in inspect.signature(testing.do_bench_cudagraph).parameters.items()}
    assert found == {
        "fn": inspect.Parameter.empty,
        "rep": 20,
        **{k: v for k, v in wanted.items() if k not in ("warmup", "rep")},
    }


def test_graphs_return_modes(device: FakeDevice) -> None:
    """Replays take 8 ms each; a call of 5 ms is captured four times in 20 ms."""
    assert testing.do_bench_cudagraph(calls_of(device, 5.0), return_mode="all") == [2.0] * 10
    assert testing.do_bench_cudagraph(calls_of(device, 5.0), quantiles=[0.5, 0.9]) == [2.0, 2.0]
    assert testing.do_bench_cudagraph(calls_of(device, 5.0), rep=40, return_mode="max") == 1.0
    with pytest.raises(AssertionError, match="return_mode"):
        testing.do_bench_cudagraph(calls_of(device, 5.0), return_mode="fastest")


def test_default_tolerances() -> None:
    testing.assert_close(np.array([100.0]), np.array([100.0099]))
    with pytest.raises(AssertionError):
        testing.assert_close(np.array([100.0]), np.array([100.0101]))
    with pytest.raises(AssertionError):
        testing.assert_close(np.array([1e6]), np.array([1e6 + 1]))


def test_tolerances_are_requested_the_dtype() -> None:
    seen: list[Any] = []

    def tolerance(dtype: Any) -> float:
        seen.append(dtype)
        return 0.25

    x = np.array([1.0, 2.0], ml_dtypes.bfloat16)
    testing.assert_close(x, np.array([1.2, 2.2], ml_dtypes.bfloat16), atol=tolerance, rtol=tolerance)
    assert seen == [np.dtype(ml_dtypes.bfloat16)] * 2


def test_special_values() -> None:
    testing.assert_close(np.array([np.nan, np.inf, -np.inf]), np.array([np.nan, np.inf, -np.inf]))
    for other in ([0.0, np.inf, -np.inf], [np.nan, np.inf, np.inf], [np.nan, 1e30, -np.inf]):
        with pytest.raises(AssertionError):
            testing.assert_close(np.array([np.nan, np.inf, -np.inf]), np.array(other))


@tilework.jit
def filled(out, value, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), value)


def test_times_of_kernels_alone() -> None:
    out = np.zeros(1024, np.float32)

    def call() -> None:
        filled[(1,)](out, 1.0, N=1024)
        filled[(1,)](out, 2.0, N=1024)
        time.sleep(0.01)

    times = testing.do_bench_proton(call, warmup=1, rep=60, return_mode="all")
    assert times and all(0 < milliseconds < 10 for milliseconds in times)
    assert 0 < testing.do_bench_proton(call, warmup=1, rep=20, quantiles=[0.5]) < 10
    with pytest.raises(RuntimeError, match="launches none that the profiler sees"):
        testing.do_bench_proton(lambda: time.sleep(0.001), warmup=1, rep=5)
    with pytest.raises(AssertionError, match="return_mode must be one of"):
        testing.do_bench_proton(call, return_mode="fastest")


def test_times_of_kernels_without_the_profiler() -> None:
    with knobs.proton.scope():
        knobs.proton.disable = True
        with pytest.raises(RuntimeError, match="TRITON_PROTON_DISABLE=1"):
            testing.do_bench_proton(lambda: None, warmup=1, rep=1)


@pytest.mark.parametrize(("busy", "waited"), [(0.0, 0.004), (0.1, 0.104), (9.0, 0.3)])
def test_measuring_waits_for_other_threads_that_compute(
    busy: float, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads compute for `busy` seconds, as those of a BLAS library do after a call."""
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now, sleep=sleep, process_time=lambda: 2 * min(now, busy))
    monkeypatch.setattr(benchmark, "time", clock)
    benchmark.let_threads_rest()
    assert now == pytest.approx(waited, abs=0.005)


@pytest.mark.parametrize("x", [1.0, np.ones(1), np.ones(3)])
def test_message_of_assert_close(x: Any) -> None:
    with pytest.raises(AssertionError, match="the scale is wrong"):
        testing.assert_close(x, x + 1, err_msg="the scale is wrong")
