"""Calls: arguments, return types, recursion, errors inside callees."""

import tilework
import tilework.language as tl


@tilework.jit
def helper(x, y):
    return x + y


@tilework.jit
def two_types(x):
    if x > 3:
        return 1
    return 2.0


@tilework.jit
def endless(x):
    return endless(x + 1)


@tilework.jit
def inner(x):
    return x + tl.arange(0, 32)


@tilework.jit
def outer(x):
    return inner(x)


@tilework.jit
def sort_of_wrong(x):
    return tl.sum(x, axis=7)


@tilework.jit(noinline=True)
def not_inlined(x):
    return x + 1


@tilework.constexpr_function
def double(x):
    return x * 2


@tilework.constexpr_function
def fails(x):
    return [1, 2, 3][x]


@tilework.must_use_result("It changes nothing in place.")
@tilework.jit
def cube(x):
    return x * x * x


@tilework.jit
def missing_argument(p, n, BLOCK: tl.constexpr):
    tl.store(p, helper(n))


@tilework.jit
def unknown_keyword(p, n, BLOCK: tl.constexpr):
    tl.store(p, helper(n, z=1))


@tilework.jit
def inconsistent_returns(p, n, BLOCK: tl.constexpr):
    tl.store(p, two_types(n))


@tilework.jit
def recursion(p, n, BLOCK: tl.constexpr):
    tl.store(p, endless(n))


@tilework.jit
def error_in_callee(p, n, BLOCK: tl.constexpr):
    x = outer(tl.arange(0, BLOCK))


@tilework.jit
def error_in_library(p, n, BLOCK: tl.constexpr):
    x = sort_of_wrong(tl.arange(0, BLOCK))


@tilework.jit
def block_to_noinline(p, n, BLOCK: tl.constexpr):
    x = not_inlined(tl.arange(0, BLOCK))


@tilework.jit
def runtime_value_to_constexpr_function(p, n, BLOCK: tl.constexpr):
    x = double(n)


@tilework.jit
def exception_in_constexpr_function(p, n, BLOCK: tl.constexpr):
    x = fails(BLOCK)


@tilework.jit
def unused_result(p, n, BLOCK: tl.constexpr):
    cube(n)


@tilework.jit
def void_result_used(p, n, BLOCK: tl.constexpr):
    x = tl.store(p, 1.0)
    y = x + 1


@tilework.jit
def call_of_a_number(p, n, BLOCK: tl.constexpr):
    x = n(3)


@tilework.jit
def wrong_keyword_of_builtin(p, n, BLOCK: tl.constexpr):
    x = tl.load(p, unmasked_xyz=True)


@tilework.jit
def dtype_called(p, n, BLOCK: tl.constexpr):
    x = tl.float32(n)


@tilework.jit
def too_many_arguments(p, n, BLOCK: tl.constexpr):
    x = tl.arange(0, BLOCK, 2)


@tilework.jit
def bad_combine(a, b):
    return a + b + c


@tilework.jit
def error_in_combine(p, n, BLOCK: tl.constexpr):
    x = tl.reduce(tl.arange(0, BLOCK), 0, bad_combine)


@tilework.jit
def function_as_method(p, n, BLOCK: tl.constexpr):
    x = p.load()


@tilework.jit
def star_of_a_tensor(p, n, BLOCK: tl.constexpr):
    tl.store(*n)


@tilework.jit
def takes_keywords(**options):
    return 1


@tilework.jit
def keywords_of_a_function(p, n, BLOCK: tl.constexpr):
    x = takes_keywords(a=n)


@tilework.jit
def wrong_number_for_builtin(p, n, BLOCK: tl.constexpr):
    x = isinstance(n)
