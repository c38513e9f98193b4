"""The boundary of a kernel: types, constants by path, attributes, the symbol, mistakes in a signature."""

# The kernels are odd on purpose.
# ruff: noqa: F722, F821
# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false

import importlib.util

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import text
from tilework.errors import CompilationError
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.printer import print_module


@tilework.jit
def kernel(p, n, t, N: tl.constexpr = 4):  # pyright: ignore[reportArgumentType]
    tl.store(p + N, n + t[0])


def module(signature, constexprs=None, attrs=None, fn=kernel) -> str:
    return print_module(compile_to_ttir(fn, signature, constexprs, attrs))


SIGNATURE = {"p": "*fp32", "n": "i64", "t": ("fp32", "constexpr")}


def test_types_constants_and_attributes() -> None:
    printed = module(SIGNATURE, {(2, 1): 3}, {(0,): [["tt.divisibility", 16]], (2, 0): [["tt.x", "y"]]})
    head = next(line for line in printed.splitlines() if "tt.func" in line)
    assert "@kernel(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i64, %t: f32" in head
    assert 'tt.x = "y"' in head and "%N" not in head


def test_constants_by_name_and_default() -> None:
    assert "arith.constant 4 : i32" in module(SIGNATURE, {(2, 1): 3})
    assert "arith.constant 9 : i32" in module(SIGNATURE | {"N": "constexpr"}, {"N": 9, (2, 1): 3})


@pytest.mark.parametrize(
    ("code", "printed"),
    [("i1", "i1"), ("u8", "i8"), ("bf16", "bf16"), ("fp64", "f64"), ("*fp8e5", "!tt.ptr<f8E5M2>"),
     ("*i1", "!tt.ptr<i1>"),
     ("*kfp32", "!tt.ptr<f32>")],
)  # fmt: skip
def test_type_codes(code: str, printed: str) -> None:
    @tilework.jit
    def one(x):
        pass

    assert f"%x: {printed}" in module({"x": code}, fn=one)


@pytest.mark.parametrize(
    ("signature", "constexprs", "wrong"),
    [
        ({"p": "*fp32", "n": "i32", "t": ("i32",), "q": "i32"}, {}, "'q'"),
        ({"p": "*fp32", "n": "i32", "t": ("i32",)}, {"M": 3}, "'M'"),
        ({"p": "*fp32", "n": "i32"}, {}, "'t'"),
        ({0: "*fp32"}, {}, "0"),
        ({"p": "*fp33", "n": "i32", "t": ("i32",)}, {}, "fp33"),
        ({"p": 32, "n": "i32", "t": ("i32",)}, {}, "32"),
    ],
)
def test_mistakes_in_a_signature(signature, constexprs, wrong: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        compile_to_ttir(kernel, signature, constexprs)
    assert wrong in str(caught.value)


@tilework.jit(repr=lambda specialization: f"named_{specialization.constants['N']}")
def renamed(p, N: tl.constexpr):
    tl.store(p, N)


@tilework.jit(repr=lambda specialization: "not a name")
def misnamed(p):
    pass


def test_the_symbol_of_a_kernel() -> None:
    assert "@named_5(" in text(renamed, np.zeros(1), N=5)
    with pytest.raises(CompilationError, match="not a name"):
        text(misnamed, np.zeros(1))


@tilework.jit(do_not_specialize=["N"])
def contradiction(p, N: tl.constexpr):
    tl.store(p, N)


@tilework.jit(do_not_specialize_on_alignment=[1])
def other_contradiction(p, N: tl.constexpr):
    tl.store(p, N)


@pytest.mark.parametrize("fn", [contradiction, other_contradiction])
def test_constexpr_and_do_not_specialize(fn) -> None:
    with pytest.raises(CompilationError, match="N marked as constexpr and listed in do_not_specialize"):
        text(fn, np.zeros(1), N=3)


@tilework.jit
def annotated(
    a: tl.int64,
    b: "u16",
    c: "*kfp16",
    d: bool,
    e: np.ndarray,
    f: "not a type",  # pyright: ignore
    N: tl.constexpr,
):
    tl.store(a.to(tl.pointer_type(tl.int32)), b + d + N)


def test_annotations_are_never_evaluated() -> None:
    types = [param.annotation_type for param in annotated.params]
    assert types[:3] == ["i64", "u16", "*kfp16"] and types[4:] == ["", "", ""]
    signature = dict(zip("abcdef", ("i64", "u16", "*kfp16", "u1", "*i8", "i32"), strict=True))
    assert "tt.store" in module(signature, {"N": 3}, fn=annotated)


WIDTHS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


@tilework.jit
def integer(p, v):
    tl.store(p + v, v)


@pytest.mark.parametrize("code", WIDTHS)
def test_integer_arguments(code: str) -> None:
    printed = module({"p": "*fp32", "v": code}, fn=integer)
    assert f"%v: i{code[1:]}" in printed
    assert ("arith.extui %v" in printed) == (code in ("u8", "u16", "u32"))
    assert ("arith.uitofp" in printed) == code.startswith("u")


@tilework.jit
def floating(p, val):
    tl.store(p, val)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("fp16", ["%val: f16", "arith.extf %val : f16 to f32"]),
        ("bf16", ["%val: bf16", "arith.extf %val : bf16 to f32"]),
        ("fp32", ["%val: f32"]),
        ("fp64", ["%val: f64", "arith.truncf %val : f64 to f32"]),
    ],
)
def test_float_arguments(code: str, expected: list[str]) -> None:
    printed = module({"p": "*fp32", "val": code}, fn=floating)
    assert all(part in printed for part in expected)


def test_postponed_annotations(tmp_path) -> None:
    path = tmp_path / "postponed.py"
    path.write_text(
        "from __future__ import annotations\n"
        "import tilework\n"
        "import tilework.language as tl\n"
        "from tilework.language import constexpr\n"
        "@tilework.jit\n"
        "def kernel(p: tl.pointer_type(tl.float32), n: tl.int64, N: tl.constexpr, M: constexpr = 2):\n"
        "    K: constexpr = N * M\n"
        "    tl.store(p + tl.arange(0, K), n)\n"
    )
    spec = importlib.util.spec_from_file_location("postponed", path)
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    fn = loaded.kernel
    assert fn.constexprs == [2, 3] and fn.params[1].annotation_type == "i64"
    assert "tensor<8xi32>" in module({"p": "*fp32", "n": "i64"}, {"N": 4}, fn=fn)
