"""Formulas over the builder: a value with operators, and sums of two floats for extra precision.

    def square_plus_one(x: Lanes) -> Lanes:
        return fma(x, x, 1.0)

`Lanes` is a scalar or a vector of any width; every operation is lane by lane and there are no branches, so one formula
serves all shapes. A `Pair` is an unevaluated sum hi + lo with lo below half a unit of hi: about 106 bits for f64.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Union

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, f32, f64, i32, i64
from tilework.targets.llvm.values import Value, constant

Operand = Union["Lanes", int, float]


def operator(whole: str, real: str, swap: bool = False) -> Callable[["Lanes", Operand], "Lanes"]:
    """A method of two operands, by the builder's methods for integers and for floats."""

    def method(self: "Lanes", other: Operand) -> "Lanes":
        build, value = getattr(self.b, real if self.v.type.is_float else whole), self.of(other)
        return Lanes(self.b, build(value, self.v) if swap else build(self.v, value))

    return method


def comparison(real: str, whole: str) -> Callable[["Lanes", Operand], "Lanes"]:
    def method(self: "Lanes", other: Operand) -> "Lanes":
        build = self.b.fcmp if self.v.type.is_float else self.b.icmp
        return Lanes(self.b, build(real if self.v.type.is_float else whole, self.v, self.of(other)))

    return method


class Lanes:
    """A builder value with operators. Comparisons give lanes of i1, to use in `where`, `&`, `|`, `~`."""

    __slots__ = ("b", "v")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, b: Builder, v: Value) -> None:
        self.b, self.v = b, v

    @property
    def scalar(self) -> Type:
        return self.v.type.scalar

    @property
    def is_float(self) -> bool:
        return self.v.type.is_float

    def of(self, other: Operand) -> Value:
        """An operand beside this one: numbers take this type."""
        return other.v if isinstance(other, Lanes) else constant(self.v.type, other)

    def const(self, value: int | float) -> "Lanes":
        """A constant of the same type."""
        return Lanes(self.b, constant(self.v.type, value))

    __add__ = operator("add", "fadd")
    __radd__ = operator("add", "fadd", swap=True)
    __sub__ = operator("sub", "fsub")
    __rsub__ = operator("sub", "fsub", swap=True)
    __mul__ = operator("mul", "fmul")
    __rmul__ = operator("mul", "fmul", swap=True)
    __and__ = operator("and_", "and_")
    __or__ = operator("or_", "or_")
    __xor__ = operator("xor", "xor")
    __lshift__ = operator("shl", "shl")
    __rshift__ = operator("ashr", "ashr")
    logical_shift = operator("lshr", "lshr")
    __lt__ = comparison("olt", "slt")
    __le__ = comparison("ole", "sle")
    __gt__ = comparison("ogt", "sgt")
    __ge__ = comparison("oge", "sge")
    equal = comparison("oeq", "eq")
    differs = comparison("une", "ne")

    def __truediv__(self, other: Operand) -> "Lanes":
        return quotient(self, Lanes(self.b, self.of(other)))

    def __rtruediv__(self, other: Operand) -> "Lanes":
        return quotient(Lanes(self.b, self.of(other)), self)

    def __neg__(self) -> "Lanes":
        return Lanes(self.b, self.b.fneg(self.v) if self.v.type.is_float else self.b.neg(self.v))

    def __abs__(self) -> "Lanes":
        return Lanes(self.b, self.b.fabs(self.v) if self.v.type.is_float else self.b.abs(self.v))

    def __invert__(self) -> "Lanes":
        return Lanes(self.b, self.b.not_(self.v))

    def is_nan(self) -> "Lanes":
        return Lanes(self.b, self.b.fcmp("uno", self.v, self.v))


