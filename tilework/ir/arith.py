"""The `arith` dialect: arithmetic on scalars and, element by element, on tensors.

    %y = arith.addf %a, %b fastmath<contract> : f32
    %m = arith.cmpi slt, %a, %b {tt.constancy = dense<16> : tensor<1xi32>} : tensor<64xi32>
    %z = arith.sitofp %i : i32 to f32

Most ops differ from others in their name only: a family declares the fields and the form, and `declare_op` the name.
The functions at the end build ops of any family:

    binary(AddiOp, a, b, loc)      cmpi("slt", a, b, loc)      convert(ExtFOp, x, f32, loc)
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Data, Dialect, Operation, SSAValue
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.attr_text import Codec, OpPrinter, keywords, same
from tilework.ir.constraints import BOOL_LIKE, FLOAT_LIKE, Elementwise, Kind, SameType, is_float, like
from tilework.ir.create import create_op
from tilework.ir.declare import Op, declare_op, dialect_ops
from tilework.ir.fields import operand_def, opt_prop_def, prop_def, result_def, traits_def
from tilework.ir.form_text import attributes_text, operands_text, parse_operands, parse_types
from tilework.ir.locations import unknown
from tilework.ir.types import i1, i64, int_attr, int_property, is_integer, shape_of, with_element

if TYPE_CHECKING:
    from xdsl.parser import AttrParser, Parser
    from xdsl.printer import Printer


OpT = TypeVar("OpT", bound=Operation)


class FlagsAttr(Data[frozenset[str]]):
    """A set of flags: ``<nnan, contract>``, ``<none>``."""

    FLAGS: ClassVar[tuple[str, ...]]  # in the order of their bits
    ALL: ClassVar[str | None] = None  # the name of all flags together

    @classmethod
    def parse_parameter(cls, parser: "AttrParser") -> frozenset[str]:
        def flags() -> Sequence[str]:
            position = parser.pos
            flag = parser.parse_identifier()
            if flag == "none":
                return ()
            if flag == cls.ALL:
                return cls.FLAGS
            if flag not in cls.FLAGS:
                parser.raise_error(f"'{flag}' is no flag: {', '.join(cls.FLAGS)}", position)
            return (flag,)

        found = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, flags)
        return frozenset(flag for some in found for flag in some)

    def print_parameter(self, printer: "Printer") -> None:
        printer.print_string(self.text())

    def text(self) -> str:
        if len(self.data) == len(self.FLAGS) and self.ALL is not None:
            return f"<{self.ALL}>"
        return f"<{', '.join(flag for flag in self.FLAGS if flag in self.data) or 'none'}>"


class FastMathFlagsAttr(FlagsAttr):
    """The assumptions under which floats may be rearranged: ``#arith.fastmath<contract>``."""

    name = "arith.fastmath"
    FLAGS = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")
    ALL = "fast"


class IntegerOverflowAttr(FlagsAttr):
    """The overflows that do not happen: ``#arith.overflow<nsw>``."""

    name = "arith.overflow"
    FLAGS = ("nsw", "nuw")


NO_FAST_MATH, NO_OVERFLOW = FastMathFlagsAttr(frozenset()), IntegerOverflowAttr(frozenset())
NO_SIGNED_WRAP = IntegerOverflowAttr(frozenset({"nsw"}))


def flags_kind(keyword: str, kind: type[FlagsAttr]) -> Kind[Any]:
    """A property of flags, which the text shows after a keyword: ``fastmath<contract>``."""

    def parse(parser: "Parser") -> Attribute | None:
        return kind(kind.parse_parameter(parser)) if parser.parse_optional_keyword(keyword) else None

    codec = Codec(keyword, same, same, lambda printer, flags: f"{keyword}{flags.text()}", parse)
    return Kind(f"flags of {kind.name}", lambda value: isinstance(value, kind), codec=codec)


def predicate_kind(predicates: tuple[str, ...]) -> Kind[IntegerAttr]:
    """The keyword of a comparison, which may be quoted; its code is its index in `predicates`."""
    codec = keywords(predicates, range(len(predicates)), i64)

    def parse(parser: "Parser") -> int:
        position = parser.pos
        keyword = parser.parse_optional_str_literal() or parser.parse_identifier()
        if keyword not in predicates:
            parser.raise_error(f"'{keyword}' is no comparison: {', '.join(predicates)}", position)
        return predicates.index(keyword)

    return Kind("a predicate", lambda value: isinstance(value, IntegerAttr), codec=replace(codec, parse=parse))


