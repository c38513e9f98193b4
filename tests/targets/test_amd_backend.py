"""Kernels for AMD GPUs, compiled and linked without ROCm: stages, code objects, and what is refused."""

# pyright: reportMissingParameterType=false

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tilework
import tilework.language as tl
from tilework.compiler import ASTSource, compile, lower
from tilework.errors import CompilationError, DoesNotFit, PassError, StageError
from tilework.language.extra import hip
from tilework.target import GPUTarget, Target, UnknownTarget
from tilework.targets.amd.code_object import generated, linked, to_code_object
from tilework.targets.amd.kernel_notes import read_descriptor, read_notes
from tilework.targets.amd.link import link
from tilework.targets.amd.pipeline import HipBackend, ttgir_pipeline
from tilework.tools.cli import main


@tilework.jit
def row_sums(x, out, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * n + i, mask=i < n, other=0.0)
    tl.store(out + row, tl.sum(tl.exp(values - tl.max(values, 0)), 0) * tl.num_programs(0))


def compiled(arch: str, **options: Any) -> Any:
    source = ASTSource(row_sums, signature={"x": "*fp32", "out": "*fp32", "n": "i32"}, constexprs={"BLOCK": 512})
    return compile(source, target=GPUTarget("hip", arch, Target.parse(f"hip:{arch}").warp_size), options=options)


def test_unknown_architectures() -> None:
    with pytest.raises(UnknownTarget, match="hip:gfx999"):
        Target.parse("hip:gfx999")
    with pytest.raises(UnknownTarget, match=r"is not known: did you mean 'gfx942'\? Known are gfx908, gfx90a, gfx942"):
        Target.parse("hip:gfx943")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_ctas": 2}, "num_ctas > 1 not supported on gfx942"),
        ({"num_warps": 32}, "threads of 32 warps on gfx942, Required: 2048, Hardware limit: 1024"),
        ({"waves_per_eu": -1}, "waves_per_eu = -1 on gfx942: it may be 0 to 32"),  # LLVM would end the process
        ({"matrix_instr_nonkdim": 7}, "matrix_instr_nonkdim = 7 on gfx942: it may be 0, 4, 16, 32"),
        ({"kpack": 3}, "kpack = 3 on gfx942: it may be 1, 2"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, int], words: str) -> None:
    with pytest.raises((ValueError, DoesNotFit), match=words):
        compiled("gfx942", **options)


@pytest.mark.parametrize(("arch", "size", "own"), [("gfx942", 32, 64), ("gfx1100", 64, 32)])
def test_warps_of_another_size(arch: str, size: int, own: int) -> None:
    source = ASTSource(row_sums, signature={"x": "*fp32", "out": "*fp32", "n": "i32"}, constexprs={"BLOCK": 512})
    with pytest.raises(ValueError, match=f"warps of {size} threads on hip:{arch}: there they have {own}"):
        compile(source, target=GPUTarget("hip", arch, size))


@tilework.jit
def with_atomics(x, SCOPE: tl.constexpr):
    tl.device_print("x", tl.atomic_max(x, 1, scope=SCOPE))


@pytest.mark.parametrize(("scope", "llvm"), [("cta", "workgroup"), ("gpu", "agent"), ("sys", "")])
def test_scopes_of_atomics(scope: str, llvm: str) -> None:
    """As narrow as asked for; those of printing order the threads of one GPU."""
    source = ASTSource(with_atomics, signature={"x": "*i32"}, constexprs={"SCOPE": scope})
    text = lower(source, GPUTarget.parse("hip:gfx942"), ["llir"])["llir"]
    named = r'(?: syncscope\("(\w+)"\))? '
    assert re.findall(rf"atomicrmw max .*i32 1{named}acq_rel", text) == [llvm]
    assert set(re.findall(rf"(?:cmpxchg|load atomic) .*%\w+{named}monotonic", text)) == {"agent"}


@tilework.jit
def with_library(x, SYMBOLS: tl.constexpr):
    tl.store(x, tl.core.extern_elementwise("", "", [tl.load(x)], SYMBOLS, True))


