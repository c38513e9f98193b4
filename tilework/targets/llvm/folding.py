"""Fold while building: constants, and identities such as x + 0.

    fold_binary("add", constant(i8, 200), constant(i8, 100))  ->  i8 44      (modulo 256)
    identity("mul", x, constant(i32, 0))                      ->  i32 0

Integers are exact modulo their width; floating-point results are those of one IEEE operation in the type (computed
in f64 and rounded once more, which is exact for + - * / sqrt since f64 has more than twice the precision of the
others). What LLVM calls poison or undefined (division by zero, a shift by the width) is never folded. A NaN result is
the quiet NaN.
"""

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilework.ir import arith
from tilework.numerics import formats
from tilework.targets.llvm.types import FORMATS, Type, i1
from tilework.targets.llvm.values import Value, constant, lanes_constant, lanes_of, round_float, signed

if TYPE_CHECKING:
    from fractions import Fraction

Scalar = Any


def lanewise(type: Type, rule: Callable[..., Scalar | None], *args: Value) -> Value | None:
    """Apply a rule on Python values to constants: once for splats, else lane by lane; None if it declines a lane."""
    if all(arg.constant.__class__ is not tuple for arg in args):
        result = rule(*[arg.constant for arg in args])
        return None if result is None else constant(type, result)
    results = [rule(*lane) for lane in zip(*(lanes_of(arg) for arg in args))]
    return None if None in results else lanes_constant(type, results)


def quiet(value: float) -> float:
    """`value` with one NaN on every host: inf - inf has a sign on x86-64."""
    return value if value == value else math.nan


def float_division(a: float, b: float) -> float:
    if b != 0.0:
        return quiet(a / b)
    return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def larger(a: float, b: float) -> float:
    """maximum: NaN wins, +0 is above -0."""
    if a != a or b != b:
        return math.nan
    return (b if math.copysign(1.0, a) < 0 else a) if a == b else max(a, b)


def smaller(a: float, b: float) -> float:
    if a != a or b != b:
        return math.nan
    return (a if math.copysign(1.0, a) < 0 else b) if a == b else min(a, b)


FLOAT: dict[str, Callable[[float, float], float]] = {
    "fadd": lambda a, b: quiet(a + b),
    "fsub": lambda a, b: quiet(a - b),
    "fmul": lambda a, b: quiet(a * b),
    "fdiv": float_division,
    "maximum": larger,
    "minimum": smaller,
    "maxnum": lambda a, b: b if a != a else a if b != b else larger(a, b),
    "minnum": lambda a, b: b if a != a else a if b != b else smaller(a, b),
    "copysign": math.copysign,
}


def fold_binary(op: str, a: Value, b: Value) -> Value | None:
    """The constant `a op b`, or None where it must be left to run time."""
    scalar = a.type.scalar
    if (whole := arith.BINARY.get(op)) is not None:
        return lanewise(a.type, lambda x, y: whole(x, y, scalar.bits), a, b)
    rule = FLOAT.get(op)
    return None if rule is None else lanewise(a.type, rule, a, b)


def round_fraction(type: Type, exact: "Fraction", zero: float) -> float:
    """An exact value rounded once to `type`; `zero` is the signed zero to use for 0."""
    if exact == 0:
        return zero
    return formats.round_fraction(exact, FORMATS[type])


def fold_fma(a: Value, b: Value, c: Value) -> Value | None:
    """a * b + c with one rounding."""
    from fractions import Fraction  # lazily: constants are seldom multiplied and added

    scalar = a.type.scalar

    def rule(x: float, y: float, z: float) -> float:
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            return quiet(x * y + z) if not math.isinf(z) or not (math.isfinite(x) and math.isfinite(y)) else z
        product = math.copysign(1.0, x) * math.copysign(1.0, y)
        exact = Fraction(x) * Fraction(y)
        zero = z if exact == 0 and z != 0 else (math.copysign(0.0, product) + z if exact == 0 else 0.0)
        return round_fraction(scalar, exact + Fraction(z), zero)

    return lanewise(a.type, rule, a, b, c)


