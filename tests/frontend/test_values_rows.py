"""Literal texts, types and values: what other files leave open.

A case is named after its row; `rows.py` says what a body and an expectation are. Texts that come from the runtime
(resources, autotuner, launch options, changed globals) are in `tests/runtime`.
"""

import re
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import OPTIONS, error, innermost, text, ttir
from tilework.errors import CompilationError, UnsupportedLanguageConstruct
from tilework.frontend.generator import compile_to_ttir
from tilework.language.parameters import canonicalize_dtype, type_canonicalisation_dict
from tilework.runtime.compile.sources import frontend_options
from tilework.targets.base import GPUTarget

# -- texts: (body, where the text is, the text as a regular expression) ------------------------------------------------

LITERALS = {
    "arange": ("tl.arange(0, 12)", "cause", r"^arange's range must be a power of 2$"),
    "shape": ("tl.full((33,), 0, tl.int32)", "cause", r"^Shape element 0 must be a power of 2$"),
    "max_num_imprecise_acc": ("a = tl.zeros((64, 64), tl.float8e5)\ntl.dot(a, a, max_num_imprecise_acc=128)", "cause",
                              r"^max_num_imprecise_acc \(128\) must be <= K \(64\)$"),
    "lhs_scale": ("a = tl.zeros((32, 64), tl.uint8)\nb = tl.zeros((64, 32), tl.uint8)\n"
                  "tl.dot_scaled(a, tl.zeros((32, 4), tl.uint8), 'e4m3', b, None, 'e4m3')", "cause",
                  r"^lhs_scale must be a tensor of shape \[..., 32, 2\]\. Got \['32', '4'\]$"),
    "must_use_result": ("cube(n)", "last line", r"^The result of cube is not being used\. Use it\.$"),
    "out of range": ("n + 4294967296", "text", "out of range"),
    "index": ("tl.arange(0, 4)[0]", "text", "unsupported tensor index"),
    "axis": ("tl.expand_dims(n, 5)", "cause", "invalid axis 5"),
    "duplicate axes": ("tl.expand_dims(n, (0, -2))", "cause", r"duplicate axes, normalized axes = \[0, 0\]"),
    "program_id": ("tl.program_id(20)", "cause", r"program_id axis must be 0, 1, or 2 but got 20"),
    "signedness": ("n // n.to(tl.uint32)", "text", r"Cannot use .* because they have different signedness"),
    "operands": ("x & 1", "text", "invalid operands of type"),
    "not defined": ("y += 1", "text", "is not defined"),
    "global": ("tl.store(out, NUMBER)", "text", "Cannot access global variable NUMBER"),
    "constant pointer": ("tl.store(p.to(tl.pointer_type(tl.float32, 1, True)), x)", "text",
                         "Cannot store to a constant pointer"),
    "returns": ("two_types(n)", "innermost", "Return type mismatch"),
    "mismatched": ("if n > 2:\n    final_out = 1\nelse:\n    final_out = x", "text", "Mismatched type for final_out"),
    "ternary": ("y = n if n > 2 else x", "text", "Ternary expression with dynamic condition has inconsistent type"),
    "return in a loop": ("for i in range(n):\n    return", "text",
                         "Cannot have `return` statements inside `while` or `for` statements in triton"),
    "descriptor": ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [8, 2])", "cause",
                   "Descriptor block shape must have at least 16 bytes"),
    "architecture": ("tl.zeros((8,), tl.float8e4b8)", "innermost", "not supported in this architecture"),
    "dot, 8 bits": ("a = tl.zeros((8, 8), tl.int8)\ntl.dot(a, a)", "cause", ("Input shapes should have M >= 1, "
                                                                             "N >= 1 and K >= 32")),
    "dot, 16 bits": ("a = tl.zeros((8, 8), tl.float16)\ntl.dot(a, a)", "cause", ("Input shapes should have M >= 1, "
                                                                                 "N >= 1 and K >= 16")),
    "reshape": ("tl.arange(0, 8).reshape(4)", "text", "reshape"),
}  # fmt: skip
TEXTS_HEADER = """
NUMBER = 3

@tilework.must_use_result("Use it.")
@tilework.jit
def cube(y):
    return y * y * y

@tilework.jit
def two_types(y):
    if y > 3:
        return 1
    return 2.0
"""


