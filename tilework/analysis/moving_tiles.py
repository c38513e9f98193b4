"""Tiles of addresses that never come back to where they were: `for i in range(n): p = x + i * 64 + tl.arange(0, 64)`.

    scf.for ... iter_args(%o = %range) {             %range = tt.make_range {start = 0, end = 64}
      %p = tt.addptr %splat, %o                      elements of one iteration lie in a window of 64
      %next = arith.addi %o, %c64                    which moves on by 64: the windows of two iterations have nothing in common
      scf.yield %next

What an iteration stores there is nothing that a later one loads there, so those loads may start before the store.
"""

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import constant_value
from tilework.ir.types import is_tensor

FAR = 1 << 24  # a step that is larger may come around after some iterations: offsets have 32 bits
SAME = (ttg.ConvertLayoutOp, tt.SplatOp, arith.ExtSIOp)  # what their operand is, elsewhere


class Window:
    """How offsets of one loop lie and move; None is unknown."""

    def __init__(self, loop: Operation) -> None:
        self.loop = loop
        self.body = body_of(loop)

    def inside(self, value: SSAValue) -> bool:
        owner = value.owner
        return (owner.parent if isinstance(owner, Operation) else owner) is self.body

    def rate(self, value: SSAValue) -> int | None:
        """By how much every element of `value` grows from one iteration to the next."""
        if not self.inside(value):
            return 0
        if isinstance(value, BlockArgument):
            if value.index == 0:
                return whole(constant_value(self.loop.operands[2]))
            return self.growth(value)
        op = value.owner
        assert isinstance(op, Operation)
        if type(op) in SAME:
            return self.rate(op.operands[0])
        if type(op) is arith.AddiOp or type(op) is tt.AddPtrOp:
            one, other = map(self.rate, op.operands)
            return None if one is None or other is None else one + other
        if type(op) is arith.MuliOp and (factor := whole(constant_value(op.operands[1]))) is not None:
            return None if (one := self.rate(op.operands[0])) is None else one * factor
        return None

    def growth(self, carried: BlockArgument) -> int | None:
        """What the loop adds to a value that it carries."""
        after = self.body.last_op.operands[carried.index - 1]  # pyright: ignore[reportOptionalMemberAccess]
        if not (isinstance(after, OpResult) and type(after.op) in (arith.AddiOp, tt.AddPtrOp)):
            return None
        return whole(constant_value(after.op.operands[1])) if after.op.operands[0] is carried else None

    def width(self, value: SSAValue) -> int | None:
        """How many places there are from the first to the last element of `value`, in any iteration."""
        if isinstance(value, BlockArgument):
            if value.owner is not self.body:
                return None if is_tensor(value.type) else 1
            if value.index == 0:
                return 1
            return self.width(self.loop.operands[3 + value.index - 1])
        op = value.owner
        assert isinstance(op, Operation)
        if not is_tensor(value.type) or type(op) is tt.SplatOp or constant_value(value) is not None:
            return 1
        if type(op) is tt.MakeRangeOp:
            return op.end.value.data - op.start.value.data
        if type(op) in SAME:
            return self.width(op.operands[0])
        if type(op) is arith.AddiOp or type(op) is tt.AddPtrOp:
            one, other = map(self.width, op.operands)
            return None if one is None or other is None else one + other - 1
        return None


def whole(value: float | None) -> int | None:
    return value if isinstance(value, int) else None


def moves_on(pointers: SSAValue, loop: Operation) -> bool:
    """Whether no element of `pointers` is one of an earlier iteration of `loop`."""
    if type(loop) is not scf.ForOp:
        return False
    window = Window(loop)
    rate, width = window.rate(pointers), window.width(pointers)
    return rate is not None and width is not None and width <= abs(rate) < FAR


def same_address(one: SSAValue, other: SSAValue) -> bool:
    """Whether both are one value, or computed from the same ones in the same way."""
    if one is other:
        return True
    if not (isinstance(one, OpResult) and isinstance(other, OpResult)):
        return False
    return type(one.op) is type(other.op) is tt.AddPtrOp and list(one.op.operands) == list(other.op.operands)
