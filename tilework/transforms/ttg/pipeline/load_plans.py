"""The plan for each load of a scheduled loop: the layout and number of its buffers, and their first reader.

`distance` is the number of iterations between the load and its first use: the difference of their stages, and one more
if the load precedes the use in an iteration of the new loop, because the buffer is not free then. There are as many
buffers, and more where memory is read later than that: registers are loaded at the first use, but a dot in a later
cluster reads the buffer itself. A load that only dots read has one more buffer, so that they may still run when the
next copy starts; where registers are loaded from it too, dots complete before that copy (`wgmma.py`). Small tiles
besides these get one more buffer as well where copies start early (`software_pipeline.py`), because their copies would
otherwise wait until the buffer has been read.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from math import prod

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.alias import VIEWS
from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.index_forms import IndexForms, has_axis_atoms
from tilework.ir import scf, tt, ttg, ttng
from tilework.ir.encodings import distributed_of, dot_operand_of, encoding_of, shared_of, spread_of
from tilework.ir.module_facts import find_num_warps, num_ctas
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import constant_value
from tilework.ir.tt.memory_ops import block_type
from tilework.ir.types import bit_width, is_pointer, is_tensor, shape_of, tile_bits
from tilework.layouts.construct import dot_shared
from tilework.layouts.encodings import Distributed, DotOperand, NvidiaMma, Shared, SwizzledShared
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.to_linear import contig_per_thread, order, order_for_memory, thread_order, to_linear
from tilework.light_dataclass import light_dataclass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.loops import IN_REGISTERS, LOADS, body_ops, enclosing_op, yield_of
from tilework.transforms.ttg.pipeline.schedule import Cluster, Schedule

# The layout in which a load can be copied to shared memory, if at all.
#
# Global memory is read in the layout of the load; the buffer should have the layout that its users read:
#
#     tt.load -> ttg.local_alloc (#shared)           #shared: the copy can go there directly
#     tt.load -> ttg.convert_layout (dot_op)         swizzled so that `ldmatrix` has no bank conflicts
#     anything else                                  rows as they are
#
# ``cp.async`` copies 4, 8 or 16 bytes: adjacent elements of a thread must be contiguous in memory and in the buffer.

MIN_COPY_BITS = 32
POINTER = 2  # registers


class Clash(Exception):
    """The users of a load need different layouts."""


def copy_width(load: Operation, facts: AxisFacts) -> int:
    """Return the number of contiguous elements that a thread reads at a time, by its pointers and its mask."""
    pointers = load.operands[0]
    encoding = distributed_of(pointers.type)
    if encoding is None:
        return 1
    shape = shape_of(pointers.type)
    axes = order(encoding, shape)
    width = facts.contiguity(pointers, axes, contig_per_thread(encoding, shape))
    mask = getattr(load, "mask", None)
    return width if mask is None else min(width, facts.mask_alignment(mask, axes))


def address_registers(pointers: SSAValue, threads: int, width: int) -> int:
    """Return the registers beyond one pointer that hold the addresses of a tile, of which each of `threads` threads
    copies `width` adjacent elements at a time.

    Addresses at constant distances from each other need no more; those of a tile that a loop advances as a whole
    the distances (`targets/gpu/carried_pointers.py`); others a pointer for each copy, and the
    loaded index where there is one.
    """
    form = IndexForms().of(pointers)
    if form is not None and all(len(monomial) == 1 for monomial in form if has_axis_atoms({monomial: 1})):
        return 0
    copies = -(-prod(shape_of(pointers.type)) // (threads * width))
    while isinstance(pointers, OpResult) and type(pointers.op) is tt.AddPtrOp and is_splat(pointers.op.operands[1]):
        pointers = pointers.op.operands[0]
    is_advanced = isinstance(pointers, BlockArgument) and type(pointers.block.parent_op()) is scf.ForOp
    if is_advanced:
        return copies
    return (POINTER if form is not None else POINTER + 1) * copies


def is_splat(value: SSAValue) -> bool:
    return type(value.owner) is tt.SplatOp or constant_value(value) is not None


def copy_bytes(value: SSAValue, encoding: Shared) -> int:
    """Return the contiguous bytes that a thread's registers have in the buffer."""
    shape = shape_of(value.type)
    registers = distributed_of(value.type)
    if registers is None or encoding.intervals:
        return 0
    try:
        conversion = to_linear(registers, shape).invert_and_compose(to_linear(encoding, shape))
    except LayoutError:
        return 0
    return conversion.num_consecutive_in_out * bit_width(value.type) // 8


