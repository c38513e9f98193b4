"""Checks of devices, loading and launching; `check_cuda_driver.py` runs them."""

import ctypes
import os
import struct
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

import tilework
from tests.device import kernels
from tests.device.kernels import SCALE, expect_scaled, pinned, ramp, scaling
from tests.device.table import check, expect, expect_error
from tests.runtime import cuda_programs as programs
from tests.runtime.cuda_programs import kernel_of
from tilework import knobs
from tilework.compiler import compile
from tilework.errors import OutOfResources
from tilework.runtime.devices import launcher
from tilework.runtime.devices.active_driver import default_driver, driver
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import libcuda
from tilework.tools.tensor_descriptor import TensorDescriptor

# -- the device ----------------------------------------------------------------------------------------------------


@check
def the_library() -> str:
    version = ctypes.c_int()
    libcuda.library().cuDriverGetVersion(ctypes.byref(version))
    missing = [name for name in libcuda.FUNCTIONS if not libcuda.library().has(name)]
    expect(missing, [])
    return f"CUDA {version.value // 1000}.{version.value % 1000 // 10}, {cuda_device.device_count()} devices"


@check
def device_properties() -> str:
    found = driver.active.utils.get_device_properties(0)
    assert all(value > 0 for value in found.values()), found
    expect(found["warpSize"], 32)
    return " ".join(f"{name}={value}" for name, value in found.items())


def cuda_driver() -> CudaDriver:
    active = driver.active
    assert isinstance(active, CudaDriver)
    return active


def sizes_of_parameters(function: int) -> list[int]:
    return [parameter.size for parameter in cuda_driver().utils.parameters(function) or ()]


@check
def target_device_and_stream() -> str:
    active = cuda_driver()
    target = active.get_current_target()
    expect(
        (target.backend, target.warp_size, active.get_current_device(), active.get_current_stream(0)),
        ("cuda", 32, 0, 0),
    )
    active.set_current_device(0)
    expect(target.arch, 10 * active.get_device_capability()[0] + active.get_device_capability()[1])
    return str(target)


@check
def the_choice_of_the_driver() -> str:
    expect(type(default_driver()), CudaDriver)
    with knobs.runtime.scope():
        knobs.runtime.device = "native"
        expect(type(default_driver()), CpuDriver)
        expect(CudaDriver.is_active(), False)
    given = os.environ.pop("TILEWORK_DEVICE", None)
    try:
        expect((type(default_driver()), CpuDriver.is_active(), CudaDriver.is_active()), (CudaDriver, False, True))
    finally:
        if given is not None:
            os.environ["TILEWORK_DEVICE"] = given
    return "without TILEWORK_DEVICE: CudaDriver, and the CPU's is not active"


@check
def a_device_that_is_not_there() -> str:
    count = cuda_device.device_count()
    return expect_error((ValueError, RuntimeError), "", lambda: driver.active.set_current_device(count))


@check
def printf_fifo_size() -> None:
    cuda_driver().utils.set_printf_fifo_size(8 << 20)
    size = ctypes.c_size_t()
    libcuda.library().cuCtxGetLimit(ctypes.byref(size), libcuda.LIMIT_PRINTF_FIFO)
    assert size.value >= 8 << 20, size.value


# -- loading -------------------------------------------------------------------------------------------------------


@check
def load_ptx() -> str:
    module, function, registers, spills, threads = driver.active.utils.load_binary("scale", programs.scale(), 0, 0)
    assert module and function and registers > 0, (module, function, registers)
    expect((spills, threads), (0, 1024))
    expect(sizes_of_parameters(function), [8, 4, 4, 8, 8])
    return f"{registers} registers"


@check
def load_with_spills() -> str:
    *_, spills, _ = driver.active.utils.load_binary("with_local", programs.with_local(256), 0, 0)
    assert spills >= 64, spills
    return f"{spills} words of local memory"


