"""Say in which stage of a loop its loads and products run.

    scf.for ... {                                    %a = tt.load %pa {loop.cluster = 0, loop.stage = 0}
      %a = tt.load %pa                               %b = tt.load %pb {loop.cluster = 0, loop.stage = 0}
      %b = tt.load %pb                   ==>         %d = tt.dot ...  {loop.cluster = 0, loop.stage = 1}        num-stages = 2
      %d = tt.dot %a', %b', %acc                     } {tt.scheduled_max_stage = 1}

The stages between are shared out over loads that depend on each other. What is computed from loads is in the last stage.
Stage: TTGIR to TTGIR, attributes only. Cost: AxisInfo, and one walk of the body per product; origins where a loop stores.
"""

from functools import cache
from math import ceil

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.analysis.origins import module_origins
from tilework.ir.module_facts import target as target_of
from tilework.ir.types import bit_width
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.coarse_schedule import Schedule
from tilework.transforms.ttg.pipeline.latencies import early_loads
from tilework.transforms.ttg.pipeline.load_buffers import MIN_COPY_BITS, copy_width
from tilework.transforms.ttg.pipeline.loops import DOTS, MAX_STAGE, body_ops, loops_in, set_integer

SLOW_NARROW_LOADS = frozenset({"mfma1", "mfma2", "mfma3"})


class AmdScheduleLoopsPass(Pass):
    name = "tritonamdgpu-schedule-loops"
    num_stages: int = 2

    def run(self, module: ModuleOp) -> None:
        loops = loops_in(module)
        if not loops:
            return
        facts, origins = cache(lambda: axis_info(module)), cache(lambda: module_origins(module))
        judge = is_narrow if target_of(module).features & SLOW_NARROW_LOADS else is_anything
        for loop in loops:
            stages, levels = early_loads(loop, self.num_stages, judge, facts, origins)
            if levels:
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
    for op in body_ops(loop):
        if type(op) in DOTS:
            schedule.place(op, stages - 1, cluster)
    schedule.write(loop)
    set_integer(loop, MAX_STAGE, stages - 1)


def is_narrow(load: Operation, facts: AxisFacts) -> str | None:
    if copy_width(load, facts) * bit_width(load.results[0].type) < MIN_COPY_BITS:
        return "its elements lie too far apart: less than 4 bytes are read at once"
    return None


def is_anything(load: Operation, facts: AxisFacts) -> str | None:
    return None