class Pair:
    """hi + lo, with operators."""

    __slots__ = ("hi", "lo")

    def __init__(self, hi: Lanes, lo: Lanes) -> None:
        self.hi, self.lo = hi, lo

    def __iter__(self) -> Iterator[Lanes]:
        return iter((self.hi, self.lo))

    def __neg__(self) -> "Pair":
        return Pair(-self.hi, -self.lo)

    def __add__(self, other: "Pair") -> "Pair":
        high, low = two_sum(self.hi, other.hi)
        return fast_two_sum(high, low + (self.lo + other.lo))

    def __sub__(self, other: "Pair") -> "Pair":
        return self + -other

    def __mul__(self, other: "Pair | Operand") -> "Pair":
        if not isinstance(other, Pair):
            high, low = two_product(self.hi, other)
            return fast_two_sum(high, fma(self.lo, other, low))
        high, low = two_product(self.hi, other.hi)
        return fast_two_sum(high, fma(self.hi, other.lo, fma(self.lo, other.hi, low)))

    def __truediv__(self, other: "Pair") -> "Pair":
        # of f32 one division, whose rounding the rest takes back: there are no quotients near the ends of the range
        inverse = reciprocal(other.hi) if self.hi.scalar is f32 else None
        quotient = self.hi / other.hi if inverse is None else self.hi * inverse
        rest = fma(-quotient, other.hi, self.hi) + (self.lo - quotient * other.lo)
        return fast_two_sum(quotient, rest / other.hi if inverse is None else rest * inverse)

    def root(self) -> "Pair":
        """The square root; that of 0 is 0."""
        root = sqrt(self.hi)
        rest = (fma(-root, root, self.hi) + self.lo) / (root + root)
        return Pair(root, where(root.equal(0.0), 0.0, rest))

    def rounded(self) -> Lanes:
        return self.hi + self.lo


def function(name: str) -> Callable[..., Lanes]:
    """A method of the builder as a function of lanes, of which all but the first may be numbers."""

    def call(a: Lanes, *others: Operand) -> Lanes:
        return Lanes(a.b, getattr(a.b, name)(a.v, *map(a.of, others)))

    call.__name__ = name
    return call


def fma(a: Lanes, b: Operand, c: Operand) -> Lanes:
    return Lanes(a.b, a.b.fma(a.v, a.of(b), a.of(c)))


def approximation(name: str, exact: Callable[..., Lanes] | None = None) -> Callable[..., Lanes]:
    """An approximate instruction of the processor for f32 (`Module.approximations`), or the exact operation."""

    def call(a: Lanes, *others: Lanes) -> Lanes:
        made = a.b.module.approximations.get(name) if a.scalar is f32 else None
        if made is None:
            assert exact is not None, f"the GPU has no approximate {name}"
            return exact(a, *others)
        return Lanes(a.b, made(a.b, a.v, *(other.v for other in others)))

    return call


quotient = approximation("divide", function("fdiv"))
reciprocal = approximation("reciprocal", lambda x: 1.0 / x)
copysign = function("copysign")
smaller, larger = function("minimum"), function("maximum")  # NaN if one is
sqrt = approximation("sqrt", function("sqrt"))
rint, floor, ceil, trunc = map(function, ("rint", "floor", "ceil", "trunc_float"))


def where(condition: Lanes, a: Operand, b: Operand) -> Lanes:
    """`a` where the condition holds; at least one of them is Lanes."""
    like = a if isinstance(a, Lanes) else b
    assert isinstance(like, Lanes)
    return Lanes(like.b, like.b.select(condition.v, like.of(a), like.of(b)))


def clamp(a: Lanes, low: float, high: float) -> Lanes:
    """Between two numbers; a NaN remains."""
    return smaller(larger(a, low), high)


def integer_like(a: Lanes) -> Type:
    """The integer type of the same width and shape."""
    return a.v.type.with_scalar(i32 if a.scalar.bits == 32 else i64)


def bits(a: Lanes) -> Lanes:
    """The pattern of a float."""
    return Lanes(a.b, a.b.bitcast(a.v, integer_like(a)))


def from_bits(a: Lanes) -> Lanes:
    """The float with a pattern."""
    return Lanes(a.b, a.b.bitcast(a.v, a.v.type.with_scalar(f32 if a.scalar.bits == 32 else f64)))


def to_int(a: Lanes) -> Lanes:
    """A float known to be a small integer, as one; NaN and others give 0 or a limit."""
    return Lanes(a.b, a.b.fptosi_sat(a.v, integer_like(a)))


def to_float(a: Lanes, scalar: Type | None = None) -> Lanes:
    return Lanes(a.b, a.b.sitofp(a.v, a.v.type.with_scalar(scalar or (f32 if a.scalar.bits == 32 else f64))))


def widen(a: Lanes) -> Lanes:
    return Lanes(a.b, a.b.fpext(a.v, a.v.type.with_scalar(f64)))


