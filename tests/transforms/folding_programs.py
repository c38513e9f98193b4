"""TTIR functions for the test of all folding rules: every op on operands that are shared, equal, nested and constants
at limits.

The families of integers, casts and floats are exhaustive over pairs of ops: an inner op on arguments and constants, and
an outer op on the inner one's result and the same arguments. Tensors hold many values at once, so that each pair is
evaluated on all of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from tilework.ir.arith import EVALUATE
from tilework.transforms.folding import casts


@dataclass
class Function:
    """A function under construction: `lines` of its body, the `values` it returns (name, type), its parameters and
    their arguments."""

    name: str
    lines: list[str] = field(default_factory=list)
    returned: list[tuple[str, str]] = field(default_factory=list)
    parameters: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[Any] = field(default_factory=list)
    known: dict[tuple[str, str], str] = field(default_factory=dict)

    def parameter(self, name: str, type: str, argument: Any) -> str:
        self.parameters.append((f"%{name}", type))
        self.arguments.append(argument)
        return f"%{name}"

    def add(self, text: str) -> str:
        """Add ``%n = text``."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def constant(self, value: str, type: str) -> str:
        if (value, type) not in self.known:
            dense = f"dense<{value}>" if type.startswith("tensor") else value
            suffix = "" if type == "i1" else f" : {type}"
            self.known[value, type] = self.add(f"arith.constant {dense}{suffix}")
        return self.known[value, type]

    def give(self, value: str, type: str) -> None:
        self.returned.append((value, type))

    def expression(self, value: str) -> str:
        """A value as text, with what it is computed from."""
        return re.sub(r"%v\d+", lambda name: f"({self.made(name[0])})", self.made(value))

    def made(self, value: str) -> str:
        """The op that makes a value."""
        return self.lines[int(value[2:])].split(" = ", 1)[1]

    @property
    def text(self) -> str:
        parameters = ", ".join(f"{name}: {type}" for name, type in self.parameters)
        types = ", ".join(type for _, type in self.returned)
        values = ", ".join(value for value, _ in self.returned)
        body = "\n  ".join([*self.lines, f"tt.return {values} : {types}"])
        return f"tt.func public @f({parameters}) -> ({types}) {{\n  {body}\n}}\n"


# --- integers ---------------------------------------------------------------------------------------------------------

INTEGER_OPS = sorted(kind.name for kind in EVALUATE)
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
LIMITS = {
    "i1": ("false", "true"),
    "i8": ("0", "1", "-1", "127", "-128", "5"),
    "i32": ("0", "1", "-1", "2147483647", "-2147483648", "5"),
}
VALUES = {
    "i1": np.array([False, False, True, True]),
    "i8": np.array([0, 1, -1, 127, -128, 5, 3, -7], np.int8),
    "i32": np.array([0, 1, -1, 2**31 - 1, -(2**31), 5, 31, -7], np.int32),
}


def pairs_of_values(element: str) -> tuple[np.ndarray, np.ndarray]:
    """Two arrays that hold every pair of the interesting values."""
    values = np.unique(VALUES[element])
    first, second = np.meshgrid(values, values)
    return first.reshape(-1), second.reshape(-1)


def integer_functions() -> Iterator[Function]:
    """Each op of each op, of tiles and of scalars (only those merge chains of constants)."""
    for outer in INTEGER_OPS:
        yield integer_pairs(f"{outer} of tiles", outer, "i8", tiles=True)
    for outer in ("arith.addi", "arith.subi", "arith.muli"):
        yield integer_pairs(f"{outer} of scalars", outer, "i32", tiles=False)
    for outer in ("arith.andi", "arith.ori", "arith.xori"):
        yield integer_pairs(f"{outer} of booleans", outer, "i1", tiles=True)


def start(name: str, element: str, tiles: bool) -> tuple[Function, str, tuple[str, str]]:
    """A function of two arguments, their type, and their names."""
    function = Function(name)
    first, second = pairs_of_values(element)
    type = f"tensor<{len(first)}x{element}>" if tiles else element
    x = function.parameter("x", type, first if tiles else list(first[1:4:2]))
    y = function.parameter("y", type, second if tiles else list(second[-2:]))
    return function, type, (x, y)


