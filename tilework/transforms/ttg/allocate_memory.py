"""Annotate each op with the offset of its shared memory, and the module with the total size; the same for global
scratch memory.

    %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
    %y = ttg.convert_layout %x {allocation.offset = 4096 : i32}
    module attributes {ttg.shared = 8192 : i32, ...}

The offsets come from `analysis/allocation.py`. `ttg.shared` is the maximum over all functions.
Stage: TTGIR, or TTGIR with branches. Cost: one walk, and the square of the number of buffers.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import Frame, allocations, global_scratch, public_functions
from tilework.ir.functions import functions_by_name, modules
from tilework.ir.module_facts import ANY_GPU, find_target
from tilework.ir.types import i32, int_attr
from tilework.target import Target
from tilework.transforms.passes import Pass, module_pass

SHARED_OFFSET = "allocation.offset"
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
    """Allocate all buffers of the module for this target."""
    size = 0
    for allocation in allocations(module, target):
        for buffer in allocation.buffers:
            buffer.owner.attributes[SHARED_OFFSET] = int_attr(buffer.offset, i32)
        size = max(size, allocation.size)
    module.attributes[SHARED] = int_attr(size, i32)


# Assign offsets to the scratch memory that each program has in global memory (`analysis/allocation.py`).
#
#     %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}      offset 0
#     tt.call @callee()                                                              offset 128: the memory of @callee
#     module attributes {ttg.global_scratch_memory_size = 256 : i32, ...}
#
# Offsets (`ttg.global_scratch_memory_offset`) are relative to the function; sizes and alignments are on functions and
# module.
# Stage: TTGIR to TTGIR. Cost: one walk.

SCRATCH_OFFSET = "ttg.global_scratch_memory_offset"
SIZE = "ttg.global_scratch_memory_size"
ALIGNMENT = "ttg.global_scratch_memory_alignment"


@module_pass("tritongpu-global-scratch-memory-allocation")
def allocate_global_scratch(module: ModuleOp) -> None:
    for table in modules(module):
        found = global_scratch(table)
        for inner, offset in found.offsets.items():
            inner.attributes[SCRATCH_OFFSET] = int_attr(offset, i32)
        for name, function in functions_by_name(table).items():
            record(function, found.frames[name])
        record(table, found.whole(public_functions(table)))


def record(op: Operation, frame: Frame) -> None:
    op.attributes[SIZE] = int_attr(frame.size, i32)
    op.attributes[ALIGNMENT] = int_attr(frame.alignment, i32)
