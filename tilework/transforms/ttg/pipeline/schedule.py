"""Give every op of a loop with latencies a stage and a cluster.

    %a = tt.load %pa {tt.latency = 2}             %a = tt.load %pa      {loop.cluster = 3, loop.stage = 0}
    %d = tt.dot %a', ..., %acc            ==>     %d = tt.dot ...       {loop.cluster = 0, loop.stage = 2}
    %n = tt.addptr %pa, %step                     %n = tt.addptr ...    {loop.cluster = 2, loop.stage = 1}

1. From the loads: an op is as many stages after a load as the latencies on the longest path to it. Later stages come
   first in an iteration, so that the buffers they read are free before they are loaded again.
2. An `scf.if` that these ops depend on runs before all others, any other `scf.if` after them.
3. A dependency in the same iteration runs with the first op that needs it.
4. A dependency from the preceding iteration (the next pointer) may run one stage later, just before its user.
5. All other ops run in the last stage. Loads into registers are the first ops of an iteration, for the next one.

Stage: TTGIR to TTGIR, attributes only. Cost: a few walks of each body with latencies.
"""

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.value_flows import reached
from tilework.ir import scf, tt
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import integer
from tilework.ir.nesting import body_of
from tilework.ir.scf import SKIPS
from tilework.transforms.passes import module_pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.loops import (
    CLUSTER,
    IN_REGISTERS,
    LATENCY,
    MAX_STAGE,
    SELF_LATENCY,
    STAGE,
    body_ops,
    carried_producer,
    dots_in,
    loops_in,
    producers,
    refusal,
    set_integer,
    used_values,
    users_in,
    yield_of,
)

# The schedule of a loop body: each op has a stage (the iterations by which it is late) and a cluster (its position in
# the iteration).
#
#     op          stage  cluster          order in the pipelined loop: dot (of k), addptr (of k + 1), load (of k + 2)
#     load          0       3
#     addptr        1       2
#     dot           2       0
#
# Clusters are an ordered list into which scheduling inserts new ones; inside a cluster ops keep the order of the
# program. As attributes a cluster is its position in that list.


class Cluster:
    """A part of an iteration, compared by identity."""


