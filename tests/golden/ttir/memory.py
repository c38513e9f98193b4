"""Pointers, block pointers, descriptors, atomics, hints."""

import tilework
import tilework.language as tl


@tilework.jit
def masked(p, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(p + offsets, mask=offsets < n, other=0.0)
    tl.store(p + offsets, x, mask=offsets < n)


@tilework.jit
def block_pointer(p, n, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(p, (n, 32), (32, 1), (0, 0), (BLOCK, 32), (1, 0))
    for i in range(0, n, BLOCK):
        x = tl.load(block, boundary_check=(0,), padding_option="zero")
        tl.store(block, x, boundary_check=(0,))
        block = tl.advance(block, (BLOCK, 0))


@tilework.jit
def descriptor(p, n, BLOCK: tl.constexpr):
    desc = tl.make_tensor_descriptor(p, [n, 32], [32, 1], [BLOCK, 32])
    for i in range(0, n, BLOCK):
        x = desc.load([i, 0])
        desc.store([i, 0], x)


@tilework.jit
def atomics(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.atomic_add(p + offsets, 1.0, mask=offsets < n, sem="relaxed")
    tl.atomic_max(p, 2.0)
    tl.atomic_xchg(p, 0.0, scope="cta")


@tilework.jit
def hints(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for i in tl.range(0, n, loop_unroll_factor=2, disallow_acc_multi_buffer=True):
        offsets = tl.max_contiguous(tl.multiple_of(offsets, 16), 16)
        tl.store(p + offsets, 1.0)
        offsets += 16
    tl.assume(n > 0)
    tl.debug_barrier()
