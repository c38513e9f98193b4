"""Say in which stage of a loop its loads and products run.

    scf.for ... {                                    %a = tt.load %pa {loop.cluster = 0, loop.stage = 0}
      %a = tt.load %pa                               %b = tt.load %pb {loop.cluster = 0, loop.stage = 0}
      %b = tt.load %pb                   ==>         %d = tt.dot ...  {loop.cluster = 0, loop.stage = 1}        num-stages = 2
      %d = tt.dot %a', %b', %acc                     } {tt.scheduled_max_stage = 1}

The stages between are shared out over loads that depend on each other. What is computed from loads is in the last stage.

Where a second product needs the first (attention) and there are four stages, they work on neighbouring iterations: a product, arithmetic
that does not wait for it, memory, and the same for the other. Numbers are stages:

    2 first product       3 rest of the arithmetic between         LDS: 1 store of the first's, 3 read of the second's operands
    3 second product      2 what it and others need of that        LDS: 2 store of the second's, 1 read of the first's operands
Stage: TTGIR to TTGIR, attributes only. Cost: AxisInfo, and one walk of the body per product; origins where a loop stores.
"""

from enum import IntEnum, auto
from math import ceil
from typing import Generic, NamedTuple, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.value_flows import reached
from tilework.ir import ttg
from tilework.ir.effects import writes
from tilework.ir.module_facts import target as target_of
from tilework.ir.nesting import body_of
from tilework.ir.types import bit_width
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.coarse_schedule import Schedule, erase_schedule
from tilework.transforms.ttg.pipeline.expand import problem
from tilework.transforms.ttg.pipeline.latencies import Facts, early_loads
from tilework.transforms.ttg.pipeline.load_buffers import MIN_COPY_BITS, copy_width
from tilework.transforms.ttg.pipeline.loops import (
    DOTS,
    MAX_STAGE,
    body_ops,
    loops_in,
    producers,
    products_in,
    set_integer,
    users_in,
)
from tilework.transforms.ttg.pipeline.schedule import complete

SLOW_NARROW_LOADS = frozenset({"mfma1", "mfma2", "mfma3"})
CHAINED_STAGES = 4
Place = TypeVar("Place")  # a cluster, or its number


class Chained(IntEnum):
    """The clusters of a loop with two products, in order."""

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


class Way(NamedTuple, Generic[Place]):
    """Stage and cluster of each step of a load: into registers (or at once into LDS), into LDS, back from there."""

    load: tuple[int, Place]
    store: tuple[int, Place]
    wait: tuple[int, Place]
    read: tuple[int, Place]


FIRST = Way((0, Chained.LOAD_FIRST), (1, Chained.STORE_FIRST), (1, Chained.WAIT_FIRST), (1, Chained.READ_FIRST))
SECOND = Way((1, Chained.LOAD_SECOND), (2, Chained.STORE_SECOND), (3, Chained.WAIT_SECOND), (3, Chained.READ_SECOND))


class AmdScheduleLoopsPass(Pass):
    name = "tritonamdgpu-schedule-loops"
    num_stages: int = 2

    def run(self, module: ModuleOp) -> None:
        facts = Facts(module)
        for loop in loops_in(module):
            judge = is_narrow if target_of(module).features & SLOW_NARROW_LOADS else lambda load, facts: None
            stages, levels = early_loads(loop, self.num_stages, judge, facts)
            if levels and not place_chained(loop, stages, levels):
                place(loop, stages, levels)


def place(loop: Operation, stages: int, levels: dict[Operation, int]) -> None:
    """Loads as early as those that need them leave room, products last."""
    deepest = max(levels.values())
    if deepest >= stages:
        remark(loop, f"the loop is not pipelined: {deepest + 1} loads depend on each other, in {stages} stages")
        return
    schedule = Schedule()
    cluster = schedule.back_cluster()
    for load, level in levels.items():
        schedule.place(load, (deepest - level) * ceil((stages - 2) / (deepest + 1)), cluster)
    for op in products_in(loop):
        schedule.place(op, stages - 1, cluster)
    schedule.write(loop)
    set_integer(loop, MAX_STAGE, stages - 1)


def place_chained(loop: Operation, stages: int, levels: dict[Operation, int]) -> bool:
    """Two products that work on neighbouring iterations; False if the loop has no such, or effects, which would change their order."""
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
            schedule.place(op, 3, clusters[Chained.REST])
    pending = [second]
    while pending:
        for op in producers(pending.pop(), body):
            if op not in by_first:
                continue
            if len(set(users_in(op, body))) > 1:
                schedule.place(op, 2, clusters[Chained.HALF])
            else:
                pending.append(op)
    schedule.place(first, 2, clusters[Chained.FIRST_DOT])
    schedule.place(second, 3, clusters[Chained.SECOND_DOT])
    for load, way in ways.items():
        schedule.place(load, way.load[0], clusters[way.load[1]])
        for user in users_in(load, body):
            if type(user) is ttg.ConvertLayoutOp:
                schedule.place(user, way.read[0], clusters[way.read[1]])
    schedule.write(loop)
    trial = Schedule.read(loop)
    assert trial is not None
    complete(loop, trial, trial.clusters[0])
    if problem(loop, trial.in_order(loop), peels=True) is None:
        return True
    erase_schedule(loop)  # the first product needs the second of the iteration before
    return False


def users_of(root: Operation, loop: Operation) -> set[Operation]:
    """What needs `root` in the same iteration."""
    body = body_of(loop)
    return set(reached(users_in(root, body), lambda op: users_in(op, body)))


def is_narrow(load: Operation, facts: AxisFacts) -> str | None:
    if copy_width(load, facts) * bit_width(load.results[0].type) < MIN_COPY_BITS:
        return "its elements lie too far apart: less than 4 bytes are read at once"
    return None
