"""Passes of the reference compiler that only Blackwell needs, so that its reproducers for other GPUs can be run.

No op here uses tensor memory or makes two-CTA matmuls, so passes over those find nothing. Partitions of warps for
Blackwell are refused where a module has a loop, or partitions, that the pass would change.
"""

from xdsl.dialects.builtin import ModuleOp

from tilework.errors import PassError
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import find_target
from tilework.ir.ttg.warp_specialize_ops import WarpSpecializeOp
from tilework.transforms.passes import module_pass

WARP_SPECIALIZE = "tt.warp_specialize"  # of a loop
PARTITIONING = "tritongpu-automatic-warp-specialization"


# Do nothing to tensor memory, which no module has.
# Stage: TTGIR to TTGIR. Cost: none.


@module_pass("triton-tensor-memory-allocation")
def tensor_memory(module: ModuleOp) -> None: ...


# Refuse to make or to change partitions as for Blackwell; `nvgpu-warp-specialization` makes those for Hopper.
# Stage: TTGIR to TTGIR. Cost: one walk.


@module_pass(PARTITIONING)
def refuse_partitions(module: ModuleOp) -> None:
    for op in ops_in_order(*module.regions):
        if WARP_SPECIALIZE in op.attributes or type(op) is WarpSpecializeOp:
            raise PassError(
                f"{op.name} cannot be partitioned for {find_target(op)}: tilework specializes warps for Hopper only",
                op.location,
            )
