"""Backends, drivers and scratch memory under the names Triton gives them."""

import contextvars
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import tilework
from tilework import knobs
from tilework.runtime.devices import launcher
from tilework.runtime.devices.launcher import NullAllocator, set_allocator, set_profile_allocator
from tilework.triton.backends import (
    BaseBackend,
    CPUBackend,
    CUDABackend,
    CUDAOptions,
    GPUTarget,
    HIPBackend,
    Language,
)
from tilework.triton.drivers import DriverBase, GPUDriver

AMPERE, HOPPER = GPUTarget("cuda", 80, 32), GPUTarget("cuda", 90, 32)


def tensor(address: int, **more: object) -> Any:
    return SimpleNamespace(data_ptr=lambda: address, **more)


@pytest.mark.parametrize("warps", [0, 3, 6, -4])
def test_warps_are_a_power_of_two(warps: int) -> None:
    for make in (lambda: CUDAOptions(num_warps=warps), lambda: CUDABackend(HOPPER).parse_options({"num_warps": warps})):
        with pytest.raises(AssertionError, match="must be a power of 2"):
            make()


def test_backends_take_no_notice_of_options_that_they_do_not_know() -> None:
    for backend in (
        CUDABackend(HOPPER),
        HIPBackend(GPUTarget("hip", "gfx942", 64)),
        CPUBackend(GPUTarget("cpu", "host", 1)),
    ):
        options = backend.parse_options({"num_warps": 8, "num_wraps": 2, "grid": 1})
        assert options.num_warps == 8 and not hasattr(options, "num_wraps") and not hasattr(options, "grid")


def test_clusters_need_hopper() -> None:
    with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+ \(Hopper\)"):
        CUDABackend(AMPERE).parse_options({"num_ctas": 2})
    assert CUDABackend(HOPPER).parse_options({"num_ctas": 2}).num_ctas == 2


def test_options_follow_the_target() -> None:
    old, new = (CUDABackend(target).parse_options({"maxnreg": None, "num_stages": 5}) for target in (AMPERE, HOPPER))
    assert isinstance(old, CUDAOptions) and (old.num_warps, old.num_ctas, old.num_stages) == (4, 1, 5)
    assert (old.arch, new.arch, old.warp_size, old.backend_name) == ("sm80", "sm90", 32, "cuda")
    assert old.supported_fp8_dtypes == ("fp8e4b15", "fp8e5")
    assert new.supported_fp8_dtypes == ("fp8e4b15", "fp8e4nv", "fp8e5")
    assert (old.deprecated_fp8_dot_operand_dtypes, new.deprecated_fp8_dot_operand_dtypes) == ((), ("fp8e4b15",))
    assert (old.max_num_imprecise_acc_default, new.max_num_imprecise_acc_default) == (0, 2**30)
    assert old.default_dot_input_precision == "tf32"
    assert set(old.allowed_dot_input_precisions) == {"tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"}
    assert old.enable_fp_fusion and old.enable_reflect_ftz and old.sanitize_overflow and old.maxnreg is None
    assert not (old.launch_cooperative_grid or old.launch_pdl or old.debug)
    assert old.hash() != new.hash() and old.hash() == CUDABackend(AMPERE).parse_options({"num_stages": 5}).hash()


def test_options_follow_the_knobs() -> None:
    with knobs.language.scope():
        knobs.language.default_fp_fusion = False
        assert CUDABackend(HOPPER).parse_options({}).enable_fp_fusion is False
        assert CUDABackend(HOPPER).parse_options({"enable_fp_fusion": True}).enable_fp_fusion is True


def test_a_backend_knows_its_targets_and_stages() -> None:
    assert CUDABackend.supports_target(HOPPER) and not CUDABackend.supports_target(GPUTarget("cpu", "host", 1))
    with pytest.raises(AssertionError, match="CUDABackend does not compile for"):
        CUDABackend(GPUTarget("hip", 942, 64))
    backend = CUDABackend(HOPPER)
    stages: dict = {}
    backend.add_stages(stages, backend.parse_options({}), Language.TRITON)
    assert "ttir" in stages and backend.get_module_map() == {} and "90" in backend.hash()
    backend.load_dialects(None)
    with pytest.raises(ValueError, match="Gluon"):
        backend.add_stages({}, backend.parse_options({}), Language.GLUON)


