"""Step 1 of the pipeliner: lower loads to asynchronous copies to multi-buffered shared memory.

    %a = tt.load %p          stage 0         %buffers = ttg.local_alloc                          before the loop
    %b = use %a              stage 2   ==>   %t = ttg.async_copy_global_to_local %p, %buffers[insert]     stage 0
                                             %g = ttg.async_commit_group tokens %t                        stage 0
                                             %w = ttg.async_wait %g                                       stage 2
                                             %a = ttg.local_load %buffers[extract] token %w               stage 2

There are as many iterations between copy and use as stages, so there are that many buffers, used circularly. The
counters `insert` and `extract` are incremented separately: each is computed in the stage that needs it. All loads with
the same number of buffers share them.

A load that is only copied to shared memory anyway (`ttg.local_alloc`) is read from the buffer itself, without
registers. `tt.load` uses cp.async where a thread copies 4 bytes or more at a time; loads by descriptor use TMA. All
other loads are kept: their values are carried in registers. Descriptors that the loop creates are multi-buffered too.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from math import prod

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.cost import carried_registers, occupancy, own_ops
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.arith import SelectOp
from tilework.ir.create import create_op, set_type
from tilework.ir.encodings import encoding_attr
from tilework.ir.fields import SEGMENTS
from tilework.ir.functions import function_around, ops_in_order
from tilework.ir.locations import unknown
from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.ir.nesting import body_of, start_of
from tilework.ir.rewrite import constant, erase_op, insert_after, insert_before, put, replace_all_uses
from tilework.ir.scf import also_carry, also_give, also_yield, both_sides
from tilework.ir.ttg.memory_types import as_mutable, async_token, barrier_type, is_memdesc, memdesc_type
from tilework.ir.types import (
    Tensor,
    bit_width,
    element_type,
    i1,
    i32,
    i32_array,
    int_attr,
    is_descriptor,
    is_tensor,
    shape_of,
    tensor_type,
    tile_bits,
)
from tilework.layouts.construct import default_blocked
from tilework.layouts.to_linear import shape_per_cta
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.tma import TENSORMAP_BYTES, start_load, write_tensormap
from tilework.transforms.tt.flag_logic import choice_of
from tilework.transforms.ttg.pipeline.load_plans import (
    Kind,
    LoadPlan,
    buffer_bits,
    needs_other,
    plan_loads,
    with_free_buffers,
)
from tilework.transforms.ttg.pipeline.loops import OTHERS, body_ops, enclosing_op, used_values
from tilework.transforms.ttg.pipeline.schedule import Cluster, Schedule
from tilework.transforms.ttg.pipeline.wgmma import BLOCKS, Dot, may_run_on

# Shared by all lowerings of loads: memory for the duration of the loop, and circular counters of the buffers.
#
# scf.for ... iter_args(..., %insert = -1, %extract = -1, %phase = 0) {
#   %i = %insert + 1 >= n ? 0 : %insert + 1                the buffer to fill
#   %e = %extract + 1 >= n ? 0 : %extract + 1              the buffer to read
#   %p = %e wrapped ? %phase ^ 1 : %phase                  the phase of its barrier
#   ...
#   scf.yield ..., %i, %e, %p

Slot = tuple[int, Cluster]


@light_dataclass
class Counters:
    """The index of the buffer to fill next, of the buffer to read next, and the phase of its barrier."""

    insert: SSAValue
    extract: SSAValue
    phase: SSAValue | None


@light_dataclass(frozen=False)
class Lowering:
    """A loop whose loads are being lowered."""

    loop: Operation
    schedule: Schedule
    allocs: dict[Operation, SSAValue] = field(default_factory=dict)
    counters: dict[int, Counters] = field(default_factory=dict)

    def put(self, before: Operation, op: Operation, slot: Slot) -> Operation:
        """Insert a new op of the body and schedule it."""
        insert_before(before, op)
        self.schedule.assign(op, *slot)
        return op

    def value(self, before: Operation, op: Operation, slot: Slot) -> SSAValue:
        """Insert a new op of the body, schedule it, and return its result."""
        return self.put(before, op, slot).results[0]

    def replaced(self, old: Operation, new: Sequence[Operation]) -> None:
        """Schedule the `new` ops in the slot of `old`."""
        slot = self.schedule.slots.pop(old)
        for op in new:
            self.schedule.assign(op, *slot)

    def alloc(self, type: Attribute, like: Operation) -> SSAValue:
        """Allocate memory for the duration of the loop."""
        memory = put(self.loop, ttg.LocalAllocOp.make(None, type, like.location))
        insert_after(self.loop, ttg.LocalDeallocOp.make(memory, self.loop.location))
        return memory


def carry_counters(low: Lowering, plans: Sequence[LoadPlan]) -> None:
    """Add counters for each count of buffers to the loop, and increment them at the start of its body."""
    with_phase: dict[int, bool] = {}
    for plan in plans:
        with_phase[plan.buffers] = with_phase.get(plan.buffers, False) or plan.kind is Kind.TMA
    shared = Emitter(unknown)  # constants that belong to no line
    minus_one, zero, one = (shared.constant(value, i32) for value in (-1, 0, 1))
    shared.insert_before(low.loop)
    code = Emitter(low.loop.location)
    initial = [value for has_phase in with_phase.values() for value in (minus_one, minus_one, zero)[: 2 + has_phase]]
    arguments, body = iter(also_carry(low.loop, initial, low.loop.location)), body_of(low.loop)
    stepped: list[SSAValue] = []
    for count, has_phase in with_phase.items():
        limit = code.constant(count, i32)
        insert, _ = circular_increment(code, next(arguments), limit, zero, one)
        extract, wraps = circular_increment(code, next(arguments), limit, zero, one)
        phase = None
        if has_phase:
            current = next(arguments)
            flipped = code.binary(arith.XOrIOp, current, one)
            phase = code.append(SelectOp.make(wraps, flipped, current, code.loc))
        low.counters[count] = Counters(insert, extract, phase)
        stepped += [insert, extract] if phase is None else [insert, extract, phase]
        code.insert_before(start_of(body))
    also_yield(body, stepped)


def circular_increment(
    code: Emitter, counter: SSAValue, limit: SSAValue, zero: SSAValue, one: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Return `counter` plus one modulo `limit`, and the condition that it wrapped around."""
    following = code.binary(arith.AddiOp, counter, one)
    wraps = code.compare("sge", following, limit)
    return code.append(SelectOp.make(wraps, zero, following, code.loc)), wraps


