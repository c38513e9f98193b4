"""The time of a launch by the cost model: `cost.py` estimates an iteration, and the arguments give the trip counts.

    found = launch_cost(module, {3: 4096, 4: 4096, 5: 4096}, (512, 1, 1))
    found.estimate      0.24 ms, with the overlap of the blocks of a multiprocessor and the spills that are likely
    found.bound         0.21 ms: without waiting

What programs read twice comes from L2 once the arrays of the launch have been read. Bounds of loops are computed from
the integer arguments, for a program in the middle of the grid; a loop whose bounds come from memory counts `UNKNOWN`
iterations, and then there is no bound. The loop over programs of a persistent kernel counts once. Stage: finished
TTGIR. Cost: one walk.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.cost import (
    DRAM,
    OTHERS,
    Cost,
    carried_registers,
    concurrent_cost,
    loop_cost,
    occupancy,
    tile_registers,
)
from tilework.ir import scf, tt, ttg
from tilework.ir.arith import ConstantOp, SelectOp
from tilework.ir.functions import functions, has_body, is_private, ops_around, ops_in_order
from tilework.ir.module_facts import find_target
from tilework.ir.rewrite import defining_op
from tilework.ir.scf import LOOPS
from tilework.ir.types import int_property

UNKNOWN = 16  # iterations
DEPTH = 64  # of an expression
MOST_REGISTERS = 255
SPILLING = 128  # registers of a tile beyond these with which code takes twice as long, about
DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "arith.divsi": lambda a, b: abs(a) // abs(b) * (1 if a * b >= 0 else -1),
    "arith.divui": lambda a, b: a // b,
    "arith.remsi": lambda a, b: abs(a) % abs(b) * (1 if a >= 0 else -1),
    "arith.remui": lambda a, b: a % b,
    "arith.ceildivsi": lambda a, b: -(-a // b),
}
RULES: dict[str, Callable[..., int]] = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.minsi": min,
    "arith.minui": min,
    "arith.maxsi": max,
    "arith.maxui": max,
    "arith.extsi": lambda a: a,
    "arith.extui": lambda a: a,
    "arith.trunci": lambda a: a,
    "arith.index_cast": lambda a: a,
}
COMPARISONS: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    *(2 * (lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b)),
)


class LaunchCost(NamedTuple):
    """The time of a launch in milliseconds; `bound` is None where a trip count is unknown."""

    estimate: float
    bound: float | None


def launch_cost(
    module: ModuleOp, arguments: Mapping[int, int], grid: tuple[int, ...], memory: int = 0
) -> LaunchCost | None:
    """Return the time of a launch; None where a target has no rates. `arguments` maps the indices of integer arguments
    to their values, and `memory` is the total size of the arrays in bytes (0: not known)."""
    kernel = next(op for op in functions(module) if type(op) is tt.FuncOp and has_body(op) and not is_private(op))
    rates = find_target(kernel).rates
    ops = ops_in_order(*kernel.regions)
    tiles = [tile_registers(result.type) for op in ops for result in op.results]
    registers = OTHERS + max([carried_registers(kernel), *tiles])
    held = occupancy(kernel, min(registers, MOST_REGISTERS))
    if rates is None or held is None:
        return None
    known, values = True, Values(arguments, grid)
    each = -(-prod(grid) // rates.multiprocessors)  # programs of the busiest multiprocessor
    blocks = max(1, min(held.blocks, each))
    groups: dict[Operation, list[tuple[Cost, float]]] = {}
    for code in [kernel, *(op for op in ops if type(op) in LOOPS)]:
        trips = 1.0
        for loop in (code, *ops_around(code)):
            if type(loop) in LOOPS:
                count = values.trips(loop)
                known = known and count is not None
                trips *= UNKNOWN if count is None else count
        cost = loop_cost(code)
        assert cost is not None, "the target has rates"
        around = next((op for op in ops_around(code) if type(op) is ttg.WarpSpecializeOp), code)
        groups.setdefault(around, []).append((cost, trips))
    total = (
        prod(grid) * rates.dram_bytes * sum(cost.cycles[DRAM] * trips for one in groups.values() for cost, trips in one)
    )
    share = min(1.0, memory / total) if memory and total else 1.0
    estimate = bound = 0.0
    for costs in groups.values():
        trips = max(count for _, count in costs)
        parts = [part_of(cost, count / trips, share) for cost, count in costs if count]
        if parts:
            whole = concurrent_cost(parts)
            estimate += trips * whole.estimate(blocks)
            bound += trips * whole.bound
    estimate *= 1 + max(0, registers - MOST_REGISTERS) / SPILLING
    scale = each / (rates.gigahertz * 1e6)
    return LaunchCost(estimate * scale, bound * scale if known else None)


def part_of(cost: Cost, share: float, of_dram: float) -> Cost:
    """Return the cost of a fraction `share` of the iterations, in which a fraction `of_dram` of the accesses reaches
    DRAM."""
    cycles = {name: share * cost.cycles[name] * (of_dram if name == DRAM else 1) for name in cost.cycles}
    return Cost(cycles, cost.macs, cost.drains, cost.latency)


class Values:
    """The integers of a program, as far as they follow from the arguments and the grid."""

    def __init__(self, arguments: Mapping[int, int], grid: tuple[int, ...]) -> None:
        self.arguments, self.grid = arguments, (*grid, 1, 1, 1)[:3]
        self.found: dict[SSAValue, int | None] = {}

    def trips(self, loop: Operation) -> int | None:
        """Return the trip count of a loop; None if it is not known."""
        if type(loop) is not scf.ForOp:
            return None
        if type(defining_op(loop.ub)) is tt.GetNumProgramsOp:  # over the programs of a persistent kernel
            return 1
        start, end, step = (self.of(value) for value in (loop.lb, loop.ub, loop.step))
        if start is None or end is None or not step:
            return None
        return max(0, -(-(end - start) // step))

    def of(self, value: SSAValue, depth: int = DEPTH) -> int | None:
        """Return the value of an integer, or None if it is not known."""
        if value not in self.found:
            self.found[value] = self.computed(value, depth) if depth else None
        return self.found[value]

    def computed(self, value: SSAValue, depth: int) -> int | None:
        if isinstance(value, BlockArgument):
            is_argument = type(value.block.parent_op()) is tt.FuncOp
            return self.arguments.get(value.index) if is_argument else None
        op = value.owner
        assert isinstance(op, Operation)
        if type(op) is ConstantOp:
            constant = op.properties["value"]
            return constant.value.data if isinstance(constant, IntegerAttr) else None
        if type(op) is tt.GetProgramIdOp:
            return self.grid[int_property(op, "axis")] // 2
        if type(op) is tt.GetNumProgramsOp:
            return self.grid[int_property(op, "axis")]
        if len(op.results) != 1 or op.name not in RULES.keys() | DIVISIONS.keys() | {"arith.select", "arith.cmpi"}:
            return None
        operands = [self.of(operand, depth - 1) for operand in op.operands]
        if type(op) is SelectOp:
            return None if operands[0] is None else operands[1 if operands[0] else 2]
        given = [operand for operand in operands if operand is not None]
        if len(given) != len(operands):
            return None
        if op.name == "arith.cmpi":
            return int(COMPARISONS[int_property(op, "predicate")](*given))
        if op.name in DIVISIONS:
            return DIVISIONS[op.name](given[0], given[1]) if given[1] else None
        return RULES[op.name](*given)
