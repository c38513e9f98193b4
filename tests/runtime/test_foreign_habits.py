"""Programs written for other devices run unchanged: NumPy numbers as arguments, options of other backends,
occupancy."""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilework as tw
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tilework.knobs import cuda_tools
from tilework.language.extra.cuda import gdc_launch_dependents, gdc_wait
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.launch.python.specialize import specialize
from tilework.targets import options
from tilework.targets.cpu.target import available_cores
from tilework.tools.tensor_descriptor import TensorDescriptor


def line(out, n, s, b, wide: tl.int64, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.where(b, i * n + s + wide, -1.0))


compiled = tw.jit(line)
NUMBERS = [np.int32(4), np.int32(16), np.int32(1), np.int64(-(2**40)), np.uint8(3), np.int16(-5)]
FLOATS = [np.float32(0.5), np.float16(0.25), np.float64(3)]


def check(kernel: Any, out: Any, read: Any = np.asarray) -> None:
    for n in (*NUMBERS, 7):
        for s in FLOATS:
            flag = np.bool_(n > 2)
            kernel[(1,)](out, n, s, flag, np.int8(2), BLOCK=np.int64(16))
            wanted = np.where(flag, np.arange(16) * float(n) + float(s) + 2, -1.0)
            np.testing.assert_allclose(read(out), wanted.astype(np.float32))


def test_numpy_numbers_are_python_numbers() -> None:
    """On the CPU: again and again, so that the machine code of the launcher sees Python's numbers and NumPy's in
    turn."""
    for _ in range(2):
        check(compiled, np.zeros(16, np.float32))
        compiled[(1,)](np.zeros(16, np.float32), 4, 0.5, True, 2, BLOCK=16)


def test_numpy_numbers_in_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    check(tw.jit(line), np.zeros(16, np.float32))


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    with emulated_cuda():
        yield


@pytest.mark.usefixtures("cuda")
def test_numpy_numbers_on_a_gpu() -> None:
    check(tw.jit(line), DeviceArray.of(np.zeros(16, np.float32)), lambda out: out.numpy())


def test_numpy_numbers_are_specialised() -> None:
    for number in (*NUMBERS, *FLOATS, np.bool_(True), np.uint64(2**63)):
        assert specialize(number) == specialize(number.item())
    assert specialize(np.array(3, np.int32))[0] == "*i32"
    with pytest.raises(TypeError, match="complex64"):
        specialize(np.complex64(1))


def test_options_of_other_devices_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of other devices give one warning each; an unknown option is an error."""
    monkeypatch.setattr(options, "_warned", set())
    out = np.zeros(16, np.float32)
    with pytest.warns(UserWarning) as seen:
        for scale in (1.0, 2.0):
            compiled[(1,)](out, 3, scale, True, 0, BLOCK=16, matrix_instr_nonkdim=16, waves_per_eu=2, num_ctas=2)
            compiled[(1,)](out, 3, scale, True, 0, BLOCK=8, kpack=1, waves_per_eu=3)
    texts = [str(warning.message) for warning in seen]
    for name in ("matrix_instr_nonkdim", "waves_per_eu", "num_ctas", "kpack"):
        assert sum(f"option {name}=" in text for text in texts) == 1
    assert out[3] == 11
    with pytest.raises(KeyError, match="waves_per_ue"):
        compiled[(1,)](out, 3, 1.0, True, 0, BLOCK=16, waves_per_ue=2)


@pytest.mark.usefixtures("cuda")
def test_options_of_amd_on_nvidia(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "_warned", set())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        out = DeviceArray.of(np.zeros(16, np.float32))
        tw.jit(line)[(1,)](out, 3, 1.0, True, 0, BLOCK=16, kpack=2)
    assert any("option kpack=2 is for AMD GPUs" in str(warning.message) for warning in seen)
    assert out.numpy()[3] == 10


def test_occupancy_can_be_computed() -> None:
    """Compute the occupancy as the tutorials do."""
    kernel = compiled.warmup(np.zeros(16, np.float32), 3, 1.0, True, 0, BLOCK=16, grid=(1,))
    kernel._init_handles()
    facts = driver.active.utils.get_device_properties(0)
    by_registers = facts["max_num_regs"] // (kernel.n_regs * facts["warpSize"] * kernel.metadata.num_warps)
    assert min(by_registers, facts["max_shared_mem"] // kernel.metadata.shared) >= 1
    assert kernel.n_spills == 0
    assert facts["multiprocessor_count"] == available_cores()


@tw.jit
def dependent(x, out):
    gdc_wait()
    i = tl.arange(0, 16)
    value = tl.load(x + i)
    gdc_launch_dependents()
    tl.store(out + i, value + 1)


def test_kernels_that_wait_for_those_before_them() -> None:
    """On the host such a wait does nothing."""
    out = np.zeros(16, np.float32)
    dependent[(1,)](np.arange(16, dtype=np.float32), out, launch_pdl=True)
    assert list(out) == list(range(1, 17))


def test_streams_of_the_host() -> None:
    torch = pytest.importorskip("torch")
    device = driver.active.get_active_torch_device()
    interface = getattr(torch, device.type)
    interface.set_stream(interface.Stream())
    assert interface.get_device_properties(device).multi_processor_count == available_cores()


def set_block_shapes(nargs: dict[str, Any]) -> None:
    for name in ("source", "target"):
        if isinstance(nargs[name], TensorDescriptor):
            nargs[name].block_shape = [nargs["ROWS"], 16]


@tw.jit
def descriptor_of(source, rows, ROWS: tl.constexpr):
    if isinstance(source, tl.tensor_descriptor):
        return source
    else:
        return tl.make_tensor_descriptor(source, shape=[rows, 16], strides=[16, 1], block_shape=[ROWS, 16])


CONFIGS = [
    tw.Config({"ROWS": rows, "waves_per_eu": 2}, num_warps=rows // 2, pre_hook=set_block_shapes) for rows in (4, 8)
]


@tw.autotune(
    configs=CONFIGS, key=["rows"], prune_configs_by={"early_config_prune": lambda configs, *_, **__: configs[:2]}
)
@tw.jit
def doubled(source, target, rows, ROWS: tl.constexpr, PROGRAMS: tl.constexpr):
    source = descriptor_of(source, rows, ROWS)
    target = descriptor_of(target, rows, ROWS)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), PROGRAMS, flatten=True, warp_specialize=False):
        target.store([tile * ROWS, 0], source.load([tile * ROWS, 0]) * 2)


def test_descriptors_whose_blocks_are_tuned() -> None:
    """A persistent kernel: each configuration's hook sets the block shapes of its descriptors, and an array passed
    instead of a descriptor becomes one in the kernel."""
    x = np.arange(24 * 16, dtype=np.float32).reshape(24, 16)
    programs = driver.active.utils.get_device_properties(0)["multiprocessor_count"]
    for wrap in (lambda a: a, lambda a: TensorDescriptor(a, a.shape, [16, 1], [1, 1])):
        out = np.zeros_like(x)
        grid = lambda meta: (min(programs, tw.cdiv(24, meta["ROWS"])),)  # noqa: E731
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            doubled[grid](wrap(x), wrap(out), 24, PROGRAMS=programs)
        assert (out == 2 * x).all()
