"""`pad-tiles` proved by the evaluator: each class of ops on odd sizes, alone and together, with the worst in the lanes
that are never observed."""

import re
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.evaluator.eval_programs import function
from tilework.ir.functions import ops_in_order
from tilework.ir.parser import parse_module
from tilework.ir.types import shape_of
from tilework.ir.verify import first_problem
from tilework.oracles.evaluator import evaluate
from tilework.transforms.registry import run_pipeline

Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {"f32": np.float32, "i32": np.int32, "i8": np.int8, "i1": np.bool_, "f16": np.float16}
WORST: dict[str, list[Any]] = {  # what invisible lanes hold
    "f32": [np.nan, np.inf, -np.inf, 1e30],
    "f16": [np.nan, np.inf, -np.inf, 6e4],
    "i32": [0, -(2**31), 2**31 - 1, -1],
    "i8": [0, -128, -1, 127],
    "i1": [True, False],
}
SIZES = (1, 3, 17, 96, 127, 130)
PAIRS = ((3, 5), (17, 4), (8, 33), (6, 10))


def region(op: str, element: str, end: str, arguments: int = 1) -> str:
    """``^bb0(%l0: f32, %r0: f32): ... tt.reduce.return``."""
    sides = ", ".join(f"%{side}{index}: {element}" for side in "lr" for index in range(arguments))
    return f"({{\n^bb0({sides}):\n{op}\ntt.{end}.return %m : {element}\n}})"


def reduction(op: str, element: str, axis: int = 0, shape: str = "{n}", rest: str = "") -> tuple[Any, ...]:
    result = f"tensor<{rest}x{element}>" if rest else element
    body = f'%0 = "tt.reduce"(%a) <{{axis = {axis} : i32}}> {region(op, element, "reduce")} '
    return [f"tensor<{shape}x{element}>"], [result], f"{body}: (tensor<{shape}x{element}>) -> {result}"


def scan(op: str, element: str, reverse: bool) -> tuple[Any, ...]:
    type = f"tensor<{{n}}x{element}>"
    flag = str(reverse).lower()
    body = f'%0 = "tt.scan"(%a) <{{axis = 0 : i32, reverse = {flag}}}> {region(op, element, "scan")}'
    return [type], [type], f"{body} : ({type}) -> {type}"


def view(op: str, before: str, after: str, element: str = "f32", attributes: str = "") -> tuple[Any, ...]:
    source, result = f"tensor<{before}x{element}>", f"tensor<{after}x{element}>"
    return [source], [result], f"%0 = {op} %a {attributes} : {source} -> {result}"


