"""Tensor descriptors."""

import pytest

from tilework.language import core as tl
from tilework.language.typing.shapes import shape_of


def descriptor(k, shape=(128, 64), strides=(64, 1), block=(16, 32), padding="zero", base=None):
    return k.sem.make_tensor_descriptor(k.p if base is None else base, list(shape), list(strides), list(block), padding)


def test_make_load_store(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.float32), n=tl.int32)
    shape, strides = [k.n, tl.constexpr(64)], [tl.constexpr(64), tl.constexpr(1)]
    d = k.sem.make_tensor_descriptor(k.p, shape, strides, [16, 32], "nan")
    assert isinstance(shape[1], tl.constexpr), "the caller's list stays as it was"
    assert [size.type for size in d.shape] == [tl.int32] * 2
    assert [stride.type for stride in d.strides] == [tl.int64] * 2
    x = k.sem.descriptor_load(d, [0, k.n], "", "evict_first")
    assert x.type == tl.block_type(tl.float32, [16, 32])
    k.sem.descriptor_store(d, k.sem.cast(x, tl.float16), tl.tuple([k.n, 0]))
    lines = k.lines()
    assert "tt.make_tensor_descriptor %, [%, %], [%, %] {padding = 2 : i32} : <f32>, <tensor<16x32xf32>>" in lines
    load = "tt.descriptor_load %[%, %] evictionPolicy = evict_first"
    assert f"{load} : !tt.tensordesc<tensor<16x32xf32>> -> tensor<16x32xf32>" in lines
    assert "arith.extf % : tensor<16x32xf16> to tensor<16x32xf32>" in lines
    assert "tt.descriptor_store %[%, %], % : !tt.tensordesc<tensor<16x32xf32>>, tensor<16x32xf32>" in lines


def test_a_64_bit_shape_is_cut_to_32_bits(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.float32), wide=tl.int64)
    assert descriptor(k, shape=(k.wide, 64), strides=(k.wide, 1)).shape[0].type == tl.int32
    assert "arith.trunci % : i64 to i32" in k.lines()


def test_integers_keep_their_sign_inside_the_type(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.uint8))
    d = descriptor(k)
    assert k.sem.descriptor_load(d, [0, 0]).dtype == tl.uint8
    assert "tt.descriptor_load %[%, %] : !tt.tensordesc<tensor<16x32xui8>> -> tensor<16x32xi8>" in k.lines()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"block": (16, 2)}, "Descriptor block shape must have at least 16 bytes"),
        ({"strides": (1, 64)}, "last dim must be 1 but got"),
        ({"shape": (1, 2, 3)}, "Expected 3 strides but got 2"),
        ({"shape": (), "strides": (), "block": ()}, "1 <= ndim <= 5"),
        ({"block": (12, 32)}, "Shape element 0 must be a power of 2"),
        ({"padding": "one"}, "Padding option one"),
    ],
)
def test_make_rejects(kernel, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        descriptor(kernel(p=tl.pointer_type(tl.float32)), **arguments)


def test_make_rejects_values(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.int32), n=tl.int32)
    with pytest.raises(ValueError, match="nan"):
        descriptor(k, padding="nan")
    with pytest.raises(ValueError, match="last dim must be 1"):
        descriptor(k, strides=(64, k.n))
    with pytest.raises(ValueError, match="to be a pointer"):
        descriptor(k, base=k.n)


def test_access_rejects(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.float32), wide=tl.int64)
    d = descriptor(k)
    with pytest.raises(AssertionError, match="expected 2 offsets, but got 1"):
        k.sem.descriptor_load(d, [0])
    with pytest.raises(ValueError, match="must be int32, got int64"):
        k.sem.descriptor_load(d, [0, k.wide])
    with pytest.raises(AssertionError, match=r"block shape \[16, 32\], got \[32, 16\]"):
        k.sem.descriptor_store(d, k.block(tl.float32, 32, 16), [0, 0])


@pytest.mark.parametrize("kind", ["add", "min", "max", "and", "or", "xor"])
def test_atomics(kernel, kind) -> None:
    k = kernel(p=tl.pointer_type(tl.uint32))
    d = descriptor(k)
    k.sem.descriptor_atomic(kind, d, [0, 0], k.block(tl.uint32, 16, 32))
    op = f"tt.descriptor_reduce {kind}, %[%, %], % : !tt.tensordesc<tensor<16x32xui32>>, tensor<16x32xi32>"
    assert op in k.lines()


@pytest.mark.parametrize(
    "kind, dtype, features",
    [
        ("add", tl.int64, {"tma"}),
        ("and", tl.float32, {"tma"}),
        ("max", tl.float32, {"tma"}),
        ("max", tl.float16, set()),
    ],
)
def test_unsupported_atomics(kernel, kind, dtype, features) -> None:
    k = kernel({"features": features}, p=tl.pointer_type(dtype))
    with pytest.raises(AssertionError, match=f"atomic_{kind}"):
        k.sem.descriptor_atomic(kind, descriptor(k), [0, 0], k.block(dtype, 16, 32))


def test_gather_and_scatter(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.int32), n=tl.int32)
    d = descriptor(k, block=(1, 32))
    rows = k.sem.arange(0, 8)
    x = k.sem.descriptor_gather(d, rows, k.n)
    assert shape_of(x) == (8, 32)
    k.sem.descriptor_scatter(d, x, rows, 4)
    with pytest.raises(AssertionError, match="at least 8 rows, but got 4"):
        k.sem.descriptor_gather(d, k.sem.arange(0, 4), 0)
    with pytest.raises(AssertionError, match="descriptor block must have 1 row, but got"):
        k.sem.descriptor_gather(descriptor(k), rows, 0)
    with pytest.raises(AssertionError, match="at least 8 columns, but got 4"):
        k.sem.descriptor_gather(descriptor(k, block=(1, 4)), rows, 0)
    with pytest.raises(AssertionError, match="1-D block of int32"):
        k.sem.descriptor_gather(d, k.block(tl.int64, 8), 0)
    lines = k.lines()
    types = "!tt.tensordesc<tensor<1x32xsi32>>, tensor<8xi32>, i32"
    assert f"tt.descriptor_gather %[%, %] : ({types}) -> tensor<8x32xi32>" in lines
    assert f"tt.descriptor_scatter %[%, %], % : {types}, tensor<8x32xi32>" in lines
