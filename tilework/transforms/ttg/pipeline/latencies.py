"""Decide which loads are worth starting early, and how many stages before their use.

    scf.for ... {                                    scf.for ... {
      %a = tt.load %pa                                 %a = tt.load %pa {tt.latency = 2 : i32}
      %b = tt.load %pb                   ==>           %b = tt.load %pb {tt.latency = 2 : i32}       num-stages = 3
      %d = tt.dot %a', %b', %acc                       %d = tt.dot %a', %b', %acc

Loads that feed a product are candidates, at a level: 0 if nothing else is loaded between them and the product, 1 if they
load the address (or mask) of one of those, and so on. The stages are shared out over the levels. A loop with its own
`tt.num_stages` asks for all loads that feed anything: those that no product needs are at level 0 of their first user.
Latencies that an author has set are left alone. What is loaded through a parameter of the kernel that the loop also stores
through may be what an iteration before has stored: it is not loaded early.
Stage: TTGIR to TTGIR, attributes only. Cost: AxisInfo, and one walk of the body per product; origins where a loop stores.
"""

from collections.abc import Callable
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.analysis.origins import NOBODY, UNKNOWN, WRITERS, Origins, module_origins
from tilework.ir.nesting import body_of
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.descriptors import called_for
from tilework.transforms.ttg.pipeline.load_buffers import is_profitable
from tilework.transforms.ttg.pipeline.loops import (
    DOTS,
    LATENCY,
    LOADS,
    NUM_STAGES,
    body_ops,
    loops_in,
    num_stages,
    producers,
    refusal,
    set_integer,
)

ACCUMULATOR = 2  # the operand of a product that is the sum so far


class AssignLatenciesPass(Pass):
    name = "tritongpu-assign-latencies"
    num_stages: int = 3

    def run(self, module: ModuleOp) -> None:
        facts = cache(lambda: axis_info(module))
        origins = cache(lambda: module_origins(module))
        for loop in loops_in(module):
            assign(loop, self.num_stages, facts, origins)


def assign(
    loop: Operation, default_stages: int, facts: Callable[[], AxisFacts], origins: Callable[[], Origins]
) -> None:
    """Give the loads of `loop` that are worth it a latency."""
    ops = body_ops(loop)
    if any(LATENCY in op.attributes for op in ops) or not any(type(op) in LOADS for op in ops):
        return
    if (stages := num_stages(loop, default_stages)) <= 1:
        if any(type(op) in DOTS for op in ops):
            remark(loop, f"the loop is not pipelined: num_stages is {stages}")
        return
    if (reason := refusal(loop)) is not None:
        remark(loop, f"the loop is not pipelined: {reason}")
        return
    levels = load_levels(loop, NUM_STAGES in loop.attributes, facts, origins)
    kept = {load: level for load, level in levels.items() if level < stages - 1}
    for load in levels:
        if load not in kept:
            remark(
                load, f"the load is not pipelined: {levels[load] + 1} loads depend on each other, in {stages} stages"
            )
    if not levels and not any(type(op) in DOTS for op in ops):
        remark(loop, "the loop is not pipelined: no load feeds a dot. tl.range(..., num_stages=N) pipelines all loads")
    if kept:
        latency = (stages - 1) // (max(kept.values()) + 1)
        for load in kept:
            set_integer(load, LATENCY, latency)


def load_levels(
    loop: Operation, every_load: bool, facts: Callable[[], AxisFacts], origins: Callable[[], Origins]
) -> dict[Operation, int]:
    """For each load worth starting early, how many other such loads lie between it and what is computed."""
    search = Search(body_of(loop), facts, origins)
    ops = body_ops(loop)
    seen: set[Operation] = set()
    for op in ops:
        if type(op) in DOTS:
            search.from_root(op, found := set())
            seen |= found
    if every_load:
        for op in ops:
            if type(op) not in LOADS:
                search.from_root(op, seen)
    return {load: level for load, level in search.levels.items() if load not in search.dropped}


class Search:
    """Walks from computations back to the loads they need."""

    def __init__(self, body: Block, facts: Callable[[], AxisFacts], origins: Callable[[], Origins]) -> None:
        self.body = body
        self.facts = facts
        self.origins = origins
        self.targets = [op.operands[WRITERS[type(op)]] for op in body.walk() if type(op) in WRITERS]
        self.levels: dict[Operation, int] = {}
        self.dropped: set[Operation] = set()
        self.judged: dict[Operation, bool] = {}

    def from_root(self, root: Operation, seen: set[Operation]) -> None:
        """Visit everything that `root` needs and that is not in `seen` yet."""
        pending = [(root, 0)]
        while pending:
            op, level = pending.pop()
            if op in seen:
                continue
            seen.add(op)
            if type(op) in LOADS:
                if not self.is_worth_it(op):
                    continue
                if self.levels.setdefault(op, level) != level:
                    self.dropped.add(op)
                level += 1
            pending.extend((producer, level) for producer in reversed(self.needs(op)))

    def needs(self, op: Operation) -> list[Operation]:
        """The ops of the body that `op` uses; of a product without those of the sum so far."""
        if type(op) not in DOTS:
            return list(producers(op, self.body))
        operands = (value for index, value in enumerate(op.operands) if index != ACCUMULATOR)
        return [value.op for value in operands if isinstance(value, OpResult) and value.op.parent is self.body]

    def is_worth_it(self, load: Operation) -> bool:
        if load not in self.judged:
            reason = is_profitable(load, self.facts()) or self.overtaken(load)
            if called_for(load.operands[0], self.body):
                reason = "its descriptor is made by a call, in the same memory each time"
            if reason is not None:
                remark(load, f"the load is not pipelined: {reason}")
            self.judged[load] = reason is None
        return self.judged[load]

    def overtaken(self, load: Operation) -> str | None:
        """Why an early `load` might miss what the loop stores; parameters are taken to be different memory."""
        if not self.targets:
            return None
        origins = self.origins()
        own = {place for place in origins.get(load.operands[0], NOBODY) if place != UNKNOWN}
        if any(own & origins.get(target, NOBODY) for target in self.targets):
            return "the loop also stores to what it loads from"
        return None
