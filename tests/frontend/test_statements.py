"""Statements without control flow: assignment, annotations, assert, with, what is refused."""

# The kernels are odd on purpose.
# ruff: noqa: B018, F722, F821, UP037
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportInvalidTypeForm=false
# pyright: reportUnboundVariable=false, reportUndefinedVariable=false, reportUnusedExpression=false

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, run, text, ttir
from tests.frontend.test_expressions import kernel_from
from tilework.errors import UnsupportedLanguageConstruct


@tilework.jit
def assignments(out, n):
    """A docstring."""
    "a string"
    ...
    None
    n
    (n, 1)
    x = n
    (a, (b, c)) = (x, (2, 3.5))
    a, b = b, a
    x += 1
    x *= 2
    x -= b
    x //= 1
    x <<= 2
    x %= 7
    x |= 8
    y: tl.int32 = 5
    z: "anything at all" = x  # pyright: ignore  no expression
    K: tl.constexpr = 4
    L: "tl.constexpr" = K * 2
    M: tl.constexpr
    tl.static_assert(M is None)
    tl.static_assert(L == 8)
    tl.static_assert(isinstance(y, tl.tensor))
    pass
    tl.store(out, x + a + b + c.to(tl.int32))
    tl.store(out + 1, y + z + tl.sum(tl.arange(0, K)))


def test_assignments() -> None:
    n = 5
    x, a, b = n, 2, 5
    x = ((((x + 1) * 2 - b) // 1) << 2) % 7 | 8
    assert result(assignments, n, size=2) == [x + a + b + 3, 5 + x + 6]


@tilework.jit
def kinds_of_variables(out, N: tl.constexpr):
    x = 3
    tl.static_assert(x.dtype == tl.int32)
    x = 3.0
    tl.static_assert(x.dtype == tl.float32)
    x = None
    tl.static_assert(x is None)
    x = tl.float16
    tl.static_assert(x == tl.float16)
    x = put
    x(out, N)
    N = N + 1
    tl.static_assert(isinstance(N, tl.tensor))
    K: tl.constexpr = 7
    K = K + 1
    tl.store(out + 1, K + N)
    S: tl.constexpr = "abc"
    tl.static_assert(S + "d" == "abcd")


@tilework.jit
def put(p, x):
    tl.store(p, x)


def test_types_may_change_on_straight_line_code() -> None:
    assert result(kinds_of_variables, size=2, N=3) == [3, 12]


@tilework.jit
def in_separate_branches(out, FLAG: tl.constexpr):
    if FLAG:
        K: tl.constexpr = 1
    else:
        K: tl.constexpr = 2
    tl.store(out, K)


def test_constants_in_separate_branches() -> None:
    assert result(in_separate_branches, FLAG=False) == [2]


@tilework.jit
def asserts(out, n):
    assert n > 0, "n must be positive"
    assert True
    assert n == 3, f"{4}"
    tl.store(out, n)


def test_assert_is_a_device_assert() -> None:
    assert result(asserts, 5) == [5]
    assert "tt.assert" not in text(asserts, np.zeros(1), 5)
    module = text(asserts, np.zeros(1), 5, options={"debug": True})
    assert module.count("tt.assert") == 3 and '"n must be positive"' in module


@tilework.jit
def prints(out, n):
    print("n is", n)
    print("done")
    tl.static_print("at compile time", 4)
    tl.store(out, n)


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    out = np.zeros(1, np.int32)
    run(prints, out, 5)
    shown = capsys.readouterr().out
    assert "at compile time 4" in shown and "n is: 5" in shown


class Region:
    """A context manager of the compiler."""

    log: tuple[str, ...] = ()

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        Region.log += (f"enter {self.name}",)
        return tl.constexpr(len(self.name))

    def __exit__(self, *details):
        Region.log += (f"exit {self.name}",)


@tl.core.builtin
def region(name, _semantic=None):
    return Region(name.value)


@tilework.jit
def with_statement(out, n):
    with region("outer") as size, region("inner"):
        tl.store(out, n + size)


def test_with() -> None:
    Region.log = ()
    ttir(with_statement, np.zeros(1), 3)
    assert Region.log == ("enter outer", "enter inner", "exit inner", "exit outer")
    assert result(with_statement, 3) == [8]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a = b = n", "multiple assignment"),
        ("[a, b] = (n, n)", "[a, b]"),
        ("a, *b = (n, n)", "starred"),
        ("n.x = 1", "n.x"),
        ("n[0] = 1", "n[0]"),
        ("n[0] += 1", "n[0]"),
        ("n.x += 1", "n.x"),
        ("n.x: int = 1", "n.x"),
        ("undefined += 1", "undefined is not defined"),
        ("x = 'abc'", "abc"),
        ("x: tl.constexpr = 1\n    x: tl.constexpr = 2", "already defined"),
        ("n: tl.constexpr = 1", "already defined"),
        ("a, b, c = n, n", "2 values into 3"),
        ("a, b = n", "not a tuple"),
        ("a, b = 3", "not a tuple"),
        ("break", "Break"),
        ("for i in range(n):\n        continue", "Continue"),
        ("try:\n        pass\n    finally:\n        pass", "Try"),
        ("raise ValueError()", "Raise"),
        ("import math", "Import"),
        ("from math import pi", "ImportFrom"),
        ("global g", "Global"),
        ("del n", "Delete"),
        ("yield n", "Yield"),
        ("match n:\n        case 1:\n            pass", "Match"),
        ("class C:\n        pass", "ClassDef"),
        ("def f():\n        pass", "nested function definition is not supported."),
        ("async def f():\n        pass", "AsyncFunctionDef"),
        ("with n:\n        pass", "context manager"),
        ("assert n, n", "message of an assert"),
        ("assert tl.float32, ''", "cannot convert fp32"),
    ],
)  # fmt: skip
def test_refused(tmp_path, body: str, message: str) -> None:
    if body == "break":
        body = "while n > 0:\n        break"
    options = {"debug": True} if body.startswith("assert") else {}
    problem = error(kernel_from(tmp_path, body), np.zeros(1), 3, options=options)
    assert message in message_of(problem)


def test_return_inside_with_is_unsupported(tmp_path) -> None:
    with_return = error(returns_in_with, np.zeros(1), 3)
    assert isinstance(with_return, UnsupportedLanguageConstruct)


@tilework.jit
def returns_in_with(out, n):
    with region("x"):
        return
