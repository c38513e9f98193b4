"""Ops of `amdg` on whole tensors, compiled and emulated: memory is what the evaluator computes from the IR."""

import re

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.test_amd_wmma_tiles import pointers
from tilework.ir.parser import parse_module
from tilework.ir.verify import verify
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.oracles.evaluator import evaluate
from tilework.target import Target
from tilework.targets.amd.code_object import metadata
from tilework.targets.amd.lower.emit import emit_module
from tilework.targets.amd.pipeline import LLIR_PASSES
from tilework.transforms.registry import run_pipeline

MODULE = """
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#d = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 16], isTransposed = true}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #d, kWidth = 16}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #d, kWidth = 16}>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#columns = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @k(PARAMETERS) {
    BODY
    tt.return
  }
}
"""  # noqa: E501
TYPES = {"f32": np.float32, "i8": np.int8, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
TYPES |= {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}
SLICE = "amdg.extract_slice %x [{}] : tensor<128x128xf32, #b> to tensor<{}xf32, #b>"
TILE = "tensor<64x32xf32, #b>"
TYPE = "tensor<64x64xi8, #b>, tensor<FROM, #b> -> tensor<TO, #b>"
FP4 = f"amdg.scaled_upcast_fp4 %x scale %y {{axis = AXIS : i32}} : {TYPE}"
MXFP = f"amdg.upcast_mxfp %v, %y fp_type = FORM {{fastMath = FAST}} : {TYPE}"
MXFP = MXFP.replace("<64x64xi8, #b>", "<64x64xi8, #dI>").replace("TO, #b", "TO, #dI")
DOT = "%v = ttg.convert_layout %x : tensor<64x64xi8, #b> -> tensor<64x64xi8, #dI>\n"
MEMORY = "!ttg.memdesc<SHAPExi8, #ORDER, #smem, mutable>"
PACKED = f"""%m = ttg.local_alloc %x : (tensor<SHAPExi8, #b>) -> {MEMORY}
    %r = amdg.local_load_packed_tranposed %m : {MEMORY} -> tensor<TO, #dI>"""


def packed(shape: str, to: str, order: str, index: int) -> str:
    return PACKED.replace("SHAPE", shape).replace("TO", to).replace("ORDER", order).replace("dI", f"d{index}")


def mxfp(form: str, scales: str, to: str, index: int, fast: str = "false") -> str:
    text = f"{DOT}    %r = {MXFP}".replace("FORM", form).replace("FAST", fast)
    return text.replace("FROM", scales).replace("TO", to).replace("dI", f"d{index}")


CASES = [
    (["128x128xf32"], f"%r = {SLICE.format('0, 64', '128x32')}", "128x32xf32"),
    (["128x128xf32"], f"%r = {SLICE.format('64, 96', '64x32')}", "64x32xf32"),
    (["64x32xf32"] * 2, f"%r = amdg.concat %x, %y : {TILE}, {TILE} -> tensor<128x32xf32, #b>", "128x32xf32"),
    (["64x32xf32"] * 2, f"%r = amdg.concat %x, %y : {TILE}, {TILE} -> tensor<64x64xf32, #b>", "64x64xf32"),
    *(
        ([f"64x64x{'i8'}", f"{to}x{scale}"], f"%r = {FP4}".replace("AXIS", str(axis)).replace("FROM", f"{to}x{scale}"
         ).replace("TO", f"{to}x{result}"), f"{to}x{result}")
        for axis, to, scale, result in ((1, "64x128", "i8", "f16"), (0, "128x64", "bf16", "bf16"))
    ),
    *(
        ([f"64x64x{kind}", f"64x64x{scale}"], f"%r = amdg.scaled_upcast_fp8 %x scale %y : tensor<64x64x{kind}, #b>,"
         f" tensor<64x64x{scale}, #b> -> tensor<64x64x{result}, #b>", f"64x64x{result}")
        for kind, scale, result in (("f8E4M3FN", "i8", "f32"), ("f8E5M2", "bf16", "f16"), ("f8E5M2", "i8", "bf16"))
    ),
    (["64x64xi8", "64x4xi8"], mxfp("e2m1", "64x4xi8", "64x128xbf16", 0), "64x128xbf16"),
    (["64x64xi8", "64x4xi8"], mxfp("e2m1", "64x4xi8", "128x64xf16", 1, "true"), "128x64xf16"),
    (["64x64xi8", "64x2xi8"], mxfp("e5m2", "64x2xi8", "64x64xbf16", 1), "64x64xbf16"),
    (["128x64xi8"], packed("128x64", "64x128xi8", "rows", 1), "64x128xi8"),
    (["32x256xi8"], packed("32x256", "64x128xi8", "columns", 0), "64x128xi8"),
]  # fmt: skip


def sizes(type: str) -> tuple[int, int]:
    rows, columns, _ = type.split("x")
    return int(rows), int(columns)


def access(base: str, type: str) -> str:
    return pointers(base, *sizes(type), type.rpartition("x")[2])


def check(body: str, arrays: dict[str, np.ndarray], types: dict[str, str], arch: str) -> None:
    """Compare what the code leaves in memory with what the evaluator does."""
    parameters = ", ".join(f"%p{name}: !tt.ptr<{type.rpartition('x')[2]}>" for name, type in types.items())
    text = MODULE.replace("PARAMETERS", parameters).replace("BODY", body).replace("gfx950", arch)
    if (target := Target.parse(f"hip:{arch}")).warp_size == 32:
        text = text.replace("[16, 4]", "[8, 4]").replace('warp" = 64', 'warp" = 32')
    module = parse_module(text)
    verify(module)
    wanted = [array.copy() for array in arrays.values()]
    evaluate(module, args=wanted)
    run_pipeline(module, LLIR_PASSES)
    verify(module)
    code = emit_module(module, target)
    threads = 4 * target.warp_size
    run(code, [*arrays.values(), 0, 0], grid=1, threads=threads, lds_bytes=metadata(code)["shared"], arch=arch)
    for found, expected in zip(arrays.values(), wanted, strict=True):
        assert np.array_equal(found.astype(np.float32), expected.astype(np.float32), equal_nan=True)
    assert np.count_nonzero(wanted[-1].astype(np.float32)) > wanted[-1].size // 2


def filled(name: str, type: str, is_fast: bool, random: np.random.Generator) -> np.ndarray:
    shape, kind = sizes(type), TYPES[type.rpartition("x")[2]]
    if name == "y" and kind is np.int8:
        exponents = random.integers(120, 134, shape).astype(np.uint8)
        exponents[3, 1] = 126 if is_fast else 255
        return exponents.view(np.int8)
    if kind is np.int8:
        codes = random.integers(0, 256, shape).astype(np.uint8)
        return np.where((codes & 0x7C) == 0x7C, 1, codes).astype(np.uint8).view(np.int8)  # no infinities
    return random.normal(size=shape).astype(kind)


ON_GPUS = [
    (*case, arch)
    for case in CASES
    for arch in ("gfx950", "gfx942", "gfx1201")
    if arch != "gfx1201" or "#d" not in case[1]  # a layout of CDNA
]


@pytest.mark.parametrize(("operands", "body", "result", "arch"), ON_GPUS)
def test_ops_on_registers(operands: list[str], body: str, result: str, arch: str) -> None:
    types = dict(zip("xy", operands, strict=False))
    loads = "".join(
        f"{access(f'%p{name}', type)}\n    %{name} = tt.load %p{name}_p : "
        f"tensor<{type.rpartition('x')[0]}x!tt.ptr<{type.rpartition('x')[2]}>, #b>\n"
        for name, type in types.items()
    )
    stored = "%r"
    if index := re.search(r"-> tensor<[^>]*, #d([01])>$", body):
        stored = "%s"
        body += f"\n    %s = ttg.convert_layout %r : tensor<{result}, #d{index[1]}> -> tensor<{result}, #b>"
    shape, _, element = result.rpartition("x")
    store = f"{access('%po', result)}\n    tt.store %po_p, {stored} : tensor<{shape}x!tt.ptr<{element}>, #b>"
    random = np.random.default_rng(5)
    arrays = {name: filled(name, type, "fastMath = true" in body, random) for name, type in types.items()}
    arrays["o"] = np.zeros(sizes(result), TYPES[element])
    check(f"{loads}    {body}\n    {store}", arrays, {**types, "o": result}, arch)


@pytest.mark.parametrize("arch", ["gfx950", "gfx1201"])
@pytest.mark.parametrize("mask", ["", " mask %k"])
def test_copies_from_lds(mask: str, arch: str) -> None:
    type = "64x64xf16"
    memory = "!ttg.memdesc<64x64xf16, #rows, #smem, mutable>"
    body = f"""{access("%px", type)}
    %x = tt.load %px_p : tensor<64x64x!tt.ptr<f16>, #b>
    %m = ttg.local_alloc %x : (tensor<64x64xf16, #b>) -> {memory}
    {access("%po", type)}
    %most = arith.constant dense<60> : tensor<64x64xi32, #b>
    %column = tt.broadcast %po_f : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
    %k = arith.cmpi slt, %column, %most : tensor<64x64xi32, #b>
    %t = amdg.async_copy_local_to_global %m, %po_p{mask} : {memory} -> tensor<64x64x!tt.ptr<f16>, #b>
    %g = ttg.async_commit_group tokens %t
    %w = ttg.async_wait %g {{num = 0 : i32}}"""
    x = np.random.default_rng(5).normal(size=(64, 64)).astype(np.float16)
    check(body, {"x": x, "o": np.zeros((64, 64), np.float16)}, {"x": type, "o": type}, arch)
