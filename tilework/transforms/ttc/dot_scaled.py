"""A dot with scaled operands, as ordinary ops: each operand is converted and scaled, then multiplied.

    %d = tt.dot_scaled %a scale %s, %b, %c lhs = e4m3 rhs = bf16
    ==>  a as bf16, times 2**(s - 127) repeated over groups of 32 along K, then tt.dot

Elements of 4 bits (e2m1) come two to a byte, the low one first. A scale of 255 is NaN, unless `fastMath`. Products are
rounded to f16 if an operand is f16, else to bf16.
"""

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp, binary, cmpi, convert
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.ir.forms import SEGMENTS
from tilework.ir.property_text import is_true
from tilework.ir.rewrite import constant, insert_before, replace_op
from tilework.ir.types import (
    Shape,
    array_values,
    bf16,
    bit_width,
    element_type,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    i8,
    i32,
    shape_of,
    tensor_type,
    with_element,
)

FORMATS: dict[int, Attribute] = {
    ScaleDotElemType.E4M3: f8E4M3FN,
    ScaleDotElemType.E5M2: f8E5M2,
    ScaleDotElemType.BF16: bf16,
    ScaleDotElemType.FP16: f16,
}
EXPONENT_BIAS, MANTISSA_BITS, DENORMAL = 126, 23, 0x00400000  # of f32; 2**-127 is half the smallest normal number


