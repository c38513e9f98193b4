"""`TensorDescriptor(round_f32_to_tf32=True)`: the bits that loads give, on every device and every path of a launch."""

# pyright: reportMissingParameterType=false

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.differential.devices import interpreted
from tests.runtime.emulator_fixture import emulator
from tests.runtime.launch_kernels import AMPERE, HOPPER
from tilework import knobs
from tilework.compiler import ASTSource, lower
from tilework.runtime.devices.active_driver import default_driver
from tilework.runtime.devices.active_driver import driver as drivers
from tilework.targets.base import GPUTarget
from tilework.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.usefixtures("fresh_cache")
ROWS, COLUMNS = 256, 64


def every_kind_of_bits() -> np.ndarray:
    """Every sign and exponent, with fractions around every tie: what tf32 keeps is even, odd, and all ones."""
    heads = np.arange(512, dtype=np.uint32)[:, None, None] << np.uint32(23)
    kept = np.array([0, 1, 2, 0x3FF], np.uint32)[:, None] << np.uint32(13)
    dropped = np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x800, 0x1800], np.uint32)
    return (heads | kept | dropped).reshape(ROWS, COLUMNS)


BITS = every_kind_of_bits()


def nearest_tf32(bits: np.ndarray) -> np.ndarray:
    """The nearer of the two neighbours in tf32, of two that are equally near the even one; no number stays as it is."""
    below, distance = bits & np.uint32(0xFFFFE000), bits & np.uint32(0x1FFF)
    is_odd = (below >> np.uint32(13) & np.uint32(1)).astype(bool)
    rounds_up = (distance > 0x1000) | ((distance == 0x1000) & is_odd)
    found = np.where(rounds_up, below + np.uint32(0x2000), below)
    return np.where((bits & np.uint32(0x7F800000)) == 0x7F800000, bits, found)


