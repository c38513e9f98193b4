"""Folds and rewrites of `canonicalize` for casts and floating point.

    arith.extsi (extui %b : i1 to i8)   -> extui %b : i1 to i32
    arith.trunci (extsi %x : i32 to i64) : i64 to i32 -> %x
    arith.mulf %x, 1.0                  -> %x            arith.addf %x, -0.0 -> %x
    arith.truncf 0.5 : f32 to f16       -> 0.5           arith.truncf 1.1    is kept: it would lose digits

A float identity fires only if it holds for every value, so ``x + 0.0`` (0.0 where x is -0.0), ``x * 0`` and ``x - x``
are kept.
"""

import math as python_math
import operator
import struct
from collections.abc import Callable

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import arith, math
from tilework.ir.arith import RemfOp, convert, predicate_of, unsigned
from tilework.ir.rewrite import constant_value
from tilework.ir.types import bf16, bit_width, element_type, f16, f32, f64, i1, is_float
from tilework.numerics import formats
from tilework.numerics.formats import Format
from tilework.transforms.folding.arith import constant_int, producer
from tilework.transforms.folding.worklist import Driver, Fold, Rewrite, Scalar

FORMATS: dict[Attribute, Format] = {type: formats.of_ir(type.name) for type in (f16, bf16, f32, f64)}


def rounded(value: float, element: Attribute) -> float:
    """`value` rounded to nearest, ties to even, in the format of `element`: ``rounded(1.1, f16) == 1.099609375``."""
    return formats.rounded(value, FORMATS[element])


INF = float("inf")
NAN = float("nan")  # without sign: the result of an invalid operation


def constant_float(value: SSAValue) -> float | None:
    """The float that `value` is known to be, or None; formats below 16 bits are left alone."""
    if type(value.owner) is not arith.ConstantOp or element_type(value.type) not in FORMATS:
        return None
    known = constant_value(value)
    return float(known) if known is not None else None


# Casts


def fold_extension(op: Operation) -> SSAValue | Scalar | None:
    (source,) = op._operands
    if (known := constant_int(source)) is None:
        return None
    if type(op) is arith.ExtUIOp:
        return unsigned(known, bit_width(source.type))
    return -known if element_type(source.type) == i1 else known


def rewrite_extension(op: Operation, driver: Driver) -> bool:
    """An extension of an extension is one: the outer kind, or zero extension if the inner one is."""
    inner = producer(op._operands[0], arith.ExtSIOp, arith.ExtUIOp)
    if type(inner) is arith.ExtUIOp and type(op) is arith.ExtSIOp:
        return driver.replace_with(op, convert(arith.ExtUIOp, inner._operands[0], op.results[0].type, op.location))
    if inner is not None and type(inner) is type(op):
        return driver.set_operands(op, (inner._operands[0],))
    return False


def fold_trunci(op: Operation) -> SSAValue | Scalar | None:
    (source,) = op._operands
    inner = producer(source, arith.ExtSIOp, arith.ExtUIOp)
    if inner is not None and inner._operands[0].type == op.results[0].type:
        return inner._operands[0]
    return constant_int(source)


def rewrite_trunci(op: Operation, driver: Driver) -> bool:
    inner = producer(op._operands[0], arith.TruncIOp, arith.ExtSIOp, arith.ExtUIOp)
    if type(inner) is arith.TruncIOp:
        return driver.set_operands(op, (inner.operands[0],))
    if inner is not None:
        source, result = inner._operands[0], op.results[0].type
        if bit_width(source.type) > bit_width(result):
            return driver.set_operands(op, (source,))
        return driver.replace_with(op, convert(type(inner), source, result, op.location))
    return False


def fold_bitcast(op: Operation) -> SSAValue | Scalar | None:
    (source,), result = op._operands, op.results[0].type
    if type(source.owner) is arith.ConstantOp and (known := constant_value(source)) is not None:
        return reinterpreted(known, element_type(source.type), element_type(result))
    if source.type == result:
        return source
    if (inner := producer(source, type(op))) is not None and inner._operands[0].type == result:
        return inner._operands[0]
    return None


FLOAT_CODES = {f16: "<e", f32: "<f", f64: "<d"}
INT_CODES = {16: "<h", 32: "<i", 64: "<q"}


def reinterpreted(value: Scalar, source: Attribute, target: Attribute) -> Scalar | None:
    """The value whose bits in `target` are those of `value` in `source`; None if Python would change the bits."""
    if is_float(source) == is_float(target):
        return value if source == target else None
    if is_float(source) and source in FLOAT_CODES and value == value:
        return struct.unpack(INT_CODES[bit_width(source)], struct.pack(FLOAT_CODES[source], value))[0]
    if is_float(target) and target in FLOAT_CODES:
        bits = struct.pack(INT_CODES[bit_width(target)], int(value))
        (result,) = struct.unpack(FLOAT_CODES[target], bits)
        return result if struct.pack(FLOAT_CODES[target], result) == bits else None
    return None


