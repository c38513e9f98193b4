"""Which loads should be copies by TMA, where both would do: the operands of a loop's large products on tensor cores, all of them.

    for k in range(...):                      for k in range(...):                        for k in range(...):
        a, b = tl.load(...), tl.load(...)         a = tl.load(...)                            q = tl.load(...)
        acc = tl.dot(a, b, acc)                   b = tl.load(...).to(tl.float16)             acc = tl.dot(q, codes[k], acc)
    both                                      none: b must be loaded by all threads       none, if q is small

On an H200 copies of 32 KB in each turn win 6 to 12 % for products (17 % for tf32 with an operand of the wrong major), and 4 to 35 % for
attention with 128 keys. Those of 16 KB lose up to 6 % (64 keys), and those beside operands that all threads load 5 %.
Stage: TTIR. Cost: one walk, and the operands of dots in loops.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeGuard

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from tilework.analysis.value_flows import reached
from tilework.ir import tt
from tilework.ir.enums import InputPrecision
from tilework.ir.nesting import is_inside, loop_around
from tilework.ir.rewrite import defining_op
from tilework.ir.types import bit_width, shape_of, tile_bits

WARPGROUP = 4  # warps
LEAST_ROWS = 64  # of a product that a warpgroup computes
LEAST_BYTES = 32768  # of the tiles of a turn


def feeds_dots(value: SSAValue) -> bool:
    """Whether only dots use a tile, as it is or turned."""
    users = [(use.operation, use.index) for use in value.uses]
    return bool(users) and all(
        place < 2 if type(user) is tt.DotOp else type(user) is tt.TransOp and feeds_dots(user.results[0])
        for user, place in users
    )


def is_candidate(op: Operation) -> TypeGuard[tt.LoadOp]:
    """Whether an op is a load, and only dots use what it loads."""
    return isinstance(op, tt.LoadOp) and not op.is_volatile.value.data and feeds_dots(op.result)


def loops_of_products(ops: Iterable[Operation], num_warps: int) -> dict[Operation, list[tt.DotOp]]:
    """The dots of each loop whose dots are all large ones for tensor cores that read shared memory."""
    found: dict[Operation, list[tt.DotOp]] = {}
    for op in ops if num_warps % WARPGROUP == 0 else ():
        if type(op) is tt.DotOp and (loop := loop_around(op)) is not None and type(loop) is scf.ForOp:
            found.setdefault(loop, []).append(op)
    return {loop: dots for loop, dots in found.items() if all(map(is_large, dots))}


def is_large(dot: tt.DotOp) -> bool:
    shape, bits = shape_of(dot.d.type), bit_width(dot.a.type)
    is_read = bits in (8, 16) or (bits == 32 and dot.input_precision.value.data == InputPrecision.TF32)
    return is_read and len(shape) == 2 and shape[0] >= LEAST_ROWS


def worth_copying(
    loops: dict[Operation, list[tt.DotOp]], is_copyable: Callable[[tt.LoadOp], bool]
) -> Iterator[tt.LoadOp]:
    """The loads that should be copies if they can be, as those inside of the loops can."""
    for loop, dots in loops.items():
        operands = [operand for dot in dots for operand in (dot.a, dot.b)]
        loads = dict.fromkeys(load for load in map(load_of, operands) if load is not None)
        inside = [load for load in loads if is_inside(load, loop)]
        mixed = any(load_of(operand) is None and is_loaded(operand, loop) for operand in operands)
        is_much = sum(tile_bits(load.result.type) for load in inside) >= 8 * LEAST_BYTES
        if is_much and not mixed and all(is_candidate(load) and is_copyable(load) for load in inside):
            yield from filter(is_candidate, loads)


def load_of(operand: SSAValue) -> tt.LoadOp | None:
    """The load that an operand is the result of, perhaps turned."""
    op = defining_op(operand)
    while type(op) is tt.TransOp:
        op = defining_op(op.operands[0])
    return op if isinstance(op, tt.LoadOp) else None


def is_loaded(operand: SSAValue, loop: Operation) -> bool:
    """Whether an operand is computed in a loop from what is loaded there, and not from another product."""

    def makers(values: Iterable[SSAValue]) -> list[Operation]:
        return [op for op in map(defining_op, values) if op is not None and is_inside(op, loop)]

    kinds = {type(op) for op in reached(makers([operand]), lambda op: makers(op.operands))}
    return tt.LoadOp in kinds and tt.DotOp not in kinds
