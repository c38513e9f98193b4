"""Tensors in shared memory, as the first compilers had them: read as memory descriptors, and what cannot be."""

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.ir.old_modules import GROUPED, HOPPER, MATMUL, TRANSPOSED
from tests.ir.shared_cases import ALLOC, COPY, P, spelled
from tests.ir.ttg_cases import module_text
from tests.pipeline.stages import check_stage
from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.oracles.evaluator import EvaluationError, evaluate

RANDOM = np.random.default_rng(11)
ALIASES = re.compile(r"^#\w+ = .*\n", re.MULTILINE)


def draw(*shape: int, dtype: type = np.float16) -> np.ndarray:
    return RANDOM.normal(size=shape).astype(dtype)


def translated(text: str) -> ModuleOp:
    """The module, which is one of today: verified, of its stage, and the same when it is printed and read again."""
    module = parse_module(text)
    verify(module)
    check_stage(module, "ttgir")
    again = print_module(module)
    assert "triton_gpu" not in again
    assert print_module(parse_module(again)) == again
    return module


# Whole modules


@pytest.mark.parametrize("text", [MATMUL, GROUPED], ids=["a group for each copy", "groups are closed"])
def test_a_pipelined_product(text: str) -> None:
    module = translated(text)
    for depth in (16, 80, 160):
        a, b, c = draw(64, depth), draw(depth, 64), np.zeros((64, 64), np.float32)
        evaluate(module, "matmul", [a, b, c, depth])
        np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=1e-4)


@pytest.mark.parametrize(("text", "wait", "less"), [(MATMUL, 2, 3), (GROUPED, 1, 2)])
def test_waits_count_what_they_counted(text: str, wait: int, less: int) -> None:
    late = text.replace(f"async_wait {{num = {wait} : i32}}", f"async_wait {{num = {less} : i32}}", 1)
    assert late != text
    with pytest.raises(EvaluationError, match="has not finished writing: a wait is missing"):
        evaluate(translated(late), "matmul", [draw(64, 64), draw(64, 64), np.zeros((64, 64), np.float32), 64])


def test_a_product_of_transposed_operands_in_shared_memory() -> None:
    a, b, c = draw(32, 32), draw(32, 32), np.zeros((32, 32), np.float32)
    evaluate(translated(TRANSPOSED), "product", [a, b, c])
    np.testing.assert_allclose(c, a.T.astype(np.float32) @ b.T.astype(np.float32), atol=1e-4)


def test_a_product_on_hopper() -> None:
    a, b, c = draw(64, 64), draw(64, 64), np.zeros((64, 64), np.float32)
    module = translated(HOPPER)
    assert "ttng.warp_group_dot %a_shared, %b_shared, %zero" in print_module(module)
    evaluate(module, "product", [a, b, c])
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=1e-4)


# Single ops


def body_of(module: ModuleOp) -> str:
    """The printed function, without aliases."""
    return ALIASES.sub("", print_module(module))


