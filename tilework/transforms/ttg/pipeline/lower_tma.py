"""Loads by descriptor to TMA, with barriers that count the bytes that arrive.

    before the loop   n barriers, one for each buffer
    at the loads      barrier_expect %bars[insert], bytes of all of them;  async_tma_copy_global_to_local each
    at the first use  wait_barrier %bars[extract], %phase

A use that is not in the last stage also runs for iterations behind the last one: what it reads is loaded for these, too.

Loads that stand together, with the same place and first use, share the barriers.
"""

from math import prod

from xdsl.ir import Operation, SSAValue

from tilework.ir import ttg, ttng
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import constant, erase_op, insert_after, insert_before, replace_all_uses
from tilework.ir.ttg.memdesc_types import memdesc_type
from tilework.ir.types import bit_width, i1, i32, i64, shape_of
from tilework.layouts.encodings import SwizzledShared
from tilework.layouts.queries import shape_per_cta
from tilework.transforms.building.tma_copies import start_load
from tilework.transforms.ttg.pipeline.load_plans import LoadPlan
from tilework.transforms.ttg.pipeline.loops import used_values
from tilework.transforms.ttg.pipeline.lower_copies import replace_allocs
from tilework.transforms.ttg.pipeline.lowering import Lowering

BARRIER_LAYOUT = SwizzledShared(1, 1, 1, (0,))


def groups_of(low: Lowering, plans: list[LoadPlan]) -> list[list[LoadPlan]]:
    """The loads that share barriers: none of a group is used before the last of it."""
    groups: list[list[LoadPlan]] = []
    by_load = {plan.load: plan for plan in plans}
    body = body_of(low.loop)
    used: set[Operation] = set()
    for op in body.ops:
        plan = by_load.get(op)
        if plan is None:
            if groups and any(reads(op, member) for member in groups[-1]):
                used.add(groups[-1][0].load)
            continue
        if groups and fits(plan, groups[-1][0]) and groups[-1][0].load not in used:
            groups[-1].append(plan)
        else:
            groups.append([plan])
    return groups


def reads(op: Operation, plan: LoadPlan) -> bool:
    """`op` needs what `plan` loads; the memory that the buffer replaces does not, but what reads that does."""
    if op in plan.allocs:
        return False
    held = [plan.load.results[0], *(alloc.results[0] for alloc in plan.allocs)]
    return any(value in held for value in used_values(op))


def fits(plan: LoadPlan, other: LoadPlan) -> bool:
    return (plan.place, plan.first_use, plan.buffers) == (other.place, other.first_use, other.buffers)


def lower_group(low: Lowering, group: list[LoadPlan]) -> None:
    """Copy what the loads of `group` load, all counted by one barrier for each buffer."""
    plan = group[0]
    counters = low.counters[plan.buffers]
    first, last = plan.load, group[-1].load
    assert counters.phase is not None
    barriers = make_barriers(low, plan.buffers)
    barrier = low.value(first, ttg.MemDescIndexOp.make(barriers, counters.insert, first.location), plan.place)
    total = sum(block_bytes(member) for member in group)
    always = low.value(first, constant(1, i1, first.location), plan.place)
    started = [low.put(first, ttng.BarrierExpectOp.make(barrier, total, always, first.location), plan.place)]
    for member in group:
        load = member.load
        target = low.value(load, ttg.MemDescIndexOp.make(low.allocs[load], counters.insert, load.location), plan.place)
        always = low.value(load, constant(1, i1, load.location), plan.place)
        started.append(low.put(load, copy_block(load, target, barrier, always), plan.place))
    behind = last.next_op
    assert behind is not None, "a load is not the last op of a loop"
    done = low.value(behind, ttg.MemDescIndexOp.make(barriers, counters.extract, last.location), plan.first_use)
    wait = low.put(behind, ttng.WaitBarrierOp.make(done, counters.phase, None, (), last.location), plan.first_use)
    low.schedule.slack |= dict.fromkeys((*started, wait), low.schedule.last_stage - plan.first_use[0])
    for member in group:
        behind = wait.next_op
        assert behind is not None
        read_buffer(low, member, behind)


def read_buffer(low: Lowering, plan: LoadPlan, before: Operation) -> None:
    """Read what was loaded from its buffer."""
    load, use = plan.load, plan.first_use
    extract = low.counters[plan.buffers].extract
    view = low.put(before, ttg.MemDescIndexOp.make(low.allocs[load], extract, load.location), use)
    replace_allocs(low, plan, view.results[0])
    if load.results[0].first_use is not None:
        loaded = ttg.LocalLoadOp.make(view.results[0], load.results[0].type, load.location)
        insert_after(view, loaded)
        low.schedule.place(loaded, *use)
        replace_all_uses(load.results[0], loaded.results[0])
    low.schedule.places.pop(load)
    erase_op(load)


def block_bytes(plan: LoadPlan) -> int:
    """The bytes that one load brings to each block of threads."""
    result = plan.load.results[0]
    return prod(shape_per_cta(plan.encoding, shape_of(result.type))) * bit_width(result.type) // 8


def make_barriers(low: Lowering, count: int) -> SSAValue:
    """`count` barriers for the time of the loop."""
    location = low.loop.location
    barriers = low.alloc(memdesc_type((count, 1), i64, BARRIER_LAYOUT, True), low.loop)
    ends: list[Operation] = []
    for position in range(count):
        index = constant(position, i32, location)
        one = ttg.MemDescIndexOp.make(barriers, index.results[0], location)
        insert_before(low.loop, index, one, ttng.InitBarrierOp.make(one.results[0], 1, location))
        index = constant(position, i32, location)
        one = ttg.MemDescIndexOp.make(barriers, index.results[0], location)
        ends += [index, one, ttng.InvalBarrierOp.make(one.results[0], location)]
    insert_after(low.loop, *ends)
    return barriers


def copy_block(load: Operation, target: SSAValue, barrier: SSAValue, always: SSAValue) -> Operation:
    """The copy that `load` becomes."""
    copy = start_load(load, target, barrier, always)
    copy.properties.update({name: load.properties[name] for name in ("cache", "evict") if name in load.properties})
    return copy