def _is_float(value: Value, operand: float) -> bool:
    known = value.constant
    return known.__class__ is float and known == operand and math.copysign(1.0, known) == math.copysign(1.0, operand)


def identity(op: str, a: Value, b: Value) -> Value | None:
    """`a op b` when it is one of the operands or a constant, whatever the other one is."""
    known = b.constant
    if known.__class__ is int:
        if known == 0:
            if op in ("add", "sub", "or", "xor", "shl", "lshr", "ashr", "umax"):
                return a
            return b if op in ("mul", "and", "umin") else None
        if known == 1:
            if op in ("mul", "udiv", "sdiv"):
                return a
            if op in ("urem", "srem"):
                return constant(a.type, 0)
        if known == a.type.scalar.mask:
            if op in ("and", "umin"):
                return a
            return b if op in ("or", "umax") else None
    elif known.__class__ is float:
        if op in ("fmul", "fdiv"):
            return a if known == 1.0 else None
        if op == "fadd":
            return a if _is_float(b, -0.0) else None
        if op == "fsub":
            return a if _is_float(b, 0.0) else None
    if (
        a.constant.__class__ is int
        and a.constant == 0
        and op in ("shl", "lshr", "ashr", "udiv", "urem", "sdiv", "srem")
    ):
        return a
    return None


SAME: dict[str, int | None] = {"sub": 0, "xor": 0, "and": None, "or": None}
SAME |= dict.fromkeys(("umin", "umax", "smin", "smax", "maximum", "minimum"))


def same_operands(op: str, a: Value) -> Value | None:
    """`a op a` for integers: 0, or `a` itself."""
    if op not in SAME:
        return None
    return a if SAME[op] is None else constant(a.type, SAME[op])


ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
TRUE_IF_EQUAL = frozenset({"eq", "ule", "uge", "sle", "sge"})
SYMMETRIC = ("eq", "ne", "oeq", "one", "ueq", "une", "ord", "uno", "true", "false")
SWAPPED = {name: name for name in SYMMETRIC} | {
    prefix + a: prefix + b for prefix in "uso" for a, b in [("lt", "gt"), ("le", "ge"), ("gt", "lt"), ("ge", "le")]
}


def fold_compare(predicate: str, a: Value, b: Value) -> Value | None:
    """icmp of two integer constants or fcmp of two floating-point ones."""
    scalar, result = a.type.scalar, a.type.with_scalar(i1)
    if scalar.kind == "int":
        compare = ORDERS[predicate if predicate in ORDERS else predicate[1:]]
        if predicate[0] != "s":
            return lanewise(result, lambda x, y: int(compare(x, y)), a, b)
        return lanewise(result, lambda x, y: int(compare(signed(scalar, x), signed(scalar, y))), a, b)
    if scalar.kind != "float" or predicate in ("true", "false"):
        return None

    def rule(x: float, y: float) -> int:
        unordered = x != x or y != y
        if predicate in ("ord", "uno"):
            return int(unordered == (predicate == "uno"))
        return int(predicate[0] == "u") if unordered else int(ORDERS[predicate[1:]](x, y))

    return lanewise(result, rule, a, b)