def is_int_or_index(type: Attribute) -> bool:
    return is_integer(type) or isinstance(type, IndexType)


CMPI_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
CMPF_PREDICATES = tuple("false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true".split())
INTEGER_LIKE = like("an integer or index", is_int_or_index)
NUMBER_LIKE = like("a float, an integer or index", lambda type: is_float(type) or is_int_or_index(type))
FAST_MATH = flags_kind("fastmath", FastMathFlagsAttr)
OVERFLOW = flags_kind("overflow", IntegerOverflowAttr)


class ConstantOp(Op):
    """A constant scalar or tensor: ``%c = arith.constant dense<0> : tensor<4xi32>``."""

    name = "arith.constant"
    value = prop_def(Attribute)
    result = result_def()
    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        value = parser.parse_attribute()
        if not isinstance(value, CONSTANTS):
            parser.raise_error(f"{value} is no constant", position)
        return create_op(cls, (), (value.get_type(),), unknown, {"value": value}, attributes)

    def text(self, printer: OpPrinter) -> str:
        """`` {k = v} 16 : i32``."""
        extra = attributes_text(printer, self, ("value",)) if self.attributes else ""
        return f"{extra} {printer.texts.of(self.properties['value'])}"

    def verify_(self) -> None:
        value = self.properties["value"]
        if not isinstance(value, CONSTANTS) or value.get_type() != self.result.type:
            raise VerifyException(f"arith.constant of {self.result.type} cannot be {value}")


CONSTANTS = (IntegerAttr, FloatAttr, DenseIntOrFPElementsAttr)


class SelectOp(Op):
    """``cond ? a : b``, with one condition for all elements or one for each.

    ``%z = arith.select %c, %x, %y : tensor<4xi1>, tensor<4xf32>``
    """

    name = "arith.select"
    cond = operand_def(BOOL_LIKE)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Elementwise())

    @classmethod
    def make(cls, cond: SSAValue, a: SSAValue, b: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (cond, a, b), (a.type,), loc)

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        operands = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        parser.parse_punctuation(":")
        *condition, type = parse_types(parser)
        types = (condition[0] if condition else i1, type, type)
        values = parser.resolve_operands(operands, types, position)
        return create_op(cls, values, (type,), unknown, {}, attributes)

    def text(self, printer: OpPrinter) -> str:
        """The condition's type is written when it is a tensor."""
        condition, type = self.operands[0].type, printer.texts.of(self.results[0].type)
        types = type if condition == i1 else f"{printer.texts.of(condition)}, {type}"
        return f" {operands_text(printer, self.operands)}{attributes_text(printer, self)} : {types}"

    def verify_(self) -> None:
        types = [self.lhs.type, self.rhs.type, self.result.type]
        if len(set(types)) != 1:
            raise VerifyException(f"arith.select cannot choose between {types[0]} and {types[1]} as {types[2]}")
        if (shape := shape_of(self.cond.type)) and shape != shape_of(types[0]):
            raise VerifyException(f"arith.select of {types[0]} cannot have a condition of {self.cond.type}")


class IntegerBinary(Op):
    """Two integers or indices to one of the same type: ``%z = arith.andi %x, %y : i32``."""

    lhs = operand_def(INTEGER_LIKE)
    rhs = operand_def(INTEGER_LIKE)
    result = result_def(INTEGER_LIKE)
    form = "$operands {} : type($result)"
    traits = traits_def(Pure(), Elementwise(), SameType())


class OverflowBinary(IntegerBinary):
    """An op that may exclude overflow: ``%z = arith.addi %x, %y overflow<nsw> : i32``."""

    overflow_flags = opt_prop_def(OVERFLOW, default_value=NO_OVERFLOW, prop_name="overflowFlags")
    form = "$operands(? $overflow_flags) {} : type($result)"


class AddUIExtendedOp(Op):
    """The sum of unsigned integers and its carry: ``%sum, %overflow = arith.addui_extended %x, %y : i32, i1``."""

    name = "arith.addui_extended"
    lhs = operand_def(INTEGER_LIKE)
    rhs = operand_def(INTEGER_LIKE)
    sum = result_def(INTEGER_LIKE)
    overflow = result_def(BOOL_LIKE)
    form = "$operands {} : type($sum), type($overflow)"
    infer = {"lhs": "sum", "rhs": "sum"}
    traits = traits_def(Pure(), Elementwise())


