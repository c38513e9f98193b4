"""Write the place of every buffer of shared memory onto the op that owns it, and the size of it all onto the module.

    %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
    %y = ttg.convert_layout %x {allocation.offset = 4096 : i32}
    module attributes {ttg.shared = 8192 : i32, ...}

The offsets come from `analysis/allocation.py`. `ttg.shared` is what the largest of the functions needs.
Stage: TTGIR, or TTGIR with branches. Cost: one walk, and the square of the number of buffers.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilework.analysis.allocation import allocations
from tilework.ir.module_facts import ANY_GPU, find_target
from tilework.ir.types import i32, int_attr
from tilework.target import Target

OFFSET = "allocation.offset"
SHARED = "ttg.shared"


@dataclass(frozen=True)
class AllocateSharedMemoryPass(ModulePass):
    name = "allocate-shared-memory"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        allocate(op, ANY_GPU)


@dataclass(frozen=True)
class AllocateSharedMemoryNvPass(ModulePass):
    name = "allocate-shared-memory-nv"
    target: str = ""
    ptx_version: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        allocate(op, Target.parse(self.target) if self.target else find_target(op))


def allocate(module: ModuleOp, target: Target) -> None:
    """Place all buffers of the module for this target."""
    size = 0
    for allocation in allocations(module, target):
        for buffer in allocation.buffers:
            buffer.owner.attributes[OFFSET] = int_attr(buffer.offset, i32)
        size = max(size, allocation.size)
    module.attributes[SHARED] = int_attr(size, i32)
