"""Kernels in Python from `kernel[grid](...)` to PTX, on the emulated CUDA driver."""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedCuda]:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    with knobs.cache.scope(), emulated_cuda() as library:
        knobs.cache.dir = str(tmp_path)
        yield library
    for kernel in (add, axpy, while_halved):
        kernel.device_caches.clear()


@tilework.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)


@tilework.jit
def axpy(x_ptr, a, yes, n: tl.int64, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=-1)
    if yes:
        x = x * a
    tl.store(x_ptr + offsets, x, mask=offsets < n)


@tilework.jit
def while_halved(x_ptr, count_ptr):
    x, count = tl.load(x_ptr), 0
    while x > 1:
        x = x // 2
        count += 1
    tl.store(count_ptr, count)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int8, np.int64])
@pytest.mark.parametrize("warps", [1, 4, 8])
def test_vector_add(cuda: EmulatedCuda, dtype: type, warps: int) -> None:
    x, y = (np.random.default_rng(seed).integers(0, 50, 1000).astype(dtype) for seed in (1, 2))
    a, b, out = (DeviceArray.of(array) for array in (x, y, np.zeros(1000, dtype)))
    kernel = add[(tilework.cdiv(1000, 256),)](a, b, out, 1000, BLOCK=256, num_warps=warps)
    np.testing.assert_array_equal(out.numpy(), x + y)
    assert cuda.launches[-1].block == (32 * warps, 1, 1) and list(kernel.asm) == [
        "source",
        "ttir",
        "ttgir",
        "llir",
        "ptx",
    ]


@pytest.mark.parametrize("yes", [False, True])
def test_scalars_of_every_kind(cuda: EmulatedCuda, yes: bool) -> None:
    x = DeviceArray.of(np.arange(100, dtype=np.float32))
    axpy[(1,)](x, 2.5, yes, 60, BLOCK=128)
    expected = np.arange(100, dtype=np.float32)
    expected[:60] *= 2.5 if yes else 1
    np.testing.assert_array_equal(x.numpy(), expected)


def test_loops_over_scalars(cuda: EmulatedCuda) -> None:
    x, count = (DeviceArray.of(np.array([value], np.int32)) for value in (1000, 0))
    while_halved[(1,)](x, count)
    assert count.numpy()[0] == 9


def test_arrays_of_the_host_are_refused(cuda: EmulatedCuda) -> None:
    x = np.zeros(64, np.float32)
    with pytest.raises(ValueError, match=r"cannot be accessed from Triton.*argument 0 .*TILEWORK_DEVICE=native"):
        add[(1,)](x, x, x, 64, BLOCK=64)
