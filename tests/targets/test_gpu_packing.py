"""Elements of 8 and 16 bits go from block to block in words of 32: what a register holds, and what ptxas spills without
losing any."""

import re
from collections import Counter

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.gpu_text import kernel_ptx, launch


@tilework.jit
def ways(x_ptr, y_ptr, out_ptr, rounds, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    for k in range(rounds):
        if k == 1:
            x = -x
            y = y ^ 1
        x = x + tl.load(x_ptr + k * SIZE + at)
    y = ~y
    while rounds > 2:
        y = y ^ 5
        rounds -= 1
    tl.store(out_ptr + at, x.to(tl.float32) + y.to(tl.float32))


def test_small_elements_cross_blocks_in_words() -> None:
    """PTX has registers of 16 bits (%rs); none of them is set more than once, as those are that several blocks
    set."""
    types = {"x_ptr": "*fp16", "y_ptr": "*i8", "out_ptr": "*fp32", "rounds": "i32"}
    text = kernel_ptx(ways, types, {"SIZE": 256}, 90, 1)
    one, several = re.findall(r"^\s[\w.]+ \s*(%rs\d+),", text, re.M), re.findall(r"mov\.b32 \s*{([^}]*)}, %r", text)
    counts = Counter([*one, *(name for names in several for name in names.split(", "))])
    assert len(counts) > 16 and max(counts.values()) == 1
    rng = np.random.default_rng(5)
    x, y = rng.integers(-9, 9, (5, 256)).astype("f2"), rng.integers(-99, 99, 256).astype("i1")
    for rounds in (0, 1, 2, 5):
        out = np.zeros(256, "f4")
        launch(text, "ways", [x, y, out, rounds], 1)
        first, second = x[0].astype("f4"), y
        for k in range(rounds):
            if k == 1:
                first, second = -first, second ^ 1
            first = first + x[k]
        second = ~second ^ (5 * (max(0, rounds - 2) % 2))
        np.testing.assert_array_equal(out, first + second)


@tilework.jit
def cast(x_ptr, out_ptr):
    at = tl.arange(0, 512)
    tl.store(out_ptr + at, tl.load(x_ptr + at).to(out_ptr.dtype.element_ty))


@pytest.mark.parametrize("types", [("*fp16", "*fp8e4nv"), ("*fp32", "*fp8e5"), ("*fp32", "*fp8e4nv")])
def test_converted_bytes_are_stored_as_the_instruction_packs_them(types: tuple[str, str]) -> None:
    text = kernel_ptx(cast, dict(zip(("x_ptr", "out_ptr"), types, strict=True)), {}, 90, 4)
    assert "cvt.rn.satfinite" in text and "prmt" not in text


@tilework.jit
def widen_each(x_ptr, out_ptr, stride):
    at = tl.arange(0, 128)
    tl.store(out_ptr + at, tl.load(x_ptr + at * stride).to(tl.float32))


@pytest.mark.parametrize(("stride", "shifts", "masks"), [("i32", 4, 0), (1, 2, 2)])
def test_a_bfloat_that_is_loaded_alone_is_widened_alone(stride: str | int, shifts: int, masks: int) -> None:
    """Packing it first costs an instruction, and ptxas then loads late."""
    is_argument = isinstance(stride, str)
    types = {"x_ptr": "*bf16", "out_ptr": "*fp32"} | ({"stride": stride} if is_argument else {})
    text = kernel_ptx(widen_each, types, {} if is_argument else {"stride": stride}, 90, 1)
    assert len(re.findall(r"shl\.b32\s.*, 16;", text)) == shifts
    assert text.count(", -65536;") == masks and "mov.b32 \t%r" not in text
    x = np.random.default_rng(6).integers(0, 1 << 16, 256).astype("u2")
    out = np.zeros(128, "f4")
    launch(text, "widen_each", [x, out, *([2] if is_argument else [])], 1)
    expected = x[::2] if is_argument else x[:128]
    np.testing.assert_array_equal(out.view("u4"), expected.astype("u4") << 16)
