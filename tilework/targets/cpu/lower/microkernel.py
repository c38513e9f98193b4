"""Blocks of a matrix product that stay in registers, and the model of the host that chooses their size.

A block of `rows` x `vectors` accumulators walks along K. With 4 lanes, 2 rows and 1 vector, one step of K is

    acc0 += A[0, k] * B[k, 0:4]        one load of B, used by every row
    acc1 += A[1, k] * B[k, 0:4]        one number of A, copied to all lanes

ARM multiplies by a chosen lane of a register, so there a vector of A holds as many steps of K as it has lanes and A
needs no packing. x86 copies a number to all lanes while loading it.

Choosing: a step takes as long as its busiest unit, the multipliers (two), the load ports (two), the front end (four
instructions) or the latency of one accumulator. `choose_block` takes the block whose steps, summed over
the whole product with its borders, take the least time, among those whose values fit in the registers:

    >>> neon = HostTarget.of("aarch64", "neoverse-n1", ())
    >>> choose_block(neon, dot_units.F32, 64, 64)
    Block(rows=4, vectors=4, lanes=4)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, i32, vector
from tilework.targets.llvm.values import Value, constant

MULTIPLIERS, LOAD_PORTS, FRONT_END = 2, 2, 4
LATENCY = {"aarch64": 4, "x86_64": 5}  # cycles until an accumulator can be added to again; Haswell's 5 is the longest
CACHE_LINE = 64

Accumulate = Callable[[Builder, Value, Value, Value], Value]
EmitBlock = Callable[..., tuple[Value, ...]]


@dataclass(frozen=True)
class Unit:
    """What multiplies and adds: `operand` is an element of a packed operand, which covers `group` steps of K."""

    name: str
    operand: Type
    sum: Type
    accumulate: Accumulate
    group: int = 1
    packed: Type | None = None  # the element while packing, `group` of which make an operand; None: the operand itself
    temporaries: int = 0  # registers for products that are not added in the same instruction
    features: frozenset[str] = frozenset()  # that a function needs beside those which all code may use
    emit: "EmitBlock | None" = None  # of accumulators that are no rows; None: `emit_block`
    tiles: str = ""  # the instruction that multiplies whole tiles (amx.py)
    right_offset: int = 0  # added to the numbers of B, which makes them unsigned: the sums of A's rows make up for it

    @property
    def element(self) -> Type:
        return self.packed or self.operand


@dataclass(frozen=True)
class Block:
    """Accumulators held in registers: `rows` x `vectors`, each of `lanes` lanes."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def multiplies_by_lane(target: HostTarget) -> bool:
    """Whether an instruction takes one factor from a lane of a register."""
    return target.arch == "aarch64"