class Expansion:
    """Ops in front of one `tt.dot_scaled`."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.loc = op.location

    def put(self, op: Operation) -> SSAValue:
        insert_before(self.op, op)
        return op.results[0]

    def number(self, value: int | float, like: SSAValue, element: Attribute | None = None) -> SSAValue:
        type = with_element(like.type, element or element_type(like.type))
        return self.put(constant(value, type, self.loc))

    def apply(self, kind: type[Operation], lhs: SSAValue, rhs: SSAValue | int | float) -> SSAValue:
        right = rhs if isinstance(rhs, SSAValue) else self.number(rhs, lhs)
        return self.put(binary(kind, lhs, right, self.loc))

    def cast(self, kind: type[Operation], value: SSAValue, element: Attribute) -> SSAValue:
        return self.put(convert(kind, value, with_element(value.type, element), self.loc))

    def select(self, value: SSAValue, equals: int, yes: SSAValue, no: SSAValue) -> SSAValue:
        is_equal = self.put(cmpi("eq", value, self.number(equals, value), self.loc))
        return self.put(SelectOp.make(is_equal, yes, no, self.loc))

    def floats(self, bits: SSAValue) -> SSAValue:
        return self.put(tt.BitcastOp.make(bits, with_element(bits.type, f32), self.loc))

    def reshape(self, value: SSAValue, shape: Shape) -> SSAValue:
        return self.put(tt.ReshapeOp.make(value, tensor_type(shape, element_type(value.type)), self.loc))

    def operand(self, value: SSAValue, format: int, is_packed_last: bool) -> SSAValue:
        """The elements as f32."""
        if format == ScaleDotElemType.E2M1:
            return self.nibbles(value, is_packed_last)
        kind = FORMATS[format]
        if element_type(value.type) != kind:
            value = self.put(tt.BitcastOp.make(value, with_element(value.type, kind), self.loc))
        if bit_width(kind) == 8:
            return self.put(tt.FpToFpOp.make(value, with_element(value.type, f32), self.loc))
        return self.cast(arith.ExtFOp, value, f32)

    def nibbles(self, value: SSAValue, is_packed_last: bool) -> SSAValue:
        """Two elements for each byte, along the last dimension or the one before it."""
        shape = shape_of(value.type)
        wide = self.apply(arith.AndIOp, self.cast(arith.ExtUIOp, value, i32), 255)
        low = self.small_float(self.apply(arith.AndIOp, wide, 15))
        high = self.small_float(self.apply(arith.ShRUIOp, wide, 4))
        pairs = self.put(tt.JoinOp.make(low, high, self.loc))
        if is_packed_last:
            return self.reshape(pairs, (*shape[:-1], 2 * shape[-1]))
        rank = len(shape)
        order = (*range(rank - 1), rank, rank - 1)
        return self.reshape(self.put(tt.TransOp.make(pairs, order, self.loc)), (*shape[:-2], 2 * shape[-2], shape[-1]))

    def small_float(self, nibble: SSAValue) -> SSAValue:
        """e2m1: a sign, two bits of exponent, one of mantissa."""
        exponent = self.apply(arith.AndIOp, self.apply(arith.ShRUIOp, nibble, 1), 3)
        mantissa = self.apply(arith.AndIOp, nibble, 1)
        sign = self.apply(arith.ShLIOp, self.apply(arith.ShRUIOp, nibble, 3), 31)
        biased = self.apply(arith.ShLIOp, self.apply(arith.AddiOp, exponent, EXPONENT_BIAS), MANTISSA_BITS)
        normal = self.apply(arith.OrIOp, biased, self.apply(arith.ShLIOp, mantissa, MANTISSA_BITS - 1))
        half = self.apply(arith.MuliOp, mantissa, EXPONENT_BIAS << MANTISSA_BITS)
        return self.floats(self.apply(arith.OrIOp, self.select(exponent, 0, half, normal), sign))

    def factor(self, scale: SSAValue, compute: Attribute) -> tuple[SSAValue, SSAValue | None]:
        """The scale as a float of type `compute`, and its bits if it was an exponent."""
        if element_type(scale.type) != i8:
            return self.rounded(self.cast(arith.ExtFOp, scale, f32), compute), None
        bits = self.apply(arith.AndIOp, self.cast(arith.ExtUIOp, scale, i32), 255)
        shifted = self.apply(arith.ShLIOp, bits, MANTISSA_BITS)
        value = self.floats(self.select(bits, 0, self.number(DENORMAL, bits), shifted))
        return self.rounded(value, compute), bits

    def rounded(self, value: SSAValue, compute: Attribute) -> SSAValue:
        """`value` after rounding to `compute`, as f32 again."""
        return self.cast(arith.ExtFOp, self.cast(arith.TruncFOp, value, compute), f32)

    def repeated(self, value: SSAValue, group: int) -> SSAValue:
        """Each element `group` times along the last dimension."""
        shape = shape_of(value.type)
        apart = self.put(tt.ExpandDimsOp.make(value, len(shape), self.loc))
        wide = tensor_type((*shape, group), element_type(value.type))
        return self.reshape(self.put(tt.BroadcastOp.make(apart, wide, self.loc)), (*shape[:-1], shape[-1] * group))

    def scaled(self, value: SSAValue, scale: SSAValue | None, compute: Attribute, fast: bool) -> SSAValue:
        """`value` times its scales along the last dimension, of type `compute`."""
        if scale is None:
            return self.cast(arith.TruncFOp, value, compute)
        group = shape_of(value.type)[-1] // shape_of(scale.type)[-1]
        factor, bits = self.factor(scale, compute)
        product = self.apply(arith.MulfOp, self.rounded(value, compute), self.repeated(factor, group))
        if bits is not None and not fast:
            product = self.select(self.repeated(bits, group), 255, self.number(float("nan"), product), product)
        return self.cast(arith.TruncFOp, product, compute)

    def swapped(self, value: SSAValue) -> SSAValue:
        rank = len(shape_of(value.type))
        return self.put(tt.TransOp.make(value, (*range(rank - 2), rank - 1, rank - 2), self.loc))


def expand_dot_scaled(op: Operation) -> None:
    """Replace a `tt.dot_scaled` by conversions and a `tt.dot`."""
    code = Expansion(op)
    values = iter(op.operands)
    a, b, c, a_scale, b_scale = (next(values) if size else None for size in array_values(op.properties[SEGMENTS]))
    assert a is not None and b is not None and c is not None
    a_format, b_format = (op.properties[key].value.data for key in ("a_elem_type", "b_elem_type"))  # pyright: ignore
    compute = f16 if ScaleDotElemType.FP16 in (a_format, b_format) else bf16
    fast = is_true(op.properties.get("fastMath"))
    packed_a, packed_b = (is_true(op.properties.get(key)) for key in ("lhs_k_pack", "rhs_k_pack"))
    lhs = code.scaled(code.operand(a, a_format, packed_a), a_scale, compute, fast)
    rhs = code.swapped(code.operand(b, b_format, not packed_b))
    rhs = code.swapped(code.scaled(rhs, b_scale, compute, fast))
    replace_op(op, tt.DotOp.make(lhs, rhs, c, op.location, InputPrecision.IEEE))
