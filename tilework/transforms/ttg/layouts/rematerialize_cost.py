"""Is it cheaper to compute a slice again than to convert its result?

A conversion counts 32 for each byte that it moves through shared memory. Computing again counts what is computed twice:
an op all of whose users are the conversion, or such ops, is only moved and costs nothing. For the others:

    load                        8 for each byte
    arith, math                 1 for each byte, 8 if it is a long sequence of instructions (exp, log, a division ...)
    reduce                      lanes along the axis, and 8 for each warp; sums of floats never, as they would differ
    constants, views, the rest  0
"""

from math import prod

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation

from tilework.ir import tt, ttg
from tilework.ir.encodings import layout_of
from tilework.ir.types import PointerType, axis_of, bit_width, element_type, shape_of
from tilework.transforms.ttg.layouts.backward_slice import Slice

CONVERT_BYTE = 32
LOAD_BYTE = 8
SLOW_BYTE = 8
REDUCE_WARP = 8
LEAST_ELEMENTS = 32
LEAST_BITS = 32

SLOW = frozenset(
    {
        arith.DivfOp.name,
        *(
            f"math.{name}"
            for name in (
                *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sincos", "sinh"),
                *("tan", "tanh", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "powf", "ipowi", "fpowi"),
                *("sqrt", "rsqrt", "cbrt", "erf", "erfc", "ctpop", "ctlz", "cttz"),
            )
        ),
    }
)
LOADS = frozenset({tt.LoadOp.name, ttg.LocalLoadOp.name})
SUMS = frozenset({arith.AddfOp.name, arith.MulfOp.name})


def pays(convert: Operation, found: Slice) -> bool:
    """Computing the slice again costs no more than `convert`."""
    limit = CONVERT_BYTE * num_bytes(convert._operands[0].type, LEAST_ELEMENTS, LEAST_BITS)
    total = 0
    for op in staying(convert, found):
        cost = cost_of(op)
        if cost is None:
            return False
        total += cost
    return total <= limit


def staying(convert: Operation, found: Slice) -> list[Operation]:
    """The ops of the slice that are still needed when `convert` is gone."""
    free: dict[Operation, bool] = {}
    ops = found.ops
    for start in ops:
        pending = [start]
        while pending:
            op = pending[-1]
            users = [use.operation for result in op.results for use in result.uses if use.operation is not convert]
            unknown = [user for user in users if user in ops and user not in free]
            if unknown and all(user in ops for user in users):
                pending += unknown
                continue
            free[op] = all(free.get(user, False) for user in users)
            pending.pop()
    return [op for op in ops if not free[op]]


def cost_of(op: Operation) -> int | None:
    """The cost of computing `op` once more; None if it must not be."""
    name = op.name
    if name == arith.ConstantOp.name:
        return 0
    if name in LOADS:
        return LOAD_BYTE * num_bytes(op.results[0].type)
    if name == tt.ReduceOp.name:
        return cost_of_reduce(op)
    if name.startswith(("arith.", "math.")):
        return num_bytes(op.results[0].type) * (SLOW_BYTE if name in SLOW else 1)
    return 0


def cost_of_reduce(op: Operation) -> int | None:
    source, axis = op._operands[0].type, axis_of(op)
    if shape_of(source)[axis] > 2 and is_rounded_sum(op):
        return None
    places = {name: prod(2 for vector in vectors if vector[axis]) for name, vectors in layout_of(source).bases}
    return places["lane"] + REDUCE_WARP * places["warp"]


def is_rounded_sum(op: Operation) -> bool:
    """The result depends on the order in which elements are added or multiplied."""
    return any(inner.name in SUMS for inner in op.regions[0].walk())


def num_bytes(type: Attribute, least_elements: int = 0, least_bits: int = 0) -> int:
    """The size of a tensor. Pointers have none: the conversion of a pointer is always worth avoiding."""
    bits = 0 if isinstance(element_type(type), PointerType) else bit_width(type)
    return max(prod(shape_of(type)), least_elements) * max(bits, least_bits) // 8
