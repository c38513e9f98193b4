"""`ttc.dot` against NumPy: types, shapes that blocks do not divide, batches, packing, other machines."""

from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

from tests.targets.cpu_rules import buffer, lowered, module_text, run
from tilework.ir import types as ir
from tilework.targets.cpu.lower.dot_rules import Dot, emit_dot, plan_of
from tilework.targets.cpu.lower.dot_units import F32, F64
from tilework.targets.cpu.lower.microkernel import choose_block, registers_of
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.compile import initialize_all
from tilework.targets.llvm.module import Module

SHAPES = [
    (1, 1, 1),
    (1, 64, 32),
    (64, 1, 16),
    (2, 4, 8),
    (16, 16, 16),
    (32, 64, 16),
    (64, 32, 128),
    (128, 256, 64),
    (5, 7, 3),
    (13, 35, 18),
]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
FLOATS8 = [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz]
AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512vnni", "avx2", "fma", "f16c")
TILES = ("amx-tile", "amx-bf16", "amx-int8")
MACHINES = [
    ("x86_64-unknown-linux-gnu", HostTarget.of("x86_64", "haswell", ("avx2", "fma", "f16c"))),
    ("x86_64-unknown-linux-gnu", HostTarget.of("x86_64", "skylake-avx512", ("avx512f", "avx512bw", "fma"))),
    ("x86_64-unknown-linux-gnu", HostTarget.of("x86_64", "x86-64", ())),
    ("aarch64-unknown-linux-gnu", HostTarget.of("aarch64", "neoverse-n1", ("dotprod", "fullfp16"))),
    ("aarch64-unknown-linux-gnu", HostTarget.of("aarch64", "cortex-a53", ())),
    ("aarch64-unknown-linux-gnu", HostTarget.of("aarch64", "neoverse-v1", ("bf16", "i8mm", "dotprod"))),
    ("x86_64-unknown-linux-gnu", HostTarget.of("x86_64", "cooperlake", (*AVX512, "avx512bf16"))),
    ("x86_64-unknown-linux-gnu", HostTarget.of("x86_64", "emeraldrapids", (*AVX512, "avx512bf16", *TILES))),
]
INSTRUCTIONS = {  # for bf16 and int8
    "neoverse-n1": ("fmla", "sdot"),
    "neoverse-v1": ("bfmmla", "smmla"),
    "cooperlake": ("vdpbf16ps", "vpdpbusd"),
    "emeraldrapids": ("tdpbf16ps", "tdpbssd"),
}


def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, clause: str = "") -> None:
    run(f"    ttc.dot %a, %b, %c{clause} : {buffer(a)}, {buffer(b)}, {buffer(c)}", {"a": a, "b": b, "c": c})


