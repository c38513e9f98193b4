"""The shared memory that single ops need while they run, in bytes.

    ttg.convert_layout        the bytes in shared memory at a time (`layouts/conversion.py`); 0 for shuffles
    tt.reduce, tt.scan        a partial result of each warp along the axis; 0 if one warp has the whole axis
    tt.sort_runs              all elements, as 32-bit integers with padding; 0 if lanes and warps exchange nothing
    tt.histogram              all bins, at least one per lane
    tt.gather                 the source, unless each warp has all elements that it may pick
    tt.atomic_rmw, tt.atomic_cas   the old values, if some threads have copies of others' elements;
                              without old values, the table that combines them (`window`)
    ttng.tensormap_create     the descriptor
    ttg.warp_specialize       the captured values, one after the other

Threads exchange elements there, so it is per block, and free again after the op.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tilework.analysis.combine_regions import follows_axis
from tilework.analysis.value_flows import reached
from tilework.ir import amdg, tt, ttg, ttng
from tilework.ir.encodings import distributed_of, encoding_of, layout_of
from tilework.ir.enums import RMWOp
from tilework.ir.module_facts import find_target, threads_per_warp
from tilework.ir.rewrite import attr_value
from tilework.ir.types import axis_of, bit_width, element_type, is_tensor, shape_of
from tilework.layouts.conversion import scratch_bytes
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import contig_per_thread, shape_per_cta
from tilework.target import Feature, Target

# Atomics of a whole tile that shared memory can combine, before each element that was hit is changed once.
#
#     %at = tt.addptr (tt.splat %counts), (tt.load %p)    several elements may hit one address
#     tt.atomic_rmw add, acq_rel, gpu, %at, %ones         the old value is not used
#
# An element within `entries` of the splat pointer goes to a table in shared memory, any other one to global memory as
# before; how many do so is only known at run time. Operations on integers can be done in any order and combined in
# advance. After the tile each entry of the table that is not neutral is one atomic, neighbours by neighbouring lanes.

NEUTRAL: dict[RMWOp, int] = {  # 32-bit identity elements
    RMWOp.ADD: 0, RMWOp.OR: 0, RMWOp.XOR: 0, RMWOp.AND: -1,
    RMWOp.MAX: -(1 << 31), RMWOp.MIN: (1 << 31) - 1, RMWOp.UMAX: 0, RMWOp.UMIN: -1,
}  # fmt: skip
LEAST, MOST = 512, 2048  # elements of a tile that pay for two barriers, entries of the table
MOVES = (ttg.ConvertLayoutOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, tt.AddPtrOp)
DATA = (tt.LoadOp, tt.GatherOp, ttg.LocalLoadOp)
REACH = 64  # ops that are inspected


class Window(NamedTuple):
    """The global memory that a table caches."""

    base: SSAValue
    entries: int  # of 32 bits


def window(op: Operation) -> Window | None:
    """Return the window of an atomic that shared memory can combine, if it is one."""
    if type(op) is not tt.AtomicRMWOp or op.results[0].first_use is not None:
        return None
    if Feature.DIRECT_ATOMICS in find_target(op).features:
        return None
    pointers, values = op.operands[:2]
    element = element_type(values.type)
    if not is_tensor(values.type) or not isinstance(element, IntegerType) or element.width.data != 32:
        return None
    layout = layout_of(values.type)
    elements, kind = 1 << layout.total_out_bits, RMWOp(op.atomic_rmw_op.value.data)
    if kind not in NEUTRAL or elements < LEAST or layout.in_size("block") > 1:
        return None
    base = splat_below(pointers)
    return Window(base, min(elements, MOST)) if base is not None and depends_on_data(pointers) else None


def splat_below(pointers: SSAValue) -> SSAValue | None:
    """Return the one pointer from which all pointers of a tile are derived."""
    while isinstance(pointers, OpResult) and type(pointers.op) in MOVES:
        pointers = pointers.op.operands[0]
    return pointers.op.operands[0] if isinstance(pointers, OpResult) and type(pointers.op) is tt.SplatOp else None


def depends_on_data(value: SSAValue) -> bool:
    """Return True if a value is computed from loaded data, a few ops away."""

    def makers(values: Iterable[SSAValue]) -> list[Operation]:
        return [value.op for value in values if isinstance(value, OpResult)]

    found = reached(makers([value]), lambda op: makers(op.operands))
    return any(type(op) in DATA for op in islice(found, REACH))


if TYPE_CHECKING:
    from tilework.layouts.sort_plan import Trip

SCRATCH_ALIGNMENT = 128
ALIGNMENTS: dict[type[Operation], int] = {ttg.WarpSpecializeOp: 8, tt.FuncOp: 4}  # of others: SCRATCH_ALIGNMENT
TENSORMAP_BYTES = 128


def scratch_size(op: Operation, target: Target) -> int:
    """Return the bytes of scratch memory of `op`: 0 for most, and if tensors have no layout yet."""
    rule = RULES.get(type(op))
    if rule is None or any(is_tensor(value.type) and encoding_of(value.type) is None for value in op.operands):
        return 0
    return rule(op, target)


def element_bytes(type: Attribute) -> int:
    """Return the bytes of one element; pointers have 8, bits are stored as bytes."""
    return max(8, bit_width(type)) // 8


def convert_scratch(op: Operation, target: Target) -> int:
    source, result = op.operands[0].type, op.results[0].type
    return scratch_bytes(layout_of(source), layout_of(result), bit_width(source), *target.matrix_access)


def sort_trips(op: Operation) -> "Sequence[Trip]":
    """Return the layouts between which a `tt.sort_runs` moves its elements through shared memory."""
    from tilework.layouts.sort_plan import flat_layout, sort_plan  # lazily: few kernels sort

    bits = attr_value(op.properties["bits"])
    assert isinstance(bits, int)
    plan = sort_plan(flat_layout(layout_of(op.operands[0].type)), bits)
    return [trip for trip in plan.trips if not trip.in_threads] if plan is not None else ()


def sort_scratch(op: Operation, target: Target) -> int:
    from tilework.layouts.sort_plan import padded  # lazily: few kernels sort

    source = op.operands[0].type
    return padded(prod(shape_of(source)) * max(4, element_bytes(source))) if sort_trips(op) else 0


def warps_along(layout: LinearLayout, axis: int) -> int:
    """Return the number of warps that have different elements along `axis`."""
    return distinct_counts(layout, "warp")[axis]


def reduce_scratch(op: Operation, target: Target) -> int:
    source, axis = op.operands[0].type, axis_of(op)
    encoding = encoding_of(source)
    assert encoding is not None
    warps = warps_along(layout_of(source), axis)
    if warps == 1:
        return 0
    if follows_axis(op):
        return tree_partials(layout_of(source), axis) * sum(element_bytes(operand.type) for operand in op.operands)
    shape = list(shape_per_cta(encoding, shape_of(source)))
    shape[axis] = warps
    return prod(shape) * sum(element_bytes(operand.type) for operand in op.operands)


def tree_partials(layout: LinearLayout, axis: int) -> int:
    """Return the number of partial results when warps are first combined, if the bits of the axis are joined from the
    lowest to the highest."""
    moving = [(level, vector) for level, vectors in layout.bases for vector in vectors if any(vector)]
    first = min(vector[axis] for level, vector in moving if level == "warp" and vector[axis])
    kept = {
        "register": lambda vector: not vector[axis] or vector[axis] > first,
        "lane": lambda vector: not vector[axis],
        "warp": lambda vector: True,
        "block": lambda vector: False,
    }
    return 1 << sum(kept[level](vector) for level, vector in moving)


def scan_scratch(op: Operation, target: Target) -> int:
    """A partial result of each warp, for each line along the axis that it has and each of its steps over the tensor."""
    source, axis = op.operands[0].type, axis_of(op)
    encoding = distributed_of(source)
    assert encoding is not None, source
    layout = layout_of(source)
    if warps_along(layout, axis) == 1:
        return 0
    shape = shape_of(source)
    held = contig_per_thread(encoding, shape)
    lanes, warps = (distinct_counts(layout, level) for level in ("lane", "warp"))
    grid = list(zip(held, lanes, warps, shape_per_cta(encoding, shape), strict=True))
    steps = prod(-(-whole // (size * lane * warp)) for size, lane, warp, whole in grid)
    lines = prod(size * lane for dim, (size, lane, _, _) in enumerate(grid) if dim != axis)
    return prod(warps) * lines * steps * sum(element_bytes(operand.type) for operand in op.operands)


def distinct_counts(layout: LinearLayout, level: str) -> list[int]:
    """Return the number of lanes (warps) that have different elements along each dimension."""
    vectors = dict(layout.bases)[level]
    return [1 << sum(vector[dim] != 0 for vector in vectors) for dim in range(len(layout.outs))]


def histogram_scratch(op: Operation, target: Target) -> int:
    result = op.results[0].type
    return max(shape_of(result)[0], threads_per_warp(op)) * element_bytes(result)


def gather_scratch(op: Operation, target: Target) -> int:
    source, indices = op.operands[0].type, op.operands[1].type
    if is_warp_local(layout_of(source), layout_of(indices), axis_of(op)):
        return 0
    return prod(shape_of(source)) * element_bytes(source)


def is_warp_local(source: LinearLayout, indices: LinearLayout, axis: int) -> bool:
    """Return True if each warp holds, for every index it has, all elements along `axis` that the index may pick.

    Warps and blocks must not move along the axis, and neither lanes, warps nor blocks may differ across it.
    """
    mine, theirs = dict(source.bases), dict(indices.bases)
    across = [dim for dim in range(len(source.outs)) if dim != axis]
    for level in ("lane", "warp", "block"):
        for vectors in (mine[level], theirs[level]):
            if level != "lane" and any(vector[axis] for vector in vectors):
                return False
        if [[v[dim] for dim in across] for v in mine[level]] != [[v[dim] for dim in across] for v in theirs[level]]:
            return False
    return True


def atomic_scratch(op: Operation, target: Target) -> int:
    result = op.results[0]
    if result.first_use is None:
        return 4 * found.entries if (found := window(op)) is not None else 0
    if not is_tensor(result.type):
        return max(1, element_bytes(result.type))
    encoding = encoding_of(result.type)
    assert encoding is not None
    if not any(layout_of(result.type).free_variable_masks.values()):
        return 0
    return max(1, prod(shape_per_cta(encoding, shape_of(result.type))) * element_bytes(result.type))


def specialize_scratch(op: Operation, target: Target) -> int:
    """The captured values, packed; a memory descriptor is its address and an offset per dimension."""
    return sum(captured_bytes(operand.type) for operand in op.operands)


def captured_bytes(type: Attribute) -> int:
    if isinstance(type, ttg.MemDescType):
        return 8 + 4 * len(type.dims)
    return element_bytes(type)


RULES: dict[type[Operation], Callable[[Operation, Target], int]] = {
    ttg.ConvertLayoutOp: convert_scratch,
    ttg.WarpSpecializeOp: specialize_scratch,
    tt.ReduceOp: reduce_scratch,
    tt.ScanOp: scan_scratch,
    tt.SortRunsOp: sort_scratch,
    tt.HistogramOp: histogram_scratch,
    tt.GatherOp: gather_scratch,
    tt.AtomicRMWOp: atomic_scratch,
    tt.AtomicCASOp: atomic_scratch,
    amdg.BufferAtomicRMWOp: atomic_scratch,
    amdg.BufferAtomicCASOp: atomic_scratch,
    ttng.TensormapCreateOp: lambda op, target: TENSORMAP_BYTES,
}
