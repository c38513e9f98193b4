"""When each op of a loop body runs: a stage (how many iterations late) and a cluster (where in the iteration).

    op          stage  cluster          order in the pipelined loop: dot (of k), addptr (of k + 1), load (of k + 2)
    load          0       3
    addptr        1       2
    dot           2       0

Clusters are an ordered list into which new ones are put while scheduling; inside a cluster ops keep the order of the
program. As attributes a cluster is its position in that list.
"""

from collections.abc import Iterable

from xdsl.ir import Operation

from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of
from tilework.transforms.ttg.pipeline.loops import (
    CLUSTER,
    MAX_STAGE,
    STAGE,
    body_ops,
    carried_producer,
    integer_attribute,
    producers,
    set_integer,
    used_values,
)


class Cluster:
    """One of the parts of an iteration; what counts is which one it is."""


class Schedule:
    """The stage and cluster of ops of one loop."""

    def __init__(self) -> None:
        self.clusters: list[Cluster] = []
        self.numbered: tuple[Cluster, ...] = ()  # those of the attributes, whatever came between them since
        self.places: dict[Operation, tuple[int, Cluster]] = {}
        self.last_stage = 0
        self.slack: dict[Operation, int] = {}  # ops that also run for so many iterations behind the last

    def front_cluster(self) -> Cluster:
        """A new cluster before all others."""
        self.clusters.insert(0, cluster := Cluster())
        return cluster

    def back_cluster(self) -> Cluster:
        """A new cluster behind all others."""
        self.clusters.append(cluster := Cluster())
        return cluster

    def cluster_before(self, other: Cluster) -> Cluster:
        """A new cluster just before `other`."""
        self.clusters.insert(self.position(other), cluster := Cluster())
        return cluster

    def position(self, cluster: Cluster) -> int:
        return self.clusters.index(cluster)

    def place(self, op: Operation, stage: int, cluster: Cluster) -> None:
        """Run `op` there, wherever it was before."""
        self.places[op] = (stage, cluster)

    def place_earlier(self, op: Operation, stage: int, cluster: Cluster) -> bool:
        """Run `op` there, unless it already runs as early. True if it was moved."""
        found = self.places.get(op)
        if found is not None and self.key(*found) <= self.key(stage, cluster):
            return False
        self.places[op] = (stage, cluster)
        return True

    def key(self, stage: int, cluster: Cluster) -> tuple[int, int]:
        """Earlier stages first, then earlier clusters."""
        return (stage, self.position(cluster))

    def place_dependencies(
        self, op: Operation, stage: int, cluster: Cluster, loop: Operation, through_arguments: bool = False
    ) -> None:
        """Run what `op` needs, and what that needs, no later than (stage, cluster)."""
        body = body_of(loop)
        pending = [op]
        while pending:
            current = pending.pop()
            needed = list(producers(current, body))
            if through_arguments:
                carried = (carried_producer(value, loop) for value in used_values(current))
                needed.extend(producer for producer in carried if producer is not None)
            for producer in needed:
                if self.place_earlier(producer, stage, cluster):
                    pending.append(producer)

    def in_order(self, loop: Operation) -> list[tuple[Operation, int]]:
        """The ops of the body with their stages, as they will run; all of them must be placed."""
        lists: dict[Cluster, list[tuple[Operation, int]]] = {cluster: [] for cluster in self.clusters}
        for op in body_ops(loop):
            stage, cluster = self.places[op]
            lists[cluster].append((op, stage))
        return [entry for cluster in self.clusters for entry in lists[cluster]]

    def by_stage(self, loop: Operation) -> list[Operation]:
        """The scheduled ops of the body: stage by stage, cluster by cluster, in program order."""
        placed = (op for op in body_ops(loop) if op in self.places)
        return sorted(placed, key=lambda op: self.key(*self.places[op]))

    def place_all_dependencies(self, loop: Operation) -> None:
        """Run what the scheduled ops need no later than them."""
        for op in self.by_stage(loop):
            self.place_dependencies(op, *self.places[op], loop)

    def write(self, loop: Operation) -> None:
        """Put the schedule into the attributes of the ops."""
        positions = {cluster: position for position, cluster in enumerate(self.clusters)}
        for op, (stage, cluster) in self.places.items():
            set_integer(op, CLUSTER, positions[cluster])
            set_integer(op, STAGE, stage)
        set_integer(loop, MAX_STAGE, max((stage for stage, _ in self.places.values()), default=0))

    @classmethod
    def read(cls, loop: Operation) -> "Schedule | None":
        """The schedule in the attributes, which ops that came later need not have; None if there is none."""
        if (last := integer_attribute(loop, MAX_STAGE)) is None:
            return None
        schedule = cls()
        found: list[tuple[Operation, int, int]] = []
        for op in body_ops(loop):
            stage, cluster = integer_attribute(op, STAGE), integer_attribute(op, CLUSTER)
            if stage is not None and cluster is not None:
                found.append((op, stage, cluster))
        if not found:
            return None
        schedule.clusters = [Cluster() for _ in range(1 + max(number for *_, number in found))]
        schedule.numbered = tuple(schedule.clusters)
        for op, stage, number in found:
            schedule.places[op] = (stage, schedule.clusters[number])
        schedule.last_stage = last
        return schedule


def erase_schedule(root: Operation) -> None:
    """Remove what the three passes told each other."""
    for op in ops_in_order(*root.regions):
        if attributes := op.attributes:
            for name in (STAGE, CLUSTER, MAX_STAGE):
                attributes.pop(name, None)


def drop_attributes(ops: Iterable[Operation], *names: str) -> None:
    """Remove the attributes `names` from `ops`."""
    for op in ops:
        for name in names:
            op.attributes.pop(name, None)
