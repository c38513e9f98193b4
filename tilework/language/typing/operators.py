"""The rules of operators and functions of elements: constants, the common type and shape of two operands, casts.

`operands` prepares every binary operation: it finds the type (`promotion.py`), converts both sides to it and broadcasts
them to one shape. No target computes in fp8, nor divides 16-bit floats: such operands are widened, and the result is
rounded back.

A Python int or float is weak beside an operator, but has its own type as the argument of a function:
``tl.maximum(h, 1.0)`` of an fp16 `h` is fp32.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isinf
from typing import Any

from tilework.language.dtypes import block_type, dtype, float8e5, float16, float32, int1, uint8, void
from tilework.language.elementwise_builtins import PropagateNan
from tilework.language.typing.carrier import Carrier, Pair, Shape
from tilework.language.typing.promotion import (
    DIVISIONS,
    LEFT_WEAK,
    NOT_WEAK,
    NUMBERS,
    RIGHT_WEAK,
    InvalidOperands,
    constant_dtype,
    is_pointer,
    not_a_number,
    plain,
    promote,
    shown_type,
    wider_for,
)
from tilework.language.typing.shapes import beyond_triton, block, common_shape, plain_shape, retype, shape_of
from tilework.language.values import Value, tensor
from tilework.process.triton_version import follows

ROUNDINGS = ("rtne", "rtz")
TRUNCATING_CASTS = {("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "fp8e5"), ("fp32", "fp8e4b15"), ("fp16", "fp8e4b15")}
ADDRESSES = ("int64", "uint64")


def check_cast(value: tensor, target: dtype, rounding: str | None) -> None:
    """Refuse a cast between two types, neither of them a pointer, that does not exist."""
    source = value.dtype
    if rounding is not None:
        check_rounding(source, target, rounding)
    if not is_castable(source, target):
        advice = ""
        if source.is_fp8() or target.is_fp8():
            through = "tl.float16" if "fp8e4b15" in (source.name, target.name) else "tl.float32"
            advice = f": convert through {through}"
        raise AssertionError(f"cannot cast {value} to {target}{advice}")


def is_castable(source: dtype, target: dtype) -> bool:
    """Between integers and floats always; fp8 only from and to other floats, and never directly from fp64."""
    if source.is_void() or target.is_void():
        return False
    if source.is_int() or target.is_int():
        return not (source.is_fp8() or target.is_fp8())
    return not (target.is_fp8() and source.is_fp64()) and not (target.is_fp8e4b15() and source.is_bf16())


def check_rounding(source: dtype, target: dtype, rounding: str) -> None:
    """A rounding mode belongs to a cast that loses bits of a float, and must exist for that pair."""
    if rounding not in ROUNDINGS:
        raise ValueError(f"Invalid rounding mode: {rounding}. Supported rounding modes are 'rtne' and 'rtz'.")
    narrowing = source.is_floating() and target.is_floating() and source.primitive_bitwidth > target.primitive_bitwidth
    if not narrowing:
        raise ValueError(
            "fp_downcast_rounding should be set only for truncating fp conversions. "
            f"Source scalar type is {source} and destination type is {target}"
        )
    if rounding == "rtz" and (source.name, target.name) not in TRUNCATING_CASTS:
        raise ValueError(
            f"a cast from {source} to {target} cannot round toward zero: only from fp32 to fp16, bf16 and fp8e5"
        )


def check_pointer_cast(value: tensor, target: dtype, rounding: str | None) -> None:
    """A pointer becomes another pointer, an integer of 64 bits, or a bool; the integer becomes a pointer again."""
    source = value.dtype
    if rounding is not None:
        check_rounding(source, target, rounding)
    to_integer = target.is_ptr() or target.is_bool() or target.name in ADDRESSES
    if not (to_integer if source.is_ptr() else source.name in ADDRESSES):
        raise AssertionError(f"cannot cast {value} to {target}: only 64-bit integers hold an address; use tl.int64")


def check_bitcast(source: dtype, target: dtype) -> None:
    """Both types have one width."""
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise ValueError(
            f"Cannot bitcast data-type of size {source.primitive_bitwidth} to data-type of size "
            f"{target.primitive_bitwidth}: {source} and {target} differ in width"
        )


def is_fp8_division(a: Value, b: Value) -> bool:
    """Return True if one operand is fp8, and the other one fp8 or a number."""
    found = [x.dtype.is_fp8() for x in (a, b) if isinstance(x, tensor)]
    return bool(found) and all(found)


OVERFLOWING = {"+": "add", "-": "sub", "*": "mul"}


class Values(Carrier):
    """The base of every family: constants, casts, one type and one shape for two operands."""

    def to_tensor(self, x: Value, check_type: bool = True) -> tensor:
        """`x` as a runtime value: a tensor is returned as it is, a number becomes a scalar of its own type.

        Anything else is a TypeError, or with ``check_type=False`` is returned unchanged.
        """
        if isinstance(x, tensor):
            return x
        value = plain(x)
        if isinstance(value, NUMBERS):
            return self.constant(value, constant_dtype(value))
        if not check_type:
            return x  # pyright: ignore[reportReturnType]
        raise not_a_number(value)

    def optional_tensor(self, x: Value | None) -> tensor | None:
        """None for None and ``constexpr(None)``, else the value as a tensor."""
        return None if x is None or plain(x) is None else self.to_tensor(x)

    def scalar_constant(self, value: int | float, dtype: dtype) -> tensor:
        """The number `value` as a scalar of type `dtype`: floats are rounded, integers wrap."""
        return self.constant(value, dtype)

    def nothing(self) -> tensor:
        """The result of an operation done for its effect."""
        return tensor(None, void)

    @property
    def on_target(self) -> str:
        """The end of a message about what a target cannot do: `` on hip:gfx90a``."""
        name, arch = self.options.backend_name, self.options.arch
        return f" on {name}" if arch in (None, "host") else f" on {name}:{arch}"

    def check_dtype(self, element: dtype) -> None:
        """Refuse the fp8 formats that the target does not know."""
        if element.is_fp8() and element.name not in self.options.supported_fp8_dtypes:
            supported = tuple(self.options.supported_fp8_dtypes)
            help = "" if supported else ", which has no 8-bit floats; TILEWORK_SOFTWARE_FP8=1 converts them in software"
            raise ValueError(
                f"type {element} not supported in this architecture. The supported fp8 dtypes are {supported}"
                f"{self.on_target}{help}"
            )

    def checked_shape(self, shape: Shape) -> Shape:
        """`shape`, if a block may have it; Triton wants powers of two."""
        if (refusal := beyond_triton(shape)) is not None:
            self.beyond_triton(ValueError(refusal))
        return shape

    def full(self, shape: Sequence[int], value: Value, dtype: dtype | None) -> tensor:
        """A block filled with one number or scalar; with an empty `shape`, that scalar."""
        sizes = self.checked_shape(plain_shape(shape))
        if isinstance(value, tensor):
            if isinstance(value.type, block_type):
                assert value.type.numel == 1, f"only accepts size-1 tensor to fill a block, got {value.type}"
                value = self.unsplat(value)
            return self.splat(value if dtype is None else self.cast(value, dtype), sizes)
        if dtype is None:
            raise ValueError("dtype must be specified when value is not a tensor")
        constant = plain(value)
        if isinstance(constant, float) and constant != 0 and dtype.is_int() and not dtype.is_bool():
            raise TypeError(
                f"{constant} is a float: it cannot fill a block of type {dtype}; pass an int, or cast the block"
            )
        if dtype is float8e5 and isinstance(constant, float) and isinf(constant):  # a cast gives the largest number
            return self.bitcast(self.constant(0x7C if constant > 0 else 0xFC, block(uint8, sizes)), dtype)
        return self.constant(constant, block(dtype, sizes))

    def cast(self, x: Value, dtype: dtype, fp_downcast_rounding: str | None = None) -> tensor:
        """The elements of `x` converted to `dtype`."""
        value = self.to_tensor(x)
        source, target = value.dtype, dtype.scalar
        if source is target:
            return value
        if source.is_ptr() or target.is_ptr():
            check_pointer_cast(value, target, fp_downcast_rounding)
            return self.convert_pointer(value, target)
        check_cast(value, target, fp_downcast_rounding)
        if target.is_fp8():
            self.check_dtype(target)
        return self.convert(value, target, fp_downcast_rounding)

    def bitcast(self, x: Value, dtype: dtype) -> tensor:
        """The same bits read as `dtype`, which must be as wide."""
        value = self.to_tensor(x)
        source, target = value.dtype, dtype.scalar
        if source is target or source.is_ptr() or target.is_ptr():
            return self.cast(value, target)
        self.check_dtype(target)
        check_bitcast(source, target)
        return self.reinterpret(value, target)

    def operands(self, a: Value, b: Value, operator: str, weak: bool = True) -> Pair:
        """Both operands with the type and shape in which `a operator b` is computed.

        With ``weak=False`` a number has its own type (`constant_dtype`), as in comparisons.
        """
        if operator in DIVISIONS and is_fp8_division(a, b) and follows("fp8-division"):
            a, b = (self.cast(x, float32) if isinstance(x, tensor) else x for x in (a, b))
        if isinstance(a, tensor):
            if isinstance(b, tensor):
                left, right = a.dtype, b.dtype
                result = promote(left.name, right.name, NOT_WEAK, operator)
                if left is not result:
                    a = self.cast(a, result)
                if right is not result:
                    b = self.cast(b, result)
                return (a, b) if a.type is b.type else self.fitting(a, b)
            return self._with_constant(a, b, RIGHT_WEAK, operator, weak)
        if isinstance(b, tensor):
            b, a = self._with_constant(b, a, LEFT_WEAK, operator, weak)
            return a, b
        return self.operands(self.to_tensor(a), self.to_tensor(b), operator)

    def _with_constant(self, x: tensor, constant: Value, side: int, operator: str, weak: bool) -> Pair:
        """`x` and `constant`, in the type of the operation."""
        value = plain(constant)
        if not isinstance(value, NUMBERS):
            left, right = shown_type(x), type(value).__name__
            if side == LEFT_WEAK:
                left, right = right, left
            raise InvalidOperands(left, right, operator, f"{value!r} is not a number")
        return self.constant_operand(x, value, side, operator, weak)

    # -- shapes that two values must share; the views are in `shapes.py` -----------------------------------------

    def fitting(self, a: tensor, b: tensor) -> Pair:
        """As `broadcast`; a carrier that computes with scalars beside blocks overrides it and does not repeat them."""
        return self.broadcast(a, b)

    def broadcast(self, lhs: tensor, rhs: tensor) -> Pair:
        """Both values in their common shape (two scalars remain scalars)."""
        if lhs.type is rhs.type:
            return lhs, rhs
        left, right = shape_of(lhs), shape_of(rhs)
        if left == right:
            return lhs, rhs
        common = common_shape(left, right)
        return self.stretch(lhs, common), self.stretch(rhs, common)

    def broadcast_all(self, values: Sequence[tensor]) -> list[tensor]:
        """All values in one common shape: `broadcast` for any number of them."""
        common: Shape = ()
        for value in values:
            if (shape := shape_of(value)) != common:
                common = common_shape(common, shape)
        return [self.stretch(value, common) for value in values]

    def splat(self, value: tensor, shape: Sequence[int]) -> tensor:
        """Copy a scalar into every element of a block."""
        if value.type.is_block():
            raise ValueError(f"Cannot splat a block: expected a scalar, got {value.type}")
        return self.stretch(value, self.checked_shape(tuple(shape)))

    def unsplat(self, value: tensor) -> tensor:
        """The only element of a one-element block, as a scalar."""
        if not isinstance(value.type, block_type):
            return value
        assert value.type.numel == 1, f"only a block with one element has an item, got shape {list(shape_of(value))}"
        return self.only_element(value)


def _comparison(operator: str) -> Callable[..., tensor]:
    return lambda self, a, b: self.compare(operator, a, b)


def _bit_operation(operator: str) -> Callable[..., tensor]:
    """``a & b`` of integers or bools, and its like."""
    return lambda self, a, b: self._bits(operator, a, b)


class Operators(Values):
    """Operators on numbers and pointers."""

    def through_wider(self, operator: str, a: tensor, b: tensor) -> tensor:
        """`binary` for floats too narrow for it: computed in a wider type."""
        wide = wider_for(operator, a.dtype)
        return self.cast(self.binary(operator, self.cast(a, wide), self.cast(b, wide)), a.dtype)

    def _checked(self, operator: str, a: Value, b: Value, sanitize: bool) -> tensor:
        """``+ - *``: integers may be checked for overflow."""
        a, b = self.operands(a, b, operator)
        if sanitize and self.options.sanitize_overflow and a.dtype.is_int():
            return self.overflow_checked(operator, a, b)
        return self.binary(operator, a, b)

    def add(self, a: Value, b: Value, sanitize_overflow: bool = True) -> tensor:
        """``a + b``; one of them may be a pointer."""
        if is_pointer(a):
            if is_pointer(b):
                raise TypeError(f"cannot add pointers together: {a.dtype} and {b.dtype}")
            return self.moved(a, b, "+")
        if is_pointer(b):
            return self.moved(b, a, "+")
        return self._checked("+", a, b, sanitize_overflow)

    def sub(self, a: Value, b: Value, sanitize_overflow: bool = True) -> tensor:
        """``a - b``; `a` may be a pointer."""
        return self.moved(a, b, "-") if is_pointer(a) else self._checked("-", a, b, sanitize_overflow)

    def mul(self, a: Value, b: Value, sanitize_overflow: bool = True) -> tensor:
        """``a * b``."""
        return self._checked("*", a, b, sanitize_overflow)

    def moved(self, pointer: tensor, offset: Value, operator: str) -> tensor:
        """``pointer + offset`` or ``pointer - offset``, counted in elements; an offset is an integer of any width."""
        if pointer.dtype.element_ty.is_block():  # pyright: ignore[reportAttributeAccessIssue]
            raise InvalidOperands(pointer.dtype, shown_type(offset), operator, "move a block pointer with tl.advance")
        value = plain(offset)
        if isinstance(value, tensor):
            if not value.dtype.is_int():
                help = "an offset is an integer; cast it with .to()"
                raise InvalidOperands(pointer.dtype, value.dtype, operator, help)
        elif not isinstance(value, int):
            raise InvalidOperands(pointer.dtype, shown_type(value), operator, "an offset is an integer")
        else:
            constant_dtype(value)
        return self.move_pointer(pointer, value, operator)

    def truediv(self, a: Value, b: Value) -> tensor:
        """``a / b``; two integers are divided as fp32."""
        a, b = self.operands(a, b, "/")
        if a.dtype.is_int():
            a, b = self.cast(a, float32), self.cast(b, float32)
        return self.binary("/", a, b)

    def floordiv(self, a: Value, b: Value) -> tensor:
        """``a // b`` of integers, rounded toward zero."""
        a, b = self.operands(a, b, "//")
        if not a.dtype.is_int():
            raise TypeError(f"unexpected type {a.dtype}: `//` divides integers; use tl.floor(a / b) for floats")
        return self.binary("//", a, b)

    def mod(self, a: Value, b: Value) -> tensor:
        """``a % b``, with the sign of `a`; floats as C's ``fmod``."""
        return self.binary("%", *self.operands(a, b, "%"))

    def fdiv(self, a: Value, b: Value, ieee_rounding: bool = False) -> tensor:
        """Fast division of two floats of one type. `ieee_rounding` changes nothing; `div_rn` rounds correctly."""
        kinds = [x.dtype for x in (a, b) if isinstance(x, tensor)]
        if len(kinds) == 2 and kinds[0] != kinds[1]:
            raise TypeError(f"both operands of fdiv must have the same type, got {kinds[0]} and {kinds[1]}; cast one")
        a, b = self.operands(a, b, "fdiv")
        if not a.dtype.is_floating():
            raise TypeError(f"both operands of fdiv must have floating scalar type, got {a.dtype}; use `/`")
        return self.binary("fdiv", a, b)

    def _bits(self, operator: str, a: Value, b: Value, kind: str = "") -> tensor:
        """A bit operation; the error shows the types as they were written."""
        left, right = self.operands(a, b, operator)
        if not left.dtype.is_int():
            help = "it takes integers; cast with .to(), or use bitcast=True for the bits"
            raise InvalidOperands(shown_type(a), shown_type(b), operator, help)
        return self.binary(kind or operator, left, right)

    and_, or_, xor_ = _bit_operation("&"), _bit_operation("|"), _bit_operation("^")

    def shl(self, a: Value, b: Value) -> tensor:
        """``a << b``."""
        self._check_shift(a, b)
        return self._bits("<<", a, b)

    def shr(self, a: Value, b: Value) -> tensor:
        """``a >> b``: copies of the sign come in if `a` is signed before promotion; a number takes the sign of `b`."""
        decides = a if isinstance(a, tensor) else b
        signed = isinstance(decides, tensor) and decides.dtype.is_int_signed()
        return self.ashr(a, b) if signed else self.lshr(a, b)

    def ashr(self, a: Value, b: Value) -> tensor:
        """``a >> b`` with copies of the sign coming in."""
        self._check_shift(a, b)
        return self._bits(">>", a, b)

    def lshr(self, a: Value, b: Value) -> tensor:
        """``a >> b`` with zeros coming in."""
        self._check_shift(a, b)
        return self._bits(">>", a, b, ">>>")

    def minus(self, x: Value) -> tensor:
        """``-x``, computed as ``0 - x``."""
        value = self.to_tensor(x)
        if value.dtype.is_ptr():
            raise ValueError(f"wrong type argument to unary minus ({value.dtype}): a pointer cannot be negated")
        return self.sub(self.constant(0, value.type), value, True)

    def plus(self, x: Value) -> tensor:
        """``+x`` is only defined for compile-time numbers."""
        raise TypeError(f"unary plus does not exist for {self.to_tensor(x)}: write the value without `+`")

    def invert(self, x: Value) -> tensor:
        """``~x`` of an integer; of a bool, its negation."""
        value = self.to_tensor(x)
        if not value.dtype.is_int():
            raise ValueError(f"wrong type argument to unary invert ({value.dtype}): `~` takes integers and bools")
        return self.inverted(value)

    def not_(self, x: Value) -> tensor:
        """``not x`` of a bool."""
        return self.invert(self._truth(x, "not"))

    def logical_and(self, a: Value, b: Value) -> tensor:
        """``a and b`` of bools; both are evaluated."""
        return self.and_(self._truth(a, "and"), self._truth(b, "and"))

    def logical_or(self, a: Value, b: Value) -> tensor:
        """``a or b`` of bools; both are evaluated."""
        return self.or_(self._truth(a, "or"), self._truth(b, "or"))

    def _truth(self, x: Value, operator: str) -> tensor:
        value = self.to_tensor(x)
        if value.dtype is void:
            raise ValueError(
                f"Cannot bitcast data-type of size 0 to data-type of size 1: `{operator}` takes bools, and this call"
                " has no result; it would run in any case\nhelp: write `if`"
            )
        if not value.dtype.is_bool():
            raise ValueError(
                f"Cannot bitcast data-type of size {value.dtype.primitive_bitwidth} to data-type of size 1: "
                f"`{operator}` takes bools, got {value.dtype}; write `x != 0`"
            )
        return value

    def compare(self, operator: str, a: Value, b: Value) -> tensor:
        """An int1 for each pair of elements.

        Numbers are not weak here: ``x < 0.5`` compares an fp16 `x` in fp32, and ``x > -1`` compares a uint32 `x` with
        4294967295. Comparisons are false if either side is a NaN, except ``!=``, which is then true.
        """
        a, b = self.operands(a, b, operator, weak=False)
        if a.dtype.is_fp8():
            a, b = self.cast(a, float16), self.cast(b, float16)
        return self.compared(operator, a, b)

    equal, not_equal = _comparison("=="), _comparison("!=")
    less_than, less_equal = _comparison("<"), _comparison("<=")
    greater_than, greater_equal = _comparison(">"), _comparison(">=")

    def _check_shift(self, a: object, b: object) -> None:
        """Warn when a constant count shifts every bit of a tensor out."""
        count = plain(b)
        if isinstance(a, tensor) and isinstance(count, int) and a.dtype.is_int():
            width = a.dtype.int_bitwidth
            if count >= width > 1:
                text = f"shifting {a.dtype} by {count} gives an undefined value: it has {width} bits"
                self.warn(text, UserWarning)

    def where(self, condition: Value, x: Value, y: Value) -> tensor:
        """`x` where `condition` holds, else `y`; all three broadcast together. Numbers are weak."""
        mask = self.to_tensor(condition)
        if not mask.dtype.is_bool():
            self.warn(
                "tl.where with a non-boolean condition is deprecated and will error out in a future triton release."
                f" Got {mask.dtype}: write `condition != 0`",
                UserWarning,
            )
            mask = self.cast(mask, int1)
        x, y = self.broadcast(*self.choices(x, y))
        mask, x = self.broadcast(mask, x)
        x, y = self.broadcast(x, y)
        return self.select(mask, x, y)

    def choices(self, x: Value, y: Value) -> Pair:
        """The two sides of `where`: equal pointers, or numbers of one type."""
        if not (is_pointer(x) or is_pointer(y)):
            return self.operands(x, y, "where")
        if isinstance(x, tensor) and isinstance(y, tensor) and x.dtype == y.dtype:
            return self.broadcast(x, y)
        shown = [value.dtype if isinstance(value, tensor) else plain(value) for value in (x, y)]
        raise TypeError(f"tl.where of a pointer needs two pointers of one type, got {shown[0]} and {shown[1]}")


