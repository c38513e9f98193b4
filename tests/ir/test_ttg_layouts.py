"""`tt` ops on tensors with encodings: the encoding of a result follows from those of the operands."""

import pytest
from xdsl.ir import Block

from tests.ir.ttg_cases import problem
from tilework.ir import tt
from tilework.ir.encodings import encoding_of, with_encoding
from tilework.ir.locations import file_loc
from tilework.ir.parser import parse_module
from tilework.ir.types import Tensor, f32, i32, tensor_type, with_element
from tilework.ir.verify import first_problem
from tilework.layouts.encodings import Blocked, Slice, SwizzledShared

LOC = file_loc("k.py", 1, 2)
TILE = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
LINE = Blocked((2,), (32,), (4,), (0,))


def tensor(shape: tuple[int, ...], encoding: Blocked | Slice) -> Tensor:
    return with_encoding(tensor_type(shape, f32), encoding)


def test_ops_give_the_inferred_encoding() -> None:
    tile, line, column = Block(
        arg_types=[tensor((64, 64), TILE), tensor((64,), LINE), tensor((64,), Slice(1, TILE))]
    ).args
    joined = tt.JoinOp.make(line, line, LOC)
    assert tt.ExpandDimsOp.make(column, 1, LOC).result.type == tensor((64, 1), TILE)
    assert encoding_of(tt.TransOp.make(tile, (1, 0), LOC).result.type) == Blocked((4, 1), (8, 4), (1, 4), (0, 1))
    assert encoding_of(joined.result.type) == Blocked((2, 2), (32, 1), (4, 1), (1, 0))
    assert tt.SplitOp.make(joined.result, LOC).out_lhs.type == line.type
    assert tt.reduced_type(tile.type, 1) == column.type
    assert tt.MakeRangeOp.make(0, 64, LOC, tensor((64,), LINE)).result.type == line.type


