"""Elementwise expressions, generated. A value knows its source text, its dtype and shape, and how NumPy computes it.

    (tl.where((v1 < n), v0, 3) * v2.to(tl.float16))

Every expression is free of undefined behaviour: divisors are made positive, shift counts cut to 7, floats clamped
before they become integers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tests.fuzz.rules import (
    ARITHMETIC,
    BF16,
    BOOL,
    FLOATS,
    FP16,
    FP32,
    FP64,
    INT32,
    INT64,
    INTS,
    UINT32,
    UINT64,
    Array,
    DType,
    apply,
    convert,
    promote,
)

Shape = tuple[int, ...]
Environment = Mapping[str, Any]
Compute = Callable[[Environment], Array]
WEIGHTS = {
    **{"arithmetic": 8, "bitwise": 3, "shift": 2, "division": 3, "comparison": 2, "where": 3, "extremum": 2},
    **{"unary": 2, "conversion": 4, "function": 3, "logical": 1},
}
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


@dataclass(frozen=True)
class Value:
    """A piece of source; `weak` is its kind when it is a literal."""

    text: str
    dtype: DType
    shape: Shape
    compute: Compute
    weak: str = ""
    literal: Any = None


def unknown(environment: Environment) -> Array:
    raise AssertionError("this kernel has no NumPy twin")


def broadcast(*shapes: Shape) -> Shape:
    return tuple(np.broadcast_shapes(*shapes))


class Expressions:
    """Draws expressions over `pool`, the values in scope."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.pool: list[Value] = []
        self.weights = self.uneven(WEIGHTS)

    def uneven(self, weights: Mapping[str, int]) -> dict[str, int]:
        """Each kernel has its own favourites, so that rare things also meet often in some kernels."""
        return {name: weight * self.random.choice((1, 1, 1, 4)) for name, weight in weights.items()}

    def leaf(self, shape: Shape) -> Value:
        """A value in scope that broadcasts to `shape` (scalars do), preferably one of that very shape."""
        exact = [value for value in self.pool if value.shape == shape]
        if exact and self.random.random() < 0.75:
            return self.random.choice(exact[-8:] if self.random.random() < 0.5 else exact)
        fitting = [
            value
            for value in self.pool
            if not value.shape
            or (len(value.shape) == len(shape) and all(a in (1, b) for a, b in zip(value.shape, shape, strict=True)))
        ]
        return (
            self.random.choice(fitting)
            if fitting
            else Value("tl.full([], 3, tl.int32)", INT32, (), lambda e: np.array(3, np.int32))
        )

    def expression(self, shape: Shape, depth: int = 2) -> Value:
        """Any expression of exactly `shape`."""
        value = self.any(shape, depth)
        return value if value.shape == shape else broadcast_to(value, shape)

    def typed(self, shape: Shape, dtype: DType, depth: int = 2) -> Value:
        """An expression of exactly `shape` and `dtype`."""
        return self.cast(self.expression(shape, depth), dtype)

    def any(self, shape: Shape, depth: int) -> Value:
        if depth <= 0 or self.random.random() < 0.08:
            return self.leaf(shape)
        draw = self.random.choices(list(self.weights), list(self.weights.values()))[0]
        return getattr(self, draw)(shape, depth - 1)

    def arithmetic(self, shape: Shape, depth: int) -> Value:
        symbol = self.random.choice("+-*")
        x = self.any(shape, depth)
        y = self.number(x.dtype) if self.random.random() < 0.3 else self.any(shape, depth)
        if y.weak and self.random.random() < 0.3:
            return binary(symbol, y, x)
        return binary(symbol, x, y)

    def bitwise(self, shape: Shape, depth: int) -> Value:
        x = self.integer(shape, depth, bools=True)
        y = self.number(x.dtype, ("int",)) if self.random.random() < 0.3 else self.integer(shape, depth, bools=True)
        return binary(self.random.choice("&|^"), x, y)

    def shift(self, shape: Shape, depth: int) -> Value:
        x = self.integer(shape, depth)
        if self.random.random() < 0.5:
            return binary(self.random.choice(("<<", ">>")), x, weak_int(self.random.randrange(8)))
        return binary(self.random.choice(("<<", ">>")), x, binary("&", self.integer(shape, depth), weak_int(7)))

    def division(self, shape: Shape, depth: int) -> Value:
        x, y = self.any(shape, depth), self.any(shape, depth)
        if x.dtype.is_float or y.dtype.is_float:
            return binary(self.random.choice("/%"), x, y if y.dtype.is_float else self.cast(y, FP32))
        x, y = self.as_integer(x), self.as_integer(y)
        if x.dtype.signed != y.dtype.signed:
            y = self.cast(y, x.dtype)
        divisor = binary("+", binary("&", y, weak_int(15)), weak_int(1))
        return binary(self.random.choice(("//", "%", "/")), x, divisor)

    def comparison(self, shape: Shape, depth: int) -> Value:
        x = self.any(shape, depth)
        y = strong(self.number(x.dtype)) if self.random.random() < 0.4 else self.any(shape, depth)
        return compare(self.random.choice(COMPARISONS), x, y)

    def logical(self, shape: Shape, depth: int) -> Value:
        x, y = self.boolean((), depth), self.boolean((), depth)
        word, function = self.random.choice((("and", np.logical_and), ("or", np.logical_or)))
        if self.random.random() < 0.3:
            return Value(f"(not {x.text})", BOOL, (), lambda e: ~x.compute(e))
        return Value(f"({x.text} {word} {y.text})", BOOL, (), lambda e: function(x.compute(e), y.compute(e)))

    def where(self, shape: Shape, depth: int) -> Value:
        condition = self.boolean(shape, depth)
        x = self.any(shape, depth)
        y = self.number(x.dtype) if self.random.random() < 0.3 else self.any(shape, depth)
        if self.random.random() < 0.5:
            x, y = y, x
        dtype = result_type(x, y)
        return Value(
            f"tl.where({condition.text}, {x.text}, {y.text})",
            dtype,
            broadcast(condition.shape, x.shape, y.shape),
            lambda e: np.where(condition.compute(e), convert(x.compute(e), dtype), convert(y.compute(e), dtype)),
        )

    def extremum(self, shape: Shape, depth: int) -> Value:
        x, y = self.any(shape, depth), self.any(shape, depth)
        name, function, loud = self.random.choice((("minimum", np.fmin, np.minimum), ("maximum", np.fmax, np.maximum)))
        dtype = promote(FP32 if x.dtype is BF16 else x.dtype, FP32 if y.dtype is BF16 else y.dtype)
        assert dtype is not None
        option = ""
        if dtype.is_float and self.random.random() < 0.2:
            function, option = loud, ", propagate_nan=tl.PropagateNan.ALL"
        return Value(
            f"tl.{name}({x.text}, {y.text}{option})",
            dtype,
            broadcast(x.shape, y.shape),
            lambda e: function(convert(x.compute(e), dtype), convert(y.compute(e), dtype)),
        )

    def unary(self, shape: Shape, depth: int) -> Value:
        x = self.any(shape, depth)
        if x.dtype.is_float or self.random.random() < 0.5:
            zero = Value("0", x.dtype, (), lambda e: np.zeros((), x.dtype.numpy))
            return Value(f"(-{x.text})", x.dtype, x.shape, binary("-", zero, x).compute)
        return Value(f"(~{x.text})", x.dtype, x.shape, lambda e: ~x.compute(e))

    def conversion(self, shape: Shape, depth: int) -> Value:
        x = self.any(shape, depth)
        if x.dtype.is_int and self.random.random() < 0.3:
            same = next(d for d in INTS if d.bits == x.dtype.bits and d.signed != x.dtype.signed)
            text = f"{x.text}.to(tl.{same.tl}, bitcast=True)"
            return Value(text, same, x.shape, lambda e: convert(x.compute(e), same))
        return self.cast(x, self.random.choice(ARITHMETIC))

    def function(self, shape: Shape, depth: int) -> Value:
        """A function of one argument or two that keeps the type."""
        x = self.any(shape, depth)
        if x.dtype.is_int and x.dtype.bits >= 32 and self.random.random() < 0.5:
            return high_product(x, self.cast(self.any(shape, depth), x.dtype))
        if not x.dtype.is_float or self.random.random() < 0.3:
            x = self.as_integer(x) if x.dtype.is_bool else x
            return Value(f"tl.abs({x.text})", x.dtype, x.shape, lambda e: np.abs(x.compute(e)))
        if x.dtype in (FP16, BF16):
            x = self.cast(x, self.random.choice((FP32, FP64)))
        name, function = self.random.choice(FUNCTIONS)
        return Value(f"tl.{name}({x.text})", x.dtype, x.shape, lambda e: quietly(function, x.compute(e)))

    def integer(self, shape: Shape, depth: int, bools: bool = False) -> Value:
        value = self.any(shape, depth)
        return value if bools and value.dtype.is_bool else self.as_integer(value)

    def as_integer(self, value: Value) -> Value:
        return value if value.dtype.is_int else self.cast(value, self.random.choice(INTS))

    def floating(self, shape: Shape, depth: int, dtypes: Sequence[DType] = FLOATS) -> Value:
        value = self.any(shape, depth)
        return value if value.dtype in dtypes else self.cast(value, self.random.choice(dtypes))

    def boolean(self, shape: Shape, depth: int) -> Value:
        value = self.any(shape, depth)
        return value if value.dtype.is_bool else compare(self.random.choice(COMPARISONS), value, self.any(shape, 0))

    def number(self, dtype: DType, kinds: Sequence[str] = ("int", "int", "float")) -> Value:
        """A literal that may meet a value of `dtype`: 0, 1 and -1 often, as they are what passes look for."""
        kind = self.random.choice(kinds)
        if kind == "float":
            return Value(
                repr(literal := self.random.choice((0.0, 1.0, -1.0, 0.5, 1.5, -2.25, 3.0))),
                FP32,
                (),
                lambda e: np.asarray(literal),
                "float",
                literal,
            )
        low = -100 if dtype.signed or dtype.is_bool else 0
        return weak_int(self.random.choice((0, 1, max(low, -1), 2, 8, self.random.randint(low, 100))))

    def cast(self, value: Value, dtype: DType) -> Value:
        """A conversion that is defined for every input."""
        if value.dtype is dtype:
            return value
        if value.dtype.is_float and dtype.is_int:
            value = clamped(value, -100.0 if dtype.signed else 0.0, 100.0)
        option = ""
        if value.dtype is FP32 and dtype in (FP16, BF16) and self.random.random() < 0.2:
            option = ', fp_downcast_rounding="rtne"'
        text = f"{value.text}.to(tl.{dtype.tl}{option})"
        return Value(text, dtype, value.shape, lambda e: quietly(lambda x: convert(x, dtype), value.compute(e)))


