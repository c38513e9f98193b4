"""Small, cheap changes to IR: what passes use instead of a rewriter.

    scalar = recreate(op, operands=scalars, result_types=(f32,))          same op, on scalars
    replace_op(op, scalar, tt.SplatOp.make(scalar.results[0], type, op.location))

`constant` and `constant_value` convert between Python values and `arith.constant`; the attributes are interned.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from tilework.ir import arith
from tilework.ir.create import create_op, erase_op, replace_all_uses
from tilework.ir.effects import TERMINATORS, writes
from tilework.ir.types import RECENT, bit_width, element_type, int_attr, is_float


def recreate(
    op: Operation,
    *,
    operands: Sequence[SSAValue] | None = None,
    result_types: Sequence[Attribute] | None = None,
    regions: Sequence[Region] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    properties: Mapping[str, Attribute] | None = None,
) -> Operation:
    """A detached op like `op`, except for what is given. Regions move to it only when given."""
    if operands is None:
        operands = tuple(op.operands)
    if result_types is None:
        result_types = [result.type for result in op.results]
    if properties is None:
        properties = op.properties
    if attributes is None:
        attributes = op.attributes
    new = create_op(type(op), operands, result_types, op.location, properties, attributes)
    if successors := tuple(op.successors):
        new.successors = successors
    for region in regions or ():
        if region.parent is not None:
            region.parent.detach_region(region)
        new.add_region(region)
    return new


def insert_before(op: Operation, *new: Operation) -> None:
    block_of(op).insert_ops_before(new, op)


def put(before: Operation, op: Operation) -> SSAValue:
    """Insert one op; its result."""
    insert_before(before, op)
    return op.results[0]


def insert_after(op: Operation, *new: Operation) -> None:
    block_of(op).insert_ops_after(new, op)


def move_before(anchor: Operation, *ops: Operation) -> None:
    """Move `ops` before `anchor`, in order."""
    for op in ops:
        op.detach()
    insert_before(anchor, *ops)


def move_behind(anchor: Operation, *ops: Operation) -> None:
    """Move `ops` after `anchor`, in order."""
    for op in ops:
        op.detach()
    insert_after(anchor, *ops)


def block_of(op: Operation) -> Block:
    """The block that holds `op`."""
    assert op.parent is not None, f"{op.name} is in no block"
    return op.parent


def replace_op(op: Operation, *new_ops: Operation, results: Sequence[SSAValue] | None = None) -> None:
    """Insert `new_ops` before `op`, use `results` (by default those of the last new op) for its results, erase it."""
    if new_ops:
        insert_before(op, *new_ops)
    if results is None:
        results = new_ops[-1].results if new_ops else ()
    assert len(results) == len(op.results), f"{op.name} has {len(op.results)} results, got {len(results)}"
    for old, new in zip(op.results, results, strict=True):
        replace_all_uses(old, new)
    erase_op(op)


def replace_values(old: Iterable[SSAValue], new: Iterable[SSAValue]) -> None:
    """Replace each of `old` by the one of `new` at the same index."""
    for value, other in zip(tuple(old), tuple(new), strict=True):
        replace_all_uses(value, other)


def replace_uses(old: SSAValue, new: SSAValue, where: Callable[[Operation], bool]) -> None:
    """The uses of `old` by ops for which `where` holds become uses of `new`."""
    for use in tuple(old.uses):
        if where(use.operation):
            use.operation.operands[use.index] = new


def is_dead(op: Operation) -> bool:
    """Return True if `op` has no used results and no effects."""
    for result in op.results:
        if result.first_use is not None:
            return False
    return type(op) not in TERMINATORS and not writes(op)


def defining_op(value: SSAValue) -> Operation | None:
    """The op that `value` is a result of; None for a block argument."""
    return value.op if isinstance(value, OpResult) else None


def splat_attr(value: int | float, type: Attribute) -> Attribute:
    """`value` as a constant of `type`: ``1 : i32``, or ``dense<1>`` for a tensor. Interned."""
    if is_float(element_type(type)):
        # The key is the bits: 0.0 and -0.0 are equal, and a NaN is not equal to itself.
        return float_constant(struct.pack("<d", value), type)
    return int_constant(int(value), type)


def constant_bits(value: int | float, type: Attribute) -> bytes | int:
    """Return the stored form of one element of ``splat_attr(value, type)`` without making the attribute."""
    element = element_type(type)
    if is_float(element):
        return element.pack((value,))  # pyright: ignore[reportAttributeAccessIssue]
    return int(value) % (1 << bit_width(element))


@lru_cache(maxsize=RECENT)
def float_constant(bits: bytes, type: Attribute) -> Attribute:
    """The float with the given double-precision bits, rounded to the element of `type`."""
    (value,) = struct.unpack("<d", bits)
    if isinstance(type, TensorType):
        return DenseIntOrFPElementsAttr.from_list(type, [value])
    return FloatAttr(value, type)  # pyright: ignore[reportCallIssue, reportArgumentType]


@lru_cache(maxsize=RECENT)
def int_constant(value: int, type: Attribute) -> Attribute:
    """The integer modulo the width of the element of `type`."""
    if isinstance(type, TensorType):
        wrapped = int_attr(value, type.element_type).value.data
        return DenseIntOrFPElementsAttr.from_list(type, [wrapped])
    return int_attr(value, type)


def constant(value: int | float, type: Attribute, loc: LocationAttr) -> arith.ConstantOp:
    """``arith.constant`` of a scalar, or of a tensor with every element equal to `value`."""
    return create_op(arith.ConstantOp, (), (type,), loc, {"value": splat_attr(value, type)})


def constant_value(value: SSAValue) -> int | float | None:
    """The constant that every element of `value` is, or None; integers are signed, `i1` is 0 or 1."""
    if isinstance(value, OpResult) and type(value.op) is arith.ConstantOp:
        return attr_value(value.op.properties["value"])
    return None


def attr_value(attribute: Attribute) -> int | float | None:
    """The value of a scalar constant or a splat, or None."""
    constant: Any = attribute
    kind = constant.__class__  # faster than `isinstance`, which asks the metaclass
    if kind is IntegerAttr:
        value = constant.value.data
        return value & 1 if is_bool(constant.type) else value
    if kind is FloatAttr:
        return constant.value.data
    if kind is DenseIntOrFPElementsAttr:
        memo = vars(constant)
        if "_splat" not in memo:
            memo["_splat"] = splat_element(constant)
        return memo["_splat"]
    return None


def splat_element(attribute: DenseIntOrFPElementsAttr) -> int | float | None:
    """The element of a tensor constant when all are equal bit by bit. Compares bytes: no element is unpacked."""
    data, element = attribute.data.data, attribute.get_element_type()
    size = element.compile_time_size
    first = data[:size]
    if not first or first * (len(data) // size) != data:
        return None
    (value,) = element.unpack(first, 1)
    assert isinstance(value, int | float), value
    return int(value) & 1 if is_bool(element) else value


def is_bool(type: Attribute) -> bool:
    return isinstance(type, IntegerType) and type.width.data == 1