def range_of(op: str, least: int, greatest: int, b: Value) -> tuple[int, int] | None:
    """The range of `a op b` for a range of `a`, none of it negative; None where nothing simple is known.

    >>> range_of("lshr", 0, 255, constant(i32, 8)), range_of("urem", 32, 39, constant(i32, 16))
    ((0, 0), (0, 7))
    """
    operand, bits = b.constant, b.type.bits
    if op != "and" and operand >> (bits - 1):
        return None
    if op in ("and", "or", "xor"):
        # these bits may be anything, the others are those of both ends
        free = (1 << (least ^ greatest).bit_length()) - 1
        found = arith.BINARY[op](least & ~free, operand, bits)
        assert found is not None
        if op == "and":
            is_whole = is_moved(op, least, greatest, b)
            return (found | least & free, found | greatest & free) if is_whole else (found, found | free & operand)
        return (found, found | free) if op == "or" else (found & ~free, found | free)
    if op in ("urem", "srem"):
        if is_moved(op, least, greatest, b):
            return least % operand, greatest % operand
        return (0, operand - 1) if operand else None
    if op in ("lshr", "ashr", "shl"):
        if operand >= bits:
            return None
        return (least << operand, greatest << operand) if op == "shl" else (least >> operand, greatest >> operand)
    if op in ("udiv", "sdiv"):
        return (least // operand, greatest // operand) if operand else None
    return (least * operand, greatest * operand) if op == "mul" else None


def is_moved(op: str, least: int, greatest: int, b: Value) -> bool:
    """Return True if a remainder or some low bits are, for all of a range, the value less one and the same
    constant.
    """
    operand = b.constant
    if op == "and":
        return not ((1 << (least ^ greatest).bit_length()) - 1) & ~operand
    return op in ("urem", "srem") and 0 < operand < 1 << (b.type.bits - 1) and least // operand == greatest // operand


def compare_range(predicate: str, least: int, greatest: int, b: Value) -> bool | None:
    """The result of icmp for every value of a non-negative range; None if it depends on the value.

    >>> compare_range("slt", 96, 127, constant(i32, 96)), compare_range("slt", 64, 127, constant(i32, 96))
    (False, None)
    """
    operand = signed(b.type, b.constant) if predicate[0] == "s" else b.constant
    if predicate in ("eq", "ne"):
        if not least <= operand <= greatest:
            return predicate == "ne"
        return predicate == "eq" if least == greatest else None
    order = ORDERS[predicate[1:]]
    found = order(least, operand)
    return found if found == order(greatest, operand) else None


def compare_ranges(predicate: str, first: tuple[int, int], second: tuple[int, int]) -> bool | None:
    """The result of icmp for all values of two non-negative ranges; None if it depends on them.

    >>> compare_ranges("sle", (0, 7), (8, 15)), compare_ranges("ugt", (0, 7), (7, 9))
    (True, False)
    """
    if predicate in ("eq", "ne"):
        return predicate == "ne" if first[1] < second[0] or second[1] < first[0] else None
    order = ORDERS[predicate[1:]]
    found = order(first[1], second[0])
    return found if found == order(first[0], second[1]) else None


def fold_unary(name: str, a: Value) -> Value | None:
    """Intrinsics of one constant."""
    rule = UNARY.get(name)
    if rule is None:
        return None
    return lanewise(a.type, lambda x: rule(a.type.scalar, x), a)


def whole(rule: Callable[[float], int]) -> Callable[[Type, float], float]:
    """A rounding to an integer that keeps the sign of zero, infinities and NaN."""
    return lambda t, x: math.copysign(float(rule(x)), x) if math.isfinite(x) else x


def float_root(t: Type, x: float) -> float:
    return math.nan if x != x or x < 0 else round_float(t, math.sqrt(x)) if x else x


UNARY: dict[str, Callable[[Type, Any], Any]] = {
    "fneg": lambda t, x: -x,
    "fabs": lambda t, x: abs(x),
    "floor": whole(math.floor),
    "ceil": whole(math.ceil),
    "trunc": whole(math.trunc),
    "roundeven": whole(round),
    "round": whole(lambda x: math.floor(abs(x)) + (abs(x) - math.floor(abs(x)) >= 0.5)),
    "sqrt": float_root,
    "ctpop": lambda t, x: x.bit_count(),
    "ctlz": lambda t, x: t.bits - x.bit_length(),
    "cttz": lambda t, x: t.bits if x == 0 else (x & -x).bit_length() - 1,
    "bitreverse": lambda t, x: int(f"{x:0{t.bits}b}"[::-1], 2),
    "abs": lambda t, x: abs(signed(t, x)),
}
