"""Functions of elements: `where`, `minimum`, `clamp`, mathematics, and code written in another language.

    tl.where(mask, x, 0)            arith.select %mask, %x, %zero
    tl.minimum(a, b)                arith.minsi, arith.minui, arith.minnumf (a number wins over NaN)
    tl.clamp(x, 0.0, 1.0)           tt.clampf %x, %lo, %hi, propagateNan = none
    tl.exp(x)                       math.exp, for fp32 and fp64 only

Numbers are weak in `where` only; elsewhere they have their own type: ``tl.maximum(h, 1.0)`` of an fp16 `h` is fp32.
"""

# pyright: reportGeneralTypeIssues=false

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith, math
from xdsl.ir import Operation

from tilework.frontend.semantic.operands import Operand, plain, retype
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp, ternary, unary
from tilework.ir.enums import PropagateNan
from tilework.language import core as tl
from tilework.language.dtypes import dtype, float32, int1

from .arith import table

if TYPE_CHECKING:
    from . import Semantic

MINIMUM = {
    PropagateNan.NONE: table(signed=arith.MinSIOp, unsigned=arith.MinUIOp, floating=arith.MinnumfOp),
    PropagateNan.ALL: table(signed=arith.MinSIOp, unsigned=arith.MinUIOp, floating=arith.MinimumfOp),
}
MAXIMUM = {
    PropagateNan.NONE: table(signed=arith.MaxSIOp, unsigned=arith.MaxUIOp, floating=arith.MaxnumfOp),
    PropagateNan.ALL: table(signed=arith.MaxSIOp, unsigned=arith.MaxUIOp, floating=arith.MaximumfOp),
}
MATH: dict[str, type[Operation]] = {
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
WIDE_FLOATS = ("fp32", "fp64")
MULHI_TYPES = ("int32", "int64", "uint32", "uint64")
RULES = {"NONE": PropagateNan.NONE, "ALL": PropagateNan.ALL}


class ElementwiseMixin:
    """Functions that treat every element alike."""

    def where(self: "Semantic", condition: Operand, x: Operand, y: Operand) -> tl.tensor:
        """`x` where `condition` holds, else `y`; all three broadcast together."""
        mask = self.to_tensor(condition)
        if not mask.dtype.is_bool():
            warnings.warn(
                f"tl.where with a non-boolean condition is deprecated and will error out: got {mask.dtype}, "
                "write `condition != 0`",
                stacklevel=2,
            )
            mask = self.cast(mask, int1)
        x, y = self._choices(x, y)
        if mask.type.is_block() or x.type.is_block():
            mask, x = self.broadcast(mask, x)
            x, y = self.broadcast(x, y)
        return self._emit(SelectOp.make(mask.handle, x.handle, y.handle, self.builder.loc), x.type)

    def _choices(self: "Semantic", x: Any, y: Any) -> tuple[tl.tensor, tl.tensor]:
        """The two sides of `where`: equal pointers, or numbers of one type."""
        types = [value.dtype for value in (x, y) if isinstance(value, tl.tensor)]
        if not any(element.is_ptr() for element in types):
            return self.operands(x, y, "where")
        if len(types) == 2 and types[0] == types[1]:
            return self.broadcast(x, y)
        shown = [value.dtype if isinstance(value, tl.tensor) else plain(value) for value in (x, y)]
        raise TypeError(f"tl.where of a pointer needs two pointers of one type, got {shown[0]} and {shown[1]}")

    def minimum(self: "Semantic", a: Operand, b: Operand, propagate_nan: Any = PropagateNan.NONE) -> tl.tensor:
        """The smaller of each pair of elements."""
        ops = MINIMUM[nan_rule(propagate_nan)]
        return self.binary_op(ops, *self._without_bf16(a, b, "minimum"), "minimum")

    def maximum(self: "Semantic", a: Operand, b: Operand, propagate_nan: Any = PropagateNan.NONE) -> tl.tensor:
        """The larger of each pair of elements."""
        ops = MAXIMUM[nan_rule(propagate_nan)]
        return self.binary_op(ops, *self._without_bf16(a, b, "maximum"), "maximum")

    def _without_bf16(self: "Semantic", a: Any, b: Any, name: str) -> tuple[tl.tensor, tl.tensor]:
        """Strong operands of one type, with bf16 widened to fp32 before anything else."""
        return self.operands(self._widen_bf16(a), self._widen_bf16(b), name, weak=False)

    def _widen_bf16(self: "Semantic", x: Any) -> Any:
        return self.cast(x, float32) if isinstance(x, tl.tensor) and x.dtype.is_bf16() else x

    def clamp(
        self: "Semantic", x: Operand, min: Operand, max: Operand, propagate_nan: Any = PropagateNan.NONE
    ) -> tl.tensor:
        """``minimum(maximum(x, min), max)`` of floats in one op."""
        rule = nan_rule(propagate_nan)
        low, high = self._without_bf16(min, max, "clamp")
        value, low = self._without_bf16(x, low, "clamp")
        value, high = self._without_bf16(value, high, "clamp")
        if not value.dtype.is_standard_floating():
            raise TypeError(
                f"Unexpected dtype {value.dtype}. Only floating point clamp is supported; "
                "use tl.minimum and tl.maximum for integers"
            )
        op = tt.ClampFOp.make(value.handle, low.handle, high.handle, rule, self.builder.loc)
        return self._emit(op, value.type)

    def math_op(self: "Semantic", name: str, x: Operand) -> tl.tensor:
        """One of `MATH`, or ``sqrt_rn``, of every element."""
        value = self.to_tensor(x)
        if name == "sqrt_rn":
            expect_dtype(value, ("fp32",), name)
            return self._emit(tt.PreciseSqrtOp.make(value.handle, self.builder.loc), value.type)
        expect_dtype(value, WIDE_FLOATS, name)
        return self._emit(unary(MATH[name], value.handle, self.builder.loc), value.type)

    def abs(self: "Semantic", x: Operand) -> tl.tensor:
        """The absolute value; unsigned integers are returned as they are."""
        value = self.to_tensor(x)
        element, loc = value.dtype, self.builder.loc
        if element.is_fp8e4b15():
            return tl.tensor(self._bits(arith.AndIOp, value.handle, 0x7F), value.type)
        if element.is_floating():
            return self._emit(unary(math.AbsFOp, value.handle, loc), value.type)
        if element.is_int_signed():
            return self._emit(unary(math.AbsIOp, value.handle, loc), value.type)
        assert element.is_int_unsigned(), f"Unexpected dtype {element}: abs takes numbers"
        return value

    def fma(self: "Semantic", x: Operand, y: Operand, z: Operand) -> tl.tensor:
        """``x * y + z`` with one rounding, in the common type of the three."""
        a, b = self.operands(x, y, "fma", weak=False)
        a, c = self.operands(a, z, "fma", weak=False)
        b, c = self.operands(b, c, "fma", weak=False)
        if not c.dtype.is_standard_floating():
            raise TypeError(f"fma takes floats of 16 bits or more, got {c.dtype}; use x * y + z for integers")
        op = ternary(math.FmaOp, a.handle, b.handle, c.handle, self.builder.loc)
        return self._emit(op, c.type)

    def umulhi(self: "Semantic", x: Operand, y: Operand) -> tl.tensor:
        """The high half of the unsigned product, as wide as the operands."""
        for value in (x, y):
            expect_dtype(value, MULHI_TYPES, "umulhi")
        a, b = self.operands(x, y, "umulhi", weak=False)
        return self._emit(tt.MulhiUIOp.make(a.handle, b.handle, self.builder.loc), a.type)

    def div_rn(self: "Semantic", x: Operand, y: Operand) -> tl.tensor:
        """``x / y`` in fp32, correctly rounded."""
        for value in (x, y):
            expect_dtype(value, ("fp32",), "div_rn")
        a, b = self.operands(x, y, "div_rn", weak=False)
        return self._emit(tt.PreciseDivFOp.make(a.handle, b.handle, self.builder.loc), a.type)

    def inline_asm_elementwise(
        self: "Semantic",
        asm: str,
        constraints: str,
        args: Sequence[Operand],
        dtypes: Sequence[dtype],
        is_pure: bool,
        pack: int,
    ) -> list[tl.tensor]:
        """One tensor per element of `dtypes`, computed by assembly; `pack` elements at a time."""
        if not isinstance(asm, str) or not isinstance(constraints, str):
            raise TypeError(
                f"the assembly and its constraints must be compile-time strings, got {asm} and {constraints}"
            )
        if not isinstance(pack, int) or pack < 1 or pack & (pack - 1):
            raise ValueError(f"pack must be a compile-time power of 2, got {pack}")
        if not dtypes or not all(isinstance(element, dtype) for element in dtypes):
            raise TypeError(f"inline assembly returns one dtype, or a tuple of them, got {', '.join(map(str, dtypes))}")
        values = self.broadcast_all([self.to_tensor(x) for x in args])
        shaped = values[0].type if values else dtypes[0]
        types = [retype(shaped, element) for element in dtypes]
        handles = [value.handle for value in values]
        op = tt.ElementwiseInlineAsmOp.make(
            handles, [ir_type(type) for type in types], asm, constraints, is_pure, pack, self.builder.loc
        )
        results = self.builder.insert(op).results
        return [tl.tensor(handle, type) for handle, type in zip(results, types, strict=True)]

    def extern_elementwise(
        self: "Semantic",
        lib_name: str,
        lib_path: str,
        args: Sequence[Operand],
        arg_type_symbol_dict: Mapping[tuple[dtype, ...], tuple[str, dtype]],
        is_pure: bool,
    ) -> tl.tensor:
        """Call a library function on every element; the argument types choose its symbol and result type."""
        values = [self.to_tensor(x) for x in args]
        key = tuple(value.dtype for value in values)
        if key not in arg_type_symbol_dict:
            known = "; ".join(", ".join(map(str, types)) for types in arg_type_symbol_dict)
            got = ", ".join(map(str, key))
            raise ValueError(f"no function for arguments of type ({got}); it exists for: {known}")
        symbol, result = arg_type_symbol_dict[key]
        values = self.broadcast_all(values)
        type = retype(values[0].type, result) if values else result
        op = tt.ExternElementwiseOp.make(
            [value.handle for value in values], ir_type(type), lib_name, lib_path, symbol, is_pure, self.builder.loc
        )
        return self._emit(op, type)


def nan_rule(propagate_nan: Any) -> PropagateNan:
    """The IR's rule for `tl.PropagateNan`."""
    rule = RULES.get(getattr(propagate_nan, "name", ""))
    if rule is None:
        raise ValueError(f"unexpected propagate_nan {propagate_nan!r}: use tl.PropagateNan.NONE or tl.PropagateNan.ALL")
    return rule


def expect_dtype(value: object, names: tuple[str, ...], function: str) -> None:
    """Refuse a tensor whose element type the function does not take; numbers are converted later."""
    if isinstance(value, tl.tensor) and value.dtype.name not in names:
        raise ValueError(f"Expected dtype {list(names)} but got {value.dtype}: cast the argument of {function}")
