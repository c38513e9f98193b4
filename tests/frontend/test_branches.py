"""Branches: conditions, what is merged, ternaries, and what is refused."""

# The kernels are odd on purpose.
# ruff: noqa: B007, B018, F821, F841

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result
from tilework.errors import UnsupportedLanguageConstruct

# -- if ------------------------------------------------------------------------------------------------------------


@tilework.jit
def chain(out, n):
    x = 0
    y = 10
    if n > 5:
        x = n + y
        if n > 7:
            y = x * 2
        else:
            x = 1
    elif n == 3:
        y = 33
    else:
        pass
    tl.store(out, x)
    tl.store(out + 1, y)


@pytest.mark.parametrize("n", [2, 3, 6, 8])
def test_nested_branches(n: int) -> None:
    x, y = 0, 10
    if n > 5:
        x = n + y
        if n > 7:
            y = x * 2
        else:
            x = 1
    elif n == 3:
        y = 33
    assert result(chain, n, size=2) == [x, y]


@tilework.jit
def defined_in_both(out, n):
    if n:
        final = n + 1
    else:
        final = n - 1
    tl.store(out, final)


def test_a_variable_defined_in_both_branches_is_visible() -> None:
    assert result(defined_in_both, 4) == [5]
    assert result(defined_in_both, 0) == [-1]


@tilework.jit
def float_condition(out, x):
    value = 1
    if x:
        value = 2
    tl.store(out, value)


def test_numbers_are_conditions() -> None:
    assert result(float_condition, 0.5) == [2]
    assert result(float_condition, 0.0) == [1]
    assert result(float_condition, True) == [2]


@tilework.jit
def pointer_condition(out, p):
    if p:
        tl.store(out, 1)


def test_pointers_are_conditions() -> None:
    assert result(pointer_condition, np.zeros(1, np.int32)) == [1]


@tilework.jit
def block_condition(out, n):
    if tl.full((1,), 1, tl.int32) * n > 3:
        tl.store(out, 1)


def test_a_block_of_one_element_is_a_condition_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="If conditional called with multidimensional Tensor"):
        assert result(block_condition, 4) == [1]


@tilework.jit
def dead_branch(out, n, FLAG: tl.constexpr):
    if FLAG:
        tl.store(out, n)
    else:
        raise ValueError("never seen")
    if FLAG is None:
        import math  # noqa: F401
    if 1:
        tl.store(out + 1, n)


def test_only_the_taken_branch_of_a_constant_condition_is_visited() -> None:
    assert result(dead_branch, 7, size=2, FLAG=True) == [7, 7]
    assert isinstance(error(dead_branch, np.zeros(2), 7, FLAG=False), UnsupportedLanguageConstruct)


class Odd(int):
    pass


@tilework.jit
def constant_condition(out, FLAG: tl.constexpr):
    if FLAG:
        tl.store(out, 1)
    else:
        tl.store(out, 2)


@pytest.mark.parametrize(("flag", "expected"), [(True, 1), (3, 1), (None, 2), (0, 2)])
def test_constant_conditions(flag: object, expected: int) -> None:
    assert result(constant_condition, FLAG=flag) == [expected]


@pytest.mark.parametrize("flag", ["x", 1.5, tl.float32, Odd(1)])
def test_other_constants_have_no_truth_value(flag: object) -> None:
    assert isinstance(error(constant_condition, np.zeros(1), FLAG=flag), UnsupportedLanguageConstruct)


@tilework.jit
def unrolled_index_in_branch(out, n):
    for k in tl.static_range(2):
        tl.store(out + k, k)
    if n > 3:
        for k in tl.static_range(4):
            tl.store(out + k, 9)


def test_the_index_of_an_unrolled_loop_may_differ_after_a_branch() -> None:
    assert result(unrolled_index_in_branch, 4, size=4) == [9] * 4
    assert result(unrolled_index_in_branch, 3, size=4) == [0, 1, -1, -1]


@tilework.jit
def none_again(out, n):
    x = None
    if n > 3:
        x = None
    for i in range(n):
        x = None
    if x is None:
        tl.store(out, 5)


def test_the_same_constant_again_is_no_change() -> None:
    assert result(none_again, 4) == [5]


# -- ternary ---------------------------------------------------------------------------------------------------------


@tilework.jit
def put(p, x):
    tl.store(p, x)


@tilework.jit
def ternaries(out, n, FLAG: tl.constexpr):
    a = n if n > 3 else -n
    tl.store(out, a)
    tl.store(out + 1, 7 if FLAG else n)
    put(out + 2, a) if n > 3 else put(out + 2, 0)
    tl.store(out + 3, 1) if n > 3 else tl.store(out + 3, 0)
    b: tl.constexpr = 4 if FLAG else 8  # pyright: ignore[reportAssignmentType]
    tl.store(out + 4, tl.sum(tl.arange(0, b)))


def test_ternary() -> None:
    assert result(ternaries, 5, size=5, FLAG=True) == [5, 7, 5, 1, 6]
    assert result(ternaries, 2, size=5, FLAG=False) == [-2, 2, 0, 0, 28]


# -- refused ---------------------------------------------------------------------------------------------------------


@tilework.jit
def constexpr_in_branch(p, n):
    x: tl.constexpr = 3  # pyright: ignore[reportAssignmentType]
    if n > 3:
        x = n


@tilework.jit
def tuple_ternary(p, n):
    t = (n, 1) if n > 3 else (1, n)
    tl.store(p, t[0])


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (constexpr_in_branch, "is of type constexpr[3], but the then block redefines it as int32"),
        (tuple_ternary, "tuples"),
    ],
)
def test_refused(kernel, message: str) -> None:
    assert message in message_of(error(kernel, np.zeros(1, np.float32), 3))


@tilework.jit
def placeholder(out, n):
    y = None
    if n > 3:
        y = n + 1
        tl.store(out, y)
    z = None
    if n > 4:
        z = 1
    else:
        z = 2.0
    if n > 5:
        z = 3
    y = 7
    tl.store(out + 1, y)


def test_none_may_be_replaced_in_one_branch_if_it_is_not_read_afterwards() -> None:
    assert result(placeholder, 4, size=2) == [5, 7]


@tilework.jit
def placeholder_read(out, n):
    y = None
    if n > 3:
        y = n + 1
    if y is not None:
        tl.store(out, y)


def test_reading_it_is_an_error() -> None:
    assert "`y` is None before an `if` that assigns it" in message_of(error(placeholder_read, np.zeros(1, np.int32), 4))
