"""The device follows the arguments: the emulated CUDA library is the GPU, NumPy arrays are the host's."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.hidden_gpu import no_gpu_for_torch
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices.active_driver import DriverConfig, default_driver
from tilework.runtime.devices.active_driver import driver as drivers
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.targets.nvidia import libcuda
from tilework.tools.tensor_descriptor import TensorDescriptor


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedCuda]:
    """A machine with two GPUs and no setting about devices."""
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    monkeypatch.delenv("TILEWORK_DEVICE", raising=False)
    library = EmulatedCuda(2)
    monkeypatch.setattr(libcuda.FOUND, "found", None)
    libcuda.FOUND.use(library)
    names = ("_default", "_active", "_host", "_follows")
    before = {name: getattr(drivers, name) for name in names}
    with knobs.cache.scope(), knobs.runtime.scope(), no_gpu_for_torch():
        knobs.cache.dir = str(tmp_path)
        del knobs.runtime.device
        vars(drivers).update(dict.fromkeys(names), _follows=True)
        yield library
    vars(drivers).update(before)
    for kernel in (double, scalar_only):
        kernel.device_caches.clear()
        kernel.__dict__.pop("_bind_grid", None)


@tilework.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


@tilework.jit
def scalar_only(n):
    tl.device_assert(n > 0)


def numbers() -> Any:
    return np.arange(100, dtype=np.float32)


def launched(x: Any, out: Any) -> str:
    return double[(2,)](x, out, 100, BLOCK=64).metadata.target.backend


def test_one_kernel_on_both_devices(cuda: EmulatedCuda) -> None:
    """Also again, in machine code, and from another thread; the active driver stays the GPU's."""
    for _ in range(3):
        x, out = numbers(), np.zeros(100, np.float32)
        assert launched(x, out) == "cpu" and (out == 2 * x).all()
        on_gpu, there = DeviceArray.of(x), DeviceArray(100, np.float32)
        assert launched(on_gpu, there) == "cuda" and (there.numpy() == 2 * x).all()
        assert type(drivers.active) is CudaDriver
    assert len(cuda.launches) == 3
    assert len(double.device_caches) == 2 and set(double.device_caches) == {0, ("cpu", 0)}
    found: list[str] = []
    worker = threading.Thread(target=lambda: found.append(launched(numbers(), numbers())))
    worker.start()
    worker.join()
    assert found == ["cpu"]


