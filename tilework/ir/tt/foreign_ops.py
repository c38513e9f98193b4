"""`tt` ops that run code from elsewhere on each element: device libraries, assembly, a scalar region."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Self

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, MemoryWriteEffect, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import (
    ANY,
    I1_PROPERTY,
    I32_PROPERTY,
    TENSOR,
    Elementwise,
    OneShape,
    SameEncoding,
    SameShape,
    TensorSize,
    names,
    verify_returns,
)
from tilework.ir.tt.forms import ReturnForm, SignatureForm
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_types,
    parse_values_with_types,
    print_attr_dict,
    print_types,
    print_values_with_types,
)
from tilework.ir.types import (
    element_type,
    i1,
    i32,
    int_attr,
    shape_of,
    string_attr,
)


@cache
def extern_properties(libname: str, libpath: str, symbol: str, pure: bool) -> Attributes:
    return {
        "libname": string_attr(libname),
        "libpath": string_attr(libpath),
        "symbol": string_attr(symbol),
        "pure": int_attr(pure, i1),
    }


@irdl_op_definition
class ExternElementwiseOp(SignatureForm):
    """Call a device-library function on each element.

    ``%y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32``
    """

    name = "tt.extern_elementwise"
    srcs = var_operand_def(ANY)
    result = result_def(ANY)
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = prop_def(I1_PROPERTY)
    traits = traits_def(Elementwise(), OneShape(), SameEncoding(), TensorSize())

    @classmethod
    def make(
        cls,
        args: Sequence[SSAValue],
        type: Attribute,
        libname: str,
        libpath: str,
        symbol: str,
        pure: bool,
        loc: LocationAttr,
    ) -> Self:
        properties = extern_properties(libname, libpath, symbol, pure)
        return create_op(cls, args, (type,), loc, properties)


@cache
def asm_properties(asm_string: str, constraints: str, pure: bool, packed_element: int) -> Attributes:
    return {
        "asm_string": string_attr(asm_string),
        "constraints": string_attr(constraints),
        "pure": int_attr(pure, i1),
        "packed_element": int_attr(packed_element, i32),
    }


@irdl_op_definition
class ElementwiseInlineAsmOp(IRDLOperation):
    """Run assembly on each element, or on `packed_element` of them at once.

    ``%y = tt.elementwise_inline_asm "..." {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : T -> U``
    """

    name = "tt.elementwise_inline_asm"
    args = var_operand_def(ANY)
    result = var_result_def(ANY)
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(I1_PROPERTY)
    packed_element = prop_def(I32_PROPERTY)
    traits = traits_def(Elementwise(), OneShape(), SameEncoding(), TensorSize())

    @classmethod
    def make(
        cls,
        args: Sequence[SSAValue],
        types: Sequence[Attribute],
        asm_string: str,
        constraints: str,
        pure: bool,
        packed_element: int,
        loc: LocationAttr,
    ) -> Self:
        properties = asm_properties(asm_string, constraints, pure, packed_element)
        return create_op(cls, args, types, loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        asm_string = string_attr(parser.parse_str_literal())
        properties, attributes = parse_attr_dict(cls, parser)
        operands = parse_values_with_types(parser)
        parser.parse_punctuation("->")
        return cls.create(
            operands=operands,
            result_types=parse_types(parser),
            properties={"asm_string": asm_string, **properties},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.properties["asm_string"])
        print_attr_dict(self, printer, ("asm_string",))
        print_values_with_types(printer, self.operands)
        printer.print_string(" -> ")
        print_types(printer, [result.type for result in self.results])

    def verify_(self) -> None:
        packed = self.packed_element.value.data
        if packed < 1:
            raise VerifyException(f"packed_element must be positive, got {packed}")
        if self.operands and (shape := shape_of(self.operands[0].type)):
            if (count := prod(shape)) % packed:
                raise VerifyException(
                    f"number of input elements {count} must be a multiple of the op's packed_element attribute, {packed}"
                )


@irdl_op_definition
class MapElementwiseReturnOp(ReturnForm):
    """The results of one call of the region of `tt.map_elementwise`: ``tt.map_elementwise.return %r : f32``."""

    name = "tt.map_elementwise.return"
    result = var_operand_def()
    traits = traits_def(Pure(), IsTerminator(), TensorSize())


@cache
def pack_property(pack: int) -> Attributes:
    return {"pack": int_attr(pack, i32)}


@irdl_op_definition
class MapElementwiseOp(IRDLOperation):
    """Run a scalar region on each element, or on `pack` of them at once.

    The region's arguments are the elements of each operand, `pack` per operand; it returns `pack` per result.
    """

    name = "tt.map_elementwise"
    srcs = var_operand_def(TENSOR)
    result = var_result_def(TENSOR)
    pack = prop_def(I32_PROPERTY)
    scalar_op = region_def()
    traits = traits_def(RecursiveMemoryEffect(), SameShape(), SameEncoding(), TensorSize())

    @classmethod
    def make(
        cls, args: Sequence[SSAValue], types: Sequence[Attribute], pack: int, region: Region, loc: LocationAttr
    ) -> Self:
        return cls.create(
            operands=args, result_types=types, properties=pack_property(pack), regions=(region,), location=loc
        )

    def verify_(self) -> None:
        pack = self.pack.value.data
        if pack < 1 or pack & (pack - 1):
            raise VerifyException(f"pack must be a power of two, got {pack}")
        entry = self.regions[0].blocks.first
        if entry is None:
            raise VerifyException("tt.map_elementwise needs a region with a block")
        expected = [element_type(v.type) for v in self.operands for _ in range(pack)]
        if (found := [arg.type for arg in entry.args]) != expected:
            raise VerifyException(f"region arguments must be {names(expected)}, got {names(found)}")
        for inner in self.regions[0].walk():
            if inner.has_trait(MemoryWriteEffect):
                raise VerifyException(f"Stores are not supported inside map_elementwise: {inner.name}")
        expected = [element_type(v.type) for v in self.results for _ in range(pack)]
        verify_returns(self, expected, MapElementwiseReturnOp)
