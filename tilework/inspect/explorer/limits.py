"""What a kernel needs of a GPU, and what limits it: registers, shared memory, occupancy, the cost model (docs/cost-model.md).

    resources_of(log)                    {"registers": 40, "spilled": 0, "stack": 0}: what ptxas says
    limits_of(ttgir, registers=40)       occupancy, and for each innermost loop the cycles of every resource

Where nobody has measured a target (AMD GPUs, the CPU) there are no rates, and so no occupancy and no limits.
"""

import re
from typing import Any

from tilework.analysis.cost import Cost, loop_cost, occupancy, straight_cost, together
from tilework.ir import tt
from tilework.ir.functions import functions, has_body, is_private
from tilework.ir.locations import source_positions
from tilework.ir.module_facts import find_num_warps, find_target, partition_warps
from tilework.ir.parser import parse_module
from tilework.transforms.ttg.limit_remarks import limited_codes, peak

USED = re.compile(r"Used (\d+) registers")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def resources_of(log: str) -> dict[str, int]:
    """What ptxas says about the kernel, which comes last."""
    found: dict[str, int] = {}
    if used := USED.findall(log):
        found["registers"] = int(used[-1])
    if spills := SPILLS.findall(log):
        stack, stores, loads = map(int, spills[-1])
        found |= {"stack": stack, "spill_stores": stores, "spill_loads": loads}
    return found


def limits_of(ttgir: str, registers: int | None, shared: int | None) -> dict[str, Any]:
    """Occupancy, and the cost of each innermost loop (or of a kernel without loops), from finished TTGIR."""
    module = parse_module(ttgir)
    kernel = next(op for op in functions(module) if type(op) is tt.FuncOp and has_body(op) and not is_private(op))
    rates = find_target(kernel).rates
    held = occupancy(kernel, registers, shared)
    if rates is None or held is None:
        return {}
    warps = (find_num_warps(kernel) or 1) + partition_warps(kernel)
    codes = []
    for group in limited_codes(kernel):
        costs = [straight_cost(code) if type(code) is tt.FuncOp else loop_cost(code) for code in group]
        cost = together([one for one in costs if one is not None])
        if cost.bound:
            codes.append({**described(cost, held.blocks), "peak": peak(cost, rates).removeprefix(", ")})
            codes[-1]["place"] = source_positions(group[0].location)[:1]
            codes[-1]["what"] = "kernel" if type(group[0]) is tt.FuncOp else "loop"
    return {
        "blocks": held.blocks,
        "by": held.limit,
        "warps": held.blocks * warps,
        "most_warps": rates.warps,
        "codes": codes,
    }


def described(cost: Cost, blocks: int) -> dict[str, Any]:
    return {
        "limit": cost.limit,
        "bound": cost.bound,
        "estimate": cost.estimate(blocks),
        "cycles": dict(cost.cycles),
    }