BAD = [
    ("ExpandDimsOp operand encoding must be SliceEncodingAttr",
     "%x: tensor<64xf16, #line>",
     "%r = tt.expand_dims %x {axis = 1 : i32} : tensor<64xf16, #line> -> tensor<64x1xf16, #blocked>"),
    ("Incompatible slice dimension for ExpandDimsOp operand",
     "%x: tensor<64xf16, #row>",
     "%r = tt.expand_dims %x {axis = 1 : i32} : tensor<64xf16, #row> -> tensor<64x1xf16, #blocked>"),
    ("inferred type(s)",
     "%x: tensor<64xf16, #column>",
     "%r = tt.expand_dims %x {axis = 1 : i32} : tensor<64xf16, #column> -> tensor<64x1xf16, #blockedT>"),
    ("inferred type(s)",
     "%x: tensor<64xf16, #column>",
     "%r = tt.expand_dims %x {axis = 1 : i32} : tensor<64xf16, #column> -> tensor<64x1xf16>"),
    ("inferred type(s)",
     "%x: tensor<64x64xf16, #blocked>",
     ('%r = "tt.reduce"(%x) <{axis = 1 : i32}> ({^bb0(%a: f16, %b: f16): %s = arith.addf %a, %b '
      ': f16 tt.reduce.return %s : f16}) : (tensor<64x64xf16, #blocked>) -> tensor<64xf16, #line>')),
    ("inferred type(s)",
     "%x: tensor<64x64xf16, #blocked>",
     "%r = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #blocked>"),
    ("Expected result encoding",
     "%x: tensor<64x64xf16, #blocked>",
     "%r = tt.reshape %x : tensor<64x64xf16, #blocked> -> tensor<4096xf16, #line>"),
    ("incompatible join layout",
     "%x: tensor<64xf16, #line>",
     "%r = tt.join %x, %x : tensor<64xf16, #line> -> tensor<64x2xf16, #blocked>"),
    ("SplitOp requires at least 2 elements per thread in the axis/last dimension",
     "%x: tensor<64x2xf16, #blockedT>",
     "%a, %b = tt.split %x : tensor<64x2xf16, #blockedT> -> tensor<64xf16, #line>"),
    ("inferred type(s)",
     "%x: tensor<64x2xf16, #blocked>",
     "%a, %b = tt.split %x : tensor<64x2xf16, #blocked> -> tensor<64xf16, #line>"),
    ("requires the same encoding for all operands and results",
     "%x: tensor<1x64xf16, #blocked>",
     "%r = tt.broadcast %x : tensor<1x64xf16, #blocked> -> tensor<64x64xf16, #blockedT>"),
    ("Incompatible parent encoding",
     ("%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %b: tensor<64x64xf16, "
      "#ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>>, %c: tensor<64x64xf32, #mma22>"),
     ("%d = tt.dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, "
      "kWidth = 2}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>> "
      "-> tensor<64x64xf32, #mma22>")),
    ("Wrong opIdx",
     ("%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>>, %b: tensor<64x64xf16, "
      "#ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %c: tensor<64x64xf32, #mma2>"),
     ("%d = tt.dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, "
      "kWidth = 2}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>> "
      "-> tensor<64x64xf32, #mma2>")),
    ("mismatching kWidth between A and B operands: 2, 4",
     ("%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %b: tensor<64x64xf16, "
      "#ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 4}>>, %c: tensor<64x64xf32, #mma2>"),
     ("%d = tt.dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, "
      "kWidth = 2}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 4}>> "
      "-> tensor<64x64xf32, #mma2>")),
    ("Dot's a/b's encoding should be of DotOperandEncodingAttr",
     "%a: tensor<64x64xf16, #blocked>, %b: tensor<64x64xf16, #blocked>, %c: tensor<64x64xf32, #blocked>",
     ("%d = tt.dot %a, %b, %c : tensor<64x64xf16, #blocked> * tensor<64x64xf16, #blocked> -> tensor<64x64xf32, "
      "#blocked>")),
    ("Incompatible parent encoding",
     ("%a: tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>>, %b: tensor<64x64xf16, "
      "#ttg.dot_op<{opIdx = 1, parent = #mma22, kWidth = 2}>>, %c: tensor<64x64xf32, #mma2>"),
     ("%d = tt.dot %a, %b, %c : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, "
      "kWidth = 2}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma22, kWidth = 2}>> "
      "-> tensor<64x64xf32, #mma2>")),
    ("Layout has 8 warps per CTA, but the context requires 4 warps per CTA.",
     "%x: tensor<64xf16, #line8>",
     "%r = tt.bitcast %x : tensor<64xf16, #line8> -> tensor<64xi16, #line8>"),
    ("Layout has rank 2, but the tensor it's attached to has rank 1.",
     "%x: tensor<64xf16, #blocked>",
     "%r = tt.bitcast %x : tensor<64xf16, #blocked> -> tensor<64xi16, #blocked>"),
    ("Layout has 2 CTAs per CGA, but the context requires 1 CTAs per CGA.",
     "%x: tensor<64xf16, #pair>",
     "%r = tt.bitcast %x : tensor<64xf16, #pair> -> tensor<64xi16, #pair>"),
    ("Layout has 16 threads per warp, but the module specifies 32 threads per warp.",
     "%x: tensor<64xf16, #half>",
     "%r = tt.bitcast %x : tensor<64xf16, #half> -> tensor<64xi16, #half>"),
    ("both or neither of the operands and the result have an encoding",
     "%x: tensor<64xf16, #line>",
     "%r = tt.join %x, %x : tensor<64xf16, #line> -> tensor<64x2xf16>"),
    ("incompatible join layout: SplitOp requires at least 2 elements per thread",
     "%x: tensor<64xf16, #line>",
     "%r = tt.join %x, %x : tensor<64xf16, #line> -> tensor<64x2xf16, #blockedT>"),
    ("mismatching encoding between A and B operands",
     "%a: tensor<64x64xf16, #blocked>, %b: tensor<64x64xf16>, %c: tensor<64x64xf32, #blocked>",
     "%d = tt.dot %a, %b, %c : tensor<64x64xf16, #blocked> * tensor<64x64xf16> -> tensor<64x64xf32, #blocked>"),
]  # fmt: skip
GOOD = [
    ("reshape_reorder",
     "%x: tensor<64x64xf16, #blocked>",
     "%r = tt.reshape %x allow_reorder : tensor<64x64xf16, #blocked> -> tensor<4096xf16, #line>"),
    ("dot_noneenc",
     "%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xf32, #blocked>",
     "%d = tt.dot %a, %b, %c : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32, #blocked>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("message", "arguments", "body"), BAD, ids=[f"{i}-{case[0][:50]}" for i, case in enumerate(BAD)]
)
def test_the_message(message: str, arguments: str, body: str) -> None:
    found = problem(arguments, body)
    assert found is not None and message in found, found


@pytest.mark.parametrize(("arguments", "body"), [case[1:] for case in GOOD], ids=[case[0] for case in GOOD])
def test_what_is_allowed(arguments: str, body: str) -> None:
    assert problem(arguments, body) is None


def test_a_tensor_has_no_shared_encoding() -> None:
    type = with_encoding(tensor_type((64,), f32), SwizzledShared(1, 1, 1, (0,)))
    op = tt.BitcastOp.make(Block(arg_types=[type]).args[0], with_element(type, i32), file_loc("k.py", 1, 2))
    found = first_problem(op)
    assert found is not None and "Non-distributed layout is not allowed in tensor type." in found[1]


@pytest.mark.parametrize(("left", "right", "whole", "message"), [
    ("[1, 0]", "[0, 0]", "[1, 0]", None),
    ("[0, 0]", "[0, 1]", "[0, 1]", None),
    ("[1, 0]", "[1, 0]", "[1, 0]", "Incompatible CGA layout for operand 1"),
    ("[0, 0]", "[0, 0]", "[1, 0]", "Incompatible CGA layout for operand 0"),
    ("[1, 0]", "[0, 1]", "[1, 0]", "Incompatible CGA layout for operand 1"),
    ("[0, 0]", "[0, 0]", "[0, 0]", "Accumulator CGA layout should not broadcast or have repeated rows"),
])  # fmt: skip
def test_operands_of_wmma_in_a_cluster(left: str, right: str, whole: str, message: str | None) -> None:
    """An operand has the blocks of the result but for the dimension that it does not have, which they share."""
    wmma = "#{} = #ttg.amd_wmma<{{version = 3, isTranspose = true, ctaLayout = {{warp = [[0, 1], [1, 0]]}}, "
    wmma += "CGALayout = [{}], instrShape = [16, 16, 32]}}>\n"
    a, b = (
        f"tensor<{shape}xf16, #ttg.dot_op<{{opIdx = {index}, parent = #{name}, kWidth = 8}}>>"
        for index, (shape, name) in enumerate((("64x32", "left"), ("32x64", "right")))
    )
    d = "tensor<64x64xf32, #whole>"
    module = parse_module(
        "".join(wmma.format(*pair) for pair in (("left", left), ("right", right), ("whole", whole)))
        + 'module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} '
        + f"{{\ntt.func @f(%a: {a}, %b: {b}, %c: {d}) {{\n"
        + f"  %d = tt.dot %a, %b, %c : {a} * {b} -> {d}\n  tt.return\n}}\n}}"
    )
    found = first_problem(module)
    assert (found is None) if message is None else (found is not None and message in str(found))
