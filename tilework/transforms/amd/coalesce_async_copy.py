"""Bring the pointers of copies to LDS into the layout that the instruction writes.

    128x64xf16 into LDS by rows, 4 bytes at a time, waves of 64:
    ttg.async_copy_global_to_local %p, %m        ==>     %q = ttg.convert_layout %p : ... -> 2 neighbours in a lane, 32 lanes in a row
                                                         ttg.async_copy_global_to_local %q, %m

One instruction writes lane after lane behind one place of the wave. So registers are first the neighbours that one copy moves, then
come lanes, warps and further copies, in the order of offsets in LDS without its swizzle, which permutes what the lanes of a wave read (the
lowering). No copy crosses the padding of LDS.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from tilework.ir import ttg
from tilework.ir.encodings import encoding_of
from tilework.ir.module_facts import num_warps, threads_per_warp
from tilework.ir.module_facts import target as target_of
from tilework.ir.types import Shape, bit_width, i32, int_attr, shape_of
from tilework.layouts.encodings import Linear
from tilework.layouts.families import Shared
from tilework.layouts.linear import LinearLayout
from tilework.layouts.packing import log2
from tilework.layouts.to_linear import to_linear
from tilework.target import Target
from tilework.transforms.building.conversions import laid_out
from tilework.transforms.passes import op_pass

COPY_BYTES = {"lds_copy_16": 16, "lds_copy_4": 4}  # by the feature of a target, the widest first


@op_pass("tritonamdgpu-coalesce-async-copy", ttg.AsyncCopyGlobalToLocalOp)
def spread(copy: ttg.AsyncCopyGlobalToLocalOp) -> None:
    bits, shape, memory = bit_width(copy.dst.type), shape_of(copy.src.type), encoding_of(copy.dst.type)
    assert isinstance(memory, Shared), memory
    beside = min([copy.properties["contiguity"].value.data, *(interval for interval, _ in memory.intervals)])  # pyright: ignore
    if (width := copied_together(beside * bits // 8, target_of(copy)) * 8 // bits) == 0:
        return
    layout = lanes_in_order(shape, memory, width, threads_per_warp(copy), num_warps(copy))
    if layout is None:
        return
    copy.properties["contiguity"] = int_attr(width, i32)
    for index, operand in enumerate(copy.operands):
        if index != 1:  # the memory
            copy.operands[index] = laid_out(copy, operand, layout)


def copied_together(bytes: int, target: Target) -> int:
    """What one instruction copies for a lane of so many neighbours; 0: none does."""
    return next((size for name, size in COPY_BYTES.items() if name in target.features and size <= bytes), 0)


def lanes_in_order(shape: Shape, memory: Shared, width: int, lanes: int, warps: int) -> Linear | None:
    """Neighbours in `memory`, then lanes, then warps, then further registers; None if the tensor is smaller."""
    places = to_linear(memory.unswizzled(), shape)
    bases = dict(places.bases)["offset"]
    first, second = log2(width), log2(width) + log2(lanes)
    third = second + log2(warps)
    if len(bases) < third:
        return None
    levels = {"register": (*bases[:first], *bases[third:]), "lane": bases[first:second], "warp": bases[second:third]}
    return Linear(LinearLayout({**levels, "block": ()}, places.out_names))
