"""Which functions of two tuples choose one of them, whatever the order of the two."""

import pytest

from tilework.analysis.choices import is_choice
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


@pytest.mark.parametrize("name", ROWS)
def test_choices(name: str) -> None:
    kind, body, wanted = ROWS[name]
    module = parse_module(f"""
    tt.func @f(%v: tensor<8x{kind}>, %w: tensor<8xi32>) {{
      %true = arith.constant true
      %r, %s = "tt.reduce"(%v, %w) <{{axis = 0 : i32}}> ({{
      ^bb0(%a: {kind}, %i: i32, %b: {kind}, %j: i32):
        {body}
        {SELECTS.format(kind)}
      }}) : (tensor<8x{kind}>, tensor<8xi32>) -> ({kind}, i32)
      tt.return
    }}""")
    (reduce,) = (op for op in module.walk() if op.name == "tt.reduce")
    assert is_choice(reduce.regions[0].blocks[0]) == wanted
