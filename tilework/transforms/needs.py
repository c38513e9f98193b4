"""The ops or kinds of types of which a module must have at least one for a pass to have work; other passes are not even
loaded.

present = Present(module)
if present.serves(NEEDS["triton-loop-unroll"]):         # there is an `scf.for`
"""

from collections.abc import Sequence

from xdsl.ir import Operation

from tilework.ir.functions import given_types, ops_in_order
from tilework.ir.types import is_block_pointer, is_descriptor, is_odd
from tilework.process.forks import cached_property

KINDS = {"block pointer": is_block_pointer, "descriptor": is_descriptor, "odd tile": is_odd}
LOOPS = ("scf.for", "scf.while")
DESCRIPTIONS = ("tt.make_tensor_descriptor", "tt.descriptor_load", "tt.descriptor_store", "tt.descriptor_reduce")
DESCRIPTIONS = (*DESCRIPTIONS, "tt.descriptor_gather", "tt.descriptor_scatter")
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
    "tritongpu-fetch-ahead": ("tt.reduce", "tt.scan"),
    "tritongpu-repeated-loads": ("tt.load",),
    "tritongpu-longest-first": ("scf.for",),
    "tritongpu-persistent-programs": ("ttng.warp_group_dot",),
    "tritongpu-shorten-partitions": ("ttg.warp_specialize",),
    "triton-nvidia-gpu-fence-insertion": ("ttng.warp_group_dot",),
    "triton-nvidia-tma-lowering": DESCRIPTIONS,
    "tritongpu-coalesce-async-copy": ("ttg.async_copy_global_to_local",),
    "tritongpu-prefetch": ("scf.for",),
}


class Present:
    """The ops and kinds of types in a module."""

    def __init__(self, module: Operation) -> None:
        self.ops = ops_in_order(*module.regions)
        self.names = {op.name for op in self.ops}

    @cached_property
    def kinds(self) -> set[str]:
        """Of types. Those are shared: each is looked at once."""
        types = {id(type): type for op in self.ops for type in given_types(op)}
        return {kind for kind, holds in KINDS.items() if any(map(holds, types.values()))}

    def serves(self, needs: Sequence[str]) -> bool:
        """Return True if there is one of the `needs`."""
        return not self.names.isdisjoint(needs) or (needs[0] in KINDS and not self.kinds.isdisjoint(needs))