@pytest.mark.parametrize("row", LITERALS)
def test_literal_text(tmp_path: Path, row: str) -> None:
    body, index, pattern = LITERALS[row]
    problem = error(kernel(tmp_path, body, TEXTS_HEADER), np.zeros(8, np.int32), *arguments(), C=4)
    found = {
        "text": str(problem),
        "cause": str(problem.__cause__),
        "innermost": str(innermost(problem)),
        "last line": str(problem).splitlines()[-1],
    }[index]
    assert re.search(pattern, found), found
    assert re.match(r"at \d+:\d+:", str(problem))
    assert "<source unavailable>" not in str(problem) and "code_generator.py" not in str(problem)


# -- dtypes -------------------------------------------------------------------------------------------------------


@tilework.jit
def largest_half(p):
    d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [8, 8])
    d.atomic_max([0, 0], tl.zeros((8, 8), tl.float16))


@pytest.mark.parametrize(
    ("arch", "settings", "works"), [(90, {}, True), (80, {}, False), (90, {"arch": "sm80"}, False)]
)
def test_what_needs_a_feature_asks_the_target_that_is_meant(arch: int, settings: dict, works: bool) -> None:
    arguments = (largest_half, {"p": "*fp16"}, {}, None, frontend_options(GPUTarget("cuda", arch, 32), settings))
    if works:
        compile_to_ttir(*arguments)
        return
    with pytest.raises(CompilationError, match="needs a target with TMA"):
        compile_to_ttir(*arguments)


FP8 = {"fp8e5": 80, "fp8e4b15": 80, "fp8e4nv": 89, "fp8e4b8": 999, "fp8e5b16": 999}  # the least compute capability


@tilework.jit
def makes_fp8(out, T: tl.constexpr):
    tl.store(out, tl.zeros((), T).to(tl.float32))


@pytest.mark.parametrize("arch", [80, 86, 89, 90, 100])
def test_availability_of_fp8(arch: int) -> None:
    """A CompilationError whose innermost cause is a ValueError that lists what is supported."""
    options = frontend_options(GPUTarget("cuda", arch, 32), {})
    for name, least in FP8.items():
        arguments = ({"out": "*fp32", "T": "constexpr"}, {"T": tl.dtype(name)}, None, options)
        if arch >= least:
            compile_to_ttir(makes_fp8, *arguments)
            continue
        with pytest.raises(CompilationError) as caught:
            compile_to_ttir(makes_fp8, *arguments)
        cause = innermost(caught.value)
        assert (
            isinstance(cause, ValueError)
            and "not supported in this architecture" in str(cause)
            and "fp8e5" in str(cause)
        )


def test_lists_of_names() -> None:
    assert tl.dtype.SINT_TYPES == ["int8", "int16", "int32", "int64"]
    assert tl.dtype.UINT_TYPES == ["int1", "uint8", "uint16", "uint32", "uint64"]
    assert set(tl.dtype.FP_TYPES) == {*FP8, "fp16", "bf16", "fp32", "fp64"} and tl.dtype.OTHER_TYPES == ["void"]


ALIASES = {
    **{"u1": "bool int1 uint1 i1", "fp16": "half float16", "bf16": "bfloat16", "fp32": "float float32"},
    **{"fp64": "double float64", "i32": "int int32", "i8": "int8", "i16": "int16", "i64": "int64", "u8": "uint8"},
    **{"u16": "uint16", "u32": "uint32", "u64": "uint64", "fp8e4nv": "float8e4nv float8_e4m3fn", "void": "void"},
    **{"fp8e5": "float8e5 float8_e5m2", "fp8e4b8": "float8e4b8 float8_e4m3fnuz", "fp8e4b15": "float8e4b15"},
    "fp8e5b16": "float8e5b16 float8_e5m2fnuz",
}


@pytest.mark.parametrize("code", ALIASES)
def test_aliases(code: str) -> None:
    for alias in (*ALIASES[code].split(), code):
        assert type_canonicalisation_dict[alias] == code and canonicalize_dtype(f"torch.{alias}") == code


# -- values in kernels -------------------------------------------------------------------------------------------------

