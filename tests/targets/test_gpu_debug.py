"""Printing and assertions on GPUs: the lines of `tl.device_print`, and what an assert that fails says."""

import re
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.gpu_text import (
    NAMES,
    blocked,
    elementwise_text,
    kernel_ptx,
    launch,
    module_text,
    ptx_of,
    with_tensors,
)
from tilework.oracles.emulator.syntax import EmulatorError


def printed(ptx: str, args: Any, warps: int = 1, grid: Any = 1, name: str = "kernel") -> list[str]:
    lines: list[str] = []
    launch(ptx, name, args, warps, grid, output=lines.append)
    return "".join(lines).splitlines()


def print_array(x: Any, flags: str, arch: int = 90, per_thread: int = 1, warps: int = 1) -> list[str]:
    name = NAMES[x.dtype]
    body = f'tt.print " x: " {{{flags}}} : %x : T<{name}>'
    return printed(ptx_of(elementwise_text(body, {"x": name}, {}, len(x), arch, per_thread, warps), arch), [x], warps)


SIGNED, UNSIGNED = "hex = false, isSigned = array<i32: 1>", "hex = false, isSigned = array<i32: 0>"


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", "f2", "f4", "f8", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn], ids=str
)
def test_every_element_once(dtype: Any, arch: int) -> None:
    x = (np.arange(64) - 20).astype(dtype)
    lines = print_array(x, SIGNED, arch, 2, 4)
    form = "{:f}" if x.dtype.kind in "fV" or x.dtype not in [np.dtype(f"i{n}") for n in (1, 2, 4, 8)] else "{}"
    wanted = [
        f"pid (0, 0, 0) idx ({i:2}) x: {form.format(float(v) if 'f' in form else int(v))}" for i, v in enumerate(x)
    ]
    assert sorted(lines) == sorted(wanted)


def test_unsigned_and_hex() -> None:
    x = np.array([-1, 5] * 16)
    assert set(print_array(x.astype("i4"), UNSIGNED)) >= {
        "pid (0, 0, 0) idx ( 0) x: 4294967295",
        "pid (0, 0, 0) idx ( 1) x: 5",
    }
    assert "pid (0, 0, 0) idx ( 0) x: 18446744073709551615" in print_array(x.astype("i8"), UNSIGNED)
    assert "pid (0, 0, 0) idx ( 0) x: 255" in print_array(x.astype("i1"), UNSIGNED)
    assert "pid (0, 0, 0) idx (31) x: 1" in print_array(x > 0, UNSIGNED)
    as_hex = "hex = true, isSigned = array<i32: 1>"
    for dtype, text in (
        ("i1", "0xff"),
        ("i2", "0xffff"),
        ("i4", "0xffffffff"),
        ("i8", "0x" + "f" * 16),
        ("f2", "0xbc00"),
        ("f4", "0xbf800000"),
    ):
        assert f"pid (0, 0, 0) idx ( 0) x: {text}" in print_array(x.astype(dtype), as_hex)


def test_scalars_prefixes_and_pointers() -> None:
    """A scalar is printed by every thread, and so is a prefix alone."""
    body = """%c = arith.constant 42 : i32
    tt.print " 100%: " {hex = false, isSigned = array<i32: 1, 0>} : %c, %p : i32, !tt.ptr<f32>
    tt.print " hello" {hex = false, isSigned = array<i32>}"""
    ptx = ptx_of(module_text(["%p: !tt.ptr<f32>"], body, 90, 1), 90)
    lines = Counter(printed(ptx, [np.zeros(1, np.float32)], grid=(1, 2)))
    for program in (0, 1):
        assert lines[f"pid (0, {program}, 0) idx () 100%: (operand 0) 42"] == 32
        assert lines[f"pid (0, {program}, 0) hello"] == 32
    assert (
        sum(
            count
            for line, count in lines.items()
            if re.fullmatch(r"pid \(0, ., 0\) idx \(\) 100%: \(operand 1\) 0x[0-9a-f]+", line)
        )
        == 64
    )


@tilework.jit
def print_tile(x_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.device_print("x", x, tl.program_id(1))


def test_tile() -> None:
    x = np.arange(4 * 16, dtype=np.int32)
    lines = printed(
        kernel_ptx(print_tile, {"x_ptr": "*i32"}, {"M": 4, "N": 16}, 90, 4), [x], 4, (1, 1, 2), "print_tile"
    )
    tiles = [line for line in lines if "(operand 0)" in line]
    wanted = [
        f"pid (0, 0, {z}) idx ({i}, {j:2}) x: (operand 0) {i * 16 + j}"
        for z in range(2)
        for i in range(4)
        for j in range(16)
    ]
    assert sorted(tiles) == sorted(wanted)
    assert len(lines) - len(tiles) == 2 * 128


# Assertions


@tilework.jit
def positive(x_ptr, y_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_assert(x > 0, 'x is not "positive"')
    tl.store(y_ptr + tl.arange(0, N), x)


@pytest.mark.parametrize("arch", [80, 90])
def test_assert(arch: int) -> None:
    ptx = kernel_ptx(positive, {"x_ptr": "*i32", "y_ptr": "*i32"}, {"N": 256}, arch, 4)
    x, y = np.arange(1, 257, dtype=np.int32), np.zeros(256, np.int32)
    launch(ptx, "positive", [x, y], 4)
    np.testing.assert_array_equal(x, y)
    x[200] = 0
    line = positive.fn.__code__.co_firstlineno + 3
    with pytest.raises(
        EmulatorError, match=f'test_gpu_debug.py:{line}: positive: assertion `x is not "positive"` failed'
    ):
        launch(ptx, "positive", [x, y], 4)


def test_assert_in_two_registers() -> None:
    """Any element of any register."""
    body = '%c = arith.cmpi sgt, %x, %z : T<i32>\ntt.assert %c, "no" : T<i1>'
    ptx = ptx_of(elementwise_text(body, {"x": "i32", "z": "i32"}, {}, 64, 90, 2, 1), 90)
    for index in (0, 17, 63):
        x, z = np.ones(64, np.int32), np.zeros(64, np.int32)
        launch(ptx, "kernel", [x, z], 1)
        x[index] = 0
        with pytest.raises(EmulatorError, match="`no` failed"):
            launch(ptx, "kernel", [x, z], 1)


def test_scalar_assert() -> None:
    body = with_tensors('tt.assert %c, "scalar" : i1', 32, blocked(1, 1))
    ptx = ptx_of(module_text(["%c: i1"], body, 90, 1), 90)
    assert "bar.sync" not in ptx
    launch(ptx, "kernel", [np.uint8(1)], 1)
    with pytest.raises(EmulatorError, match="`scalar` failed"):
        launch(ptx, "kernel", [np.uint8(0)], 1)