FUNCTIONS: tuple[tuple[str, Callable[[Array], Array]], ...] = (
    ("exp", np.exp),
    ("exp2", np.exp2),
    ("log", np.log),
    ("log2", np.log2),
    ("sin", np.sin),
    ("cos", np.cos),
    ("sqrt", np.sqrt),
    ("rsqrt", lambda x: 1 / np.sqrt(x)),
    ("floor", np.floor),
    ("ceil", np.ceil),
)


def quietly(function: Callable[[Array], Array], x: Array) -> Array:
    with np.errstate(all="ignore"):
        return function(x)


def weak_int(literal: int) -> Value:
    text = str(literal) if literal >= 0 else f"({literal})"
    return Value(text, INT32, (), lambda e: np.asarray(literal), "int", literal)


def strong(value: Value) -> Value:
    """A literal where the language makes it a value of its own type."""
    return Value(value.text, value.dtype, (), value.compute)


def result_type(x: Value, y: Value, division: bool = False) -> DType:
    if x.weak:
        dtype = promote(y.dtype, weak=x.weak, division=division)
    elif y.weak:
        dtype = promote(x.dtype, weak=y.weak, division=division)
    else:
        dtype = promote(x.dtype, y.dtype, division=division)
    assert dtype is not None, f"{x.text} and {y.text} do not mix"
    return dtype


