"""Random numbers from a counter: Philox 4x32, written in the tile language.

Philox is a block cipher used as a generator: the n-th random number is the encryption of n under the seed, so every
element of every program gets its own number without any state:

    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, offsets) > p

One round maps four counters and two keys to four new counters with two widening multiplications (all arithmetic is
modulo 2**32, or 2**64 for counters of 64 bits):

    c0, c1, c2, c3 = hi(B * c2) ^ c1 ^ k0, lo(B * c2), hi(A * c0) ^ c3 ^ k1, lo(A * c0)
    k0, k1 = k0 + KEY_A, k1 + KEY_B

With seed 0 and offset 0, ten rounds give 6627e8d5 e169c58d bc57ac4c 9b00dbd8.

Example:
    @tilework.jit
    def dropout(x, out, seed, p):
        i = tl.arange(0, 1024)
        keep = tl.rand(seed, i) > p
        tl.store(out + i, tl.where(keep, tl.load(x + i) / (1 - p), 0.0))

    x, out = np.ones(1024, np.float32), np.empty(1024, np.float32)
    dropout[(1,)](x, out, 123, 0.25)
    assert abs(out.mean() - 1) < 0.1 and set(np.round(out, 4)) == {0, np.float32(1.3333)}
"""

# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false

from tilework.language import core
from tilework.language.function import jit

N_ROUNDS_DEFAULT = core.constexpr(10)


@jit
def philox_impl(
    c0: core.tensor,
    c1: core.tensor,
    c2: core.tensor,
    c3: core.tensor,
    k0: core.tensor,
    k1: core.tensor,
    n_rounds: core.constexpr = N_ROUNDS_DEFAULT,
) -> tuple[core.tensor, core.tensor, core.tensor, core.tensor]:
    """`n_rounds` rounds of Philox on four counters, uint32 or uint64, with two keys of that type.

    Returns the four counters after the last round. `philox` splits a seed into keys; most kernels call `rand` or
    `randn`.

    Example:
        zero = np.zeros(2, np.uint32)
        counters = call(tl.philox_impl, zero, zero, zero, zero, np.uint32(0), np.uint32(0))
        assert [counter[0] for counter in counters] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    """
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
def philox(
    seed: core.tensor,
    c0: core.tensor,
    c1: core.tensor,
    c2: core.tensor,
    c3: core.tensor,
    n_rounds: core.constexpr = N_ROUNDS_DEFAULT,
) -> tuple[core.tensor, core.tensor, core.tensor, core.tensor]:
    """Philox with a 64-bit seed. With 32-bit counters, the two halves of the seed are the keys; with 64-bit counters,
    the whole seed is.

    Returns four blocks of random integers for the four counters; the same counters give the same numbers on every
    target.

    Example:
        i, zero = np.arange(4, dtype=np.uint32), np.zeros(4, np.uint32)
        first, _, _, _ = call(tl.philox, 1234, i, zero, zero, zero)
        assert first.dtype == np.uint32 and len(set(first.tolist())) == 4
        assert (first == call(tl.randint, 1234, i)).all()
    """
    seed = core.to_tensor(seed)
    core.static_assert(seed.dtype.is_int(), "the seed must be an integer")
    seed = seed.to(core.uint64)
    c0, c1, c2, c3 = core.to_tensor(c0), core.to_tensor(c1), core.to_tensor(c2), core.to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 32:
        k0, k1 = seed.to(core.uint32), (seed >> 32).to(core.uint32)
    else:
        k0, k1 = seed, core.full([], 0, core.uint64)
    unsigned: core.constexpr = core.uint32 if c0.dtype.primitive_bitwidth == 32 else core.uint64
    c0, c1 = c0.to(unsigned, bitcast=True), c1.to(unsigned, bitcast=True)
    c2, c3 = c2.to(unsigned, bitcast=True), c3.to(unsigned, bitcast=True)
    return philox_impl(c0, c1, c2, c3, k0, k1, n_rounds)


@jit
def randint4x(
    seed: core.tensor, offset: core.tensor, n_rounds: core.constexpr = N_ROUNDS_DEFAULT
) -> tuple[core.tensor, core.tensor, core.tensor, core.tensor]:
    """Four blocks of random uint32 for one seed and a block of offsets; the cheapest way to get many numbers.

    Philox always computes four numbers, of which `randint` drops three.

    Example:
        i = np.arange(4, dtype=np.int32)
        blocks = call(tl.randint4x, 42, i)
        assert len(blocks) == 4 and (blocks[0] == call(tl.randint, 42, i)).all()
    """
    low = offset.to(core.uint32)
    zero = core.full(low.shape, 0, core.uint32)
    if offset.dtype.primitive_bitwidth > 32:
        high = (offset >> 32).to(core.uint32)
    else:
        high = zero
    return philox(seed, low, high, zero, zero, n_rounds)


