"""Text of older compilers is read, and printed in today's form, one row per spelling."""

import pytest

from tests.ir.values import in_function
from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify

VALUES = [
    ("tt.splat %n : (i32) -> tensor<8xi32>", "tt.splat %n : i32 -> tensor<8xi32>"),
    ("tt.broadcast %row : (tensor<1x64xf32>) -> tensor<4x64xf32>", "tt.broadcast %row : tensor<1x64xf32> -> tensor"),
    ("tt.expand_dims %t {axis = 0 : i32} : (tensor<64xf32>) -> tensor<1x64xf32>", "} : tensor<64xf32> -> tensor<1x64"),
    ("tt.get_program_id {axis = 1 : i32} : i32", "tt.get_program_id y : i32"),
    (
        "tt.load %tp, %tb {cache = 2 : i32, evict = 1 : i32, isVolatile = false} : tensor<64xf32>",
        "tt.load %tp, %tb cacheModifier = ca : tensor<64x!tt.ptr<f32>>",
    ),
    ("tt.load %p {cache = 1 : i32, evict = 3 : i32} : f32", "tt.load %p evictionPolicy = evict_last : !tt.ptr<f32>"),
    ("tt.addptr %tp, %ti : tensor<64x!tt.ptr<f32>>", "tt.addptr %tp, %ti : tensor<64x!tt.ptr<f32>>, tensor<64xi32>"),
    (
        "tt.dot %m, %m, %m {allowTF32 = true, transA = false, transB = false} : "
        "tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>",
        "tt.dot %m, %m, %m, inputPrecision = tf32 : tensor<16x16xf32> *",
    ),
    (
        "tt.dot %m, %m, %m {allowTF32 = false} : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>",
        "tt.dot %m, %m, %m : tensor<16x16xf32> *",
    ),
    ("tt.view %t : (tensor<64xf32>) -> tensor<8x8xf32>", "tt.reshape %t allow_reorder : tensor<64xf32> -> tensor<8x8"),
    (
        "tt.reshape %t {allow_reorder = true} : tensor<64xf32> -> tensor<8x8xf32>",
        "tt.reshape %t allow_reorder : tensor<64xf32> -> tensor<8x8",
    ),
    ("tt.reshape %t {allow_reorder = false} : tensor<64xf32> -> tensor<8x8xf32>", "tt.reshape %t : tensor<64xf32>"),
    (
        "tt.make_tensor_descriptor %p, [%n], [%l] : !tt.ptr<f32>, !tt.tensordesc<tensor<64xf32>>",
        "[%l] : <f32>, <tensor<64xf32>>",
    ),
]
STATEMENTS = [
    ("tt.store %tp, %t, %tb : tensor<64xf32>", "tt.store %tp, %t, %tb : tensor<64x!tt.ptr<f32>>"),
    ("tt.store %tp, %t {cache = 1 : i32} : tensor<64xf32>", "tt.store %tp, %t : tensor<64x!tt.ptr<f32>>"),
    ("gpu.barrier", "ttg.barrier all\n"),
    ("gpu.barrier {a = 1 : i32}", "ttg.barrier all {a = 1 : i32}\n"),
    ('"gpu.barrier"() : () -> ()', "ttg.barrier all\n"),
    ("ttg.local_barrier", "ttg.barrier local\n"),
    ("ttg.barrier global_write | local", "ttg.barrier local|global_write\n"),
    ('tt.assert %tb, "m", "file.py", "f", 12 : tensor<64xi1>', 'tt.assert %tb, "m" : tensor<64xi1>'),
]


@pytest.mark.parametrize(("old", "new"), [(f"%0 = {old}", new) for old, new in VALUES] + STATEMENTS)
def test_older_forms_are_read(old: str, new: str) -> None:
    module = parse_module(in_function(old))
    verify(module)
    assert new in print_module(module)


def test_older_names_are_read() -> None:
    text = """
module attributes {"triton_gpu.num-warps" = 4 : i32, triton_gpu.target = "cuda:90"} {
  func public @f(%x: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    return
  }
}
"""
    assert print_module(parse_module(text)) == (
        'module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {\n'
        "  tt.func public @f(%x: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {\n"
        "    tt.return\n"
        "  }\n"
        "}\n"
    )


