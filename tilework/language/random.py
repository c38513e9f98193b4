"""Random numbers from a counter: Philox 4x32, written in the tile language.

Philox is a block cipher used as a generator: the n-th random number is the encryption of n under the seed, so every
element of every program gets its own number without any state:

    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, offsets) > p

One round turns four counters and two keys into four new counters with two widening multiplications (all arithmetic is
modulo 2**32, or 2**64 for counters of 64 bits):

    c0, c1, c2, c3 = hi(B * c2) ^ c1 ^ k0, lo(B * c2), hi(A * c0) ^ c3 ^ k1, lo(A * c0)
    k0, k1 = k0 + KEY_A, k1 + KEY_B

With seed 0 and offset 0, ten rounds give 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
"""

# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false

from typing import Any

from tilework.language import core
from tilework.language.function import jit

N_ROUNDS_DEFAULT = core.constexpr(10)


@jit
def philox_impl(
    c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT
) -> Any:
    """`n_rounds` of Philox on four counters, uint32 or uint64, under two keys of that type."""
    core.static_assert(c0.dtype == core.uint32 or c0.dtype == core.uint64, "philox counters are uint32 or uint64")
    is_32_bit: core.constexpr = c0.dtype == core.uint32
    key_a: core.constexpr = 0x9E3779B9 if is_32_bit else 0x9E3779B97F4A7C15
    key_b: core.constexpr = 0xBB67AE85 if is_32_bit else 0xBB67AE8584CAA73B
    round_a: core.constexpr = 0xD2511F53 if is_32_bit else 0xD2E7470EE14C6C93
    round_b: core.constexpr = 0xCD9E8D57 if is_32_bit else 0xCA5A826395121157
    for _ in core.static_range(n_rounds):
        old_c0, old_c2 = c0, c2
        c0 = core.umulhi(round_b, old_c2) ^ c1 ^ k0
        c2 = core.umulhi(round_a, old_c0) ^ c3 ^ k1
        c1 = core.mul(old_c2, round_b, sanitize_overflow=False)
        c3 = core.mul(old_c0, round_a, sanitize_overflow=False)
        k0 = core.add(k0, key_a, sanitize_overflow=False)
        k1 = core.add(k1, key_b, sanitize_overflow=False)
    return c0, c1, c2, c3


@jit
def philox(seed: Any, c0: Any, c1: Any, c2: Any, c3: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> Any:
    """Philox under a 64-bit seed. Counters of 32 bits use its two halves as keys, counters of 64 bits the whole."""
    seed = core.to_tensor(seed)
    core.static_assert(seed.dtype.is_int(), "the seed must be an integer")
    seed = seed.to(core.uint64)
    c0, c1, c2, c3 = core.to_tensor(c0), core.to_tensor(c1), core.to_tensor(c2), core.to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 32:
        k0, k1 = seed.to(core.uint32), (seed >> 32).to(core.uint32)
    else:
        k0, k1 = seed, core.full([], 0, core.uint64)
    word: core.constexpr = core.uint32 if c0.dtype.primitive_bitwidth == 32 else core.uint64
    c0, c1 = c0.to(word, bitcast=True), c1.to(word, bitcast=True)
    c2, c3 = c2.to(word, bitcast=True), c3.to(word, bitcast=True)
    return philox_impl(c0, c1, c2, c3, k0, k1, n_rounds)


@jit
def randint4x(seed: Any, offset: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> Any:
    """Four blocks of random uint32 for one seed and a block of offsets; the cheapest way to get many numbers."""
    low = offset.to(core.uint32)
    zero = core.full(low.shape, 0, core.uint32)
    if offset.dtype.primitive_bitwidth > 32:
        high = (offset >> 32).to(core.uint32)
    else:
        high = zero
    return philox(seed, low, high, zero, zero, n_rounds)


@jit
def randint(seed: Any, offset: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> Any:
    """A block of random uint32, one for each offset."""
    first, _, _, _ = randint4x(seed, offset, n_rounds)
    return first


@jit
def uint_to_uniform_float(x: Any) -> Any:
    """Random bits to fp32 in [0, 1): the magnitude of a signed integer, scaled by a little less than 2**-31."""
    if x.dtype.primitive_bitwidth == 32:
        signed = x.to(core.int32, bitcast=True)
    else:
        core.static_assert(x.dtype.primitive_bitwidth == 64, "uint_to_uniform_float takes 32 or 64 bits")
        signed = x.to(core.int64, bitcast=True)
    scale: core.constexpr = 4.6566127342e-10 if x.dtype.primitive_bitwidth == 32 else 1.0842020432385337e-19
    return core.where(signed < 0, ~signed, signed) * scale  # ~s is -s - 1, without overflow


@jit
def rand(seed: Any, offset: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> Any:
    """A block of fp32, uniform in [0, 1): ``tl.rand(seed, offsets)``."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@jit
def rand4x(seed: Any, offsets: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> Any:
    """Four blocks of fp32, uniform in [0, 1)."""
    i0, i1, i2, i3 = randint4x(seed, offsets, n_rounds)
    u0, u1 = uint_to_uniform_float(i0), uint_to_uniform_float(i1)
    u2, u3 = uint_to_uniform_float(i2), uint_to_uniform_float(i3)
    return u0, u1, u2, u3


@jit
def pair_uniform_to_normal(u1: Any, u2: Any) -> Any:
    """Two uniform blocks to two normal ones: the polar coordinates of a point (Box and Muller)."""
    radius = core.sqrt(-2.0 * core.log(core.maximum(1.0e-7, u1)))
    angle = 6.283185307179586 * u2
    return radius * core.cos(angle), radius * core.sin(angle)


@jit
def randn(seed: Any, offset: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> Any:
    """A block of fp32 with mean 0 and standard deviation 1: ``tl.randn(seed, offsets)``."""
    i0, i1, _, _ = randint4x(seed, offset, n_rounds)
    n0, _ = pair_uniform_to_normal(uint_to_uniform_float(i0), uint_to_uniform_float(i1))
    return n0


@jit
def randn4x(seed: Any, offset: Any, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> Any:
    """Four blocks of fp32 with mean 0 and standard deviation 1."""
    u0, u1, u2, u3 = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(u0, u1)
    n2, n3 = pair_uniform_to_normal(u2, u3)
    return n0, n1, n2, n3