# Descriptors that a loop creates: several circular slots in global memory for each.
#
#     %d = tt.make_tensor_descriptor ...   ==>   %slot = %scratch + 128 * %counter
#                                                (the tensor map at %slot, see building/tma.py)
#                                                %counter' = %counter + 1 >= n ? 0 : %counter + 1
#
# A copy that was started with the descriptor of an earlier iteration may still read it. Branches around the descriptor
# yield its counter: ``%c' = scf.if ... { ... yield %counter' } else { yield %counter }``.

Replaced = Callable[[Operation, list[Operation]], None]


def called_for(value: SSAValue, body: Block) -> bool:
    """Return True if a call under `body` may have created the descriptor `value`: then it overwrites that of the
    preceding iteration.
    """
    op = value.owner
    if not isinstance(op, Operation) or enclosing_op(op, body) is None:
        return False
    if type(op) is tt.CallOp or not is_descriptor(value.type):
        return is_descriptor(value.type)
    _, *sides = choice_of(value) or (value,)
    return any(called_for(side, body) for side in sides)


def buffer_descriptors(loop: Operation, slots: int, replaced: Replaced) -> None:
    """Give each descriptor that `loop` creates `slots` buffers.

    `replaced` is called with the ops of the body and their replacements.
    """
    makes = [op for op in own_ops(loop) if type(op) is tt.MakeTensorDescOp]
    if not makes:
        return
    code = Emitter(loop.location)
    scratch = [
        code.append(ttg.GlobalScratchAllocOp.make(slots * TENSORMAP_BYTES, TENSORMAP_BYTES, make.location))
        for make in makes
    ]
    zero, one = code.constant(0, i32), code.constant(1, i32)
    code.insert_before(loop)
    body, counters = body_of(loop), also_carry(loop, [zero] * len(makes))
    for make, memory, counter in zip(makes, scratch, counters, strict=True):
        code = Emitter(make.location)
        offset = code.binary(arith.MuliOp, code.constant(TENSORMAP_BYTES, i32), counter)
        slot = code.append(tt.AddPtrOp.make(memory, offset, code.loc))
        descriptor = write_tensormap(code, make, slot)
        following, _ = circular_increment(code, counter, code.constant(slots, i32), zero, one)
        new = list(code.ops)
        code.insert_before(make)
        replace_all_uses(make.results[0], descriptor)
        if make.parent is body:
            replaced(make, new)
        following = leave_branches(following, counter, make.parent, body)
        erase_op(make)
        also_yield(body, [following])


