"""`tt.dot_scaled` where no tensor core knows scales: multiply by them first, then do a plain dot.

    %d = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = bf16

    %x = tt.fp_to_fp %a : f8E4M3FN -> bf16               both operands become bf16 (f16 if one of them is)
    %t = bitcast ((extui %s) << 7) : bf16                a scale byte is the exponent of a power of two
    %u = each of %t for 32 neighbours along K            expand_dims, broadcast, reshape
    %y = %x * %u, NaN where the byte is 255              the NaN is left out with fastMath
    %d = tt.dot %y, %b, %c

4-bit operands are unpacked by `ttg.fp4_to_fp`. With a scale on the right only, the transposed product is computed, so that
the left operand, which can stay in registers, is the one that is multiplied. Scales of type f8E4M3FN (one for 16
elements) are numbers, not exponents.
"""

from typing import cast

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.errors import PassError
from tilework.ir import tt, ttg
from tilework.ir.arith_ext import SelectOp, convert
from tilework.ir.encodings import encoding_of, with_encoding
from tilework.ir.enums import ScaleDotElemType
from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.ir.property_text import is_true
from tilework.ir.rewrite import replace_op
from tilework.ir.types import (
    bf16,
    bit_width,
    element_type,
    f8E4M3FN,
    f16,
    f32,
    i8,
    i16,
    i32,
    shape_of,
    tensor_type,
    with_element,
)
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Distributed, DotOperand, Slice
from tilework.layouts.infer import infer_fp4_to_fp, infer_reshape
from tilework.transforms.building.emitter import Emitter

SUPPORTED = frozenset(
    {ScaleDotElemType.E2M1, ScaleDotElemType.E4M3, ScaleDotElemType.E5M2, ScaleDotElemType.BF16, ScaleDotElemType.FP16}
)
NAN_SCALE = -1  # the byte 255


def decompose_dot_scaled(op: Operation) -> Operation:
    """Replace `op`; the `tt.dot` that took its place."""
    assert isinstance(op, tt.DotScaledOp)
    formats = [ScaleDotElemType(op.a_elem_type.value.data), ScaleDotElemType(op.b_elem_type.value.data)]
    for format in formats:
        if format not in SUPPORTED:
            raise PassError(f"tt.dot_scaled of {format.name.lower()} is not available for this target", op.location)
    values, scales = [op.a, op.b], [op.a_scale, op.b_scale]
    packed_in_k = [is_true(op.lhs_k_pack), is_true(op.rhs_k_pack)]
    code, accumulator = Emitter(op.location), op.c
    is_transposed = scales[0] is None and scales[1] is not None
    if is_transposed:
        values = [transposed(code, value) for value in values][::-1]
        accumulator = transposed(code, accumulator)
        scales, formats, packed_in_k = scales[::-1], formats[::-1], packed_in_k[::-1]
    compute = f16 if ScaleDotElemType.FP16 in formats else bf16
    parent = cast(Distributed, encoding_of(accumulator.type))
    scaler = Scaler(op, code, compute, is_true(op.fast_math))
    factors: list[SSAValue] = []
    for index in range(2):
        value = scaler.number(values[index], index, formats[index], packed_in_k[index])
        if (scale := scales[index]) is not None:
            value = scaler.scaled(value, scale, index)
        factors.append(scaler.converted(value, DotOperand(index, parent)))
    dot = tt.DotOp.make(factors[0], factors[1], accumulator, op.location)
    result = code.append(dot)
    if is_transposed:
        transposed(code, result)
    replace_op(op, *code.ops)
    return dot


def transposed(code: Emitter, value: SSAValue) -> SSAValue:
    """The last two dimensions exchanged."""
    *batch, rows, columns = range(len(shape_of(value.type)))
    return code.append(tt.TransOp.make(value, (*batch, columns, rows), code.loc))


