"""A kernel for the C program beside it: out = scale * gelu(x)."""

import tilework
import tilework.language as tl


@tilework.jit
def gelu(x, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, scale * 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476)), mask=i < n)