@jit
def randint(seed: core.tensor, offset: core.tensor, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> core.tensor:
    """A block of random uint32, one for each offset.

    Equal seeds and offsets give equal numbers, on every target and in every program. To get independent numbers, give
    every element of every program a different offset, such as its index in the output. Fewer than 10 rounds
    (`n_rounds`) are faster, but less random.

    Example:
        i = np.arange(1024, dtype=np.int32)
        bits = call(tl.randint, 42, i)
        assert bits.dtype == np.uint32 and abs(bits.mean() / 2**32 - 0.5) < 0.05
    """
    first, _, _, _ = randint4x(seed, offset, n_rounds)
    return first


@jit
def uint_to_uniform_float(x: core.tensor) -> core.tensor:
    """Convert random bits to fp32 in [0, 1): the magnitude of a signed integer, scaled by slightly less than 2**-31.

    For integers of 32 or 64 bits.

    Example:
        uniform = call(tl.uint_to_uniform_float, np.array([0, 2**31 - 1, 2**31, 2**32 - 1], np.uint32))
        assert (uniform >= 0).all() and (uniform < 1).all()
    """
    if x.dtype.primitive_bitwidth == 32:
        signed = x.to(core.int32, bitcast=True)
    else:
        core.static_assert(x.dtype.primitive_bitwidth == 64, "uint_to_uniform_float takes 32 or 64 bits")
        signed = x.to(core.int64, bitcast=True)
    scale: core.constexpr = 4.6566127342e-10 if x.dtype.primitive_bitwidth == 32 else 1.0842020432385337e-19
    return core.where(signed < 0, ~signed, signed) * scale  # ~s is -s - 1, without overflow


@jit
def rand(seed: core.tensor, offset: core.tensor, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> core.tensor:
    """A block of fp32 numbers, uniform in [0, 1): ``tl.rand(seed, offsets)``.

    The number for a seed and an offset is always the same (see `randint`), so a backward pass can recompute a dropout
    mask instead of loading it.

    Example:
        i = np.arange(1024, dtype=np.int32)
        uniform = call(tl.rand, 42, i)
        assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.05
        assert (uniform == call(tl.rand, 42, i)).all()
    """
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@jit
def rand4x(
    seed: core.tensor, offsets: core.tensor, n_rounds: core.constexpr = N_ROUNDS_DEFAULT
) -> tuple[core.tensor, core.tensor, core.tensor, core.tensor]:
    """Four blocks of fp32 numbers, uniform in [0, 1), for the cost of one: see `randint4x`.

    Example:
        blocks = call(tl.rand4x, 42, np.arange(256, dtype=np.int32))
        assert len(blocks) == 4 and all(0 <= block.min() and block.max() < 1 for block in blocks)
    """
    i0, i1, i2, i3 = randint4x(seed, offsets, n_rounds)
    u0, u1 = uint_to_uniform_float(i0), uint_to_uniform_float(i1)
    u2, u3 = uint_to_uniform_float(i2), uint_to_uniform_float(i3)
    return u0, u1, u2, u3


@jit
def pair_uniform_to_normal(u1: core.tensor, u2: core.tensor) -> tuple[core.tensor, core.tensor]:
    """Convert two uniform blocks to two normal ones, by the Box-Muller transform.

    Example:
        u1, u2 = np.array([0.5, 0.25], np.float32), np.array([0.0, 0.5], np.float32)
        n1, n2 = call(tl.pair_uniform_to_normal, u1, u2)
        assert_close(n1, np.sqrt(-2 * np.log(u1)) * np.cos(2 * np.pi * u2), atol=1e-5)
    """
    radius = core.sqrt(-2.0 * core.log(core.maximum(1.0e-7, u1)))
    angle = 6.283185307179586 * u2
    return radius * core.cos(angle), radius * core.sin(angle)


@jit
def randn(seed: core.tensor, offset: core.tensor, n_rounds: core.constexpr = N_ROUNDS_DEFAULT) -> core.tensor:
    """A block of fp32 numbers with mean 0 and standard deviation 1: ``tl.randn(seed, offsets)``. `randint` explains
    seeds and offsets.

    Example:
        normal = call(tl.randn, 42, np.arange(4096, dtype=np.int32))
        assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1
    """
    i0, i1, _, _ = randint4x(seed, offset, n_rounds)
    n0, _ = pair_uniform_to_normal(uint_to_uniform_float(i0), uint_to_uniform_float(i1))
    return n0


@jit
def randn4x(
    seed: core.tensor, offset: core.tensor, n_rounds: core.constexpr = N_ROUNDS_DEFAULT
) -> tuple[core.tensor, core.tensor, core.tensor, core.tensor]:
    """Four blocks of fp32 numbers with mean 0 and standard deviation 1, for the cost of two: see `randint4x`.

    Example:
        blocks = call(tl.randn4x, 42, np.arange(1024, dtype=np.int32))
        assert len(blocks) == 4 and abs(np.mean(blocks)) < 0.1
    """
    u0, u1, u2, u3 = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(u0, u1)
    n2, n3 = pair_uniform_to_normal(u2, u3)
    return n0, n1, n2, n3