class FloatBinary(Op):
    """Two floats to one of the same type: ``%z = arith.mulf %x, %y : f32``."""

    lhs = operand_def(FLOAT_LIKE)
    rhs = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    fastmath = opt_prop_def(FAST_MATH, default_value=NO_FAST_MATH)
    form = "$operands(? $fastmath) {} : type($result)"
    traits = traits_def(Pure(), Elementwise(), SameType())


class FloatUnary(Op):
    """A float to one of the same type: ``%y = arith.negf %x : f32``."""

    operand = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    fastmath = opt_prop_def(FAST_MATH, default_value=NO_FAST_MATH)
    form = "$operands(? $fastmath) {} : type($result)"
    traits = traits_def(Pure(), Elementwise(), SameType())


class CastOp(Op):
    """Convert a value to another type: ``%y = arith.extf %x : f16 to f32``."""

    input = operand_def(NUMBER_LIKE)
    result = result_def(NUMBER_LIKE)
    fastmath = opt_prop_def(FAST_MATH, default_value=NO_FAST_MATH)
    overflow_flags = opt_prop_def(OVERFLOW, default_value=NO_OVERFLOW, prop_name="overflowFlags")
    form = "$input(? $fastmath)(? $overflow_flags) {} : type($input) to type($result)"
    traits = traits_def(Pure(), Elementwise())


def compared_type(type: Attribute) -> Attribute:
    return with_element(type, i1)


class CmpiOp(Op):
    """Compare integers: ``%m = arith.cmpi slt, %a, %b : i32``."""

    name = "arith.cmpi"
    lhs = operand_def(INTEGER_LIKE)
    rhs = operand_def(INTEGER_LIKE)
    result = result_def(BOOL_LIKE)
    predicate = prop_def(predicate_kind(CMPI_PREDICATES))
    form = "$predicate, $lhs, $rhs {} : type($lhs)"
    infer = {"rhs": "lhs", "result": (compared_type, "lhs")}
    traits = traits_def(Pure(), Elementwise())


class CmpfOp(Op):
    """Compare floats: ``%m = arith.cmpf olt, %a, %b : f32``."""

    name = "arith.cmpf"
    lhs = operand_def(FLOAT_LIKE)
    rhs = operand_def(FLOAT_LIKE)
    result = result_def(BOOL_LIKE)
    predicate = prop_def(predicate_kind(CMPF_PREDICATES))
    fastmath = opt_prop_def(FAST_MATH, default_value=NO_FAST_MATH)
    form = "$predicate, $lhs, $rhs(? $fastmath) {} : type($lhs)"
    infer = {"rhs": "lhs", "result": (compared_type, "lhs")}
    traits = traits_def(Pure(), Elementwise())


AddiOp = declare_op(OverflowBinary, "arith.addi")
SubiOp = declare_op(OverflowBinary, "arith.subi")
MuliOp = declare_op(OverflowBinary, "arith.muli")
ShLIOp = declare_op(OverflowBinary, "arith.shli")
ShRSIOp = declare_op(IntegerBinary, "arith.shrsi")
ShRUIOp = declare_op(IntegerBinary, "arith.shrui")
DivSIOp = declare_op(IntegerBinary, "arith.divsi")
DivUIOp = declare_op(IntegerBinary, "arith.divui")
CeilDivSIOp = declare_op(IntegerBinary, "arith.ceildivsi")
CeilDivUIOp = declare_op(IntegerBinary, "arith.ceildivui")
FloorDivSIOp = declare_op(IntegerBinary, "arith.floordivsi")
RemSIOp = declare_op(IntegerBinary, "arith.remsi")
RemUIOp = declare_op(IntegerBinary, "arith.remui")
MaxSIOp = declare_op(IntegerBinary, "arith.maxsi")
MaxUIOp = declare_op(IntegerBinary, "arith.maxui")
MinSIOp = declare_op(IntegerBinary, "arith.minsi")
MinUIOp = declare_op(IntegerBinary, "arith.minui")
AndIOp = declare_op(IntegerBinary, "arith.andi")
OrIOp = declare_op(IntegerBinary, "arith.ori")
XOrIOp = declare_op(IntegerBinary, "arith.xori")
AddfOp = declare_op(FloatBinary, "arith.addf")
SubfOp = declare_op(FloatBinary, "arith.subf")
MulfOp = declare_op(FloatBinary, "arith.mulf")
DivfOp = declare_op(FloatBinary, "arith.divf")
RemfOp = declare_op(FloatBinary, "arith.remf")  # has the sign of the dividend
MaximumfOp = declare_op(FloatBinary, "arith.maximumf")
MaxnumfOp = declare_op(FloatBinary, "arith.maxnumf")
MinimumfOp = declare_op(FloatBinary, "arith.minimumf")
MinnumfOp = declare_op(FloatBinary, "arith.minnumf")
NegfOp = declare_op(FloatUnary, "arith.negf")
BitcastOp = declare_op(CastOp, "arith.bitcast")
IndexCastOp = declare_op(CastOp, "arith.index_cast")
ExtFOp = declare_op(CastOp, "arith.extf")
TruncFOp = declare_op(CastOp, "arith.truncf")
ExtSIOp = declare_op(CastOp, "arith.extsi")
ExtUIOp = declare_op(CastOp, "arith.extui")
TruncIOp = declare_op(CastOp, "arith.trunci")
SIToFPOp = declare_op(CastOp, "arith.sitofp")
UIToFPOp = declare_op(CastOp, "arith.uitofp")
FPToSIOp = declare_op(CastOp, "arith.fptosi")
FPToUIOp = declare_op(CastOp, "arith.fptoui")
Arith = Dialect("arith", dialect_ops("arith"), [FastMathFlagsAttr, IntegerOverflowAttr])


