"""`tt` ops that make tensors or change their shape; none computes on the elements."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Self

from xdsl.dialects.builtin import LocationAttr, NoneAttr, TensorType, UnitAttr
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
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import I32_ARRAY, I32_PROPERTY, SCALAR, TENSOR, SameElement, SameEncoding, TensorSize
from tilework.ir.tt.forms import ConversionForm, ConversionOp
from tilework.ir.tt.inference import (
    expanded_type,
    half_type,
    joined_type,
    transposed_type,
    verify_joined,
    verify_reshaped,
    verify_result,
)
from tilework.ir.tt.text_parts import (
    UNIT,
    Attributes,
    is_true,
    parse_attr_dict,
    parse_conversion_type,
    parse_type,
    print_attr_dict,
    print_conversion_type,
    print_operands,
    print_type,
)
from tilework.ir.types import (
    array_values,
    element_type,
    i32,
    i32_array,
    int_attr,
    shape_of,
    tensor_type,
)


@irdl_op_definition
class SplatOp(ConversionOp):
    """Copy one scalar into every element: ``%t = tt.splat %x : f32 -> tensor<128xf32>``."""

    name = "tt.splat"
    src = operand_def(SCALAR)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        scalar, element = self.src.type, element_type(self.result.type)
        if scalar != element:
            raise VerifyException(
                f"requires the same element type for all operands and results, got {scalar}, {element}"
            )


@irdl_op_definition
class UnsplatOp(IRDLOperation):
    """The only element of a tensor: ``%x = tt.unsplat %t : tensor<1xf32>``."""

    name = "tt.unsplat"
    src = operand_def(TENSOR)
    result = result_def(SCALAR)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (src,), (element_type(src.type),), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        src = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        type = parse_type(parser)
        operand = parser.resolve_operand(src, type)
        return cls.create(
            operands=(operand,), result_types=(element_type(type),), properties=properties, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        print_type(printer, self.operands[0].type)

    def verify_(self) -> None:
        if prod(shape_of(self.src.type)) != 1:
            raise VerifyException(f"tt.unsplat needs exactly one element, but got {self.src.type}")
        if (element := element_type(self.src.type)) != self.result.type:
            raise VerifyException(f"tt.unsplat of {element} cannot give {self.result.type}")


@cache
def axis_property(axis: int) -> Attributes:
    """The `axis` property of any op."""
    return {"axis": int_attr(axis, i32)}


@irdl_op_definition
class ExpandDimsOp(ConversionForm):
    """Insert a unit dimension: ``%y = tt.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>``."""

    name = "tt.expand_dims"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    axis = prop_def(I32_PROPERTY)
    traits = traits_def(Pure(), SameElement(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, axis: int, loc: LocationAttr) -> Self:
        type = expanded_type(src.type, axis)  # pyright: ignore[reportArgumentType]
        return create_op(cls, (src,), (type,), loc, axis_property(axis))

    def verify_(self) -> None:
        source, result, axis = shape_of(self.src.type), shape_of(self.result.type), self.axis.value.data
        if not 0 <= axis <= len(source):
            raise VerifyException(f"axis {axis} is out of range for {self.src.type}")
        if result != (*source[:axis], 1, *source[axis:]):
            raise VerifyException(f"tt.expand_dims of {self.src.type} at axis {axis} cannot give {self.result.type}")
        verify_result(self.result.type, expanded_type, self.src.type, axis)


RESHAPE_FLAGS = ("allow_reorder", "efficient_layout")


@cache
def reshape_properties(allow_reorder: bool, efficient_layout: bool) -> Attributes:
    properties: Attributes = {}
    if allow_reorder:
        properties["allow_reorder"] = UNIT
    if efficient_layout:
        properties["efficient_layout"] = UNIT
    return properties


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The same elements in another shape, in row-major order unless ``allow_reorder``.

    ``%y = tt.reshape %x allow_reorder : tensor<64xf32> -> tensor<8x8xf32>``
    """

    name = "tt.reshape"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    traits = traits_def(Pure(), SameElement(), TensorSize())

    @classmethod
    def make(
        cls,
        src: SSAValue,
        type: Attribute,
        loc: LocationAttr,
        allow_reorder: bool = False,
        efficient_layout: bool = False,
    ) -> Self:
        properties = reshape_properties(allow_reorder, efficient_layout)
        return create_op(cls, (src,), (type,), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Also reads the older ``{allow_reorder = true}``."""
        src = parser.parse_unresolved_operand()
        flags = {name: parser.parse_optional_keyword(name) is not None for name in RESHAPE_FLAGS}
        properties, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        operand = parser.resolve_operand(src, source)
        flags = {name: flag or is_true(properties.get(name)) for name, flag in flags.items()}
        return cls.create(
            operands=(operand,),
            result_types=(result,),
            properties=reshape_properties(**flags),
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        for name in RESHAPE_FLAGS:
            if name in self.properties:
                printer.print_string(f" {name}")
        print_attr_dict(self, printer, RESHAPE_FLAGS)
        print_conversion_type(printer, self.operands[0].type, self.results[0].type)

    def verify_(self) -> None:
        source, result = self.src.type, self.result.type
        assert isinstance(source, TensorType) and isinstance(result, TensorType)
        if prod(shape_of(source)) != prod(shape_of(result)):
            raise VerifyException(f"number of src and dst elements of reshape must be the same: {source}, {result}")
        if isinstance(source.encoding, NoneAttr) != isinstance(result.encoding, NoneAttr):
            raise VerifyException(
                "Op requires that either (a) src and dst both have encodings, or (b) neither does.  "
                f"Got {source} and {result}"
            )
        if self.allow_reorder is None:
            verify_reshaped(source, result)


@irdl_op_definition
class BroadcastOp(ConversionOp):
    """Repeat along dimensions of size 1: ``%y = tt.broadcast %x : tensor<1x8xf32> -> tensor<4x8xf32>``."""

    name = "tt.broadcast"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), SameElement(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        source, result = shape_of(self.src.type), shape_of(self.result.type)
        if len(source) != len(result):
            raise VerifyException(f"rank of source must be same as rank of result: {self.src.type}, {self.result.type}")
        for axis, (before, after) in enumerate(zip(source, result, strict=True)):
            if before not in (1, after):
                raise VerifyException(
                    f"Different dimensions at index {axis} between source and result.  "
                    f"Broadcast requires the source dimension to be 1. Got {before} and {after}"
                )


@irdl_op_definition
class CatOp(ConversionForm):
    """Concatenate, in an order that is not specified: ``%z = tt.cat %x, %y : tensor<8xf32> -> tensor<16xf32>``."""

    name = "tt.cat"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(NoMemoryEffect(), SameElement(), TensorSize())

    @classmethod
    def make(cls, lhs: SSAValue, rhs: SSAValue, type: Attribute, loc: LocationAttr) -> Self:
        return create_op(cls, (lhs, rhs), (type,), loc)

    def verify_(self) -> None:
        lhs, rhs, result = (shape_of(value.type) for value in (self.lhs, self.rhs, self.result))
        if not lhs or lhs != rhs or result != (lhs[0] + rhs[0], *lhs[1:]):
            raise VerifyException(
                f"tt.cat of {self.lhs.type} and {self.rhs.type} along axis 0 cannot give {self.result.type}"
            )


@irdl_op_definition
class JoinOp(ConversionForm):
    """Pair the elements in a new last dimension: ``%z = tt.join %x, %y : tensor<8xf32> -> tensor<8x2xf32>``."""

    name = "tt.join"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), SameElement(), TensorSize())

    @classmethod
    def make(cls, lhs: SSAValue, rhs: SSAValue, loc: LocationAttr) -> Self:
        type = joined_type(lhs.type)  # pyright: ignore[reportArgumentType]
        return create_op(cls, (lhs, rhs), (type,), loc)

    def verify_(self) -> None:
        if self.lhs.type != self.rhs.type or shape_of(self.result.type) != (*shape_of(self.lhs.type), 2):
            raise VerifyException(f"tt.join of {self.lhs.type} and {self.rhs.type} cannot give {self.result.type}")
        verify_joined(self.lhs.type, self.result.type)


@irdl_op_definition
class SplitOp(ConversionForm):
    """Undo a join: ``%x, %y = tt.split %z : tensor<8x2xf32> -> tensor<8xf32>``."""

    name = "tt.split"
    src = operand_def(TENSOR)
    out_lhs = result_def(TENSOR)
    out_rhs = result_def(TENSOR)
    traits = traits_def(Pure(), SameElement(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, loc: LocationAttr) -> Self:
        type = half_type(src.type)  # pyright: ignore[reportArgumentType]
        return create_op(cls, (src,), (type, type), loc)

    def verify_(self) -> None:
        source = shape_of(self.src.type)
        if not source or source[-1] != 2:
            raise VerifyException(f"last dimension of input tensor must be 2: {self.src.type}")
        if self.out_lhs.type != self.out_rhs.type or shape_of(self.out_lhs.type) != source[:-1]:
            raise VerifyException(
                f"tt.split of {self.src.type} cannot give {self.out_lhs.type} and {self.out_rhs.type}"
            )
        verify_result(self.out_lhs.type, half_type, self.src.type)


@cache
def order_property(order: tuple[int, ...]) -> Attributes:
    return {"order": i32_array(*order)}


@irdl_op_definition
class TransOp(ConversionForm):
    """Permute dimensions; dimension i of the result is dimension ``order[i]`` of the source.

    ``%y = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>``
    """

    name = "tt.trans"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    order = prop_def(I32_ARRAY)
    traits = traits_def(Pure(), SameElement(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, order: Sequence[int], loc: LocationAttr) -> Self:
        order = tuple(order)
        type = transposed_type(src.type, order)  # pyright: ignore[reportArgumentType]
        return create_op(cls, (src,), (type,), loc, order_property(order))

    def verify_(self) -> None:
        order, shape = array_values(self.order), shape_of(self.src.type)
        if len(order) != len(shape):
            raise VerifyException(f"order must have the same size as the rank of the operand and result: {list(order)}")
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(f"order must be a permutation of [0, ..., rank - 1], got {list(order)}")
        if shape_of(self.result.type) != tuple(shape[axis] for axis in order):
            raise VerifyException(
                "result shape must match the permutation of the source shape: "
                f"tt.trans of {self.src.type} by {list(order)} cannot give {self.result.type}"
            )
        verify_result(self.result.type, transposed_type, self.src.type, order)


@cache
def range_properties(start: int, end: int) -> Attributes:
    return {"start": int_attr(start, i32), "end": int_attr(end, i32)}


@irdl_op_definition
class MakeRangeOp(IRDLOperation):
    """Consecutive integers: ``%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>``."""

    name = "tt.make_range"
    start = prop_def(I32_PROPERTY)
    end = prop_def(I32_PROPERTY)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(cls, start: int, end: int, loc: LocationAttr, type: Attribute | None = None) -> Self:
        type = tensor_type((end - start,), i32) if type is None else type
        return create_op(cls, (), (type,), loc, range_properties(start, end))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties, attributes = parse_attr_dict(cls, parser)
        type = parse_type(parser)
        return cls.create(result_types=(type,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attr_dict(self, printer)
        print_type(printer, self.results[0].type)

    def verify_(self) -> None:
        start, end = self.start.value.data, self.end.value.data
        shape = shape_of(self.result.type)
        if start >= end:
            raise VerifyException(f"start must be less than end: {start}, {end}")
        if len(shape) != 1:
            raise VerifyException(f"return type must be a 1D tensor: {self.result.type}")
        if element_type(self.result.type) != i32:
            raise VerifyException(f"returned tensor must have i32 elements: {self.result.type}")
        if shape[0] != end - start:
            raise VerifyException(
                f"number of elements in returned tensor, {shape[0]}, must match size of range [{start}, {end}), "
                f"which has {end - start} elements"
            )
