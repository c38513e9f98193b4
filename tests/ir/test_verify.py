"""The verifier accepts tensors where xDSL's definitions know scalars only, and finds uses above definitions."""

import re

import pytest
from xdsl.utils.exceptions import VerifyException

from tilework.ir.parser import parse_module
from tilework.ir.scf import make_yield
from tilework.ir.verify import first_problem, verify

WHILE = "%r = scf.while (%a = %n) : (i32) -> i32"
GOOD = """module {
  tt.func public @f(%a: tensor<4xi32>, %x: tensor<4xf32>, %n: i32) -> tensor<4xi1> {
    %0 = arith.cmpi slt, %a, %a : tensor<4xi32>
    %1 = arith.cmpf olt, %x, %x : tensor<4xf32>
    %2 = arith.extui %0 : tensor<4xi1> to tensor<4xi32>
    %3 = arith.trunci %2 : tensor<4xi32> to tensor<4xi8>
    %4 = arith.sitofp %3 : tensor<4xi8> to tensor<4xf32>
    %5 = arith.fptosi %4 : tensor<4xf32> to tensor<4xi32>
    tt.return %1 : tensor<4xi1>
  }
}
"""


def test_tensors_are_accepted() -> None:
    assert first_problem(parse_module(GOOD)) is None


def problem(line: str) -> tuple[str, str]:
    """The name and the message of the first problem in a function with this one op."""
    module = parse_module(f"tt.func @f(%a: tensor<4xi32>, %x: tensor<4xf32>) {{ %0 = {line}\n tt.return }}")
    found = first_problem(module)
    assert found is not None
    return found[0].name, found[1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("arith.extui %a : tensor<4xi32> to tensor<4xi32>", "casts .* to tensor<4xi32>, which is not wider"),
        ("arith.trunci %a : tensor<4xi32> to tensor<4xi64>", "casts .* to tensor<4xi64>, which is not narrower"),
        ("arith.fptosi %a : tensor<4xi32> to tensor<4xi32>", "cannot cast tensor<4xi32> to tensor<4xi32>"),
        ("arith.fptosi %x : tensor<4xf32> to tensor<8xi32>", "casts .* to tensor<8xi32>: the shapes differ"),
    ],
)
def test_casts(line: str, message: str) -> None:
    name, found = problem(line)
    assert name in line and re.fullmatch(message, found)
    with pytest.raises(VerifyException, match=f"'{name}' op {message}"):
        verify(parse_module(f"tt.func @f(%a: tensor<4xi32>, %x: tensor<4xf32>) {{ %0 = {line}\n tt.return }}"))


def test_comparisons() -> None:
    generic = '"arith.cmpi"(%a, %a) <{predicate = 2 : i64}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi16>'
    assert problem(generic)[1].endswith("so its result is tensor<4xi1>, not tensor<4xi16>")
    generic = '"arith.cmpi"(%a, %x) <{predicate = 2 : i64}> : (tensor<4xi32>, tensor<4xf32>) -> tensor<4xi1>'
    assert problem(generic) == ("arith.cmpi", "compares tensor<4xi32> with tensor<4xf32>")
    generic = '"arith.cmpi"(%x, %x) <{predicate = 2 : i64}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>'
    assert problem(generic) == ("arith.cmpi", "cannot compare tensor<4xf32>")


@pytest.mark.parametrize(
    ("generic", "message"),
    [
        ('"arith.cmpi"(%a, %a) <{predicate = 10 : i64}>', "needs a predicate from 0 to 9, not 10 : i64"),
        ('"arith.cmpf"(%x, %x) <{predicate = 1.0 : f64}>', "needs a predicate from 0 to 15, not 1.000000e+00 : f64"),
        ('"arith.cmpf"(%x, %x)', "needs a predicate from 0 to 15, not None"),
        ('"arith.cmpf"(%x)', "has 2 operands and one result, nothing else"),
        ('"arith.extui"()', "has 1 operand and one result, nothing else"),
    ],
)
def test_what_only_the_generic_form_can_leave_out(generic: str, message: str) -> None:
    types = {
        "%a, %a": "tensor<4xi32>, tensor<4xi32>",
        "%x, %x": "tensor<4xf32>, tensor<4xf32>",
        "%x": "tensor<4xf32>",
        "": "",
    }
    operands = generic[generic.index("(") + 1 : generic.index(")")]
    assert problem(f"{generic} : ({types[operands]}) -> tensor<4xi1>")[1] == message


