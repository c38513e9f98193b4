"""AMD GPUs through an emulated libamdhip64: values of kernels, launches in machine code, and every way in which a call
can fail."""

import ctypes
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulated_hip import emulated_hip
from tilework import knobs
from tilework.errors import DoesNotFit, OutOfResources
from tilework.runtime.devices import dlpack
from tilework.runtime.devices.active_driver import default_driver, driver
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.emulated.emulated_libhip import EmulatedHip
from tilework.runtime.devices.gpu.gpu_driver import GpuDriver
from tilework.runtime.devices.hip_driver import GPUS as hip_device
from tilework.runtime.devices.hip_driver import DeviceArray, HipDriver
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.runtime.launch.native import machine as native_machine
from tilework.runtime.tuning.autotuner import refusing_misfits
from tilework.target import GPUTarget
from tilework.targets.amd import libhip
from tilework.tools.tensor_descriptor import TensorDescriptor

FACTOR = tl.constexpr(3)


@tilework.jit
def scaled(p, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, tl.load(p + i, mask=i < n) * FACTOR + a, mask=i < n)


@tilework.jit
def sums(x, out, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, 4), tl.arange(0, BLOCK)
    tl.store(out + rows, tl.sum(tl.load(x + rows[:, None] * BLOCK + columns[None, :]), 1))


