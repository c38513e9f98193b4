"""Vectors and aggregates: part of `Builder`.

v = b.splat(x, 4)                  # <4 x float>, every lane x
b.extract(v, 2)                    # x
b.reduce("fmax", v)                # llvm.vector.reduce.fmax.v4f32
"""

# pyright: reportGeneralTypeIssues=false
# A mixin annotates `self` with the class that it is mixed into.

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilework.targets.llvm.types import Type, integer, vector, void
from tilework.targets.llvm.values import Value, constant, lanes_constant, lanes_of

if TYPE_CHECKING:
    from tilework.targets.llvm.builder import Builder

POISON = "poison"
SCALED_BITS = (512, 1024, 2048)  # of a vector that `scaled` takes
CURRENT_ROUNDING = 4


class Vectors:
    """Methods on vectors, structs and arrays."""

    def poison(self, type: Type) -> Value:
        return Value(type, POISON)

    def splat(self: "Builder", a: Value, count: int) -> Value:
        """A vector of `count` copies."""
        type = vector(a.type, count)
        if a.constant is not None:
            return constant(type, a.constant)
        one = self.pure(f"insertelement {type.text} poison, {a.typed}, i64 0", type)
        made = self.pure(f"shufflevector {one.typed}, {type.text} poison, <{count} x i32> zeroinitializer", type)
        self.splats[made.text] = a
        return made

    def extract(self: "Builder", a: Value, lane: Any) -> Value:
        """One lane; its index may be a value."""
        element = a.type.scalar
        if (whole := self.splats.get(a.text)) is not None:
            return whole
        if lane.__class__ is int and a.constant is not None:
            return constant(element, lanes_of(a)[lane])
        index = lane.typed if lane.__class__ is Value else f"i64 {lane}"
        return self.pure(f"extractelement {a.typed}, {index}", element)

    def insert(self: "Builder", a: Value, element: Value, lane: Any) -> Value:
        """`a` with one lane replaced."""
        if lane.__class__ is int and a.constant is not None and element.constant is not None:
            lanes = list(lanes_of(a))
            lanes[lane] = element.constant
            return lanes_constant(a.type, lanes)
        index = lane.typed if lane.__class__ is Value else f"i64 {lane}"
        return self.pure(f"insertelement {a.typed}, {element.typed}, {index}", a.type)

    def build_vector(self: "Builder", elements: Sequence[Value]) -> Value:
        """A vector lane by lane."""
        type = vector(elements[0].type, len(elements))
        if all(element.constant is not None for element in elements):
            return lanes_constant(type, [element.constant for element in elements])
        if all(element.text == elements[0].text for element in elements):
            return self.splat(elements[0], len(elements))
        made = self.poison(type)
        for lane, element in enumerate(elements):
            made = self.insert(made, element, lane)
        return made

    def joined(self: "Builder", parts: Sequence[Value]) -> Value:
        """The inverse of `lanes`: a vector of several values, a single one as it is."""
        return self.build_vector(parts) if len(parts) > 1 else parts[0]

    def lanes(self: "Builder", a: Value) -> list[Value]:
        return [self.extract(a, lane) for lane in range(a.type.count)] if a.type.is_vector else [a]

    def shuffle(self: "Builder", a: Value, b: Value | None, lanes: Sequence[int]) -> Value:
        """Lanes chosen from `a` (0 ...) and `b` (after those of `a`); -1 is poison."""
        type = vector(a.type.scalar, len(lanes))
        if b is None and list(lanes) == list(range(a.type.count)):
            return a
        if a.constant is not None and (b is None or b.constant is not None) and min(lanes) >= 0:
            source = lanes_of(a) + (lanes_of(b) if b is not None else ())
            if max(lanes) < len(source):
                return lanes_constant(type, [source[lane] for lane in lanes])
        if b is None and type is a.type and a.text in self.splats:
            return a
        second = b.text if b is not None else POISON
        chosen = ", ".join(f"i32 {lane}" if lane >= 0 else "i32 poison" for lane in lanes)
        return self.pure(f"shufflevector {a.typed}, {a.type.text} {second}, <{len(lanes)} x i32> <{chosen}>", type)

    def exchanged(self: "Builder", x: Value, y: Value, bit: int) -> tuple[Value, Value]:
        """Lanes of `x` that have the bit for those of `y` that have it not: a0 a1 a2 a3, b0 b1 b2 b3 are a0 b0 a2 b2,
        a1 b1 a3 b3 for bit 0.
        """
        size, apart = x.type.count, 1 << bit
        low = [lane + (size - apart) * (lane >> bit & 1) for lane in range(size)]
        return self.shuffle(x, y, low), self.shuffle(x, y, [lane + apart for lane in low])

    def some_lanes(self: "Builder", a: Value, lanes: Sequence[int]) -> Value:
        """A vector of these lanes; one of them is a scalar."""
        return self.shuffle(a, None, lanes) if len(lanes) > 1 else self.extract(a, lanes[0])

    def widened(self: "Builder", a: Value, count: int) -> Value:
        """A value of fewer lanes, or a scalar, in the first of `count`; the others are poison."""
        if not a.type.is_vector:
            return self.insert(self.poison(vector(a.type, count)), a, 0)
        return self.shuffle(a, None, [*range(a.type.count), *[-1] * (count - a.type.count)])

    def concat(self: "Builder", a: Value, b: Value) -> Value:
        """The lanes of `a`, then those of `b`."""
        return self.shuffle(a, b, range(2 * a.type.count))

    def iota(self: "Builder", type: Type) -> Value:
        """0, 1, 2 ... by lane."""
        return constant(type, tuple(range(type.count)))

    def reduce(self: "Builder", name: str, a: Value) -> Value:
        """Reduce all lanes to a scalar: add mul and or xor smin smax umin umax, fmin fmax fminimum fmaximum."""
        if not a.type.is_vector:
            return a
        return self.intrinsic(f"vector.reduce.{name}", a.type.scalar, a, overload=a.type.suffix)

    def scaled(self: "Builder", a: Value, n: Value, on: Value) -> Value:
        """a * 2^n, rounded once, and 0 in lanes that are not `on`: AVX-512's vscalef."""
        bits, count = a.type.scalar.bits, a.type.count
        if count * bits > SCALED_BITS[0]:
            halves = range(count // 2), range(count // 2, count)
            return self.concat(*(self.scaled(*(self.shuffle(v, None, half) for v in (a, n, on))) for half in halves))
        name = f"x86.avx512.mask.scalef.p{'s' if bits == 32 else 'd'}.512"
        zero, rounding = constant(a.type, 0.0), constant(integer(32), CURRENT_ROUNDING)
        return self.intrinsic(name, a.type, a, n, zero, self.mask_bits(on), rounding, overload="")

    def any_lane(self: "Builder", condition: Value) -> Value:
        """Return True if a condition holds in some lane."""
        return self.reduce("or", condition)

    def mask_bits(self: "Builder", condition: Value) -> Value:
        """The lanes of an i1 vector as the bits of one integer."""
        return self.bitcast(condition, integer(condition.type.count))

    def extract_value(self: "Builder", a: Value, field: int) -> Value:
        """A field of a struct."""
        return self.pure(f"extractvalue {a.typed}, {field}", a.type.fields[field])

    def fields(self: "Builder", a: Value) -> list[Value]:
        """The values that a call gives: those in a struct, a single one, none of void."""
        if a.type.kind != "struct":
            return [a] if a.type is not void else []
        return [self.extract_value(a, index) for index in range(len(a.type.fields))]

    def build_struct(self: "Builder", type: Type, fields: Sequence[Value]) -> Value:
        made = self.poison(type)
        for position, field in enumerate(fields):
            made = self.pure(f"insertvalue {made.typed}, {field.typed}, {position}", type)
        return made