def rewrite_bitcast(op: Operation, driver: Driver) -> bool:
    inner = producer(op._operands[0], type(op))
    return inner is not None and driver.set_operands(op, (inner._operands[0],))


def fold_index_cast(op: Operation) -> SSAValue | Scalar | None:
    (source,) = op._operands
    inner = producer(source, arith.IndexCastOp)
    if inner is not None and inner.operands[0].type == op.results[0].type and bit_width(op.results[0].type) <= 64:
        return inner.operands[0]
    return constant_int(source)


def fold_int_to_float(op: Operation) -> SSAValue | Scalar | None:
    known = constant_int(op._operands[0])
    return None if known is None else converted(op, known)


def converted(op: Operation, known: int) -> float | None:
    """The float that `op` converts the integer `known` to, or None."""
    source, element = op._operands[0].type, element_type(op.results[0].type)
    if element not in FORMATS:
        return None
    if type(op) is arith.UIToFPOp:
        known = unsigned(known, bit_width(source))
    elif element_type(source) == i1:
        known = -known
    # An integer of more than 53 bits is first rounded to f64; keep the op if that could be a second rounding.
    return rounded(float(known), element) if abs(known) < 1 << 53 or element == f64 else None


def fold_float_to_int(op: Operation) -> SSAValue | Scalar | None:
    known = constant_float(op._operands[0])
    if known is None or python_math.isnan(known) or python_math.isinf(known):
        return None
    value, width = int(known), bit_width(op.results[0].type)
    low, high = (0, 1 << width) if type(op) is arith.FPToUIOp else (-(1 << (width - 1)), 1 << (width - 1))
    return value if low <= value < high else None


def fold_truncf(op: Operation) -> SSAValue | Scalar | None:
    (source,), result = op._operands, op.results[0].type
    if (wider := producer(source, arith.ExtFOp)) is not None and wider.operands[0].type == result:
        return wider.operands[0]
    known, element = constant_float(source), element_type(result)
    if known is None or element not in FORMATS:
        return None
    return known if rounded(known, element) == known else None


def rewrite_truncf(op: Operation, driver: Driver) -> bool:
    """An integer converted to a wide float and narrowed is converted to the narrow one."""
    if (inner := producer(op._operands[0], arith.SIToFPOp, arith.UIToFPOp)) is None:
        return False
    return driver.replace_with(op, convert(type(inner), inner._operands[0], op.results[0].type, op.location))


# Float arithmetic


def divide(lhs: float, rhs: float) -> float | None:
    if rhs == 0:
        return None if lhs == 0 else python_math.copysign(INF, lhs) * python_math.copysign(1, rhs)
    return lhs / rhs


def extreme(choose: Callable[[float, float], float]) -> Callable[[float, float], float | None]:
    """`choose` is max or min, which cannot order zeros of different sign: those are left alone."""
    return lambda lhs, rhs: None if lhs == rhs == 0 else choose(lhs, rhs)


def remainder(lhs: float, rhs: float) -> float | None:
    return python_math.fmod(lhs, rhs) if rhs != 0 and not python_math.isinf(lhs) else None


EVALUATE: dict[type[Operation], Callable[[float, float], float | None]] = {
    arith.AddfOp: lambda a, b: a + b,
    arith.SubfOp: lambda a, b: a - b,
    arith.MulfOp: lambda a, b: a * b,
    arith.DivfOp: divide,
    RemfOp: remainder,
    arith.MaximumfOp: extreme(max),
    arith.MinimumfOp: extreme(min),
    arith.MaxnumfOp: extreme(max),
    arith.MinnumfOp: extreme(min),
}
NEUTRAL: dict[type[Operation], float] = {  # x OP neutral is x, for every x
    arith.AddfOp: -0.0,
    arith.SubfOp: 0.0,
    arith.MulfOp: 1.0,
    arith.DivfOp: 1.0,
    arith.MaximumfOp: -INF,
    arith.MinimumfOp: INF,
}
EXTREMES = frozenset({arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp})
SKIP_NAN = frozenset({arith.MaxnumfOp, arith.MinnumfOp})


