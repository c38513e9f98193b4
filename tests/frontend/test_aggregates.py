"""Aggregates: construction, methods, mutation through methods, branches and loops, identity."""

# The kernels are odd on purpose.
# ruff: noqa: B007, F841

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, text
from tilework.language.core import _aggregate as aggregate


@aggregate
class Counter:
    """A value that methods change in place."""

    count: tl.tensor
    step: tl.constexpr

    def __init__(self, count, step, _semantic: Any = None):
        self.count = _semantic.to_tensor(count)
        self.step = step

    def bump(self, _semantic=None):
        self.count = self.count.__add__(self.step, _semantic=_semantic)  # pyright: ignore[reportCallIssue]

    def set(self, value):
        self.count = value

    def twice(self):
        return Counter.doubled(self)

    @tilework.jit
    def plus(self, x):
        return self.count + x * self.step

    @tilework.jit
    def both(self, x):
        return self.plus(x), self.size()

    @tilework.constexpr_function
    def size(self):
        return self.step.value * 10

    @staticmethod
    @tilework.jit
    def start_at(x):
        return Counter(x, 5)

    def __getitem__(self, index, _semantic=None):
        return self.count.__add__(index, _semantic=_semantic)  # pyright: ignore[reportCallIssue]

    @tilework.jit
    def __add__(self, other):
        return self.count + other


@tilework.jit
def methods(out, n):
    c = Counter(n, 3)
    c.bump()
    tl.store(out, c.count)
    tl.store(out + 1, c.plus(2))
    a, b = c.both(1)
    tl.store(out + 2, a + b)
    tl.store(out + 3, Counter.start_at(n).count + c[4])
    tl.store(out + 4, c + 7)
    tl.store(out + 5, Counter.plus(c, 1))
    tl.store(out + 6, c.size() + c.step)


def test_construction_and_methods() -> None:
    assert result(methods, 1, size=7) == [4, 10, 4 + 3 + 30, 1 + 8, 11, 7, 33]


@tilework.jit
def changed_in_control_flow(out, n):
    c = Counter(0, 2)
    other = Counter(100, 1)
    for i in range(n):
        c.bump()
        if i % 2 == 1:
            c.bump()
            other.bump()
        else:
            other.set(other.count + 10)
    while c.count < 50:
        c.bump()
    c.bump() if n > 2 else other.bump()
    if n > 100:
        return
    if n > 3:
        c.set(n)
    tl.store(out, c.count)
    tl.store(out + 1, other.count)


@pytest.mark.parametrize("n", [0, 3, 4])
def test_methods_that_change_an_aggregate_in_branches_and_loops(n: int) -> None:
    count, other = 0, 100
    for i in range(n):
        count += 2
        if i % 2 == 1:
            count += 2
            other += 1
        else:
            other += 10
    while count < 50:
        count += 2
    if n > 2:
        count += 2
    else:
        other += 1
    if n > 3:
        count = n
    assert result(changed_in_control_flow, n, size=2) == [count, other]


@aggregate
class Nest:
    inner: Counter
    pair: tl.tuple

    def __init__(self, inner, pair):
        self.inner = inner
        self.pair = pair


@tilework.jit
def nested(out, n):
    nest = Nest(Counter(0, 1), (n, 7))
    held = (Counter(10, 3), n)
    for i in range(n):
        nest.inner.bump()
        held[0].bump()
        if i == 1:
            nest.inner.bump()
            held[0].bump()
    if n == 3:
        nest.inner.bump()
        held[0].bump()
    tl.store(out, nest.inner.count)
    tl.store(out + 1, held[0].count)
    tl.store(out + 2, nest.pair[0] + nest.pair[1])


def test_an_aggregate_inside_another_value_is_carried_too() -> None:
    assert result(nested, 3, size=3) == [5, 25, 10]
    assert result(nested, 2, size=3) == [3, 19, 9]


@tilework.jit
def condition_changes(out, n):
    c = Counter(0, 1)
    while next_value(c) < n:
        pass
    tl.store(out, c.count)
    d = Counter(0, 1)
    while d.__getitem__(0) < n:
        d.bump()
    tl.store(out + 1, d.count)


@tl.core.builtin
def next_value(counter, _semantic=None):
    counter.bump(_semantic=_semantic)
    return counter.count


def test_a_condition_that_changes_an_aggregate() -> None:
    assert result(condition_changes, 4, size=2) == [4, 4]


@tilework.jit
def untouched(out, n):
    c = Counter(n, 2)
    for i in range(n):
        tl.store(out + i, c.count)
    tl.store(out, c.count)


def test_an_aggregate_that_nothing_changes_is_not_carried() -> None:
    assert "iter_args" not in text(untouched, np.zeros(1), 3)
    assert result(untouched, 2, size=2) == [2, 2]


