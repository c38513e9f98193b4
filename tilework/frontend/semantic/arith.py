"""The operators of the language: arithmetic, bits, shifts, and pointer arithmetic.

Each operator is a table from element type to op; the two operands have been given one type before (`operands`):

    a + b      arith.addi  arith.addf                       a // b   arith.divsi  arith.divui
    ptr + i    tt.addptr                                    a >> b   arith.shrsi  arith.shrui, by the sign of a

No target computes in fp8, nor divides 16-bit floats: such operands are widened, and the result is rounded back.
"""

# pyright: reportGeneralTypeIssues=false

import warnings
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.ir import Operation

from tilework.frontend.semantic.operands import Operand, plain, retype
from tilework.ir import tt
from tilework.ir.arith_ext import NO_SIGNED_WRAP, RemfOp, binary
from tilework.language import core as tl
from tilework.language.dtypes import dtype, float16, float32, int32, int64

from .promotion import DIVISIONS, InvalidOperands

if TYPE_CHECKING:
    from . import Semantic

Table = dict[str, type[Operation]]
STANDARD_FLOATS = tuple(dtype.STANDARD_FP_TYPES)


def table(
    *, signed: type[Operation], unsigned: type[Operation] | None = None, floating: type[Operation] | None = None
) -> Table:
    """The op for each element type, by `dtype.name`; one integer op serves both signs unless `unsigned` differs."""
    ops: Table = dict.fromkeys(dtype.SINT_TYPES, signed)
    ops |= dict.fromkeys(dtype.UINT_TYPES, unsigned or signed)
    return ops | dict.fromkeys(STANDARD_FLOATS, floating) if floating else ops


ADD = table(signed=arith.AddiOp, floating=arith.AddfOp)
SUB = table(signed=arith.SubiOp, floating=arith.SubfOp)
MUL = table(signed=arith.MuliOp, floating=arith.MulfOp)
FLOORDIV = table(signed=arith.DivSIOp, unsigned=arith.DivUIOp)
MOD = table(signed=arith.RemSIOp, unsigned=arith.RemUIOp, floating=RemfOp)
DIV: Table = {"fp32": arith.DivfOp, "fp64": arith.DivfOp}
AND, OR, XOR = table(signed=arith.AndIOp), table(signed=arith.OrIOp), table(signed=arith.XOrIOp)
SHL, LSHR, ASHR = table(signed=arith.ShLIOp), table(signed=arith.ShRUIOp), table(signed=arith.ShRSIOp)


