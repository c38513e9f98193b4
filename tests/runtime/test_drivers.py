"""Drivers: which is chosen, what they have, and wrappers of tensors."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tests.runtime.fake_gpu import FakeDriver
from tilework import knobs
from tilework.runtime.devices import active_driver as drivers
from tilework.runtime.devices.active_driver import DriverConfig, default_driver
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.runtime.launch.python.wrappers import MockTensor, TensorWrapper, reinterpret
from tilework.targets.base import GPUTarget

ROOT = Path(__file__).parent.parent.parent


def test_the_driver_is_made_at_first_use() -> None:
    config = DriverConfig(lambda: FakeDriver({}))
    assert (config._active, config._default) == (None, None)
    first = config.active
    assert config.active is first is config.default
    other = FakeDriver({})
    config.set_active(other)
    assert config.active is other and config.default is first
    config.reset_active()
    assert config.active is first


def test_importing_makes_no_driver() -> None:
    script = "import tilework; d = tilework.runtime.driver; assert (d._active, d._default) == (None, None)"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, timeout=120)


def usable(name: str, is_usable: bool = True) -> Any:
    return type(name, (), {"is_active": staticmethod(lambda: is_usable), "priority": 1, "selected_by": ()})


def test_no_usable_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["tilework.runtime.devices.active_driver"]
    monkeypatch.setattr(module, "likely_drivers", list)
    missing = type("Missing", (FakeDriver,), {"why_inactive": classmethod(lambda cls: "libmissing.so was not found")})
    monkeypatch.setattr(module, "registered_drivers", lambda: [missing, CpuDriver])
    with pytest.raises(RuntimeError, match=r"^0 active drivers") as none:
        default_driver()
    assert "Missing: libmissing.so was not found\n" in str(none.value) and "CpuDriver: " in str(none.value)
    monkeypatch.setattr(module, "registered_drivers", list)
    with pytest.raises(RuntimeError, match=r"no package declares any"):
        default_driver()
    monkeypatch.setattr(module, "likely_drivers", lambda: [usable("One"), usable("Two"), CpuDriver])
    with pytest.raises(RuntimeError, match=r"2 active drivers ..One, Two"):
        default_driver()
    monkeypatch.setattr(module, "likely_drivers", lambda: [usable("One", False), CpuDriver])
    assert type(default_driver()) is CpuDriver
    monkeypatch.setattr(module, "likely_drivers", lambda: [usable("One"), CpuDriver])
    assert type(default_driver()).__name__ == "One"


METHODS = (
    "get_current_target get_current_device get_current_stream set_current_device get_device_capability"
    " get_active_torch_device get_device_interface get_benchmarker get_empty_cache_for_benchmark clear_cache "
    "launcher_cls utils"
)


@pytest.mark.parametrize("name", METHODS.split())
def test_driver_has(name: str) -> None:
    assert hasattr(CpuDriver(), name)


def test_the_host_as_a_device() -> None:
    host = CpuDriver()
    assert host.get_current_target() == GPUTarget("cpu", "host", 1)
    assert (host.get_current_device(), host.get_current_stream(0), host.get_device_capability()) == (0, 0, ("cpu", 0))
    host.set_current_device(0)
    with pytest.raises(ValueError, match="there is no device 1"):
        host.set_current_device(1)
    buffer = host.get_empty_cache_for_benchmark()
    host.clear_cache(buffer)
    assert not buffer.any() and host.get_benchmarker() is tilework.testing.do_bench
    names = "max_shared_mem max_num_regs multiprocessor_count warpSize sm_clock_rate mem_clock_rate mem_bus_width"
    assert set(host.utils.get_device_properties(0)) == set(names.split())
    assert drivers.driver is tilework.runtime.driver


def test_mock_tensor() -> None:
    mock = MockTensor("fp32")
    assert (mock.dtype, mock.shape, mock.data_ptr(), mock.stride()) == ("fp32", [1], 0, (1,))
    assert MockTensor("fp32", [2, 3, 4]).stride() == (12, 4, 1) and MockTensor.ptr_range() == 0


def test_reinterpret_numpy() -> None:
    base = np.array([[1.0, 2.0], [3.0, 4.0]], "f4")
    view = reinterpret(base, tl.int32)
    assert (view.dtype, view.shape, view.stride(), view.stride(0), view.element_size()) == (
        tl.int32,
        (2, 2),
        (2, 1),
        2,
        4,
    )
    assert view.base is base and view.data_ptr() == base.ctypes.data and view.cpu().base is base
    twin = view.clone()
    assert twin.base is not base and (twin.base == base).all()
    twin.base[:] = 9
    view.copy_(twin)
    assert (base == 9).all() and "TensorWrapper" in str(view)
    assert view.new_empty((3,)).shape == (3,)
    assert reinterpret(view, base.dtype) is base and isinstance(reinterpret(view, tl.uint32), TensorWrapper)
    for other in ([1.0], 5, "text", SimpleNamespace(dtype=1)):
        with pytest.raises(TypeError, match="Cannot reinterpret"):
            reinterpret(other, tl.int32)


def test_reinterpret_launches() -> None:
    @tilework.jit
    def bits(p, q):
        tl.store(q, tl.load(p))

    out = np.zeros(1, "i4")
    for _ in range(2):
        bits[(1,)](reinterpret(np.ones(1, "f4"), tl.int32), out)
        assert out[0] == 0x3F800000


def test_reinterpret_torch() -> None:
    torch = pytest.importorskip("torch")
    base = torch.ones(2, 2)
    view = reinterpret(base, torch.int32)
    assert view.stride() == (2, 1) and view.device == base.device and view.to("cpu").base.equal(base)
    assert view.new_empty((3,)).base.shape == (3,) and reinterpret(view, torch.float32) is base
    twin = view.clone()
    twin.base.zero_()
    view.copy_(twin)
    assert not base.any()


def test_a_reinterpreted_array_has_the_attributes_of_a_tensor() -> None:
    base = np.arange(6, dtype="f4").reshape(2, 3)
    view = tilework.reinterpret(base, tl.int32)
    assert isinstance(view, tilework.TensorWrapper) and view.base is base and view.dtype == tl.int32
    assert view.shape == (2, 3) and view.stride() == (3, 1) and view.element_size() == 4
    assert view.data is not None and view.data_ptr() == base.ctypes.data and view.device is not None
    assert tilework.reinterpret(view, np.dtype("f4")) is base, "back to what it was"
    other = tilework.reinterpret(view, tl.uint32)
    assert other.base is base and other.dtype == tl.uint32


@pytest.mark.parametrize(
    ("arch", "is_hopper", "is_mi300"), [("sm_80", False, False), ("sm_90", True, False), ("gfx942", False, True)]
)
def test_target_info_on_the_host_is_of_the_active_driver(arch: str, is_hopper: bool, is_mi300: bool) -> None:
    with emulator(arch):
        assert tl.target_info.current_target() == drivers.driver.active.get_current_target()
        assert tl.target_info.cuda_capability_geq(9, 0) == is_hopper
        assert tl.target_info.is_hip_cdna3() == is_mi300
        assert tl.target_info.is_cuda() == arch.startswith("sm_")


def test_target_info_in_the_interpreter_has_no_target() -> None:
    found = []

    @tilework.constexpr_function
    def note() -> int:
        found.append(tl.target_info.current_target())
        return 0

    def kernel() -> None:
        note()

    with emulator("sm_90"), knobs.runtime.scope():
        knobs.runtime.interpret = True
        tilework.jit(kernel)[(1,)]()
    assert found == [None]


def test_target_info_without_a_driver_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise RuntimeError("0 active drivers")

    monkeypatch.setattr("tilework.runtime.devices.active_driver.driver", DriverConfig(none))
    assert tl.target_info.current_target() is None and not tl.target_info.is_cuda()
