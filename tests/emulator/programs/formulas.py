"""The programs' computations in NumPy: each takes the arguments of the program and returns its results by argument."""

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Results = dict[int, Array]
BF16 = ml_dtypes.bfloat16
LANES = np.arange(32)


def halving(parts: Array) -> Array:
    """The sum of each row in the order of a tree: element i and i + half are added until one is left."""
    while parts.shape[1] > 1:
        half = parts.shape[1] // 2
        parts = parts[:, :half] + parts[:, half:]
    return parts[:, 0]


def tree_sum(x: Array, out: Any, n: int) -> Results:
    return {1: halving(np.pad(x, (0, 24)).reshape(4, 256))}


def butterfly(x: Array) -> Array:
    """Rows of 32, summed by xor shuffles; all lanes get the same."""
    for step in (16, 8, 4, 2, 1):
        x = x + x[:, LANES ^ step]
    return x[:, 0]


def shuffle_sum(x: Array, out: Any, n: int) -> Results:
    own = np.zeros(256, np.float32)
    for start in range(0, 1536, 256):
        piece = np.pad(x, (0, 36))[start : start + 256]
        own = np.where(np.arange(256) + start < n, own + piece, own).astype(np.float32)
    parts = butterfly(own.reshape(8, 32)).reshape(2, 4)
    padded = np.pad(parts, ((0, 0), (0, 28)))
    for step in (16, 8, 4, 2, 1):
        moved = np.concatenate([padded[:, step:], padded[:, 32 - step :]], axis=1)
        padded = padded + moved
    return {1: padded[:, 0]}


def integer_redux(x: Array, out: Any) -> Results:
    rows = x.reshape(2, 32)
    columns = [rows.sum(1), rows.max(1), np.bitwise_and.reduce(rows, 1), np.bitwise_or.reduce(rows, 1)]
    return {1: np.stack(columns, axis=1).astype(np.int32)}


def warp_scan(x: Array, out: Any) -> Results:
    rows = x.reshape(2, 32)
    for step in (1, 2, 4, 8, 16):
        rows = np.where(step <= LANES, rows + np.roll(rows, step, axis=1), rows)
    return {1: rows}


def ballot(chosen: Array) -> Array:
    return (chosen.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=-1).astype(np.uint32)


def votes(x: Array, out: Any) -> Results:
    rows = x.reshape(2, 32)
    odd = np.repeat(ballot(rows & 1), 32)
    verdict = np.repeat(2 * (rows > -100).all(1) + (rows == 7).any(1), 32)
    same = ballot((rows[:, :, None] & 3) == (rows[:, None, :] & 3)).reshape(-1)
    lower = (np.uint64(1) << np.tile(LANES, 2).astype(np.uint64)) - np.uint64(1)
    rank = np.array([bin(int(a) & int(b)).count("1") for a, b in zip(odd, lower, strict=True)])
    return {1: np.stack([odd, verdict, same, rank], axis=1).astype(np.uint32)}


def shuffles(x: Array, out: Any) -> Results:
    rows = x.reshape(2, 32)
    lanes = np.broadcast_to(LANES, (2, 32))
    sources = [
        np.full((2, 32), 5), np.where(lanes >= 3, lanes - 3, lanes), np.where(lanes % 8 + 3 < 8, lanes + 3, lanes),
        lanes ^ 12, rows & 31, lanes ^ 1,
    ]  # fmt: skip
    return {1: np.stack([np.take_along_axis(rows, source, axis=1) for source in sources])}


def collatz(value: int) -> int:
    steps = 0
    while value != 1:
        value = 3 * value + 1 if value % 2 else value // 2
        steps += 1
        if steps > 60:
            break
    return value + steps


def divergent(x: Array, out: Any) -> Results:
    rows = x.reshape(2, 32)
    even = (rows % 2 == 0).sum(axis=1, keepdims=True)
    walked = np.vectorize(collatz)(rows)
    return {1: np.where(rows % 2 == 0, rows + even, walked)[:, LANES ^ 1]}


def exchange(x: Array, out: Any) -> Results:
    first = 3 * x.reshape(2, 32)[:, (LANES + 7) % 32]
    return {1: first + (first + 1)[:, (LANES + 31) % 32]}


def own_copies(x: Array, out: Any, tiles: int) -> Results:
    v = x.reshape(-1, 4)
    return {1: np.stack([v[:, 0] + np.float32(1), v[:, 1] * np.float32(2), v[:, 2] - v[:, 3], v[:, 3]], axis=1)}


def counting(x: Array, out: Any) -> Results:
    return {1: np.full(128, (x & 1).sum() * 100 + (x > 0).all() * 10 + (x == 5).any())}


def all_kinds(x: Array, out: Any, wide: Any, real: Any) -> Results:
    masked = np.bitwise_and.reduce(x | np.int32(-65536))
    found = [
        x.sum(),
        min(0, x.min()),
        max(0, x.max()),
        0 & masked,
        np.bitwise_or.reduce(x & 255),
        np.bitwise_xor.reduce(x),
        -2 * 128,
    ]
    total = sum(int(value) * 4000000000 for value in x) % 2**64
    return {1: np.array(found, np.int32), 2: np.array([total], np.uint64), 3: np.array([(x & 15).sum()], np.float32)}


