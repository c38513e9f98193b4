"""Pipeline loops that have a schedule: loads of later iterations wait in registers, then in LDS.

    %a = tt.load %p        stage 0             %a = tt.load %p                            stage 0: of the next iteration
    %x = convert %a        stage 1     ==>     %x = ttg.local_load %view -> dot_op        stage 1: of this one
    %d = tt.dot %x, ...    stage 1             %d = tt.dot %x, ...                        stage 1
                                               %view = ttg.memdesc_index %buffers[%next]  stage 0, behind all else
                                               ttg.local_store %a, %view                  stage 0

There are as many buffers as stages lie between: the store overwrites what this iteration has read. One counter goes around them;
which buffer an iteration reads is carried to it. Loads that are not only operands of products wait in registers until they are used.
The last iterations are peeled: nothing inside of the loop is conditional.
Stage: TTGIR to TTGIR. Cost: AxisInfo, and two copies of the body per stage.
"""

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from tilework.analysis.axis_info import AxisFacts
from tilework.ir import tt, ttg
from tilework.ir.carried import also_carry, also_yield
from tilework.ir.encodings import distributed_of, dot_operand_of
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import insert_after
from tilework.ir.ttg.memdesc_types import memdesc_type
from tilework.ir.types import bit_width, element_type, i32, is_tensor, shape_of
from tilework.layouts.construct import dot_shared
from tilework.layouts.encodings import SwizzledShared
from tilework.layouts.queries import order_for_memory
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import Pass
from tilework.transforms.ttg.pipeline.coarse_schedule import Cluster, Schedule, erase_schedule
from tilework.transforms.ttg.pipeline.expand import expand
from tilework.transforms.ttg.pipeline.loops import body_ops
from tilework.transforms.ttg.pipeline.lowering import Lowering, next_in_turn
from tilework.transforms.ttg.pipeline.software_pipeline import fold_arithmetic, is_feasible, lower_loops

PART = "amd.pipeliner_part"


class AmdPipelinePass(Pass):
    name = "tritonamdgpu-pipeline"

    def run(self, module: ModuleOp) -> None:
        for loop, schedule in lower_loops(module, buffer_loads, peels=True):
            order = schedule.in_order(loop)
            if is_feasible(loop, order, peels=True):
                before = loop.prev_op
                mark_prologue(before, expand(loop, order, peels=True))
        erase_schedule(module)
        fold_arithmetic(module)


def mark_prologue(before: Operation | None, loop: Operation) -> None:
    """Say of the loads between `before` and `loop` that they may move up."""
    op = loop.prev_op
    while op is not None and op is not before:
        if type(op) is tt.LoadOp:
            op.attributes[PART] = StringAttr("prologue")
        op = op.prev_op


def buffer_loads(loop: Operation, schedule: Schedule, facts: AxisFacts) -> None:
    """Let loads that only products use wait in LDS."""
    low = Lowering(loop, schedule)
    compute, last = schedule.clusters[-1], schedule.last_stage
    stores = schedule.back_cluster()
    counters: dict[int, SSAValue] = {}
    for load in body_ops(loop):
        if type(load) is not tt.LoadOp or (stage := schedule.places[load][0]) >= last:
            continue
        if (encoding := operand_encoding(load.results[0])) is None:
            continue
        type_ = load.results[0].type
        buffers = last - stage
        if stage not in counters:
            counters[stage] = carry_counter(low, buffers, (stage, stores))
        shape = (buffers, *shape_of(type_))
        memory = low.alloc(memdesc_type(shape, element_type(type_), encoding, True), load)
        view = ttg.MemDescIndexOp.make(memory, counters[stage], load.location)
        store = ttg.LocalStoreOp.make(load.results[0], view.results[0], load.location)
        read = ttg.LocalLoadOp.make(view.results[0], type_, load.location)
        for use in tuple(load.results[0].uses):
            if use.operation is not store:
                use.operation.operands[use.index] = read.results[0]
        insert_after(load, view, store, read)
        schedule.place(view, stage, stores)
        schedule.place(store, stage, stores)
        schedule.place(read, last, compute)


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
    assert body.first_op is not None
    code.insert_before(body.first_op)
    also_yield(body, [following])
    return following
