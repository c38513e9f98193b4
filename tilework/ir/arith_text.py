"""The forms of `arith` and `math`: xDSL's classes know scalars only, and no attributes.

%m = arith.cmpi slt, %a, %b {tt.constancy = dense<16> : tensor<1xi32>} : tensor<64xi32>
%y = arith.addf %a, %b fastmath<contract> : f32
%z = arith.sitofp %i : i32 to f32
"""

from dataclasses import replace
from typing import Any

from xdsl.dialects import arith, math
from xdsl.dialects.arith import (
    CMPF_COMPARISON_OPERATIONS,
    CMPI_COMPARISON_OPERATIONS,
    FastMathFlagsAttr,
    IntegerOverflowAttr,
)
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser

from tilework.ir.arith_ext import Arith, SelectOp
from tilework.ir.form_writer import WRITERS, attributes_text
from tilework.ir.forms import EXTRA, FORMS, Form, Property
from tilework.ir.infer import OPERANDS
from tilework.ir.property_text import Codec, OpPrinter, keywords, same
from tilework.ir.tt.memory_ops import mask_type
from tilework.ir.types import i64

FAST_MATH = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")
OVERFLOW = ("nsw", "nuw")
CASTS = frozenset(
    {
        *(arith.TruncIOp, arith.ExtUIOp, arith.ExtSIOp, arith.TruncFOp, arith.ExtFOp, arith.BitcastOp),
        *(arith.SIToFPOp, arith.UIToFPOp, arith.FPToSIOp, arith.FPToUIOp, arith.IndexCastOp),
    }
)
COMPARISONS = {arith.CmpiOp: CMPI_COMPARISON_OPERATIONS, arith.CmpfOp: CMPF_COMPARISON_OPERATIONS}
# Written by itself or by xDSL.
OTHERS = frozenset(
    {*(arith.ConstantOp, SelectOp, arith.AddUIExtendedOp, arith.MulSIExtendedOp, arith.MulUIExtendedOp, math.FPowIOp)}
)


def flags_property(key: str, word: str, order: tuple[str, ...], kind: type[Any]) -> Property:
    """``fastmath<contract>``: a word and flags, in the order of their bits."""

    def text(printer: OpPrinter, flags: Any) -> str:
        present = [flag for flag in order if flag in flags.data]
        return f"{word}<{'fast' if len(present) == len(FAST_MATH) else ', '.join(present)}>"

    def parse(parser: Parser) -> Attribute | None:
        return kind(kind.parse_parameter(parser)) if parser.parse_optional_keyword(word) else None

    return Property(key, key, Codec(word, same, same, text, parse), kind("none"), is_optional=True)


FLAGS = {
    "fastmath": flags_property("fastmath", "fastmath", FAST_MATH, FastMathFlagsAttr),
    "overflowFlags": flags_property("overflowFlags", "overflow", OVERFLOW, IntegerOverflowAttr),
}


def predicate_property(words: tuple[str, ...]) -> Property:
    """The word of a comparison, which may be quoted; its number is its place."""
    codec = keywords(words, tuple(range(len(words))), i64)

    def parse(parser: Parser) -> int:
        position = parser.pos
        word = parser.parse_optional_str_literal() or parser.parse_identifier()
        if word not in words:
            parser.raise_error(f"'{word}' is no comparison: {', '.join(words)}", position)
        return words.index(word)

    return Property("predicate", "predicate", replace(codec, parse=parse), None, is_optional=False)


def declare_form(cls: type[Operation]) -> None:
    """The form of `cls`, by what kind of op it is."""
    EXTRA[cls] = FLAGS
    if cls in CASTS:
        FORMS[cls] = Form("$input(? $fastmath)(? $overflowFlags) {} : type($input) to type($result)")
    elif cls in COMPARISONS:
        EXTRA[cls] = {**FLAGS, "predicate": predicate_property(tuple(COMPARISONS[cls]))}
        infer = {"rhs": "lhs", "result": (mask_type, "lhs")}
        FORMS[cls] = Form("$predicate, $lhs, $rhs(? $fastmath) {} : type($lhs)", infer)
    else:
        infer = {OPERANDS: "result"}
        FORMS[cls] = Form("$operands(? $fastmath)(? $overflowFlags) {} : type($result)", infer)


for op_type in {*Arith.operations, *math.Math.operations} - OTHERS:
    declare_form(op_type)


def write_constant(printer: OpPrinter, op: Operation) -> str:
    """`` {k = v} 16 : i32``."""
    extra = attributes_text(printer, op, ("value",)) if op.attributes else ""
    return f"{extra} {printer.texts.of(op.properties['value'])}"


WRITERS[arith.ConstantOp] = write_constant
