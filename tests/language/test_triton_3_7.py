"""The language of Triton 3.7.1: what differs from 3.6.0, one row for each rule; a row runs compiled and interpreted.

The kernel of a row is described in `tests/frontend/rows.py`: `out` points to int32, `n` is 3, `x` is 1.5, C is 4.
"""

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.compiler
import tilework.language as tl
from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import after_passes, result, text, ttir
from tests.golden.harness import TARGET, kernels, source, topics
from tilework import knobs
from tilework.errors import CompilationError, CompileTimeAssertionFailure
from tilework.ir import tt
from tilework.ir.printer import print_module
from tilework.language.function import JITFunction
from tilework.runtime.compile.sources import frontend_options
from tilework.testing import assert_close, call

U8 = "tl.full((), 1, tl.uint8)"


def interpreted(fn: JITFunction) -> list[int]:
    """Return what the interpreted kernel of a row writes."""
    out = np.full(8, -1, np.int32)
    tilework.jit(fn.fn, interpret=True)[(1,)](out, *arguments(), C=4)
    return out.tolist()


def check_both(folder: Path, body: str, expected: list[int] | str | Refused, header: str = "") -> None:
    """Check one row; where it has values, in the interpreter too."""
    check(folder, body, expected, header)
    if isinstance(expected, list):
        assert interpreted(kernel(folder, body, header))[: len(expected)] == expected


# ---- 1.3: what functions return

RETURNING = """
@tilework.jit
def next(x: tl.constexpr):
    return x + 1

@tilework.jit
def mixed(x):
    return x, 3, None, (x + 1, 2.5)

@tilework.jit
def texts(x):
    return x, "text", ("a", None)

@tilework.jit
def nothing(x):
    return None

@tilework.jit
def falls_off(x):
    x + 1

@tilework.jit
def either(x, first: tl.constexpr, second: tl.constexpr):
    if x > 0:
        return first
    return second

@tilework.jit
def value_or(x, other: tl.constexpr):
    if x > 3:
        return x
    else:
        return other

@tilework.jit
def tuples(x, other):
    if x > 3:
        return x, 1, None, (2, 7)
    return other, 5, None, (x, 7)

@tilework.jit
def names(x):
    if x > 3:
        return x, "a"
    return x, "b"

@tilework.jit
def lengths(x):
    if x > 3:
        return x, 1
    return x, 1, 2

@tilework.jit
def tuple_or(x):
    if x > 3:
        return x, 1
    return x

@tilework.jit
def sometimes(x):
    if x > 2:
        return 3

@tilework.jit
def searched(x, other: tl.constexpr):
    for i in range(x):
        if i == 2:
            return i
    return other

@tilework.jit
def found(x):
    for i in range(x):
        if i == 2:
            return 7
    return 7

WIDTH: tl.constexpr = tl.constexpr(4)


@tilework.jit
def same_before_dead_code(N: tl.constexpr):
    if N > 4:
        return WIDTH, N * 2
    return WIDTH, N * 2


@tilework.jit
def before_dead_code(N: tl.constexpr):
    if N > 4:
        return 1, N
    return 2, N

@tilework.jit
def before_the_same(N: tl.constexpr):
    if N > 4:
        return 1
    undefined()
    return 1

@tilework.jit
def on_one_side(N: tl.constexpr):
    if N > 4:
        return 1
    else:
        return 2

@tilework.jit
def pair_of(N: tl.constexpr):
    return 1, N, None

@tilework.jit
def before_a_dead_call(N: tl.constexpr):
    if N > 4:
        return 1, 2, None
    return pair_of(N)

@tilework.jit
def call_before_a_dead_call(N: tl.constexpr):
    if N > 4:
        return pair_of(N)
    return pair_of(N + 1)

@tilework.jit
def call_before_the_same(N: tl.constexpr):
    if N > 4:
        return pair_of(N)
    return pair_of(N)

@tilework.jit
def before_another_name(x, N: tl.constexpr):
    t = pair_of(N)[0]
    if N > 4:
        return t, (1, N)
    return t, pair_of(N)

@tilework.jit
def in_first_round(N: tl.constexpr):
    for i in tl.static_range(3):
        return i, N

@tilework.jit
def in_some_round(N: tl.constexpr):
    for i in tl.static_range(3):
        if i == N:
            return i, N
    return 2, N

@tilework.jit
def kinds():
    return tl.float16, next

class Pair(NamedTuple):
    left: tl.tensor
    right: tl.tensor

class Other(NamedTuple):
    left: tl.tensor
    above: tl.tensor

@tilework.jit
def pairs(x):
    if x > 3:
        return Pair(x, 1)
    return Pair(2, x)

@tilework.jit
def fields(x):
    if x > 3:
        return Pair(x, 1)
    return Other(2, x)
"""

