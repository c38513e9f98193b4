"""Loops: bounds, what is carried, hints, and what is refused."""

# The kernels are odd on purpose.
# ruff: noqa: B007, B018, F821, F841
# pyright: reportAttributeAccessIssue=false, reportUndefinedVariable=false, reportUnusedExpression=false

import re

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, text, ttir

# -- for -------------------------------------------------------------------------------------------------------------


@tilework.jit
def ranges(out, lo, hi, step, STEP: tl.constexpr):
    at = out
    for i in range(lo, hi, step):
        tl.store(at, i)
        at += 1
    for i in range(hi, lo, STEP):
        tl.store(at, i)
        at += 1


def test_range_counts_up_and_down() -> None:
    for lo, hi, step, down in [(0, 10, 3, -4), (-5, 6, 2, -1), (4, 4, 1, -2), (0, 9, 3, -3)]:
        expected = [*range(lo, hi, step), *range(hi, lo, down)]
        assert result(ranges, lo, hi, step, size=40, STEP=down)[: len(expected)] == expected


@tilework.jit
def wide_index(out, lo):
    for i in range(lo, lo + 3):
        tl.store(out, i)
        out += 1


def test_the_index_has_the_type_of_the_bounds() -> None:
    base = 2**40
    assert result(wide_index, base, size=3, dtype=np.int64) == [base, base + 1, base + 2]


@tilework.jit
def unsigned_bounds(out, n: "u32"):
    count = 0
    for i in range(n, 4294967295):
        count += 1
        tl.static_assert(i.dtype == tl.uint32)
    tl.store(out, count)


def test_unsigned_bounds_are_compared_as_unsigned() -> None:
    out = np.zeros(1, np.int32)
    from tilework.frontend.generator import compile_to_ttir
    from tilework.oracles.evaluator import evaluate

    module = compile_to_ttir(unsigned_bounds, {"out": "*i32", "n": "u32"})
    evaluate(module, "unsigned_bounds", [out, 2**32 - 4])
    assert out.tolist() == [3]


@tilework.jit
def many_carried(out, n):
    a = 0
    b = 1
    c = 1.0
    t = (a, b)
    for i in range(n):
        for j in range(i):
            if (i + j) % 2 == 0:
                a += j
                t = (t[1], a)
            else:
                b, a = a + 1, b
        k = 0
        while k < i:
            c = c * 0.5
            k += 1
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, t[0])
    tl.store(out + 3, t[1])
    tl.store(out + 4, (c * 1024).to(tl.int32))


def test_many_carried_variables() -> None:
    for n in (0, 1, 4):
        a, b, c = 0, 1, 1.0
        t = (a, b)
        for i in range(n):
            for j in range(i):
                if (i + j) % 2 == 0:
                    a += j
                    t = (t[1], a)
                else:
                    b, a = a + 1, b
            k = 0
            while k < i:
                c = c * 0.5
                k += 1
        assert result(many_carried, n, size=5) == [a, b, *t, int(c * 1024)]


@tilework.jit
def index_rebound(out, n):
    total = 0
    for i in range(n):
        i = i * 10
        total += i
    tl.store(out, total)


def test_the_index_can_be_rebound() -> None:
    assert result(index_rebound, 4) == [60]
    assert "iter_args(%total" in text(index_rebound, np.zeros(1), 4)


@tilework.jit
def index_hides_a_variable(out, n):
    i = 2.5
    total = 0
    for i in range(n):
        i += 1
        total += i
    for j in range(n):
        for i in range(2):
            total += i
    tl.store(out, total)


def test_the_index_may_have_the_name_of_a_variable_of_another_type() -> None:
    assert result(index_hides_a_variable, 3) == [1 + 2 + 3 + 3]


@tilework.jit
def unchanged(out, n):
    x = n + 1
    y = 3
    for _ in range(n):
        x = x
        y = y + x
    while y < 100:
        x = x
        y = y + x
    tl.store(out, y)


def test_a_variable_that_does_not_change_is_not_carried() -> None:
    lines = text(unchanged, np.zeros(1), 3).splitlines()
    (loop,) = (line for line in lines if "scf.for" in line)
    (other,) = (line for line in lines if "scf.while" in line)
    assert loop.count("=") == 3 and "iter_args(%y" in loop
    assert "(i32) -> i32" in other
    y = 3 + 3 * 4
    while y < 100:
        y += 4
    assert result(unchanged, 3) == [y]


