"""The object that represents NVIDIA GPUs, on the emulated driver."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.runtime import cuda_programs as programs
from tests.runtime.cuda_fixture import SCALE, expect_scaled, ramp, scale
from tests.runtime.cuda_programs import TARGET, kernel_of
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import libcuda

# -- 6.11 hooks ----------------------------------------------------------------------------------------------------


def test_6_11_hooks_see_the_function_and_the_stream(cuda: EmulatedCuda) -> None:
    seen: list[dict[str, Any]] = []
    loads: list[tuple[Any, ...]] = []
    enter = lambda data: seen.append(data.get())  # noqa: E731
    loaded = lambda *args: loads.append(args)  # noqa: E731
    knobs.runtime.launch_enter_hook.add(enter)
    knobs.runtime.kernel_load_end_hook.add(loaded)
    try:
        kernel = scale[(1,)](ramp(), 100, 2.0)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
        knobs.runtime.kernel_load_end_hook.remove(loaded)
    assert seen == [{"name": "scale", "function": kernel.function, "stream": 0}]
    assert loads[0][:3] == (kernel.module, kernel.function, "scale")


# -- 6.17 the driver object ----------------------------------------------------------------------------------------


def test_6_17_target_device_and_capability(cuda: EmulatedCuda) -> None:
    active: Any = driver.active
    assert active.get_current_target() == TARGET == GPUTarget("cuda", 90, 32)
    assert (active.get_current_device(), active.get_current_stream(0), active.get_current_stream()) == (0, 0, 0)
    assert active.get_device_capability() == active.get_device_capability(0) == (9, 0)
    assert active.get_device_interface() is cuda_device
    active.synchronize()


def test_6_17_another_device(tmp_path: Path) -> None:
    with emulated_cuda(devices=2) as cuda:
        active = driver.active
        active.set_current_device(1)
        assert active.get_current_device() == cuda_device.current_device() == 1
        x = ramp()
        kernel_of(programs.scale(), "scale", SCALE)[(1, 1, 1)](x, 100, 2.0)
        expect_scaled(x)
        assert x.device == 1 and cuda.devices[1].thread_instructions and not cuda.devices[0].thread_instructions
        with pytest.raises(ValueError, match="there is no CUDA device 2: this machine has 2"):
            active.set_current_device(2)
        active.set_current_device(0)
        assert active.get_current_device() == 0


def test_6_17_properties(cuda: EmulatedCuda) -> None:
    names = "max_shared_mem max_num_regs multiprocessor_count warpSize sm_clock_rate mem_clock_rate mem_bus_width"
    found = driver.active.utils.get_device_properties(0)
    assert list(found) == names.split() and found["max_shared_mem"] == 232448 and found["multiprocessor_count"] == 132
    assert driver.active.utils.get_device_properties(0) is found
    with pytest.raises(RuntimeError, match=r"Triton Error \[CUDA\]: invalid device ordinal"):
        driver.active.utils.get_device_properties(7)


def test_6_17_printf_fifo(cuda: EmulatedCuda) -> None:
    utils: Any = driver.active.utils
    utils.set_printf_fifo_size(8 << 20)
    assert cuda.limits[libcuda.LIMIT_PRINTF_FIFO] == 8 << 20


def test_6_17_types_in_c(cuda: EmulatedCuda) -> None:
    names = {
        "*fp32": "CUdeviceptr",
        "i32": "int32_t",
        "u64": "uint64_t",
        "fp32": "double",
        "tensordesc<fp16[8]>": "CUtensorMap",
    }
    assert {type: driver.active.map_python_to_cpp_type(type) for type in names} == names


def test_6_17_torch_decides_where_it_is_in_use(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = SimpleNamespace(cuda_stream=5)
    usable = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: False, current_stream=lambda device: stream
    )
    usable.current_device, usable.set_device = lambda: 1, lambda device: None
    torch = SimpleNamespace(cuda=usable, device=lambda *args: args)
    monkeypatch.setitem(sys.modules, "torch", torch)
    active: Any = driver.active
    assert active.get_device_interface() is usable
    assert (active.get_current_device(), active.get_current_stream(0)) == (0, 0)
    usable.is_initialized = lambda: True
    plain = CudaDriver()  # a torch without the functions that are asked for their speed
    assert (plain.get_current_device(), plain.get_current_stream()) == (1, 5)
    torch._C = SimpleNamespace(_cuda_getCurrentRawStream=lambda device: 7000 + device, _cuda_getDevice=lambda: 3)
    assert (active.get_current_device(), active.get_current_stream(2), active.get_current_stream()) == (3, 7002, 7003)
    assert active.get_active_torch_device() == ("cuda", 3)


def test_6_17_errors_of_the_driver(cuda: EmulatedCuda) -> None:
    x = ramp(4)
    kernel_of(programs.scale(), "scale", SCALE)[(1, 1, 1)](x, 10**9, 2.0)  # far behind the end
    with pytest.raises(RuntimeError, match=r"^Triton Error \[CUDA\]: an illegal memory access") as caught:
        cuda_device.synchronize()
    assert isinstance(caught.value, libcuda.CudaError) and caught.value.code == 700
    with pytest.raises(
        RuntimeError, match=r"^Triton Error \[CUDA\]: an illegal memory access .* \[launch of scale: 1 x 1 x 1"
    ):
        kernel_of(programs.scale(), "scale", SCALE)[(1, 1, 1)](x, 4, 2.0)


def test_6_17_too_much_memory() -> None:
    with emulated_cuda(capacity=1 << 20), pytest.raises(RuntimeError, match=r"^Triton Error \[CUDA\]: out of memory"):
        DeviceArray(1 << 21)


def test_device_arrays(cuda: EmulatedCuda) -> None:
    x = DeviceArray((2, 3), np.float64)
    x.fill(0)
    assert (x.numpy() == 0).all() and x.numpy().shape == (2, 3)
    x.copy_from(np.arange(6.0).reshape(2, 3))
    assert (x.numpy() == np.arange(6.0).reshape(2, 3)).all()
    with pytest.raises(ValueError, match="8 bytes cannot fill an array of 48"):
        x.copy_from(np.zeros(1))
    allocations = len(cuda.devices[0].memory.starts)
    del x
    assert len(cuda.devices[0].memory.starts) == allocations - 1
