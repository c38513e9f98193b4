"""Bad ops that only the generic form can write: each reaches one verifier message that no other test reaches."""

import pytest

from tilework.ir.parser import parse_module
from tilework.ir.verify import first_problem

F4, F8, I8 = "tensor<4xf32>", "tensor<8xf32>", "tensor<8xi32>"
ADD = "^bb0(%a: f32, %b: f32): %r = arith.addf %a, %b : f32 "
GATHER = '%r = "tt.descriptor_gather"(%d, %x, %y) : (!tt.tensordesc<{block}>, {offsets}, i32) -> {result}'


def gather(block: str, offsets: str, result: str) -> tuple[str, str]:
    text = GATHER.format(block=block, offsets=offsets, result=result)
    return f"%d: !tt.tensordesc<{block}>, %x: {offsets}, %y: i32", text


CASES = [
    ("cannot choose between", f"%c: i1, %a: {F8}, %b: {F4}", f'%r = "arith.select"(%c, %a, %b) : (i1, {F8}, {F4}) -> {F8}'),
    ("tt.make_tensor_ptr from", "%p: !tt.ptr<f32>, %n: i64, %o: i32",
     '%r = "tt.make_tensor_ptr"(%p, %n, %n, %o) <{order = array<i32: 0>}> : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<tensor<8xf16>>'),
    ("tt.advance of", "%p: !tt.ptr<tensor<8xf16>>, %o: i32",
     '%r = "tt.advance"(%p, %o) : (!tt.ptr<tensor<8xf16>>, i32) -> !tt.ptr<tensor<4xf16>>'),
    ("needs blocks of one row", *gather("tensor<2x32xf16>", I8, "tensor<8x32xf16>")),
    ("needs a 1-D tensor of offsets", *gather("tensor<1x32xf16>", "tensor<8x1xi32>", "tensor<8x32xf16>")),
    ("must have at least 8 rows", *gather("tensor<1x32xf16>", "tensor<4xi32>", "tensor<4x32xf16>")),
    ("at most 32 bits", *gather("tensor<1x32xf64>", I8, "tensor<8x32xf64>")),
    ("columns", *gather("tensor<1x8xf16>", I8, "tensor<8x8xf16>")),
    ("tt.dot with an accumulator of", "%a: tensor<16x16xf16>, %c: tensor<16x16xf32>",
     '%r = "tt.dot"(%a, %a, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : '
     "(tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x32xf32>"),
    ("tt.dot_scaled with an accumulator of", "%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>",
     '%r = "tt.dot_scaled"(%a, %b, %c) <{a_elem_type = 0 : i32, b_elem_type = 0 : i32, fastMath = false, lhs_k_pack = true, '
     "rhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : "
     "(tensor<32x64xi8>, tensor<64x32xi8>, tensor<32x32xf32>) -> tensor<16x32xf32>"),
    ("tt.addptr of", "%p: !tt.ptr<f32>, %o: i32", '%r = "tt.addptr"(%p, %o) : (!tt.ptr<f32>, i32) -> !tt.ptr<f16>'),
    ("tt.map_elementwise needs a region", f"%x: {F8}", f'%r = "tt.map_elementwise"(%x) <{{pack = 1 : i32}}> ({{}}) : ({F8}) -> {F8}'),
    ("the region must return", f"%x: {F8}",
     f'%r = "tt.map_elementwise"(%x) <{{pack = 1 : i32}}> ({{^bb0(%a: f32): %i = arith.constant 1 : i32 '
     f'"tt.map_elementwise.return"(%i) : (i32) -> () }}) : ({F8}) -> {F8}'),
    ("needs axis 0, 1 or 2", "", '%r = "tt.get_program_id"() <{axis = 7 : i32}> : () -> i32'),
    ("needs at least one source", "", '"tt.reduce"() <{axis = 0 : i32}> ({^bb0: "tt.reduce.return"() : () -> () }) : () -> ()'),
    ("tt.reduce needs a region", f"%x: {F8}", f'%r = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{}}) : ({F8}) -> f32'),
    ("tt.reduce of", f"%x: {F8}",
     f'%r = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{{ADD} "tt.reduce.return"(%r) : (f32) -> () }}) : ({F8}) -> {F4}'),
    ("tt.scan of", f"%x: {F8}",
     f'%s = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> ({{{ADD} "tt.scan.return"(%r) : (f32) -> () }}) : ({F8}) -> tensor<8xf16>'),
    ("needs a mask of", f"%x: {I8}, %m: tensor<4xi1>",
     f'%r = "tt.histogram"(%x, %m) : ({I8}, tensor<4xi1>) -> {I8}'),
    ("indices dimension 1 must match", "%x: tensor<4x8xf32>, %i: tensor<4x4xi32>",
     '%r = "tt.gather"(%x, %i) <{axis = 0 : i32}> : (tensor<4x8xf32>, tensor<4x4xi32>) -> tensor<4x4xf32>'),
    ("tt.unsplat of", "%x: tensor<1xf32>", '%r = "tt.unsplat"(%x) : (tensor<1xf32>) -> f16'),
    ("tt.split of", "%x: tensor<4x2xf32>", f'%r:2 = "tt.split"(%x) : (tensor<4x2xf32>) -> ({F8}, {F8})'),
]  # fmt: skip


@pytest.mark.parametrize(("message", "arguments", "body"), CASES, ids=[case[0] for case in CASES])
def test_the_message(message: str, arguments: str, body: str) -> None:
    text = f"module {{ tt.func @f({arguments}) {{ {body}\n tt.return }} }}"
    problem = first_problem(parse_module(text))
    assert problem is not None and message in problem[1], problem


FUNCTIONS = [
    ("but its entry block has", '"tt.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({^bb0(%a: f32): "tt.return"() : () -> () }) : () -> ()'),
    ("has attributes for 1 of 2", '"tt.func"() <{sym_name = "f", function_type = (i32, i32) -> (), arg_attrs = [{}]}> '
     '({^bb0(%a: i32, %b: i32): "tt.return"() : () -> () }) : () -> ()'),
    ("but is called for", 'tt.func private @g() -> i32 { %c = arith.constant 1 : i32 tt.return %c : i32 } '
     'tt.func @f() { %r = "tt.call"() <{callee = @g}> : () -> f32 tt.return }'),
]  # fmt: skip


@pytest.mark.parametrize(("message", "text"), FUNCTIONS, ids=[case[0] for case in FUNCTIONS])
def test_the_message_of_a_function(message: str, text: str) -> None:
    problem = first_problem(parse_module(f"module {{ {text} }}"))
    assert problem is not None and message in problem[1], problem