@tilework.jit
def rebound(out, n):
    c = Counter(n, 2)
    for i in range(n):
        c = Counter(c.count + i, 2)
    tl.store(out, c.count)


def test_rebinding() -> None:
    assert result(rebound, 4) == [10]


@tilework.jit
def advance(counter):
    return Counter(counter.count + counter.step, counter.step)


@tilework.jit
def passed(out, n):
    a = advance(Counter(n, 2))
    b = advance(Counter(n, 3))
    tl.store(out, a.count * 100 + b.count)


def test_constant_fields_are_part_of_the_type() -> None:
    assert result(passed, 1) == [304]
    module = text(passed, np.zeros(1), 1)
    assert module.count("tt.func private") == 2
    assert "test_aggregates.Counter<i32, c2>" in module


def factory(size):
    @aggregate
    class Made:
        value: tl.tensor

        def __init__(self, value):
            self.value = value

        @tilework.jit
        def scaled(self):
            return self.value * SIZE

    SIZE = tl.constexpr(size)
    return Made


TENFOLD, TWOFOLD = factory(10), factory(2)


@tilework.jit
def scaled(thing):
    return thing.scaled()


@tilework.jit
def made_by_factory(out, n):
    tl.store(out, TENFOLD(n).scaled())
    tl.store(out + 1, TWOFOLD(n).scaled())
    tl.store(out + 2, scaled(TENFOLD(n)))
    tl.store(out + 3, scaled(TWOFOLD(n)))


def test_classes_of_one_factory_are_not_confused() -> None:
    assert result(made_by_factory, 3, size=4) == [30, 6, 30, 6]


@aggregate
class Lazy:
    value: tl.constexpr
    parts: tl.tuple

    @tilework.constexpr_function
    def __init__(self, value):
        self.value = tl.constexpr(value)
        self.parts = tl.tuple((tl.constexpr(value), tl.constexpr(value + 1)))


@tilework.jit
def constructed_by_constexpr_function(out, n):
    lazy = Lazy(n + 0 if False else 4)
    tl.store(out, tl.sum(tl.arange(0, lazy.value)) + lazy.parts[1])


def test_init_may_be_a_constexpr_function() -> None:
    assert result(constructed_by_constexpr_function, 3) == [11]


# -- refused ---------------------------------------------------------------------------------------------------------


@aggregate
class Incomplete:
    a: tl.tensor
    b: tl.tensor

    def __init__(self, a):
        self.a = a


@aggregate
class Wrong:
    a: tl.tensor

    def __init__(self, a):
        self.a = tl.constexpr(3)  # pyright: ignore[reportAttributeAccessIssue]


@aggregate
class Undeclared:
    a: tl.tensor

    def __init__(self, a):
        self.a = a
        self.other = a


@aggregate
class Assigning:
    a: tl.tensor

    def __init__(self, a):
        self.a = a

    @tilework.jit
    def assign(self, x):
        self.a = x


@tilework.jit
def set_field(out, n):
    c = Counter(n, 1)
    c.count = n


@tilework.jit
def add_to_field(out, n):
    c = Counter(n, 1)
    c.count += n


@tilework.jit
def set_two_fields(out, n):
    c = Counter(n, 1)
    c.count, c.step = n, 2


@tilework.jit
def set_item(out, n):
    c = Counter(n, 1)
    c[0] = n


@tilework.jit
def add_to_item(out, n):
    c = Counter(n, 1)
    c[0] += n


@tilework.jit
def incomplete(out, n):
    Incomplete(n)


@tilework.jit
def wrong(out, n):
    Wrong(n)


@tilework.jit
def undeclared(out, n):
    Undeclared(n)


@tilework.jit
def assigned_in_jit_method(out, n):
    Assigning(n).assign(n)


@tilework.jit
def other_constant_in_branch(out, n):
    c = Counter(n, 1)
    if n > 3:
        c = Counter(n, 2)


@tilework.jit
def other_constant_in_loop(out, n):
    c = Counter(n, 1)
    for i in range(n):
        c = Counter(n, 2)


@tilework.jit
def other_type_by_method(out, n):
    c = Counter(n, 1)
    for i in range(n):
        c.set(1.5 + i)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (set_field, "c.count"),
        (add_to_field, "c.count"),
        (set_two_fields, "c.count"),
        (set_item, "c[0]"),
        (add_to_item, "c[0]"),
        (incomplete, "'b'"),
        (wrong, "must be a tensor"),
        (undeclared, "other"),
        (assigned_in_jit_method, "self.a"),
        (other_constant_in_branch, "`c`"),
        (other_constant_in_loop, "variable c"),
        (other_type_by_method, "variable c"),
    ],
)
def test_refused(kernel, message: str) -> None:
    problem = error(kernel, np.zeros(1), 3)
    assert message in message_of(problem)