def rounded(values: Array, dtype: Any) -> Array:
    """Doubles to a short float, once."""
    return np.asarray(values, np.float64).astype(dtype)


def half_math(x: Array, y: Array, out: Any, n: int) -> Results:
    a, b = x.astype(np.float64), y.astype(np.float64)
    single = x.astype(np.float32)
    rows = [a + b, a * b, a * b + a, np.fmax(a, b), a + b]
    rows += [
        (single * np.float32(3.3)).astype(np.float64),
        x.astype(np.float32) / y.astype(np.float32),
        np.sqrt(np.abs(a)),
    ]
    rows += [(single * np.float32(100)).astype(np.int32), np.where(x < y, a, b)]
    return {2: np.stack([rounded(row, np.float16) for row in rows])}


def half_pairs(x: Array, y: Array, out: Any, n: int) -> Results:
    a, b = x.astype(np.float64), y.astype(np.float64)
    both = rounded(a + b, np.float16).astype(np.float64)
    swapped = b.reshape(-1, 2)[:, ::-1].reshape(-1)
    mixed = np.stack([a[::2], b[1::2]], axis=1).reshape(-1)
    return {2: np.stack([rounded(row, np.float16) for row in (a * b + both, a * swapped, np.fmin(a, b), mixed)])}


def bfloat_math(x: Array, y: Array, out: Any, n: int) -> Results:
    a, b = x.astype(np.float64), y.astype(np.float64)
    rows = [a + b, a * b, a * b + b, (x.astype(np.float32) * np.float32(1.7)).astype(np.float64), np.fmax(a, b)]
    return {2: np.stack([to_bfloat(row) for row in rows])}


def to_bfloat(values: Array) -> Array:
    """Doubles to bfloat16 in one rounding, to nearest even (a detour by float32 would round twice)."""
    values = np.asarray(values, np.float64)
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.round(fraction * 256), exponent - 8).astype(BF16)


def functions(x: Array, out: Any, shape: Array) -> Results:
    s = shape[0]
    c = np.array([1.0, -0.5, 0.25, s["scale"]])
    t = np.arange(64)

    def polynomial(x: Array, c: Array) -> Array:
        return sum(value * x**power for power, value in enumerate(c))  # type: ignore[return-value]

    y = polynomial(x.astype(np.float64), c)
    y = np.where(t % 3 == 0, polynomial(y, c[1:3]), y)
    return {1: (y + (s["columns"] + t) * (s["scale"] * 2) + (s["rows"] - t)).astype(np.float32)}