class Schedule:
    """The stage and cluster of ops of one loop."""

    def __init__(self) -> None:
        self.clusters: list[Cluster] = []
        self.initial_clusters: tuple[Cluster, ...] = ()  # the clusters of the attributes
        self.slots: dict[Operation, tuple[int, Cluster]] = {}
        self.last_stage = 0
        self.slack: dict[Operation, int] = {}  # ops that also run for so many iterations beyond the last

    def front_cluster(self) -> Cluster:
        """Insert a cluster before all others."""
        self.clusters.insert(0, cluster := Cluster())
        return cluster

    def back_cluster(self) -> Cluster:
        """Insert a cluster after all others."""
        self.clusters.append(cluster := Cluster())
        return cluster

    def cluster_before(self, other: Cluster) -> Cluster:
        """Insert a cluster just before `other`."""
        self.clusters.insert(self.position(other), cluster := Cluster())
        return cluster

    def position(self, cluster: Cluster) -> int:
        return self.clusters.index(cluster)

    def assign(self, op: Operation, stage: int, cluster: Cluster) -> None:
        """Assign `op` to a slot, unconditionally."""
        self.slots[op] = (stage, cluster)

    def assign_earlier(self, op: Operation, stage: int, cluster: Cluster) -> bool:
        """Assign `op` to a slot, unless its slot is as early; return True if it was moved."""
        found = self.slots.get(op)
        if found is not None and self.key(*found) <= self.key(stage, cluster):
            return False
        self.slots[op] = (stage, cluster)
        return True

    def key(self, stage: int, cluster: Cluster) -> tuple[int, int]:
        """Return the sort key of a slot: earlier stages first, then earlier clusters."""
        return (stage, self.position(cluster))

    def assign_dependencies(
        self, op: Operation, stage: int, cluster: Cluster, loop: Operation, through_arguments: bool = False
    ) -> None:
        """Assign the ops that `op` depends on, transitively, no later than (stage, cluster)."""
        body = body_of(loop)
        pending = [op]
        while pending:
            current = pending.pop()
            needed = list(producers(current, body))
            if through_arguments:
                carried = (carried_producer(value, loop) for value in used_values(current))
                needed.extend(producer for producer in carried if producer is not None)
            for producer in needed:
                if self.assign_earlier(producer, stage, cluster):
                    pending.append(producer)

    def in_order(self, loop: Operation) -> list[tuple[Operation, int]]:
        """Return the ops of the body with their stages, in the order of execution; all must be scheduled."""
        lists: dict[Cluster, list[tuple[Operation, int]]] = {cluster: [] for cluster in self.clusters}
        for op in body_ops(loop):
            stage, cluster = self.slots[op]
            lists[cluster].append((op, stage))
        return [entry for cluster in self.clusters for entry in lists[cluster]]

    def by_stage(self, loop: Operation) -> list[Operation]:
        """Return the scheduled ops of the body by stage, then cluster, then program order."""
        scheduled = (op for op in body_ops(loop) if op in self.slots)
        return sorted(scheduled, key=lambda op: self.key(*self.slots[op]))

    def assign_all_dependencies(self, loop: Operation) -> None:
        """Assign the dependencies of all scheduled ops, no later than them."""
        for op in self.by_stage(loop):
            self.assign_dependencies(op, *self.slots[op], loop)

    def write(self, loop: Operation) -> None:
        """Write the schedule to attributes of the ops."""
        positions = {cluster: position for position, cluster in enumerate(self.clusters)}
        for op, (stage, cluster) in self.slots.items():
            set_integer(op, CLUSTER, positions[cluster])
            set_integer(op, STAGE, stage)
        set_integer(loop, MAX_STAGE, max((stage for stage, _ in self.slots.values()), default=0))

    @classmethod
    def read(cls, loop: Operation) -> "Schedule | None":
        """Return the schedule in the attributes, which newer ops may lack; None if there is none."""
        if (last := integer(loop.attributes, MAX_STAGE)) is None:
            return None
        schedule = cls()
        found: list[tuple[Operation, int, int]] = []
        for op in body_ops(loop):
            stage, cluster = integer(op.attributes, STAGE), integer(op.attributes, CLUSTER)
            if stage is not None and cluster is not None:
                found.append((op, stage, cluster))
        if not found:
            return None
        schedule.clusters = [Cluster() for _ in range(1 + max(index for *_, index in found))]
        schedule.initial_clusters = tuple(schedule.clusters)
        for op, stage, index in found:
            schedule.slots[op] = (stage, schedule.clusters[index])
        schedule.last_stage = last
        return schedule


def erase_schedule(root: Operation) -> None:
    """Remove the attributes through which the three passes communicate."""
    for op in ops_in_order(*root.regions):
        if attributes := op.attributes:
            for name in (STAGE, CLUSTER, MAX_STAGE):
                attributes.pop(name, None)


def drop_attributes(ops: Iterable[Operation], *names: str) -> None:
    """Remove the attributes `names` from `ops`."""
    for op in ops:
        for name in names:
            op.attributes.pop(name, None)


@module_pass("tritongpu-schedule-loops")
def schedule_loops(module: ModuleOp) -> None:
    for loop in loops_in(module):
        latencies = {inner: found for inner in body_ops(loop) if (found := integer(inner.attributes, LATENCY))}
        if not latencies:
            continue
        if (reason := refusal(loop)) is None:
            schedule_loop(loop, latencies).write(loop)
        else:
            remark(loop, f"the loop is not pipelined: {reason}")
    drop_attributes(ops_in_order(*module.regions), LATENCY, SELF_LATENCY)


def schedule_loop(loop: Operation, latencies: dict[Operation, int]) -> Schedule:
    """Schedule `loop`, whose ops in `latencies` should start that many stages before their users."""
    schedule = assign_key_ops(loop, latencies)
    first = schedule.clusters[0]
    if prefetched := [op for op in latencies if IN_REGISTERS in op.attributes]:
        front = schedule.front_cluster()
        for op in prefetched:
            schedule.assign(op, schedule.slots[op][0], front)
    if SKIPS in loop.attributes:
        advance_carried(loop, schedule)
    assign_ifs(loop, schedule)
    complete(loop, schedule, first)
    return schedule


