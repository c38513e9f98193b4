"""The formulas of this folder on NumPy arrays: what compiled code computes, bit for bit.

    >>> compute("exp", np.float32([0.0, 1.0]))
    array([1.       , 2.7182817], dtype=float32)

`ArrayBuilder` has the methods of the LLVM builder that formulas use, and computes where that one writes. Every
operation is exact or rounded once, so there is nothing in which the two could differ. All arrays have one dimension;
where lanes take different ways, both are computed and each lane keeps its own. Integers are held unsigned; those wider
than 64 bits are Python's.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from tilework.numerics.arithmetic import Arithmetic, greater, lesser
from tilework.numerics.integers import leading_zeros, one_bits, reversed_bits, trailing_zeros
from tilework.numerics.libdevice_table import SYMBOLS
from tilework.numerics.rounding import SIGNED, UNSIGNED, Array, to_integer
from tilework.targets.llvm.math.table import FUNCTIONS
from tilework.targets.llvm.types import Type, f32, f64, i1, i8, i64, integer
from tilework.targets.llvm.values import Value

REAL: dict[Type, np.dtype[Any]] = {f32: np.dtype(np.float32), f64: np.dtype(np.float64)}
OBJECT = np.dtype(object)


class Held(NamedTuple):
    """The lanes of a value."""

    type: Type
    array: Array
    constant = None  # as of a `Value` that is not known when compiled


class Table(NamedTuple):
    """A pointer into an array of constants, in bytes, one for each lane."""

    values: Sequence[Any]
    offset: Array


def dtype_of(type: Type) -> np.dtype[Any]:
    if type.is_float:
        return REAL[type]
    return np.dtype(np.bool_) if type is i1 else UNSIGNED[type.bits // 8] if type.bits <= 64 else OBJECT


def filled(type: Type, value: Any) -> Array:
    """Return an array with one value."""
    if type.is_int and type is not i1:
        value = int(value) & type.mask
    return np.array([value], dtype_of(type))


def as_signed(type: Type, array: Array) -> Array:
    if dtype_of(type) != OBJECT:
        return array.view(SIGNED[array.dtype.itemsize])
    half = 1 << (type.bits - 1)
    return (array ^ half) - half


def as_unsigned(type: Type, array: Array) -> Array:
    """Return integers modulo the width of the type, as Python or NumPy integers."""
    if dtype_of(type) == OBJECT:
        return array.astype(OBJECT) & type.mask
    if type is i1:
        return (array & 1).astype(np.bool_)
    return (array & type.mask if array.dtype == OBJECT else array).astype(dtype_of(type))


def bits_of(value: Held) -> Array:
    return value.array.view(UNSIGNED[value.array.dtype.itemsize])


Compute = Callable[[Any, Any], Any]


def on_integers(compute: Compute, signed: bool = False) -> Callable[..., Held]:
    def method(self: "ArrayBuilder", a: Any, b: Any, flags: str = "") -> Held:
        type, x, y = self.both(a, b)
        if signed:
            x, y = as_signed(type, x), as_signed(type, y)
        return Held(type, as_unsigned(type, np.asarray(compute(x, y))))

    return method


def shift(compute: Compute, signed: bool = False) -> Callable[..., Held]:
    """Return the method of a shift. Amounts are taken modulo the width, because lanes that are not used may exceed
    it."""

    def method(self: "ArrayBuilder", a: Any, b: Any) -> Held:
        type, x, y = self.both(a, b)
        amount = y % type.bits
        if signed:
            x, amount = as_signed(type, x), as_signed(type, amount)
        return Held(type, as_unsigned(type, np.asarray(compute(x, amount))))

    return method


def on_floats(compute: Callable[..., Any]) -> Callable[..., Held]:
    def method(self: "ArrayBuilder", *args: Any) -> Held:
        type = next(arg.type for arg in args if isinstance(arg, (Held, Value)))
        return Held(type, np.asarray(compute(*(self.array(arg, type) for arg in args))).astype(dtype_of(type)))

    return method


def on_bits(compute: Callable[[Array, int], Any]) -> Callable[["ArrayBuilder", Any], Held]:
    """A function of the pattern of a float and its sign bit."""

    def method(self: "ArrayBuilder", a: Held) -> Held:
        a = self.held(a)
        pattern = bits_of(a)
        return Held(
            a.type, np.asarray(compute(pattern, pattern.dtype.type(1 << (a.type.bits - 1)))).view(a.array.dtype)
        )

    return method


def counted(narrow: Callable[[Array], Array], wide: Callable[[int, int], int]) -> Callable[..., Held]:
    """A function of the bits of an integer: of an array, or of Python's integers and their width."""

    def method(self: "ArrayBuilder", a: Any, *more: Any) -> Held:
        a = self.held(a)
        if a.array.dtype == OBJECT:
            return Held(a.type, np.array([wide(value, a.type.bits) for value in a.array], OBJECT))
        return Held(a.type, narrow(a.array).astype(a.array.dtype))

    return method


