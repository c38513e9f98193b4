"""Kernels that the tests of `tilework explain` launch."""

import tilework
import tilework.language as tl

SCALE = tl.constexpr(2.0)


@tilework.jit
def add(x, y, out, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i * stride, mask=i < n)
    tl.store(out + i, a * SCALE + tl.load(y + i, mask=i < n), mask=i < n)
