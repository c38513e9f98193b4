"""A builder for LLVM text that folds constants and shares subexpressions as it goes.

    b = Builder(function)
    i, n = function.args
    x = b.mul(i, 4)               # %v0 = mul i32 %i, 4
    y = b.mul(4, i)               # the same value: operands are ordered, equal instructions are shared
    z = b.add(b.add(x, 3), -3)    # x again: constants added to a sum are collected
    with b.loop(0, n) as k:       # blocks, phi and back edge
        ...

An operand may be a Python number where another operand fixes its type. A pure instruction is identified by its text;
the table of known texts is scoped by dominance: what is built inside `loop` or `if_` is forgotten after it, what was
built before stays known inside. A block entered by hand (`enter`) starts with an empty table, unless it was made with
`inherit=True`, the caller's promise that every path to it passes through the point where it was created.
"""

# pyright: reportGeneralTypeIssues=false
# A mixin annotates `self` with the class that it is mixed into.

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilework.targets.llvm.arithmetic import Arithmetic, Casts
from tilework.targets.llvm.control import Control
from tilework.targets.llvm.memory import Memory
from tilework.targets.llvm.module import Block, Function, Module
from tilework.targets.llvm.types import Type, integer, vector, void
from tilework.targets.llvm.values import Value, constant, lanes_constant, lanes_of

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
        """Extract one lane; its index may be a value."""
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
        """Exchange the lanes of `x` that have the bit for the lanes of `y` that do not: a0 a1 a2 a3, b0 b1 b2 b3 are a0
        b0 a2 b2, a1 b1 a3 b3 for bit 0.
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
        """Return the results of a call: the fields of a struct, a single value, or none for void."""
        if a.type.kind != "struct":
            return [a] if a.type is not void else []
        return [self.extract_value(a, index) for index in range(len(a.type.fields))]

    def build_struct(self: "Builder", type: Type, fields: Sequence[Value]) -> Value:
        made = self.poison(type)
        for position, field in enumerate(fields):
            made = self.pure(f"insertvalue {made.typed}, {field.typed}, {position}", type)
        return made


new_tuple = tuple.__new__  # a Value without the cost of its Python constructor


class Builder(Arithmetic, Casts, Vectors, Memory, Control):
    """Writes one function. The methods are in one mixin per family; this class is what they share."""

    def __init__(self, function: Function) -> None:
        self.function: Function = function
        self.module: Module = function.module
        self.flags = ""  # fast-math flags of floating-point instructions, with a space behind
        self.suffix = ""  # debug location of every instruction
        # known of a value, by its text: base + constant, pointer + bytes, extension of another, copies of one scalar
        self.sums: dict[str, tuple[Value, int]] = {}
        self.exact: dict[str, tuple[Value, int]] = {}  # such sums that cannot wrap
        self.factors: dict[str, int] = {}  # a power of two that divides a product
        self.aligned: dict[str, tuple[Value, Value]] = {}  # a product and what is added to it, less than its factor
        self.ranges: dict[str, tuple[int, int]] = {}  # the least and the greatest that an integer can be, not negative
        self.offsets: dict[str, tuple[Value, int]] = {}  # a pointer's base and byte offset, by its name
        self.terms: dict[str, tuple[Value, Value]] = {}  # or another and bytes that are not constant
        self.extensions: dict[str, tuple[str, Value]] = {}
        self.splats: dict[str, Value] = {}
        self.known: dict[str, Value] = {}
        self.log: list[str] = []
        self.block: Block = function.entry
        self.enter(function.entry)

    @property
    def location(self) -> str:
        """The metadata node of the current source position (see debug.py), or ''."""
        return self.suffix.removeprefix(", !dbg ")

    @location.setter
    def location(self, node: str) -> None:
        self.suffix = f", !dbg {node}" if node else ""

    @contextmanager
    def fast_math(self, *flags: str) -> Iterator[None]:
        """Put flags such as ``contract`` or ``nnan`` on the floating-point instructions built inside."""
        before, self.flags = self.flags, "".join(f"{flag} " for flag in flags)
        try:
            yield
        finally:
            self.flags = before

    def pair(self, a: Any, b: Any) -> tuple[Value, Value]:
        """Return two operands of one type; a Python number takes the type of the other."""
        if a.__class__ is not Value:
            a = constant(b.type, a)
        elif b.__class__ is not Value:
            b = constant(a.type, b)
        assert a.type is b.type, f"operands of different types: {a.typed} and {b.typed}"
        return a, b

    def pure(self, text: str, type: Type) -> Value:
        """The value of an instruction without effects: built, or the one with the same text that is known here."""
        if (found := self.known.get(text)) is not None:
            return found
        values = self.function.values
        made = new_tuple(Value, (type, f"%v{len(values)}", None))
        values.append(made)
        self.block.lines.append(f"  {made.text} = {text}{self.suffix}")
        self.known[text] = made
        self.log.append(text)
        return made

    def effect(self, text: str, type: Type) -> Value:
        """The value of an instruction that reads memory or has effects: always built."""
        function = self.function
        made = new_tuple(Value, (type, f"%v{len(function.values)}", None))
        function.values.append(made)
        self.block.lines.append(f"  {made.text} = {text}{self.suffix}")
        function.effects.add(made.text)
        return made

    def line(self, text: str) -> None:
        """An instruction without a value."""
        self.block.lines.append(f"  {text}{self.suffix}")

    def new_block(self, name: str, inherit: bool = False) -> Block:
        """A block to branch to; `enter` it to write into it."""
        made = self.function.block(name)
        made.known = dict(self.known) if inherit else None
        return made

    def enter(self, block: Block) -> None:
        """Continue in `block`, knowing only what the block is promised to know."""
        self.resume(block)
        self.known = block.known if block.known is not None else {}
        block.known = self.known
        self.log = []

    def resume(self, block: Block) -> None:
        """Continue in `block` with the present table; only for blocks that this point dominates."""
        assert not block.terminated, f"block {block.name} is finished"
        if not block.placed:
            block.placed = True
            self.function.blocks.append(block)
        self.block = block

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget on leaving what was built inside."""
        known, log, mark = self.known, self.log, len(self.log)
        yield
        self.known, self.log = known, log
        for text in log[mark:]:
            del known[text]
        del log[mark:]

    def outline(self, name: str, result: Type, args: Sequence[Value], body: Any) -> Value:
        """Call an internal function `@name`, written by ``body(builder, args)`` at its first use."""
        if (inner := unwritten(self.module, name, result, [arg.type for arg in args])) is not None:
            inner.ret(body(inner, inner.function.args))
        return self.pure(self.call_text(result, f"@{name}", args), result)


def unwritten(
    module: Module, name: str, result: Type, types: Sequence[Type], attributes: Sequence[str] = ("nounwind",)
) -> Builder | None:
    """The builder of an internal function at its first use, otherwise None."""
    if name in module.functions:
        return None
    params = [(type, f"a{position}") for position, type in enumerate(types)]
    return Builder(module.function(name, result, params, linkage="internal", attributes=attributes))
