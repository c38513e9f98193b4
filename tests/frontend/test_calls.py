"""Calls: binding, specialisation, recursion, functions as values, names of callees."""

# The kernels are odd on purpose.
# ruff: noqa: B007, RUF007

import copy
import math
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, text, ttir
from tilework.ir import tt


@tilework.jit
def weighted(a, b=10, *, scale=2, offset: tl.constexpr = 1):  # pyright: ignore[reportArgumentType]
    return (a - b) * scale + offset


@tilework.jit
def binding(out, n):
    tl.store(out, weighted(n))
    tl.store(out + 1, weighted(n, 1))
    tl.store(out + 2, weighted(b=n, a=1, scale=3))
    tl.store(out + 3, weighted(*(n, 2), offset=n))


def test_arguments_are_bound_as_in_python() -> None:
    def f(a, b=10, *, scale=2, offset=1):
        return (a - b) * scale + offset

    assert result(binding, 5, size=4) == [f(5), f(5, 1), f(b=5, a=1, scale=3), f(5, 2, offset=5)]


@tilework.jit
def positional_only(a, b, /, c):
    return a * 100 + b * 10 + c


@tilework.jit
def total(*numbers):
    result = 0
    for i in tl.static_range(len(numbers)):
        result += numbers[i]
    return result


@tilework.jit
def kinds(out, n):
    tl.store(out, positional_only(n, 2, c=3))
    tl.store(out + 1, total())
    tl.store(out + 2, total(n))
    tl.store(out + 3, total(n, 2, *(3, 4)))


def test_positional_only_and_variable_arguments() -> None:
    assert result(kinds, 1, size=4) == [123, 0, 1, 10]


@tilework.jit
def keywords(**named):
    return 1


@tilework.jit
def wrong_kind(out, n, F: tl.constexpr):
    tl.store(out, F(a=n, b=1, c=2))


@tilework.jit
def too_many(out, n):
    tl.store(out, weighted(n, 1, 2))


def test_binding_errors() -> None:
    assert "positional" in str(error(wrong_kind, np.zeros(1), 1, F=positional_only))
    assert "**keywords" in str(error(wrong_kind, np.zeros(1), 1, F=keywords))
    assert "too many positional arguments" in str(error(too_many, np.zeros(1), 1))


# -- specialisation --------------------------------------------------------------------------------------------------


@tilework.jit
def kind(x):
    if isinstance(x, int):
        return 1 if x is True else 2
    elif isinstance(x, float):
        return 3
    else:
        return 4


@tilework.jit
def one_two_three(out, n):
    tl.store(out, kind(1))
    tl.store(out + 1, kind(True))
    tl.store(out + 2, kind(1.0))
    tl.store(out + 3, kind("1"))
    tl.store(out + 4, kind(1))
    tl.store(out + 5, kind(None))


def symbols(fn, *args, **kwargs) -> list[str]:
    return [op.sym_name.data for op in ttir(fn, *args, **kwargs).ops if isinstance(op, tt.FuncOp)]


def test_equal_constants_of_different_classes_are_different_functions() -> None:
    assert result(one_two_three, 0, size=6) == [2, 1, 3, 4, 2, 4]
    names = symbols(one_two_three, np.zeros(6), 0)
    assert [name.rpartition("kind")[2] for name in names[1:]] == [
        "__c1",
        "__cTrue",
        "__c1.0",
        "__c_sq_1_sq_",
        "__cNone",
    ]


@tilework.jit
def names(p, x, t, SIZE: tl.constexpr):
    return tl.load(p) + x + t[0] + t[1]


@tilework.jit
def mangled(out, n):
    tl.store(out, tl.sum(names(out, tl.zeros((4, 8), tl.int32), (n, 3), 16).reshape(32)))


def test_mangled_names() -> None:
    (name,) = (name for name in symbols(mangled, np.zeros(1, np.int32), 0) if ".names__" in name)
    assert name == ("tests.frontend.test_calls.names__Pi32_i32S4_8S_Ti32_c3T_c16")


def make(value):
    constant = tl.constexpr(value)

    @tilework.jit
    def captured(x):
        return x + constant

    return captured


ONE, TWO = make(1), make(2)


@tilework.jit
def namesakes(out, n):
    tl.store(out, ONE(n))
    tl.store(out + 1, TWO(n))
    tl.store(out + 2, apply(ONE, n))
    tl.store(out + 3, apply(TWO, n))
    tl.store(out + 4, apply_all([ONE, TWO], n))
    tl.store(out + 5, apply_all([TWO, TWO], n))


@tilework.jit
def apply(f, x):
    return f(x)


@tilework.jit
def apply_all(functions, x):
    for i in tl.static_range(len(functions)):
        x = functions[i](x)
    return x


