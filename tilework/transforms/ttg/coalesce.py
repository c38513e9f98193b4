"""Give every access of global memory a layout in which adjacent threads make wide, adjacent accesses.

    %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #d>           contiguous along axis 1, aligned to 16 bytes
==>
    %q = ttg.convert_layout %p : .. #d -> .. #n                #n = [1, 4] elements a thread, order [1, 0]
    %w = tt.load %q : tensor<64x64x!tt.ptr<f32>, #n>
    %v = ttg.convert_layout %w : .. #n -> .. #d

The fastest dimension is the one with the longest contiguous runs of addresses (AxisInfo). A thread accesses as many
adjacent elements as are known to be aligned, at most 16 bytes, and no more than there are elements for all threads.
Connected accesses (by values, of the same shape and order) take the widest of their widths, so that no conversion is
needed in between; a store or an atomic is never wider than its own pointers allow, since each element is written once,
except for atomics that go one by one to addresses from data (`Feature.DIRECT_ATOMICS`).
The same holds for a load that only feeds addresses and values of atomics privatized in shared memory
(`analysis/scratch.py`): the atomics cost more than narrow loads, and a conversion in between costs two barriers.

With descriptors (TMA) a thread has rows of 16 bytes.
Stage: TTGIR. Cost: AxisInfo, and one walk.
"""

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.utils.disjoint_set import DisjointSet

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.analysis.scratch import depends_on_data, window
from tilework.ir import tt, ttg
from tilework.ir.effects import is_pure
from tilework.ir.encodings import encoding_of, layout_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import find_target, num_ctas, num_warps, threads_per_warp
from tilework.ir.nesting import owner_of
from tilework.ir.rewrite import recreate, replace_op
from tilework.ir.types import PointerType, Shape, Tensor, bit_width, i32, int_attr, shape_of
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Blocked, Distributed, SwizzledShared
from tilework.layouts.to_linear import contig_per_thread, shape_per_cta
from tilework.light_dataclass import light_dataclass
from tilework.target import Feature
from tilework.transforms.building.emitter import laid_out
from tilework.transforms.passes import module_pass

ACCESSES = frozenset({tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp, ttg.AsyncCopyGlobalToLocalOp})
ATOMICS = frozenset({tt.AtomicRMWOp, tt.AtomicCASOp})
READS = frozenset({tt.LoadOp, ttg.AsyncCopyGlobalToLocalOp})
TILE_OPERAND: dict[type[Operation], int] = {
    tt.DescriptorStoreOp: 1,
    tt.DescriptorReduceOp: 1,
    tt.DescriptorScatterOp: 3,
}
DESCRIPTOR_ACCESSES = frozenset({tt.DescriptorLoadOp, tt.DescriptorGatherOp, *TILE_OPERAND})
WITH_ROWS = frozenset({tt.DescriptorGatherOp, tt.DescriptorScatterOp})  # operand 1 lists rows: it has its own layout


@module_pass("tritongpu-coalesce")
def coalesce(module: ModuleOp) -> None:
    ops = ops_in_order(*module.regions)
    accesses = [access for inner in ops if (access := pointer_access(inner)) is not None]
    chosen = choose(accesses, axis_info(module), ops) if accesses else {}
    for inner in ops:
        if (encoding := chosen.get(inner) or descriptor_encoding(inner)) is not None:
            access_in(inner, encoding)


@light_dataclass
class Access:
    """An op that reads or writes through a tensor of pointers."""

    op: Operation
    pointers: SSAValue
    type: Tensor
    bits: int


def pointer_access(op: Operation) -> Access | None:
    """Return the access of `op`, if it goes through a tensor of pointers with a layout."""
    if type(op) not in ACCESSES:
        return None
    pointers = op.operands[0]
    if not isinstance(pointers.type, TensorType) or encoding_of(pointers.type) is None:
        return None
    element = pointers.type.element_type
    assert isinstance(element, PointerType), f"{op.name} goes through pointers, not {element}"
    return Access(op, pointers, pointers.type, bit_width(element.pointee))


# Pointers


def choose(accesses: Sequence[Access], facts: AxisFacts, ops: Sequence[Operation]) -> dict[Operation, Blocked]:
    """Return the encoding of each access."""
    orders = [contiguity_order(facts, access) for access in accesses]
    widths = [width_of(facts, access, order) for access, order in zip(accesses, orders, strict=True)]
    narrow = loads_for_tables(accesses, widths)
    widths = [min(width, narrow.get(access.op, width)) for access, width in zip(accesses, widths, strict=True)]
    shared = shared_widths(accesses, orders, widths, ops)
    follows = [
        access.op not in narrow and (type(access.op) in READS or is_scattered(access, facts)) for access in accesses
    ]
    return {
        access.op: accessing(access, order, together if is_free else min(own, together))
        for access, order, own, together, is_free in zip(accesses, orders, widths, shared, follows, strict=True)
    }


