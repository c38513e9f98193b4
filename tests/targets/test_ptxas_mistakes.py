"""Workarounds for ptxas keep the meaning of code, also in PTX that the user writes."""

# pyright: reportMissingParameterType=false

import re

import numpy as np
import pytest

import tilework.language as tl
from tests.targets.gpu_text import kernel_ptx, launch
from tests.targets.test_gpu_regressions import assembled
from tilework.language.function import jit
from tilework.targets.nvidia.ptx import without_mistakes

NEGATED = tl.constexpr("{ .reg .pred p; setp.lt.s32 p, $2, 0; mov.b32 $0, 100; @!p neg.s32 $0, $1; }")
UPPER = tl.constexpr(
    "{ .reg .pred p; .reg .b32 high; setp.lt.s32 p, $2, 0; mov.b32 high, 7; @p mul.hi.u32 high, $1, $2; "
    "cvt.u64.u32 $0, high; }"
)


@jit
def negated_there(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    value = tl.inline_asm_elementwise(NEGATED, "=r,r,r", [n, a], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + at, tl.minimum(tl.minimum(value, a + 500), 600))


def test_a_negative_under_a_predicate() -> None:
    ptx = kernel_ptx(negated_there, {"x": "*i32", "out": "*i32", "n": "i32"}, {"N": 32}, 90, warps=1)
    assert "neg.s32" not in assembled(ptx, 90)
    x, out = np.arange(32, dtype=np.int32) - 16, np.zeros(32, np.int32)
    launch(ptx, "negated_there", [x, out, 3], warps=1)
    np.testing.assert_array_equal(out, np.minimum(np.minimum(np.where(x < 0, 100, -3), x + 500), 600))


@jit
def upper_there(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    value = tl.inline_asm_elementwise(UPPER, "=l,r,r", [at + 8, a], dtype=tl.int64, is_pure=True, pack=1)
    tl.store(out + at, value - tl.program_id(0))


def test_an_upper_half_under_a_predicate() -> None:
    ptx = kernel_ptx(upper_there, {"x": "*i32", "out": "*i64"}, {"N": 32}, 90, warps=1)
    assert "mul.hi.u32" not in assembled(ptx, 90)
    x, out = np.arange(32, dtype=np.int32) - 16, np.zeros(32, np.int64)
    launch(ptx, "upper_there", [x, out], warps=1)
    product = (np.arange(32, dtype=np.int64) + 8) * (x.astype(np.int64) % 2**32) >> 32
    np.testing.assert_array_equal(out, np.where(x < 0, product, 7))


def test_an_upper_half_that_is_moved_before_it_is_extended() -> None:
    text = "mul.hi.u32 %r1, %r8, 9;\nmul.hi.u32 t, %r8, 9;\nmov.b32 %r2, t;\nmov.u32 %r3, %r2;\ncvt.u64.u32 %rd1, %r3;"
    assert [line.startswith("{") for line in without_mistakes(text).splitlines()] == [False, True, False, False, False]


FORMS = ["neg.s32 %r3, %r2", "sub.s32 %r3, 0, %r2", "mul.lo.s32 %r3, %r2, -1", "mad.lo.s32 %r3, %r2, -1, 0"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_negative(form: str) -> None:
    text = f"ld.param.v2.b32 {{%r1, %r2}}, [p];\n{form};\nmin.s32 %r5, %r3, %r4;"
    assert without_mistakes(text).splitlines()[1] == "not.b32 %r3, %r2; add.s32 %r3, %r3, 1;"
    assert without_mistakes(text.replace("min", "or")) == text.replace("min", "or"), "no extremes, no mistake"


@jit
def least_of_three(x, out, n, wide, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(x + N + at)
    tl.store(out + at, tl.minimum(tl.minimum(n * -1, a), b))
    tl.store(out + N + at, tl.minimum(tl.minimum(-wide.to(tl.int32), a), b))
    tl.store(out + 2 * N + at, tl.maximum(tl.maximum(-tl.abs(n), a), b))


def test_negatives_of_what_is_made_of_parameters() -> None:
    types = {"x": "*i32", "out": "*i32", "n": "i32", "wide": "i64"}
    ptx = assembled(kernel_ptx(least_of_three, types, {"N": 32}, 90, warps=1), 90)
    assert not re.search(r"neg\.s32|, -1;", ptx) and ptx.count("not.b32") >= 3
    x, out = np.arange(64, dtype=np.int32) % 11 - 5, np.zeros(96, np.int32)
    launch(ptx, "least_of_three", [x, out, 3, 4], warps=1)
    least, largest = np.minimum(x[:32], x[32:]), np.maximum(x[:32], x[32:])
    np.testing.assert_array_equal(out, [*np.minimum(least, -3), *np.minimum(least, -4), *np.maximum(largest, -3)])


def test_every_instruction_has_the_predicate() -> None:
    text = (
        "ld.param.b32 %r1, [p];\n@!%p1 neg.s32 %r1, %r1;\nmin.s32 %r5, %r3, %r4;\n"
        "@%p2 mul.hi.u32 %r7, %r8, 9;\ncvt.u64.u32 %rd1, %r7;"
    )
    changed = [line for line in without_mistakes(text).splitlines() if line not in text.splitlines()]
    assert changed[0] == "@!%p1 not.b32 %r1, %r1; @!%p1 add.s32 %r1, %r1, 1;"
    assert re.fullmatch(r"\{.* @%p2 cvt\.u32\.u64 %r7, %whole; \}", changed[1]) and not re.search(
        r"@%p2 \{", changed[1]
    )


@jit
def shorts(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    a = tl.load(x + at)
    negative = tl.sub(tl.full((N,), 0, tl.int16), a, sanitize_overflow=False)
    tl.store(out + at, tl.abs(a).to(tl.int64))
    tl.store(out + N + at, negative.to(tl.int64))
    tl.store(out + 2 * N + at, (negative >> 2).to(tl.int64))
    tl.store(out + 3 * N + at, tl.abs(a).to(tl.uint16, bitcast=True).to(tl.float32).to(tl.int64))


def test_numbers_of_16_bits_wrap() -> None:
    ptx = assembled(kernel_ptx(shorts, {"x": "*i16", "out": "*i64"}, {"N": 32}, 90, warps=1), 90)
    assert not re.search(r"neg\.s16|abs\.s16|sub\.s16\s+\S+, 0,", ptx)
    x, out = np.arange(-32768, -32736, dtype=np.int16), np.zeros((4, 32), np.int64)
    launch(ptx, "shorts", [x, out.reshape(-1)], warps=1)
    np.testing.assert_array_equal(out, [np.abs(x), -x, -x >> 2, np.abs(x).view(np.uint16)])
    assert without_mistakes("@%p1 abs.s16 %rs1, %rs1;").endswith("@%p1 cvt.u16.u32 %rs1, %wide; }")
    text = "@%p1 not.b16 %rs1, %rs2; @%p1 add.s16 %rs1, %rs1, 1;"
    assert without_mistakes("@%p1 neg.s16 %rs1, %rs2;") == without_mistakes("@%p1 sub.s16 %rs1, 0, %rs2;") == text
