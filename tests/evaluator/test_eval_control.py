"""Control flow, calls, and the regions of reductions, scans and maps."""

import numpy as np
import pytest

from tests.evaluator.eval_programs import call
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate

LOOP = """
 %i = arith.constant 0 : i32
 %one = arith.constant 1 : i32
 %sum = scf.for %k = %i to %a step %one iter_args(%s = %i) -> (i32)  : i32 {
   %odd = arith.andi %k, %one : i32
   %is_odd = arith.cmpi eq, %odd, %one : i32
   %next = scf.if %is_odd -> (i32) {
     %t = arith.addi %s, %k : i32
     scf.yield %t : i32
   } else {
     scf.yield %s : i32
   }
   scf.yield %next : i32
 }
 tt.return %sum : i32
"""

COLLATZ = """
 %one = arith.constant 1 : i32
 %two = arith.constant 2 : i32
 %three = arith.constant 3 : i32
 %zero = arith.constant 0 : i32
 %r:2 = scf.while (%n = %a, %c = %zero) : (i32, i32) -> (i32, i32) {
   %go = arith.cmpi ne, %n, %one : i32
   scf.condition(%go) %n, %c : i32, i32
 } do {
 ^bb0(%n: i32, %c: i32):
   %half = arith.divsi %n, %two : i32
   %triple = arith.muli %n, %three : i32
   %up = arith.addi %triple, %one : i32
   %bit = arith.andi %n, %one : i32
   %odd = arith.cmpi eq, %bit, %one : i32
   %m = arith.select %odd, %up, %half : i32
   %d = arith.addi %c, %one : i32
   scf.yield %m, %d : i32, i32
 }
 tt.return %r#1 : i32
"""


def test_for_and_if() -> None:
    assert int(call(["i32"], ["i32"], LOOP, 10)[0]) == 1 + 3 + 5 + 7 + 9
    assert int(call(["i32"], ["i32"], LOOP, -3)[0]) == 0


def test_while() -> None:
    assert int(call(["i32"], ["i32"], COLLATZ, 27)[0]) == 111


def test_a_loop_that_does_not_end_is_stopped() -> None:
    forever = COLLATZ.replace("arith.cmpi ne, %n, %one", "arith.cmpi eq, %n, %n")
    with pytest.raises(EvaluationError, match="did not end within 1000 steps"):
        call(["i32"], ["i32"], forever, 27, max_steps=1000)


def test_blocks_and_branches() -> None:
    body = """
 %zero = arith.constant 0 : i32
 %c = arith.cmpi slt, %a, %zero : i32
 cf.cond_br %c, ^neg(%a : i32), ^done(%a : i32)
^neg(%x: i32):
 %n = arith.subi %zero, %x : i32
 cf.br ^done(%n : i32)
^done(%y: i32):
 tt.return %y : i32
"""
    assert [int(call(["i32"], ["i32"], body, value)[0]) for value in (-5, 5)] == [5, 5]


def test_calls_and_recursion_depth() -> None:
    text = """
module {
  tt.func private @square(%x: f32) -> f32 attributes {noinline = true} {
    %0 = arith.mulf %x, %x : f32
    tt.return %0 : f32
  }
  tt.func public @k(%x: f32) -> (f32, f32) {
    %a = tt.call @square(%x) : (f32) -> f32
    %b = tt.call @square(%a) : (f32) -> f32
    tt.return %a, %b : f32, f32
  }
}
"""
    assert [float(value) for value in evaluate(parse_module(text), "k", [3.0])] == [9.0, 81.0]


def test_an_unknown_function_lists_the_known_ones() -> None:
    with pytest.raises(EvaluationError, match="no function 'g'; its functions: f"):
        evaluate(parse_module("module { tt.func public @f() { tt.return } }"), "g")


def region(op: str, body: str, args: str, types: str, attributes: str = "axis = 0 : i32") -> str:
    return f'%r = "tt.{op}"({args}) <{{{attributes}}}> ({{\n{body}\n}}) : {types}\n'


def test_reduce_keeps_the_order_of_its_elements() -> None:
    body = "^bb0(%x: i32, %y: i32):\n tt.reduce.return %y : i32"
    text = region("reduce", body, "%a", "(tensor<8xi32>) -> i32") + "tt.return %r : i32"
    assert int(call(["tensor<8xi32>"], ["i32"], text, np.arange(8, dtype=np.int32))[0]) == 7


def test_reduce_of_a_pair_is_argmax() -> None:
    body = """^bb0(%v: f32, %i: i32, %w: f32, %j: i32):
 %gt = arith.cmpf ogt, %w, %v : f32
 %m = arith.select %gt, %w, %v : f32
 %k = arith.select %gt, %j, %i : i32
 tt.reduce.return %m, %k : f32, i32"""
    types = "(tensor<4x16xf32>, tensor<4x16xi32>) -> (tensor<4xf32>, tensor<4xi32>)"
    text = region("reduce", body, "%a, %b", types, "axis = 1 : i32").replace("%r =", "%r:2 =")
    text += "tt.return %r#1 : tensor<4xi32>"
    values = np.random.default_rng(0).normal(size=(4, 16)).astype(np.float32)
    indices = np.broadcast_to(np.arange(16, dtype=np.int32), (4, 16))
    (result,) = call(["tensor<4x16xf32>", "tensor<4x16xi32>"], ["tensor<4xi32>"], text, values, indices)
    assert result.tolist() == values.argmax(1).tolist()


