"""Passes by name, and pipelines written as text.

    passes = parse_pipeline("builtin.module(inline, canonicalize, triton-loop-unroll{factor=2})")
    run_pipeline(module, passes)

Names are the reference compiler's. A pass is imported when it is first asked for. Options are the fields of the pass,
with `-` or `_`: ``name{option=value other-option=value}``. The target of a pass that has one may be written as its vendor
does (entry points `tilework.target_options`), which means ``target=BACKEND:ARCH``.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, dataclass, fields
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilework.errors import did_you_mean
from tilework.plugins import find
from tilework.transforms.passes import Pass

PASSES: dict[str, str] = {
    "inline": "common.inline:InlinePass",
    "canonicalize": "common.canonicalize:CanonicalizePass",
    "cse": "common.cse:CSEPass",
    "sccp": "common.sccp:SCCPPass",
    "dce": "common.dce:DCEPass",
    "symbol-dce": "common.symbol_dce:SymbolDCEPass",
    "triton-combine": "tt.combine:CombinePass",
    "triton-reorder-broadcast": "tt.reorder_broadcast:ReorderBroadcastPass",
    "triton-rewrite-tensor-pointer": "tt.rewrite_tensor_pointer:RewriteTensorPointerPass",
    "triton-remake-carried-descriptors": "tt.remake_carried_descriptors:RemakeCarriedDescriptorsPass",
    "triton-rewrite-tensor-descriptor-to-pointer": "tt.rewrite_tensor_descriptor:RewriteTensorDescriptorToPointerPass",
    "tt-odd-descriptors-to-pointers": "tt.rewrite_tensor_descriptor:OddDescriptorsToPointersPass",
    "tt-scaled-maximum": "tt.scaled_maximum:ScaledMaximumPass",
    "triton-count-exits": "tt.loop_exits:CountExitsPass",
    "triton-lift-skipped-loads": "tt.loop_exits:LiftSkippedLoadsPass",
    "tt-spin-loads": "tt.spin_loads:SpinLoadsPass",
    "tt-visible-nans": "tt.visible_nans:VisibleNansPass",
    "tt-memory-in-order": "tt.memory_in_order:MemoryInOrderPass",
    "tt-rectangles-to-descriptors": "tt.rectangles_to_descriptors:RectanglesToDescriptorsPass",
    "triton-loop-unroll": "tt.loop_unroll:LoopUnrollPass",
    "triton-loop-aware-cse": "tt.loop_aware_cse:LoopAwareCSEPass",
    "pad-tiles": "padding.pad_tiles:PadTilesPass",
    "triton-licm": "tt.licm:LicmPass",
    "loop-invariant-code-motion": "tt.licm:LicmPass",
    "ttc-uniform-increments": "ttc.uniform_increments:UniformIncrementsPass",
    "ttc-check-steps": "ttc.check_steps:CheckStepsPass",
    "triton-check-undefined": "sanitize.check_undefined:CheckUndefinedPass",
    "triton-check-bounds": "sanitize.check_bounds:CheckBoundsPass",
    "ttc-sanitize": "sanitize.check_accesses:SanitizePass",
    "convert-triton-to-tile-loops": "ttc.tile_loops:TileLoopsPass",
    "convert-triton-to-tritongpu": "ttg.convert_triton_to_tritongpu:ConvertTritonToTritonGPUPass",
    "nvgpu-warp-specialization": "warp_specialize.specialize:WarpSpecializationPass",
    "triton-test-loop-peeling": "ttg.loop_peeling:TestLoopPeelingPass",
    "tritongpu-assign-latencies": "ttg.pipeline.latencies:AssignLatenciesPass",
    "tritongpu-schedule-loops": "ttg.pipeline.schedule:ScheduleLoopsPass",
    "tritongpu-pipeline": "ttg.pipeline.software_pipeline:PipelinePass",
    "tritongpu-test-pipeline-lower-loop": "ttg.pipeline.software_pipeline:TestPipelineLowerLoopPass",
    "tritongpu-remove-layout-conversions": "ttg.remove_layout_conversions:RemoveLayoutConversionsPass",
    "tritongpu-combine": "ttg.remove_layout_conversions:RemoveLayoutConversionsPass",
    "relayout-tritongpu": "ttg.relayout_tritongpu:RelayoutTritonGPUPass",
    "triton-nvidia-gpu-plan-cta": "ttng.plan_cta:PlanCTAPass",
    "tritongpu-coalesce": "ttg.coalesce:CoalescePass",
    "tritonamdgpu-schedule-loops": "amd.schedule_loops:AmdScheduleLoopsPass",
    "tritonamdgpu-pipeline": "amd.stream_pipeline:AmdPipelinePass",
    "triton-amdgpu-insert-instruction-sched-hints": "amd.insert_sched_hints:InsertInstructionSchedHintsPass",
    "tritonamdgpu-coalesce-async-copy": "amd.coalesce_async_copy:AmdCoalesceAsyncCopyPass",
    "tritonamdgpu-update-async-wait-count": "amd.update_async_wait_count:AmdUpdateAsyncWaitCountPass",
    "optimize-amd-lds-usage": "amd.optimize_lds_usage:OptimizeAmdLdsUsagePass",
    "tritonamdgpu-reorder-instructions": "amd.reorder_instructions:AmdReorderInstructionsPass",
    "tritonamdgpu-block-pingpong": "amd.block_pingpong:AmdBlockPingpongPass",
    "tritonamdgpu-optimize-epilogue": "amd.optimize_epilogue:AmdOptimizeEpiloguePass",
    "tritonamdgpu-hoist-layout-conversions": "amd.hoist_layout_conversions:AmdHoistLayoutConversionsPass",
    "tritonamdgpu-in-thread-transpose": "amd.in_thread_transpose:AmdInThreadTransposePass",
    "tritonamdgpu-canonicalize-pointers": "amd.canonicalize_pointers:AmdCanonicalizePointersPass",
    "tritonamdgpu-convert-buffer-ops": "amd.convert_buffer_ops:AmdConvertBufferOpsPass",
    "tritonamdgpu-fold-true-cmpi": "amd.fold_true_cmpi:AmdFoldTrueCmpIPass",
    "tritonamdgpu-accelerate-matmul": "amd.accelerate_matmul:AmdAccelerateMatmulPass",
    "tritongpu-accelerate-matmul": "ttg.accelerate_matmul:AccelerateMatmulPass",
    "allocate-shared-memory": "ttg.allocate_shared_memory:AllocateSharedMemoryPass",
    "allocate-shared-memory-nv": "ttg.allocate_shared_memory:AllocateSharedMemoryNvPass",
    "tritongpu-optimize-dot-operands": "ttg.optimize_dot_operands:OptimizeDotOperandsPass",
    "tritongpu-F32DotTC": "ttg.f32_dot_tc:F32DotTCPass",
    "triton-nvidia-optimize-descriptor-encoding": ("ttng.optimize_descriptor_encoding:OptimizeDescriptorEncodingPass"),
    "tritongpu-optimize-thread-locality": "ttg.optimize_thread_locality:OptimizeThreadLocalityPass",
    "tritongpu-combine-tensor-select-and-if": "ttg.combine_tensor_select_and_if:CombineTensorSelectAndIfPass",
    "tritongpu-allocate-warp-groups": "ttg.allocate_warp_groups:AllocateWarpGroupsPass",
    "tritongpu-optimize-accumulator-init": "ttg.optimize_accumulator_init:OptimizeAccumulatorInitPass",
    "test-print-alias": "ttg.print_analyses:PrintAliasPass",
    "test-print-allocation": "ttg.print_analyses:PrintAllocationPass",
    "test-print-membar": "ttg.print_analyses:PrintMembarPass",
    "tritongpu-fuse-nested-loops": "ttg.fuse_nested_loops:FuseNestedLoopsPass",
    "tritongpu-dots-from-memory": "ttg.dots_from_memory:DotsFromMemoryPass",
    "tritongpu-reduce-data-duplication": "ttg.reduce_data_duplication:ReduceDataDuplicationPass",
    "tritongpu-reorder-instructions": "ttg.reorder_instructions:ReorderInstructionsPass",
    "tritongpu-early-loads": "ttg.early_loads:EarlyLoadsPass",
    "tritongpu-longest-first": "ttg.longest_first:LongestFirstPass",
    "tritongpu-persistent-programs": "ttg.persistent_programs:PersistentProgramsPass",
    "tritongpu-shorten-partitions": "ttg.shorten_partitions:ShortenPartitionsPass",
    "triton-nvidia-gpu-fence-insertion": "ttng.fence_insertion:FenceInsertionPass",
    "triton-nvidia-gpu-proxy-fence-insertion": "ttng.proxy_fence_insertion:ProxyFenceInsertionPass",
    "tritongpu-limit-remarks": "ttg.limit_remarks:LimitRemarksPass",
    "tritongpu-performance-remarks": "ttg.performance_remarks:PerformanceRemarksPass",
    "triton-nvidia-tma-lowering": "ttng.tma_lowering:TMALoweringPass",
    "tritongpu-global-scratch-memory-allocation": (
        "ttg.global_scratch_memory_allocation:GlobalScratchMemoryAllocationPass"
    ),
    "tritongpu-coalesce-async-copy": "ttg.coalesce_async_copy:CoalesceAsyncCopyPass",
    "tritongpu-prefetch": "ttg.prefetch:PrefetchPass",
    "test-print-alignment": "tt.print_alignment:PrintAlignmentPass",
}


@dataclass(eq=False)  # not frozen: `with` sets the traceback of what it lets through
class UnknownPass(ValueError):
    """A pipeline names a pass that does not exist."""

    name: str

    def __str__(self) -> str:
        guess = did_you_mean(self.name, PASSES) or f"; there are: {', '.join(sorted(PASSES))}"
        return f"no pass is called `{self.name}`{guess}"


@dataclass(eq=False)  # not frozen: `with` sets the traceback of what it lets through
class BadPassOption(ValueError):
    """A pipeline gives a pass an option it does not have, or a value that the option cannot take."""

    pass_name: str
    option: str
    expected: str
    guess: str = ""

    def __str__(self) -> str:
        takes = f"; it takes: {self.expected or 'no options'}"
        return f"pass `{self.pass_name}` does not take `{self.option}`{self.guess or takes}"


@dataclass(eq=False)  # not frozen: `with` sets the traceback of what it lets through
class BadPipeline(ValueError):
    """The text of a pipeline cannot be read."""

    text: str
    position: int

    def __str__(self) -> str:
        return f"expected a pass name at position {self.position} of the pipeline `{self.text}`"


def get_pass(name: str) -> type[Pass]:
    """The class registered as `name`."""
    if (target := PASSES.get(name)) is None:
        raise UnknownPass(name)
    module, _, class_name = target.partition(":")
    return getattr(import_module(f"tilework.transforms.{module}"), class_name)


ITEM = re.compile(r"\s*([\w.-]+)\s*(?:\{([^}]*)\})?\s*(?:,|$)")
WRAPPED = re.compile(r"\s*(?:builtin\.module|any)\s*\((.*)\)\s*", re.DOTALL)


def parse_pipeline(text: str) -> list[Pass]:
    """The passes of ``a,b{o=v o2=v}``, optionally inside ``builtin.module(...)`` and ``any(...)``."""
    while (wrapped := WRAPPED.fullmatch(text)) is not None:
        text = wrapped[1]
    passes: list[Pass] = []
    position = 0
    while position < len(text) and not text[position:].isspace():
        if (item := ITEM.match(text, position)) is None:
            raise BadPipeline(text, position)
        passes.append(make_pass(item[1], item[2] or ""))
        position = item.end()
    return passes


def make_pass(name: str, options: str = "") -> Pass:
    """The pass `name` with ``option=value`` pairs separated by blanks; an option alone is true."""
    kind = get_pass(name)
    known: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}  # pyright: ignore[reportArgumentType]
    values: dict[str, object] = {}
    for option in options.split():
        key, _, value = option.partition("=")
        field = known.get(key.replace("-", "_"))
        if field is None and "target" in known and (spelling := find("tilework.target_options", key)) is not None:
            field, value = known["target"], spelling.load()(value)
        if field is None:
            spellings = [word.replace("_", "-") for word in known]
            raise BadPassOption(name, key, ", ".join(known), did_you_mean(key.replace("_", "-"), spellings))
        try:
            values[field.name] = convert_option(field, value)
        except ValueError:
            raise BadPassOption(name, option, f"{key} of type {option_type(field).__name__}") from None
    return kind(**values)


def option_type(field: Field[Any]) -> type:
    """`int`, `bool` or `str`, from the default value or else the annotation."""
    if field.default is not MISSING and field.default is not None:
        return type(field.default)
    annotation = str(getattr(field.type, "__name__", field.type))
    return int if annotation.startswith("int") else bool if annotation.startswith("bool") else str


def convert_option(field: Field[Any], value: str) -> object:
    kind = option_type(field)
    if kind is bool:
        if value not in ("", "0", "1", "true", "false"):
            raise ValueError(value)
        return value not in ("0", "false")
    return kind(value)


def run_pipeline(
    module: ModuleOp,
    passes: Iterable[Pass | str],
    *,
    after: Callable[[Pass, ModuleOp], None] | None = None,
) -> None:
    """Apply `passes` in order, in place; `after` sees the module behind each one (to print or to check it)."""
    for item in passes:
        stage = make_pass(item) if isinstance(item, str) else item
        stage.run(module)
        if after is not None:
            after(stage, module)
