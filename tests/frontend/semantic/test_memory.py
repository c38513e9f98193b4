"""Loads, stores and block pointers."""

import pytest

from tilework.language import core as tl
from tilework.language.typing.shapes import shape_of

F32 = tl.pointer_type(tl.float32)
PLAIN = ((), "", "", "", False)


def load(k, ptr, mask=None, other=None, boundary=(), padding="", cache="", evict="", volatile=False):
    return k.sem.load(ptr, mask, other, boundary, padding, cache, evict, volatile)


def store(k, ptr, value, mask=None, boundary=(), cache="", evict=""):
    return k.sem.store(ptr, value, mask, boundary, cache, evict)


def pointers(k, *shape):
    return k.sem.splat(k.p, shape)


def test_masked_load_casts_other(kernel) -> None:
    k = kernel(p=F32)
    x = load(k, pointers(k, 64), k.block(tl.int1, 64), 1, cache=".cg", evict="evict_first", volatile=True)
    assert x.type == tl.block_type(tl.float32, [64])
    lines = k.lines()
    assert "arith.constant dense<1.000000e+00> : tensor<64xf32>" in lines
    assert (
        "tt.load %, %, % cacheModifier = cg evictionPolicy = evict_first {isVolatile = true} : tensor<64x!tt.ptr<f32>>"
    ) in lines


def test_a_wider_mask_widens_the_load(kernel) -> None:
    k = kernel(p=F32)
    x = load(k, pointers(k, 64, 1), k.block(tl.int1, 1, 32), k.block(tl.int32, 32))
    assert shape_of(x) == (64, 32)
    lines = k.lines()
    assert "arith.sitofp % : tensor<64x32xi32> to tensor<64x32xf32>" in lines
    assert "tt.load %, %, % : tensor<64x32x!tt.ptr<f32>>" in lines


def test_constant_masks(kernel) -> None:
    k = kernel(p=F32)
    load(k, k.p, True, 2.0)
    load(k, pointers(k, 8), tl.constexpr(True))
    store(k, pointers(k, 8), 1, tl.constexpr(False))
    lines = k.lines()
    assert "tt.load %, %, % : !tt.ptr<f32>" in lines
    assert "tt.load %, % : tensor<8x!tt.ptr<f32>>" in lines
    assert "tt.store %, %, % : tensor<8x!tt.ptr<f32>>" in lines
    assert "arith.constant dense<false> : tensor<8xi1>" in lines


def test_a_bool_in_memory_is_a_byte(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.int1))
    x = load(k, pointers(k, 8), k.block(tl.int1, 8), False)
    assert x.type == tl.block_type(tl.int1, [8])
    assert load(k, k.p).type == tl.int1
    store(k, pointers(k, 8), x)
    store(k, k.p, 2)
    lines = k.lines()
    assert "tt.bitcast % : tensor<8x!tt.ptr<i1>> -> tensor<8x!tt.ptr<i8>>" in lines
    assert "tt.load %, %, % : tensor<8x!tt.ptr<i8>>" in lines
    assert "arith.cmpi ne, %, % : tensor<8xi8>" in lines
    assert "arith.extui % : tensor<8xi1> to tensor<8xi8>" in lines
    assert "arith.constant 2 : i8" in lines


def test_store_casts_and_broadcasts(kernel) -> None:
    k = kernel(p=F32, n=tl.int32)
    store(k, pointers(k, 8, 4), k.n, k.block(tl.int1, 8, 1), cache=".wt", evict="evict_last")
    lines = k.lines()
    assert "arith.sitofp % : tensor<8x4xi32> to tensor<8x4xf32>" in lines
    assert "tt.store %, %, % cacheModifier = wt evictionPolicy = evict_last : tensor<8x4x!tt.ptr<f32>>" in lines


@pytest.mark.parametrize(
    "arguments, message",
    [
        (lambda k: {"ptr": k.n}, "Unsupported ptr type int32 in `tl.load`"),
        (lambda k: {"ptr": k.p, "other": 1}, "`other` cannot be provided without `mask`"),
        (lambda k: {"ptr": k.p, "mask": k.block(tl.int1, 4)}, "Mask argument cannot be block type"),
        (lambda k: {"ptr": k.p, "mask": True, "other": k.block(tl.int1, 4)}, "Other argument cannot be block type"),
        (lambda k: {"ptr": k.p, "mask": k.n}, "boolean scalar type, got int32"),
        (lambda k: {"ptr": k.p, "boundary": (0,)}, "boundary_check"),
        (lambda k: {"ptr": k.p, "padding": "zero"}, "padding_option"),
        (lambda k: {"ptr": k.p, "padding": "one"}, "Padding option one"),
        (lambda k: {"ptr": k.p, "cache": ".wb"}, "Cache modifier .wb not supported"),
        (lambda k: {"ptr": k.p, "evict": "never"}, "Eviction policy never not supported"),
        (lambda k: {"ptr": pointers(k, 4), "mask": k.block(tl.int1, 8)}, "index 0: 4 and 8"),
    ],
)
def test_load_rejects(kernel, arguments, message) -> None:
    k = kernel(p=F32, n=tl.int32)
    with pytest.raises(ValueError, match=message):
        load(k, **arguments(k))


