"""`check_each` accepts passes that keep results, and names the pass that does not."""

from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from tilework.inspect.check_each import check_each
from tilework.ir import arith
from tilework.ir.parser import parse_module
from tilework.ir.rewrite import recreate, replace_op
from tilework.tools.cli import main
from tilework.transforms.passes import Pass
from tilework.transforms.registry import parse_pipeline

KERNELS = sorted((Path(__file__).parent.parent / "ir" / "reference" / "sm_90").glob("*.ttir"))
PIPELINE = "inline,triton-rewrite-tensor-pointer,canonicalize,triton-combine,triton-reorder-broadcast,cse,symbol-dce"
SCALE = """module {
  tt.func public @scale(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %c64 = arith.constant 64 : i32
    %pid = tt.get_program_id x : i32
    %base = arith.muli %pid, %c64 : i32
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %s = tt.splat %base : i32 -> tensor<64xi32>
    %o = arith.addi %s, %r : tensor<64xi32>
    %p = tt.splat %x : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %p, %o : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %nn = tt.splat %n : i32 -> tensor<64xi32>
    %m = arith.cmpi slt, %o, %nn : tensor<64xi32>
    %v = tt.load %q, %m : tensor<64x!tt.ptr<f32>>
    %w = arith.addf %v, %v : tensor<64xf32>
    tt.store %q, %w, %m : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
"""


class AddToMulPass(Pass):
    """A wrong pass: x + x becomes x * x."""

    name = "test-add-to-mul"

    def run(self, module: ModuleOp) -> None:
        for candidate in tuple(module.walk()):
            if type(candidate) is arith.AddfOp:
                wrong = arith.MulfOp.create(
                    operands=tuple(candidate.operands), result_types=[candidate.results[0].type]
                )
                replace_op(candidate, wrong)


class UnmaskPass(Pass):
    """A wrong pass: the upper half of the lanes is shifted out of the array."""

    name = "test-shift-range"

    def run(self, module: ModuleOp) -> None:
        for candidate in tuple(module.walk()):
            if type(candidate) is arith.CmpiOp:
                operands = (candidate.operands[0], candidate.operands[0])
                replace_op(candidate, recreate(candidate, operands=operands))


def test_a_wrong_pass_is_named_with_the_source_line() -> None:
    passes = [*parse_pipeline("canonicalize"), AddToMulPass(), *parse_pipeline("cse")]
    report = check_each(parse_module(SCALE), passes, seed=1)
    assert report.checked == ("scale",) and report.mismatch is not None
    assert report.mismatch.pass_name == "test-add-to-mul" and report.mismatch.function == "scale"
    assert "argument 'x' at index 0: " in report.mismatch.what
    assert "pass 'test-add-to-mul' changed the result of 'scale'" in str(report)


def test_errors_are_relative_to_what_was_written() -> None:
    """Errors are found in small results of an array whose other contents are a million times as large."""
    small = SCALE.replace(
        "    %w = arith.addf %v, %v",
        (
            "    %c = arith.constant dense<1.0e-06> : tensor<64xf32>\n    %t = arith.mulf %v, %c : tensor<64xf32>\n"
            "    %w = arith.addf %t, %t"
        ),
    )
    report = check_each(parse_module(small), [AddToMulPass()], seed=1)
    assert report.mismatch is not None and report.mismatch.pass_name == "test-add-to-mul"


def test_a_mask_that_became_false_is_a_change() -> None:
    report = check_each(parse_module(SCALE), [UnmaskPass()], seed=1)
    assert report.mismatch is not None and report.mismatch.pass_name == "test-shift-range"


def test_the_module_is_left_alone() -> None:
    module = parse_module(SCALE)
    before = str(module)
    assert check_each(module, PIPELINE, seed=3).ok
    assert str(module) == before


def test_the_same_seed_gives_the_same_report() -> None:
    reports = [str(check_each(parse_module(SCALE), [AddToMulPass()], seed=5)) for _ in range(2)]
    assert reports[0] == reports[1]


def test_a_function_that_never_runs_is_reported() -> None:
    text = 'module { tt.func public @f() { %c = arith.constant false\n tt.assert %c, "never" : i1\n tt.return } }'
    report = check_each(parse_module(text), "canonicalize", attempts=2)
    assert report.ok and report.checked == () and "never" in dict(report.unchecked)["f"]


def test_a_function_without_effect_is_reported() -> None:
    report = check_each(parse_module("module { tt.func public @f(%n: i32) { tt.return } }"), "canonicalize", attempts=2)
    assert report.ok and report.checked == () and "wrote nothing" in dict(report.unchecked)["f"]


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_the_pipeline_keeps_the_reference_kernels(path: Path) -> None:
    report = check_each(parse_module(path.read_text()), PIPELINE, seed=0)
    assert report.ok and not report.unchecked, report


def test_descriptors_rewritten_to_pointers() -> None:
    path = next(path for path in KERNELS if path.stem == "matmul_descriptor")
    report = check_each(parse_module(path.read_text()), "triton-rewrite-tensor-descriptor-to-pointer,canonicalize")
    assert report.ok and report.checked == ("matmul_tma",), report


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "scale.ttir"
    path.write_text(SCALE)
    assert main(["opt", str(path), "-p", "canonicalize,cse", "--check-each", "--seed", "4"]) == 0
    captured = capsys.readouterr()
    assert "checked 'scale' (seed 4)" in captured.err and captured.out.startswith("module {")
