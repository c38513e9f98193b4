"""Rules of the `arith` dialect: wrap-around integers, C division, IEEE floats rounded once per operation.

What the reference leaves undefined is fixed here, so that runs repeat: `x / 0` is 0 and `x % 0` is 0, `INT_MIN / -1` is
`INT_MIN`, and a shift by the width or more pushes every bit out.
"""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from tilework.ir import tt
from tilework.ir.arith_ext import RemfOp, SelectOp
from tilework.ir.types import bit_width, shape_of
from tilework.numerics.rounding import Array, from_integer, narrow
from tilework.oracles.evaluator.compound_values import BlockView, DescriptorAt
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import BOOL, fit, signed, storage, to_integer, unsigned, wide
from tilework.oracles.evaluator.shared_memory import MemView
from tilework.oracles.evaluator.table import evaluates, rules

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

Binary = Callable[[Array, Array], Array]


def constant_array(value: Attribute) -> Array:
    """The array of a scalar or dense attribute; a splat is a view that repeats one element."""
    match value:
        case IntegerAttr():
            return fit(np.asarray(value.value.data, dtype=np.int64), value.type)
        case FloatAttr():
            return narrow(np.asarray(value.value.data, dtype=np.float64), storage(value.type))
        case DenseIntOrFPElementsAttr():
            dtype, shape = storage(value.type), shape_of(value.type)
            raw = np.frombuffer(value.data.data, dtype=np.int8 if dtype == BOOL else dtype)
            flat = raw != 0 if dtype == BOOL else raw
            return np.broadcast_to(flat[0], shape) if flat.size == 1 else flat.reshape(shape)
        case _:
            raise Fault(f"has a constant the evaluator cannot read: {value}")


def quotient(lhs: Array, rhs: Array) -> Array:
    """C division: towards zero."""
    return (lhs - np.fmod(lhs, rhs)) // rhs


def ceil_quotient(lhs: Array, rhs: Array) -> Array:
    floor = np.floor_divide(lhs, rhs)
    return floor + (floor * rhs != lhs).astype(floor.dtype)


SIGNED_RULES: dict[type[Operation], Binary] = {
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.DivSIOp: quotient,
    arith.RemSIOp: np.fmod,
    arith.FloorDivSIOp: np.floor_divide,
    arith.CeilDivSIOp: ceil_quotient,
    arith.MinSIOp: np.minimum,
    arith.MaxSIOp: np.maximum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.ShRSIOp: np.right_shift,
}

UNSIGNED_RULES: dict[type[Operation], Binary] = {
    arith.DivUIOp: np.floor_divide,
    arith.RemUIOp: np.remainder,
    arith.CeilDivUIOp: ceil_quotient,
    arith.MinUIOp: np.minimum,
    arith.MaxUIOp: np.maximum,
    arith.ShLIOp: np.left_shift,
    arith.ShRUIOp: np.right_shift,
}


