"""Control flow, calls, tuples, aggregates, the program model and hints."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import INTS
from tests.differential.harness import agree, launch, sample
from tests.differential.settings import few_examples, seeds
from tilework.language.core import _aggregate as aggregate
from tilework.language.function import constexpr_function, jit

GLOBAL = tl.constexpr(5)
HALF = tl.constexpr(0.5)


@jit
def loops(x, n: tl.constexpr):
    total = tl.zeros([4], tl.int32)
    for i in range(n):
        total += i
    for j in tl.range(10, 0, -3):
        total = total * 2 + j
    for k in tl.static_range(3):
        total += k * x.to(tl.int32)
    count = 0
    while count < 7:
        count += 2
        total -= count
    for i in range(2, 9, 3):
        for j in range(i):
            total ^= j
    return total, count


@jit
def runtime_bounds(x):
    n = tl.max(x, 0) & 7
    total = 0
    for i in range(n):
        total += i * i
    for i in range(n, 0, -1):
        total += i
    wide = n.to(tl.int64)
    result = wide
    for i in range(wide):
        result += i
    while tl.condition(total > 3):
        total = total // 2
    return total, result


@few_examples
@given(seeds)
def test_loops(seed: int) -> None:
    agree(loops, sample("i32", (4,), seed), params=(seed % 6,))
    agree(runtime_bounds, sample("i32", (4,), seed))


@jit
def indices_after_loops(x, STEP: tl.constexpr):
    """The variable of a `for` loop has the value of its last round, as in Python."""
    n = tl.max(x, 0)
    seen = 0
    for i in range(1, n, STEP):
        seen += i
    whole = i
    i = 77
    for i in range(1, n, STEP):
        if i * 2 > n:
            break
    left = i
    for i in range(n, 0, -STEP):
        i += 10
    down = i
    for j in range(3):
        seen = seen * 100 + i
        for i in range(j, j + n, STEP):
            seen += i
        seen += i
    i = 50
    while i < 60:
        first = i
        for i in range(first, first + n, STEP):
            seen += i
        i += 1
    for i in range(9, 0):
        seen += i
    return whole, left, down, seen, i, indices_in_branches(n)


@jit
def indices_in_branches(n):
    i, total = 5, n
    for each in range(n):
        match (1, each):  # a pattern binds names, too
            case (1, i):
                total += i
    total *= i
    i = 5
    if n > 3:
        for i in range(n):
            total += i
            for i in range(2 * n):
                total += i
            total += 10 * i
    else:
        for i in range(n):
            if i == 1:
                continue
        else:
            i += 20
    return i + total


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("end", [2, 3, 6, 9])
def test_indices_after_loops(end: int, step: int) -> None:
    x = np.array([end, 0], np.int32)
    whole, left, *_ = agree(indices_after_loops, x, params=(step,))
    rounds = list(range(1, end, step))
    assert whole == rounds[-1] and left == next((i for i in rounds if i * 2 > end), rounds[-1])


@jit
def branches(x, FLAG: tl.constexpr, NOTHING: tl.constexpr):
    s = tl.sum(x, 0)
    if FLAG:
        a = s + 1
    else:
        a = x
    if s > 0:
        b = s * 2
        c = 1.5
    elif s == 0:
        b = s
        c = 0.5
    else:
        b = -s
        c = 2.5
    if NOTHING is None:
        b += 3
    d = s if s > 3 else 7
    e = 2 if FLAG else 2.5
    if s:
        b += 1
    if (s % 2 == 0 and s > 1) or FLAG:
        b += 100
    return a, b, c, d, x * e


@few_examples
@given(st.booleans(), st.sampled_from([None, 4]), seeds)
def test_branches(flag: bool, nothing: int | None, seed: int) -> None:
    agree(branches, sample("i32", (4,), seed) % 5, params=(flag, nothing))


@jit
def early(x):
    s = tl.sum(x, 0)
    if s > 0:
        return s
    return -s


@jit
def default_argument(x, factor=3, power: tl.constexpr = 2):  # pyright: ignore[reportArgumentType]
    for _ in tl.static_range(power):
        x = x * factor
    return x


@jit
def recursive(x):
    if x.shape[0] == 1:
        return tl.sum(x, 0)
    else:
        left, right = tl.split(tl.reshape(x, [x.shape[0] // 2, 2]))
        return recursive(left) - recursive(right)


@jit
def apply_twice(fn, x):
    return fn(fn(x))


@jit
def plus_one(x):
    return x + 1


@jit
def pair(x):
    return x, 2, (x + 1, 3.5)


@constexpr_function
def double_it(n):
    return 2 * n


@constexpr_function
def pick(flag):
    return plus_one if flag else early


@jit(noinline=True)
def outlined(x, p):
    return x * p


@jit
def calls(x):
    a, b, (c, d) = pair(x)
    return (
        early(x),
        default_argument(x),
        default_argument(x, power=1),
        recursive(x),
        apply_twice(plus_one, x),
        a + b + c,
        x * d,
        outlined(tl.sum(x, 0), 3),
    )


@jit
def compile_time(x):
    n: tl.constexpr = double_it(GLOBAL) + math.gcd(12, 18)
    m: tl.constexpr = len(x.shape) + int(2.7) + min(3, 4) + max(1, 2)  # pyright: ignore[reportAssignmentType]
    y = x * n + m
    y += GLOBAL
    z = min(tl.sum(x, 0), 3) + max(tl.sum(x, 0), -3)
    w = x * HALF
    t = (1, 2.5, None)
    u = t + (x,)
    v = [item + 1 for item in (1, 2, 3) if item != 2]
    return (
        y,
        z,
        w,
        t[1] * x,
        u[3],
        v[0] + v[1],
        tl.cdiv(n, 3),
        pick(True)(x),
        x.dtype == tl.int32,
        isinstance(x, tl.tensor),
    )


@few_examples
@given(seeds)
def test_calls_and_compile_time_values(seed: int) -> None:
    small = sample("i32", (4,), seed) % 100
    agree(calls, small)
    agree(compile_time, small)


class Pair(NamedTuple):
    first: Any
    second: Any


@jit
def named(x):
    p = Pair(x, 3)
    q = Pair(second=x + 1, first=p.second)
    for _ in range(3):
        p = Pair(p.first + 1, p.second * 2)
    return p.first, p.second, q.first, q[1], len(q)


@aggregate
class Counter:
    value: tl.tensor
    step: tl.constexpr

    def __init__(self, value, step):
        self.value = value
        self.step = tl.constexpr(step)

    @jit
    def advanced(self, times):
        return Counter(self.value + self.step * times, self.step)

    @jit
    def __add__(self, other):
        return tl.aggregate_replace(self, value=self.value + other.value)

    @jit
    def __getitem__(self, index):
        return self.value + index

    @constexpr_function
    def double_step(self):
        return 2 * self.step.value

    def bump(self, _semantic: Any = None):
        self.value = _semantic.add(self.value, self.step.value, True)


@jit
def aggregates(x):
    a = Counter(x, 3)
    b = a.advanced(2)
    c = a + b
    for _ in range(2):
        c = c.advanced(1)
    d = Counter(x, 1)
    d.bump()
    return a.value, b.value, c.value, c[4], x * a.step, x + a.double_step(), d.value


@few_examples
@given(st.sampled_from([code for code in INTS if code not in ("i8", "u8")]), seeds)
def test_named_tuples_and_aggregates(code: str, seed: int) -> None:
    agree(named, sample(code, (4,), seed))
    agree(aggregates, sample(code, (4,), seed))


@jit
def grid_kernel(out, n):
    x = tl.program_id(0)
    y = tl.program_id(1)
    z = tl.program_id(axis=2)
    index = (x * tl.num_programs(1) + y) * tl.num_programs(2) + z
    tl.store(out + index, index * n)
    tl.debug_barrier()


def test_program_model() -> None:
    result = launch(grid_kernel, {"out": np.zeros(24, np.int32), "n": 3}, {}, (2, 3, 4))
    assert result["out"].tolist() == [3 * i for i in range(24)]


@jit
def hints(x, FLAG: tl.constexpr):
    y = tl.multiple_of(x, 1)
    y = tl.max_contiguous(y, 1)
    y = tl.max_constancy(y, 1)
    s = tl.sum(y, 0)
    tl.assume(s == s)
    tl.static_assert(FLAG, "never")
    tl.device_assert(s == s, "never")
    assert s == s, "never"
    tl.static_print("shape", x.shape)
    tl.device_print("sum", s)
    tl.debug_barrier()
    return y + s


def test_hints() -> None:
    agree(hints, sample("i32", (4,), 1), params=(True,))


@jit
def scalars(x, out, i, j, f, flag, one, nothing, big, BLOCK: tl.constexpr):
    a = tl.load(x + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), a * i + j * one)
    tl.store(out + BLOCK, f * 2)
    tl.store(out + BLOCK + 1, flag)
    tl.store(out + BLOCK + 2, one / 2 + i)
    if nothing is None:
        tl.store(out + BLOCK + 3, big // 1000)
    if one == 1:
        tl.store(out + BLOCK + 4, (a * one).dtype == a.dtype)


@pytest.mark.parametrize("code", ["u8", "i32", "fp16", "bf16", "fp32"])
def test_scalar_arguments(code: str) -> None:
    """An integer 1 is a compile-time value, so it does not widen a narrow block; other integers are int32."""
    args = {"x": sample(code, (8,), 1, special=False), "out": np.zeros(16, np.float64), "i": 3, "j": -7, "f": 0.3}
    args |= {"flag": True, "one": 1, "nothing": None, "big": 2**40}
    launch(scalars, args, {"BLOCK": 8}, rtol=1e-3 if code == "fp16" else 1e-6)  # `a * i + j` may be fused
