"""Split layout conversions that need too much LDS into two steps.

    %y = ttg.convert_layout %x : #rows -> #columns          128x256xf32: 128 KiB
    ==>
    %t = ttg.convert_layout %x : #rows -> #tmp              32 KiB
    %y = ttg.convert_layout %t : #tmp -> #columns           64 KiB

The intermediate layout has the per-thread elements of the source, of the result, or one element; among all
distributions of lanes and warps the pass takes the one whose larger step is smallest. It fires only where the kernel
does not fit, on the largest conversions first, until it fits. A kernel that does not fit even then is refused.
Stage: TTGIR to TTGIR. Cost: one walk; where the kernel does not fit, an allocation and a search for each conversion.
"""

from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import allocations, explicit_bytes
from tilework.analysis.scratch import SCRATCH_ALIGNMENT, scratch_size
from tilework.errors import LOCATION, DoesNotFit
from tilework.ir import ttg
from tilework.ir.encodings import distributed_of, layout_of, with_encoding
from tilework.ir.functions import symbol_of
from tilework.ir.module_facts import chosen_target, num_warps, threads_per_warp
from tilework.ir.rewrite import recreate, replace_op
from tilework.ir.types import bit_width, shape_of
from tilework.layouts.construct import default_blocked
from tilework.layouts.conversion import scratch_bytes
from tilework.layouts.encodings import Blocked
from tilework.layouts.to_linear import contig_per_thread, order, to_linear
from tilework.target import Target
from tilework.transforms.passes import Pass


class OptimizeLdsUsagePass(Pass):
    name = "optimize-amd-lds-usage"
    target: str = ""
    lds_limit: int = 0  # bytes; 0: those of the target

    def run(self, module: ModuleOp) -> None:
        target = chosen_target(module, self.target)
        fit(module, target, self.lds_limit or target.limits.shared_bytes)


def fit(module: ModuleOp, target: Target, limit: int) -> None:
    """Split conversions until every kernel fits into `limit` bytes."""
    if most_bytes(module, target) <= limit:
        return
    sizes = {op: scratch_size(op, target) for op in module.walk() if type(op) is ttg.ConvertLayoutOp}
    converts = sorted((op for op in sizes if sizes[op]), key=lambda op: sizes[op])
    while (largest := max(allocations(module, target), key=lambda found: found.size)).size > limit:
        if not converts:
            kernel, locations = symbol_of(largest.function), LOCATION.findall(str(largest.function.location))
            line = f" ({locations[0][0]}:{locations[0][1]})" if locations else ""
            raise DoesNotFit(largest.size, limit, f"LDS of `{kernel}`{line} on {target}")
        convert = converts.pop()
        in_two_steps(convert, sizes[convert], target)


def most_bytes(module: ModuleOp, target: Target) -> int:
    """Return an upper bound of the LDS of the kernel: all buffers and all scratch memory at once."""
    sizes = (explicit_bytes(op) if type(op) is ttg.LocalAllocOp else scratch_size(op, target) for op in module.walk())
    return sum(-(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT for size in sizes)


def in_two_steps(convert: Operation, bytes: int, target: Target) -> None:
    """Replace `convert` by two conversions if the larger of them needs less."""
    source, result = convert.operands[0], convert.results[0]
    shape, bits = shape_of(source.type), bit_width(source.type)
    ends = layout_of(source.type), layout_of(result.type)
    best: Blocked | None = None
    for between in steps(convert):
        middle = to_linear(between, shape)
        halves = ((ends[0], middle), (middle, ends[1]))
        larger = max(scratch_bytes(*half, bits, *target.matrix_access) for half in halves)
        if larger < bytes:
            best, bytes = between, larger
    if best is not None:
        first = ttg.ConvertLayoutOp.make(source, with_encoding(source.type, best), convert.location)
        replace_op(convert, first, recreate(convert, operands=first.results))


def steps(convert: Operation) -> Iterator[Blocked]:
    """Yield intermediate layouts: with the adjacent elements of either end, or one, and any grid of lanes and warps."""
    values = (convert.operands[0], convert.results[0])
    shape, warps, lanes = shape_of(values[0].type), num_warps(convert), threads_per_warp(convert)
    ends = [layout for value in values if (layout := distributed_of(value.type)) is not None]
    held = [(contig_per_thread(layout, shape), order(layout, shape)) for layout in ends]
    for size, axes in dict.fromkeys((*held, ((1,) * len(shape), held[0][1]))):
        layout = default_blocked(shape, size, axes, warps, lanes)
        for across in spreads(lanes, len(shape)):
            for spread in spreads(warps, len(shape)):
                yield replace(layout, threads_per_warp=across, warps_per_cta=spread)


def spreads(count: int, rank: int) -> Iterator[tuple[int, ...]]:
    """Yield the factorisations of `count`, a power of two, into `rank` factors."""
    if rank == 1:
        yield (count,)
        return
    factor = 1
    while factor <= count:
        yield from ((factor, *rest) for rest in spreads(count // factor, rank - 1))
        factor *= 2