@tilework.jit
def empty_bodies(out, n):
    for _ in range(n):
        pass
    if n > 3:
        pass
    for _ in tl.static_range(3):
        ...
    for _ in tl.static_range(0):
        undefined_name
    tl.store(out, n)


def test_empty_bodies() -> None:
    assert result(empty_bodies, 4) == [4]


@tilework.jit
def unrolled(out, n):
    x = n
    for i in tl.static_range(5, -1, -2):
        x = tl.join(x, x)
        tl.store(out + i, i * 1)
    tl.static_assert(x.shape == [2, 2, 2])
    for i in tl.static_range(2):
        tl.store(out, i)
    tl.store(out + 2, i)


def test_static_range_unrolls_and_types_may_change() -> None:
    assert result(unrolled, 1, size=6) == [1, 1, 1, 3, -1, 5]


@tilework.jit
def unrolled_again(out, n):
    for k in tl.static_range(2):
        tl.store(out + k, k)
    for _ in range(n):
        for k in tl.static_range(3):
            tl.store(out + k, k + 10)


def test_an_unrolled_index_is_no_carried_constant() -> None:
    assert result(unrolled_again, 2, size=3) == [10, 11, 12]


@tilework.jit
def large_unroll(out, n):
    x = n
    for i in tl.static_range(1500):
        x += i
    tl.store(out, x)


def test_a_large_unroll() -> None:
    assert result(large_unroll, 1) == [1 + sum(range(1500))]


@tilework.jit
def hints(p, n):
    o = tl.arange(0, 64)
    fixed = n * 2
    for i in tl.range(0, n, num_stages=3, flatten=True, loop_unroll_factor=None, disable_licm=True):
        i = tl.multiple_of(i, 8)
        fixed = tl.multiple_of(fixed, 32)
        o = tl.max_contiguous(tl.multiple_of(o, 16), 16)
        tl.store(p + o + fixed, i)
        o += 16


def test_hints_of_loops_and_their_arguments() -> None:
    lines = text(hints, np.zeros(1), 3).splitlines()
    (attributes,) = (line.strip() for line in lines if line.strip().startswith("}") and "tt." in line)
    assert re.sub(r"#[^,]*", "#", attributes) == (
        "} {llvm.loop_annotation = #, tt.contiguity_arg1 = dense<16> : tensor<1xi32>,"
        " tt.divisibility_arg0 = dense<8> : tensor<1xi32>, tt.divisibility_arg1 = dense<16> : tensor<1xi32>,"
        " tt.flatten, tt.num_stages = 3 : i32}"
    )
    (fixed,) = (line for line in lines if "%fixed" in line and "muli %n" in line)
    assert "tt.divisibility = dense<32>" in fixed


def test_hints_that_are_none_are_absent() -> None:
    module = text(hints, np.zeros(1), 3)
    assert "loop_unroll_factor" not in module


# -- while -----------------------------------------------------------------------------------------------------------


@tilework.jit
def collatz(out, n):
    steps = 0
    peak = n
    while (n != 1) & (steps < 1000):
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        peak = tl.maximum(peak, n)
        steps += 1
    tl.store(out, steps)
    tl.store(out + 1, peak)


def test_while() -> None:
    assert result(collatz, 27, size=2) == [111, 9232]
    assert result(collatz, 2, size=2) == [1, 2]


@tilework.jit
def while_int(out, n):
    total = 0
    while n:
        total += n
        n -= 1
    tl.store(out, total)


def test_an_int_is_a_while_condition() -> None:
    assert result(while_int, 4) == [10]


@tilework.jit
def spin(out, lock, n):
    while tl.atomic_cas(lock, 0, 1) == 1:
        tl.atomic_xchg(lock, 0)
    while tl.condition(n > 0, disable_licm=True):
        n -= 1
    tl.store(out, tl.load(lock) + n)


def test_atomics_and_options_in_conditions() -> None:
    assert result(spin, np.ones(1, np.int32), 3) == [1]
    assert "llvm.loop_annotation" in text(spin, np.zeros(1, np.int32), np.zeros(1, np.int32), 3)


