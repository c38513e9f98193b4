"""Subscripts of blocks, read and assigned: NumPy's meaning, on every device."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework
import tilework.language as tl
from tests.differential.devices import FLOATS, INTS
from tests.differential.harness import agree, sample
from tests.differential.settings import few_examples, seeds, shapes
from tests.frontend.run import error, message_of
from tilework.language.function import jit

CODES = st.sampled_from(["u1", *INTS, *FLOATS])


@jit
def part_of(x, INDEX: tl.constexpr):
    return x[INDEX]


@jit
def with_part(x, value, INDEX: tl.constexpr):
    x[INDEX] = value
    return x


@jit
def at_run_time(x, offsets, INDEX: tl.constexpr):
    i = tl.max(offsets, 0)
    x[..., i] += x[i]
    x[-1] = tl.sum(x[:, i] != 0, 0).to(x.dtype)
    return x[i], x[-i - 1], x[:, i][INDEX]


@jit
def in_loops(x, counts):
    """Parts that are assigned in loops only, which must carry the whole tile."""
    n = tl.max(counts, 0)
    for j in range(n):
        x[j] += 1
    j = 0
    while j < n:
        if j > 1:
            x[j] = x[j - 1] + 1
        j += 1
    for j in range(n):
        for k in range(n):
            x[k] += j
        x[j], x[7 - j], j = x[7 - j], x[j], 5
    return x


@st.composite
def subscripts(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Items that take some of every axis, with new axes and an ellipsis among them."""
    items: list[Any] = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        if draw(st.booleans()):
            items.append(draw(st.integers(-size, size - 1)))
            continue
        count = draw(st.integers(1, size))
        step = draw(st.sampled_from([s for s in (1, 2, 3, -1, -2) if abs(s) * (count - 1) < size]))
        reach = abs(step) * (count - 1)
        start = draw(st.integers(0, size - 1 - reach)) + (reach if step < 0 else 0)
        end = start + step * count
        items.append(slice(start, end if end >= 0 else None, step))
    if len(items) < len(shape) and draw(st.booleans()):
        items.append(...)
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


@few_examples
@given(CODES, shapes(1, 3), seeds, st.data())
def test_parts(code: str, shape: tuple[int, ...], seed: int, data: Any) -> None:
    x, index = sample(code, shape, seed), data.draw(subscripts(shape))
    agree(part_of, x, params=(index,))
    part = np.zeros(shape, np.int8)[index].shape
    narrow = tuple(1 if seed >> axis & 1 else size for axis, size in enumerate(part))[
        seed % 3 if len(part) > 2 else 0 :
    ]
    agree(with_part, x, sample("i8", narrow or (1,), seed), params=(index,))


def test_a_part_without_elements_takes_any_number() -> None:
    agree(with_part, sample("fp32", (4, 4), 1), sample("i8", (1,), 1), params=((slice(2, 2), None),))


@pytest.mark.parametrize("position", [0, 3])
def test_places_of_run_time(position: int) -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4) - 5
    agree(at_run_time, x, np.array([0, position], np.int32), params=((slice(1, 3), None),))


@pytest.mark.parametrize("count", [0, 3])
def test_parts_assigned_in_loops(count: int) -> None:
    x = np.arange(8, dtype=np.int32) * 10
    agree(in_loops, x, np.array([0, count], np.int32))
    expected = x.copy()
    expected[:count] += 1
    for j in range(2, count):
        expected[j] = expected[j - 1] + 1
    for j in range(count):
        expected[:count] += j
        expected[[j, 7 - j]] = expected[[7 - j, j]]
    out = np.empty_like(x)
    loops_kernel[(1,)](x, out, count)
    assert np.array_equal(out, expected)


@tilework.jit
def loops_kernel(x_ptr, out_ptr, count):
    i = tl.arange(0, 8)
    tl.store(out_ptr + i, in_loops(tl.load(x_ptr + i), tl.full((2,), count, tl.int32)))


REFUSED = {
    "x[4]": "index 4 is outside axis 0, which has 4 elements",
    "x[0, 0]": "unsupported tensor index: too many indices, 2 for a block of shape [4]",
    "x[1:n]": "bounds of a slice must be known at compile time",
    "x[2:2]": "2:2 takes nothing of axis 0",
    "x[x]": "unsupported tensor index: int32[4]",
    "x[..., ...]": "only one `...`",
    "x[1.5]": "unsupported tensor index: 1.5",
}


@tilework.jit
def refused(out, n, FORM: tl.constexpr):
    x = tl.arange(0, 4)
    if FORM == "x[4]":
        x = x[4]
    elif FORM == "x[0, 0]":
        x = x[0, 0]
    elif FORM == "x[1:n]":
        x = x[1:n]
    elif FORM == "x[2:2]":
        x = x[2:2]
    elif FORM == "x[x]":
        x = x[x]
    elif FORM == "x[..., ...]":
        x = x[..., ...]
    else:
        x = x[1.5]


@pytest.mark.parametrize("form", REFUSED)
def test_refused(form: str) -> None:
    problem = error(refused, np.zeros(4, np.int32), 3, FORM=form, options={"beyond_triton": "allow"})
    assert REFUSED[form] in message_of(problem)