HEADER = """
from tilework.language.core import _aggregate as aggregate

class Pair(NamedTuple):
    a: object
    b: object

@tilework.jit
def as_pair(y):
    return Pair(y, 2)

@tilework.jit
def keep(y):
    return y

@tilework.jit
def takes(y, t, f, N: tl.constexpr):
    return y

@tl.core.extern
def scaled(y, factor, _semantic=None):
    return _semantic.mul(y, factor.value, False)

@aggregate
class Cell:
    value: tl.tensor
    size: tl.constexpr

    def __init__(self, value, size, _semantic=None, _generator=None):
        assert _generator is not None
        self.value = value
        self.size = size

    @tilework.jit
    def __getitem__(self, i):
        return self.value * 10 + i

    @staticmethod
    def made(value):
        return value

    @staticmethod
    @tilework.jit
    def of(value):
        return Cell(value, 5)

    def moved(self, by, _semantic=None):
        self.value = _semantic.add(self.value, by, False)

@tilework.constexpr_function
def make_class(n):
    @aggregate
    class Made:
        value: tl.tensor

        def __init__(self, value):
            self.value = value

        @tilework.jit
        def scaled(self):
            return self.value * FACTOR

    FACTOR = tl.constexpr(n)
    return Made

Made = make_class(6)
"""

