"""Types: operands that do not go together, casts that do not exist, numbers that do not fit."""

import tilework
import tilework.language as tl


@tilework.jit
def float_bit_and(p, n, BLOCK: tl.constexpr):
    x = tl.load(p) & 1


@tilework.jit
def signedness(p, n, BLOCK: tl.constexpr):
    x = n // n.to(tl.uint32)


@tilework.jit
def number_out_of_range(p, n, BLOCK: tl.constexpr):
    x = n + 4294967296


@tilework.jit
def add_string(p, n, BLOCK: tl.constexpr):
    x = 0 + "a"


@tilework.jit
def shift_float(p, n, BLOCK: tl.constexpr):
    x = 1.0 << 1


@tilework.jit
def string_variable(p, n, BLOCK: tl.constexpr):
    name = "abc"


@tilework.jit
def add_pointers(p, n, BLOCK: tl.constexpr):
    x = p + p


@tilework.jit
def exp_of_int(p, n, BLOCK: tl.constexpr):
    x = tl.exp(n)


@tilework.jit
def power_of_tensor(p, n, BLOCK: tl.constexpr):
    x = n**2


@tilework.jit
def matmul_operator(p, n, BLOCK: tl.constexpr):
    a = tl.zeros((16, 16), tl.float16)
    x = a @ a


@tilework.jit
def bitcast_width(p, n, BLOCK: tl.constexpr):
    x = n.to(tl.float16, bitcast=True)


@tilework.jit
def unsupported_fp8(p, n, BLOCK: tl.constexpr):
    x = tl.zeros((BLOCK,), tl.float8e4b8)


@tilework.jit
def negative_unsigned(p, n, BLOCK: tl.constexpr):
    x = n.to(tl.uint32) + -1


@tilework.jit
def and_of_ints(p, n, BLOCK: tl.constexpr):
    if n and n > 3:
        tl.store(p, 1.0)


@tilework.jit
def int_of_tensor(p, n, BLOCK: tl.constexpr):
    x = int(n)


@tilework.jit
def minus_of_tuple(p, n, BLOCK: tl.constexpr):
    -(0, 0)


@tilework.jit
def index_by_tensor(p, n, BLOCK: tl.constexpr):
    t = (1, 2, 3)
    x = t[n]
