"""Folds and rewrites of `canonicalize` for integers, comparisons and selects.

    arith.addi %x, 0          -> %x                 arith.addi (addi %x, 3), 4   -> addi %x, 7
    arith.muli 3, 4           -> 12                 arith.xori (cmpi slt a, b), true -> cmpi sge a, b
    arith.cmpi sle, %x, %x    -> true               arith.select %c, 1, 0        -> extui %c

Constants of tensors take part when they are splats; chains of constants (`addi` of `addi`) are merged for scalars only.
Division by zero and shifts by the width or more are left alone: their value is not defined.
"""

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from tilework.ir import arith
from tilework.ir.arith import (
    EQ,
    EVALUATE,
    INVERSE,
    NE,
    SWAPPED,
    Evaluate,
    SelectOp,
    binary,
    compare,
    convert,
    predicate_of,
    signed,
    unsigned,
)
from tilework.ir.rewrite import attr_value, recreate
from tilework.ir.types import bit_width, element_type, i1, int_attr, is_integer, is_tensor
from tilework.transforms.folding.worklist import Driver, Fold, Rewrite, Scalar

Identity = Callable[[Operation, SSAValue, SSAValue, int | None, int], "SSAValue | Scalar | None"]


def constant_int(value: SSAValue) -> int | None:
    """The integer that `value` is known to be, signed (true is 1), or None."""
    owner = value.owner
    if type(owner) is not arith.ConstantOp:
        return None
    known = attr_value(owner.properties["value"])
    return known if isinstance(known, int) else None


def producer(value: SSAValue, *kinds: type[Operation]) -> Operation | None:
    """The op of one of the classes `kinds` that defines `value`, or None."""
    owner = value.owner
    return owner if type(owner) in kinds else None  # pyright: ignore[reportReturnType]


def partner(op: Operation | None, value: SSAValue) -> SSAValue | None:
    """The operand of a binary op beside `value`; None if `value` is no operand."""
    if op is None or value not in op._operands:
        return None
    first, second = op._operands
    return first if second is value else second


# Identities that one operand decides

DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp)
SHIFTS = (arith.ShLIOp, arith.ShRUIOp, arith.ShRSIOp)


def identity_addi(op: Operation, lhs: SSAValue, rhs: SSAValue, b: int | None, width: int) -> SSAValue | Scalar | None:
    if b == 0:
        return lhs
    for difference, other in ((lhs, rhs), (rhs, lhs)):
        if (sub := producer(difference, arith.SubiOp)) is not None and sub._operands[1] is other:
            return sub._operands[0]
    return None


def identity_subi(op: Operation, lhs: SSAValue, rhs: SSAValue, b: int | None, width: int) -> SSAValue | Scalar | None:
    if b == 0:
        return lhs
    return 0 if lhs is rhs else partner(producer(lhs, arith.AddiOp), rhs)


def is_not_of(value: SSAValue, other: SSAValue) -> bool:
    """True if `value` is ``xori other, -1``."""
    inverse = producer(value, arith.XOrIOp)
    if inverse is None or inverse.operands[0] is not other:
        return False
    mask = constant_int(inverse.operands[1])
    return mask is not None and is_all_ones(mask, bit_width(other.type))


def is_all_ones(value: int, width: int) -> bool:
    return unsigned(value, width) == (1 << width) - 1


def identity_and_or(op: Operation, lhs: SSAValue, rhs: SSAValue, b: int | None, width: int) -> SSAValue | Scalar | None:
    is_and = type(op) is arith.AndIOp
    if b is not None:
        if b == 0:
            return rhs if is_and else lhs
        if is_all_ones(b, width):
            return lhs if is_and else -1
    if lhs is rhs:
        return lhs
    if is_not_of(rhs, lhs) or is_not_of(lhs, rhs):
        return 0 if is_and else -1
    for outer, inner in ((lhs, rhs), (rhs, lhs)):
        if is_and and (nested := producer(inner, arith.AndIOp)) is not None and outer in nested.operands:
            return inner
    return None


def identity_xori(op: Operation, lhs: SSAValue, rhs: SSAValue, b: int | None, width: int) -> SSAValue | Scalar | None:
    if b == 0:
        return lhs
    if lhs is rhs:
        return 0
    found = partner(producer(lhs, arith.XOrIOp), rhs)
    return partner(producer(rhs, arith.XOrIOp), lhs) if found is None else found


def identity_extreme(
    op: Operation, lhs: SSAValue, rhs: SSAValue, b: int | None, width: int
) -> SSAValue | Scalar | None:
    """`max` and `min` of a value and itself, or with the largest or smallest integer."""
    if lhs is rhs:
        return lhs
    if b is None:
        return None
    kind = type(op)
    is_signed = kind in (arith.MaxSIOp, arith.MinSIOp)
    lowest, highest = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed else (0, (1 << width) - 1)
    b = signed(b, width) if is_signed else unsigned(b, width)
    absorbing, neutral = (highest, lowest) if kind in (arith.MaxSIOp, arith.MaxUIOp) else (lowest, highest)
    return rhs if b == absorbing else lhs if b == neutral else None