def is_scattered(access: Access, facts: AxisFacts) -> bool:
    """Return True for atomics that go one by one to addresses from data: they prefer no layout."""
    op = access.op
    if type(op) not in ATOMICS or Feature.DIRECT_ATOMICS not in find_target(op).features:
        return False
    return max(facts.of(access.pointers).contiguity) == 1 and depends_on_data(access.pointers)


def loads_for_tables(accesses: Sequence[Access], widths: Sequence[int]) -> dict[Operation, int]:
    """Return the loads that only feed atomics privatized in shared memory, with the width of these."""
    collected = {
        access.op: width for access, width in zip(accesses, widths, strict=True) if window(access.op) is not None
    }
    if not collected:
        return {}
    ends = {access.op: ends_of(access.op) for access in accesses if type(access.op) is tt.LoadOp}
    return {op: min(collected[end] for end in its) for op, its in ends.items() if its and its <= set(collected)}


def ends_of(op: Operation) -> set[Operation]:
    """Return the ops with side effects or regions that depend on `op` through pure ops."""
    ends, seen, todo = set[Operation](), {op}, [op]
    while todo:
        users = {use.operation for result in todo.pop().results for use in result.uses} - seen
        seen |= users
        between = {user for user in users if user.results and is_pure(user)}
        todo += between
        ends |= users - between
    return ends


def contiguity_order(facts: AxisFacts, access: Access) -> tuple[int, ...]:
    """Return the dimensions from the longest contiguous runs of addresses to the shortest; of equal ones the last
    dimension comes first, as in row-major arrays whose strides are unknown."""
    runs = facts.of(access.pointers).contiguity
    return tuple(sorted(range(len(runs)), key=lambda dim: (-runs[dim], -dim)))


