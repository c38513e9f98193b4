"""LLVM text to PTX: what options and environment decide, what is refused, and that the result computes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.cuda_tools import fake_ptxas, forget, needs_libdevice, no_tools
from tilework import knobs
from tilework.compiler import ASTSource, IRSource, compile, lower
from tilework.errors import StageError
from tilework.oracles.emulator.device import Device
from tilework.targets.base import GPUTarget, find_backend
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import f16, f32, i64, vector, void
from tilework.targets.nvidia import ptx as ptx_stage
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower import inline_ptx
from tilework.targets.nvidia.ptx import kernel_name, with_fusion
from tilework.targets.nvidia.ptx_text import KNOWN, LOWEST, chosen_version, cpu_name, ptx_of_cuda, written_version
from tilework.tools.cli import main

HOPPER = GPUTarget("cuda", 90, 32)
# out[i] = x[i] * y[i] + x[i] for the threads of one block
FMA = """
define ptx_kernel void @muladd(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %out) #0 {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %py = getelementptr float, ptr addrspace(1) %y, i32 %i
  %po = getelementptr float, ptr addrspace(1) %out, i32 %i
  %a = load float, ptr addrspace(1) %px
  %b = load float, ptr addrspace(1) %py
  %m = fmul float %a, %b
  %r = fadd float %m, %a
  store float %r, ptr addrspace(1) %po
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
attributes #0 = { "nvvm.reqntid"="64" }
"""
EXTERN = """
define ptx_kernel void @k(ptr addrspace(1) %out, float %x) {{
  %y = call float @{name}(float %x)
  store float %y, ptr addrspace(1) %out
  ret void
}}
declare float @{name}(float)
"""
TRIVIAL = "define ptx_kernel void @k() {\n  ret void\n}\n"


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.nvidia.scope(), knobs.compilation.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


@pytest.fixture
def careful_ptx(tmp_path: Path) -> Any:
    """PTX of an LLVM text, as users get it: tried in another process first."""

    def translate(text: str, target: GPUTarget = HOPPER, **options: Any) -> str:
        path = tmp_path / "k.llir"
        path.write_text(text)
        return lower(IRSource(path), target, ["ptx"], **options)["ptx"]

    return translate


@pytest.fixture
def ptx(careful_ptx: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same for text that LLVM is known to survive."""
    monkeypatch.setattr(ptx_stage, "survives", lambda *args: None)
    return careful_ptx


def version_of(text: str) -> str:
    return re.search(r"^\.version (\S+)$", text, re.MULTILINE)[1]  # pyright: ignore[reportOptionalSubscript]


def target_of(text: str) -> str:
    return re.search(r"^\.target (.+)$", text, re.MULTILINE)[1]  # pyright: ignore[reportOptionalSubscript]


# -- 6.7 options -----------------------------------------------------------------------------------------------------


def test_the_ptx_computes(ptx: Any) -> None:
    device = Device()
    kernel = device.load(ptx(FMA)).function("muladd")
    x, y = np.arange(64, dtype="f4"), np.linspace(-1, 1, 64, dtype="f4")
    addresses = [device.upload(array) for array in (x, y, np.zeros(64, "f4"))]
    device.launch(kernel, (1, 1, 1), (64, 1, 1), addresses)
    exact = (x.astype("f8") * y + x).astype("f4")
    np.testing.assert_array_equal(device.download(addresses[2], x), exact)  # rounded once: it was fused


def test_6_7_enable_fp_fusion(ptx: Any) -> None:
    fused = r"(mad|fma)\.r[nzmp]\.(ftz\.)?f32"
    assert re.search(fused, ptx(FMA)) and "mul.rn.f32" not in ptx(FMA)
    apart = ptx(FMA, enable_fp_fusion=False)
    assert not re.search(fused, apart) and "mul.rn.f32" in apart and "add.rn.f32" in apart
    flagged = FMA.replace("fmul", "fmul fast").replace("fadd", "fadd nsz contract")
    assert re.search(fused, ptx(flagged)) and not re.search(fused, ptx(flagged, enable_fp_fusion=False))


