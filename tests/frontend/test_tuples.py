"""Tuples: literals, indexing, arithmetic, carrying, passing."""

# The kernels are odd on purpose.
# ruff: noqa: F841
# pyright: reportAttributeAccessIssue=false

from typing import Any, NamedTuple

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result


@tilework.jit
def literals(out, n):
    t = (n, 1, [2, (3, n)])
    u = t[:2] + t[2] + [5]  # pyright: ignore[reportOperatorIssue]
    tl.static_assert(len(u) == 5)
    a, b, (c, (d, e)) = t
    tl.store(out, a + b + c + d + e)
    tl.store(out + 1, u[-1] + u[-2][0])
    v = (n,) * 3 + tl.tuple([n, 2])
    total = 0
    for i in tl.static_range(len(v)):
        total += v[i]
    tl.store(out + 2, total)
    w = [x * 2 for x in v[1:4] if True]
    tl.store(out + 3, w[0] + w[1] + w[2])
    x = [k * n for k in (1, 2, 3, 4) if k % 2 == 0]
    tl.store(out + 4, x[0] + x[1])


def test_literals_slices_sums_comprehensions() -> None:
    assert result(literals, 10, size=5) == [26, 8, 42, 60, 60]


@tilework.jit
def elements(out, n):
    t = (None, tl.float32, 3, put)
    tl.static_assert(t[0] is None)
    tl.static_assert(t[1] == tl.float32)
    tl.static_assert(t[2].dtype == tl.int32)
    t[3](out, n)
    empty = ()
    tl.static_assert(len(empty) == 0)
    tl.store(out + 1, 1 if not len(empty) else 0)


@tilework.jit
def put(p, x):
    tl.store(p, x)


def test_kinds_of_elements() -> None:
    assert result(elements, 9, size=2) == [9, 1]


@tilework.jit
def equality(out, n, T: tl.constexpr):
    x = n + tl.arange(0, 4)
    tl.store(out, x.shape == [4])
    tl.store(out + 1, T == (1, 2))
    tl.store(out + 2, T != (1, 2))
    tl.store(out + 3, (1, (2, 3)) == [1, [2, 3]])
    tl.store(out + 4, (1, 2) in ((1, 2), (3, 4)))


def test_equality() -> None:
    assert result(equality, 0, size=5, T=(1, 2)) == [1, 1, 0, 1, 1]


@tilework.jit
def logic(out, n):
    empty = ()
    full = (n, n + 1)
    a = full and empty
    b = empty or full
    tl.static_assert(len(a) == 0)
    tl.store(out, b[1])
    tl.store(out + 1, (empty or (7,))[0])


def test_and_or_return_the_tuple() -> None:
    assert result(logic, 3, size=2) == [4, 7]


@tilework.jit
def carried(out, n):
    t = (0, (1, 2.0), None)
    for i in range(n):
        a, (b, c), d = t
        t = (a + b, (b * 2, c * 0.5), d)
        if i == 1:
            t = (t[0] + 100, t[1], None)
    while t[0] < 200:
        t = (t[0] + 50, t[1], t[2])
    tl.store(out, t[0])
    tl.store(out + 1, t[1][0])
    tl.store(out + 2, (t[1][1] * 64).to(tl.int32))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_tuples_of_tuples_are_carried(n: int) -> None:
    a, b, c = 0, 1, 2.0
    for i in range(n):
        a, b, c = a + b, b * 2, c * 0.5
        a += 100 if i == 1 else 0
    while a < 200:
        a += 50
    assert result(carried, n, size=3) == [a, b, int(c * 64)]


class Config(NamedTuple):
    size: object
    limits: tuple


class Function(NamedTuple):
    fn: Any
    captured: tuple


@tilework.jit
def use(config, k):
    return config.size * 10 + config.limits[0] * k + config.limits[1]


@tilework.jit
def named_argument(out, config, n):
    total = 0
    for k in range(n):
        total += use(config, k)
    tl.store(out, total)
    tl.store(out + 1, config[0])


def test_named_tuples_as_arguments() -> None:
    config = Config(tl.constexpr(4), (2, tl.constexpr(3)))
    assert result(named_argument, config, 3, size=2) == [sum(40 + 2 * k + 3 for k in range(3)), 4]


@tilework.jit
def affine(x, a, b):
    return a * x + b


@tilework.jit
def function_argument(out, n):
    f = Function(fn=affine, captured=(2, n))
    tl.store(out, f.fn(5, *f.captured))
    tl.store(out + 1, call(f, 6))


@tilework.jit
def call(f, x):
    return f.fn(x, *f.captured)


def test_functions_in_named_tuples() -> None:
    assert result(function_argument, 7, size=2) == [17, 19]


@tilework.jit
def passed_on(out, args, n):
    inner(out, args, n)


