"""`kernel.bind(...)`: a launch with its arguments in it does what `kernel[grid]` does, on every device."""

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.emulated_hip import emulated_hip
from tilework import Config, knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.hip_driver import DeviceArray as HipArray
from tilework.runtime.devices.host.driver import CpuDriver


def axpy(x, y, n, s=2.0, BLOCK: tl.constexpr = 16):  # pyright: ignore[reportArgumentType]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * s + tl.load(y + i, mask=i < n), mask=i < n)


def programs(meta: Any) -> tuple[int]:
    return (tilework.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.fixture(params=["native", "evaluator", "interpreter", "cuda", "hip"])
def made(
    request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Any, Callable[[Any], Any], Any]]:
    """(a kernel, what makes an array of the device, what reads one)."""
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    if request.param == "cuda":
        with emulated_cuda():
            yield tilework.jit(axpy), DeviceArray.of, lambda array: array.numpy()
        return
    if request.param == "hip":
        with emulated_hip():
            yield tilework.jit(axpy), HipArray.of, lambda array: array.numpy()
        return
    previous = driver._active
    with knobs.runtime.scope():
        if request.param != "interpreter":
            monkeypatch.setenv("TILEWORK_DEVICE", request.param)
            driver.set_active(CpuDriver())
        yield tilework.jit(axpy, interpret=request.param == "interpreter"), np.copy, np.asarray
    driver.set_active(previous)


def test_only_what_changes_is_passed(made: Any) -> None:
    kernel, of, read = made
    ones, ramp = of(np.ones(48, "f4")), of(np.arange(48, dtype="f4"))
    outs = [of(np.zeros(48, "f4")) for _ in range(2)]
    launch = kernel.bind(ones, outs[0], 40, 3.0, BLOCK=16, grid=programs)
    assert read(outs[0]).sum() == 0, "binding launches nothing"
    assert "axpy.bind(x, y, n, s, BLOCK)" in repr(launch)
    expected = np.zeros((2, 48), "f4")

    def check(call: Any, out: int, n: int, added: Any) -> None:
        for _ in range(3):
            call()
            expected[out, :n] += np.broadcast_to(added, 48)[:n]
            assert [read(array).tolist() for array in outs] == expected.tolist()

    check(launch, 0, 40, 3)
    check(lambda: launch(n=8), 0, 8, 3)
    check(lambda: launch(ramp), 0, 40, 3 * np.arange(48))
    check(lambda: launch(ramp, outs[1], 33, 1.0), 1, 33, np.arange(48))
    check(lambda: launch(y=outs[1], s=0.5), 1, 40, 0.5)
    check(lambda: launch(grid=(1,)), 0, 16, 3)
    check(lambda: launch(grid=[2]), 0, 32, 3)
    check(lambda: launch(BLOCK=32, grid=(1,)), 0, 32, 3)
    check(lambda: launch(**{"".join(["n"]): 5}), 0, 5, 3)
    with_default = kernel.bind(ones, outs[0], n=40, grid=3)
    check(with_default, 0, 40, 2)
    check(lambda: with_default(s=5.0), 0, 40, 5)
    if isinstance(kernel, tilework.JITFunction):
        check(lambda: with_default(num_warps=2), 0, 40, 2)


def test_wrong_calls(made: Any) -> None:
    kernel, of, _ = made
    x = of(np.ones(16, "f4"))
    for call, said in (
        (lambda: kernel.bind(x, x, 1, 2.0, 16, 7, grid=(1,)), "takes 5 arguments"),
        (lambda: kernel.bind(x, x, n=1, x=x, grid=(1,)), "two values of x"),
        (lambda: kernel.bind(x, grid=(1,))(), "'y'|missing"),
        (lambda: kernel.bind(x, x, 1, grid=(1,))(x, x=x), "two values of x"),
        (lambda: kernel.bind(x, x, 1, grid=(1,))(*[x] * 9), "takes 5 arguments"),
        (lambda: kernel.bind(x, x, 1, grid=(1,))(n=object()), "object"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            call()
    launch = kernel.bind(x, x, 1, grid=lambda meta: 1 // 0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            launch()


def test_autotuned_kernels_and_heuristics(made: Any) -> None:
    kernel, of, read = made
    ones, out = of(np.ones(40, "f4")), of(np.zeros(40, "f4"))
    configs = [Config({"BLOCK": 16}), Config({"BLOCK": 32})]
    tuned = tilework.autotune(configs, key=["n"], do_bench=lambda call, quantiles: call() or [1.0] * 3)(kernel)
    launch = tuned.bind(ones, out, 40, grid=programs)
    launch()
    before = read(out).copy()
    for _ in range(3):
        launch(s=1.0)
    np.testing.assert_array_equal(read(out) - before, 3)
    computed = tilework.heuristics({"BLOCK": lambda args: 16})(kernel)
    computed.bind(ones, out, 40, grid=programs)(s=1.0)
    np.testing.assert_array_equal(read(out) - before, 4)


def test_it_keeps_what_is_bound_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_DEVICE", "cpu")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    previous = driver._active
    driver.set_active(CpuDriver())
    kernel = tilework.jit(axpy)
    x, y, other, number = np.ones(16, "f4"), np.zeros(16, "f4"), np.zeros(16, "f4"), 12345678
    launch = kernel.bind(x, y, 16, grid=(1,))
    launch()
    launch(y=other, n=number)
    watched = (x, y, other, number, launch, kernel)
    gc.collect()
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(1000):
        launch(y=other, n=number)
        launch(x, grid=lambda meta: (1,))
    gc.collect()
    assert [sys.getrefcount(item) for item in watched] == before
    del launch, watched
    gc.collect()
    assert sys.getrefcount(y) == 2
    assert y.sum() == 16 * 2.0 * 1001
    driver.set_active(previous)
