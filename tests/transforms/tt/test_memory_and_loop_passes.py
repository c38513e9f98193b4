"""The block-pointer, descriptor and loop passes: programs compute the same before and after; errors name the op."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilework.errors import PassError
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import evaluate
from tilework.transforms.passes import Pass
from tilework.transforms.registry import get_pass

POINTER, DESCRIPTOR = "triton-rewrite-tensor-pointer", "triton-rewrite-tensor-descriptor-to-pointer"
LICM, UNROLL, LOOP_CSE = "triton-licm", "triton-loop-unroll", "triton-loop-aware-cse"


def run_pass(name: str, text: str):
    module = parse_module(text)
    kind: type[Pass] = get_pass(name)
    kind().run(module)
    return module


def results(module, arrays: list[np.ndarray], numbers: list[int | float]) -> list[np.ndarray]:
    """Return the results of `@f`, and the arrays after it has run."""
    copies = [array.copy() for array in arrays]
    returned = evaluate(module, "f", [*copies, *numbers])
    return [*(np.asarray(value) for value in returned), *copies]


def check_same(name: str, text: str, arrays: list[np.ndarray], numbers: list[int | float]) -> None:
    """`@f` takes the arrays, then the numbers."""
    before = results(parse_module(text), arrays, numbers)
    after = results(run_pass(name, text), arrays, numbers)
    for expected, actual in zip(before, after, strict=True):
        np.testing.assert_array_equal(expected, actual)


BLOCK_POINTERS = """
tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %m: i64, %n: i64, %s: i64, %x: i32, %y: i32, %steps: i32)
    -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  %one = arith.constant 1 : i64
  %z = arith.constant dense<0.0> : tensor<4x8xf32>
  %b = tt.make_tensor_ptr %p, [%m, %n], [%s, %one], [%x, %y] {order = array<i32: 1, 0>} : <tensor<4x8xf32>>
  %o = tt.make_tensor_ptr %q, [%m, %n], [%s, %one], [%x, %y] {order = array<i32: 1, 0>} : <tensor<4x8xf32>>
  %r:2 = scf.for %i = %c0 to %steps step %c1 iter_args(%bb = %b, %a = %z) -> (!tt.ptr<tensor<4x8xf32>>, tensor<4x8xf32>) : i32 {
    %v = tt.load %bb {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : !tt.ptr<tensor<4x8xf32>>
    %w = arith.addf %a, %v : tensor<4x8xf32>
    %even = arith.andi %i, %c1 : i32
    %t = arith.cmpi eq, %even, %c0 : i32
    %next = scf.if %t -> (!tt.ptr<tensor<4x8xf32>>) {
      %d = tt.advance %bb, [%c1, %c4] : <tensor<4x8xf32>>
      scf.yield %d : !tt.ptr<tensor<4x8xf32>>
    } else {
      scf.yield %bb : !tt.ptr<tensor<4x8xf32>>
    }
    scf.yield %next, %w : !tt.ptr<tensor<4x8xf32>>, tensor<4x8xf32>
  }
  tt.store %o, %r#1 {boundaryCheck = array<i32: 0, 1>} : !tt.ptr<tensor<4x8xf32>>
  %u = tt.load %r#0 {boundaryCheck = array<i32: 0, 1>, padding = 2 : i32} : !tt.ptr<tensor<4x8xf32>>
  tt.return %u, %r#1 : tensor<4x8xf32>, tensor<4x8xf32>
}
"""  # noqa: E501


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 9), st.integers(1, 12), st.integers(-3, 6), st.integers(-5, 9), st.integers(0, 4))
def test_block_pointers_address_the_same_elements(m: int, n: int, x: int, y: int, steps: int) -> None:
    array = np.arange(m * (n + 2), dtype=np.float32)
    check_same(POINTER, BLOCK_POINTERS, [array, np.zeros_like(array)], [m, n, n + 2, x, y, steps])


BLOCK = "!tt.ptr<tensor<4xf32>>"
BLOCK_POINTERS_ANYWHERE = f"""
tt.func private @pick(%a: {BLOCK}, %b: {BLOCK}, %c: i1) -> {BLOCK} attributes {{noinline = true}} {{
  %r = arith.select %c, %a, %b : {BLOCK}
  tt.return %r : {BLOCK}
}}
tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %m: i64, %n: i64, %x: i32, %steps: i32) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {{
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1 : i64
  %b = tt.make_tensor_ptr %p, [%m], [%one], [%x] {{order = array<i32: 0>}} : <tensor<4xf32>>
  %w:2 = scf.while (%a = %b, %k = %c0) : ({BLOCK}, i32) -> ({BLOCK}, i32) {{
    %more = arith.cmpi slt, %k, %steps : i32
    scf.condition(%more) %a, %k : {BLOCK}, i32
  }} do {{
  ^bb0(%a: {BLOCK}, %k: i32):
    %d = tt.advance %a, [%c1] : <tensor<4xf32>>
    %l = arith.addi %k, %c1 : i32
    scf.yield %d, %l : {BLOCK}, i32
  }}
  %moved = scf.for %i = %c0 to %steps step %c1 iter_args(%a = %b) -> ({BLOCK}) : i32 {{
    %d = tt.make_tensor_ptr %q, [%n], [%one], [%i] {{order = array<i32: 0>}} : <tensor<4xf32>>
    scf.yield %d : {BLOCK}
  }}
  %t = arith.cmpi slt, %x, %steps : i32
  %picked = tt.call @pick(%b, %moved, %t) : ({BLOCK}, {BLOCK}, i1) -> {BLOCK}
  cf.br ^bb1(%w#0 : {BLOCK})
^bb1(%branched: {BLOCK}):
  %u = tt.load %branched {{boundaryCheck = array<i32: 0>, padding = 1 : i32}} : {BLOCK}
  %v = tt.load %moved {{boundaryCheck = array<i32: 0>, padding = 1 : i32}} : {BLOCK}
  %z = tt.load %picked {{boundaryCheck = array<i32: 0>, padding = 1 : i32}} : {BLOCK}
  tt.return %u, %v, %z : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}}
"""  # noqa: E501


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_block_pointers_go_through_loops_branches_and_calls(steps: int) -> None:
    arrays = [np.arange(9, dtype=np.float32), np.arange(50, 57, dtype=np.float32)]
    check_same(POINTER, BLOCK_POINTERS_ANYWHERE, arrays, [9, 7, 2, steps])


DESCRIPTORS = """
tt.func private @pick(%d: !tt.tensordesc<tensor<8x16xf32>>, %e: !tt.tensordesc<tensor<8x16xf32>>, %c: i1)
    -> !tt.tensordesc<tensor<8x16xf32>> attributes {noinline = true} {
  %r = arith.select %c, %d, %e : !tt.tensordesc<tensor<8x16xf32>>
  tt.return %r : !tt.tensordesc<tensor<8x16xf32>>
}
tt.func public @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %k: !tt.ptr<i32>, %m: i32, %n: i32, %s: i64, %x: i32, %y: i32, %end: i32)
    -> tensor<8x16xf32> {
  %one = arith.constant 1 : i64
  %c4 = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f32>, <tensor<8x16xf32>>
  %e = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] {padding = 2 : i32} : <f32>, <tensor<8x16xf32>>
  %o = tt.make_tensor_descriptor %q, [%m, %n], [%s, %one] : <f32>, <tensor<8x16xf32>>
  %u = tt.make_tensor_descriptor %k, [%m, %n], [%s, %one] : <i32>, <tensor<8x16xui32>>
  %rows = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f32>, <tensor<1x16xf32>>
  %t = arith.cmpi slt, %x, %y : i32
  %g = tt.call @pick(%d, %e, %t) : (!tt.tensordesc<tensor<8x16xf32>>, !tt.tensordesc<tensor<8x16xf32>>, i1) -> !tt.tensordesc<tensor<8x16xf32>>
  %v = tt.descriptor_load %g[%x, %y] : !tt.tensordesc<tensor<8x16xf32>> -> tensor<8x16xf32>
  tt.descriptor_store %o[%x, %y], %v : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
  %w:2 = scf.while (%a = %d, %b = %c0) : (!tt.tensordesc<tensor<8x16xf32>>, i32) -> (i32, !tt.tensordesc<tensor<8x16xf32>>) {
    %more = arith.cmpi slt, %b, %end : i32
    scf.condition(%more) %b, %a : i32, !tt.tensordesc<tensor<8x16xf32>>
  } do {
  ^bb0(%a: i32, %b: !tt.tensordesc<tensor<8x16xf32>>):
    %l = tt.descriptor_load %b[%a, %y] : !tt.tensordesc<tensor<8x16xf32>> -> tensor<8x16xf32>
    tt.descriptor_reduce add, %o[%x, %a], %l : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
    %i = arith.addi %a, %c4 : i32
    scf.yield %b, %i : !tt.tensordesc<tensor<8x16xf32>>, i32
  }
  %old = tt.descriptor_load %u[%c0, %c0] : !tt.tensordesc<tensor<8x16xui32>> -> tensor<8x16xi32>
  tt.descriptor_reduce max, %u[%x, %y], %old : !tt.tensordesc<tensor<8x16xui32>>, tensor<8x16xi32>
  %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %two = arith.constant dense<2> : tensor<8xi32>
  %r2 = arith.muli %r, %two : tensor<8xi32>
  %gathered = tt.descriptor_gather %rows[%r2, %y] : (!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.return %gathered : tensor<8x16xf32>
}
"""  # noqa: E501


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 12), st.integers(1, 20), st.integers(-3, 9), st.integers(-5, 17), st.integers(0, 9))
def test_descriptors_address_the_same_elements(m: int, n: int, x: int, y: int, end: int) -> None:
    array = np.arange(m * (n + 1), dtype=np.float32)
    integers = np.arange(m * (n + 1), dtype=np.int32) * 40503 * 65537
    check_same(DESCRIPTOR, DESCRIPTORS, [array, np.zeros_like(array), integers], [m, n, n + 1, x, y, end])


LOOP = """
tt.func public @f(%p: !tt.ptr<i32>, %lb: i32, %ub: i32, %start: i32) -> (i32, i32, i32) {{
  %step = arith.constant {step} : i32
  %c3 = arith.constant 3 : i32
  %r:3 = scf.for %i = %lb to %ub step %step iter_args(%a = %start, %b = %start, %c = %start) -> (i32, i32, i32) : i32 {{
    %v = tt.load %p : !tt.ptr<i32>
    %m = arith.muli %start, %c3 : i32
    %w = arith.addi %v, %m : i32
    %x = arith.muli %a, %c3 : i32
    %y = arith.addi %x, %i : i32
    %k = arith.muli %b, %c3 : i32
    %l = arith.addi %k, %i : i32
    %z = arith.addi %c, %w : i32
    scf.yield %y, %l, %z : i32, i32, i32
  }} {attributes}
  tt.return %r#0, %r#1, %r#2 : i32, i32, i32
}}
"""


@pytest.mark.parametrize("name", [LICM, LOOP_CSE])
@settings(max_examples=15, deadline=None)
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 3))
def test_loops_compute_the_same(name: str, lower: int, upper: int, step: int) -> None:
    text = LOOP.format(step=step, attributes="")
    check_same(name, text, [np.array([7], np.int32)], [lower, upper, 5])


@settings(max_examples=60, deadline=None)
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 4), st.integers(2, 5))
def test_unrolled_loops_compute_the_same(lower: int, upper: int, step: int, factor: int) -> None:
    text = LOOP.format(step=step, attributes=f"{{tt.loop_unroll_factor = {factor} : i32}}")
    check_same(UNROLL, text, [np.array([7], np.int32)], [lower, upper, 5])
    known = text.replace("%lb: i32, %ub: i32, ", "").replace(
        "  %step", f"  %lb = arith.constant {lower} : i32\n  %ub = arith.constant {upper} : i32\n  %step", 1
    )
    check_same(UNROLL, known, [np.array([7], np.int32)], [5])


LOC = 'loc("kernel.py":12:5)'
ERRORS = {
    "nan of integers": (
        POINTER,
        f"""tt.func @f(%p: !tt.ptr<i32>, %n: i64, %o: i32) {{
        %b = tt.make_tensor_ptr %p, [%n], [%n], [%o] {{order = array<i32: 0>}} : <tensor<8xi32>>
        %v = tt.load %b {{boundaryCheck = array<i32: 0>, padding = 2 : i32}} : !tt.ptr<tensor<8xi32>> {LOC}
        tt.return }}""",
        "padding with NaN needs a block of floats",
    ),
    "maximum of floats": (
        DESCRIPTOR,
        f"""tt.func @f(%d: !tt.tensordesc<tensor<16xf32>>, %x: i32, %v: tensor<16xf32>) {{
        tt.descriptor_reduce max, %d[%x], %v : !tt.tensordesc<tensor<16xf32>>, tensor<16xf32> {LOC}
        tt.return }}""",
        "Cannot fallback on descriptor atomic op, unsupported for type f32",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_op_and_its_line(case: str) -> None:
    name, text, message = ERRORS[case]
    with pytest.raises(PassError, match=message) as caught:
        run_pass(name, text)
    assert str(caught.value.loc) == LOC
