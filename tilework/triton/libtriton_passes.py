"""The functions of Triton's native module that append passes to a `pass_manager`, grouped as Triton groups them.

    pm = ir.pass_manager(module.context)
    passes.ttir.add_combine(pm)
    passes.ttgpuir.add_pipeline(pm, 3, False)
    amd.passes.ttgpuir.add_accelerate_matmul(pm, "gfx942", 16, 1)
    pm.run(module, "mine")

Arguments become options of the pass. Adding a pass that tilework does not have (tensor memory, warp specialization, the
steps of Triton's LLVM code generator, which is one step here) is an error that names it.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from tilework.process.plugins import extend_with, plugins, refuse_libraries
from tilework.transforms.registry import PASSES

COMMON = {
    "add_canonicalizer": "canonicalize",
    "add_cse": "cse",
    "add_inliner": "inline",
    "add_licm": "loop-invariant-code-motion",
    "add_sccp": "sccp",
    "add_symbol_dce": "symbol-dce",
}
TTIR = {
    "add_combine": "triton-combine",
    "add_convert_to_ttgpuir": (
        "convert-triton-to-tritongpu{{target={0} num-warps={1} threads-per-warp={2} num-ctas={3}}}"
    ),
    "add_loop_aware_cse": "triton-loop-aware-cse",
    "add_loop_unroll": "triton-loop-unroll",
    "add_reorder_broadcast": "triton-reorder-broadcast",
    "add_rewrite_tensor_descriptor_to_pointer": "triton-rewrite-tensor-descriptor-to-pointer",
    "add_rewrite_tensor_pointer": "triton-rewrite-tensor-pointer",
    "add_triton_licm": "triton-licm",
}
TTGPUIR = {
    "add_accelerate_matmul": "tritongpu-accelerate-matmul",
    "add_allocate_global_scratch_memory": "tritongpu-global-scratch-memory-allocation",
    "add_allocate_shared_memory": "allocate-shared-memory",
    "add_allocate_warp_groups": "tritongpu-allocate-warp-groups",
    "add_assign_latencies": "tritongpu-assign-latencies{{num-stages={0}}}",
    "add_coalesce": "tritongpu-coalesce",
    "add_coalesce_async_copy": "tritongpu-coalesce-async-copy",
    "add_combine_tensor_select_and_if": "tritongpu-combine-tensor-select-and-if",
    "add_concurrency_sanitizer": "tritoninstrument-concurrency-sanitizer",
    "add_f32_dot_tc": "tritongpu-F32DotTC{{emu-tf32={0}}}",
    "add_fuse_nested_loops": "tritongpu-fuse-nested-loops",
    "add_hoist_tmem_alloc": "tritongpu-hoist-tmem-alloc",
    "add_optimize_accumulator_init": "tritongpu-optimize-accumulator-init",
    "add_optimize_dot_operands": "tritongpu-optimize-dot-operands",
    "add_optimize_partition_warps": "tritongpu-optimize-partition-warps",
    "add_optimize_thread_locality": "tritongpu-optimize-thread-locality",
    "add_pipeline": "tritongpu-pipeline{{num-stages={0}}}",
    "add_prefetch": "tritongpu-prefetch",
    "add_reduce_data_duplication": "tritongpu-reduce-data-duplication",
    "add_remove_layout_conversions": "tritongpu-remove-layout-conversions",
    "add_reorder_instructions": "tritongpu-reorder-instructions",
    "add_schedule_loops": "tritongpu-schedule-loops",
    "add_warp_specialize": "tritongpu-automatic-warp-specialization",
}
TTNVGPUIR = {
    "add_allocate_tensor_memory": "triton-tensor-memory-allocation",
    "add_check_matmul_two_cta": "triton-nvidia-check-matmul-two-cta",
    "add_fence_insertion": "triton-nvidia-gpu-fence-insertion{{compute-capability={0}}}",
    "add_interleave_tmem": "triton-nvidia-interleave-tmem",
    "add_lower_mma": "triton-nvidia-mma-lowering",
    "add_nvgpu_to_llvm": "convert-nv-gpu-to-llvm",
    "add_optimize_descriptor_encoding": "triton-nvidia-optimize-descriptor-encoding",
    "add_optimize_tmem_layouts": "triton-nvidia-optimize-tmem-layouts",
    "add_plan_cta": "triton-nvidia-gpu-plan-cta",
    "add_promote_lhs_to_tmem": "tritongpu-promote-lhs-to-tmem",
    "add_proxy_fence_insertion": "triton-nvidia-gpu-proxy-fence-insertion{{compute-capability={0}}}",
    "add_remove_tmem_tokens": "triton-nvidia-gpu-remove-tmem-tokens",
    "add_tma_lowering": "triton-nvidia-tma-lowering",
    "add_warp_specialize_to_llvm": "convert-warp-specialize-to-llvm",
}
CONVERT = {
    "add_arith_to_llvmir": "convert-arith-to-llvm",
    "add_cf_to_llvmir": "convert-cf-to-llvm",
    "add_index_to_llvmir": "convert-index-to-llvm",
    "add_nvvm_to_llvm": "convert-nvvm-to-llvm",
    "add_scf_to_cf": "convert-scf-to-cf",
}
LLVMIR = {"add_di_local_variable": "extract-variable-info", "add_di_scope": "enable-line-info"}
NVIDIA_TTGPUIR = {
    "add_allocate_shared_memory_nv": "allocate-shared-memory-nv",
    "add_to_llvmir": "convert-triton-gpu-to-llvm",
}
AMD_TTGPUIR = {
    "add_accelerate_matmul": (
        "tritonamdgpu-accelerate-matmul{{arch-generation-name={0} matrix-instruction-size={1} kPack={2}}}"
    ),
    "add_allocate_shared_memory": "allocate-amdgpu-shared-memory",
    "add_block_pingpong": "tritonamdgpu-block-pingpong{{num-stages={0}}}",
    "add_canonicalize_pointers": "tritonamdgpu-canonicalize-pointers",
    "add_coalesce_async_copy": "tritonamdgpu-coalesce-async-copy{{arch-generation-name={0}}}",
    "add_convert_to_buffer_ops": (
        "tritonamdgpu-convert-buffer-ops{{arch-generation-name={0} allow-buffer-atomics={1}"
        " analyze-small-tensor-ofst={2}}}"
    ),
    "add_convert_to_tensor_ops": "tritonamdgpu-convert-tensor-ops",
    "add_fold_true_cmpi": "tritonamdgpu-fold-true-cmpi",
    "add_hoist_layout_conversions": "tritonamdgpu-hoist-layout-conversions",
    "add_in_thread_transpose": "tritonamdgpu-in-thread-transpose",
    "add_move_up_prologue_loads": "tritonamdgpu-move-up-prologue-loads",
    "add_optimize_dot_operands": "tritonamdgpu-optimize-dot-operands",
    "add_optimize_epilogue": "tritonamdgpu-optimize-epilogue",
    "add_optimize_lds_usage": "optimize-amd-lds-usage{{target-arch={0} lds-limit={1}}}",
    "add_pipeline": "tritonamdgpu-pipeline{{use-async-copy={0}}}",
    "add_prepare_if_combining": "tritonamdgpu-prepare-if-combining",
    "add_reorder_instructions": "tritonamdgpu-reorder-instructions",
    "add_schedule_loops": "tritonamdgpu-schedule-loops{{num-stages={0}}}",
    "add_to_llvmir": "convert-triton-amdgpu-to-llvm",
    "add_sink_layout_conversions": "tritonamdgpu-sink-layout-conversions",
    "add_update_async_wait_count": "tritonamdgpu-update-async-wait-count",
    "add_warp_pipeline": "tritonamdgpu-warp-pipeline",
    "add_warp_pipeline_conversion": "convert-warp-pipeline",
    "add_warp_specialize_to_llvm": "triton-amdgpu-convert-warp-specialize-to-llvm",
    "insert_instruction_sched_hints": "triton-amdgpu-insert-instruction-sched-hints{{variant={0}}}",
}
HOPPER = {"add_hopper_warpspec": "nvgpu-warp-specialization{{num-stages={0}}}"}


def appender(function: str, item: str) -> Callable[..., None]:
    """Return the function that appends the pass `item`, with its arguments as options."""

    def add(pm: Any, *arguments: Any) -> None:
        name = item.partition("{")[0]
        if name not in PASSES:
            raise NotImplementedError(f"{function}: tilework has no pass {name}")
        texts = [str(value).lower() if isinstance(value, bool) else value for value in arguments]
        pm.items.append(item.format(*texts) if "{" in item else item)

    add.__name__ = add.__qualname__ = function
    return add


def group(table: dict[str, str]) -> SimpleNamespace:
    """Return the functions of one of Triton's groups."""
    return SimpleNamespace(**{name: appender(name, item) for name, item in table.items()})