CASES = {
    "alloc and dealloc": (
        "",
        "%b = triton_gpu.alloc_tensor : S<3x16x64xf16> triton_gpu.dealloc_tensor %b : S<3x16x64xf16>",
        ["%b = ttg.local_alloc : () -> M<3x16x64xf16, mutable>", "ttg.local_dealloc %b : M<3x16x64xf16, mutable>"],
    ),
    "a copy without a mask": (
        P,
        f"{ALLOC} %c = triton_gpu.insert_slice_async %p, %b, %i {{axis = 0 : i32}} : {COPY} -> S<3x16x64xf16>",
        [
            "%0 = ttg.memdesc_index %b[%i] : M<3x16x64xf16, mutable> -> M<16x64xf16, mutable>",
            f"%1 = ttg.async_copy_global_to_local %p, %0 : {COPY} -> <16x64xf16, #shared, #smem, mutable>",
            "%2 = ttg.async_commit_group tokens %1",
        ],
    ),
    "a copy with a mask, and how it is cached": (
        P,
        f"{ALLOC} %c = triton_gpu.insert_slice_async %p, %b, %i, %k {{axis = 0 : i32, cache = 3 : i32, evict = 2 "
        ": i32, "
        f"isVolatile = true, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>}} : {COPY} -> S<3x16x64xf16>",
        [
            "%1 = ttg.async_copy_global_to_local %p, %0 mask %k cacheModifier = cg evictionPolicy = evict_first "
            f"{{isVolatile = true}} : {COPY} -> <16x64xf16, #shared, #smem, mutable>"
        ],
    ),
    "a copy with a value for the rest": (
        P,
        f"{ALLOC} %c = triton_gpu.insert_slice_async %p, %b, %i, %k, %o {{axis = 0 : i32}} : {COPY} -> S<3x16x64xf16>",
        ["%1 = ttg.async_copy_global_to_local %p, %0 mask %k other %o :"],
    ),
    "a copy in generic form": (
        P,
        f'{ALLOC} %c = "triton_gpu.insert_slice_async"(%p, %b, %i) {{axis = 0 : i32}} : '
        f"({COPY}, S<3x16x64xf16>, i32) -> S<3x16x64xf16>",
        ["%1 = ttg.async_copy_global_to_local %p, %0 :", "%2 = ttg.async_commit_group tokens %1"],
    ),
    "two copies in a group": (
        P,
        f"{ALLOC} %c = triton_gpu.insert_slice_async %p, %b, %i {{axis = 0 : i32}} : {COPY} -> S<3x16x64xf16>\n"
        f"%d = triton_gpu.insert_slice_async %p, %c, %i {{axis = 0 : i32}} : {COPY} -> S<3x16x64xf16>\n"
        "triton_gpu.async_commit_group triton_gpu.async_wait {num = 0 : i32}",
        [
            f"%1 = ttg.async_copy_global_to_local %p, %0 : {COPY} -> <16x64xf16, #shared, #smem, mutable>",
            "%2 = ttg.memdesc_index %b[%i] :",
            f"%3 = ttg.async_copy_global_to_local %p, %2 : {COPY} -> <16x64xf16, #shared, #smem, mutable>",
            "%4 = ttg.async_commit_group tokens %1, %3",
            "%5 = ttg.async_wait {num = 0 : i32}",
        ],
    ),
    "a write at once": (
        P,
        f"{ALLOC} %c = tensor.insert_slice %o into %b[%i, 0, 0] [1, 16, 64] [1, 1, 1] : tensor<16x64xf16, "
        "#blocked> into "
        "S<3x16x64xf16>",
        [
            "%0 = ttg.memdesc_index %b[%i] :",
            "ttg.local_store %o, %0 : tensor<16x64xf16, #blocked> -> M<16x64xf16, mutable>",
        ],
    ),
    "a write of the whole": (
        P,
        "%b = triton_gpu.alloc_tensor : S<16x64xf16> "
        "%c = triton_gpu.insert_slice %o into %b[0, 0] [16, 64] [1, 1] : tensor<16x64xf16, #blocked> into S<16x64xf16>",
        ["ttg.local_store %o, %b : tensor<16x64xf16, #blocked> -> M<16x64xf16, mutable>"],
    ),
    "a buffer by number": (
        "",
        f"{ALLOC} %s = triton_gpu.extract_slice %b[2, 0, 0] [1, 16, 64] [1, 1, 1] : S<3x16x64xf16> to S<16x64xf16>",
        ["%c2_i32 = arith.constant 2 : i32", ("%s = ttg.memdesc_index %b[%c2_i32] : M<3x16x64xf16, mutable> "
                                              "-> M<16x64xf16, mutable>")],
    ),
    "a buffer by an index": (
        "%n: index",
        f"{ALLOC} %s = tensor.extract_slice %b[%n, 0, 0] [1, 16, 64] [1, 1, 1] : S<3x16x64xf16> to S<16x64xf16>",
        ["%0 = arith.index_cast %n : index to i32", "%s = ttg.memdesc_index %b[%0] :"],
    ),
    "a buffer by a constant index": (
        "",
        f"{ALLOC} %n = arith.constant 1 : index "
        "%s = tensor.extract_slice %b[%n, 0, 0] [1, 16, 64] [1, 1, 1] : S<3x16x64xf16> to S<16x64xf16>",
        ["%c1_i32 = arith.constant 1 : i32", "%s = ttg.memdesc_index %b[%c1_i32] :"],
    ),
    "a slice in generic form": (
        "%n: index",
        f'{ALLOC} %s = "tensor.extract_slice"(%b, %n) {{static_offsets = array<i64: -1, 0, 0>, '
        "static_sizes = array<i64: 1, 16, 64>, static_strides = array<i64: 1, 1, 1>, "
        "operand_segment_sizes = array<i32: 1, 1, 0, 0>} : (S<3x16x64xf16>, index) -> S<16x64xf16>",
        ["%s = ttg.memdesc_index %b[%0] :"],
    ),
    "a part of a buffer": (
        "%b: S<16x64xf16>",
        "%c8 = arith.constant 8 : i32 "
        "%s = triton_gpu.extract_slice %b[%c8, 0] [8, 64] [1, 1] : S<16x64xf16> to S<8x64xf16>",
        ["%s = ttg.memdesc_subslice %b[8, 0] : M<16x64xf16, mutable> -> M<8x64xf16, mutable, 16x64>"],
    ),
    "a part of one of several": (
        "%i: i32",
        f"{ALLOC} %s = triton_gpu.extract_slice %b[%i, 8, 0] [1, 8, 64] [1, 1, 1] : S<3x16x64xf16> to S<8x64xf16>",
        [
            "%0 = ttg.memdesc_index %b[%i] :",
            "%s = ttg.memdesc_subslice %0[8, 0] : M<16x64xf16, mutable> -> M<8x64xf16, mutable, 16x64>",
        ],
    ),
    "all of it": (
        "%b: S<16x64xf16>",
        "%s = triton_gpu.extract_slice %b[0, 0] [16, 64] [1, 1] : S<16x64xf16> to S<16x64xf16> "
        "triton_gpu.dealloc_tensor %s : S<16x64xf16>",
        ["tt.func @f(%b: M<16x64xf16, mutable>) {", "ttg.local_dealloc %b : M<16x64xf16, mutable>"],
    ),
    "registers to memory and back": (
        P,
        "%m = triton_gpu.convert_layout %o : (tensor<16x64xf16, #blocked>) -> S<16x64xf16> "
        "%n = triton_gpu.convert_layout %m : (S<16x64xf16>) -> S<16x64xf16> "
        "%x = triton_gpu.convert_layout %n : (S<16x64xf16>) -> tensor<16x64xf16, #mma_dot>",
        [
            "%m = ttg.local_alloc %o : (tensor<16x64xf16, #blocked>) -> M<16x64xf16>",
            ("%x = ttg.local_load %m : M<16x64xf16> -> tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, "
             "kWidth = 2}>>"),
        ],
    ),
    "a value that has the type of memory which is written": (
        P,
        "%b = triton_gpu.alloc_tensor : S<16x64xf16> "
        "%m = triton_gpu.convert_layout %o : (tensor<16x64xf16, #blocked>) -> S<16x64xf16>",
        ["%m = ttg.local_alloc %o : (tensor<16x64xf16, #blocked>) -> M<16x64xf16, mutable>"],
    ),
    "a transposed buffer": (
        "%b: S<16x64xf16>",
        "%t = tt.trans %b : (S<16x64xf16>) -> tensor<64x16xf16, #sharedT>",
        [("%t = ttg.memdesc_trans %b {order = array<i32: 1, 0>} : M<16x64xf16, mutable> -> !ttg.memdesc<64x16xf16, "
          "#shared1")],
    ),
    "a transposed tensor": (
        "%x: tensor<16x64xf16, #blocked>",
        "%t = tt.trans %x : (tensor<16x64xf16, #blocked>) -> tensor<64x16xf16, #blockedT>",
        ["%t = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x64xf16, #blocked> -> tensor<64x16xf16, #blocked1>"],
    ),
    "a product without tensor cores": (
        "%a: S<16x64xf16>, %b: tensor<64x16xf16, #shared>, %c: tensor<16x16xf32, #blocked>",
        "%d = tt.dot %a, %b, %c {allowTF32 = true} : S<16x64xf16> * S<64x16xf16> -> tensor<16x16xf32, #blocked>",
        [
            ("%0 = ttg.local_load %a : M<16x64xf16, mutable> -> tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, "
             "parent = #blocked}>>"),
            ("%1 = ttg.local_load %b : M<64x16xf16, mutable> -> tensor<64x16xf16, #ttg.dot_op<{opIdx = 1, "
             "parent = #blocked}>>"),
            "%d = tt.dot %0, %1, %c, inputPrecision = tf32 :",
        ],
    ),
    "a product with one operand in registers": (
        "%a: tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 4}>>, %b: S<64x16xf16>, "
        "%c: tensor<16x16xf32, #mma2>",
        "%d = tt.dot %a, %b, %c : tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2, "
        "kWidth = 4}>> * S<64x16xf16> "
        "-> tensor<16x16xf32, #mma2>",
        [("%0 = ttg.local_load %b : M<64x16xf16, mutable> -> tensor<64x16xf16, #ttg.dot_op<{opIdx = 1, "
          "parent = #mma, kWidth = 4}>>")],
    ),
    "a product of a transposed operand in registers": (
        "%a: tensor<64x16xf16, #mma_dot>, %b: tensor<64x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>>, "
        "%c: tensor<16x16xf32, #mma2>",
        "%d = tt.dot %a, %b, %c {transA = true} : tensor<64x16xf16, #mma_dot> * "
        "tensor<64x16xf16, #ttg.dot_op<{opIdx = 1, parent = #mma2, kWidth = 2}>> -> tensor<16x16xf32, #mma2>",
        [
            "%0 = tt.trans %a {order = array<i32: 1, 0>} : tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, "
            "parent = #mma, kWidth = 2}>> "
            "-> tensor<16x64xf16, #linear>",
            ("%1 = ttg.convert_layout %0 : tensor<16x64xf16, #linear> -> tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, "
             "parent = #mma, kWidth = 2}>>"),
            "%d = tt.dot %1, %b, %c :",
        ],
    ),
    "one of several by a subview": (
        "%i: i32",
        "%c0 = arith.constant 0 : i32 %c8 = arith.constant 8 : i32 "
        "%b = triton_gpu.local_alloc : () -> M<3x16x64xf16, mutable> "
        "%s = triton_gpu.memdesc_subview %b[%i, %c0, %c0] : M<3x16x64xf16, mutable> -> M<16x64xf16, mutable, 3x16x64> "
        "%q = triton_gpu.memdesc_subview %s[%c8, %c0] : M<16x64xf16, mutable, 3x16x64> -> M<8x64xf16, mutable, "
        "3x16x64> "
        "%x = triton_gpu.local_load %s : M<16x64xf16, mutable, 3x16x64> -> tensor<16x64xf16, #blocked> "
        "%r = scf.for %j = %c0 to %i step %i iter_args(%m = %s) -> (M<16x64xf16, mutable, 3x16x64>) : i32 "
        "{ scf.yield %m : M<16x64xf16, mutable, 3x16x64> }",
        [
            "%s = ttg.memdesc_index %b[%i] : M<3x16x64xf16, mutable> -> M<16x64xf16, mutable>",
            "%q = ttg.memdesc_subslice %s[8, 0] : M<16x64xf16, mutable> -> M<8x64xf16, mutable, 16x64>",
            "%x = ttg.local_load %s : M<16x64xf16, mutable> -> tensor<16x64xf16, #blocked>",
            "iter_args(%m = %s) -> (M<16x64xf16, mutable>)",
        ],
    ),
    "a part of one of several by a subview": (
        "%m: M<3x16x64xf16>, %i: i32",
        "%c0 = arith.constant 0 : i32 %c8 = arith.constant 8 : i32 "
        "%s = ttg.memdesc_subview %m[%i, %c8, %c0] : M<3x16x64xf16> -> M<8x64xf16>",
        ["%0 = ttg.memdesc_index %m[%i] :", "%s = ttg.memdesc_subslice %0[8, 0] : M<16x64xf16> -> M<8x64xf16, 16x64>"],
    ),
    "a function that takes one of several": (
        "%m: !triton_gpu.memdesc<16x64xf16, #shared, #smem, 3x16x64>",
        "%c0 = arith.constant 0 : i32 "
        "%s = triton_gpu.memdesc_subview %m[%c0, %c0] : M<16x64xf16, 3x16x64> -> M<16x64xf16, 3x16x64>",
        ["tt.func @f(%m: M<16x64xf16>) {"],
    ),
    "memory that does not say where it is": (
        "%x: tensor<16x64xf16, #blocked>",
        "%m = triton_gpu.local_alloc %x : (tensor<16x64xf16, #blocked>) -> !tt.memdesc<16x64xf16, #shared> "
        "%t = tt.trans %m {order = array<i32: 1, 0>} : !tt.memdesc<16x64xf16, #shared> -> !tt.memdesc<64x16xf16, "
        "#sharedT> "
        "%b = triton_gpu.local_alloc : () -> !triton_gpu.memdesc<3x16x64xf16, #shared, mutable>",
        [
            "%m = ttg.local_alloc %x : (tensor<16x64xf16, #blocked>) -> M<16x64xf16>",
            ("%t = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : M<16x64xf16> -> !ttg.memdesc<64x16xf16, "
             "#shared1, #smem>"),
            "%b = ttg.local_alloc : () -> M<3x16x64xf16, mutable>",
        ],
    ),
}  # fmt: skip
MMA_DOT = "#ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>"


