"""The kernel of `launch_stress.py`, in a module that can be imported: each FACTOR is a kernel of its own."""

import tilework
import tilework.language as tl


@tilework.jit
def scale(x_ptr, out_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) * FACTOR, mask=mask)