def binary(cls: type[OpT], lhs: SSAValue, rhs: SSAValue, loc: LocationAttr) -> OpT:
    """An op whose result has the type of its operands: ``arith.addi``, ``arith.mulf``, ``math.powf``."""
    return create_op(cls, (lhs, rhs), (lhs.type,), loc)


def unary(cls: type[OpT], x: SSAValue, loc: LocationAttr) -> OpT:
    """An op whose result has the type of its operand: ``arith.negf``, ``math.exp``."""
    return create_op(cls, (x,), (x.type,), loc)


def ternary(cls: type[OpT], a: SSAValue, b: SSAValue, c: SSAValue, loc: LocationAttr) -> OpT:
    """An op of three operands of one type: ``math.fma``."""
    return create_op(cls, (a, b, c), (a.type,), loc)


def convert(cls: type[OpT], x: SSAValue, type: Attribute, loc: LocationAttr) -> OpT:
    """A cast: ``arith.extsi``, ``arith.sitofp``, ``arith.bitcast``."""
    return create_op(cls, (x,), (type,), loc)


def predicate_properties(names: Sequence[str]) -> dict[str, dict[str, Attribute]]:
    """The property of each predicate, which is its index in `names`."""
    return {name: {"predicate": int_attr(index, i64)} for index, name in enumerate(names)}


CMPI_PROPERTIES = predicate_properties(CMPI_PREDICATES)
CMPF_PROPERTIES = predicate_properties(CMPF_PREDICATES)


def cmpi(predicate: str, a: SSAValue, b: SSAValue, loc: LocationAttr) -> CmpiOp:
    """``arith.cmpi`` with a predicate such as ``"slt"``, ``"uge"``, ``"ne"``."""
    return create_op(CmpiOp, (a, b), (with_element(a.type, i1),), loc, CMPI_PROPERTIES[predicate])


def cmpf(predicate: str, a: SSAValue, b: SSAValue, loc: LocationAttr) -> CmpfOp:
    """``arith.cmpf`` with a predicate such as ``"olt"``, ``"une"``."""
    return create_op(CmpfOp, (a, b), (with_element(a.type, i1),), loc, CMPF_PROPERTIES[predicate])


# ---- Two's-complement arithmetic on Python integers, at any bit width, and the integer ops of `arith` by it.
#
#     >>> BINARY["sdiv"](-7, 2, 32), BINARY["udiv"](-7, 2, 32), BINARY["shl"](1, 40, 32)
#     (-3, 2147483644, None)
#     >>> EVALUATE[DivSIOp](-7, 2, 32), EVALUATE[ShLIOp](1, 40, 32), compare(ULT, -1, 1, 32)
#     (-3, None, False)
#
# `BINARY` has LLVM's names. An operand may be given as its signed or as its unsigned value; a result is to be taken
# modulo ``2**width``. None marks what LLVM calls poison or undefined: division by zero, signed division that overflows,
# and a shift by the width or more. `targets/llvm/folding.py` maps the instructions of LLVM to these functions.


