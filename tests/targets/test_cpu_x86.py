"""Code for x86 machines that are not here: it assembles, and asks for nothing that a process does not have."""

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.test_cpu_nests import INDICES, MASKS, copy_kernel
from tilework.compiler import ASTSource, lower
from tilework.ir.parser import parse_module
from tilework.numerics.rounding import canonical
from tilework.targets.base import GPUTarget
from tilework.targets.cpu.lower import codegen
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.compile import initialize_all
from tilework.targets.llvm.math.in_numpy import compute

MACHINES = {
    "haswell": ("", {"avx2", "fma", "f16c"}),
    "skylake-avx512": ("", {"avx512f", "avx512bw", "avx512vl", "avx2", "fma", "f16c"}),
    "emeraldrapids": ("-avx512bf16", {"avx512f", "avx512bw", "avx512vl", "avx2", "fma", "f16c"}),
}


@pytest.mark.parametrize("size", (1, 3, 64))
@pytest.mark.parametrize("type", ("bf16", "f16", "f32", "i8"))
@pytest.mark.parametrize("cpu", MACHINES)
def test_no_function_of_the_c_library_is_called(cpu: str, type: str, size: int) -> None:
    initialize_all()
    features, present = MACHINES[cpu]
    module = parse_module(copy_kernel(type, size, INDICES["contiguous"][0], MASKS["prefix"][0], other="x"))
    text = codegen.emit_module(module, HostTarget.of("x86_64", cpu, present, 2))
    text = re.sub(r"target (triple|datalayout) = .*", "", text)
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(
        cpu=cpu, features=features, opt=2
    )
    assembly = machine.emit_assembly(llvm.parse_assembly(text))
    wanted = set(re.findall(r"\b(__\w+)", assembly))
    defined = set(re.findall(r"^(__\w+):", assembly, re.MULTILINE))
    assert wanted <= defined


@tilework.jit
def doubled(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n, cache_modifier=".cs")


def test_stores_past_the_caches_are_ordered_and_right_wherever_they_begin() -> None:
    initialize_all()
    source = ASTSource(doubled, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"B": 1024})
    module = parse_module(str(lower(source, GPUTarget("cpu", "host", 1), ["ttcir"])["ttcir"]))
    text = codegen.emit_module(module, HostTarget.of("x86_64", "haswell", MACHINES["haswell"][1], 2))
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine(cpu="haswell", opt=2)
    assembly = machine.emit_assembly(llvm.parse_assembly(re.sub(r"target (triple|datalayout) = .*", "", text)))
    assert "vmovntps" in assembly and assembly.rindex("sfence") > assembly.rindex("vmovntps")
    x, out = np.arange(1000, dtype=np.float32), np.zeros(1024, np.float32)
    for start in (0, 1):
        doubled[(1,)](x, out[start:], 999, 1024)
        np.testing.assert_array_equal(out[start : start + 1000], [*(2 * x[:999]), 0])
        out[:] = 0


@tilework.jit
def powers(x, out, KIND: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    value = tl.load(x + i)
    tl.store(out + i, tl.exp2(value) if KIND == "exp2" else tl.exp(value))


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize("kind", ("exp", "exp2"))
def test_powers_that_one_instruction_scales_have_the_bits_of_the_formulas(kind: str, dtype: type) -> None:
    random = np.random.default_rng(0)
    low, high = (-110.0, 95.0) if dtype is np.float32 else (-760.0, 715.0)
    edges = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, low, high, -103.97, -87.4, -150.0, -149.0, -1075.0, 128.0])
    generated = np.concatenate([edges, random.uniform(low, high, 2000 - len(edges)), random.standard_normal(48)])
    x, out = (generated * (1.45 if kind == "exp2" else 1.0)).astype(dtype), np.zeros(2048, dtype)
    powers[(1,)](x, out, kind, 2048)
    np.testing.assert_array_equal(canonical(out).view(np.uint8), canonical(compute(kind, x)).view(np.uint8))


@tilework.jit
def normalised(x, out, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.load(x + i)
    e = tl.exp(row - tl.max(row))
    tl.store(out + i, e / tl.sum(e))


@pytest.mark.parametrize(("cpu", "fetched"), (("haswell", 0), ("skylake-avx512", 3)))
def test_rows_are_fetched_before_they_are_read_and_stored_to(cpu: str, fetched: int) -> None:
    """By the loop that reads them, that which stores, and that which computes between the two."""
    source = ASTSource(normalised, {"x": "*fp32", "out": "*fp32"}, {"B": 4096})
    module = parse_module(str(lower(source, GPUTarget("cpu", "host", 1), ["ttcir"])["ttcir"]))
    text = codegen.emit_module(module, HostTarget.of("x86_64", cpu, MACHINES[cpu][1], 2))
    assert text.count("call void @llvm.prefetch") == 2 * fetched  # two cache lines in each
    x, out = np.random.default_rng(0).standard_normal((2, 4096)).astype(np.float32), np.zeros((2, 4096), np.float32)
    normalised[(2,)](x, out, 4096)
    np.testing.assert_allclose(out, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)