RETURNED = {
    "a constant": ("N: tl.constexpr = next(7)\ntl.static_assert(N == 8)\ntl.store(out, N)", [8]),
    "a constant is weak": (f"tl.static_assert(({U8} + next(7)).dtype == tl.uint8)\ntl.store(out, {U8} + next(7))", [9]),
    "an assigned constant is not": (f"y = next(7)\ntl.static_assert(({U8} + y).dtype == tl.int32)\ntl.store(out, y)",
                                    [8]),
    "a constant as a shape": ("y = tl.arange(0, next(3))\ntl.store(out + y, y)", [0, 1, 2, 3, -1]),
    "constants in a tuple": ("""
        t = mixed(n)
        tl.static_assert(t[2] is None)
        tl.store(out, t[0] + t[1] + t[3][0] + (2 * t[3][1]).to(tl.int32))
        """, [15]),
    "a constant of an unassigned tuple": (
        f"tl.static_assert(({U8} + mixed(n)[1]).dtype == tl.uint8)\ntl.store(out, mixed(n)[1])", [3]),
    "texts in a tuple": ("tl.static_assert(texts(n)[1] == 'text')\ntl.static_assert(texts(n)[2] == ('a', None))", []),
    "None": ("tl.static_assert(nothing(n) is None)\ny = nothing(n)\nif y is None:\n    tl.store(out, 1)", [1]),
    "no return": ("tl.static_assert(falls_off(n) is None)", []),
    "constants before dead code": (  # which Triton visits
        f"tl.static_assert(({U8} + before_dead_code(5)[0]).dtype == tl.int32)\n"
        f"tl.static_assert(({U8} + before_dead_code(5)[1]).dtype == tl.uint8)\n"
        f"tl.static_assert(({U8} + before_dead_code(3)[0]).dtype == tl.uint8)\n"
        f"tl.static_assert(({U8} + before_the_same(5)).dtype == tl.uint8)\n"
        f"tl.static_assert(({U8} + on_one_side(5)).dtype == tl.uint8)\n"
        "tl.store(out, before_dead_code(5)[0])\ntl.store(out + 1, before_dead_code(3)[0])", [1, 2]),
    "constants before dead calls": (
        f"tl.static_assert(({U8} + before_a_dead_call(5)[1]).dtype == tl.int32)\n"
        f"tl.static_assert(before_a_dead_call(5)[2] is None)\n"
        f"tl.static_assert(({U8} + call_before_a_dead_call(5)[1]).dtype == tl.int32)\n"
        f"tl.static_assert(({U8} + call_before_the_same(5)[1]).dtype == tl.uint8)\n"
        f"tl.static_assert(({U8} + before_another_name(n, 5)[1][1]).dtype == tl.int32)\n"
        "tl.store(out, before_a_dead_call(5)[1])\ntl.store(out + 1, call_before_a_dead_call(5)[1])\n"
        "a, b, c = call_before_a_dead_call(6)\ntl.store(out + 2, b)", [2, 5, 6]),
    "constants of one round": (
        f"tl.static_assert(({U8} + in_first_round(5)[0]).dtype == tl.int32)\n"
        f"tl.static_assert(({U8} + in_first_round(5)[1]).dtype == tl.uint8)\n"
        f"tl.static_assert(({U8} + in_some_round(0)[0]).dtype == tl.int32)\n"
        f"tl.static_assert(({U8} + in_some_round(5)[0]).dtype == tl.uint8)\n"
        "tl.store(out, in_first_round(5)[0])\ntl.store(out + 1, in_some_round(1)[0])", [0, 1]),
    "types and functions": ("t = kinds()\ntl.static_assert(t[0] == tl.float16)\ntl.store(out, t[1](4))", [5]),
    "the text of a return before dead code": (
        f"tl.static_assert(({U8} + same_before_dead_code(5)[0]).dtype == tl.uint8)\n"
        f"tl.static_assert(({U8} + same_before_dead_code(5)[1]).dtype == tl.uint8)\n"
        "tl.store(out, same_before_dead_code(5)[0])\ntl.store(out + 1, same_before_dead_code(5)[1])", [4, 10]),
    "equal constants": ("N: tl.constexpr = either(n, 5, 5)\ntl.store(out, N)", [5]),
    "equal texts": ("tl.static_assert(either(n, 'a', 'a') == 'a')", []),
    "None twice": ("tl.static_assert(either(n, None, None) is None)", []),
    "two constants": (f"tl.static_assert(({U8} + either(n, 5, 6)).dtype == tl.int32)\n"
                      "tl.store(out, either(n, 5, 6))\ntl.store(out + 1, either(-n, 5, 6))", [5, 6]),
    "two bools": ("tl.static_assert(either(n, True, False).dtype == tl.int1)\ntl.store(out, either(n, True, False))",
                  [1]),
    "two large constants": ("tl.static_assert(either(n, 1 << 40, 1 << 41).dtype == tl.int64)\n"
                            "tl.store(out, (either(-n, 1 << 40, 1 << 41) >> 40).to(tl.int32))", [2]),
    "two large floats": ("tl.static_assert(either(n, 1e300, 2e300).dtype == tl.float64)", []),
    "zeros of both signs are two": ("tl.static_assert(either(n, 0.0, -0.0).dtype == tl.float32)\n"
                                    "tl.store(out, either(-n, 0.0, -0.0).to(tl.int32, bitcast=True))", [-(2**31)]),
    "a value and a constant": ("tl.store(out, value_or(n, 9))\ntl.store(out + 1, value_or(n + 4, 9))", [9, 7]),
    "tuples, element by element": ("""
        t = tuples(n, 8)
        tl.static_assert(t[2] is None)
        tl.static_assert(tuples(n, 8)[3][1] == 7)
        tl.store(out, t[0] * 100 + t[1] * 10 + t[3][0])
        s = tuples(n + 1, 8)
        tl.store(out + 1, s[0] * 100 + s[1] * 10 + s[3][0])
        """, [853, 412]),
    "named tuples": ("t = pairs(n)\ntl.store(out, t.left * 10 + t.right)", [23]),
    "the end on one path": ("tl.store(out, sometimes(n))", [3]),
    "from a loop": ("tl.store(out, searched(n, 8))\ntl.store(out + 1, searched(n - 2, 8))", [2, 8]),
    "a constant from a loop": (f"tl.static_assert(({U8} + found(n)).dtype == tl.int32)\ntl.store(out, found(n))", [7]),
}  # fmt: skip
MISMATCH = "Return type mismatch: {}. Note all return types were: [{}]"
REFUSED = {
    "constants": ("either(n, 1.0, 2)",
                  MISMATCH.format("fp32 and int32", "constexpr_type[1.0], constexpr_type[2]")),
    "sizes of constants": ("either(n, 1, 3000000000)",
                           MISMATCH.format("int32 and uint32", "constexpr_type[1], constexpr_type[3000000000]")),
    "int64": ("either(n, 1, 1 << 40)",
              MISMATCH.format("int32 and int64", "constexpr_type[1], constexpr_type[1099511627776]")),
    "fp64": ("either(n, 1.0, 1e300)", MISMATCH.format("fp32 and fp64", "constexpr_type[1.0], constexpr_type[1e+300]")),
    "bool": ("either(n, True, 2)", MISMATCH.format("int1 and int32", "constexpr_type[True], constexpr_type[2]")),
    "a value and a constant": ("value_or(n, 3.0)",
                               MISMATCH.format("int32 and fp32", "triton.language.int32, constexpr_type[3.0]")),
    "None and a value": ("value_or(n, None)", "cannot convert None of type <class 'NoneType'> to tensor"),
    "texts": ("names(n)", "cannot convert a of type <class 'str'> to tensor"),
    "lengths": ("lengths(n)", "Return type mismatch: [int32,constexpr_type[1]] and [int32,constexpr_type[1],"),
    "tuple and value": ("tuple_or(n)", "Return type mismatch: [int32,constexpr_type[1]] and int32"),
    "field names": ("fields(n)", "Return type mismatch: [left:int32,right:constexpr_type[1]] and [left:"),
    "from a loop": ("searched(n, 1.5)",
                    MISMATCH.format("int32 and fp32", "triton.language.int32, constexpr_type[1.5]")),
}  # fmt: skip


