"""Choose the loads that start early, and the number of stages before their use.

    scf.for ... {                                    scf.for ... {
      %a = tt.load %pa                                 %a = tt.load %pa {tt.latency = 2 : i32}
      %b = tt.load %pb                   ==>           %b = tt.load %pb {tt.latency = 2 : i32}       num-stages = 3
      %d = tt.dot %a', %b', %acc                       %d = tt.dot %a', %b', %acc

Loads that feed a dot are candidates, at a level: 0 if nothing else is loaded between them and the dot, 1 if they load
the address (or mask) of one of those, and so on. The stages are divided among the levels. In a loop with its own
`tt.num_stages` all loads with users are candidates: those that feed no dot are at level 0 of their first user. With the
option `spare` a loop may get more stages (`enough_stages`), and other small loads start one iteration early, in
registers (`prefetched_loads`). Latencies set by the user are left alone. A load through a kernel parameter that the
loop also stores through may read a value that an earlier iteration stored: it does not start early, unless the loop
stores where it has just loaded and moves on. Stage: TTGIR to TTGIR, attributes only. Cost: AxisInfo, and one walk of
the body per dot; pointer provenance where a loop stores.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, OpResult

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.analysis.cost import carried_registers, enough_warps, occupancy, registers
from tilework.analysis.index_forms import never_returns, same_address
from tilework.analysis.provenance import NO_PARAMETER, UNKNOWN, WRITERS, Provenance, pointer_provenance
from tilework.analysis.value_flows import reached
from tilework.ir import arith, scf, tt
from tilework.ir.attr_text import is_true
from tilework.ir.functions import function_around, ops_in_order
from tilework.ir.module_facts import find_num_warps, find_target
from tilework.ir.nesting import body_of, enclosing_op
from tilework.ir.types import is_tensor, tile_bits
from tilework.process.forks import cached_property
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.layout_rules import moves_no_data
from tilework.transforms.ttg.pipeline.load_plans import is_profitable
from tilework.transforms.ttg.pipeline.loops import (
    DOTS,
    IN_REGISTERS,
    LATENCY,
    LOADS,
    NUM_STAGES,
    OTHERS,
    body_ops,
    carried_producer,
    dots_in,
    enough_stages,
    loops_in,
    num_stages,
    producers,
    refusal,
    set_integer,
    used_values,
    users_in,
)
from tilework.transforms.ttg.pipeline.lower_loads import called_for

Judge: TypeAlias = Callable[[Operation, AxisFacts], str | None]  # returns why a load should not start early
ACCUMULATOR = 2  # the index of a dot's accumulator operand


class AssignLatenciesPass(Pass):
    name = "tritongpu-assign-latencies"
    num_stages: int = 3
    spare: bool = False  # more stages where shared memory would be idle

    def run(self, module: ModuleOp) -> None:
        facts = Facts(module)
        for loop in loops_in(module):
            assign(loop, self.num_stages, self.spare, facts)


class Facts:
    """Facts about a module, computed on demand."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module

    @cached_property
    def axes(self) -> AxisFacts:
        return axis_info(self.module)

    @cached_property
    def provenance(self) -> Provenance:
        return pointer_provenance(self.module)


def assign(loop: Operation, default_stages: int, spare: bool, facts: Facts) -> None:
    """Set the latency of the loads of `loop` that should start early."""
    if any(LATENCY in op.attributes for op in body_ops(loop)):
        return
    search = Search(body_of(loop), is_profitable, facts)
    stages, levels = early_loads(loop, default_stages, search)
    if spare and levels and not any(levels.values()):
        stages = enough_stages(loop, stages, list(levels))
    kept = {load: level for load, level in levels.items() if level < stages - 1}
    for load in levels:
        if load not in kept:
            remark(
                load, f"the load is not pipelined: {levels[load] + 1} loads depend on each other, in {stages} stages"
            )
    if kept:
        latency = (stages - 1) // (max(kept.values()) + 1)
        for load in kept:
            set_integer(load, LATENCY, latency)
        for load in prefetched_loads(search, levels) if spare and has_few_warps(loop, stages, kept) else ():
            set_integer(load, LATENCY, 1)
            load.attributes[IN_REGISTERS] = UnitAttr()


# Small loads besides the operands of dots: scales of rows and columns, entries of a page table, a mask.
#
#     scf.for ... {                                   %s0 = tt.load %ps
#       %s = tt.load %ps                              scf.for ... iter_args(%s = %s0) {
#       %d = tt.dot %a, %b, %zero           ==>         %next = tt.load (%ps + step), %is_not_last
#       %acc' = %acc + %d * %s                          %d = tt.dot %a, %b, %zero
#                                                       %acc' = %acc + %d * %s
#
# Copies and dots of such a loop are asynchronous; where few warps run on a multiprocessor, it would wait for the whole
# latency of memory in each iteration. A buffer in shared memory is not worth its barrier. With many warps the registers
# may cost a block: tiles of 32 x 64 with 8 warps took 74 instead of 64, and 684 instead of 619 us on an H200.

FEW = 4  # registers of a thread for one load
ALL = 8  # for those of a loop