def width_of(facts: AxisFacts, access: Access, order: Sequence[int]) -> int:
    """Return the number of adjacent elements that a thread may access at a time."""
    info, dim = facts.of(access.pointers), order[0]
    encoding = encoding_of(access.type)
    assert encoding is not None
    aligned = max(info.divisibility[dim] // max(access.bits // 8, 1), 1)
    runs = min(info.contiguity[dim], shape_per_cta(encoding, shape_of(access.type))[dim])
    return min(aligned, runs, max(find_target(access.op).limits.vector_bits // access.bits, 1))


def shared_widths(
    accesses: Sequence[Access], orders: Sequence[tuple[int, ...]], widths: Sequence[int], ops: Sequence[Operation]
) -> list[int]:
    """Return, for each access, the widest of those that it is connected to, with the same shape and order.

    One whose pointers are carried by a loop keeps its own width, as in the reference compiler.
    """
    keys = [(shape_of(access.type), order) for access, order in zip(accesses, orders, strict=True)]
    if len(set(zip(keys, widths, strict=True))) == len(set(keys)):
        return list(widths)  # equal already
    group_of = connected(ops)
    groups = [(group_of(access.op), *key) for access, key in zip(accesses, keys, strict=True)]
    widest: dict[tuple[object, ...], int] = {}
    for group, width in zip(groups, widths, strict=True):
        widest[group] = max(width, widest.get(group, 1))
    return [
        widest[group] if isinstance(access.pointers, OpResult) else width
        for access, group, width in zip(accesses, groups, widths, strict=True)
    ]


def connected(ops: Sequence[Operation]):
    """Return a function that maps ops connected by uses to one representative; function arguments do not connect."""
    sets = DisjointSet(ops)
    for op in ops:
        for value in op.operands:
            if (source := source_op(value)) is not None:
                sets.union(op, source)
    return sets.find


def source_op(value: SSAValue) -> Operation | None:
    """Return the op that defines `value`, or the loop whose argument it is."""
    owner = owner_of(value)
    return None if type(owner) is tt.FuncOp else owner


def accessing(access: Access, order: tuple[int, ...], most: int) -> Blocked:
    """Return the blocked encoding with `most` elements per thread, limited by the tile's elements."""
    shape, encoding = shape_of(access.type), encoding_of(access.type)
    assert encoding is not None
    warps, lanes = num_warps(access.op), threads_per_warp(access.op)
    width = min(most, max(prod(shape_per_cta(encoding, shape)) // (warps * lanes), 1))
    held = tuple(width if dim == order[0] else 1 for dim in range(len(shape)))
    return default_blocked(shape, held, order, warps, lanes, cga=encoding.cga_bases)


# Descriptors


def descriptor_encoding(op: Operation) -> Blocked | None:
    """Return the encoding with 16 bytes per thread, for an access through a descriptor."""
    if type(op) not in DESCRIPTOR_ACCESSES:
        return None
    tile = op.results[0] if op.results else op.operands[TILE_OPERAND[type(op)]]
    encoding, shape = encoding_of(tile.type), shape_of(tile.type)
    if encoding is None:
        return None
    warps, lanes = num_warps(op), threads_per_warp(op)
    elements = prod(shape_per_cta(encoding, shape))
    widest = find_target(op).limits.vector_bits // bit_width(tile.type)
    width = max(min(elements // (warps * lanes), widest), 1)
    held = (*(1 for _ in shape[1:]), width)
    return default_blocked(shape, held, None, warps, lanes, cga=encoding.cga_bases)


# Rewriting


def access_in(op: Operation, encoding: Distributed) -> None:
    """Convert the tensor operands of `op` to `encoding`, and its results back.

    As in the reference compiler, a conversion to the same type is left out for the results of pointer accesses and for
    the operands of descriptor accesses only.
    """
    by_descriptor = type(op) in DESCRIPTOR_ACCESSES

    def converted(value: SSAValue, type: Attribute, ops: list[Operation], always: bool) -> SSAValue:
        if not is_laid_out(type) or (value.type is type and not always):
            return value
        ops.append(ttg.ConvertLayoutOp.make(value, type, op.location))
        return ops[-1].results[0]

    before: list[Operation] = []
    operands = list(op.operands)
    for index, value in enumerate(operands):
        if is_laid_out(value.type) and not (index == 1 and type(op) in WITH_ROWS):
            operands[index] = converted(value, with_encoding(value.type, encoding), before, not by_descriptor)
    types = [with_encoding(t, encoding) if is_laid_out(t) else t for t in (r.type for r in op.results)]
    new = recreate(op, operands=operands, result_types=types)
    after: list[Operation] = []
    pairs = zip(op.results, new.results, strict=True)
    results = [converted(result, old.type, after, by_descriptor) for old, result in pairs]
    replace_op(op, *before, new, *after, results=results)


def is_laid_out(type: Attribute) -> bool:
    """Return True for a tensor with an encoding."""
    return isinstance(type, TensorType) and encoding_of(type) is not None


# Limit the elements per thread of an asynchronous copy to those that it can write to shared memory at a time.
#
#     int8 pointers with 16 adjacent elements per thread, into memory that is swizzled in pieces of 8:
#
#     ttg.async_copy_global_to_local %p, %m           %q = ttg.convert_layout %p : [1, 16] -> [1, 8] per thread
#                                              ==>    ttg.async_copy_global_to_local %q, %m
#
# One `cp.async` moves bytes that are contiguous in global and in shared memory. Where the swizzle splits a thread's
# elements into several pieces, threads would write far apart; with fewer elements per thread, adjacent threads write
# adjacent pieces. Only from pointers in a blocked layout to memory in a swizzled one: that of tensor cores is swizzled
# in pieces of 16 bytes, the most that a copy moves.
#
# A copy of fewer elements than there are threads gets a layout of its own, one element per thread in the order of its
# addresses: those of its users may let few threads copy, and others copy the same again. `cp.async` moves at least 32
# bits, so smaller elements stay together.
# Stage: TTGIR to TTGIR. Cost: one walk; AxisInfo if something changes.

LEAST_COPY_BITS = 32


@module_pass("tritongpu-coalesce-async-copy")
def coalesce_async_copy(module: ModuleOp) -> None:
    copies = [inner for inner in ops_in_order(*module.regions) if isinstance(inner, ttg.AsyncCopyGlobalToLocalOp)]
    small = {copy: access for copy in copies if (access := small_access(copy)) is not None}
    wanted = [(copy, encoding) for copy in copies if copy not in small and (encoding := clipped(copy)) is not None]
    if not small and not wanted:
        return
    facts = axis_info(module)
    for copy, access in small.items():
        encoding = accessing(access, contiguity_order(facts, access), 1)
        if encoding != encoding_of(access.type):
            wanted.append((copy, encoding))
    for copy, encoding in wanted:
        convert_operands(copy, encoding, facts)


def small_access(copy: ttg.AsyncCopyGlobalToLocalOp) -> Access | None:
    """Return the access of a copy of fewer elements than there are threads; None for other copies."""
    access = pointer_access(copy)
    if access is None or access.bits < LEAST_COPY_BITS:
        return None
    return access if prod(shape_of(access.type)) < num_warps(copy) * threads_per_warp(copy) else None


def clipped(copy: ttg.AsyncCopyGlobalToLocalOp) -> Blocked | None:
    """Return the layout with as many elements per thread as one write takes; None if the pointers have no more."""
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
    """Return how many of a thread's first registers are adjacent in shared memory."""
    return layout_of(copy.src.type).invert_and_compose(layout_of(copy.dst.type)).num_consecutive_in_out


def convert_operands(copy: ttg.AsyncCopyGlobalToLocalOp, encoding: Blocked, facts: AxisFacts) -> None:
    """Convert the operands of a copy to `encoding`, and update its contiguity."""
    pointers, mask = copy.src, copy.mask
    contiguity = facts.contiguity(pointers, encoding.order, contig_per_thread(encoding, shape_of(pointers.type)))
    if mask is not None:
        contiguity = min(contiguity, facts.mask_alignment(mask, encoding.order))
    for index, operand in enumerate(tuple(copy.operands)):
        if index != 1:  # the memory
            copy.operands[index] = laid_out(copy, operand, encoding)
    copy.properties["contiguity"] = int_attr(contiguity, i32)