def small_numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    """Integers whose products add up exactly in f32."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_floats_add_the_product(shape: tuple[int, int, int], dtype: Any) -> None:
    rows, columns, depth = shape
    a, b = small_numbers((rows, depth), dtype), small_numbers((depth, columns), dtype, 1)
    total = np.float64 if dtype is np.float64 else np.float32
    c = small_numbers((rows, columns), total, 2)
    expected = c + a.astype(total) @ b.astype(total)
    dot(a, b, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("dtype", FLOATS8, ids=lambda dtype: np.dtype(dtype).name)
def test_every_8_bit_float_is_decoded(dtype: Any) -> None:
    """Each code times one."""
    a = np.arange(256, dtype=np.uint8).view(dtype).reshape(256, 1)
    b, c = np.ones((1, 4), dtype), np.zeros((256, 4), np.float32)
    dot(a, b, c)
    np.testing.assert_array_equal(c, np.broadcast_to(a.astype(np.float32) + 0.0, (256, 4)))


@pytest.mark.parametrize(
    "shape",
    [(16, 16, 32), (64, 64, 64), (3, 5, 8), (8, 8, 6), (1, 2, 4), (16, 9, 16), (7, 50, 83), (2, 1024, 5)],
    ids=str,
)
def test_bytes_are_summed_in_32_bits(shape: tuple[int, int, int]) -> None:
    rows, columns, depth = shape
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-128, 128, (rows, depth)).astype(np.int8),
        random.integers(-128, 128, (depth, columns)).astype(np.int8),
    )
    a[0], b[:, 0], b[:, -1] = -128, -128, 127
    c = random.integers(-(2**31), 2**31, (rows, columns)).astype(np.int32)
    expected = (c.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    dot(a, b, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8], ids=lambda dtype: np.dtype(dtype).name)
def test_batches(dtype: Any) -> None:
    total = np.int32 if dtype is np.int8 else np.float32
    a, b, c = (
        small_numbers((3, 8, 16), dtype),
        small_numbers((3, 16, 32), dtype, 1),
        small_numbers((3, 8, 32), total, 2),
    )
    expected = c + np.matmul(a.astype(total), b.astype(total))
    dot(a, b, c)
    np.testing.assert_array_equal(c, expected)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=lambda dtype: np.dtype(dtype).name)
def test_a_narrow_result_is_rounded_once(dtype: Any) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((16, 64)).astype(dtype), random.standard_normal((64, 16)).astype(dtype)
    c = random.standard_normal((16, 16)).astype(dtype)
    exact = c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64)
    dot(a, b, c)
    unit = 2.0 ** (-11 if dtype is np.float16 else -8)
    assert np.all(np.abs(c.astype(np.float64) - exact) <= unit * np.abs(exact) + 1e-5)


def test_precision_modes_are_computed_in_full() -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((32, 32)).astype(np.float32), random.standard_normal((32, 32)).astype(np.float32)
    for mode in ("tf32", "tf32x3", "ieee"):
        c = np.zeros((32, 32), np.float32)
        dot(a, b, c, f", inputPrecision = {mode}")
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-5, atol=2e-5)


def test_infinities_and_nans_pass_through() -> None:
    a, b, c = np.ones((4, 4), np.float32), np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
    a[1, 2], a[2, 0] = np.inf, np.nan
    dot(a, b, c)
    np.testing.assert_array_equal(c[:, 0], [4, np.inf, np.nan, 4])


def test_one_function_for_equal_products() -> None:
    x = np.zeros((16, 16), np.float32)
    line = f"    ttc.dot %a, %b, %c : {buffer(x)}, {buffer(x)}, {buffer(x)}\n"
    module, _ = lowered(module_text(line * 3, {"a": x, "b": x, "c": x}), HostTarget.detect())
    assert [name for name in module.functions if name != "f"] == ["dot.16x16x16.f32.f32.f32"]


def test_code_does_not_grow_with_the_tile() -> None:
    sizes = []
    for side in (256, 1024):
        module = Module("size")
        dot = Dot(1, side, side, side, ir.f16, ir.f16, ir.f32)
        emit_dot(module, HostTarget.detect(), dot, plan_of(HostTarget.detect(), dot))
        sizes.append(len(module.text().splitlines()))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(("triple", "target"), MACHINES, ids=[f"{machine.cpu}" for _, machine in MACHINES])
@pytest.mark.parametrize("element", [ir.f32, ir.f64, ir.bf16, ir.i8], ids=str)
def test_other_machines_get_code(triple: str, target: HostTarget, element: Any) -> None:
    """LLVM accepts the text and finds instructions; the block fits in the registers."""
    initialize_all()
    total = {ir.f64: ir.f64, ir.i8: ir.i32}.get(element, ir.f32)
    module = Module("other")
    for rows, columns, depth in ((64, 64, 64), (5, 3, 6)):
        dot = Dot(1, rows, columns, depth, element, element, total)
        emit_dot(module, target, dot, plan_of(target, dot))
    text = f'target triple = "{triple}"\n' + module.text().replace("define internal", "define")
    features = ",".join(
        [*(f"+{name}" for name in sorted(target.features)), *(f"-{name}" for name in target.dot_features)]
    )
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=target.cpu, features=features, opt=2)
    parsed = llvm.parse_assembly(text, llvm.create_context())
    parsed.verify()
    assembly = machine.emit_assembly(parsed)
    if target.cpu in INSTRUCTIONS and element in (ir.bf16, ir.i8):
        assert f"\t{INSTRUCTIONS[target.cpu][element == ir.i8]}\t" in assembly
    plan = plan_of(target, Dot(1, 64, 64, 64, element, element, total))
    assert plan.unit.tiles or registers_of(target, plan.block.rows, plan.block.vectors) <= target.vector_registers


def test_blocks_keep_the_multipliers_busy() -> None:
    for _, target in MACHINES:
        for unit in (F32, F64):
            block = choose_block(target, unit, 64, 64)
            assert block.rows * block.vectors >= 8, f"{target.cpu}: {block} cannot hide the latency of two units"