def test_functions_of_one_factory_are_not_confused() -> None:
    assert result(namesakes, 10, size=6) == [11, 12, 11, 12, 13, 14]


@tilework.jit
def from_constant_list(out, n, FUNCTIONS: tl.constexpr):
    tl.store(out, apply_all(FUNCTIONS, n))


def test_functions_in_a_constant_list() -> None:
    assert result(from_constant_list, 10, FUNCTIONS=[ONE, TWO, ONE]) == [14]


@tilework.jit
def pick(f, x, y):
    return f(x, y)


@tilework.jit
def builtins_as_values(out, n):
    tl.store(out, pick(min, n, 3))
    tl.store(out + 1, pick(max, n, 3))
    tl.store(out + 2, pick(tl.minimum, n, 3))


def test_builtins_are_values() -> None:
    assert result(builtins_as_values, 7, size=3) == [3, 7, 3]


# -- recursion -------------------------------------------------------------------------------------------------------


@tilework.jit
def halve(x):
    if x.shape[0] == 1:
        return x.reshape(1).sum()
    else:
        a, b = tl.split(x.reshape(x.shape[0] // 2, 2))
        return halve(a + b)


@tilework.jit
def factorial(n: tl.constexpr):
    if n <= 1:
        return 1
    else:
        return n * factorial(n - 1)


@tilework.jit
def recursion(out, n):
    tl.store(out, halve(tl.arange(0, 16)))
    tl.store(out + 1, factorial(5))


def test_recursion_that_ends_at_compile_time() -> None:
    assert result(recursion, 0, size=2) == [120, 120]


# -- noinline, hidden arguments, compile-time functions --------------------------------------------------------------


@tilework.jit(noinline=True)
def not_inlined(p, x, pair):
    tl.store(p, x)
    return x + pair[0], pair[1]


@tilework.jit
def calls_noinline(out, n):
    a, b = not_inlined(out, n, (1, n))
    for i in range(2):
        a, b = not_inlined(out + 1, a, (b, 2))
    tl.store(out + 2, a + b)


def test_noinline() -> None:
    assert result(calls_noinline, 5, size=3) == [5, 11, 15]
    assert "noinline = true" in text(calls_noinline, np.zeros(1), 5)


@tilework.constexpr_function
def log2(n):
    return n.bit_length() - 1


@tilework.constexpr_function
def pairs(items):
    return [(a, b) for a, b in zip(items, items[1:], strict=False)]


@tilework.jit
def compile_time(out, N: tl.constexpr):
    tl.store(out, log2(N))
    tl.store(out + 1, tl.sum(tl.arange(0, 2 ** log2(N))))
    tl.store(out + 2, pairs((1, 2, N))[1][1])
    tl.store(out + 3, math.ceil(math.sqrt(N)))
    tl.store(out + 4, int(math.frexp(8.0)[1]))
    tl.store(out + 5, tilework.cdiv(N, 3))
    tl.store(out + 6, len(copy.deepcopy((1, 2))))
    tl.store(out + 7, np.pi.__class__(3))


def test_functions_that_run_at_compile_time() -> None:
    assert result(compile_time, size=8, N=16) == [4, 120, 16, 4, 4, 6, 2, 3]
    assert log2(1024) == 10


class Pair(NamedTuple):
    left: tl.tensor
    right: tl.tensor


@tilework.jit
def swap(pair):
    return Pair(right=pair.left, left=pair.right)


@tilework.jit
def named(out, n):
    pair = swap(Pair(n, right=3))  # pyright: ignore[reportArgumentType]
    tl.store(out, pair.left)
    tl.store(out + 1, pair.right)


def test_named_tuples() -> None:
    assert result(named, 5, size=2) == [3, 5]


# -- statements that are calls ---------------------------------------------------------------------------------------


@tilework.jit
def effect_once(out, n):
    tl.atomic_add(out, n).to(tl.int64)
    apply(ONE, tl.atomic_add(out + 1, n))


def test_a_call_statement_is_visited_once() -> None:
    assert result(effect_once, 5, size=2) == [4, 4]


@tl.core.must_use_result
@tilework.jit
def plain(x):
    return x


@tl.core.must_use_result("It changes nothing.")
@tilework.jit
def explained(x):
    return x


@tilework.jit
def drops_plain(out, n):
    plain(n)


@tilework.jit
def drops_explained(out, n):
    tl.store(out, explained(n))
    explained(n)


def test_must_use_result() -> None:
    assert str(error(drops_plain, np.zeros(1), 1)).splitlines()[-1] == "The result of plain is not being used."
    problem = error(drops_explained, np.zeros(1), 1)
    assert str(problem).splitlines()[-1] == "The result of explained is not being used. It changes nothing."
    assert str(problem).startswith("at 3:4:")


# -- refused ---------------------------------------------------------------------------------------------------------


@tilework.jit
def endless(x):
    return endless(x)


@tilework.jit
def keyword_expansion(out, n):
    tl.store(out, **n)


@tilework.jit
def block_to_noinline(out, n):
    not_inlined(out, tl.arange(0, 4), (1, 2))


@tilework.jit
def calls_endless(out, n):
    tl.store(out, endless(n))


@tilework.jit
def runtime_to_math(out, n):
    tl.store(out, math.sqrt(n))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (calls_endless, "calls itself"),
        (keyword_expansion, "**kwargs"),
        (block_to_noinline, "noinline"),
        (runtime_to_math, "use tl.sqrt"),
    ],
)
def test_refused(kernel, message: str) -> None:
    assert message in message_of(error(kernel, np.zeros(1), 3))


