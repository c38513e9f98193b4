"""Names beyond ASCII, of kernels, functions, parameters, variables and classes: every Python identifier is one here."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
import tilework.profiler as proton
from tilework.aot.c_files import CompileArgs, compile_kernel
from tilework.compiler import ASTSource, compile
from tilework.errors import CompilationError
from tilework.inspect.replay import DEVICES, Launch, run_on
from tilework.language.function import ascii_symbol
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.pipeline import assembler


@tilework.jit(noinline=True)
def hilfs_größe(ä):
    return ä + 1


@tilework.jit
def größe(ärray, Länge, 幅: tl.constexpr):
    行 = tl.arange(0, 幅)
    Σ = 0
    for номер in range(Länge):
        Σ += hilfs_größe(номер)
    tl.device_assert(Σ >= 0, "größer als 0")
    tl.store(ärray + 行, 行 * 2 + Σ, mask=行 < Länge)


class Zähler:
    @tilework.jit
    def 核(出, n, B: tl.constexpr):
        tl.store(出 + tl.arange(0, B), n)  # pyright: ignore[reportOperatorIssue]


KERNELS = {größe: [6, 8, 10, 0], Zähler.核: [3, 3, 3, 3]}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__)
def test_names_beyond_ascii_run_everywhere(kernel: Any, device: str) -> None:
    out = np.zeros(4, np.int32)
    compiled = run_on(device, Launch(kernel, (out, 3, 4), (1, 1, 1), {"debug": True}))
    assert out.tolist() == KERNELS[kernel]
    if compiled is not None:
        assert compiled.name == ascii_symbol(kernel.__name__) and compiled.src.name == kernel.__name__


def test_symbols_are_ascii_in_code() -> None:
    assert (
        ascii_symbol("größe") == "gr_u00f6__u00df_e"
        and ascii_symbol("核") == "_u6838_"
        and ascii_symbol("a_1") == "a_1"
    )
    source = ASTSource(größe, {"ärray": "*i32", "Länge": "i32"}, {"幅": 4})
    for target, stage in (("cuda:90", "ptx"), ("hip:gfx942", "amdgcn")):
        text = compile(source, GPUTarget.parse(target)).asm[stage]
        assert re.search(r"\bgr_u00f6__u00df_e\b", text)
        code = [
            line for line in text.splitlines() if not line.lstrip().startswith((".file", ".ascii", ".byte", "//", ";"))
        ]
        assert "\n".join(code).isascii()
    if assembler(90) is not None:
        assert compile(source, GPUTarget.parse("cuda:90")).asm["cubin"].startswith(b"\x7fELF")


@pytest.mark.parametrize("name", ["a b", "1a", "a-b", "größe!", "a<1>"])
def test_what_is_no_identifier_is_refused_at_the_kernel(name: str) -> None:
    kernel = tilework.jit(repr=lambda _: name)(größe.fn)
    with pytest.raises(CompilationError, match=re.escape(f"invalid kernel name {name!r}")):
        kernel.warmup(np.zeros(4, np.int32), 3, 4, grid=(1,))


def test_kernels_of_c_programs_have_names_of_c(tmp_path: Path) -> None:
    for target in ("cpu", "cuda:90:32"):
        path, base = __file__, tmp_path / target.partition(":")[0]
        args = CompileArgs(path, "größe", "*i32, i32, 4", target=target, grid="Länge, 1, 1", out_path=base)
        function, files = compile_kernel(args)
        header = next(file for file in files if file.suffix == ".h").read_text(encoding="utf-8")
        assert function.startswith("gr_u00f6__u00df_e_") and function in header and "L_u00e4_nge" in header
        if target == "cpu" and (compiler := shutil.which("cc")) is not None:
            subprocess.run([compiler, "-std=c99", "-fsyntax-only", "-x", "c", "-"], input=header.encode(), check=True)


def test_profiles_show_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    proton.start("profil")
    größe[(1,)](np.zeros(4, np.int32), 3, 4)
    proton.finalize()
    assert ascii_symbol("größe") in Path("profil.hatchet").read_text()
