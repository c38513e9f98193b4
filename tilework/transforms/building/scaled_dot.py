"""Lower `tt.dot_scaled` where no instruction supports scales: multiply by them first, then do a plain dot.

    %d = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = bf16

    %x = tt.fp_to_fp %a : f8E4M3FN -> bf16               both operands become bf16 (f16 if one of them is)
    %t = bitcast max((extui %s) << 7, 64) : bf16         a scale byte is the exponent of a power of two; 0 is 2**-127
    %u = each of %t for 32 neighbours along K            expand_dims, broadcast, reshape
    %y = %x * %u, NaN where the byte is 255              the NaN is left out with fastMath
    %d = tt.dot %y, %b, %c

A power of two need not be representable in f16, so for f16 the multiplication is done in f32 and rounded once. Scales
of type f8E4M3FN (one for 16 elements) are values, not exponents. The expansion works for tensors with and without
layouts; with layouts, `ttg.fp4_to_fp` unpacks 4-bit operands, and a dot with only a scale on the right is transposed,
so that the scaled operand is the left one, which can be held in registers.
"""

from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.errors import PassError
from tilework.ir import arith, tt, ttg
from tilework.ir.attr_text import is_true
from tilework.ir.encodings import encoding_of, with_encoding
from tilework.ir.enums import ScaleDotElemType
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.ir.rewrite import replace_op
from tilework.ir.types import (
    Shape,
    bf16,
    element_type,
    f8E4M3FN,
    f8E5M2,
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
from tilework.numerics.formats import Format, of_ir
from tilework.transforms.building.emitter import Emitter

ELEMENTS: dict[ScaleDotElemType, Attribute] = {
    ScaleDotElemType.E2M1: i8,  # two to a byte, the low one first
    ScaleDotElemType.E4M3: f8E4M3FN,
    ScaleDotElemType.E5M2: f8E5M2,
    ScaleDotElemType.BF16: bf16,
    ScaleDotElemType.FP16: f16,
}
NAN_SCALE = -1  # the byte 255
PATTERNS: dict[Attribute, tuple[Attribute, Format]] = {
    type: (bits, of_ir(type.name)) for type, bits in ((f16, i16), (bf16, i16), (f32, i32))
}


def laid_out_dots(module: ModuleOp) -> list[Operation]:
    """The dots of a module, with and without scales, that are spread over threads."""
    dots = [op for op in ops_in_order(*module.regions) if type(op) in (tt.DotOp, tt.DotScaledOp)]
    return [dot for dot in dots if encoding_of(dot.results[0].type) is not None]


def expand_dot_scaled(op: Operation) -> Operation:
    """Replace `op`; return the new `tt.dot`."""
    assert isinstance(op, tt.DotScaledOp)
    formats = [ScaleDotElemType(op.a_elem_type.value.data), ScaleDotElemType(op.b_elem_type.value.data)]
    for format in formats:
        if format not in ELEMENTS:
            raise PassError(f"tt.dot_scaled of {format.name.lower()} is not available for this target", op.location)
    values, scales = [op.a, op.b], [op.a_scale, op.b_scale]
    packed_in_k = [is_true(op.lhs_k_pack), is_true(op.rhs_k_pack)]
    compute = f16 if ScaleDotElemType.FP16 in formats else bf16
    expansion, accumulator = Expansion(op, compute, is_true(op.fast_math)), op.c
    parent = encoding_of(accumulator.type)
    is_transposed = parent is not None and scales[0] is None and scales[1] is not None
    if is_transposed:
        values = [expansion.transposed(value) for value in values][::-1]
        accumulator = expansion.transposed(accumulator)
        parent = encoding_of(accumulator.type)
        scales, formats, packed_in_k = scales[::-1], formats[::-1], packed_in_k[::-1]
    factors: list[SSAValue] = []
    for index in range(2):
        value = expansion.operand(values[index], scales[index], index, formats[index], packed_in_k[index])
        factors.append(
            value if parent is None else expansion.laid_out(value, DotOperand(index, cast(Distributed, parent)))
        )
    code = expansion.code
    dot = tt.DotOp.make(factors[0], factors[1], accumulator, op.location)
    result = code.append(dot)
    if is_transposed:
        expansion.transposed(result)
    replace_op(op, *code.ops)
    return dot


class Expansion:
    """Builds operands multiplied with their scales, in the type `compute`, to replace `op`.

    With `fast_math` the scale that encodes NaN is treated as a number.
    """

    def __init__(self, op: Operation, compute: Attribute, fast_math: bool = False) -> None:
        self.op, self.fast_math = op, fast_math
        self.code = Emitter(op.location)
        self.compute = compute

    def operand(
        self, value: SSAValue, scale: SSAValue | None, index: int, format: ScaleDotElemType, packed_in_k: bool
    ) -> SSAValue:
        """`value` times its scales, of the type `compute`."""
        value = self.element_of(value, format)
        if format is ScaleDotElemType.E2M1:
            rank = len(shape_of(value.type))
            value = self.unpacked(value, rank - 1 if (index == 0) == packed_in_k else rank - 2)
        if scale is None:
            return self.as_float(value, self.compute)
        wide = f32 if self.compute == f16 else bf16
        return self.as_float(self.scaled(self.as_float(value, wide), scale, index), self.compute)

    def element_of(self, value: SSAValue, format: ScaleDotElemType) -> SSAValue:
        """Return values of the element type of a format, which may be carried by integers."""
        wanted = ELEMENTS[format]
        return value if element_type(value.type) == wanted else self.bitcast(value, wanted)

    def as_float(self, value: SSAValue, element: Attribute) -> SSAValue:
        """Convert `value` to another float type."""
        old, type = element_type(value.type), with_element(value.type, element)
        if old == element:
            return value
        if old in (f8E4M3FN, f8E5M2):
            return self.code.append(tt.FpToFpOp.make(value, type, self.code.loc))
        if element != f32 and old != f32:
            return self.as_float(self.as_float(value, f32), element)
        return self.code.convert(arith.ExtFOp if element == f32 else arith.TruncFOp, value, type)

    def unpacked(self, value: SSAValue, axis: int) -> SSAValue:
        """Unpack each byte to two values of the type `compute`, along `axis`, whose size doubles."""
        shape = shape_of(value.type)
        full = tuple(size * 2 if dim == axis else size for dim, size in enumerate(shape))
        if (encoding := encoding_of(value.type)) is not None:
            layout = infer_fp4_to_fp(cast(Distributed, encoding), axis, shape)
            type = with_encoding(tensor_type(full, self.compute), layout)
            return self.code.append(ttg.Fp4ToFpOp.make(value, axis, type, self.code.loc))
        wide = self.code.convert(arith.ExtUIOp, value, with_element(value.type, i16))
        low, high = self.small_float(wide), self.small_float(self.code.binary(arith.ShRUIOp, wide, 4))
        pairs = self.code.append(tt.JoinOp.make(low, high, self.code.loc))
        return self.reshaped(pairs if axis == len(shape) - 1 else self.transposed(pairs), full)

    def small_float(self, bits: SSAValue) -> SSAValue:
        """Move the lowest four bits (a sign, two bits of exponent, one of fraction) to their positions in a wider
        float.

        Multiplication by a power of two corrects the bias and normalizes subnormals.
        """
        format = PATTERNS[self.compute][1]
        code = self.code
        magnitude = code.binary(arith.ShLIOp, code.binary(arith.AndIOp, bits, 7), format.fraction - 1)
        sign = code.binary(arith.ShLIOp, code.binary(arith.AndIOp, bits, 8), 12)
        value = self.bitcast(code.binary(arith.OrIOp, magnitude, sign), self.compute)
        return code.binary(arith.MulfOp, value, 2.0 ** (format.bias - 1))

    def bitcast(self, value: SSAValue, element: Attribute) -> SSAValue:
        return self.code.append(tt.BitcastOp.make(value, with_element(value.type, element), self.code.loc))

    def scaled(self, value: SSAValue, scale: SSAValue, index: int) -> SSAValue:
        """`value` times its scales; the scales of the right operand are stored transposed."""
        code = self.code
        if index == 1:
            scale = self.transposed(scale)
        factor = self.factor(scale, element_type(value.type))
        scaled = code.binary(arith.MulfOp, value, self.spread(factor, value, index))
        if self.fast_math or element_type(scale.type) != i8:
            return scaled
        is_nan = self.spread(code.compare("eq", scale, NAN_SCALE), value, index)
        return code.select(is_nan, code.constant(float("nan"), value.type), scaled)

    def factor(self, scale: SSAValue, element: Attribute) -> SSAValue:
        """The scales as floats: the byte is the exponent; 0 is half of the smallest normal float."""
        if element_type(scale.type) != i8:
            return self.as_float(scale, element)
        code, (bits, format) = self.code, PATTERNS[element]
        wide = code.convert(arith.ExtUIOp, scale, with_element(scale.type, bits))
        shifted = code.binary(arith.ShLIOp, wide, format.fraction)
        return self.bitcast(code.binary(arith.MaxUIOp, shifted, 1 << (format.fraction - 1)), element)

    def spread(self, scale: SSAValue, value: SSAValue, index: int) -> SSAValue:
        """Repeat each scale for all its elements along K, in the layout of `value`."""
        code = self.code
        shape, full = shape_of(scale.type), shape_of(value.type)
        rank = len(shape)
        k = rank - 1 if index == 0 else rank - 2
        layout = encoding_of(value.type)
        if layout is not None:
            machine = num_warps(self.op), threads_per_warp(self.op), num_ctas(self.op)
            scale = self.laid_out(scale, Slice(rank, default_blocked((*shape, 1), None, None, *machine)))
        apart = code.append(tt.ExpandDimsOp.make(scale, rank, code.loc))
        grouped = tensor_type((*shape, full[k] // shape[k]), element_type(scale.type))
        tile = code.append(tt.BroadcastOp.make(apart, with_encoding(grouped, encoding_of(apart.type)), code.loc))
        if index == 1:
            tile = self.transposed(tile)
        flat = self.reshaped(tile, full)
        return flat if layout is None else self.laid_out(flat, cast(Distributed, layout))

    def reshaped(self, value: SSAValue, shape: Shape) -> SSAValue:
        encoding = encoding_of(value.type)
        if encoding is not None:
            encoding = infer_reshape(shape_of(value.type), cast(Distributed, encoding), shape)
        type = with_encoding(tensor_type(shape, element_type(value.type)), encoding)
        return self.code.append(tt.ReshapeOp.make(value, type, self.code.loc))

    def transposed(self, value: SSAValue) -> SSAValue:
        """The last two dimensions exchanged."""
        *batch, rows, columns = range(len(shape_of(value.type)))
        return self.code.append(tt.TransOp.make(value, (*batch, columns, rows), self.code.loc))

    def laid_out(self, value: SSAValue, layout: Distributed) -> SSAValue:
        if encoding_of(value.type) == layout:
            return value
        return self.code.append(ttg.ConvertLayoutOp.make(value, with_encoding(value.type, layout), self.code.loc))