CONDITIONAL_MAX = """^bb0(%x: i32, %y: i32):
 %gt = arith.cmpi sgt, %x, %y : i32
 %m = scf.if %gt -> (i32) {
   scf.yield %x : i32
 } else {
   scf.yield %y : i32
 }
 tt.reduce.return %m : i32"""


def test_reduce_with_control_flow_runs_per_element() -> None:
    text = region("reduce", CONDITIONAL_MAX, "%a", "(tensor<8x4xi32>) -> tensor<4xi32>")
    text += "tt.return %r : tensor<4xi32>"
    values = np.random.default_rng(0).integers(-50, 50, (8, 4)).astype(np.int32)
    (result,) = call(["tensor<8x4xi32>"], ["tensor<4xi32>"], text, values)
    assert result.tolist() == values.max(0).tolist()


@pytest.mark.parametrize("reverse", ["false", "true"])
def test_scan_of_a_linear_recurrence(reverse: str) -> None:
    """h = a * h + x as an associative function of pairs; not commutative, so the order shows."""
    body = """^bb0(%a1: f64, %x1: f64, %a2: f64, %x2: f64):
 %p = arith.mulf %a1, %a2 : f64
 %q = arith.mulf %a2, %x1 : f64
 %s = arith.addf %q, %x2 : f64
 tt.scan.return %p, %s : f64, f64"""
    types = "(tensor<8xf64>, tensor<8xf64>) -> (tensor<8xf64>, tensor<8xf64>)"
    text = region("scan", body, "%a, %b", types, f"axis = 0 : i32, reverse = {reverse}").replace("%r =", "%r:2 =")
    text += "tt.return %r#1 : tensor<8xf64>"
    rng = np.random.default_rng(0)
    factors, values = rng.normal(size=8), rng.normal(size=8)
    (result,) = call(["tensor<8xf64>"] * 2, ["tensor<8xf64>"], text, factors, values)
    order = range(7, -1, -1) if reverse == "true" else range(8)
    state, wanted = 0.0, np.zeros(8)
    for k in order:
        state = wanted[k] = factors[k] * state + values[k]
    np.testing.assert_allclose(result, wanted)


def test_map_elementwise_with_a_loop_and_packs() -> None:
    body = """^bb0(%x: i32, %y: i32):
 %zero = arith.constant 0 : i32
 %one = arith.constant 1 : i32
 %s = scf.for %k = %zero to %x step %one iter_args(%t = %y) -> (i32)  : i32 {
   %u = arith.addi %t, %k : i32
   scf.yield %u : i32
 }
 tt.map_elementwise.return %s, %x : i32, i32"""
    text = region("map_elementwise", body, "%a", "(tensor<8xi32>) -> tensor<8xi32>", "pack = 2 : i32")
    text += "tt.return %r : tensor<8xi32>"
    (result,) = call(["tensor<8xi32>"], ["tensor<8xi32>"], text, np.arange(8, dtype=np.int32))
    wanted = [value for x, y in ((0, 1), (2, 3), (4, 5), (6, 7)) for value in (y + sum(range(x)), x)]
    assert result.tolist() == wanted


def test_print_and_assert() -> None:
    lines: list[str] = []
    body = 'tt.print " x: " {hex = false, isSigned = array<i32: 1>} : %a : tensor<2xf32>\n tt.return'
    call(["tensor<2xf32>"], [], body, np.array([1.5, -2], np.float32), on_print=lines.append)
    assert lines == ["pid (0, 0, 0) idx (0) x: 1.500000", "pid (0, 0, 0) idx (1) x: -2.000000"]
    body = 'tt.assert %a, "x must be positive" : tensor<2xi1> loc("k.py":3:5)\n tt.return'
    with pytest.raises(EvaluationError) as caught:
        call(["tensor<2xi1>"], [], body, np.array([True, False]), program_ids=[(0, 3)])
    message = "k.py:3:5: error: tt.assert failed at index (1,): x must be positive [program (0, 3, 0)]"
    assert str(caught.value) == message


def test_an_op_without_a_rule_is_an_error() -> None:
    body = (
        '%0 = tt.elementwise_inline_asm "mov.u32 $0, %smid;" {constraints = "=r", packed_element = 1 : i32, '
        "pure = true} -> i32\n tt.return %0 : i32"
    )
    with pytest.raises(EvaluationError, match=r"assembly, which the evaluator does not execute: 'mov.u32"):
        call([], ["i32"], body)
