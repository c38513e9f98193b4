"""Say where the scratch memory that each program has in global memory lies (`analysis/allocation.py`).

    %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}      offset 0
    tt.call @helper()                                                              offset 128: the memory of @helper
    module attributes {ttg.global_scratch_memory_size = 256 : i32, ...}

Offsets (`ttg.global_scratch_memory_offset`) are relative to the function; sizes and alignments are on functions and module.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import Frame, global_scratch, public_functions
from tilework.ir.functions import functions_by_name, modules
from tilework.ir.types import i32, int_attr
from tilework.transforms.passes import module_pass

OFFSET = "ttg.global_scratch_memory_offset"
SIZE = "ttg.global_scratch_memory_size"
ALIGNMENT = "ttg.global_scratch_memory_alignment"


@module_pass("tritongpu-global-scratch-memory-allocation")
def allocate_global_scratch(module: ModuleOp) -> None:
    for table in modules(module):
        found = global_scratch(table)
        for inner, offset in found.offsets.items():
            inner.attributes[OFFSET] = int_attr(offset, i32)
        for name, function in functions_by_name(table).items():
            record(function, found.frames[name])
        record(table, found.whole(public_functions(table)))


def record(op: Operation, frame: Frame) -> None:
    op.attributes[SIZE] = int_attr(frame.size, i32)
    op.attributes[ALIGNMENT] = int_attr(frame.alignment, i32)
