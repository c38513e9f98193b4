"""The addresses and bounds of a block of an array, as tensors.

A block of 8x4 elements at (o0, o1) of an array with strides (s0, s1) has the addresses

    base + broadcast((o0 + 0..7)[:, None] * s0) + broadcast((o1 + 0..3)[None, :] * s1)

and lies inside where ``0 <= (o0 + 0..7) < shape0`` and the same on axis 1. Each stride is splat to the *expanded* shape
(8x1), so that its divisibility survives: a broadcast keeps it, a product at the full shape would not.
"""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from tilework.ir import tt
from tilework.ir.types import Shape, i64
from tilework.transforms.building.emitter import Emitter


class BlockAccess:
    """One access to a block; the offsets along each axis are built once, for addresses and mask."""

    def __init__(self, code: Emitter, block: Shape, offsets: Sequence[SSAValue]) -> None:
        """`offsets` are i64 scalars, the first element of the block along each axis."""
        self.code = code
        self.block = block
        self.start = offsets
        self.expanded: dict[int, SSAValue] = {}

    def offset(self, axis: int) -> SSAValue:
        """The coordinates along `axis`, as a tensor that is 1 wide on the other axes."""
        if axis not in self.expanded:
            code, size = self.code, self.block[axis]
            start = code.splat(self.start[axis], (size,))
            steps = code.sign_extended(code.append(tt.MakeRangeOp.make(0, size, code.loc)))
            others = [other for other in range(len(self.block)) if other != axis]
            self.expanded[axis] = code.expanded(code.binary(arith.AddiOp, start, steps), others)
        return self.expanded[axis]

    def pointers(self, base: SSAValue, strides: Sequence[SSAValue]) -> SSAValue:
        """The address of every element."""
        code = self.code
        pointers = code.splat(base, self.block)
        for axis, stride in enumerate(strides):
            offset = self.offset(axis)
            scaled = code.binary(arith.MuliOp, offset, code.splat(stride, self.unit_shape(axis)))
            pointers = code.append(tt.AddPtrOp.make(pointers, code.broadcast(scaled, self.block), code.loc))
        return pointers

    def mask(self, shape: Sequence[SSAValue], axes: Sequence[int]) -> SSAValue | None:
        """Which elements lie inside the array on all of `axes`; None if there are none to check."""
        code, mask = self.code, None
        for axis in axes:
            offset, unit = self.offset(axis), self.unit_shape(axis)
            above = code.compare("sge", offset, code.splat(code.constant(0, i64), unit))
            below = code.compare("slt", offset, code.splat(shape[axis], unit))
            inside = code.broadcast(code.binary(arith.AndIOp, above, below), self.block)
            mask = inside if mask is None else code.binary(arith.AndIOp, mask, inside)
        return mask

    def unit_shape(self, axis: int) -> Shape:
        """The shape of the block on `axis`, 1 elsewhere."""
        return tuple(size if other == axis else 1 for other, size in enumerate(self.block))
