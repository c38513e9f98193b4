"""Rules of the `arith` and `math` dialects, and of precise and external elementwise ops of `tt`.

Integers wrap around, division is C's, floats are rounded once per operation. Cases that the reference leaves undefined
are fixed here, so that runs repeat: `x / 0` is 0 and `x % 0` is 0, `INT_MIN / -1` is `INT_MIN`, and a shift by the
width or more shifts every bit out.

Functions of f32 and narrower formats are computed in f64 and rounded once, so a value does not depend on its position
in an array (NumPy's vector and scalar loops may differ in the last bit) and a pass that moves an op changes nothing.

`tt.extern_elementwise` knows every symbol of libdevice. Inline assembly is not executed: the error quotes it.

"""

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from tilework.ir import arith, tt
from tilework.ir import math as math_dialect
from tilework.ir.arith import RemfOp, SelectOp
from tilework.ir.enums import PropagateNan
from tilework.ir.types import bit_width, shape_of
from tilework.numerics import libdevice_in_numpy as libdevice
from tilework.numerics.arithmetic import Arithmetic, greater, greater_number, lesser, lesser_number
from tilework.numerics.integers import high_product, leading_zeros, one_bits, trailing_zeros
from tilework.numerics.rounding import F64, Array, from_integer, narrow
from tilework.oracles.evaluator.shared_memory import MemView
from tilework.oracles.evaluator.values import (
    BOOL,
    BlockView,
    DescriptorAt,
    Fault,
    Rule,
    evaluates,
    fit,
    rules,
    signed,
    storage,
    to_integer,
    unsigned,
    wide,
)

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

Binary = Callable[[Array, Array], Array]


def constant_array(value: Attribute) -> Array:
    """Return the array of a scalar or dense attribute; a splat is a view that repeats one element."""
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
    """Return `value` as unsigned, without the sign extension of odd widths (`i4`)."""
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
    """Narrow formats compute in f32: its 24 bits are enough for one rounding to 11 or fewer."""
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


@evaluates(SelectOp, elementwise=True)
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
    """Return the same bits under the element type of `type`."""
    dtype = storage(type)
    if src.dtype == dtype:
        return src
    if BOOL in (src.dtype, dtype) or src.dtype.itemsize != dtype.itemsize:
        raise Fault(f"reinterprets {src.dtype.itemsize} bytes as {dtype.itemsize}")
    return np.ascontiguousarray(src).view(dtype).reshape(src.shape)


FUNCTIONS: dict[type[Operation], Callable[..., Any]] = {
    math_dialect.CopySignOp: np.copysign,
    math_dialect.PowFOp: np.power,
    math_dialect.RoundEvenOp: np.rint,
    **{
        getattr(math_dialect, f"{name}Op"): libdevice.DOUBLE[name.lower()]
        for name in "Exp Exp2 ExpM1 Log Log2 Log10 Log1p Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Asinh Acosh"
        " Atanh Cbrt Sqrt Rsqrt Floor Ceil Trunc Round Erf".split()
    },
}


def in_double(function: Callable[..., Any], *args: Array) -> Array:
    """Compute `function` in f64 and round to the format of the first argument."""
    return narrow(np.asarray(function(*(arg.astype(F64) for arg in args))), args[0].dtype)


rules(
    {
        **{op: lambda machine, op, *args: in_double(FUNCTIONS[type(op)], *args) for op in FUNCTIONS},
        math_dialect.AbsFOp: lambda machine, op, src: narrow(np.asarray(np.abs(wide(src))), src.dtype),
        math_dialect.AbsIOp: lambda machine, op, src: fit(np.asarray(np.abs(src)), op.results[0].type),
        math_dialect.FmaOp: lambda machine, op, x, y, z: Arithmetic.of(x.dtype).fma(x, y, z),
        tt.PreciseSqrtOp: lambda machine, op, src: narrow(np.asarray(np.sqrt(wide(src))), src.dtype),
        tt.PreciseDivFOp: lambda machine, op, lhs, rhs: narrow(np.asarray(wide(lhs) / wide(rhs)), lhs.dtype),
        # the upper half of the double-width product
        tt.MulhiUIOp: lambda machine, op, lhs, rhs: fit(high_product(unsigned(lhs), unsigned(rhs)), op.results[0].type),
    },
    elementwise=True,
)


