"""Casts: one op, or a short chain, for each pair of element types.

    int -> int       extsi, extui, trunci; equal widths are the same IR value
    int -> float     sitofp, uitofp                       float -> int    fptosi, fptoui (16-bit floats through fp32)
    float -> float   extf, truncf; fp16 <-> bf16 goes through fp32
    fp8              tt.fp_to_fp, rounding to nearest even and saturating when it narrows
    x -> int1        x != 0
    pointers         tt.ptr_to_int, tt.int_to_ptr, tt.bitcast

`fp8e4b15` (bias 15, no infinity, no NaN) is known to no instruction set, so its bits are moved with integer ops. With
s the sign and m the other seven bits of a byte, the value is the fp16 whose pattern is ``s << 15 | m << 7``:

    0x78 -> 0x3C00 = 1.0          0x7E -> 0x3F00 = 1.75, the largest value a cast produces

Back from fp16, the magnitude is clamped to 0x3F00, doubled, and rounded half up into the high byte.
"""

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tilework.frontend.semantic.constants import Constants
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir import tt
from tilework.ir.arith_ext import binary, cmpf, cmpi, convert
from tilework.ir.enums import RoundingMode
from tilework.language import core as tl
from tilework.language.dtypes import dtype, float16, float32, int1, int16, int64
from tilework.language.typing.shapes import retype

ROUNDINGS = {"rtne": RoundingMode.RTNE, "rtz": RoundingMode.RTZ}
E4B15_LARGEST = 0x3F00  # 1.75 as fp16