@cache
def choose_block(target: HostTarget, unit: Unit, rows: int, columns: int) -> Block:
    """The block that the model finds fastest for `rows` x `columns` accumulators."""
    lanes = min(target.lanes(unit.sum.bits), columns)
    candidates = [
        Block(row_count, vector_count, lanes)
        for row_count in range(1, min(rows, 12) + 1)
        for vector_count in range(1, min(-(-columns // lanes), 12) + 1)
        if registers_of(target, row_count, vector_count) + unit.temporaries <= target.vector_registers
    ]

    def cost(block: Block) -> tuple[float, int, bool, float]:
        """Time; among equals, the least code; then whole cache lines of B and C; then the fewest loads."""
        borders = (1 + (rows % block.rows > 0)) * (1 + (columns % block.columns > 0))
        cuts_lines = block.columns * unit.sum.bits % (8 * CACHE_LINE) > 0
        return cycles_of(target, block, rows, columns), borders, cuts_lines, loads_of(target, block, rows, columns)

    return min(candidates, key=cost)


def registers_of(target: HostTarget, rows: int, vectors: int) -> int:
    """Registers alive in a step: accumulators, vectors of B, and those of A (one in flight where loads copy)."""
    return rows * vectors + vectors + (rows if multiplies_by_lane(target) else 1)


def cycles_of(target: HostTarget, block: Block, rows: int, columns: int) -> float:
    """Modelled time of one step of K over the whole product: full blocks and borders."""
    whole_rows, row_border = divmod(rows, block.rows)
    whole_columns, column_border = divmod(-(-columns // block.lanes), block.vectors)
    heights = [(block.rows, whole_rows), (row_border, int(row_border > 0))]
    widths = [(block.vectors, whole_columns), (column_border, int(column_border > 0))]
    return sum(
        step_cycles(target, block, height, width) * times * repeats
        for height, times in heights
        for width, repeats in widths
        if times and repeats
    )


def loads_of(target: HostTarget, block: Block, rows: int, columns: int) -> float:
    """Vectors loaded in one step of K over the whole product."""
    bands, strips = -(-rows // block.rows), -(-columns // block.columns)
    return bands * -(-columns // block.lanes) + strips * (rows / block.lanes if multiplies_by_lane(target) else rows)


def step_cycles(target: HostTarget, block: Block, rows: int, vectors: int) -> float:
    """Time of one step of K in one block."""
    products = rows * vectors
    loads = vectors + (rows / block.lanes if multiplies_by_lane(target) else rows)
    latency = LATENCY.get(target.arch, 5)
    return max(products / MULTIPLIERS, loads / LOAD_PORTS, (products + loads + 1) / FRONT_END, latency)


@dataclass(frozen=True)
class Operand:
    """Where a matrix is: its address and the bytes from one row (of A, C) or one step of K (of B) to the next."""

    address: Value
    stride: int


def emit_block(
    b: Builder,
    target: HostTarget,
    unit: Unit,
    left: Operand,
    right: Operand,
    totals: Sequence[Value],
    rows: int,
    widths: Sequence[int],
    depth: int,
) -> tuple[Value, ...]:
    """totals + left @ right for one block, row by row.

    `widths` are the lanes of the vectors of a row, `depth` counts operands along K.
    """
    lanes = target.lanes(unit.operand.bits)
    unroll = lanes if multiplies_by_lane(target) else 4
    starts = [sum(widths[:place]) * (unit.operand.bits // 8) for place in range(len(widths))]

    def steps(count: int, at_left: Value, at_right: Value, sums: Sequence[Value]) -> list[Value]:
        sums = list(sums)
        held = [held_row(b, target, unit, left, at_left, row, count) for row in range(rows)]
        for step in range(count):
            across = [
                b.load(
                    vector(unit.operand, width),
                    b.gep(at_right, step * right.stride + start),
                    align=unit.element.bits // 8,
                )
                for width, start in zip(widths, starts, strict=True)
            ]
            for row in range(rows):
                factor = held[row](step)
                for place, value in enumerate(across):
                    position = row * len(widths) + place
                    sums[position] = unit.accumulate(b, sums[position], factor(value.type.count), value)
        return sums

    trips, rest = divmod(depth, unroll)
    at_left, at_right, sums = left.address, right.address, tuple(totals)
    if trips:
        with b.loop_carrying(constant(i32, 0), trips, 1, [at_left, at_right, *sums], unroll=1) as loop:
            here, there, *current = loop.carried
            following = steps(unroll, here, there, current)
            loop.next([b.gep(here, unroll * unit.operand.bits // 8), b.gep(there, unroll * right.stride), *following])
        at_left, at_right, *sums = loop.results
    return tuple(steps(rest, at_left, at_right, sums)) if rest else tuple(sums)


def held_row(
    b: Builder, target: HostTarget, unit: Unit, left: Operand, address: Value, row: int, count: int
) -> Callable[[int], Callable[[int], Value]]:
    """One row of A over `count` steps: a function from the step to a function from the lanes to the copied number."""
    start = b.gep(address, row * left.stride)
    align = unit.element.bits // 8
    if multiplies_by_lane(target):
        values = b.load(vector(unit.operand, count), start, align=align)
        return lambda step: lambda lanes: b.shuffle(values, None, [step] * lanes)

    def number(step: int) -> Callable[[int], Value]:
        loaded = b.load(unit.operand, b.gep(start, step * unit.operand.bits // 8), align=align)
        return lambda lanes: b.splat(loaded, lanes)

    return number
