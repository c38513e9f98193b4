"""Launching on CUDA: the whole path, with PTX that the emulator executes."""

import ctypes
import gc
import struct
import threading
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime import cuda_programs as programs
from tests.runtime.cuda_fixture import SCALE, expect_scaled, ramp, scale
from tests.runtime.cuda_programs import TARGET, kernel_of
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.compiler import compile
from tilework.errors import OutOfResources
from tilework.knobs import cuda_tools
from tilework.runtime.devices import launcher
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.targets.nvidia import libcuda

# -- 6.3 launch ----------------------------------------------------------------------------------------------------


def test_6_3_a_kernel_runs(cuda: EmulatedCuda) -> None:
    x = ramp()
    kernel = scale[(1,)](x, 100, 2.0)
    expect_scaled(x)
    (launched,) = cuda.launches
    assert (launched.grid, launched.block, launched.stream) == ((1, 1, 1), (128, 1, 1), 0)
    assert kernel.name == "scale" and launched.attributes == {}


@pytest.mark.parametrize("hidden", [0, 1, 2])
@pytest.mark.parametrize("cubin", [False, True])
def test_6_3_user_kernels_may_declare_fewer_hidden_pointers(cuda: EmulatedCuda, hidden: int, cubin: bool) -> None:
    x = ramp()
    kernel_of(programs.scale(hidden), "scale", SCALE, cubin=cubin)[(1, 1, 1)](x, 100, 2.0)
    expect_scaled(x)


@pytest.mark.parametrize("hidden", [0, 1, 2])
def test_6_3_a_ptx_file_is_launched_by_what_it_declares(cuda: EmulatedCuda, hidden: int, tmp_path: Path) -> None:
    x = ramp()
    kernel = kernel_of(programs.scale(hidden), "scale", folder=tmp_path)
    kernel[(1, 1, 1)](x, 100, 2.0)
    kernel[(1, 1, 1)](x.data_ptr(), 100, 2)  # an address, and an int for an f32 parameter
    expect_scaled(x, 4.0)


def test_6_3_hidden_pointers_are_null_or_the_scratch_memory(cuda: EmulatedCuda) -> None:
    out, room, other = DeviceArray(2, "uint64"), DeviceArray(4096), DeviceArray(64)
    kernel_of(programs.pointers(), "pointers", {"out": "*i64"})[(1, 1, 1)](out)
    assert out.numpy().tolist() == [0, 0]
    facts: dict[str, Any] = {"global_scratch_size": 16, "profile_scratch_size": 8}
    launcher.set_allocator(lambda size, align, stream: room)
    launcher.set_profile_allocator(lambda size, align, stream: other)
    try:
        kernel_of(programs.pointers(), "pointers", {"out": "*i64"}, **facts)[(2, 1, 1)](out)
    finally:
        launcher.set_allocator(launcher.NullAllocator())
        launcher.set_profile_allocator(None)
    assert out.numpy().tolist() == [room.data_ptr(), other.data_ptr()]


CASES: list[tuple[str, Any, str, bytes]] = [
    ("u1", True, ".u8", b"\1"),
    ("i8", -3, ".u8", struct.pack("<b", -3)),
    ("i16", -3, ".u16", struct.pack("<h", -3)),
    ("i32", -70000, ".u32", struct.pack("<i", -70000)),
    ("u32", 2**32 - 1, ".u32", b"\xff" * 4),
    ("i64", -(2**40), ".u64", struct.pack("<q", -(2**40))),
    ("u64", 2**64 - 1, ".u64", b"\xff" * 8),
    ("fp16", 1.5, ".align 2 .b8[2]", struct.pack("<e", 1.5)),
    ("bf16", 1.5, ".align 2 .b8[2]", b"\xc0\x3f"),
    ("fp32", 1e300, ".f32", struct.pack("<f", float("inf"))),
    ("fp64", 0.1, ".f64", struct.pack("<d", 0.1)),
    ("*i8", None, ".u64", bytes(8)),
    ("*i8", 4096, ".u64", struct.pack("<Q", 4096)),
]