@pytest.mark.parametrize("row", RETURNED)
def test_returned(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *RETURNED[row], header=RETURNING)


@pytest.mark.parametrize("row", REFUSED)
def test_returned_values_of_two_types(tmp_path: Path, row: str) -> None:
    """The error is at the first line of the function."""
    body, words = REFUSED[row]
    fn = kernel(tmp_path, f"y = {body}", RETURNING)
    with pytest.raises(CompilationError) as caught:
        ttir(fn, np.zeros(8, np.int32), *arguments(), C=4)
    problem = caught.value.__cause__
    assert isinstance(problem, CompilationError) and str(problem).startswith("at 1:0:")
    assert words in str(problem).replace("\\'", "'"), problem


def test_a_function_that_returns_a_constant_has_no_result(tmp_path: Path) -> None:
    module = text(kernel(tmp_path, "next(7)", RETURNING), np.zeros(8, np.int32), *arguments(), C=4)
    assert "tt.call @row0.next__c7() : () -> ()" in module
    assert "tt.func private @row0.next__c7() attributes {noinline = false} {\n    tt.return\n" in module


def test_triton_3_6_returns_run_time_values(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        weak = f"tl.static_assert(({U8} + next(7)).dtype == tl.int32)\ntl.store(out, next(7))"
        check_both(tmp_path, weak, [8], RETURNING)
        check(tmp_path, "either(n, 1.0, 2)", Refused(TypeError, "Inconsistent return types: fp32 and int32"), RETURNING)


# ---- 2.1: names of callees

MANGLED = """
@tilework.jit
def f(x): return x

@tilework.jit
def callee(x, n, text, t, f): return x

@tilework.jit
def no_arguments(): return 1

@tl.core._aggregate
class Cell:
    value: tl.tensor
    size: tl.constexpr

    def __init__(self, value, size):
        self.value, self.size = value, size

    @tilework.jit
    def get(self): return self.value

def factory():
    @tilework.jit
    def inner(x): return x
    return inner

INNER = tl.constexpr(factory())

class Pair(NamedTuple):
    left: tl.tensor
    right: tl.constexpr
"""
SYMBOLS = {
    "f(n)": "row0.f__i32",
    "tl.zeros((4, 8), tl.int32)": "tilework.language.standard.zeros__Tc4_c8T_ci32",
    "callee(n, 4, 'ab', (n, 3), f=1.5)": "row0.callee__i32_c4_c_sq_ab_sq__Ti32_c3T_c1.5",
    "tl.max(tl.zeros((512,), tl.float32), axis=0)": "tilework.language.folds.max__fp32S512S_c0_cFalse_cTrue_cFalse",
    "no_arguments()": "row0.no_arguments__",
    "callee(n, None, True, (), -0.0)": "row0.callee__i32_cNone_cTrue_TT_c-0.0",
    "callee(p, [1, 2], tl.pointer_type(tl.int8), (1, (n,)), 2**40)":
        "row0.callee__Pfp32_Tc1_c2T_cPi8_Tc1_Ti32TT_c1099511627776",
    "callee(f, n > 2, tl.float16, \"[a'b]\", 'c.d e')":
        "row0.callee__cJITFunction(row0:f)_u1_cfp16_c\"_a_sq_b_\"_c_sq_c.d e_sq_",
    "f(Pair(n, 3))": "row0.f__Ti32_c3T",
    "Cell(n, 4).get()": "row0.Cell.get__row0.Cell<i32, c4>",
    "f(tl.make_tensor_descriptor(p, [8, 8], [8, 1], [4, 8]))": "row0.f__TDfp32S4_8S",
    "INNER(n)": "row0.factory.<locals>.inner__i32",
    "f('é')": "row0.f__c_sq__u00e9__sq_",  # ASCII, as assemblers read it
}  # fmt: skip


@pytest.mark.parametrize("call", SYMBOLS)
def test_symbol_of_a_callee(tmp_path: Path, call: str) -> None:
    fn = kernel(tmp_path, call, MANGLED)
    module = ttir(fn, np.zeros(8, np.int32), *arguments(), C=4)
    symbols = [op.sym_name.data for op in module.ops if isinstance(op, tt.FuncOp)]
    assert SYMBOLS[call] in symbols


def test_symbols_of_triton_3_6(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        check(tmp_path, "f(n)", "@row0.f__i32__(", MANGLED)
        wanted = (
            '@"row1.callee__i32_i32__(1,)cconstexpr_4__(2,)cconstexpr_ab__(3, 1)cconstexpr_3__(4,)cconstexpr_1_d_5_"'
        )
        check(tmp_path, "callee(n, 4, 'ab', (n, 3), f=1.5)", wanted, MANGLED)


def test_not_inlined_functions_with_constants_in_their_names_run(tmp_path: Path) -> None:
    """Their symbols reach the assembler."""
    header = "@tilework.jit(noinline=True)\ndef far(x, t, text): return x + t[1]"
    fn = kernel(tmp_path, "tl.store(out, far(n, (n, 2), \"a b'(c)\") + far(n, (n, -2.0), '[d]').to(tl.int32))", header)
    assert result(fn, *arguments(), size=8, C=4)[0] == 6
    out = np.zeros(8, np.int32)
    fn[(1,)](out, *arguments(), C=4)
    assert out[0] == 6


# ---- 1.3: arguments of jit functions

CALLED = """
@tilework.jit
def two(x, y):
    return x + y

@tilework.jit
def chosen(t):
    tl.static_assert(t[1] == "add")
    tl.static_assert(t[2] is None)
    return t[3](t[0], tl.full((), 4, t[4]))

@tilework.jit
def chosen_by_name(op, function, type):
    tl.static_assert(op == "add")
    return function(1, tl.full((), 4, type))
"""
CALLS = {
    "constants in a tuple": ("tl.store(out, chosen((n, 'add', None, two, tl.int32)))", [7]),
    "constants": ("tl.store(out, chosen_by_name('add', two, tl.int32))", [5]),
    "missing": ("two(n)", Refused(TypeError, "missing a required argument: 'y'")),
    "unknown": ("two(n, 1, q=2)", Refused(TypeError, "got an unexpected keyword argument 'q'")),
    "too many": ("two(n, 1, 2)", Refused(TypeError, "too many positional arguments")),
    "twice": ("two(n, 1, y=2)", Refused(TypeError, "multiple values for argument 'y'")),
}  # fmt: skip


@pytest.mark.parametrize("row", CALLS)
def test_call(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *CALLS[row], header=CALLED)


def test_wrong_calls_in_triton_3_6(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        check(tmp_path, "two(n)", Refused(TypeError, "two() missing 1 required positional argument: 'y'"), CALLED)


# ---- 1.2: tuples

TUPLES = """
class Pair(NamedTuple):
    foo: tl.tensor
    bar: tl.tensor

@tilework.constexpr_function
def same(x):
    return x

@tilework.constexpr_function
def swapped(pair):
    return Pair(pair.bar, pair.foo)
"""
TUPLE_ROWS = {
    "not": ("tl.static_assert(not ())\nif not (n, 1):\n    tl.store(out, 1)\nelse:\n    tl.store(out, 2)", [2]),
    "not is a constant": ("a: tl.constexpr = not (n, 1)\ntl.static_assert(a == False)", []),
    "an unknown attribute": ("t = (n, 1)\nt.foo", Refused(AttributeError, "'tuple' object has no attribute foo")),
    "an unknown field": ("t = Pair(n, 1)\nt.x", Refused(AttributeError, "'tuple' object has no attribute x")),
    "a named tuple through a constexpr_function": ("tl.store(out, same(Pair(5, 6)).foo)\n"
                                                   "tl.store(out + 1, swapped(Pair(5, 6)).foo)", [5, 6]),
}  # fmt: skip


@pytest.mark.parametrize("row", TUPLE_ROWS)
def test_tuple(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *TUPLE_ROWS[row], header=TUPLES)


def test_names_of_tuple_types() -> None:
    plain, named = tl.tuple_type([tl.int32, tl.float32]), tl.tuple_type([tl.int32, tl.float32], ["x", "y"])
    assert plain.fields is None and plain.name == str(plain) == "[int32,fp32]"
    assert named.fields == ["x", "y"] and named.name == "[x:int32,y:fp32]"
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        assert plain.name == "[:int32,:fp32]"


# ---- 1.1: cat, squeeze, unsqueeze, to_tensor

GRID = "x = tl.reshape(tl.arange(0, 8), (2, 4))\ny = x + 10\n"
UNEQUAL = "Cannot make_shape_compatible: incompatible dimensions at index 1: "
SHAPED = {
    "squeeze": (GRID + "y = tl.squeeze(x[:, None, :], 1)\ntl.static_assert(y.shape == [2, 4])\n"
                "tl.store(out + tl.arange(0, 8), y.ravel())", [*range(8)]),
    "squeeze, negative": (GRID + "y = tl.squeeze(x[:, :, None], -1)\ntl.static_assert(y.shape == [2, 4])\n"
                          "tl.store(out + tl.arange(0, 8), y.ravel())", [*range(8)]),
    "squeeze, more elements": (GRID + "tl.squeeze(x, 0)", Refused(CompileTimeAssertionFailure, "squeeze")),
    "squeeze is no method": (GRID + "x.squeeze(0)", Refused(AttributeError, "squeeze")),
    "unsqueeze": (GRID + "tl.static_assert(tl.unsqueeze(x, 0).shape == [1, 2, 4])\n"
                  "tl.static_assert(tl.unsqueeze(x, 2).shape == [2, 4, 1])\n"
                  "tl.store(out + tl.arange(0, 8), tl.unsqueeze(x, 1).ravel())", [*range(8)]),
    "unsqueeze, negative": (GRID + "tl.static_assert(tl.unsqueeze(x, -1).shape == [2, 1, 4])", []),
    "unsqueeze is no method": (GRID + "x.unsqueeze(0)", Refused(AttributeError, "unsqueeze")),
    "to_tensor": ("y = tl.to_tensor(5)\ntl.static_assert(tl.to_tensor(n) is n)\ntl.static_assert(y.dtype == tl.int32)\n"
                  "tl.static_assert(tl.to_tensor(0.5).dtype == tl.float32)\ntl.store(out, y)", [5]),
    "cat, ranks": (GRID + "tl.cat(x, tl.arange(0, 4))",
                   Refused(AssertionError, "tensors must have the same rank, got 2 and 1")),
    "cat, sizes outside": (GRID + "tl.cat(x, tl.zeros((4, 2), tl.int32))",
                           Refused(AssertionError, "tensor dims must match except in the concat dimension 0, got [2")),
    "cat, sizes along dim": (GRID + "tl.cat(x, tl.zeros((2, 8), tl.int32), dim=1)",
                             Refused(ValueError, UNEQUAL + "4 and 8")),
    "cat, size 1": (GRID + "tl.cat(x, tl.zeros((2, 1), tl.int32), dim=1)",
                    Refused(ValueError, UNEQUAL + "4 and 1")),
    "cat, dim": (GRID + "tl.cat(x, x, dim=2)", Refused(ValueError, "invalid axis 2. Expected -2 <= axis < 2")),
    "cat of scalars": ("tl.cat(n, n)", Refused(ValueError, "invalid axis 0. Expected 0 <= axis < 0")),
    "permute": (GRID + "tl.permute(x, (1, 0, 2))",
                Refused(ValueError, "permute dims must have the same length as input shape, got 2 and 3")),
}  # fmt: skip


@pytest.mark.parametrize("row", SHAPED)
def test_shape(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *SHAPED[row])


def test_unsqueeze_of_triton_3_8(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.8.0"
        check_both(tmp_path, GRID + "tl.static_assert(tl.unsqueeze(x, -1).shape == [2, 4, 1])", [])


@pytest.mark.parametrize("can_reorder", [False, True])
@pytest.mark.parametrize(("shape", "dim"), [((4,), 0), ((2, 4), 0), ((2, 4), 1), ((2, 4), -1), ((2, 1, 4), -2),
                                            ((2, 2, 4), 0), ((1, 2, 2), -3)])  # fmt: skip
def test_cat_keeps_the_order(shape: tuple[int, ...], dim: int, can_reorder: bool) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    wanted = np.concatenate([x, -x], dim)
    if not can_reorder:
        for interpret in (False, True):
            np.testing.assert_array_equal(call_both(tl.cat, interpret, x, -x, dim=dim), wanted)
    elif len(shape) == 1:
        assert sorted(call(tl.cat, x, -x, can_reorder=True)) == sorted(wanted)


def test_text_of_cat(tmp_path: Path) -> None:
    fn = kernel(tmp_path, "x = tl.zeros((4, 8), tl.int32)\nc = tl.cat(x, x, dim=1)")
    module = text(fn, np.zeros(8, np.int32), *arguments(), C=4)
    assert " = tt.join %x_0, %x_0 : tensor<4x8xi32> -> tensor<4x8x2xi32>" in module
    assert "{order = array<i32: 0, 2, 1>} : tensor<4x8x2xi32> -> tensor<4x2x8xi32>" in module
    assert ": tensor<4x2x8xi32> -> tensor<4x16xi32>" in module


# ---- 1.2: constants of 8-bit floats, scaled dots, warnings, results that must be used


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("dtype", [tl.float8e4nv, tl.float8e5, tl.float8e4b15])
@pytest.mark.parametrize("value", [0.0, 1.5, -0.375, 1])
def test_constants_of_8_bit_floats(dtype: tl.dtype, value: float, interpret: bool) -> None:
    filled = call_both(filled_as, interpret, value, dtype)
    np.testing.assert_array_equal(filled, np.full(4, value, np.float32))


@tilework.jit
def filled_as(value: tl.constexpr, dtype: tl.constexpr):
    return tl.full((4,), value, dtype).to(tl.float32)


BLOCKS = "x = tl.zeros((16, 64), tl.uint8)\ny = tl.zeros((64, 16), tl.uint8)\ns = tl.zeros((16, 2), tl.uint8)\n"
SCALES = {
    "[..., 16, 2]": (BLOCKS + "tl.dot_scaled(x, tl.zeros((16, 4), tl.uint8), 'e4m3', y, s, 'e4m3')", "lhs"),
    "[..., 16, 4]": (BLOCKS + "tl.dot_scaled(x, s, 'e2m1', tl.zeros((128, 16), tl.uint8), s, 'e4m3')", "lhs"),
    "[..., 16, 2] ": (BLOCKS + "tl.dot_scaled(x, s, 'e4m3', y, tl.zeros((2, 16), tl.uint8), 'e4m3')", "rhs"),
}  # fmt: skip


@pytest.mark.parametrize("wanted", SCALES)
def test_shapes_of_scales(tmp_path: Path, wanted: str) -> None:
    body, side = SCALES[wanted]
    check(tmp_path, body, Refused(AssertionError, f"{side}_scale must be a tensor of shape {wanted.strip()}. Got ['"))


@tilework.jit
def batched(a, x, y, s, t, out):
    rows, k, b = tl.arange(0, 16)[None, :, None], tl.arange(0, 32)[None, None, :], tl.arange(0, 2)[:, None, None]
    left = tl.load(x + b * 512 + rows * 32 + k)
    right = tl.load(y + b * 512 + k.permute(0, 2, 1) * 16 + rows.permute(0, 2, 1))
    scales = tl.load(s + b * 16 + rows), tl.load(t + b * 16 + rows)
    product = tl.dot_scaled(left, scales[0], "e5m2", right, scales[1], "e5m2")
    tl.store(out + b * 256 + rows * 16 + tl.arange(0, 16)[None, None, :], product)


@pytest.mark.parametrize("interpret", [False, True])
def test_batched_scaled_dot(interpret: bool) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(0x38, 0x42, shape).astype(np.uint8) for shape in ((2, 16, 32), (2, 32, 16)))
    s, t = (random.integers(125, 130, (2, 16, 1)).astype(np.uint8) for _ in range(2))
    left, right = (bits.view(ml_dtypes.float8_e5m2).astype(np.float32) for bits in (x, y))
    left *= np.exp2(s.astype(np.float32) - 127)
    right *= np.exp2(t.reshape(2, 1, 16).astype(np.float32) - 127)
    out = np.zeros((2, 16, 16), np.float32)
    tilework.jit(batched.fn, interpret=interpret)[(1,)](0, x, y, s, t, out)
    np.testing.assert_allclose(out, left @ right, rtol=1e-6)


WARNINGS = {
    "make_block_ptr": ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))",
                       "tl.make_block_ptr is deprecated. Use TensorDescriptor or tl.make_tensor_descriptor instead."),
    "max": ("max(tl.arange(0, 4), n)",
            "builtin max on non-scalar tensor values is deprecated, use tl.maximum instead"),
    "min": ("min(tl.arange(0, 4), n)",
            "builtin min on non-scalar tensor values is deprecated, use tl.minimum instead"),
    "propagate_nan": ("max(x, 1.0, propagate_nan=tl.PropagateNan.ALL)",
                      "passing propagate_nan to builtin max is deprecated, use tl.maximum instead"),
}  # fmt: skip


