"""Build a run of ops at one location, then put it in front of an op at once.

    code = Emitter(op.location)
    bound = code.binary(arith.AddiOp, code.constant(4, i64), offset)
    code.insert_before(op)                      # arith.constant 4, arith.addi

Every method appends ops and returns the value they compute.
"""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp, binary, cmpi, convert
from tilework.ir.rewrite import constant, insert_before
from tilework.ir.types import Shape, element_type, i64, shape_of, tensor_type, with_element


class Emitter:
    """New ops, in order, all at the location `loc`."""

    def __init__(self, loc: LocationAttr) -> None:
        self.loc = loc
        self.ops: list[Operation] = []

    def insert_before(self, op: Operation) -> None:
        """Put the ops in front of `op` and start a new run."""
        insert_before(op, *self.ops)
        self.ops = []

    def append(self, op: Operation) -> SSAValue:
        """Add `op`; its first result."""
        self.ops.append(op)
        return op.results[0]

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        return self.append(constant(value, type, self.loc))

    def binary(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An op of two operands of one type."""
        return self.append(binary(kind, lhs, rhs, self.loc))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """``arith.cmpi``."""
        return self.append(cmpi(predicate, lhs, rhs, self.loc))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return self.append(SelectOp.make(condition, yes, no, self.loc))

    def negated(self, condition: SSAValue) -> SSAValue:
        return self.binary(arith.XOrIOp, condition, self.constant(1, condition.type))

    def sign_extended(self, value: SSAValue) -> SSAValue:
        """`value` as i64 (itself if it is one already)."""
        type = with_element(value.type, i64)
        return value if value.type == type else self.append(convert(arith.ExtSIOp, value, type, self.loc))

    def splat(self, value: SSAValue, shape: Shape) -> SSAValue:
        return self.append(tt.SplatOp.make(value, tensor_type(shape, value.type), self.loc))

    def broadcast(self, value: SSAValue, shape: Shape) -> SSAValue:
        """`value` repeated along its unit axes; itself if it has the shape already."""
        if shape_of(value.type) == shape:
            return value
        return self.append(tt.BroadcastOp.make(value, tensor_type(shape, element_type(value.type)), self.loc))

    def expanded(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """`value` with a unit axis inserted at each of `axes`, in order."""
        for axis in axes:
            value = self.append(tt.ExpandDimsOp.make(value, axis, self.loc))
        return value