common, ttir, ttgpuir, convert, llvmir = map(group, (COMMON, TTIR, TTGPUIR, CONVERT, LLVMIR))


class PluginPasses:
    """The passes that other packages add (`tilework.passes` of `process/plugins.py`), as functions by name."""

    extend_with = staticmethod(extend_with)

    def __getattr__(self, name: str) -> Callable[..., None]:
        refuse_libraries()
        if name not in dir(self):
            raise AttributeError(f"no plugin has a pass {name}", name=name, obj=self)

        def add(pm: Any, args: Sequence[str] = ()) -> None:
            pm.items.append(f"{name}{{{' '.join(args)}}}" if args else name)

        return add

    def __dir__(self) -> list[str]:
        return [found.name for found in plugins("tilework.passes")]


plugin = PluginPasses()
nvidia_passes = SimpleNamespace(ttnvgpuir=group(TTNVGPUIR), ttgpuir=group(NVIDIA_TTGPUIR), hopper=group(HOPPER))
amd_passes = SimpleNamespace(ttgpuir=group(AMD_TTGPUIR))
TARGET_TRIPLE = "amdgcn-amd-amdhsa"


def has_extern_deps(mod: Any) -> bool:
    """Return True if an LLVM module calls functions that it does not define."""
    return any(each.is_declaration() and not each.name.startswith("llvm.") for each in mod.get_functions())
