"""Allocate shared memory, global scratch memory, and the warps and registers of partitions.

Each op is annotated with the offset of its shared memory, the module with the total size:

    %m = ttg.local_alloc %x {allocation.offset = 0 : i32}
    %y = ttg.convert_layout %x {allocation.offset = 4096 : i32}
    module attributes {ttg.shared = 8192 : i32, ...}

The offsets come from `analysis/allocation.py`. `ttg.shared` is the maximum over all functions.
Stage: TTGIR, or TTGIR with branches. Cost: one walk, and the square of the number of buffers.
"""

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from tilework.analysis.allocation import Frame, allocations, global_scratch, public_functions
from tilework.ir import ttg
from tilework.ir.functions import functions_by_name, modules, ops_in_order
from tilework.ir.module_facts import (
    ANY_GPU,
    MAX_REGISTERS,
    TOTAL_WARPS,
    chosen_target,
    find_num_warps,
    find_target,
    integer,
    threads_per_warp,
)
from tilework.ir.types import array_values, i32, i32_array, int_attr
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
        allocate(module, chosen_target(module, self.target))


class AllocateAmdGpuSharedMemoryPass(Pass):
    name = "allocate-amdgpu-shared-memory"
    target: str = ""

    def run(self, module: ModuleOp) -> None:
        allocate(module, chosen_target(module, self.target))


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


# Give the partitions of `ttg.warp_specialize` their warps.
#
#     num-warps 4, partitions of 1 and 4 warps    ==>    warpGroupStartIds = array<i32: 10, 4, 8, 11>
#                                                        "ttg.total-num-warps" = 12 : i32
#
# The warps after those of the default region come in groups of four, as many as the largest op of the module needs; in
# every op the remaining warps get partitions that do nothing. Large partitions come first, so that one of four
# warps is a group. Where partitions request registers, a group gets the largest request of its partitions, and the
# default region the rest of the block's registers; if that is too little, registers are shared equally.
# Stage: TTGIR to TTGIR. Cost: one walk.

GROUP = 4  # warps of a warp group
IDLE_REGISTERS = 16
LEAST_REGISTERS = 24  # the minimum of `setmaxnreg`
MOST_REGISTERS = 255  # that a kernel may start with


@module_pass("tritongpu-allocate-warp-groups")
def allocate_warp_groups(module: ModuleOp) -> None:
    base = find_num_warps(module)
    if base is None:
        return
    special = [inner for inner in ops_in_order(*module.regions) if isinstance(inner, ttg.WarpSpecializeOp)]
    extra = extra_warps(special)
    for inner in special:
        pad(inner, extra - sum(warps_of(inner)))
        inner.properties["warpGroupStartIds"] = i32_array(*start_ids(warps_of(inner), base))
    module.attributes[TOTAL_WARPS] = int_attr(base + extra, i32)
    if any("requestedRegisters" in inner.properties for inner in special):
        limit = integer(module.attributes, MAX_REGISTERS)
        if limit is None:
            share = find_target(module).limits.registers // (threads_per_warp(module) * (base + extra))
            limit = min(share, MOST_REGISTERS) // 8 * 8
            module.attributes[MAX_REGISTERS] = int_attr(limit, i32)
        for inner in special:
            share_registers(inner, base, extra, limit)


def extra_warps(special: Iterable[ttg.WarpSpecializeOp]) -> int:
    """Return the number of warps beyond those of the default region."""
    return -(-max((sum(warps_of(op)) for op in special), default=0) // GROUP) * GROUP


def warps_of(op: ttg.WarpSpecializeOp) -> tuple[int, ...]:
    """Return the warps of each partition."""
    return array_values(op.properties["partitionNumWarps"])


def pad(op: ttg.WarpSpecializeOp, missing: int) -> None:
    """Add partitions that return at once, until `op` has as many warps as the others: 3 missing are 2 and 1."""
    added: list[int] = []
    while missing:
        added.append(1 << missing.bit_length() - 1)
        missing -= added[-1]
    holder = op.partition_holder.blocks[0].first_op
    assert isinstance(holder, ttg.WarpSpecializePartitionsOp)
    for _ in added:
        block = Block([ttg.WarpReturnOp.make(op.location)], arg_types=[value.type for value in op.operands])
        holder.add_region(Region(block))
    op.properties["partitionNumWarps"] = i32_array(*warps_of(op), *added)
    if (wanted := op.properties.get("requestedRegisters")) is not None:
        op.properties["requestedRegisters"] = i32_array(*array_values(wanted), *[IDLE_REGISTERS] * len(added))


def start_ids(warps: Sequence[int], base: int) -> list[int]:
    """Return the first warp of each partition, the largest partitions first.

    >>> start_ids([1, 4, 2, 1], 4)
    [10, 4, 8, 11]
    """
    ids, following = [0] * len(warps), base
    for index in sorted(range(len(warps)), key=lambda index: -warps[index]):
        ids[index] = following
        following += warps[index]
    return ids


def share_registers(op: ttg.WarpSpecializeOp, base: int, extra: int, limit: int) -> None:
    """Set the registers per thread of the default region and of every partition, if partitions request some."""
    wanted = op.properties.get("requestedRegisters")
    if wanted is None:
        return
    starts = array_values(op.properties["warpGroupStartIds"])
    most: dict[int, int] = {}
    for start, requested in zip(starts, array_values(wanted), strict=True):
        most[start // GROUP] = max(most.get(start // GROUP, LEAST_REGISTERS), -(-requested // 8) * 8)
    sizes = dict(zip(starts, warps_of(op), strict=True))
    taken = sum(most[start // GROUP] * max(GROUP, sizes[start]) for start in starts if start % GROUP == 0)
    left = (limit * (base + extra) - taken) // base // 8 * 8
    if left >= LEAST_REGISTERS:
        op.properties["actualRegisters"] = i32_array(left, *(most[start // GROUP] for start in starts))