ADD = "%m = arith.addf %l0, %r0 : f32"
# the last element: no neutral element, and the order matters
ODD = "%h = arith.constant -0.0 : f32\n%m = arith.addf %r0, %h : f32"
RATIO = (
    "%d = arith.remsi %l0, %r0 : i32\n%e = arith.subi %l0, %l0 : i32\n%f = arith.muli %d, %e : i32\n"
    "%m = arith.addi %f, %r0 : i32"
)
ARGMAX = """%0:2 = "tt.reduce"(%a, %b) <{axis = 0 : i32}> ({
^bb0(%v: f32, %i: i32, %w: f32, %j: i32):
  %gt = arith.cmpf ogt, %v, %w : f32
  %r = arith.select %gt, %v, %w : f32
  %s = arith.select %gt, %i, %j : i32
  tt.reduce.return %r, %s : f32, i32
}) : (tensor<{n}xf32>, tensor<{n}xi32>) -> (f32, i32)"""
ROWS: dict[str, tuple[Any, ...]] = {
    "range": ([], ["tensor<{n}xi32>"], "%0 = tt.make_range {end = {n7} : i32, start = 7 : i32} : tensor<{n}xi32>"),
    "constant": ([], ["tensor<{n}xf32>"], "%0 = arith.constant dense<2.5> : tensor<{n}xf32>"),
    "NaN": ([], ["tensor<{n}xf32>"], "%0 = arith.constant dense<0x7FC00001> : tensor<{n}xf32>"),
    "add": (["tensor<{n}xf32>"] * 2, ["tensor<{n}xf32>"], "%0 = arith.addf %a, %b : tensor<{n}xf32>"),
    "divide": (["tensor<{n}xi32>"] * 2, ["tensor<{n}xi32>"], "%0 = arith.divsi %a, %b : tensor<{n}xi32>"),
    "remainder": (["tensor<{n}xi32>"] * 2, ["tensor<{n}xi32>"], "%0 = arith.remui %a, %b : tensor<{n}xi32>"),
    "sum": reduction(ADD, "f32"),
    "product": reduction("%m = arith.muli %l0, %r0 : i32", "i32"),
    "maximum": reduction("%m = arith.maximumf %l0, %r0 : f32", "f32"),
    "maxnum": reduction("%m = arith.maxnumf %l0, %r0 : f32", "f32"),
    "minsi": reduction("%m = arith.minsi %l0, %r0 : i32", "i32"),
    "maxsi": reduction("%m = arith.maxsi %l0, %r0 : i8", "i8"),
    "minui": reduction("%m = arith.minui %l0, %r0 : i32", "i32"),
    "and": reduction("%m = arith.andi %l0, %r0 : i1", "i1"),
    "xor": reduction("%m = arith.xori %l0, %r0 : i32", "i32"),
    "own function": reduction(ODD, "f32"),
    "ratio": reduction(RATIO, "i32"),
    "argmax": (["tensor<{n}xf32>", "tensor<{n}xi32>"], ["f32", "i32"], ARGMAX),
    "rows": reduction(ADD, "f32", 1, "{m}x{n}", "{m}"),
    "columns": reduction(ODD, "f32", 0, "{m}x{n}", "{n}"),
    "ratio of rows": reduction(RATIO, "i32", 1, "{m}x{n}", "{m}"),
    **{
        f"{op} along {axis} of {shape}": reduction(f"%m = arith.{op} %l0, %r0 : {element}", element, axis, shape, rest)
        for shape, sides in (("{m}x{n}", ("{n}", "{m}")), ("{n}x{m}", ("{m}", "{n}")))
        for axis, rest in enumerate(sides)
        for op, element in (("xori", "i32"), ("minsi", "i32"), ("mulf", "f32"), ("addi", "i8"))
    },
    "cumsum": scan(ADD, "f32", False),
    "cumsum from the end": scan(ADD, "f32", True),
    "own scan from the end": scan(ODD, "f32", True),
    "ratios": scan(RATIO, "i32", False),
    "expand": view("tt.expand_dims", "{n}", "{n}x1", attributes="{axis = 1 : i32}"),
    "broadcast": view("tt.broadcast", "{n}x1", "{n}x{m}"),
    "transpose": view("tt.trans", "{m}x{n}", "{n}x{m}", attributes="{order = array<i32: 1, 0>}"),
    "flatten": view("tt.reshape", "{m}x{n}", "{mn}"),
    "unflatten": view("tt.reshape", "{mn}", "{m}x{n}"),
    "rows in pairs": view("tt.reshape", "{2m}x{n}", "{m}x2x{n}"),
    "other rows": view("tt.reshape", "{m}x{n}", "{n}x{m}", "i8"),
    "any order": view("tt.reshape", "{m}x{n}", "{n}x{m}", "i32", attributes="allow_reorder"),
    "join": (
        ["tensor<{n}xf32>"] * 2,
        ["tensor<{n}x2xf32>"],
        "%0 = tt.join %a, %b : tensor<{n}xf32> -> tensor<{n}x2xf32>",
    ),
    "split": (
        ["tensor<{m}x{n}x2xf32>"],
        ["tensor<{m}x{n}xf32>"] * 2,
        "%0, %1 = tt.split %a : tensor<{m}x{n}x2xf32> -> tensor<{m}x{n}xf32>",
    ),
    "cat": (["tensor<{n}xf32>"] * 2, ["tensor<{2n}xf32>"], "%0 = tt.cat %a, %b : tensor<{n}xf32> -> tensor<{2n}xf32>"),
    "crop": view("tt.resize", "{2n}x{2m}", "{n}x{m}"),
    "grow and crop": (
        ["tensor<{n}x{m}xf32>"],
        ["tensor<{n}x{m}xf32>"],
        "%g = tt.resize %a : tensor<{n}x{m}xf32> -> tensor<512x64xf32>\n"
        "%0 = tt.resize %g : tensor<512x64xf32> -> tensor<{n}x{m}xf32>",
    ),
    "crop to the size of another tile": (
        ["tensor<{n}x{pm}xf32>"],
        ["tensor<{n}x{m}xf32>", "tensor<{n}xf32>"],
        "%0 = tt.resize %a : tensor<{n}x{pm}xf32> -> tensor<{n}x{m}xf32>\n"
        f'%1 = "tt.reduce"(%a) <{{axis = 1 : i32}}> {region(ADD, "f32", "reduce")} '
        ": (tensor<{n}x{pm}xf32>) -> tensor<{n}xf32>",
    ),
    **{
        f"sort {element}": (
            [f"tensor<{{n}}x{{m}}x{element}>"],
            [f"tensor<{{n}}x{{m}}x{element}>"],
            f"""%i = tt.make_range {{end = {{pm}} : i32, start = 0 : i32}} : tensor<{{pm}}xi32>
%s = arith.constant dense<{{m}}> : tensor<{{pm}}xi32>
%l = arith.cmpi slt, %i, %s : tensor<{{pm}}xi32>
%u = tt.expand_dims %l {{axis = 0 : i32}} : tensor<{{pm}}xi1> -> tensor<1x{{pm}}xi1>
%v = tt.broadcast %u : tensor<1x{{pm}}xi1> -> tensor<{{n}}x{{pm}}xi1>
%w = tt.resize %a : tensor<{{n}}x{{m}}x{element}> -> tensor<{{n}}x{{pm}}x{element}>
%g = arith.constant dense<{greatest}> : tensor<{{n}}x{{pm}}x{element}>
%x = arith.select %v, %w, %g : tensor<{{n}}x{{pm}}xi1>, tensor<{{n}}x{{pm}}x{element}>
%y = tt.sort_runs %x {{bits = {{bits}} : i32, merges = false, order = 0 : i32, signed = true}} : tensor<{{n}}x{{pm}}x{element}>
%0 = tt.resize %y : tensor<{{n}}x{{pm}}x{element}> -> tensor<{{n}}x{{m}}x{element}>""",  # noqa: E501
        )
        for element, greatest in (("i32", "2147483647"), ("i8", "127"))
    },
    "gather": (
        ["tensor<{n}x{m}xf32>", "tensor<{2n}x{m}xi32>"],
        ["tensor<{2n}x{m}xf32>"],
        "%c = arith.constant dense<{n}> : tensor<{2n}x{m}xi32>\n%i = arith.remui %b, %c : tensor<{2n}x{m}xi32>\n"
        "%0 = tt.gather %a[%i] {axis = 0 : i32} : (tensor<{n}x{m}xf32>, tensor<{2n}x{m}xi32>) -> tensor<{2n}x{m}xf32>",
    ),
    "histogram": (
        ["tensor<{n}xi32>"],
        ["tensor<{m}xi32>"],
        "%c = arith.constant dense<{m}> : tensor<{n}xi32>\n%i = arith.remui %a, %c : tensor<{n}xi32>\n"
        "%0 = tt.histogram %i : tensor<{n}xi32> -> tensor<{m}xi32>",
    ),
    "masked histogram": (
        ["tensor<{n}xi32>", "tensor<{n}xi1>"],
        ["tensor<{m}xi32>"],
        "%c = arith.constant dense<{m}> : tensor<{n}xi32>\n%i = arith.remui %a, %c : tensor<{n}xi32>\n"
        "%0 = tt.histogram %i, %b : tensor<{n}xi32> -> tensor<{m}xi32>",
    ),
    "dot": (
        ["tensor<{m}x{n}xf16>", "tensor<{n}x{m}xf16>", "tensor<{m}x{m}xf32>"],
        ["tensor<{m}x{m}xf32>"],
        "%0 = tt.dot %a, %b, %c : tensor<{m}x{n}xf16> * tensor<{n}x{m}xf16> -> tensor<{m}x{m}xf32>",
    ),
    "scaled dot": (  # in the lanes that are not seen some scales are NaN
        ["tensor<{m}x{16n}xi8>", "tensor<{m}x{n}xi8>", "tensor<{32n}x{m}xf16>"],
        ["tensor<{m}x{m}xf32>"],
        """%z = arith.constant dense<0> : tensor<{m}x{n}xi8>
%o = arith.constant dense<1> : tensor<{m}x{n}xi8>
%half = arith.constant dense<126> : tensor<{m}x{n}xi8>
%negative = arith.cmpi slt, %b, %z : tensor<{m}x{n}xi8>
%odd = arith.andi %b, %o : tensor<{m}x{n}xi8>
%unit = arith.addi %odd, %half : tensor<{m}x{n}xi8>
%s = arith.select %negative, %b, %unit : tensor<{m}x{n}xi1>, tensor<{m}x{n}xi8>
%t = arith.constant dense<0.0> : tensor<{m}x{m}xf32>
%0 = tt.dot_scaled %a scale %s, %c, %t lhs = e2m1 rhs = fp16 {fastMath = false} :
  tensor<{m}x{16n}xi8>, tensor<{m}x{n}xi8> * tensor<{32n}x{m}xf16> -> tensor<{m}x{m}xf32>""",
    ),
    "map": (
        ["tensor<{m}x{2n}xi32>"] * 2,
        ["tensor<{m}x{2n}xi32>"],
        '%0 = "tt.map_elementwise"(%a, %b) <{pack = 2 : i32}> ({\n'
        "^bb0(%x: i32, %y: i32, %z: i32, %w: i32):\n  %q = arith.divsi %x, %z : i32\n  %r = arith.addi %x, %y : i32\n"
        "  %s = arith.xori %r, %w : i32\n  tt.map_elementwise.return %q, %s : i32, i32\n"
        "}) : (tensor<{m}x{2n}xi32>, tensor<{m}x{2n}xi32>) -> tensor<{m}x{2n}xi32>",
    ),
    "pairs across rows": (
        ["tensor<2x{n}xi32>"],
        ["tensor<2x{n}xi32>"],
        '%0 = "tt.map_elementwise"(%a) <{pack = 2 : i32}> ({\n^bb0(%x: i32, %y: i32):\n'
        "  tt.map_elementwise.return %y, %x : i32, i32\n}) : (tensor<2x{n}xi32>) -> tensor<2x{n}xi32>",
    ),
    "loop": (
        ["tensor<{n}xf32>", "i32"],
        ["tensor<{n}xf32>"],
        "%z = arith.constant 0 : i32\n%o = arith.constant 1 : i32\n"
        "%0 = scf.for %i = %z to %b step %o iter_args(%x = %a) -> (tensor<{n}xf32>) : i32 {\n"
        "  %y = arith.addf %x, %a : tensor<{n}xf32>\n  scf.yield %y : tensor<{n}xf32>\n}",
    ),
    "branch": (
        ["tensor<{n}xf32>", "i1"],
        ["tensor<{n}xf32>"],
        "%0 = scf.if %b -> (tensor<{n}xf32>) {\n  %y = arith.addf %a, %a : tensor<{n}xf32>\n"
        "  scf.yield %y : tensor<{n}xf32>\n} else {\n  scf.yield %a : tensor<{n}xf32>\n}",
    ),
}


