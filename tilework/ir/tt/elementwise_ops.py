"""`tt` ops that work element by element: casts, pointer arithmetic, and operations arith and math do not have."""

from functools import cache
from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.enums import PropagateNan, RoundingMode
from tilework.ir.tt.constraints import (
    ANY,
    FLOAT_LIKE,
    I64_LIKE,
    INT_LIKE,
    PTR_LIKE,
    Elementwise,
    SameEncoding,
    SameShape,
    SameType,
    TensorSize,
    enum_property,
)
from tilework.ir.tt.forms import ConversionOp, SameTypeForm
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_clause,
    parse_conversion_type,
    parse_keyword,
    parse_type,
    print_attr_dict,
    print_conversion_type,
    print_enum,
    print_operands,
    print_type,
    print_types,
    resolve_defined,
)
from tilework.ir.types import (
    PointerType,
    bit_width,
    element_type,
    i32,
    int_attr,
    is_pointer,
)


@irdl_op_definition
class IntToPtrOp(ConversionOp):
    """Read an address as a pointer: ``%p = tt.int_to_ptr %a : i64 -> !tt.ptr<f32>``."""

    name = "tt.int_to_ptr"
    src = operand_def(I64_LIKE)
    result = result_def(PTR_LIKE)
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())


@irdl_op_definition
class PtrToIntOp(ConversionOp):
    """The address of a pointer: ``%a = tt.ptr_to_int %p : !tt.ptr<f32> -> i64``."""

    name = "tt.ptr_to_int"
    src = operand_def(PTR_LIKE)
    result = result_def(I64_LIKE)
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())


@irdl_op_definition
class BitcastOp(ConversionOp):
    """The same bits under another type: ``%i = tt.bitcast %f : f32 -> i32``."""

    name = "tt.bitcast"
    src = operand_def(ANY)
    result = result_def(ANY)
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        source, result = element_type(self.src.type), element_type(self.result.type)
        if isinstance(source, PointerType) and isinstance(result, PointerType):
            if source.address_space != result.address_space:
                raise VerifyException(f"Cannot bitcast pointer between address spaces: {source} to {result}")
        elif is_pointer(source) or is_pointer(result):
            raise VerifyException(f"Cannot bitcast pointer to non-pointer type: {source} to {result}")
        elif bit_width(source) != bit_width(result):
            raise VerifyException(
                f"Cannot bitcast data-type of size {bit_width(source)} to data-type of size {bit_width(result)}"
            )


@cache
def rounding_property(rounding: RoundingMode) -> Attributes:
    return {"rounding": int_attr(rounding, i32)}


@irdl_op_definition
class FpToFpOp(IRDLOperation):
    """Convert between floats: ``%y = tt.fp_to_fp %x, rounding = rtne : f32 -> f8E5M2``."""

    name = "tt.fp_to_fp"
    src = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    rounding = opt_prop_def(enum_property(RoundingMode))
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, type: Attribute, loc: LocationAttr, rounding: RoundingMode | None = None) -> Self:
        properties = {} if rounding is None else rounding_property(rounding)
        return create_op(cls, (src,), (type,), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        src = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        if parser.parse_optional_punctuation(","):
            parser.parse_keyword("rounding")
            parser.parse_punctuation("=")
            properties["rounding"] = parse_keyword(parser, RoundingMode)
        source, result = parse_conversion_type(parser)
        operand = parser.resolve_operand(src, source)
        return cls.create(operands=(operand,), result_types=(result,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer, ("rounding",))
        if (rounding := self.properties.get("rounding")) is not None:
            printer.print_string(", rounding = ")
            print_enum(printer, RoundingMode, rounding)
        print_conversion_type(printer, self.operands[0].type, self.results[0].type)

    def verify_(self) -> None:
        if bit_width(self.result.type) < bit_width(self.src.type) and self.rounding is None:
            raise VerifyException(f"Rounding mode is required for FP downcast: {self.src.type} to {self.result.type}")


@irdl_op_definition
class PreciseSqrtOp(SameTypeForm):
    """The correctly rounded square root: ``%y = tt.precise_sqrt %x : f32``."""

    name = "tt.precise_sqrt"
    x = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())

    @classmethod
    def make(cls, x: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (x,), (x.type,), loc)


@irdl_op_definition
class PreciseDivFOp(SameTypeForm):
    """The correctly rounded quotient: ``%z = tt.precise_divf %x, %y : f32``."""

    name = "tt.precise_divf"
    x = operand_def(FLOAT_LIKE)
    y = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())

    @classmethod
    def make(cls, x: SSAValue, y: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (x, y), (x.type,), loc)


