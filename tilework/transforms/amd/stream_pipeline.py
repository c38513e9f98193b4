"""Pipeline loops that have a schedule: loads of later iterations are kept in registers, then in LDS.

    %a = tt.load %p        stage 0             %a = tt.load %p                            stage 0: of the next iteration
    %x = convert %a        stage 1     ==>     %x = ttg.local_load %view -> dot_op        stage 1: of this one
    %d = tt.dot %x, ...    stage 1             %d = tt.dot %x, ...                        stage 1
                                               %view = ttg.memdesc_index %buffers[%next]  stage 0, after all others
                                               ttg.local_store %a, %view                  stage 0

There are as many buffers as stages between store and read, one more if an iteration fills one buffer before it reads
another, so that no buffer is overwritten before its last read. A circular counter selects the buffer to fill; the index
of the buffer that an iteration reads is carried to it. Loads that are used by more than dots are kept in registers.
With `use_async_copy` a load that an instruction can copy to LDS bypasses registers; it needs one more buffer, and a
wait at the start of the iteration. The last iterations are peeled, so that no op in the loop is conditional.
Stage: TTGIR to TTGIR. Cost: AxisInfo, and two copies of the body per stage.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum, auto
from functools import partial
from math import ceil
from typing import Generic, NamedTuple, TypeVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.value_flows import reached
from tilework.ir import amdg, tt, ttg
from tilework.ir.effects import writes
from tilework.ir.encodings import distributed_of, dot_operand_of, encoding_of, layout_of
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import chosen_target, find_target, num_warps, threads_per_warp
from tilework.ir.module_facts import target as target_of
from tilework.ir.nesting import body_of, start_of
from tilework.ir.rewrite import defining_op, erase_op, insert_after, replace_op, replace_uses
from tilework.ir.scf import also_carry, also_yield
from tilework.ir.ttg.memory_types import memdesc_type
from tilework.ir.types import Shape, bit_width, element_type, i32, int_attr, int_property, is_tensor, shape_of
from tilework.layouts.amd import wave_copy
from tilework.layouts.banks import offsets_of
from tilework.layouts.construct import dot_shared
from tilework.layouts.encodings import Linear, Shared, SwizzledShared
from tilework.layouts.linear import LinearLayout, log2
from tilework.layouts.to_linear import order_for_memory, to_linear
from tilework.target import Target
from tilework.transforms.building.emitter import Emitter, laid_out
from tilework.transforms.passes import Pass, module_pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.expand import expand, problem
from tilework.transforms.ttg.pipeline.latencies import Facts, Search, early_loads
from tilework.transforms.ttg.pipeline.load_plans import MIN_COPY_BITS, copy_width, needs_other
from tilework.transforms.ttg.pipeline.loops import (
    DOTS,
    MAX_STAGE,
    body_ops,
    dots_in,
    loops_in,
    producers,
    set_integer,
    users_in,
)
from tilework.transforms.ttg.pipeline.lower_loads import Lowering, async_copy, circular_increment
from tilework.transforms.ttg.pipeline.schedule import Cluster, Schedule, complete, erase_schedule
from tilework.transforms.ttg.pipeline.software_pipeline import fold_arithmetic, is_feasible, lower_loops, update_waits

# Assign the loads and dots of a loop to stages.
#
#     num-stages = 2
#     scf.for ... {                                    %a = tt.load %pa {loop.cluster = 0, loop.stage = 0}
#       %a = tt.load %pa                               %b = tt.load %pb {loop.cluster = 0, loop.stage = 0}
#       %b = tt.load %pb                   ==>         %d = tt.dot ...  {loop.cluster = 0, loop.stage = 1}
#       %d = tt.dot %a', %b', %acc                     } {tt.scheduled_max_stage = 1}
#
# The stages in between are divided among loads that depend on each other. Computations on loaded values are in the last
# stage.
#
# Where a second dot depends on the first (attention) and there are four stages, they work on adjacent iterations: a
# dot, arithmetic that does not wait for it, memory accesses, and the same for the other dot. The stages are:
#
#     2 first dot       3 rest of the arithmetic between        LDS: 1 stores the first's, 3 reads the second's operands
#     3 second dot      2 arithmetic that it and others need    LDS: 2 stores the second's, 1 reads the first's operands
#
# Stage: TTGIR to TTGIR, attributes only. Cost: AxisInfo, and one walk of the body per dot; pointer provenance where a
# loop stores.

SLOW_NARROW_LOADS = frozenset({"mfma1", "mfma2", "mfma3"})
CHAINED_STAGES = 4
Slot = TypeVar("Slot")  # a cluster, or its index


class Chained(IntEnum):
    """The clusters of a loop with two dots, in order."""

    FIRST_DOT = 0
    REST = auto()
    WAIT_SECOND = auto()
    STORE_FIRST = auto()
    READ_SECOND = auto()
    LOAD_FIRST = auto()
    SECOND_DOT = auto()
    HALF = auto()
    WAIT_FIRST = auto()
    STORE_SECOND = auto()
    READ_FIRST = auto()
    LOAD_SECOND = auto()


class Way(NamedTuple, Generic[Slot]):
    """Stage and cluster of each step of a load: to registers (or directly to LDS), the store to LDS, wait, and read."""

    load: tuple[int, Slot]
    store: tuple[int, Slot]
    wait: tuple[int, Slot]
    read: tuple[int, Slot]


FIRST = Way((0, Chained.LOAD_FIRST), (1, Chained.STORE_FIRST), (1, Chained.WAIT_FIRST), (1, Chained.READ_FIRST))
SECOND = Way((1, Chained.LOAD_SECOND), (2, Chained.STORE_SECOND), (3, Chained.WAIT_SECOND), (3, Chained.READ_SECOND))


class AmdScheduleLoopsPass(Pass):
    name = "tritonamdgpu-schedule-loops"
    num_stages: int = 2

    def run(self, module: ModuleOp) -> None:
        facts = Facts(module)
        for loop in loops_in(module):
            judge = is_narrow if target_of(module).features & SLOW_NARROW_LOADS else lambda load, facts: None
            stages, levels = early_loads(loop, self.num_stages, Search(body_of(loop), judge, facts))
            if levels and not assign_chained(loop, stages, levels):
                assign_stages(loop, stages, levels)


def assign_stages(loop: Operation, stages: int, levels: dict[Operation, int]) -> None:
    """Assign loads to stages as early as dependent loads allow, dots to the last stage."""
    deepest = max(levels.values())
    if deepest >= stages:
        remark(loop, f"the loop is not pipelined: {deepest + 1} loads depend on each other, in {stages} stages")
        return
    schedule = Schedule()
    cluster = schedule.back_cluster()
    for load, level in levels.items():
        schedule.assign(load, (deepest - level) * ceil((stages - 2) / (deepest + 1)), cluster)
    for op in dots_in(loop):
        schedule.assign(op, stages - 1, cluster)
    schedule.write(loop)
    set_integer(loop, MAX_STAGE, stages - 1)


def assign_chained(loop: Operation, stages: int, levels: dict[Operation, int]) -> bool:
    """Schedule two dots that work on adjacent iterations. Return False if the loop has no such dots, or has side
    effects, whose order would change.
    """
    ops = body_ops(loop)
    dots = [op for op in ops if type(op) in DOTS]
    if stages != CHAINED_STAGES or len(dots) != 2 or any(levels.values()) or any(writes(op) for op in ops):
        return False
    body, (first, second) = body_of(loop), dots
    by_first, by_second = users_of(first, loop), users_of(second, loop)
    for_first = set(reached([first], lambda op: producers(op, body)))
    ways = {load: FIRST if load in for_first else SECOND for load in levels}
    if second not in by_first or by_first & ways.keys() or len(set(ways.values())) < 2:
        return False
    schedule = Schedule()
    clusters = [schedule.back_cluster() for _ in Chained]
    for op in ops:
        if op in by_first and op not in by_second:
            schedule.assign(op, 3, clusters[Chained.REST])
    pending = [second]
    while pending:
        for op in producers(pending.pop(), body):
            if op not in by_first:
                continue
            if len(set(users_in(op, body))) > 1:
                schedule.assign(op, 2, clusters[Chained.HALF])
            else:
                pending.append(op)
    schedule.assign(first, 2, clusters[Chained.FIRST_DOT])
    schedule.assign(second, 3, clusters[Chained.SECOND_DOT])
    for load, way in ways.items():
        schedule.assign(load, way.load[0], clusters[way.load[1]])
        for user in users_in(load, body):
            if type(user) is ttg.ConvertLayoutOp:
                schedule.assign(user, way.read[0], clusters[way.read[1]])
    schedule.write(loop)
    trial = Schedule.read(loop)
    assert trial is not None
    complete(loop, trial, trial.clusters[0])
    if problem(loop, trial.in_order(loop), peels=True) is None:
        return True
    erase_schedule(loop)  # the first dot depends on the second of the preceding iteration
    return False


def users_of(root: Operation, loop: Operation) -> set[Operation]:
    """Return the ops that depend on `root` in the same iteration."""
    body = body_of(loop)
    return set(reached(users_in(root, body), lambda op: users_in(op, body)))


def is_narrow(load: Operation, facts: AxisFacts) -> str | None:
    if copy_width(load, facts) * bit_width(load.results[0].type) < MIN_COPY_BITS:
        return "its elements are not contiguous: less than 4 bytes are read at a time"
    return None


PART = "amd.pipeliner_part"
EARLY_STAGES = 3  # of loops in which half of the warps may be ahead


class AmdPipelinePass(Pass):
    name = "tritonamdgpu-pipeline"
    use_async_copy: bool = False
    use_pingpong: bool = False

    def run(self, module: ModuleOp) -> None:
        copying_for = find_target(module) if self.use_async_copy else None
        lower = partial(buffer_loads, copying_for=copying_for, waits_early=self.use_pingpong)
        for loop, schedule in lower_loops(module, lower, peels=True):
            order = schedule.in_order(loop)
            if is_feasible(loop, order, peels=True):
                before = loop.prev_op
                mark_prologue(before, expand(loop, order, peels=True))
        erase_schedule(module)
        if self.use_async_copy:
            update_waits(module)
        fold_arithmetic(module)


def mark_prologue(before: Operation | None, loop: Operation) -> None:
    """Mark the loads between `before` and `loop`, which may be hoisted."""
    op = loop.prev_op
    while op is not None and op is not before:
        if type(op) is tt.LoadOp:
            op.attributes[PART] = StringAttr("prologue")
        op = op.prev_op


def buffer_loads(
    loop: Operation,
    schedule: Schedule,
    facts: AxisFacts,
    copying_for: Target | None = None,
    waits_early: bool = False,
) -> None:
    """Keep loads that only dots use in LDS; `copying_for` is a target whose async copies write LDS directly. A loop of
    three stages that `waits_early` waits for them at the end of the iteration before (`block_pingpong.py`)."""
    low, way_of = Lowering(loop, schedule), ways(schedule, waits_early)
    counters: dict[tuple[int, Cluster], SSAValue] = {}
    for load in body_ops(loop):
        if type(load) is not tt.LoadOp or (way := way_of(load)) is None:
            continue
        if (encoding := operand_encoding(load.results[0])) is None:
            continue
        type_ = load.results[0].type
        width = 0 if copying_for is None else copied_width(load, encoding, facts, copying_for)
        slot = way.load if width else way.store
        reads_after = schedule.position(slot[1]) <= schedule.position(way.read[1])
        buffers = way.read[0] - slot[0] + reads_after
        if slot not in counters:
            counters[slot] = carry_counter(low, buffers, slot)
        shape = (buffers, *shape_of(type_))
        memory = low.alloc(memdesc_type(shape, element_type(type_), encoding, True), load)
        view = ttg.MemDescIndexOp.make(memory, counters[slot], load.location)
        if width:
            copy = async_copy(load, load.operands[0], view.results[0], getattr(load, "mask", None), None, width)
            group = ttg.AsyncCommitGroupOp.make(copy.results, load.location)
            wait = ttg.AsyncWaitOp.make(group.results, 0, load.location)
            read = ttg.LocalLoadOp.make(view.results[0], type_, load.location, wait.results[0])
            insert_after(load, view, copy, group, wait, read)
            schedule.assign(wait, *way.wait)
            filling = (view, copy, group)
        else:
            store = ttg.LocalStoreOp.make(load.results[0], view.results[0], load.location)
            read = ttg.LocalLoadOp.make(view.results[0], type_, load.location)
            insert_after(load, view, store, read)
            filling = (view, store)
        for op in filling:
            schedule.assign(op, *slot)
        schedule.assign(read, *way.read)
        replace_uses(load.results[0], read.results[0], lambda user: user not in filling)  # noqa: B023
        if width:
            schedule.slots.pop(load)
            erase_op(load)


def ways(schedule: Schedule, waits_early: bool) -> Callable[[Operation], Way[Cluster] | None]:
    """Return a function from a load to the slots in which it is issued, stored and read; None for a load that runs in
    the stage of its users.
    """
    if len(clusters := schedule.initial_clusters) == len(Chained):
        first, second = (Way(*((stage, clusters[index]) for stage, index in way)) for way in (FIRST, SECOND))
        chained = {first.load: first, second.load: second}
        return lambda load: chained.get(schedule.slots[load])
    last, compute, stores = schedule.last_stage, schedule.clusters[-1], schedule.back_cluster()
    early = waits_early and last + 1 == EARLY_STAGES
    wait = (last - 1, schedule.back_cluster()) if early else (last, schedule.front_cluster())

    def single(load: Operation) -> Way[Cluster] | None:
        if (stage := schedule.slots[load][0]) >= last:
            return None
        return Way((stage, compute), (stage, stores), wait, (last, compute))

    return single


def copied_width(load: Operation, encoding: SwizzledShared, facts: AxisFacts, target: Target) -> int:
    """Return the number of adjacent elements that one async copy writes to LDS, with zeros where masked off; 0 if no
    instruction fits.
    """
    type_ = load.results[0].type
    bytes = max(bit_width(type_) // 8, 1)
    contiguous = copy_width(load, facts)
    contiguous = contiguous if encoding.max_phase == 1 else min(contiguous, encoding.vec)
    width = copied_together(contiguous * bytes, target) // bytes
    if width == 0 or needs_other(load):
        return 0
    fits = lanes_in_order(shape_of(type_), encoding, width, threads_per_warp(load), num_warps(load))
    return width if fits is not None else 0


def operand_encoding(value: SSAValue) -> SwizzledShared | None:
    """Return the LDS layout for all users of `value`; None if a user is not a dot, or they disagree."""
    found: SwizzledShared | None = None
    given = distributed_of(value.type)
    if given is None or not is_tensor(value.type):
        return None
    shape, bits = shape_of(value.type), bit_width(value.type)
    for use in value.uses:
        if type(use.operation) is not ttg.ConvertLayoutOp:
            return None
        if (operand := dot_operand_of(use.operation.results[0].type)) is None:
            return None
        wanted = dot_shared(operand, shape, order_for_memory(given, shape), bits, cga=given.cga_bases)
        if found is not None and replace(found, vec=wanted.vec) != wanted:
            return None
        found = wanted if found is None or wanted.vec < found.vec else found
    return found


def carry_counter(low: Lowering, buffers: int, slot: tuple[int, Cluster]) -> SSAValue:
    """Return the index of the buffer to fill next, incremented in each iteration in `slot`."""
    code = Emitter(low.loop.location)
    minus_one, zero, one, limit = (code.constant(value, i32) for value in (-1, 0, 1, buffers))
    code.insert_before(low.loop)
    (counter,), body = also_carry(low.loop, [minus_one]), body_of(low.loop)
    following, _ = circular_increment(code, counter, limit, zero, one)
    for op in code.ops:
        low.schedule.assign(op, *slot)
    code.insert_before(start_of(body))
    also_yield(body, [following])
    return following


# Convert the pointers of async copies to the layout that the instruction writes to LDS.
#
#     128x64xf16 into LDS by rows, 4 bytes at a time, waves of 64:
#     ttg.async_copy_global_to_local %p, %m  ==>  %q = ttg.convert_layout %p : -> 2 elements per lane, 32 lanes per row
#                                                 ttg.async_copy_global_to_local %q, %m
#
# One instruction writes the lanes of a wave to consecutive LDS addresses. So the lowest register bits are the adjacent
# elements of one copy, followed by lanes, warps and further copies, in the order of unswizzled LDS offsets; the
# lowering applies the swizzle by permuting the addresses that the lanes of a wave read. No copy crosses the padding of
# LDS.
# Stage: TTGIR to TTGIR. Cost: one walk.

COPY_BYTES = {"lds_copy_16": 16, "lds_copy_4": 4}  # by the feature of a target, the widest first


class CoalesceAsyncCopyPass(Pass):
    name = "tritonamdgpu-coalesce-async-copy"
    target: str = ""

    def run(self, module: ModuleOp) -> None:
        for op in ops_in_order(*module.regions):
            if isinstance(op, ttg.AsyncCopyGlobalToLocalOp):
                spread(op, chosen_target(op, self.target))


def spread(copy: ttg.AsyncCopyGlobalToLocalOp, target: Target) -> None:
    """Convert the pointers of one copy, if an instruction of `target` can copy that many elements."""
    bits, shape, memory = bit_width(copy.dst.type), shape_of(copy.src.type), encoding_of(copy.dst.type)
    assert isinstance(memory, Shared), memory
    contiguous = min([int_property(copy, "contiguity"), *(interval for interval, _ in memory.intervals)])
    if (width := copied_together(contiguous * bits // 8, target) * 8 // bits) == 0:
        return
    layout = lanes_in_order(shape, memory, width, threads_per_warp(copy), num_warps(copy))
    if layout is None:
        return
    copy.properties["contiguity"] = int_attr(width, i32)
    for index, operand in enumerate(copy.operands):
        if index != 1:  # the memory
            copy.operands[index] = laid_out(copy, operand, layout)


def copied_together(bytes: int, target: Target) -> int:
    """Return the bytes per lane that one instruction copies, of so many contiguous ones; 0 if there is none."""
    return next((size for name, size in COPY_BYTES.items() if name in target.features and size <= bytes), 0)


def lanes_in_order(shape: Shape, memory: Shared, width: int, lanes: int, warps: int) -> Linear | None:
    """Return the layout of adjacent elements, lanes, warps, then further registers; None if the tensor is smaller."""
    memory_layout = to_linear(memory.unswizzled(), shape)
    bases = dict(memory_layout.bases)["offset"]
    first, second = log2(width), log2(width) + log2(lanes)
    third = second + log2(warps)
    if len(bases) < third:
        return None
    levels = {"register": (*bases[:first], *bases[third:]), "lane": bases[first:second], "warp": bases[second:third]}
    return Linear(LinearLayout({**levels, "block": ()}, memory_layout.out_names))


# Convert waits for groups of copies to waits for instructions, which the GPU counts.
#
#     %w = ttg.async_wait %g {num = 2 : i32}     ==>     %w = amdg.async_wait %g {num_inst = 8 : i32}    (4 per group)
#
# Pending groups are counted with the smallest number of instructions of any group in the kernel, so that the count is
# never too large.
# Stage: TTGIR to TTGIR. Cost: one walk.


@module_pass("tritonamdgpu-update-async-wait-count")
def update_async_wait_count(module: ModuleOp) -> None:
    ops = list(module.walk())
    groups = [instructions(op) for op in ops if type(op) is ttg.AsyncCommitGroupOp]
    for op in ops:
        if type(op) is ttg.AsyncWaitOp:
            allowed = int_property(op, "num") * min(groups, default=0)
            replace_op(op, amdg.AsyncWaitOp.make(tuple(op.operands), allowed, op.location))


def instructions(commit: Operation) -> int:
    """Return the minimum number of copy instructions of a group: copies by loads and stores count as none."""
    total = 0
    for copy in (defining_op(token) for token in commit.operands):
        if copy is not None and type(copy) is amdg.BufferLoadToLocalOp:
            memory_layout = layout_of(copy.operands[2].type)
            width = int_property(copy, "contiguity")
            if wave_copy(offsets_of(memory_layout, layout_of(copy.operands[0].type)), width) is not None:
                total += (1 << len(memory_layout.by_in["register"])) // width
    return total