def test_both_run_in_machine_code(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python path, which asks where the arguments are, is taken once for each device."""
    requested: list[Any] = []
    ask = drivers.elsewhere
    monkeypatch.setattr(drivers, "elsewhere", lambda *args: requested.append(args) or ask(*args))
    x, out, on_gpu, there = numbers(), numbers(), DeviceArray.of(numbers()), DeviceArray(100, np.float32)
    counts = []
    for _ in range(4):
        launched(x, out)
        launched(on_gpu, there)
        counts.append(len(requested))
    assert (out == 2 * x).all() and (there.numpy() == out).all() and counts == [counts[0]] * 4


def test_arguments_choose_among_gpus_in_machine_code(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches go to the GPU of their arrays from any other, and leave the current one and its stream alone."""
    requested: list[Any] = []
    ask = drivers.elsewhere
    monkeypatch.setattr(drivers, "elsewhere", lambda *args: requested.append(args) or ask(*args))
    pairs = []
    for device in (0, 1):
        cuda_device.set_device(device)
        pairs.append((DeviceArray.of(numbers()), DeviceArray(100, np.float32)))
    mine = cuda_device.Stream()
    counts = []
    for current in (1, 0, 1, 0):
        cuda_device.set_device(current)
        with cuda_device.stream(mine if current else None):
            for device, pair in enumerate(pairs):
                launched(*pair)
                launch = cuda.launches[-1]
                assert (launch.device, launch.stream) == (device, mine.cuda_stream if current and device else 0)
                assert cuda_device.current_device() == current
        counts.append(len(requested))
    assert counts == [counts[0]] * 4
    for device, (_, out) in enumerate(pairs):
        cuda_device.set_device(device)
        assert (out.numpy() == 2 * numbers()).all()
    cuda_device.set_device(0)
    scalar_only[(1,)](3)
    cuda_device.set_device(1)
    scalar_only[(1,)](3)
    assert [launch.device for launch in cuda.launches[-2:]] == [0, 1]


def test_gpus_that_differ_are_tuned_each(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on disk, where H100 and H200 would be the same target; two that are alike are tuned once."""
    monkeypatch.setattr(knobs.autotuning, "workers", 0)
    seen: list[int] = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        call()
        seen.append(cuda_device.current_device())
        return [float(len(seen))] * 3

    def launch_on(device: int) -> None:
        cuda_device.set_device(device)
        x, out = DeviceArray.of(numbers()), DeviceArray(100, np.float32)
        tuned[(4,)](x, out, 100)
        cuda_device.synchronize()

    tuned: Any = None
    for more, expected, kinds in ((0, [0, 0], 1), (8, [1, 1], 2)):  # device 0 is the same in both
        facts = dict(cuda.facts)

        def attribute(value: Any, number: int, device: int) -> int:
            value._obj.value = facts[number] + (more * device if number == libcuda.MULTIPROCESSORS else 0)  # noqa: B023
            return 0

        monkeypatch.setattr(cuda, "cuDeviceGetAttribute", attribute)
        libcuda.FOUND.use(cuda)
        vars(drivers).update(_default=None, _active=None, _host=None)
        seen.clear()
        for _ in range(2):  # the second finds all on disk
            configs = [tilework.Config({"BLOCK": block}) for block in (32, 64)]
            tuned = tilework.autotune(configs, key=["n"], do_bench=bench, cache_results=True)(tilework.jit(double.fn))
            for device in (0, 1, 0, 1):
                launch_on(device)
        assert seen == expected and len(tuned.cache) == kinds


def test_a_mix_is_an_error_that_names_the_arguments(cuda: EmulatedCuda) -> None:
    with pytest.raises(
        ValueError, match=r"double cannot run on two devices: x_ptr \(cuda:0\) on a GPU, out_ptr in the memory"
    ):
        launched(DeviceArray.of(numbers()), numbers())
    assert not cuda.launches and type(drivers.active) is CudaDriver


def test_kernels_without_memory_and_warmups_are_for_the_gpu(cuda: EmulatedCuda) -> None:
    assert scalar_only[(1,)](3).metadata.target.backend == "cuda"
    kernel = double.warmup(tilework.MockTensor(tl.float32), tilework.MockTensor(tl.float32), 100, BLOCK=64, grid=(1,))
    assert kernel.metadata.target.backend == "cuda"
    assert double.warmup(numbers(), numbers(), 100, BLOCK=64, grid=(1,)).metadata.target.backend == "cpu"


def test_compiled_kernels_run_on_what_they_are_for(cuda: EmulatedCuda) -> None:
    out = numbers()
    kernel = double.warmup(out, out, 100, BLOCK=64, grid=(1,))
    kernel[(2, 1, 1)](numbers(), out, 100, 64)
    assert (out == 2 * numbers()).all() and not cuda.launches


def test_tuning_measures_each_device_by_itself(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs.autotuning, "workers", 1)
    seen: list[str] = []

    def bench(call: Any, quantiles: Any) -> list[float]:
        seen.append(drivers.active.get_current_target().backend)
        call()
        return [1.0, 1.0, 1.0]

    configs = [tilework.Config({"BLOCK": block}) for block in (32, 64)]
    tuned = tilework.autotune(configs, key=["n"], do_bench=bench)(tilework.jit(double.fn))
    grid = lambda meta: (tilework.cdiv(100, meta["BLOCK"]),)
    for _ in range(2):
        on_host = tuned[grid](numbers(), out := numbers(), 100)
        on_gpu = tuned[grid](x := DeviceArray.of(numbers()), there := DeviceArray(100, np.float32), 100)
        assert (out == 2 * numbers()).all() and (there.numpy() == out).all() and x
        assert [kernel.metadata.target.backend for kernel in (on_host, on_gpu)] == ["cpu", "cuda"]
    assert seen == ["cpu", "cpu", "cuda", "cuda"]


def test_a_key_of_the_caches_belongs_to_one_device(cuda: EmulatedCuda) -> None:
    """Also if it is first asked for while a launch on the other one runs."""
    assert type(drivers.active) is CudaDriver
    with drivers.using(drivers._host):
        targets = [double.device_caches[key][2].backend for key in (0, ("cpu", 0))]
    assert targets == ["cuda", "cpu"] and type(drivers.active) is CudaDriver


def test_bound_launches_follow_what_they_are_called_with(cuda: EmulatedCuda) -> None:
    x, out = numbers(), np.zeros(100, np.float32)
    there = DeviceArray(100, np.float32)
    bound = double.bind(x, out, 100, BLOCK=64, grid=(2,))
    for _ in range(3):
        assert bound().metadata.target.backend == "cpu" and (out == 2 * x).all()
        again = bound(x_ptr=(on_gpu := DeviceArray.of(x)), out_ptr=there)
        assert again.metadata.target.backend == "cuda" and (there.numpy() == out).all() and on_gpu
        with pytest.raises(ValueError, match=r"cannot run on two devices: out_ptr .* x_ptr in the memory of the host"):
            bound(out_ptr=there)


def test_tuples_and_descriptors_are_where_their_memory_is(cuda: EmulatedCuda) -> None:
    @tilework.jit
    def scaled(pair, desc, BLOCK: tl.constexpr):
        tl.store(pair[1] + tl.arange(0, BLOCK), tl.load(pair[0] + tl.arange(0, BLOCK)) + tl.sum(desc.load([0])))

    x = np.arange(16, dtype=np.float32)
    kernel = scaled[(1,)]((x, out := np.zeros_like(x)), TensorDescriptor.from_tensor(x, [16]), BLOCK=16)
    assert kernel.metadata.target.backend == "cpu" and (out == x + x.sum()).all()
    with pytest.raises(
        ValueError, match=r"cannot run on two devices: desc .* on a GPU, pair in the memory of the host"
    ):
        scaled[(1,)]((x, out), TensorDescriptor.from_tensor(DeviceArray.of(x), [16]), BLOCK=16)


def test_a_tensor_of_another_gpu_is_used_there(cuda: EmulatedCuda) -> None:
    device = drivers.active
    device.set_current_device(1)
    x, out = DeviceArray.of(numbers()), DeviceArray(100, np.float32)
    device.set_current_device(0)
    assert launched(x, out) == "cuda" and device.get_current_device() == 0
    device.set_current_device(1)
    assert (out.numpy() == 2 * numbers()).all() and 1 in double.device_caches
    device.set_current_device(0)


def test_a_dead_context_leaves_the_host(cuda: EmulatedCuda, tmp_path: Path) -> None:
    """An error at the next call, and at every one after it, says what to do; kernels that were compiled are kept."""
    x, out = DeviceArray.of(numbers()), DeviceArray(10, np.float32)
    launched(x, out)  # writes 90 elements too many
    for call in (out.numpy, lambda: launched(x, out), drivers.active.synchronize):
        with pytest.raises(
            RuntimeError, match=r"illegal memory access.*\nA kernel that was launched before .*TRITON_SANITIZE"
        ):
            call()
    assert launched(numbers(), result := numbers()) == "cpu" and (result == 2 * numbers()).all()
    assert {path.suffix for path in tmp_path.rglob("double.*")} >= {".ptx", ".obj"}
    with pytest.raises(RuntimeError, match="illegal memory access"):
        DeviceArray.of(numbers())


def test_who_decides(cuda: EmulatedCuda) -> None:
    """TILEWORK_DEVICE for everything; a driver that was set, too; Triton's programs have no choice, but with
    ``auto``."""
    x = numbers()
    for requested, said in (
        ("cuda", r"Pointer argument cannot be accessed from Triton \(cpu tensor\?\)"),
        ("native", None),
    ):
        knobs.runtime.device = requested
        vars(drivers).update(_default=None, _active=None, _host=None)
        double.device_caches.clear()
        if said is None:
            assert launched(x, numbers()) == "cpu"
        else:
            with pytest.raises(ValueError, match=said):
                launched(x, numbers())
    del knobs.runtime.device
    os.environ.pop("TILEWORK_DEVICE", None)  # knobs write it
    drivers._default = None
    drivers.set_active(CudaDriver())
    double.device_caches.clear()
    with pytest.raises(ValueError, match="cannot be accessed from Triton"):
        launched(x, numbers())
    drivers.reset_active()
    assert launched(x, numbers()) == "cpu"
    strict = DriverConfig(default_driver)
    strict.only_active()
    assert type(strict.active) is CudaDriver and strict._host is None
    knobs.runtime.device = "auto"
    chosen = DriverConfig(default_driver)
    chosen.only_active()
    assert type(chosen.active) is CudaDriver and type(chosen._host) is CpuDriver


def test_programs_that_import_triton_have_no_choice(warm_cache: Path) -> None:
    text = "import tilework; tilework.as_triton()\nimport triton\nprint(triton.runtime.driver._follows)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
