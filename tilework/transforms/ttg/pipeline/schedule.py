"""Give every op of a loop with latencies a stage and a cluster.

    %a = tt.load %pa {tt.latency = 2}             %a = tt.load %pa      {loop.cluster = 3, loop.stage = 0}
    %d = tt.dot %a', ..., %acc            ==>     %d = tt.dot ...       {loop.cluster = 0, loop.stage = 2}
    %n = tt.addptr %pa, %step                     %n = tt.addptr ...    {loop.cluster = 2, loop.stage = 1}

1. From the loads: an op is as many stages behind a load as the latencies on the longest way there say. Later stages
   come first in an iteration, so that what they read is free again before it is loaded anew.
2. An `scf.if` that these ops need runs in front of everything, any other behind everything.
3. What an op needs in the same iteration runs where the first op that needs it does.
4. What an op needs from the iteration before (the next pointer) may run one stage later, just in front of it.
5. All else runs in the last stage.

Stage: TTGIR to TTGIR, attributes only. Cost: a few walks of each body with latencies.
"""

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.value_flows import reached
from tilework.ir import tt
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of
from tilework.ir.scf_ext import SKIPS
from tilework.transforms.passes import module_pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.coarse_schedule import Cluster, Schedule, drop_attributes
from tilework.transforms.ttg.pipeline.loops import (
    LATENCY,
    SELF_LATENCY,
    body_ops,
    carried_producer,
    integer_attribute,
    loops_in,
    producers,
    products_in,
    refusal,
    used_values,
    users_in,
    yield_of,
)


@module_pass("tritongpu-schedule-loops")
def schedule_loops(module: ModuleOp) -> None:
    for loop in loops_in(module):
        latencies = {inner: found for inner in body_ops(loop) if (found := integer_attribute(inner, LATENCY))}
        if not latencies:
            continue
        if (reason := refusal(loop)) is None:
            schedule_loop(loop, latencies).write(loop)
        else:
            remark(loop, f"the loop is not pipelined: {reason}")
    drop_attributes(ops_in_order(*module.regions), LATENCY, SELF_LATENCY)


def schedule_loop(loop: Operation, latencies: dict[Operation, int]) -> Schedule:
    """The schedule of `loop`, whose ops in `latencies` should start that many stages before their users."""
    schedule = place_key_ops(loop, latencies)
    first = schedule.clusters[0]
    if SKIPS in loop.attributes:
        hasten_carried(loop, schedule)
    place_ifs(loop, schedule)
    complete(loop, schedule, first)
    return schedule


def complete(loop: Operation, schedule: Schedule, first: Cluster) -> None:
    """Place the ops that have no place yet: before those that need them, or in the last stage, not before `first`."""
    schedule.place_all_dependencies(loop)
    place_carried(loop, schedule)
    place_rest(loop, schedule, first)


def place_key_ops(loop: Operation, latencies: dict[Operation, int]) -> Schedule:
    """Ops with a latency and all that depends on them: the longer the way to the end, the earlier the stage."""
    body, terminator = body_of(loop), yield_of(loop)
    ops = body_ops(loop)
    reached: set[Operation] = set()
    for op in ops:
        if op in latencies or op in reached:
            reached.add(op)
            reached.update(user for user in users_in(op, body) if user is not terminator)
    distance: dict[Operation, int] = {}
    for op in reversed(ops):
        if op in reached:
            below = [distance[user] for user in users_in(op, body) if user is not terminator]
            distance[op] = latencies.get(op, 0) + max(below, default=0)
    schedule = Schedule()
    schedule.last_stage = longest = max(distance.values())
    products = products_in(loop)
    clusters = [schedule.back_cluster() for _ in range(longest + 1)]
    epilogue = schedule.back_cluster()
    for op in ops:
        if op in distance:
            is_end = type(op) is scf.IfOp and op not in latencies and op not in products
            is_end = is_end and all(user is terminator for user in users_in(op, body))
            schedule.place(op, longest - distance[op], epilogue if is_end else clusters[distance[op]])
    return schedule


def hasten_carried(loop: Operation, schedule: Schedule) -> None:
    """Pointers that a load decides about (``if skipped: continue``) do not wait for the last stage if loads of the next iteration need them."""
    products = products_in(loop)
    for op in schedule.by_stage(loop):
        stage, cluster = schedule.places[op]
        for value in used_values(op):
            producer = carried_producer(value, loop)
            if producer is None or producer in products or schedule.places.get(producer, (0,))[0] <= stage + 1:
                continue
            place = (stage + 1, schedule.cluster_before(cluster))
            schedule.place(producer, *place)
            schedule.place_dependencies(producer, *place, loop)


def place_ifs(loop: Operation, schedule: Schedule) -> None:
    """Branches that scheduled ops need come first, the others last."""
    body = body_of(loop)
    needed: dict[Operation, int] = {}
    for op, (stage, _) in tuple(schedule.places.items()):
        for producer in reached(producers(op, body), lambda one: producers(one, body)):
            if type(producer) is scf.IfOp:
                needed[producer] = min(stage, needed.get(producer, stage))
    if needed:
        prologue = schedule.front_cluster()
        for op, stage in needed.items():
            if op not in schedule.places:
                schedule.place(op, stage, prologue)
    epilogue = schedule.back_cluster()
    for op in body_ops(loop):
        if type(op) is scf.IfOp and op not in schedule.places:
            schedule.place(op, schedule.last_stage, epilogue)


def place_carried(loop: Operation, schedule: Schedule) -> None:
    """What scheduled ops need from the iteration before: one stage later, in front of them, or with them if a load."""
    before: dict[Cluster, Cluster] = {}
    for op in schedule.by_stage(loop):
        stage, cluster = schedule.places[op]
        if stage >= schedule.last_stage:
            continue
        for value in used_values(op):
            producer = carried_producer(value, loop)
            if producer is None or producer in schedule.places:
                continue
            if type(producer) is tt.LoadOp:
                place = (stage, cluster)
            else:
                if cluster not in before:
                    before[cluster] = schedule.cluster_before(cluster)
                place = (stage + 1, before[cluster])
            schedule.place(producer, *place)
            schedule.place_dependencies(producer, *place, loop, through_arguments=True)


def place_rest(loop: Operation, schedule: Schedule, first: Cluster) -> None:
    """All other ops: in the last stage, as soon as what they need is there, but not before `first`."""
    body, last = body_of(loop), schedule.last_stage
    for op in body_ops(loop):
        if op in schedule.places:
            continue
        cluster = first
        for producer in producers(op, body):
            stage, other = schedule.places[producer]
            if stage == last and schedule.position(other) > schedule.position(cluster):
                cluster = other
        schedule.place(op, last, cluster)