@tilework.jit
def tiles(source, target, row):
    target.store([row, 0], source.load([row, 0]) * 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hip")  # of all tests: a kernel is compiled once


def forget() -> None:
    for kernel in (scaled, sums, tiles):
        kernel.device_caches.clear()
        kernel.__dict__.pop("_bind_grid", None)


@pytest.fixture
def hip(folder: Path) -> Iterator[EmulatedHip]:
    with knobs.cache.scope(), emulated_hip(devices=2) as library:
        knobs.cache.dir = str(folder)
        forget()
        yield library
    forget()


def ramp(count: int = 100, dtype: str = "f4") -> DeviceArray:
    return DeviceArray.of(np.arange(count).astype(dtype))


def python_calls(kernel: Any) -> list[int]:
    """Counts what launches of a kernel that was bound take the Python path."""
    state, seen = kernel[(1,)].__self__[0], list[int]()
    python = state[0]
    state[0] = lambda *args, **kwargs: seen.append(1) or python(*args, **kwargs)
    return seen


# values


def test_values_and_what_a_kernel_reports(hip: EmulatedHip) -> None:
    x = ramp()
    kernel = scaled[(2,)](x, 100, 0.5, BLOCK=64)
    assert hip.launches and (hip.devices[0].memory.read(x.data_ptr(), 400) == np.arange(100, dtype="f4").tobytes())
    np.testing.assert_array_equal(x.numpy(), np.arange(100, dtype="f4") * 3 + np.float32(0.5))
    assert list(kernel.asm) == ["source", "ttir", "ttgir", "llir", "hsaco"] and kernel.asm["amdgcn"].count("s_endpgm")
    assert kernel.n_regs > 0 and kernel.n_spills == 0 and kernel.n_max_threads == 256
    launched = hip.launches[0]
    assert (launched.grid, launched.block, launched.shared) == ((2, 1, 1), (256, 1, 1), 0)
    assert [len(value) for value in launched.parameters] == [8, 4, 4, 8, 8] and not any(launched.parameters[4])


def test_shared_memory_and_descriptors(hip: EmulatedHip) -> None:
    x, out = ramp(256), DeviceArray(4, "f4")
    kernel = sums[(1,)](x, out, BLOCK=64, num_warps=2)
    np.testing.assert_array_equal(out.numpy(), np.arange(256, dtype="f4").reshape(4, 64).sum(1))
    assert hip.launches[-1].shared == kernel.metadata.shared
    source, target = (DeviceArray.of(np.arange(128, dtype="f4").reshape(4, 32) * k) for k in (1, 0))
    tiles[(1,)](*(TensorDescriptor(one, [4, 32], [32, 1], [2, 32]) for one in (source, target)), 2)
    expected = np.arange(128).reshape(4, 32) * 2 * (np.arange(4)[:, None] >= 2)
    np.testing.assert_array_equal(target.numpy(), expected)


def test_waves_of_32_lanes(folder: Path) -> None:
    with knobs.cache.scope(), emulated_hip(arch="gfx1100") as hip:
        knobs.cache.dir = str(folder)
        forget()
        assert driver.active.get_current_target() == GPUTarget("hip", "gfx1100", 32)
        x, out = ramp(256), DeviceArray(4, "f4")
        sums[(1,)](x, out, BLOCK=64)
        np.testing.assert_array_equal(out.numpy(), np.arange(256, dtype="f4").reshape(4, 64).sum(1))
        assert hip.launches[0].block == (128, 1, 1)
    forget()


class Exported:
    """An array of a library that says where it is through DLPack only."""

    dtype = tl.float32

    def __init__(self, base: DeviceArray) -> None:
        self.base, self.requested = base, list[int]()
        self.tensor = dlpack.Tensor(base.data_ptr(), dlpack.ROCM, 0, 1, 2, 32, 1, None, None, 0)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.ROCM, 0

    def __dlpack__(self, *, stream: int) -> Any:
        self.requested.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


def test_arrays_of_other_libraries(hip: EmulatedHip) -> None:
    x = Exported(ramp())
    scaled[(2,)](x, 100, 0.5, BLOCK=64)
    assert (x.base.numpy() == np.arange(100) * 3 + 0.5).all()
    assert {*x.requested} == {0}  # DLPack's name for the default stream of ROCm; CUDA's is 1


# launches in machine code


def test_the_second_launch_is_native(hip: EmulatedHip) -> None:
    assert native_machine.machine() is not None
    x, other, side = ramp(), ramp(), hip_device.Stream()
    scaled[(2,)](x, 100, 0.5, BLOCK=64)
    slow = python_calls(scaled)
    with hip_device.stream(side):
        scaled[(3,)](other, 90, 2.5, BLOCK=64)
    native = hip.launches.pop()
    assert not slow and native.stream == side.cuda_stream and native.grid == (3, 1, 1)
    with hip_device.stream(side):
        scaled.run(other, 90, 2.5, BLOCK=64, grid=(3,), warmup=False)
    assert hip.launches.pop() == native
    side.synchronize()
    assert (x.numpy()[:90] == np.arange(90) * 3 + 0.5).all()  # the default stream, which runs now
    scaled[(2,)](ramp(100, "i4"), 100, 1, BLOCK=64)
    assert slow == [1]
    with pytest.raises(libhip.HipError, match=r"Code: 1, Messsage: invalid argument \[launch of scaled: 1 x 70000 x 1"):
        scaled[(1, 70000)](x, 100, 0.5, BLOCK=64)
    scaled[(1, 0)](x, 100, 0.5, BLOCK=64)  # nothing to do


def test_hooks_and_changed_globals_take_the_python_path(hip: EmulatedHip, monkeypatch: pytest.MonkeyPatch) -> None:
    x = ramp()
    kernel = scaled[(1,)](x, 64, 0.5, BLOCK=64)
    slow, seen = python_calls(scaled), list[Any]()
    enter = lambda data: seen.append(data.get())  # noqa: E731
    knobs.runtime.launch_enter_hook.add(enter)
    try:
        scaled[(1,)](x, 64, 0.5, BLOCK=64)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
    assert seen == [{"name": "scaled", "function": kernel.function, "stream": 0}] and slow == [1]
    for _ in range(2):
        scaled[(1,)](x, 64, 0.5, BLOCK=64)
    assert slow == [1]  # in machine code again
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(5))
    with pytest.raises(RuntimeError, match="FACTOR"):
        scaled[(1,)](x, 64, 0.5, BLOCK=64)


def test_a_cooperative_grid_and_a_kernel_that_is_kept(hip: EmulatedHip) -> None:
    x = ramp()
    for _ in range(2):
        kernel = scaled[(1,)](x, 64, 0.5, BLOCK=64, launch_cooperative_grid=True)
    first, second = hip.launches
    assert first == second and first.attributes
    run = kernel.run
    for _ in range(2):
        run(1, 1, 1, 0, kernel.function, None, None, None, None, x, 64, 0.5, 64)
    assert hip.launches[2] == hip.launches[3] == first
    kernel[(1, 1, 1)](x, 64, 0.5, 64)
    assert hip.launches.pop() == first