# -- pointers that are carried -----------------------------------------------------------------------------------------


@tilework.jit
def block_pointers(out, x, n):
    source = tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (2, 8), (1, 0))
    other = tl.make_block_ptr(x, (8, 8), (8, 1), (2, 0), (2, 8), (1, 0))
    total = tl.zeros((2, 8), tl.int32)
    for i in range(n):
        total += tl.load(source)
        if i == 1:
            source = other
        else:
            source = tl.advance(source, (2, 0))
    while n > 2:
        source = tl.advance(source, (0, 0))
        n -= 1
    tl.store(tl.make_block_ptr(out, (2, 8), (8, 1), (0, 0), (2, 8), (1, 0)), total)


def test_block_pointers_are_carried_and_merged() -> None:
    x = np.arange(64, dtype=np.int32)
    rows = x.reshape(4, 2, 8)
    assert result(block_pointers, x, 3, size=16) == (rows[0] + rows[1] + rows[1]).ravel().tolist()


@tilework.jit
def descriptors(out, x, n):
    even = tl.make_tensor_descriptor(x, [8, 4], [4, 1], [2, 4])
    odd = tl.make_tensor_descriptor(x + 16, [4, 4], [4, 1], [2, 4])
    target = tl.make_tensor_descriptor(out, [2, 4], [4, 1], [2, 4])
    total = tl.zeros((2, 4), tl.int32)
    current = even
    pair = (even, odd)
    for i in range(n):
        total += current.load([0, 0])
        if i % 2 == 0:
            current = odd
        else:
            current, _ = pair
        pair = (pair[0], current)
    target.store([0, 0], total)


def test_descriptors_are_carried_and_merged() -> None:
    x = np.arange(32, dtype=np.int32)
    even, odd = x[:8], x[16:24]
    assert result(descriptors, x, 3, size=8) == (even + odd + even).tolist()


# -- refused ---------------------------------------------------------------------------------------------------------


@tilework.jit
def for_else(p, n):
    for _ in range(n):
        pass
    else:
        tl.store(p, n)


@tilework.jit
def while_else(p, n):
    while n > 3:
        n -= 1
    else:
        tl.store(p, n)


@tilework.jit
def return_in_while(p, n):
    while n > 3:
        n -= 1
        if n == 5:
            return


@tilework.jit
def tuple_target(p, n):
    for i, j in range(n):  # pyright: ignore[reportGeneralTypeIssues]
        pass


@tilework.jit
def block_bound(p, n):
    for i in range(tl.arange(0, 4)):
        pass


@tilework.jit
def zero_step(p, n):
    for i in range(0, n, 0):
        pass


@tilework.jit
def keyword_of_range(p, n):
    for i in tl.range(n, stages=3):  # pyright: ignore[reportCallIssue]
        pass


@tilework.jit
def none_in_loop(p, n):
    x = None
    for i in range(n):
        x = i


@tilework.jit
def tuple_changes_type(p, n):
    t = (n, 1)
    for i in range(n):
        t = (n, 1.0)


@tilework.jit
def block_while(p, n):
    while tl.arange(0, 4) < n:
        n -= 1


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (for_else, "for ... else"),
        (while_else, "while ... else"),
        (return_in_while, "Cannot have `return` statements inside `while` or `for` statements in triton"),
        (tuple_target, "must be one name"),
        (block_bound, "must all be ints"),
        (zero_step, "must not be 0"),
        (keyword_of_range, "stages"),
        (none_in_loop, "`x` is None"),
        (tuple_changes_type, "Loop-carried variable t"),
        (block_while, "must be a scalar"),
    ],
)
def test_refused(kernel, message: str) -> None:
    assert message in message_of(error(kernel, np.zeros(1, np.float32), 3))


@tilework.jit
def return_in_dead_branch_of_a_loop(out, n, FLAG: tl.constexpr):
    for i in range(n):
        if FLAG:
            return
        if n > 2:
            if FLAG:
                return
            tl.store(out, i)


def test_a_dead_return_in_a_loop_is_fine() -> None:
    assert result(return_in_dead_branch_of_a_loop, 3, FLAG=False) == [2]
    ttir(return_in_dead_branch_of_a_loop, np.zeros(1), 3, FLAG=False)