@evaluates(tt.ClampFOp, elementwise=True)
def eval_clampf(machine: "Machine", op: Operation, x: Array, low: Array, high: Array) -> Array:
    """`min(max(x, low), high)`; a NaN in `x` is kept with propagateNan = all, and becomes `low` otherwise."""
    keep_nan = machine.integer(op, "propagateNan") == PropagateNan.ALL
    larger, smaller = (np.maximum, np.minimum) if keep_nan else (np.fmax, np.fmin)
    return narrow(np.asarray(smaller(larger(wide(x), wide(low)), wide(high))), x.dtype)


COUNTS: dict[type[Operation], Callable[[Array], Array]] = {
    math_dialect.CountLeadingZerosOp: leading_zeros,
    math_dialect.CountTrailingZerosOp: trailing_zeros,
    math_dialect.CtPopOp: one_bits,
}


@evaluates(*COUNTS, elementwise=True)
def eval_bit_count(machine: "Machine", op: Operation, src: Array) -> Array:
    assert bit_width(op.operands[0].type) in (8, 16, 32, 64), "bits are counted in whole bytes"
    return fit(COUNTS[type(op)](src), op.results[0].type)


@evaluates(tt.ExternElementwiseOp, elementwise=True)
def eval_extern(machine: "Machine", op: Operation, *args: Array) -> Array:
    return call_extern(libdevice.call, op, args)


def call_extern(library: Callable[..., Array | None], op: Operation, args: Sequence[Array]) -> Array:
    symbol = op.properties["symbol"].data  # pyright: ignore[reportAttributeAccessIssue]
    answer = library(symbol, args, storage(op.results[0].type))
    if answer is None:
        raise Fault(f"calls '{symbol}', which the evaluator does not know")
    return answer


@evaluates(tt.ElementwiseInlineAsmOp)
def eval_inline_asm(machine: "Machine", op: Operation, *args: Array) -> Array:
    text = op.properties["asm_string"].data  # pyright: ignore[reportAttributeAccessIssue]
    if text == "mov.u32 $0, %nsmid;":  # one multiprocessor, which runs everything
        return np.ones((), np.int32)
    raise Fault(f"is assembly, which the evaluator does not execute: {text!r}")


# The rules of reproducible modules: functions by the formulas that all targets share (`targets/llvm/math`), ordered
# zeros. Everything else is exact or rounded once, as on all targets.

EXACT_NAMES: dict[type[Operation], str] = {math_dialect.RoundEvenOp: "rint", math_dialect.PowFOp: "pow"}


def exact_function(machine: "Machine", op: Operation, *args: Array) -> Array:
    from tilework.targets.llvm.math import in_numpy  # lazily: few modules are reproducible

    name = EXACT_NAMES.get(type(op)) or op.name.removeprefix("math.")
    return narrow(in_numpy.compute(name, *(wide(np.asarray(arg)) for arg in args)), args[0].dtype)


def exact_extern(machine: "Machine", op: Operation, *args: Array) -> Array:
    from tilework.targets.llvm.math import in_numpy  # lazily: few modules are reproducible

    return call_extern(in_numpy.call, op, args)


def exact_clampf(machine: "Machine", op: Operation, x: Array, low: Array, high: Array) -> Array:
    if machine.integer(op, "propagateNan") == PropagateNan.ALL:
        return lesser(greater(x, low), high)
    return lesser_number(greater_number(x, low), high)


EXACT: dict[type[Operation], Rule] = {
    **dict.fromkeys(FUNCTIONS, exact_function),
    arith.MaximumfOp: lambda machine, op, lhs, rhs: greater(lhs, rhs),
    arith.MinimumfOp: lambda machine, op, lhs, rhs: lesser(lhs, rhs),
    arith.MaxnumfOp: lambda machine, op, lhs, rhs: greater_number(lhs, rhs),
    arith.MinnumfOp: lambda machine, op, lhs, rhs: lesser_number(lhs, rhs),
    tt.ClampFOp: exact_clampf,
    tt.ExternElementwiseOp: exact_extern,
}