def sized(text: str, m: int, n: int) -> str:
    numbers = {"m": m, "n": n, "mn": m * n, "2m": 2 * m, "2n": 2 * n, "16n": 16 * n, "32n": 32 * n, "n7": n + 7}
    numbers |= {"bits": (m - 1).bit_length(), "pm": 1 << (m - 1).bit_length()}
    for name, number in numbers.items():
        text = text.replace(f"{{{name}}}", str(number))
    return text


def together(names: list[str]) -> tuple[Any, ...]:
    """One row of several: their results one after another, computed from the same parameters where these have the same
    types."""
    letters: dict[tuple[str, int], str] = {}
    results, bodies = [], []
    for number, name in enumerate(names):
        parameters, types, body = ROWS[name]
        own: dict[str, str] = {}
        for letter, type in zip("abc", parameters, strict=False):
            key = type, sum(other == type for other in parameters[: "abc".index(letter)])
            own[letter] = letters.setdefault(key, "abcdefgh"[len(letters) % 8])
        assert len(letters) <= 8, f"{names} need more than eight parameters"
        results += zip(types, (value.replace("%", f"%n{number}_") for value in values_of(ROWS[name])), strict=True)
        local = lambda found, own=own, number=number: f"%{own.get(found[1], f'n{number}_{found[1]}')}"
        bodies.append(re.sub(r"%(\w+)", local, body))
    return [type for type, _ in letters], [type for type, _ in results], "\n".join(bodies), [v for _, v in results]


