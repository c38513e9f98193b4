"""The variables about LLVM: each has its effect on the host and on CUDA, or says that it has none."""

import json
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import IRSource, lower
from tilework.runtime.kernel_cache.key import cache_invalidating_env_vars
from tilework.targets.base import GPUTarget
from tilework.targets.llvm import compile as llvm_compile
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx

HOPPER, HOST = GPUTarget("cuda", 90, 32), GPUTarget("cpu", "host", 1)
LLIR = """
define ptx_kernel void @sum(ptr addrspace(1) %p, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %q = getelementptr float, ptr addrspace(1) %p, i32 %i
  %x = load float, ptr addrspace(1) %q
  %t = fadd float %s, %x
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  store float %t, ptr addrspace(1) %p
  ret void
}
"""
VARIABLES = (
    "LLVM_IR_ENABLE_DUMP", "LLVM_ENABLE_TIMING", "DISABLE_LLVM_OPT", "LLVM_PASS_PLUGIN_PATH",
    "TRITON_ENABLE_LLVM_DEBUG",
    "TRITON_LLVM_DEBUG_ONLY", "TRITON_DUMP_MIR",
)  # fmt: skip


@tilework.jit
def fill(p, BLOCK: tl.constexpr = 16):  # pyright: ignore[reportArgumentType]
    tl.store(p + tl.arange(0, BLOCK), 2.0)


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "sum.llir").write_text(LLIR)
    with knobs.cache.scope(), knobs.runtime.scope():
        knobs.cache.dir, knobs.runtime.device = str(tmp_path / "cache"), "native"
        yield
    fill.device_caches.clear()


def on_the_host(tmp_path: Path) -> None:
    fill.device_caches.clear()
    out = np.zeros(16, "f4")
    fill[(1,)](out)
    assert (out == 2).all()


def on_cuda(tmp_path: Path) -> str:
    return lower(IRSource(tmp_path / "sum.llir"), HOPPER, ["ptx"])["ptx"]


TARGETS = pytest.mark.parametrize(
    ("generate", "kernel"), [(on_the_host, "fill"), (on_cuda, "sum")], ids=["cpu", "cuda"]
)


@TARGETS
def test_6_14_llvm_ir_enable_dump(generate: Any, kernel: str, tmp_path: Path, monkeypatch: Any, capfd: Any) -> None:
    generate(tmp_path)
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("LLVM_IR_ENABLE_DUMP", "1")
    generate(tmp_path)
    printed = capfd.readouterr().err
    assert f"; *** LLVM IR of {kernel} ***" in printed and re.search(rf'define .*@"?{kernel}', printed)


@TARGETS
def test_6_14_llvm_enable_timing(generate: Any, kernel: str, tmp_path: Path, monkeypatch: Any, capfd: Any) -> None:
    monkeypatch.setenv("LLVM_ENABLE_TIMING", "1")
    generate(tmp_path)
    assert "Pass execution timing report" in (printed := capfd.readouterr().err) and "Instruction Selection" in printed
    monkeypatch.delenv("LLVM_ENABLE_TIMING")
    generate(tmp_path)
    assert capfd.readouterr().err == ""


@TARGETS
def test_6_14_triton_dump_mir(generate: Any, kernel: str, tmp_path: Path, monkeypatch: Any, capfd: Any) -> None:
    monkeypatch.setenv("TRITON_DUMP_MIR", str(tmp_path / "mir"))
    generate(tmp_path)
    (path,) = (tmp_path / "mir").iterdir()
    assert path.name == f"{kernel}.mir" and f"# Machine code for function {kernel}" in path.read_text()
    assert capfd.readouterr().err == ""
    monkeypatch.delenv("TRITON_DUMP_MIR")
    path.unlink()
    generate(tmp_path)
    assert not list((tmp_path / "mir").iterdir())


@TARGETS
def test_6_14_triton_enable_llvm_debug(
    generate: Any, kernel: str, tmp_path: Path, monkeypatch: Any, capfd: Any
) -> None:
    monkeypatch.setenv("TRITON_ENABLE_LLVM_DEBUG", "1")
    generate(tmp_path)
    assert len(capfd.readouterr().err) > 10_000
    monkeypatch.delenv("TRITON_ENABLE_LLVM_DEBUG")
    generate(tmp_path)
    assert capfd.readouterr().err == ""


