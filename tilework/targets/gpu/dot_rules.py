"""Dots as scalar multiply-adds; vendors override these rules with matrix instructions.

    %d = tt.dot %a, %b, %c : tensor<16x8xf32, #dot_op<0, #blocked>> * ... -> tensor<16x16xf32, #blocked>
    %d = ttg.local_dot %a, %b, %c : !ttg.memdesc<64x32xf32, ...> * ... -> tensor<64x64xf32, #blocked>

With a blocked accumulator each thread holds the rows of A and the columns of B of its part of the result, along all of
K. So `d[m, n]` is a chain of fused multiply-adds on registers, in the order of K. f16 and bf16 accumulate in f32 and
are rounded once. Without fusion (`enable_fp_fusion=False`) each multiplication and each addition is rounded, except in
reproducible modules. With operands in shared memory the same chain is a loop over K, in which each thread loads its
part of a few columns of A and rows of B.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.encodings import distributed_of, layout_of
from tilework.ir.module_facts import is_reproducible
from tilework.ir.ttg.memory_types import MemDescType
from tilework.ir.types import bit_width, shape_of
from tilework.layouts.banks import offsets_of
from tilework.layouts.encodings import DotOperand
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import to_linear
from tilework.light_dataclass import light_dataclass
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.shared_access import Move
from tilework.targets.gpu.views import Coords, register_coords
from tilework.targets.llvm.types import bf16, f16, f32, i32
from tilework.targets.llvm.values import Value, constant

Line = dict[int, Value]  # the elements of one row of A, or one column of B, by their index along K
BODY = 256  # about the multiply-adds of one iteration over K: up to twice as many for wider vector loads
VECTOR_BITS = 128  # of one load


@lowers(tt.DotOp)
def multiply_add(low: Lowering, op: Operation) -> Registers:
    a, b, _ = op.operands
    dot = Dot(low, op)
    left, right = (lines(register_coords(layout_of(x.type)), low[x], k, dot.widened) for x, k in ((a, -1), (b, -2)))
    return dot.result(dot.added(dot.start(), left, right))


@lowers(ttg.LocalDotOp)
def multiply_add_from_memory(low: Lowering, op: Operation) -> Registers:
    a, b, _ = op.operands
    dot = Dot(low, op)
    start = dot.start()
    size = shape_of(a.type)[-1]
    vector = max(VECTOR_BITS // bit_width(x.type) for x in (a, b))
    step = min(size, max(1, BODY // len(start), min(vector, 2 * BODY // len(start))))
    sides = [slices(op, x, index, step) for index, x in enumerate((a, b))]

    def round(at: Value, sums: dict[Coords, Value]) -> dict[Coords, Value]:
        found: list[dict[Coords, Line]] = []
        for memory, side in zip((a, b), sides, strict=True):
            held = low[memory]
            move = Move(low, held.base, side.offsets, side.element, held.offset, more={"step": at})
            found.append(lines(side.coords, move.load(), side.k_axis, dot.widened))
        return dot.added(sums, *found)

    if step == size:
        return dot.result(round(constant(i32, 0), start))
    with low.builder.loop_carrying(constant(i32, 0), size // step, 1, list(start.values()), unroll=1) as loop:
        loop.next(list(round(loop.index, dict(zip(start, loop.carried, strict=True))).values()))
    return dot.result(dict(zip(start, loop.results, strict=True)))


@light_dataclass
class Slices:
    """The slices of K in which threads load an operand; `offsets` also maps the `step`."""

    offsets: LinearLayout
    coords: Sequence[Coords]  # of the registers, in one step
    k_axis: int
    element: Attribute


def slices(op: Operation, memory: SSAValue, index: int, step: int) -> Slices:
    sums, type = distributed_of(op.results[0].type), memory.type
    assert sums is not None and isinstance(type, MemDescType)
    operand = DotOperand(index, sums)
    held = to_linear(operand, type.dims)
    offsets = offsets_of(held, layout_of(type))
    axis = operand.k_dim
    kept: list[int] = []
    steps: dict[int, int] = {}
    for bit, vector in enumerate(dict(held.bases)["register"]):
        if vector[axis] >= step:
            steps[vector[axis]] = offsets.by_in["register"][bit]
        else:
            kept.append(bit)
    assert all(not any(vector[axis] for vector in vectors) for name, vectors in held.bases if name != "register")
    parts = {**offsets.by_in, "register": tuple(offsets.by_in["register"][bit] for bit in kept)}
    parts["step"] = tuple(steps[k] for k in sorted(steps))
    registers = held.replace_in("register", [held.by_in["register"][bit] for bit in kept])
    moved = LinearLayout.packed(tuple(parts.items()), offsets.outs)
    return Slices(moved, register_coords(registers), axis - operand.rank, type.element_type)


class Dot:
    """One dot; its accumulators are dictionaries by coordinates in the result."""

    def __init__(self, low: Lowering, op: Operation) -> None:
        self.low = low
        self.given: Registers = low[op.operands[2]]
        self.type = self.given[0].type
        self.compute = f32 if self.type is f16 or self.type is bf16 else self.type
        self.coords = register_coords(layout_of(op.results[0].type))
        self.fuses = low.fuses or is_reproducible(op)

    def start(self) -> dict[Coords, Value]:
        """Return the initial accumulators."""
        sums: dict[Coords, Value] = {}
        for coords, value in zip(self.coords, self.given, strict=True):
            sums.setdefault(coords, self.widened(value))
        return sums

    def widened(self, value: Value) -> Value:
        """Convert an accumulator or an operand to the type of the computation."""
        return value if value.type is self.compute else self.low.builder.cast(value, self.compute)

    def added(
        self, sums: dict[Coords, Value], left: dict[Coords, Line], right: dict[Coords, Line]
    ) -> dict[Coords, Value]:
        """Accumulate along K in its order, one step of K for all accumulators at a time."""
        for k in sorted(next(iter(left.values()))):
            sums = {
                (*batch, row, column): self.add(left[*batch, row][k], right[*batch, column][k], total)
                for (*batch, row, column), total in sums.items()
            }
        return sums

    def add(self, a: Value, b: Value, total: Value) -> Value:
        builder = self.low.builder
        if not total.type.is_float:
            return builder.add(builder.mul(a, b), total)
        return builder.fma(a, b, total) if self.fuses else builder.fadd(builder.fmul(a, b), total)

    def result(self, sums: dict[Coords, Value]) -> Registers:
        """Return the accumulators in the type of the result."""
        found = (sums[coords] for coords in self.coords)
        return tuple(x if x.type is self.type else self.low.builder.fptrunc(x, self.type) for x in found)


def lines(
    all_coords: Sequence[Coords],
    registers: Registers,
    k_axis: int,
    made: Callable[[Value], Value] = lambda value: value,
) -> dict[Coords, Line]:
    """Return the registers of an operand along K, by their other coordinates."""
    found: dict[Coords, Line] = {}
    for coords, register in zip(all_coords, registers, strict=True):
        others = list(coords)
        k = others.pop(k_axis)
        line = found.setdefault(tuple(others), {})
        if k not in line:
            line[k] = made(register)
    return found
