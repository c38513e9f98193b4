"""Return values of jit functions: constants, None, tuples of both, and the promotion of several returns (3.7.1)."""

from pathlib import Path

import numpy as np
import pytest

from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import text, ttir
from tests.language.both_ways import check_both
from tilework import knobs
from tilework.errors import CompilationError

U8 = "tl.full((), 1, tl.uint8)"

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
