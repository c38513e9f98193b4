"""`return`: early exits of kernels and functions, types, dead code, undefined results."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import after_passes, error, innermost, result, text, ttir
from tilework import knobs
from tilework.errors import RETURNING
from tilework.frontend import returns
from tilework.ir.printer import print_module


@tilework.jit
def early(out, n):
    tl.store(out, 1)
    if n > 10:
        if n > 20:
            return
        tl.store(out + 1, 2)
        if n > 15:
            tl.store(out + 2, 3)
            return
        else:
            tl.store(out + 2, 4)
    elif n == 5:
        return
    x = n
    if n == 7:
        x = 70
    tl.store(out + 3, x)


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (21, [1, -1, -1, -1]),
        (16, [1, 2, 3, -1]),
        (12, [1, 2, 4, 12]),
        (5, [1, -1, -1, -1]),
        (7, [1, -1, -1, 70]),
        (8, [1, -1, -1, 8]),
    ],
)
def test_early_return_of_a_kernel(n: int, expected: list[int]) -> None:
    assert result(early, n, size=4) == expected


@tilework.jit
def sign(x):
    if x > 0:
        if x > 100:
            return 2
        return 1
    else:
        if x < 0:
            return -1
    return 0


@tilework.jit
def signs(out, n):
    for i in range(n):
        tl.store(out + i, sign(i * 60 - 60))
    k = 0
    while k < 2:
        tl.store(out + n + k, sign(k - 1))
        k += 1
    if n > 2:
        tl.store(out + n + 2, sign(n))


def test_early_return_of_a_function_called_in_loops() -> None:
    assert result(signs, 4, size=7) == [-1, 0, 1, 2, -1, 0, 1]


def test_a_function_with_branches_stays_a_call_in_a_loop() -> None:
    assert "tt.call" in print_module(after_passes(ttir(signs, np.zeros(1), 4)))


@tilework.jit
def guard(p, n):
    if n < 0:
        return
    tl.store(p, n)


@tilework.jit
def guarded(out, n):
    i = 0
    while i < n:
        if i % 2 == 0:
            guard(out + i, i)
        i += 1


def test_bare_returns_in_functions_called_in_while() -> None:
    assert result(guarded, 5, size=5) == [0, -1, 2, -1, 4]


@tilework.jit
def value_ignored(out, n):
    tl.store(out, n)
    return n


def test_the_value_of_a_kernel_is_ignored() -> None:
    assert result(value_ignored, 3) == [3]


@tilework.jit
def two_returns(x):
    return x + 1
    return (x, x, "never seen")


@tilework.jit
def by_constant(x, FLAG: tl.constexpr):
    if FLAG:
        return x + 1
    else:
        return x, 2.5


@tilework.jit
def cut(x, FLAG: tl.constexpr):
    if FLAG:
        return x
    return x + 1


@tilework.jit
def in_unrolled_loop(x):
    for i in tl.static_range(3):
        return x + i


@tilework.jit
def static_returns(out, n):
    tl.store(out, two_returns(n))
    tl.store(out + 1, by_constant(n, True))
    pair = by_constant(n, False)
    tl.store(out + 2, pair[0] + (pair[1] * 2).to(tl.int32))
    tl.store(out + 3, cut(n, True))
    tl.store(out + 4, cut(n, False))
    tl.store(out + 5, in_unrolled_loop(n))


def test_returns_decided_at_compile_time() -> None:
    assert result(static_returns, 4, size=6) == [5, 5, 9, 4, 5, 4]


@tilework.jit
def mixed(x, FLAG: tl.constexpr):
    if FLAG:
        if x > 3:
            return x
    return x * 2


@tilework.jit
def mixed_returns(out, n):
    tl.store(out, mixed(n, True))
    tl.store(out + 1, mixed(n, False))


def test_constant_and_run_time_conditions_together() -> None:
    assert result(mixed_returns, 4, size=2) == [4, 8]
    assert result(mixed_returns, 3, size=2) == [6, 6]


@tilework.jit
def maybe(x):
    if x > 3:
        return x


@tilework.jit
def undefined_result(out, n):
    tl.store(out, maybe(n))


def test_falling_off_the_end_gives_poison() -> None:
    assert result(undefined_result, 4) == [4]
    assert "ub.poison : i32" in text(undefined_result, np.zeros(1), 4)


@tilework.jit
def nothing(p):
    return None


@tilework.jit
def nothing_at_all(p):
    return nothing(p)


@tilework.jit
def calls_nothing(out, n):
    x = nothing(out)
    nothing_at_all(out)
    if x is None:
        tl.store(out, n)


def test_return_none_is_a_bare_return() -> None:
    assert result(calls_nothing, 3) == [3]


@tilework.jit
def decays():
    return 1, None, (2.0, True)


@tilework.jit
def decayed(out):
    a, b, (c, d) = decays()
    tl.static_assert(a.dtype == tl.int32)
    tl.static_assert(b is None)
    tl.static_assert(c.dtype == tl.float32)
    tl.static_assert(d.dtype == tl.int1)
    tl.store(out, a + c.to(tl.int32) + d)


def test_numbers_decay_when_returned() -> None:
    assert result(decayed) == [4]


@tilework.jit
def two_types(x):
    if x > 3:
        return 1
    return 2.0


@tilework.jit
def value_or_nothing(x):
    if x > 3:
        return 1
    return


@tilework.jit
def returns_a_string(x):
    return "abc"


@tilework.jit
def calls(out, n, F: tl.constexpr):
    tl.store(out, F(n))


@pytest.mark.parametrize(
    ("function", "message", "line"),
    [(two_types, "Inconsistent return types: int32 and fp32", 4),
     (value_or_nothing, "Inconsistent return types: int32 and nothing", 4), (returns_a_string, "abc", 2)],
)  # fmt: skip
def test_refused_by_triton_3_6(function, message: str, line: int) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        problem = error(calls, np.zeros(1), 3, F=function)
    assert str(problem).startswith("at 2:18:")
    inner = innermost(problem)
    assert message in str(inner) and str(inner).startswith(f"at {line}:4:")


@pytest.mark.parametrize(
    ("function", "message"),
    [(two_types, "Return type mismatch: int32 and fp32. Note all return types were: [constexpr_type[1],"
                 " constexpr_type[2.0]]"),
     (value_or_nothing, "cannot convert None of type <class 'NoneType'> to tensor")],
)  # fmt: skip
def test_refused_at_the_first_line(function, message: str) -> None:
    problem = error(calls, np.zeros(1), 3, F=function)
    assert str(problem).startswith("at 2:18:")
    inner = innermost(problem)
    assert message in str(inner).replace("\\'", "'") and str(inner).startswith("at 1:0:")


@tilework.jit
def stores(out):
    tl.store(out, 1)


@pytest.mark.parametrize("interpret", [False, True])
def test_a_kernel_that_returns_a_value_warns_once_at_its_line(
    interpret: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))  # what is loaded from a cache warns of nothing

    def returning(out, N: tl.constexpr):
        if N < 4:
            return tl.load(out) + N
        return stores(out)

    def returning_nothing(out, N: tl.constexpr):
        if N > 4:
            return stores(out)
        return None

    out, line = np.zeros(1, np.int32), returning.__code__.co_firstlineno + 2
    kernel, silent = (tilework.jit(function, interpret=interpret) for function in (returning, returning_nothing))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for N in (1, 8):
            silent[(2,)](out, N)
        kernel[(2,)](out, 8)
    RETURNING.discard((__file__, line))  # which the other case has warned of
    with pytest.warns(UserWarning, match="returning returns a value, which its launches drop") as seen:
        for N in (1, 2, 1):
            kernel[(2,)](out, N)
    assert [(one.filename, one.lineno) for one in seen] == [(__file__, line)]


@tilework.jit
def twice(x):
    return x * 2


@tilework.jit
def calls_twice(out):
    tl.store(out, twice(tl.load(out)))


def test_returns_are_looked_for_only_where_some_are_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walking the whole tree of every function would be a twentieth of a small compilation."""
    monkeypatch.setattr(returns, "returns_in", lambda tree: pytest.fail("a function was searched for returns"))
    assert "tt.call" in print_module(ttir(calls_twice, np.zeros(1)))