ALWAYS = {
    "where": ("tl.where(n, n, 0)", "tl.where with a non-boolean condition is deprecated and will error out in a"),
    "view": ("tl.view(tl.arange(0, 4), 2, 2)", "view is deprecated, please use reshape with can_reorder being true."),
    "shift": ("n << 32", "shifting int32 by 32 gives an undefined value: it has 32 bits"),
    "and": ("(tl.arange(0, 4) > n) and (tl.arange(0, 4) > n)",
            "logical operators `and` and `or` are deprecated for non-scalar tensors; please use `&` or `|` instead"),
    "condition": ("1 if tl.full((1,), 1, tl.int32) > n else 2",
                  "If conditional called with multidimensional Tensor instead of scalar"),
}  # fmt: skip


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("row", ALWAYS)
def test_warning_of_all_versions_at_the_users_line(tmp_path: Path, row: str, interpret: bool) -> None:
    body, words = ALWAYS[row]
    fn = kernel(tmp_path, f"tl.store(out, 1)\ny = {body}")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tilework.jit(fn.fn, interpret=interpret)[(1,)](np.zeros(8, np.int32), *arguments(), C=4)
    (found,) = [one for one in seen if words in str(one.message)]
    assert (found.filename, found.lineno) == (fn.fn.__code__.co_filename, fn.fn.__code__.co_firstlineno + 3)
    assert found.category is UserWarning


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("version", ["3.6.0", "3.7.1"])
@pytest.mark.parametrize("row", WARNINGS)
def test_warning_at_the_users_line(tmp_path: Path, row: str, version: str, interpret: bool) -> None:
    body, words = WARNINGS[row]
    fn = kernel(tmp_path, f"tl.store(out, 1)\ny = {body}\ny = {body}")
    out, line = np.zeros(8, np.int32), fn.fn.__code__.co_firstlineno + 3
    with knobs.language.scope() as language, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        language.triton_version = version
        tilework.jit(fn.fn, interpret=interpret)[(1,)](out, *arguments(), C=4)
    found = [one for one in seen if one.filename == fn.fn.__code__.co_filename]
    if version == "3.6.0" and row == "make_block_ptr":
        assert not found
        return
    assert [str(one.message) for one in found] == [words] * 2
    assert [one.lineno for one in found] == [line, line + 1]
    assert {one.category for one in found} == {DeprecationWarning if version == "3.6.0" else UserWarning}