@pytest.mark.parametrize(
    "arguments, message",
    [
        (lambda k: {"ptr": k.n, "value": 1}, "Unsupported ptr type int32 in `tl.store`"),
        (lambda k: {"ptr": k.p, "value": k.block(tl.int32, 4)}, "Value argument cannot be block type"),
        (lambda k: {"ptr": k.p, "value": 1, "mask": k.block(tl.int1, 4)}, "Mask argument cannot be block type"),
        (lambda k: {"ptr": k.p, "value": 1, "mask": 1}, "boolean scalar type, got int32"),
        (lambda k: {"ptr": k.p, "value": 1, "boundary": (0,)}, "boundary_check"),
        (lambda k: {"ptr": k.p, "value": 1, "cache": ".ca"}, "Cache modifier .ca"),
        (lambda k: {"ptr": pointers(k, 32), "value": k.block(tl.int32, 32, 32)}, r"shape \[32, 32\] but got \[32\]"),
        (
            lambda k: {"ptr": pointers(k, 1, 4), "value": 1, "mask": k.block(tl.int1, 4, 4)},
            "the mask does not broadcast",
        ),
        (lambda k: {"ptr": k.c, "value": 1}, "Cannot store to a constant pointer"),
        (lambda k: {"ptr": k.sem.splat(k.c, (4,)), "value": 1}, "Cannot store to a constant pointer"),
    ],
)
def test_store_rejects(kernel, arguments, message) -> None:
    k = kernel(p=F32, n=tl.int32, c=tl.pointer_type(tl.float32, const=True))
    with pytest.raises(ValueError, match=message):
        store(k, **arguments(k))


def test_unsupported_fp8(kernel) -> None:
    k = kernel({"supported_fp8_dtypes": ("fp8e5",)}, p=tl.pointer_type(tl.float8e4nv))
    with pytest.raises(ValueError, match=r"fp8e4nv not supported in this architecture.*fp8e5"):
        load(k, k.p)


def block_pointer(k, base=None, **changes):
    arguments = {
        "shape": [k.n, 128],
        "strides": [tl.constexpr(128), 1],
        "offsets": [0, k.n],
        "block_shape": [16, 32],
        "order": [1, 0],
    }
    return k.sem.make_block_ptr(k.p if base is None else base, **(arguments | changes))


def test_block_pointer(kernel) -> None:
    k = kernel(p=F32, n=tl.int32)
    bp = block_pointer(k)
    assert bp.type == tl.pointer_type(tl.block_type(tl.float32, [16, 32]))
    x = load(k, bp, boundary=(1, 0), padding="nan")
    assert x.type == tl.block_type(tl.float32, [16, 32])
    bp = k.sem.advance(bp, (0, -32))
    store(k, bp, x, boundary=(0,))
    store(k, bp, 0)
    lines = k.lines()
    assert "arith.extsi % : i32 to i64" in lines
    assert "tt.make_tensor_ptr %, [%, %], [%, %], [%, %] {order = array<i32: 1, 0>} : <tensor<16x32xf32>>" in lines
    assert "tt.load % {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<16x32xf32>>" in lines
    assert "tt.advance %, [%, %] : <tensor<16x32xf32>>" in lines
    assert "tt.store %, % {boundaryCheck = array<i32: 0>} : !tt.ptr<tensor<16x32xf32>>" in lines
    assert "tt.store %, % : !tt.ptr<tensor<16x32xf32>>" in lines


def test_a_block_pointer_to_bools_loads_bytes(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.int1), n=tl.int32)
    assert load(k, block_pointer(k)).dtype == tl.int8
    with pytest.raises(ValueError, match="nan"):
        load(k, block_pointer(k), padding="nan")
    assert "tt.bitcast % : !tt.ptr<i1> -> !tt.ptr<i8>" in k.lines()


def test_block_pointer_rejects(kernel) -> None:
    k = kernel(p=F32, n=tl.int32, wide=tl.int64)
    bp = block_pointer(k)
    for bad, error, message in [
        ({"base": k.n}, ValueError, "Expected `base` to be a pointer type"),
        ({"base": bp}, ValueError, "Expected `base` to be a pointer type"),
        ({"offsets": [0, k.wide]}, ValueError, r"\.to\(tl\.int32\)"),
        ({"offsets": [0, 1 << 40]}, ValueError, "does not fit in int32"),
        ({"shape": [1]}, AssertionError, "shape/strides/offsets/block_shape to have the same length"),
        ({"order": [0, 0]}, AssertionError, "permutation"),
        ({"block_shape": [16, 24]}, ValueError, "Shape element 1 must be a power of 2"),
        ({"block_shape": [16, k.n]}, TypeError, "Shape element 1"),
    ]:
        with pytest.raises(error, match=message):
            block_pointer(k, **bad)
    with pytest.raises(ValueError, match="one offset per dimension"):
        k.sem.advance(bp, [1])
    with pytest.raises(ValueError, match="cannot be specified"):
        load(k, bp, mask=True)
    with pytest.raises(ValueError, match="cannot be specified"):
        store(k, bp, 1, mask=True)
    for boundary in ((2,), (0, 0)):
        with pytest.raises(AssertionError, match="boundary_check"):
            load(k, bp, boundary=boundary)
    with pytest.raises(AssertionError, match="mismatch"):
        store(k, bp, k.block(tl.float32, 32, 16))
    with pytest.raises(AssertionError, match="mismatch: cast"):
        store(k, bp, k.block(tl.float16, 16, 32))
