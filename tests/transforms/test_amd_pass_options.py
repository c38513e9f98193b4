"""AMD's passes take the options of Triton's, by Triton's names, so that reproducers that Triton prints can be run."""

from pathlib import Path
from typing import Any

import pytest

from tilework.errors import PassError
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.tools.cli import main
from tilework.transforms.registry import BadPassOption, BadPipeline, parse_pipeline, pipeline_items, run_pipeline

DRIVER = "{  max-iterations=10 max-num-rewrites=-1 region-simplify=normal test-convergence=false top-down=true}"
GFX942 = {"target": "hip:gfx942"}
# As Triton 3.6.0 and 3.7.1 print each pass, and the fields of ours.
PASSES: dict[str, dict[str, Any]] = {
    "tritonamdgpu-accelerate-matmul{arch-generation-name=gfx942 kPack=2 matrix-instruction-size=16}": {
        **GFX942, "kpack": 2, "matrix_instruction_size": 16,
    },
    "tritonamdgpu-block-pingpong{num-stages=3}": {"num_stages": 3},
    "tritonamdgpu-canonicalize-pointers{enable-large-tensor-ptr-canon=false}": {"enable_large_tensor_ptr_canon": False},
    "tritonamdgpu-canonicalize-pointers{enable-large-tensor-ptr-canon=true}": {"enable_large_tensor_ptr_canon": True},
    "tritonamdgpu-coalesce-async-copy{arch-generation-name=gfx942}": GFX942,
    "tritonamdgpu-convert-buffer-ops"
    "{allow-buffer-atomics=false analyze-small-tensor-ofst=true arch-generation-name=gfx942}": {
        **GFX942, "allow_buffer_atomics": False, "analyze_small_tensor_ofst": True,
    },
    "tritonamdgpu-convert-tensor-ops": {},
    "tritonamdgpu-fold-true-cmpi": {},
    "tritonamdgpu-hoist-layout-conversions": {},
    "tritonamdgpu-in-thread-transpose": {},
    "tritonamdgpu-move-up-prologue-loads": {},
    "tritonamdgpu-optimize-dot-operands{arch-generation-name=gfx942}": {},
    "tritonamdgpu-optimize-epilogue": {},
    "optimize-amd-lds-usage{lds-limit=4096 target-arch=gfx942}": {**GFX942, "lds_limit": 4096},
    "tritonamdgpu-pipeline{use_async_copy=true use_pingpong=false}": {"use_async_copy": True, "use_pingpong": False},
    "tritonamdgpu-pipeline{use-async-copy=true use-pingpong=true}": {"use_async_copy": True, "use_pingpong": True},
    "tritonamdgpu-prepare-if-combining": {},
    "tritonamdgpu-reorder-instructions": {},
    "tritonamdgpu-schedule-loops{num_stages=3}": {"num_stages": 3},
    "tritonamdgpu-schedule-loops{num-stages=3}": {"num_stages": 3},
    "tritonamdgpu-sink-layout-conversions": {},
    "tritonamdgpu-update-async-wait-count{arch-generation-name=gfx942}": {},
    "tritonamdgpu-warp-pipeline": {},
    "convert-warp-pipeline{arch=gfx942}": {},
    "allocate-amdgpu-shared-memory": {},
    "triton-amdgpu-insert-instruction-sched-hints{variant=attention}": {"variant": "attention"},
    f"canonicalize{DRIVER}": {},
    "inline{default-pipeline=canonicalize inlining-threshold=4294967295 max-iterations=4 }": {},
    "convert-triton-to-tritongpu{enable-source-remat=false num-ctas=1 num-warps=8 target=hip:gfx942"
    " threads-per-warp=64}": {**GFX942, "num_ctas": 1, "num_warps": 8, "threads_per_warp": 64},
}  # fmt: skip


@pytest.mark.parametrize("text", PASSES)
def test_a_pass_takes_tritons_options(text: str) -> None:
    (made,) = parse_pipeline(text)
    assert made.name == text.partition("{")[0]
    assert {field: getattr(made, field) for field in PASSES[text]} == PASSES[text]


@pytest.mark.parametrize("text", [text for text in PASSES if "{" in text])
def test_another_option_is_refused(text: str) -> None:
    with pytest.raises(BadPassOption, match="does not take `no-such-option`"):
        parse_pipeline(text.replace("{", "{no-such-option=1 "))