def test_a_warning_is_shown_once_for_all_specialisations(tmp_path: Path) -> None:
    body, words = WARNINGS["make_block_ptr"]
    fn = tilework.jit(kernel(tmp_path, f"tl.store(out, 1)\ny = {body}").fn)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for constant in (4, 8, 16):
            fn[(1,)](np.zeros(8, np.int32), *arguments(), C=constant)
    assert [str(one.message) for one in seen if one.filename == fn.fn.__code__.co_filename] == [words]


OF_TYPES = """
@tilework.constexpr_function
def size(x): return x.shape[0]

@tilework.constexpr_function
def is_float(x): return x.dtype.is_floating()

@tilework.constexpr_function
def paired(x, y): return x, y

@tilework.constexpr_function
def doubled(x): return x * 2

@tilework.constexpr_function
def sign(x): return 1 if x else 2
"""
AT_COMPILE_TIME = {
    "the shape": ("i = tl.arange(0, size(tl.arange(0, 4)))\ntl.store(out + i, i + size(i))", [4, 5, 6, 7, -1]),
    "the dtype": ("if is_float(x) and not is_float(n):\n    tl.store(out, 5)\nelse:\n    tl.store(n, n)", [5]),
    "in a tuple": ("t = paired(n, 4)\ntl.static_assert(paired(n, 4)[1] == 4)\ntl.store(out, t[0] + t[1])", [7]),
}  # fmt: skip