def values_of(row: tuple[Any, ...]) -> list[str]:
    """The names of what a row computes."""
    _, results, body, *names = row
    if names:
        return names[0]
    return ["%0"] if len(results) == 1 else ["%0", "%1"] if re.search(r"%1 =|%0, %1 =", body) else ["%0#0", "%0#1"]


def program(row: tuple[Any, ...], m: int, n: int) -> tuple[list[str], list[str], str]:
    parameters, results, body, *_ = row
    types = [sized(type, m, n) for type in results]
    returned = f"tt.return {', '.join(values_of(row))} : {', '.join(types)}"
    return [sized(type, m, n) for type in parameters], types, f"{sized(body, m, n)}\n{returned}"


def element_of(type: str) -> str:
    return type.removesuffix(">").rsplit("x", 1)[-1]


def dims_of(type: str) -> tuple[int, ...]:
    return tuple(map(int, type.removeprefix("tensor<").removesuffix(">").split("x")[:-1])) if "<" in type else ()


def generated(random: np.random.Generator, type: str) -> Array:
    """Values of `type`; integers are not 0, floats exact in sums of a few hundred."""
    element, shape = element_of(type), dims_of(type)
    numbers = random.integers(1, 40, shape)
    return np.asarray(numbers % 2 if element == "i1" else numbers).astype(DTYPES[element])