Evaluate = Callable[[int, int, int], int | None]  # (lhs, rhs, width) -> value


def unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def signed(value: int, width: int) -> int:
    value = unsigned(value, width)
    return value - (1 << width) if value >> (width - 1) else value


def divide_signed(lhs: int, rhs: int, width: int) -> int | None:
    """Return the quotient, rounded towards zero."""
    lhs, rhs = signed(lhs, width), signed(rhs, width)
    if rhs == 0 or (rhs == -1 and lhs == -(1 << (width - 1))):
        return None
    quotient = abs(lhs) // abs(rhs)
    return quotient if (lhs < 0) == (rhs < 0) else -quotient


def remainder_signed(lhs: int, rhs: int, width: int) -> int | None:
    quotient = divide_signed(lhs, rhs, width)
    return None if quotient is None else signed(lhs, width) - quotient * signed(rhs, width)


BINARY: dict[str, Evaluate] = {
    "add": lambda a, b, w: a + b,
    "sub": lambda a, b, w: a - b,
    "mul": lambda a, b, w: a * b,
    "udiv": lambda a, b, w: unsigned(a, w) // unsigned(b, w) if b else None,
    "urem": lambda a, b, w: unsigned(a, w) % unsigned(b, w) if b else None,
    "sdiv": divide_signed,
    "srem": remainder_signed,
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shl": lambda a, b, w: a << b if 0 <= b < w else None,
    "lshr": lambda a, b, w: unsigned(a, w) >> b if 0 <= b < w else None,
    "ashr": lambda a, b, w: signed(a, w) >> b if 0 <= b < w else None,
    "umin": lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
    "umax": lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    "smin": lambda a, b, w: min(signed(a, w), signed(b, w)),
    "smax": lambda a, b, w: max(signed(a, w), signed(b, w)),
}


EQ, NE, SLT, SLE, SGT, SGE, ULT, ULE, UGT, UGE = range(10)  # predicates of arith.cmpi
SWAPPED = {EQ: EQ, NE: NE, SLT: SGT, SLE: SGE, SGT: SLT, SGE: SLE, ULT: UGT, ULE: UGE, UGT: ULT, UGE: ULE}
INVERSE = {EQ: NE, NE: EQ, SLT: SGE, SLE: SGT, SGT: SLE, SGE: SLT, ULT: UGE, ULE: UGT, UGT: ULE, UGE: ULT}


def divide_up(lhs: int, rhs: int) -> int:
    return -(-lhs // rhs)


def divide_rounded(lhs: int, rhs: int, width: int, upwards: bool) -> int | None:
    """Return the signed quotient, rounded down or `upwards`."""
    if divide_signed(lhs, rhs, width) is None:
        return None
    lhs, rhs = signed(lhs, width), signed(rhs, width)
    return divide_up(lhs, rhs) if upwards else lhs // rhs


EVALUATE: dict[type[Operation], Evaluate] = {
    AddiOp: BINARY["add"],
    SubiOp: BINARY["sub"],
    MuliOp: BINARY["mul"],
    DivSIOp: BINARY["sdiv"],
    RemSIOp: BINARY["srem"],
    DivUIOp: BINARY["udiv"],
    RemUIOp: BINARY["urem"],
    FloorDivSIOp: lambda a, b, w: divide_rounded(a, b, w, False),
    CeilDivSIOp: lambda a, b, w: divide_rounded(a, b, w, True),
    CeilDivUIOp: lambda a, b, w: divide_up(unsigned(a, w), unsigned(b, w)) if b else None,
    AndIOp: BINARY["and"],
    OrIOp: BINARY["or"],
    XOrIOp: BINARY["xor"],
    ShLIOp: BINARY["shl"],
    ShRUIOp: BINARY["lshr"],
    ShRSIOp: BINARY["ashr"],
    MaxSIOp: BINARY["smax"],
    MinSIOp: BINARY["smin"],
    MaxUIOp: BINARY["umax"],
    MinUIOp: BINARY["umin"],
}
COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)  # unsigned ones are 4 higher


def compare(predicate: int, lhs: int, rhs: int, width: int) -> bool:
    if predicate >= ULT:
        return COMPARE[predicate - 4](unsigned(lhs, width), unsigned(rhs, width))
    return COMPARE[predicate](signed(lhs, width), signed(rhs, width))


def predicate_of(op: Operation) -> int:
    """The code of the predicate of an integer or float comparison."""
    return int_property(op, "predicate")