def alloc_users(load: Operation) -> list[Operation]:
    """Return the `ttg.local_alloc` ops that copy the loaded tensor to memory."""
    return [use.operation for use in load.results[0].uses if type(use.operation) is ttg.LocalAllocOp]


def shared_encoding(load: Operation) -> Shared | None:
    """Return the layout of the buffers of `load`; None for a scalar. Raises `Clash` if its users disagree."""
    result = load.results[0]
    if type(load) is not tt.LoadOp:
        return descriptor_encoding(load)
    if not is_tensor(result.type) or distributed_of(result.type) is None:
        return None
    allocs = {shared_of(alloc.results[0].type) for alloc in alloc_users(load)}
    if len(allocs) > 1:
        raise Clash("its users want different layouts in shared memory")
    if allocs:
        (encoding,) = allocs
        return encoding
    return dot_encoding(result) or plain_encoding(result)


def descriptor_encoding(load: Operation) -> Shared | None:
    """Return the layout of a descriptor's blocks, without leading dimensions of size 1 that the tile lacks."""
    encoding = shared_of(block_type(load.operands[0].type))
    missing = 0 if encoding is None else encoding.rank - len(shape_of(load.results[0].type))
    return encoding.without_leading(missing) if encoding is not None and missing > 0 else encoding


def plain_encoding(value: SSAValue) -> SwizzledShared:
    """Return an unswizzled row-major layout, in the order of `value`."""
    encoding = spread_of(value.type)
    return SwizzledShared(1, 1, 1, order(encoding, shape_of(value.type)), encoding.cga_bases)


def dot_encoding(value: SSAValue) -> SwizzledShared | None:
    """Return the layout for all users of `value`, if they all convert it to a dot operand. May raise `Clash`."""
    found: SwizzledShared | None = None
    for use in value.uses:
        wanted = wanted_by(use.operation, value)
        if wanted is None:
            return None
        if found is not None and found != wanted:
            raise Clash("its users want different layouts in shared memory")
        found = wanted
    return found


def wanted_by(user: Operation, value: SSAValue) -> SwizzledShared | None:
    """Return the layout in which `user`, a conversion to a dot operand, reads without bank conflicts."""
    if type(user) is not ttg.ConvertLayoutOp and type(user) is not ttg.LocalLoadOp:
        return None
    shape, bits = shape_of(value.type), bit_width(value.type)
    source, target = distributed_of(value.type), distributed_of(user.results[0].type)
    if source is None or target is None or len(shape) < 2:
        return None
    cga = source.cga_bases
    if (operand := dot_operand_of(user.results[0].type)) is not None:
        return dot_shared(operand, shape, order_for_memory(source, shape), bits, cga=cga)
    dot = micro_tile(target, shape)
    return None if dot is None else dot_shared(dot, shape, thread_order(target, shape), bits, cga=cga)


