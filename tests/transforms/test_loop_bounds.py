"""Passes that count iterations do it for all bounds, also where sums of them do not fit."""

import numpy as np
import pytest

from tilework.inspect.check_each import check_each
from tilework.ir import scf
from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import evaluate
from tilework.oracles.evaluator.values import EvaluationError
from tilework.transforms.registry import run_pipeline
from tilework.transforms.ttg import fuse_nested_loops

BODY = """%v = arith.xori %k, %step {loop.cluster = 1 : i32, loop.stage = 0 : i32} : i32
      %more = arith.addi %v, %k {loop.cluster = 0 : i32, loop.stage = 2 : i32} : i32
      %next = arith.addi %x, %more {loop.cluster = 0 : i32, loop.stage = 2 : i32} : i32
      %round = arith.addi %n, %c1 {loop.cluster = 0 : i32, loop.stage = 2 : i32} : i32"""
NESTED = """%next, %round = scf.for %j = %c0 to %c2 step %c1 iter_args(%y = %x, %m = %n) -> (i32, i32) : i32 {
        %v = arith.addi %y, %k : i32
        %r = arith.addi %m, %c1 : i32
        scf.yield %v, %r : i32, i32
      }"""
PROGRAM = """module attributes {{"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @kernel(%q: !tt.ptr<i32>, %low: i32, %high: i32, %step: i32) {{
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %s, %count = scf.for %k = %low to %high step %step iter_args(%x = %c0, %n = %c0) -> (i32, i32) : i32 {{
      {body}
      scf.yield %next, %round : i32, i32
    }} {{{attributes}}}
    %q1 = tt.addptr %q, %c1 : !tt.ptr<i32>, i32
    tt.store %q, %s : !tt.ptr<i32>
    tt.store %q1, %count : !tt.ptr<i32>
    tt.return
  }}
}}
"""  # noqa: E501
PASSES = {
    "triton-loop-unroll": (BODY, "tt.loop_unroll_factor = 2 : i32"),
    "tritongpu-fuse-nested-loops": (NESTED, "tt.flatten"),
    "tritongpu-pipeline": (BODY, "tt.scheduled_max_stage = 2 : i32"),
    "tritonamdgpu-pipeline": (BODY, "tt.scheduled_max_stage = 2 : i32"),
}
MOST = 2**31 - 1
BOUNDS = [
    *((MOST - 19, MOST, 8), (MOST - 7, MOST, 5), (0, MOST, 1 << 30), (-MOST, MOST, 1 << 30), (5, -3, 2)),
    *((-2 * 10**9, 2 * 10**9, 7 * 10**8), (MOST - 6, 2 - MOST, 3), (MOST - 1, 4 - MOST, 2)),
]


@pytest.mark.parametrize("name", PASSES)
def test_iterations_are_counted_without_wrapping_around(name: str) -> None:
    body, attributes = PASSES[name]
    module = parse_module(PROGRAM.format(body=body, attributes=attributes))
    for low, high, step in BOUNDS:
        given = {"q": np.full(2, -7, np.int32), "low": low, "high": high, "step": step}
        report = check_each(module, f"{name},canonicalize,cse", given=given, grid=(1, 1, 1))
        assert report.ok and report.checked, f"{low}, {high}, {step}: {report}"


def test_flattened_loops_are_counted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 7 were the largest number: three rounds of two at a time."""
    monkeypatch.setattr(fuse_nested_loops, "MOST", 7)
    module = parse_module(PROGRAM.format(body=NESTED, attributes="tt.flatten"))
    for low, high, step in (*BOUNDS, (0, 9, 1), (3, 11, 1), (-4, 20, 5), (4, 4, 1)):
        given = {"q": np.full(2, -7, np.int32), "low": low, "high": high, "step": step}
        report = check_each(module, "tritongpu-fuse-nested-loops,canonicalize,cse", given=given, grid=(1, 1, 1))
        assert report.ok and report.checked, f"{low}, {high}, {step}: {report}"
    run_pipeline(module, ["tritongpu-fuse-nested-loops"])
    assert [str(op.operands[0].type) for op in module.walk() if type(op) is scf.ForOp] == ["i64", "i32"]


def test_an_empty_loop_around_a_long_one_stays_empty() -> None:
    """-65535 * 65537 is 1 in 32 bits."""
    body = NESTED.replace("to %c2", "to %low").replace("%v =", "tt.store %q2, %j : !tt.ptr<i32>\n        %v =")
    text = PROGRAM.format(body=body, attributes="tt.flatten").replace(
        "%low to %high step %step", "%c0 to %high step %c1"
    )
    module = parse_module(text.replace("%s, %count =", "%q2 = tt.addptr %q, %c2 : !tt.ptr<i32>, i32\n    %s, %count ="))
    given = {"q": np.full(3, -7, np.int32), "low": 65537, "high": -65535, "step": 1}
    report = check_each(module, "tritongpu-fuse-nested-loops", given=given, grid=(1, 1, 1))
    assert report.ok and report.checked, report


@pytest.mark.parametrize(("high", "low"), [(65536, 65536), (2**31 - 1, 2), (3, -(2**31)), (0, 0)])
def test_more_iterations_than_fit_into_32_bits_are_not_fewer(high: int, low: int) -> None:
    """Flattened, two loops of 65536 rounds had none, as had one in which a counter goes from the least number to 5, or
    to the largest."""
    bounds = "%c0 to %low" if low > 0 else "%low to %high" if low else "%c0 to %c2"
    text = PROGRAM.format(body=NESTED.replace("%c0 to %c2", bounds), attributes="tt.flatten")
    text = text.replace("%low to %high step %step", "%c0 to %high step %c1" if high else "%least to %most step %c1")
    constants = [f"%{name} = arith.constant {value} : i32" for name, value in (("least", -MOST), ("most", MOST))]
    module = parse_module(text.replace("%c2 = ", "\n".join([*constants, "%c2 = "])))
    run_pipeline(module, ["tritongpu-fuse-nested-loops", "canonicalize", "cse"])
    assert len([op for op in module.walk() if type(op) is scf.ForOp]) < 3, "the loops are one, or the outer one alone"
    with pytest.raises(EvaluationError, match="steps"):
        evaluate(module, "kernel", [np.zeros(2, np.int32), low, high, 1], max_steps=2000)
