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

from tilework.targets.cpu.target import CACHE_LINE, HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, i32, vector
from tilework.targets.llvm.values import Value, constant

MULTIPLIERS, LOAD_PORTS, FRONT_END = 2, 2, 4
LATENCY = {"aarch64": 4, "x86_64": 5}  # cycles until an accumulator can be added to again; Haswell's 5 is the longest

Accumulate = Callable[[Builder, Value, Value, Value], Value]
EmitBlock = Callable[..., list[Value]]


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


@dataclass(frozen=True)
class Work:
    """One block: its factors, how many rows, the lanes of the vectors of a row, and how many operands along K."""

    left: Operand
    right: Operand
    rows: int
    widths: Sequence[int]
    depth: int


def along_depth(
    b: Builder, unit: Unit, work: Work, at_once: int, sums: Sequence[Value], steps: Callable[..., list[Value]]
) -> list[Value]:
    """``steps(count, place in A, place in B, sums)`` for all operands along K, `at_once` of them in a round of a loop."""
    trips, rest = divmod(work.depth, at_once)
    at_left, at_right = work.left.address, work.right.address
    if trips:
        with b.loop_carrying(constant(i32, 0), trips, 1, [at_left, at_right, *sums], unroll=1) as loop:
            here, there, *current = loop.carried
            following = steps(at_once, here, there, current)
            moved = [b.gep(here, at_once * unit.operand.bits // 8), b.gep(there, at_once * work.right.stride)]
            loop.next([*moved, *following])
        at_left, at_right, *sums = loop.results
    return steps(rest, at_left, at_right, sums) if rest else list(sums)


def emit_block(b: Builder, target: HostTarget, unit: Unit, work: Work, totals: Sequence[Value]) -> list[Value]:
    """totals + left @ right for one block, row by row."""
    by_lane, align = multiplies_by_lane(target), unit.element.bits // 8
    size = unit.operand.bits // 8
    starts = [sum(work.widths[:place]) * size for place in range(len(work.widths))]

    def held_row(start: Value, count: int) -> Callable[[int], Callable[[int], Value]]:
        """One row of A over `count` steps: a function from the step to a function from the lanes to the copied number."""
        if by_lane:
            values = b.load(vector(unit.operand, count), start, align=align)
            return lambda step: lambda lanes: b.shuffle(values, None, [step] * lanes)

        def number(step: int) -> Callable[[int], Value]:
            loaded = b.load(unit.operand, b.gep(start, step * size), align=align)
            return lambda lanes: b.splat(loaded, lanes)

        return number

    def steps(count: int, at_left: Value, at_right: Value, sums: Sequence[Value]) -> list[Value]:
        sums = list(sums)
        held = [held_row(b.gep(at_left, row * work.left.stride), count) for row in range(work.rows)]
        for step in range(count):
            line = b.gep(at_right, step * work.right.stride)
            pairs = zip(work.widths, starts, strict=True)
            across = [b.load(vector(unit.operand, width), b.gep(line, start), align=align) for width, start in pairs]
            for row in range(work.rows):
                factor = held[row](step)
                for place, value in enumerate(across):
                    position = row * len(across) + place
                    sums[position] = unit.accumulate(b, sums[position], factor(value.type.count), value)
        return sums

    return along_depth(b, unit, work, target.lanes(unit.operand.bits) if by_lane else 4, totals, steps)
