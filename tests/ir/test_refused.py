"""Refusals by the verifier of each `tt` op, and texts that are not an op."""

import pytest
from xdsl.utils.exceptions import VerifyException

from tests.ir.values import in_function
from tilework.ir.parser import IRSyntaxError, parse_module

BAD = [
    ("tt.splat %x : f32 -> tensor<0xf32>", r'must be positive, but %.* = "tt.splat".* has none'),
    (
        (
            "tt.splat %x : f32 -> tensor<3xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], "
            "warpsPerCTA = [4], order = [0]}>>"
        ),
        r'must be power-of-two, but %.* = "tt.splat".*doesn.t follow the rule \(3\) elements',
    ),
    ("tt.resize %t : tensor<64xf32> -> tensor<8x8xf32>", "rank of source must be same as rank of result"),
    ("tt.resize %t : tensor<64xf32> -> tensor<96xf16>", "same element type"),
    ("tt.splat %x : f32 -> tensor<2097152xf32>", "Maximum allowed number of elements is 1048576, but"),
    ("tt.splat %x : f32 -> tensor<8xi32>", "requires the same element type for all operands and results"),
    ("tt.unsplat %t : tensor<64xf32>", "exactly one element"),
    ('"ttg.barrier"() <{addrSpace = 32 : i32}> : () -> ()', "an i32 of words of none, local, "),
    ("tt.expand_dims %t {axis = 2 : i32} : tensor<64xf32> -> tensor<64x1xf32>", "axis 2 is out of range"),
    ("tt.expand_dims %t {axis = 1 : i32} : tensor<64xf32> -> tensor<1x64xf32>", "at axis 1 cannot give"),
    ("tt.reshape %t : tensor<64xf32> -> tensor<8x4xf32>", "number of src and dst elements of reshape must be the same"),
    ("tt.reshape %t : tensor<64xf32> -> tensor<8x8xi32>", "same element type"),
    ("tt.broadcast %row : tensor<1x64xf32> -> tensor<4x32xf32>", "Different dimensions at index 1"),
    ("tt.broadcast %t : tensor<64xf32> -> tensor<4x64xf32>", "rank of source must be same as rank of result"),
    ("tt.cat %t, %t : tensor<64xf32> -> tensor<64xf32>", "along axis 0 cannot give"),
    ("tt.join %t, %t : tensor<64xf32> -> tensor<2x64xf32>", "tt.join of .* cannot give"),
    ("tt.trans %ma {order = array<i32: 0, 0>} : tensor<16x32xf16> -> tensor<16x16xf16>", "must be a permutation"),
    ("tt.trans %ma {order = array<i32: 1, 0>} : tensor<16x32xf16> -> tensor<16x32xf16>", "cannot give"),
    (
        "tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<16xi32>",
        "16, must match size of range .0, 8., which has 8",
    ),
    ("tt.make_range {end = 0 : i32, start = 8 : i32} : tensor<8xi32>", "must be less than"),
    ("tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi64>", "returned tensor must have i32 elements"),
    ("tt.addptr %p, %ti : !tt.ptr<f32>, tensor<64xi32>", "same shape"),
    ("tt.addptr %x, %n : f32, i32", "must be a pointer or a tensor of a pointer, but got f32"),
    ("tt.bitcast %x : f32 -> i64", "Cannot bitcast data-type of size 32 to data-type of size 64"),
    ("tt.bitcast %l : i64 -> !tt.ptr<f32>", "Cannot bitcast pointer to non-pointer type"),
    ("tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<f32, 3>", "Cannot bitcast pointer between address spaces"),
    ("tt.fp_to_fp %x : f32 -> f16", "Rounding mode is required for FP downcast"),
    (
        'tt.elementwise_inline_asm "" {constraints = "", packed_element = 3 : i32, pure = true} '
        "%t : tensor<64xf32> -> tensor<64xf32>",
        "must be a multiple of the op's packed_element attribute, 3",
    ),
    ("tt.load %p {boundaryCheck = array<i32: 0>} : !tt.ptr<f32>", "boundaryCheck is for block pointers"),
    ("tt.load %bp {boundaryCheck = array<i32: 2>} : !tt.ptr<tensor<64x32xf32>>", "is out of range"),
    (
        '"tt.load"(%tp, %b) <{operandSegmentSizes = array<i32: 1, 1, 0>}> '
        ": (tensor<64x!tt.ptr<f32>>, i1) -> tensor<64xf32>",
        "needs a mask of tensor<64xi1>, but got i1",
    ),
    (
        '"tt.load"(%tp, %tb, %x) <{operandSegmentSizes = array<i32: 1, 1, 1>}> '
        ": (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, f32) -> tensor<64xf32>",
        "cannot take f32",
    ),
    ('"tt.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> i32', "gives f32, not i32"),
    ("tt.atomic_rmw add, relaxed, cta, %p, %n : (!tt.ptr<f32>, i32) -> i32", "takes and gives f32, not i32 and i32"),
    ("tt.atomic_cas relaxed, cta, %pi, %l, %n : (!tt.ptr<i32>, i64, i32) -> i32", "cannot compare i32 with i64"),
    ("tt.make_tensor_ptr %p, [%l], [%l], [%n] {order = array<i32: 1>} : <tensor<64xf32>>", "must be a permutation"),
    ("tt.make_tensor_ptr %p, [%l], [%l], [%n] {order = array<i32: 0>} : <tensor<8x8xf32>>", "rank 2 has 1 sizes"),
    ("tt.advance %bp, [%n] : <tensor<64x32xf32>>", "rank 2 has 1 offsets"),
    ("tt.make_tensor_descriptor %p, [%n], [%l] : <f32>, <tensor<8x8xf32>>", "rank 2 has 1 sizes"),
    ("tt.make_tensor_descriptor %p, [%n], [%l] : <f32>, <tensor<8xi32>>", "cannot give"),
    ("tt.descriptor_load %d[%n] : !tt.tensordesc<tensor<1x32xf32>> -> tensor<1x32xf32>", "needs 2 indices"),
    (
        "tt.descriptor_load %d[%n, %n] : !tt.tensordesc<tensor<1x32xf32>> -> tensor<1x64xf32>",
        "same number of elements, but got descriptor block with 32 elements tensor with ",
    ),
    (
        "tt.descriptor_gather %d[%ti, %n] : "
        "(!tt.tensordesc<tensor<1x32xf32>>, tensor<64xi32>, i32) -> tensor<32x32xf32>",
        "result tensor must have as many rows as indices .64.",
    ),
    ("tt.dot %ma, %m, %m : tensor<16x32xf16> * tensor<16x16xf32> -> tensor<16x16xf32>", "must have same bit width"),
    (
        "tt.dot %ma, %ma, %m : tensor<16x32xf16> * tensor<16x32xf16> -> tensor<16x16xf32>",
        "last dimension of the first operand to be equal to the second-to-last dimension of the second operand: 32",
    ),
    ("tt.dot %ma, %mb, %rows : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<64x32xf32>", "cannot give"),
    ("tt.dot %t, %t, %t : tensor<64xf32> * tensor<64xf32> -> tensor<64xf32>", "rank 2 or 3"),
    (
        "tt.dot_scaled %q scale %s, %w, %m lhs = e4m3 rhs = e4m3 {fastMath = false} : "
        "tensor<16x64xi8>, tensor<16x4xi8> * tensor<128x16xf8E4M3FN> -> tensor<16x16xf32>",
        "last dimension of the first operand to be equal to the second-to-last dimension of the second operand: 64",
    ),
    (
        "tt.dot_scaled %q scale %q, %w, %m lhs = e2m1 rhs = e4m3 {fastMath = false} : "
        "tensor<16x64xi8>, tensor<16x64xi8> * tensor<128x16xf8E4M3FN> -> tensor<16x16xf32>",
        "scales K dimension must match the operand K divided by the scale factor: 64, 128 / 32",
    ),
    (
        "tt.dot_scaled %q scale %m, %w, %m lhs = e2m1 rhs = e4m3 {fastMath = false} : "
        "tensor<16x64xi8>, tensor<16x16xf32> * tensor<128x16xf8E4M3FN> -> tensor<16x16xf32>",
        "scales K dimension must match",
    ),
    (
        "tt.dot_scaled %q scale %rows, %w, %m lhs = e2m1 rhs = e4m3 {fastMath = false} : "
        "tensor<16x64xi8>, tensor<64x32xf32> * tensor<128x16xf8E4M3FN> -> tensor<16x16xf32>",
        "scales M dimension must match the operand M dimension: 64, 16",
    ),
    (
        '"tt.map_elementwise"(%t) <{pack = 1 : i32}> ({\n^bb0(%i: f32):\n  tt.store %p, %i : !tt.ptr<f32>\n'
        "  tt.map_elementwise.return %i : f32\n}) : (tensor<64xf32>) -> tensor<64xf32>",
        "Stores are not supported inside map_elementwise",
    ),
    (
        "tt.gather %t[%ti] {axis = 1 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>",
        "gather dimension must be less than the input rank",
    ),
    ("tt.gather %t[%ti] {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<32xf32>", "shapes must match"),
    ("tt.gather %m[%ti] {axis = 0 : i32} : (tensor<16x16xf32>, tensor<64xi32>) -> tensor<64xf32>", "ranks must match"),
    (
        "tt.gather %t[%ti] {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xi32>",
        "input and output element types must match",
    ),
    ('"tt.histogram"(%ti, %b) : (tensor<64xi32>, i1) -> tensor<16xi32>', "must be a ranked tensor"),
    ("tt.call @nobody(%x) : (f32) -> f32", "'nobody' does not reference a valid function"),
    ("tt.call @k(%x) : (f32) -> ()", "incorrect number of operands for callee"),
    ("arith.select %tb, %m, %m : tensor<64xi1>, tensor<16x16xf32>", "cannot have a condition of tensor<64xi1>"),
    (
        '"tt.reduce"(%t) <{axis = 1 : i32}> ({\n^bb0(%i: f32, %j: f32):\n  tt.reduce.return %i : f32\n}) '
        ": (tensor<64xf32>) -> f32",
        "axis out of bounds for operand rank 1",
    ),
    (
        (
            '"tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%i: f32):\n  tt.reduce.return %i : f32\n'
            "}) : (tensor<64xf32>) -> f32"
        ),
        r"nested block must take 2 arguments, but given block with 1 arguments",
    ),
    (
        '"tt.reduce"(%t) <{axis = 0 : i32}> ({\n^bb0(%i: f32, %j: f32):\n  tt.scan.return %i : f32\n}) '
        ": (tensor<64xf32>) -> f32",
        "region must end with tt.reduce.return",
    ),
    (
        '"tt.reduce"(%m) <{axis = 0 : i32}> ({\n^bb0(%i: f32, %j: f32):\n  tt.reduce.return %i : f32\n}) '
        ": (tensor<16x16xf32>) -> tensor<8xf32>",
        "along axis 0 cannot give tensor<8xf32>",
    ),
    (
        '"tt.scan"(%t) <{axis = 0 : i32, reverse = false}> ({\n^bb0(%i: f32, %j: f32):\n'
        "  tt.scan.return %i, %j : f32, f32\n}) : (tensor<64xf32>) -> tensor<64xf32>",
        r"region must return \(f32\), got \(f32, f32\)",
    ),
    (
        '"tt.map_elementwise"(%t) <{pack = 3 : i32}> ({\n^bb0(%i: f32):\n  tt.map_elementwise.return %i : f32\n}) '
        ": (tensor<64xf32>) -> tensor<64xf32>",
        "pack must be a power of two, got 3",
    ),
    (
        '"tt.map_elementwise"(%t) <{pack = 2 : i32}> ({\n^bb0(%i: f32):\n  tt.map_elementwise.return %i : f32\n}) '
        ": (tensor<64xf32>) -> tensor<64xf32>",
        "region arguments must be",
    ),
]
BAD_STATEMENTS = [
    ('"tt.store"(%p, %n) : (!tt.ptr<f32>, i32) -> ()', "takes f32, not i32"),
    ('tt.assert %n, "m" : i32', "must be an i1 or a tensor of an i1, but got i32"),
    ('tt.print "x" {hex = false, isSigned = array<i32>} : %n : i32', "isSigned has 0 entries for 1 values"),
    (
        "tt.descriptor_store %d[%n, %n], %m : !tt.tensordesc<tensor<1x32xf32>>, tensor<16x16xf32>",
        "same number of elements, but got descriptor block with 32 elements tensor with ",
    ),
    ("%l2, %r2 = tt.split %t : tensor<64xf32> -> tensor<64xf32>", "last dimension of input tensor must be 2"),
]


