"""Rules that are easiest to say as a kernel: types are asserted inside it."""

# The kernels are odd on purpose.
# ruff: noqa: E712, E741, F823, SIM222
# pyright: reportAttributeAccessIssue=false

import math

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, innermost, result, run, text

LATER = tl.constexpr(7)


@tilework.jit
def same(x):
    return x


@tilework.jit
def plus_literal(x, y=2):
    return x + y


@tilework.jit
def plus_reassigned(x, y=2):
    y = y + 0
    return x + y


@tilework.jit
def weak_and_strong(out, flag, n, f, N: tl.constexpr):
    h, b, u8 = tl.zeros((4,), tl.float16), tl.zeros((4,), tl.bfloat16), tl.zeros((4,), tl.uint8)
    tl.static_assert((h * 1.5).dtype == tl.float16)
    tl.static_assert((b + 1).dtype == tl.bfloat16)
    tl.static_assert((u8 + 200).dtype == tl.uint8)
    a = 1.5
    tl.static_assert((h * a).dtype == tl.float32)
    i = 2
    tl.static_assert((u8 + i).dtype == tl.int32)
    tl.static_assert((b + i).dtype == tl.float32)
    i += 1
    tl.static_assert((u8 + i).dtype == tl.int32)
    c, d = 1, 2.0
    tl.static_assert((u8 + c).dtype == tl.int32)
    tl.static_assert((h + d).dtype == tl.float32)
    W: tl.constexpr = 2  # pyright: ignore[reportAssignmentType]
    tl.static_assert((u8 + W).dtype == tl.uint8)
    tl.static_assert((u8 + N).dtype == tl.uint8)
    for k in tl.static_range(2):
        tl.static_assert((u8 + k).dtype == tl.uint8)
    tl.static_assert(plus_literal(u8).dtype == tl.uint8)
    tl.static_assert(plus_reassigned(u8).dtype == tl.int32)
    tl.static_assert((u8 + same(3)).dtype == tl.uint8)
    tl.static_assert((u8 + n).dtype == tl.int32)
    tl.static_assert((h * f).dtype == tl.float32)
    tl.static_assert((u8 + flag).dtype == tl.uint8)
    tl.static_assert((h < 0.5).dtype == tl.int1)
    tl.static_assert(tl.where(h < 0.5, h, 1.0).dtype == tl.float16)
    tl.static_assert(tl.maximum(h, 1.0).dtype == tl.float32)
    tl.static_assert(tl.add(h, 1.0).dtype == tl.float16)
    tl.static_assert(tl.where(flag, 0, 1).dtype == tl.int32)
    tl.static_assert(tl.where(flag, 1, 0.5).dtype == tl.float32)
    tl.store(out, 1)


def test_weak_and_strong_numbers() -> None:
    assert result(weak_and_strong, True, 3, 1.5, N=4) == [1]


@tilework.jit
def unsigned_offset(out, x, o):
    offset = tl.load(o)
    tl.static_assert(offset.dtype == tl.uint8)
    tl.store(out, tl.load(x + offset))
    tl.store(out + 1, tl.load((x + 255) - offset))


def test_narrow_unsigned_offsets_are_zero_extended() -> None:
    x = np.arange(256, dtype=np.int32)
    assert result(unsigned_offset, x, np.array([200], np.uint8), size=2) == [200, 55]


@tilework.jit
def pointer_truth(out, p, q):
    tl.static_assert(p is not None)
    tl.static_assert(q is None)
    if p:
        tl.store(out, 1)
    if q is None:
        tl.store(out + 1, 2)


def test_pointers_and_none() -> None:
    assert result(pointer_truth, np.zeros(1, np.float32), None, size=2) == [1, 2]


@tilework.jit
def indexing(out, p):
    x = tl.arange(0, 8)
    tl.static_assert(x[:, None].shape == [8, 1])
    tl.static_assert(x[None, :].shape == [1, 8])
    tl.static_assert(x[None:].shape == [8])
    tl.static_assert(x[::None].shape == [8])
    tl.static_assert(x[:, :, :].shape == [8])
    tl.static_assert(x[None, :, None, None].shape == [1, 8, 1, 1])
    n = tl.program_id(0)
    tl.static_assert(n[None].shape == [1])
    tl.static_assert(n[None, None].shape == [1, 1])
    tl.static_assert(p[None, :].shape == [1])
    tl.store(out + x, tl.load(p + x[None, :]).reshape(8))


def test_indexing_forms() -> None:
    assert result(indexing, np.arange(8, dtype=np.int32), size=8) == list(range(8))


@tilework.jit
def global_before_local(out):
    first = LATER  # pyright: ignore[reportUnboundVariable]
    LATER = 3
    tl.store(out, first * 10 + LATER)


def test_a_global_is_read_before_a_later_local_hides_it() -> None:
    assert result(global_before_local) == [73]


@tilework.jit
def compile_time_functions(out):
    tl.store(out, int(math.sqrt(16)) + math.gcd(12, 18))
    tl.static_assert(math.frexp(8.0)[1] == 4)
    tl.store(out + 1, tilework.cdiv(7, 2) * 10 + tilework.next_power_of_2(5))
    tl.store(out + 2, max(3, 4) * 10 + min(2, 1))
    tl.static_assert(float("-inf") < 0)


def test_functions_of_math_run_while_compiling() -> None:
    assert result(compile_time_functions, size=3) == [10, 48, 41]


