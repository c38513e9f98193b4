"""Step 1 of the pipeliner: loads become copies to buffers in shared memory that run in the background.

    %a = tt.load %p          stage 0         %buffers = ttg.local_alloc                          before the loop
    %b = use %a              stage 2   ==>   %t = ttg.async_copy_global_to_local %p, %buffers[insert]     stage 0
                                             %g = ttg.async_commit_group tokens %t                        stage 0
                                             %w = ttg.async_wait %g                                       stage 2
                                             %a = ttg.local_load %buffers[extract] token %w               stage 2

Between the copy and the use lie as many iterations as the stages say, so there are that many buffers, used in turn. The
counters `insert` and `extract` go around separately: each is computed in the stage that needs it. All loads with the
same number of buffers share them (`lowering.py`).

A load that is only copied to shared memory anyway (`ttg.local_alloc`) is read from the buffer itself, without registers.
`tt.load` uses cp.async where a thread copies 4 bytes or more at once (`lower_copies.py`); loads by descriptor use TMA
(`lower_tma.py`). All other loads stay: their values are carried in registers. Descriptors that the loop makes get several
places too (`descriptors.py`).
"""

from xdsl.ir import Operation

from tilework.analysis.axis_info import AxisFacts
from tilework.ir import tt, ttg, ttng
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import insert_after
from tilework.ir.ttg.memdesc_types import memdesc_type
from tilework.ir.types import element_type, shape_of
from tilework.transforms.ttg.pipeline.coarse_schedule import Schedule
from tilework.transforms.ttg.pipeline.descriptors import buffer_descriptors
from tilework.transforms.ttg.pipeline.load_plans import Kind, LoadPlan, plan_loads, with_free_buffers
from tilework.transforms.ttg.pipeline.loops import body_ops, enclosing_op, ops_outside_loops
from tilework.transforms.ttg.pipeline.lower_copies import lower_copy
from tilework.transforms.ttg.pipeline.lower_tma import groups_of, lower_group
from tilework.transforms.ttg.pipeline.lowering import Lowering, carry_counters
from tilework.transforms.ttg.pipeline.one_barrier import with_one_barrier


def lower_loads(loop: Operation, schedule: Schedule, facts: AxisFacts, early_copies: bool = False) -> None:
    """Lower the loads of `loop` that run ahead of their uses."""
    low = Lowering(loop, schedule)
    if plans := plan_loads(loop, schedule, facts):
        lower_plans(low, with_one_barrier(loop, with_free_buffers(plans)) if early_copies else plans)
    has_group_dot = any(type(op) is ttng.WarpGroupDotOp for op in body_ops(loop))
    slots = max(2, schedule.last_stage + int(has_group_dot), iterations_of_maps(low, plans))
    buffer_descriptors(loop, slots, low.replaced)
    schedule.place_all_dependencies(loop)


def iterations_of_maps(low: Lowering, plans: list[LoadPlan]) -> int:
    """For how many iterations a descriptor is read that the loop makes: until the copies of its iteration have been waited for."""
    schedule, body = low.schedule, body_of(low.loop)
    makers = {enclosing_op(make, body) for make in ops_outside_loops(body, tt.MakeTensorDescOp)}
    made = [schedule.places[maker] for maker in makers if maker is not None and maker in schedule.places]
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
    """Make buffers and counters, and lower each load."""
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
