"""Memory: pointers, masks, block pointers, descriptors, atomics."""

import tilework
import tilework.language as tl


@tilework.jit
def load_from_number(p, n, BLOCK: tl.constexpr):
    x = tl.load(n)


@tilework.jit
def mask_is_int(p, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(p + offsets, mask=offsets)


@tilework.jit
def other_without_mask(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK), other=0.0)


@tilework.jit
def block_value_to_scalar_pointer(p, n, BLOCK: tl.constexpr):
    tl.store(p, tl.arange(0, BLOCK))


@tilework.jit
def store_to_const(p: tl.const, n, BLOCK: tl.constexpr):
    tl.store(p, 1.0)


@tilework.jit
def unknown_cache_modifier(p, n, BLOCK: tl.constexpr):
    x = tl.load(p, cache_modifier=".xx")


@tilework.jit
def boundary_check_on_plain_pointer(p, n, BLOCK: tl.constexpr):
    x = tl.load(p + tl.arange(0, BLOCK), boundary_check=(0,))


@tilework.jit
def descriptor_too_narrow(p, n, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(p, [n, 8], [8, 1], [8, 2])


@tilework.jit
def atomic_semantics(p, n, BLOCK: tl.constexpr):
    tl.atomic_add(p, 1.0, sem="sequential")


@tilework.jit
def advance_without_result(p, n, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(p, (n, n), (n, 1), (0, 0), (16, 16), (1, 0))
    tl.advance(block, (0, 16))


SIGNATURES = {"store_to_const": "*kfp32, i32, 64"}
