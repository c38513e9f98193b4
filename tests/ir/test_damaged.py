"""`tilework opt` on text that is no IR, or nearly: a message with a location and exit code 1, never a traceback."""

import random
import re
from io import StringIO
from pathlib import Path

import pytest
from xdsl.printer import Printer

from tests.ir.test_ttc import ALL
from tilework.ir.parser import parse_module
from tilework.tools.cli import main

HERE = Path(__file__).parent
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[%#!@^][\w$.-]+|[\w.]+|->|\s+|.', re.DOTALL)
NUMBER = re.compile(r"-?\d+|[if]\d+|\d+(?:x\d+)*x?\w*|tensor")
ODD_TOKENS = [
    *('"', "{", "}", "(", ")", "<", ">", "[", "]", ":", ",", "->", "=", "?", "*", "\0", "é", '"a"', "unit", "none"),
    *("%x", "#loc", "@f", "^bb1", "-1", "99999999999999999999999", "0x", "1.5", "true", "index", "scf.if", "tt.return"),
    *("i32", "f32", "tensor<4xf32>", "tensor<?xf32>", "tensor<*xf32>", "!tt.ptr<f32>", "() -> ()", "memref<4xf32>"),
    *("dense<1>", "array<i32: 1>", "loc(unknown)"),
]
ODD_NUMBERS = [
    *("0", "-1", "1", "2", "3", "7", "99", "2147483648", "4294967296", '"a"', "i1", "i32", "i64", "f16", "f32"),
    *("tensor", "8xf32", "0xf32", "64xi32", "4x4xf32", "1x1x1x1xf32"),
]


def generic(text: str) -> str:
    """The text with every op in generic form, where only the verifier finds mistakes."""
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(parse_module(text))
    return stream.getvalue()


def sources() -> list[str]:
    """The modules of the golden files, a file with every op, one with every kind of location; in both forms."""
    golden = "\n".join(path.read_text() for path in sorted((HERE.parent / "golden/ttir").glob("*.ttir")))
    modules = [part for part in re.split(r"^== .*$", golden, flags=re.MULTILINE) if part.strip()]
    modules += [ALL, (HERE / "ops.mlir").read_text(), (HERE / "reference/locations/control_flow.ttir").read_text()]
    return modules + [generic(module) for module in modules]


SOURCES = sources()


def damaged(seed: int) -> str:
    """One of the sources with some of its tokens deleted, doubled, replaced or exchanged."""
    draw = random.Random(seed)
    tokens = TOKEN.findall(draw.choice(SOURCES))
    indices = [index for index, token in enumerate(tokens) if not token.isspace()]
    numbers = [index for index in indices if NUMBER.fullmatch(tokens[index])]
    for _ in range(draw.choice((1, 1, 2))):
        here, there, kind = draw.choice(indices), draw.choice(indices), draw.randrange(10)
        if kind == 0:
            tokens[here] = ""
        elif kind == 1:
            tokens[here] *= 2
        elif kind == 2:
            tokens[here] = f" {draw.choice(ODD_TOKENS)} "
        elif kind == 3:
            tokens[here], tokens[there] = tokens[there], tokens[here]
        elif kind == 4:
            tokens[here:] = []
            break
        else:
            tokens[draw.choice(numbers)] = draw.choice(ODD_NUMBERS)
    return "".join(tokens)


def check(text: str, path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> int:
    """Run `tilework opt`; the exit code, after a look at what was printed."""
    path.write_text(text, encoding="utf-8", newline="")
    code = main(["opt", str(path), *options])
    printed = capsys.readouterr()
    assert code in (0, 1)
    assert ("error: " in printed.err) == bool(code)
    assert bool(printed.out) != bool(code)
    return code


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_damaged_text(first: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = [check(damaged(seed), tmp_path / "k.mlir", capsys) for seed in range(first, first + 25)]
    assert 1 in codes


def test_the_sources_are_accepted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert {check(source, tmp_path / "k.mlir", capsys) for source in SOURCES} == {0}


def argument(type: str) -> str:
    return f"tt.func @f(%x: {type}) {{ tt.return }}"


def body(text: str) -> str:
    return f"tt.func @f(%x: i32, %c: i1, %p: !tt.ptr<f32>) {{ {text}\n tt.return }}"


ODD = {
    "a NUL byte": "\0",
    "a NUL byte inside": "module {\0}",
    "a byte order mark": "\ufeffmodule {}",
    "an open string": 'module attributes {a = "x} {}',
    "an open region": "module {",
    "deep lists": "module attributes {a = " + "[" * 5000,
    "deep types": argument("!tt.ptr<" * 5000),
    "deep regions": "module {" * 3000,
    "deep locations": "module {} loc(" + '"a"(' * 5000,
    "deep function types": argument("(" * 4000),
    "deep constants": "module attributes {a = dense<" + "[" * 4000 + "> : tensor<1xi32>} {}",
    "deep branches": body("scf.if %c { " * 1000 + "}" * 1000),
    "a huge integer": f"module attributes {{a = {'9' * 6000} : i32}} {{}}",
    "an integer too large": "module attributes {a = 99999999999999999999999999 : i64} {}",
    "a huge width": argument("i99999999999"),
    "a huge address space": argument("!tt.ptr<f32, 99999999999999>"),
    "a huge shape": body("%0 = tt.splat %x : i32 -> tensor<99999999999999999999999xi32>"),
    "aliases in a circle": "#a = #b\n#b = #a\nmodule attributes {a = #a} {}",
    "an unknown op": body("foo.bar %x"),
    "an unknown op in generic form": body('"foo.bar"(%x) : (i32) -> ()') + "\0",
    "a constant without a value": body('%0 = "arith.constant"() : () -> i32'),
    "a block twice": body("cf.br ^a\n^a: tt.return\n^a:"),
    "a value twice": body("%x = arith.addi %x, %x : i32"),
    "a value that uses itself": body("%0 = arith.addi %0, %x : i32"),
    "results that are not there": body("%0:99999999 = arith.addi %x, %x : i32"),
    "a result that is not there": body("%0 = arith.addi %x#1, %x : i32"),
    "an attribute twice": "module attributes {a, a} {}",
    "segments that do not fit": body(
        '%0 = "tt.load"(%p) <{operandSegmentSizes = array<i32: 5, 0, 0>}> : (!tt.ptr<f32>) -> f32'
    ),
    "segments of text": body('%0 = "tt.load"(%p) <{operandSegmentSizes = "a"}> : (!tt.ptr<f32>) -> f32'),
    "a function without a name": '"tt.func"() ({}) : () -> ()',
    "a function of an integer": '"tt.func"() <{sym_name = "f", function_type = i32}> ({}) : () -> ()',
    "a module with two regions": '"builtin.module"() ({}, {}) : () -> ()',
    "a loop without a body": body('"scf.for"(%x, %x, %x) ({}) : (i32, i32, i32) -> ()'),
    "a while without arguments": body('"scf.while"(%c) ({^a: }, {^a: }) : (i1) -> ()'),
    "a buffer of unknown shape": argument("!ttc.buf<?xf32>"),
    "three types of a dot": body("%0 = tt.dot %x, %x, %x : i32, i32 * i32 -> i32"),
    "resources": 'module {} {-# dialect_resources: { a: { b: "0x00" } } #-}',
}


@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("option", [[], ["--allow-unregistered-dialect"]], ids=["strict", "lenient"])
def test_odd_text(what: str, option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(ODD[what], tmp_path / "k.mlir", capsys, *option) == 1


def test_files_that_cannot_be_read_or_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.mlir"
    path.write_bytes(b"module {} // \xff")
    for argv in ([str(path)], [str(tmp_path)], [str(tmp_path / "nothing")]):
        assert main(["opt", *argv]) == 1
        assert capsys.readouterr().err.startswith("tilework opt: error: ")
    path.write_text("module {}")
    assert main(["opt", str(path), "-o", str(tmp_path / "no/where")]) == 1
    assert capsys.readouterr().err.startswith("tilework opt: error: ")
