"""Kernels for GPUs that check themselves, on the emulated CUDA driver: the device goes on after each report."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import errors, knobs
from tilework.errors import SanitizerError, SanitizerWarning
from tilework.knobs import cuda_tools
from tilework.oracles.interpreter.allowed_memory import AccessError
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.tools.tensor_descriptor import TensorDescriptor

HERE = Path(__file__)


@pytest.fixture(scope="module", autouse=True)
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedCuda]:
    with pytest.MonkeyPatch.context() as patch, knobs.cache.scope(), emulated_cuda() as library:
        patch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
        knobs.cache.dir = str(tmp_path_factory.mktemp("cache"))
        yield library
    for kernel in KERNELS:
        kernel.device_caches.clear()


def report(call: Any, kind: type[Exception] = SanitizerError) -> str:
    """The text of the error of a call."""
    with pytest.raises(kind) as found:
        call()
    return str(found.value)


def line_of(text: str) -> int:
    """The number of the first line of this file that has `text`."""
    return 1 + next(n for n, line in enumerate(HERE.read_text().splitlines()) if text in line)


def device(array: Any) -> DeviceArray:
    return DeviceArray.of(np.asarray(array))


@tilework.jit(sanitize=True)
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v, mask=i < n)


@tilework.jit(sanitize=True)
def one(x, at):
    tl.store(x + at, 7.0)


@tilework.jit(sanitize=True)
def gathered(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


@tilework.jit(sanitize=True)
def atomics(x, index, at, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(x + tl.load(index + i), 1, mask=i < BLOCK - 1)
    tl.atomic_cas(x + at, 0, 9)


@tilework.jit(noinline=True)
def store_apart(p, value):
    tl.store(p + tl.arange(0, 16), value)


@tilework.jit(sanitize=True)
def calling(x, offset):
    store_apart(x + offset, 1.0)


@tilework.jit(sanitize=True)
def through_memory(table, out):
    p = tl.load(table).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, 16)
    tl.store(out + i, tl.load(p + i))


@tilework.jit(sanitize=True)
def values(x, out, d, n, m):
    i = tl.arange(0, 16)
    v = tl.load(x + i, mask=i < n)
    q = i // d
    tl.store(out + i, v + q, mask=i < m)


@tilework.jit(sanitize=True)
def described(source, out):
    tile = source.load([0, 0])
    tl.store(out + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], tile)


@tilework.jit(sanitize=True)
def matmul(a, b, out, k, K: tl.constexpr):
    i, j, s = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, K)
    total = tl.zeros([16, 16], tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + i[:, None] * k + (start + s)[None, :])
        right = tl.load(b + (start + s)[:, None] * 16 + j[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + i[:, None] * 16 + j[None, :], total)


KERNELS = (copy, one, gathered, atomics, calling, through_memory, values, described, matmul, store_apart)


def test_a_good_kernel_gives_its_result() -> None:
    x, out = np.arange(1000, dtype=np.float32), device(np.zeros(1000, np.float32))
    kernel = copy[(8,)](device(x), out, 1000, BLOCK=128)
    np.testing.assert_array_equal(out.numpy(), x)
    assert kernel.metadata.sanitize and "tilework.sanitizer" in kernel.asm["ttgir"]


def test_a_read_outside_says_where_and_what() -> None:
    x, out = device(np.arange(1000, dtype=np.float32)), device(np.zeros(1024, np.float32))
    text = report(lambda: copy[(8,)](x, out, 1001, BLOCK=128), AccessError)
    line = line_of("v = tl.load(x + i, mask=i < n)")
    assert text.splitlines()[:2] == [
        f"{HERE}:{line}:9: error: program (7, 0, 0) reads element 1000 of argument 'x', which has 1000 elements"
        " (out of bounds)",
        f"{line:5d} |     v = tl.load(x + i, mask=i < n)",
    ]
    copy[(8,)](x, out, 1000, BLOCK=128)
    np.testing.assert_array_equal(out.numpy()[:1000], x.numpy())


def test_a_write_outside_is_not_done(cuda: EmulatedCuda) -> None:
    memory = device(np.zeros(64, np.float32))
    for at in (64, -1, 2**30):
        text = report(lambda at=at: one[(1,)](memory, at))
        assert f"writes element {at} of argument 'x', which has 64 elements" in text
    one[(1,)](memory, 63)
    assert memory.numpy().tolist() == [0] * 63 + [7]
    assert not cuda.failure


@pytest.mark.parametrize("lane", [0, 37, 63])
def test_one_lane_of_a_gather(lane: int) -> None:
    index = np.arange(64, dtype=np.int32)[::-1].copy()
    x, out = device(np.arange(64, dtype=np.float32)), device(np.zeros(64, np.float32))
    gathered[(1,)](x, device(index), out, BLOCK=64)
    index[lane] = -5
    assert "reads element -5 of argument 'x'" in report(lambda: gathered[(1,)](x, device(index), out, BLOCK=64))


def test_atomics() -> None:
    x, index = device(np.zeros(8, np.int32)), np.array([0, 1, 1, 999], np.int32)
    atomics[(1,)](x, device(index), 5, BLOCK=4)
    assert x.numpy().tolist() == [1, 2, 0, 0, 0, 9, 0, 0]
    assert "updates element 8 of argument 'x'" in report(lambda: atomics[(1,)](x, device(index), 8, BLOCK=4))
    index[1] = -1
    assert "updates element -1 of argument 'x'" in report(lambda: atomics[(1,)](x, device(index), 5, BLOCK=4))


def test_functions_that_are_not_inlined() -> None:
    x = device(np.zeros(32, np.float32))
    calling[(1,)](x, 16)
    assert x.numpy()[16:].all()
    text = report(lambda: calling[(1,)](x, 17))
    assert "writes element 32 of argument 'x'" in text and "tl.store(p + tl.arange(0, 16), value)" in text


def test_addresses_that_were_loaded() -> None:
    hidden, out = device(np.arange(16, dtype=np.float32)), device(np.zeros(16, np.float32))
    text = report(lambda: through_memory[(1,)](device(np.array([hidden.data_ptr()])), out))
    assert f"{HERE}:{line_of('tl.store(out + i, tl.load(p + i))')}:" in text
    assert (
        "(out of bounds)" in text or "which is in no array the kernel was given" in text
    )  # as far as it is from others
    through_memory[(1,)](device(np.array([out.data_ptr()])), out)


def test_wrong_numbers_and_undefined_lanes() -> None:
    x, out = device(np.arange(16, dtype=np.float32)), device(np.zeros(16, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SanitizerWarning)
        values[(1,)](x, out, 3, 9, 9)
    np.testing.assert_array_equal(out.numpy()[:9], np.arange(9) + np.arange(9) // 3)
    text = report(lambda: values[(1,)](x, out, 0, 9, 9))
    assert text.startswith(f"{HERE}:{line_of('q = i // d')}:") and "program (0, 0, 0): division by zero" in text
    errors.SHOWN.clear()
    with pytest.warns(SanitizerWarning, match="a load of argument 'x' masks elements off") as found:
        values[(2,)](x, out, 3, 9, 10)
    assert (found[0].filename, found[0].lineno) == (str(HERE), line_of("q = i // d") - 1)
    assert "masks elements off" in report(lambda: values[(1,)](x, out, 3, 9, 10, sanitize="strict"))


def test_descriptors() -> None:
    x, out = device(np.arange(240, dtype=np.float32).reshape(15, 16)), device(np.zeros((16, 16), np.float32))
    described[(1,)](TensorDescriptor(x, [15, 16], [16, 1], [16, 16]), out)
    np.testing.assert_array_equal(out.numpy()[:15], x.numpy())
    text = report(lambda: described[(1,)](TensorDescriptor(x, [16, 16], [16, 1], [16, 16]), out))
    assert "reads element 240 of argument 'source'" in text


def test_a_loop_over_products() -> None:
    a, b = (np.arange(512, dtype=np.float16).reshape(shape) % 7 for shape in ((16, 32), (32, 16)))
    out = device(np.zeros((16, 16), np.float32))
    matmul[(1,)](device(a), device(b), out, 32, K=16)
    np.testing.assert_allclose(out.numpy(), a.astype("f4") @ b.astype("f4"))
    text = report(lambda: matmul[(1,)](device(a), device(b[:31]), out, 32, K=16))
    assert "of argument 'b', which has 496 elements" in text and "index (31, " in text


def test_races_are_looked_for_on_the_cpu() -> None:
    x = device(np.zeros(64, np.float32))
    with pytest.raises(ValueError, match="looks for races on the CPU"):
        one[(1,)](x, 3, sanitize="race")
