"""Timing on CUDA without torch: events, `do_bench`, `do_bench_cudagraph`, on the emulated driver."""

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.runtime import cuda_programs as programs
from tests.runtime.cuda_programs import kernel_of
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import testing
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.gpu import gpu_driver

SCALE = {"p": "*fp32", "n": "i32", "a": "fp32"}


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedCuda]:
    monkeypatch.setattr(gpu_driver, "FLUSH_BYTES", 1 << 16)
    with emulated_cuda() as library:
        yield library


def launches(cuda: EmulatedCuda, per_call: int = 1):  # noqa: ANN201
    x = DeviceArray.of(np.ones(4, np.float32))
    kernel = kernel_of(programs.scale(), "scale", SCALE, num_warps=1)[(1, 1, 1)]

    def call() -> None:
        call.count += 1
        for _ in range(per_call):
            kernel(x, 4, 1.0)

    call.count = 0
    return call


def test_events(cuda: EmulatedCuda) -> None:
    call = launches(cuda, 3)
    start, end = cuda_device.Event(enable_timing=True), cuda_device.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    with pytest.raises(RuntimeError, match="device not ready"):
        start.elapsed_time(end)
    end.synchronize()
    assert start.elapsed_time(end) == 3.0
    untimed = cuda_device.Event()
    untimed.record()
    cuda_device.synchronize()
    with pytest.raises(RuntimeError, match="invalid resource handle"):
        untimed.elapsed_time(end)


def test_events_are_of_their_stream(cuda: EmulatedCuda) -> None:
    side, event = cuda_device.Stream(), cuda_device.Event(enable_timing=True)
    with cuda_device.stream(side):
        event.record()
    event.record(side)
    assert [stream for stream, _ in cuda.queue] == [side.cuda_stream] * 2
    cuda_device.synchronize()


def test_do_bench_uses_device_events_and_flushes_the_cache(cuda: EmulatedCuda) -> None:
    call = launches(cuda, 2)
    assert driver.active.get_benchmarker() is testing.do_bench
    assert testing.do_bench(call, warmup=4, rep=8) == 2.0
    assert call.count == 1 + 5 + 2 + 4
    assert cuda.cleared == (5 + 4) << 16
    assert testing.do_bench(call, warmup=1, rep=4, quantiles=[0.5, 0.9]) == [2.0, 2.0]


def test_the_buffer_that_flushes_the_cache() -> None:
    with emulated_cuda() as cuda:
        buffer = driver.active.get_empty_cache_for_benchmark()
        assert buffer.nbytes == 256 << 20
        del buffer
        assert cuda.cleared == 0


def test_do_bench_cudagraph_captures_and_replays(cuda: EmulatedCuda) -> None:
    call = launches(cuda, 2)
    assert testing.do_bench_cudagraph(call, rep=6) == 2.0
    assert call.count == 1 + 5 + 3  # the last three are recorded, and replayed without calling
    cuda_device.synchronize()
    assert cuda.clock == 2 * (1 + 5) + 10 * 2 * 3


def test_graphs(cuda: EmulatedCuda) -> None:
    x = DeviceArray.of(np.ones(4, np.float32))
    kernel = kernel_of(programs.scale(), "scale", SCALE, num_warps=1)[(1, 1, 1)]
    kernel(x, 4, 1.0)
    graph = cuda_device.CUDAGraph()
    with pytest.raises(RuntimeError, match="after its capture has ended"):
        graph.replay()
    with cuda_device.graph(graph):
        kernel(x, 4, 2.0)
        kernel(x, 4, 3.0)
    assert (x.numpy() == 1).all()
    graph.replay()
    graph.replay()
    assert (x.numpy() == 36).all()


def test_an_error_while_recording_leaves_the_stream_usable(cuda: EmulatedCuda) -> None:
    side, graph = cuda_device.Stream(), cuda_device.CUDAGraph()
    with cuda_device.stream(side), pytest.raises(ZeroDivisionError), cuda_device.graph(graph):
        raise ZeroDivisionError
    assert not cuda.captures
    side.synchronize()


def test_peak_rates_come_from_the_device(cuda: EmulatedCuda) -> None:
    assert round(testing.get_dram_gbps()) == 4917
    assert 900 < testing.get_max_tensorcore_tflops(tl.float16, 1_830_000) < 1050


def test_do_bench_cudagraph_proton_replays_a_graph_of_one_call(
    cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profiler, which CUPTI needs to see graphs, measures the replays."""
    call, measured = launches(cuda, 2), []

    def kernel_times(replay: Any, warmup: float, rep: float, grads: Any) -> list[float]:
        before = call.count, cuda.clock
        replay()
        cuda_device.synchronize()
        measured.append((warmup, rep, grads, call.count - before[0], cuda.clock - before[1]))
        return [3.0, 1.0, 2.0]

    monkeypatch.setattr("tilework.inspect.profiler.kernel_times.kernel_times", kernel_times)
    assert testing.do_bench_cudagraph_proton(call, rep=6) == 2.0
    assert testing.do_bench_cudagraph_proton(call, return_mode="all") == [3.0, 1.0, 2.0]
    assert testing.do_bench_cudagraph_proton(call, quantiles=[0.5]) == 2.0
    assert measured == [(0, 6, (), 0, 2.0), *[(0, 20, (), 0, 2.0)] * 2]
    with pytest.raises(AssertionError, match="return_mode must be one of"):
        testing.do_bench_cudagraph_proton(call, return_mode="fastest")


def test_graphs_are_captured_without_garbage_collection(cuda: EmulatedCuda) -> None:
    assert gc.isenabled()
    x = DeviceArray.of(np.ones(4, np.float32))
    kernel = kernel_of(programs.scale(), "scale", SCALE, num_warps=1)[(1, 1, 1)]
    kernel(x, 4, 1.0)
    graph = cuda_device.CUDAGraph()
    with testing.cuda_graph_without_gc(graph):
        assert not gc.isenabled()
        kernel(x, 4, 2.0)
    assert gc.isenabled()
    graph.replay()
    assert (x.numpy() == 2).all()
    with pytest.raises(ZeroDivisionError), testing.cuda_graph_without_gc(cuda_device.CUDAGraph()):
        raise ZeroDivisionError
    assert gc.isenabled() and not cuda.captures
    gc.disable()
    try:
        with testing.cuda_graph_without_gc(cuda_device.CUDAGraph()):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