@tilework.jit
def inner(out, args, n):
    a, (b, c), _, pointers = args
    tl.store(out, a + c)
    tl.static_assert(b is None)
    tl.static_assert(args[2] == 8)
    tl.store(out + 1, tl.load(pointers[0]) + tl.sum(tl.arange(0, args[2])) + n)


def test_nested_tuples_as_arguments() -> None:
    args = (5, (None, 6), tl.constexpr(8), (np.full(1, 3, np.int32),))
    assert result(passed_on, args, 2, size=2) == [11, 3 + 28 + 2]
    assert result(passed_on, (5, (None, tl.constexpr(1)), tl.constexpr(8), (np.ones(1, np.int32),)), 2, size=2)[0] == 6


@tilework.jit
def sizes(out, t):
    tl.store(out, len(t))
    for i in tl.static_range(len(t)):
        tl.store(out + 1 + i, t[i])


@pytest.mark.parametrize("size", range(4))
def test_sizes_of_arguments(size: int) -> None:
    assert result(sizes, tuple(range(size)), size=4)[: size + 1] == [size, *range(size)]


@tilework.jit
def infinities(out, n):
    low, high = float("-inf"), float("inf")
    for i in range(n):
        low = tl.maximum(low, i.to(tl.float32))
        high = tl.minimum(high, i.to(tl.float32))
    tl.store(out, low)
    tl.store(out + 1, high)


def test_floats_in_tuples() -> None:
    assert result(infinities, 3, size=2, dtype=np.float32) == [2.0, 0.0]


@tilework.jit
def unpack_constant(out, T: tl.constexpr):
    a, b = T
    tl.store(out, a + b)
    tl.store(out + 1, T[0] * T[1])
    first, second = T[0], T[1]
    tl.store(out + 2, first - second)


@pytest.mark.parametrize("value", [(3, 4), [3, 4]])
def test_constant_sequences_can_be_unpacked(value: object) -> None:
    assert result(unpack_constant, size=3, T=value) == [7, 12, -1]


@tilework.jit
def item_assignment(out, t):
    t[0] = 1


@tilework.jit
def runtime_index(out, n):
    t = (1, 2)
    tl.store(out, t[n])


@tilework.jit
def index_out_of_range(out, n):
    t = (1, 2)
    tl.store(out, t[2])  # pyright: ignore[reportGeneralTypeIssues]


@tilework.jit
def starred_target(out, n):
    a, *b = (1, 2, 3)


@tilework.jit
def list_target(out, n):
    [a, b] = (1, 2)


@tilework.jit
def no_such_field(out, n):
    c = Config(1, (2, 3))
    tl.store(out, c.length)


@tilework.jit
def iterate(out, n):
    for x in (1, 2, n):
        tl.store(out, x)


@tilework.jit
def compare_runtime(out, n):
    tl.static_assert((n, 1) == (2, 1))


@pytest.mark.parametrize(
    ("kernel", "argument", "message"),
    [
        (item_assignment, (1, 2), "t[0]"),
        (runtime_index, 1, "compile-time integer"),
        (index_out_of_range, 1, "out of range"),
        (starred_target, 1, "starred"),
        (list_target, 1, "list"),
        (no_such_field, 1, "length"),
        (iterate, 1, "static_range"),
        (compare_runtime, 1, "run time"),
    ],
)
def test_refused(kernel, argument, message: str) -> None:
    problem = error(kernel, np.zeros(1, np.int32), argument)
    assert message in message_of(problem)


class Sizes(NamedTuple):
    rows: int
    columns: int


class Problem(NamedTuple):
    sizes: Sizes
    scale: int


@tilework.constexpr_function
def area(sizes, factor: Any = 1):
    return sizes.rows * sizes.columns * (factor.scale if isinstance(factor, tuple) else factor)


@tilework.constexpr_function
def sizes_of(problem):
    return problem.sizes


@tilework.jit
def named_constants(out, problem: tl.constexpr, runtime_problem):
    tl.store(out, area(problem.sizes, factor=problem))
    tl.store(out + 1, area(sizes_of(problem)) + sizes_of(problem).rows)
    tl.store(out + 2, area(Sizes(problem.scale, 2)))
    tl.store(out + 3, area(runtime_problem.sizes, factor=runtime_problem))
    sizes: tl.constexpr = Sizes(columns=10, rows=problem.sizes.columns)  # pyright: ignore[reportAssignmentType]
    tl.store(out + 4, area(sizes))


@pytest.mark.parametrize("interpret", [False, True])
def test_functions_at_compile_time_see_fields(interpret: bool) -> None:
    out = np.zeros(5, np.int32)
    given = Problem(Sizes(tl.constexpr(2), tl.constexpr(3)), tl.constexpr(5))  # pyright: ignore[reportArgumentType]
    tilework.jit(named_constants.fn, interpret=interpret)[(1,)](out, Problem(Sizes(2, 3), 5), given)
    assert out.tolist() == [30, 8, 10, 30, 30]