@pytest.mark.parametrize("newer", ["", ', "triton_gpu.target" = "cuda:90"'])
def test_the_capability_is_a_target(newer: str) -> None:
    text = f'module attributes {{"triton_gpu.compute-capability" = 90 : i32{newer}}} {{}}'
    assert print_module(parse_module(text)) == 'module attributes {ttg.target = "cuda:90"} {\n}\n'


DESCRIPTORS = """module {
  tt.func public @copy(%in: !tt.ptr<i8> {tt.nv_tma_desc = 1 : i32}, %out: !tt.ptr<i8>, %i: i32) {
    %v = tt.experimental_descriptor_load %in[%i, %i] : !tt.ptr<i8> -> tensor<8x64xf16>
    %w = tt.experimental_descriptor_load %in[%i, %i] cacheModifier = ca : !tt.ptr<i8> -> tensor<8x64xf16>
    tt.experimental_descriptor_store %out[%i, %i], %v : !tt.ptr<i8>, tensor<8x64xf16>
    tt.return
  }
}
"""


def test_a_descriptor_that_was_a_pointer_gets_its_type_from_its_uses() -> None:
    module = parse_module(DESCRIPTORS)
    verify(module)
    new = DESCRIPTORS.replace("experimental_", "").replace("!tt.ptr<i8>", "!tt.tensordesc<tensor<8x64xf16>>")
    assert print_module(module) == new
    assert parse_module(new).is_structurally_equivalent(module)


def test_an_experimental_op_on_a_descriptor_of_today() -> None:
    old = "%0 = tt.experimental_descriptor_load %d[%n, %n] : !tt.tensordesc<tensor<1x32xf32>> -> tensor<1x32xf32>"
    module = parse_module(in_function(old))
    verify(module)
    assert old.replace("experimental_", "") in print_module(module)


@pytest.mark.parametrize("name", ["tt.tensordesc", "ttng.tensordesc_im2col"])
@pytest.mark.parametrize("layout", ["", ", #shared"])
def test_descriptors_as_triton_3_8_writes_them(name: str, layout: str) -> None:
    text = f"""#shared = #ttg.nvmma_shared<{{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}}>
module {{
  tt.func public @f(%a: !{name}<BLOCK>, %b: !tt.tensordesc<BLOCK>, %p: !tt.ptr<f16>, %n: i32, %s: i64) {{
    %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : <f16>, <BLOCK>
    %e = tt.descriptor_load %b[%n, %n] : !tt.tensordesc<BLOCK> -> tensor<8x64xf16>
    tt.return
  }}
}}
"""
    newer, ours = (text.replace("BLOCK", block.format(f"8x64xf16{layout}")) for block in ("{}", "tensor<{}>"))
    module = parse_module(newer)
    verify(module)
    assert module.is_structurally_equivalent(parse_module(ours))
    assert print_module(module) == print_module(parse_module(ours))


BAD_DESCRIPTORS = {
    "the descriptor %in is of tensor<8x64xf16>, not tensor<4x64xf16>": (
        "%w = tt.experimental_descriptor_load %in[%i, %i] cacheModifier = ca : !tt.ptr<i8> -> tensor<8x64xf16>",
        "%w = tt.experimental_descriptor_load %in[%i, %i] : !tt.ptr<i8> -> tensor<4x64xf16>",
    ),
    "the descriptor %q must be an argument of the function": (
        "tt.experimental_descriptor_store %out",
        "%q = tt.addptr %out, %i : !tt.ptr<i8>, i32\n    tt.experimental_descriptor_store %q",
    ),
    "a descriptor reads and writes tensors, not f16": ("!tt.ptr<i8> -> tensor<8x64xf16>", "!tt.ptr<i8> -> f16"),
}


@pytest.mark.parametrize("message", BAD_DESCRIPTORS)
def test_descriptors_that_cannot_be_translated(message: str) -> None:
    old, new = BAD_DESCRIPTORS[message]
    assert old in DESCRIPTORS
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(DESCRIPTORS.replace(old, new))
    assert caught.value.message == message