def integer_pairs(name: str, outer: str, element: str, tiles: bool) -> Function:
    function, type, (x, y) = start(name, element, tiles)
    limits = [function.constant(limit, type) for limit in LIMITS[element]]
    kinds = INTEGER_OPS if element != "i1" else ["arith.andi", "arith.ori", "arith.xori"]
    for a, b in [(x, y), (x, x), *((x, c) for c in limits), *((c, x) for c in limits), *product(limits, limits)]:
        function.give(function.add(f"{outer} {a}, {b} : {type}"), type)
    for inner in kinds:
        for a, b in [(x, y), (x, x), *((x, c) for c in limits[1:3]), *((c, x) for c in limits[-1:])]:
            t = function.add(f"{inner} {a}, {b} : {type}")
            for left, right in [(t, x), (x, t), (t, y), (y, t), (t, t), *((t, c) for c in limits), (limits[-1], t)]:
                function.give(function.add(f"{outer} {left}, {right} : {type}"), type)
    return function


def comparison_functions() -> Iterator[Function]:
    for tiles in (True, False):
        yield comparisons("i8", tiles)
        yield comparisons("i1", tiles)
        yield selects("i8", tiles)
        yield selects("i1", tiles)
        yield extended_bits(tiles)


def comparisons(element: str, tiles: bool) -> Function:
    """Every predicate of equal operands, constants on either side, inverted, of what was extended."""
    function, type, (x, y) = start(f"comparisons of {element}, tiles: {tiles}", element, tiles)
    boolean = type.replace(element, "i1")
    limits = [function.constant(limit, type) for limit in LIMITS[element]]
    true = function.constant("true", boolean)
    for predicate in PREDICATES:
        for a, b in [(x, y), (x, x), *((x, c) for c in limits), *((c, x) for c in limits), *product(limits, limits)]:
            test = function.add(f"arith.cmpi {predicate}, {a}, {b} : {type}")
            function.give(test, boolean)
            function.give(function.add(f"arith.xori {test}, {true} : {boolean}"), boolean)
        if element == "i1":
            wide = type.replace("i1", "i8")
            for cast, number in product(("extui", "extsi"), ("0", "1", "-1")):
                extended = function.add(f"arith.{cast} {x} : {type} to {wide}")
                known = function.constant(number, wide)
                function.give(function.add(f"arith.cmpi {predicate}, {extended}, {known} : {wide}"), boolean)
    return function


def selects(element: str, tiles: bool) -> Function:
    """Choices of equal values, by constants, by an inverted condition, by a comparison of the same values, of
    choices."""
    function, type, (x, y) = start(f"selects of {element}, tiles: {tiles}", element, tiles)
    boolean = type.replace(element, "i1")
    true, false = (function.constant(text, boolean) for text in ("true", "false"))
    zero, one = (function.constant(text, type) for text in LIMITS[element][:2])
    tests = [function.add(f"arith.cmpi {predicate}, {x}, {y} : {type}") for predicate in PREDICATES]
    inverse = function.add(f"arith.xori {tests[2]}, {true} : {boolean}")
    conditions = [true, false, *tests, inverse, *([x] if element == "i1" else [])]
    choices = [(x, y), (y, x), (x, x), (zero, one), (one, zero), (x, zero), (one, y)]

    def select(condition: str, chosen: str, other: str) -> str:
        types = f"{boolean}, {type}" if tiles else type
        return function.add(f"arith.select {condition}, {chosen}, {other} : {types}")

    for condition, (a, b) in product(conditions, choices):
        chosen = select(condition, a, b)
        function.give(chosen, type)
        for other in (condition, tests[0]):
            function.give(select(other, chosen, y), type)
            function.give(select(other, x, chosen), type)
    return function


def extended_bits(tiles: bool) -> Function:
    """Bitwise ops of extended values."""
    function, type, (x, y) = start(f"bits of extended values, tiles: {tiles}", "i8", tiles)
    wide = type.replace("i8", "i32")
    zero = function.constant("0", type)
    test = function.add(f"arith.cmpi slt, {x}, {zero} : {type}")
    small = [(x, type), (y, type), (test, type.replace("i8", "i1"))]
    large = [
        function.add(f"arith.{cast} {value} : {own} to {wide}") for cast in ("extui", "extsi") for value, own in small
    ]
    for op, a, b in product(("andi", "ori", "xori"), large, large):
        function.give(function.add(f"arith.{op} {a}, {b} : {wide}"), wide)
    return function


# --- casts ------------------------------------------------------------------------------------------------------------

