"""The text of modules: what the reference compiler printed is read, and printed again to the letter.

`reference/sm_80` and `reference/sm_90` are its output without locations (names come from the text),
`reference/locations` its output with them: a kernel with every kind of control flow, a module with every op, names and
attributes of all kinds.
"""

from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import AnyFloat, FileLineColLoc, FusedLoc, IntAttr, ModuleOp, NameLoc, NoneAttr, UnknownLoc
from xdsl.ir import Attribute, Block, ParametrizedAttribute, Region
from xdsl.irdl import irdl_attr_definition

from tilework.ir import arith, tt
from tilework.ir.arith import binary
from tilework.ir.attr_text import float_bits, float_from_bits, scalar_text
from tilework.ir.locations import callsite_loc, file_loc, name_loc, name_of, unknown
from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.types import bf16, f8E4M3FN, f8E5M2, f16, f32, f64, i32, int_attr, tensor_type
from tilework.tools.opt import LenientParser

REFERENCE = Path(__file__).parent / "reference"
PLAIN = sorted([*REFERENCE.glob("sm_80/*.ttir"), *REFERENCE.glob("sm_90/*.ttir")])
LOCATED = sorted(REFERENCE.glob("locations/*.ttir"))
FILES = [*PLAIN, *LOCATED]


def label(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def in_function(body: str, arguments: str = "%x: i32, %f: f32, %c: i1, %t: tensor<64xi32>") -> str:
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"module {{\n  tt.func public @f({arguments}) {{\n{lines}    tt.return\n  }}\n}}\n"


def printed_body(body: str) -> str:
    """The ops of `body`, read and printed, without their indentation."""
    lines = print_module(parse_module(in_function(body))).splitlines()[2:-3]
    return "\n".join(line[4:] for line in lines)


# Whole files


@pytest.mark.parametrize("path", FILES, ids=label)
def test_text_is_printed_as_it_was_and_keeps_the_module(path: Path) -> None:
    """With locations if it has them; the text that the other way of printing gives is read as the same module."""
    text, has_locations = path.read_text(), path in LOCATED
    module = parse_module(text, path.name)
    assert print_module(module, debuginfo=has_locations) == text
    again = parse_module(print_module(module, debuginfo=not has_locations))
    assert module.is_structurally_equivalent(again)
    if not has_locations:
        assert [op.location for op in module.walk()] == [op.location for op in again.walk()]


def test_locations_of_arguments_are_kept() -> None:
    module = parse_module((REFERENCE / "locations/control_flow.ttir").read_text())
    kernel = module.body.block.first_op
    assert isinstance(kernel, tt.FuncOp)
    assert [name_of(argument.location) for argument in kernel.body.blocks[0].args] == ["p", "n"]
    assert name_of(kernel.body.blocks[4].args[0].location) == "a"


def test_text_of_ops_the_compiler_builds_is_read_as_the_same_module() -> None:
    block = Block(arg_types=[i32, i32])
    block.add_ops([binary(arith.MuliOp, block.args[0], block.args[1], unknown), tt.ReturnOp.make([], unknown)])
    module = ModuleOp([tt.FuncOp.make("f", [i32, i32], [], Region(block), unknown)])
    assert parse_module(print_module(module)).is_structurally_equivalent(module)


def test_printing_twice_gives_the_same_text() -> None:
    module = parse_module((REFERENCE / "locations/every_op.ttir").read_text())
    assert print_module(module, debuginfo=True) == print_module(module, debuginfo=True)


# Names


def test_names_come_from_locations_unless_switched_off() -> None:
    text = in_function('%0 = arith.addi %x, %x : i32 loc("sum"("k.py":1:2))\n%1 = arith.addi %0, %0 : i32 loc("sum")')
    module = parse_module(text)
    assert "%sum_0 = arith.addi %sum, %sum : i32" in print_module(module)
    assert "%1 = arith.addi %0, %0 : i32" in print_module(module, nameloc_prefix=False)


def test_an_op_alone_has_the_text_that_it_has_in_its_module() -> None:
    module = parse_module(
        "tt.func @f(%x: i32) { %0 = arith.addi %x, %x : i32\n %1 = tt.splat %0 : i32 -> tensor<4xi32>\n tt.return }"
    )
    function = next(op for op in module.walk() if isinstance(op, tt.FuncOp))
    lines = [line.strip() for line in print_module(module).splitlines()]
    assert [print_module(op).strip() for op in function.body.block.ops] == lines[2:5]


def test_the_name_of_a_location() -> None:
    at = file_loc("k.py", 1, 2)
    assert name_of(name_loc("x", at)) == "x"
    assert name_of(callsite_loc(name_loc("x", at), name_loc("y", at))) == "x"
    assert name_of(callsite_loc(at, name_loc("y", at))) == "y"
    assert name_of(callsite_loc(callsite_loc(at, name_loc("w", at)), name_loc("z", at))) == "w"
    assert name_of(FusedLoc((at, name_loc("v", at)), NoneAttr())) == "v"
    assert name_of(name_loc("", at)) is None
    assert name_of(unknown) is None


def test_values_without_a_name_are_numbered_and_arguments_counted() -> None:
    block = Block(arg_types=[i32, i32])
    add = binary(arith.AddiOp, block.args[0], block.args[1], unknown)
    three = arith.ConstantOp.create(result_types=[i32], properties={"value": int_attr(-3, i32)})
    block.add_ops([add, three, tt.ReturnOp.make([], unknown)])
    function = tt.FuncOp.make("f", [i32, i32], [], Region(block), unknown)
    assert print_module(ModuleOp([function])) == (
        "module {\n"
        "  tt.func public @f(%arg0: i32, %arg1: i32) attributes {noinline = false} {\n"
        "    %0 = arith.addi %arg0, %arg1 : i32\n"
        "    %c-3_i32 = arith.constant -3 : i32\n"
        "    tt.return\n"
        "  }\n"
        "}\n"
    )


def test_several_results_share_a_name_or_keep_their_own() -> None:
    loop = "scf.while (%a = %x, %b = %f) : (i32, f32) -> (i32, f32) {\n"
    rest = "  scf.condition(%c) %a, %b : i32, f32\n} do {\n^bb0(%d: i32, %e: f32):\n  scf.yield %d, %e : i32, f32\n}\n"
    use = "%u = arith.addi {0}, {0} : i32"
    assert printed_body(f"%r:2 = {loop}{rest}" + use.format("%r#0")).startswith("%r:2 = scf.while")
    assert printed_body(f"%p, %q = {loop}{rest}" + use.format("%p")).startswith("%p, %q = scf.while")
    assert printed_body(f"%0, %1 = {loop}{rest}" + use.format("%0")).endswith("%u = arith.addi %0#0, %0#0 : i32")


def test_a_name_that_is_no_identifier_is_spelled_with_codes() -> None:
    text = print_module(parse_module(in_function('%0 = arith.addi %x, %x : i32 loc("2 b:é")')))
    assert "%_2_b3AC3A9 = arith.addi" in text


# Attributes


@pytest.mark.parametrize(
    "value",
    [
        "0x7FC00000 : f32",
        "0xFF800000 : f32",
        "0x7C00 : f16",
        "0x7FC0 : bf16",
        "0x7F : f8E4M3FN",
        "0x7FF0000000000000 : f64",
        "-0.000000e+00 : f32",
        "1.44269502 : f32",
        "9.99999974E-6 : f32",
        "0x4B800000 : f32",
        "1234567.5 : f32",
        "dense<0xFF800000> : tensor<4x4xf32>",
        "dense<[1.000000e+00, 0x7FC00000, -0.000000e+00, 1.401300e-45]> : tensor<4xf32>",
        "dense<0x7E00> : tensor<4xf16>",
        "dense<0x7F> : tensor<4xf8E4M3FN>",
        "dense<[[true, false], [false, true]]> : tensor<2x2xi1>",
        "dense<-1> : tensor<8xi8>",
        "dense<[0, 1, 2]> : tensor<3xi64>",
        "true",
        "-1 : i8",
        "5 : index",
    ],
)
def test_constants(value: str) -> None:
    assert printed_body(f"%k = arith.constant {value}") == f"%k = arith.constant {value}"


def test_a_bit_pattern_is_the_value_it_encodes() -> None:
    assert printed_body("%k = arith.constant 0x3FC00000 : f32") == "%k = arith.constant 1.500000e+00 : f32"
    splat = printed_body("%k = arith.constant dense<0x4200> : tensor<2xbf16>")
    assert splat == "%k = arith.constant dense<3.200000e+01> : tensor<2xbf16>"
    integer = printed_body("%k = arith.constant dense<0x10> : tensor<2xi32>")
    assert integer == "%k = arith.constant dense<16> : tensor<2xi32>"


def test_long_lists_are_raw_data() -> None:
    numbers = ", ".join(str(number) for number in range(128))
    text = printed_body(f"%k = arith.constant dense<[{numbers}]> : tensor<128xi32>")
    assert text.startswith('%k = arith.constant dense<"0x000000000100000002000000')
    assert printed_body(text) == text


@given(st.floats(allow_nan=False, width=64), st.sampled_from([f64, f32, bf16, f16, f8E4M3FN, f8E5M2]))
def test_printed_floats_give_the_same_bits_back(value: float, type: AnyFloat) -> None:
    try:
        bits = float_bits(value, type)
    except OverflowError:  # too large for f32 or f16
        return
    value = float_from_bits(bits, type)
    if value != value:  # f8E4M3FN has no infinities
        return
    text = scalar_text(value, type)
    assert (int(text, 16) if text.startswith("0x") else float_bits(float(text), type)) == bits


@irdl_attr_definition
class Blocked(ParametrizedAttribute):
    name = "test.blocked"
    ALIAS_STEM: ClassVar[str] = "blocked"
    size: IntAttr


@irdl_attr_definition
class Slice(ParametrizedAttribute):
    """Like a slice layout: without an alias, but its parent has one."""

    name = "test.slice"
    parent: Attribute


@irdl_attr_definition
class Mma(ParametrizedAttribute):
    name = "test.mma"
    ALIAS_STEM: ClassVar[str] = "mma"


def test_encodings_are_aliases_at_the_top() -> None:
    encodings = (Mma(), Blocked(IntAttr(1)), Slice(Blocked(IntAttr(2))), Blocked(IntAttr(1)))
    types = [tensor_type((4,), f32, encoding) for encoding in encodings]
    block = Block(arg_types=types)
    block.add_op(tt.ReturnOp.make([], file_loc("k.py", 3, 4)))
    function = tt.FuncOp.make("f", types, [], Region(block), unknown)
    lines = print_module(ModuleOp([function])).splitlines()
    assert lines[:3] == ["#blocked = #test.blocked<#builtin.int<1>>", lines[1], "#mma = #test.mma"]
    assert lines[1].startswith("#blocked1 = ")
    assert "tensor<4xf32, #test.slice<#blocked1>>" in lines[4]
    located = print_module(ModuleOp([function.clone()]), debuginfo=True).splitlines()
    assert located[:4] == [*lines[:2], "#loc = loc(unknown)", lines[2]]
    assert located[-1] == '#loc1 = loc("k.py":3:4)'


def test_aliases_may_be_defined_after_their_use_or_inside_other_lines() -> None:
    text = '#t = 7 : i32 #u = "s"\nmodule attributes {a = #t, b = #u, c = #late} {} loc(#loc1)\n'
    module = parse_module(text + '#loc1 = loc("x"(#loc2))\n#late = [#t]\n#loc2 = loc("k.py":1:2)\n!ty = i32\n')
    assert print_module(module) == 'module attributes {a = 7 : i32, b = "s", c = [7 : i32]} {\n}\n'
    assert module.location == name_loc("x", file_loc("k.py", 1, 2))


def test_every_form_of_location() -> None:
    forms = {
        "unknown": UnknownLoc,
        '"k.py":1:2': FileLineColLoc,
        '"x"': NameLoc,
        '"x"("k.py":1:2)': NameLoc,
        'callsite("k.py":1:2 at "x"(unknown))': None,
        'fused["k.py":1:2, unknown]': None,
        'fused<"why">["k.py":1:2]': None,
    }
    for form, kind in forms.items():
        module = parse_module(f"module {{}} loc({form})")
        assert kind is None or isinstance(module.location, kind)
        again = parse_module(print_module(module, debuginfo=True))
        assert again.location == module.location


# Forms


def test_the_generic_form_is_read() -> None:
    generic = '%y = "arith.addi"(%x, %x) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32'
    assert printed_body(generic) == "%y = arith.addi %x, %x : i32"
    module = parse_module(
        '"builtin.module"() ({\n"tt.func"() <{sym_name = "f", function_type = () -> ()}> ({\n'
        '"tt.return"() : () -> ()\n}) : () -> ()\n}) : () -> ()'
    )
    assert print_module(module) == "module {\n  tt.func @f() {\n    tt.return\n  }\n}\n"


def test_builtin_module_and_bare_ops_are_read() -> None:
    assert print_module(parse_module("builtin.module {}")) == "module {\n}\n"
    assert print_module(parse_module("tt.func private @f()")) == "module {\n  tt.func private @f()\n}\n"


def test_attributes_of_comparisons_and_casts_are_kept() -> None:
    body = "%m = arith.cmpi slt, %t, %t {tt.constancy = dense<16> : tensor<1xi32>} : tensor<64xi32>\n"
    body += "%n = arith.extsi %m {a} : tensor<64xi1> to tensor<64xi32>\n"
    body += "%o = arith.addf %f, %f fastmath<nnan, contract> : f32"
    assert printed_body(body) == body


# Mistakes

MISTAKES = {
    "tt.func @f(%a: i32) {\n^bb0:\n  tt.return\n}": "2:1: error: invalid block name in region with named arguments",
    "module {": "1:9: error: an operation, a block label or '}' is expected in a region",
    "module {} }": "1:11: error: an operation is expected here, not '}'",
    "module {\n  tt.frobnicate\n}": "2:3: error: there is no operation 'tt.frobnicate'",
    "module {\n  amdg.async_tdm_wait {num = 0 : i32}\n}": (
        "2:3: error: the tensor data mover (TDM) of gfx1250 cannot be compiled: "
        "there is no operation 'amdg.async_tdm_wait'"
    ),
    "%0 = amdg.init_barrier %m": "1:6: error: barriers in shared memory of gfx1250 cannot be compiled",
    "ttng.cluster_barrier": "1:1: error: a barrier of a cluster as one operation (Triton 3.8) cannot be compiled",
    "ttng.clc_try_cancel": "1:1: error: cluster launch control of sm_100 cannot be compiled",
    "ttng.tmem_alloc": "1:1: error: tensor memory and tcgen05 of sm_100 cannot be compiled",
    "%0 = arith.addi %b, %b : i32": "1:17: error: value %b is used but not defined",
    "tt.func @f(%a: i32) {\n  %a = arith.addi %a, %a : i32\n}": "2:3: error: SSA value %a is already defined",
    "tt.func @f() {\n  tt.return %x : i32\n}\ntt.func @g(%x: i32) { tt.return }": (
        "2:13: error: value %x is used outside"
    ),
    "tt.func @f(%x: i32) { %0 = arith.addf %x, %x : f32 }": "1:39: error: operand is used with type f32",
    "tt.func @f(%x: i32) { %0:2 = arith.addi %x, %x : i32 }": "1:23: error: 'arith.addi' has 1 results, 2 are named",
    "tt.func @f(%x: i32) { %0 = arith.cmpi lt, %x, %x : i32 }": "1:39: error: 'lt' is no comparison",
    "tt.func @f() { cf.br ^bb1 }": "1:22: error: block ^bb1 is not defined in this region",
    "module {} loc(#nope)": "1:15: error: alias '#nope' is not defined",
    '#a = loc("x"(#b))\n#b = loc("y"(#a))\nmodule {}': "2:14: error: alias '#a' is defined by itself: #a -> #b -> #a",
    "#a = #a\nmodule {}": "1:6: error: alias '#a' is defined by itself: #a -> #a",
    "#a = 1 : i32\n#a = 2 : i32\nmodule {}": "2:1: error: alias '#a' is defined twice",
    "#a = 1 : i32\nmodule {} loc(#a)": "2:15: error: this alias is not a location",
    "module {} loc(nowhere)": "1:15: error: a location is expected",
    'module {} loc("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa': "1:15: error: End of file",
    "module attributes {a = #foo.bar<1>} {}": "1:32: error: 'foo.bar' is not registered",
    "%0 = arith.constant 0x1FFFFFFFF : f32": "error: a constant does not fit its type",
    "%0 = arith.constant dense<0x1FFFFFFFF> : tensor<4xf32>": "error: 0x1FFFFFFFF does not fit f32",
    "%0 = arith.constant dense<1> : tensor<9999999x9999999xi32>": "elements is too large",
    "%0 = arith.constant dense<[1, 2]> : tensor<4xi32>": "the elements have shape [2], their type has [4]",
    '%0 = arith.constant dense<"0x12"> : tensor<4xi32>': "1 bytes are given for 4 elements of 4 bytes",
    "%0 = arith.constant dense<1.5> : tensor<4xi32>": "1:27: error: Expected integer value",
    "module {" * 3000: "error: nested too deeply",
    "\x00": "1:1: error: Unexpected character",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_shown_with_its_location(text: str) -> None:
    with pytest.raises(IRSyntaxError) as caught:
        parse_module(text, "k.ttir")
    message = str(caught.value)
    assert message.startswith("k.ttir:")
    assert MISTAKES[text] in message.splitlines()[0]


def test_the_line_is_shown_with_a_mark() -> None:
    with pytest.raises(IRSyntaxError) as caught:
        parse_module("module {\n  tt.frobnicate %x\n}", "k.ttir")
    assert str(caught.value).splitlines()[1:] == ["    tt.frobnicate %x", "    ^"]
    assert (caught.value.line, caught.value.column) == (2, 3)


@given(st.data())
def test_damaged_text_is_an_error_or_a_module(data: st.DataObject) -> None:
    text = (REFERENCE / "locations/control_flow.ttir").read_text()[:3000]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 3, len(text))))
    damaged = text[:start] + data.draw(st.text(alphabet='{}()<>%#:,="-x0 \\', max_size=3)) + text[end:]
    try:
        print_module(parse_module(damaged), debuginfo=True)
    except IRSyntaxError as error:
        assert error.line >= 1


