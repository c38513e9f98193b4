"""Let no thread of an asynchronous copy hold more neighbours than it can write to shared memory at once.

    int8 pointers with 16 neighbours per thread, into memory that is swizzled in pieces of 8:

    ttg.async_copy_global_to_local %p, %m           %q = ttg.convert_layout %p : [1, 16] -> [1, 8] per thread
                                             ==>    ttg.async_copy_global_to_local %q, %m

One `cp.async` moves bytes that are side by side in global and in shared memory. Where the swizzle cuts a thread's
neighbours into several pieces, threads would write far apart; with fewer elements for each thread, neighbouring threads
write neighbouring pieces. Only from pointers in a blocked layout to memory in a swizzled one: that of tensor cores is
swizzled in pieces of 16 bytes, the most that a copy moves.
Stage: TTGIR to TTGIR. Cost: one walk; AxisInfo if something changes.
"""

from xdsl.dialects.builtin import ModuleOp

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.ir import ttg
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.ir.types import Shape, i32, int_attr, shape_of
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Blocked, SwizzledShared
from tilework.layouts.queries import contig_per_thread
from tilework.transforms.building.conversions import laid_out
from tilework.transforms.passes import module_pass


@module_pass("tritongpu-coalesce-async-copy")
def coalesce_async_copy(module: ModuleOp) -> None:
    copies = [inner for inner in ops_in_order(*module.regions) if isinstance(inner, ttg.AsyncCopyGlobalToLocalOp)]
    wanted = [(copy, encoding) for copy in copies if (encoding := clipped(copy)) is not None]
    if wanted:
        facts = axis_info(module)
        for copy, encoding in wanted:
            convert_operands(copy, encoding, facts)


def clipped(copy: ttg.AsyncCopyGlobalToLocalOp) -> Blocked | None:
    """The layout with as many neighbours per thread as one write takes; None if the pointers have no more."""
    pointers = copy.src.type
    given = encoding_of(pointers)
    if not isinstance(given, Blocked) or not isinstance(encoding_of(copy.dst.type), SwizzledShared):
        return None
    shape, fastest = shape_of(pointers), given.order[0]
    most = written_together(copy)
    if contig_per_thread(given, shape)[fastest] <= most:
        return None
    size: Shape = tuple(min(held, most) if dim == fastest else held for dim, held in enumerate(given.size_per_thread))
    return default_blocked(shape, size, given.order, num_warps(copy), threads_per_warp(copy), num_ctas(copy))


def written_together(copy: ttg.AsyncCopyGlobalToLocalOp) -> int:
    """How many registers of a thread, from the first, are neighbours in shared memory."""
    return layout_of(copy.src.type).invert_and_compose(layout_of(copy.dst.type)).num_consecutive_in_out


def convert_operands(copy: ttg.AsyncCopyGlobalToLocalOp, encoding: Blocked, facts: AxisFacts) -> None:
    """Bring the pointers and what belongs to them to `encoding`, and say again how many are contiguous."""
    pointers, mask = copy.src, copy.mask
    contiguity = facts.contiguity(pointers, encoding.order, contig_per_thread(encoding, shape_of(pointers.type)))
    if mask is not None:
        contiguity = min(contiguity, facts.mask_alignment(mask, encoding.order))
    for index, operand in enumerate(tuple(copy.operands)):
        if index != 1:  # the memory
            copy.operands[index] = laid_out(copy, operand, encoding)
    copy.properties["contiguity"] = int_attr(contiguity, i32)