class Casts(Constants):
    """What `cast` and `bitcast` build."""

    def convert(self, x: tl.tensor, target: dtype, rounding: str | None) -> tl.tensor:
        """The cast of a number; see the table in the module docstring."""
        source = x.dtype
        if source.is_int():
            if target.is_int():
                return self._cast_integer(x, target)
            return self._convert(arith.UIToFPOp if source.is_int_unsigned() else arith.SIToFPOp, x, target)
        return self._float_to_int(x, target) if target.is_int() else self._cast_float(x, target, rounding)

    def reinterpret(self, x: tl.tensor, target: dtype) -> tl.tensor:
        """A bitcast between types of equal width; no op if the IR does not tell them apart."""
        type = retype(x.type, target)
        result = ir_type(type)
        if result == x.handle.type:
            return tl.tensor(x.handle, type)
        return self._emit(tt.BitcastOp.make(x.handle, result, self.builder.loc), type)

    def _convert(self, op: type[Operation], x: tl.tensor, target: dtype) -> tl.tensor:
        type = retype(x.type, target)
        return self._emit(convert(op, x.handle, ir_type(type), self.builder.loc), type)

    def _cast_integer(self, x: tl.tensor, target: dtype) -> tl.tensor:
        source = x.dtype
        if target.is_bool():
            return self._is_nonzero(x)
        if source.int_bitwidth == target.int_bitwidth:
            return tl.tensor(x.handle, retype(x.type, target))
        if source.int_bitwidth > target.int_bitwidth:
            return self._convert(arith.TruncIOp, x, target)
        return self._convert(arith.ExtUIOp if source.is_int_unsigned() else arith.ExtSIOp, x, target)

    def _float_to_int(self, x: tl.tensor, target: dtype) -> tl.tensor:
        if x.dtype.primitive_bitwidth == 16:
            x = self._convert(arith.ExtFOp, x, float32)
        if target.is_bool():
            return self._is_nonzero(x)
        return self._convert(arith.FPToUIOp if target.is_int_unsigned() else arith.FPToSIOp, x, target)

    def _is_nonzero(self, x: tl.tensor) -> tl.tensor:
        """``x != 0``; a NaN is not zero."""
        builder = self.builder
        if x.dtype.is_floating():
            op = cmpf("une", x.handle, builder.constant(0.0, x.handle.type), builder.loc)
        else:
            op = cmpi("ne", x.handle, builder.constant(0, x.handle.type), builder.loc)
        return self._emit(op, retype(x.type, int1))

    def _cast_float(self, x: tl.tensor, target: dtype, rounding: str | None) -> tl.tensor:
        source = x.dtype
        if source.is_fp8():
            return self._from_fp8(x, target)
        if target.is_fp8():
            return self._to_fp8(x, target, rounding)
        if source.primitive_bitwidth == 16 and target.name != "fp32":
            x = self._convert(arith.ExtFOp, x, float32)
        if x.dtype.primitive_bitwidth < target.primitive_bitwidth:
            return self._convert(arith.ExtFOp, x, target)
        if rounding == "rtz":
            return self._fp_to_fp(x, target, RoundingMode.RTZ)
        return self._convert(arith.TruncFOp, x, target)

    def _fp_to_fp(self, x: tl.tensor, target: dtype, rounding: RoundingMode | None) -> tl.tensor:
        type = retype(x.type, target)
        return self._emit(tt.FpToFpOp.make(x.handle, ir_type(type), self.builder.loc, rounding), type)

    def _from_fp8(self, x: tl.tensor, target: dtype) -> tl.tensor:
        """Exact, except between two fp8 formats, which meet in fp16."""
        if x.dtype.is_fp8e4b15():
            return self.cast(self._e4b15_to_fp16(x), target)
        if target.is_fp8():
            return self.cast(self._fp_to_fp(x, float16, None), target)
        if target.is_fp64():
            return self._convert(arith.ExtFOp, self._fp_to_fp(x, float32, None), target)
        return self._fp_to_fp(x, target, None)

    def _to_fp8(self, x: tl.tensor, target: dtype, rounding: str | None) -> tl.tensor:
        if target.is_fp8e4b15():
            half = x if x.dtype.is_fp16() else self._fp_to_fp(x, float16, RoundingMode.RTZ)
            return self._fp16_to_e4b15(half, target)
        return self._fp_to_fp(x, target, ROUNDINGS[rounding or "rtne"])

    def _e4b15_to_fp16(self, x: tl.tensor) -> tl.tensor:
        bits = self._convert(arith.ExtUIOp, x, int16)
        sign = self._bit_op(arith.ShLIOp, self._bit_op(arith.AndIOp, bits.handle, 0x80), 8)
        magnitude = self._bit_op(arith.ShLIOp, self._bit_op(arith.AndIOp, bits.handle, 0x7F), 7)
        return self.reinterpret(tl.tensor(self._bit_op(arith.OrIOp, sign, magnitude), bits.type), float16)

    def _fp16_to_e4b15(self, x: tl.tensor, target: dtype) -> tl.tensor:
        bits = self.reinterpret(x, int16)
        sign = self._bit_op(arith.AndIOp, bits.handle, 0x8000)
        clamped = self._bit_op(arith.MinUIOp, self._bit_op(arith.AndIOp, bits.handle, 0x7FFF), E4B15_LARGEST)
        doubled = self._bit_op(arith.AddiOp, self._bit_op(arith.ShLIOp, clamped, 1), 0x80)
        high_byte = self._bit_op(arith.ShRUIOp, self._bit_op(arith.OrIOp, sign, doubled), 8)
        return self._convert(arith.TruncIOp, tl.tensor(high_byte, bits.type), target)

    def _bit_op(self, op: type[Operation], x: SSAValue, y: SSAValue | int) -> SSAValue:
        other = self.builder.constant(y, x.type) if isinstance(y, int) else y
        return self.builder.insert(binary(op, x, other, self.builder.loc)).results[0]

    def convert_pointer(self, x: tl.tensor, target: dtype) -> tl.tensor:
        """Between pointers, and between pointers and integers of 64 bits."""
        type = retype(x.type, target)
        result, loc = ir_type(type), self.builder.loc
        if not x.dtype.is_ptr():
            return self._emit(tt.IntToPtrOp.make(x.handle, result, loc), type)
        if target.is_bool():
            return self._is_nonzero(self.convert_pointer(x, int64))
        if not target.is_ptr():
            return self._emit(tt.PtrToIntOp.make(x.handle, result, loc), type)
        if result == x.handle.type:  # they differ in constness only
            return tl.tensor(x.handle, type)
        return self._emit(tt.BitcastOp.make(x.handle, result, loc), type)
