"""`tt` ops that combine or pick elements along an axis: reductions, scans, histograms, gathers, dots."""

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from math import prod
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.attr_text import is_true
from tilework.ir.constraints import (
    I1_PROPERTY,
    I32_PROPERTY,
    INT_TENSOR,
    NUMERIC_TENSOR,
    TENSOR,
    SameEncoding,
    SameShape,
    TensorSize,
    enum_property,
    names,
    require_equal,
    verify_returns,
)
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.ir.fields import (
    COMBINE_RETURN,
    default_prop,
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
from tilework.ir.tt.memory_ops import mask_type
from tilework.ir.tt.shape_ops import reduced_type, verify_dot_operands, verify_result
from tilework.ir.types import Shape, Tensor, bit_width, element_type, f8E4M3FN, i8, i32, shape_of, tensor_type


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
    ranks = [len(shape) for shape in shapes]
    if len(set(ranks)) > 1:
        raise VerifyException(f"all operands must have the same rank, but got ranks {', '.join(map(str, ranks))}")
    require_equal(op, "shape", shapes)
    if not 0 <= axis < ranks[0]:
        raise VerifyException(f"axis out of bounds for operand rank {ranks[0]}: {op.name} along axis {axis}")


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


# ---- `tt` ops for matrix multiplication.


def input_precision_prop() -> IntegerAttr:
    """A property for the precision of the factors of a dot."""
    return default_prop(enum_property(InputPrecision), InputPrecision.IEEE, "inputPrecision")


def max_imprecise_prop() -> IntegerAttr:
    """A property for the number of multiply-adds that may be accumulated in reduced precision."""
    return default_prop(I32_PROPERTY, 0, "maxNumImpreciseAcc")


class DotOp(Op):
    """``d = a @ b + c``, of matrices or of batches of them.

    ``%d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>``
    """

    name = "tt.dot"
    a = operand_def(NUMERIC_TENSOR)
    b = operand_def(NUMERIC_TENSOR)
    c = operand_def(NUMERIC_TENSOR)
    d = result_def(NUMERIC_TENSOR)
    input_precision = input_precision_prop()
    max_num_imprecise_acc = max_imprecise_prop()
    form = "$a, $b, $c(?, inputPrecision = $input_precision) {} : type($a) * type($b) -> type($d)"
    infer = {"d": "c"}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        a, b = self.a.type, self.b.type
        if bit_width(a) != bit_width(b):
            raise VerifyException(f"element types of operands A and B must have same bit width: {a}, {b}")
        if self.c.type != self.d.type:
            raise VerifyException(f"tt.dot with an accumulator of {self.c.type} cannot give {self.d.type}")
        verify_dot_shapes(self, shape_of(a), shape_of(b), shape_of(self.d.type))
        verify_dot_operands(a, b, self.d.type)


def verify_dot_shapes(op: Operation, a: Sequence[int], b: Sequence[int], d: Sequence[int]) -> None:
    """Check the shapes of a dot, rank 2 or 3 with the batch first."""
    if len(a) not in (2, 3) or len(a) != len(b) or len(a) != len(d):
        raise VerifyException(f"{op.name} needs operands of rank 2 or 3, but got {a}, {b} and {d}")
    if a[-1] != b[-2]:
        raise VerifyException(
            "expected the last dimension of the first operand to be equal to the second-to-last dimension of the "
            f"second operand: {a[-1]}, {b[-2]}"
        )
    if tuple(d) != (*a[:-1], b[-1]) or a[:-2] != b[:-2]:
        raise VerifyException(
            "expected the output shape to be the concatenation of the last dimension of the first operand and the last "
            f"dimension of the second : {op.name} of shapes {a} and {b} cannot give {d}"
        )


class DotScaledOp(Op):
    """A dot of small floats with shared exponents.

    ``%d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e5m2 {fastMath = false} : A, SA * B, SB -> D``
    """

    name = "tt.dot_scaled"
    a = operand_def(NUMERIC_TENSOR)
    b = operand_def(NUMERIC_TENSOR)
    c = operand_def(NUMERIC_TENSOR)
    a_scale = opt_operand_def(NUMERIC_TENSOR)
    b_scale = opt_operand_def(NUMERIC_TENSOR)
    a_elem_type = prop_def(enum_property(ScaleDotElemType))
    b_elem_type = prop_def(enum_property(ScaleDotElemType))
    fast_math = prop_def(I1_PROPERTY, prop_name="fastMath")
    lhs_k_pack = default_prop(I1_PROPERTY, True)
    rhs_k_pack = default_prop(I1_PROPERTY, True)
    d = result_def(NUMERIC_TENSOR)
    form = (
        "$a(? scale $a_scale), $b(? scale $b_scale), $c lhs = $a_elem_type rhs = $b_elem_type {} : "
        "type($a)(?, type($a_scale)) * type($b)(?, type($b_scale)) -> type($d)"
    )
    infer = {"d": "c"}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        if self.c.type != self.d.type:
            raise VerifyException(f"tt.dot_scaled with an accumulator of {self.c.type} cannot give {self.d.type}")
        a, b = list(shape_of(self.a.type)), list(shape_of(self.b.type))
        if len(a) < 2 or len(b) < 2:
            raise VerifyException(f"expected operands to be 2d or 3d: tt.dot_scaled got {a} and {b}")
        if self.a_elem_type.value.data == ScaleDotElemType.E2M1:
            require_bytes(self.a.type)
            a[-1 if is_true(self.lhs_k_pack) else -2] *= 2
        if self.b_elem_type.value.data == ScaleDotElemType.E2M1:
            require_bytes(self.b.type)
            b[-2 if is_true(self.rhs_k_pack) else -1] *= 2
        verify_dot_shapes(self, a, b, shape_of(self.d.type))
        verify_scale("M", self.a_scale, a[-2], a[-1])
        verify_scale("N", self.b_scale, b[-1], b[-2])


def require_bytes(type: Attribute) -> None:
    """Check that e2m1 values are packed into i8."""
    if element_type(type) != i8:
        raise VerifyException(f"tt.dot_scaled has e2m1 values packed into i8, not {type}")


def verify_scale(name: str, scale: SSAValue | None, size: int, depth: int) -> None:
    """Check that there is a scale for each row and 32 values along K, or 16 values if the scales are ``f8E4M3FN``."""
    if scale is None:
        return
    if len(shape_of(scale.type)) < 2:
        raise VerifyException(f"scales of {name} must have rank 2 or 3, but got {scale.type}")
    *_, rows, groups = shape_of(scale.type)
    values = 16 if element_type(scale.type) == f8E4M3FN else 32
    if rows != size:
        raise VerifyException(f"scales {name} dimension must match the operand {name} dimension: {rows}, {size}")
    if groups * values != depth:
        raise VerifyException(
            f"scales K dimension must match the operand K divided by the scale factor: {groups}, {depth} / {values}"
        )