def fold_float_binary(op: Operation) -> SSAValue | Scalar | None:
    lhs, rhs = op._operands
    kind = type(op)
    if lhs is rhs and kind in EXTREMES:
        return lhs
    if (b := constant_float(rhs)) is None:
        return None
    neutral = NEUTRAL.get(kind)
    if neutral is not None and b == neutral and python_math.copysign(1, b) == python_math.copysign(1, neutral):
        return lhs
    if b != b:
        is_known = constant_float(lhs) is not None
        return lhs if kind in SKIP_NAN else b if is_known else None
    if (a := constant_float(lhs)) is None:
        return None
    if a != a:
        return b if kind in SKIP_NAN else a
    value = EVALUATE[kind](a, b)
    if value is None:
        return None
    return NAN if value != value else rounded(value, element_type(lhs.type))


def fold_negf(op: Operation) -> SSAValue | Scalar | None:
    (source,) = op._operands
    if (inner := producer(source, arith.NegfOp)) is not None:
        return inner.operands[0]
    known = constant_float(source)
    return -known if known is not None and known == known else None


def rewrite_negated_operands(op: Operation, driver: Driver) -> bool:
    """``(-x) * (-y)`` is ``x * y``; the same for division."""
    lhs, rhs = (producer(value, arith.NegfOp) for value in op._operands)
    if lhs is None or rhs is None:
        return False
    return driver.set_operands(op, (lhs.operands[0], rhs.operands[0]))


# By predicate; unordered ones are 7 higher.
COMPARE_ORDERED = (None, operator.eq, operator.gt, operator.ge, operator.lt, operator.le, operator.ne)


def fold_cmpf(op: Operation) -> SSAValue | Scalar | None:
    predicate = predicate_of(op)
    if predicate in (0, 15):
        return int(predicate == 15)
    b = constant_float(op._operands[1])
    a = constant_float(op._operands[0])
    is_nan = (a is not None and a != a) or (b is not None and b != b)
    if is_nan:
        return int(predicate > 7)
    if a is None or b is None:
        return None
    if predicate in (7, 14):  # ord, uno
        return int(predicate == 7)
    compare = COMPARE_ORDERED[predicate % 7]
    assert compare is not None, "predicates 0, 7 and 14 are decided above"
    return int(compare(a, b))


UNARY_MATH: dict[type[Operation], tuple[Callable[[float], float], Callable[[float], bool]]] = {  # value, domain
    math.AbsFOp: (abs, lambda x: True),
    math.CeilOp: (lambda x: python_math.copysign(float(python_math.ceil(x)), x), python_math.isfinite),
    math.FloorOp: (lambda x: python_math.copysign(float(python_math.floor(x)), x), python_math.isfinite),
    math.SqrtOp: (python_math.sqrt, lambda x: x >= 0),
    math.ExpOp: (python_math.exp, lambda x: x < 700),
    math.Exp2Op: (lambda x: 2.0**x, lambda x: x < 1023),
    math.LogOp: (python_math.log, lambda x: 0 < x < INF),
    math.Log2Op: (python_math.log2, lambda x: 0 < x < INF),
    math.SinOp: (python_math.sin, python_math.isfinite),
    math.CosOp: (python_math.cos, python_math.isfinite),
}


def fold_unary_math(op: Operation) -> SSAValue | Scalar | None:
    known = constant_float(op._operands[0])
    function, domain = UNARY_MATH[type(op)]
    if known is None or known != known or not domain(known):
        return None
    return rounded(function(known), element_type(op.results[0].type))


FOLDS: dict[type[Operation], Fold] = {
    arith.ExtSIOp: fold_extension,
    arith.ExtUIOp: fold_extension,
    arith.TruncIOp: fold_trunci,
    arith.BitcastOp: fold_bitcast,
    arith.IndexCastOp: fold_index_cast,
    arith.SIToFPOp: fold_int_to_float,
    arith.UIToFPOp: fold_int_to_float,
    arith.FPToSIOp: fold_float_to_int,
    arith.FPToUIOp: fold_float_to_int,
    arith.ExtFOp: lambda op: constant_float(op._operands[0]),
    arith.TruncFOp: fold_truncf,
    **dict.fromkeys(EVALUATE, fold_float_binary),
    arith.NegfOp: fold_negf,
    arith.CmpfOp: fold_cmpf,
    **dict.fromkeys(UNARY_MATH, fold_unary_math),
}
REWRITES: dict[type[Operation], Rewrite] = {
    arith.ExtSIOp: rewrite_extension,
    arith.ExtUIOp: rewrite_extension,
    arith.TruncIOp: rewrite_trunci,
    arith.BitcastOp: rewrite_bitcast,
    arith.TruncFOp: rewrite_truncf,
    arith.MulfOp: rewrite_negated_operands,
    arith.DivfOp: rewrite_negated_operands,
}