def test_a_cooperative_grid_on_a_device_without(hip: EmulatedHip) -> None:
    hip.facts["cooperativeLaunch"] = 0
    x, said = ramp(), "^Cooperative launch requested but not supported by device: scaled$"
    with pytest.raises(AssertionError, match=said):
        scaled[(1,)](x, 64, 0.5, BLOCK=32, launch_cooperative_grid=True)
    scaled[(1,)](x, 64, 0.5, BLOCK=32)
    assert len(hip.launches) == 1


# devices, streams, threads, time


def test_two_devices_and_threads(hip: EmulatedHip) -> None:
    results: dict[int, Any] = {}
    streams = []

    def work(number: int) -> None:
        hip_device.set_device(number)
        x, side = ramp(), hip_device.Stream()
        with hip_device.stream(side):
            for _ in range(2):
                scaled[(2,)](x, 100, 0.5, BLOCK=64)
            results[number] = x.numpy()
        streams.append(side)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
        thread.join()
    expected = (np.arange(100, dtype="f4") * 3 + np.float32(0.5)) * 3 + np.float32(0.5)
    assert [(results[number] == expected).all() for number in (0, 1)] == [True, True]
    assert sorted(launch.device for launch in hip.launches) == [0, 0, 1, 1]
    assert {launch.stream for launch in hip.launches} == {stream.cuda_stream for stream in streams}
    active = driver.active
    assert active.get_current_device() == 0 and active.device_kind() is None
    with pytest.raises(ValueError, match="there is no HIP device 2: this machine has 2"):
        active.set_current_device(2)


def test_events_graphs_and_do_bench(hip: EmulatedHip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilework.runtime.devices.gpu.gpu_driver.FLUSH_BYTES", 1 << 12)
    x, launch = ramp(), lambda: scaled[(1,)](x, 64, 0.5, BLOCK=64)
    assert tilework.testing.do_bench(launch, warmup=1, rep=2) == 1.0
    graph = hip_device.CUDAGraph()
    with hip_device.graph(graph):
        launch()
    before = x.numpy()
    graph.replay()
    assert (x.numpy()[:64] == before[:64] * 3 + np.float32(0.5)).all() and (x.numpy()[64:] == before[64:]).all()
    assert tilework.testing.do_bench_cudagraph(launch, rep=2) == 1.0


# the driver object


def test_the_driver_object(hip: EmulatedHip, monkeypatch: pytest.MonkeyPatch) -> None:
    active = driver.active
    assert active.get_current_target() == GPUTarget("hip", "gfx942", 64)
    assert active.get_device_interface() is hip_device
    found = active.utils.get_device_properties(0)
    assert list(found) == list(libhip.PROPERTIES) and found["arch"] == "gfx942:sramecc+:xnack-"
    assert (found["max_shared_mem"], found["warpSize"], found["multiprocessor_count"]) == (65536, 64, 304)
    types = {"*fp32": "hipDeviceptr_t", "i1": "int8_t", "fp32": "double", "tensordesc<fp16[8]>": "TDMDescriptor"}
    assert {type: active.map_python_to_cpp_type(type) for type in types} == types
    monkeypatch.setattr(knobs.runtime, "override_arch", "gfx90a")
    assert active.get_current_target() == GPUTarget("hip", "gfx90a", 64)


def test_torch_for_rocm_decides(hip: EmulatedHip, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, _is_in_bad_fork=lambda: False)
    cuda.current_device = None  # it is not asked, which would take longer
    native = SimpleNamespace(_cuda_getDevice=lambda: 1, _cuda_getCurrentRawStream=lambda device: 7000 + device)
    torch = SimpleNamespace(cuda=cuda, _C=native, device=lambda *args: args, version=SimpleNamespace(hip="7.0"))
    monkeypatch.setitem(sys.modules, "torch", torch)
    active = HipDriver()
    assert (active.get_current_device(), active.get_current_stream(), active.get_device_interface()) == (1, 7001, cuda)
    assert active.get_active_torch_device() == ("cuda", 1)
    knobs.runtime.device = None
    assert HipDriver.is_active() and not CudaDriver.is_active()
    torch.version.hip = None  # torch uses GPUs of another vendor
    assert not HipDriver.is_active()
    assert HipDriver().get_current_device() == 0


def test_torch_decides_nothing_about_a_vendor_that_it_does_not_know(
    hip: EmulatedHip, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OtherDriver(HipDriver):
        torch_build = GpuDriver.torch_build

    cuda = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, current_device=lambda: 1)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, version=SimpleNamespace(hip=None)))
    assert OtherDriver().get_current_device() == 0 and OtherDriver().get_device_interface() is OtherDriver.gpus
    assert OtherDriver.is_active()  # TILEWORK_DEVICE requests it
    knobs.runtime.device = None
    assert not OtherDriver.is_active()  # torch uses the GPUs of another vendor