@pytest.mark.parametrize("backend", [BaseBackend, CUDABackend])
def test_what_a_backend_says_about_arguments(backend: type[BaseBackend]) -> None:
    assert backend.supports_native_tensor_specialization
    assert [backend.get_int_specialization(n, align=True) for n in (0, 15, 16, 32)] == ["D", "", "D", "D"]
    assert backend.get_int_specialization(16, align=False) == ""
    assert [backend.get_tensor_specialization(tensor(a), align=True) for a in (64, 72)] == ["D", ""]
    assert backend.get_tensor_specialization(tensor(64), align=False) == ""
    assert backend.parse_attr("D") == [["tt.divisibility", 16]] and backend.parse_attr("") == []


def test_what_the_amd_backend_says_about_arguments() -> None:
    storage = lambda size: SimpleNamespace(size=lambda: size, data_ptr=lambda: 64)
    small, large = (tensor(64, untyped_storage=lambda size=size: storage(size)) for size in (100, 2**31))
    assert not HIPBackend.supports_native_tensor_specialization
    assert HIPBackend.get_tensor_specialization(small, align=True) == "DS"
    assert HIPBackend.get_tensor_specialization(small, align=False) == "S"
    assert HIPBackend.get_tensor_specialization(large, align=True) == "D"
    assert HIPBackend.get_tensor_specialization(tilework.MockTensor("float32"), align=True) == "DS"
    assert HIPBackend.parse_attr("DS") == [["tt.divisibility", 16], ["tt.pointer_range", 32]]
    with knobs.amd.scope():
        knobs.amd.use_buffer_ops = False
        assert HIPBackend.get_tensor_specialization(small, align=True) == "D"


def test_the_amd_backend() -> None:
    backend = HIPBackend(GPUTarget("hip", "gfx942", 64))
    assert "gfx942" in backend.hash() and backend.get_module_map() == {}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, backend.parse_options({"kpack": 2, "waves_per_eu": 1}))
    assert list(stages) == ["ttir", "ttgir", "llir", "amdgcn", "hsaco"]


def test_a_driver_of_ones_own() -> None:
    class Mine(DriverBase):
        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> GPUTarget:
            return HOPPER

        def get_active_torch_device(self) -> None:
            return None

        def get_benchmarker(self):
            return tilework.testing.do_bench

    with pytest.raises(TypeError, match="abstract"):
        DriverBase()  # pyright: ignore[reportAbstractUsage]
    assert issubclass(GPUDriver, DriverBase)
    driver = tilework.runtime.driver
    before = driver.active
    try:
        driver.set_active(Mine())
        assert driver.active.get_current_target() == HOPPER
    finally:
        driver.set_active(before)


def test_a_gpu_driver_asks_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(GPUDriver):
        @classmethod
        def is_active(cls) -> bool:
            return True

        def unused(self, *_: Any, **__: Any) -> Any: ...

        map_python_to_cpp_type = get_current_target = get_active_torch_device = get_benchmarker = unused

    cuda = SimpleNamespace(
        get_device_capability=lambda device: (9, 0),
        current_device=lambda: 3,
        set_device=lambda device: None,
        current_stream=lambda device: SimpleNamespace(cuda_stream=1000 + device),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, __path__=[]))
    monkeypatch.setitem(sys.modules, "torch.cuda", cuda)
    driver = Mine()
    assert (driver.get_current_device(), driver.get_current_stream(3)) == (3, 1003)
    assert driver.get_device_capability(0) == (9, 0) and driver.assemble_tensormap_to_arg(None, [1]) == [1]


def test_scratch_memory_comes_from_the_user() -> None:
    def inside() -> None:
        for variable in (launcher._allocator, launcher._profile_allocator):
            with pytest.raises(RuntimeError, match=r"no allocator was set.*set_allocator"):
                variable.get()(128, 16, None)
        set_allocator(lambda size, alignment, stream: tensor(size))
        assert launcher._allocator.get()(128, 16, 0).data_ptr() == 128
        set_allocator(NullAllocator())
        with pytest.raises(RuntimeError, match="no allocator was set"):
            launcher._allocator.get()(128, 16, None)
        set_profile_allocator(lambda size, alignment, stream: tensor(size))
        assert launcher._profile_allocator.get()(8, 16, 0).data_ptr() == 8
        set_profile_allocator(None)
        with pytest.raises(RuntimeError, match="no allocator was set"):
            launcher._profile_allocator.get()(8, 16, None)

    contextvars.Context().run(inside)
    assert tilework.set_allocator is set_allocator


def test_each_context_has_its_own_allocator() -> None:
    seen: list[bool] = []

    def inside() -> None:
        set_allocator(lambda size, alignment, stream: tensor(size))
        thread = threading.Thread(target=lambda: seen.append(isinstance(launcher._allocator.get(), NullAllocator)))
        thread.start()
        thread.join()

    contextvars.Context().run(inside)
    assert seen == [True]
