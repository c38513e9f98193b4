"""Ranges of values that loops and branches carry: those of a table, and of generated nests that are executed."""

# pyright: reportUnknownMemberType=false

import random

import pytest
from xdsl.ir import SSAValue

from tilework.analysis.integer_ranges import IntegerRanges
from tilework.ir.functions import functions
from tilework.ir.parser import parse_module

FEWEST, MOST = -(1 << 31), (1 << 31) - 1
CONSTANTS = "".join(f"%c{number} = arith.constant {number} : i32\n" for number in (0, 1, 2, 3, 5, 7, 10, 64))
FUNCTION = f"""module {{ tt.func @f(%n0: i32, %m: i32, %x: i32, %flag: i1) {{
  {CONSTANTS}
  %least = arith.cmpi sge, %n0, %c0 : i32
  llvm.intr.assume %least : i1
  %most = arith.cmpi slt, %n0, %c64 : i32
  llvm.intr.assume %most : i1
  %never = arith.cmpi sle, %m, %c0 : i32
  llvm.intr.assume %never : i1
  %id = tt.get_program_id x : i32
  %part = arith.remsi %id, %c64 : i32
  BODY
  tt.return }} }}
"""
LOOP = """%r = scf.for %k = %c0 to UPPER step %c1 iter_args(%a = %c5) -> (i32) : i32 {
  BODY
  scf.yield %y : i32
}"""
INNER = """%y = scf.for %j = %c0 to %INNER step %c1 iter_args(%b = %a) -> (i32) : i32 {
  %z = arith.addi %b, %c1 : i32
  scf.yield %z : i32
}"""
BRANCH = """%y = scf.if %flag -> (i32) {
  %p = arith.addi %a, %c2 : i32
  scf.yield %p : i32
} else {
  scf.yield %a : i32
}"""
CASES = [
    ("n0", "%y = arith.addi %a, %c2 : i32", (5, 131)),
    ("n0", "%p = arith.addi %a, %c2 : i32\n %y = arith.select %flag, %p, %a : i32", (5, 131)),
    ("n0", BRANCH, (5, 131)),
    ("n0", INNER.replace("INNER", "c10"), (5, 635)),
    ("n0", INNER.replace("INNER", "k"), (5, 5 + 63 * 62)),
    ("n0", INNER.replace("INNER", "m"), (5, 5)),
    ("n0", INNER.replace("INNER", "c10").replace("addi %b, %c1", "addi %k, %j"), (0, 71)),
    ("n0", "%y = arith.addi %part, %c0 : i32", (0, 63)),
    ("c0", "%y = arith.muli %a, %x : i32", (5, 5)),
    ("m", "%y = arith.muli %a, %x : i32", (5, 5)),
    ("c10", "%y = arith.muli %a, %c2 : i32", (5, 5120)),
    ("x", "%p = arith.addi %a, %c1 : i32\n %y = arith.remsi %p, %c64 : i32", (-61, 63)),
    ("x", "%y = arith.addi %a, %c2 : i32", (FEWEST, MOST)),
]


def values(text: str) -> dict[str, tuple[IntegerRanges, SSAValue]]:
    """Return the values of a function by their names."""
    (function,) = functions(parse_module(text))
    ranges, found = IntegerRanges(function), list[SSAValue]()
    for op in function.walk():
        found += [*op.results, *(argument for region in op.regions for argument in region.blocks[0].args)]
    return {value.name_hint: (ranges, value) for value in found if value.name_hint is not None}


@pytest.mark.parametrize(("upper", "body", "wanted"), CASES)
def test_carried_values(upper: str, body: str, wanted: tuple[int, int]) -> None:
    loop = LOOP.replace("UPPER", f"%{upper}").replace("BODY", body)
    ranges, result = values(FUNCTION.replace("BODY", loop))["r"]
    assert ranges.of(result) == wanted


class Endless(Exception):
    """A loop runs too long, or divides by zero."""


def wrapped(value: int) -> int:
    return (value - FEWEST) % (1 << 32) + FEWEST


def remainder(a: int, b: int) -> int:
    if b == 0:
        raise Endless
    return abs(a) % abs(b) * (1 if a >= 0 else -1)


OPS = {
    "addi": lambda a, b: wrapped(a + b), "subi": lambda a, b: wrapped(a - b), "muli": lambda a, b: wrapped(a * b),
    "minsi": min, "maxsi": max, "remsi": remainder, "andi": lambda a, b: a & b,
}  # fmt: skip