@pytest.mark.parametrize("name", CASES)
def test_what_an_old_op_is_today(name: str) -> None:
    arguments, old, lines = CASES[name]
    text = spelled(module_text(arguments, old)).replace("#mma_dot", MMA_DOT)
    module = translated(text)
    printed = body_of(module)
    position = 0
    for line in lines:
        found = printed.find(spelled(line), position)
        assert found >= 0, f"{spelled(line)}\nis not in\n{printed}"
        position = found + 1


# Control flow


def test_a_part_of_a_buffer_is_carried_by_a_loop() -> None:
    body = """
  %c0 = arith.constant 0 : i32
  %s = triton_gpu.extract_slice %b[8, 0] [8, 64] [1, 1] : S<16x64xf16> to S<8x64xf16>
  %r = scf.for %j = %c0 to %i step %i iter_args(%m = %s) -> (S<8x64xf16>) : i32 {
    %x = triton_gpu.convert_layout %m : (S<8x64xf16>) -> tensor<8x64xf16, #blocked>
    scf.yield %m : S<8x64xf16>
  }
  triton_gpu.dealloc_tensor %r : S<8x64xf16>"""
    printed = body_of(translated(spelled(module_text("%b: S<16x64xf16>, %i: i32", body))))
    part = spelled("M<8x64xf16, mutable, 16x64>")
    assert f"iter_args(%m = %s) -> ({part})" in printed and f"ttg.local_dealloc %r : {part}" in printed


