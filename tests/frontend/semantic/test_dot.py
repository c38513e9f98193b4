"""`dot` and `dot_scaled`."""

import pytest

from tilework.language import core as tl
from tilework.language.typing.shapes import shape_of


def dot(k, a, b, acc=None, precision=None, allow_tf32=None, limit=None, out=tl.float32):
    return k.sem.dot(a, b, acc, precision, allow_tf32, limit, out)


def scaled(k, a, a_scale, a_format, b, b_scale, b_format, acc=None, fast=False, a_pack=True, b_pack=True):
    return k.sem.dot_scaled(a, a_scale, a_format, b, b_scale, b_format, acc, fast, a_pack, b_pack, tl.float32)


def test_zeros_and_default_precision(kernel) -> None:
    k = kernel()
    c = dot(k, k.block(tl.float16, 32, 16), k.block(tl.float16, 16, 64))
    assert c.type == tl.block_type(tl.float32, [32, 64])
    lines = k.lines()
    assert "arith.constant dense<0.000000e+00> : tensor<32x64xf32>" in lines
    assert "tt.dot %, %, %, inputPrecision = tf32 : tensor<32x16xf16> * tensor<16x64xf16> -> tensor<32x64xf32>" in lines


def test_accumulator_and_precisions(kernel) -> None:
    k = kernel()
    a = k.block(tl.float32, 16, 16)
    c = dot(k, a, a, precision="IEEE")
    dot(k, a, a, acc=c, precision="bf16x3")
    dot(k, a, a, acc=c, allow_tf32=False, limit=128)
    lines = k.lines()
    types = "tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>"
    assert f"tt.dot %, %, % : {types}" in lines
    assert f"tt.dot %, %, %, inputPrecision = bf16x3 : {types}" in lines
    assert f"tt.dot %, %, % {{maxNumImpreciseAcc = 128 : i32}} : {types}" in lines


@pytest.mark.parametrize(
    "dtype, out, result",
    [
        (tl.int8, tl.float32, tl.int32),
        (tl.bfloat16, tl.float32, tl.float32),
        (tl.float64, tl.float64, tl.float64),
        (tl.float16, tl.float16, tl.float16),
        (tl.float8e5, tl.float32, tl.float32),
    ],
)
def test_result_types(kernel, dtype, out, result) -> None:
    k = kernel()
    a = k.block(dtype, 32, 32)
    c = dot(k, a, a, out=out)
    assert c.dtype == result
    assert dot(k, a, a, acc=k.block(result, 32, 32), out=result).dtype == result
    k.lines()


def test_higher_ranks_are_one_batch(kernel) -> None:
    k = kernel()
    a, b = k.block(tl.float32, 2, 4, 16, 32), k.block(tl.float32, 2, 4, 32, 16)
    assert shape_of(dot(k, a, b, acc=k.block(tl.float32, 2, 4, 16, 16))) == (2, 4, 16, 16)
    lines = k.lines()
    assert "tt.reshape % : tensor<2x4x16x32xf32> -> tensor<8x16x32xf32>" in lines
    types = "tensor<8x16x32xf32> * tensor<8x32x16xf32> -> tensor<8x16x16xf32>"
    assert f"tt.dot %, %, %, inputPrecision = tf32 : {types}" in lines
    assert "tt.reshape % : tensor<8x16x16xf32> -> tensor<2x4x16x16xf32>" in lines


def test_fp8_limits(kernel) -> None:
    k = kernel()
    a, b = k.block(tl.float8e5, 32, 64), k.block(tl.float8e4nv, 64, 32)
    dot(k, a, b)
    dot(k, a, b, limit=32)
    with pytest.raises(ValueError, match=r"^max_num_imprecise_acc \(128\) must be <= K \(64\)$"):
        dot(k, a, b, limit=128)
    lines = k.lines()
    types = "tensor<32x64xf8E5M2> * tensor<64x32xf8E4M3FN> -> tensor<32x32xf32>"
    for limit in (2**30, 32):
        assert f"tt.dot %, %, %, inputPrecision = tf32 {{maxNumImpreciseAcc = {limit} : i32}} : {types}" in lines


def test_the_knob_wins_over_allow_tf32(kernel) -> None:
    k = kernel({"f32_default": "bf16x6"})
    a = k.block(tl.float32, 16, 16)
    dot(k, a, a, allow_tf32=False)
    dot(k, a, a, precision="tf32x3")
    precisions = [line.split("=")[1].split()[0] for line in k.lines() if "tt.dot" in line]
    assert precisions == ["bf16x6", "tf32x3"]


@pytest.mark.parametrize("other", [tl.float8e4b15, tl.float8e5])
def test_fp8e4b15_is_widened_with_a_warning(kernel, other) -> None:
    k = kernel()
    with pytest.warns(UserWarning, match="the use of fp8e4b15 is deprecated on Hopper and later architectures"):
        dot(k, k.block(tl.float8e4b15, 32, 32), k.block(other, 32, 32))
    types = "tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>"
    assert f"tt.dot %, %, %, inputPrecision = tf32 : {types}" in k.lines()


