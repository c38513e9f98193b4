"""Convert the pointers of async copies to the layout that the instruction writes to LDS.

    128x64xf16 into LDS by rows, 4 bytes at a time, waves of 64:
    ttg.async_copy_global_to_local %p, %m   ==>   %q = ttg.convert_layout %p : -> 2 elements per lane, 32 lanes per row
                                                  ttg.async_copy_global_to_local %q, %m

One instruction writes the lanes of a wave to consecutive LDS addresses. So the lowest register bits are the adjacent
elements of one copy, followed by lanes, warps and further copies, in the order of unswizzled LDS offsets; the lowering
applies the swizzle by permuting the addresses that the lanes of a wave read. No copy crosses the padding of LDS.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir import amdg, ttg
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.module_facts import num_warps, threads_per_warp
from tilework.ir.module_facts import target as target_of
from tilework.ir.rewrite import defining_op, replace_op
from tilework.ir.types import Shape, bit_width, i32, int_attr, int_property, shape_of
from tilework.layouts.amd import wave_copy
from tilework.layouts.banks import offsets_of
from tilework.layouts.encodings import Linear, Shared
from tilework.layouts.linear import LinearLayout, log2
from tilework.layouts.to_linear import to_linear
from tilework.target import Target
from tilework.transforms.building.emitter import laid_out
from tilework.transforms.passes import module_pass, op_pass

COPY_BYTES = {"lds_copy_16": 16, "lds_copy_4": 4}  # by the feature of a target, the widest first


@op_pass("tritonamdgpu-coalesce-async-copy", ttg.AsyncCopyGlobalToLocalOp)
def spread(copy: ttg.AsyncCopyGlobalToLocalOp) -> None:
    bits, shape, memory = bit_width(copy.dst.type), shape_of(copy.src.type), encoding_of(copy.dst.type)
    assert isinstance(memory, Shared), memory
    contiguous = min([int_property(copy, "contiguity"), *(interval for interval, _ in memory.intervals)])
    if (width := copied_together(contiguous * bits // 8, target_of(copy)) * 8 // bits) == 0:
        return
    layout = lanes_in_order(shape, memory, width, threads_per_warp(copy), num_warps(copy))
    if layout is None:
        return
    copy.properties["contiguity"] = int_attr(width, i32)
    for index, operand in enumerate(copy.operands):
        if index != 1:  # the memory
            copy.operands[index] = laid_out(copy, operand, layout)


def copied_together(bytes: int, target: Target) -> int:
    """Return the bytes per lane that one instruction copies, of so many contiguous ones; 0 if there is none."""
    return next((size for name, size in COPY_BYTES.items() if name in target.features and size <= bytes), 0)


def lanes_in_order(shape: Shape, memory: Shared, width: int, lanes: int, warps: int) -> Linear | None:
    """Return the layout of adjacent elements, lanes, warps, then further registers; None if the tensor is smaller."""
    memory_layout = to_linear(memory.unswizzled(), shape)
    bases = dict(memory_layout.bases)["offset"]
    first, second = log2(width), log2(width) + log2(lanes)
    third = second + log2(warps)
    if len(bases) < third:
        return None
    levels = {"register": (*bases[:first], *bases[third:]), "lane": bases[first:second], "warp": bases[second:third]}
    return Linear(LinearLayout({**levels, "block": ()}, memory_layout.out_names))


# Convert waits for groups of copies to waits for instructions, which the GPU counts.
#
#     %w = ttg.async_wait %g {num = 2 : i32}     ==>     %w = amdg.async_wait %g {num_inst = 8 : i32}    (4 per group)
#
# Pending groups are counted with the smallest number of instructions of any group in the kernel, so that the count is
# never too large.
# Stage: TTGIR to TTGIR. Cost: one walk.


@module_pass("tritonamdgpu-update-async-wait-count")
def update_async_wait_count(module: ModuleOp) -> None:
    ops = list(module.walk())
    groups = [instructions(op) for op in ops if type(op) is ttg.AsyncCommitGroupOp]
    for op in ops:
        if type(op) is ttg.AsyncWaitOp:
            allowed = int_property(op, "num") * min(groups, default=0)
            replace_op(op, amdg.AsyncWaitOp.make(tuple(op.operands), allowed, op.location))


def instructions(commit: Operation) -> int:
    """Return the minimum number of copy instructions of a group: copies by loads and stores count as none."""
    total = 0
    for copy in (defining_op(token) for token in commit.operands):
        if copy is not None and type(copy) is amdg.BufferLoadToLocalOp:
            memory_layout = layout_of(copy.operands[2].type)
            width = int_property(copy, "contiguity")
            if wave_copy(offsets_of(memory_layout, layout_of(copy.operands[0].type)), width) is not None:
                total += (1 << len(memory_layout.by_in["register"])) // width
    return total