def test_6_3_every_type_of_argument_arrives(cuda: EmulatedCuda) -> None:
    declared = ", ".join(declare(kind, number) for number, (_, _, kind, _) in enumerate(CASES))
    text = programs.copy_parameters(declared, [len(data) for *_, data in CASES])
    signature = {"out": "*i8", "x": "constexpr"} | {f"a{number}": type for number, (type, *_) in enumerate(CASES)}
    out = DeviceArray(8 * len(CASES))
    kernel_of(text, "all", signature)[(1, 1, 1)](out, "a constant", *(value for _, value, *_ in CASES))
    found = out.numpy().reshape(-1, 8)
    for row, (type, _, _, data) in zip(found, CASES, strict=True):
        assert row.tobytes()[: len(data)] == data, type


def declare(kind: str, number: int) -> str:
    type, _, size = kind.partition("[")
    return f".param {type} a{number}" + (f"[{size}" if size else "")


def test_6_3_tuples_are_their_leaves(cuda: EmulatedCuda) -> None:
    x = ramp()
    signature = {"pair": ("*fp32", "constexpr", ("i32",)), "a": "fp32"}
    kernel_of(programs.scale(), "scale", signature)[(1, 1, 1)]((x, 5, (100,)), 2.0)
    expect_scaled(x)


def test_6_3_arrays_with_the_cuda_interface(cuda: EmulatedCuda) -> None:
    x = ramp()

    class Foreign:
        __cuda_array_interface__ = {"data": (x.data_ptr(), False), "typestr": "<f4", "shape": (100,), "version": 3}

    scale[(1,)](Foreign(), 100, 2.0)
    expect_scaled(x)


@pytest.mark.parametrize(("version", "index"), [("3.6.0", r" \(at 0\)"), ("3.7.1", "")])
def test_6_3_host_memory_is_refused_by_position(cuda: EmulatedCuda, version: str, index: str) -> None:
    knobs.language.triton_version = version
    x = np.zeros(100, np.float32)
    text = rf"^Pointer argument{index} cannot be accessed from Triton \(cpu tensor\?\): .* argument 0 is ordinary host"
    with pytest.raises(ValueError, match=text):
        scale[(1,)](x, 100, 2.0)
    with pytest.raises(ValueError, match=text):
        kernel_of(programs.scale(), "scale", SCALE)[(1, 1, 1)](x, 100, 2.0)
    with pytest.raises(ValueError, match=r"cannot be accessed .* argument 1 is"):
        driver.active.check_arguments((1, (2, x)))
    with pytest.raises(ValueError, match=r"cannot be accessed .* argument 0 is"):
        driver.active.check_arguments((np.array(1.0),))
    driver.active.check_arguments((1, None, 2.5, "constant", DeviceArray(4), np.float32(1)))
    assert not cuda.launches


def test_6_3_views_that_torch_negates_are_refused(cuda: EmulatedCuda) -> None:
    lazy = SimpleNamespace(is_cuda=True, is_neg=lambda: True)
    with pytest.raises(ValueError, match=r"at 1\) is a view .*resolve_neg"):
        driver.active.check_arguments((1, lazy))


def test_6_3_host_tensors_of_torch_are_refused(cuda: EmulatedCuda) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match=r"cannot be accessed .* argument 0 is"):
        scale[(1,)](torch.zeros(100), 100, 2.0)


def test_6_3_pinned_memory_is_allowed(cuda: EmulatedCuda) -> None:
    cuda_device.ensure_context()
    address = ctypes.c_void_p()
    libcuda.library().cuMemHostAlloc(ctypes.byref(address), 400, 0)
    x = np.ctypeslib.as_array((ctypes.c_float * 100).from_address(address.value or 0))
    x[:] = np.arange(100)
    scale[(1,)](x, 100, 2.0)
    cuda_device.synchronize()
    assert (x == np.arange(100, dtype=np.float32) * 2).all()
    del x
    libcuda.library().cuMemFreeHost(address)