@evaluates(*SIGNED_RULES, elementwise=True)
def eval_signed(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    return fit(np.asarray(SIGNED_RULES[type(op)](signed(lhs), signed(rhs))), op.results[0].type)


@evaluates(*UNSIGNED_RULES, elementwise=True)
def eval_unsigned(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    type_ = op.results[0].type
    return fit(np.asarray(UNSIGNED_RULES[type(op)](low_bits(lhs, type_), low_bits(rhs, type_))), type_)


def low_bits(value: Array, type: Attribute) -> Array:
    """`value` as unsigned, without the sign extension of widths that are not a whole dtype (`i4`)."""
    bits, width = unsigned(value), bit_width(type)
    return bits if width == bits.dtype.itemsize * 8 or width == 1 else bits & bits.dtype.type((1 << width) - 1)


FLOAT_RULES: dict[type[Operation], Binary] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    RemfOp: np.fmod,
    arith.MaximumfOp: np.maximum,
    arith.MinimumfOp: np.minimum,
    arith.MaxnumfOp: np.fmax,
    arith.MinnumfOp: np.fmin,
}


@evaluates(*FLOAT_RULES, elementwise=True)
def eval_float(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    """Narrow formats compute in f32: its 24 bits are enough for one rounding back to 11 or fewer."""
    return narrow(np.asarray(FLOAT_RULES[type(op)](wide(lhs), wide(rhs))), lhs.dtype)


rules(
    {
        arith.ConstantOp: lambda machine, op: constant_array(op.properties["value"]),
        arith.NegfOp: lambda machine, op, src: np.asarray(np.negative(src)),
    },
    elementwise=True,
)

ORDERS: tuple[Binary, ...] = (operator.lt, operator.le, operator.gt, operator.ge)
INTEGER_ORDERS: tuple[tuple[Binary, bool], ...] = (
    *((compare, False) for compare in (operator.eq, operator.ne, *ORDERS)),
    *((compare, True) for compare in ORDERS),
)


@evaluates(arith.CmpiOp, elementwise=True)
def eval_cmpi(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    compare, is_unsigned = INTEGER_ORDERS[predicate(op)]
    read = unsigned if is_unsigned else signed
    return np.asarray(compare(read(lhs), read(rhs)))


ORDERED: tuple[Binary | None, ...] = (
    None,
    operator.eq,
    operator.gt,
    operator.ge,
    operator.lt,
    operator.le,
    operator.ne,
    None,
)


@evaluates(arith.CmpfOp, elementwise=True)
def eval_cmpf(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    """Predicates 0-7 are false with a NaN operand (`ord` is 7), 8-15 are true (`uno` is 14)."""
    lhs, rhs, which = wide(lhs), wide(rhs), predicate(op)
    nan = np.asarray(np.isnan(lhs) | np.isnan(rhs))
    if which in (0, 15):
        return np.full(nan.shape, which == 15)
    if which in (7, 14):
        return nan if which == 14 else ~nan
    compare = ORDERED[which if which < 8 else which - 7]
    assert compare is not None
    result = np.asarray(compare(lhs, rhs))
    return result | nan if which >= 8 else result & ~nan


def predicate(op: Operation) -> int:
    attribute = op.properties["predicate"]
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


@evaluates(SelectOp, arith.SelectOp, elementwise=True)
def eval_select(machine: "Machine", op: Operation, condition: Array, lhs: Any, rhs: Any) -> Any:
    if isinstance(lhs, BlockView | MemView | DescriptorAt):  # descriptors, block pointers and memory are chosen whole
        return lhs if condition else rhs
    return np.where(condition, lhs, rhs)


CASTS: dict[type[Operation], Callable[[Array, Attribute, Attribute], Array]] = {
    arith.TruncIOp: lambda src, old, new: fit(src, new),
    arith.ExtSIOp: lambda src, old, new: fit(signed(src), new),
    arith.IndexCastOp: lambda src, old, new: fit(signed(src), new),
    arith.ExtUIOp: lambda src, old, new: fit(low_bits(src, old), new),
    arith.SIToFPOp: lambda src, old, new: from_integer(signed(src), storage(new)),
    arith.UIToFPOp: lambda src, old, new: from_integer(low_bits(src, old), storage(new)),
    arith.FPToSIOp: lambda src, old, new: to_integer(src, new, is_unsigned=False),
    arith.FPToUIOp: lambda src, old, new: to_integer(src, new, is_unsigned=True),
    arith.ExtFOp: lambda src, old, new: narrow(src, storage(new)),
    arith.TruncFOp: lambda src, old, new: narrow(src, storage(new)),
    arith.BitcastOp: lambda src, old, new: reinterpret(src, new),
    tt.BitcastOp: lambda src, old, new: reinterpret(np.asarray(src), new),
}


@evaluates(*CASTS, elementwise=True)
def eval_cast(machine: "Machine", op: Operation, src: Array) -> Array:
    return CASTS[type(op)](src, op.operands[0].type, op.results[0].type)


def reinterpret(src: Array, type: Attribute) -> Array:
    """The same bits under the element type of `type`."""
    dtype = storage(type)
    if src.dtype == dtype:
        return src
    if BOOL in (src.dtype, dtype) or src.dtype.itemsize != dtype.itemsize:
        raise Fault(f"reinterprets {src.dtype.itemsize} bytes as {dtype.itemsize}")
    return np.ascontiguousarray(src).view(dtype).reshape(src.shape)