@tilework.jit
def logical(out, n, N: tl.constexpr):
    yes, no = n > 0, n < 0
    tl.store(out, (N == 3 and yes).to(tl.int32))
    tl.static_assert((N == 4 and yes) == False)
    tl.static_assert((N == 3 or yes) == True)
    tl.store(out + 1, (no or N == 4 or yes).to(tl.int32))
    tl.store(out + 2, (not no and yes).to(tl.int32))
    tl.static_assert((N and 5) == 5)
    tl.static_assert((() or 4) == 4)


def test_logical_operators_drop_constants() -> None:
    assert result(logical, 1, N=3, size=3) == [1, 1, 1]


@tilework.jit
def loop_types(out, n64, u):
    total = 0
    for i in range(n64):
        tl.static_assert(i.dtype == tl.int64)
        i = i + 1
        total += i.to(tl.int32)
    for j in range(u):
        tl.static_assert(j.dtype == tl.uint32)
    for k in range(5, 0, -2):
        tl.static_assert(k.dtype == tl.int32)
        total += 100 * k
    for _ in range(3, 3):
        total = -1
    tl.store(out, total)


def test_loop_indices() -> None:
    from tests.frontend.run import OPTIONS
    from tilework.frontend.generator import compile_to_ttir
    from tilework.oracles.evaluator import evaluate

    module = compile_to_ttir(loop_types, {"out": "*i32", "n64": "i64", "u": "u32"}, {}, None, OPTIONS)
    out = np.zeros(1, np.int32)
    evaluate(module, "loop_types", [out, 4, 2])
    assert out.tolist() == [10 + 900]


@tilework.jit
def dead_code(n):
    return 1
    return 2.0


@tilework.jit
def returns(out, n):
    tl.store(out, dead_code(n))
    if n > 100:
        return
    tl.store(out + 1, 5)
    return 3


def test_returns() -> None:
    assert result(returns, 1, size=2) == [1, 5]
    assert result(returns, 101, size=2) == [1, -1]


@tilework.jit
def swizzled(out, I: tl.constexpr, J: tl.constexpr, G: tl.constexpr):
    for i in range(I):
        for j in range(J):
            row, column = tl.swizzle2d(i, j, I, J, G)
            tl.store(out + i * J + j, row * 10 + column)


def test_swizzle2d() -> None:
    I, J, G = 5, 4, 2
    wanted = []
    for linear in range(I * J):
        group, rest = divmod(linear, G * J)
        rows = min(I - group * G, G)
        wanted.append((group * G + rest % rows) * 10 + rest // rows)
    assert result(swizzled, size=I * J, I=I, J=J, G=G) == wanted


@tilework.jit
def creation(out, n):
    tl.static_assert(tl.full((), 3, tl.int32).shape == [])
    tl.static_assert(tl.full([], n, tl.float32).dtype == tl.float32)
    tl.static_assert(tl.arange(3, 11).shape == [8])
    tl.static_assert(tl.zeros_like(tl.zeros((2, 4), tl.int8)).dtype == tl.int8)
    tl.store(out + tl.arange(0, 8), tl.arange(3, 11))
    tl.static_assert(tl.zeros((1,) * 9, tl.float32).reshape(()).shape == [])


def test_creation() -> None:
    assert result(creation, 4, size=8) == list(range(3, 11))


@tilework.jit
def block_condition(out, p):
    if tl.load(p + tl.arange(0, 1)) > 0:
        tl.store(out, 1)


def test_a_condition_of_one_element_warns() -> None:
    with pytest.warns(UserWarning, match="^If conditional called with multidimensional Tensor"):
        assert result(block_condition, np.ones(1, np.float32)) == [1]


@tilework.jit
def asserts(out, N: tl.constexpr):
    assert N == 3, "never looked at while compiling"
    tl.store(out, 1)


def test_assert_is_for_debug_builds() -> None:
    assert result(asserts, N=4) == [1]
    assert "tt.assert" not in text(asserts, np.zeros(1, np.int32), N=4)
    assert "tt.assert" in text(asserts, np.zeros(1, np.int32), N=4, options={"debug": True})


@tilework.jit
def negative_zero(out, x):
    tl.store(out, -tl.load(x))


def test_unary_minus_is_a_subtraction_from_zero() -> None:
    out = np.ones(1, np.float32)
    run(negative_zero, out, np.zeros(1, np.float32))
    assert not np.signbit(out[0])


@tilework.jit
def power(out, n):
    tl.store(out, n**2)


def test_power_of_a_runtime_value() -> None:
    assert "`**` needs compile-time operands" in str(innermost(error(power, np.zeros(1, np.int32), 3)))


def test_a_constexpr_on_the_host_is_a_number() -> None:
    three = tl.constexpr(3)
    assert list(range(three)) == [0, 1, 2] and "abcd"[three] == "d" and int(three) == 3 and float(three) == 3.0
    assert (10 % three, 6 & three, 1 << three, 256 >> three, 4 | three, 5 ^ three) == (1, 2, 8, 32, 7, 6)
    assert isinstance(10 % three, tl.constexpr) and isinstance(three == 3, tl.constexpr)
    assert (-7 // tl.constexpr(2)).value == -4 and (-7 % tl.constexpr(2)).value == 1 and (three / 2).value == 1.5
    assert three in [1, 3] and {three: 1}[tl.constexpr(3)] == 1 and tl.constexpr(three).value == 3