def micro_tile(encoding: Distributed, shape: tuple[int, ...]) -> DotOperand | None:
    """Return the dot operand that `encoding` matches: lanes are 8 x 4, each with adjacent elements along K."""
    rank = len(shape)
    lanes = thread_order(encoding, shape)
    rows_first = (rank - 1, rank - 2, *range(rank - 3, -1, -1))
    columns_first = (rank - 2, rank - 1, *range(rank - 3, -1, -1))
    if lanes == rows_first:
        index = 0
    elif lanes == columns_first:
        index = 1
    else:
        return None
    width = contig_per_thread(encoding, shape)[lanes[0]]
    fast, slow = f"dim{lanes[0]}", f"dim{lanes[1]}"
    tile = (
        LinearLayout.identity(width, "register", fast)
        * LinearLayout.identity(4, "lane", fast)
        * LinearLayout.identity(8, "lane", slow)
    )
    if to_linear(encoding, shape).divide_left(tile) is None:
        return None
    return DotOperand(index, NvidiaMma(2, 0, (1,) * rank, (16, 8)), width)


def is_profitable(load: Operation, facts: AxisFacts) -> str | None:
    """Return the reason why copying `load` early does not pay, or None if it does."""
    if type(load) is not tt.LoadOp:
        return None
    result = load.results[0]
    if copy_width(load, facts) * bit_width(result.type) < MIN_COPY_BITS:
        return "its elements are not contiguous: less than 4 bytes are read at a time"
    try:
        encoding = shared_encoding(load)
    except Clash as clash:
        return str(clash)
    if encoding is not None and alloc_users(load) and copy_bytes(result, encoding) * 8 < MIN_COPY_BITS:
        return "less than 4 bytes are contiguous in shared memory"
    return None


READERS: frozenset[type[Operation]] = frozenset({ttng.WarpGroupDotOp, ttg.LocalLoadOp})
SMALL = 16  # times smaller than the operands of dots


class Kind(Enum):
    """The instruction by which a load starts early."""

    COPY = "cp.async"
    TMA = "TMA"


@light_dataclass
class LoadPlan:
    """A load that becomes a copy to buffers."""

    load: Operation
    kind: Kind
    slot: tuple[int, Cluster]
    first_use: tuple[int, Cluster]
    distance: int
    buffers: int
    encoding: Shared
    contiguity: int
    allocs: tuple[Operation, ...]  # the `ttg.local_alloc` ops that the buffer replaces


def plan_loads(loop: Operation, schedule: Schedule, facts: AxisFacts) -> list[LoadPlan]:
    """Return the plans of loads that go through buffers, in program order."""
    plans: list[LoadPlan] = []
    for op in body_ops(loop):
        if type(op) in LOADS:
            plan = plan_load(op, loop, schedule, facts)
            if isinstance(plan, LoadPlan):
                plans.append(plan)
            elif plan is not None:
                remark(op, f"the load is pipelined in registers: {plan}")
    return plans