def complete(loop: Operation, schedule: Schedule, first: Cluster) -> None:
    """Assign the remaining ops: before their users, or to the last stage, not before `first`."""
    schedule.assign_all_dependencies(loop)
    assign_carried(loop, schedule)
    assign_rest(loop, schedule, first)


def assign_key_ops(loop: Operation, latencies: dict[Operation, int]) -> Schedule:
    """Assign ops with a latency and their users: the longer the path to the end, the earlier the stage."""
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
    dots = dots_in(loop)
    clusters = [schedule.back_cluster() for _ in range(longest + 1)]
    epilogue = schedule.back_cluster()
    for op in ops:
        if op in distance:
            is_end = type(op) is scf.IfOp and op not in latencies and op not in dots
            is_end = is_end and all(user is terminator for user in users_in(op, body))
            schedule.assign(op, longest - distance[op], epilogue if is_end else clusters[distance[op]])
    return schedule


def advance_carried(loop: Operation, schedule: Schedule) -> None:
    """Move pointers that depend on a load (``if skipped: continue``) out of the last stage if loads of the next
    iteration need them.
    """
    dots = dots_in(loop)
    for op in schedule.by_stage(loop):
        stage, cluster = schedule.slots[op]
        for value in used_values(op):
            producer = carried_producer(value, loop)
            if producer is None or producer in dots or schedule.slots.get(producer, (0,))[0] <= stage + 1:
                continue
            slot = (stage + 1, schedule.cluster_before(cluster))
            schedule.assign(producer, *slot)
            schedule.assign_dependencies(producer, *slot, loop)


def assign_ifs(loop: Operation, schedule: Schedule) -> None:
    """Assign branches: those that scheduled ops depend on first, the others last."""
    body = body_of(loop)
    needed: dict[Operation, int] = {}
    for op, (stage, _) in tuple(schedule.slots.items()):
        for producer in reached(producers(op, body), lambda one: producers(one, body)):
            if type(producer) is scf.IfOp:
                needed[producer] = min(stage, needed.get(producer, stage))
    if needed:
        prologue = schedule.front_cluster()
        for op, stage in needed.items():
            if op not in schedule.slots:
                schedule.assign(op, stage, prologue)
    epilogue = schedule.back_cluster()
    for op in body_ops(loop):
        if type(op) is scf.IfOp and op not in schedule.slots:
            schedule.assign(op, schedule.last_stage, epilogue)


def assign_carried(loop: Operation, schedule: Schedule) -> None:
    """Assign ops that feed the next iteration: one stage later, before their users, or with them if they are loads."""
    before: dict[Cluster, Cluster] = {}
    for op in schedule.by_stage(loop):
        stage, cluster = schedule.slots[op]
        if stage >= schedule.last_stage:
            continue
        for value in used_values(op):
            producer = carried_producer(value, loop)
            if producer is None or producer in schedule.slots:
                continue
            if type(producer) is tt.LoadOp:
                slot = (stage, cluster)
            else:
                if cluster not in before:
                    before[cluster] = schedule.cluster_before(cluster)
                slot = (stage + 1, before[cluster])
            schedule.assign(producer, *slot)
            schedule.assign_dependencies(producer, *slot, loop, through_arguments=True)


def assign_rest(loop: Operation, schedule: Schedule, first: Cluster) -> None:
    """Assign all other ops to the last stage, as soon as their operands are computed, but not before `first`."""
    body, last = body_of(loop), schedule.last_stage
    for op in body_ops(loop):
        if op in schedule.slots:
            continue
        cluster = first
        for producer in producers(op, body):
            stage, other = schedule.slots[producer]
            if stage == last and schedule.position(other) > schedule.position(cluster):
                cluster = other
        schedule.assign(op, last, cluster)
