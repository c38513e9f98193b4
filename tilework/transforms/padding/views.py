"""Reshapes, resizes and concatenations of padded tiles: visible elements keep their order, with padding between them.

tensor<6x4xf32> -> tensor<3x2x4xf32>      tensor<8x4xf32> -> tensor<4x2x4xf32>: every element is where it was, a reshape
tensor<3x5xf32> -> tensor<15xf32>         tensor<4x8xf32> -> tensor<16xf32>: element 5 moves from position 8 to 5, a gather
"""

from math import prod

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tilework.ir import tt
from tilework.ir.types import Shape, Tensor, element_type, i32, i64, is_pointer, shape_of, tensor_type
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.padding.padded import Padding, padded_shape


def pad_reshape(padding: Padding, op: Operation) -> None:
    assert isinstance(op, tt.ReshapeOp)
    code = Emitter(op.location)
    padding.replace(op, code, reshaped(code, op.src, padding.size(op.src), padding.size(op.result)))


def reshaped(code: Emitter, value: SSAValue, before: Shape, after: Shape) -> SSAValue:
    """`value`, of which `before` is seen, as a padded tile of which `after` is."""
    if not keeps_positions(before, after):
        value = flat_gather(code, value, before, after)
    return viewed(code, value, padded_shape(after))


def keeps_positions(before: Shape, after: Shape) -> bool:
    """Return True if every element has the same position in both padded tiles."""
    return prod(padded_shape(before)) == prod(padded_shape(after)) and jumps(before) == jumps(after)


def jumps(shape: Shape) -> dict[int, int]:
    """The padding after each run of elements: {5: 3} for rows of 5 that are padded to 8.

    Element e of the tile has the position e + sum of (e // elements) * skipped.
    """
    found: dict[int, int] = {}
    elements, positions = 1, 1
    for size, padded in reversed(tuple(zip(shape, padded_shape(shape), strict=True))):
        elements *= size
        if size != padded and elements < prod(shape):
            found[elements] = (padded - size) * positions
        positions *= padded
    return found


def flat_gather(code: Emitter, value: SSAValue, before: Shape, after: Shape) -> SSAValue:
    """The positions of a padded tile of `after`, in one dimension, filled from a padded tile of `before`."""
    source, count = prod(shape_of(value.type)), prod(padded_shape(after))
    kind = tensor_type((count,), i32)
    math = IndexMath(code, kind)
    position = code.append(tt.MakeRangeOp.make(0, count, code.loc))
    element = position
    if jumps(after):
        element, positions, elements = math.constant(0), 1, 1
        for size, padded in reversed(tuple(zip(after, padded_shape(after), strict=True))):
            along = math.remainder(math.quotient(position, positions), padded)
            element = math.plus(element, math.times(along, elements))
            positions, elements = positions * padded, elements * size
    found = element
    for elements, skipped in jumps(before).items():
        found = math.plus(found, math.times(math.quotient(element, elements), skipped))
    found = code.binary(arith.MinSIOp, found, math.constant(source - 1))
    flat = code.append(tt.ReshapeOp.make(value, tensor_type((source,), element_type(value.type)), code.loc))
    return gathered(code, flat, found)


class IndexMath:
    """Arithmetic of a tile of i32 with constants."""

    def __init__(self, code: Emitter, type: Tensor) -> None:
        self.code, self.type = code, type

    def constant(self, value: int) -> SSAValue:
        return self.code.constant(value, self.type)

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.code.binary(arith.AddiOp, a, b)

    def times(self, a: SSAValue, value: int) -> SSAValue:
        return self.code.binary(arith.MuliOp, a, self.constant(value))

    def quotient(self, a: SSAValue, value: int) -> SSAValue:
        return self.code.binary(arith.DivUIOp, a, self.constant(value))

    def remainder(self, a: SSAValue, value: int) -> SSAValue:
        return self.code.binary(arith.RemUIOp, a, self.constant(value))


def gathered(code: Emitter, source: SSAValue, positions: SSAValue) -> SSAValue:
    """The rows of `source` at `positions`; pointers are gathered as integers."""
    pointer = element_type(source.type)
    if is_pointer(pointer):
        source = code.append(tt.PtrToIntOp.make(source, tensor_type(shape_of(source.type), i64), code.loc))
    made = code.append(tt.GatherOp.make(source, positions, 0, code.loc))
    if is_pointer(pointer):
        made = code.append(tt.IntToPtrOp.make(made, tensor_type(shape_of(made.type), pointer), code.loc))
    return made


def pad_resize(padding: Padding, op: Operation) -> None:
    code = Emitter(op.location)
    padding.replace(op, code, resized(code, op.operands[0], shape_of(op.results[0].type)))


def resized(code: Emitter, value: SSAValue, shape: Shape) -> SSAValue:
    """The first elements along each dimension, behind them anything; all sizes are powers of two."""
    for axis, size in enumerate(shape):
        have = shape_of(value.type)[axis]
        if have < size:
            value = repeated(code, value, axis, size // have)
        elif have > size:
            value = first_of(code, value, axis, have // size)
    return value


def repeated(code: Emitter, value: SSAValue, axis: int, times: int) -> SSAValue:
    shape = shape_of(value.type)
    wide = code.broadcast(code.expanded(value, [axis]), (*shape[:axis], times, *shape[axis:]))
    return viewed(code, wide, (*shape[:axis], times * shape[axis], *shape[axis + 1 :]))


def first_of(code: Emitter, value: SSAValue, axis: int, parts: int) -> SSAValue:
    """The first of equal parts: each split leaves half of them."""
    shape = shape_of(value.type)
    left = (*shape[:axis], shape[axis] // parts, *shape[axis + 1 :])
    value = viewed(code, value, (*shape[:axis], parts, *left[axis:]))
    order = (*range(axis), *range(axis + 1, len(shape) + 1), axis)
    value = code.append(tt.TransOp.make(value, order, code.loc))
    while parts > 1:
        parts //= 2
        value = code.append(tt.SplitOp.make(viewed(code, value, (*left, parts, 2)), code.loc))
    return viewed(code, value, left)


def viewed(code: Emitter, value: SSAValue, shape: Shape) -> SSAValue:
    """All elements of a tile in another shape."""
    if shape_of(value.type) == shape:
        return value
    return code.append(tt.ReshapeOp.make(value, tensor_type(shape, element_type(value.type)), code.loc))


def pad_cat(padding: Padding, op: Operation) -> None:
    """The first tile, and from its size on the second."""
    lhs, rhs = op.operands
    shape, size = shape_of(op.results[0].type), padding.size(lhs)[0]
    code = Emitter(op.location)
    math = IndexMath(code, tensor_type(shape[:1], i32))
    position = code.append(tt.MakeRangeOp.make(0, shape[0], code.loc))
    others = range(1, len(shape))

    def along(line: SSAValue) -> SSAValue:
        return code.broadcast(code.expanded(line, others), shape)

    behind = code.binary(arith.MaxSIOp, math.plus(position, math.constant(-size)), math.constant(0))
    last = math.constant(shape_of(rhs.type)[0] - 1)
    second = gathered(code, rhs, along(code.binary(arith.MinSIOp, behind, last)))
    is_first = along(code.compare("slt", position, math.constant(size)))
    padding.replace(op, code, code.select(is_first, resized(code, lhs, shape), second))
