"""`tt.dot`, one multiplication at a time; vendors put matrix instructions in front.

    %d = tt.dot %a, %b, %c : tensor<16x8xf32, #dot_op<0, #blocked>> * ... -> tensor<16x16xf32, #blocked>

Under a blocked accumulator each thread holds all of K: of A the rows of its part of the result, of B the columns. So
`d[m, n]` is a chain of fused multiply-adds on registers, in the order of K. f16 and bf16 accumulate in f32 and are rounded
once. Without fusion (`enable_fp_fusion=False`) product and sum are rounded each, but for modules that promise this order.
"""

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.reproducible import is_reproducible
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.views import Places, register_places
from tilework.targets.llvm.types import Type, bf16, f16, f32
from tilework.targets.llvm.values import Value

Line = dict[int, Value]  # the elements of one row of A, or one column of B, by their place along K


@lowers(tt.DotOp)
def multiply_add(low: Lowering, op: Operation) -> Registers:
    a, b, c = op.operands
    accumulators: Registers = low[c]
    result = accumulators[0].type
    compute = f32 if result is f16 or result is bf16 else result
    left, right = (lines(low, side, axis, lambda x: widened(low, x, compute)) for side, axis in ((a, -1), (b, -2)))
    places = register_places(layout_of(c.type))
    sums: dict[Places, Value] = {}
    for place, value in zip(places, accumulators, strict=True):
        sums.setdefault(place, widened(low, value, compute))
    fuses = low.fuses or is_reproducible(op)
    for place in sums:
        *batch, row, column = place
        across, down = left[*batch, row], right[*batch, column]
        for k in sorted(across):
            sums[place] = add_product(low, across[k], down[k], sums[place], fuses)
    return tuple(narrowed(low, sums[place], result) for place in places)


def lines(low: Lowering, value: SSAValue, k_axis: int, made: Callable[[Value], Value]) -> dict[Places, Line]:
    """What is made of the registers of an operand, by their coordinates without K."""
    found: dict[Places, Line] = {}
    for place, register in zip(register_places(layout_of(value.type)), low[value], strict=True):
        coordinates = list(place)
        k = coordinates.pop(k_axis)
        line = found.setdefault(tuple(coordinates), {})
        if k not in line:
            line[k] = made(register)
    return found


def widened(low: Lowering, value: Value, type: Type) -> Value:
    """An operand in the type of the sums."""
    return value if value.type is type else low.builder.cast(value, type)


def narrowed(low: Lowering, value: Value, type: Type) -> Value:
    """A sum in the type of the result."""
    return value if value.type is type else low.builder.fptrunc(value, type)


def add_product(low: Lowering, a: Value, b: Value, total: Value, fuses: bool) -> Value:
    builder = low.builder
    if not total.type.is_float:
        return builder.add(builder.mul(a, b), total)
    return builder.fma(a, b, total) if fuses else builder.fadd(builder.fmul(a, b), total)