def leave_branches(value: SSAValue, otherwise: SSAValue, block: Block | None, body: Block) -> SSAValue:
    """Yield `value`, computed in `block`, out to `body`; `otherwise` where the branch is not taken."""
    while block is not None and block is not body:
        branch = block.parent_op()
        assert branch is not None and type(branch) is scf.IfOp, "descriptors are created in branches of a loop body"
        for side in both_sides(branch):
            also_yield(side, [value if side is block else otherwise])
        block, value = branch.parent, also_give(branch, value.type)
    return value


# `tt.load` to cp.async.
#
# at the load       memdesc_index %buffers[insert], async_copy_global_to_local, async_commit_group
# at the first use  async_wait, memdesc_index %buffers[extract], local_load;  select(mask, loaded, other) if other is
# not 0


def lower_copy(low: Lowering, plan: LoadPlan) -> None:
    """Replace `plan.load` by an asynchronous copy, and a load from the buffer at the first use."""
    load, slot, use = plan.load, plan.slot, plan.first_use
    assert isinstance(load, tt.LoadOp)
    is_scalar = not is_tensor(load.result.type)
    pointers, mask, other = load.ptr, load.mask, load.other
    if is_scalar:
        pointers, mask, other = (splatted(low, plan, value) for value in (pointers, mask, other))
    assert pointers is not None
    counters, buffers = low.counters[plan.buffers], low.allocs[load]
    target = low.value(load, ttg.MemDescIndexOp.make(buffers, counters.insert, load.location), slot)
    token = low.value(load, async_copy(load, pointers, target, mask, other, plan.contiguity), slot)
    group = low.value(load, ttg.AsyncCommitGroupOp.make((token,), load.location), slot)
    wait = low.value(load, ttg.AsyncWaitOp.make((group,), 0, load.location), use)
    view = low.value(load, ttg.MemDescIndexOp.make(buffers, counters.extract, load.location), use)
    replace_allocs(low, plan, view)
    if load.result.first_use is not None:
        loaded = low.value(load, ttg.LocalLoadOp.make(view, value_type(plan), load.location, wait), use)
        if mask is not None and other is not None and needs_other(load):
            loaded = low.value(load, SelectOp.make(mask, loaded, other, load.location), use)
        if is_scalar:
            loaded = low.value(load, tt.UnsplatOp.make(loaded, load.location), use)
        replace_all_uses(load.result, loaded)
    low.schedule.slots.pop(load)
    erase_op(load)


def async_copy(
    load: Operation,
    pointers: SSAValue,
    target: SSAValue,
    mask: SSAValue | None,
    other: SSAValue | None,
    contiguity: int,
) -> Operation:
    """Return the copy that replaces `load`, with its cache policy."""
    operands = [value for value in (pointers, target, mask, other) if value is not None]
    properties = {name: load.properties[name] for name in ("cache", "evict", "isVolatile")}
    properties["contiguity"] = int_attr(contiguity, i32)
    properties[SEGMENTS] = i32_array(1, 1, int(mask is not None), int(other is not None))
    return create_op(ttg.AsyncCopyGlobalToLocalOp, operands, (async_token,), load.location, properties)


def splatted(low: Lowering, plan: LoadPlan, value: SSAValue | None) -> SSAValue | None:
    """Return a tensor of one element for a scalar."""
    if value is None:
        return None
    type = one_element(plan.load, value)
    return low.value(plan.load, tt.SplatOp.make(value, type, plan.load.location), plan.slot)


def one_element(op: Operation, value: SSAValue) -> Tensor:
    encoding = default_blocked((1,), None, None, num_warps(op), threads_per_warp(op), num_ctas(op))
    return tensor_type((1,), value.type, encoding_attr(encoding))


def value_type(plan: LoadPlan) -> Tensor:
    """Return the type of the tensor that is read from the buffer."""
    result = plan.load.results[0]
    return result.type if is_tensor(result.type) else one_element(plan.load, result)  # pyright: ignore


def replace_allocs(low: Lowering, plan: LoadPlan, view: SSAValue) -> None:
    """Replace the allocations of the load's users by `view` of a buffer, which is mutable."""
    for alloc in plan.allocs:
        replace_memory(alloc.results[0], view)
        low.schedule.slots.pop(alloc)
        erase_op(alloc)


