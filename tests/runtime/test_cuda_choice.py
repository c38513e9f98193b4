"""Choice of the active driver: the host's or a GPU's, by TILEWORK_DEVICE, and with libcuda absent or broken."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tilework import knobs
from tilework.runtime.devices.active_driver import default_driver, registered_drivers
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.hip_driver import HipDriver
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.targets import driver_library
from tilework.targets.cpu.pipeline import device as host_device
from tilework.targets.nvidia import libcuda


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(libcuda.FOUND, "found", None)
    monkeypatch.delenv("TILEWORK_DEVICE", raising=False)
    with knobs.runtime.scope(), knobs.nvidia.scope():
        del knobs.runtime.device
        knobs.nvidia.libcuda_path = "/nowhere/libcuda.so"
        yield


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> EmulatedCuda:
    library = EmulatedCuda()
    monkeypatch.setattr(libcuda.FOUND, "load", lambda: library)
    return library


def test_without_a_gpu_the_host_runs_kernels() -> None:
    assert registered_drivers()[-3:] == [CudaDriver, HipDriver, CpuDriver]
    assert not CudaDriver.is_active() and CpuDriver.is_active() and type(default_driver()) is CpuDriver


def test_a_gpu_that_can_be_used_runs_kernels(gpu: EmulatedCuda) -> None:
    """One driver is active at a time."""
    assert CudaDriver.is_active() and not CpuDriver.is_active() and type(default_driver()) is CudaDriver
    for name in ("native", "evaluator"):
        knobs.runtime.device = name
        assert CpuDriver.is_active() and not CudaDriver.is_active() and type(default_driver()) is CpuDriver


def test_the_gpu_is_requested(gpu: EmulatedCuda) -> None:
    knobs.runtime.device = "cuda"
    assert type(default_driver()) is CudaDriver and not CpuDriver.is_active()
    assert host_device() == "native"  # compiling for the host goes on as before


def test_asking_for_a_gpu_that_is_not_there() -> None:
    knobs.runtime.device = "cuda"
    with pytest.raises(
        RuntimeError, match=r"TILEWORK_DEVICE=cuda asks for an NVIDIA GPU.*/nowhere/libcuda.so.*TRITON_LIBCUDA_PATH"
    ):
        default_driver()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"cuInit": lambda self, flags: 100}, "Triton Error .CUDA.: no capable device"),
        ({"cuDeviceGetCount": lambda self, count: setattr(count._obj, "value", 0) or 0}, "the driver finds no GPU"),
    ],
)
def test_a_driver_without_a_gpu(broken: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    library = type("Broken", (EmulatedCuda,), broken)()
    monkeypatch.setattr(libcuda.FOUND, "load", lambda: library)
    knobs.runtime.device = "cuda"
    assert not CudaDriver.is_active()
    with pytest.raises(RuntimeError, match=said):
        default_driver()


def test_the_library_may_be_a_file_or_a_folder(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "libcuda.so.1"):
        (tmp_path / "libcuda.so.1").write_text("not a library")
        knobs.nvidia.libcuda_path = str(path)
        assert not libcuda.FOUND.is_installed()
        with pytest.raises(RuntimeError, match=r"libcuda\.so\.1.*TRITON_LIBCUDA_PATH names it"):
            libcuda.load()


def test_a_function_that_the_driver_does_not_have(gpu: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EmulatedCuda, "cuStreamCreate", None)
    cuda = libcuda.library()
    with pytest.raises(RuntimeError, match="the driver has no function cuStreamCreate: it is too old"):
        cuda.cuStreamCreate(None, 0)
    with pytest.raises(AttributeError):
        cuda.cuNoSuchFunction  # noqa: B018


def test_structures_have_the_layout_of_the_driver() -> None:
    import ctypes

    config, attribute = driver_library.LaunchConfig, libcuda.LaunchAttribute
    assert ctypes.sizeof(config) == 56 and ctypes.sizeof(attribute) == 72
    assert [getattr(config, name).offset for name in ("grid", "block", "shared", "stream", "attributes",
                                                      "attribute_count")] == [
        0, 12, 24, 32, 40, 48,
    ]  # fmt: skip
    assert (attribute.id.offset, attribute.value.offset) == (0, 8)


def test_a_fork_of_a_process_that_used_cuda_compiles_for_the_gpu(
    gpu: EmulatedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As torch's compile workers do; CUDA itself says there that it is not initialised."""
    monkeypatch.setattr(type(gpu), "cuDeviceGetCount", lambda self, count: 3)
    forked = [True]
    cuda = SimpleNamespace(is_available=lambda: True, _is_in_bad_fork=lambda: forked[0])
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, version=SimpleNamespace(hip=None)))
    assert CudaDriver.is_active() and type(default_driver()) is CudaDriver
    forked[0] = False
    assert not CudaDriver.is_active() and type(default_driver()) is CpuDriver