def test_pipelines_are_nested_as_in_reproducers() -> None:
    text = "builtin.module(any(cse,tt.func(tritonamdgpu-hoist-layout-conversions), tt.func(a{x=1},b)),c)"
    names = ["cse", "tritonamdgpu-hoist-layout-conversions", "a", "b", "c"]
    assert [name for name, _ in pipeline_items(text)] == names
    for bad in ("any(cse", "cse)", "any(cse))", "other.op(cse)"):
        with pytest.raises(BadPipeline):
            parse_pipeline(bad)


ARCH, FUNCTION = "ARCH", "tt.func("
BEFORE_LOOPS = (
    "tritongpu-coalesce,tritongpu-F32DotTC{emu-tf32=false},tritongpu-remove-layout-conversions,"
    "tritongpu-optimize-thread-locality,tritonamdgpu-accelerate-matmul{arch-generation-name=ARCH kPack=1"
    " matrix-instruction-size=0},tritongpu-remove-layout-conversions,tritonamdgpu-optimize-epilogue,"
    "tritonamdgpu-optimize-dot-operands{arch-generation-name=ARCH},tt.func(tritonamdgpu-hoist-layout-conversions),"
)
LOOPS = (
    f"tritongpu-fuse-nested-loops,canonicalize{DRIVER},triton-licm,canonicalize{DRIVER},"
    "tritonamdgpu-schedule-loops{num_stages=2},tritonamdgpu-pipeline{use_async_copy=false use_pingpong=true},"
)
AFTER_LOOPS = (
    f"canonicalize{DRIVER},tritongpu-remove-layout-conversions,tritongpu-reduce-data-duplication,"
    "tt.func(tritonamdgpu-in-thread-transpose),tritongpu-remove-layout-conversions,"
)
BUFFERS = (
    "tritonamdgpu-block-pingpong{num-stages=2},"
    f"tt.func(tritonamdgpu-canonicalize-pointers{{enable-large-tensor-ptr-canon=false}}),canonicalize{DRIVER},"
    "tritonamdgpu-convert-buffer-ops{allow-buffer-atomics=true analyze-small-tensor-ofst=false"
    " arch-generation-name=ARCH},tritonamdgpu-fold-true-cmpi,"
)
END = f"canonicalize{DRIVER},cse,symbol-dce"
AFTER_LLVM = (
    f"canonicalize{DRIVER},cse,convert-cf-to-llvm{{index-bitwidth=0}},convert-arith-to-llvm{{index-bitwidth=0}},"
    f"canonicalize{DRIVER},cse,symbol-dce,enable-line-info,"
)
CONVERT = (
    "convert-triton-to-tritongpu{enable-source-remat=false num-ctas=1 num-warps=4 target=hip:ARCH threads-per-warp=64}"
)
STAGES = {  # as Triton writes them for gfx942, for each version
    "3.6.0": (
        f"builtin.module(any({CONVERT}))",
        f"builtin.module(any({BEFORE_LOOPS}{LOOPS}{AFTER_LOOPS}tritonamdgpu-reorder-instructions,{BUFFERS}{END}))",
        "builtin.module(any(tritonamdgpu-update-async-wait-count{arch-generation-name=ARCH},"
        "optimize-amd-lds-usage{lds-limit=0 target-arch=ARCH},convert-scf-to-cf,gluon-inline,"
        "convert-index-to-llvm{index-bitwidth=0},allocate-amdgpu-shared-memory,"
        "convert-triton-amdgpu-to-llvm{arch=ARCH ftz=true},"
        f"{AFTER_LLVM}convert-builtin-func-to-llvm{{ftz=true}}))",
    ),
    "3.7.1": (
        f"any({CONVERT})",
        f"any({BEFORE_LOOPS}tt.func(tritonamdgpu-sink-layout-conversions),{LOOPS}tritonamdgpu-convert-tensor-ops,"
        f"{AFTER_LOOPS}tt.func(tritonamdgpu-move-up-prologue-loads),{BUFFERS}"
        f"tt.func(tritonamdgpu-prepare-if-combining),{END})",
        "any(tritonamdgpu-update-async-wait-count{arch-generation-name=ARCH},convert-warp-pipeline{arch=ARCH},"
        "convert-scf-to-cf{allow-pattern-rollback=true},gluon-inline,convert-index-to-llvm{index-bitwidth=0},"
        "allocate-amdgpu-shared-memory,convert-triton-amdgpu-to-llvm{arch=ARCH ftz=true},"
        "triton-amdgpu-convert-warp-specialize-to-llvm{arch=ARCH},"
        f"{AFTER_LLVM}convert-builtin-func-to-llvm{{arch=ARCH ftz=true}})",
    ),
}
KERNEL = Path(__file__).parents[1] / "ir" / "reference" / "sm_90" / "matmul_f16_small.ttir"
RESOURCE = '{-#\n  external_resources: {\n    mlir_reproducer: {\n      pipeline: "%s"\n    }\n  }\n#-}\n'


