"""Control flow: conditions, loops, returns, types that change."""

import tilework
import tilework.language as tl


@tilework.jit
def type_change_in_loop(p, n, BLOCK: tl.constexpr):
    x = tl.arange(0, BLOCK)
    for i in range(n):
        x = x * 2.0
    tl.store(p + tl.arange(0, BLOCK), x)


@tilework.jit
def type_change_in_branch(p, n, BLOCK: tl.constexpr):
    x = 1
    if n > 2:
        x = 2.0
    tl.store(p, x)


@tilework.jit
def different_types_in_branches(p, n, BLOCK: tl.constexpr):
    if n > 2:
        final_out = 1
    else:
        final_out = 2.0
    tl.store(p, final_out)


@tilework.jit
def none_rebound_in_branch(p, n, BLOCK: tl.constexpr):
    x = None
    if n > 2:
        x = 1.0
    tl.store(p, x)


@tilework.jit
def constexpr_rebound_in_loop(p, n, BLOCK: tl.constexpr):
    for i in range(n):
        BLOCK = BLOCK * 2


@tilework.jit
def block_condition(p, n, BLOCK: tl.constexpr):
    if tl.arange(0, BLOCK) > n:
        tl.store(p, 1.0)


@tilework.jit
def string_condition(p, n, BLOCK: tl.constexpr):
    if "yes":
        tl.store(p, 1.0)


@tilework.jit
def return_in_loop(p, n, BLOCK: tl.constexpr):
    for i in range(n):
        if i > 3:
            return
    tl.store(p, 1.0)


@tilework.jit
def break_statement(p, n, BLOCK: tl.constexpr):
    for i in range(n):
        break


@tilework.jit
def for_over_tuple(p, n, BLOCK: tl.constexpr):
    for x in (1, 2, 3):
        tl.store(p, x)


@tilework.jit
def float_loop_bound(p, n, BLOCK: tl.constexpr):
    for i in range(0.0, n):
        tl.store(p, i)


@tilework.jit
def while_true(p, n, BLOCK: tl.constexpr):
    while True:
        n += 1


@tilework.jit
def ternary_types(p, n, BLOCK: tl.constexpr):
    x = 1.5 if n > 2 else n


@tilework.jit
def chained_comparison(p, n, BLOCK: tl.constexpr):
    if 0 < n < 10:
        tl.store(p, 1.0)


@tilework.jit
def constexpr_defined_twice(p, n, BLOCK: tl.constexpr):
    x: tl.constexpr = 1
    x: tl.constexpr = 2


@tilework.jit
def static_range_of_runtime(p, n, BLOCK: tl.constexpr):
    for i in tl.static_range(n):
        tl.store(p, i)


@tilework.jit
def static_assertion(p, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 128 == 0, f"BLOCK is {BLOCK}, not a multiple of 128")


@tilework.jit
def static_assert_of_runtime(p, n, BLOCK: tl.constexpr):
    tl.static_assert(n > 0)


@tilework.jit
def zero_step(p, n, BLOCK: tl.constexpr):
    for i in range(0, n, 0):
        tl.store(p, i)


@tilework.jit
def tuple_in_ternary(p, n, BLOCK: tl.constexpr):
    x = (n, 1) if n > 3 else (n, 2)
