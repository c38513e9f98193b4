"""Shapes: what each function builds, and what it refuses."""

import pytest

from tilework.language import core as tl
from tilework.language.typing.shapes import common_shape, shape_of


def test_arange(kernel) -> None:
    k = kernel()
    assert k.sem.arange(16, 32).type == tl.block_type(tl.int32, [16])
    assert "tt.make_range {end = 32 : i32, start = 16 : i32} : tensor<16xi32>" in k.lines()


@pytest.mark.parametrize(
    "start, end, message",
    [
        (0, 48, "^arange's range must be a power of 2$"),
        (8, 8, "greater than the start"),
        (-4, 4, "int32"),
        (0, 1 << 32, "int32"),
        (0, 1 << 21, "1048576"),
        (0.0, 4, "constexpr"),
    ],
)
def test_arange_rejects(kernel, start, end, message) -> None:
    with pytest.raises(ValueError, match=message):
        kernel().sem.arange(start, end)


def test_broadcast_of_equal_types_builds_nothing(kernel) -> None:
    k = kernel(n=tl.int32)
    a, b = k.sem.arange(0, 16), k.sem.arange(0, 16)
    assert k.sem.broadcast(a, b) == (a, b) or k.sem.broadcast(a, b)[0] is a
    assert k.sem.broadcast(k.n, k.n)[1] is k.n
    assert not [line for line in k.lines() if "splat" in line or "broadcast" in line]


def test_broadcast_splats_a_scalar(kernel) -> None:
    k = kernel(n=tl.int32)
    _, n = k.sem.broadcast(k.sem.arange(0, 16), k.n)
    assert shape_of(n) == (16,)
    assert "tt.splat % : i32 -> tensor<16xi32>" in k.lines()


def test_splat_of_a_constant_is_a_dense_constant(kernel) -> None:
    k = kernel()
    k.sem.splat(k.sem.scalar_constant(2.5, tl.float32), (4, 8))
    k.sem.splat(k.sem.scalar_constant(True, tl.int1), (4,))
    lines = k.lines()
    assert "arith.constant dense<2.500000e+00> : tensor<4x8xf32>" in lines
    assert "arith.constant dense<true> : tensor<4xi1>" in lines
    assert not [line for line in lines if "tt.splat" in line]


def test_broadcast_pads_the_shorter_shape_on_the_left(kernel) -> None:
    k = kernel()
    row = k.sem.arange(0, 16)
    column = k.sem.expand_dims(k.sem.arange(0, 8), 1)
    left, right = k.sem.broadcast(row, column)
    assert shape_of(left) == shape_of(right) == (8, 16)
    lines = k.lines()
    assert "tt.expand_dims % {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>" in lines
    assert "tt.broadcast % : tensor<1x16xi32> -> tensor<8x16xi32>" in lines
    assert "tt.broadcast % : tensor<8x1xi32> -> tensor<8x16xi32>" in lines


def test_incompatible_shapes_name_the_dimension() -> None:
    with pytest.raises(ValueError, match="incompatible dimensions at index 0: 2048 and 64"):
        common_shape((2048,), (64,))
    assert common_shape((64,), (32, 1)) == (32, 64)


def test_broadcast_to(kernel) -> None:
    k = kernel(n=tl.int32)
    assert shape_of(k.sem.broadcast_to(k.n, (4, 4))) == (4, 4)
    x = k.sem.arange(0, 16)
    with pytest.raises(ValueError, match="rank mismatch"):
        k.sem.broadcast_to(x, (2, 16))
    with pytest.raises(ValueError, match=r"\(64\) must match the existing size \(16\) at non-singleton dimension 0"):
        k.sem.broadcast_to(x, (64,))
    with pytest.raises(ValueError, match=r"^Shape element 1 must be a power of 2$"):
        k.sem.broadcast_to(k.n, (4, 3))
    with pytest.raises(TypeError, match="Shape element 0"):
        k.sem.broadcast_to(k.n, (k.n,))


def test_expand_dims(kernel) -> None:
    k = kernel(n=tl.int32)
    assert shape_of(k.sem.expand_dims(k.n, 0)) == (1,)
    assert shape_of(k.sem.expand_dims(k.sem.arange(0, 4), -1)) == (4, 1)
    with pytest.raises(ValueError, match="invalid axis 2"):
        k.sem.expand_dims(k.sem.arange(0, 4), 2)