def test_a_branch_gives_memory() -> None:
    body = """
  %a = triton_gpu.alloc_tensor : S<2x16x64xf16>
  %b = triton_gpu.alloc_tensor : S<2x16x64xf16>
  %m = scf.if %c -> (S<2x16x64xf16>) { scf.yield %a : S<2x16x64xf16> } else { scf.yield %b : S<2x16x64xf16> }
  triton_gpu.dealloc_tensor %m : S<2x16x64xf16>"""
    printed = body_of(translated(spelled(module_text("%c: i1", body))))
    assert spelled("ttg.local_dealloc %m : M<2x16x64xf16, mutable>") in printed


def test_a_while_loop_carries_memory() -> None:
    body = """
  %a = triton_gpu.alloc_tensor : S<16x64xf16>
  %m = scf.while (%b = %a) : (S<16x64xf16>) -> S<16x64xf16> {
    scf.condition(%c) %b : S<16x64xf16>
  } do {
  ^bb0(%d: S<16x64xf16>):
    scf.yield %d : S<16x64xf16>
  }
  triton_gpu.dealloc_tensor %m : S<16x64xf16>"""
    printed = body_of(translated(spelled(module_text("%c: i1", body))))
    assert spelled("^bb0(%d: M<16x64xf16, mutable>):") in printed
    assert spelled("ttg.local_dealloc %m : M<16x64xf16, mutable>") in printed


