"""A kernel in a module of its own: whether it is interpreted is decided when the module is imported."""

import tilework
import tilework.language as tl


@tilework.jit
def double(p):
    i = tl.arange(0, 4)
    tl.store(p + i, tl.load(p + i) * 2)