IDENTITY: dict[type[Operation], Identity] = {
    arith.AddiOp: identity_addi,
    arith.SubiOp: identity_subi,
    arith.MuliOp: lambda op, lhs, rhs, b, width: rhs if b == 0 else lhs if b == 1 else None,
    **dict.fromkeys(DIVISIONS, lambda op, lhs, rhs, b, width: lhs if b == 1 else None),
    **dict.fromkeys((arith.RemSIOp, arith.RemUIOp), lambda op, lhs, rhs, b, width: 0 if b == 1 else None),
    **dict.fromkeys(SHIFTS, lambda op, lhs, rhs, b, width: lhs if b == 0 else None),
    **dict.fromkeys((arith.AndIOp, arith.OrIOp), identity_and_or),
    arith.XOrIOp: identity_xori,
    **dict.fromkeys((arith.MaxSIOp, arith.MaxUIOp, arith.MinSIOp, arith.MinUIOp), identity_extreme),
}


def fold_binary(evaluate: Evaluate, identity: Identity) -> Fold:
    """The fold of an integer op of two operands: evaluate it, or find the operand it is equal to."""

    def fold(op: Operation) -> SSAValue | Scalar | None:
        lhs, rhs = op._operands
        b = constant_int(rhs)
        if b is None:
            return identity(op, lhs, rhs, None, 0)
        width = bit_width(lhs.type)
        known = identity(op, lhs, rhs, b, width)
        if known is None and (a := constant_int(lhs)) is not None:
            return evaluate(a, b, width)
        return known

    return fold


# Comparisons


def with_predicate(op: Operation, predicate: int) -> dict[str, object]:
    return {**op.properties, "predicate": int_attr(predicate, op.properties["predicate"].type)}  # pyright: ignore


def fold_cmpi(op: Operation) -> SSAValue | Scalar | None:
    lhs, rhs = op._operands
    if lhs is rhs:
        return int(compare(predicate_of(op), 0, 0, 1))
    if (b := constant_int(rhs)) is None:
        return None
    if (a := constant_int(lhs)) is not None:
        return int(compare(predicate_of(op), a, b, bit_width(lhs.type)))
    predicate = predicate_of(op)
    if element_type(lhs.type) == i1:
        same = (predicate == EQ and b) or (predicate == NE and not b)
        return lhs if same else None
    if predicate == NE and b == 0:  # an extended i1 is not zero: the i1 itself
        extended = producer(lhs, arith.ExtUIOp, arith.ExtSIOp)
        if extended is not None and element_type(extended._operands[0].type) == i1:
            return extended._operands[0]
    return None


def rewrite_cmpi(op: Operation, driver: Driver) -> bool:
    """Move a constant to the right."""
    lhs, rhs = op._operands
    if type(lhs.owner) is not arith.ConstantOp or type(rhs.owner) is arith.ConstantOp:
        return False
    op.properties = with_predicate(op, SWAPPED[predicate_of(op)])  # pyright: ignore[reportAttributeAccessIssue]
    return driver.set_operands(op, (rhs, lhs))


# Select


def fold_select(op: Operation) -> SSAValue | Scalar | None:
    condition, if_true, if_false = op._operands
    if if_true is if_false:
        return if_true
    if (known := constant_int(condition)) is not None:
        return if_true if known else if_false
    if condition.type == if_true.type and constant_int(if_true) == 1 and constant_int(if_false) == 0:
        return condition
    if (test := producer(condition, arith.CmpiOp)) is not None and predicate_of(test) in (EQ, NE):
        chosen, other = (if_false, if_true) if predicate_of(test) == EQ else (if_true, if_false)
        if {chosen, other} == set(test.operands):
            return chosen
    return None


def rewrite_select(op: Operation, driver: Driver) -> bool:
    condition, if_true, if_false = op._operands
    inverse = producer(condition, arith.XOrIOp)
    if inverse is not None and constant_int(inverse.operands[1]) == 1:
        return driver.set_operands(op, (inverse.operands[0], if_false, if_true))
    if (inner := producer(if_true, SelectOp)) is not None and inner.operands[0] is condition:
        return driver.set_operands(op, (condition, inner.operands[1], if_false))
    if (inner := producer(if_false, SelectOp)) is not None and inner.operands[0] is condition:
        return driver.set_operands(op, (condition, if_true, inner.operands[2]))
    result = op.results[0].type
    if condition.type == result and constant_int(if_true) == 0 and constant_int(if_false) == 1:
        ones = driver.constant(op, 1, condition.type)
        return driver.replace_with(op, binary(arith.XOrIOp, condition, ones, op.location))
    if is_integer(result) and result != i1 and constant_int(if_true) == 1 and constant_int(if_false) == 0:
        return driver.replace_with(op, convert(arith.ExtUIOp, condition, result, op.location))
    return False


