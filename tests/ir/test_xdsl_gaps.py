"""Differences between xDSL's text and that of the reference compiler: one test for each."""

from typing import ClassVar

import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.types import f32, tensor_type
from tilework.ir.verify import verify

SAME = {
    "module header": "module {\n}\n",
    "named module": 'module @m attributes {a, "ttg.num-warps" = 4 : i32} {\n}\n',
    "tensor condition": """module {
  tt.func public @f(%c: tensor<4xi1>, %x: tensor<4xf32>) {
    %0 = arith.select %c, %x, %x : tensor<4xi1>, tensor<4xf32>
    tt.return
  }
}
""",
    "missing ops": """module {
  tt.func public @f(%c: i1, %x: f32) {
    %0 = arith.remf %x, %x : f32
    llvm.intr.assume %c : i1
    ttg.barrier all
    tt.return
  }
}
""",
    "several results": """module {
  tt.func public @f(%c: i1, %x: i32) {
    %0:2 = scf.if %c -> (i32, i32) {
      scf.yield %x, %x : i32, i32
    } else {
      scf.yield %x, %x : i32, i32
    }
    %1 = arith.addi %0#0, %0#1 : i32
    tt.return
  }
}
""",
    "numbered names": """module {
  tt.func public @f(%x: i32) {
    %x_1 = arith.addi %x, %x : i32
    %x_0 = arith.addi %x_1, %x : i32
    %c-1_i32 = arith.constant -1 : i32
    tt.return
  }
}
""",
    "two blanks": """module {
  tt.func public @f(%n: i32) {
    %r = scf.for %i = %n to %n step %n iter_args(%a = %n) -> (i32)  : i32 {
      scf.yield %a : i32
    } {llvm.loop_annotation = #loop_annotation, tt.num_stages = 3 : i32}
    tt.return
  }
}
""",
    "hex floats": """module {
  tt.func public @f() {
    %cst = arith.constant 0x7FC00000 : f32
    %cst_0 = arith.constant dense<0xFF800000> : tensor<4xf32>
    tt.return
  }
}
""",
    "declared functions": """module {
  tt.func private @g(f32 {tt.divisibility = 16 : i32}, i32) -> (i32 {a = 1 : i32}, f32)
  tt.func private @h()
}
""",
}
LOOP = "#loop_licm = #llvm.loop_licm<disable = true>\n#loop_annotation = #llvm.loop_annotation<licm = #loop_licm>\n"


@pytest.mark.parametrize("row", SAME)
def test_the_same_text(row: str) -> None:
    text = (LOOP if "#loop" in SAME[row] else "") + SAME[row]
    module = parse_module(text)
    verify(module)
    assert print_module(module) == text


def test_hexadecimal_digits_are_bits_where_the_type_is_a_float() -> None:
    module = parse_module("tt.func @f() { %0 = arith.constant dense<0x3fc00000> : tensor<4xf32> tt.return }")
    (constant,) = [op for op in module.walk() if op.name == "arith.constant"]
    value = constant.properties["value"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    assert set(value.get_values()) == {1.5}


def test_an_alias_is_used_above_its_definition_and_inside_a_type() -> None:
    module = parse_module(
        "tt.func @f(%x: tensor<4xf32, #late>) { tt.return } loc(#loc)\n#late = 7 : i32\n#loc = loc(unknown)"
    )
    assert "%x: tensor<4xf32, 7 : i32>" in print_module(module)


@irdl_attr_definition
class Layout(ParametrizedAttribute):
    name = "test.layout"
    ALIAS_STEM: ClassVar[str] = "layout"
    inner: Attribute


def test_attributes_with_a_stem_are_printed_as_aliases() -> None:
    module = ModuleOp([], {"a": tensor_type((4,), f32, Layout(UnitAttr())), "b": Layout(UnitAttr())})
    assert print_module(module).splitlines() == [
        "#layout = #test.layout<unit>",
        "module attributes {a = tensor<4xf32, #layout>, b = #layout} {",
        "}",
    ]


@pytest.mark.parametrize("types", ["-> i32", "-> (i32)"])
def test_one_type_with_and_without_parentheses(types: str) -> None:
    branches = f"%0 = scf.if %c {types} {{ scf.yield %n : i32 }} else {{ scf.yield %n : i32 }}"
    loop = f"%1 = scf.for %i = %n to %n step %n iter_args(%a = %n) {types} : i32 {{ scf.yield %a : i32 }}"
    module = parse_module(f"tt.func @f(%c: i1, %n: i32) {{ {branches} {loop} tt.return }}")
    verify(module)
    text = print_module(module)
    assert "%0 = scf.if %c -> (i32) {" in text
    assert "iter_args(%a = %n) -> (i32)  : i32 {" in text


def test_a_yield_of_nothing_may_be_left_out_or_written() -> None:
    short = parse_module("tt.func @f(%c: i1) { scf.if %c { ttg.barrier all } tt.return }")
    long = parse_module("tt.func @f(%c: i1) { scf.if %c { ttg.barrier all scf.yield } tt.return }")
    verify(short)
    assert print_module(short) == print_module(long)
    assert short.is_structurally_equivalent(long)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tt.func @f(i32) { tt.return }", "a function with a body has a name for each argument"),
        ("tt.func @f(%x: i32, i32) { tt.return }", "a function with a body has a name for each argument"),
        ("tt.func @f(%x) { tt.return }", "Expected ':'"),
    ],
)
def test_functions_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(text)
    assert message in caught.value.message