def choose(x: Array, out: Any) -> Results:
    def one(t: int, v: int) -> int:
        found = {
            0: v + 10,
            1: v * v + t,
            2: 32 - (t + 1).bit_length(),
            3: t ^ 0x55,
            4: bin(t).count("1"),
            5: (t << 3) - v,
        }
        found |= {6: (t << 3) - v, 7: t // 7, 8: -t}
        return found.get(v, -1)

    return {1: np.array([one(t, int(v)) for t, v in enumerate(x)], np.int32)}


def sort_each(x: Array, out: Any) -> Results:
    rows = np.sort(x.reshape(32, 8), axis=1)
    return {1: np.take_along_axis(rows, (np.arange(8) + np.arange(32)[:, None]) % 8, axis=1)}


def pointers(x: Array, out: Any) -> Results:
    t = np.arange(48)
    weights = np.array([3, 5, 7, 11])[t % 4]
    return {1: np.choose(t % 3, [x + weights, x * weights, x - weights]).astype(np.int32)}


def long_pairs(draw: Any, count: int) -> tuple[Array, Array]:
    """Numerators and divisors of all sizes, none of them zero."""
    x = draw.integers(-(2**62), 2**62, count, dtype=np.int64) >> draw.integers(0, 50, count, dtype=np.int64)
    y = draw.integers(1, 2**62, count, dtype=np.int64) >> draw.integers(0, 55, count, dtype=np.int64)
    return x, np.where(np.arange(count) % 2, y | 1, -(y | 1))


def signed(value: int, bits: int = 64) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def wide_division(x: Array, y: Array, out: Any, n: int) -> Results:
    rows = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        big_a, big_b = a % 2**64, b % 2**64
        rows.append(
            [quotient, a - quotient * b, big_a // big_b, big_a % 1000003, a * b >> 64, a * b + (a >> 7) - (big_b >> 9)]
        )
    return {2: np.array([[signed(value) for value in row] for row in rows], np.int64).T}


def bits(x: Array, y: Array, out: Any, n: int) -> Results:
    rows = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        ones, zeros = bin(a).count("1"), 32 - b.bit_length()
        reverse, lowest = int(f"{a:032b}"[::-1], 2), (b & -b).bit_length()
        both = a.to_bytes(4, "little") + b.to_bytes(4, "little")
        permuted = int.from_bytes(bytes(both[0x3715 >> 4 * i & 7] for i in range(4)), "little")
        funnel = ((b << 32 | a) << (a & 31) >> 32) & 0xFFFFFFFF
        four = sum(signed(a >> 8 * i, 8) * signed(b >> 8 * i, 8) for i in range(4)) + 7
        halves = ((a & 0xFFFF) + (b & 0xFFFF) & 0xFFFF) | ((a >> 16) + (b >> 16) & 0xFFFF) << 16
        quotient = a // (b | 1) + a % 13 + int(signed(a, 32) / 7)
        order = min(signed(a, 32), signed(b, 32)) ^ max(a, b)
        shifts = (a >> (b & 31)) + (signed(a, 32) >> (b & 31)) + (a << (b & 15))
        row = [
            ones * 100 + zeros,
            reverse ^ lowest,
            permuted,
            funnel,
            (a * b >> 32) + a * b,
            four,
            abs(a - b) + 5 + halves,
            quotient,
            order,
            shifts,
        ]
        rows.append([value & 0xFFFFFFFF for value in row])
    return {2: np.array(rows, np.uint32).T}


def small(x: Array, y: Array, out: Any, n: int) -> Results:
    rows = []
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        row = [a * b, int(a / 3) - b % 7, (a & 255) << 3, -a if a < 0 else b >> 2]
        rows.append([signed(value, 16) for value in row])
    return {2: np.array(rows, np.int16).T}


def doubles(x: Array, y: Array, out: Any, n: int) -> Results:
    exact = x.astype(np.longdouble) + y.astype(np.longdouble)
    near = x + y
    zero = np.where(np.abs(near.astype(np.longdouble)) > np.abs(exact), np.nextafter(near, 0), near)
    up = np.where(near.astype(np.longdouble) < exact, np.nextafter(near, np.inf), near)
    product = (x.astype(np.longdouble) * y - x).astype(np.float64)
    whole = np.floor(x * 10) + np.ceil(y) + np.trunc(x) + np.rint(y * 3)
    cast = (x * 1e10).astype(np.int64).astype(np.float64) + y.astype(np.float32)
    return {
        2: np.stack(
            [
                x / y,
                np.sqrt(np.abs(x)),
                product,
                zero - up,
                whole,
                cast,
                np.fmin(x, y) * np.fmax(x, y),
                np.fmod(x * 100, y),
            ]
        )
    }


def towards(exact: Array, mode: str) -> Array:
    """Doubles that are exact results to float32: "zero", "up" or "down"."""
    near = exact.astype(np.float32)
    wide = near.astype(np.float64)
    if mode == "zero":
        return np.where(np.abs(wide) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
    if mode == "up":
        return np.where(wide < exact, np.nextafter(near, np.float32(np.inf)), near)
    return np.where(wide > exact, np.nextafter(near, np.float32(-np.inf)), near)


def singles(x: Array, y: Array, out: Any, n: int) -> Results:
    a, b = x.astype(np.float64), y.astype(np.float64)
    one = np.float32
    whole = np.rint(x * one(100)) + np.trunc(y * one(10))
    cast = (x * one(1000)).astype(np.int32).astype(one) + (np.abs(y) * one(1000)).astype(np.uint32).astype(one)
    rows = [
        x / y,
        np.sqrt(np.abs(x)),
        towards(a * b + 1, "zero"),
        towards(a * b, "down") + towards(a + b, "up"),
        whole,
        cast,
    ]
    return {2: np.stack([*rows, np.copysign(x, y), one(1) / y])}


def erf(x: Array) -> Array:
    from math import erf as scalar

    return np.vectorize(scalar)(x)


def elementary(x: Array, out: Any, n: int) -> Results:
    a = x.astype(np.float64)
    b = np.abs(a)
    rows = [
        np.exp(a),
        np.log(b + 0.1),
        np.sin(a),
        np.cos(a),
        np.tanh(a),
        b**1.7,
        erf(a),
        1 / np.sqrt(b + 0.5),
        np.exp2(a) + np.log2(b + 1),
    ]
    return {1: np.stack(rows)}


def approximate(x: Array, out: Any, n: int) -> Results:
    a = x.astype(np.float64)
    return {1: np.stack([np.exp(a), np.log(np.abs(a) + 0.1), np.sin(a), 1 / a, np.tanh(a), np.sqrt(np.abs(a))])}


def elementary_f64(x: Array, out: Any, n: int) -> Results:
    return {1: np.stack([np.exp(x), np.log(np.abs(x) + 0.1), np.sin(x), np.abs(x) ** 1.3])}


def softmax(x: Array, out: Any, columns: int) -> Results:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return {1: e / e.sum(axis=1, keepdims=True)}


def stencil(x: Array, out: Any, width: int, height: int) -> Results:
    p = np.pad(x.astype(np.float64), 1, mode="edge")
    return {1: 0.5 * p[1:-1, 1:-1] + 0.125 * (p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1])}