def with_free_buffers(plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return the plans with another buffer for small tiles, so that all copies of an iteration may start while its
    buffers are read.
    """
    copies = [plan for plan in plans if plan.kind is Kind.COPY]
    limit = max((buffer_bits(plan) for plan in copies if plan.buffers > plan.distance), default=0) // SMALL
    return [
        replace(plan, buffers=plan.distance + 1)
        if plan in copies and plan.buffers == plan.distance and buffer_bits(plan) <= limit
        else plan
        for plan in plans
    ]


def buffer_bits(plan: LoadPlan) -> int:
    """Return the size of one buffer."""
    return tile_bits(plan.load.results[0].type)


def plan_load(load: Operation, loop: Operation, schedule: Schedule, facts: AxisFacts) -> LoadPlan | str | None:
    """Return the plan for `load`, or the reason why there is none; None if it need not start early."""
    stage, cluster = slot = schedule.slots[load]
    uses = [schedule.slots[user] for user in final_users(load.results[0], loop)]
    if not uses:
        return None

    def distance_to(use: tuple[int, Cluster]) -> int:
        is_later = schedule.position(use[1]) > schedule.position(cluster)
        return use[0] + int(is_later) - stage

    distance = min(map(distance_to, uses))
    if distance <= 0:
        return None
    if IN_REGISTERS in load.attributes:
        del load.attributes[IN_REGISTERS]
        return "it is small, and no operand of a dot as it is"
    try:
        encoding = buffer_encoding(load)
    except Clash as clash:
        return str(clash)
    if encoding is None:
        return "there is no layout for it in shared memory"
    kind = Kind.TMA
    contiguity = 1
    if type(load) is tt.LoadOp:
        kind, contiguity = Kind.COPY, copy_width(load, facts)
        if reason := copy_problem(load, contiguity, encoding):
            return reason
    allocs = replaceable_allocs(load, encoding)
    buffers = distance
    readers = [user for alloc in allocs for user in final_users(alloc.results[0], loop)]
    for user in readers:
        buffers = max(buffers, distance_to(schedule.slots[user]))
    is_only_copied = len(allocs) == len(list(load.results[0].uses))
    users = [type(user) for alloc in allocs for user in users_of(alloc.results[0])]
    if is_only_copied and ttng.WarpGroupDotOp in users:  # it may still be reading when the next copy starts
        buffers = max(buffers, distance + 1)
    first = min(uses, key=lambda use: schedule.key(*use))
    return LoadPlan(load, kind, slot, first, distance, buffers, encoding, contiguity, allocs)


def final_users(value: SSAValue, loop: Operation, seen: frozenset[SSAValue] = frozenset()) -> Iterator[Operation]:
    """Yield the ops of the body that use `value`, also through memory, views, and carried into the next iteration."""
    body, terminator = body_of(loop), yield_of(loop)
    for use in value.uses:
        user = enclosing_op(use.operation, body)
        if user is None:
            continue
        if user is terminator:
            argument = body.args[1 + use.index]
            if argument not in seen and use.operation is terminator:
                yield from final_users(argument, loop, seen | {argument})
        elif type(user) is ttg.LocalAllocOp or type(user) in VIEWS:
            yield from final_users(user.results[0], loop, seen)
        else:
            yield user


def buffer_encoding(load: Operation) -> Shared | None:
    """Return the layout of the buffers; a scalar is a tensor of one element in each block. May raise `Clash`."""
    if type(load) is tt.LoadOp and is_pointer(load.operands[0].type):
        if find_num_warps(load) is None:
            return None
        return SwizzledShared(1, 1, 1, (0,), ((0,),) * (num_ctas(load).bit_length() - 1))
    encoding = shared_encoding(load)
    return encoding if encoding is not None and encoding.rank == len(shape_of(load.results[0].type)) else None


def copy_problem(load: Operation, contiguity: int, encoding: Shared) -> str | None:
    """Return the reason why the load cannot be a cp.async, or None."""
    result = load.results[0]
    bits = bit_width(result.type)
    if contiguity * bits < MIN_COPY_BITS:
        return "a thread reads less than 4 bytes at a time"
    if is_tensor(result.type) and copy_bytes(result, encoding) * 8 < MIN_COPY_BITS:
        return "less than 4 bytes are contiguous in shared memory"
    return None


def replaceable_allocs(load: Operation, encoding: Shared) -> tuple[Operation, ...]:
    """Return the allocations of the loaded tensor that the buffer of the copy can replace."""
    if needs_other(load):
        return ()
    allocs = alloc_users(load)
    same = (alloc for alloc in allocs if encoding_of(alloc.results[0].type) == encoding)
    here = (alloc for alloc in same if alloc.parent is load.parent)
    return tuple(alloc for alloc in here if all(type(user) in READERS for user in users_of(alloc.results[0])))


def needs_other(load: Operation) -> bool:
    """Return True if masked elements have a value other than the zeros of a copy."""
    other = getattr(load, "other", None)
    return other is not None and constant_value(other) != 0


def users_of(memory: SSAValue) -> Iterator[Operation]:
    """Yield the ops that use `memory`, also through views."""
    for user in (use.operation for use in memory.uses):
        if type(user) in VIEWS:
            yield from users_of(user.results[0])
        else:
            yield user
