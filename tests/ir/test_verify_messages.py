"""A bad op for each verifier message that no other test reaches; most can be written in the generic form only."""

import pytest

from tilework.ir.parser import parse_module
from tilework.ir.verify import first_problem

F4, F8, I8 = "tensor<4xf32>", "tensor<8xf32>", "tensor<8xi32>"
ADD = "^bb0(%a: f32, %b: f32): %r = arith.addf %a, %b : f32 "
GATHER = '%r = "tt.descriptor_gather"(%d, %x, %y) : (!tt.tensordesc<{block}>, {offsets}, i32) -> {result}'
EXTERN = '%r = tt.extern_elementwise {} {{libname = "", libpath = "", pure = true, symbol = "f"}} : ({}) -> {}'
SCALED = (
    "%r = tt.dot_scaled %a{0}, %a{3}, %c lhs = {4} rhs = {4} {{fastMath = false}} : {1}{2} * {5} -> tensor<16x16xf32>"
)


def gather(block: str, offsets: str, result: str) -> tuple[str, str]:
    text = GATHER.format(block=block, offsets=offsets, result=result)
    return f"%d: !tt.tensordesc<{block}>, %x: {offsets}, %y: i32", text


CASES = [
    ("cannot choose between", f"%c: i1, %a: {F8}, %b: {F4}", (f'%r = "arith.select"(%c, %a, %b) : (i1, {F8}, {F4}) '
                                                              f'-> {F8}')),
    ("tt.make_tensor_ptr from", "%p: !tt.ptr<f32>, %n: i64, %o: i32",
     ('%r = "tt.make_tensor_ptr"(%p, %n, %n, %o) <{order = array<i32: 0>}> : (!tt.ptr<f32>, i64, i64, i32) '
      '-> !tt.ptr<tensor<8xf16>>')),
    ("tt.advance of", "%p: !tt.ptr<tensor<8xf16>>, %o: i32",
     '%r = "tt.advance"(%p, %o) : (!tt.ptr<tensor<8xf16>>, i32) -> !tt.ptr<tensor<4xf16>>'),
    ("descriptor block must have exactly 1 row, but got", *gather("tensor<2x32xf16>", I8, "tensor<8x32xf16>")),
    ("descriptor block and tensor element types must match, but got descriptor element type 'f16' and tensor element "
     "type 'bf16'", "%d: !tt.tensordesc<tensor<64x64xf16>>, %i: i32",
     "%r = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xbf16>"),
    ("descriptor block and tensor must have the same number of elements, but got descriptor block with 8192 elements "
     "tensor with 4096 elements", "%d: !tt.tensordesc<tensor<128x64xf16>>, %i: i32, %x: tensor<64x64xf16>",
     "tt.descriptor_store %d[%i, %i], %x : !tt.tensordesc<tensor<128x64xf16>>, tensor<64x64xf16>"),
    ("needs a 1-D tensor of offsets", *gather("tensor<1x32xf16>", "tensor<8x1xi32>", "tensor<8x32xf16>")),
    ("must have at least 8 rows, but got 4", *gather("tensor<1x32xf16>", "tensor<4xi32>", "tensor<4x32xf16>")),
    ("at most 32 bits", *gather("tensor<1x32xf64>", I8, "tensor<8x32xf64>")),
    ("must have at least 16 columns for f16, but got 8", *gather("tensor<1x8xf16>", I8, "tensor<8x8xf16>")),
    ("tt.dot with an accumulator of", "%a: tensor<16x16xf16>, %c: tensor<16x16xf32>",
     '%r = "tt.dot"(%a, %a, %c) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}> : '
     "(tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x32xf32>"),
    ("tt.dot_scaled with an accumulator of", "%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>",
     '%r = "tt.dot_scaled"(%a, %b, %c) <{a_elem_type = 0 : i32, b_elem_type = 0 : i32, fastMath = false, '
     'lhs_k_pack = true, '
     "rhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : "
     "(tensor<32x64xi8>, tensor<64x32xi8>, tensor<32x32xf32>) -> tensor<16x32xf32>"),
    ("tt.addptr of", "%p: !tt.ptr<f32>, %o: i32", '%r = "tt.addptr"(%p, %o) : (!tt.ptr<f32>, i32) -> !tt.ptr<f16>'),
    ("tt.map_elementwise needs a region", f"%x: {F8}", (f'%r = "tt.map_elementwise"(%x) <{{pack = 1 '
                                                        f': i32}}> ({{}}) : ({F8}) -> {F8}')),
    ("tt.map_elementwise region must return", f"%x: {F8}",
     f'%r = "tt.map_elementwise"(%x) <{{pack = 1 : i32}}> ({{^bb0(%a: f32): %i = arith.constant 1 : i32 '
     f'"tt.map_elementwise.return"(%i) : (i32) -> () }}) : ({F8}) -> {F8}'),
    ("property must be an i32 that is one of 0 (x), 1 (y), 2 (z), but got 7 : i32", "", ('%r = '
                                                                                         '"tt.get_program_id"() '
                                                                                         '<{axis = 7 : i32}> : () '
                                                                                         '-> i32')),
    ("needs at least one source", "", ('"tt.reduce"() <{axis = 0 : i32}> ({^bb0: "tt.reduce.return"() : () '
                                       '-> () }) : () -> ()')),
    ("axis out of bounds for operand rank 1: tt.reduce along axis -1", f"%x: {F8}",
     f'%s = "tt.reduce"(%x) <{{axis = -1 : i32}}> ({{{ADD} "tt.reduce.return"(%r) : (f32) -> () }}) : ({F8}) -> f32'),
    ("axis out of bounds for operand rank 1: tt.scan along axis 1", f"%x: {F8}",
     f'%s = "tt.scan"(%x) <{{axis = 1 : i32, reverse = false}}> ({{{ADD} "tt.scan.return"(%r) : (f32) -> () }}) : '
     f'({F8}) -> {F8}'),
    ("all operands must have the same rank, but got ranks 1, 2", f"%x: {F8}, %y: tensor<8x4xf32>",
     f'%s:2 = "tt.reduce"(%x, %y) <{{axis = 0 : i32}}> ({{}}) : ({F8}, tensor<8x4xf32>) -> (f32, {F4})'),
    ("tt.reduce needs a region", f"%x: {F8}", f'%r = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{}}) : ({F8}) -> f32'),
    ("tt.reduce of", f"%x: {F8}",
     f'%r = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{{ADD} "tt.reduce.return"(%r) : (f32) -> () }}) : ({F8}) -> {F4}'),
    ("tt.scan of", f"%x: {F8}",
     (f'%s = "tt.scan"(%x) <{{axis = 0 : i32, reverse = false}}> ({{{ADD} "tt.scan.return"(%r) : (f32) -> () }}) '
      f': ({F8}) -> tensor<8xf16>')),
    ("needs a mask of", f"%x: {I8}, %m: tensor<4xi1>",
     f'%r = "tt.histogram"(%x, %m) : ({I8}, tensor<4xi1>) -> {I8}'),
    ("tt.sort_runs of runs of 2**4 elements in order 0, of 8 elements", f"%x: {I8}",
     f'%r = "tt.sort_runs"(%x) <{{bits = 4 : i32, merges = false, order = 0 : i32, signed = true}}> : ({I8}) -> {I8}'),
    ("indices dimension 1 must match", "%x: tensor<4x8xf32>, %i: tensor<4x4xi32>",
     '%r = "tt.gather"(%x, %i) <{axis = 0 : i32}> : (tensor<4x8xf32>, tensor<4x4xi32>) -> tensor<4x4xf32>'),
    ("tt.unsplat of", "%x: tensor<1xf32>", '%r = "tt.unsplat"(%x) : (tensor<1xf32>) -> f16'),
    ("tt.split of", "%x: tensor<4x2xf32>", f'%r:2 = "tt.split"(%x) : (tensor<4x2xf32>) -> ({F8}, {F8})'),
    ("same encoding", f"%x: {F8}", f'%r = "tt.broadcast"(%x) : ({F8}) -> tensor<8xf32, "b">\n'
     '%s = "tt.broadcast"(%r) : (tensor<8xf32, "b">) -> tensor<8xf32, "c">'),
    ("either (a) src and dst both have encodings, or (b) neither does", f"%x: {F8}", (f'%r = tt.reshape %x : {F8} '
                                                                                      '-> tensor<8xf32, "b">')),
    ("known shape", "%x: f32", "%r = tt.splat %x : f32 -> tensor<?xf32>"),
    ("operand 'src' must be a float, integer or pointer, but got ui8", "%x: ui8", ("%r = tt.splat %x : ui8 "
                                                                                   "-> tensor<8xui8>")),
    ("operand 'src' must be a float, integer or pointer, but got i7", "%x: i7", ("%r = tt.splat %x : i7 "
                                                                                 "-> tensor<8xi7>")),
    ("there must be at least one non-scalar result", f"%x: {F8}", EXTERN.format("%x", F8, "f32")),
    ("at least one operand must be non-scalar", "%x: f32", EXTERN.format("%x", "f32", F8)),
    ("must have the same shape and base type", f"%x: {F8}, %y: {F4}", EXTERN.format("%x, %y", f"{F8}, {F4}", F8)),
    ("packed_element must be positive", "%x: f32",
     '%r = tt.elementwise_inline_asm "" {constraints = "=r,r", packed_element = 0 : i32, pure = true} %x : f32 -> f32'),
    ("with other needs a mask", "%p: !tt.ptr<f32>, %x: f32",
     '%r = "tt.load"(%p, %x) <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (!tt.ptr<f32>, f32) -> f32'),
    ("needs pointers of address space 1, not 3", "%p: !tt.ptr<f32, 3>, %x: f32",
     "%r = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x : (!tt.ptr<f32, 3>, f32) -> f32"),
    ("property must be an i32 that is one of 1 (and), 2 (or)", "%p: !tt.ptr<f32>, %x: f32",
     ('%r = "tt.atomic_rmw"(%p, %x) <{atomic_rmw_op = 99 : i32, sem = 4 : i32, scope = 1 : i32}> : (!tt.ptr<f32>, '
      'f32) -> f32')),
    ("property must be an integer of i32, but got 0 : i64", f"%x: {F8}",
     f"%r = tt.expand_dims %x {{axis = 0 : i64}} : {F8} -> tensor<1x8xf32>"),
    ("property must be an integer of i1", f"%x: {F8}",
     (f'%s = "tt.scan"(%x) <{{axis = 0 : i32, reverse = 1 : i32}}> ({{{ADD} "tt.scan.return"(%r) : (f32) -> () }}) '
      f': ({F8}) -> {F8}')),
    ("property must be an array of i32", "%x: tensor<4x8xf32>",
     "%r = tt.trans %x {order = array<i64: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>"),
    ("tt.make_tensor_ptr from", "%p: !tt.ptr<f32, 3>, %n: i64, %o: i32",
     ('%r = "tt.make_tensor_ptr"(%p, %n, %n, %o) <{order = array<i32: 0>}> : (!tt.ptr<f32, 3>, i64, i64, i32) '
      '-> !tt.ptr<tensor<8xf32>>')),
    ("along axis 0 cannot give", "%x: tensor<f32>", "%r = tt.cat %x, %x : tensor<f32> -> tensor<2xf32>"),
    ("operand 'a' must be a tensor of floats or integers", "%a: tensor<16x16x!tt.ptr<f32>>, %c: tensor<16x16xf32>",
     "%r = tt.dot %a, %a, %c : tensor<16x16x!tt.ptr<f32>> * tensor<16x16x!tt.ptr<f32>> -> tensor<16x16xf32>"),
    ("expected operands to be 2d or 3d: tt.dot_scaled got [8] and [8]", f"%a: {F8}, %c: tensor<16x16xf32>",
     SCALED.format("", F8, "", "", "e5m2", F8)),
    ("e2m1 values packed into i8", "%a: tensor<16x16xf16>, %c: tensor<16x16xf32>",
     SCALED.format("", "tensor<16x16xf16>", "", "", "e2m1", "tensor<16x16xf16>")),
    ("scales of M must have rank 2 or 3", f"%a: tensor<16x16xf16>, %s: {I8}, %c: tensor<16x16xf32>",
     SCALED.format(" scale %s", "tensor<16x16xf16>", f", {I8}", "", "fp16", "tensor<16x16xf16>")),
    ("scales N dimension must match", "%a: tensor<16x16xf16>, %s: tensor<8x1xi8>, %c: tensor<16x16xf32>",
     SCALED.format("", "tensor<16x16xf16>", "", " scale %s", "fp16", "tensor<16x16xf16>, tensor<8x1xi8>")),
    ("cannot give 2 results", f"%x: {F8}",
     (f'%s:2 = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{{ADD} "tt.reduce.return"(%r) : (f32) -> () }}) : ({F8}) '
      '-> (f32, f32)')),
    ("tt.reduce of tensor<8xf32> cannot give f16", f"%x: {F8}",
     f'%s = "tt.reduce"(%x) <{{axis = 0 : i32}}> ({{{ADD} "tt.reduce.return"(%r) : (f32) -> () }}) : ({F8}) -> f16'),
    ("must end with tt.map_elementwise.return, not scf.yield", f"%x: {F8}",
     f'%r = "tt.map_elementwise"(%x) <{{pack = 1 : i32}}> ({{^bb0(%a: f32): scf.yield }}) : ({F8}) -> {F8}'),
    ("must end with tt.map_elementwise.return, not nothing", f"%x: {F8}",
     f'%r = "tt.map_elementwise"(%x) <{{pack = 1 : i32}}> ({{^bb0(%a: f32): }}) : ({F8}) -> {F8}'),
]  # fmt: skip


