"""Pipeline loops that have a schedule: loads of later iterations wait in registers, then in LDS.

    %a = tt.load %p        stage 0             %a = tt.load %p                            stage 0: of the next iteration
    %x = convert %a        stage 1     ==>     %x = ttg.local_load %view -> dot_op        stage 1: of this one
    %d = tt.dot %x, ...    stage 1             %d = tt.dot %x, ...                        stage 1
                                               %view = ttg.memdesc_index %buffers[%next]  stage 0, behind all else
                                               ttg.local_store %a, %view                  stage 0

There are as many buffers as stages lie between, one more if an iteration fills one before it reads another: nothing overwrites what
is still to be read. One counter goes around them;
which buffer an iteration reads is carried to it. Loads that are not only operands of products wait in registers until they are used.
With `use_async_copy` a load that an instruction can copy to LDS goes there without registers, one buffer more, behind a wait at the start
of the iteration. The last iterations are peeled: nothing inside of the loop is conditional.
Stage: TTGIR to TTGIR. Cost: AxisInfo, and two copies of the body per stage.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from tilework.analysis.axis_info import AxisFacts
from tilework.ir import tt, ttg
from tilework.ir.encodings import distributed_of, dot_operand_of
from tilework.ir.module_facts import find_target, num_warps, threads_per_warp
from tilework.ir.nesting import body_of, start_of
from tilework.ir.rewrite import erase_op, insert_after, replace_uses
from tilework.ir.scf_ext import also_carry, also_yield
from tilework.ir.ttg.memdesc_types import memdesc_type
from tilework.ir.types import bit_width, element_type, i32, is_tensor, shape_of
from tilework.layouts.construct import dot_shared
from tilework.layouts.encodings import SwizzledShared
from tilework.layouts.queries import order_for_memory
from tilework.target import Target
from tilework.transforms.amd.coalesce_async_copy import copied_together, lanes_in_order
from tilework.transforms.amd.schedule_loops import FIRST, SECOND, Chained, Way
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass
from tilework.transforms.ttg.pipeline.coarse_schedule import Cluster, Schedule, erase_schedule
from tilework.transforms.ttg.pipeline.expand import expand
from tilework.transforms.ttg.pipeline.load_buffers import copy_width
from tilework.transforms.ttg.pipeline.load_plans import needs_other
from tilework.transforms.ttg.pipeline.loops import body_ops
from tilework.transforms.ttg.pipeline.lower_copies import async_copy
from tilework.transforms.ttg.pipeline.lowering import Lowering, next_in_turn
from tilework.transforms.ttg.pipeline.software_pipeline import fold_arithmetic, is_feasible, lower_loops
from tilework.transforms.ttg.pipeline.waits import update_waits

PART = "amd.pipeliner_part"


class AmdPipelinePass(Pass):
    name = "tritonamdgpu-pipeline"
    use_async_copy: bool = False

    def run(self, module: ModuleOp) -> None:
        lower = partial(buffer_loads, copying_for=find_target(module) if self.use_async_copy else None)
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
    """Say of the loads between `before` and `loop` that they may move up."""
    op = loop.prev_op
    while op is not None and op is not before:
        if type(op) is tt.LoadOp:
            op.attributes[PART] = StringAttr("prologue")
        op = op.prev_op


def buffer_loads(loop: Operation, schedule: Schedule, facts: AxisFacts, copying_for: Target | None = None) -> None:
    """Let loads that only products use wait in LDS; `copying_for` a target that copies some there by itself."""
    low, way_of = Lowering(loop, schedule), ways(schedule)
    counters: dict[tuple[int, Cluster], SSAValue] = {}
    for load in body_ops(loop):
        if type(load) is not tt.LoadOp or (way := way_of(load)) is None:
            continue
        if (encoding := operand_encoding(load.results[0])) is None:
            continue
        type_ = load.results[0].type
        width = 0 if copying_for is None else copied_width(load, encoding, facts, copying_for)
        place = way.load if width else way.store
        reads_after = schedule.position(place[1]) <= schedule.position(way.read[1])
        buffers = way.read[0] - place[0] + reads_after
        if place not in counters:
            counters[place] = carry_counter(low, buffers, place)
        shape = (buffers, *shape_of(type_))
        memory = low.alloc(memdesc_type(shape, element_type(type_), encoding, True), load)
        view = ttg.MemDescIndexOp.make(memory, counters[place], load.location)
        if width:
            copy = async_copy(load, load.operands[0], view.results[0], getattr(load, "mask", None), None, width)
            group = ttg.AsyncCommitGroupOp.make(copy.results, load.location)
            wait = ttg.AsyncWaitOp.make(group.results, 0, load.location)
            read = ttg.LocalLoadOp.make(view.results[0], type_, load.location, wait.results[0])
            insert_after(load, view, copy, group, wait, read)
            schedule.place(wait, *way.wait)
            filling = (view, copy, group)
        else:
            store = ttg.LocalStoreOp.make(load.results[0], view.results[0], load.location)
            read = ttg.LocalLoadOp.make(view.results[0], type_, load.location)
            insert_after(load, view, store, read)
            filling = (view, store)
        for op in filling:
            schedule.place(op, *place)
        schedule.place(read, *way.read)
        replace_uses(load.results[0], read.results[0], lambda user: user not in filling)  # noqa: B023
        if width:
            schedule.places.pop(load)
            erase_op(load)


def ways(schedule: Schedule) -> Callable[[Operation], Way[Cluster] | None]:
    """When a load is done, stored and read; None if it runs with what uses it."""
    if len(numbered := schedule.numbered) == len(Chained):
        first, second = (Way(*((stage, numbered[number]) for stage, number in way)) for way in (FIRST, SECOND))
        chained = {first.load: first, second.load: second}
        return lambda load: chained.get(schedule.places[load])
    last, compute, stores = schedule.last_stage, schedule.clusters[-1], schedule.back_cluster()
    waits = schedule.front_cluster()

    def single(load: Operation) -> Way[Cluster] | None:
        if (stage := schedule.places[load][0]) >= last:
            return None
        return Way((stage, compute), (stage, stores), (last, waits), (last, compute))

    return single


def copied_width(load: Operation, encoding: SwizzledShared, facts: AxisFacts, target: Target) -> int:
    """How many neighbours an instruction moves to LDS, where it writes zeros if the mask is off; 0 if none can do the load."""
    type_ = load.results[0].type
    bytes = max(bit_width(type_) // 8, 1)
    beside = copy_width(load, facts)
    beside = beside if encoding.max_phase == 1 else min(beside, encoding.vec)
    width = copied_together(beside * bytes, target) // bytes
    if width == 0 or needs_other(load):
        return 0
    fits = lanes_in_order(shape_of(type_), encoding, width, threads_per_warp(load), num_warps(load))
    return width if fits is not None else 0


def operand_encoding(value: SSAValue) -> SwizzledShared | None:
    """The layout in LDS that all users of `value` want; None if one is not a product, or they do not agree."""
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


def carry_counter(low: Lowering, buffers: int, place: tuple[int, Cluster]) -> SSAValue:
    """Which buffer is filled next, stepped in each iteration where `place` says."""
    code = Emitter(low.loop.location)
    minus_one, zero, one, limit = (code.constant(value, i32) for value in (-1, 0, 1, buffers))
    code.insert_before(low.loop)
    (counter,), body = also_carry(low.loop, [minus_one]), body_of(low.loop)
    following, _ = next_in_turn(code, counter, limit, zero, one)
    for op in code.ops:
        low.schedule.place(op, *place)
    code.insert_before(start_of(body))
    also_yield(body, [following])
    return following
