"""Launches of kernels on tiles of odd sizes, on an emulated GPU: descriptors of the host, prints, asserts, tensor
cores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.inspect.profiler.estimate import estimate
from tilework.inspect.profiler.launches import work_of
from tilework.ir.parser import parse_module
from tilework.runtime.devices.checked_launch import KernelAccessError
from tilework.tools.tensor_descriptor import TensorDescriptor

CE = tl.constexpr


@pytest.fixture(autouse=True)
def hopper(tmp_path: Path) -> Any:
    with emulator("sm_90", str(tmp_path)):
        yield


@tilework.jit
def through_descriptors(odd, even, out):
    x = odd.load([0, 0])
    out.store([1, 1], x * 2)
    even.store([16, 0], even.load([0, 16]) + tl.sum(x))


def test_descriptors_of_the_host_with_odd_blocks_beside_a_tensor_map() -> None:
    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    even, out = x.copy(), np.full((24, 48), -1, np.float32)
    given = TensorDescriptor.from_tensor(x, [6, 12]), TensorDescriptor.from_tensor(even, [16, 16])
    made = through_descriptors[(1,)](*given, TensorDescriptor.from_tensor(out, [6, 12]))
    expected = np.full_like(out, -1)
    expected[1:7, 1:13] = x[:6, :12] * 2
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(even[16:, :16], x[:16, 16:32] + x[:6, :12].sum())
    assert made.asm["ptx"].count("cp.async.bulk.tensor") == 2  # of the even one: a load and a store


@tilework.jit
def shows(x, N: CE):
    value = tl.load(x + tl.arange(0, N))
    tl.device_assert(value > 0, "positive")
    tl.device_print("v", value)


def test_prints_show_and_asserts_ask_what_is_seen(capfd: pytest.CaptureFixture[str]) -> None:
    shows[(1,)](np.arange(1, 12, dtype=np.int32), 11, debug=True)
    lines = sorted(capfd.readouterr().out.split("\n")[:-1])
    assert lines == sorted(f"pid (0, 0, 0) idx ({i:2}) v: {i + 1}" for i in range(11))
    with pytest.raises(RuntimeError, match="positive"):
        shows[(1,)](np.arange(11, dtype=np.int32), 11, debug=True)


@tilework.jit
def multiply(a, b, c, K, M: CE, N: CE, BLOCK: CE):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BLOCK)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK):
        x = tl.load(a + i * K + start + k[None, :])
        total = tl.dot(x, tl.load(b + (start + k[:, None]) * N + j), total)
    tl.store(c + i * N + j, total)


def test_products_of_odd_tiles_are_pipelined_on_tensor_cores() -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, shape).astype(np.float16) for shape in ((96, 96), (96, 24)))
    c = np.full((97, 24), 7, np.float32)
    args = a, b, c, 96, 96, 24, 48
    made = multiply[(1,)](*args)
    np.testing.assert_array_equal(c[:96], a.astype(np.float32) @ b.astype(np.float32))
    assert (c[96:] == 7).all()
    ptx = made.asm["ptx"]
    found = estimate(parse_module(made.asm["ttir"]), work_of(made.launcher, (1, 1, 1), args))
    assert found.flops == {"fp16": 2 * 96 * 24 * 96}  # what is padded does not count
    assert "wgmma.mma_async" in ptx and "cp.async.cg.shared.global" in ptx and "ld.global" not in ptx


def shifted(x, out, BY: CE, N: CE):
    row = tl.load(x + tl.arange(0, N) + BY)
    tl.store(out + tl.arange(0, N), row // tl.max(row) + tl.sort(row))


@pytest.mark.parametrize("gpu", ["sm_90", "gfx942"])
def test_the_sanitizer_checks_what_is_seen(gpu: str, tmp_path: Path) -> None:
    x, kernel = np.arange(1, 12, dtype=np.int32), tilework.jit(shifted)
    with emulator(gpu, str(tmp_path)):
        out = np.zeros_like(x)
        kernel[(1,)](x, out, 0, 11, sanitize="strict")
        np.testing.assert_array_equal(out, x // 11 + x)
        with pytest.raises(KernelAccessError, match="reads element 11 of argument 'x', which has 11 elements"):
            kernel[(1,)](x, out, 1, 11, sanitize=True)
