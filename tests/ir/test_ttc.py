"""The `ttc` dialect: the text of every op is read as it was printed, and each verifier says what is wrong."""

import pytest
from xdsl.utils.exceptions import VerifyException

from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify

ALL = """module {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %b = ttc.alloc : !ttc.buf<64x128xf32>
    %best = ttc.alloc : !ttc.buf<64xf32>
    %at = ttc.alloc : !ttc.buf<64xi32>
    %s = ttc.alloc : !ttc.buf<f32>
    %pointers = ttc.alloc : !ttc.buf<4x!tt.ptr<f32>>
    %t = ttc.table dense<[1, 2]> : tensor<2xi32> into !ttc.buf<2xi32>
    ttc.nest [64, 128] {
    ^bb0(%i: i32, %j: i32):
      %x = tt.load %p : !tt.ptr<f32>
      ttc.write %x, %b[%i, %j] : !ttc.buf<64x128xf32>
      ttc.reduce %x, %j into %best, %at[%i] {
      ^bb0(%a0: f32, %a1: i32, %b0: f32, %b1: i32):
        ttc.yield %a0, %b1 : f32, i32
      } : !ttc.buf<64xf32>, !ttc.buf<64xi32>
      ttc.end
    }
    ttc.scan %b into %b {axis = 0 : i32, reverse = false} {
    ^bb0(%u: f32, %v: f32):
      ttc.yield %u : f32
    } : !ttc.buf<64x128xf32>
    %c = ttc.alloc : !ttc.buf<64x64xf32>
    %d = ttc.alloc : !ttc.buf<128x64xf32>
    ttc.dot %b, %d, %c, inputPrecision = tf32 : !ttc.buf<64x128xf32>, !ttc.buf<128x64xf32>, !ttc.buf<64x64xf32>
    ttc.dot %b, %d, %c {maxNumImpreciseAcc = 4 : i32} : !ttc.buf<64x128xf32>, !ttc.buf<128x64xf32>, !ttc.buf<64x64xf32>
    ttc.gather %best, %at into %best {axis = 0 : i32} : !ttc.buf<64xf32>, !ttc.buf<64xi32>, !ttc.buf<64xf32>
    %m = ttc.alloc : !ttc.buf<64xi1>
    ttc.sort_runs %at into %at {bits = 6 : i32, merges = true, order = 1 : i32, signed = true} : !ttc.buf<64xi32>, !ttc.buf<64xi32>
    ttc.histogram %at into %at : !ttc.buf<64xi32>, !ttc.buf<64xi32>
    ttc.histogram %at, %m into %at : !ttc.buf<64xi32>, !ttc.buf<64xi1>, !ttc.buf<64xi32>
    %q = ttc.read %s[] : !ttc.buf<f32>
    ttc.write %q, %s[] : !ttc.buf<f32>
    %r = ttc.check %p {arguments = array<i32: 0>, verb = "reads"} : !tt.ptr<f32>
    ttc.assert %m, "oh" : !ttc.buf<64xi1>
    ttc.print "x: " {hex = false, isSigned = array<i32: 1, 0>} : %at, %q : !ttc.buf<64xi32>, f32
    tt.return
  }
}
"""  # noqa: E501
BAD = {
    "holds floats": "%b = ttc.alloc : !ttc.buf<4xtensor<2xf32>>",
    "has 3 indices": "%b = ttc.alloc : !ttc.buf<4x4xf32>\n%x = ttc.read %b[%i, %i, %i] : !ttc.buf<4x4xf32>",
    "cannot give": (
        "%b = ttc.alloc : !ttc.buf<4x8xf32>\n"
        "%c = ttc.alloc : !ttc.buf<8x4xf32>\n"
        "ttc.dot %b, %c, %b : !ttc.buf<4x8xf32>, !ttc.buf<8x4xf32>, !ttc.buf<4x8xf32>"
    ),
    "needs one i32 argument per dimension": "ttc.nest [4, 4] {\n^bb0(%j: i32):\n  ttc.end\n}",
    "must leave out one index": (
        "%b = ttc.alloc : !ttc.buf<4x4xf32>\nttc.nest [4, 4] {\n^bb0(%j: i32, %k: i32):\n"
        "ttc.reduce %f into %b[%j, %k] {\n^bb0(%u: f32, %v: f32):\nttc.yield %u : f32\n} : !ttc.buf<4x4xf32>\n"
        "ttc.end\n}"
    ),
    "must be in the body": (
        "%b = ttc.alloc : !ttc.buf<f32>\n"
        "ttc.reduce %f into %b[] {\n^bb0(%u: f32, %v: f32):\nttc.yield %u : f32\n} : !ttc.buf<f32>"
    ),
    "region must return": (
        "%b = ttc.alloc : !ttc.buf<4xf32>\nttc.scan %b into %b {axis = 0 : i32, reverse = false} {\n"
        "^bb0(%u: f32, %v: f32):\nttc.yield %i : i32\n} : !ttc.buf<4xf32>"
    ),
    "axis out of bounds": (
        "%b = ttc.alloc : !ttc.buf<4xf32>\nttc.scan %b into %b {axis = 1 : i32, reverse = false} {\n"
        "^bb0(%u: f32, %v: f32):\nttc.yield %u : f32\n} : !ttc.buf<4xf32>"
    ),
    "isSigned has 0 entries": 'ttc.print "x" {hex = false, isSigned = array<i32>} : %i : i32',
    "ttc.table of": "%b = ttc.table dense<[1, 2]> : tensor<2xi32> into !ttc.buf<4xi32>",
    "ttc.sort_runs of": (
        "%b = ttc.alloc : !ttc.buf<4xi32>\n%c = ttc.alloc : !ttc.buf<8xi32>\n"
        '"ttc.sort_runs"(%b, %c) <{bits = 1 : i32, merges = false, order = 0 : i32, signed = true}>'
        " : (!ttc.buf<4xi32>, !ttc.buf<8xi32>) -> ()"
    ),
    "with a mask of": (
        "%b = ttc.alloc : !ttc.buf<4xi32>\n%m = ttc.alloc : !ttc.buf<8xi1>\n"
        "ttc.histogram %b, %m into %b : !ttc.buf<4xi32>, !ttc.buf<8xi1>, !ttc.buf<4xi32>"
    ),
    "ttc.check of": '%q = "ttc.check"(%p) <{arguments = array<i32>, verb = ""}> : (!tt.ptr<f32>) -> !tt.ptr<i8>',
    "positive dimensions": "%b = ttc.alloc : !ttc.buf<0xf32>",
    "must end with ttc.end": "ttc.nest [4] {\n^bb0(%j: i32):\n  %x = arith.addi %j, %j : i32\n}",
    "ttc.read of": '%b = ttc.alloc : !ttc.buf<f32>\n%x = "ttc.read"(%b) : (!ttc.buf<f32>) -> i32',
    "ttc.write of i32 into": '%b = ttc.alloc : !ttc.buf<f32>\n"ttc.write"(%i, %b) : (i32, !ttc.buf<f32>) -> ()',
    "needs a region": (
        '%b = ttc.alloc : !ttc.buf<4xf32>\n"ttc.scan"(%b, %b) <{axis = 0 : i32, reverse = false, '
        "operandSegmentSizes = array<i32: 1, 1>}> ({}) : (!ttc.buf<4xf32>, !ttc.buf<4xf32>) -> ()"
    ),
    "nested block must take": (
        "%b = ttc.alloc : !ttc.buf<4xf32>\nttc.scan %b into %b {axis = 0 : i32, reverse = false} {\n"
        "^bb0(%u: f32):\nttc.yield %u : f32\n} : !ttc.buf<4xf32>"
    ),
    "ttc.scan of": (
        '%b = ttc.alloc : !ttc.buf<4xf32>\n%c = ttc.alloc : !ttc.buf<8xf32>\n"ttc.scan"(%b, %c) <{axis = 0 : i32, '
        "reverse = false, operandSegmentSizes = array<i32: 1, 1>}> ({}) : (!ttc.buf<4xf32>, !ttc.buf<8xf32>) -> ()"
    ),
    "ttc.reduce of f32 into": (
        '%b = ttc.alloc : !ttc.buf<i32>\n"ttc.reduce"(%f, %b) <{operandSegmentSizes = array<i32: 1, 1, 0>}> ({\n'
        "^bb0(%u: f32, %v: f32):\nttc.yield %u : f32\n}) : (f32, !ttc.buf<i32>) -> ()"
    ),
    "has 1 sources and 2 accumulators": (
        '%b = ttc.alloc : !ttc.buf<f32>\n"ttc.reduce"(%f, %b, %b) <{operandSegmentSizes = array<i32: 1, 2, 0>}> ({\n'
        "^bb0(%u: f32, %v: f32):\nttc.yield %u : f32\n}) : (f32, !ttc.buf<f32>, !ttc.buf<f32>) -> ()"
    ),
    "ttc.gather of": (
        "%b = ttc.alloc : !ttc.buf<4xi32>\n%c = ttc.alloc : !ttc.buf<8xi32>\n"
        "ttc.gather %b, %b into %c {axis = 0 : i32} : !ttc.buf<4xi32>, !ttc.buf<4xi32>, !ttc.buf<8xi32>"
    ),
    "ttc.gather along 1": (
        "%b = ttc.alloc : !ttc.buf<4xi32>\n"
        "ttc.gather %b, %b into %b {axis = 1 : i32} : !ttc.buf<4xi32>, !ttc.buf<4xi32>, !ttc.buf<4xi32>"
    ),
}


def test_text_is_read_as_it_was_printed() -> None:
    module = parse_module(ALL)
    verify(module)
    assert print_module(module) == ALL


@pytest.mark.parametrize("message", BAD)
def test_what_is_wrong_is_said(message: str) -> None:
    text = f"tt.func public @k(%i: i32, %f: f32, %p: !tt.ptr<f32>) {{\n{BAD[message]}\ntt.return\n}}"
    with pytest.raises((VerifyException, IRSyntaxError), match=message):
        verify(parse_module(text))