@pytest.mark.parametrize("version", STAGES)
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_reproducers_of_triton_run(version: str, arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All stages, each one from the result of the one before; the last gives LLVM text."""
    text = KERNEL.read_text()
    for stage in STAGES[version]:
        path = tmp_path / "stage.mlir"
        path.write_text(text + RESOURCE % stage.replace("ARCH", arch))
        assert main(["opt", "--run-reproducer", str(path)]) == 0, capsys.readouterr().err
        text = capsys.readouterr().out
    assert "define amdgpu_kernel void @matmul" in text and "llvm.amdgcn.mfma" in text


@pytest.mark.parametrize(
    "options",
    [
        ["--convert-triton-amdgpu-to-llvm=arch=gfx942"],
        ["--allocate-amdgpu-shared-memory", "--convert-triton-amdgpu-to-llvm=arch=gfx942 ftz=true"],
        ["-p", "convert-scf-to-cf,convert-triton-amdgpu-to-llvm,convert-builtin-func-to-llvm{arch=gfx942}"],
        ["--convert-triton-amdgpu-to-llvm=arch=gfx942", "--canonicalize", "--cse"],
    ],
)
def test_flags_that_give_llvm(options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.mlir"
    path.write_text(
        'module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942"} {\n'
        "tt.func public @k(%p: !tt.ptr<i32>, %x: i32) {\n  tt.store %p, %x : !tt.ptr<i32>\n  tt.return\n}\n}\n"
    )
    assert main(["opt", str(path), *options]) == 0, capsys.readouterr().err
    assert "define amdgpu_kernel void @k(" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("convert-triton-amdgpu-to-llvm{arch=gfx942 fzt=true}", "does not take `fzt`"),
        ("convert-scf-to-cf", "no pass is called `convert-scf-to-cf`"),
        ("convert-triton-amdgpu-to-llvm{arch=gfx942},no-such-pass", "no pass is called `no-such-pass`"),
    ],
)
def test_mistakes_in_a_pipeline_to_llvm(
    options: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.mlir"
    path.write_text("module {\n}\n")
    assert main(["opt", str(path), "-p", options]) != 0
    assert message in capsys.readouterr().err


DOT = """
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#x = #ttg.dot_op<{opIdx = 0, parent = #b}>
#y = #ttg.dot_op<{opIdx = 1, parent = #b}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32NAMED, "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @k(%a: tensor<64x64xf16, #x>, %b: tensor<64x64xf16, #y>, %c: tensor<64x64xf32, #b>) -> tensor<64x64xf32, #b> {
    %d = tt.dot %a, %b, %c : tensor<64x64xf16, #x> * tensor<64x64xf16, #y> -> tensor<64x64xf32, #b>
    tt.return %d : tensor<64x64xf32, #b>
  }
}
"""  # noqa: E501


@pytest.mark.parametrize(("arch", "version", "step"), [("gfx942", 3, 8), ("gfx950", 4, 16), ("gfx90a", 2, 8)])
@pytest.mark.parametrize("named", ["", ', ttg.target = "hip:gfx908"'])
def test_the_named_target_decides(arch: str, version: int, step: int, named: str) -> None:
    """Of a module that names no target, and of one that names another."""
    module = parse_module(DOT.replace("NAMED", named))
    run_pipeline(module, [f"tritonamdgpu-accelerate-matmul{{arch-generation-name={arch}}}"])
    assert f"version = {version}, warpsPerCTA = [2, 2], instrShape = [32, 32, {step}]" in print_module(module)


def test_descriptors_of_the_tensor_data_mover_are_refused() -> None:
    module = parse_module(
        'module attributes {ttg.target = "hip:gfx1250"} {\n'
        "tt.func public @k(%d: !tt.tensordesc<tensor<16x16xf16>>, %i: i32) -> tensor<16x16xf16> {\n"
        "  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<16x16xf16>> -> tensor<16x16xf16>\n"
        "  tt.return %x : tensor<16x16xf16>\n}\n}\n"
    )
    with pytest.raises(PassError, match=r"tt\.descriptor_load needs the tensor data mover of hip:gfx1250"):
        run_pipeline(module, ["tritonamdgpu-convert-tensor-ops"])
