"""Pipeline the loops that have a schedule.

Six steps, each in its own file: loads to copies (`lower_loads.py`), prologue and kernel loop (`expand.py`), matrix
products that run on in the background (`wgmma.py`), the numbers of waits (`waits.py`), copies as early as
buffers allow (`early_copies.py`), stores by descriptor (`tma_stores.py`). A loop whose schedule cannot be carried out is left as it is.
Stage: TTGIR to TTGIR. Cost: AxisInfo, and a copy of the body per stage.
"""

from collections.abc import Callable
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.axis_info import AxisFacts
from tilework.ir.functions import functions
from tilework.ir.module_facts import MAX_REGISTERS
from tilework.transforms.common.canonicalize import FOLDS
from tilework.transforms.folding import arith as folding_arith
from tilework.transforms.folding import casts as folding_casts
from tilework.transforms.folding.worklist import Driver, rule_table
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.coarse_schedule import Schedule, erase_schedule
from tilework.transforms.ttg.pipeline.early_copies import start_copies_early
from tilework.transforms.ttg.pipeline.expand import Order, expand, problem
from tilework.transforms.ttg.pipeline.latencies import Facts
from tilework.transforms.ttg.pipeline.loops import body_ops, loops_in
from tilework.transforms.ttg.pipeline.lower_loads import lower_loads
from tilework.transforms.ttg.pipeline.schedule import complete
from tilework.transforms.ttg.pipeline.tma_stores import pipeline_stores
from tilework.transforms.ttg.pipeline.waits import update_waits
from tilework.transforms.ttg.pipeline.wgmma import launch_dots

ARITHMETIC = rule_table(FOLDS, {**folding_arith.REWRITES, **folding_casts.REWRITES})


class PipelinePass(Pass):
    name = "tritongpu-pipeline"
    num_stages: int = 3
    early_copies: bool = False
    two_blocks: bool = False

    def run(self, module: ModuleOp) -> None:
        for loop, schedule in lower_loops(module, partial(lower_loads, early_copies=self.early_copies)):
            order = schedule.in_order(loop)
            if is_feasible(loop, order):  # a lowered loop is right as it is, only slow
                expand(loop, order, schedule.slack)
        erase_schedule(module)
        if loops_in(module):
            fold_arithmetic(module)
        launch_dots(module, self.num_stages, self.two_blocks)
        update_waits(module)
        for loop in loops_in(module) if self.early_copies else ():
            start_copies_early(loop, MAX_REGISTERS in module.attributes)
        pipeline_stores(module, self.num_stages)


class TestPipelineLowerLoopPass(Pass):
    """Only the first step, with the schedule in attributes."""

    name = "tritongpu-test-pipeline-lower-loop"
    num_stages: int = 3

    def run(self, module: ModuleOp) -> None:
        for loop, schedule in lower_loops(module):
            schedule.write(loop)


def lower_loops(
    module: ModuleOp, lower: Callable[[Operation, Schedule, AxisFacts], None] = lower_loads, peels: bool = False
) -> list[tuple[Operation, Schedule]]:
    """Lower the loads of all loops with a schedule that can be carried out."""
    facts = Facts(module)
    lowered: list[tuple[Operation, Schedule]] = []
    for loop in loops_in(module):
        if (schedule := Schedule.read(loop)) is None:
            continue
        if len(schedule.places) < len(body_ops(loop)):
            complete(loop, schedule, schedule.clusters[0])
        if is_feasible(loop, schedule.in_order(loop), peels):
            lower(loop, schedule, facts.axes)
            lowered.append((loop, schedule))
    return lowered


def is_feasible(loop: Operation, order: Order, peels: bool = False) -> bool:
    """The ops of `loop` can run in `order`; if not, a remark says why."""
    reason = problem(loop, order, peels)
    if reason is not None:
        remark(loop, f"the loop is not pipelined: {reason}")
    return reason is None


def fold_arithmetic(module: ModuleOp) -> None:
    """Fold the counters and predicates of the first iterations."""
    for function in functions(module):
        Driver(ARITHMETIC).run(function)
