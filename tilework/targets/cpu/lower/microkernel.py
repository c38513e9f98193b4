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
    >>> choose_block(neon, F32, 64, 64)
    Block(rows=4, vectors=4, lanes=4)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, f32, f64, i8, i16, i32, vector
from tilework.targets.llvm.values import Value, constant

MULTIPLIERS, LOAD_PORTS, FRONT_END = 2, 2, 4
LATENCY = {"aarch64": 4, "x86_64": 5}  # cycles until an accumulator can be added to again; Haswell's 5 is the longest
CACHE_LINE = 64

Accumulate = Callable[[Builder, Value, Value, Value], Value]


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


def fused(b: Builder, total: Value, x: Value, y: Value) -> Value:
    return b.fma(x, y, total)


def unfused(b: Builder, total: Value, x: Value, y: Value) -> Value:
    return b.fadd(b.fmul(x, y), total)


def integer(b: Builder, total: Value, x: Value, y: Value) -> Value:
    return b.add(b.mul(x, y), total)


def dot_bytes_arm(b: Builder, total: Value, x: Value, y: Value) -> Value:
    """ARM's sdot: each lane adds four products of signed bytes."""
    if (count := total.type.count) not in (2, 4):  # a border narrower than a register: pad to the smaller one
        wide = 2 if count == 1 else 4
        padded = [b.shuffle(value, None, [*range(count), *[-1] * (wide - count)]) for value in (total, x, y)]
        return b.shuffle(dot_bytes_arm(b, *padded), None, range(count))
    bytes_ = vector(i8, 4 * count)
    x, y = b.bitcast(x, bytes_), b.bitcast(y, bytes_)
    return b.intrinsic("aarch64.neon.sdot", total.type, total, y, x, overload=f"{total.type.suffix}.{bytes_.suffix}")


def dot_pairs_x86(b: Builder, total: Value, x: Value, y: Value) -> Value:
    """x86's pmaddwd: each lane adds two products of 16-bit numbers; exact, bytes are far from overflowing it."""
    if total.type.count not in X86_PAIRS:
        return dot_pairs_generic(b, total, x, y)
    halves = vector(i16, 2 * total.type.count)
    name = X86_PAIRS[total.type.count]
    return b.add(total, b.intrinsic(name, total.type, b.bitcast(x, halves), b.bitcast(y, halves), overload=""))


def dot_pairs_generic(b: Builder, total: Value, x: Value, y: Value) -> Value:
    """The same by shifts, for borders narrower than a register."""
    for shift in (lambda v: b.ashr(b.shl(v, 16), 16), lambda v: b.ashr(v, 16)):
        total = b.add(total, b.mul(shift(x), shift(y)))
    return total


X86_PAIRS = {4: "x86.sse2.pmadd.wd", 8: "x86.avx2.pmadd.wd", 16: "x86.avx512.pmaddw.d.512"}

F32 = Unit("f32", f32, f32, fused)
F64 = Unit("f64", f64, f64, fused)
F32_UNFUSED = Unit("f32", f32, f32, unfused, temporaries=2)
F64_UNFUSED = Unit("f64", f64, f64, unfused, temporaries=2)
I32 = Unit("i32", i32, i32, integer, temporaries=2)
BYTES_ARM = Unit("sdot", i32, i32, dot_bytes_arm, 4, i8)
PAIRS_X86 = Unit("pmaddwd", i32, i32, dot_pairs_x86, 2, i16, temporaries=2)


def float_unit(target: HostTarget, sum: Type) -> Unit:
    if sum is f64:
        return F64 if target.has_fma else F64_UNFUSED
    return F32 if target.has_fma else F32_UNFUSED


def byte_unit(target: HostTarget, depth: int) -> Unit:
    """The unit of int8 into int32; a K that does not fill its groups is multiplied as int32."""
    if target.arch == "aarch64" and target.has_dot_i8 and depth % 4 == 0:
        return BYTES_ARM
    is_x86 = target.arch == "x86_64" and (target.vector_bytes < 64 or "avx512bw" in target.features)
    return PAIRS_X86 if is_x86 and depth % 2 == 0 else I32


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