def test_6_14_triton_llvm_debug_only(tmp_path: Path) -> None:
    """LLVM remembers the names for the rest of the process, so this one gets its own."""
    program = (
        "import sys; from tilework.compiler import IRSource, lower; from tilework.targets.base import GPUTarget;"
        "lower(IRSource(sys.argv[1]), GPUTarget('cuda', 90, 32), ['ptx'])"
    )
    environment = knobs.environment_without(()) | {"TRITON_LLVM_DEBUG_ONLY": "isel"}
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "sum.llir")],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert "Initial selection DAG: %bb.0 'sum:entry'" in done.stderr and "SLSR on Function" not in done.stderr


def test_6_14_disable_llvm_opt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    optimised = on_cuda(tmp_path)
    monkeypatch.setenv("DISABLE_LLVM_OPT", "1")
    plain = on_cuda(tmp_path)
    assert plain != optimised and plain.count("mov.b32") > optimised.count("mov.b32")
    on_the_host(tmp_path)
    monkeypatch.setenv("DISABLE_LLVM_OPT", "0")
    assert on_cuda(tmp_path) == optimised


def test_6_14_disable_llvm_opt_with_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(llvm_compile.llvm, "set_option", lambda name, option: seen.append(option))
    llvm_compile.set_switch.cache_clear()
    monkeypatch.setenv("DISABLE_LLVM_OPT", "disable-lsr, -disable-cgp")
    assert [llvm_compile.optimisation_level(2) for _ in range(2)] == [2, 2]
    assert seen == ["-disable-lsr", "-disable-cgp"]
    monkeypatch.setenv("DISABLE_LLVM_OPT", "disable lsr; rm")
    with pytest.raises(ValueError, match="DISABLE_LLVM_OPT is 1 or names of LLVM's switches"):
        llvm_compile.optimisation_level(2)
    llvm_compile.set_switch.cache_clear()


@TARGETS
def test_6_14_llvm_pass_plugin_path_has_no_effect_and_says_so_once(
    generate: Any, kernel: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("LLVM_PASS_PLUGIN_PATH", f"/plugin/for/{kernel}.so")
    llvm_compile.warn_plugin.cache_clear()
    with pytest.warns(UserWarning, match=rf"LLVM_PASS_PLUGIN_PATH=/plugin/for/{kernel}.so has no effect.*llvmlite"):
        generate(tmp_path)
    fill.device_caches.clear()
    knobs.cache.dir = str(tmp_path / "second")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generate(tmp_path)


@pytest.mark.parametrize("variable", VARIABLES)
def test_6_14_they_are_part_of_the_cache_key(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache_invalidating_env_vars()
    monkeypatch.setenv(variable, "1")
    assert cache_invalidating_env_vars() == before | {variable: "true"}
    assert json.dumps(before) != json.dumps(cache_invalidating_env_vars())


PRODUCTS = """
define ptx_kernel void @products(ptr addrspace(1) %p, i32 %x, i32 %n) {
  %a = mul i32 %x, %n
  store i32 %a, ptr addrspace(1) %p
  %y = add i32 %x, 1
  %b = mul i32 %y, %n
  %q = getelementptr i32, ptr addrspace(1) %p, i32 1
  store i32 %b, ptr addrspace(1) %q
  ret void
}
"""


def test_the_guard_against_poison_is_off_for_our_own_text_and_on_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = '; tilework: {"fp_contract": "explicit"}' + PRODUCTS
    to_ptx(ours, PtxSettings("sm_90a", 86))  # its code generator is made once, with another switch
    said: list[str] = []
    change = llvm_compile.llvm.set_option
    monkeypatch.setattr(llvm_compile.llvm, "set_option", lambda name, text: (said.append(text), change(name, text)))
    other = to_ptx(PRODUCTS, PtxSettings("sm_90a", 86))
    assert not said
    own = to_ptx(ours, PtxSettings("sm_90a", 86))
    assert said == ["-enable-poison-reuse-guard=false", "-enable-poison-reuse-guard=true"]
    assert own == other and len(re.findall(r"\tm(?:ul|ad)\.lo", own)) == 1
