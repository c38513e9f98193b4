"""Functions of two tuples that choose one of them, whatever the order of the two, or compute the same of both
orders."""

import operator
from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Block

from tilework.analysis.combine_regions import in_axis_order, is_choice, is_commutative
from tilework.ir import arith, tt
from tilework.ir.parser import parse_module

SELECTS = "%x = arith.select %c, %a, %b : {0}\n%y = arith.select %c, %i, %j : i32\ntt.reduce.return %x, %y : {0}, i32"
TIE = "%left = arith.cmpi slt, %i, %j : i32\n"
ROWS: dict[str, tuple[str, str, bool]] = {
    "the largest, the first of equals": (
        "i32",
        "%more = arith.cmpi sgt, %a, %b : i32\n%same = arith.cmpi eq, %a, %b : i32\n"
        f"{TIE}%tie = arith.andi %same, %left : i1\n%c = arith.ori %more, %tie : i1",
        True,
    ),
    "the largest that is a number": (
        "f32",
        "%same = arith.cmpf oeq, %a, %b : f32\n%less = arith.cmpf olt, %a, %b : f32\n"
        "%more = arith.xori %less, %true : i1\n"
        f"{TIE}%first = arith.select %same, %left, %more : i1\n%number = arith.cmpf oeq, %a, %a : f32\n"
        "%c = arith.andi %first, %number : i1",
        True,
    ),
    "the largest, the last of equals": ("i32", "%c = arith.cmpi sgt, %a, %b : i32", False),
    "the largest, NaN if it comes last": (
        "f32",
        "%more = arith.cmpf ogt, %a, %b : f32\n%same = arith.cmpf oeq, %a, %b : f32\n"
        f"{TIE}%tie = arith.andi %same, %left : i1\n%c = arith.ori %more, %tie : i1",
        False,
    ),
    "the second": ("i32", "%c = arith.cmpi ne, %a, %a : i32", False),
    "against the other's index": ("i32", "%c = arith.cmpi slt, %a, %j : i32", False),
}


RETURN = "\ntt.reduce.return %x, %y : i32, i32"
PROOFS: dict[str, tuple[str, bool]] = {
    "sums": ("%x = arith.addi %a, %b : i32\n%y = arith.addi %j, %i : i32", True),
    "a sum of products": (
        (
            "%u1 = arith.muli %a, %i : i32\n%v1 = arith.muli %b, %j : i32\n%x = arith.addi %u1, %v1 : i32\n"
            "%y = arith.xori %x, %x : i32"
        ),
        True,
    ),
    "comparisons": (
        "%u1 = arith.cmpi slt, %a, %b : i32\n%v1 = arith.cmpi sgt, %a, %b : i32\n%w1 = arith.ori %u1, %v1 : i1\n"
        "%x = arith.extui %w1 : i1 to i32\n"
        "%y = arith.maxsi %i, %j : i32",
        True,
    ),
    "one comparison": (
        "%u1 = arith.cmpi slt, %a, %b : i32\n%x = arith.extui %u1 : i1 to i32\n%y = arith.maxsi %i, %j : i32",
        False,
    ),
    "a difference": ("%x = arith.subi %a, %b : i32\n%y = arith.addi %i, %j : i32", False),
    "pairs that are mixed": ("%x = arith.addi %a, %j : i32\n%y = arith.addi %i, %b : i32", False),
    "affine functions": (
        "%x = arith.muli %a, %b : i32\n%u1 = arith.muli %i, %b : i32\n%y = arith.addi %u1, %j : i32",
        False,
    ),
}


def region_of(kind: str, body: str) -> Block:
    module = parse_module(f"""
    tt.func @f(%v: tensor<8x{kind}>, %w: tensor<8xi32>) {{
      %true = arith.constant true
      %r, %s = "tt.reduce"(%v, %w) <{{axis = 0 : i32}}> ({{
      ^bb0(%a: {kind}, %i: i32, %b: {kind}, %j: i32):
        {body}
      }}) : (tensor<8x{kind}>, tensor<8xi32>) -> ({kind}, i32)
      tt.return
    }}""")
    (reduce,) = (op for op in module.walk() if op.name == "tt.reduce")
    return reduce.regions[0].blocks[0]


@pytest.mark.parametrize("name", ROWS)
def test_choices(name: str) -> None:
    kind, body, wanted = ROWS[name]
    block = region_of(kind, f"{body}\n{SELECTS.format(kind)}")
    assert is_choice(block) == is_commutative(block) == wanted


@pytest.mark.parametrize("name", PROOFS)
def test_proofs(name: str) -> None:
    body, wanted = PROOFS[name]
    assert is_commutative(region_of("i32", body + RETURN)) == wanted


