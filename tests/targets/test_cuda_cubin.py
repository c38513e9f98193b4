"""PTX to a cubin, with a ptxas that is none where that is enough; and the stages around it."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tilework
import tilework.language as tl
from tests.targets.cuda_tools import (
    SASS,
    arguments_of,
    fake_disassembler,
    fake_ptxas,
    needs_disassembler,
    needs_ptxas,
    no_tools,
    program,
)
from tilework import knobs
from tilework.compiler import ASTSource, IRSource, compile, lower
from tilework.errors import PTXASError, StageError
from tilework.targets.base import GPUTarget, find_backend
from tilework.targets.nvidia import cubin, ptx_text
from tilework.targets.nvidia.cubin import tabulate, waiting
from tilework.tools.cli import main

HOPPER, BLACKWELL = GPUTarget("cuda", 90, 32), GPUTarget("cuda", 100, 32)
PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 p, .param .u64 scratch)
.reqntid 64
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  st.global.u32 [%rd1], 5;
  ret;
}
"""


@tilework.jit
def add(p):
    tl.store(p, 5)


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with knobs.cache.scope(), knobs.nvidia.scope(), knobs.compilation.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.cache.dump_dir, knobs.cache.override_dir = str(tmp_path / "dump"), str(tmp_path / "override")
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
        (tmp_path / "temporary").mkdir()
        yield
        assert not list((tmp_path / "temporary").iterdir())  # nothing is left behind, whatever happened


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every kernel is assembled by the fake ptxas."""
    path = fake_ptxas(tmp_path)
    monkeypatch.setenv("TRITON_PTXAS_PATH", path)
    return path


def file(tmp_path: Path, text: str = PTX, name: str = "add.ptx") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def arguments(tmp_path: Path, target: GPUTarget = HOPPER, **options: Any) -> list[str]:
    """The arguments of the call of ptxas."""
    return arguments_of(lower(IRSource(file(tmp_path)), target, ["cubin"], **options)["cubin"])


def python_kernel() -> ASTSource:
    return ASTSource(add, {"p": "*i32"}, {})


# -- the command line of ptxas ---------------------------------------------------------------------------------------


def test_6_8_a_cubin(tmp_path: Path, fake: str) -> None:
    kernel = compile(file(tmp_path), HOPPER)
    assert list(kernel.asm) == ["source", "ptx", "cubin"] and kernel.metadata.binary_ext == "cubin"
    assert isinstance(kernel.asm["cubin"], bytes) and kernel.kernel == kernel.asm["cubin"]
    assert kernel.asm["ptx"] == PTX == json.loads(kernel.asm["cubin"])["text"]
    assert (kernel.name, kernel.metadata.num_warps) == ("add", 2)
    assert {"add.ptx", "add.cubin", "add.json"} <= set(kernel.metadata_group)
    again = compile(file(tmp_path), HOPPER)
    assert again.hash == kernel.hash and again.asm["cubin"] == kernel.asm["cubin"]


def test_arguments_of_ptxas(tmp_path: Path, fake: str) -> None:
    assert arguments(tmp_path) == ["-lineinfo", "-v", "--gpu-name=sm_90a"]
    assert arguments(tmp_path, arch="sm80") == ["-lineinfo", "-v", "--gpu-name=sm_80"]
    assert arguments(tmp_path, enable_fp_fusion=False) == ["-lineinfo", "--fmad=false", "-v", "--gpu-name=sm_90a"]


def test_6_14_disable_ptxas_opt(tmp_path: Path, fake: str) -> None:
    knobs.nvidia.disable_ptxas_opt = True
    assert arguments(tmp_path) == ["-g", "-v", "--opt-level", "0", "--gpu-name=sm_90a"]


def test_6_14_disable_line_info(tmp_path: Path, fake: str) -> None:
    knobs.compilation.disable_line_info = True
    assert arguments(tmp_path) == ["-suppress-debug-info", "-v", "--gpu-name=sm_90a"]


def test_6_7_ptx_options_and_6_14_ptxas_options(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = compile(file(tmp_path), HOPPER)
    monkeypatch.setenv("PTXAS_OPTIONS", "-O1 --warn-on-spills")
    assert arguments(tmp_path) == ["-lineinfo", "-v", "-O1", "--warn-on-spills", "--gpu-name=sm_90a"]
    assert find_backend(HOPPER).parse_options({}).ptx_options == "-O1 --warn-on-spills"
    assert compile(file(tmp_path), HOPPER).hash != plain.hash
    given = arguments(tmp_path, ptx_options="--maxrregcount 32 --name 'a b'")
    assert given == ["-lineinfo", "-v", "--maxrregcount", "32", "--name", "a b", "--gpu-name=sm_90a"]


def test_6_14_ptxas_and_ptxas_blackwell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PTXAS_PATH", fake_ptxas(tmp_path, "12.4"))
    monkeypatch.setenv("TRITON_PTXAS_BLACKWELL_PATH", fake_ptxas(tmp_path, "12.9"))
    source = IRSource(file(tmp_path))

    def release(target: GPUTarget, **options: Any) -> str:
        return json.loads(lower(source, target, ["cubin"], **options)["cubin"])["release"]

    assert release(HOPPER) == release(GPUTarget("cuda", 80, 32)) == release(BLACKWELL, arch="sm90") == "12.4"
    assert release(BLACKWELL) == release(GPUTarget("cuda", 120, 32)) == release(HOPPER, arch="sm100") == "12.9"


def test_6_14_mock_ptx_version_and_the_tools_are_in_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def identity(ptxas: str | None, mock: str | None = None) -> str:
        with no_tools(monkeypatch, tmp_path), monkeypatch.context() as patch:
            if ptxas is not None:
                patch.setenv("TRITON_PTXAS_PATH", fake_ptxas(tmp_path, ptxas))
            if mock is not None:
                patch.setenv("TRITON_MOCK_PTX_VERSION", mock)
            return find_backend(HOPPER).hash()

    found = [identity(None), identity("12.4"), identity("12.9"), identity("12.9", "77.7"), identity(None, "77.8")]
    assert (
        len(set(found)) == 5 and identity("12.4", "77.7") == identity(None, "77.7") and "77.7" in identity(None, "77.7")
    )
    assert find_backend(BLACKWELL).hash() != find_backend(HOPPER).hash()


def test_the_driver_that_assembles_is_in_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version of PTX is the newest that the driver reads, and a machine with an older one may share the cache."""

    def identity(driver: str | None) -> str:
        monkeypatch.setattr(ptx_text, "driver_release", lambda: driver)
        return find_backend(HOPPER).hash()

    with no_tools(monkeypatch, tmp_path):
        assert len({identity("13.0"), identity("12.4"), identity(None)}) == 3
    with monkeypatch.context() as patch:
        patch.setenv("TRITON_PTXAS_PATH", fake_ptxas(tmp_path, "12.9"))
        assert identity("13.0") == identity("12.4")


