"""`tt` ops that combine or pick elements along an axis: reductions, scans, histograms, gathers."""

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from math import prod
from typing import Self

from xdsl.dialects.builtin import LocationAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    I1_PROPERTY,
    I32_PROPERTY,
    INT_TENSOR,
    TENSOR,
    SameEncoding,
    SameShape,
    TensorSize,
    names,
    require_equal,
    verify_returns,
)
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.fields import (
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
from tilework.ir.forms import COMBINE_RETURN
from tilework.ir.tt.inference import reduced_type, verify_result
from tilework.ir.tt.memory_ops import mask_type
from tilework.ir.types import Shape, Tensor, element_type, i32, shape_of, tensor_type


class ReduceReturnOp(Op):
    """The result of combining two elements: ``tt.reduce.return %r : f32``."""

    name = "tt.reduce.return"
    result = var_operand_def()
    form = COMBINE_RETURN
    traits = traits_def(Pure(), IsTerminator(), TensorSize())


class ScanReturnOp(Op):
    """The result of combining two elements: ``tt.scan.return %r : f32``."""

    name = "tt.scan.return"
    result = var_operand_def()
    form = COMBINE_RETURN
    traits = traits_def(Pure(), IsTerminator(), TensorSize())


def verify_axis(op: Operation, axis: int, shapes: Sequence[Shape]) -> None:
    """The sources have one shape, and `axis` is one of its dimensions."""
    if not shapes:
        raise VerifyException(f"{op.name} needs at least one source")
    require_equal(op, "shape", shapes)
    rank = len(shapes[0])
    if not 0 <= axis < rank:
        raise VerifyException(f"{op.name} axis {axis} is out of range for rank {rank}")


def verify_combine(op: Operation, elements: list[Attribute], terminator: type[Operation]) -> None:
    """The region takes two of each element and returns one."""
    entry = op.regions[0].blocks.first
    if entry is None:
        raise VerifyException(f"{op.name} needs a region with a block")
    needed = elements * 2
    if len(entry.args) != len(needed):
        raise VerifyException(
            f"nested block must take {len(needed)} arguments, but given block with {len(entry.args)} arguments"
        )
    for index, (argument, type) in enumerate(zip(entry.args, needed, strict=True)):
        if argument.type != type:
            raise VerifyException(
                f"type mismatch on combine operation. Expected argument {index} to have type '{type}' "
                f"but got '{argument.type}'"
            )
    verify_returns(op, elements, terminator)


class ReduceOp(Op):
    """Combine the elements along an axis with a region: ``tensor<4x8xf32>`` along axis 1 gives ``tensor<4xf32>``.

    The region takes the left elements of all sources, then the right ones. Printed in generic form.
    """

    name = "tt.reduce"
    srcs = var_operand_def(TENSOR)
    axis = prop_def(I32_PROPERTY)
    result = var_result_def()
    combine_op = region_def()
    infer = {"result": (reduced_type, "srcs", "axis")}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        axis = self.axis.value.data
        verify_axis(self, axis, [shape_of(value.type) for value in self.srcs])
        verify_combine(self, [element_type(value.type) for value in self.srcs], ReduceReturnOp)
        if len(self.srcs) != len(self.result):
            raise VerifyException(f"tt.reduce of {len(self.srcs)} sources cannot give {len(self.result)} results")
        for source, result in zip(self.srcs, self.result, strict=True):
            shape = shape_of(source.type)
            if shape_of(result.type) != (*shape[:axis], *shape[axis + 1 :]):
                raise VerifyException(f"tt.reduce of {source.type} along axis {axis} cannot give {result.type}")
            if element_type(result.type) != element_type(source.type):
                raise VerifyException(
                    f"operand types and result types must agree: tt.reduce of {source.type} cannot give {result.type}"
                )
            verify_result(result.type, reduced_type, source.type, axis)


class ScanOp(Op):
    """Running combinations along an axis; from the end with `reverse`. Printed in generic form, like `tt.reduce`."""

    name = "tt.scan"
    srcs = var_operand_def(TENSOR)
    axis = prop_def(I32_PROPERTY)
    reverse = prop_def(I1_PROPERTY)
    result = var_result_def(TENSOR)
    combine_op = region_def()
    infer = {"result": "srcs"}
    traits = traits_def(Pure(), SameShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        verify_axis(self, self.axis.value.data, [shape_of(value.type) for value in self.srcs])
        verify_combine(self, [element_type(value.type) for value in self.srcs], ScanReturnOp)
        if (sources := [v.type for v in self.srcs]) != (results := [v.type for v in self.result]):
            raise VerifyException(f"tt.scan of {names(sources)} cannot give {names(results)}")


class SortRunsOp(Op):
    """Sort each aligned run of ``2**bits`` integers, in row-major order.

    ``%y = tt.sort_runs %x {bits = 3 : i32, merges = false, order = 0 : i32, signed = true} : tensor<4x8xi32>``

    `order` is one of `SortOrder`. With `merges` (on the CPU) the runs are bitonic, and only the last stage of the
    bitonic network is done.
    """

    name = "tt.sort_runs"
    src = operand_def(INT_TENSOR)
    bits = prop_def(I32_PROPERTY)
    order = prop_def(I32_PROPERTY)
    merges = prop_def(I1_PROPERTY)
    signed = prop_def(I1_PROPERTY)
    result = result_def(INT_TENSOR)
    form = "$src {} : type($src)"
    infer = {"result": "src"}
    traits = traits_def(Pure(), SameShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        verify_runs(self, self.bits.value.data, self.order.value.data, shape_of(self.src.type))


class SortOrder(IntEnum):
    """The direction in which runs are sorted."""

    UPWARDS = 0
    DOWNWARDS = 1
    ALTERNATING = 2  # the first run upwards, the second downwards ...


def verify_runs(op: Operation, bits: int, order: int, shape: Shape) -> None:
    if bits < 1 or prod(shape) % (1 << bits) or order not in tuple(SortOrder):
        raise VerifyException(f"{op.name} of runs of 2**{bits} elements in order {order}, of {prod(shape)} elements")


class HistogramOp(Op):
    """Count each integer from 0: ``%h = tt.histogram %x, %mask : tensor<64xi32> -> tensor<16xi32>``."""

    name = "tt.histogram"
    src = operand_def(INT_TENSOR)
    mask = opt_operand_def(TENSOR)
    result = result_def(INT_TENSOR)
    form = "$operands {} : type($src) -> type($result)"
    infer = {"mask": (mask_type, "src")}
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, mask: SSAValue | None, num_bins: int, loc: LocationAttr) -> Self:
        operands = (src,) if mask is None else (src, mask)
        return create_op(cls, operands, (tensor_type((num_bins,), i32),), loc)

    def verify_(self) -> None:
        if self.mask is not None and self.mask.type != (needed := mask_type(self.src.type)):
            raise VerifyException(f"tt.histogram of {self.src.type} needs a mask of {needed}, but got {self.mask.type}")


@cache
def gathered_type(source: Tensor, indices: Tensor) -> Tensor:
    """The elements of `source` in the shape of `indices`."""
    return tensor_type(shape_of(indices), source.element_type, indices.encoding)


class GatherOp(Op):
    """Pick elements along an axis by index.

    ``%y = tt.gather %x[%i] {axis = 0 : i32} : (tensor<8x4xf32>, tensor<16x4xi32>) -> tensor<16x4xf32>``
    """

    name = "tt.gather"
    src = operand_def(TENSOR)
    indices = operand_def(INT_TENSOR)
    axis = prop_def(I32_PROPERTY)
    efficient_layout = opt_prop_def(UnitAttr)
    result = result_def(TENSOR)
    form = "$src[$indices] {} : signature"
    infer = {"result": (gathered_type, "src", "indices")}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        source, indices = shape_of(self.src.type), shape_of(self.indices.type)
        axis = self.axis.value.data
        if shape_of(self.result.type) != indices:
            raise VerifyException(f"indices and output shapes must match: {self.indices.type}, {self.result.type}")
        if element_type(self.result.type) != element_type(self.src.type):
            raise VerifyException(f"input and output element types must match: {self.src.type}, {self.result.type}")
        if len(source) != len(indices):
            raise VerifyException(f"input and indices ranks must match: {self.src.type}, {self.indices.type}")
        if not 0 <= axis < len(source):
            raise VerifyException(f"gather dimension must be less than the input rank: {axis}, {self.src.type}")
        for dimension, (have, want) in enumerate(zip(source, indices, strict=True)):
            if dimension != axis and have != want:
                raise VerifyException(
                    f"indices dimension {dimension} must match the corresponding input dimension: {want}, {have}"
                )
