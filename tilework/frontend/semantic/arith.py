"""Operators and functions of elements as ops: for each a table from element type to op class.

a + b      arith.addi  arith.addf                       a // b   arith.divsi  arith.divui
ptr + i    tt.addptr                                    a >> b   arith.shrsi  arith.shrui, by the sign of a
tl.minimum(a, b)     arith.minsi, arith.minui, arith.minnumf (a number wins over NaN)
tl.exp(x)            math.exp, for fp32 and fp64 only
"""

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from tilework.frontend.semantic.casts import Casts
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir import tt
from tilework.ir.arith_ext import NO_SIGNED_WRAP, RemfOp, SelectOp, binary, cmpf, cmpi, ternary, unary
from tilework.ir.enums import PropagateNan
from tilework.language import core as tl
from tilework.language.dtypes import dtype, int1, int32, int64
from tilework.language.typing.operators import overflow_text
from tilework.language.typing.shapes import retype

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
        """In debug builds, narrow integers are computed in int64 first, and must be in the range of the type."""
        element, options = a.dtype, self.options
        if options.debug and element.int_bitwidth < 64:
            wide = self.binary(operator, self.cast(a, int64), self.cast(b, int64))
            fits = self.and_(
                self.less_equal(wide, self.constant(element.get_int_max_value(), wide.type)),
                self.greater_equal(wide, self.constant(element.get_int_min_value(), wide.type)),
            )
            self.device_assert(fits, overflow_text(operator, element), None)
        result = self.binary(operator, a, b)
        if options.sanitize and element.is_int_signed():  # see `transforms/sanitize/undefined_sources.py`
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

    def high_product(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
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
