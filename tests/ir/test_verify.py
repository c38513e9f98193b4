"""The verifier accepts tensors where xDSL's definitions know scalars only, and finds uses above definitions."""

import re

import pytest
from xdsl.utils.exceptions import VerifyException

from tilework.ir.parser import parse_module
from tilework.ir.verify import first_problem, verify

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


def test_a_use_above_the_definition() -> None:
    module = parse_module(GOOD)
    ops = {op.name: op for op in module.walk()}
    op = ops["arith.extui"]
    op.detach()
    ops["tt.func"].regions[0].blocks[0].insert_op_after(op, ops["arith.trunci"])
    assert first_problem(module) == (ops["arith.trunci"], "uses operand 0 where it is not defined")
