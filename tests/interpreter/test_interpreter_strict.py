"""With TILEWORK_STRICT_TRITON=1 the interpreter refuses what the compiler refuses, in the same words; without it both
take it."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, text, ttir
from tilework.errors import InterpreterError
from tilework.oracles.interpreter import InterpretedFunction


@tilework.jit
def breaks(out, n):
    for i in range(n):
        if i == 2:
            break


@tilework.jit
def continues(out, n):
    for i in range(n):
        if i == 2:
            continue
        tl.store(out, i)


@tilework.jit
def returns(out, n):
    for _ in range(n):
        if n == 3:
            return


@tilework.jit
def forever(out, n):
    while True:
        return


@tilework.jit
def otherwise(out, n):
    for i in range(n):
        tl.store(out, i)
    else:
        tl.store(out, n)


@tilework.jit
def waits_otherwise(out, n):
    while n > 0:
        n -= 1
    else:
        tl.store(out, n)


@tilework.jit
def chained(out, n):
    tl.store(out, 0 < n < 5)


@tilework.jit
def twice(out, n):
    a = b = n
    tl.store(out, a + b)


@tilework.jit
def starred(out, n):
    a, *b = (n, n, n)
    tl.store(out, a + b[0])


@tilework.jit
def listed(out, n):
    [a, b] = (n, n)
    tl.store(out, a + b)


@tilework.jit
def matched(out, n, KIND: tl.constexpr = 3):  # pyright: ignore[reportArgumentType]
    match KIND:
        case 3:
            tl.store(out, n)


@tilework.jit
def mapped(out, n, KIND: tl.constexpr = 3):  # pyright: ignore[reportArgumentType]
    match KIND:
        case {"x": _}:
            tl.store(out, n)


@tilework.jit
def ranged(out, n):
    values = [2 * i for i in tl.static_range(3)]
    tl.store(out, values[1])


@tilework.jit
def nested(out, n):
    values = [i + j for i in (1, 2) for j in (3, 4)]
    tl.store(out, values[1])


@tilework.jit
def indexed(out, n):
    tl.store(out, tl.arange(0, 4)[2])


@tilework.jit
def changed(out, n):
    x = tl.arange(0, 4)
    x[0] = n  # pyright: ignore[reportIndexIssue]
    tl.store(out + tl.arange(0, 4), x)


@tilework.jit
def increased(out, n):
    x = tl.arange(0, 4)
    x[0] += n  # pyright: ignore[reportIndexIssue]
    tl.store(out + tl.arange(0, 4), x)


@tilework.jit
def odd_tile(out, n):
    tl.store(out + tl.arange(0, 3), n)


@tilework.jit
def declared(out, n):
    size: tl.constexpr = n + 1
    tl.store(out, size)


@tilework.jit
def declared_later(out, n):
    for i in range(2):
        size: tl.constexpr = n + 1
        if i == 1:
            tl.store(out, 2 if size > 3 else n)


@tilework.jit
def plain(out, n):
    x = tl.arange(0, 4)[:, None]
    declared: tl.constexpr = n  # Triton refuses only some uses of a run-time value
    x += 0 * x * declared + 0 * declared.to(tl.int32)  # pyright: ignore[reportAttributeAccessIssue]
    if n > 5:
        return
    for i in tl.static_range(2):
        if n == 9:
            return
        x += i
    tl.store(out + x, max(n, 2))


BEYOND = [breaks, continues, returns, forever, otherwise, waits_otherwise, chained, twice, starred, listed, matched,
          ranged, nested,
          indexed, changed, increased, odd_tile, declared, declared_later]  # fmt: skip


def interpreted(kernel: Any) -> None:
    InterpretedFunction(kernel.fn)[(1,)](np.zeros(8, np.int32), 3)


@pytest.mark.parametrize("kernel", BEYOND, ids=lambda kernel: kernel.__name__)
def test_the_words_are_those_of_the_compiler(kernel: Any) -> None:
    interpreted(kernel)
    with tilework.knobs.language.scope():
        tilework.knobs.language.strict_triton = True
        with pytest.raises(InterpreterError) as caught:
            interpreted(kernel)
    words = message_of(error(kernel, np.zeros(8, np.int32), 3)).split("\n")[0]
    assert words in str(caught.value)


def test_what_neither_has_is_refused_by_both() -> None:
    words = message_of(error(mapped, np.zeros(8, np.int32), 3, options={"beyond_triton": "allow"}))
    with pytest.raises(InterpreterError) as caught:
        interpreted(mapped)
    assert words in str(caught.value)


def test_what_triton_has_is_taken() -> None:
    with tilework.knobs.language.scope():
        tilework.knobs.language.strict_triton = True
        interpreted(plain)
    ttir(plain, np.zeros(8, np.int32), 3, options={"beyond_triton": "error"})


@tilework.jit
def asks(out, n, KIND: tl.constexpr = 3):  # pyright: ignore[reportArgumentType]
    tl.store(out, 2 if isinstance(KIND, tl.constexpr) else 1)


@pytest.mark.parametrize("is_strict", [False, True])
def test_isinstance_of_constexprs(is_strict: bool) -> None:
    out = np.zeros(1, np.int32)
    compiled = text(asks, out, 3, options={"beyond_triton": "error" if is_strict else "allow"})
    with tilework.knobs.language.scope():
        tilework.knobs.language.strict_triton = is_strict
        InterpretedFunction(asks.fn)[(1,)](out, 3)
    assert out[0] == (1 if is_strict else 2)
    assert f"arith.constant {out[0]} : i32" in compiled


def test_isinstance_of_constexprs_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="always False in Triton"):
        ttir(asks, np.zeros(1, np.int32), 3, options={"beyond_triton": "warn"})