def test_6_7_enable_fp_fusion_of_an_explicit_multiply_add(ptx: Any) -> None:
    text = FMA.replace("%m = fmul float %a, %b\n", "").replace(
        "%r = fadd float %m, %a",
        "%r = tail call nsz float @llvm.fmuladd.f32(float %a, float 2.0e+00, float %a) #1, !dbg !9",
    )
    text = (
        text.replace(", !dbg !9", "")
        + "declare float @llvm.fmuladd.f32(float, float, float)\nattributes #1 = { nounwind }\n"
    )
    assert "fma.rn.f32" in ptx(text)
    assert "fma.rn.f32" not in ptx(text, enable_fp_fusion=False)


def test_text_that_says_what_may_be_fused_is_left_alone(ptx: Any) -> None:
    explicit = '; tilework: {"fp_contract": "explicit"}\n'
    assert "fma.rn.f32" not in ptx(explicit + FMA)
    mixed = FMA.replace("fmul", "fmul contract").replace("fadd", "fadd contract")
    assert "fma.rn.f32" in ptx(explicit + mixed, enable_fp_fusion=False)


def test_fusion_touches_only_flags() -> None:
    line = (
        "  %r = fadd nsz float %m, %a, !dbg !7\n  %c = fcmp fast olt float %r, %m\n"
        "  %d = call fast float @f(float %r)\n"
    )
    assert with_fusion(line, True) == line.replace("fadd nsz", "fadd nsz contract")
    every = "nnan ninf nsz arcp afn reassoc"
    assert with_fusion(line, False) == line.replace("fast", every)
    assert with_fusion(with_fusion(line, True), False) == line.replace("fast", every)


def test_6_7_maxnreg_on_the_kernel_entry_only(ptx: Any) -> None:
    text = ptx(FMA + "define void @helper() noinline {\n  ret void\n}\n", maxnreg=42)
    assert re.search(r"\.visible \.entry [^{;]*\.maxnreg 42", text)
    assert not re.search(r"\.visible \.func [^{;]*\.maxnreg 42", text) and text.count(".maxnreg") == 1


@tilework.jit
def one(p):
    tl.store(p, 1.0)


def test_6_7_maxnreg_in_llvm_text() -> None:
    found = lower(ASTSource(one, {"p": "*fp32"}, {}), HOPPER, ["llir", "ptx"], maxnreg=42)
    assert '"nvvm.maxnreg"="42"' in found["llir"] and found["ptx"].count(".maxnreg 42") == 1


def test_6_7_maxnreg_of_a_ptx_file(tmp_path: Path) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(
        ".version 8.0\n.target sm_90a\n.entry k() // .maxnreg 7 {\n.maxnreg 99 /* { */ .reqntid 32\n{ ret; }\n"
    )
    text = lower(IRSource(path), HOPPER, ["ptx"], maxnreg=64)["ptx"]
    assert ptx_text.entries(text) == {"k": {"maxnreg": (64,), "reqntid": (32,)}} and "// .maxnreg 7 {" in text
    assert lower(IRSource(path), HOPPER, ["ptx"])["ptx"] == path.read_text()


@pytest.mark.parametrize(
    ("capability", "options", "target"),
    [
        (75, {}, "sm_75"), (80, {}, "sm_80"), (89, {}, "sm_89"), (90, {}, "sm_90a"), (100, {}, "sm_100a"),
        (120, {}, "sm_120a"),
        (90, {"arch": "sm80"}, "sm_80"), (90, {"arch": "sm100f"}, "sm_100f"), (90, {"arch": "sm_103"}, "sm_103a"),
    ],
)  # fmt: skip
def test_6_7_arch_and_6_8_suffix_of_the_target(capability: int, options: dict[str, Any], target: str, ptx: Any) -> None:
    assert target_of(ptx(TRIVIAL, GPUTarget("cuda", capability, 32), **options)) == target


def test_6_7_override_arch_wins(ptx: Any) -> None:
    knobs.runtime.override_arch = "sm86"
    assert target_of(ptx(TRIVIAL, arch="sm80")) == "sm_86"


def test_a_gpu_that_does_not_exist(ptx: Any) -> None:
    with pytest.raises(ValueError, match="no GPU is called sm_99a; known: sm_70, "):
        ptx(TRIVIAL, GPUTarget("cuda", 99, 32))


