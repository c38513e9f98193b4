"""Build a run of ops at one location, then put it in front of an op at once; masks of memory accesses.

    code = Emitter(op.location)
    bound = code.binary(arith.AddiOp, offset, 4)
    code.insert_before(op)                      # arith.constant 4, arith.addi

Every method appends ops and returns the value they compute. A Python int or float as the right operand is a
constant of the type of the left one.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from tilework.ir import arith, tt, ttg
from tilework.ir.arith import SelectOp, binary, cmpi, convert
from tilework.ir.encodings import with_encoding
from tilework.ir.enums import AddrSpace
from tilework.ir.fields import SEGMENTS
from tilework.ir.rewrite import constant, constant_value, insert_before, put
from tilework.ir.scf import LOOPS
from tilework.ir.types import (
    Shape,
    array_values,
    bit_width,
    element_type,
    i1,
    i32_array,
    i64,
    is_float,
    is_tensor,
    shape_of,
    tensor_type,
    with_element,
)
from tilework.layouts.encodings import Encoding


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
        """Add `op` and return its first result."""
        self.ops.append(op)
        return op.results[0]

    def constant(self, value: int | float, type: Attribute) -> SSAValue:
        return self.append(constant(value, type, self.loc))

    def operand(self, value: SSAValue | int | float, like: SSAValue) -> SSAValue:
        """Return a value, or a new constant of the type of `like`."""
        return value if isinstance(value, SSAValue) else self.constant(value, like.type)

    def binary(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue | int | float) -> SSAValue:
        """An op of two operands of one type."""
        return self.append(binary(kind, lhs, self.operand(rhs, lhs), self.loc))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue | int | float) -> SSAValue:
        """``arith.cmpi``."""
        return self.append(cmpi(predicate, lhs, self.operand(rhs, lhs), self.loc))

    def convert(self, kind: type[Operation], value: SSAValue, type: Attribute) -> SSAValue:
        """A cast of `value` to `type`."""
        return self.append(convert(kind, value, type, self.loc))

    def select(self, condition: SSAValue, yes: SSAValue, no: SSAValue) -> SSAValue:
        return self.append(SelectOp.make(condition, yes, no, self.loc))

    def negated(self, condition: SSAValue) -> SSAValue:
        return self.binary(arith.XOrIOp, condition, 1)

    def sign_extended(self, value: SSAValue) -> SSAValue:
        """`value` as i64 (itself if it is one already)."""
        type = with_element(value.type, i64)
        return value if value.type == type else self.convert(arith.ExtSIOp, value, type)

    def splat(self, value: SSAValue, shape: Shape) -> SSAValue:
        return self.append(tt.SplatOp.make(value, tensor_type(shape, value.type), self.loc))

    def broadcast(self, value: SSAValue, shape: Shape) -> SSAValue:
        """`value` repeated along its unit axes; itself if it has the shape already."""
        if shape_of(value.type) == shape:
            return value
        return self.append(tt.BroadcastOp.make(value, tensor_type(shape, element_type(value.type)), self.loc))

    def reshaped(self, value: SSAValue, shape: Shape) -> SSAValue:
        """`value` in another shape, elements in order; itself if it has the shape already."""
        if shape_of(value.type) == shape:
            return value
        return self.append(tt.ReshapeOp.make(value, tensor_type(shape, element_type(value.type)), self.loc))

    def expanded(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """`value` with a unit axis inserted at each of `axes`, in order."""
        for axis in axes:
            value = self.append(tt.ExpandDimsOp.make(value, axis, self.loc))
        return value


def iterations(code: Emitter, lower: SSAValue, upper: SSAValue, step: SSAValue) -> SSAValue:
    """The trip count of an `scf.for`, in the type of its bounds.

    It is ceil((upper - lower) / step) where lower < upper, else 0. The distance of two signed integers fits an unsigned
    one, and so does the trip count: bounds may be anything, also where their sum wraps around.
    """
    first, last, each = (constant_value(value) for value in (lower, upper, step))
    if isinstance(first, int) and isinstance(last, int) and isinstance(each, int) and each > 0:
        return code.constant(max(0, -((first - last) // each)), lower.type)
    zero = code.constant(0, lower.type)
    if first == 0:
        span = code.binary(arith.MaxSIOp, upper, zero)
    else:
        span = code.binary(arith.SubiOp, upper, lower)
        span = code.select(code.compare("slt", lower, upper), span, zero)
    return span if each == 1 else code.binary(arith.CeilDivUIOp, span, step)


# Conversions inserted in front of an op.


def laid_out(op: Operation, value: SSAValue, layout: Encoding | None, location: LocationAttr | None = None) -> SSAValue:
    """Convert `value` to another layout, at the location of `op` if no other is given."""
    return put(op, ttg.ConvertLayoutOp.make(value, with_encoding(value.type, layout), location or op.location))


def laid_out_at_value(op: Operation, value: SSAValue, layout: Encoding | None) -> SSAValue:
    """The same at the location of `value`, or of `op` if `value` is a block argument."""
    return laid_out(op, value, layout, value.op.location if isinstance(value, OpResult) else None)


def converted_from(value: SSAValue) -> SSAValue:
    """Return `value` before layout conversions."""
    while isinstance(owner := value.owner, ttg.ConvertLayoutOp):
        value = owner.operands[0]
    return value


def cast(op: Operation, value: SSAValue, element: Attribute) -> SSAValue:
    """Convert the elements of `value`; 8-bit floats become wider ones."""
    source, wanted = element_type(value.type), with_element(value.type, element)
    if source == element:
        return value
    if is_float(element) and bit_width(source) == 8:
        return put(op, tt.FpToFpOp.make(value, wanted, op.location))
    grows = bit_width(element) > bit_width(source)
    kinds = (arith.ExtFOp, arith.TruncFOp) if is_float(element) else (arith.ExtSIOp, arith.TruncIOp)
    return put(op, convert(kinds[not grows], value, wanted, op.location))


# Masks of memory accesses and predicates of waits and arrivals.
#
#     set_mask(load, narrowed(code, load, %go_on))      tt.load %p, %m   ==>   tt.load %p, (splat %go_on) & %m

MASKS = {  # operands, by the names of ops: most compilations have no op of `ttng`, and do not import it
    "tt.load": 1,
    "tt.store": 2,
    "tt.atomic_rmw": 2,
    "tt.atomic_cas": 3,
    "tt.histogram": 1,
    "ttg.async_copy_global_to_local": 2,
    "ttng.arrive_barrier": 1,
    "ttng.wait_barrier": 2,
}


def mask_of(op: Operation) -> SSAValue | None:
    """The mask or predicate of `op`, if it has one."""
    if (index := MASKS.get(op.name)) is None:
        return None
    sizes = op.properties.get(SEGMENTS)
    has_mask = len(op.operands) > index if sizes is None else array_values(sizes)[index] > 0
    return op.operands[index] if has_mask else None


def set_mask(op: Operation, mask: SSAValue) -> None:
    """Make `mask` the mask of `op`, replacing the one it has."""
    index, before = MASKS[op.name], mask_of(op)
    op.operands = (*op.operands[:index], mask, *op.operands[index + (before is not None) :])
    if (sizes := op.properties.get(SEGMENTS)) is not None:
        counts = array_values(sizes)
        op.properties[SEGMENTS] = i32_array(*counts[:index], 1, *counts[index + 1 :])


def narrowed(code: Emitter, op: Operation, condition: SSAValue) -> SSAValue:
    """The mask of `op` where `condition`, one for all its elements, holds too."""
    if is_tensor(tile := op.operands[0].type):
        condition = code.append(tt.SplatOp.make(condition, with_element(tile, i1), code.loc))  # pyright: ignore
    return condition if (own := mask_of(op)) is None else code.binary(arith.AndIOp, condition, own)


# Barriers between accesses to memory that must not overtake each other.

Accesses = TypeVar("Accesses", bound=Any)  # they have `|`, `conflicts(later)` and `written`


def order(block: Block, before: Accesses, of: Callable[[Operation], Accesses], none: Accesses) -> Accesses:
    """Insert barriers into a block, and return the accesses since the last one at its end. `of` returns the accesses of
    an op and its regions."""
    for op in list(block.ops):
        if isinstance(op, ttg.BarrierOp) and op.makes_visible(AddrSpace.GLOBAL_READ | AddrSpace.GLOBAL_WRITE):
            before = none
            continue
        own = of(op)
        if own == none:
            continue
        if before.conflicts(own):
            block.insert_op_before(ttg.BarrierOp.make(AddrSpace.ALL, op.location), op)
            before = none
        if not op.regions:
            before |= own
            continue
        inside = before | own if type(op) in LOOPS and own.written else before  # accesses of the iteration before
        for end in [order(inner, inside, of, none) for region in op.regions for inner in region.blocks]:
            before |= end
    return before