def overflow_text(operator: str, element: dtype) -> str:
    """Return the message of a debug build for an overflow."""
    return f"int{element.int_bitwidth} overflow detected for operation {OVERFLOWING[operator]}"


WIDE_FLOATS = ("fp32", "fp64")
MULHI_TYPES = ("int32", "int64", "uint32", "uint64")


class Elementwise(Operators):
    """Functions that treat every element alike."""

    def minimum(self, a: Value, b: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
        """The smaller of each pair of elements."""
        name = "minimum_nan" if keeps_nan(propagate_nan) else "minimum"
        return self.binary(name, *self._without_bf16(a, b, "minimum"))

    def maximum(self, a: Value, b: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
        """The larger of each pair of elements."""
        name = "maximum_nan" if keeps_nan(propagate_nan) else "maximum"
        return self.binary(name, *self._without_bf16(a, b, "maximum"))

    def _without_bf16(self, a: Value, b: Value, name: str) -> Pair:
        """Strong operands of one type, with bf16 widened to fp32 before anything else."""
        a, b = (self.cast(x, float32) if isinstance(x, tensor) and x.dtype.is_bf16() else x for x in (a, b))
        return self.operands(a, b, name, weak=False)

    def clamp(self, x: Value, min: Value, max: Value, propagate_nan: PropagateNan = PropagateNan.NONE) -> tensor:
        """``minimum(maximum(x, min), max)`` of floats; a NaN becomes `min` unless it propagates."""
        propagates = keeps_nan(propagate_nan)
        low, high = self._without_bf16(min, max, "clamp")
        value, low = self._without_bf16(x, low, "clamp")
        value, high = self._without_bf16(value, high, "clamp")
        if not value.dtype.is_standard_floating():
            raise TypeError(
                f"Unexpected dtype {value.dtype}. Only floating point clamp is supported; "
                "use tl.minimum and tl.maximum for integers"
            )
        return self.clamped(value, low, high, propagates)

    def math_op(self, name: str, x: Value) -> tensor:
        """The elementary function `name` of fp32 or fp64; ``sqrt_rn`` of fp32 only."""
        value = self.to_tensor(x)
        expect_dtype(value, ("fp32",) if name == "sqrt_rn" else WIDE_FLOATS, name)
        return self.elementary(name, value)

    def math_method(self, name: str, x: tensor) -> tensor:
        """``x.exp()``: unlike ``tl.exp(x)`` it takes halves too; they are computed in fp32 and rounded once."""
        if name != "sqrt_rn" and (x.dtype.is_fp16() or x.dtype.is_bf16()):
            return self.cast(self.elementary(name, self.cast(x, float32)), x.dtype)
        return self.math_op(name, x)

    def abs(self, x: Value) -> tensor:
        """The absolute value; unsigned integers are returned as they are."""
        value = self.to_tensor(x)
        element = value.dtype
        assert element.is_floating() or element.is_int(), f"Unexpected dtype {element}: abs takes numbers"
        return value if element.is_int_unsigned() else self.absolute(value)

    def fma(self, x: Value, y: Value, z: Value) -> tensor:
        """``x * y + z`` with one rounding, in the common type of the three."""
        a, b = self.operands(x, y, "fma", weak=False)
        a, c = self.operands(a, z, "fma", weak=False)
        b, c = self.operands(b, c, "fma", weak=False)
        if not c.dtype.is_standard_floating():
            raise TypeError(f"fma takes floats of 16 bits or more, got {c.dtype}; use x * y + z for integers")
        return self.fused(a, b, c)

    def umulhi(self, x: Value, y: Value) -> tensor:
        """The high half of the unsigned product, as wide as the operands."""
        return self.multiplied_high(*self._of_types(x, y, MULHI_TYPES, "umulhi"))

    def div_rn(self, x: Value, y: Value) -> tensor:
        """``x / y`` in fp32, correctly rounded."""
        return self.precise_quotient(*self._of_types(x, y, ("fp32",), "div_rn"))

    def _of_types(self, x: Value, y: Value, names: Sequence[str], function: str) -> Pair:
        """Two operands of one type, which is one of `names` before and after promotion."""
        expect_dtype(x, names, function)
        expect_dtype(y, names, function)
        a, b = self.operands(x, y, function, weak=False)
        expect_dtype(a, names, function)
        return a, b

    def inline_asm_elementwise(
        self, asm: str, constraints: str, args: Sequence[Any], dtypes: Sequence[dtype], is_pure: bool, pack: int
    ) -> Sequence[tensor]:
        """One tensor per element of `dtypes`, computed by assembly; `pack` elements at a time."""
        if not isinstance(asm, str) or not isinstance(constraints, str):
            raise TypeError(
                f"the assembly and its constraints must be compile-time strings, got {asm} and {constraints}"
            )
        if not isinstance(pack, int) or pack < 1 or pack & (pack - 1):
            raise ValueError(f"pack must be a compile-time power of 2, got {pack}")
        if not dtypes or not all(isinstance(element, dtype) for element in dtypes):
            raise TypeError(f"inline assembly returns one dtype, or a tuple of them, got {', '.join(map(str, dtypes))}")
        if self.options.reproducible:
            raise ValueError(NOT_OURS.format("inline assembly"))
        values = self.broadcast_all([self.to_tensor(x) for x in args])
        shaped = values[0].type if values else dtypes[0]
        types = [retype(shaped, element) for element in dtypes]
        return self.assembly(asm, constraints, values, types, is_pure, pack)

    def extern_elementwise(
        self,
        lib_name: str,
        lib_path: str,
        args: Sequence[Any],
        arg_type_symbol_dict: Mapping[tuple[dtype, ...], tuple[str, dtype]],
        is_pure: bool,
    ) -> tensor:
        """Call a library function on every element; the argument types choose its symbol and result type."""
        values = [self.to_tensor(x) for x in args]
        key = tuple(value.dtype for value in values)
        if key not in arg_type_symbol_dict:
            known = "; ".join(", ".join(map(str, types)) for types in arg_type_symbol_dict)
            raise ValueError(f"no function for arguments of type ({', '.join(map(str, key))}); it exists for: {known}")
        symbol, result = arg_type_symbol_dict[key]
        if self.options.reproducible:
            from tilework.numerics.libdevice_table import SYMBOLS  # lazily: few kernels are

            if symbol not in SYMBOLS:
                raise ValueError(NOT_OURS.format(f"the library function {symbol}"))
        values = self.broadcast_all(values)
        type = retype(values[0].type, result) if values else result
        return self.external(lib_name, lib_path, symbol, values, type, is_pure)


NOT_OURS = (
    "{} cannot be in a reproducible kernel: other devices do not compute its bits;"
    " write it with operations of the language, or leave out reproducible=True"
)


def keeps_nan(propagate_nan: object) -> bool:
    """Return True if NaN wins over numbers."""
    if (name := getattr(propagate_nan, "name", "")) not in ("NONE", "ALL"):
        raise ValueError(f"Unexpected propagate_nan {propagate_nan!r}: use tl.PropagateNan.NONE or tl.PropagateNan.ALL")
    return name == "ALL"


def expect_dtype(value: object, names: Sequence[str], function: str) -> None:
    """Refuse a tensor whose element type the function does not take; numbers are converted later."""
    if isinstance(value, tensor) and value.dtype.name not in names:
        raise ValueError(f"Expected dtype {list(names)} but got {value.dtype}: cast the argument of {function}")
