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
from tilework.targets.base import GPUTarget
from tilework.targets.cpu.lower import codegen
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.compile import initialize_all

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
