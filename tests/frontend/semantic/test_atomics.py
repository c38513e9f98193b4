"""Atomics: the op each kind and type becomes, masks, and the table of supported types."""

import pytest

from tilework.language import core as tl


def rmw(k, kind, ptr, value, mask=None, sem=None, scope=None):
    return k.sem.atomic_rmw(kind, ptr, value, mask, sem, scope)


@pytest.mark.parametrize(
    "kind, dtype, op",
    [
        ("add", tl.int32, "add"),
        ("add", tl.float16, "fadd"),
        ("max", tl.int32, "max"),
        ("max", tl.uint64, "umax"),
        ("min", tl.uint32, "umin"),
        ("and", tl.int64, "and"),
        ("or", tl.int32, "or"),
        ("xor", tl.uint32, "xor"),
        ("xchg", tl.float32, "exch"),
    ],
)
def test_kinds(kernel, kind, dtype, op) -> None:
    k = kernel(p=tl.pointer_type(dtype))
    assert rmw(k, kind, k.p, 1).type == dtype
    ty = {"int": "i", "uint": "i", "fp": "f"}[dtype.name.rstrip("0123456789")] + str(dtype.primitive_bitwidth)
    assert f"tt.atomic_rmw {op}, acq_rel, gpu, %, %, % : (!tt.ptr<{ty}>, {ty}, i1) -> {ty}" in k.lines()


def test_blocks_masks_and_order(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.int32), n=tl.int32)
    pointers = k.sem.splat(k.p, (64,))
    rmw(k, "add", pointers, k.n, k.block(tl.int1, 64), "relaxed", "cta")
    rmw(k, "add", pointers, 1, tl.constexpr(True), "release", "sys")
    lines = k.lines()
    types = "(tensor<64x!tt.ptr<i32>>, tensor<64xi32>, tensor<64xi1>) -> tensor<64xi32>"
    assert f"tt.atomic_rmw add, relaxed, cta, %, %, % : {types}" in lines
    assert f"tt.atomic_rmw add, release, sys, %, %, % : {types}" in lines


@pytest.mark.parametrize("kind, positive, negative", [("max", "max", "umin"), ("min", "min", "umax")])
@pytest.mark.parametrize("dtype, bits", [(tl.float32, 32), (tl.float64, 64)])
def test_float_extrema_are_two_integer_atomics(kernel, kind, positive, negative, dtype, bits) -> None:
    k = kernel(p=tl.pointer_type(dtype))
    old = rmw(k, kind, k.sem.splat(k.p, (8,)), k.block(dtype, 8), k.block(tl.int1, 8))
    assert old.type == tl.block_type(dtype, [8])
    lines = k.lines()
    types = f"(tensor<8x!tt.ptr<i{bits}>>, tensor<8xi{bits}>, tensor<8xi1>) -> tensor<8xi{bits}>"
    assert f"tt.atomic_rmw {positive}, acq_rel, gpu, %, %, % : {types}" in lines
    assert f"tt.atomic_rmw {negative}, acq_rel, gpu, %, %, % : {types}" in lines
    assert f"arith.shrui %, % : tensor<8xi{bits}>" in lines
    assert f"arith.select %, %, % : tensor<8xi1>, tensor<8xi{bits}>" in lines


@pytest.mark.parametrize(
    "kind, dtype",
    [
        ("add", tl.int8),
        ("add", tl.int16),
        ("add", tl.float8e5),
        ("max", tl.float16),
        ("min", tl.bfloat16),
        ("and", tl.int16),
        ("xchg", tl.float16),
        ("or", tl.int1),
    ],
)
def test_unsupported_types(kernel, kind, dtype) -> None:
    k = kernel(p=tl.pointer_type(dtype))
    with pytest.raises(ValueError, match=f"atomic_{kind} does not support {dtype}"):
        rmw(k, kind, k.p, 1)


def test_rmw_rejects(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.int32), c=tl.pointer_type(tl.int32, const=True), n=tl.int32)
    for arguments, message in [
        (("add", k.n, 1), "Unsupported ptr type int32"),
        (("add", k.c, 1), "constant pointer"),
        (("add", k.p, k.block(tl.int32, 4)), "Value argument cannot be block"),
        (("add", k.p, 1, k.n), "boolean"),
        (("add", k.p, 1, None, "seq_cst"), "Memory semantic seq_cst not supported"),
        (("add", k.p, 1, None, None, "warp"), "Memory semantic warp not supported"),
    ]:
        with pytest.raises(ValueError, match=message):
            rmw(k, *arguments)


def test_cas(kernel) -> None:
    k = kernel(p=tl.pointer_type(tl.uint32), n=tl.int32, b=tl.pointer_type(tl.int8), h=tl.pointer_type(tl.float16))
    assert k.sem.atomic_cas(k.p, 0, k.n, "acquire", None).type == tl.uint32
    k.sem.atomic_cas(k.h, 0.0, 1.0, None, None)
    with pytest.raises(ValueError, match="width"):
        k.sem.atomic_cas(k.b, 0, 1, None, None)
    with pytest.raises(ValueError, match="cast or broadcast"):
        k.sem.atomic_cas(k.sem.splat(k.p, (4,)), k.n, k.n, None, None)
    lines = k.lines()
    assert "tt.atomic_cas acquire, gpu, %, %, % : (!tt.ptr<i32>, i32, i32) -> i32" in lines
    assert "tt.atomic_cas acq_rel, gpu, %, %, % : (!tt.ptr<f16>, f16, f16) -> f16" in lines
