"""What will become of each load of a scheduled loop: which buffers, how many, who reads them first.

`distance` is how many iterations lie between the load and its first use: the difference of their stages, and one more if
in an iteration of the new loop the load comes before the use, because then the buffer is not free yet. There are as many
buffers, and more where memory is read later than that: registers are filled at the first use, but a product in a later
cluster reads the buffer itself. One that only products read has another, so that they may run on when the next copy starts; where
registers are filled from it too, products end before that copy (`wgmma.py`). What is small beside these has one more as well
where copies start early, or its copies would have to wait until its buffer has been read (`early_copies.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from xdsl.ir import Operation, SSAValue

from tilework.analysis.alias import VIEWS
from tilework.analysis.axis_info import AxisFacts
from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.module_facts import find_num_warps, num_ctas
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import constant_value
from tilework.ir.types import bit_width, is_pointer, is_tensor, shape_of, tile_bits
from tilework.layouts.encodings import Shared, SwizzledShared
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.coarse_schedule import Cluster, Schedule
from tilework.transforms.ttg.pipeline.load_buffers import (
    MIN_COPY_BITS,
    Clash,
    alloc_users,
    copy_bytes,
    copy_width,
    shared_encoding,
)
from tilework.transforms.ttg.pipeline.loops import LOADS, body_ops, enclosing_op, yield_of

READERS: frozenset[type[Operation]] = frozenset({ttng.WarpGroupDotOp, ttg.LocalLoadOp})
SMALL = 16  # times smaller than what products read


class Kind(Enum):
    """How a load runs ahead."""

    COPY = "cp.async"
    TMA = "TMA"


@dataclass(frozen=True)
class LoadPlan:
    """A load that will be copied to buffers."""

    load: Operation
    kind: Kind
    place: tuple[int, Cluster]
    first_use: tuple[int, Cluster]
    distance: int
    buffers: int
    encoding: Shared
    contiguity: int
    allocs: tuple[Operation, ...]  # the `ttg.local_alloc` ops that the buffer replaces


def plan_loads(loop: Operation, schedule: Schedule, facts: AxisFacts) -> list[LoadPlan]:
    """The loads of the body that go through buffers, in program order."""
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
    """The plans, with another buffer for what is small: then all copies of a turn may start while its buffers are read."""
    copies = [plan for plan in plans if plan.kind is Kind.COPY]
    limit = max((buffer_bits(plan) for plan in copies if plan.buffers > plan.distance), default=0) // SMALL
    return [
        replace(plan, buffers=plan.distance + 1)
        if plan in copies and plan.buffers == plan.distance and buffer_bits(plan) <= limit
        else plan
        for plan in plans
    ]


def buffer_bits(plan: LoadPlan) -> int:
    """The size of one buffer."""
    return tile_bits(plan.load.results[0].type)


def plan_load(load: Operation, loop: Operation, schedule: Schedule, facts: AxisFacts) -> LoadPlan | str | None:
    """The plan for `load`; why there is none; None where it need not run ahead."""
    stage, cluster = place = schedule.places[load]
    uses = [schedule.places[user] for user in final_users(load.results[0], loop)]
    if not uses:
        return None

    def distance_to(use: tuple[int, Cluster]) -> int:
        is_later = schedule.position(use[1]) > schedule.position(cluster)
        return use[0] + int(is_later) - stage

    distance = min(map(distance_to, uses))
    if distance <= 0:
        return None
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
        buffers = max(buffers, distance_to(schedule.places[user]))
    is_only_copied = len(allocs) == len(list(load.results[0].uses))
    users = [type(user) for alloc in allocs for user in users_of(alloc.results[0])]
    if is_only_copied and ttng.WarpGroupDotOp in users:  # it may still be reading when the next copy starts
        buffers = max(buffers, distance + 1)
    first = min(uses, key=lambda use: schedule.key(*use))
    return LoadPlan(load, kind, place, first, distance, buffers, encoding, contiguity, allocs)


def final_users(value: SSAValue, loop: Operation, seen: frozenset[SSAValue] = frozenset()) -> Iterator[Operation]:
    """The ops of the body that use `value`: through memory it is copied to, views of it, and into the next iteration."""
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
    """The layout of the buffers; a scalar is a tensor of one element, in each block of a cluster. May raise `Clash`."""
    if type(load) is tt.LoadOp and is_pointer(load.operands[0].type):
        if find_num_warps(load) is None:
            return None
        return SwizzledShared(1, 1, 1, (0,), ((0,),) * (num_ctas(load).bit_length() - 1))
    encoding = shared_encoding(load)
    return encoding if encoding is not None and encoding.rank == len(shape_of(load.results[0].type)) else None


def copy_problem(load: Operation, contiguity: int, encoding: Shared) -> str | None:
    """Why cp.async cannot do the load, or None."""
    result = load.results[0]
    bits = bit_width(result.type)
    if contiguity * bits < MIN_COPY_BITS:
        return "a thread reads less than 4 bytes at once"
    if is_tensor(result.type) and copy_bytes(result, encoding) * 8 < MIN_COPY_BITS:
        return "less than 4 bytes go to one place in shared memory"
    return None


def replaceable_allocs(load: Operation, encoding: Shared) -> tuple[Operation, ...]:
    """The users of `load` that put the tensor into memory just as the copy will."""
    if needs_other(load):
        return ()
    allocs = alloc_users(load)
    same = (alloc for alloc in allocs if encoding_of(alloc.results[0].type) == encoding)
    here = (alloc for alloc in same if alloc.parent is load.parent)
    return tuple(alloc for alloc in here if all(type(user) in READERS for user in users_of(alloc.results[0])))


def needs_other(load: Operation) -> bool:
    """Elements that the mask leaves out have a value other than the zeros of a copy."""
    other = getattr(load, "other", None)
    return other is not None and constant_value(other) != 0


def users_of(memory: SSAValue) -> Iterator[Operation]:
    """The ops that use `memory`, also through views."""
    for user in (use.operation for use in memory.uses):
        if type(user) in VIEWS:
            yield from users_of(user.results[0])
        else:
            yield user