def test_blocks_and_functions_pass_memory_on() -> None:
    text = """
  tt.func private @inner(%m: S<16x64xf16>) -> S<16x64xf16> attributes {noinline = true} { tt.return %m : S<16x64xf16> }
  tt.func public @outer(%c: i1) {
    %a = triton_gpu.alloc_tensor : S<16x64xf16>
    %b = tt.call @inner(%a) : (S<16x64xf16>) -> S<16x64xf16>
    cf.cond_br %c, ^bb1(%a : S<16x64xf16>), ^bb1(%b : S<16x64xf16>)
  ^bb1(%m: S<16x64xf16>):
    cf.br ^bb2(%m : S<16x64xf16>)
  ^bb2(%n: S<16x64xf16>):
    triton_gpu.dealloc_tensor %n : S<16x64xf16>
    tt.return
  }"""
    whole = module_text("", "")
    printed = body_of(translated(spelled(whole[: whole.index("tt.func")] + text + "}")))
    memory = spelled("M<16x64xf16, mutable>")
    assert f"@inner(%m: {memory}) -> {memory}" in printed
    assert f"tt.call @inner(%a) : ({memory}) -> {memory}" in printed
    assert f"^bb2(%n: {memory}):" in printed


# tt.dot in TTIR, and dot_op without a width


