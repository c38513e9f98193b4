"""Pointers, block pointers, descriptors and atomics, on real arrays."""

import ml_dtypes
import numpy as np
import pytest

from tests.evaluator.eval_programs import call
from tilework.oracles.evaluator import EvaluationError

LOAD = """
 %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
 %p = tt.splat %a : !tt.ptr<TYPE> -> tensor<8x!tt.ptr<TYPE>>
 %q = tt.addptr %p, %i : tensor<8x!tt.ptr<TYPE>>, tensor<8xi32>
"""


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [("i8", np.int8), ("i16", np.int16), ("i32", np.int32), ("i64", np.int64), ("f16", np.float16)]
    + [("bf16", ml_dtypes.bfloat16), ("f32", np.float32), ("f64", np.float64)]
    + [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2)],
)
def test_load_and_store_every_element_type(type_: str, dtype: type) -> None:
    body = (
        LOAD.replace("TYPE", type_)
        + f"""
 %v = tt.load %q : tensor<8x!tt.ptr<{type_}>>
 %o = tt.splat %b : !tt.ptr<{type_}> -> tensor<8x!tt.ptr<{type_}>>
 %w = tt.addptr %o, %i : tensor<8x!tt.ptr<{type_}>>, tensor<8xi32>
 tt.store %w, %v : tensor<8x!tt.ptr<{type_}>>
 tt.return
"""
    )
    x, out = np.arange(8).astype(dtype), np.zeros(8, dtype)
    call([f"!tt.ptr<{type_}>"] * 2, [], body, x, out)
    assert out.tolist() == x.tolist()


def test_masked_lanes_touch_no_memory() -> None:
    body = (
        LOAD.replace("TYPE", "f32")
        + """
 %n = tt.splat %b : i32 -> tensor<8xi32>
 %m = arith.cmpi slt, %i, %n : tensor<8xi32>
 %other = arith.constant dense<-1.0> : tensor<8xf32>
 %v = tt.load %q, %m, %other : tensor<8x!tt.ptr<f32>>
 tt.return %v : tensor<8xf32>
"""
    )
    (value,) = call(["!tt.ptr<f32>", "i32"], ["tensor<8xf32>"], body, np.ones(3, np.float32), 3)
    assert value.tolist() == [1, 1, 1, -1, -1, -1, -1, -1]
    with pytest.raises(EvaluationError, match=r"tt.load reads element 3 of argument 'a', which has 3 elements"):
        call(["!tt.ptr<f32>", "i32"], ["tensor<8xf32>"], body, np.ones(3, np.float32), 4)


def test_an_index_that_reaches_another_array_is_an_error() -> None:
    body = LOAD.replace("TYPE", "i32") + " %v = tt.load %q : tensor<8x!tt.ptr<i32>>\n tt.return %v : tensor<8xi32>"
    whole = np.arange(16, dtype=np.int32)
    with pytest.raises(EvaluationError, match=r"reads element 4 of argument 'a', which has 4 elements"):
        call(["!tt.ptr<i32>", "!tt.ptr<i32>"], ["tensor<8xi32>"], body, whole[:4], whole[4:])


def test_pointers_of_several_arrays_in_one_tensor() -> None:
    body = """
 %x = tt.splat %a : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
 %y = tt.splat %b : !tt.ptr<i32> -> tensor<4x!tt.ptr<i32>>
 %p = arith.select %c, %x, %y : tensor<4xi1>, tensor<4x!tt.ptr<i32>>
 %v = tt.load %p : tensor<4x!tt.ptr<i32>>
 %w = tt.ptr_to_int %a : !tt.ptr<i32> -> i64
 tt.return %v, %w : tensor<4xi32>, i64
"""
    x, y = np.array([7], np.int32), np.array([9], np.int32)
    mask = np.array([True, False, False, True])
    types = ["!tt.ptr<i32>", "!tt.ptr<i32>", "tensor<4xi1>"]
    value, address = call(types, ["tensor<4xi32>", "i64"], body, x, y, mask)
    assert value.tolist() == [7, 9, 9, 7] and int(address) == x.__array_interface__["data"][0]


def test_booleans_are_bytes_in_memory() -> None:
    body = LOAD.replace("TYPE", "i1") + " %v = tt.load %q : tensor<8x!tt.ptr<i1>>\n tt.return %v : tensor<8xi1>"
    bytes_ = np.array([0, 1, 2, 255, 0, 0, 1, 0], np.uint8)
    assert call(["!tt.ptr<i1>"], ["tensor<8xi1>"], body, bytes_)[0].tolist() == (bytes_ != 0).tolist()


