"""Write the place of every buffer of shared memory onto the op that owns it, and the size of it all onto the module.

    %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
    %y = ttg.convert_layout %x {allocation.offset = 4096 : i32}
    module attributes {ttg.shared = 8192 : i32, ...}

The offsets come from `analysis/allocation.py`. `ttg.shared` is what the largest of the functions needs.
Stage: TTGIR, or TTGIR with branches. Cost: one walk, and the square of the number of buffers.
"""

from xdsl.dialects.builtin import ModuleOp

from tilework.analysis.allocation import allocations
from tilework.ir.module_facts import ANY_GPU, find_target
from tilework.ir.types import i32, int_attr
from tilework.target import Target
from tilework.transforms.passes import Pass, module_pass

OFFSET = "allocation.offset"
SHARED = "ttg.shared"


@module_pass("allocate-shared-memory")
def allocate_shared_memory(module: ModuleOp) -> None:
    allocate(module, ANY_GPU)


class AllocateSharedMemoryNvPass(Pass):
    name = "allocate-shared-memory-nv"
    target: str = ""
    ptx_version: int = 0

    def run(self, module: ModuleOp) -> None:
        allocate(module, Target.parse(self.target) if self.target else find_target(module))


def allocate(module: ModuleOp, target: Target) -> None:
    """Place all buffers of the module for this target."""
    size = 0
    for allocation in allocations(module, target):
        for buffer in allocation.buffers:
            buffer.owner.attributes[OFFSET] = int_attr(buffer.offset, i32)
        size = max(size, allocation.size)
    module.attributes[SHARED] = int_attr(size, i32)
