"""Reproducers that Triton 3.7.1 writes for NVIDIA GPUs run: its passes have its names and take its options."""

from pathlib import Path

import pytest

from tests.pipeline.test_reference_ttgir import lines
from tilework.errors import PassError
from tilework.ir.parser import parse_module
from tilework.tools.cli import main
from tilework.transforms.registry import parse_pipeline, run_pipeline

REFERENCE = Path(__file__).parents[1] / "ir" / "reference"
DRIVER = "{  max-iterations=10 max-num-rewrites=-1 region-simplify=normal test-convergence=false top-down=true}"
CANONICALIZE = f"canonicalize{DRIVER}"
INLINE = "inline{default-pipeline=canonicalize inlining-threshold=4294967295 max-iterations=4 }"
DOTS = "tritongpu-optimize-dot-operands{hoist-layout-conversion=true}"
RESOURCE = '{-#\n  external_resources: {\n    mlir_reproducer: {\n      pipeline: "%s"\n    }\n  }\n#-}\n'


def ttir_of(arch: int) -> str:
    pointers = "triton-rewrite-tensor-descriptor-to-pointer," if arch < 90 else ""
    return (
        f"any({INLINE},triton-rewrite-tensor-pointer,{pointers}{CANONICALIZE},triton-combine,triton-reorder-broadcast,"
        "cse,symbol-dce,triton-loop-unroll)"
    )


def ttgir_of(arch: int, stages: int) -> str:
    num = f"num-stages={stages}"
    steps = f"dump-intermediate-steps=false {num}"
    hopper = (
        f"{CANONICALIZE},tritongpu-combine-tensor-select-and-if,nvgpu-warp-specialization{{{steps}}},"
        f"tritongpu-assign-latencies{{{num}}},tritongpu-schedule-loops,tritongpu-pipeline{{{steps}}},"
    )
    blackwell = (
        "tritongpu-optimize-accumulator-init,tritongpu-hoist-tmem-alloc{hoist-out-of-if=false},"
        f"tritongpu-promote-lhs-to-tmem,tritongpu-assign-latencies{{{num}}},tritongpu-schedule-loops,"
        f"tritongpu-automatic-warp-specialization{{{num}}},tritongpu-pipeline{{{steps}}},"
        "tritongpu-optimize-partition-warps,tritongpu-combine-tensor-select-and-if,"
        "tritongpu-hoist-tmem-alloc{hoist-out-of-if=true},triton-nvidia-gpu-remove-tmem-tokens,"
    )
    tma = "triton-nvidia-tma-lowering," if arch >= 90 else ""
    return (
        "any(convert-triton-to-tritongpu{enable-source-remat=false num-ctas=1 num-warps=4 "
        f"target=cuda:{arch} threads-per-warp=32}},tritongpu-coalesce,tritongpu-F32DotTC{{emu-tf32=true}},"
        "triton-nvidia-gpu-plan-cta,tritongpu-remove-layout-conversions,tritongpu-optimize-thread-locality,"
        f"tritongpu-accelerate-matmul,tritongpu-remove-layout-conversions,{DOTS},"
        "triton-nvidia-optimize-descriptor-encoding,triton-loop-aware-cse,tritongpu-fuse-nested-loops,"
        f"{CANONICALIZE},triton-licm,{blackwell if arch >= 100 else hopper}{CANONICALIZE},triton-loop-aware-cse,"
        f"tritongpu-prefetch,{DOTS},tritongpu-coalesce-async-copy,"
        f"triton-nvidia-optimize-tmem-layouts,{tma}tritongpu-remove-layout-conversions,triton-nvidia-interleave-tmem,"
        "tritongpu-reduce-data-duplication,tritongpu-reorder-instructions,triton-loop-aware-cse,symbol-dce,"
        f"triton-nvidia-gpu-fence-insertion{{compute-capability={arch}}},triton-nvidia-mma-lowering,sccp,cse,"
        f"{CANONICALIZE})"
    )


def llir_of(arch: int) -> str:
    given = f"{{compute-capability={arch} ptx-version=87}}"
    return (
        "any(tritongpu-combine-tensor-select-and-if,tritongpu-allocate-warp-groups,"
        f"convert-scf-to-cf{{allow-pattern-rollback=true}},gluon-inline,allocate-shared-memory-nv{given},"
        "triton-tensor-memory-allocation,triton-nvidia-check-matmul-two-cta,tritongpu-global-scratch-memory-allocation,"
        f"triton-nvidia-gpu-proxy-fence-insertion{{compute-capability={arch}}},convert-triton-gpu-to-llvm{given},"
        f"{CANONICALIZE},cse,convert-nv-gpu-to-llvm,convert-warp-specialize-to-llvm,{CANONICALIZE},cse,symbol-dce,"
        "convert-nvvm-to-llvm,enable-line-info)"
    )


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("nested", ["%s", "builtin.module(%s)"])  # as by 3.7 and by 3.6
def test_every_stage_runs(arch: int, nested: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each stage from the result of the one before: Triton's own TTGIR, then LLVM text."""
    folder = REFERENCE / f"sm_{arch}"
    text, made = (folder / "matmul_f16_small.ttir").read_text(), []
    for stage in (ttir_of(arch), ttgir_of(arch, 4), llir_of(arch)):
        path = tmp_path / "stage.mlir"
        path.write_text(text + RESOURCE % (nested % stage))
        assert main(["opt", "--run-reproducer", str(path)]) == 0, capsys.readouterr().err
        made.append(text := capsys.readouterr().out)
    wanted = parse_module((folder / "matmul_f16_small.ttgir").read_text())
    assert lines(parse_module(made[1])) == lines(wanted)
    assert "define ptx_kernel void @matmul" in text and ("wgmma" if arch == 90 else "mma.sync") in text


def test_the_passes_of_blackwell_are_read() -> None:
    passes = parse_pipeline(ttgir_of(100, 3))
    assert len(passes) == ttgir_of(100, 3).count(",") + 1


@pytest.mark.parametrize("name", ["tritongpu-automatic-warp-specialization", "tritongpu-optimize-partition-warps"])
def test_partitions_for_blackwell_are_refused(name: str) -> None:
    plain = """
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100"} {
  tt.func @f(%n: i32) {
    scf.for %i = %n to %n step %n : i32 {
    }
    tt.return
  }
}
"""
    run_pipeline(parse_module(plain), parse_pipeline(name))
    with pytest.raises(PassError, match=r"scf\.for cannot be partitioned for cuda:100: tilework specializes warps for"):
        run_pipeline(parse_module(plain.replace("}\n    tt", "} {tt.warp_specialize}\n    tt")), parse_pipeline(name))
