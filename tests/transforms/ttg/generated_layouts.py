"""Programs of TTGIR generated from a seed, full of needless layout conversions: the same seed gives the same text.

    python -m tests.transforms.ttg.generated_layouts 17

Values are rows of 64 numbers and matrices of 64x32, each in a layout generated from a few. Ops want their operands in
one layout, so that most of them are converted first; loops and branches carry values, nested up to three deep.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tilework.ir.encodings import encoding_attr
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Blocked, Distributed, DotOperand, NvidiaMma, Slice
from tilework.layouts.infer import infer_trans

ROW, MATRIX = (64,), (64, 32)
DEEPEST = 3


def tensor(shape: tuple[int, ...], element: str, layout: Distributed) -> str:
    return f"tensor<{'x'.join(map(str, shape))}x{element}, {encoding_attr(layout)}>"


@dataclass(frozen=True)
class Value:
    name: str
    shape: tuple[int, ...]
    element: str
    layout: Distributed

    @property
    def type(self) -> str:
        return tensor(self.shape, self.element, self.layout)


def types(values: list[Value]) -> str:
    return ", ".join(value.type for value in values)


def names(values: list[Value]) -> str:
    return ", ".join(value.name for value in values)


class Generated:
    """One program, while it is generated. `known` lists the values that may be used where the next line goes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.warps = self.random.choice((1, 2, 4, 8, 16))
        self.lines: list[str] = []
        self.count = 0
        self.accumulator = NvidiaMma(2, 0, (self.warps, 1), (16, 8))
        self.matrix_layouts: list[Distributed] = [
            default_blocked(MATRIX, (1, 4), (1, 0), self.warps),
            default_blocked(MATRIX, (1, 1), (1, 0), self.warps),
            default_blocked(MATRIX, (2, 1), (0, 1), self.warps),
            self.accumulator,
        ]
        self.row_layouts: list[Distributed] = [
            Blocked((1,), (32,), (self.warps,), (0,)),
            *(Slice(1, layout) for layout in self.matrix_layouts),
        ]

    def program(self) -> str:
        known: list[Value] = []
        for _ in range(self.random.randint(6, 30)):
            self.step(known, 0)
        for value in known[-3:]:
            self.store(value)
        body = "\n".join(f"    {line}" for line in self.lines)
        return (
            f'module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = {self.warps} : i32, '
            'ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {\n'
            "  tt.func public @generated(%p: !tt.ptr<f32>, %x: f32, %n: i32, %b: i1) {\n"
            "    %c0 = arith.constant 0 : i32\n    %c1 = arith.constant 1 : i32\n    %c3 = arith.constant 3 : i32\n"
            f"{body}\n    tt.return\n  }}\n}}\n"
        )

    # Lines

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str, shape: tuple[int, ...], element: str, layout: Distributed) -> Value:
        """A line that defines a value."""
        value = Value(self.name(), shape, element, layout)
        self.lines.append(f"{value.name} = {text}".replace("TYPE", value.type))
        return value

    def layout(self, shape: tuple[int, ...]) -> Distributed:
        return self.random.choice(self.row_layouts if shape == ROW else self.matrix_layouts)

    def converted(self, value: Value, layout: Distributed) -> Value:
        if value.layout == layout:
            return value
        return self.emit(f"ttg.convert_layout {value.name} : {value.type} -> TYPE", value.shape, value.element, layout)

    def pointers(self, shape: tuple[int, ...], layout: Distributed) -> Value:
        base = self.emit("tt.splat %p : !tt.ptr<f32> -> TYPE", shape, "!tt.ptr<f32>", layout)
        if shape != ROW:
            return base
        offsets = self.emit("tt.make_range {end = 64 : i32, start = 0 : i32} : TYPE", shape, "i32", layout)
        return self.emit(f"tt.addptr {base.name}, {offsets.name} : TYPE, {offsets.type}", shape, base.element, layout)

    def fresh(self, shape: tuple[int, ...]) -> Value:
        layout = self.layout(shape)
        match self.random.randrange(3):
            case 0:
                pointers = self.pointers(shape, layout)
                return self.emit(f"tt.load {pointers.name} : {pointers.type}", shape, "f32", layout)
            case 1:
                return self.emit("arith.constant dense<2.0> : TYPE", shape, "f32", layout)
            case _:
                return self.emit("tt.splat %x : f32 -> TYPE", shape, "f32", layout)

    def pick(self, known: list[Value], shape: tuple[int, ...] | None = None) -> Value:
        """A value of `shape`, or of any; sometimes a new one."""
        shape = shape or self.random.choice((ROW, MATRIX))
        fitting = [value for value in known if value.shape == shape]
        if fitting and self.random.random() < 0.9:
            return self.random.choice(fitting[-6:])
        known.append(self.fresh(shape))
        return known[-1]

    # Steps

    def step(self, known: list[Value], depth: int) -> None:
        steps: list[tuple[int, Callable[[list[Value], int], Value | None]]] = [
            (6, self.convert),
            (6, self.elementwise),
            (2, self.narrow_and_widen),
            (2, self.reduce),
            (2, self.broadcast),
            (1, self.transpose),
            (1, self.dot),
            (1, lambda known, depth: self.store(self.pick(known))),
            (2 if depth < DEEPEST else 0, self.loop),
            (2 if depth < DEEPEST else 0, self.branch),
        ]
        weights, rules = zip(*steps, strict=True)
        made = self.random.choices(rules, weights)[0](known, depth)
        if made is not None:
            known.append(made)

    def convert(self, known: list[Value], depth: int) -> Value:
        value = self.pick(known)
        return self.converted(value, self.layout(value.shape))

    def elementwise(self, known: list[Value], depth: int) -> Value:
        a = self.pick(known)
        b = self.converted(self.pick(known, a.shape), a.layout)
        op = self.random.choice(("addf", "mulf", "maximumf", "subf"))
        return self.emit(f"arith.{op} {a.name}, {b.name} : TYPE", a.shape, "f32", a.layout)

    def narrow_and_widen(self, known: list[Value], depth: int) -> Value:
        value = self.pick(known)
        narrow = self.emit(f"arith.truncf {value.name} : {value.type} to TYPE", value.shape, "f16", value.layout)
        narrow = self.converted(narrow, self.layout(value.shape))
        return self.emit(f"arith.extf {narrow.name} : {narrow.type} to TYPE", value.shape, "f32", narrow.layout)

    def reduce(self, known: list[Value], depth: int) -> Value:
        return self.reduced(self.pick(known, MATRIX))

    def reduced(self, value: Value) -> Value:
        """The maximum of each row: the same in any order."""
        region = (
            "({\n    ^bb0(%l: f32, %r: f32):\n      %m = arith.maximumf %l, %r : f32\n"
            "      tt.reduce.return %m : f32\n    })"
        )
        text = f'"tt.reduce"({value.name}) <{{axis = 1 : i32}}> {region} : ({value.type}) -> TYPE'
        return self.emit(text, ROW, "f32", Slice(1, value.layout))

    def broadcast(self, known: list[Value], depth: int) -> Value:
        layout = self.layout(MATRIX)
        row = self.converted(self.pick(known, ROW), Slice(1, layout))
        column = self.emit(f"tt.expand_dims {row.name} {{axis = 1 : i32}} : {row.type} -> TYPE", (64, 1), "f32", layout)
        return self.emit(f"tt.broadcast {column.name} : {column.type} -> TYPE", MATRIX, "f32", layout)

    def transpose(self, known: list[Value], depth: int) -> Value:
        """There and back again."""
        value = self.pick(known, MATRIX)
        transposed = self.transposed(value)
        return self.transposed(transposed)

    def transposed(self, value: Value) -> Value:
        layout = infer_trans(value.layout, (1, 0), value.shape)
        text = f"tt.trans {value.name} {{order = array<i32: 1, 0>}} : {value.type} -> TYPE"
        return self.emit(text, value.shape[::-1], value.element, layout)

    def dot(self, known: list[Value], depth: int) -> Value:
        """A matrix times the transpose of another, and the maximum of each row."""
        halves = [self.pick(known, MATRIX) for _ in range(2)]
        a, b = (self.emit(f"arith.truncf {v.name} : {v.type} to TYPE", v.shape, "f16", v.layout) for v in halves)
        a = self.converted(a, DotOperand(0, self.accumulator, 2))
        b = self.converted(self.transposed(b), DotOperand(1, self.accumulator, 2))
        zero = self.emit("arith.constant dense<0.0> : TYPE", (64, 64), "f32", self.accumulator)
        text = f"tt.dot {a.name}, {b.name}, {zero.name} : {a.type} * {b.type} -> TYPE"
        return self.reduced(self.emit(text, (64, 64), "f32", self.accumulator))

    def store(self, value: Value) -> None:
        value = self.converted(value, self.layout(value.shape))
        pointers = self.pointers(value.shape, value.layout)
        self.lines.append(f"tt.store {pointers.name}, {value.name} : {pointers.type}")

    # Control flow

    def carried(self, known: list[Value]) -> list[Value]:
        return [self.pick(known) for _ in range(self.random.randint(1, 3))]

    def body(self, known: list[Value], wanted: list[Value], depth: int) -> None:
        """Some steps, and a yield of values like those `wanted`."""
        inner = list(known)
        for _ in range(self.random.randint(0, 5)):
            self.step(inner, depth + 1)
        yielded = [self.converted(self.pick(inner, value.shape), value.layout) for value in wanted]
        self.lines.append(f"scf.yield {names(yielded)} : {types(yielded)}")

    def loop(self, known: list[Value], depth: int) -> None:
        starts = self.carried(known)
        arguments = [Value(self.name(), v.shape, v.element, v.layout) for v in starts]
        pairs = ", ".join(f"{a.name} = {v.name}" for a, v in zip(arguments, starts, strict=True))
        result = self.name()
        self.lines.append(
            f"{result}:{len(starts)} = scf.for %i{self.count} = %c0 to %c3 step %c1 iter_args({pairs}) -> "
            f"({types(arguments)}) : i32 {{"
        )
        self.body([*known, *arguments], arguments, depth)
        self.lines.append("}")
        known += [Value(f"{result}#{i}", v.shape, v.element, v.layout) for i, v in enumerate(starts)]

    def branch(self, known: list[Value], depth: int) -> None:
        wanted = self.carried(known)
        result = self.name()
        self.lines.append(f"{result}:{len(wanted)} = scf.if %b -> ({types(wanted)}) {{")
        self.body(known, wanted, depth)
        self.lines.append("} else {")
        self.body(known, wanted, depth)
        self.lines.append("}")
        known += [Value(f"{result}#{i}", v.shape, v.element, v.layout) for i, v in enumerate(wanted)]


def draw(seed: int) -> str:
    """The text of program `seed`."""
    return Generated(seed).program()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(draw(int(argument)))