# what goes wrong


def test_memory_of_the_host_is_refused(hip: EmulatedHip) -> None:
    with pytest.raises(ValueError, match=r"Pointer argument \(at 0\) cannot be accessed from Triton \(cpu tensor\?\)"):
        scaled[(1,)](np.zeros(64, "f4"), 64, 0.5, BLOCK=64)
    assert hip.forgotten == 1  # or the next call would fail
    with pytest.raises(TypeError, match="missing"):
        scaled[(1,)](ramp(), 64, BLOCK=64)
    kernel = scaled.warmup(ramp(), 64, 0.5, BLOCK=64, grid=(1,))
    with pytest.raises(TypeError, match="takes 4 arguments, constants included, and is given 2"):
        kernel[(1, 1, 1)](ramp(), 64)


def test_too_much_lds_and_too_many_threads(hip: EmulatedHip) -> None:
    x, out = ramp(256), DeviceArray(4, "f4")
    driver.active.utils.get_device_properties(0)["max_shared_mem"] = 4
    with pytest.raises(OutOfResources, match=r"shared memory, Required: .*, Hardware limit: 4"):
        sums[(1,)](x, out, BLOCK=64, num_warps=2)
    with refusing_misfits(sums), pytest.raises(DoesNotFit, match=r"shared memory, Required: .*, Hardware limit: 4"):
        sums.warmup(x, out, BLOCK=128, num_warps=2, grid=(1,))
    configs = [tilework.Config({}, num_warps=warps) for warps in (32, 2)]  # the first is for waves of 32 lanes
    tuned = tilework.autotune(configs, key=[], do_bench=lambda call, quantiles: call() or [1.0] * 3)(scaled)
    tuned[(1,)](x, 64, 0.5, BLOCK=64)
    assert tuned.best_config.num_warps == 2


FAILURES = {
    "hipMalloc": lambda: DeviceArray(8),
    "hipStreamCreateWithFlags": hip_device.Stream,
    "hipEventCreateWithFlags": hip_device.Event,
    "hipDeviceSynchronize": hip_device.synchronize,
    "hipGetDevicePropertiesR0600": lambda: HipDriver().get_current_target(),
    "hipModuleLoadDataEx": lambda: HipDriver().load_binary("k", b"\x7fELF", 0, 0),
    "hipMemcpyHtoDAsync": ramp,
    "hipGetDeviceCount": hip_device.device_count,
}