class Nest:
    """A generated nest of loops and branches, as IR and as Python."""

    def __init__(self, seed: int) -> None:
        self.random, self.count = random.Random(seed), 0
        self.ir, self.python = list[str](), list[str]()
        self.block(["x", "y", "c0", "c1", "c3", "c7"], 0)

    def new(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def block(self, scope: list[str], depth: int) -> list[str]:
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            a, b, c, d = (self.random.choice(scope) for _ in range(4))
            rule = self.op if kind < 0.5 or depth > 2 else self.branch if kind < 0.7 else self.loop
            scope = [*scope, *rule(a, b, c, d, scope, depth)]
        return scope

    def add(self, ir: str, python: str, depth: int, *seen: str) -> None:
        self.ir.append(ir)
        self.python += [" " * (depth + 1) + line for line in (python, *(f"see('{name}', {name})" for name in seen))]

    def op(self, a: str, b: str, c: str, d: str, scope: list[str], depth: int) -> list[str]:
        name, kind = self.new(), self.random.choice([*OPS, "select"])
        if kind != "select":
            self.add(f"%{name} = arith.{kind} %{a}, %{b} : i32", f"{name} = {kind}({a}, {b})", depth, name)
            return [name]
        self.ir.append(f"%{name}_c = arith.cmpi slt, %{c}, %{d} : i32")
        chosen = f"{name} = {a} if {c} < {d} else {b}"
        self.add(f"%{name} = arith.select %{name}_c, %{a}, %{b} : i32", chosen, depth, name)
        return [name]

    def branch(self, a: str, b: str, c: str, d: str, scope: list[str], depth: int) -> list[str]:
        name = self.new()
        self.ir.append(f"%{name}_c = arith.cmpi slt, %{c}, %{d} : i32")
        for ir, python in ((f"%{name} = scf.if %{name}_c -> (i32) {{", f"if {c} < {d}:"), ("} else {", "else:")):
            self.add(ir, python, depth)
            chosen = self.random.choice(self.block(scope, depth + 1)[-3:])
            self.add(f"scf.yield %{chosen} : i32", f"{name} = {chosen}", depth + 1)
        self.add("}", "pass", depth, name)
        return [name]

    def loop(self, a: str, b: str, c: str, d: str, scope: list[str], depth: int) -> list[str]:
        name, p, q, k, r, s = (self.new() for _ in range(6))
        step = self.random.choice(("c1", "c3"))
        carried = f"iter_args(%{p} = %{a}, %{q} = %{b}) -> (i32, i32) : i32 {{"
        self.add(f"%{name}:2 = scf.for %{k} = %{c} to %{d} step %{step} {carried}", f"{p}, {q} = {a}, {b}", depth)
        self.add("", f"for {k} in counted({c}, {d}, {step}):", depth)
        self.add("", "pass", depth + 1, p, q, k)
        one, two = (self.random.choice(self.block([*scope, p, q, k], depth + 1)[-4:]) for _ in range(2))
        self.add(f"scf.yield %{one}, %{two} : i32, i32 }}", f"{p}, {q} = {one}, {two}", depth + 1)
        for result, (index, value) in zip((r, s), enumerate((p, q)), strict=True):
            self.add(f"%{result} = arith.addi %{name}#{index}, %c0 : i32", f"{result} = {value}", depth, result)
        return [r, s]


def executed(nest: Nest) -> dict[str, set[int]]:
    """Return the values that names had."""
    found: dict[str, set[int]] = {}
    left = [0]

    def counted(start: int, end: int, step: int):
        for value in range(start, end, step):
            left[0] -= 1
            if left[0] < 0:
                raise Endless
            yield value

    names = {**OPS, "see": lambda name, value: found.setdefault(name, set()).add(value), "counted": counted}
    exec("\n".join(["def f(x, y, c0, c1, c3, c7):", *nest.python]), names)  # noqa: S102
    for x in (-6, -3, 0, 2, 5):
        for y in (0, 1, 3):
            left[0] = 2000
            try:
                names["f"](x, y, 0, 1, 3, 7)
            except Endless:
                continue
    return found


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_ranges_of_generated_nests_hold(first: int) -> None:
    bounded = 0
    for seed in range(first, first + 50):
        nest = Nest(seed)
        body = "\n".join(["%x = arith.remsi %n0, %c7 : i32", "%y = arith.andi %m, %c3 : i32", *nest.ir])
        text = FUNCTION.replace("BODY", body).replace("%n0: i32, %m: i32, %x: i32", "%n0: i32, %m: i32")
        known = values("".join(line for line in text.splitlines(True) if "assume" not in line))
        queries = [(name, *known[name]) for name in executed(nest)]
        nest.random.shuffle(queries)
        seen = executed(nest)
        for name, ranges, value in queries:
            low, high = ranges.of(value)
            assert low <= min(seen[name]) and max(seen[name]) <= high, (seed, name)
            bounded += (low, high) != (FEWEST, MOST)
    assert bounded > 200
