"""Elementwise operators, functions and casts as ops: for each a table from element type to op class.

    a + b      arith.addi  arith.addf                       a // b   arith.divsi  arith.divui
    ptr + i    tt.addptr                                    a >> b   arith.shrsi  arith.shrui, by the sign of a
    tl.minimum(a, b)     arith.minsi, arith.minui, arith.minnumf (a number wins over NaN)
    tl.exp(x)            math.exp, for fp32 and fp64 only

A cast is one op, or a short chain, for each pair of element types:

    int -> int       extsi, extui, trunci; equal widths are the same IR value
    int -> float     sitofp, uitofp                       float -> int    fptosi, fptoui (16-bit floats through fp32)
    float -> float   extf, truncf; fp16 <-> bf16 goes through fp32
    fp8              tt.fp_to_fp, rounding to nearest even and saturating when it narrows
    x -> int1        x != 0
    pointers         tt.ptr_to_int, tt.int_to_ptr, tt.bitcast

No instruction set has `fp8e4b15` (bias 15, no infinity, no NaN), so its bits are moved with integer ops. With s the
sign and m the other seven bits of a byte, the value is the fp16 whose pattern is ``s << 15 | m << 7``:

    0x78 -> 0x3C00 = 1.0          0x7E -> 0x3F00 = 1.75, the largest value a cast produces

Back from fp16, the magnitude is clamped to 0x3F00, doubled, and rounded half up into the high byte.
"""

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from tilework.frontend.semantic.building import Constants, ir_type
from tilework.ir import arith, math, tt
from tilework.ir.arith import NO_SIGNED_WRAP, RemfOp, SelectOp, binary, cmpf, cmpi, convert, ternary, unary
from tilework.ir.enums import PropagateNan, RoundingMode
from tilework.language import core as tl
from tilework.language.dtypes import dtype, float16, float32, int1, int16, int32, int64
from tilework.language.typing.operators import overflow_text
from tilework.language.typing.shapes import retype

ROUNDINGS = {"rtne": RoundingMode.RTNE, "rtz": RoundingMode.RTZ}
E4B15_LARGEST = 0x3F00  # 1.75 as fp16


class Casts(Constants):
    """The ops of `cast` and `bitcast`."""

    def convert(self, x: tl.tensor, target: dtype, rounding: str | None) -> tl.tensor:
        """Cast an integer or float; see the table in the module docstring."""
        source = x.dtype
        if source.is_int():
            if target.is_int():
                return self._cast_integer(x, target)
            return self._convert(arith.UIToFPOp if source.is_int_unsigned() else arith.SIToFPOp, x, target)
        return self._float_to_int(x, target) if target.is_int() else self._cast_float(x, target, rounding)

    def reinterpret(self, x: tl.tensor, target: dtype) -> tl.tensor:
        """A bitcast between types of equal width; no op if they are the same type in the IR."""
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


Table = dict[str, type[Operation]]


def table(
    *, signed: type[Operation], unsigned: type[Operation] | None = None, floating: type[Operation] | None = None
) -> Table:
    """The op for each element type, by `dtype.name`; one integer op serves both signs unless `unsigned` differs."""
    ops: Table = dict.fromkeys(dtype.SINT_TYPES, signed)
    ops |= dict.fromkeys(dtype.UINT_TYPES, unsigned or signed)
    return ops | dict.fromkeys(dtype.STANDARD_FP_TYPES, floating) if floating else ops


DIV: Table = {"fp32": arith.DivfOp, "fp64": arith.DivfOp}
BINARY: dict[str, Table] = {
    "+": table(signed=arith.AddiOp, floating=arith.AddfOp),
    "-": table(signed=arith.SubiOp, floating=arith.SubfOp),
    "*": table(signed=arith.MuliOp, floating=arith.MulfOp),
    "/": DIV,
    "fdiv": DIV,
    "//": table(signed=arith.DivSIOp, unsigned=arith.DivUIOp),
    "%": table(signed=arith.RemSIOp, unsigned=arith.RemUIOp, floating=RemfOp),
    "&": table(signed=arith.AndIOp),
    "|": table(signed=arith.OrIOp),
    "^": table(signed=arith.XOrIOp),
    "<<": table(signed=arith.ShLIOp),
    ">>": table(signed=arith.ShRSIOp),
    ">>>": table(signed=arith.ShRUIOp),
    "minimum": table(signed=arith.MinSIOp, unsigned=arith.MinUIOp, floating=arith.MinnumfOp),
    "maximum": table(signed=arith.MaxSIOp, unsigned=arith.MaxUIOp, floating=arith.MaxnumfOp),
    "minimum_nan": table(signed=arith.MinSIOp, unsigned=arith.MinUIOp, floating=arith.MinimumfOp),
    "maximum_nan": table(signed=arith.MaxSIOp, unsigned=arith.MaxUIOp, floating=arith.MaximumfOp),
}
PREDICATES = {  # of signed and unsigned integers, and of floats
    "==": ("eq", "eq", "oeq"),
    "!=": ("ne", "ne", "une"),
    "<": ("slt", "ult", "olt"),
    "<=": ("sle", "ule", "ole"),
    ">": ("sgt", "ugt", "ogt"),
    ">=": ("sge", "uge", "oge"),
}
MATH: Table = {
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "log": math.LogOp,
    "log2": math.Log2Op,
    "sin": math.SinOp,
    "cos": math.CosOp,
    "sqrt": math.SqrtOp,
    "rsqrt": math.RsqrtOp,
    "floor": math.FloorOp,
    "ceil": math.CeilOp,
    "erf": math.ErfOp,
}