# Size


def test_regions_do_not_copy_the_names_around_them() -> None:
    region = "({\n^bb0(%a: i32, %b: i32):\n  %s = arith.addi %a, %b : i32\n  tt.reduce.return %s : i32\n})"
    ops = "".join(
        f'%r{index} = "tt.reduce"(%t) <{{axis = 0 : i32}}> {region} : (tensor<64xi32>) -> i32\n' for index in range(300)
    )
    module = parse_module(in_function(ops))
    text = print_module(module)
    assert text.count("tt.reduce.return %s : i32") == 300
    assert parse_module(text).is_structurally_equivalent(module)


# What other tools write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('%m = arith.cmpi "slt", %x, %x : i32', "%m = arith.cmpi slt, %x, %x : i32"),
        ('%m = arith.cmpf "olt", %f, %f : f32', "%m = arith.cmpf olt, %f, %f : f32"),
    ],
)
def test_quoted_predicates(text: str, expected: str) -> None:
    assert printed_body(text) == expected


def test_text_without_an_op_is_an_empty_module() -> None:
    assert print_module(parse_module("#smem = #ttg.shared_memory\n")) == "module {\n}\n"


EMPTY = "module {\n  tt.func @f() {\n    tt.return\n  }\n}\n"
RESOURCES = """
{-#
  external_resources: {
    mlir_reproducer: {
      pipeline: "builtin.module(cse)",
      verify_each: true
    }
  }
#-}
"""