def replace_memory(memory: SSAValue, other: SSAValue) -> None:
    """Replace `memory` by `other`, which is mutable; its views, also through waits, become mutable too."""
    make_views_mutable(memory)
    replace_all_uses(memory, other)


def make_views_mutable(memory: SSAValue) -> None:
    for use in memory.uses:
        results = use.operation.results
        for result in results[use.index : use.index + 1] if len(results) > 1 else results:
            if is_memdesc(result.type):
                set_type(result, as_mutable(result.type))
                make_views_mutable(result)


# Loads by descriptor to TMA, with barriers that count the bytes that arrive.
#
#     before the loop   n barriers, one for each buffer
#     at the loads      barrier_expect %bars[insert], bytes of all of them;  async_tma_copy_global_to_local each
#     at the first use  wait_barrier %bars[extract], %phase
#
# A use that is not in the last stage also runs for iterations beyond the last one: its tiles are loaded for these too.
#
# Adjacent loads with the same slot and first use share barriers.


def groups_of(low: Lowering, plans: list[LoadPlan]) -> list[list[LoadPlan]]:
    """Return groups of loads that share barriers: none of a group is used before its last load."""
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
    """Return True if `op` uses the loaded value, also through memory that the buffer replaces."""
    if op in plan.allocs:
        return False
    held = [plan.load.results[0], *(alloc.results[0] for alloc in plan.allocs)]
    return any(value in held for value in used_values(op))


def fits(plan: LoadPlan, other: LoadPlan) -> bool:
    return (plan.slot, plan.first_use, plan.buffers) == (other.slot, other.first_use, other.buffers)


def lower_group(low: Lowering, group: list[LoadPlan]) -> None:
    """Replace the loads of `group` by copies that share one barrier for each buffer."""
    plan = group[0]
    counters = low.counters[plan.buffers]
    first, last = plan.load, group[-1].load
    assert counters.phase is not None
    barriers = make_barriers(low, plan.buffers)
    barrier = low.value(first, ttg.MemDescIndexOp.make(barriers, counters.insert, first.location), plan.slot)
    total = sum(block_bytes(member) for member in group)
    always = low.value(first, constant(1, i1, first.location), plan.slot)
    started = [low.put(first, ttng.BarrierExpectOp.make(barrier, total, always, first.location), plan.slot)]
    for member in group:
        load = member.load
        target = low.value(load, ttg.MemDescIndexOp.make(low.allocs[load], counters.insert, load.location), plan.slot)
        always = low.value(load, constant(1, i1, load.location), plan.slot)
        started.append(low.put(load, copy_block(load, target, barrier, always), plan.slot))
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
    """Replace a load by a read of its buffer."""
    load, use = plan.load, plan.first_use
    extract = low.counters[plan.buffers].extract
    view = low.put(before, ttg.MemDescIndexOp.make(low.allocs[load], extract, load.location), use)
    replace_allocs(low, plan, view.results[0])
    if load.results[0].first_use is not None:
        loaded = ttg.LocalLoadOp.make(view.results[0], load.results[0].type, load.location)
        insert_after(view, loaded)
        low.schedule.assign(loaded, *use)
        replace_all_uses(load.results[0], loaded.results[0])
    low.schedule.slots.pop(load)
    erase_op(load)


def block_bytes(plan: LoadPlan) -> int:
    """Return the bytes that one load copies to each block."""
    result = plan.load.results[0]
    return prod(shape_per_cta(plan.encoding, shape_of(result.type))) * bit_width(result.type) // 8


def make_barriers(low: Lowering, count: int) -> SSAValue:
    """Allocate `count` barriers for the duration of the loop."""
    location = low.loop.location
    barriers = low.alloc(barrier_type(num_ctas(low.loop), count), low.loop)
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
    """Return the TMA copy that replaces `load`."""
    copy = start_load(load, target, barrier, always)
    copy.properties.update({name: load.properties[name] for name in ("cache", "evict") if name in load.properties})
    return copy