def test_reshape(kernel) -> None:
    k = kernel(n=tl.int32)
    x = k.sem.arange(0, 16)
    assert k.sem.reshape(x, (16,)) is x
    k.sem.reshape(x, (4, 4))
    k.sem.reshape(x, (2, 8), True)
    one = k.sem.reshape(k.n, (1, 1))
    assert k.sem.reshape(one, ()).type == tl.int32
    with pytest.raises(ValueError, match="reshape"):
        k.sem.reshape(x, (8,))
    lines = k.lines()
    assert "tt.reshape % : tensor<16xi32> -> tensor<4x4xi32>" in lines
    assert "tt.reshape % allow_reorder : tensor<16xi32> -> tensor<2x8xi32>" in lines
    assert "tt.unsplat % : tensor<1x1xi32>" in lines


def test_permute(kernel) -> None:
    k = kernel()
    x = k.block(tl.float32, 4, 8)
    assert shape_of(k.sem.permute(x, (1, 0))) == (8, 4)
    for dims in ((0,), (0, 0), (-1, 0)):
        with pytest.raises(ValueError, match="permut"):
            k.sem.permute(x, dims)
    assert "tt.trans % {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>" in k.lines()


def test_cat(kernel) -> None:
    k = kernel()
    x = k.sem.arange(0, 16)
    assert shape_of(k.sem.cat(x, x, True)) == (32,)
    y = k.block(tl.int32, 4, 8)
    assert shape_of(k.sem.cat(y, y, False, 1)) == (4, 16)
    lines = k.lines()
    assert "tt.cat %, % : tensor<16xi32> -> tensor<32xi32>" in lines
    at = lines.index("tt.join %, % : tensor<4x8xi32> -> tensor<4x8x2xi32>")
    assert lines[at + 1 : at + 3] == [
        "tt.trans % {order = array<i32: 0, 2, 1>} : tensor<4x8x2xi32> -> tensor<4x2x8xi32>",
        "tt.reshape % : tensor<4x2x8xi32> -> tensor<4x16xi32>",
    ]


def test_join_and_split(kernel) -> None:
    k = kernel(n=tl.int32)
    x = k.sem.arange(0, 16)
    joined = k.sem.join(x, 1)
    assert shape_of(joined) == (16, 2)
    assert [shape_of(half) for half in k.sem.split(joined)] == [(16,), (16,)]
    pair = k.sem.join(k.n, k.n)
    assert shape_of(pair) == (2,)
    assert [half.type for half in k.sem.split(pair)] == [tl.int32, tl.int32]
    with pytest.raises(ValueError, match="int32 and fp32"):
        k.sem.join(x, 1.0)
    with pytest.raises(AssertionError, match="last axis of size 2"):
        k.sem.split(x)
    lines = k.lines()
    assert "tt.join %, % : tensor<16xi32> -> tensor<16x2xi32>" in lines
    assert "tt.split % : tensor<1x2xi32> -> tensor<1xi32>" in lines


def test_gather(kernel) -> None:
    k = kernel()
    x, index = k.block(tl.float32, 4, 8), k.block(tl.int32, 4, 2)
    assert k.sem.gather(x, index, -1).type == tl.block_type(tl.float32, [4, 2])
    with pytest.raises(AssertionError, match="index dim 1 must match the corresponding source dim: it is 2, not 8"):
        k.sem.gather(x, index, 0)
    with pytest.raises(AssertionError, match="integer"):
        k.sem.gather(x, x, 0)
    assert "tt.gather %[%] {axis = 1 : i32} : (tensor<4x8xf32>, tensor<4x2xi32>) -> tensor<4x2xf32>" in k.lines()


def test_histogram(kernel) -> None:
    k = kernel()
    x = k.sem.arange(0, 16)
    assert k.sem.histogram(x, 1).type == tl.block_type(tl.int32, [1])
    k.sem.histogram(x, 4, k.block(tl.int1, 16))
    with pytest.raises(ValueError, match="boolean"):
        k.sem.histogram(x, 4, x)
    with pytest.raises(AssertionError, match="1D"):
        k.sem.histogram(k.block(tl.int32, 4, 4), 4)
    assert "tt.histogram %, % : tensor<16xi32> -> tensor<4xi32>" in k.lines()