@pytest.mark.parametrize("a_turned", [False, True])
@pytest.mark.parametrize("b_turned", [False, True])
def test_transposed_operands_of_a_dot(a_turned: bool, b_turned: bool) -> None:
    a_type, b_type = (
        f"tensor<{'32x16' if a_turned else '16x32'}xf16>",
        f"tensor<{'16x32' if b_turned else '32x16'}xf16>",
    )
    flags = f"{{allowTF32 = true, transA = {str(a_turned).lower()}, transB = {str(b_turned).lower()}}}"
    text = f"""func public @f(%a: {a_type}, %b: {b_type}, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {{
  %d = tt.dot %a, %b, %c {flags} : {a_type} * {b_type} -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}}"""
    module = parse_module(text)
    verify(module)
    check_stage(module, "ttir")
    assert print_module(module).count("tt.trans") == a_turned + b_turned
    a, b, c = draw(16, 32), draw(32, 16), draw(16, 16, dtype=np.float32)
    arguments = [a.T.copy() if a_turned else a, b.T.copy() if b_turned else b, c]
    (d,) = evaluate(module, "f", arguments)
    np.testing.assert_allclose(d, a.astype(np.float32) @ b.astype(np.float32) + c, atol=1e-4)


@pytest.mark.parametrize(("element", "width"), [("f16", 2), ("f32", 1), ("i8", 4), ("f64", 1)])
def test_a_dot_operand_without_a_width_fills_a_register(element: str, width: int) -> None:
    alias = "#dot = #triton_gpu.dot_op<{opIdx = 0, parent = #mma2}>\n"
    text = alias + module_text(f"%x: tensor<16x64x{element}, #dot>", "")
    module = parse_module(text)
    verify(module)
    assert f"tensor<16x64x{element}, #ttg.dot_op<{{opIdx = 0, parent = #mma, kWidth = {width}}}>>" in print_module(
        module
    )


def test_the_width_of_a_dot_operand_is_needed_today() -> None:
    with pytest.raises(IRSyntaxError, match="kWidth parameter is mandatory"):
        parse_module(module_text("%x: tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma2}>>", ""))
    with pytest.raises(IRSyntaxError, match="opIdx parameter can be 0 or 1"):
        parse_module(module_text("%x: tensor<16x64xf16, #triton_gpu.dot_op<{opIdx = 2, parent = #mma2}>>", ""))


def test_a_dot_operand_without_a_width_outside_of_a_type() -> None:
    text = module_text("", "").replace(
        "module attributes {", "module attributes {a = #triton_gpu.dot_op<{opIdx = 1, parent = #mma2}>, "
    )
    again = print_module(parse_module(text))
    assert "a = #triton_gpu.dot_op<{opIdx = 1, parent = #mma}>" in again
    assert print_module(parse_module(again)) == again