def test_6_14_dump_ptxas_log(tmp_path: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments(tmp_path)
    assert "ptxas info" not in capsys.readouterr().out
    knobs.nvidia.dump_ptxas_log = True
    arguments(tmp_path)
    assert "ptxas info    : Compiling entry function of add.ptx" in capsys.readouterr().out


def test_slow_code_is_remarked(tmp_path: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = IRSource(file(tmp_path, PTX + "// slow\n"))
    lower(source, HOPPER, ["cubin"])
    assert capsys.readouterr().err == ""
    knobs.compilation.performance_remarks = True
    lower(source, HOPPER, ["cubin"])
    assert capsys.readouterr().err.startswith("add: remark: ptxas info    : (C7511)")


# -- when ptxas fails ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("fail", "`ptxas` failed with error code 255 for the kernel add"),
        ("unknown", "`ptxas` failed with error code 255 for the kernel add"),
        ("crash", "`ptxas` was killed by SIGSEGV for the kernel add"),
        ("killed", r"`ptxas` was killed by SIGKILL \(out of memory\?\) for the kernel add"),
        ("nothing", "`ptxas` wrote no cubin for the kernel add"),
    ],
)
def test_6_8_assembler_failure_is_a_ptxas_error(word: str, message: str, tmp_path: Path, fake: str) -> None:
    with pytest.raises(PTXASError, match=f"^PTXAS error: {message}\n") as caught:
        compile(file(tmp_path, f"{PTX}// {word}\n"), HOPPER)
    text = str(caught.value)
    assert "ptxas info    : Compiling entry function of add.ptx" in text
    command = re.search(r"Repro command: (.*)", text)
    assert command is not None
    assert shlex.split(command[1]) == [fake, "-lineinfo", "-v", "--gpu-name=sm_90a", "add.ptx", "-o", "add.cubin"]
    assert ("Not a name of any known instruction" in text) is (word == "fail")
    assert ("this ptxas knows no sm_90a: TRITON_PTXAS_PATH" in text) is (word == "unknown")


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_ptxas_that_takes_too_long(has_pidfd: bool, tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    knobs.nvidia.ptxas_timeout = 0.2
    with pytest.raises(
        PTXASError, match=r"(?s)`ptxas` did not finish.*stopped after 0.2 seconds \(TILEWORK_PTXAS_TIMEOUT\)"
    ):
        compile(file(tmp_path, f"{PTX}// hang\n"), HOPPER)
    assert not processes_of(fake)


def processes_of(path: str) -> list[str]:
    """The processes that run a program."""
    listed = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if path in line]