def narrow(a: Lanes) -> Lanes:
    return Lanes(a.b, a.b.fptrunc(a.v, a.v.type.with_scalar(f32)))


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Evaluate a polynomial by Horner's rule; the coefficients begin with the constant term."""
    total = x.const(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = fma(total, x, coefficient)
    return total


def polynomial_paired(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Neighbours first, c0 + c1 x, c2 + c3 x ..., then Horner's rule in x^2: a chain of half the length.

    Only every second sum is one with a constant, which ARM must copy first: its fused multiply-add replaces the addend.
    """
    if len(coefficients) < 4:
        return polynomial(x, coefficients)
    square = x * x
    pairs = [fma(x, high, low) for low, high in zip(coefficients[::2], coefficients[1::2])]
    total = x.const(coefficients[-1]) if len(coefficients) % 2 else pairs.pop()
    for pair in reversed(pairs):
        total = fma(total, square, pair)
    return total


# Pairs


def two_sum(a: Lanes, b: Operand) -> Pair:
    """a + b exactly."""
    total = a + b
    part = total - a
    return Pair(total, (a - (total - part)) + ((b if isinstance(b, Lanes) else a.const(b)) - part))


def fast_two_sum(a: Lanes, b: Operand) -> Pair:
    """a + b exactly, if a is 0 or not smaller than b in magnitude."""
    total = a + b
    return Pair(total, b - (total - a))


def two_product(a: Lanes, b: Operand) -> Pair:
    """a * b exactly."""
    product = a * b
    return Pair(product, fma(a, b, -product))


def pair_where(condition: Lanes, a: Pair, b: Pair) -> Pair:
    return Pair(where(condition, a.hi, b.hi), where(condition, a.lo, b.lo))


def polynomial_led(x: Lanes, leads: Sequence[Sequence[float]], rest: Sequence[float]) -> Pair:
    """Evaluate a polynomial by Horner's rule. The last steps compute a pair from the coefficients `leads`, which have
    two parts each; the steps before use the coefficients `rest`."""
    total = Pair(polynomial(x, rest), x.const(0.0))
    for lead in reversed(leads):
        product, product_low = two_product(total.hi, x)
        high, low = two_sum(product, lead[0])
        total = Pair(high, low + (fma(total.lo, x, product_low) + lead[1]))
    return total


def exact(x: Lanes) -> Pair:
    return Pair(x, x.const(0.0))


def constant_pair(like: Lanes, parts: Sequence[float]) -> Pair:
    return Pair(like.const(parts[0]), like.const(parts[1]))


# Powers of two

BIAS = {f32: 127, f64: 1023}
FRACTION = {f32: 23, f64: 52}


def power_of_two(n: Lanes) -> Lanes:
    """2^n for an integer n within the exponents of normal numbers."""
    scalar = f32 if n.scalar.bits == 32 else f64
    return from_bits((n + BIAS[scalar]) << FRACTION[scalar])


def scale(a: Lanes, n: Lanes) -> Lanes:
    """a * 2^n for |a| near 1 and n up to twice the exponent range: into subnormals and infinity, one rounding."""
    half = n >> 1
    return (a * power_of_two(half)) * power_of_two(n - half)


# larger numbers, and their factor; smaller ones, and theirs: so that no square is too large or too small
EXTREMES = {f32: (2.0**60, 2.0**-80, 2.0**-40, 2.0**100), f64: (2.0**500, 2.0**-600, 2.0**-400, 2.0**600)}


def into_range(size: Lanes) -> tuple[Lanes, Lanes]:
    """A power of two that brings a size to where it can be squared, and its inverse."""
    most, less, least, more = EXTREMES[size.scalar]
    one = size.const(1.0)
    large, small = size > most, size < least
    return where(large, less, where(small, more, one)), where(large, 1 / less, where(small, 1 / more, one))


def repeat(count: int, initial: Sequence[Lanes], step: Callable[..., Sequence[Lanes]]) -> tuple[Lanes, ...]:
    """``values = step(*values)``, `count` times in a loop, so that the code is there once."""
    b = initial[0].b

    def following(index: Value, values: tuple[Value, ...]) -> list[Value]:
        return [value.v for value in step(*(Lanes(b, value) for value in values))]

    return tuple(Lanes(b, value) for value in b.rounds(0, count, [value.v for value in initial], following))


def elementwise_calls(b: Builder, name: str, result: Type, args: Sequence[Value], body: Callable[..., Any]) -> Value:
    """A scalar internal function, called once per lane; for what has loops or branches of its own."""
    count = max(arg.type.count for arg in args)
    if not any(arg.type.is_vector for arg in args):
        return b.outline(name, result, args, body)
    lanes = [b.lanes(arg) if arg.type.is_vector else [arg] * count for arg in args]
    return b.build_vector([b.outline(name, result, list(group), body) for group in zip(*lanes)])