def test_6_3_a_new_thread_gets_a_context(cuda: EmulatedCuda) -> None:
    x = ramp()
    kernel = scale[(1,)](x, 100, 2.0)
    failures: list[BaseException] = []

    def launch() -> None:
        try:
            scale[(1,)](x, 100, 2.0)
            kernel[(1, 1, 1)](x, 100, 2.0)
            cuda_device.synchronize()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    assert not failures
    expect_scaled(x, 8.0)
    assert len(cuda.retained) >= 2


def test_6_3_threads_launch_one_kernel_at_the_same_time(cuda: EmulatedCuda) -> None:
    arrays = [ramp() for _ in range(8)]
    kernel = kernel_of(programs.scale(), "scale", SCALE)[(1, 1, 1)]

    def launch(number: int) -> None:
        for _ in range(5):
            kernel(arrays[number], 100, float(number))

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cuda_device.synchronize()
    for number, x in enumerate(arrays):
        expect_scaled(x, float(number) ** 5)


def test_6_3_launches_are_asynchronous(cuda: EmulatedCuda) -> None:
    x = ramp()
    scale[(1,)](x, 100, 2.0)
    raw = cuda.devices[0].copy_out(x.data_ptr(), 400).view(np.float32)
    assert (raw == np.arange(100, dtype=np.float32)).all() and len(cuda.queue) == 1
    cuda_device.synchronize()
    expect_scaled(x)


def test_6_3_the_current_stream_is_used(cuda: EmulatedCuda) -> None:
    x, side = ramp(), cuda_device.Stream()
    with cuda_device.stream(side):
        scale[(1,)](x, 100, 2.0)
    kernel_of(programs.scale(), "scale", SCALE)[(1, 1, 1)](x, 100, 2.0, stream=side.cuda_stream)
    assert [launch.stream for launch in cuda.launches] == [side.cuda_stream] * 2
    side.synchronize()
    expect_scaled(x, 4.0)


def test_6_3_empty_and_impossible_grids(cuda: EmulatedCuda) -> None:
    x = ramp()
    kernel = kernel_of(programs.scale(), "scale", SCALE)
    scale[(0,)](x, 100, 2.0)
    kernel[(1, 0, 1)](x, 100, 2.0)
    assert not cuda.launches
    for grid, said in (((2**32 + 1, 1, 1), "x has at most"), ((1, 65536, 1), "y has at most"), ((1, -1, 1), "-1")):
        with pytest.raises(RuntimeError, match=r"^Triton Error \[CUDA\]: invalid argument .*" + said):
            kernel[grid](x, 100, 2.0)


def test_6_3_memory_does_not_grow(cuda: EmulatedCuda) -> None:
    x = ramp()
    kernel = kernel_of(programs.scale(), "scale", SCALE)[(1, 1, 1)]

    def launch() -> None:
        kernel(x, 100, 2.0)
        cuda_device.synchronize()
        cuda.launches.clear()

    launch()
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100):
            launch()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 30_000
    finally:
        tracemalloc.stop()


# -- 6.7 options that a launch reads -------------------------------------------------------------------------------


def test_6_7_attributes_of_launches(cuda: EmulatedCuda) -> None:
    x = ramp()
    scale[(1,)](x, 100, 2.0, launch_cooperative_grid=True, num_warps=8)
    scale[(1,)](x, 100, 2.0, launch_pdl=True)
    scale[(2, 3)](x, 100, 1.0, num_ctas=2)
    cooperative, pdl, clusters = cuda.launches
    assert (cooperative.attributes, cooperative.block) == ({2: 1}, (256, 1, 1))
    assert pdl.attributes == {6: 1}
    assert clusters.attributes == {4: (2, 1, 1), 5: 1} and clusters.grid == (4, 3, 1)


def test_6_7_clusters_that_are_not_portable(cuda: EmulatedCuda) -> None:
    kernel = kernel_of(programs.scale(), "scale", SCALE, num_ctas=16)
    kernel[(1, 1, 1)](ramp(), 100, 2.0)
    assert libcuda.library().function_attribute(libcuda.FUNCTION_NON_PORTABLE_CLUSTER, kernel.function) == 1