@pytest.mark.parametrize(("message", "arguments", "body"), CASES, ids=[case[0] for case in CASES])
def test_the_message(message: str, arguments: str, body: str) -> None:
    text = f"module {{ tt.func @f({arguments}) {{ {body}\n tt.return }} }}"
    problem = first_problem(parse_module(text))
    assert problem is not None and message in problem[1], problem


FUNCTIONS = [
    ("but its entry block has", ('"tt.func"() <{sym_name = "f", function_type = (i32) '
                                 '-> ()}> ({^bb0(%a: f32): "tt.return"() : () -> () }) : () -> ()')),
    ("has attributes for 1 of 2", '"tt.func"() <{sym_name = "f", function_type = (i32, i32) -> (), arg_attrs = [{}]}> '
     '({^bb0(%a: i32, %b: i32): "tt.return"() : () -> () }) : () -> ()'),
    ("expected result type 'i32', but provided 'f32'", 'tt.func private @g() -> i32 { %c = arith.constant 1 '
                                                       ': i32 tt.return %c : i32 } '
     'tt.func @f() { %r = "tt.call"() <{callee = @g}> : () -> f32 tt.return }'),
    ("has attributes for 1 of 0 results", '"tt.func"() <{sym_name = "f", function_type = () -> (), res_attrs = [{}]}> '
     '({^bb0: "tt.return"() : () -> () }) : () -> ()'),
    ("cannot have public visibility: @f has no body", "tt.func public @f(f32)"),
    ("must be one of public, private, nested, not odd",
     '"tt.func"() <{sym_name = "f", sym_visibility = "odd", function_type = () -> ()}> ({}) : () -> ()'),
    ("has a block that ends with nothing", "tt.func @f() { }"),
    ("has a block that ends with arith.constant", "tt.func @f() { %c = arith.constant 1 : i32 }"),
    ("tt.return expects parent op 'tt.func', but its parent is 'builtin.module'", "tt.return"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "text"), FUNCTIONS, ids=[case[0] for case in FUNCTIONS])
def test_the_message_of_a_function(message: str, text: str) -> None:
    problem = first_problem(parse_module(f"module {{ {text} }}"))
    assert problem is not None and message in problem[1], problem