@check
def limits_of_threads() -> None:
    text = programs.scale(limits=".maxntid 256, 1, 1")
    expect(driver.active.utils.load_binary("scale", text, 0, 0)[4], 256)
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"num_warps": 16}, ".maxntid 256, 1, 1", "threads"),
        ({"shared": 1 << 20}, "", "shared memory"),
        ({"tmem_size": 1024}, "", "tensor memory"),
    ]
    for facts, limit, said in cases:
        kernel = kernel_of(programs.scale(limits=limit), "scale", SCALE, **facts)
        expect_error(OutOfResources, said, lambda: kernel[(1, 1, 1)](ramp(), 100, 2.0))  # noqa: B023


@check
def refused_ptx() -> str:
    text = programs.scale().replace("DONE:", "DONE %")
    load = lambda: driver.active.utils.load_binary("scale", text, 0, 0)  # noqa: E731
    expect_error(RuntimeError, "\n", load)  # the words of the assembler follow
    return expect_error(RuntimeError, "Triton Error [CUDA]: ", load)


@check
def a_kernel_that_is_not_in_the_binary() -> str:
    return expect_error(
        RuntimeError, "not found", lambda: driver.active.utils.load_binary("other", programs.scale(), 0, 0)
    )


@check
def compiled_from_a_file() -> str:
    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = str(Path(folder, "cache"))
        path = Path(folder, "scale.ptx")
        used = []
        for hidden in range(3):
            path.write_text(programs.scale(hidden))
            x = ramp()
            kernel = compile(str(path), target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
            kernel[(1, 1, 1)](x, 100, 2.0)
            expect_scaled(x, 2.0)
            used.append(f"{kernel.metadata.binary_ext}, {kernel.n_regs} registers")
        return used[-1]


@tilework.jit
def scale(p, n, a):
    pass


@check
def override_of_a_python_kernel() -> None:
    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = str(Path(folder, "cache"))
        path = Path(folder, "scale.ptx")
        path.write_text(programs.scale(1))
        x = ramp()
        scale[(1,)](x, 100, 2.0, ir_override=str(path))
        expect_scaled(x, 2.0)


@check
def parameters_of_a_cubin() -> str:
    with tempfile.TemporaryDirectory() as folder, knobs.cache.scope():
        knobs.cache.dir = str(Path(folder, "cache"))
        path = Path(folder, "scale.ptx")
        path.write_text(programs.scale())
        kernel = compile(str(path), target=GPUTarget("cuda", 90, 32))
        if kernel.metadata.binary_ext != "cubin":
            return "no ptxas here: nothing to check"
        kernel._init_handles()
        expect(sizes_of_parameters(kernel.function), [8, 4, 4, 8, 8])
        return "from the cubin"


# -- launching -----------------------------------------------------------------------------------------------------


@check
def launch_with_any_number_of_hidden_pointers() -> None:
    for hidden in range(3):
        x = ramp()
        scaling(hidden)[(1, 1, 1)](x, 100, 2.0)
        expect_scaled(x, 2.0)


@check
def many_blocks() -> None:
    x = ramp(kernels.LARGE)
    scaling()[(kernels.LARGE // 128, 1, 1)](x, kernels.LARGE, 3.0)
    expect_scaled(x, 3.0)


@check
def hidden_pointers_and_scratch_memory() -> None:
    out, room, requested = DeviceArray(2, "uint64"), DeviceArray(4096), []

    def allocate(size: int, alignment: int, stream: int | None) -> DeviceArray:
        requested.append((size, alignment, stream))
        return room

    kernel_of(programs.pointers(), "pointers", {"out": "*i64"})[(1, 1, 1)](out)
    expect(out.numpy().tolist(), [0, 0])
    kernel = kernel_of(
        programs.pointers(), "pointers", {"out": "*i64"}, global_scratch_size=24, global_scratch_align=128
    )
    expect_error(RuntimeError, "set_allocator", lambda: kernel[(1, 1, 1)](out))
    launcher.set_allocator(allocate)
    try:
        kernel[(2, 3, 1)](out)
    finally:
        launcher.set_allocator(launcher.NullAllocator())
    expect(out.numpy().tolist(), [room.data_ptr(), 0])
    expect(requested, [(24 * 6, 128, 0)])


CASES: list[tuple[str, Any, str, bytes]] = [
    ("u1", True, ".u8 a0", b"\1"),
    ("i8", -3, ".u8 a1", struct.pack("<b", -3)),
    ("i16", -3, ".u16 a2", struct.pack("<h", -3)),
    ("i32", -70000, ".u32 a3", struct.pack("<i", -70000)),
    ("i64", -(2**40), ".u64 a4", struct.pack("<q", -(2**40))),
    ("u64", 2**64 - 1, ".u64 a5", b"\xff" * 8),
    ("fp16", 1.5, ".align 2 .b8 a6[2]", struct.pack("<e", 1.5)),
    ("bf16", 1.5, ".align 2 .b8 a7[2]", b"\xc0\x3f"),
    ("fp32", 0.1, ".f32 a8", struct.pack("<f", 0.1)),
    ("fp64", 0.1, ".f64 a9", struct.pack("<d", 0.1)),
    ("*i8", None, ".u64 a10", bytes(8)),
]


@check
def every_type_of_argument() -> None:
    text = programs.copy_parameters(", ".join(f".param {case[2]}" for case in CASES), [len(case[3]) for case in CASES])
    out = DeviceArray(8 * len(CASES))
    signature = {"out": "*i8"} | {f"a{number}": case[0] for number, case in enumerate(CASES)}
    kernel_of(text, "all", signature)[(1, 1, 1)](out, *(case[1] for case in CASES))
    for row, case in zip(out.numpy().reshape(-1, 8), CASES, strict=True):
        expect((case[0], row.tobytes()[: len(case[3])]), (case[0], case[3]))


@check
def host_memory_is_refused() -> str:
    x = np.zeros(100, np.float32)
    return expect_error(ValueError, "Pointer argument cannot be accessed from Triton (cpu tensor?)",
                        lambda: scaling()[(1, 1, 1)](x, 100, 2.0))  # fmt: skip


@check
def pinned_memory_is_allowed() -> None:
    x = pinned(100).view(np.float32)
    x[:] = np.arange(100)
    scaling()[(1, 1, 1)](x, 100, 2.0)
    cuda_device.synchronize()
    assert (x == np.arange(100, dtype=np.float32) * 2).all(), x[:5]


@check
def launches_are_asynchronous() -> None:
    flag, out = pinned(1), DeviceArray(1, "uint32")
    flag[0] = 0
    kernel = kernel_of(programs.wait_for_host(), "wait_for_host", {"flag": "*i32", "out": "*i32"}, num_warps=1)
    kernel._init_handles()
    kernel[(1, 1, 1)](flag, out)
    flag[0] = 7  # the kernel is waiting for this, or has given up
    expect(out.numpy()[0], 7)


@check
def a_new_thread_gets_a_context() -> None:
    x, failures = ramp(), []
    kernel = scaling()
    kernel[(1, 1, 1)](x, 100, 2.0)
    cuda_device.synchronize()

    def launch() -> None:
        try:
            kernel[(1, 1, 1)](x, 100, 2.0)
            scaling()[(1, 1, 1)](x, 100, 2.0)
            cuda_device.synchronize()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=launch)
    thread.start()
    thread.join()
    expect(failures, [])
    expect_scaled(x, 8.0)


@check
def threads_launch_one_kernel_at_the_same_time() -> None:
    arrays, kernel = [ramp() for _ in range(8)], scaling()[(1, 1, 1)]

    def launch(number: int) -> None:
        for _ in range(50):
            kernel(arrays[number], 100, 2.0 if number % 2 else 0.5)

    threads = [threading.Thread(target=launch, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cuda_device.synchronize()
    for number, x in enumerate(arrays):
        expect_scaled(x, 2.0**50 if number % 2 else 0.5**50)


@check
def shared_memory_above_48_kib() -> None:
    out = DeviceArray(1, "uint32")
    for size in (1 << 10, 48 << 10, 64 << 10, 227 << 10):
        kernel = kernel_of(
            programs.shared_sum(), "shared_sum", {"out": "*i32", "words": "i32"}, shared=size, num_warps=1
        )
        kernel[(1, 1, 1)](out, size // 4)
        expect(out.numpy()[0], size // 4)


@check
def clusters() -> None:
    for size in (2, 8, 16):
        out = DeviceArray((3 * size, 2), "uint32")
        kernel_of(programs.cluster_ids(), "cluster_ids", {"out": "*i32"}, num_ctas=size, num_warps=1)[(3, 1, 1)](out)
        expect(out.numpy().tolist(), [[size, 3]] * (3 * size))


@check
def cooperative_and_programmatic_launches() -> None:
    x = ramp()
    scaling(launch_cooperative_grid=True)[(1, 1, 1)](x, 100, 2.0)
    overlapping = scaling(launch_pdl=True)[(1, 1, 1)]
    for _ in range(10):
        overlapping(x, 100, 2.0)
    expect_scaled(x, 2.0**11)


@check
def impossible_grids() -> str:
    kernel, x = scaling(), ramp()
    kernel[(0, 1, 1)](x, 100, 2.0)
    expect_scaled(x, 1.0)
    expect_error(RuntimeError, "Triton Error [CUDA]: invalid argument", lambda: kernel[(2**32 + 1, 1, 1)](x, 100, 2.0))
    return expect_error(
        RuntimeError, "Triton Error [CUDA]: invalid argument", lambda: kernel[(1, 70000, 1)](x, 100, 2.0)
    )


@check
def errors_of_the_driver_at_launch() -> str:
    kernel = kernel_of(programs.scale(limits=".reqntid 64, 1, 1"), "scale", SCALE)
    kernel.metadata = kernel.metadata._replace(num_warps=2)
    kernel._init_handles()
    launch = driver.active.launcher_cls(kernel.src, kernel.metadata._replace(num_warps=1))
    args = (ramp(), 100, 2.0)
    return expect_error(RuntimeError, "Triton Error [CUDA]: ",
                        lambda: launch(1, 1, 1, 0, kernel.function, None, None, None, None, *args))  # fmt: skip


@check
def tensor_maps() -> str:
    a = np.arange(32 * 64, dtype=np.float16).reshape(32, 64)
    on_device = DeviceArray.of(a)
    fill = cuda_driver().utils.fill_tma_descriptor_tiled
    made = fill(on_device.data_ptr(), 0, 2, 6, [8, 16], [32, 64], [64, 1])
    expect((len(bytes(made)), made.address % 64), (128, 0))
    out = DeviceArray((8, 16), np.float16)
    on_device.stride = lambda: (64, 1)  # type: ignore[attr-defined]
    on_device.element_size = lambda: 2  # type: ignore[attr-defined]
    descriptor = TensorDescriptor(on_device, [32, 64], [64, 1], [8, 16])
    meta = {"swizzle": 0, "elem_size": 2, "elem_type": 6, "block_size": [8, 16]}
    shape = ".param .u32 s0, .param .u32 s1, .param .u64 t0, .param .u64 t1, "
    signature = {"desc": "tensordesc<fp16[8, 16]>", "out": "*fp16"}
    text = programs.tensor_copy(256, more=shape)
    kernel = kernel_of(text, "tensor_copy", signature, tensordesc_meta=[meta], num_warps=1)
    kernel[(1, 1, 1)](descriptor, out)
    assert (out.numpy() == a[:8, :16]).all(), out.numpy()[:2]
    return expect_error(RuntimeError, "cuTensorMapEncodeTiled", lambda: fill(
        on_device.data_ptr() + 8, 0, 2, 6, [8, 16], [32, 64], [64, 1]))  # fmt: skip