def test_strided_views_and_read_only_arrays() -> None:
    body = LOAD.replace("TYPE", "i32") + " %v = tt.load %q : tensor<8x!tt.ptr<i32>>\n tt.return %v : tensor<8xi32>"
    base = np.arange(32, dtype=np.int32)
    assert call(["!tt.ptr<i32>"], ["tensor<8xi32>"], body, base[4:20:2])[0].tolist() == list(range(4, 12))
    store = LOAD.replace("TYPE", "i32") + " tt.store %q, %i : tensor<8x!tt.ptr<i32>>\n tt.return"
    base.flags.writeable = False
    with pytest.raises(EvaluationError, match="argument 'a', which is read-only"):
        call(["!tt.ptr<i32>"], [], store, base)


def test_pointers_to_pointers_reach_registered_memory() -> None:
    body = """
 %p = tt.load %a : !tt.ptr<i64>
 %q = tt.int_to_ptr %p : i64 -> !tt.ptr<f32>
 %v = tt.load %q : !tt.ptr<f32>
 tt.return %v : f32
"""
    target = np.array([2.5], np.float32)
    table = np.array([target.__array_interface__["data"][0]], np.int64)
    assert float(call(["!tt.ptr<i64>"], ["f32"], body, table, memory=[target])[0]) == 2.5
    with pytest.raises(EvaluationError, match="reads the null pointer"):
        call(["!tt.ptr<i64>"], ["f32"], body, np.zeros(1, np.int64))


def test_block_pointers_pad_and_advance() -> None:
    body = """
 %c0 = arith.constant 0 : i32
 %c2 = arith.constant 2 : i32
 %h = arith.constant 3 : i64
 %w = arith.constant 5 : i64
 %one = arith.constant 1 : i64
 %p = tt.make_tensor_ptr %a, [%h, %w], [%w, %one], [%c0, %c2] {order = array<i32: 1, 0>} : <tensor<2x4xf32>>
 %q = tt.advance %p, [%c2, %c0] : <tensor<2x4xf32>>
 %v = tt.load %q {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<2x4xf32>>
 %z = arith.constant dense<7.0> : tensor<2x4xf32>
 tt.store %q, %z {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<2x4xf32>>
 tt.return %v : tensor<2x4xf32>
"""
    x = np.arange(15, dtype=np.float32).reshape(3, 5)
    (value,) = call(["!tt.ptr<f32>"], ["tensor<2x4xf32>"], body, x)
    assert value[0, :3].tolist() == [12, 13, 14] and np.isnan(value[0, 3]) and np.isnan(value[1]).all()
    assert x[2].tolist() == [10, 11, 7, 7, 7] and x[1].tolist() == [5, 6, 7, 8, 9]
    unchecked = body.replace("boundaryCheck = array<i32: 0, 1>, padding = 2 : i32", "boundaryCheck = array<i32: 1>")
    with pytest.raises(EvaluationError, match=r"tt.load reads element 17 of argument 'a'"):
        call(["!tt.ptr<f32>"], ["tensor<2x4xf32>"], unchecked, np.zeros((3, 5), np.float32))


DESCRIPTOR = """
 %h = arith.constant 3 : i32
 %w = arith.constant 20 : i32
 %s = arith.constant 20 : i64
 %one = arith.constant 1 : i64
 %c2 = arith.constant 2 : i32
 %c16 = arith.constant 16 : i32
 %d = tt.make_tensor_descriptor %a, [%h, %w], [%s, %one] : <TYPE>, <tensor<BLOCK>>
"""


def test_descriptor_load_and_store_drop_what_is_outside() -> None:
    body = (
        DESCRIPTOR.replace("TYPE", "f32").replace("BLOCK", "2x8xf32")
        + """
 %v = tt.descriptor_load %d[%c2, %c16] : !tt.tensordesc<tensor<2x8xf32>> -> tensor<2x8xf32>
 %z = arith.constant dense<7.0> : tensor<2x8xf32>
 tt.descriptor_store %d[%c2, %c16], %z : !tt.tensordesc<tensor<2x8xf32>>, tensor<2x8xf32>
 tt.return %v : tensor<2x8xf32>
"""
    )
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    (value,) = call(["!tt.ptr<f32>"], ["tensor<2x8xf32>"], body, x)
    assert value.tolist() == [[56, 57, 58, 59, 0, 0, 0, 0], [0] * 8]
    assert x[2, 16:].tolist() == [7] * 4 and x[1, 19] == 39