def round_half_away(x: Array) -> Array:
    size = np.abs(x)
    whole = np.trunc(size)
    return np.copysign(whole + (size - whole >= 0.5).astype(x.dtype), x)


def fused(a: Array, b: Array, c: Array) -> Array:
    a, b, c = np.broadcast_arrays(a, b, c)
    return Arithmetic.of(a.dtype).fma(a, b, c)


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


class Constants:
    """The part of an LLVM module that formulas need."""

    scales = False
    approximations: Mapping[str, Callable[..., Held]] = {}

    def table(self, name: str, element: Type, values: Sequence[Any], align: int = 0) -> Table:
        return Table(values, np.zeros(1, np.int64))


class ArrayBuilder:
    """The builder of formulas, on arrays."""

    def __init__(self) -> None:
        self.module = Constants()
        self.active = np.ones(1, np.bool_)  # the lanes that take the present way

    def fast_math(self, *flags: str) -> AbstractContextManager[None]:
        assert not flags
        return nullcontext()

    def array(self, value: Any, type: Type) -> Array:
        """The lanes of an operand; a Python value takes the type of the other operand."""
        if isinstance(value, Held):
            return value.array
        return filled(type, value.constant if isinstance(value, Value) else value)

    def held(self, value: Any) -> Held:
        return value if isinstance(value, Held) else Held(value.type, self.array(value, value.type))

    def both(self, a: Any, b: Any) -> tuple[Type, Array, Array]:
        type = (a if isinstance(a, (Held, Value)) else b).type
        return type, self.array(a, type), self.array(b, type)

    add = on_integers(operator.add)
    sub = on_integers(operator.sub)
    mul = on_integers(operator.mul)
    and_ = on_integers(operator.and_)
    or_ = on_integers(operator.or_)
    xor = on_integers(operator.xor)
    udiv = on_integers(operator.floordiv)
    urem = on_integers(operator.mod)
    umin, umax = on_integers(np.minimum), on_integers(np.maximum)
    smin, smax = on_integers(np.minimum, signed=True), on_integers(np.maximum, signed=True)
    shl, lshr, ashr = shift(operator.lshift), shift(operator.rshift), shift(operator.rshift, signed=True)
    fadd, fsub, fmul = map(on_floats, (operator.add, operator.sub, operator.mul))
    fdiv, fma = on_floats(np.divide), on_floats(fused)
    sqrt, rint, floor, ceil, trunc_float = map(on_floats, (np.sqrt, np.rint, np.floor, np.ceil, np.trunc))
    round_half_away = on_floats(round_half_away)
    minimum, maximum = on_floats(lesser), on_floats(greater)
    fneg, fabs = on_bits(lambda pattern, sign: pattern ^ sign), on_bits(lambda pattern, sign: pattern & ~sign)
    ctlz = counted(leading_zeros, lambda value, width: width - value.bit_length())
    cttz = counted(trailing_zeros, lambda value, width: (value & -value).bit_length() - 1 if value else width)
    ctpop = counted(one_bits, lambda value, width: value.bit_count())
    bitreverse = counted(reversed_bits, lambda value, width: int(f"{value:0{width}b}"[::-1], 2))

    def copysign(self, a: Any, b: Any) -> Held:
        type, x, y = self.both(a, b)
        sign = UNSIGNED[type.bits // 8].type(1 << (type.bits - 1))
        return Held(type, np.asarray((bits_of(Held(type, x)) & ~sign) | (bits_of(Held(type, y)) & sign)).view(x.dtype))

    def neg(self, a: Held) -> Held:
        return self.sub(0, self.held(a))

    def abs(self, a: Any) -> Held:
        a = self.held(a)
        return self.select(self.icmp("slt", a, 0), self.neg(a), a)

    def not_(self, a: Held) -> Held:
        return self.xor(a, a.type.mask)

    def intrinsic(self, name: str, type: Type, *args: Any) -> Held:
        return getattr(self, name)(*args)

    def icmp(self, predicate: str, a: Any, b: Any) -> Held:
        type, x, y = self.both(a, b)
        if predicate[0] == "s":
            x, y = as_signed(type, x), as_signed(type, y)
        return Held(i1, np.asarray(COMPARE[predicate[-2:]](x, y)).astype(np.bool_))

    def fcmp(self, predicate: str, a: Any, b: Any) -> Held:
        _, x, y = self.both(a, b)
        unordered = np.isnan(x) | np.isnan(y)
        if predicate in ("ord", "uno"):
            return Held(i1, unordered if predicate == "uno" else ~unordered)
        held = COMPARE[predicate[-2:]](x, y)
        return Held(i1, held | unordered if predicate[0] == "u" else held & ~unordered)

    def select(self, condition: Any, a: Any, b: Any) -> Held:
        type, x, y = self.both(a, b)
        return Held(type, np.where(self.array(condition, i1), x, y).astype(dtype_of(type)))

    def funnel_left(self, high: Any, low: Any, amount: Any) -> Held:
        type, x, y = self.both(high, low)
        shifts = self.array(amount, type).astype(OBJECT) % type.bits
        whole = (x.astype(OBJECT) << type.bits) | y.astype(OBJECT)
        return Held(type, as_unsigned(type, (whole << shifts) >> type.bits))

    def mul_high(self, a: Any, b: Any, is_signed: bool) -> Held:
        type, x, y = self.both(a, b)
        x, y = ((as_signed(type, side) if is_signed else side).astype(OBJECT) for side in (x, y))
        return Held(type, as_unsigned(type, (x * y) >> type.bits))

    # Conversions

    def zext(self, a: Any, type: Type) -> Held:
        return Held(type, as_unsigned(type, self.held(a).array))

    trunc = zext

    def sext(self, a: Any, type: Type) -> Held:
        a = self.held(a)
        return Held(type, as_unsigned(type, as_signed(a.type, a.array)))

    def bitcast(self, a: Any, type: Type) -> Held:
        return Held(type, self.held(a).array.view(dtype_of(type)))

    def fpext(self, a: Any, type: Type) -> Held:
        return Held(type, self.held(a).array.astype(dtype_of(type)))

    fptrunc = uitofp = fpext

    def sitofp(self, a: Any, type: Type) -> Held:
        a = self.held(a)
        return Held(type, as_signed(a.type, a.array).astype(dtype_of(type)))

    def fptosi_sat(self, a: Any, type: Type) -> Held:
        return Held(type, as_unsigned(type, to_integer(self.held(a).array, SIGNED[type.bits // 8])))

    def fptoui_sat(self, a: Any, type: Type) -> Held:
        return Held(type, to_integer(self.held(a).array, UNSIGNED[type.bits // 8]))

    # Tables, structs

    def gep(self, base: Table, index: Any, element: Type = i8) -> Table:
        index = self.held(index) if isinstance(index, (Held, Value)) else Held(i64, filled(i64, index))
        return Table(base.values, base.offset + as_signed(index.type, index.array) * (element.bits // 8))

    def load(self, type: Type, address: Table, align: int = 0) -> Held:
        """A lane that is not used may point anywhere."""
        indices = np.clip(address.offset // (type.bits // 8), 0, len(address.values) - 1)
        return Held(type, np.concatenate([filled(type, address.values[index]) for index in indices]))

    def build_struct(self, type: Type, fields: Sequence[Any]) -> Any:
        return tuple(fields)

    def extract_value(self, whole: Any, field: int) -> Any:
        return whole[field]

    def lanes(self, a: Held) -> list[Held]:
        """Return the vector as the only element: NumPy computes all lanes at once."""
        return [a]

    # Ways that lanes take

    def any_lane(self, condition: Any) -> Held:
        return Held(i1, np.array([bool(self.array(condition, i1).any())]))

    def if_else(
        self, condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any], weights: Any = None
    ) -> tuple[Any, ...]:
        known = self.array(condition, i1)
        if known.all() or not known.any():
            return tuple(then() if known.all() else otherwise())
        sides = [self.along(known, then), self.along(~known, otherwise)]
        return tuple(self.select(Held(i1, known), a, b) for a, b in zip(*sides, strict=True))

    def along(self, lanes: Array, way: Callable[[], Any]) -> Any:
        before, self.active = self.active, self.active & lanes
        try:
            return way()
        finally:
            self.active = before

    def rounds(
        self, start: Any, end: Any, initial: Sequence[Any], step: Callable[..., Sequence[Any]], unroll: int | None = 1
    ) -> tuple[Any, ...]:
        """A lane keeps what it has when it has come to its own end."""
        first, last = (as_signed(i64, self.array(bound, i64)) for bound in (start, end))
        values = tuple(self.held(value) for value in initial)
        first, last, active = np.broadcast_arrays(first, last, self.active)
        for index in range(int(first.min()), int(np.where(active, last, first).max())):
            inside = Held(i1, active & (first <= index) & (index < last))
            following = step(Held(i64, filled(i64, index)), values)
            values = tuple(self.select(inside, new, old) for new, old in zip(following, values, strict=True))
        return values

    def outline(self, name: str, result: Type, args: Sequence[Any], body: Callable[..., Any]) -> Any:
        return body(self, tuple(args))


def compute(name: str, *args: Array) -> Array:
    """The function `name` of the table: floats are f32 or f64, integers have 32 or 64 bits.

    A result of integers is signed.
    """
    shape = np.broadcast_shapes(*(np.shape(arg) for arg in args))
    lanes = [np.ascontiguousarray(np.broadcast_to(arg, shape)).reshape(-1) for arg in args]
    with np.errstate(all="ignore"):
        builder: Any = ArrayBuilder()
        made: Any = FUNCTIONS[name](builder, [held(lane) for lane in lanes])
    found = made.array if made.type.is_float or made.type is i1 else as_signed(made.type, made.array)
    return np.broadcast_to(found, lanes[0].shape).reshape(shape)


def held(lanes: Array) -> Any:
    if lanes.dtype.kind == "f":
        return Held(f32 if lanes.dtype.itemsize == 4 else f64, lanes)
    return Held(integer(8 * lanes.dtype.itemsize), lanes.view(UNSIGNED[lanes.dtype.itemsize]))


def call(symbol: str, args: Sequence[Array], dtype: np.dtype[Any]) -> Array | None:
    """A function of libdevice by its symbol, in the type of the result; None if it is not one of them."""
    if symbol not in SYMBOLS:
        return None
    found = compute(SYMBOLS[symbol].function, *args)
    if found.dtype.itemsize == dtype.itemsize and dtype.kind != "b":
        return np.ascontiguousarray(found).view(dtype).reshape(found.shape)
    return found.astype(dtype)
