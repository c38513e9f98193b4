"""Dots with instructions that this machine may not have: the text for the other machine, with the instructions written
out."""

import ctypes
import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from llvmlite.binding import parse_assembly

from tests.targets.cpu_rules import ELEMENTS
from tilework.ir import types as ir
from tilework.targets.cpu import target as hosts
from tilework.targets.cpu.lower.dot_rules import Dot, Emitter, emit_dot, plan_of
from tilework.targets.cpu.lower.dot_units import Sizes, unit_of
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm import compile as llvm_compile
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import LINUX, data_layout, host_target_machine, target_machine, to_object
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.object_loader import load_object
from tilework.targets.llvm.types import f32, ptr, void

AVX512 = ("avx512f", "avx512bw", "avx512vl", "avx512vnni", "avx2", "fma", "avx512bf16")
BFLOATS = HostTarget.of("x86_64", "cooperlake", AVX512)
TILES = HostTarget.of("x86_64", "emeraldrapids", (*AVX512, "amx-tile", "amx-bf16", "amx-int8", "amx-fp16"))
HALVES = HostTarget.of("x86_64", "sapphirerapids", (*AVX512, "avx512fp16"))
NEON = HostTarget.of("aarch64", "neoverse-n2", ("bf16", "dotprod", "fullfp16", "i8mm", "sve"))
TYPES: dict[Any, tuple[Any, Any, Any]] = {
    ml_dtypes.bfloat16: (ir.bf16, ir.f32, np.float32),
    np.float16: (ir.f16, ir.f32, np.float32),
    np.int8: (ir.i8, ir.i32, np.int32),
}