def test_descriptor_reduce_gather_and_scatter() -> None:
    body = (
        DESCRIPTOR.replace("TYPE", "i32").replace("BLOCK", "2x8xui32")
        + """
 %z = arith.constant dense<-1> : tensor<2x8xi32>
 tt.descriptor_reduce max, %d[%c2, %c16], %z : !tt.tensordesc<tensor<2x8xui32>>, tensor<2x8xi32>
 tt.return
"""
    )
    x = np.zeros((3, 20), np.int32)
    call(["!tt.ptr<i32>"], [], body, x)
    assert x[2, 16:].tolist() == [-1] * 4 and x.sum() == -4
    body = (
        DESCRIPTOR.replace("TYPE", "i32").replace("BLOCK", "1x8xi32")
        + """
 %v = tt.descriptor_gather %d[%b, %c16] : (!tt.tensordesc<tensor<1x8xi32>>, tensor<8xi32>, i32) -> tensor<8x8xi32>
 tt.descriptor_scatter %d[%b, %c2], %v : !tt.tensordesc<tensor<1x8xi32>>, tensor<8xi32>, i32, tensor<8x8xi32>
 tt.return %v : tensor<8x8xi32>
"""
    )
    x = np.arange(60, dtype=np.int32).reshape(3, 20)
    rows = np.array([0, 2, 1, 5, -1, 7, 8, 9], np.int32)
    (value,) = call(["!tt.ptr<i32>", "tensor<8xi32>"], ["tensor<8x8xi32>"], body, x.copy(), rows)
    assert value[:4].tolist() == [[*row, 0, 0, 0, 0] for row in x[[0, 2, 1], 16:].tolist()] + [[0] * 8]


@pytest.mark.parametrize(
    ("op", "type_", "dtype", "wanted"),
    [
        ("add", "i32", np.int32, [5 + 1 + 2 + 3, 5 + 4]),
        ("fadd", "f32", np.float32, [11.0, 9.0]),
        ("max", "i32", np.int32, [5, 5]),
        ("umin", "i32", np.int32, [1, 4]),
        ("and", "i32", np.int32, [5 & 1 & 2 & 3, 5 & 4]),
        ("or", "i32", np.int32, [5 | 1 | 2 | 3, 5 | 4]),
        ("xor", "i32", np.int32, [5 ^ 1 ^ 2 ^ 3, 5 ^ 4]),
        ("exch", "i32", np.int32, [3, 4]),
    ],
)
def test_atomics_apply_lanes_one_after_the_other(op: str, type_: str, dtype: type, wanted: list[float]) -> None:
    body = f"""
 %p = tt.splat %a : !tt.ptr<{type_}> -> tensor<4x!tt.ptr<{type_}>>
 %q = tt.addptr %p, %b : tensor<4x!tt.ptr<{type_}>>, tensor<4xi32>
 %old = tt.atomic_rmw {op}, acq_rel, gpu, %q, %c : (tensor<4x!tt.ptr<{type_}>>, tensor<4x{type_}>) -> tensor<4x{type_}>
 tt.return %old : tensor<4x{type_}>
"""
    memory = np.array([5, 5], dtype)
    indices, values = np.array([0, 0, 0, 1], np.int32), np.array([1, 2, 3, 4], dtype)
    types = [f"!tt.ptr<{type_}>", "tensor<4xi32>", f"tensor<4x{type_}>"]
    (old,) = call(types, [f"tensor<4x{type_}>"], body, memory, indices, values)
    assert memory.tolist() == wanted
    assert old[0] == 5 and old[3] == 5
    if op in ("add", "fadd"):
        assert old.tolist() == [5, 6, 8, 5]


def test_compare_and_swap() -> None:
    body = """
 %old = tt.atomic_cas acq_rel, gpu, %a, %b, %c : (!tt.ptr<i32>, i32, i32) -> i32
 tt.return %old : i32
"""
    memory = np.array([3], np.int32)
    types = ["!tt.ptr<i32>", "i32", "i32"]
    assert int(call(types, ["i32"], body, memory, 4, 9)[0]) == 3 and memory[0] == 3
    assert int(call(types, ["i32"], body, memory, 3, 9)[0]) == 3 and memory[0] == 9
