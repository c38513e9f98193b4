"""`break`, `continue`, `return` in loops, and the rest of Python that Triton does not have; random ones are in
`test_random_programs`."""

import warnings

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, text
from tilework.errors import BeyondTriton


@tilework.jit
def until_zero(out, values):
    """The condition is not evaluated again after the `break`: the address behind the array is never read."""
    at = 0
    while tl.load(values + at) != 0:
        tl.store(out, at)
        at += 1
        if at == 4:
            break
    else:
        tl.store(out + 1, 7)


def test_conditions_are_not_evaluated_after_a_break() -> None:
    assert result(until_zero, np.array([3, 2, 1, 5], np.int32), size=2) == [3, -1]
    assert result(until_zero, np.array([3, 0, 1, 5], np.int32), size=2) == [0, 7]


@tilework.jit
def first_negative(values, n):
    for i in range(n):
        for j in tl.static_range(2):
            if tl.load(values + 2 * i + j) < 0:
                return tl.full((4,), 2 * i + j, tl.int32), True
    return tl.full((4,), -5, tl.int32), False


@tilework.jit
def calls_it(out, values, n):
    for repeat in range(2):
        where, is_there = first_negative(values, n)
        if not is_there:
            continue
        tl.store(out + 4 * repeat + tl.arange(0, 4), where + repeat)


def test_functions_return_tiles_from_nested_loops() -> None:
    values = np.array([1, 2, 3, -4, 5, -6], np.int32)
    assert result(calls_it, values, 3, size=8) == [3] * 4 + [4] * 4
    assert result(calls_it, values, 1, size=8) == [-1] * 8


@tilework.jit
def breaks_two_loops(out, n):
    for i in range(n):
        for j in range(n):
            if i + j > 4:
                break
        else:
            continue
        tl.store(out, i)
        break
    else:
        tl.store(out, 100)


def test_what_follows_an_else_that_leaves_is_for_loops_that_were_broken() -> None:
    assert result(breaks_two_loops, 5) == [1]
    assert result(breaks_two_loops, 2) == [100]


@tilework.jit
def skips(out, n):
    for i in range(n):
        if i & 1:
            continue
        tl.store(out + i, i)


@tilework.jit
def ends(out, n):
    for i in range(n):
        if i == 3:
            break
        tl.store(out + i, i)


def test_loops_are_counted_as_long_as_nothing_ends_them() -> None:
    assert result(skips, 5, size=6) == [0, -1, 2, -1, 4, -1]
    assert result(ends, 5, size=5) == [0, 1, 2, -1, -1]
    assert "scf.for" in text(skips, np.zeros(8, np.int32), 5)
    assert "scf.while" in text(ends, np.zeros(8, np.int32), 5)


@tilework.jit
def breaks_in_an_else(out, n):
    for i in range(4):
        for j in range(n):
            if j == 3:
                break
        else:
            tl.store(out, i + 10)
            if i == 1:
                break
    else:
        tl.store(out, 99)
    for i in tl.static_range(3):
        for _ in range(n):
            tl.store(out + 1, i)
        else:
            if n > 3:
                break


def test_a_break_in_an_else_belongs_to_the_loop_around() -> None:
    assert result(breaks_in_an_else, 2, size=2) == [11, 2]
    assert result(breaks_in_an_else, 4, size=2) == [99, 0]


@tilework.jit
def matches(out, MODE: tl.constexpr):
    first, *middle, last = (tl.program_id(0) + 1, 2, 3, 4)
    match MODE:
        case "sum" | "total":
            made = first + last
        case (rows, columns) if rows > columns:
            made = rows * 10 + columns
        case [head, *_]:
            made = middle[head]
        case None:
            made = first - 1
        case other:
            made = other * 2
    low = high = made
    tl.store(out, low)
    pairs = [a * b for a, b in ((1, 2), (3, 4)) for _ in range(2) if a < b <= 4]
    tl.store(out + 1, high + len(pairs) * 100)


@pytest.mark.parametrize(("mode", "wanted"), [("total", 5), ((7, 3), 73), ((1, 3), 3), (None, 0), (21, 42)])
def test_match_and_unpacking(mode: object, wanted: int) -> None:
    assert result(matches, MODE=mode, size=2) == [wanted, wanted + 400]


@tilework.jit
def matches_a_value(out, n):
    match n:
        case 1:
            tl.store(out, 1)


@tilework.jit
def never_ends(out, n):
    while True:
        n += 1


@tilework.jit
def changes_its_type(out, n):
    x = 1
    for _ in range(n):
        if n > 3:
            x = 1.5
            break
    tl.store(out, x)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (matches_a_value, "`match` needs a compile-time value, this one is int32"),
        (never_ends, "this loop never ends"),
        (changes_its_type, "initial value for `x` is of type int32, but the then block redefines it as fp32"),
    ],
)
def test_refused(kernel: tilework.JITFunction, words: str) -> None:
    assert words in message_of(error(kernel, np.zeros(1, np.int32), 3, options={"beyond_triton": "allow"}))


@tilework.jit
def odd_sizes(x):
    i = tl.arange(0, 6)
    z = tl.zeros((6, 4), tl.int32)
    tl.store(x + i, tl.sum(z, 1) + i)


def test_programs_for_triton_are_reported() -> None:
    """A warning at the line, or an error in Triton's words."""
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        text(ends, np.zeros(8, np.int32), 5, options={"beyond_triton": "warn"})
    (warning,) = reported
    assert warning.category is BeyondTriton and warning.filename == __file__
    assert "break" in ends.src.splitlines()[warning.lineno - ends.where.first_line]
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        text(odd_sizes, np.zeros(8, np.int32), options={"beyond_triton": "warn"})
    lines = [odd_sizes.src.splitlines()[warning.lineno - odd_sizes.where.first_line] for warning in reported]
    assert [line.split("=")[0].strip() for line in lines] == ["i", "z"]
    assert "Triton refuses this: Shape element 0 must be a power of 2" in str(reported[1].message)
    assert "kernels have no `break`" in message_of(error(ends, np.zeros(8, np.int32), 5))