def test_functions_of_other_libraries() -> None:
    symbols = {"SYMBOLS": {(tl.float32,): ("mine", tl.float32)}}
    source = ASTSource(with_library, signature={"x": "*fp32"}, constexprs=symbols)
    with pytest.raises(PassError, match=r"(?s)the function 'mine' .*hip:gfx1100.*tl.store\(x, tl.core.extern"):
        compile(source, target=GPUTarget("hip", "gfx1100", 32))


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every stage of an example, which says itself how it is called; what is no text becomes a file."""
    monkeypatch.chdir(tmp_path)
    example = Path(__file__).parents[2] / "examples" / "matmul.py"
    stages = "ttgir,llir,amdgcn,hsaco"
    assert main(["compile", f"{example}:matmul", "--target", "hip:gfx942", "--emit", stages]) == 0
    text, reported = capsys.readouterr()
    assert "#ttg.amd_mfma<{version = 3" in text and "call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16" in text
    assert "s_endpgm" in text and ".amdhsa_kernel matmul" in text and "amdgcn-amd-amdhsa--gfx942" in text
    assert reported == "matmul.hsaco\n" and read_notes((tmp_path / "matmul.hsaco").read_bytes()).name == "matmul"


def test_a_file_of_a_package_elsewhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may import its own package, as under `python -m`."""
    package = tmp_path / "kernels_of_mine"
    package.mkdir()
    (package / "__init__.py").write_text("SIZE = 64\n")
    text = (
        "import tilework\nimport tilework.language as tl\nfrom kernels_of_mine import SIZE\n\n@tilework.jit\n"
        "def one(x):\n    tl.store(x, 1)\n"
    )
    (package / "ones.py").write_text(text)
    assert main(["compile", f"{package / 'ones.py'}:one", "--signature", "*i32", "--target", "hip:gfx942"]) == 0
    assert "tt.func public @one" in capsys.readouterr().out


@tilework.jit
def with_assembly(x):
    at = x + tl.arange(0, 64)
    tl.store(at, tl.inline_asm_elementwise("v_lshlrev_b64 $0, 3, $1", "=v,v", [tl.load(at)], tl.int64, True, 1))


def test_inline_assembly_needs_an_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM would end the process."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("ROCM_PATH", "/nowhere")
    source = ASTSource(with_assembly, signature={"x": "*i64"})
    with pytest.raises(
        StageError, match=r"test_amd_backend.py:\d+: inline assembly for hip:gfx942 cannot be assembled: neither"
    ):
        compile(source, target=GPUTarget("hip", "gfx942", 64))


