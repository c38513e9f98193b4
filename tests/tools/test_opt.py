"""`tilework opt` from the command line: options, output, errors."""

import io
from pathlib import Path

import pytest

from tilework.tools.cli import main
from tilework.tools.opt import normalise, op_lines, sections

ADD = """module {
  tt.func public @f(%x: i32) -> i32 {
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %0 = arith.addi %c1, %c2 : i32
    %1 = arith.addi %x, %0 : i32
    tt.return %1 : i32
  }
}
"""
BAD = """module {
  tt.func public @f(%x: tensor<4xf32>) -> tensor<4xi16> {
    // expected-error @below {{bit}}
    %0 = tt.bitcast %x : tensor<4xf32> -> tensor<4xi16>
    tt.return %0 : tensor<4xi16>
  }
}
"""


@pytest.fixture
def add(tmp_path: Path) -> str:
    path = tmp_path / "add.ttir"
    path.write_text(ADD)
    return str(path)


def test_without_passes_the_module_is_printed_back(add: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", add]) == 0
    once = capsys.readouterr().out
    assert once.startswith("module {") and "arith.addi" in once


@pytest.mark.parametrize(
    "options",
    [["-p", "canonicalize"], ["-canonicalize"], ["--canonicalize"], ["-pass-pipeline=builtin.module(canonicalize)"]],
)
def test_every_way_to_name_a_pass(add: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", add, *options]) == 0
    assert capsys.readouterr().out.count("arith.addi") == 1


def test_options_become_a_pipeline_in_order() -> None:
    argv = ["-canonicalize", "--triton-loop-unroll=a=1 b=2", "-mlir-disable-threading", "-o", "x", "-split-input-file"]
    wanted = ["-p", "canonicalize", "-p", "triton-loop-unroll{a=1 b=2}", "-o", "x", "--split-input-file"]
    assert normalise(argv) == wanted
    assert normalise(["--verify-diagnostics", "f.mlir"]) == ["--verify-diagnostics=all", "f.mlir"]


def test_standard_input_and_output_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(ADD))
    assert main(["opt", "-", "-cse", "-o", str(tmp_path / "out.ttir")]) == 0
    assert "tt.func public @f" in (tmp_path / "out.ttir").read_text()
    assert capsys.readouterr().out == ""


def test_printing_around_passes(add: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", add, "-p", "canonicalize,cse", "--print-after-all", "--print-before-all", "--verify-each"]) == 0
    errors = capsys.readouterr().err
    for moment in ("Before canonicalize", "After canonicalize", "Before cse", "After cse"):
        assert errors.count(f"// -----// IR Dump {moment} //----- //") == 1


def test_passes_are_listed_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["opt", "--list-passes"]) == 0
    listed = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert {"canonicalize", "cse", "triton-combine", "inline"} <= listed.keys()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["opt", "missing.ttir"], "missing.ttir: no such file"),
        (["opt", "{add}", "-p", "no-such-pass"], "no pass is called `no-such-pass`"),
        (["optimise"], "no command 'optimise'"),
    ],
)
def test_mistakes_on_the_command_line(
    add: str, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(add=add) for word in argv]) != 0
    errors = capsys.readouterr().err
    assert message in errors and "Traceback" not in errors


def test_a_syntax_error_has_its_position(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.ttir"
    path.write_text(ADD.replace("arith.addi %x, %0", "arith.addi %x, %nowhere"))
    assert main(["opt", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"{path}:6:") and captured.out == ""


def test_a_verifier_error_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.ttir"
    path.write_text(BAD)
    assert main(["opt", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:4:1: error: 'tt.bitcast' op")


def test_expected_diagnostics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.ttir"
    path.write_text(f"{BAD}// -----\n{ADD}")
    assert main(["opt", str(path), "--split-input-file", "--verify-diagnostics"]) == 0
    path.write_text(BAD.replace("{{bit}}", "{{no such words}}"))
    assert main(["opt", str(path), "--verify-diagnostics"]) == 1
    errors = capsys.readouterr().err
    assert "unexpected error" in errors and 'expected error "no such words" was not produced' in errors


def test_alignment_remarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "alignment.mlir"
    path.write_text(
        "tt.func @f() {\n  // expected-remark @below {{contiguity = [128]}}\n"
        "  %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>\n  tt.return\n}\n"
    )
    assert main(["opt", str(path), "-test-print-alignment", "--verify-diagnostics=only-expected"]) == 0
    path.write_text(path.read_text().replace("[128]}}", "[64]}}"))
    assert main(["opt", str(path), "-test-print-alignment", "--verify-diagnostics=only-expected"]) == 1
    assert capsys.readouterr().err.count("was not produced") == 1


def test_unknown_ops_are_kept_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "unknown.mlir"
    path.write_text('tt.func @f(%a: i32) {\n  "foo.bar"(%a) {x = 1 : i32} : (i32) -> ()\n  tt.return\n}\n')
    assert main(["opt", str(path)]) == 1
    assert capsys.readouterr().err == f"{path}:2:4: error: there is no operation 'foo.bar'\n"
    assert main(["opt", str(path), "-canonicalize", "--allow-unregistered-dialect"]) == 0
    assert '"foo.bar"(%a) {x = 1 : i32} : (i32) -> ()' in capsys.readouterr().out
    path.write_text(path.read_text().replace("(%a)", "(%b)"))
    assert main(["opt", str(path), "--allow-unregistered-dialect"]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:2:")


def test_unknown_ops_in_a_form_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown op in its own form is an error, because its text may be anything."""
    path = tmp_path / "unknown.mlir"
    path.write_text("tt.func @f(%a: i32) {\n  foo.bar %a : i32\n  tt.return\n}\n")
    assert main(["opt", str(path), "--allow-unregistered-dialect"]) == 1
    message = (
        "the operation 'foo.bar' is not known: only its generic form, \"foo.bar\"(...) : (...) -> ..., can be read"
    )
    assert capsys.readouterr().err == f"{path}:2:3: error: {message}\n"


LLVM = """module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942"} {
  llvm.func @g(%a: i32) -> i32 attributes {passthrough = ["nounwind", "a{b"]} {
    // a comment with a brace {
    %0 = llvm.add %a, %a : i32
    llvm.return %0 : i32
  }
  llvm.func @h(i32, !llvm.ptr<1>) -> i32
  tt.func @f(%a: i32) {
    tt.return
  }
}
"""


def test_functions_of_llvm_stay_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Passes leave them alone, and compiling them is refused."""
    path = tmp_path / "llvm.mlir"
    path.write_text(LLVM)
    assert main(["opt", str(path), "-canonicalize", "-cse", "--verify-each"]) == 0
    assert capsys.readouterr().out == LLVM
    assert main(["opt", str(path), "--convert-triton-amdgpu-to-llvm=arch=gfx942"]) == 1
    assert "llvm.func cannot be compiled for hip:gfx942: only functions of tiles are" in capsys.readouterr().err
    path.write_text(LLVM.replace("  }\n  llvm.func @h(i32, !llvm.ptr<1>) -> i32\n", ""))
    assert main(["opt", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:")


def test_sections_keep_their_line_numbers() -> None:
    first, second = sections("a\nb\n// -----\nc\n")
    assert first == "a\nb\n" and second == "\n\n\nc\n"


def test_op_lines_follow_the_text() -> None:
    from tilework.ir.parser import parse_module

    module = parse_module(ADD)
    found = {op.name: line for op, line in op_lines(module, ADD).items()}
    assert found["tt.func"] == 2 and found["arith.addi"] == 6 and found["tt.return"] == 7