@tilework.jit
def loads(source, out, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * HEIGHT
    at = (row + tl.arange(0, HEIGHT))[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(out + at, source.load([row, 0]))


@tilework.jit
def gathers(source, out, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0) * HEIGHT
    at = (row + tl.arange(0, HEIGHT))[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(out + at, source.gather(row + tl.arange(0, HEIGHT), 0))


@tilework.jit
def matmul(a, b, out, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, BLOCK):
        total = tl.dot(a.load([0, k]), b.load([k, 0]), total, input_precision="ieee")
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


@contextmanager
def device(name: str) -> Iterator[None]:
    before = drivers._active
    with knobs.runtime.scope():
        knobs.runtime.device = name
        drivers.set_active(default_driver())
        try:
            yield
        finally:
            drivers._active = before


def on(name: str) -> Any:
    """Kernels run on this device in the block; the interpreter is asked for by `launched`."""
    kind, _, arch = name.partition(":")
    return nullcontext() if kind == "interpreter" else emulator(arch) if kind == "emulator" else device(name)


DEVICES = ["native", "evaluator", "interpreter", "emulator:sm_80", "emulator:sm_90", "emulator:gfx942"]


def launched(kernel: Any, name: str, grid: int, *args: Any) -> None:
    if name == "interpreter":
        interpreted(kernel)[(grid,)](*args)
        return
    kernel.device_caches.clear()
    kernel[(grid,)](*args)


# A gather needs rows of one; a block whose size is no power of two is a pointer also where there is TMA.
FORMS = {"load": (loads, 16, 16), "odd load": (loads, 6, 6), "gather": (gathers, 16, 1)}
CASES = [(name, form) for name in DEVICES for form in FORMS if (name, form) != ("emulator:sm_90", "gather")]


@pytest.mark.parametrize(("name", "form"), CASES)
@pytest.mark.parametrize("rounds", [False, True])
def test_loads_round_to_the_nearest_tf32(name: str, form: str, rounds: bool) -> None:
    kernel, height, block = FORMS[form]
    x = BITS.view(np.float32).copy()
    out = np.zeros_like(x)
    with on(name):
        source = TensorDescriptor.from_tensor(x, [block, COLUMNS], round_f32_to_tf32=rounds)
        launched(kernel, name, ROWS // height, source, out, height, COLUMNS)
    rows = ROWS // height * height
    assert_bits(out.view(np.uint32)[:rows], (nearest_tf32(BITS) if rounds else BITS)[:rows])
    assert_bits(x.view(np.uint32), BITS)


def assert_bits(found: np.ndarray, wanted: np.ndarray) -> None:
    wrong = np.flatnonzero(found != wanted)
    texts = [f"{BITS.flat[at]:#x} gave {found.flat[at]:#x}, not {wanted.flat[at]:#x}" for at in wrong[:5]]
    assert not texts, texts


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("rounded", [(False, False), (True, False), (True, True)])
def test_operands_of_a_pipelined_loop_round(name: str, rounded: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-(1 << 12), 1 << 12, shape).astype("f4") for shape in ((16, 128), (128, 16)))
    out = np.zeros((16, 16), "f4")
    with on(name):
        blocks = [
            TensorDescriptor.from_tensor(one, block, round_f32_to_tf32=rounds)
            for one, block, rounds in zip((a, b), ([16, 32], [32, 16]), rounded, strict=True)
        ]
        launched(matmul, name, 1, *blocks, out, 128, 16, 16, 32)
    one, two = (
        nearest_tf32(value.view("u4")).view("f4") if rounds else value
        for value, rounds in zip((a, b), rounded, strict=True)
    )
    assert np.allclose(out, one.astype("f8") @ two.astype("f8"), rtol=1e-6, atol=64)
    if any(rounded):
        assert not np.allclose(out, a.astype("f8") @ b.astype("f8"), rtol=1e-6, atol=64)


PATHS = [name for name in DEVICES if name != "interpreter"]


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("native", [False, True])
def test_the_flag_is_read_at_each_launch_and_compiles_nothing(name: str, native: bool) -> None:
    x = BITS[:16].view(np.float32).copy()
    wanted = {False: BITS[:16], True: nearest_tf32(BITS[:16])}
    with on(name), knobs.runtime.scope():
        knobs.runtime.native_launch = native
        loads.device_caches.clear()
        descriptor = TensorDescriptor.from_tensor(x, [16, COLUMNS])
        hashes = set()
        for rounds in (False, False, True, True, False, True, True):
            out = np.zeros_like(x)
            descriptor.round_f32_to_tf32 = rounds
            hashes.add(loads[(1,)](descriptor, out, 16, COLUMNS).hash)
            assert (out.view(np.uint32) == wanted[rounds]).all(), rounds
            fresh = TensorDescriptor.from_tensor(x, [16, COLUMNS], "zero", not rounds)
            loads[(1,)](fresh, out, 16, COLUMNS)
            assert (out.view(np.uint32) == wanted[not rounds]).all(), rounds
        assert len(hashes) == 1


TYPES = {"source": "tensordesc<fp32[16, 64]>", "out": "*fp32", "HEIGHT": "constexpr", "WIDTH": "constexpr"}
POINTERS = ["!tt.ptr<f32>", "i64", "i64", "i64", "i64", "i1", "i1", "i32", "i32", "i64", "i64", "!tt.ptr<f32>"]
MAPS = ["!tt.tensordesc<tensor<16x64xf32>>", "i32", "i32", "i64", "i64", "!tt.ptr<f32>"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (AMPERE, POINTERS),
        (HOPPER, MAPS),
        (GPUTarget("hip", "gfx942", 64), POINTERS),
        (GPUTarget("cpu", "", 1), POINTERS),
    ],
    ids=["sm_80", "sm_90", "gfx942", "cpu"],
)
def test_the_parameters_that_a_descriptor_becomes(target: GPUTarget, expected: list[str]) -> None:
    constants = {"HEIGHT": 16, "WIDTH": 64}
    text = lower(ASTSource(loads, TYPES, constants), target, ["ttir"])["ttir"]
    found = re.findall(
        r"%\w+: (!tt\.\w+<(?:[^<>]|<[^<>]*>)*>|i\d+)", text[text.index("tt.func public") :].splitlines()[0]
    )
    assert found == expected


@pytest.mark.parametrize("dtype", ["f2", "f8", "i4", "u4"])
def test_only_float32_rounds(dtype: str) -> None:
    wrong = np.zeros((8, 64), dtype)
    with pytest.raises(AssertionError, match=r"^round_f32_to_tf32 is only supported for float32 tensors$"):
        TensorDescriptor(wrong, [8, 64], [64, 1], [8, 64], "zero", True)
    with pytest.raises(AssertionError, match=r"^round_f32_to_tf32 is only supported for float32 tensors$"):
        TensorDescriptor.from_tensor(wrong, [8, 64], round_f32_to_tf32=True)
    TensorDescriptor.from_tensor(wrong, [8, 64], round_f32_to_tf32=False)
