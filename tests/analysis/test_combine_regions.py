"""Which functions of two tuples choose one of them, whatever the order of the two, or compute the same of both orders."""

import pytest
from xdsl.ir import Block

from tilework.analysis.combine_regions import is_choice, is_commutative
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
        "%same = arith.cmpf oeq, %a, %b : f32\n%less = arith.cmpf olt, %a, %b : f32\n%more = arith.xori %less, %true : i1\n"
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
        "%u1 = arith.muli %a, %i : i32\n%v1 = arith.muli %b, %j : i32\n%x = arith.addi %u1, %v1 : i32\n%y = arith.xori %x, %x : i32",
        True,
    ),
    "comparisons": (
        "%u1 = arith.cmpi slt, %a, %b : i32\n%v1 = arith.cmpi sgt, %a, %b : i32\n%w1 = arith.ori %u1, %v1 : i1\n%x = arith.extui %w1 : i1 to i32\n"
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
