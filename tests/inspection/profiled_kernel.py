"""A kernel for programs that tests profile: compiled once, and found in the cache by all of them."""

import tilework
import tilework.language as tl


@tilework.jit
def double(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, tl.load(p + i, mask=i < n) * 2, mask=i < n)
