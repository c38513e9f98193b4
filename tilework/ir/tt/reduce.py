"""`tt` ops that combine or pick elements along an axis: reductions, scans, histograms, gathers."""

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, UnitAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import INT_TENSOR, TENSOR, SameEncoding, SameShape, TensorSize, names, require_equal
from tilework.ir.tt.memory import mask_type
from tilework.ir.tt.shape import axis_property
from tilework.ir.tt.text import (
    Attributes,
    parse_attr_dict,
    parse_bracketed,
    parse_conversion_type,
    parse_operands,
    parse_signature,
    print_attr_dict,
    print_bracketed,
    print_conversion_type,
    print_operands,
    print_signature,
)
from tilework.ir.types import (
    Tensor,
    element_type,
    i1,
    i32,
    int_attr,
    shape_of,
    tensor_type,
)


@cache
def reduced_type(type: Tensor, axis: int) -> Attribute:
    """`type` without dimension `axis`; a scalar when none is left."""
    shape = shape_of(type)
    rest = (*shape[:axis], *shape[axis + 1 :])
    return tensor_type(rest, type.element_type) if rest else type.element_type


class RegionReturnOp(IRDLOperation):
    """The form of the terminator of a combining region: ``tt.name %a, %b : f32, i32``."""

    @classmethod
    def make(cls, values: Sequence[SSAValue], loc: LocationAttr) -> Self:
        return create_op(cls, values, (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        values = parser.resolve_operands(operands, types, position)
        return cls.create(operands=values, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        printer.print_list([value.type for value in self.operands], printer.print_attribute)


@irdl_op_definition
class ReduceReturnOp(RegionReturnOp):
    """What combining two elements gives: ``tt.reduce.return %r : f32``."""

    name = "tt.reduce.return"
    result = var_operand_def()
    traits = traits_def(Pure(), IsTerminator(), TensorSize())


@irdl_op_definition
class ScanReturnOp(RegionReturnOp):
    """What combining two elements gives: ``tt.scan.return %r : f32``."""

    name = "tt.scan.return"
    result = var_operand_def()
    traits = traits_def(Pure(), IsTerminator(), TensorSize())


def verify_combine(op: IRDLOperation, axis: int, terminator: type[RegionReturnOp]) -> None:
    """The sources have one shape; the region takes two of each element and returns one."""
    if not op.operands:
        raise VerifyException(f"{op.name} needs at least one source")
    require_equal(op, "shape", (shape_of(value.type) for value in op.operands))
    if not 0 <= axis < (rank := len(shape_of(op.operands[0].type))):
        raise VerifyException(f"{op.name} axis {axis} is out of range for rank {rank}")
    entry = op.regions[0].blocks.first
    if entry is None:
        raise VerifyException(f"{op.name} needs a region with a block")
    elements = [element_type(value.type) for value in op.operands]
    if (found := [arg.type for arg in entry.args]) != elements * 2:
        raise VerifyException(f"{op.name} region arguments must be {names(elements * 2)}, got {names(found)}")
    last = entry.last_op if len(op.regions[0].blocks) == 1 else None
    if last is not None:
        if not isinstance(last, terminator):
            raise VerifyException(f"{op.name} region must end with {terminator.name}, not {last.name}")
        if (found := [value.type for value in last.operands]) != elements:
            raise VerifyException(f"{op.name} region must return {names(elements)}, got {names(found)}")


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Combine the elements along an axis with a region: ``tensor<4x8xf32>`` along axis 1 gives ``tensor<4xf32>``.

    The region takes the left elements of all sources, then the right ones. Printed in generic form.
    """

    name = "tt.reduce"
    srcs = var_operand_def(TENSOR)
    axis = prop_def(IntegerAttr)
    result = var_result_def()
    combine_op = region_def()
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(cls, srcs: Sequence[SSAValue], axis: int, region: Region, loc: LocationAttr) -> Self:
        return cls.create(
            operands=srcs,
            result_types=[reduced_type(src.type, axis) for src in srcs],  # pyright: ignore[reportArgumentType]
            properties=axis_property(axis),
            regions=(region,),
            location=loc,
        )

    def verify_(self) -> None:
        axis = self.axis.value.data
        verify_combine(self, axis, ReduceReturnOp)
        for source, result in zip(self.srcs, self.result, strict=True):
            shape = shape_of(source.type)
            if shape_of(result.type) != (*shape[:axis], *shape[axis + 1 :]):
                raise VerifyException(f"tt.reduce of {source.type} along axis {axis} cannot give {result.type}")
            if element_type(result.type) != element_type(source.type):
                raise VerifyException(f"tt.reduce of {source.type} cannot give {result.type}")


@cache
def scan_properties(axis: int, reverse: bool) -> Attributes:
    return {"axis": int_attr(axis, i32), "reverse": int_attr(reverse, i1)}


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Running combinations along an axis; from the end with `reverse`. Printed in generic form, like `tt.reduce`."""

    name = "tt.scan"
    srcs = var_operand_def(TENSOR)
    axis = prop_def(IntegerAttr)
    reverse = prop_def(IntegerAttr)
    result = var_result_def(TENSOR)
    combine_op = region_def()
    traits = traits_def(Pure(), SameShape(), SameEncoding(), TensorSize())

    @classmethod
    def make(cls, srcs: Sequence[SSAValue], axis: int, reverse: bool, region: Region, loc: LocationAttr) -> Self:
        return cls.create(
            operands=srcs,
            result_types=[src.type for src in srcs],
            properties=scan_properties(axis, reverse),
            regions=(region,),
            location=loc,
        )

    def verify_(self) -> None:
        verify_combine(self, self.axis.value.data, ScanReturnOp)
        if (sources := [v.type for v in self.srcs]) != (results := [v.type for v in self.result]):
            raise VerifyException(f"tt.scan of {names(sources)} cannot give {names(results)}")


@irdl_op_definition
class HistogramOp(IRDLOperation):
    """Count each integer from 0: ``%h = tt.histogram %x, %mask : tensor<64xi32> -> tensor<16xi32>``."""

    name = "tt.histogram"
    src = operand_def(INT_TENSOR)
    mask = opt_operand_def(TENSOR)
    result = result_def(INT_TENSOR)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, mask: SSAValue | None, num_bins: int, loc: LocationAttr) -> Self:
        operands = (src,) if mask is None else (src, mask)
        return create_op(cls, operands, (tensor_type((num_bins,), i32),), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        types = (source, mask_type(source))
        values = [parser.resolve_operand(v, t) for v, t in zip(operands, types, strict=False)]
        return cls.create(operands=values, result_types=(result,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        print_conversion_type(printer, self.operands[0].type, self.results[0].type)

    def verify_(self) -> None:
        if self.mask is not None and self.mask.type != (needed := mask_type(self.src.type)):
            raise VerifyException(f"tt.histogram of {self.src.type} needs a mask of {needed}, but got {self.mask.type}")


@cache
def gathered_type(source: Tensor, indices: Tensor) -> Tensor:
    """The elements of `source` in the shape of `indices`."""
    return tensor_type(shape_of(indices), source.element_type, indices.encoding)


@irdl_op_definition
class GatherOp(IRDLOperation):
    """Pick elements along an axis by index.

    ``%y = tt.gather %x[%i] {axis = 0 : i32} : (tensor<8x4xf32>, tensor<16x4xi32>) -> tensor<16x4xf32>``
    """

    name = "tt.gather"
    src = operand_def(TENSOR)
    indices = operand_def(INT_TENSOR)
    axis = prop_def(IntegerAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def(TENSOR)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, indices: SSAValue, axis: int, loc: LocationAttr) -> Self:
        type = gathered_type(src.type, indices.type)  # pyright: ignore[reportArgumentType]
        return create_op(cls, (src, indices), (type,), loc, axis_property(axis))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = [parser.parse_unresolved_operand(), *parse_bracketed(parser)]
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        inputs, outputs = parse_signature(parser)
        return cls.create(
            operands=parser.resolve_operands(operands, inputs, position),
            result_types=outputs,
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands[:1])
        print_bracketed(printer, self.operands[1:])
        print_attr_dict(self, printer)
        print_signature(self, printer)

    def verify_(self) -> None:
        source, indices = shape_of(self.src.type), shape_of(self.indices.type)
        axis = self.axis.value.data
        if shape_of(self.result.type) != indices:
            raise VerifyException(f"indices and output shapes must match: {self.indices.type}, {self.result.type}")
        if element_type(self.result.type) != element_type(self.src.type):
            raise VerifyException(f"tt.gather from {self.src.type} cannot give {self.result.type}")
        if len(source) != len(indices):
            raise VerifyException(f"input and indices ranks must match: {self.src.type}, {self.indices.type}")
        if not 0 <= axis < len(source):
            raise VerifyException(f"gather dimension {axis} must be less than the rank of {self.src.type}")
        for dimension, (have, want) in enumerate(zip(source, indices, strict=True)):
            if dimension != axis and have != want:
                raise VerifyException(
                    f"indices dimension {dimension} must match the corresponding input dimension: {want}, {have}"
                )