# One barrier per iteration instead of two, for one more buffer: where dots are asynchronous, and two blocks still fit.
#
#     iteration t, 3 stages   3 buffers                                    4 buffers
#     barrier                 tile t has arrived                           the same, and dot t - 2 is complete
#     start dot t             of buffer t mod 3                            of buffer t mod 4
#     wait for dot t - 1
#     barrier                 dot t - 1 is complete in all warps           (none)
#     copy tile t + 2         to buffer t + 2 = t - 1 mod 3, which it read to buffer t + 2 = t - 2 mod 4
#
# `analysis/alias.py` checks this for each loop. Measured on an H200, matmul of f16 by cp.async
# (benchmarks/results/gpu-h200.txt): 64x128x64 with 4 warps 9 to 20 % more, though three blocks become two; 64x64x64 6
# to 11 %. A block that is alone, or would be, gains nothing or loses.

AHEAD = 2  # buffers besides those that are copied to: those of this and of the preceding iteration's dots


def with_one_barrier(loop: Operation, plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return the plans with as many buffers as one barrier needs, if all are copies and two blocks still fit."""
    dots = [op for op in body_ops(loop) if type(op) is Dot]
    if not dots or not all(is_memdesc(dot.operands[0].type) and may_run_on(loop, dot) for dot in dots):
        return plans
    if not plans or any(plan.kind is not Kind.COPY for plan in plans):
        return plans
    more = [replace(plan, buffers=max(plan.buffers, plan.distance + AHEAD)) for plan in plans]
    return more if resident_blocks(loop, more) >= BLOCKS else plans


def resident_blocks(loop: Operation, plans: list[LoadPlan]) -> int:
    """Return how many blocks fit on a multiprocessor with the buffers of the plans; 0 if that is not known."""
    function = function_around(loop)
    replaced = {alloc for plan in plans for alloc in plan.allocs}
    allocs = [op for op in ops_in_order(*function.regions) if type(op) is ttg.LocalAllocOp and op not in replaced]
    shared = sum(plan.buffers * buffer_bits(plan) for plan in plans) + sum(
        tile_bits(op.results[0].type) for op in allocs
    )
    held = occupancy(loop, carried_registers(function) + OTHERS, shared // 8)
    return 0 if held is None else held.blocks


def with_early_copies(loop: Operation, plans: list[LoadPlan]) -> list[LoadPlan]:
    """Return the plans with more buffers for copies that start early, where as many blocks still fit."""
    more = with_free_buffers(plans)
    return with_one_barrier(loop, more if resident_blocks(loop, more) >= resident_blocks(loop, plans) else plans)


def lower_loads(loop: Operation, schedule: Schedule, facts: AxisFacts, early_copies: bool = False) -> None:
    """Lower the loads of `loop` that start early."""
    low = Lowering(loop, schedule)
    if plans := plan_loads(loop, schedule, facts):
        lower_plans(low, with_early_copies(loop, plans) if early_copies else plans)
    has_group_dot = any(type(op) is ttng.WarpGroupDotOp for op in body_ops(loop))
    slots = max(2, schedule.last_stage + int(has_group_dot), iterations_of_maps(low, plans))
    buffer_descriptors(loop, slots, low.replaced)
    schedule.assign_all_dependencies(loop)


def iterations_of_maps(low: Lowering, plans: list[LoadPlan]) -> int:
    """Return the number of iterations for which a descriptor that the loop creates is read: until the wait for the
    copies of its iteration.
    """
    schedule, body = low.schedule, body_of(low.loop)
    makers = {enclosing_op(op, body) for op in own_ops(low.loop) if type(op) is tt.MakeTensorDescOp}
    made = [schedule.slots[maker] for maker in makers if maker is not None and maker in schedule.slots]
    waited = [plan.first_use for plan in plans if plan.kind is Kind.TMA]
    return max(
        (
            stage + int(schedule.position(cluster) > schedule.position(first)) - start
            for start, first in made
            for stage, cluster in waited
        ),
        default=0,
    )


def lower_plans(low: Lowering, plans: list[LoadPlan]) -> None:
    """Allocate buffers and counters, and lower each load."""
    for plan in plans:
        result = plan.load.results[0]
        shape = (plan.buffers, *(shape_of(result.type) or (1,)))
        low.allocs[plan.load] = low.alloc(
            memdesc_type(shape, element_type(result.type), plan.encoding, True), plan.load
        )
    carry_counters(low, plans)
    for group in groups_of(low, [plan for plan in plans if plan.kind is Kind.TMA]):
        lower_group(low, group)
    copies = [plan for plan in plans if plan.kind is Kind.COPY]
    for plan in copies:
        lower_copy(low, plan)
    if copies:
        insert_after(low.loop, ttg.AsyncWaitOp.make((), 0, low.loop.location))