def test_6_7_ptx_version_is_that_of_ptxas(ptx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for release, version in (("12.4", "8.4"), ("12.6", "8.5"), ("12.8", "8.7"), ("13.0", "9.0"), ("13.2", "9.2")):
        monkeypatch.setenv("TRITON_PTXAS_PATH", fake_ptxas(tmp_path, release))
        assert version_of(ptx(TRIVIAL)) == version
    assert version_of(ptx(TRIVIAL, ptx_version=83)) == "8.3"
    assert version_of(ptx(TRIVIAL, ptx_version=91)) == "9.1"
    with pytest.raises(ValueError, match="ptx_version=78 is too old for sm_90a, which needs 80 or more"):
        ptx(TRIVIAL, ptx_version=78)
    monkeypatch.setenv("TRITON_PTXAS_BLACKWELL_PATH", fake_ptxas(tmp_path, "12.4"))
    with pytest.raises(
        StageError, match=r"sm_100a needs PTX 8\.6, and CUDA 12\.4 reads PTX up to 8\.4: a newer ptxas is needed"
    ):
        ptx(TRIVIAL, GPUTarget("cuda", 100, 32))


def test_6_7_ptx_version_without_ptxas(ptx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_tools(monkeypatch, tmp_path):
        monkeypatch.setattr(ptx_text, "driver_release", lambda: "12.2")
        assert version_of(ptx(TRIVIAL)) == "8.2"
        monkeypatch.setattr(ptx_text, "driver_release", lambda: None)
        assert version_of(ptx(TRIVIAL)) == "8.0"


def test_versions() -> None:
    assert [ptx_of_cuda(release) for release in ("10.2", "11.8", "12.0", "12.5", "12.6", "12.9", "13.1")] == [
        65, 78, 80, 85, 85, 88, 91,
    ]  # fmt: skip
    assert (written_version(89), written_version(91), written_version(84), written_version(79)) == (88, 90, 84, 78)
    for cpu, lowest in LOWEST.items():
        assert cpu_name(cpu) in LOWEST and lowest in KNOWN and chosen_version(cpu, None, None) == lowest
    with pytest.raises(ValueError, match="arch 'hopper': expected sm and a number"):
        cpu_name("hopper")


@pytest.mark.parametrize("cpu", LOWEST)
def test_llvm_knows_every_processor_at_its_lowest_version(
    cpu: str, ptx: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    named = cpu_name(cpu)  # sm_90 is sm_90a
    text = ptx(TRIVIAL, arch=cpu, ptx_version=LOWEST[named])
    assert target_of(text) == named and "not a recognized" not in capfd.readouterr().err


# -- libraries -------------------------------------------------------------------------------------------------------


LIBDEVICE = """
@name = private addrspace(4) constant [11 x i8] c"__CUDA_FTZ\\00"
define float @__nv_exp2f(float %x) alwaysinline {
  %f = call i32 @__nvvm_reflect(ptr addrspacecast (ptr addrspace(4) @name to ptr))
  %flushes = icmp ne i32 %f, 0
  br i1 %flushes, label %one, label %other
one:
  %a = call float @inner(float %x)
  ret float %a
other:
  %b = call float @llvm.nvvm.ex2.approx.f(float %x)
  ret float %b
}
define internal float @inner(float %x) {
  %y = call float @llvm.nvvm.ex2.approx.ftz.f(float %x)
  ret float %y
}
define float @__nv_unused(float %x) {
  ret float %x
}
declare i32 @__nvvm_reflect(ptr)
declare float @llvm.nvvm.ex2.approx.f(float)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
"""


@pytest.mark.parametrize("library", ["own", pytest.param("NVIDIA's", marks=needs_libdevice)])
def test_6_7_enable_reflect_ftz(library: str, ptx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "own":
        monkeypatch.setenv("TRITON_LIBDEVICE_PATH", write(tmp_path / "libdevice.ll", LIBDEVICE))
    text = EXTERN.format(name="__nv_exp2f")
    assert "ex2.approx.ftz.f32" in ptx(text) and "ex2.approx.ftz.f32" not in ptx(text, enable_reflect_ftz=False)
    assert "__nv_" not in ptx(text) and "call" not in ptx(text)  # linked, inlined, and nothing else came with it


def test_libdevice_is_read_again_when_it_changes(ptx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "libdevice.ll", LIBDEVICE)
    monkeypatch.setenv("TRITON_LIBDEVICE_PATH", path)
    text = EXTERN.format(name="__nv_exp2f")
    assert "ex2.approx.ftz.f32" in ptx(text)
    write(tmp_path / "libdevice.ll", LIBDEVICE.replace("ex2.approx.ftz.f", "lg2.approx.ftz.f"))
    assert "lg2.approx.ftz.f32" in ptx(text)


def test_6_7_enable_reflect_ftz_in_the_text(ptx: Any) -> None:
    text = """
    define ptx_kernel void @k(ptr addrspace(1) %out) {
      %f = call i32 @__nvvm_reflect(ptr addrspacecast (ptr addrspace(4) @name to ptr))
      store i32 %f, ptr addrspace(1) %out
      ret void
    }
    declare i32 @__nvvm_reflect(ptr)
    @name = private addrspace(4) constant [11 x i8] c"__CUDA_FTZ\\00"
    """
    stored = r"st\.global\.b32 +\t?\[%rd\d+\], {}"
    assert re.search(stored.format(1), ptx(text)), ptx(text)
    assert re.search(stored.format(0), ptx(text, enable_reflect_ftz=False))


def test_6_7_extern_libs_and_6_14_libdevice_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = find_backend(HOPPER).parse_options
    mine = tmp_path / "mine.bc"
    mine.write_bytes(b"")
    monkeypatch.setenv("TRITON_LIBDEVICE_PATH", str(mine))
    assert parse({}).extern_libs == (("libdevice", str(mine)),)
    assert parse({"extern_libs": {"a": "/a.bc"}}).extern_libs == (("a", "/a.bc"), ("libdevice", str(mine)))
    assert parse({"extern_libs": {"libdevice": "/b.bc"}}).extern_libs == (("libdevice", "/b.bc"),)
    monkeypatch.delenv("TRITON_LIBDEVICE_PATH")
    with no_tools(monkeypatch, tmp_path):
        assert parse({}).extern_libs == ()
        toolkit = tmp_path / "empty" / "nvvm" / "libdevice" / "libdevice.10.bc"
        toolkit.parent.mkdir(parents=True)
        toolkit.write_bytes(b"")
        forget()
        assert parse({}).extern_libs == (("libdevice", str(toolkit)),)


def test_a_library_is_linked_only_when_it_is_used(ptx: Any, tmp_path: Path) -> None:
    library = tmp_path / "mine.ll"
    library.write_text(
        "define float @twice(float %x) alwaysinline {\n  %y = fadd float %x, %x\n  ret float %y\n}\n"
        "define float @unused(float %x) {\n  ret float %x\n}\n"
    )
    libraries = {"mine": str(library)}
    text = ptx(EXTERN.format(name="twice"), extern_libs=libraries)
    assert "add.rn.f32" in text and "twice" not in text and "unused" not in text
    assert "unused" not in ptx(TRIVIAL, extern_libs={"mine": "/nowhere.bc"})  # not even opened
    assert ".extern .func" in ptx(EXTERN.format(name="other"), extern_libs=libraries)  # left to ptxas
    with pytest.raises(StageError, match=r"the library 'mine' \(/nowhere.bc\) cannot be read"):
        ptx(EXTERN.format(name="twice"), extern_libs={"mine": "/nowhere.bc"})


def test_6_14_libdevice_that_is_nowhere(ptx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_tools(monkeypatch, tmp_path):
        with pytest.raises(
            StageError, match=r"__nv_expf is a function of NVIDIA's libdevice.*nvidia-nvvm.*TRITON_LIBDEVICE_PATH"
        ):
            ptx(EXTERN.format(name="__nv_expf"))
        monkeypatch.setenv("TRITON_LIBDEVICE_PATH", "/nowhere.bc")
        with pytest.raises(StageError, match=r"libdevice \(/nowhere.bc\) cannot be read"):
            ptx(EXTERN.format(name="__nv_expf"))


def test_a_function_that_libdevice_does_not_have(ptx: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_LIBDEVICE_PATH", write(tmp_path / "libdevice.ll", LIBDEVICE))
    with pytest.raises(StageError, match=r"libdevice \(.*\) has no function __nv_expg"):
        ptx(EXTERN.format(name="__nv_expg"))


# -- what LLVM refuses -----------------------------------------------------------------------------------------------

REFUSED = {
    "syntax": ("define ptx_kernel void @k( {", r"does not accept the text of k: .*expected type"),
    "invalid": (
        "define ptx_kernel void @k() {\n  %a = add i32 %b, 1\n  %b = add i32 %a, 1\n  ret void\n}",
        "does not dominate",
    ),
    "another target": (
        'target triple = "x86_64-linux-gnu"\n' + TRIVIAL,
        "is for x86_64-linux-gnu, not for nvptx64-nvidia-cuda",
    ),
    "another layout": ('target datalayout = "E-p:32:32"\n' + TRIVIAL, "has the data layout E-p:32:32"),
    "no code": (EXTERN.format(name="llvm.exp.f32"), r"LLVM cannot generate code for k \(sm_90a\): .*exp"),
    "no such operand": (
        'define ptx_kernel void @k() {\n  call void asm sideeffect "mov $7, $0;", "r"(i32 0)\n  ret void\n}',
        r"LLVM cannot generate code for k \(sm_90a\): ",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_llvm_refuses_is_an_error_and_not_the_end_of_the_process(case: str, careful_ptx: Any) -> None:
    text, message = REFUSED[case]
    with pytest.raises(StageError, match=f"(?s){message}"):
        careful_ptx(text)


def test_text_for_short_shared_pointers_is_accepted(ptx: Any) -> None:
    layout = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
    assert ".visible .entry k" in ptx(f'target datalayout = "{layout}"\n{TRIVIAL}')


# -- the text of PTX -------------------------------------------------------------------------------------------------

LINES = """
define ptx_kernel void @k() !dbg !3 {
  ret void, !dbg !6
}
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, producer: "t", isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)
!2 = !DIFile(filename: "kern.py", directory: "/abs")
!3 = distinct !DISubprogram(name: "k", linkageName: "k", scope: !2, file: !2, line: 10, type: !4, scopeLine: 10, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 11, column: 5, scope: !3)
"""  # noqa: E501


def test_debug_flags_are_removed_unless_ptxas_shall_not_optimise(ptx: Any) -> None:
    text = ptx(LINES)
    assert target_of(text) == "sm_90a" and ".loc\t1 11 5" in text
    knobs.nvidia.disable_ptxas_opt = True
    assert target_of(ptx(LINES)) == "sm_90a, debug"


def test_6_14_dump_nvptx(ptx: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    knobs.nvidia.dump_nvptx = True
    text = ptx(TRIVIAL)
    assert capsys.readouterr().out == f"// -----// NVPTX Dump //----- //\n{text}\n"
    (tmp_path / "k.ptx").write_text(text)
    lower(IRSource(tmp_path / "k.ptx"), HOPPER, ["ptx"])
    assert text in capsys.readouterr().out


# -- compile and the command line ------------------------------------------------------------------------------------


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_6_8_metadata_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = '; tilework: {"shared": 4096, "global_scratch_size": 64, "global_scratch_align": 16}\n'
    with no_tools(monkeypatch, tmp_path):
        kernel = compile(write(tmp_path / "file.llir", reported + FMA), HOPPER)
        again = compile(write(tmp_path / "other.ptx", kernel.asm["ptx"]), HOPPER)
    for found, first in ((kernel, "llir"), (again, "ptx")):
        data = found.metadata
        assert (found.name, data.num_warps, data.shared, data.binary_ext) == ("muladd", 2, 4096, "ptx")
        assert (data.global_scratch_size, data.global_scratch_align, data.target) == (64, 16, HOPPER)
        assert list(found.asm) == list(dict.fromkeys(("source", first, "ptx"))) and found.kernel == found.asm["ptx"]
        assert found.packed_metadata == (2, 1, 4096) and isinstance(found.asm["ptx"], str)
        for missing in ("cubin", "sass", "ttir"):
            assert missing not in found.asm
            with pytest.raises(KeyError):
                found.asm[missing]


def test_6_8_which_kernel_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = (
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry one() .reqntid 32 { ret; }\n"
        ".entry two() .reqntid 64 { ret; }\n"
    )
    with no_tools(monkeypatch, tmp_path):
        assert compile(write(tmp_path / "two.ptx", two), HOPPER).packed_metadata == (2, 1, 0)
        with pytest.raises(
            StageError, match="the PTX of three has the kernels one, two: call the file after one of them"
        ):
            compile(write(tmp_path / "three.ptx", two), HOPPER)
        with pytest.raises(StageError, match="the PTX of none has no kernel"):
            compile(write(tmp_path / "none.ptx", ".version 8.0\n"), HOPPER)


def test_shared_memory_of_unknown_size_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .b8 s[];\n.entry k() { ret; }\n"
    with no_tools(monkeypatch, tmp_path):
        with pytest.warns(UserWarning, match="k uses dynamic shared memory and does not say how much"):
            assert compile(write(tmp_path / "k.ptx", text), HOPPER).metadata.shared == 0
        assert (
            compile(write(tmp_path / "k.ptx", '// tilework: {"shared": 512}\n' + text), HOPPER).metadata.shared == 512
        )


def test_6_7_num_warps_must_agree_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with no_tools(monkeypatch, tmp_path):
        path = write(tmp_path / "k.llir", FMA)
        assert compile(path, HOPPER, {"num_warps": 2}).metadata.num_warps == 2
        with pytest.raises(
            ValueError, match=r"muladd runs in blocks of 2 warps \(\.reqntid\), but num_warps=8 was requested"
        ):
            compile(path, HOPPER, {"num_warps": 8})


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "k.llir", FMA)
    assert main(["compile", path, "--target", "cuda:80", "--emit", "llir,ptx", "-o", str(tmp_path / "out")]) == 0
    assert target_of((tmp_path / "out" / "k.ptx").read_text()) == "sm_80"
    assert (tmp_path / "out" / "k.llir").read_text() == FMA
    capsys.readouterr()
    assert main(["compile", path, "--target", "cuda:80", "--emit", "ptx"]) == 0
    assert ".visible .entry muladd" in capsys.readouterr().out
    assert main(["compile", path, "--target", "cuda:80", "--emit", "ttir"]) == 1
    assert "k.llir is past the stage 'ttir'" in capsys.readouterr().err
    assert main(["compile", write(tmp_path / "bad.llir", "define"), "--emit", "ptx"]) == 1
    assert capsys.readouterr().err.startswith("tilework compile: LLVM does not accept the text")
    assert main(["compile", path, "--target", "cuda:80", "--emit", "obj"]) == 1
    assert "target cuda:80 has no stage 'obj'; it has ttir, ttgir, llir, ptx, cubin, sass" in capsys.readouterr().err


def test_the_name_of_a_kernel() -> None:
    assert kernel_name(FMA) == "muladd" and kernel_name('define ptx_kernel void @"a b"() {') == "a b"
    assert kernel_name('define i32 @helper() {\n}\ndefine i32 @"add_range"(ptr %a) {') == "add"
    assert kernel_name("declare void @f()") == "kernel"


def test_constraints_of_inline_ptx() -> None:
    """One instruction reads before it writes; the first of several must not write what the others read, unless
    registers are tied."""
    function = Module("m").function("f", void, [(f32, "x"), (i64, "y"), (vector(f16, 2), "z")])
    b = Builder(function)
    x, y, z = function.args
    inline_ptx.ptx(b, "add.f32 $0, $1, $1;", [f32], [x])
    inline_ptx.ptx(b, "add.f32 $0, $1, $1; add.f32 $0, $0, $1;", [f32], [x])
    inline_ptx.ptx(b, "add.f32 $0, $1, $1; add.f32 $0, $0, $1;", [f32], [x], tied=1)
    inline_ptx.ptx(b, "cvt.u64.u32 $0, $1; add.u64 $0, $0, $2;", [i64], [z, y], effect="write")
    b.ret()
    found = re.findall(r'asm .*?, "([^"]*)"', function.text())
    assert found == ["=f,f", "=&f,f", "=f,0", "=&l,r,l,~{memory}"]
