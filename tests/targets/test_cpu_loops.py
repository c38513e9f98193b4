"""Loops whose step is known only at run time: one that would never end is an error of the launch."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.oracles.interpreter import InterpretedFunction


@tilework.jit
def count(out, start, end, step):
    n = 0
    for _ in range(start, end, step):
        n += 1
    tl.store(out + tl.program_id(0), n)


@tilework.jit(noinline=True)
def count_apart(end, step):
    n = 0
    for _ in range(0, end, step):
        n += 1
    return n


@tilework.jit
def nested(out, end, step):
    n = 0
    for i in range(end):
        if i > 1:
            for _ in tl.range(0, end, step, loop_unroll_factor=2):
                n += 1
        n += count_apart(end, step)
    tl.store(out, n)


@pytest.fixture(autouse=True)
def machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_DEVICE", "native")


@pytest.mark.parametrize("step", [0, -1, -(2**40)])
def test_a_step_that_is_not_positive(step: int) -> None:
    out = np.zeros(2, np.int32)
    with pytest.raises(RuntimeError, match=r"test_cpu_loops\.py:16.*the step of a loop must be positive.*kernel count"):
        count[(2,)](out, 2, 20, step)
    count[(2,)](out, 2, 20, 5)
    assert out.tolist() == [4, 4]


@pytest.mark.parametrize("step", [0, -2])
def test_inside_of_branches_and_calls(step: int) -> None:
    out = np.zeros(1, np.int32)
    with pytest.raises(RuntimeError, match="the step of a loop must be positive"):
        nested[(1,)](out, 5, step)
    nested[(1,)](out, 5, 2)
    assert out[0] == 3 * 3 + 5 * 3


@pytest.mark.parametrize("step", [0, -1])
def test_the_interpreter_says_the_same(step: int) -> None:
    function: Any = InterpretedFunction(count.fn)
    with pytest.raises(Exception, match="the step of a loop must be positive"):
        function[(1,)](np.zeros(1, np.int32), 2, 20, step)


@tilework.jit
def trips(end, step):
    n = 0
    for _ in range(0, end, step):
        n += 1
    return n


@tilework.jit
def mapped(ends, steps, out):
    i = tl.arange(0, 16)
    tl.store(out + i, tl.map_elementwise(trips, tl.load(ends + i), tl.load(steps + i)))


def test_in_a_function_of_single_elements() -> None:
    ends, steps, out = np.arange(16, dtype=np.int32), np.full(16, 2, np.int32), np.zeros(16, np.int32)
    mapped[(1,)](ends, steps, out)
    assert out.tolist() == [len(range(0, end, 2)) for end in range(16)]
    steps[11] = 0
    with pytest.raises(RuntimeError, match="the step of a loop must be positive"):
        mapped[(1,)](ends, steps, out)


@tilework.jit
def count_to(out, START: tl.constexpr, END: tl.constexpr, STEP: tl.constexpr):
    n = 0
    for _ in range(START, END, STEP):
        n += 1
    tl.store(out, n)


@pytest.mark.parametrize("start, end, step", [(2**31 - 8, 2**31 - 1, 4), (0, 2**31 - 1, 2**30)])
def test_a_short_loop_up_to_the_largest_integer_ends(start: int, end: int, step: int) -> None:
    out = np.zeros(1, "i4")
    count_to[(1,)](out, START=start, END=end, STEP=step)
    assert out[0] == len(range(start, end, step))