def test_dot_rejects(kernel) -> None:
    k = kernel()
    a, h, tiny = k.block(tl.float32, 16, 16), k.block(tl.float16, 16, 16), k.block(tl.int8, 8, 8)
    for arguments, error, message in [
        ({"a": a, "b": h}, AssertionError, "same dtype. Got fp32 and fp16"),
        ({"a": tiny, "b": tiny}, AssertionError, "Input shapes should have M >= 1, N >= 1 and K >= 32"),
        ({"a": k.block(tl.uint8, 32, 32), "b": k.block(tl.uint8, 32, 32)}, AssertionError, "only int8 supported"),
        (
            {"a": k.block(tl.int32, 32, 32), "b": k.block(tl.int32, 32, 32)},
            AssertionError,
            "Unsupported lhs dtype int32",
        ),
        (
            {"a": a, "b": k.block(tl.float32, 32, 16)},
            AssertionError,
            "input and other must have equal reduction dimensions",
        ),
        ({"a": a, "b": k.block(tl.float32, 1, 16, 16)}, AssertionError, "input and other must have equal ranks >= 2"),
        ({"a": a, "b": a, "precision": "tf64"}, AssertionError, "input_precision must be one of"),
        ({"a": a, "b": a, "precision": "ieee", "allow_tf32": True}, AssertionError, "Only one of"),
        ({"a": a, "b": a, "out": tl.bfloat16}, ValueError, "out_dtype=bfloat16 is unsupported"),
        ({"a": h, "b": h, "out": tl.int32}, AssertionError, "fp16 or fp32"),
        (
            {"a": a, "b": a, "acc": k.block(tl.float32, 16, 32)},
            AssertionError,
            r"accumulator shape is incompatible: the result is \[16, 16\], acc \[16, 32\]",
        ),
        ({"a": a, "b": a, "acc": k.block(tl.float16, 16, 16)}, AssertionError, "acc is fp16, but the product is fp32"),
    ]:
        with pytest.raises(error, match=message):
            dot(k, **arguments)


def test_scaled(kernel) -> None:
    k = kernel()
    a, scale = k.block(tl.uint8, 64, 64), k.block(tl.uint8, 64, 2)
    c = scaled(k, a, scale, "e4m3", a, scale, "e5m2", fast=True)
    assert c.type == tl.block_type(tl.float32, [64, 64])
    scaled(k, k.block(tl.bfloat16, 64, 128), tl.constexpr(None), "bf16", a, k.block(tl.uint8, 64, 4), "e2m1", acc=c)
    lines = k.lines()
    assert "tt.bitcast % : tensor<64x64xi8> -> tensor<64x64xf8E4M3FN>" in lines
    first = "tensor<64x64xf8E4M3FN>, tensor<64x2xi8> * tensor<64x64xf8E5M2>, tensor<64x2xi8> -> tensor<64x64xf32>"
    assert f"tt.dot_scaled % scale %, % scale %, % lhs = e4m3 rhs = e5m2 {{fastMath = true}} : {first}" in lines
    second = "tensor<64x128xbf16> * tensor<64x64xi8>, tensor<64x4xi8> -> tensor<64x64xf32>"
    assert f"tt.dot_scaled %, % scale %, % lhs = bf16 rhs = e2m1 {{fastMath = false}} : {second}" in lines


def test_scaled_packed_along_m(kernel) -> None:
    k = kernel()
    a = k.block(tl.uint8, 32, 64)
    c = scaled(k, a, k.block(tl.uint8, 64, 2), "e2m1", k.block(tl.uint8, 64, 32), None, "e4m3", a_pack=False)
    assert shape_of(c) == (64, 32)


def test_scaled_rejects(kernel) -> None:
    k = kernel()
    a, bad = k.block(tl.uint8, 32, 64), k.block(tl.uint8, 32, 4)
    b = k.block(tl.uint8, 64, 32)
    good = k.block(tl.uint8, 32, 2)
    with pytest.raises(AssertionError) as error:
        scaled(k, a, bad, "e4m3", b, good, "e4m3")
    assert str(error.value) == "lhs_scale must be a tensor of shape [..., 32, 2]. Got ['32', '4']"
    with pytest.raises(AssertionError, match=r"rhs_scale must be a tensor of shape \[..., 32, 4\]"):
        scaled(k, a, None, "e4m3", b, k.block(tl.float8e4nv, 32, 2), "e4m3")
    with pytest.raises(ValueError, match="Invalid float format: e9m9"):
        scaled(k, a, good, "e9m9", b, good, "e4m3")
    with pytest.raises(AssertionError, match=r"Unexpected dtype for e2m1\. Got .*: lhs takes uint8"):
        scaled(k, k.block(tl.float16, 32, 64), good, "e2m1", b, good, "e4m3")
    with pytest.raises(AssertionError, match="same number of elements"):
        scaled(k, a, good, "e2m1", b, good, "e4m3")
    with pytest.raises(AssertionError, match="packed along a dimension different than K: rhs is e4m3"):
        scaled(k, a, good, "e4m3", b, good, "e4m3", b_pack=False)


def test_allow_tf32_where_there_is_none(kernel) -> None:
    k = kernel({"allowed_dot_input_precisions": ("ieee", "bf16x3"), "default_dot_input_precision": "ieee"})
    a = k.block(tl.float32, 16, 16)
    dot(k, a, a, allow_tf32=True)
    assert not any("inputPrecision" in line for line in k.lines())
    with pytest.raises(AssertionError, match=r"input_precision must be one of \('ieee', 'bf16x3'\). Got tf32"):
        dot(k, a, a, precision="tf32")
