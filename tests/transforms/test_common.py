"""Properties that FileCheck cannot see: locations, termination, equality of attributes, and whole pipelines."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import CallSiteLoc, FloatAttr, IntegerAttr, UnknownLoc

from tilework.analysis.value_flows import dominator_children
from tilework.ir.arith import EVALUATE, signed
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.types import bf16, f16, f32, f64, i32, i64
from tilework.transforms.folding.casts import rounded
from tilework.transforms.folding.worklist import identity
from tilework.transforms.registry import run_pipeline


def after(text: str, *passes: str) -> str:
    module = parse_module(text)
    run_pipeline(module, passes)
    return print_module(module)


CALLS = """
tt.func public @kernel(%p: !tt.ptr<f32>, %x: f32) {
  %y = tt.call @square(%x) : (f32) -> f32 loc("k.py":7:4)
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}
tt.func private @square(%a: f32) -> f32 {
  %0 = arith.mulf %a, %a : f32 loc("k.py":2:11)
  tt.return %0 : f32
}
"""


def test_an_inlined_op_has_both_locations() -> None:
    module = parse_module(CALLS)
    run_pipeline(module, ["inline"])
    (location,) = [op.location for op in module.walk() if op.name == "arith.mulf"]
    assert isinstance(location, CallSiteLoc)
    assert [str(location.callee), str(location.caller)] == ['loc("k.py":2:11)', 'loc("k.py":7:4)']


RECURSION = """
tt.func public @kernel(%x: i32) -> i32 {
  %0 = tt.call @even(%x) : (i32) -> i32
  tt.return %0 : i32
}
tt.func private @even(%x: i32) -> i32 {
  %0 = tt.call @odd(%x) : (i32) -> i32
  tt.return %0 : i32
}
tt.func private @odd(%x: i32) -> i32 {
  %0 = tt.call @even(%x) : (i32) -> i32
  %1 = tt.call @odd(%0) : (i32) -> i32
  tt.return %1 : i32
}
"""


def test_recursion_is_left_as_calls() -> None:
    text = after(RECURSION, "inline")
    assert "tt.call" in text and "@kernel" in text


def test_a_shared_constant_is_nowhere() -> None:
    module = parse_module(
        """
        tt.func public @f(%x: i32) -> i32 {
          %m = arith.muli %x, %x : i32
          %a = arith.constant 3 : i32 loc("k.py":1:1)
          %b = arith.constant 3 : i32 loc("k.py":2:1)
          %c = arith.constant 4 : i32 loc("k.py":3:1)
          %0 = arith.divsi %m, %a : i32
          %1 = arith.remsi %0, %b : i32
          %2 = arith.shli %1, %c : i32
          tt.return %2 : i32
        }
        """
    )
    run_pipeline(module, ["canonicalize"])
    four, three = [op for op in module.walk() if op.name == "arith.constant"]
    assert str(four.location) == 'loc("k.py":3:1)'
    assert isinstance(three.location, UnknownLoc)


def test_canonicalize_reaches_a_fixpoint() -> None:
    text = after(CALLS + RECURSION.replace("@kernel", "@other"), "inline", "canonicalize")
    assert after(text, "canonicalize") == text


def test_passes_accept_a_declaration() -> None:
    text = "tt.func private @f(i32) -> i32\ntt.func public @g(%x: i32) {\n  tt.return\n}"
    for name in ("inline", "canonicalize", "cse", "sccp", "dce", "triton-combine", "triton-reorder-broadcast"):
        assert "@g" in after(text, name)


def test_equal_attributes_have_one_identity() -> None:
    assert identity(IntegerAttr(5, i32)) == identity(IntegerAttr(5, i32))
    assert identity(IntegerAttr(5, i32)) != identity(IntegerAttr(5, i64))
    assert identity(FloatAttr(1.0, f32)) == identity(FloatAttr(1.0, f32))


def test_the_dominator_tree_of_a_diamond() -> None:
    module = parse_module(
        """
        tt.func public @f(%c: i1) {
          cf.cond_br %c, ^bb1, ^bb2
        ^bb1:
          cf.br ^bb3
        ^bb2:
          cf.cond_br %c, ^bb3, ^bb4
        ^bb3:
          tt.return
        ^bb4:
          tt.return
        }
        """
    )
    region = next(iter(module.ops)).regions[0]
    blocks = list(region.blocks)
    names = {block: i for i, block in enumerate(blocks)}
    tree = {
        names[block]: sorted(names[child] for child in below) for block, below in dominator_children(region).items()
    }
    assert tree == {0: [1, 2, 3], 1: [], 2: [4], 3: [], 4: []}


@given(st.floats(width=64))
def test_rounding_to_f32_is_the_hardware_one(value: float) -> None:
    numpy = pytest.importorskip("numpy")
    with numpy.errstate(all="ignore"):
        expected = float(numpy.float32(value))
    assert repr(rounded(value, f32)) == repr(expected)
    assert repr(rounded(value, f64)) == repr(value)


@given(st.floats(width=64))
def test_rounding_to_f16_and_bf16(value: float) -> None:
    numpy, ml_dtypes = pytest.importorskip("numpy"), pytest.importorskip("ml_dtypes")
    with numpy.errstate(all="ignore"):
        assert repr(rounded(value, f16)) == repr(float(numpy.float16(value)))
        if abs(value) < 1e300 and value == float(numpy.float32(value)):  # ml_dtypes rounds through f32
            assert repr(rounded(value, bf16)) == repr(float(ml_dtypes.bfloat16(value)))


@given(st.sampled_from(sorted(EVALUATE, key=lambda kind: kind.name)), st.integers(), st.integers())
def test_folding_integers_stays_in_range(kind: type, lhs: int, rhs: int) -> None:
    value = EVALUATE[kind](signed(lhs, 32), signed(rhs, 32), 32)
    assert value is None or -(1 << 31) <= signed(value, 32) < 1 << 31


def test_exact_square_root() -> None:
    text = after(
        (
            "tt.func public @f() -> f32 {\n  %c = arith.constant 2.0 : f32\n  %r = math.sqrt %c : f32\n"
            "  tt.return %r : f32\n}"
        ),
        "canonicalize",
    )
    assert f"{rounded(math.sqrt(2), f32):.6f}"[:6] in text