@pytest.mark.parametrize("name", FAILURES)
def test_the_call_that_failed_is_named(hip: EmulatedHip, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(EmulatedHip, name, lambda self, *args: 2)
    libhip.FOUND.use(hip)
    reported = "loading k" if "Module" in name else name
    with pytest.raises(libhip.HipError) as caught:
        FAILURES[name]()
    assert (
        str(caught.value) == f"Triton Error [HIP]:  Code: 2, Messsage: out of memory ({reported})"
        and caught.value.code == 2
    )


def test_binaries_that_cannot_be_loaded(hip: EmulatedHip) -> None:
    data = scaled.warmup(ramp(), 64, 0.5, BLOCK=64, grid=(1,)).asm["hsaco"]
    load = driver.active.utils.load_binary
    with pytest.raises(RuntimeError, match="its last stage is no code object"):
        load("scaled", b"; text", 0, 0)
    with pytest.raises(
        RuntimeError, match=r"Code: 500, Messsage: named symbol not found .no kernel 'other' in the binary"
    ):
        load("other", data, 0, 0)
    with pytest.raises(RuntimeError, match="Code: 200, Messsage: device kernel image is invalid"):
        load("scaled", b"\x7fELF", 0, 0)
    hip.arch = "gfx90a"
    with pytest.raises(RuntimeError, match=r"Code: 209, .*it is for gfx942.*, the device is gfx942:sramecc"):
        load("scaled", data, 0, 0)


def test_a_kernel_that_fails_is_reported_by_the_next_call(hip: EmulatedHip) -> None:
    x = ramp(4)
    scaled[(100,)](x, 10**6, 0.5, BLOCK=64)
    with pytest.raises(
        libhip.HipError, match="Code: 700, Messsage: an illegal memory access was encountered"
    ) as caught:
        hip_device.synchronize()
    assert "A kernel that was launched before did this" in str(caught.value)


def test_a_kernel_that_checks_itself(hip: EmulatedHip) -> None:
    x = ramp(60)
    with pytest.raises(IndexError, match="element 60 of argument 'p', which has 60 elements"):
        scaled[(1,)](x, 64, 0.5, BLOCK=64, sanitize=True)
    assert (x.numpy() == np.arange(60) * 3 + 0.5).all()


def test_the_checks_for_a_gpu_pass(hip: EmulatedHip, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.device.table.CHECKS", [])
    monkeypatch.setattr("tilework.runtime.devices.gpu.gpu_driver.FLUSH_BYTES", 1 << 12)
    from tests.device import check_hip, table

    names = (
        "the_library launches_through_python_and_in_machine_code streams_graphs_and_time a_cooperative_grid "
        "what_is_refused every_device"
    )
    table.CHECKS[:] = [(name, getattr(check_hip, name)) for name in names.split()]
    check_hip.scale.device_caches.clear()
    assert table.run([], "emulated") == 0


# the library


@pytest.fixture
def unfound(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(libhip.FOUND, "found", None)
    monkeypatch.delenv("TILEWORK_DEVICE", raising=False)
    with knobs.runtime.scope(), knobs.amd.scope():
        knobs.runtime.device = "hip"
        yield


def test_no_library(unfound: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROCM_PATH", "/somewhere/rocm")
    with pytest.raises(RuntimeError) as caught:
        default_driver()
    reported = str(caught.value)
    assert reported.startswith(
        "TILEWORK_DEVICE=hip asks for an AMD GPU, and none can be used: cannot locate libamdhip64.so after"
    )
    assert "'/somewhere/rocm/lib/libamdhip64.so'" in reported and "set TRITON_LIBHIP_PATH" in reported
    knobs.runtime.device = None
    assert not HipDriver.is_active() and type(default_driver()) in (CpuDriver, CudaDriver)
    knobs.amd.libhip_path = str(tmp_path / "libhip.so")
    with pytest.raises(
        RuntimeError, match=r"TRITON_LIBHIP_PATH '.*libhip.so' does not point to a valid libamdhip64.so"
    ):
        libhip.load()
    (tmp_path / "libamdhip64.so").write_text("not a library")
    knobs.amd.libhip_path = str(tmp_path / "libamdhip64.so")
    with pytest.raises(RuntimeError, match=r"libamdhip64.so cannot be loaded: "):
        libhip.load()


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (
            {"hipGetDeviceCount": lambda self, count: 100},
            "Code: 100, Messsage: no capable device is detected (hipGetDeviceCount)",
        ),
        ({"hipGetDeviceCount": lambda self, count: 0}, "the driver finds no GPU"),
        ({"hipGetDeviceCount": None}, "the driver has no function hipGetDeviceCount: it is too old, update it"),
        (
            {"hipDriverGetVersion": lambda self, version: setattr(version._obj, "value", 50_731_921) or 0},
            "libamdhip64 version 5.7.31921 is not supported! Required major version is >=6.",
        ),
    ],
)
def test_libraries_that_cannot_be_used(
    unfound: None, broken: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libhip.FOUND, "load", type("Broken", (EmulatedHip,), broken))
    with pytest.raises(RuntimeError) as caught:
        default_driver()
    assert said in str(caught.value)


def test_names_and_structures_are_those_of_the_library() -> None:
    assert {*libhip.NAMES.values()} <= libhip.FUNCTIONS.keys()
    assert max(index for index, _ in libhip.PROPERTIES.values()) + 256 <= libhip.PROPERTY_BYTES == 1472
    assert ctypes.sizeof(ctypes.c_void_p) == 8