def has_few_warps(loop: Operation, stages: int, copied: Collection[Operation]) -> bool:
    """Return True if few warps fit a multiprocessor, with buffers for `copied` loads: they hide little latency."""
    function, rates = function_around(loop), find_target(loop).rates
    shared = stages * sum(tile_bits(load.results[0].type) // 8 for load in copied)
    held = occupancy(loop, carried_registers(function) + OTHERS, shared)
    if rates is None or held is None:
        return True
    return held.blocks * (find_num_warps(function) or 1) < enough_warps(rates)


def prefetched_loads(search: "Search", copied: Collection[Operation]) -> list[Operation]:
    """Return the loads, besides those `copied`, of few registers whose addresses do not depend on another load."""
    left, body = ALL, search.body
    loop, found = body.parent_op(), list[Operation]()
    assert loop is not None

    def earlier(op: Operation) -> list[Operation]:
        """Return the ops that compute operands of `op`, in this iteration and in the preceding one."""
        carried = [carried_producer(value, loop) for value in used_values(op)]
        return [*producers(op, body), *(producer for producer in carried if producer is not None)]

    needed = set(reached(copied, earlier))
    for op in body.ops:
        if type(op) is not tt.LoadOp or op in needed or is_true(op.properties.get("isVolatile")):
            continue
        before = reached(earlier(op), earlier)
        taken = registers(op.results[0].type) if is_tensor(op.results[0].type) else 1
        if taken > min(FEW, left) or any(type(other) in LOADS or not is_cheap(other) for other in before):
            continue
        if search.overtaken(op) is None and any(True for _ in users_in(op, body)):
            left -= taken
            found.append(op)
    return found


def is_cheap(op: Operation) -> bool:
    return moves_no_data(op) or type(op) in (tt.SplatOp, tt.MakeRangeOp, arith.ConstantOp)


def early_loads(loop: Operation, default_stages: int, search: "Search") -> tuple[int, dict[Operation, int]]:
    """Return the stages of `loop`, and its loads worth starting early, each with the number of such loads between it
    and the computation.
    """
    ops, stages = body_ops(loop), num_stages(loop, default_stages)
    dots = dots_in(loop)
    if not any(type(op) in LOADS for op in ops):
        return stages, {}
    if stages <= 1:
        if dots:
            remark(loop, f"the loop is not pipelined: num_stages is {stages}")
        return stages, {}
    if (reason := refusal(loop)) is not None:
        remark(loop, f"the loop is not pipelined: {reason}")
        return stages, {}
    levels = search.levels_of(ops, dots, NUM_STAGES in loop.attributes)
    if not levels and not dots:
        remark(loop, "the loop is not pipelined: no load feeds a dot. tl.range(..., num_stages=N) pipelines all loads")
    return stages, levels


class Search:
    """A search from computations back to the loads they depend on."""

    def __init__(self, body: Block, judge: Judge, facts: Facts) -> None:
        self.body, self.judge, self.facts = body, judge, facts
        self.writers = [op for op in body.walk() if type(op) in WRITERS]
        self.levels: dict[Operation, int] = {}
        self.dots: Sequence[Operation] = ()
        self.dropped: set[Operation] = set()
        self.judged: dict[Operation, bool] = {}

    def levels_of(self, ops: Sequence[Operation], dots: Sequence[Operation], every_load: bool) -> dict[Operation, int]:
        """Return the loads that `dots` depend on, or with `every_load` that any op depends on, with their levels."""
        seen: set[Operation] = set()
        self.dots = dots
        for op in dots:
            self.from_root(op, found := set())
            seen |= found
        for op in ops if every_load else ():
            if type(op) not in LOADS:
                self.from_root(op, seen)
        return {load: level for load, level in self.levels.items() if load not in self.dropped}

    def from_root(self, root: Operation, seen: set[Operation]) -> None:
        """Visit the ops that `root` depends on and that are not in `seen` yet."""
        pending = [(root, 0)]
        while pending:
            op, level = pending.pop()
            if op in seen:
                continue
            seen.add(op)
            if type(op) in LOADS:
                if not self.should_start_early(op):
                    continue
                if self.levels.setdefault(op, level) != level:
                    self.dropped.add(op)
                level += 1
            pending.extend((producer, level) for producer in reversed(self.needs(op)))

    def needs(self, op: Operation) -> list[Operation]:
        """Return the ops of the body that `op` uses; of a dot without the accumulator, of a branch without its
        condition.
        """
        if type(op) is scf.IfOp and op in self.dots:
            inside = (value for inner in ops_in_order(*op.regions) for value in inner.operands)
            return [value.op for value in inside if isinstance(value, OpResult) and value.op.parent is self.body]
        if type(op) not in DOTS:
            return list(producers(op, self.body))
        operands = (value for index, value in enumerate(op.operands) if index != ACCUMULATOR)
        return [value.op for value in operands if isinstance(value, OpResult) and value.op.parent is self.body]

    def should_start_early(self, load: Operation) -> bool:
        if load not in self.judged:
            reason = self.judge(load, self.facts.axes) or self.overtaken(load)
            if called_for(load.operands[0], self.body):
                reason = "a call creates its descriptor, in the same memory each time"
            if reason is not None:
                remark(load, f"the load is not pipelined: {reason}")
            self.judged[load] = reason is None
        return self.judged[load]

    def overtaken(self, load: Operation) -> str | None:
        """Return the reason why an early `load` might miss a store of the loop, or None; parameters do not alias."""
        if not self.writers:
            return None
        provenance = self.facts.provenance
        own = {base for base in provenance.get(load.operands[0], NO_PARAMETER) if base != UNKNOWN}
        for writer in self.writers:
            target = writer.operands[WRITERS[type(writer)]]
            if own & provenance.get(target, NO_PARAMETER) and not self.leaves_behind(writer, load):
                return "the loop also stores to the memory that it loads from"
        return None

    def leaves_behind(self, writer: Operation, load: Operation) -> bool:
        """Return True if `writer` stores where `load` has just read, and no later iteration reads there."""
        if type(writer) is not tt.StoreOp or type(load) is not tt.LoadOp:
            return False
        holder, loop = enclosing_op(writer, self.body), self.body.parent_op()
        assert holder is not None and loop is not None
        if not (load.is_before_in_block(holder) and same_address(load.operands[0], writer.operands[0])):
            return False
        return never_returns(load.operands[0], loop)