WIDTHS = (1, 8, 16, 32, 64)
FLOATS = ("f16", "bf16", "f32", "f64")
FLOAT_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
CAST_CONSTANTS = {
    1: ("true", "false"),
    **{bits: ("0", "1", "-1", str(2 ** (bits - 1) - 1), str(-(2 ** (bits - 1)))) for bits in WIDTHS[1:]},
}


def cast_functions() -> Iterator[Function]:
    for tiles in (True, False):
        yield integer_casts(tiles)
        yield float_casts(tiles)
        yield bitcasts(tiles)
    yield index_casts()


def sized(type: str, tiles: bool, count: int) -> str:
    return f"tensor<{count}x{type}>" if tiles else type


def integer_casts(tiles: bool) -> Function:
    """Chains of three extensions and truncations, of an argument and of constants."""
    function = Function(f"integer casts, tiles: {tiles}")
    count = 10

    def chain(value: str, bits: int, depth: int) -> None:
        for target in WIDTHS:
            for cast in () if target == bits else ("extui", "extsi") if target > bits else ("trunci",):
                types = [sized(f"i{width}", tiles, count) for width in (bits, target)]
                made = function.add(f"arith.{cast} {value} : {types[0]} to {types[1]}")
                function.give(made, types[1])
                if depth:
                    chain(made, target, depth - 1)

    for bits in WIDTHS:
        type = sized(f"i{bits}", tiles, count)
        top = 2 ** (bits - 1)
        numbers = [0, top - 1, -top, -1, *([1, 2, -2, 77, -100, 85] if bits > 1 else [0] * 6)]
        array = np.array(numbers, np.int64).astype(bool if bits == 1 else f"int{bits}")
        chain(function.parameter(f"a{bits}", type, array if tiles else list(array)), bits, 2)
        for constant in CAST_CONSTANTS[bits]:
            chain(function.constant(constant, type), bits, 1)
    return function


def float_casts(tiles: bool) -> Function:
    """Between floats, and between floats and integers; integers are exact in the first float, so that narrowing rounds
    once."""
    function = Function(f"float casts, tiles: {tiles}")
    count = 8
    integers = np.array([0, 1, -1, 2, 127, -128, 100, -77], np.int32)
    x = function.parameter("x", sized("i32", tiles, count), integers if tiles else list(integers))
    for first in FLOATS:
        floats = sized(first, tiles, count)
        sources: list[tuple[str, str]] = []
        for cast, value in product(
            ("sitofp", "uitofp"), (x, *(function.constant(c, sized("i32", tiles, count)) for c in CAST_CONSTANTS[32]))
        ):
            if cast == "sitofp" or value != x:
                sources.append(
                    (function.add(f"arith.{cast} {value} : {sized('i32', tiles, count)} to {floats}"), first)
                )
        for number in ("0.0", "-0.0", "1.0", "-1.5", "0.1", "100.0", "-129.0", "3.0e4"):
            sources.append((function.constant(number, floats), first))
        for value, _ in sources:
            function.give(value, floats)
            for second in FLOATS:
                bits, wanted = FLOAT_BITS[first], FLOAT_BITS[second]
                if bits == wanted:
                    continue
                cast = "extf" if wanted > bits else "truncf"
                made = function.add(f"arith.{cast} {value} : {floats} to {sized(second, tiles, count)}")
                function.give(made, sized(second, tiles, count))
                back = "truncf" if cast == "extf" else "extf"
                function.give(function.add(f"arith.{back} {made} : {sized(second, tiles, count)} to {floats}"), floats)
        for number in ("0.0", "-0.0", "1.9", "-1.9", "127.0", "128.0", "-128.5", "255.0", "256.0", "-1.0"):
            known = function.constant(number, floats)
            for cast, target in product(("fptosi", "fptoui"), ("i8", "i32")):
                if fits(float(number), cast, target):
                    wanted_type = sized(target, tiles, count)
                    function.give(function.add(f"arith.{cast} {known} : {floats} to {wanted_type}"), wanted_type)
    return function


def fits(number: float, cast: str, target: str) -> bool:
    """True if the integer type can hold the number once its fraction is cut off; otherwise the cast has no value."""
    bits = int(target[1:])
    low, high = (0, 2**bits) if cast == "fptoui" else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return low <= int(number) < high