# -- 6.8 compiled kernels ------------------------------------------------------------------------------------------


def test_6_8_loading_reports_registers_spills_and_threads(cuda: EmulatedCuda) -> None:
    kernel = kernel_of(programs.scale(limits=".maxntid 256, 1, 1"), "scale", SCALE)
    assert (kernel.module, kernel.n_regs) == (None, None)
    kernel[(1, 1, 1)](ramp(), 100, 2.0)
    assert isinstance(kernel.module, int) and isinstance(kernel.function, int)
    assert kernel.n_regs is not None and kernel.n_regs > 0
    assert kernel.n_spills == 0 and kernel.n_max_threads == 256
    _, _, _, spills, threads = driver.active.utils.load_binary("with_local", programs.with_local(64), 0, 0)
    assert (spills, threads) == (16, 1024)


def test_6_8_more_than_48_kib_of_shared_memory(cuda: EmulatedCuda) -> None:
    out = DeviceArray(1, "uint32")
    for static in (0, 1024):
        for size in (1024, 48 << 10, 200 << 10):
            kernel = kernel_of(
                programs.shared_sum(static), "shared_sum", {"out": "*i32", "words": "i32"}, shared=size, num_warps=1
            )
            kernel[(1, 1, 1)](out, size // 4)
            assert out.numpy()[0] == size // 4 and cuda.launches[-1].shared == size


def test_6_8_out_of_resources(cuda: EmulatedCuda) -> None:
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"shared": 300 << 10}, "", "shared memory"),
        ({"tmem_size": 1024}, "", "tensor memory"),
        ({"num_warps": 16}, ".maxntid 256, 1, 1", "threads"),
    ]
    for facts, limits, said in cases:
        kernel = kernel_of(programs.scale(limits=limits), "scale", SCALE, **facts)
        for _ in range(2):
            with pytest.raises(OutOfResources, match=said):
                kernel[(1, 1, 1)](ramp(), 100, 2.0)
    assert not cuda.launches


def test_6_8_refused_binaries(cuda: EmulatedCuda) -> None:
    utils = driver.active.utils
    with pytest.raises(
        RuntimeError, match=r"(?s)^Triton Error \[CUDA\]: a PTX JIT compilation failed.*loading scale.*ptxas:"
    ):
        utils.load_binary("scale", programs.scale().replace("DONE:", "DONE %"), 0, 0)
    with pytest.raises(RuntimeError, match=r"^Triton Error \[CUDA\]: named symbol not found .*'other'"):
        utils.load_binary("other", programs.scale(), 0, 0)
    with pytest.raises(RuntimeError, match=r"add cannot be loaded on a CUDA device: .*neither a cubin nor PTX"):
        utils.load_binary("add", "module attributes {} {}", 0, 0)


def test_6_8_kernels_that_expect_other_arguments(cuda: EmulatedCuda, tmp_path: Path) -> None:
    x = ramp()
    for signature, args, said in (
        ({"p": "*fp32"}, (x,), "declares 5 parameters, and is given 1 values and 2 hidden"),
        ({"p": "*fp32", "n": "i64", "a": "fp32"}, (x, 5, 1.0), "parameter 1 of scale has 4 bytes, and is given 8"),
        (SCALE, (x, 5), "takes 3 arguments, constants included, and is given 2"),
        ({"p": "*fp32", "n": "fp8e5", "a": "fp32"}, (x, 5, 1.0), "fp8e5, which cannot be passed"),
    ):
        with pytest.raises(TypeError, match=said):
            kernel_of(programs.scale(), "scale", signature)[(1, 1, 1)](*args)
    for hidden, args, said in (
        (0, (x, 100), "parameter 2 of scale has 4 bytes, and is given 8"),
        (2, (x, 100), "declares 5 parameters, and is given 2 values and 2 hidden"),
        (2, (x, 1, 2.0, 0, 0, 0), "declares 5 parameters, and is given 6 values"),
        (2, (x, 1.5, 2.0), "parameter 1 of scale is i32, but the argument is 1.5"),
        (2, (2.5, 1, 2.0), "float has no memory"),
    ):
        with pytest.raises(TypeError, match=said):
            kernel_of(programs.scale(hidden), "scale", folder=tmp_path)[(1, 1, 1)](*args)
    assert not cuda.launches


