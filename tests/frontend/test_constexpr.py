"""Compile-time values in kernels: parameters, attributes, flow, functions that run at compile time."""

# The kernels are odd on purpose.
# ruff: noqa: SIM300
# pyright: reportAttributeAccessIssue=false

import enum
from typing import NamedTuple

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, text, ttir


@tilework.jit
def arithmetic(out, A: tl.constexpr, B: "tl.constexpr"):
    tl.store(out, A + B)
    tl.store(out + 1, A - B)
    tl.store(out + 2, A * B)
    tl.store(out + 3, A // B)
    tl.store(out + 4, A % B)
    tl.store(out + 5, A**B)
    tl.store(out + 6, (A < B) + (A <= B) * 2 + (A > B) * 4 + (A >= B) * 8 + (A == B) * 16 + (A != B) * 32)
    tl.store(out + 7, (A << B) + (A >> B) + (A & B) + (A | B) + (A ^ B))
    tl.store(out + 8, int(A / B * 100))


@pytest.mark.parametrize(("a", "b"), [(7, 2), (-7, 3), (2, 7)])
def test_arithmetic_is_pythons(a: int, b: int) -> None:
    compared = (a < b) + (a <= b) * 2 + (a > b) * 4 + (a >= b) * 8 + (a == b) * 16 + (a != b) * 32
    bits = (a << b) + (a >> b) + (a & b) + (a | b) + (a ^ b)
    expected = [a + b, a - b, a * b, a // b, a % b, a**b, compared, bits, int(a / b * 100)]
    assert result(arithmetic, size=9, A=a, B=b) == expected


@tilework.jit
def with_runtime(out, n, C: tl.constexpr):
    tl.store(out, C - n)
    tl.store(out + 1, C // n)
    tl.store(out + 2, C % n)
    tl.store(out + 3, C << n)
    tl.store(out + 4, C & n)
    tl.store(out + 5, C < n)
    tl.store(out + 6, n - C)


def test_constants_on_either_side_of_a_run_time_value() -> None:
    n, c = 3, 20
    assert result(with_runtime, n, size=7, C=c) == [c - n, c // n, c % n, c << n, c & n, c < n, n - c]


class Mode(enum.Enum):
    FAST = 1
    EXACT = 2


class Settings(NamedTuple):
    mode: Mode
    size: int


@tilework.jit
def objects(out, MODE: tl.constexpr, SETTINGS: tl.constexpr, TABLE: tl.constexpr, D: tl.constexpr):
    if MODE == MODE.FAST:
        tl.store(out, 1)
    tl.store(out + 1, len(MODE.name))
    tl.store(out + 2, SETTINGS.size)
    tl.store(out + 3, TABLE["x"][1])
    tl.store(out + 4, D.primitive_bitwidth)
    tl.store(out + 5, tl.zeros((4,), D).dtype == D)


def test_any_object_may_be_a_constant() -> None:
    constants = {"MODE": Mode.FAST, "SETTINGS": Settings(Mode.FAST, 9), "TABLE": {"x": [1, 2]}, "D": tl.float16}
    assert result(objects, size=6, **constants) == [1, 4, 9, 2, 16, 1]


@tilework.jit
def passed_as_constant(out, a, b):
    tl.static_assert(a == 5)
    tl.static_assert(b is None)
    tl.store(out, a * 2)


def test_a_constexpr_argument_is_a_constant() -> None:
    assert result(passed_as_constant, tl.constexpr(5), None) == [10]
    assert "%a" not in text(passed_as_constant, np.zeros(1), tl.constexpr(5), None)


@tilework.jit
def strict(x, N: tl.constexpr):
    return x + N


@tilework.jit
def runtime_to_constexpr(out, n):
    tl.store(out, strict(n, n))


def test_the_annotation_of_a_callee_is_not_enforced() -> None:
    assert result(runtime_to_constexpr, 4) == [8]


@tilework.jit
def flattened(out, N: tl.constexpr):
    inner: tl.constexpr = tl.constexpr(tl.constexpr(N))
    tl.static_assert(inner == N)
    tl.static_assert(inner.type == N.type)
    tl.store(out, inner)


def test_constexprs_flatten() -> None:
    assert result(flattened, N=3) == [3]


@tilework.constexpr_function
def shape_of(x):
    return [int(size) for size in x.shape]


@tilework.constexpr_function
def choose(fast):
    return double if fast else triple


@tilework.jit
def double(x):
    return x * 2


@tilework.jit
def triple(x):
    return x * 3


@tilework.constexpr_function
def dictionary(n):
    return {"n": n, "half": n // 2}


@tl.core.builtin
def as_list(x, y, _semantic=None):
    return [x, y]


@tl.core.builtin
def as_tuple(x, y, _semantic=None, _generator=None):
    assert _generator is not None
    return x, y


@tilework.constexpr_function
def total(items):
    return sum(items)


@tilework.jit
def functions(out, n, N: tl.constexpr):
    tl.store(out, choose(N > 3)(n))
    tl.store(out + 1, choose(False)(n))
    tl.store(out + 2, dictionary(N)["half"])
    tl.store(out + 3, total(as_list(N, 2)))
    a, b = as_tuple(n, N)
    tl.store(out + 4, a + b)
    tl.store(out + 5, total((1, 2, N)))
    tl.store(out + 6, tl.sum(tl.full((dictionary(N)["n"],), 1, tl.int32)))


def test_constexpr_functions_and_builtins() -> None:
    assert result(functions, 10, size=7, N=4) == [20, 30, 2, 6, 14, 7, 4]
    assert dictionary(8) == {"n": 8, "half": 4}


@tilework.constexpr_function
def fails(n):
    raise KeyError(n)


@tilework.jit
def calls_fails(out, n):
    tl.store(out, fails(3))


@tilework.jit
def runtime_argument(out, n):
    tl.store(out, dictionary(n)["n"])


@tilework.jit
def not_a_constant_shape(out, n):
    tl.zeros((n,), tl.float32)


def test_errors_at_compile_time() -> None:
    problem = error(calls_fails, np.zeros(1), 1)
    assert isinstance(problem.__cause__, KeyError)
    assert "compile time" in message_of(error(runtime_argument, np.zeros(1), 1))
    assert "constexpr" in message_of(error(not_a_constant_shape, np.zeros(1), 1))


@tilework.jit
def static_values(out, X: tl.constexpr):
    tl.static_assert(X, "X must be true")
    tl.store(out, 1)


def test_static_assert_of_false() -> None:
    problem = error(static_values, np.zeros(1), X=False)
    assert type(problem).__name__ == "CompileTimeAssertionFailure"
    assert problem.__cause__ is None and "X must be true" in str(problem) and "at 2:4:" in str(problem)


@pytest.mark.parametrize("value", [0.0, (), "", None, 1, "yes"])
def test_static_assert_takes_bools_only(value: object) -> None:
    ttir(static_values, np.zeros(1), X=True)
    problem = error(static_values, np.zeros(1), X=value)
    assert type(problem).__name__ == "CompilationError" and "Assertion condition could not be" in str(problem)
    assert "must be a bool" in problem.diagnostic().render()


@tilework.jit
def annotated_at_run_time(out, n):
    start: tl.constexpr = n + 1
    tl.store(out + start, tl.constexpr(start) + 2)


def test_a_value_of_run_time_stays_so_under_the_annotation() -> None:
    assert result(annotated_at_run_time, 1, size=3)[2] == 4


@tilework.jit
def assigned_literals(out, GIVEN: tl.constexpr, NOTHING: tl.constexpr):
    written: tl.constexpr = (5, 6, 7)  # pyright: ignore[reportAssignmentType]
    tl.static_assert(written.type == tl.constexpr_type((5, 6, 7)))
    tl.static_assert(GIVEN.type == tl.constexpr_type((5, 6, 7)))
    tl.static_assert(GIVEN.type != tl.constexpr_type((5, 6, 8)))
    again: tl.constexpr = GIVEN
    tl.static_assert(again.type == tl.constexpr_type((5, 6, 7)) and again == written)
    nothing: tl.constexpr = NOTHING
    tl.static_assert(nothing.type == tl.constexpr_type(None) and nothing is None)
    plain = nothing
    tl.static_assert(plain is None)
    tl.store(out, again[2])


def test_a_constant_tuple_and_none_keep_their_type_when_assigned() -> None:
    assert result(assigned_literals, GIVEN=(5, 6, 7), NOTHING=None) == [7]