class Arithmetic(Casts):
    """Operators and functions that treat every element alike."""

    def binary(self, operator: str, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        """One op on two operands of one type."""
        op = BINARY[operator].get(a.dtype.name)
        if op is None:
            return self.through_wider(operator, a, b)
        builder = self.builder
        return tl.tensor(builder.insert(binary(op, a.handle, b.handle, builder.loc)).results[0], a.type)

    def overflow_checked(self, operator: str, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        """Return the result of an operator. Debug builds first compute narrow integers in int64, and check their
        range."""
        element, options = a.dtype, self.options
        if options.debug and element.int_bitwidth < 64:
            wide = self.binary(operator, self.cast(a, int64), self.cast(b, int64))
            fits = self.and_(
                self.less_equal(wide, self.constant(element.get_int_max_value(), wide.type)),
                self.greater_equal(wide, self.constant(element.get_int_min_value(), wide.type)),
            )
            self.device_assert(fits, overflow_text(operator, element), None)
        result = self.binary(operator, a, b)
        if options.sanitize and element.is_int_signed():  # see `transforms/sanitize/undefined_values.py`
            result.handle.owner.properties["overflowFlags"] = NO_SIGNED_WRAP
        return result

    def compared(self, operator: str, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        signed, unsigned, floating = PREDICATES[operator]
        element, loc = a.dtype, self.builder.loc
        if element.is_floating():
            op = cmpf(floating, a.handle, b.handle, loc)
        else:
            op = cmpi(signed if element.is_int_signed() else unsigned, a.handle, b.handle, loc)
        return self._emit(op, retype(a.type, int1))

    def inverted(self, x: tl.tensor) -> tl.tensor:
        """Exclusive or with ones."""
        return self.binary("^", x, self.constant(1 if x.dtype.is_bool() else -1, x.type))

    def move_pointer(self, pointer: tl.tensor, offset: int | tl.tensor, operator: str) -> tl.tensor:
        """A signed offset of any width is sign-extended by `tt.addptr` itself; an unsigned one is extended here."""
        if isinstance(offset, tl.tensor):
            if offset.dtype.is_int_unsigned() and offset.dtype.int_bitwidth < 64:
                offset = self.cast(offset, int64)
            offset = self.minus(offset) if operator == "-" else offset
        else:
            value = -offset if operator == "-" else int(offset)
            offset = self.constant(value, retype(pointer.type, int32 if -(2**31) <= value < 2**31 else int64))
        pointer, offset = self.broadcast(pointer, offset)
        return self._emit(tt.AddPtrOp.make(pointer.handle, offset.handle, self.builder.loc), pointer.type)

    def select(self, mask: tl.tensor, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return self._emit(SelectOp.make(mask.handle, x.handle, y.handle, self.builder.loc), x.type)

    def clamped(self, x: tl.tensor, low: tl.tensor, high: tl.tensor, keeps_nan: bool) -> tl.tensor:
        rule = PropagateNan.ALL if keeps_nan else PropagateNan.NONE
        return self._emit(tt.ClampFOp.make(x.handle, low.handle, high.handle, rule, self.builder.loc), x.type)

    def elementary(self, name: str, x: tl.tensor) -> tl.tensor:
        """One of `MATH`, or ``sqrt_rn``, of every element."""
        if name == "sqrt_rn":
            return self._emit(tt.PreciseSqrtOp.make(x.handle, self.builder.loc), x.type)
        return self._emit(unary(MATH[name], x.handle, self.builder.loc), x.type)

    def absolute(self, x: tl.tensor) -> tl.tensor:
        """fp8e4b15, which travels as `i8`, loses its sign bit."""
        if x.dtype.is_fp8e4b15():
            return tl.tensor(self._bit_op(arith.AndIOp, x.handle, 0x7F), x.type)
        return self._emit(
            unary(math.AbsFOp if x.dtype.is_floating() else math.AbsIOp, x.handle, self.builder.loc), x.type
        )

    def fused(self, x: tl.tensor, y: tl.tensor, z: tl.tensor) -> tl.tensor:
        return self._emit(ternary(math.FmaOp, x.handle, y.handle, z.handle, self.builder.loc), z.type)

    def multiplied_high(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return self._emit(tt.MulhiUIOp.make(x.handle, y.handle, self.builder.loc), x.type)

    def precise_quotient(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return self._emit(tt.PreciseDivFOp.make(x.handle, y.handle, self.builder.loc), x.type)

    def assembly(
        self,
        asm: str,
        constraints: str,
        args: Sequence[tl.tensor],
        types: Sequence[dtype],
        is_pure: bool,
        pack: int,
    ) -> list[tl.tensor]:
        handles, results = [value.handle for value in args], [ir_type(type) for type in types]
        op = tt.ElementwiseInlineAsmOp.make(handles, results, asm, constraints, is_pure, pack, self.builder.loc)
        return [tl.tensor(handle, type) for handle, type in zip(self.builder.insert(op).results, types, strict=True)]

    def external(
        self,
        lib_name: str,
        lib_path: str,
        symbol: str,
        args: Sequence[tl.tensor],
        type: dtype,
        is_pure: bool,
    ) -> tl.tensor:
        handles = [value.handle for value in args]
        op = tt.ExternElementwiseOp.make(handles, ir_type(type), lib_name, lib_path, symbol, is_pure, self.builder.loc)
        return self._emit(op, type)
