"""Random numbers are Triton's, bit for bit."""

from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.language.library_run import CODE, refused, run
from tilework import jit


@jit
def randint4x_kernel(seed: Any, offsets: Any, out: Any, N: tl.constexpr) -> None:
    index = tl.arange(0, N)
    a, b, c, d = tl.randint4x(seed, tl.load(offsets + index))
    tl.store(out + index * 4, a)
    tl.store(out + index * 4 + 1, b)
    tl.store(out + index * 4 + 2, c)
    tl.store(out + index * 4 + 3, d)


def randint4x(seed: int, offsets: np.ndarray[Any, Any], constant_seed: bool = False) -> list[str]:
    out = np.zeros((len(offsets), 4), np.uint32)
    signature = {"offsets": f"*{CODE[offsets.dtype]}", "out": "*u32"}
    constants: dict[str, Any] = {"N": len(offsets)}
    if constant_seed:
        constants["seed"] = seed
    else:
        signature["seed"] = "i64"
    run(randint4x_kernel, signature, constants, [*([] if constant_seed else [seed]), offsets, out])
    return [" ".join(f"{word:08x}" for word in row) for row in out.tolist()]


VECTORS = {
    (0, 0): "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    (0, 1): "f8e4cca4 5cb200db b1a574eb 097eff67",
    (0, 2): "04faa329 51c732a6 241513ad 459135e4",
    (0, 3): "c990ef29 6a4474a6 9ac9134f 6d413e04",
    (42, 0): "9ceaf053 77f5493b 12bf50ad 5742b3d7",
    (42, 1): "fcdb2127 53ba6cfd 838f5a6e 744e06fb",
    (0xFFFFFFFF, 0): "f60ba7e1 fb0bd7a0 c70cbd2d 7dad399c",
    (0xFCAFEB0BA, 0): "f219fb5b be9182a4 f573a172 3952307c",
    (0xFCAFEB0BA, 1): "eeced75e 021efe62 a9c0c1a0 ce25abd8",
}
WIDE_VECTORS = {
    (0, 2**33): "58fe6cd3 067febbc ab2beaf9 b56f6386",
    (0, 2**33 + 1): "c5723fd1 3e276da2 d6fc5b50 a6660d66",
    (42, 2**33): "9be4a6d3 fb73b237 6fc2a456 955e31d8",
}


@pytest.mark.parametrize("constant_seed", [False, True])
@pytest.mark.parametrize("seed", [0, 42, 0xFFFFFFFF, 0xFCAFEB0BA])
def test_philox_with_32_bit_offsets(seed: int, constant_seed: bool) -> None:
    rows = randint4x(seed, np.arange(4, dtype=np.int32), constant_seed)
    assert all(rows[offset] == words for (key, offset), words in VECTORS.items() if key == seed)


@pytest.mark.parametrize("seed", [0, 42])
def test_philox_with_64_bit_offsets(seed: int) -> None:
    rows = randint4x(seed, np.arange(2**33, 2**33 + 2, dtype=np.int64))
    assert all(rows[offset - 2**33] == words for (key, offset), words in WIDE_VECTORS.items() if key == seed)


@jit
def rand_kernel(seed: Any, out: Any, N: tl.constexpr) -> None:
    index = tl.arange(0, N)
    tl.store(out + index, tl.rand(seed, index))


@jit
def randn_kernel(seed: Any, out: Any, N: tl.constexpr) -> None:
    index = tl.arange(0, N)
    tl.store(out + index, tl.randn(seed, index))


@jit
def randn4x_kernel(seed: Any, out: Any, N: tl.constexpr) -> None:
    index = tl.arange(0, N)
    a, b, c, d = tl.randn4x(seed, index)
    tl.store(out + index, a)
    tl.store(out + N + index, b)
    tl.store(out + 2 * N + index, c)
    tl.store(out + 3 * N + index, d)


def generated(kernel: Any, seed: int, count: int, total: int) -> np.ndarray[Any, Any]:
    out = np.zeros(total, np.float32)
    run(kernel, {"seed": "i32", "out": "*fp32"}, {"N": count}, [seed, out])
    return out


@pytest.mark.parametrize(
    ("seed", "words"),
    [(0, "3f4c4fd1 3d63666a 3d1f5464 3ed9bc42"), (42, "3f462a1e 3cc937b5 3eb24ff6 3f0a71f6")],
)
def test_rand_is_bit_exact(seed: int, words: str) -> None:
    assert " ".join(f"{word:08x}" for word in generated(rand_kernel, seed, 4, 4).view(np.uint32)) == words


def test_randn() -> None:
    expected = [0.0465515, -0.3883614, -1.6379520, 0.6315315]
    np.testing.assert_allclose(generated(randn_kernel, 0, 4, 4), expected, rtol=1e-4)
    many = generated(randn4x_kernel, 7, 1024, 4096)
    assert abs(many.mean()) < 0.05 and abs(many.std() - 1) < 0.05
    np.testing.assert_array_equal(generated(randn4x_kernel, 0, 4, 16)[:4], generated(randn_kernel, 0, 4, 4))


@jit
def limits_kernel(x: Any, out: Any) -> None:
    tl.store(out + tl.arange(0, 4), tl.random.uint_to_uniform_float(tl.load(x + tl.arange(0, 4))))


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_the_extreme_integers_give_the_same_value_below_one(dtype: str) -> None:
    numpy = np.int32 if dtype == "i32" else np.int64
    limits = np.iinfo(numpy)
    out = np.zeros(4, np.float32)
    run(limits_kernel, {"x": f"*{dtype}", "out": "*fp32"}, {}, [np.array([limits.min, limits.max, 0, -1], numpy), out])
    assert out[0] == out[1] and 0.99 < out[0] < 1 and out[2] == out[3] == 0


@jit
def philox64_kernel(seed: Any, out: Any) -> None:
    zero = tl.full([1], 0, tl.uint64)
    a, b, c, d = tl.philox(seed, zero, zero, zero, zero)
    tl.store(out + tl.arange(0, 1), a)
    tl.store(out + 1 + tl.arange(0, 1), b)
    tl.store(out + 2 + tl.arange(0, 1), c)
    tl.store(out + 3 + tl.arange(0, 1), d)


def philox64(seed: int) -> list[int]:
    """Philox 4x64 in Python."""
    mask = 2**64 - 1
    c, k = [0, 0, 0, 0], [seed, 0]
    for _ in range(10):
        high, low = divmod(0xCA5A826395121157 * c[2], 2**64)
        other_high, other_low = divmod(0xD2E7470EE14C6C93 * c[0], 2**64)
        c = [high ^ c[1] ^ k[0], low, other_high ^ c[3] ^ k[1], other_low]
        k = [(k[0] + 0x9E3779B97F4A7C15) & mask, (k[1] + 0xBB67AE8584CAA73B) & mask]
    return c


@pytest.mark.parametrize("seed", [0, 12345])
def test_philox_with_64_bit_counters(seed: int) -> None:
    out = np.zeros(4, np.uint64)
    run(philox64_kernel, {"seed": "i64", "out": "*u64"}, {}, [seed, out])
    assert out.tolist() == philox64(seed)


@pytest.mark.parametrize("seed_type", ["fp32", "*i32"])
def test_the_seed_is_an_integer(seed_type: str) -> None:
    with refused("seed must be an integer"):
        run(rand_kernel, {"seed": seed_type, "out": "*fp32"}, {"N": 4}, [])