class TileRegisters:
    """AMX in NumPy (Intel SDM, volume 1, chapter 18): functions at addresses that machine code can call."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []
        self.data = np.zeros((8, 16, 64), np.uint8)
        byte, index, stride = ctypes.c_uint8, ctypes.c_void_p, ctypes.c_int64
        signatures = {"ldtilecfg": [index], "tilerelease": [], "tileloadd64": [byte, index, stride]}
        signatures |= {"tilestored64": [byte, index, stride], **dict.fromkeys(PRODUCTS, [byte] * 3)}
        members: dict[str, Callable[..., None]] = {name: getattr(self, name, None) for name in signatures}  # type: ignore[misc]
        members |= {name: lambda c, a, b, name=name: self.multiply(c, a, b, *PRODUCTS[name]) for name in PRODUCTS}
        self.functions = {name: ctypes.CFUNCTYPE(None, *signatures[name])(members[name]) for name in signatures}
        self.symbols = {f"tiles_{name}": ctypes.cast(self.functions[name], index).value for name in signatures}

    def ldtilecfg(self, address: int) -> None:
        data = ctypes.string_at(address, 64)
        assert data[0] == 1 and not any(data[1:16]), "palette 1, from the first row on"
        self.shapes = [(data[48 + tile], int.from_bytes(data[16 + 2 * tile :][:2], "little")) for tile in range(8)]
        assert all(rows <= 16 and size <= 64 for rows, size in self.shapes)
        self.data[:] = 0

    def tilerelease(self) -> None:
        self.shapes = []

    def tileloadd64(self, tile: int, address: int, stride: int) -> None:
        rows, size = self.shapes[tile]
        self.data[tile] = 0
        for row in range(rows):
            self.data[tile, row, :size] = np.frombuffer(ctypes.string_at(address + row * stride, size), np.uint8)

    def tilestored64(self, tile: int, address: int, stride: int) -> None:
        rows, size = self.shapes[tile]
        for row in range(rows):
            ctypes.memmove(address + row * stride, self.data[tile, row].tobytes(), size)

    def multiply(self, c: int, a: int, b: int, element: Any, total: Any) -> None:
        (rows, size), (left_rows, left_size), (depth, right_size) = (self.shapes[tile] for tile in (c, a, b))
        assert rows == left_rows and size == right_size and left_size == 4 * depth, "shapes that fit"
        left = self.data[a].view(element).reshape(16, 16, -1).astype(total)  # rows, groups of K, K
        right = self.data[b].view(element).reshape(16, 16, -1).astype(total)  # groups of K, columns, K
        sums = self.data[c].view(total)
        sums += np.einsum("rgk,gck->rc", left, right)


PRODUCTS = {
    "tdpbf16ps": (ml_dtypes.bfloat16, np.float32),
    "tdpfp16ps": (np.float16, np.float32),
    "tdpbssd": (np.int8, np.int32),
}


def groups(
    width: int, total: str, element: str, given: str, wider: tuple[str, str], operations: tuple[str, str]
) -> str:
    """The body of an instruction that adds as many products to each lane as elements fit in 32 bits; `wider` widens
    those of a and b."""
    lines, found, count = [], "%c", {"i8": 4}.get(element, 2)
    multiply, add = operations
    narrow = f"<{count * width} x {element}>"
    for side in range(count):
        lanes = ", ".join(f"i32 {count * lane + side}" for lane in range(width))
        for name, widen in zip("ab", wider, strict=True):
            lines += [
                f"%{name}{side} = shufflevector {narrow} %{name}x, {narrow} poison, <{width} x i32> <{lanes}>",
                *widened(f"%{name}w{side}", f"%{name}{side}", widen, width, element, total),
            ]
        lines += [
            f"%p{side} = {multiply} <{width} x {total}> %aw{side}, %bw{side}",
            f"%s{side} = {add} <{width} x {total}> {found}, %p{side}",
        ]
        found = f"%s{side}"
    casts = [f"%{name}x = bitcast {given} %{name} to {narrow}" for name in "ab"]
    return "\n".join([*casts, *lines, f"ret <{width} x {total}> {found}"])


def widened(made: str, value: str, widen: str, width: int, element: str, total: str) -> list[str]:
    """Lines that widen a vector. A bfloat is the upper half of a float: LLVM aborts on shuffles of vectors of
    bfloats."""
    if widen != "bfloat":
        return [f"{made} = {widen} <{width} x {element}> {value} to <{width} x {total}>"]
    words = f"<{width} x i32>"
    return [
        f"{made}z = zext <{width} x i16> {value} to {words}",
        f"{made}s = shl {words} {made}z, splat (i32 16)",
        f"{made} = bitcast {words} {made}s to <{width} x float>",
    ]


# the sum, what is multiplied, how a and b are widened, and what multiplies and adds
INTEGERS, FLOATS = ("mul", "add"), ("fmul", "fadd")
GROUPS = {
    "dpbf16ps": ("float", "i16", ("bfloat", "bfloat"), FLOATS),
    "vpdpwssd": ("i32", "i16", ("sext", "sext"), INTEGERS),
    "vpdpbusd": ("i32", "i8", ("zext", "sext"), INTEGERS),
}


def written_out(text: str) -> str:
    """`text` without instructions of x86 and what asks for them."""
    text = re.sub(r'"target-features"="[^"]*"', "", text).replace("bfloat", "i16")
    text = re.sub(r"@llvm\.x86\.(ldtilecfg|tile\w+|tdp\w+)", r"@tiles_\1", text)

    def define(match: re.Match[str]) -> str:
        name, bits = match[1], int(match[2])
        width = bits // 32
        total, element, wider, operations = next(row for suffix, row in GROUPS.items() if name.endswith(suffix))
        given = f"<{2 * width} x i16>" if total == "float" else f"<{width} x i32>"
        body = groups(width, total, element, given, wider, operations)
        return (
            f"define internal <{width} x {total}> @{name}.{bits}(<{width} x {total}> %c, {given} %a, "
            f"{given} %b) {{\n{body}\n}}"
        )

    text = re.sub(r"declare .* @llvm\.(x86\.avx512\S+)\.(\d+)\(.*", define, text)
    return text.replace("@llvm.x86.avx512", "@x86.avx512").replace("define internal void @dot", "define void @dot")


def execute(module: Module, name: str, *arrays: Any, symbols: Any = None) -> None:
    """Call a function of `module` on this machine, with the addresses of arrays."""
    library = load_object(to_object(written_out(module.text()), 0, host_target_machine()), [name], symbols or {})
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(library[name])(*(array.ctypes.data for array in arrays))


@pytest.mark.parametrize("shape", [(32, 64, 128), (8, 8, 16), (20, 24, 6), (48, 80, 64), (5, 9, 15)], ids=str)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: ELEMENTS[np.dtype(dtype)])
@pytest.mark.parametrize("target", [BFLOATS, TILES], ids=lambda target: target.cpu)
def test_products(target: HostTarget, dtype: Any, shape: tuple[int, int, int]) -> None:
    element, total, summed = TYPES[dtype]
    dot = Dot(2, *shape, element, element, total)
    plan = plan_of(target, dot)
    module = Module("other", data_layout=data_layout(host_target_machine()))
    emit_dot(module, target, dot, plan)
    registers = TileRegisters()
    rows, columns, depth = shape
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 10, size).astype(dtype) for size in ((2, rows, depth), (2, depth, columns)))
    c = random.integers(-9, 10, (2, rows, columns)).astype(summed)
    expected = c + a.astype(summed) @ b.astype(summed)
    execute(module, dot.name, a, b, c, np.zeros(plan.scratch_bytes + 64, np.uint8), symbols=registers.symbols)
    np.testing.assert_array_equal(c, expected)
    assert registers.shapes == [] and bool(plan.unit.tiles) == (target is TILES and depth % 4 == 0 and rows != 20)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.int8], ids=lambda dtype: ELEMENTS[np.dtype(dtype)])
@pytest.mark.parametrize("target", [BFLOATS, NEON], ids=lambda target: target.cpu)
def test_a_padded_operand_stays_in_its_memory(target: HostTarget, dtype: Any) -> None:
    """Rows of A are filled up with zeros to a multiple of what an instruction takes, and nothing behind the last is
    written."""
    element, total, _ = TYPES[dtype]
    dot = Dot(1, 32, 64, 65, element, element, total)
    plan = plan_of(target, dot)
    module = Module("other", data_layout=data_layout(host_target_machine()))
    function = module.function("prepare", void, [(ptr, "a"), (ptr, "scratch")])
    b = Builder(function)
    Emitter(b, target, dot, plan).prepare_left(*function.args)
    b.ret()
    a = np.random.default_rng(0).integers(-9, 10, (32, 65)).astype(dtype)
    scratch = np.full(plan.left_bytes + 1024, 0xA5, np.uint8)
    execute(module, "prepare", a, scratch)
    assert plan.depth > 65 and (scratch[plan.left_bytes :] == 0xA5).all()
    rows = scratch[: 32 * plan.depth * a.itemsize].view(a.dtype).reshape(32, plan.depth)
    np.testing.assert_array_equal(rows, np.pad(a, ((0, 0), (0, plan.depth - 65))))


def test_products_in_order_are_the_same_without_fma() -> None:
    dot = Dot(1, 5, 9, 33, ir.f32, ir.f32, ir.f32, in_order=True)
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float32) for shape in ((5, 33), (33, 9)))
    found: list[Any] = []
    for target in (HostTarget.of("x86_64", "x86-64-v2", ()), BFLOATS):
        plan = plan_of(target, dot)
        module = Module("other", data_layout=data_layout(host_target_machine()))
        emit_dot(module, target, dot, plan)
        found.append(np.zeros((5, 9), np.float32))
        execute(module, dot.name, a, b, found[-1], np.zeros(plan.scratch_bytes + 64, np.uint8))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("cpu", "features", "types", "instruction"),
    [
        ("haswell", ("avx2", "fma"), "i8 i32", r"vpmaddwd"),
        ("cascadelake", AVX512[:-1], "i8 i32", r"vpdpbusd"),
        ("cooperlake", AVX512, "bf16 f32", r"vdpbf16ps"),
        ("sapphirerapids", (*AVX512, "amx-tile", "amx-bf16"), "bf16 f32", r"tdpbf16ps"),
        ("sapphirerapids", (*AVX512, "amx-tile", "amx-int8"), "i8 i32", r"tdpbssd"),
        ("graniterapids", (*AVX512, "amx-tile", "amx-fp16"), "f16 f32", r"tdpfp16ps"),
        ("sapphirerapids", (*AVX512, "avx512fp16"), "f16 f16", r"vfmadd231ps\b.*zmm"),
        ("sapphirerapids", (*AVX512, "avx512fp16"), "f16 f32", r"vfmadd231ps\b.*zmm"),
        ("neoverse-n2", ("bf16", "i8mm", "dotprod"), "bf16 f32", r"bfmmla"),
        ("neoverse-n2", ("bf16", "i8mm", "dotprod"), "i8 i32", r"smmla"),
        ("neoverse-n1", ("dotprod",), "i8 i32", r"sdot"),
        ("neoverse-n1", ("fullfp16",), "f16 f16", r"fmla\s+v\d+\.4s"),
    ],
)
def test_the_instructions_of_named_cpus(cpu: str, features: tuple[str, ...], types: str, instruction: str) -> None:
    arch = "aarch64" if cpu.startswith("neoverse") else "x86_64"
    element, total = (getattr(ir, name) for name in types.split())
    machine = target_machine(LINUX.format(arch), cpu, ",".join(f"+{name}" for name in features))
    target, dot = HostTarget.of(arch, cpu, features), Dot(1, 32, 64, 64, element, element, total)
    module = Module("other", data_layout=data_layout(machine))
    emit_dot(module, target, dot, plan_of(target, dot))
    text = re.sub("target triple = .*", "", module.text())
    assert re.search(rf"^\s+{instruction}", machine.emit_assembly(parse_assembly(text)), re.MULTILINE)


@pytest.mark.parametrize("element", [ir.f16, ir.bf16, ir.f32], ids=str)
@pytest.mark.parametrize("total", [ir.f16, ir.bf16, ir.f32], ids=str)
def test_floats_are_summed_in_floats(element: Any, total: Any) -> None:
    for target in (BFLOATS, TILES, HALVES, NEON):
        for sizes in (Sizes(32, 64, 64), Sizes(5, 3, 7)):
            assert unit_of(target, sizes, element, element, total).sum is f32


@pytest.mark.parametrize("allowed", [True, False])
def test_tiles_are_used_where_the_process_may(allowed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_compile, "host_features", lambda: ("emeraldrapids", "+avx512f,+amx-tile,+amx-bf16"))
    monkeypatch.setattr(hosts, "may_use_tiles", lambda: allowed)
    found = hosts.detect.__wrapped__().features
    assert ({"amx-tile", "amx-bf16"} <= found) == allowed and "avx512f" in found