ROWS = {
    "dtypes in a kernel": ("""
        tl.static_assert(x.dtype.is_fp32() and p.dtype.element_ty == tl.float32)
        tl.static_assert(p.dtype.is_ptr() and not n.dtype.is_floating())
        tl.static_assert(x.dtype.primitive_bitwidth == 32 and x.dtype.fp_mantissa_width == 23)
        tl.static_assert(n.dtype.int_bitwidth == 32)
        tl.store(out, n.dtype.primitive_bitwidth + C)
        """, [36]),
    "mangled name, runtime types and constants": ("takes(n, (n, 3), keep, 2.5)",
                                        "takes__i32_Ti32_c3T_cJITFunction(row0:keep)_c2.5"),
    "mangled name, pointer": ("keep(p)", "row0.keep__Pfp32("),
    "mangled name, block": ("keep(tl.zeros((4, 8), tl.int32))", "row0.keep__i32S4_8S("),
    "mangled name, block pointer": ("keep(tl.make_block_ptr(p, 8, 1, 0, 4, 0))", "row0.keep__Pfp32S4S("),
    "mangled name, descriptor": ("keep(tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 8]))",
                                 "row0.keep__TDfp32S4_8S("),
    "mangled name, aggregate": ("keep(Cell(n, 4))", "row0.Cell<i32, c4>"),
    "mangled name, bool and unsigned": ("keep(n > 2)\nkeep(n.to(tl.uint8))", "row0.keep__u8("),
    "constexpr, attributes in a kernel": ("tl.store(out, C.bit_length() + C.real)\ntl.static_assert(C.value == 4)",
                                          [7]),
    "constexpr, in a kernel": (("y: tl.constexpr = tl.constexpr(C) * 2\n"
                                "tl.static_assert(y == 8 and -y == -8 and ~y == -9 and y // 3 == 2)"), []),
    "tensor, attributes": ("""
        y = tl.zeros((2, 8), tl.float16)
        tl.static_assert(y.type == tl.block_type(tl.float16, [2, 8]) and y.dtype == tl.float16 and y.numel == 16)
        tl.static_assert(y.shape == [2, 8] and y.shape[:1] + (4,) == (2, 4) and len(y.shape) == 2)
        tl.static_assert(n.shape == () and n.numel == 1)
        tl.static_assert(y.T.shape == (8, 2) and isinstance(y.shape[0], tl.constexpr))
        """, []),
    "tensor, methods": (("tl.store(out, (n > 2).logical_and(n < 9).to(tl.int32) + (n > 9).logical_or(n < "
                         "9).to(tl.int32))"), [2]),
    "tuple, literals": (("t = n, [1, (2,)]\ntl.static_assert(len(t) == 2 and isinstance(t[1], tl.tuple))\n"
                         "tl.store(out, t[1][1][0])"), [2]),
    "tuple, elements": ("t = (None, tl.int8, keep, 3, (2.5, n))\ntl.static_assert(t[0] is None and t[1] == tl.int8)\n"
                     "tl.static_assert(t[3].dtype == tl.int32 and t[4][0].dtype == tl.float32)\n"
                     "tl.store(out, t[2](n))", [3]),
    "tuple, indexing": ("t = (1, n, 5)\ntl.store(out, t[-1] * 100 + t[1:][0] * 10 + len(t[::2]))", [532]),
    "tuple, run-time index": ("t = (1, 2)\nt[n]", Refused(TypeError, "compile-time integer")),
    "tuple, fields": ("t = as_pair(n)\ntl.store(out, t.a * 10 + t.b)", [32]),
    "tuple, operators": (("t = (1, n) + [2]\nu = (n,) * 3\ntl.static_assert(len(t + u) == 6 and (1, 2) == [1, "
                          "2] and (1, 2) != (1, 3))"), []),
    "tuple, truth": ("e = ()\nt = (n,)\ntl.store(out, len(e or t) * 10 + len(t and e))", [10]),
    "tuple, item assignment": ("t = (1, 2)\nt[0] = 3", Refused(UnsupportedLanguageConstruct, "t[0]")),
    "tuple, text": ("tl.static_assert(f'{C}' == '4')", []),
    "tuple, merged": ("t = (1, (n, None))\nif n > 2:\n    t = (2, (n + 1, None))\ntl.store(out, t[0] * 10 + t[1][0])",
                      [24]),
    "tuple, merged types": ("t = (1, n)\nif n > 2:\n    t = (1, x)", Refused(TypeError, "`t`")),
    "aggregate, __getitem__ that is jit": ("tl.store(out, Cell(n, 4)[2])", [32]),
    "aggregate, static methods": ("tl.store(out, Cell.made(n) + Cell.of(n).size)", [8]),
    "aggregate, class made by a constexpr_function": ("tl.store(out, Made(n).scaled())", [18]),
    "aggregate, mutation in a loop": ("c = Cell(n, 4)\nfor i in range(2):\n    c.moved(i + 1)\ntl.store(out, c.value)",
                                      [6]),
    "aggregate, other constant": ("c = Cell(n, 4)\nif n > 2:\n    c = Cell(n, 5)", Refused(TypeError, "`c`")),
    "function, extern": ("tl.store(out, scaled(n, 4))", [12]),
    "function, host functions": ("tl.store(out, tilework.cdiv(C, 3) * 10 + tilework.next_power_of_2(5))", [28]),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_row(tmp_path: Path, row: str) -> None:
    check(tmp_path, *ROWS[row], header=HEADER)


def test_const_annotation() -> None:
    with pytest.raises(CompilationError, match="Cannot store to a constant pointer"):
        compile_to_ttir(reads_only, {"p": "*kfp32"}, {}, None, OPTIONS)
    assert reads_only.params[0].is_const


@tilework.jit
def reads_only(p: tl.const):
    tl.store(p, tl.load(p))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("symbol", ["9lives", "a b", "", "a-b"])
def test_kernel_symbols(symbol: str) -> None:
    """Text after the last dot, an identifier."""

    @tilework.jit(repr=lambda _: f"some.module.{symbol}")
    def named(out):
        tl.store(out, 1)

    with pytest.raises(CompilationError):
        ttir(named, np.zeros(1, np.int32))


def test_kernel_symbol_after_the_last_dot() -> None:

    @tilework.jit(repr=lambda _: "some.module.name_1")
    def named(out):
        tl.store(out, 1)

    assert "@name_1(" in text(named, np.zeros(1, np.int32))


def plain_helper(n: int) -> int:
    return n + 1


@tilework.constexpr_function
def calls_plain(n):
    return plain_helper(n)


def function_with(source: str, folder: Path):
    return kernel(
        folder, "tl.store(out, size(C))", f"@tilework.constexpr_function\ndef size(n):\n    return {source}\n"
    )


def test_cache_keys(tmp_path: Path) -> None:
    """A constexpr_function and methods are part of their callers' keys; the former may not reference a plain
    function."""
    keys = [function_with(source, tmp_path).cache_key for source in ("n + 1", "n + 2")]
    assert keys[0] != keys[1]
    with pytest.raises(RuntimeError, match="Unsupported function referenced"):
        _ = calls_plain.cache_key
    methods = [HEADER, HEADER.replace("self.value * 10 + i", "self.value * 20 + i")]
    cells = [kernel(tmp_path, "tl.store(out, Cell(n, 4)[2])", header).cache_key for header in methods]
    assert cells[0] != cells[1]


def test_outside_a_kernel() -> None:
    """Builtins and jit functions on the host."""
    with pytest.raises(ValueError, match="@jit"):
        tl.arange(0, 4)
    with pytest.raises(RuntimeError):
        reads_only(3)