def padded(random: np.random.Generator, value: Array, type: str) -> Array:
    """`value` among the worst that may stand beside it."""
    if not value.shape:
        return value
    shape = tuple(1 << (size - 1).bit_length() for size in value.shape)
    worst = random.choice(np.asarray(WORST[element_of(type)], object), shape).astype(value.dtype)
    worst[tuple(map(slice, value.shape))] = value
    return worst


def check(row: tuple[Any, ...], m: int, n: int) -> None:
    parameters, results, body = program(row, m, n)
    text, random = function(parameters, results, body), np.random.default_rng(m * 1000 + n)
    given = [generated(random, type) for type in parameters]
    expected = evaluate(parse_module(text), "f", given)
    module = parse_module(text)
    run_pipeline(module, ["pad-tiles"])
    assert first_problem(module) is None, f"{first_problem(module)}\n{module}"
    for op in ops_in_order(*module.regions):
        assert not any(size & (size - 1) for value in op.results for size in shape_of(value.type)), f"{op}\nis odd"
    found = evaluate(module, "f", [padded(random, value, type) for value, type in zip(given, parameters, strict=True)])
    for one, other, type in zip(found, expected, results, strict=True):
        np.testing.assert_array_equal(one[tuple(map(slice, dims_of(type)))], other)


@pytest.mark.parametrize("name", ROWS)
def test_what_is_seen_is_the_same(name: str) -> None:
    uses_pairs = "{m" in str(ROWS[name]) or "{2m" in str(ROWS[name])
    for m, n in PAIRS if uses_pairs else [(1, size) for size in SIZES]:
        try:
            check(ROWS[name], m, n)
        except Exception as error:
            error.add_note(f"{name}, m = {m}, n = {n}")
            raise


def shares(one: str, other: str) -> bool:
    return bool(set(ROWS[one][0]) & set(ROWS[other][0]))


@pytest.mark.parametrize("first", ROWS)
def test_uses_of_one_value_do_not_see_each_other(first: str) -> None:
    """Each op, and behind it and before it others with the same operands: each finds its own values in the lanes that
    are not seen."""
    random = Random(first)
    others = [name for name in ROWS if shares(first, name)]
    for m, n in random.sample(PAIRS, 2):
        names = random.sample(others, min(len(others), 4))
        for order in ([first, *names], [*names, first]):
            try:
                check(together(order), m, n)
            except Exception as error:
                error.add_note(f"{order}, m = {m}, n = {n}")
                raise