def binary(symbol: str, x: Value, y: Value) -> Value:
    """``x symbol y``; negative literals are made positive where the result has no sign."""
    dtype = result_type(x, y, symbol in ("/", "//", "%"))
    if not dtype.signed and dtype.is_int:
        x, y = (weak_int(-v.literal) if v.weak and v.literal < 0 else v for v in (x, y))
    working = dtype
    if symbol == "/" and not dtype.is_float:
        dtype = working = FP32
    arithmetic = (y if x.weak else x).dtype.signed
    return Value(
        f"({x.text} {symbol} {y.text})",
        dtype,
        broadcast(x.shape, y.shape),
        lambda e: apply(symbol, x.compute(e), y.compute(e), working, arithmetic),
    )


def compare(symbol: str, x: Value, y: Value) -> Value:
    dtype = promote(x.dtype, y.dtype)
    assert dtype is not None
    text = f"({x.text} {symbol} {y.text})"
    return Value(text, BOOL, broadcast(x.shape, y.shape), lambda e: apply(symbol, x.compute(e), y.compute(e), dtype))


def broadcast_to(value: Value, shape: Shape) -> Value:
    text = f"tl.broadcast_to({value.text}, {list(shape)})"
    return Value(text, value.dtype, shape, lambda e: np.broadcast_to(value.compute(e), shape))


def clamped(x: Value, low: float, high: float) -> Value:
    """`tl.clamp`: not a number becomes `low`; half precision is widened, as the bounds are fp32."""
    dtype = x.dtype if x.dtype is FP64 else FP32
    return Value(
        f"tl.clamp({x.text}, {low}, {high})",
        dtype,
        x.shape,
        lambda e: np.fmin(np.fmax(convert(x.compute(e), dtype), dtype.numpy(low)), dtype.numpy(high)),
    )


def high_product(x: Value, y: Value) -> Value:
    """`tl.umulhi`: the upper half of the product of the bit patterns."""
    unsigned = UINT32 if x.dtype.bits == 32 else UINT64

    def compute(environment: Environment) -> Array:
        a, b = (convert(value.compute(environment), unsigned).astype(object) for value in (x, y))
        return np.asarray((a * b) >> x.dtype.bits).astype(unsigned.numpy).astype(x.dtype.numpy)

    assert x.dtype in (INT32, INT64, UINT32, UINT64)
    return Value(f"tl.umulhi({x.text}, {y.text})", x.dtype, broadcast(x.shape, y.shape), compute)