Condition = tuple[str, Callable[[int, int, int, int], int]]  # as ops that define %c, and as a function
COMPARED = {
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
JOINED = {"andi": operator.and_, "ori": operator.or_, "xori": operator.xor}
VALUES = range(3)  # enough for every order of two


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    """A few comparisons of any two values, joined in any way; most choose nothing."""
    names, lines = "aibj", []
    functions: list[Callable[[int, int, int, int], int]] = []
    for count in range(draw(st.integers(1, 4))):
        way = draw(st.sampled_from(sorted(COMPARED)))
        left, right = draw(st.sampled_from(["ab", "ij", "ba", "ji", "ab", "ij", "aj", "ai"]))
        lines.append(f"%t{count} = arith.cmpi {way}, %{left}, %{right} : i32")
        x, y = names.index(left), names.index(right)
        functions.append(lambda *v, way=way, x=x, y=y: int(COMPARED[way](v[x], v[y])))
    while len(functions) < 2 * len([line for line in lines if "cmpi" in line]) - 1:
        way = draw(st.sampled_from(sorted(JOINED)))
        x, y = (draw(st.integers(0, len(functions) - 1)) for _ in range(2))
        lines.append(f"%t{len(functions)} = arith.{way} %t{x}, %t{y} : i1")
        one, other = functions[x], functions[y]
        functions.append(lambda *v, way=way, one=one, other=other: JOINED[way](one(*v), other(*v)))
    lines.append(f"%c = arith.ori %t{len(functions) - 1}, %t{len(functions) - 1} : i1")
    return "\n".join(lines), functions[-1]


@given(conditions())
def test_what_is_called_a_choice_chooses_the_same_in_both_orders(condition: Condition) -> None:
    text, function = condition
    if is_choice(region_of("i32", f"{text}\n{SELECTS.format('i32')}")):
        for a, i, b, j in product(VALUES, repeat=4):
            assert ((a, i) if function(a, i, b, j) else (b, j)) == ((b, j) if function(b, j, a, i) else (a, i)), text


@pytest.mark.parametrize("kind", ["slt", "sgt"])
@pytest.mark.parametrize("tie", ["slt", "sgt"])
@pytest.mark.parametrize("logic", ["both", "either"])
def test_orders_that_disagree_on_one_pair_are_no_choice(kind: str, tie: str, logic: str) -> None:
    """``a < b and i < j``: false for both orders where a < b and i > j; ``or`` is true for both."""
    join = "arith.andi" if logic == "both" else "arith.ori"
    body = f"%t = arith.cmpi {kind}, %a, %b : i32\n%u = arith.cmpi {tie}, %i, %j : i32\n%c = {join} %t, %u : i1"
    assert not is_choice(region_of("i32", f"{body}\n{SELECTS.format('i32')}"))


def test_a_value_compared_with_a_constant_is_no_choice() -> None:
    body = "%zero = arith.constant 0 : i32\n%c = arith.cmpi slt, %a, %zero : i32"
    assert not is_choice(region_of("i32", f"{body}\n{SELECTS.format('i32')}"))
    body = "%zero = arith.constant 0 : i32\n%c = arith.cmpi slt, %zero, %i : i32"
    assert not is_choice(region_of("i32", f"{body}\n{SELECTS.format('i32')}"))


CHOSEN = "%y = arith.select %c, %i, %j : i32"
POSITIONS: dict[str, tuple[int, str, int]] = {
    "one of the positions": (0, CHOSEN, 0),
    "positions that are negative": (-4, CHOSEN, 1),
    "the difference of the positions": (0, "%y = arith.subi %j, %i : i32", 1),
}


@pytest.mark.parametrize(("start", "result", "left"), POSITIONS.values(), ids=POSITIONS)
def test_comparisons_of_positions_are_known_where_one_is_returned(start: int, result: str, left: int) -> None:
    text = f"""
tt.func @f(%v: tensor<8xi32>) {{
  %r = tt.make_range {{end = {start + 8} : i32, start = {start} : i32}} : tensor<8xi32>
  %m:2 = "tt.reduce"(%v, %r) <{{axis = 0 : i32}}> ({{
  ^bb0(%a: i32, %i: i32, %b: i32, %j: i32):
    %c = arith.cmpi ult, %i, %j : i32
    %x = arith.select %c, %a, %b : i32
    {result}
    tt.reduce.return %x, %y : i32, i32
  }}) : (tensor<8xi32>, tensor<8xi32>) -> (i32, i32)
  tt.return
}}"""
    (reduce,) = [op for op in parse_module(text).walk() if isinstance(op, tt.ReduceOp)]
    assert sum(isinstance(op, arith.CmpiOp) for op in in_axis_order(reduce).region.block.ops) == left
