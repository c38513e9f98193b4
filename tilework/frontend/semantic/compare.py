"""Comparisons: an int1 for every element.

Numbers are not weak here: ``x < 0.5`` compares an fp16 `x` in fp32, and ``x > -1`` compares a uint32 `x` with
4294967295. Float comparisons are false if either side is a NaN, except ``!=``, which is then true.
"""

# pyright: reportGeneralTypeIssues=false

from typing import TYPE_CHECKING, NamedTuple

from tilework.frontend.semantic.operands import Operand, retype
from tilework.ir.arith_ext import cmpf, cmpi
from tilework.language import core as tl
from tilework.language.dtypes import float16, int1

if TYPE_CHECKING:
    from . import Semantic


class Predicate(NamedTuple):
    """How one operator is spelled for each kind of operand."""

    symbol: str
    signed: str
    unsigned: str
    floating: str


EQ = Predicate("==", "eq", "eq", "oeq")
NE = Predicate("!=", "ne", "ne", "une")
LT = Predicate("<", "slt", "ult", "olt")
LE = Predicate("<=", "sle", "ule", "ole")
GT = Predicate(">", "sgt", "ugt", "ogt")
GE = Predicate(">=", "sge", "uge", "oge")


class CompareMixin:
    """The six comparison operators."""

    def compare(self: "Semantic", predicate: Predicate, a: Operand, b: Operand) -> tl.tensor:
        """`a` and `b` in one type, compared element by element."""
        a, b = self.operands(a, b, predicate.symbol, weak=False)
        element = a.dtype
        builder = self.builder
        if element.is_int_signed():
            op = cmpi(predicate.signed, a.handle, b.handle, builder.loc)
        elif element.is_int_unsigned():
            op = cmpi(predicate.unsigned, a.handle, b.handle, builder.loc)
        elif element.is_fp8():
            return self.compare(predicate, self.cast(a, float16), self.cast(b, float16))
        else:
            op = cmpf(predicate.floating, a.handle, b.handle, builder.loc)
        return tl.tensor(builder.insert(op).results[0], retype(a.type, int1))

    def equal(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a == b``."""
        return self.compare(EQ, a, b)

    def not_equal(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a != b``; true for a NaN."""
        return self.compare(NE, a, b)

    def less_than(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a < b``."""
        return self.compare(LT, a, b)

    def less_equal(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a <= b``."""
        return self.compare(LE, a, b)

    def greater_than(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a > b``."""
        return self.compare(GT, a, b)

    def greater_equal(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a >= b``."""
        return self.compare(GE, a, b)
