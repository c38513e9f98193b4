"""Kernels without work, by the number of their arguments; for `against_process.py`, which times their launches."""

import tilework
import tilework.language as tl


@tilework.jit
def three(a, b, c, BLOCK: tl.constexpr):
    pass


@tilework.jit
def six(a, b, c, d, e, f, BLOCK: tl.constexpr):
    pass


@tilework.jit
def twelve(a, b, c, d, e, f, g, h, i, j, k, m, BLOCK: tl.constexpr):
    pass


KERNELS = {3: three, 6: six, 12: twelve}