FLOW = [
    (
        '"scf.for"(%n, %n, %n) ({ ^bb0(%i: i64): scf.yield }) : (i32, i32, i32) -> ()',
        "an induction variable of the same type as the bounds",
    ),
    (
        '%r = "scf.for"(%n, %n, %n, %n) ({ ^bb0(%i: i32, %a: i32): scf.yield %a : i32 }) : (i32, i32, i32, i32) -> f32',
        "carries (i32), but gives (f32)",
    ),
    ("%r = scf.if %c -> i32 { scf.yield %n : i32 }", "must have an else block if defining values: (i32)"),
    ("%r = scf.if %c -> i32 { } else { scf.yield %n : i32 }", "passes on (), not (i32)"),
    ("%r = scf.if %c -> i32 { scf.yield %n : i32 } else { scf.yield %f : f32 }", "passes on (f32), not (i32)"),
    ("%r = scf.execute_region -> i32 { scf.yield %f : f32 }", "passes on (f32), not (i32)"),
    (
        f"{WHILE} {{ scf.condition(%c) %f : f32 }} do {{ ^bb0(%b: i32): scf.yield %b : i32 }}",
        "passes on (f32), not (i32)",
    ),
    (
        f"{WHILE} {{ scf.condition(%c) %a : i32 }} do {{ ^bb0(%b: i32): scf.yield %f : f32 }}",
        "passes on (f32), not (i32)",
    ),
    (f"{WHILE} {{ scf.condition(%c) %a : i32 }} do {{ ^bb0(%b: i32): scf.yield }}", "passes on (), not (i32)"),
    (
        f"{WHILE} {{ scf.yield %n : i32 }} do {{ ^bb0(%b: i32): scf.yield %n : i32 }}",
        "with scf.yield, not with scf.condition",
    ),
    (
        f"{WHILE} {{ scf.condition(%c) %a : i32 }} do {{ ^bb0(%b: f32): scf.yield %n : i32 }}",
        "passes (i32) to a block of (f32)",
    ),
    ("cf.br ^a(%f : f32)\n^a(%x: i32):", "passes (f32) to a block of (i32)"),
    ("cf.br ^a(%f : f32)\n^a:", "passes (f32) to a block of ()"),
    ("cf.cond_br %c, ^a(%n : i32), ^a(%f : f32)\n^a(%x: i32):", "passes (f32) to a block of (i32)"),
]


@pytest.mark.parametrize(("body", "message"), FLOW)
def test_what_control_flow_passes_on(body: str, message: str) -> None:
    found = first_problem(parse_module(f"tt.func @f(%n: i32, %f: f32, %c: i1) {{ {body}\n tt.return }}"))
    assert found is not None and message in found[1], found


def test_a_use_above_the_definition() -> None:
    module = parse_module(GOOD)
    ops = {op.name: op for op in module.walk()}
    op = ops["arith.extui"]
    op.detach()
    ops["tt.func"].regions[0].blocks[0].insert_op_after(op, ops["arith.trunci"])
    assert first_problem(module) == (ops["arith.trunci"], "operand #0 does not dominate this use")


def test_layouts_are_checked_where_they_are_chosen() -> None:
    """Arithmetic takes the layout of its operands, also in modules that do not say for how many warps they are."""
    layout = "#ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>"
    text = (
        f"tt.func @f(%x: tensor<64xf16, {layout}>) {{ %r = arith.addf %x, %x : tensor<64xf16, {layout}>\n tt.return }}"
    )
    assert first_problem(parse_module(f'module attributes {{"ttg.num-warps" = 4 : i32}} {{ {text} }}')) is None


def test_users_outside_of_the_module_are_found() -> None:
    module = parse_module("tt.func @f(%a: i32) { %0 = arith.addi %a, %a : i32\n tt.return }")
    addition = next(op for op in module.walk() if op.name == "arith.addi")
    other = addition.clone()
    found = first_problem(module)
    assert found is not None and found[1] == "has a value used by 'arith.addi', which is not in the module"
    other.drop_all_references()
    assert first_problem(module) is None
    make_yield(addition.results, addition.location)
    with pytest.raises(VerifyException, match=r"'arith.addi' op has a value used by 'scf.yield'"):
        verify(module)
