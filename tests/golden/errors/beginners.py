"""Mistakes of beginners: pointers taken for arrays or values, functions of the host, methods of lists."""

import math

import numpy as np

import tilework
import tilework.language as tl

STRICT = False
WEIGHTS = np.ones(4, np.float32)
TOTAL = 0.0


class Settings:
    scale = 2.0


@tilework.jit
def index_loads_and_stores(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p[i] = p[i] * 2


@tilework.jit
def index_stores(p, n, BLOCK: tl.constexpr):
    p[0] = 1.0


@tilework.jit
def index_two_axes(p, n, BLOCK: tl.constexpr):
    x = p[n, 0]


@tilework.jit
def pointer_times_number(p, n, BLOCK: tl.constexpr):
    x = p * 2


@tilework.jit
def number_minus_pointer(p, n, BLOCK: tl.constexpr):
    x = 2 - p


@tilework.jit
def pointer_plus_float(p, n, BLOCK: tl.constexpr):
    x = p + 1.5


@tilework.jit
def pointer_compared(p, n, BLOCK: tl.constexpr):
    x = tl.where(p + tl.arange(0, BLOCK) > 0, 1.0, 0.0)


@tilework.jit
def pointer_in_condition(p, n, BLOCK: tl.constexpr):
    if p > 0:
        tl.store(p, 1.0)


@tilework.jit
def pointer_in_function(p, n, BLOCK: tl.constexpr):
    x = tl.exp(p + tl.arange(0, BLOCK))


@tilework.jit
def pointer_in_maximum(p, n, BLOCK: tl.constexpr):
    x = tl.maximum(p, 0.0)


@tilework.jit
def pointers_summed(p, n, BLOCK: tl.constexpr):
    x = tl.sum(p + tl.arange(0, BLOCK), 0)


@tilework.jit
def pointer_negated(p, n, BLOCK: tl.constexpr):
    x = -p


@tilework.jit
def print_without_text(p, n, BLOCK: tl.constexpr):
    print(n)


@tilework.jit
def math_of_tile(p, n, BLOCK: tl.constexpr):
    x = math.sqrt(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def math_of_number(p, n, BLOCK: tl.constexpr):
    x = math.floor(tl.load(p))


@tilework.jit
def math_without_counterpart(p, n, BLOCK: tl.constexpr):
    x = math.gamma(tl.load(p))


@tilework.jit
def numpy_of_tile(p, n, BLOCK: tl.constexpr):
    x = np.exp(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def numpy_sum(p, n, BLOCK: tl.constexpr):
    x = np.sum(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def append(p, n, BLOCK: tl.constexpr):
    r = []
    r.append(n)


@tilework.jit
def shape_of_pointer(p, n, BLOCK: tl.constexpr):
    x = p.shape[1]


@tilework.jit
def length_of_pointer(p, n, BLOCK: tl.constexpr):
    x = len(p)


@tilework.jit
def stride_of_pointer(p, n, BLOCK: tl.constexpr):
    x = p.stride(0)


@tilework.jit
def sum_of_list(p, n, BLOCK: tl.constexpr):
    x = sum([n, 2, 3])


@tilework.jit
def tile_mask_for_one_address(p, n, BLOCK: tl.constexpr):
    x = tl.load(p, mask=tl.arange(0, BLOCK) < n)


@tilework.jit
def tile_for_one_address(p, n, BLOCK: tl.constexpr):
    tl.store(p, tl.zeros((BLOCK,), tl.float32))


@tilework.jit
def result_of_store(p, n, BLOCK: tl.constexpr):
    x = tl.store(p, 1.0)
    y = x + 1


@tilework.jit
def helper(a, i):
    return (
        a[i]
        * 2
    )


@tilework.jit
def index_in_helper(p, n, BLOCK: tl.constexpr):
    x = helper(a=p, i=tl.arange(0, BLOCK))


@tilework.jit
def index_in_nested_loops(p, n, BLOCK: tl.constexpr):
    for i in range(n):
        for j in range(2):
            p[i] += p[j]


@tilework.jit
def math_over_lines(p, n, BLOCK: tl.constexpr):
    tl.store(
        p,
        math.sqrt(
            tl.load(p)
        )
        + 1,
    )


@tilework.jit
def misspelled_keyword(p, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(p + i, masks=i < n)


@tilework.jit
def one_argument_of_arange(p, n, BLOCK: tl.constexpr):
    i = tl.arange(BLOCK)


@tilework.jit
def missing_dtype(p, n, BLOCK: tl.constexpr):
    x = tl.zeros((BLOCK,))


@tilework.jit
def numpy_dtype(p, n, BLOCK: tl.constexpr):
    x = tl.load(p).to(np.float64)


@tilework.jit
def numpy_scalar(p, n, BLOCK: tl.constexpr):
    x = tl.load(p) + np.int32(2)


@tilework.jit
def numpy_random(p, n, BLOCK: tl.constexpr):
    x = tl.load(p) * np.random.rand()


@tilework.jit
def numpy_zeros(p, n, BLOCK: tl.constexpr):
    tl.store(p + tl.arange(0, BLOCK), np.zeros(BLOCK))


@tilework.jit
def mean(p, n, BLOCK: tl.constexpr):
    x = tl.mean(tl.load(p + tl.arange(0, BLOCK)))


@tilework.jit
def mean_as_method(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK)).mean()


@tilework.jit
def astype(p, n, BLOCK: tl.constexpr):
    x = tl.load(p).astype(tl.int32)


@tilework.jit
def power(p, n, BLOCK: tl.constexpr):
    x = tl.load(p) ** 2


@tilework.jit
def matmul(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))
    y = x @ x


@tilework.jit
def dot_of_vectors(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))
    y = tl.dot(x, x)


@tilework.jit
def halved_offset(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK) / 2)


@tilework.jit
def halved_range(p, n, BLOCK: tl.constexpr):
    for i in range(n / 2):
        tl.store(p + i, 0.0)


@tilework.jit
def loop_over_pairs(p, n, BLOCK: tl.constexpr):
    for i, x in enumerate((1.0, 2.0)):
        tl.store(p + i, x)


@tilework.jit
def item_of_list(p, n, BLOCK: tl.constexpr):
    r = [0.0] * 4
    r[0] = tl.load(p)


@tilework.jit
def equals_none(p, n, BLOCK: tl.constexpr):
    if tl.load(p) == None:
        tl.store(p, 0.0)


@tilework.jit
def reshape_of_pointer(p, n, BLOCK: tl.constexpr):
    x = p.reshape(8, 8)


@tilework.jit
def print_with_separator(p, n, BLOCK: tl.constexpr):
    print("n", n, sep=": ")


@tilework.jit
def print_formatted(p, n, BLOCK: tl.constexpr):
    print("n = %d" % n)


@tilework.jit
def print_f_string(p, n, BLOCK: tl.constexpr):
    print(f"n = {n}")


@tilework.jit
def rounded(p, n, BLOCK: tl.constexpr):
    x = round(tl.load(p))


@tilework.jit
def absolute(p, n, BLOCK: tl.constexpr):
    x = abs(tl.load(p))


@tilework.jit
def value_of_class(p, n, BLOCK: tl.constexpr):
    tl.store(p, Settings.scale)


@tilework.jit
def global_array(p, n, BLOCK: tl.constexpr):
    tl.store(p, WEIGHTS[0])


@tilework.jit
def global_statement(p, n, BLOCK: tl.constexpr):
    global TOTAL
    TOTAL = tl.load(p)


@tilework.jit
def yields(p, n, BLOCK: tl.constexpr):
    yield tl.load(p)


@tilework.jit
def bound_known_at_run_time(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK))
    y = x[:n]


@tilework.jit
def sum_that_becomes_a_tile(p, n, BLOCK: tl.constexpr):
    total = 0.0
    for i in range(n):
        total += tl.load(p + i * BLOCK + tl.arange(0, BLOCK))


@tilework.jit
def dim_for_axis(p, n, BLOCK: tl.constexpr):
    x = tl.sum(tl.load(p + tl.arange(0, BLOCK)), dim=0)


@tilework.jit
def dtype_as_text(p, n, BLOCK: tl.constexpr):
    x = tl.load(p).to("float32")


@tilework.jit
def method_of_another_name(p, n, BLOCK: tl.constexpr):
    x = tl.load(p).clip(0.0, 1.0)


@tilework.jit
def stores_nothing(p, n, BLOCK: tl.constexpr):
    tl.store(p, tl.store(p, 1.0))
