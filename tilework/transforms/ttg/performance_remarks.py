"""Say where finished TTGIR will be slow, and why; the module stays as it is.

    kernel.py:9:17: remark: this load is not coalesced: a warp reads 4 bytes in a row, a memory sector has 32. Neighbouring
                    elements are not known to be next to each other in memory

    access not coalesced      the threads of a warp touch runs of bytes shorter than a sector
    vectorization fails       a thread has several elements and reads them one by one: the pointers would allow `origin vec`
                              at a time, the mask `mask` (-1 without a mask)
    narrow access             what a thread reads at a time is less than 4 bytes
    conversion in a loop      a change of layout that goes through shared memory, in every iteration

Dots that do not use tensor cores and loops that are not pipelined are told by the passes that decide it. All go through
`remarks.remark`: nothing is computed unless somebody listens. Stage: TTGIR. Cost: AxisInfo, and one walk.
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.ir import tt, ttg
from tilework.ir.encodings import (
    distributed_of,
    layout_of,
    spread_of,
)
from tilework.ir.module_facts import find_target
from tilework.ir.nesting import loop_around
from tilework.ir.types import bit_width, shape_of
from tilework.layouts.conversion import conversion, scratch_bytes
from tilework.layouts.linear import LinearLayout
from tilework.layouts.queries import contig_per_thread, elems_per_thread, order, total_elems_per_thread
from tilework.transforms.building.masks import mask_of
from tilework.transforms.passes import module_pass
from tilework.transforms.remarks import is_heard, remark
from tilework.transforms.ttg.coalesce import Access, contiguity_order, pointer_access

SECTOR_BYTES = 32
WORD_BYTES = 4
COUNTED: dict[type[Operation], str] = {tt.LoadOp: "numElems", tt.StoreOp: "elemsPerThread"}
VERBS: dict[type[Operation], tuple[str, str]] = {
    tt.LoadOp: ("load", "reads"),
    tt.StoreOp: ("store", "writes"),
    tt.AtomicRMWOp: ("atomic", "touches"),
    tt.AtomicCASOp: ("atomic", "touches"),
    ttg.AsyncCopyGlobalToLocalOp: ("load", "reads"),
}
WAYS = {"warp": "within each warp", "shared": "between warps", "cluster": "between the blocks of the cluster"}


@module_pass("tritongpu-performance-remarks")
def performance_remarks(module: ModuleOp) -> None:
    if not is_heard():
        return
    facts = axis_info(module)
    for inner in module.walk():
        if (access := pointer_access(inner)) is not None:
            reasons = [*scalar_access(access, facts), *slow_access(access, facts)]
            if reasons:
                remark(inner, ". ".join(reasons))
        elif type(inner) is ttg.ConvertLayoutOp:
            remark_conversion(inner)


def scalar_access(access: Access, facts: AxisFacts) -> Iterator[str]:
    """Whether a thread moves its elements one by one, in the words and numbers of code generation."""
    encoding = distributed_of(access.type)
    if type(access.op) not in COUNTED or encoding is None:
        return
    shape = shape_of(access.type)
    dims, count = order(encoding, shape), total_elems_per_thread(encoding, shape)
    width = facts.contiguity(access.pointers, dims, contig_per_thread(encoding, shape))
    origin = min(find_target(access.op).limits.vector_bits // access.bits, width)
    mask = mask_of(access.op)
    masked = -1 if mask is None else facts.mask_alignment(mask, dims)
    if count > 1 and (origin == 1 or masked == 1):
        numbers = f"vec = 1 origin vec = {origin} {COUNTED[type(access.op)]} = {count} mask is {masked}"
        yield f"Warning: vectorization fails {numbers}"


def slow_access(access: Access, facts: AxisFacts) -> Iterator[str]:
    """Compare what a warp touches at once with what memory moves at once."""
    noun, verb = VERBS[type(access.op)]
    dim, size = contiguity_order(facts, access)[0], max(access.bits // 8, 1)
    info, layout = facts.of(access.pointers), layout_of(access.type)
    known = max(info.contiguity[dim], max(info.constancy))
    covered = warp_run(layout, dim)
    run = min(known, covered) * size
    if run < min(SECTOR_BYTES, covered_by_warp(layout) * size):
        reason = (
            "Neighbouring elements are not known to be next to each other in memory"
            if known < covered
            else f"Its layout runs along another dimension than memory, {dim}"
            if covered < shape_of(access.type)[dim]
            else f"The tile has only {shape_of(access.type)[dim]} elements along dimension {dim}"
        )
        text = f"a warp {verb} {run} bytes in a row, a memory sector has {SECTOR_BYTES}. {reason}"
        yield f"this {noun} is not coalesced: {text}"
    elif (found := narrow_reason(access, facts, dim, size)) is not None:
        width, reason = found
        yield f"this {noun} is narrow: a thread {verb} {width * size} bytes at a time. {reason}"


def warp_run(layout: LinearLayout, dim: int) -> int:
    """How many neighbours along `dim` the lanes of a warp touch, with what each holds side by side."""
    bases = dict(layout.bases)
    steps = {vector[dim] for level in ("register", "lane") for vector in bases[level] if is_along(vector, dim)}
    run = 1
    while run in steps:
        run *= 2
    return run


def is_along(vector: tuple[int, ...], dim: int) -> bool:
    return all((place != 0) == (axis == dim) for axis, place in enumerate(vector))


def covered_by_warp(layout: LinearLayout) -> int:
    """How many different elements a warp has."""
    bases = dict(layout.bases)
    return 1 << sum(any(vector) for level in ("register", "lane") for vector in bases[level])


def narrow_reason(access: Access, facts: AxisFacts, dim: int, size: int) -> tuple[int, str] | None:
    """How many elements a thread moves at once and what keeps them from being more, if they fill no word."""
    encoding = distributed_of(access.type)
    if encoding is None:
        return None
    held = elems_per_thread(encoding, shape_of(access.type))[dim]
    aligned = facts.alignment(access.pointers, (dim,))
    mask = mask_of(access.op)
    masked = held if mask is None else facts.mask_alignment(mask, (dim,))
    width = min(held, aligned, masked)
    if width * size >= WORD_BYTES or held * size < WORD_BYTES or max(facts.of(access.pointers).constancy) > 1:
        return None
    if aligned <= masked:
        return width, f"Its addresses are only known to be multiples of {aligned * size} bytes"
    return width, f"Its mask may change every {masked} elements"


def remark_conversion(op: Operation) -> None:
    """A conversion through shared memory, if it is in a loop."""
    if loop_around(op) is None:
        return
    source, result = op.operands[0].type, op.results[0].type
    before, after = spread_of(source), spread_of(result)
    way = conversion(layout_of(source), layout_of(result)).kind
    if way not in WAYS:
        return
    size = scratch_bytes(layout_of(source), layout_of(result), bit_width(source))
    remark(
        op,
        f"a change of layout goes through shared memory in every iteration, {WAYS[way]}, {size} bytes at a time: "
        f"from {before.in_words} to {after.in_words}",
    )
