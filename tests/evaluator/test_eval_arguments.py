"""The values that callers may pass for a parameter, and the errors for others."""

import numpy as np
import pytest

from tests.evaluator.eval_programs import call, function
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate


def identity(type_: str, value: object) -> object:
    return call([type_], [type_], f"tt.return %a : {type_}", value)[0]


def test_numbers_take_the_type_of_the_parameter() -> None:
    assert identity("i32", 2**31) == -(2**31)
    assert identity("i64", np.uint64(2**64 - 1)) == -1
    assert identity("i1", 1) == np.True_
    assert identity("f16", 1 / 3) == np.float16(1 / 3)
    assert identity("f32", 3) == np.float32(3)


def test_a_null_pointer_and_a_raw_address() -> None:
    body = "%0 = tt.ptr_to_int %a : !tt.ptr<f32> -> i64\n tt.return %0 : i64"
    assert int(call(["!tt.ptr<f32>"], ["i64"], body, None)[0]) == 0
    assert int(call(["!tt.ptr<f32>"], ["i64"], body, 4096)[0]) == 4096


@pytest.mark.parametrize(
    ("type_", "args", "message"),
    [
        ("i32", (), "takes 1 arguments and was given 0"),
        ("i32", (1, 2), "takes 1 arguments and was given 2"),
        ("i32", (1.5,), "takes i32 as argument 'a' and was given 1.5"),
        ("tensor<4xi32>", (np.zeros(3, np.int32),), r"was given an array of shape \(3,\)"),
        ("!tt.ptr<f32>", ("x",), "takes a pointer as argument 'a' and was given 'x': pass a NumPy array"),
        ("i32", ((np.zeros(4), (4,), (1,)),), "takes i32 as argument 'a' and was given a tensor descriptor"),
    ],
)
def test_wrong_arguments(type_: str, args: tuple[object, ...], message: str) -> None:
    with pytest.raises(EvaluationError, match=message):
        call([type_], [], "tt.return", *args)


def test_a_function_can_stand_for_its_module() -> None:
    module = parse_module(function(["i32"], ["i32"], "tt.return %a : i32"))
    assert evaluate(module.body.block.first_op, args=[5])[0] == 5  # pyright: ignore[reportArgumentType]


def test_every_program_of_the_grid_runs_once_with_x_fastest() -> None:
    body = """
 %x = tt.get_program_id x : i32
 %y = tt.get_program_id y : i32
 %n = tt.get_num_programs x : i32
 %row = arith.muli %y, %n : i32
 %i = arith.addi %row, %x : i32
 %one = arith.constant 1 : i32
 %t = tt.atomic_rmw add, acq_rel, gpu, %b, %one : (!tt.ptr<i32>, i32) -> i32
 %p = tt.addptr %a, %i : !tt.ptr<i32>, i32
 tt.store %p, %t : !tt.ptr<i32>
 tt.return
"""
    order, ticket = np.full(6, -1, np.int32), np.zeros(1, np.int32)
    call(["!tt.ptr<i32>", "!tt.ptr<i32>"], [], body, order, ticket, grid=(3, 2))
    assert order.tolist() == [0, 1, 2, 3, 4, 5] and ticket[0] == 6
    order[:], ticket[:] = -1, 0
    call(["!tt.ptr<i32>", "!tt.ptr<i32>"], [], body, order, ticket, grid=(3, 2), program_ids=[(2, 1)])
    assert order.tolist() == [-1, -1, -1, -1, -1, 0]