@irdl_op_definition
class MulhiUIOp(SameTypeForm):
    """The upper half of the unsigned product: ``%z = tt.mulhiui %x, %y : i32``."""

    name = "tt.mulhiui"
    x = operand_def(INT_LIKE)
    y = operand_def(INT_LIKE)
    result = result_def(INT_LIKE)
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())

    @classmethod
    def make(cls, x: SSAValue, y: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (x, y), (x.type,), loc)


@cache
def nan_property(propagate_nan: PropagateNan) -> Attributes:
    return {"propagateNan": int_attr(propagate_nan, i32)}


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """``min(max(x, low), high)``: ``%y = tt.clampf %x, %low, %high, propagateNan = none : f32``."""

    name = "tt.clampf"
    x = operand_def(FLOAT_LIKE)
    min = operand_def(FLOAT_LIKE)
    max = operand_def(FLOAT_LIKE)
    propagate_nan = prop_def(enum_property(PropagateNan), prop_name="propagateNan")
    result = result_def(FLOAT_LIKE)
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())

    @classmethod
    def make(cls, x: SSAValue, min: SSAValue, max: SSAValue, propagate_nan: PropagateNan, loc: LocationAttr) -> Self:
        properties = nan_property(propagate_nan)
        return create_op(cls, (x, min, max), (x.type,), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = []
        for _ in range(3):
            operands.append(parser.parse_unresolved_operand())
            parser.parse_punctuation(",")
        propagate_nan = parse_clause(parser, "propagateNan", PropagateNan)
        if propagate_nan is None:
            parser.raise_error("expected propagateNan")
        properties, attributes = parse_attr_dict(cls, parser)
        type = parse_type(parser)
        return cls.create(
            operands=[parser.resolve_operand(operand, type) for operand in operands],
            result_types=(type,),
            properties={**properties, "propagateNan": propagate_nan},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_string(", propagateNan = ")
        print_enum(printer, PropagateNan, self.properties["propagateNan"])
        print_attr_dict(self, printer, ("propagateNan",))
        print_type(printer, self.results[0].type)


@irdl_op_definition
class AddPtrOp(IRDLOperation):
    """Move pointers by a number of elements: ``%q = tt.addptr %p, %i : !tt.ptr<f32>, i32``."""

    name = "tt.addptr"
    ptr = operand_def(PTR_LIKE)
    offset = operand_def(INT_LIKE)
    result = result_def(PTR_LIKE)
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())

    @classmethod
    def make(cls, ptr: SSAValue, offset: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (ptr, offset), (ptr.type,), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        ptr = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offset = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        type = parse_type(parser)
        if parser.parse_optional_punctuation(","):
            offset_value = parser.resolve_operand(offset, parser.parse_type())
        else:
            offset_value = resolve_defined(parser, offset)
        operands = (parser.resolve_operand(ptr, type), offset_value)
        return cls.create(operands=operands, result_types=(type,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        print_types(printer, (self.results[0].type, self.operands[1].type))

    def verify_(self) -> None:
        if self.ptr.type != self.result.type:
            raise VerifyException(f"tt.addptr of {self.ptr.type} cannot give {self.result.type}")
