"""Passes by name, pipelines written as text, and the pipelines of the stages that all targets share.

    passes = parse_pipeline("builtin.module(inline, canonicalize, triton-loop-unroll{factor=2})")
    run_pipeline(module, passes)

Names are the reference compiler's. A pass is imported when it is first used. Options are the fields of the pass, with
`-` or `_`, in any case: ``name{option=value other-option=value}``. Backends neither load nor run a pass without work
(`NEEDS`). The target option of a pass may be spelled as its vendor does (entry points `tilework.target_options`),
which means ``target=BACKEND:ARCH``.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.errors import did_you_mean
from tilework.ir.functions import given_types, ops_in_order
from tilework.ir.types import is_block_pointer, is_descriptor, is_odd
from tilework.light_dataclass import light_dataclass
from tilework.process.forks import cached_property
from tilework.process.plugins import find
from tilework.target import Feature, Target
from tilework.transforms.passes import DECLARED, Pass

PASSES: dict[str, str] = {
    "inline": "common.inline:inline",
    "canonicalize": "common.canonicalize:canonicalize",
    "cse": "common.cse:eliminate_common_subexpressions",
    "sccp": "common.sccp:sccp",
    "dce": "common.dce:dce",
    "symbol-dce": "common.dce:drop_uncalled",
    "triton-combine": "tt.combine:combine",
    "triton-reorder-broadcast": "tt.reorder_broadcast:reorder_broadcast",
    "triton-rewrite-tensor-pointer": "tt.rewrite_tensor_pointer:rewrite_tensor_pointer",
    "triton-remake-carried-descriptors": "tt.remake_carried_descriptors:remake_carried_descriptors",
    "triton-rewrite-tensor-descriptor-to-pointer": "tt.rewrite_tensor_descriptor:rewrite_tensor_descriptor",
    "tt-odd-descriptors-to-pointers": "tt.rewrite_tensor_descriptor:odd_descriptors_to_pointers",
    "tt-unroll-short-loops": "tt.loop_unroll:UnrollShortLoopsPass",
    "tt-split-masked-loops": "tt.split_masked_loops:SplitMaskedLoopsPass",
    "tt-load-runs": "tt.load_runs:load_runs",
    "tt-scaled-maximum": "tt.scaled_maximum:scaled_maximum",
    "triton-count-exits": "tt.loop_exits:CountExitsPass",
    "triton-lift-skipped-loads": "tt.loop_exits:lift_marked_loads",
    "tt-spin-loads": "tt.memory_order:mark_spins",
    "tt-visible-nans": "tt.visible_nans:visible_nans",
    "tt-memory-in-order": "tt.memory_order:memory_in_order",
    "tt-rectangles-to-descriptors": "tt.rectangles_to_descriptors:RectanglesToDescriptorsPass",
    "triton-loop-unroll": "tt.loop_unroll:loop_unroll",
    "triton-loop-aware-cse": "common.cse:loop_aware_cse",
    "pad-tiles": "tt.pad_tiles:pad_tiles",
    "triton-licm": "tt.licm:licm",
    "loop-invariant-code-motion": "tt.licm:licm",
    "ttc-uniform-increments": "ttc.uniform_increments:uniform_increments",
    "ttc-check-steps": "ttc.tile_loops:check_step",
    "triton-check-undefined": "sanitize.check_undefined:CheckUndefinedPass",
    "triton-check-bounds": "sanitize.check_bounds:check_bounds",
    "ttc-sanitize": "sanitize.check_bounds:check_accesses",
    "convert-triton-to-tile-loops": "ttc.tile_loops:TileLoopsPass",
    "convert-triton-to-tritongpu": "ttg.convert_triton_to_tritongpu:ConvertTritonToTritonGPUPass",
    "nvgpu-warp-specialization": "warp_specialize.specialize:WarpSpecializationPass",
    "triton-test-loop-peeling": "ttg.passes_for_tests:loop_peeling",
    "tritongpu-assign-latencies": "ttg.pipeline.latencies:AssignLatenciesPass",
    "tritongpu-schedule-loops": "ttg.pipeline.schedule:schedule_loops",
    "tritongpu-pipeline": "ttg.pipeline.software_pipeline:PipelinePass",
    "tritongpu-test-pipeline-lower-loop": "ttg.pipeline.software_pipeline:TestPipelineLowerLoopPass",
    "tritongpu-remove-layout-conversions": "ttg.remove_layout_conversions:remove_layout_conversions",
    "tritongpu-combine": "ttg.remove_layout_conversions:remove_layout_conversions",
    "relayout-tritongpu": "ttg.convert_triton_to_tritongpu:relayout_tritongpu",
    "triton-nvidia-gpu-plan-cta": "ttng.plan_cta:plan_cta",
    "tritongpu-coalesce": "ttg.coalesce:coalesce",
    "tritonamdgpu-schedule-loops": "amd.stream_pipeline:AmdScheduleLoopsPass",
    "tritonamdgpu-pipeline": "amd.stream_pipeline:AmdPipelinePass",
    "triton-amdgpu-insert-instruction-sched-hints": "amd.reorder_instructions:InsertInstructionSchedHintsPass",
    "tritonamdgpu-coalesce-async-copy": "amd.stream_pipeline:CoalesceAsyncCopyPass",
    "tritonamdgpu-update-async-wait-count": "amd.stream_pipeline:update_async_wait_count",
    "tritonamdgpu-expand-tensor-ops": "amd.expand_tensor_ops:AmdExpandTensorOpsPass",
    "optimize-amd-lds-usage": "amd.optimize_lds_usage:OptimizeLdsUsagePass",
    "tritonamdgpu-reorder-instructions": "amd.reorder_instructions:reorder_instructions",
    "tritonamdgpu-move-up-prologue-loads": "amd.reorder_instructions:move_up_prologue_loads",
    "tritonamdgpu-sink-layout-conversions": "amd.reorder_instructions:sink",
    "tritonamdgpu-prepare-if-combining": "amd.reorder_instructions:prepare_if_combining",
    "tritonamdgpu-convert-tensor-ops": "amd.reorder_instructions:refuse_tensor_ops",
    "tritonamdgpu-warp-pipeline": "amd.warp_pipeline:warp_pipeline",
    "convert-warp-pipeline": "amd.warp_pipeline:convert_warp_pipeline",
    "tritonamdgpu-block-pingpong": "amd.block_pingpong:AmdBlockPingpongPass",
    "tritonamdgpu-optimize-dot-operands": "amd.reorder_instructions:optimize_dot_operands",
    "tritonamdgpu-optimize-epilogue": "amd.accelerate_matmul:store_as_computed",
    "tritonamdgpu-hoist-layout-conversions": "amd.reorder_instructions:hoist",
    "tritonamdgpu-in-thread-transpose": "amd.in_thread_transpose:in_thread_transpose",
    "tritonamdgpu-canonicalize-pointers": "amd.canonicalize_pointers:CanonicalizePointersPass",
    "tritonamdgpu-convert-buffer-ops": "amd.convert_buffer_ops:AmdConvertBufferOpsPass",
    "tritonamdgpu-fold-true-cmpi": "amd.convert_buffer_ops:fold_true_cmpi",
    "tritonamdgpu-accelerate-matmul": "amd.accelerate_matmul:AmdAccelerateMatmulPass",
    "tritongpu-accelerate-matmul": "ttg.accelerate_matmul:AccelerateMatmulPass",
    "allocate-shared-memory": "ttg.allocate_resources:allocate_shared_memory",
    "allocate-amdgpu-shared-memory": "ttg.allocate_resources:AllocateAmdGpuSharedMemoryPass",
    "allocate-shared-memory-nv": "ttg.allocate_resources:AllocateSharedMemoryNvPass",
    "tritongpu-optimize-dot-operands": "ttg.optimize_dot_operands:optimize_dot_operands",
    "tritongpu-F32DotTC": "ttg.f32_dot_tc:F32DotTCPass",
    "triton-nvidia-optimize-descriptor-encoding": ("ttng.optimize_descriptor_encoding:encode"),
    "tritongpu-optimize-thread-locality": "ttg.optimize_thread_locality:optimize_thread_locality",
    "tritongpu-combine-tensor-select-and-if": "ttg.combine_tensor_select_and_if:combine_tensor_select_and_if",
    "tritongpu-allocate-warp-groups": "ttg.allocate_resources:allocate_warp_groups",
    "tritongpu-optimize-accumulator-init": "ttg.optimize_accumulator_init:optimize_accumulator_init",
    "test-print-alias": "ttg.passes_for_tests:print_alias",
    "test-print-allocation": "ttg.passes_for_tests:print_allocation",
    "test-print-membar": "ttg.passes_for_tests:print_membar",
    "tritongpu-fuse-nested-loops": "ttg.fuse_nested_loops:FuseNestedLoopsPass",
    "tritongpu-dots-from-memory": "ttg.dots_from_memory:DotsFromMemoryPass",
    "tritongpu-reduce-data-duplication": "ttg.optimize_dot_operands:through_buffer",
    "tritongpu-reorder-instructions": "ttg.reorder_instructions:reorder_instructions",
    "tritongpu-store-layouts": "ttg.store_layouts:store_layouts",
    "tritongpu-repeated-loads": "ttg.repeated_loads:repeated_loads",
    "tritongpu-early-loads": "ttg.row_loads:early_loads",
    "tritongpu-prefetch-rows": "ttg.row_loads:prefetch_rows",
    "tritongpu-longest-first": "ttg.persistent_kernels:longest_first",
    "tritongpu-persistent-programs": "ttg.persistent_kernels:PersistentProgramsPass",
    "tritongpu-shorten-partitions": "ttg.shorten_partitions:shorten_partitions",
    "triton-nvidia-gpu-fence-insertion": "ttng.fence_insertion:FenceInsertionPass",
    "triton-nvidia-gpu-proxy-fence-insertion": "ttng.fence_insertion:ProxyFenceInsertionPass",
    "tritongpu-limit-remarks": "ttg.performance_remarks:limit_remarks",
    "tritongpu-performance-remarks": "ttg.performance_remarks:performance_remarks",
    "triton-nvidia-tma-lowering": "ttng.tma_lowering:tma_lowering",
    "tritongpu-global-scratch-memory-allocation": "ttg.allocate_resources:allocate_global_scratch",
    "tritongpu-coalesce-async-copy": "ttg.coalesce:coalesce_async_copy",
    "tritongpu-prefetch": "ttg.prefetch:prefetch",
    "test-print-alignment": "ttg.passes_for_tests:print_alignment",
    "tritongpu-automatic-warp-specialization": "ttng.blackwell:refuse_partitions",
    "tritongpu-optimize-partition-warps": "ttng.blackwell:refuse_partitions",
    "tritongpu-hoist-tmem-alloc": "ttng.blackwell:tensor_memory",
    "tritongpu-promote-lhs-to-tmem": "ttng.blackwell:tensor_memory",
    "triton-nvidia-gpu-remove-tmem-tokens": "ttng.blackwell:tensor_memory",
    "triton-nvidia-optimize-tmem-layouts": "ttng.blackwell:tensor_memory",
    "triton-nvidia-interleave-tmem": "ttng.blackwell:tensor_memory",
    "triton-nvidia-mma-lowering": "ttng.blackwell:tensor_memory",
    "triton-nvidia-check-matmul-two-cta": "ttng.blackwell:tensor_memory",
    "triton-tensor-memory-allocation": "ttng.blackwell:tensor_memory",
}


# The ops, or kinds of types, of which a module must have at least one for a pass to have work.
KINDS = {"block pointer": is_block_pointer, "descriptor": is_descriptor, "odd tile": is_odd}
LOOPS = ("scf.for", "scf.while")
DESCRIPTORS = (
    "tt.make_tensor_descriptor",
    *(f"tt.descriptor_{access}" for access in ("load", "store", "reduce", "gather", "scatter")),
)
BUFFERS = ("ttg.local_alloc", "ttg.local_load", "ttg.memdesc_trans")
NEEDS: dict[str, tuple[str, ...]] = {
    "triton-rewrite-tensor-pointer": ("block pointer",),
    "triton-rewrite-tensor-descriptor-to-pointer": ("descriptor",),
    "tt-odd-descriptors-to-pointers": ("descriptor",),
    "triton-nvidia-optimize-descriptor-encoding": ("descriptor",),
    "pad-tiles": ("odd tile",),
    "triton-count-exits": ("scf.while",),
    "triton-lift-skipped-loads": ("scf.for",),
    "triton-remake-carried-descriptors": (*LOOPS, "tt.call"),
    "tt-scaled-maximum": ("tt.dot",),
    "tt-spin-loads": ("scf.while",),
    "triton-loop-unroll": ("scf.for",),
    "triton-licm": LOOPS,
    "ttc-uniform-increments": ("scf.for",),
    "ttc-check-steps": ("scf.for",),
    "nvgpu-warp-specialization": (*LOOPS, "ttng.warp_group_dot"),
    "tritongpu-assign-latencies": ("scf.for",),
    "tritongpu-schedule-loops": ("scf.for",),
    "tritongpu-pipeline": ("scf.for", "ttg.async_wait"),
    "tritongpu-accelerate-matmul": ("tt.dot", "tt.dot_scaled"),
    "tritongpu-F32DotTC": ("tt.dot",),
    "tritongpu-optimize-thread-locality": ("tt.reduce", "tt.reshape", "tt.gather"),
    "tritongpu-combine-tensor-select-and-if": ("scf.if",),
    "tritongpu-fuse-nested-loops": ("scf.for",),
    "tritongpu-store-layouts": ("ttg.convert_layout",),
    "tritongpu-reduce-data-duplication": ("ttg.convert_layout",),
    "tritongpu-reorder-instructions": ("ttg.convert_layout", "tt.trans", *BUFFERS),
    "tritongpu-early-loads": ("tt.reduce", "tt.scan"),
    "tritongpu-prefetch-rows": ("tt.reduce", "tt.scan"),
    "tritongpu-repeated-loads": ("tt.load",),
    "tritongpu-longest-first": ("scf.for",),
    "tt-split-masked-loops": ("tt.dot",),
    "tt-unroll-short-loops": ("scf.for",),
    "tt-load-runs": ("tt.dot", "tt.dot_scaled", "tt.reduce"),
    "tritongpu-persistent-programs": ("ttng.warp_group_dot",),
    "tritongpu-shorten-partitions": ("ttg.warp_specialize",),
    "triton-nvidia-gpu-fence-insertion": ("ttng.warp_group_dot",),
    "triton-nvidia-tma-lowering": DESCRIPTORS,
    "tritongpu-coalesce-async-copy": ("ttg.async_copy_global_to_local",),
    "tritongpu-prefetch": ("scf.for",),
    "tritonamdgpu-convert-tensor-ops": DESCRIPTORS,
    "tritonamdgpu-sink-layout-conversions": ("ttg.convert_layout",),
    "tritonamdgpu-move-up-prologue-loads": ("tt.load",),
    "tritonamdgpu-prepare-if-combining": ("scf.if",),
    "convert-warp-pipeline": ("scf.execute_region",),
    "tritonamdgpu-expand-tensor-ops": (
        "amdg.scaled_upcast_fp4",
        "amdg.scaled_upcast_fp8",
        "amdg.upcast_mxfp",
        "amdg.local_load_packed_tranposed",
        "amdg.async_copy_local_to_global",
    ),
}

# Options of the reference compiler's passes that decide nothing here, so that its reproducers can be run: how often
# MLIR's drivers repeat a pass, and what the passes here do in the same way for every value.
DRIVER = ("max-iterations", "max-num-rewrites", "region-simplify", "test-convergence", "top-down")
WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    "canonicalize": DRIVER,
    "inline": ("default-pipeline", "inlining-threshold", "max-iterations"),
    "convert-triton-to-tritongpu": ("enable-source-remat",),  # dead conversions are dropped by later passes
    "convert-warp-pipeline": ("arch",),
    "nvgpu-warp-specialization": ("dump-intermediate-steps",),
    "tritongpu-automatic-warp-specialization": ("num-stages",),
    "tritongpu-hoist-tmem-alloc": ("hoist-out-of-if",),
    "tritongpu-optimize-dot-operands": ("hoist-layout-conversion",),  # as on every GPU with cp.async
    "tritongpu-pipeline": ("dump-intermediate-steps",),
    "tritonamdgpu-optimize-dot-operands": ("arch-generation-name",),
    "tritonamdgpu-update-async-wait-count": ("arch-generation-name",),  # widths of copies are on the copies
}


@light_dataclass(frozen=False, eq=False)  # not frozen: `with` sets the traceback of what it lets through
class UnknownPass(ValueError):
    """A pipeline names a pass that does not exist."""

    name: str

    def __str__(self) -> str:
        guess = did_you_mean(self.name, PASSES) or f"; there are: {', '.join(sorted(PASSES))}"
        return f"no pass is called `{self.name}`{guess}"


@light_dataclass(frozen=False, eq=False)  # not frozen: `with` sets the traceback of what it lets through
class BadPassOption(ValueError):
    """A pipeline gives a pass an option it does not have, or a value that the option cannot take."""

    pass_name: str
    option: str
    expected: str
    guess: str = ""

    def __str__(self) -> str:
        takes = f"; it takes: {self.expected or 'no options'}"
        return f"pass `{self.pass_name}` does not take `{self.option}`{self.guess or takes}"


@light_dataclass(frozen=False, eq=False)  # not frozen: `with` sets the traceback of what it lets through
class BadPipeline(ValueError):
    """The text of a pipeline cannot be read."""

    text: str
    position: int

    def __str__(self) -> str:
        return f"expected a pass name at position {self.position} of the pipeline `{self.text}`"


def get_pass(name: str) -> type[Pass]:
    """The class registered as `name`."""
    if (target := PASSES.get(name)) is not None:
        module, _, member = target.partition(":")
        found = getattr(import_module(f"tilework.transforms.{module}"), member)
    elif (plugin := find("tilework.passes", name)) is not None:
        found = plugin.load()
    else:
        raise UnknownPass(name)
    return found if isinstance(found, type) else DECLARED[found]


OPENED = re.compile(r"\s*(?:builtin\.module|any|tt\.func)\s*\(")
CLOSED = re.compile(r"\s*\)\s*(?:,|(?=\))|$)")
ITEM = re.compile(r"\s*([\w.-]+)\s*(?:\{([^}]*)\})?\s*(?:,|(?=\))|$)")


def parse_pipeline(text: str) -> list[Pass]:
    """The passes of ``a,b{o=v o2=v}``; any of them may be inside ``builtin.module(...)``, ``any(...)`` and
    ``tt.func(...)``.
    """
    return [make_pass(*item) for item in pipeline_items(text)]


def pipeline_items(text: str) -> list[tuple[str, str]]:
    """Return the name and the options of each pass of a pipeline.

    >>> pipeline_items("any(cse,tt.func(tritonamdgpu-block-pingpong{num-stages=2}))")
    [('cse', ''), ('tritonamdgpu-block-pingpong', 'num-stages=2')]
    """
    items: list[tuple[str, str]] = []
    position = depth = 0
    while position < len(text) and not text[position:].isspace():
        if (found := OPENED.match(text, position)) is not None:
            depth += 1
        elif depth and (found := CLOSED.match(text, position)) is not None:
            depth -= 1
        elif (found := ITEM.match(text, position)) is not None:
            items.append((found[1], found[2] or ""))
        else:
            raise BadPipeline(text, position)
        position = found.end()
    if depth:
        raise BadPipeline(text, position)
    return items


def make_pass(name: str, options: str = "") -> Pass:
    """The pass `name` with ``option=value`` pairs separated by blanks; an option alone is true."""
    kind = get_pass(name)
    known: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}  # pyright: ignore[reportArgumentType]
    values: dict[str, object] = {}
    for option in options.split():
        key, _, value = option.partition("=")
        if key in WITHOUT_EFFECT.get(name, ()):
            continue
        field = known.get(key.replace("-", "_").lower())
        if field is None and "target" in known and (spelling := find("tilework.target_options", key)) is not None:
            field, value = known["target"], spelling.load()(value)
        if field is None:
            spellings = [name.replace("_", "-") for name in known]
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
        for stage in parse_pipeline(item) if isinstance(item, str) else (item,):
            stage.run(module)
            if after is not None:
                after(stage, module)


class Present:
    """The ops and kinds of types in a module: ``Present(module).serves(NEEDS["triton-loop-unroll"])``."""

    def __init__(self, module: Operation) -> None:
        self.ops = ops_in_order(*module.regions)
        self.names = {op.name for op in self.ops}

    @cached_property
    def kinds(self) -> set[str]:
        """The kinds of types. Types are shared: each is tested once."""
        types = {id(type): type for op in self.ops for type in given_types(op)}
        return {kind for kind, holds in KINDS.items() if any(map(holds, types.values()))}

    def serves(self, needs: Sequence[str]) -> bool:
        """Return True if the module has one of the `needs`."""
        return not self.names.isdisjoint(needs) or (needs[0] in KINDS and not self.kinds.isdisjoint(needs))


# The pipelines of the stages that all targets share, as lists of names for `run_pipeline`.

COPIED_DESCRIPTORS = ["tt-odd-descriptors-to-pointers", "triton-remake-carried-descriptors"]


def ttir_pipeline(
    target: Target, finds_races: bool = False, checks: Sequence[str] = (), reproducible: bool = False
) -> list[str]:
    """The passes over TTIR; descriptors are kept on targets with TMA, and become pointers elsewhere.

    The race detector must see which loads the user has made volatile, so that spin loads are not marked for it
    (`finds_races`). `checks` are the passes of the sanitizer. Tiles of GPUs are padded last, so that all passes see the
    sizes of the user.

    >>> ttir_pipeline(Target.parse("cuda:90"))[:3]
    ['inline', 'tt-spin-loads', 'triton-count-exits']
    """
    has_descriptors = Feature.TMA in target.features
    is_ordered = target.warp_size == 1 or reproducible  # accesses of a program, also through arguments that overlap
    return [
        "inline",
        *([] if finds_races else ["tt-spin-loads"]),
        f"triton-count-exits{'{may-alias=true}' if is_ordered else ''}",
        *(["triton-lift-skipped-loads"] if target.warp_size > 1 else []),
        "triton-rewrite-tensor-pointer",
        *(COPIED_DESCRIPTORS if has_descriptors else ["triton-rewrite-tensor-descriptor-to-pointer"]),
        "canonicalize",
        "triton-combine",
        "triton-reorder-broadcast",
        "cse",
        "symbol-dce",
        "triton-loop-unroll",
        *(["tt-visible-nans"] if reproducible else []),
        *(["tt-memory-in-order"] if reproducible and target.warp_size > 1 else []),
        *checks,
        *(["pad-tiles"] if target.warp_size > 1 else []),
    ]


def checking_pipeline(sanitize: bool | str) -> list[str]:
    """The passes that the sanitizer adds to optimised TTIR for a GPU; descriptors and block pointers are pointers
    by then."""
    strict = str(sanitize == "strict").lower()
    return [f"triton-check-undefined{{strict={strict}}}", "triton-check-bounds", "canonicalize", "cse"]


def ttc_pipeline(sanitize: bool | str = False, may_alias: bool = False) -> list[str]:
    """The passes from optimised TTIR to loop nests over buffers, for the CPU; with checks of accesses if `sanitize`.

    `may_alias`: arguments may be the same or overlapping memory.
    """
    strict = str(sanitize == "strict").lower()
    return [
        *([f"triton-check-undefined{{strict={strict}}}"] if sanitize else []),
        "triton-licm",
        "ttc-uniform-increments",
        "ttc-check-steps",
        f"convert-triton-to-tile-loops{'{may-alias=true}' if may_alias else ''}",
        "canonicalize",
        "cse",
        *(["ttc-sanitize"] if sanitize else []),
    ]