def doubled(x, *, _semantic: Any = None):
    """As other packages write builtins of their own: run while compiling, on what the kernel passes."""
    return tl.constexpr(2 * x.value) if isinstance(x, tl.constexpr) else _semantic.add(x, x, True)


doubled.__triton_builtin__ = True  # pyright: ignore[reportFunctionMemberAccess]
OTHER_PACKAGE = ModuleType("other_package")
OTHER_PACKAGE.doubled = doubled  # pyright: ignore[reportAttributeAccessIssue]


@tilework.jit
def functions_of_modules(out, n):
    wide = tl.core.get_int_dtype(64, True)
    narrow = tl.core.get_int_dtype(bitwidth=n.dtype.primitive_bitwidth // 2, signed=True)
    tl.store(out, (n + 2**20).to(wide) * 2**20 % 1000)
    tl.store(out + 1, (n + 65536).to(narrow))
    tl.store(out + 2, OTHER_PACKAGE.doubled(n) + OTHER_PACKAGE.doubled(20))
    tl.store(out + 3, n.to(tl.core._unwrap_if_constexpr(narrow)))


def test_plain_functions_of_the_language_and_builtins_of_others() -> None:
    assert result(functions_of_modules, 3, size=4) == [(3 + 2**20) * 2**20 % 1000, 3, 46, 3]
    assert functions_of_modules.cache_key  # nothing of this stands in the way of the hash


class Limits:
    """As `torch.finfo`: a class that a kernel asks for numbers."""

    def __init__(self, bits: int, *, signed: bool = True):
        self.most = 2 ** (bits - signed) - 1


OTHER_PACKAGE.Limits = Limits  # pyright: ignore[reportAttributeAccessIssue]


@tilework.jit
def class_of_module(out, n, bits: tl.constexpr):
    most: tl.constexpr = OTHER_PACKAGE.Limits(bits).most
    tl.store(out, most)
    tl.store(out + 1, n + OTHER_PACKAGE.Limits(8, signed=False).most)


@tilework.jit
def class_of_run_time_value(out, n):
    tl.store(out, OTHER_PACKAGE.Limits(n).most)


def test_classes_of_modules_are_called_at_compile_time() -> None:
    assert result(class_of_module, 3, size=2, bits=16) == [2**15 - 1, 3 + 255]
    assert "Limits is not something a kernel can call" in message_of(error(class_of_run_time_value, np.zeros(1), 3))


@tl.constexpr
def dtype_of_bits(bits: tl.constexpr, signed=True):
    return tl.core.get_int_dtype(tl.core._unwrap_if_constexpr(bits), tl.core._unwrap_if_constexpr(signed))


@tl.constexpr
def kind_of_argument(x) -> str:
    return type(x).__name__


@tl.constexpr
def most(x):
    return (1 << tl.core._unwrap_if_constexpr(x)) - 1


@tilework.jit
def functions_that_are_constants(out, n, rule: tl.constexpr):
    tl.store(out, (n + 65536).to(dtype_of_bits(16, signed=False)))
    tl.store(out + 1, kind_of_argument(n) == "tensor")
    tl.store(out + 2, kind_of_argument(4) == "constexpr")
    tl.store(out + 3, rule(n.dtype.primitive_bitwidth // 8))


def test_a_constexpr_may_be_any_function_and_gets_its_arguments_as_they_are() -> None:
    assert result(functions_that_are_constants, 3, size=4, rule=most.value) == [3, 1, 1, 15]
    before = functions_that_are_constants.cache_key
    dtype_of_bits.value.__defaults__ = (False,)
    changed = tilework.jit(functions_that_are_constants.fn).cache_key
    dtype_of_bits.value.__defaults__ = (True,)
    assert before != changed
    problem = error(functions_that_are_constants, np.zeros(4), 3, rule=lambda bits: bits.no_such_member)
    assert str(problem.title).startswith("`<lambda>` raised AttributeError: ")