def bitcasts(tiles: bool) -> Function:
    """There and back, and of constants, NaN among them."""
    function = Function(f"bitcasts, tiles: {tiles}")
    for bits, float_type in ((16, "f16"), (16, "bf16"), (32, "f32"), (64, "f64")):
        integer = sized(f"i{bits}", tiles, 5)
        floats = sized(float_type, tiles, 5)
        top = 2 ** (bits - 1)
        array = np.array([0, 1, -1, top - 1, -top], np.int64).astype(f"int{bits}")
        x = function.parameter(f"x{float_type}", integer, array if tiles else list(array))
        for source in (x, *(function.constant(number, integer) for number in CAST_CONSTANTS[bits])):
            seen = function.add(f"arith.bitcast {source} : {integer} to {floats}")
            function.give(seen, floats)
            function.give(function.add(f"arith.bitcast {seen} : {floats} to {integer}"), integer)
            if float_type == "bf16":
                half = function.add(f"arith.bitcast {seen} : {floats} to {floats.replace('bf16', 'f16')}")
                function.give(half, floats.replace("bf16", "f16"))
        for number in ("0.0", "-0.0", "1.5", "-2.0"):
            seen = function.add(f"arith.bitcast {function.constant(number, floats)} : {floats} to {integer}")
            function.give(seen, integer)
    return function


def index_casts() -> Function:
    function = Function("index casts")
    x = function.parameter("x", "i32", [0, 1, -1, 2**31 - 1, -(2**31)])
    for value in (x, *(function.constant(number, "i32") for number in LIMITS["i32"])):
        index = function.add(f"arith.index_cast {value} : i32 to index")
        function.give(function.add(f"arith.index_cast {index} : index to i32"), "i32")
        function.give(function.add(f"arith.index_cast {index} : index to i64"), "i64")
    return function


# --- floats -----------------------------------------------------------------------------------------------------------

FLOAT_OPS = sorted(kind.name for kind in casts.EVALUATE)
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
EXACT_MATH = ("math.absf", "math.ceil", "math.floor", "math.sqrt")
ROUNDED_MATH = ("math.exp", "math.exp2", "math.log", "math.log2", "math.sin", "math.cos")
INFINITY = {"f16": "0x7C00", "bf16": "0x7F80", "f32": "0x7F800000", "f64": "0x7FF0000000000000"}
NEGATIVE_INFINITY = {"f16": "0xFC00", "bf16": "0xFF80", "f32": "0xFF800000", "f64": "0xFFF0000000000000"}
NAN = {"f16": "0x7E00", "bf16": "0x7FC0", "f32": "0x7FC00000", "f64": "0x7FF8000000000000"}


def float_functions() -> Iterator[Function]:
    for element in FLOATS:
        yield float_pairs(element, tiles=True)
    yield float_pairs("f32", tiles=False)


def float_pairs(element: str, tiles: bool) -> Function:
    """Every op of an argument, of itself, of special constants on either side, of negated values; every comparison."""
    function = Function(f"{element}, tiles: {tiles}")
    numbers = [0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 3.25]
    first, second = np.meshgrid(numbers, numbers)
    count = first.size
    type, boolean = sized(element, tiles, count), sized("i1", tiles, count)
    x, y = (
        function.parameter(name, type, array.reshape(-1) if tiles else list(array.diagonal()))
        for name, array in (("x", first), ("y", second[::-1]))
    )
    special = ["0.0", "-0.0", "1.0", "-1.0", "2.5", "7.0", INFINITY[element], NEGATIVE_INFINITY[element], NAN[element]]
    constants = [function.constant(number, type) for number in special]
    negated = [function.add(f"arith.negf {value} : {type}") for value in (x, y, *constants)]
    operands = [(x, y), (x, x), *((x, c) for c in constants), *((c, x) for c in constants)]
    for value in negated:
        function.give(function.add(f"arith.negf {value} : {type}"), type)
    for op in FLOAT_OPS:
        for a, b in [*operands, *product(constants, constants), *product(negated[:3], negated[:3]), (negated[0], x)]:
            function.give(function.add(f"{op} {a}, {b} : {type}"), type)
    for predicate in FLOAT_PREDICATES:
        for a, b in [*operands, *product(constants, constants)]:
            function.give(function.add(f"arith.cmpf {predicate}, {a}, {b} : {type}"), boolean)
    for op, value in product((*EXACT_MATH, *ROUNDED_MATH), constants):
        function.give(function.add(f"{op} {value} : {type}"), type)
    return function