class ArithMixin:
    """Operators on numbers and pointers."""

    def binary_op(self: "Semantic", ops: Table, a: tl.tensor, b: tl.tensor, operator: str) -> tl.tensor:
        """One op on two operands of one type."""
        op = ops.get(a.dtype.name)
        if op is None:
            return self._binary_through_wider(ops, a, b, operator)
        builder = self.builder
        return tl.tensor(builder.insert(binary(op, a.handle, b.handle, builder.loc)).results[0], a.type)

    def _binary_through_wider(self: "Semantic", ops: Table, a: tl.tensor, b: tl.tensor, operator: str) -> tl.tensor:
        """Floats too narrow for the op are computed in a wider type; any other type does not have this operator."""
        element = a.dtype
        if not element.is_floating() or "fp32" not in ops:
            raise InvalidOperands(element, b.dtype, operator, "it takes integers; cast the operands with .to()")
        wide = float16 if "fp16" in ops and operator not in DIVISIONS else float32
        return self.cast(self.binary_op(ops, self.cast(a, wide), self.cast(b, wide), operator), element)

    def _checked(self: "Semantic", ops: Table, a: Any, b: Any, operator: str, name: str, sanitize: bool) -> tl.tensor:
        """``+ - *``: in debug builds, narrow integers are checked for overflow first."""
        a, b = self.operands(a, b, operator)
        options = self.options
        checks = sanitize and options.sanitize_overflow and a.dtype.is_int()
        if checks and options.debug:
            self._assert_no_overflow(ops, a, b, name)
        result = self.binary_op(ops, a, b, operator)
        if checks and options.sanitize and a.dtype.is_int_signed():
            result.handle.owner.properties["overflowFlags"] = (
                NO_SIGNED_WRAP  # see `transforms/sanitize/undefined_sources.py`
            )
        return result

    def _assert_no_overflow(self: "Semantic", ops: Table, a: tl.tensor, b: tl.tensor, name: str) -> None:
        """Compute in int64 and assert that the result is in the range of the type."""
        element = a.dtype
        if element.int_bitwidth >= 64:
            return
        wide = self.binary_op(ops, self.cast(a, int64), self.cast(b, int64), name)
        fits = self.and_(
            self.less_equal(wide, self.constant(element.get_int_max_value(), wide.type)),
            self.greater_equal(wide, self.constant(element.get_int_min_value(), wide.type)),
        )
        self.device_assert(fits, f"int{element.int_bitwidth} overflow detected for operation {name}", None)

    def add(self: "Semantic", a: Operand, b: Operand, sanitize_overflow: bool = True) -> tl.tensor:
        """``a + b``; one of them may be a pointer."""
        left, right = is_pointer(a), is_pointer(b)
        if left and right:
            raise TypeError(
                f"cannot add pointers together: {a} and {b}; add an integer offset, or cast one to tl.int64"
            )
        if left:
            return self._offset_pointer(a, b, "+")
        if right:
            return self._offset_pointer(b, a, "+")
        return self._checked(ADD, a, b, "+", "add", sanitize_overflow)

    def sub(self: "Semantic", a: Operand, b: Operand, sanitize_overflow: bool = True) -> tl.tensor:
        """``a - b``; `a` may be a pointer."""
        if is_pointer(a):
            return self._offset_pointer(a, b, "-")
        return self._checked(SUB, a, b, "-", "sub", sanitize_overflow)

    def mul(self: "Semantic", a: Operand, b: Operand, sanitize_overflow: bool = True) -> tl.tensor:
        """``a * b``."""
        return self._checked(MUL, a, b, "*", "mul", sanitize_overflow)

    def _offset_pointer(self: "Semantic", pointer: Any, offset: Any, operator: str) -> tl.tensor:
        """``pointer + offset`` or ``pointer - offset``, counted in elements.

        A signed offset of any width is sign-extended by `tt.addptr` itself; an unsigned one is extended here.
        """
        if pointer.dtype.element_ty.is_block():
            raise InvalidOperands(pointer.dtype, offset, operator, "move a block pointer with tl.advance")
        if isinstance(offset, tl.tensor):
            offset = self._signed_offset(pointer, offset, operator)
        else:
            value = plain(offset)
            if not isinstance(value, int):
                raise InvalidOperands(pointer.dtype, shown_type(value), operator, "an offset is an integer")
            value = -value if operator == "-" else int(value)
            width = int32 if -(2**31) <= value < 2**31 else int64
            offset = self.constant(value, retype(pointer.type, width))
        pointer, offset = self.broadcast(pointer, offset)
        builder = self.builder
        return tl.tensor(
            builder.insert(tt.AddPtrOp.make(pointer.handle, offset.handle, builder.loc)).results[0], pointer.type
        )

    def _signed_offset(self: "Semantic", pointer: tl.tensor, offset: tl.tensor, operator: str) -> tl.tensor:
        element = offset.dtype
        if not element.is_int():
            raise InvalidOperands(pointer.dtype, element, operator, "an offset is an integer; cast it with .to()")
        if element.is_int_unsigned() and element.int_bitwidth < 64:
            offset = self.cast(offset, int64)
        return self.minus(offset) if operator == "-" else offset

    def truediv(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a / b``; two integers are divided as fp32."""
        a, b = self.operands(a, b, "/")
        if a.dtype.is_int():
            a, b = self.cast(a, float32), self.cast(b, float32)
        return self.binary_op(DIV, a, b, "/")

    def floordiv(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a // b`` of integers, rounded toward zero."""
        a, b = self.operands(a, b, "//")
        if not a.dtype.is_int():
            raise TypeError(f"unexpected type {a.dtype}: `//` divides integers; use tl.floor(a / b) for floats")
        return self.binary_op(FLOORDIV, a, b, "//")

    def mod(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a % b``, with the sign of `a`; floats as C's ``fmod``."""
        return self.binary_op(MOD, *self.operands(a, b, "%"), "%")

    def fdiv(self: "Semantic", a: Operand, b: Operand, ieee_rounding: bool = False) -> tl.tensor:
        """Fast division of two floats of one type. `ieee_rounding` changes nothing; `div_rn` rounds correctly."""
        a, b = self._same_type_floats(a, b)
        return self.binary_op(DIV, a, b, "fdiv")

    def _same_type_floats(self: "Semantic", a: Any, b: Any) -> tuple[tl.tensor, tl.tensor]:
        kinds = [x.dtype for x in (a, b) if isinstance(x, tl.tensor)]
        if len(kinds) == 2 and kinds[0] != kinds[1]:
            raise TypeError(f"both operands of fdiv must have the same type, got {kinds[0]} and {kinds[1]}; cast one")
        a, b = self.operands(a, b, "fdiv")
        if not a.dtype.is_floating():
            raise TypeError(f"both operands of fdiv must have floating scalar type, got {a.dtype}; use `/`")
        return a, b

    def and_(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a & b`` of integers or bools."""
        return self.binary_op(AND, *self._integers(a, b, "&"), "&")

    def or_(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a | b`` of integers or bools."""
        return self.binary_op(OR, *self._integers(a, b, "|"), "|")

    def xor_(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a ^ b`` of integers or bools."""
        return self.binary_op(XOR, *self._integers(a, b, "^"), "^")

    def _integers(self: "Semantic", a: Any, b: Any, operator: str) -> tuple[tl.tensor, tl.tensor]:
        """The operands of a bit operation; the error shows the types as they were written."""
        left, right = a, b
        a, b = self.operands(a, b, operator)
        if not a.dtype.is_int():
            help = "it takes integers; cast with .to(), or use bitcast=True for the bits"
            raise InvalidOperands(shown_type(left), shown_type(right), operator, help)
        return a, b

    def shl(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a << b``."""
        warn_about_shift(a, b)
        return self.binary_op(SHL, *self._integers(a, b, "<<"), "<<")

    def lshr(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a >> b`` with zeros coming in."""
        warn_about_shift(a, b)
        return self.binary_op(LSHR, *self._integers(a, b, ">>"), ">>")

    def ashr(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a >> b`` with copies of the sign coming in."""
        warn_about_shift(a, b)
        return self.binary_op(ASHR, *self._integers(a, b, ">>"), ">>")

    def shr(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a >> b``: arithmetic if `a` is signed before promotion; a number takes the sign of `b`."""
        decides = a if isinstance(a, tl.tensor) else b
        signed = isinstance(decides, tl.tensor) and decides.dtype.is_int_signed()
        return self.ashr(a, b) if signed else self.lshr(a, b)

    def minus(self: "Semantic", x: Operand) -> tl.tensor:
        """``-x``, computed as ``0 - x``."""
        value = self.to_tensor(x)
        if value.dtype.is_ptr():
            raise ValueError(f"wrong type argument to unary minus ({value.dtype}): a pointer cannot be negated")
        return self.sub(self.constant(0, value.type), value, True)

    def plus(self: "Semantic", x: Operand) -> tl.tensor:
        """``+x`` is only defined for compile-time numbers."""
        raise TypeError(f"unary plus does not exist for {self.to_tensor(x)}: write the value without `+`")

    def invert(self: "Semantic", x: Operand) -> tl.tensor:
        """``~x`` of an integer; of a bool, its negation."""
        value = self.to_tensor(x)
        if not value.dtype.is_int():
            raise ValueError(f"wrong type argument to unary invert ({value.dtype}): `~` takes integers and bools")
        ones = 1 if value.dtype.is_bool() else -1
        return self.binary_op(XOR, value, self.constant(ones, value.type), "^")

    def not_(self: "Semantic", x: Operand) -> tl.tensor:
        """``not x`` of a bool."""
        return self.invert(self._truth(x, "not"))

    def logical_and(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a and b`` of bools; both are evaluated."""
        return self.and_(self._truth(a, "and"), self._truth(b, "and"))

    def logical_or(self: "Semantic", a: Operand, b: Operand) -> tl.tensor:
        """``a or b`` of bools; both are evaluated."""
        return self.or_(self._truth(a, "or"), self._truth(b, "or"))

    def _truth(self: "Semantic", x: Any, operator: str) -> tl.tensor:
        value = self.to_tensor(x)
        if not value.dtype.is_bool():
            raise ValueError(
                f"Cannot bitcast data-type of size {value.dtype.primitive_bitwidth} to data-type of size 1: "
                f"`{operator}` takes bools, got {value.dtype}; write `x != 0`"
            )
        return value


def shown_type(x: object) -> object:
    """The type of an operand in an error: the element type, or the Python type of a number."""
    return x.dtype if isinstance(x, tl.tensor) else type(plain(x)).__name__


def is_pointer(x: object) -> bool:
    """A tensor of pointers."""
    return isinstance(x, tl.tensor) and x.dtype.is_ptr()


def warn_about_shift(a: object, b: object) -> None:
    """Warn when a constant count shifts every bit of a tensor out."""
    count = plain(b)
    if isinstance(a, tl.tensor) and isinstance(count, int) and a.dtype.is_int():
        width = a.dtype.int_bitwidth
        if count >= width > 1:
            warnings.warn(f"shifting {a.dtype} by {count} gives an undefined value: it has {width} bits", stacklevel=3)
