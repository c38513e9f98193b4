"""Our passes and Triton's give the same text for the same input: what Triton printed around each pass is in dumps/."""

from pathlib import Path

import pytest

from tests.transforms.ttg.reference import convert_options, differences, steps

DUMPS = Path(__file__).parent / "dumps"
CONVERT = "convert-triton-to-tritongpu"
EQUAL = (
    CONVERT,
    "tritongpu-coalesce",
    "tritongpu-F32DotTC",
    "triton-nvidia-gpu-plan-cta",
    "tritongpu-remove-layout-conversions",
    "tritongpu-optimize-thread-locality",
    "tritongpu-accelerate-matmul",
    "tritongpu-optimize-dot-operands",
    "triton-nvidia-optimize-descriptor-encoding",
    "tritongpu-fuse-nested-loops",
    "tritongpu-combine-tensor-select-and-if",
    "nvgpu-warp-specialization",
    "tritongpu-assign-latencies",
    "tritongpu-schedule-loops",
    "tritongpu-pipeline",
    "canonicalize",
    "triton-licm",
    "triton-loop-aware-cse",
    "sccp",
    "cse",
    "symbol-dce",
    "tritongpu-prefetch",
    "tritongpu-coalesce-async-copy",
    "triton-nvidia-tma-lowering",
    "tritongpu-reduce-data-duplication",
    "tritongpu-reorder-instructions",
    "triton-nvidia-gpu-fence-insertion",
)
STAGED = ("nvgpu-warp-specialization", "tritongpu-assign-latencies", "tritongpu-pipeline")
STEPS = [step for file in sorted(DUMPS.rglob("*.passes")) for step in steps(file) if step.name in EQUAL]
KERNELS = {step.kernel: [other for other in STEPS if other.kernel == step.kernel] for step in STEPS}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_text_is_the_same(kernel: str) -> None:
    for step in KERNELS[kernel]:
        options = convert_options(step.after) if step.name == CONVERT else ""
        if step.name in STAGED:
            options = f"num-stages={4 if step.kernel.endswith('matmul_f16_small') else 3}"
        assert differences(step, options) == [], f"{step.name}, pass {step.index}"


def test_the_dumps_are_read() -> None:
    assert {step.name for step in STEPS} == set(EQUAL)