@pytest.mark.parametrize("row", AT_COMPILE_TIME)
def test_constexpr_functions_see_types(tmp_path: Path, row: str) -> None:
    check_both(tmp_path, *AT_COMPILE_TIME[row], header=OF_TYPES)


@pytest.mark.parametrize("call", ["doubled(n)", "sign(n)", "doubled(tl.arange(0, 4))"])
def test_constexpr_functions_compute_with_constants_only(tmp_path: Path, call: str) -> None:
    words = f"`{call.partition('(')[0]}` runs at compile time, but one argument is known only at run time: int32"
    check(tmp_path, f"y = {call}", Refused(TypeError, words), OF_TYPES)
    with pytest.raises(Exception, match=words):
        interpreted(kernel(tmp_path, f"y = {call}", OF_TYPES))


UNUSED = """
@tl.core._aggregate
class Cell:
    value: tl.tensor

    def __init__(self, value):
        self.value = value

    @tilework.must_use_result("Nothing changes in place.")
    @tilework.jit
    def get(self):
        return self.value

    @tilework.must_use_result
    @tl.core.builtin
    def built_in(self, _semantic=None):
        return self.value
"""
MUST_USE = {
    "a method": ("a = Cell(n)\na.get()", "The result of a.get is not being used. Nothing changes in place."),
    "a builtin method": ("a = Cell(n)\na.built_in()", "The result of a.built_in is not being used."),
    "a member": ("b = tl.make_block_ptr(p, (8,), (1,), (0,), (4,), (0,))\nb.advance([1])",
                 "The result of b.advance is not being used. Note that tl.advance does not have any side effects."),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
@pytest.mark.parametrize("row", MUST_USE)
def test_a_result_must_be_used(tmp_path: Path, row: str) -> None:
    body, words = MUST_USE[row]
    check(tmp_path, body, Refused(CompilationError, words), UNUSED)
    body, _, last = body.rpartition("\n")
    assert result(kernel(tmp_path, f"{body}\nc = {last}\ntl.store(out, 1)", UNUSED), *arguments(), size=8, C=4)[0] == 1


@tilework.jit
def lettered(out, n, text: tl.constexpr):
    tl.static_assert(text == "D")
    tl.store(out, n)


def test_a_text_like_a_letter_of_the_specialization() -> None:
    for number in (16, 3):
        out = np.zeros(1, np.int32)
        lettered[(1,)](out, number, "D")
        assert out[0] == number


def call_both(function: Any, interpret: bool, *args: Any, **kwargs: Any) -> Any:
    """Call one function of the language on arrays, compiled or interpreted."""
    with knobs.runtime.scope() as runtime:
        runtime.interpret = interpret
        return call(function, *args, **kwargs)


# ---- 1.1: AMD's library and clock, `assert_close`


@tilework.jit
def whole_and_finite(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.extra.hip.libdevice.rint(a))
    tl.store(out + N + i, tl.extra.hip.libdevice.rint(b).to(tl.float32))
    tl.store(out + 2 * N + i, tl.extra.hip.libdevice.finitef(a) != 0)
    tl.store(out + 3 * N + i, tl.extra.hip.libdevice.isfinited(b) != 0)


@pytest.mark.parametrize("interpret", [False, True])
def test_functions_of_amds_library(interpret: bool) -> None:
    values = np.array([0.5, 1.5, -2.5, 2.4, np.inf, -np.inf, np.nan, -0.0])
    out = np.zeros((4, 8), np.float32)
    tilework.jit(whole_and_finite.fn, interpret=interpret)[(1,)](values.astype(np.float32), values, out, N=8)
    np.testing.assert_array_equal(out[:2], np.tile(np.rint(values), (2, 1)))
    np.testing.assert_array_equal(out[2:], np.tile(np.isfinite(values), (2, 1)))


def stages_on(arch: str, fn: JITFunction, signature: dict[str, str], constants: dict[str, Any], stage: str) -> str:
    source = tilework.compiler.ASTSource(fn, signature, constants)
    width = 64 if arch.startswith("gfx9") else 32
    return tilework.compiler.lower(source, tilework.compiler.GPUTarget("hip", arch, width), [stage])[stage]


def test_symbols_of_amds_library() -> None:
    signature = {"x": "*fp32", "y": "*fp64", "out": "*fp32", "N": "constexpr"}
    module = stages_on("gfx942", whole_and_finite, signature, {"N": 64}, "ttir")
    assert module.count('symbol = "__triton_hip_rint"') == 2
    assert '"__ocml_isfinite_f32"' in module and '"__ocml_isfinite_f64"' in module
    assert "__triton_hip" not in stages_on("gfx942", whole_and_finite, signature, {"N": 64}, "llir")  # its own code


@tilework.jit
def clock(out):
    tl.store(out, tl.extra.hip.memrealtime())


@pytest.mark.parametrize(
    ("arch", "read", "wait"),
    [("gfx942", "s_memrealtime", "s_waitcnt vmcnt(0)"), ("gfx1100", "MSG_RTN_GET_REALTIME", "s_waitcnt lgkmcnt(0)"),
     ("gfx1201", "MSG_RTN_GET_REALTIME", "s_wait_kmcnt 0")],
)  # fmt: skip
def test_clock_of_amd_gpus(arch: str, read: str, wait: str) -> None:
    module = stages_on(arch, clock, {"out": "*i64"}, {}, "ttir")
    assert read in module and wait in module
    assert "llvm.readsteadycounter" in stages_on(arch, clock, {"out": "*i64"}, {}, "llir")


@pytest.mark.parametrize("x", [1.0, np.ones(1), np.ones(3)])
def test_message_of_assert_close(x: Any) -> None:
    with pytest.raises(AssertionError, match="the scale is wrong"):
        assert_close(x, x + 1, err_msg="the scale is wrong")


# ---- programs written for 3.6


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
@pytest.mark.parametrize("topic", topics("ttir"))
def test_the_same_ttir_in_both_versions(topic: str) -> None:
    """After the passes the ops are the same; the order of constants is each version's, as are names of functions."""
    for fn, signature in kernels("ttir", topic).values():
        found = []
        for version in ("3.6.0", "3.7.1"):
            with knobs.language.scope() as language:
                language.triton_version = version
                module = after_passes(source(fn, signature).module(frontend_options(TARGET, {})))
            lines = re.sub(r'@("[^"]*"|[\w.]+)', "@name", print_module(module)).splitlines()
            constants = [line for line in lines if " = arith.constant " in line]
            found.append((sorted(constants), [line for line in lines if line not in constants]))
        assert found[0] == found[1], fn.__name__


SIGNATURES = {
    tl.squeeze: "(x, dim)",
    tl.unsqueeze: "(x, dim)",
    tl.to_tensor: "(x)",
    tl.cat: "(input, other, can_reorder=False, dim=0)",
    tl.tuple_type: "(types, fields=None)",
    tl.extra.hip.libdevice.rint: "(arg0)",
    assert_close: "(x, y, atol=None, rtol=None, err_msg='')",
}


@pytest.mark.parametrize("function", SIGNATURES)
def test_signature(function: Any) -> None:
    parameters = inspect.signature(getattr(function, "fn", function)).parameters.values()
    shown = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    assert f"({', '.join(str(p) for p in shown if not p.name.startswith('_'))})" == SIGNATURES[function]


def test_exported_names() -> None:
    assert {"squeeze", "unsqueeze", "to_tensor", "cat"} <= set(tl.__all__)
    assert not hasattr(tl.tensor, "squeeze") and not hasattr(tl.tensor, "unsqueeze")


def test_a_class_as_a_constant_is_mangled_by_its_text() -> None:
    assert tl.constexpr(tl.dtype).type.mangle() == f"c{tl.dtype!r}"
