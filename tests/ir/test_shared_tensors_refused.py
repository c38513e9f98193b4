"""Old text about shared memory that has no form today: the message, and the op it points at."""

import re

import pytest

from tests.ir.shared_cases import ALLOC, COPY, P, spelled
from tests.ir.ttg_cases import module_text
from tilework.ir.parser import IRSyntaxError, parse_module

INSERT = "triton_gpu.insert_slice_async"
BAD = {
    "'triton_gpu.alloc_tensor' needs a tensor with a shared encoding, not tensor<16x64xf16": (
        "", "%b = @triton_gpu.alloc_tensor : tensor<16x64xf16, #blocked>"),
    "'triton_gpu.alloc_tensor' of tensor<2x2x16x64xf16, #ttg.swizzled_shared": (
        "", "%b = @triton_gpu.alloc_tensor : S<2x2x16x64xf16>"),
    "'triton_gpu.alloc_tensor': Expected 0 operands, but got 1": (
        "%i: i32", '%b = @"triton_gpu.alloc_tensor"(%i) : (i32) -> S<16x64xf16>'),
    "'triton_gpu.insert_slice_async' has axis = 1: only the first dimension counts buffers": (
        P, f"{ALLOC} %c = @{INSERT} %p, %b, %i {{axis = 1 : i32}} : {COPY} -> S<3x16x64xf16>"),
    "'triton_gpu.insert_slice_async': Expected at least 3 operands, but got 2": (
        P, f'{ALLOC} %c = @"{INSERT}"(%p, %b) : ({COPY}, S<3x16x64xf16>) -> S<3x16x64xf16>'),
    "'triton_gpu.insert_slice_async' has 3 operands after the index": (
        P, f'{ALLOC} %c = @"{INSERT}"(%p, %b, %i, %k, %o, %o) : ({COPY}, S<3x16x64xf16>, i32, tensor<16x64xi1, '
           '#blocked>, '
           "tensor<16x64xf16, #blocked>, tensor<16x64xf16, #blocked>) -> S<3x16x64xf16>"),
    "'triton_gpu.insert_slice_async' reads from pointers, not from tensor<16x64xf16": (
        P, f"{ALLOC} %c = @{INSERT} %o, %b, %i : tensor<16x64xf16, #blocked> -> S<3x16x64xf16>"),
    "'triton_gpu.insert_slice_async' reads from pointers, not from tensor<16x64xi1": (
        P, (f'{ALLOC} %c = @"{INSERT}"(%k, %b, %i) : (tensor<16x64xi1, #blocked>, S<3x16x64xf16>, i32) '
            '-> S<3x16x64xf16>')),
    "does not fill !ttg.memdesc<16x32xf16": (
        P, "%b = triton_gpu.alloc_tensor : S<3x16x32xf16> "
           f"%c = @{INSERT} %p, %b, %i {{axis = 0 : i32}} : {COPY} -> S<3x16x32xf16>"),
    "'triton_gpu.insert_slice_async' of one of several buffers": (
        P, f"%b = triton_gpu.alloc_tensor : S<16x64xf16> %c = @{INSERT} %p, %b, %i : {COPY} -> S<16x64xf16>"),
    "'triton_gpu.insert_slice_async' has a cache or evict that does not exist": (
        P, f"{ALLOC} %c = @{INSERT} %p, %b, %i {{axis = 0 : i32, cache = 99 : i32}} : {COPY} -> S<3x16x64xf16>"),
    "'triton_gpu.insert_slice_async' needs memory that is defined above it, not tensor<16x64xf16": (
        P, f"%c = @{INSERT} %p, %o, %i : {COPY} -> tensor<16x64xf16, #blocked>"),
    "'triton_gpu.extract_slice' has an index of type i64, not i32 or index": (
        "%n: i64", (f"{ALLOC} %s = @tensor.extract_slice %b[%n, 0, 0] [1, 16, 64] [1, 1, 1] "
                    ": S<3x16x64xf16> to S<16x64xf16>")),
    "'triton_gpu.extract_slice' has strides [1, 1, 2]: only parts without holes can be taken": (
        "", f"{ALLOC} %s = @tensor.extract_slice %b[0, 0, 0] [1, 16, 32] [1, 1, 2] : S<3x16x64xf16> to S<16x32xf16>"),
    "'triton_gpu.extract_slice' needs 3 offsets, sizes and strides": (
        "", f"{ALLOC} %s = @tensor.extract_slice %b[0, 0] [16, 64] [1, 1] : S<3x16x64xf16> to S<16x64xf16>"),
    "'triton_gpu.extract_slice' has sizes that are not constants, or not one value for each unknown offset": (
        "", f"{ALLOC} %s = @tensor.extract_slice %b[-2, 0, 0] [1, 16, 64] [1, 1, 1] : S<3x16x64xf16> to S<16x64xf16>"),
    "'triton_gpu.extract_slice' takes buffer 3 of 3: they count from 0": (
        "", f"{ALLOC} %s = @tensor.extract_slice %b[3, 0, 0] [1, 16, 64] [1, 1, 1] : S<3x16x64xf16> to S<16x64xf16>"),
    "'triton_gpu.extract_slice' takes [3, 1, 64] elements for a tensor of [3, 64]: only the first of the dimensions": (
        "", f"{ALLOC} %s = @tensor.extract_slice %b[0, 0, 0] [3, 1, 64] [1, 1, 1] : S<3x16x64xf16> to S<3x64xf16>"),
    "'triton_gpu.extract_slice' is of a part of a buffer at an unknown offset": (
        "%i: i32", (f"{ALLOC} %s = @tensor.extract_slice %b[0, %i, 0] [1, 8, 64] [1, 1, 1] "
                    ": S<3x16x64xf16> to S<8x64xf16>")),
    "'triton_gpu.extract_slice': The split offset may not touch the tile": (
        "%b: S<16x64xf16>", "%s = @tensor.extract_slice %b[4, 0] [8, 64] [1, 1] : S<16x64xf16> to S<8x64xf16>"),
    "'triton_gpu.extract_slice': a buffer of several is taken with ttg.memdesc_index": (
        "", f"{ALLOC} %s = @tensor.extract_slice %b[0, 0, 0] [1, 16, 64] [1, 1, 1] : S<3x16x64xf16> to S<1x16x64xf16>"),
    "'triton_gpu.extract_slice' needs a tensor with a shared encoding, not tensor<16x64xf16": (
        "", (f"{ALLOC} %s = @tensor.extract_slice %b[0, 0, 0] [1, 16, 64] [1, 1, 1] "
             ": S<3x16x64xf16> to tensor<16x64xf16, #blocked>")),
    "'triton_gpu.extract_slice' needs whole buffers, not a part of them": (
        "%b: tensor<16x64x64xf16, #cube>",
        "%q = tensor.extract_slice %b[0, 0, 0] [8, 64, 64] [1, 1, 1] : tensor<16x64x64xf16, "
        "#cube> to tensor<8x64x64xf16, #cube> "
        "%s = @tensor.extract_slice %q[0, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<8x64x64xf16, #cube> to S<64x64xf16>"),
    ("'triton_gpu.extract_slice' of tensor<16x64xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, "
     "order = [2, 1, 0]}>>: rank"): (
        "", (f"{ALLOC} %s = @tensor.extract_slice %b[0, 0, 0] [1, 16, 64] [1, 1, 1] "
             ": S<3x16x64xf16> to tensor<16x64xf16, #cube>")),
    "the type of %n is not known here": (
        "", f"{ALLOC} %s = tensor.extract_slice %b[@%n, 0, 0] [1, 16, 64] [1, 1, 1] : S<3x16x64xf16> to S<16x64xf16>"),
    "'triton_gpu.insert_slice' writes a tensor of registers, not f16": (
        "%x: f16", (f"{ALLOC} %s = @tensor.insert_slice %x into %b[0, 0, 0] [1, 16, 64] [1, 1, 1] "
                    ": f16 into S<3x16x64xf16>")),
    "'triton_gpu.memdesc_subview' is of a part of a buffer at an unknown offset: today such offsets are constants": (
        "%m: M<16x64xf16>, %i: i32", "%s = @ttg.memdesc_subview %m[%i, %i] : M<16x64xf16> -> M<8x64xf16>"),
    "'triton_gpu.memdesc_subview' needs 3 offsets, one for each dimension of !ttg.memdesc<3x16x64xf16": (
        "%m: M<3x16x64xf16>, %i: i32", "%s = @ttg.memdesc_subview %m[%i] : M<3x16x64xf16> -> M<16x64xf16>"),
    "'triton_gpu.memdesc_subview' needs memory that is defined above it, not i32": (
        "%i: i32", "%s = @ttg.memdesc_subview %i[%i] : i32 -> i32"),
    "'triton_gpu.memdesc_subview': alloc shape must have at least as many dimensions as shape": (
        "%m: M<16x64xf16>", "%c0 = arith.constant 0 : i32 "
        "%s = @ttg.memdesc_subview %m[%c0, %c0] : M<16x64xf16> -> M<3x16x64xf16>"),
    "'ttg.convert_layout' from one shared encoding to another": (
        "%b: S<16x64xf16>", "%s = @triton_gpu.convert_layout %b : (S<16x64xf16>) -> tensor<16x64xf16, #plain>"),
    "'triton_gpu.dealloc_tensor' needs memory that is defined above it, not i32": (
        "%i: i32", "@triton_gpu.dealloc_tensor %i : i32"),
    "'tt.trans' cannot transpose !ttg.memdesc<3x16x64xf16": (
        "", f"{ALLOC} %t = @tt.trans %b : (S<3x16x64xf16>) -> tensor<64x16x3xf16, #shared>"),
    ("'tt.trans' of tensor<64x16xf16, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [2, 1, "
     "0]}>>: rank"): (
        "%b: tensor<16x64xf16, #shared>", "%t = @tt.trans %b : (S<16x64xf16>) -> tensor<64x16xf16, #cube>"),
    "'tt.dot' cannot transpose tensor<16xf16>: it is no matrix": (
        "%a: tensor<16xf16>, %c: tensor<16x16xf32>",
        "%d = @tt.dot %a, %a, %c {transA = true} : tensor<16xf16> * tensor<16xf16> -> tensor<16x16xf32>"),
    "'tt.dot' cannot transpose tensor<16x16xf16": (
        "%a: tensor<16x16xf16, #line>, %c: tensor<16x16xf32, #blocked>",
        ("%d = @tt.dot %a, %a, %c {transB = true} : tensor<16x16xf16, #line> * tensor<16x16xf16, #line> "
         "-> tensor<16x16xf32, #blocked>")),
    "'tt.dot' needs a result in a blocked or mma encoding, not tensor<64x64xf32>": (
        "%a: S<64x64xf16>, %c: tensor<64x64xf32>",
        "%d = @tt.dot %a, %a, %c : S<64x64xf16> * S<64x64xf16> -> tensor<64x64xf32>"),
    "'tt.dot': ttg.dot_op opIdx parameter must be 0 for Hopper MMA parent": (
        "%a: tensor<64x64xf16, #blocked>, %c: tensor<64x64xf32, #mma3>",
        ("%d = @tt.dot %a, %a, %c {transB = true} : tensor<64x64xf16, #blocked> * tensor<64x64xf16, #blocked> "
         "-> tensor<64x64xf32, #mma3>")),
    "'tt.cat' of a tensor in shared memory has no form today": (
        "%b: S<16x64xf16>", "%s = @tt.cat %b, %b : S<16x64xf16> -> S<32x64xf16>"),
    "'scf.yield' passes !ttg.memdesc<8x64xf16": (
        "%b: S<16x64xf16>, %w: S<8x64xf16>, %c: i1",
        "%s = tensor.extract_slice %b[0, 0] [8, 64] [1, 1] : S<16x64xf16> to S<8x64xf16> "
        "%r = scf.if %c -> (S<8x64xf16>) { scf.yield %s : S<8x64xf16> } else { @scf.yield %w : S<8x64xf16> }"),
    "'cf.br' passes !ttg.memdesc<8x64xf16": (
        "%b: S<16x64xf16>",
        "%s = tensor.extract_slice %b[0, 0] [8, 64] [1, 1] : S<16x64xf16> to S<8x64xf16> "
        "@cf.br ^bb1(%s : S<8x64xf16>) ^bb1(%m: S<8x64xf16>):"),
}  # fmt: skip
CUBE = """#cube = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [2, 1, 0]}>
"""


@pytest.mark.parametrize("message", BAD)
def test_what_has_no_form_today(message: str) -> None:
    """The error is at the position marked with @; a result's name is before it, and part of the op."""
    arguments, body = BAD[message]
    assert body.count("@") == 1
    before, _ = spelled(body).split("@")
    named = re.search(r"%\w+ = $", before)
    text = CUBE + spelled(module_text(arguments, "\n" + body.replace("@", "")))
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(text)
    error = caught.value
    assert message in error.message
    line = before.rpartition("\n")[2]
    wanted = line[: len(line) - len(named[0])] if named else line
    source = text.splitlines()[error.line - 1]
    assert source[: error.column - 1] == wanted