def test_6_8_a_source_without_types_uses_sizes(cuda: EmulatedCuda, tmp_path: Path) -> None:
    x = ramp()
    kernel = kernel_of(programs.scale(), "scale", cubin=True)
    kernel.src = None
    launch = driver.active.launcher_cls(None, kernel.metadata)
    kernel._init_handles()
    for a in (2.0, np.float32(2.0), struct.pack("<f", 2.0)):
        launch(1, 1, 1, 0, kernel.function, None, None, None, None, x, 100, a)
    expect_scaled(x, 8.0)
    with pytest.raises(TypeError, match="4 bytes and unknown type takes a NumPy scalar or bytes"):
        launch(1, 1, 1, 0, kernel.function, None, None, None, None, x, x, 1.0)
    with pytest.raises(TypeError, match="4 bytes is given 8 bytes"):
        launch(1, 1, 1, 0, kernel.function, None, None, None, None, x, 100, np.float64(1.0))


def test_6_8_an_old_driver_does_not_know_parameters(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(cuda), "cuFuncGetParamInfo", None)
    x = ramp()
    kernel_of(programs.scale(), "scale", SCALE, cubin=True)[(1, 1, 1)](x, 100, 2.0)
    expect_scaled(x)
    kernel = kernel_of(programs.scale(), "scale", cubin=True)
    kernel._init_handles()
    launch = driver.active.launcher_cls(None, kernel.metadata)
    with pytest.raises(RuntimeError, match=r"CUDA 12\.4"):
        launch(1, 1, 1, 0, kernel.function, None, None, None, None, x, 100, 2.0)


@tilework.jit
def doubled(p, n, a):
    i = tl.arange(0, 128)
    tl.store(p + i, 2 * tl.load(p + i, mask=i < n), mask=i < n)


def test_6_8_files_and_overrides_are_compiled_and_launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    path = tmp_path / "doubled.ptx"
    with knobs.cache.scope(), emulated_cuda() as cuda:
        knobs.cache.dir = str(tmp_path / "cache")
        for hidden in range(3):
            path.write_text(programs.scale(hidden).replace("scale", "doubled"))
            x = ramp()
            compile(str(path), target=TARGET, options={"num_warps": 8})[(1, 1, 1)](x, 100, 2.0)
            expect_scaled(x)
            doubled.device_caches.clear()
            doubled[(1,)](x, 100, 2.0, ir_override=str(path))
            expect_scaled(x, 4.0)
        assert [launch.block[0] for launch in cuda.launches] == [256, 128] * 3
        x = ramp()
        doubled[(1,)](x, 100, 2.0)
        expect_scaled(x)


# -- 6.9 scratch memory --------------------------------------------------------------------------------------------


def test_6_9_scratch_is_for_all_programs_and_blocks(cuda: EmulatedCuda) -> None:
    requested: list[tuple[int, int, int | None]] = []

    def allocate(size: int, alignment: int, stream: int | None) -> DeviceArray:
        requested.append((size, alignment, stream))
        return DeviceArray(size)

    facts: dict[str, Any] = {"global_scratch_size": 24, "global_scratch_align": 128, "num_ctas": 2}
    kernel = kernel_of(programs.pointers(), "pointers", {"out": "*i64"}, **facts)
    out, side = DeviceArray(2, "uint64"), cuda_device.Stream()
    with pytest.raises(RuntimeError, match="set_allocator"):
        kernel[(2, 3, 1)](out)
    launcher.set_allocator(allocate)
    try:
        kernel[(2, 3, 1)](out)
        kernel[(1, 1, 1)](out, stream=side.cuda_stream)
    finally:
        launcher.set_allocator(launcher.NullAllocator())
    assert requested == [(24 * 6 * 2, 128, 0), (24 * 2, 128, side.cuda_stream)]
    cuda_device.synchronize()
