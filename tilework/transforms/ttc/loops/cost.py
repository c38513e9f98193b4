"""What computing one element of a tile again would cost, compared with keeping it in a buffer.

The unit is about one vector instruction. An op costs its own price plus that of its operands; an operand that is
repeated along a dimension is paid once per element of its own:

    range, splat, constant          0       float add, multiply, compare, cast   0.5
    integer, address and mask ops   0.25    division, square root, remainder     4
    a value in memory               2       exp, log, sin, library functions     8

A value of cost `LIMIT` or more is kept: it is computed once, in a nest of its own shape, and stored if another nest
needs it.
"""

from math import prod

from xdsl.dialects import arith, math, ub
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import tt
from tilework.ir.arith_ext import RemfOp
from tilework.ir.types import bit_width, element_type, is_float, is_pointer, is_tensor, shape_of
from tilework.transforms.ttc.loops.index_maps import is_lazy

LIMIT = 4.0
STORED = 2.0
CHEAP_INT, CHEAP_FLOAT, NARROW_FLOAT, SLOW, FUNCTION = 0.25, 0.5, 1.0, 4.0, 8.0
FREE = frozenset(
    {
        arith.ConstantOp,
        tt.BroadcastOp,
        tt.ExpandDimsOp,
        tt.MakeRangeOp,
        tt.ReshapeOp,
        tt.SplatOp,
        tt.SplitOp,
        tt.TransOp,
        ub.PoisonOp,
    }
)
PRICES: dict[type[Operation], float] = {
    **dict.fromkeys(FREE, 0.0),
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp), SLOW),
    **dict.fromkeys((arith.CeilDivSIOp, arith.CeilDivUIOp, arith.DivfOp, RemfOp), SLOW),
    **dict.fromkeys((tt.PreciseDivFOp, tt.PreciseSqrtOp, math.SqrtOp, math.RsqrtOp, tt.MulhiUIOp), SLOW),
    **dict.fromkeys((math.AbsFOp, math.AbsIOp, math.FmaOp, math.FloorOp, math.CeilOp, math.TruncOp), CHEAP_FLOAT),
    tt.GatherOp: STORED,
    tt.ResizeOp: STORED,
}
VIEWS = frozenset({tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.SplitOp, tt.TransOp})
REPEATED = frozenset({tt.BroadcastOp, tt.SplatOp})


class Costs:
    """The cost of each value asked for, remembered."""

    def __init__(self) -> None:
        self.known: dict[SSAValue, float] = {}

    def of(self, value: SSAValue) -> float:
        """The cost of one element of `value`."""
        if not is_tensor(value.type):
            return 0.0
        if (known := self.known.get(value)) is not None:
            return known
        stack = [value]
        while stack:
            top = stack[-1]
            missing = [v for v in lazy_operands(top) if v not in self.known]
            if missing:
                stack += missing
            else:
                self.known[stack.pop()] = self.total(top)
        return self.known[value]

    def is_kept(self, value: SSAValue) -> bool:
        """Whether to store `value` rather than to compute it again.

        Of pointers only the parts are stored: where they come from, and that neighbours are next to each other, must
        stay visible. Of a view its source is stored.
        """
        if is_pointer(element_type(value.type)) or (isinstance(value, OpResult) and type(value.op) in VIEWS):
            return False
        return self.of(value) >= LIMIT

    def is_read(self, value: SSAValue) -> bool:
        """Whether to read `value` from a buffer that has it: addresses and masks are better computed again."""
        if not is_lazy_value(value):
            return True
        return not is_pointer(element_type(value.type)) and self.of(value) >= STORED

    def total(self, value: SSAValue) -> float:
        if not isinstance(value, OpResult) or not is_lazy_value(value):
            return STORED
        op = value.op
        below = sum(self.known.get(operand, 0.0) for operand in op.operands)
        if type(op) in REPEATED:
            count = prod(shape_of(op.results[0].type))
            return below * prod(shape_of(op.operands[0].type)) / count
        if type(op) is tt.ReduceOp:
            return 2 * below + CHEAP_FLOAT * len(list(op.regions[0].block.ops))
        return min(below + price(op), 1e9)


def lazy_operands(value: SSAValue) -> list[SSAValue]:
    """The tiles that `value` is computed from."""
    if not isinstance(value, OpResult) or not is_lazy_value(value):
        return []
    return [operand for operand in value.op.operands if is_tensor(operand.type)]


def is_lazy_value(value: SSAValue) -> bool:
    """A tile that is computed where it is used."""
    return isinstance(value, OpResult) and is_lazy(value.op)


def price(op: Operation) -> float:
    """The cost of `op` itself."""
    if (known := PRICES.get(type(op))) is not None:
        return known
    if type(op).name.startswith("math.") or type(op) is tt.ExternElementwiseOp:
        return FUNCTION
    element = element_type(op.results[0].type)
    if not is_float(element):
        return CHEAP_INT
    return CHEAP_FLOAT if bit_width(element) >= 32 else NARROW_FLOAT