def test_an_interrupt_ends_ptxas_too(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(process: Any, limit: float) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cubin, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile(file(tmp_path, f"{PTX}// hang\n"), HOPPER)
    assert not processes_of(fake)


def test_a_ptxas_that_is_gone(tmp_path: Path, fake: str) -> None:
    assert arguments(tmp_path)
    Path(fake).unlink()
    with pytest.raises(PTXASError, match="cannot be started"):
        arguments(tmp_path)


def test_6_12_a_failing_configuration_is_skipped() -> None:
    from tilework.runtime.tuning import autotuner

    assert PTXASError in autotuner.SKIPPED and issubclass(PTXASError, tilework.errors.TritonError)


# -- machines without ptxas ------------------------------------------------------------------------------------------


def test_without_ptxas_the_driver_gets_ptx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    with no_tools(monkeypatch, tmp_path):
        kernel = compile(file(tmp_path), HOPPER)
        assert kernel.metadata.binary_ext == "ptx" and kernel.kernel == PTX and list(kernel.asm) == ["source", "ptx"]
        missing = r"Cannot find ptxas: install nvidia-cuda-nvcc \(pip\), or set TRITON_PTXAS_PATH to its path"
        with pytest.raises(RuntimeError, match=missing):
            lower(IRSource(file(tmp_path)), HOPPER, ["cubin"])
        with pytest.raises(RuntimeError, match=r"Cannot find ptxas-blackwell: .*TRITON_PTXAS_BLACKWELL_PATH"):
            lower(IRSource(file(tmp_path)), BLACKWELL, ["cubin"])
        assert main(["compile", file(tmp_path), "--target", "cuda:90", "--emit", "ptx,cubin", "-o", str(tmp_path)]) == 1
        assert re.search(missing, capsys.readouterr().err)


def test_with_and_without_ptxas_are_two_entries(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compile(file(tmp_path), HOPPER)
    with no_tools(monkeypatch, tmp_path):
        second = compile(file(tmp_path), HOPPER)
    third = compile(file(tmp_path), HOPPER)
    assert first.hash == third.hash != second.hash
    assert [kernel.metadata.binary_ext for kernel in (first, second, third)] == ["cubin", "ptx", "cubin"]


# -- kernels in Python -----------------------------------------------------------------------------------------------


def test_a_kernel_in_python_ends_as_a_cubin(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = compile(python_kernel(), HOPPER)
    assert list(kernel.asm) == ["source", "ttir", "ttgir", "llir", "ptx", "cubin"]
    assert kernel.metadata.binary_ext == "cubin" and kernel.metadata.num_warps == 4 and kernel.name == "add"
    assert kernel.asm["llir"].startswith('; tilework: {"fp_contract": "explicit", "shared": 0}')
    with no_tools(monkeypatch, tmp_path):
        assert compile(python_kernel(), HOPPER).metadata.binary_ext == "ptx"


def test_6_7_ir_override_with_ptx(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(tmp_path, name="mine.ptx")
    kernel = compile(python_kernel(), HOPPER, {"ir_override": path})
    assert list(kernel.asm) == ["source", "ttir", "ttgir", "llir", "ptx", "cubin"] and kernel.asm["ptx"] == PTX
    assert json.loads(kernel.asm["cubin"])["text"] == PTX and kernel.metadata.num_warps == 2 and kernel.name == "add"
    Path(path).write_text(PTX.replace("add", "other"))
    changed = compile(python_kernel(), HOPPER, {"ir_override": path})
    assert changed.hash != kernel.hash and changed.name == "other"
    with no_tools(monkeypatch, tmp_path):
        assert compile(python_kernel(), HOPPER, {"ir_override": path}).metadata.binary_ext == "ptx"


def test_6_7_ir_override_with_llir_and_cubin(tmp_path: Path, fake: str) -> None:
    llir = 'define ptx_kernel void @add(ptr addrspace(1) %p) "nvvm.reqntid"="32" {\n  ret void\n}\n'
    kernel = compile(python_kernel(), HOPPER, {"ir_override": file(tmp_path, llir, "mine.llir")})
    assert list(kernel.asm) == ["source", "ttir", "ttgir", "llir", "ptx", "cubin"] and kernel.asm["llir"] == llir
    assert ".visible .entry add" in kernel.asm["ptx"] and kernel.metadata.num_warps == 1
    (tmp_path / "mine.cubin").write_bytes(b"\x7fELF")
    kernel = compile(python_kernel(), HOPPER, {"ir_override": str(tmp_path / "mine.cubin")})
    assert list(kernel.asm) == ["source", "ttir", "ttgir", "llir", "ptx", "cubin"]
    assert kernel.asm["cubin"] == b"\x7fELF" == kernel.kernel


@pytest.mark.filterwarnings("ignore:TRITON_KERNEL_DUMP wrote no sass")
def test_6_14_override_with_ptx(tmp_path: Path, fake: str, capsys: pytest.CaptureFixture[str]) -> None:
    knobs.compilation.dump_ir = True
    compile(python_kernel(), HOPPER)
    (dumped,) = (tmp_path / "dump").rglob("add.ttgir")
    folder = tmp_path / "override" / dumped.parent.name
    folder.mkdir(parents=True)
    (folder / "add.ptx").write_text(PTX)
    knobs.compilation.dump_ir, knobs.compilation.override, knobs.compilation.always_compile = False, True, True
    kernel = compile(python_kernel(), HOPPER)
    assert kernel.asm["ptx"] == PTX and kernel.metadata.binary_ext == "cubin"
    assert f"\nOverriding kernel with file {folder / 'add.ptx'}\n" in capsys.readouterr().out


# -- 6.14 dumps, 6.8 sass --------------------------------------------------------------------------------------------


def dumped_files(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "dump").rglob("add.*")}


def test_6_14_dump_ir_plus_sass(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    knobs.compilation.dump_ir = True
    monkeypatch.setenv("TRITON_NVDISASM_PATH", fake_disassembler(tmp_path))
    compile(file(tmp_path), HOPPER)
    assert dumped_files(tmp_path) == {"add.ptx", "add.cubin", "add.sass"}
    (sass,) = (tmp_path / "dump").rglob("add.sass")
    assert sass.read_text() == SASS


def test_6_14_dump_ir_without_a_disassembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    knobs.compilation.dump_ir = True
    with no_tools(monkeypatch, tmp_path):
        monkeypatch.setenv("TRITON_PTXAS_PATH", fake_ptxas(tmp_path))
        with pytest.warns(
            UserWarning, match="TRITON_KERNEL_DUMP wrote no sass of add: sass needs nvdisasm or cuobjdump"
        ):
            compile(file(tmp_path), HOPPER)
        monkeypatch.delenv("TRITON_PTXAS_PATH")
    assert dumped_files(tmp_path) == {"add.ptx", "add.cubin"}


def test_6_14_store_binary_only(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    knobs.compilation.store_binary_only = True
    monkeypatch.setenv("TRITON_NVDISASM_PATH", fake_disassembler(tmp_path))
    kernel = compile(file(tmp_path), HOPPER)
    stored = {path.name for path in (tmp_path / "cache").rglob("*add*")}
    assert stored == {"add.cubin", "add.json", "__grp__add.json"}
    assert list(kernel.asm) == ["cubin"] and kernel.asm["sass"] == SASS


@pytest.mark.parametrize("tool", ["nvdisasm", "cuobjdump"])
def test_6_8_sass_is_computed_on_first_access(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_tools(monkeypatch, tmp_path), monkeypatch.context() as patch:
        patch.setenv("TRITON_PTXAS_PATH", fake_ptxas(tmp_path))
        kernel = compile(file(tmp_path), HOPPER)
        assert "sass" in kernel.asm and "sass" not in list(kernel.asm)
        with pytest.raises(
            StageError, match=r"nvdisasm or cuobjdump, and neither is on this machine.*TRITON_NVDISASM_PATH"
        ):
            kernel.asm["sass"]
        path = fake_disassembler(tmp_path, tool)
        patch.setenv(f"TRITON_{tool.upper()}_PATH", path)
        assert kernel.asm["sass"] == SASS
        Path(path).unlink()
        assert kernel.asm["sass"] == SASS  # it is kept
        with pytest.raises(KeyError):
            kernel.asm["amdgcn"]


def test_6_8_a_disassembler_that_fails(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        f"#!{sys.executable} -S\nimport sys\nif '--version' in sys.argv:\n  print('release 12.8,')\nelse:\n"
        "  sys.exit('no ELF file')\n"
    )
    monkeypatch.setenv("TRITON_NVDISASM_PATH", program(tmp_path / "broken", text))
    with pytest.raises(StageError, match=r"(?s)broken -c -hex cannot show the cubin:\nno ELF file"):
        compile(file(tmp_path), HOPPER).asm["sass"]


def test_control_bits() -> None:
    assert waiting(0x000FE20000000800) == "--:-:-:-:1" and waiting(0x000E2E0000002100) == "--:-:0:-:7"
    assert waiting(0x001FC800078EC0FF) == "01:-:-:Y:4" and waiting(0x042FE200078E0202) == "02:-:-:-:1"
    assert tabulate("nvdisasm fatal") == "" and tabulate("\t\tFunction : empty\n") == ""


def test_the_command_line(tmp_path: Path, fake: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("TRITON_NVDISASM_PATH", fake_disassembler(tmp_path))
    out = tmp_path / "out"
    assert main(["compile", file(tmp_path), "--target", "cuda:90", "--emit", "ptx,cubin,sass", "-o", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {"add.ptx", "add.cubin", "add.sass"}
    assert (out / "add.sass").read_text() == SASS and (out / "add.ptx").read_text() == PTX
    capsys.readouterr()
    assert main(["compile", file(tmp_path), "--target", "cuda:90", "--emit", "sass"]) == 0
    assert capsys.readouterr().out == SASS
    monkeypatch.chdir(tmp_path)
    assert main(["compile", file(tmp_path), "--target", "cuda:90", "--emit", "cubin"]) == 0
    assert capsys.readouterr().err == "add.cubin\n" and (tmp_path / "add.cubin").is_file()
    assert main(["compile", file(tmp_path, f"{PTX}// fail\n"), "--emit", "cubin", "-o", str(out)]) == 1
    assert capsys.readouterr().err.startswith("tilework compile: PTXAS error: `ptxas` failed")


# -- the real programs -----------------------------------------------------------------------------------------------


@needs_ptxas
def test_ptxas_assembles() -> None:
    text = (
        "define ptx_kernel void @real(ptr addrspace(1) %p, float %x) {\n"
        "  %y = fmul float %x, %x\n  %z = fadd float %y, %x\n  store float %z, ptr addrspace(1) %p\n  ret void\n}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "real.llir")
        path.write_text(text)
        for capability in (80, 90, 100):
            cubin = lower(IRSource(path), GPUTarget("cuda", capability, 32), ["cubin"])["cubin"]
            assert cubin.startswith(b"\x7fELF") and b".text.real" in cubin


@needs_ptxas
@pytest.mark.parametrize(("knob", "smaller"), [("disable_line_info", True), ("disable_ptxas_opt", False)])
def test_ptxas_accepts_our_options(knob: str, smaller: bool, tmp_path: Path) -> None:
    text = PTX.replace("  ld.param", "  .loc 1 3 1\n  ld.param") + '.file 1 "kernel.py"\n'
    plain = lower(IRSource(file(tmp_path, text)), HOPPER, ["cubin"])["cubin"]
    group = knobs.compilation if knob == "disable_line_info" else knobs.nvidia
    setattr(group, knob, True)
    assert (len(lower(IRSource(file(tmp_path, text)), HOPPER, ["cubin"])["cubin"]) < len(plain)) is smaller


@needs_ptxas
def test_ptxas_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(
        PTXASError,
        match=r"(?s)kernel add.*line 9; (error|fatal).*Repro command: .*ptxas -lineinfo -v --gpu-name=sm_90a add.ptx",
    ):
        compile(file(tmp_path, PTX.replace("st.global", "st.globe")), HOPPER)
    with pytest.raises(PTXASError, match=r"(?s)Unknown option '-foo'.*Repro command: .*--foo"):
        compile(file(tmp_path), HOPPER, {"ptx_options": "--foo"})


@needs_disassembler
def test_nvdisasm_shows_the_cubin(tmp_path: Path) -> None:
    text = compile(file(tmp_path), HOPPER).asm["sass"]
    assert text.startswith("Function:add\n") and re.search(r"^[-\d:Ya-f]+\tSTG\.E", text, re.MULTILINE)


def test_races_are_not_looked_for_on_gpus(fake: str) -> None:
    with pytest.raises(ValueError, match=r'sanitize="race" .* not on cuda:90: set TILEWORK_DEVICE=native'):
        compile(python_kernel(), HOPPER, {"sanitize": "race"})