class Scaler:
    """Builds the multiplication of an operand with its scales, in the type `compute`."""

    def __init__(self, op: Operation, code: Emitter, compute: Attribute, fast_math: bool) -> None:
        self.code = code
        self.compute = compute
        self.fast_math = fast_math
        self.machine = (num_warps(op), threads_per_warp(op), num_ctas(op))

    def number(self, value: SSAValue, index: int, format: ScaleDotElemType, packed_in_k: bool) -> SSAValue:
        """`value` in the type `compute`; two numbers for each byte of 4-bit floats."""
        if format is ScaleDotElemType.E2M1:
            return self.unpacked(value, index, packed_in_k)
        type = with_element(value.type, self.compute)
        if value.type == type:
            return value
        if bit_width(value.type) == 8:
            return self.code.append(tt.FpToFpOp.make(value, type, self.code.loc))
        wide = self.code.append(convert(arith.ExtFOp, value, with_element(type, f32), self.code.loc))
        return self.code.append(convert(arith.TruncFOp, wide, type, self.code.loc))

    def unpacked(self, value: SSAValue, index: int, packed_in_k: bool) -> SSAValue:
        rank, shape = len(shape_of(value.type)), shape_of(value.type)
        axis = rank - 1 if (index == 0) == packed_in_k else rank - 2
        layout = infer_fp4_to_fp(cast(Distributed, encoding_of(value.type)), axis, shape)
        full = tuple(size * 2 if dim == axis else size for dim, size in enumerate(shape))
        type = with_encoding(tensor_type(full, self.compute), layout)
        return self.code.append(ttg.Fp4ToFpOp.make(value, axis, type, self.code.loc))

    def scaled(self, value: SSAValue, scale: SSAValue, index: int) -> SSAValue:
        """`value` times its scales; the scales of the right operand are stored transposed."""
        code = self.code
        if index == 1:
            scale = transposed(code, scale)
        product = code.binary(arith.MulfOp, value, self.spread(self.factor(scale), value, index))
        if self.fast_math or element_type(scale.type) != i8:
            return product
        is_nan = self.spread(code.compare("eq", scale, code.constant(NAN_SCALE, scale.type)), value, index)
        nan = code.constant(float("nan"), value.type)
        return code.append(SelectOp.make(is_nan, nan, product, code.loc))

    def factor(self, scale: SSAValue) -> SSAValue:
        """The scales as numbers: the byte is the exponent of a float, shifted into its place."""
        code, type = self.code, scale.type
        if element_type(type) == f8E4M3FN:
            return code.append(tt.FpToFpOp.make(scale, with_element(type, self.compute), code.loc))
        bits, float_type, place = (i16, bf16, 7) if self.compute == bf16 else (i32, f32, 23)
        wide = code.append(convert(arith.ExtUIOp, scale, with_element(type, bits), code.loc))
        shifted = code.binary(arith.ShLIOp, wide, code.constant(place, wide.type))
        number = code.append(tt.BitcastOp.make(shifted, with_element(type, float_type), code.loc))
        if self.compute == bf16:
            return number
        return code.append(convert(arith.TruncFOp, number, with_element(type, self.compute), code.loc))

    def spread(self, scale: SSAValue, value: SSAValue, index: int) -> SSAValue:
        """Each scale for all its elements along K, laid out as `value`."""
        code = self.code
        shape, full = shape_of(scale.type), shape_of(value.type)
        rank = len(shape)
        k = rank - 1 if index == 0 else rank - 2
        layout = default_blocked((*shape, 1), None, None, *self.machine)
        column = self.converted(scale, Slice(rank, layout))
        expanded = code.append(tt.ExpandDimsOp.make(column, rank, code.loc))
        grouped = tensor_type((*shape, full[k] // shape[k]), element_type(scale.type))
        tile = code.append(tt.BroadcastOp.make(expanded, with_encoding(grouped, layout), code.loc))
        if index == 1:
            tile = transposed(code, tile)
        source = cast(Distributed, encoding_of(tile.type))
        type = with_encoding(
            tensor_type(full, element_type(scale.type)), infer_reshape(shape_of(tile.type), source, full)
        )
        flat = code.append(tt.ReshapeOp.make(tile, type, code.loc))
        return self.converted(flat, cast(Distributed, encoding_of(value.type)))

    def converted(self, value: SSAValue, layout: Distributed) -> SSAValue:
        """`value` in another layout."""
        if encoding_of(value.type) == layout:
            return value
        return self.code.append(ttg.ConvertLayoutOp.make(value, with_encoding(value.type, layout), self.code.loc))