@pytest.mark.parametrize(
    ("text", "message"),
    [(f"%0 = {text}" if not text.endswith("-> ()") else text, message) for text, message in BAD] + BAD_STATEMENTS,
)
def test_verifiers_refuse(text: str, message: str) -> None:
    module = parse_module(in_function(text))
    with pytest.raises(VerifyException, match=message):
        module.verify()


SPACES = "none, local, global_read, global_write, tensor_read, tensor_write, all"
SYNTAX = {
    f"expected words of {SPACES}, with | in between, but got shared": "ttg.barrier shared",
    f"expected one of {SPACES} behind |": "ttg.barrier local|",
    "expected one of none, ca, cg, wb, cs, wt, cv, but got xx": "%0 = tt.load %p cacheModifier = xx : !tt.ptr<f32>",
    "Expected ':'": "%0 = tt.get_program_id w : i32",
    "value %other is used but not defined": "%0 = tt.addptr %p, %other : !tt.ptr<f32>, i32",
    "the type of %other is not known here": "%0 = tt.addptr %p, %other : !tt.ptr<f32>",
    "at most 3 operands are expected, but got 4": "%0 = tt.load %p, %b, %x, %x : !tt.ptr<f32>",
    "at most 2 operands are expected, but got 3": "%0 = tt.histogram %ti, %tb, %tb : tensor<64xi32> -> tensor<16xi32>",
    "as many sizes as strides and offsets": "%0 = tt.make_tensor_ptr %p, [%l], [%l, %l, %l], [%n, %n] "
    "{order = array<i32: 1, 0>} : <tensor<8x8xf32>>",
    "as many sizes as strides": "%0 = tt.make_tensor_descriptor %p, [%n], [%l, %l] : <f32>, <tensor<8x8xf32>>",
    "expected a pointer to a block, but got f32": "%0 = tt.make_tensor_ptr %p, [%l], [%l], [%n] "
    "{order = array<i32: 0>} : f32",
    "expected propagateNan": "%0 = tt.clampf %x, %x, %x, none : f32",
    "a tensor descriptor is of a ranked tensor, not of f32": (
        "%0 = tt.make_tensor_descriptor %p, [%n], [%l] : <f32>, <f32>"
    ),
}


@pytest.mark.parametrize("message", SYNTAX)
def test_syntax(message: str) -> None:
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(in_function(SYNTAX[message]))
    assert message in caught.value.message