def test_linkers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ld.lld` links where there is one (the real one, if this machine has it), and our own linker where that fails."""
    data = generated(compiled("gfx942").asm["llir"], as_text=False)
    own = link(data)
    made = linked(data)  # by whatever there is
    assert read_notes(made) == read_notes(own) and read_descriptor(made).wave_size == 64
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    program = tmp_path / "llvm" / "bin" / "ld.lld"
    program.parent.mkdir(parents=True)
    (tmp_path / "linked").write_bytes(own + b"by lld")
    program.write_text(f'#!/bin/sh\n[ "$1 $2 $4" = "--threads=1 -shared -o" ] && cp {tmp_path}/linked "$5"\n')
    program.chmod(0o755)
    assert linked(data) == own + b"by lld"
    program.write_text("#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", "/nowhere")
    zig = tmp_path / "ziglang"
    zig.mkdir()
    (zig / "__init__.py").touch()
    call = "import shutil, sys\nassert sys.argv[1:4] == ['ld.lld', '--threads=1', '-shared'], sys.argv\n"
    (zig / "__main__.py").write_text(f"{call}shutil.copy({str(tmp_path / 'linked')!r}, sys.argv[6])\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    assert linked(data) == own + b"by lld"  # as the package of the compiler zig is called
    monkeypatch.setitem(sys.modules, "ziglang", None)
    assert linked(data) == own


PASSES = """
convert-triton-to-tritongpu tritongpu-coalesce tritongpu-F32DotTC tritongpu-remove-layout-conversions
tritongpu-optimize-thread-locality tritonamdgpu-accelerate-matmul tritongpu-remove-layout-conversions
tritonamdgpu-optimize-epilogue tritonamdgpu-hoist-layout-conversions tritonamdgpu-sink-layout-conversions
tritongpu-fuse-nested-loops canonicalize triton-licm canonicalize tritonamdgpu-schedule-loops tritonamdgpu-pipeline
tritonamdgpu-convert-tensor-ops canonicalize
tritongpu-remove-layout-conversions tritongpu-reduce-data-duplication [tritonamdgpu-in-thread-transpose
tritongpu-remove-layout-conversions] tritonamdgpu-move-up-prologue-loads [tritonamdgpu-block-pingpong]
tritongpu-repeated-loads
tritonamdgpu-canonicalize-pointers canonicalize tritonamdgpu-convert-buffer-ops tritonamdgpu-fold-true-cmpi
tritonamdgpu-prepare-if-combining canonicalize cse symbol-dce
"""


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"])
def test_passes_are_in_tritons_order(arch: str) -> None:
    """As Triton 3.7 prints them, and tritongpu-repeated-loads; [...] only for gfx942. Triton's
    tritonamdgpu-optimize-dot-operands would have nothing to do."""
    expected = PASSES if arch == "gfx942" else re.sub(r"\[.*?\]", "", PASSES, flags=re.DOTALL)
    found = [re.sub(r"\{.*", "", item) for item in ttgir_pipeline(Target.parse(f"hip:{arch}"))]
    assert found == re.findall(r"[\w-]+", expected)


@pytest.mark.parametrize(("setting", "archs"), [("0", ["gfx942"]), ("1", ["gfx942", "gfx950"])])
def test_where_waves_take_turns(monkeypatch: pytest.MonkeyPatch, setting: str, archs: list[str]) -> None:
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", setting)
    every = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250")
    pipelines = {arch: ttgir_pipeline(Target.parse(f"hip:{arch}"), num_stages=3) for arch in every}
    assert [arch for arch, items in pipelines.items() if "tritonamdgpu-block-pingpong{num-stages=3}" in items] == archs
    waits_early = [arch for arch, items in pipelines.items() if any("use-pingpong=true" in item for item in items)]
    assert waits_early == (archs if setting == "1" else [])


def test_only_gfx942_multiplies_f32_as_tf32() -> None:
    found = [HipBackend(GPUTarget("hip", arch, 64)).parse_options({}) for arch in ("gfx90a", "gfx942", "gfx950")]
    assert [options.default_dot_input_precision for options in found] == ["ieee", "tf32", "ieee"]


@tilework.jit
def reported_its_target(x, FORMAT: tl.constexpr, PRECISION: tl.constexpr):
    if tl.target_info.is_hip_cdna3():
        tl.store(x, 942.0)
    tl.store(x + 1, hip.memrealtime().to(tl.float32))
    if FORMAT is not None:
        tl.store(x, tl.load(x).to(FORMAT).to(tl.float32))
    if PRECISION is not None:
        a = tl.zeros((16, 16), tl.float32)
        tl.store(x, tl.sum(tl.dot(a, a, input_precision=PRECISION)))


def ttir_of(arch: str, format: Any = None, precision: str | None = None) -> str:
    constants = {"FORMAT": format, "PRECISION": precision}
    source = ASTSource(reported_its_target, signature={"x": "*fp32"}, constexprs=constants)
    return lower(source, GPUTarget.parse(f"hip:{arch}"))["ttir"]


def test_kernels_know_their_architecture() -> None:
    """They can ask for it, the clock is read as it can be there, and messages name it beside feature and line."""
    clocks = {arch: "sendmsg_rtn" in ttir_of(arch) for arch in ("gfx90a", "gfx942", "gfx1100", "gfx1201")}
    assert clocks == {"gfx90a": False, "gfx942": False, "gfx1100": True, "gfx1201": True}
    assert ["9.42" in ttir_of(arch) for arch in ("gfx942", "gfx90a")] == [True, False]
    with pytest.raises(CompilationError, match=r"(?s)to\(FORMAT\).*fp8e4b15 not supported.* on hip:gfx90a"):
        ttir_of("gfx90a", tl.float8e4b15)
    with pytest.raises(
        CompilationError, match=r"(?s)to\(FORMAT\).*fp8e4nv not supported.* on hip:gfx90a.*SOFTWARE_FP8=1"
    ):
        ttir_of("gfx90a", tl.float8e4nv)
    with pytest.raises(CompilationError, match=r"(?s)tl.dot\(.*input_precision must be.*Got tf32 on hip:gfx90a"):
        ttir_of("gfx90a", precision="tf32")


def test_llvm_text_of_another_architecture() -> None:
    """Text that names none, as Triton's, is for the target; text for another is refused."""
    text = compiled("gfx1100").asm["llir"]
    data = to_code_object(re.sub(r'"target-cpu"="\w+"', "", text), "gfx1100")
    assert read_notes(data).target == "amdgcn-amd-amdhsa--gfx1100"
    with pytest.raises(StageError, match="the LLVM text of row_sums is for gfx1100, not for gfx942"):
        to_code_object(text, "gfx942")


@pytest.mark.parametrize(("arch", "is_preloaded"), [
    ("gfx90a", True), ("gfx942", True), ("gfx950", True), ("gfx1100", False), ("gfx1201", False), ("gfx1250", False),
])  # fmt: skip
def test_attributes_of_kernels(arch: str, is_preloaded: bool) -> None:
    """The size of a cluster and of a workgroup; arguments are preloaded into registers where the GPU can."""
    asm, threads = compiled(arch, num_warps=2).asm, 2 * Target.parse(f"hip:{arch}").warp_size
    (header,) = (line for line in asm["llir"].splitlines() if line.startswith("define amdgpu_kernel"))
    words = ('"amdgpu-cluster-dims"="1,1,1"', f'"amdgpu-flat-work-group-size"="1,{threads}"')
    assert all(word in asm["llir"] for word in words)
    assert header.count("inreg %") == (5 if is_preloaded else 0)
    assert bool(re.search(r"_kernarg_preload_length [1-9]", asm["amdgcn"])) == is_preloaded
