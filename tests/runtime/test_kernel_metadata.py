"""The metadata of compiled kernels: the fields that Triton 3.7.1's have, with their values and types."""

from dataclasses import fields
from typing import Any

import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, GPUTarget, compile
from tilework.triton.backends import CUDAOptions, HIPOptions


@tilework.jit
def add(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


# recorded with Triton 3.7.1, without the hash of the kernel and the paths of linked libraries
COMMON = {
    "debug": False, "enable_fp_fusion": True, "instrumentation_mode": "", "launch_cooperative_grid": False,
    "name": "add", "num_ctas": 1, "num_warps": 4, "profile_scratch_align": 1, "profile_scratch_size": 0,
    "sanitize_overflow": True, "shared": 0, "tensordesc_meta": [], "triton_version": "3.7.1",
    "max_num_imprecise_acc_default": 0, "deprecated_fp8_dot_operand_dtypes": [],
}  # fmt: skip
CUDA = COMMON | {
    "allowed_dot_input_precisions": ["tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"], "backend_name": "cuda",
    "default_dot_input_precision": "tf32", "enable_reflect_ftz": True, "global_scratch_align": 1,
    "global_scratch_size": 0, "ir_override": None, "launch_pdl": False, "maxnreg": None, "num_stages": 3,
    "ptx_options": None, "ptx_version": None, "tmem_size": 0, "warp_size": 32,
    "supported_fp8_dtypes": ["fp8e4b15", "fp8e5"],
}  # fmt: skip
HIP = COMMON | {
    "allow_flush_denorm": False, "backend_name": "hip", "default_dot_input_precision": "ieee", "kpack": 1,
    "matrix_instr_nonkdim": 0, "num_stages": 2, "schedule_hint": "none", "waves_per_eu": 0, "warp_size": 32,
    "supported_fp8_dtypes": ["fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16"],
    "allowed_dot_input_precisions": ["ieee", "bf16x3", "bf16x6"],
}  # fmt: skip
METADATA: dict[GPUTarget, dict[str, Any]] = {
    GPUTarget("cuda", 75, 32): CUDA | {"arch": "sm75"},
    GPUTarget("cuda", 80, 32): CUDA | {"arch": "sm80"},
    GPUTarget("cuda", 90, 32): CUDA
    | {
        "arch": "sm90",
        "deprecated_fp8_dot_operand_dtypes": ["fp8e4b15"],
        "max_num_imprecise_acc_default": 2**30,
        "supported_fp8_dtypes": ["fp8e4b15", "fp8e4nv", "fp8e5"],
    },
    GPUTarget("hip", "gfx90a", 64): HIP | {"arch": "gfx90a", "warp_size": 64},
    GPUTarget("hip", "gfx942", 64): HIP
    | {
        "arch": "gfx942",
        "warp_size": 64,
        "allowed_dot_input_precisions": ["bf16x3", "bf16x6", "ieee", "tf32"],
        "default_dot_input_precision": "tf32",  # which tl.dot takes; Triton's metadata says ieee
    },
    GPUTarget("hip", "gfx950", 64): HIP
    | {"arch": "gfx950", "warp_size": 64, "deprecated_fp8_dot_operand_dtypes": ["fp8e4b8", "fp8e5b16"]},
    GPUTarget("hip", "gfx1100", 32): HIP | {"arch": "gfx1100"},
    GPUTarget("hip", "gfx1201", 32): HIP | {"arch": "gfx1201"},
    GPUTarget("hip", "gfx1250", 32): HIP | {"arch": "gfx1250"},
}


OPTIONS: dict[type, dict[str, Any]] = {  # the defaults of the options' fields
    CUDAOptions: {
        "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"), "arch": None,
        "backend_name": "cuda", "debug": False, "default_dot_input_precision": "tf32",
        "deprecated_fp8_dot_operand_dtypes": (), "enable_fp_fusion": True, "enable_reflect_ftz": True,
        "instrumentation_mode": "", "ir_override": None, "launch_cooperative_grid": False, "launch_pdl": False,
        "max_num_imprecise_acc_default": None, "maxnreg": None, "num_ctas": 1, "num_stages": 3, "num_warps": 4,
        "ptx_options": None, "ptx_version": None, "sanitize_overflow": True,
        "supported_fp8_dtypes": ("fp8e5", "fp8e4b15"), "warp_size": 32,
    },
    HIPOptions: {
        "allow_flush_denorm": False, "allowed_dot_input_precisions": ("ieee", "bf16x3", "bf16x6"), "arch": None,
        "backend_name": "hip", "debug": False, "default_dot_input_precision": "ieee",
        "deprecated_fp8_dot_operand_dtypes": (), "enable_fp_fusion": True, "instrumentation_mode": "", "kpack": 1,
        "launch_cooperative_grid": False, "matrix_instr_nonkdim": 0, "max_num_imprecise_acc_default": 0,
        "num_ctas": 1, "num_stages": 2, "num_warps": 4, "sanitize_overflow": True, "schedule_hint": "none",
        "supported_fp8_dtypes": ("fp8e4nv", "fp8e5", "fp8e5b16", "fp8e4b8"), "waves_per_eu": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS)
def test_fields_of_options_as_tritons(options: Any) -> None:
    defaults = {field.name: field.default for field in fields(options)}
    assert {name: defaults[name] for name in OPTIONS[options]} == OPTIONS[options]


@pytest.mark.parametrize("target", METADATA, ids=str)
def test_metadata_as_tritons(target: GPUTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knobs.language, "is_triton", True)
    source = ASTSource(add, {"x": "*fp32", "y": "*fp32", "n": "i32", "B": "constexpr"}, {"B": 256})
    kernel = compile(source, target)
    found, wanted = kernel.metadata._asdict(), METADATA[target] | {"target": target}
    assert {name: found[name] for name in wanted} == wanted
    assert {name: type(found[name]) for name in wanted} == {name: type(value) for name, value in wanted.items()}
    assert type(kernel.metadata).__name__ == "KernelMetadata" and list(found) == sorted(found)
    assert kernel.packed_metadata == (4, 1, 0)