# Chains of constants: (variable operand, constant) of the inner op decide the new op


def rewrite_addi(op: Operation, driver: Driver) -> bool:
    lhs, rhs = op._operands
    for negated, other in ((lhs, rhs), (rhs, lhs)):
        mul = producer(negated, arith.MuliOp)
        if mul is not None and constant_int(mul.operands[1]) == -1:
            return driver.replace_with(op, binary(arith.SubiOp, other, mul.operands[0], op.location))
    return merge_sum(op, driver)


def with_offset(op: Operation | None) -> tuple[int, SSAValue, int] | None:
    """(1 or -1, a value, an integer): `op` adds the integer to the value, or to its negative; None for other ops."""
    if type(op) not in (arith.AddiOp, arith.SubiOp) or op is None:
        return None
    (first, second), adds = op._operands, type(op) is arith.AddiOp
    if (offset := constant_int(second)) is not None:
        return 1, first, offset if adds else -offset
    offset = None if adds else constant_int(first)
    return None if offset is None else (-1, second, offset)


def merge_sum(op: Operation, driver: Driver) -> bool:
    """``(x + 3) - 4`` is ``x + -1``, ``4 - (x + 3)`` is ``1 - x``, ``(x - 3) - 4`` is ``x - 7``."""
    if is_tensor(op._operands[0].type) or (outer := with_offset(op)) is None:
        return False
    sign, variable, offset = outer
    source = producer(variable, arith.AddiOp, arith.SubiOp)
    if (inner := with_offset(source)) is None:
        return False
    total = offset + sign * inner[2]
    if sign * inner[0] < 0:
        return merge(op, driver, arith.SubiOp, inner[1], total, constant_first=True)
    if sign > 0 and type(op) is type(source) is arith.SubiOp:
        return merge(op, driver, arith.SubiOp, inner[1], -total)
    return merge(op, driver, arith.AddiOp, inner[1], total)


def rewrite_muli(op: Operation, driver: Driver) -> bool:
    lhs, rhs = op._operands
    if is_tensor(lhs.type) or (b := constant_int(rhs)) is None:
        return False
    if (inner := producer(lhs, arith.MuliOp)) is not None and (a := constant_int(inner.operands[1])) is not None:
        return merge(op, driver, arith.MuliOp, inner.operands[0], a * b)
    return False


def merge(
    op: Operation, driver: Driver, kind: type[Operation], value: SSAValue, constant: int, constant_first: bool = False
) -> bool:
    """Replace `op` by `kind` of `value` and a constant."""
    known = driver.constant(op, constant, value.type)
    operands = (known, value) if constant_first else (value, known)
    return driver.replace_with(op, binary(kind, *operands, op.location))


# Bit operations on booleans and extended values


def rewrite_xori(op: Operation, driver: Driver) -> bool:
    lhs, rhs = op._operands
    test = producer(lhs, arith.CmpiOp)
    if test is not None and constant_int(rhs) == 1:
        properties = with_predicate(test, INVERSE[predicate_of(test)])
        return driver.replace_with(op, recreate(test, properties=properties))  # pyright: ignore[reportArgumentType]
    return rewrite_bits_of_extension(op, driver)


def rewrite_bits_of_extension(op: Operation, driver: Driver) -> bool:
    """``andi (extui a), (extui b)`` is ``extui (andi a, b)``; the same for `or`, `xor` and for `extsi`."""
    lhs, rhs = (producer(value, arith.ExtUIOp, arith.ExtSIOp) for value in op._operands)
    if lhs is None or rhs is None or type(lhs) is not type(rhs):
        return False
    a, b = lhs._operands[0], rhs._operands[0]
    if a.type != b.type:
        return False
    narrow = recreate(op, operands=(a, b), result_types=(a.type,))
    wide = recreate(lhs, operands=(narrow.results[0],))
    return driver.replace_with(op, narrow, wide)


FOLDS: dict[type[Operation], Fold] = {
    **{kind: fold_binary(evaluate, IDENTITY[kind]) for kind, evaluate in EVALUATE.items()},
    arith.CmpiOp: fold_cmpi,
    SelectOp: fold_select,
}
REWRITES: dict[type[Operation], Rewrite] = {
    arith.AddiOp: rewrite_addi,
    arith.SubiOp: merge_sum,
    arith.MuliOp: rewrite_muli,
    arith.XOrIOp: rewrite_xori,
    arith.AndIOp: rewrite_bits_of_extension,
    arith.OrIOp: rewrite_bits_of_extension,
    arith.CmpiOp: rewrite_cmpi,
    SelectOp: rewrite_select,
}
