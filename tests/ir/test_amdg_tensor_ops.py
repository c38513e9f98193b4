"""Ops of `amdg` on whole tensors, as Triton 3.7 prints and refuses them, and what they compute."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.utils.exceptions import VerifyException

from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.oracles.evaluator import evaluate

MODULE = """#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#d = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 16], isTransposed = true}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #d, kWidth = 16}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #d, kWidth = 16}>
#b3 = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 16, 4], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#d3 = #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 2, 2], instrShape = [32, 32, 16], isTransposed = true}>
#e0 = #ttg.dot_op<{opIdx = 0, parent = #d3, kWidth = 16}>
#e1 = #ttg.dot_op<{opIdx = 1, parent = #d3, kWidth = 16}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [ORDER]}>
#s3 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [2, 1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @f(PARAMETERS)RESULTS {
    BODY
    tt.return RETURNED
  }
}
"""  # noqa: E501


def module(parameters: str, body: str, returned: str = "", order: str = "1, 0") -> Any:
    """Return a module with one function; `returned` is ``%x : type``."""
    text = MODULE.replace("PARAMETERS", parameters).replace("BODY", body).replace("ORDER", order)
    _, _, type = returned.partition(" : ")
    return parse_module(text.replace("RETURNED", returned).replace("RESULTS", f" -> {type}" if type else ""))


F32 = "%x: tensor<128x128xf32, #b>"
TILES = "%x: tensor<64x32xf32, #b>, %y: tensor<64x32xf32, #b>"
SCALED = (
    "%x: tensor<64x64xi8, #b>, %e: tensor<64x128xi8, #b>, %s: tensor<64x128xbf16, #b>, %v: tensor<64x128xf8E4M3FN, #b>,"
    " %q: tensor<64x4xi8, #b>"
)
LDS = (
    "%m: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %p: tensor<64x64x!tt.ptr<f16>, #b>,"
    " %k: tensor<64x64xi1, #b>, %n: !ttg.memdesc<128x64xi8, #shared, #smem, mutable>"
)
MXFP = "%x: tensor<64x64xi8, #d0>, %s: tensor<64x4xi8, #b>"
TEXTS = [
    (F32, "%r = amdg.extract_slice %x [0, 64] : tensor<128x128xf32, #b> to tensor<128x32xf32, #b>"),
    (F32, "%r = amdg.extract_slice %x [64, 0] : tensor<128x128xf32, #b> to tensor<64x32xf32, #b>"),
    (TILES, "%r = amdg.concat %x, %y : tensor<64x32xf32, #b>, tensor<64x32xf32, #b> -> tensor<128x32xf32, #b>"),
    (
        LDS,
        "%r = amdg.local_load_packed_tranposed %n : !ttg.memdesc<128x64xi8, #shared, #smem, mutable>"
        " -> tensor<64x128xi8, #d1>",
    ),
    (
        MXFP,
        "%r = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xi8, #d0>, tensor<64x4xi8, #b>"
        " -> tensor<64x128xbf16, #d0>",
    ),
    (
        SCALED,
        "%r = amdg.scaled_upcast_fp4 %x scale %s {axis = 1 : i32} : tensor<64x64xi8, #b>, tensor<64x128xbf16, #b>"
        " -> tensor<64x128xbf16, #b>",
    ),
    (
        SCALED,
        "%r = amdg.scaled_upcast_fp4 %x scale %e {axis = 1 : i32} : tensor<64x64xi8, #b>, tensor<64x128xi8, #b>"
        " -> tensor<64x128xf16, #b>",
    ),
    (
        SCALED,
        "%r = amdg.scaled_upcast_fp8 %v scale %e : tensor<64x128xf8E4M3FN, #b>, tensor<64x128xi8, #b>"
        " -> tensor<64x128xf32, #b>",
    ),
    (
        LDS,
        "%r = amdg.async_copy_local_to_global %m, %p mask %k {contiguity = 8 : i32} :"
        " !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64x!tt.ptr<f16>, #b>",
    ),
    (
        LDS,
        "%r = amdg.async_copy_local_to_global %m, %p cacheModifier = cs :"
        " !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64x!tt.ptr<f16>, #b>",
    ),
]


@pytest.mark.parametrize(("parameters", "body"), TEXTS)
def test_text(parameters: str, body: str) -> None:
    found = module(parameters, body)
    verify(found)
    printed = print_module(found)
    short = {"#b": "#blocked", "#d0": "#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>"}
    short["#d1"] = short["#d0"].replace("opIdx = 0", "opIdx = 1")
    for name, written in short.items():
        body = body.replace(f"{name}>", f"{written}>")
    assert body in printed
    assert print_module(parse_module(printed)) == printed


BAD = [
    (F32, "amdg.extract_slice %x [0, 5] : tensor<128x128xf32, #b> to tensor<64x32xf32, #b>",
     r"No source register holds the element for destination index \[0, 8\]"),
    (F32, "amdg.extract_slice %x [0, 0] : tensor<128x128xf32, #b> to tensor<32x16xf32, #b>",
     "Lane and warp dim basis must match between source and destination layout"),
    (F32, "amdg.extract_slice %x [0, 128] : tensor<128x128xf32, #b> to tensor<64x32xf32, #b>",
     "invalid offset at dimension 1"),
    (F32, "amdg.extract_slice %x [0] : tensor<128x128xf32, #b> to tensor<64x32xf32, #b>", "number of offsets"),
    (F32, "amdg.extract_slice %x [0, 0] : tensor<128x128xf32, #b> to tensor<256x32xf32, #b>",
     "result shape cannot exceed source shape at dimension 0"),
    (TILES, "amdg.concat %x, %y : tensor<64x32xf32, #b>, tensor<64x32xf32, #b> -> tensor<128x64xf32, #b>",
     r"Number of source tiles \(2\) doesn't match required count \(4\)"),
    (f"{TILES}, %z: tensor<64x64xf32, #b>",
     "amdg.concat %x, %z : tensor<64x32xf32, #b>, tensor<64x64xf32, #b> -> tensor<128x32xf32, #b>",
     "All sources must have identical tensor types"),
    (LDS, "amdg.local_load_packed_tranposed %n : !ttg.memdesc<128x64xi8, #shared, #smem, mutable>"
          " -> tensor<256x32xi8, #d0>", "Order of dimensions don't match expected"),
    (LDS, "amdg.local_load_packed_tranposed %n : !ttg.memdesc<128x64xi8, #shared, #smem, mutable>"
          " -> tensor<64x64xi8, #d1>", "Input and output dimensions don't match after packing changes"),
    (LDS, "amdg.local_load_packed_tranposed %n : !ttg.memdesc<128x64xi8, #shared, #smem, mutable>"
          " -> tensor<64x128xi8, #b>", "only works with DotOperandEncodingAttr dst encoding"),
    (SCALED, "amdg.upcast_mxfp %x, %q fp_type = e2m1 {fastMath = true} : tensor<64x64xi8, #b>, tensor<64x4xi8, #b>"
             " -> tensor<64x128xbf16, #b>", "Expected a DotOperandEncodingAttr for values"),
    (MXFP, "amdg.upcast_mxfp %x, %s fp_type = e4m3 {fastMath = true} : tensor<64x64xi8, #d0>, tensor<64x4xi8, #b>"
           " -> tensor<64x64xbf16, #d0>", "the same number of blocks along K"),
    (SCALED, "amdg.scaled_upcast_fp4 %x scale %q {axis = 1 : i32} : tensor<64x64xi8, #b>, tensor<64x4xi8, #b>"
             " -> tensor<64x128xf16, #b>", "scale and output should have the same shape"),
    (SCALED, "amdg.scaled_upcast_fp4 %x scale %e {axis = 0 : i32} : tensor<64x64xi8, #b>, tensor<64x128xi8, #b>"
             " -> tensor<64x128xf16, #b>", "cannot give"),
    (SCALED, "amdg.scaled_upcast_fp8 %e scale %e : tensor<64x128xi8, #b>, tensor<64x128xi8, #b>"
             " -> tensor<64x128xf16, #b>", "reads f8E4M3FN or f8E5M2"),
    ("%x: tensor<64x64xf32>", "amdg.extract_slice %x [0, 0] : tensor<64x64xf32> to tensor<32x64xf32>",
     "needs tensors with an encoding of their rank, not tensor<64x64xf32>"),
    (F32, "amdg.extract_slice %x [0, 0] : tensor<128x128xf32, #b> to tensor<64x32xf32, #b3>",
     "needs tensors with an encoding of their rank, not tensor<64x32xf32, "),
    ("%x: tensor<64x64xf32>", "amdg.concat %x, %x : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<128x64xf32>",
     "needs tensors with an encoding of their rank"),
    (TILES, "amdg.concat %x, %y : tensor<64x32xf32, #b>, tensor<64x32xf32, #b> -> tensor<128x32xf32, #b3>",
     "needs tensors with an encoding of their rank"),
    ("%n: !ttg.memdesc<2x128x64xi8, #s3, #smem, mutable>",
     "amdg.local_load_packed_tranposed %n : !ttg.memdesc<2x128x64xi8, #s3, #smem, mutable>"
     " -> tensor<2x64x128xi8, #e1>", "needs a result of rank 2"),
    (LDS, "amdg.local_load_packed_tranposed %n : !ttg.memdesc<128x64xi8, #shared, #smem, mutable>"
          " -> tensor<64x128xi8, #e1>", "needs tensors with an encoding of their rank"),
    ("%x: tensor<64x64xi8, #e0>, %s: tensor<64x4xi8, #b>",
     "amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xi8, #e0>, tensor<64x4xi8, #b>"
     " -> tensor<64x128xbf16, #e0>", "needs tensors with an encoding of their rank"),
    *(
        (f"%x: tensor<64x64xi8, #d0>, %s: tensor<{shape}i8>",
         f"amdg.upcast_mxfp %x, %s fp_type = e2m1 {{fastMath = false}} : tensor<64x64xi8, #d0>, tensor<{shape}i8>"
         " -> tensor<64x128xbf16, #d0>", message)
        for message, shapes in (("needs scales of each row along K, not tensor", ("4x", "32x4x", "1x64x4x")),
                                ("the same number of blocks along K", ("", "64x2x")))
        for shape in shapes
    ),
    (LDS, "amdg.async_copy_local_to_global %n, %p : !ttg.memdesc<128x64xi8, #shared, #smem, mutable>"
          " -> tensor<64x64x!tt.ptr<f16>, #b>", "."),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "body", "message"), BAD)
def test_refusals(parameters: str, body: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        verify(module(parameters, f"%r = {body}"))


RUNS = [
    ("%p: !tt.ptr<f32>, %o: tensor<64xi32>",
     "%r = amdg.buffer_load %p[%o] {contiguity = RUN : i32} : tensor<64xf32>"),
    ("%p: !tt.ptr<f32>, %o: tensor<64xi32>, %v: tensor<64xf32>",
     "amdg.buffer_store %v, %p[%o] {contiguity = RUN : i32} : tensor<64xf32>"),
    ("%p: !tt.ptr<f16>, %o: tensor<64x64xi32, #b>, %m: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>",
     "%t = amdg.buffer_load_to_local %p[%o] into %m {contiguity = RUN : i32} : <f16>[tensor<64x64xi32, #b>]  ->"
     " <64x64xf16, #shared, #smem, mutable>"),
    (LDS, "%t = amdg.async_copy_local_to_global %m, %p {contiguity = RUN : i32} :"
          " !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64x!tt.ptr<f16>, #b>"),
    (LDS, "%t = ttg.async_copy_global_to_local %p, %m {contiguity = RUN : i32} :"
          " tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #shared, #smem, mutable>"),
]  # fmt: skip


@pytest.mark.parametrize(("parameters", "body"), RUNS)
def test_contiguity_is_a_power_of_two(parameters: str, body: str) -> None:
    for run in (1, 2, 8):
        verify(module(parameters, body.replace("RUN", str(run))))
    for run in (-8, -1, 0, 3, 6):
        with pytest.raises(VerifyException, match="a power of two as i32"):
            verify(module(parameters, body.replace("RUN", str(run))))


RANDOM = np.random.default_rng(5)


def test_slices_and_tiles() -> None:
    x = RANDOM.normal(size=(128, 128)).astype(np.float32)
    (found,) = evaluate(module(F32, TEXTS[0][1], "%r : tensor<128x32xf32, #b>"), "f", [x])
    assert np.array_equal(found, x[:, 64:96])
    a, b = x[:64, :32], x[64:, 32:64]
    (found,) = evaluate(module(TILES, TEXTS[2][1], "%r : tensor<128x32xf32, #b>"), "f", [a, b])
    assert np.array_equal(found, np.concatenate([a, b]))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def test_scaled_floats() -> None:
    codes = RANDOM.integers(0, 256, (64, 64)).astype(np.uint8)
    values = E2M1[np.stack([codes & 15, codes >> 4], -1).reshape(64, 128)]
    exponents = RANDOM.integers(120, 134, (64, 128)).astype(np.uint8)
    powers = np.exp2(exponents.astype(np.float32) - 127)
    bytes = RANDOM.normal(size=(64, 128)).astype(ml_dtypes.float8_e4m3fn)
    rest = [powers.astype(ml_dtypes.bfloat16), bytes, np.zeros((64, 4), np.uint8)]
    for index, wanted in ((5, values * powers), (6, values * powers), (7, bytes.astype(np.float32) * powers)):
        element = ("bf16", "f16", "f32")[index - 5]
        function = module(SCALED, TEXTS[index][1], f"%r : tensor<64x128x{element}, #b>")
        (found,) = evaluate(function, "f", [codes.view(np.int8), exponents.view(np.int8), *rest])
        assert np.array_equal(np.asarray(found).astype(np.float32), wanted)


def test_scales_of_dot_operands() -> None:
    codes, exponents = RANDOM.integers(0, 256, (64, 64)).astype(np.uint8), np.full((64, 4), 128, np.uint8)
    exponents[3, 2] = 125
    function = module(MXFP, TEXTS[4][1], "%r : tensor<64x128xbf16, #d0>")
    (found,) = evaluate(function, "f", [codes.view(np.int8), exponents.view(np.int8)])
    values = E2M1[np.stack([codes & 15, codes >> 4], -1).reshape(64, 128)]
    powers = np.repeat(np.exp2(exponents.astype(np.float32) - 127), 32, 1)
    assert np.array_equal(np.asarray(found).astype(np.float32), values * powers)


@pytest.mark.parametrize(("index", "order", "memory", "shape"), [
    (1, "1, 0", (128, 64), (64, 128)), (0, "0, 1", (32, 256), (64, 128)),
])  # fmt: skip
def test_packed_floats_are_repacked_along_k(
    index: int, order: str, memory: tuple[int, int], shape: tuple[int, int]
) -> None:
    stored = RANDOM.integers(0, 256, memory).astype(np.uint8)
    type = f"!ttg.memdesc<{memory[0]}x{memory[1]}xi8, #shared, #smem, mutable>"
    tile, result = f"tensor<{memory[0]}x{memory[1]}xi8, #b>", f"tensor<{shape[0]}x{shape[1]}xi8, #d{index}>"
    body = f"%m = ttg.local_alloc %x : ({tile}) -> {type}\n    ttg.barrier local\n"
    body += f"    %r = amdg.local_load_packed_tranposed %m : {type} -> {result}"
    (found,) = evaluate(module(f"%x: {tile}", body, f"%r : {result}", order), "f", [stored.view(np.int8)])
    halves = np.stack([stored & 15, stored >> 4], -1)
    wide = halves.reshape(memory[0], -1) if index else halves.swapaxes(1, 2).reshape(-1, memory[1])
    low, high = (wide[0::2], wide[1::2]) if index else (wide[:, 0::2], wide[:, 1::2])
    assert np.array_equal(np.asarray(found).view(np.uint8), low | high << 4)