@pytest.mark.parametrize("text", [EMPTY + RESOURCES, RESOURCES + EMPTY])
def test_resources_of_other_tools_are_skipped(text: str) -> None:
    assert print_module(parse_module(text)) == EMPTY


@pytest.mark.parametrize(
    "function",
    [
        "tt.func @f() {\n^start:\n  tt.return\n}",
        "tt.func @f(i32) {\n^start(%a: i32):\n  tt.return\n}",
        "tt.func @f(%c: i1) {\n  scf.if %c {\n  ^start:\n    scf.yield\n  }\n  tt.return\n}",
    ],
)
def test_first_blocks_with_a_label(function: str) -> None:
    text = print_module(parse_module(function))
    assert "^" not in text
    assert print_module(parse_module(text)) == text


def test_an_unknown_op_leaves_room_for_the_yield() -> None:
    text = 'tt.func @f(%c: i1) {\n  scf.if %c {\n    "other.op"() : () -> ()\n  }\n  tt.return\n}'
    assert '"other.op"() : () -> ()\n    }' in print_module(parse_module(text, parser_type=LenientParser))


def test_nvmma_layouts_may_leave_fields_out() -> None:
    text = (
        "tt.func @f(%m: !ttg.memdesc<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64}>, #ttg.shared_memory>) {}"
    )
    expected = "#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false}>"
    assert expected in print_module(parse_module(text))
