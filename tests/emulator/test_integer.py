"""Every integer instruction against a formula on Python integers."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.emulator.ptx import run
from tilework.oracles.emulator.syntax import EmulatorError

EDGES = [
    0,
    1,
    2,
    3,
    5,
    7,
    31,
    32,
    33,
    63,
    64,
    127,
    128,
    255,
    256,
    1000,
    32767,
    32768,
    65535,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
]


def numbers(type: str, seed: int = 0, count: int = 24) -> np.ndarray:
    """Edges and generated numbers of a PTX type."""
    bits, dtype = int(type[1:]), np.dtype(f"{'i' if type[0] == 's' else 'u'}{int(type[1:]) // 8}")
    generated = np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)
    values = [value % 2**bits for value in EDGES] + [int(value) % 2**bits for value in generated]
    return np.array(values, np.uint64).astype(f"u{bits // 8}").view(dtype)


def pairs(type: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of some numbers, both orders."""
    values = numbers(type, 1, 3)
    both = list(itertools.product(values.tolist(), values.tolist()))[:1024]
    return tuple(np.array(column, values.dtype) for column in zip(*both, strict=True))  # type: ignore[return-value]


def wrapped(value: int, dtype: np.dtype) -> int:
    bits = 8 * dtype.itemsize
    value %= 2**bits
    return value - 2**bits if dtype.kind == "i" and value >= 2 ** (bits - 1) else value


def check(text: str, function: Callable[..., Any], *inputs: np.ndarray, out: np.dtype) -> None:
    got = run(text, *inputs, out=out)
    expected = [wrapped(function(*(int(x) for x in row)), out) for row in zip(*inputs, strict=True)]
    np.testing.assert_array_equal(got, np.array(expected, out))


TYPES = ("s16", "u16", "s32", "u32", "s64", "u64")


def towards_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul.lo": lambda a, b: a * b, "min": min, "max": max,
}  # fmt: skip


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, type: str) -> None:
    a, b = pairs(type)
    check(f"{name}.{type} d, a, b;", BINARY[name], a, b, out=a.dtype)


@pytest.mark.parametrize("type", TYPES)
def test_high_and_wide_products(type: str) -> None:
    a, b = pairs(type)
    bits = 8 * a.dtype.itemsize
    check(f"mul.hi.{type} d, a, b;", lambda x, y: x * y >> bits, a, b, out=a.dtype)
    if bits < 64:
        wide = np.dtype(f"{a.dtype.kind}{2 * a.dtype.itemsize}")
        check(f"mul.wide.{type} d, a, b;", lambda x, y: x * y, a, b, out=wide)
        c = np.resize(numbers(f"{type[0]}{2 * bits}"), len(a))
        check(f"mad.wide.{type} d, a, b, c;", lambda x, y, z: x * y + z, a, b, c, out=wide)
    c = np.resize(numbers(type, 5), len(a))
    check(f"mad.lo.{type} d, a, b, c;", lambda x, y, z: x * y + z, a, b, c, out=a.dtype)
    check(f"mad.hi.{type} d, a, b, c;", lambda x, y, z: (x * y >> bits) + z, a, b, c, out=a.dtype)


@pytest.mark.parametrize("type", TYPES)
def test_division(type: str) -> None:
    a, b = (x[pairs(type)[1] != 0] for x in pairs(type))
    check(f"div.{type} d, a, b;", towards_zero, a, b, out=a.dtype)
    check(f"rem.{type} d, a, b;", lambda x, y: x - towards_zero(x, y) * y, a, b, out=a.dtype)


@pytest.mark.parametrize("type", ("s32", "u32"))
def test_24_bit_products(type: str) -> None:
    a, b = pairs(type)
    cut = (lambda x: (x & 0xFFFFFF) - (1 << 24) * (x >> 23 & 1)) if type == "s32" else (lambda x: x & 0xFFFFFF)
    check(f"mul24.lo.{type} d, a, b;", lambda x, y: cut(x) * cut(y), a, b, out=a.dtype)
    check(f"mul24.hi.{type} d, a, b;", lambda x, y: cut(x) * cut(y) >> 16, a, b, out=a.dtype)


def test_saturation() -> None:
    a, b = pairs("s32")
    cut = lambda x: max(-(2**31), min(2**31 - 1, x))  # noqa: E731
    check("add.sat.s32 d, a, b;", lambda x, y: cut(x + y), a, b, out=a.dtype)
    check("sub.sat.s32 d, a, b;", lambda x, y: cut(x - y), a, b, out=a.dtype)


def test_extremes_that_are_not_negative() -> None:
    a, b = pairs("s32")
    check("min.relu.s32 d, a, b;", lambda x, y: max(min(x, y), 0), a, b, out=a.dtype)
    check("max.relu.s32 d, a, b;", lambda x, y: max(x, y, 0), a, b, out=a.dtype)
    halves = [np.array([-3, 5, 7, -32768], np.int16), np.array([2, -9, 8, 32767], np.int16)]
    got = run("min.s16x2 d, a, b;", *(half.view(np.uint32) for half in halves), out=np.uint32)
    np.testing.assert_array_equal(got.view(np.int16), np.minimum(*halves))
    with pytest.raises(EmulatorError, match="not known here"):
        run("min.odd.s32 d, a, b;", a, b, out=a.dtype)


@pytest.mark.parametrize("bits", (32, 64))
def test_carries(bits: int) -> None:
    """A sum and a difference of numbers of two words."""
    type = f"u{bits}"
    a, b = pairs(type)
    c, d = a[::-1].copy(), b[::-1].copy()
    word = np.dtype(f"u{bits // 8}")
    low, high = run(f"add.cc.{type} d0, a, b; addc.{type} d1, c, e;", a, b, c, np.zeros(1, word), d, out=(word, word))
    total = [(int(w) + (int(y) << bits)) + (int(x) + (int(z) << bits)) for w, x, y, z in zip(a, b, c, d, strict=True)]
    assert low.tolist() == [value % 2**bits for value in total]
    assert high.tolist() == [(value >> bits) % 2**bits for value in total]
    low, high = run(f"sub.cc.{type} d0, a, b; subc.{type} d1, c, e;", a, b, c, np.zeros(1, word), d, out=(word, word))
    total = [(int(w) + (int(y) << bits)) - (int(x) + (int(z) << bits)) for w, x, y, z in zip(a, b, c, d, strict=True)]
    assert low.tolist() == [value % 2**bits for value in total]
    assert high.tolist() == [(value >> bits) % 2**bits for value in total]


@pytest.mark.parametrize("bits", (16, 32, 64))
def test_logic(bits: int) -> None:
    a, b = pairs(f"u{bits}")
    check(f"and.b{bits} d, a, b;", lambda x, y: x & y, a, b, out=a.dtype)
    check(f"or.b{bits} d, a, b;", lambda x, y: x | y, a, b, out=a.dtype)
    check(f"xor.b{bits} d, a, b;", lambda x, y: x ^ y, a, b, out=a.dtype)
    check(f"not.b{bits} d, a;", lambda x: ~x, a, out=a.dtype)
    check(f"cnot.b{bits} d, a;", lambda x: x == 0, a, out=a.dtype)


@pytest.mark.parametrize("type", TYPES)
def test_signs(type: str) -> None:
    a = numbers(type)
    if type[0] == "s":
        check(f"abs.{type} d, a;", abs, a, out=a.dtype)
        check(f"neg.{type} d, a;", lambda x: -x, a, out=a.dtype)
    b, c = numbers(type, 7), numbers(type, 8)
    check(f"sad.{type} d, a, b, c;", lambda x, y, z: abs(x - y) + z, a, b, c, out=a.dtype)


@pytest.mark.parametrize("type", TYPES)
def test_shifts(type: str) -> None:
    a = np.repeat(numbers(type, 3, 2), 16)
    count = np.resize(
        np.array([0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 200, 2**31, 2**32 - 1, 7], np.uint32), len(a)
    )
    bits = 8 * a.dtype.itemsize
    check(f"shl.b{bits} d, a, b;", lambda x, n: x << min(n, bits), a, count, out=a.dtype)
    check(f"shr.{type} d, a, b;", lambda x, n: x >> min(n, bits), a, count, out=a.dtype)


def test_funnel_shifts() -> None:
    a, b = pairs("u32")
    n = np.resize(np.array([0, 1, 16, 31, 32, 33, 40, 200], np.uint32), len(a))
    both = lambda x, y: y << 32 | x  # noqa: E731
    for kind, amount in (("wrap", lambda k: k & 31), ("clamp", lambda k: min(k, 32))):
        check(f"shf.l.{kind}.b32 d, a, b, c;", lambda x, y, k: both(x, y) << amount(k) >> 32, a, b, n, out=a.dtype)  # noqa: B023
        check(f"shf.r.{kind}.b32 d, a, b, c;", lambda x, y, k: both(x, y) >> amount(k), a, b, n, out=a.dtype)  # noqa: B023


FIELDS = [(0, 0), (0, 1), (3, 5), (0, 32), (31, 1), (28, 8), (40, 4), (0, 64), (60, 10), (255, 255), (256, 3)]


@pytest.mark.parametrize("type", ("s32", "u32", "s64", "u64"))
def test_bit_fields(type: str) -> None:
    values = numbers(type, 4, 4)
    rows = list(itertools.product(values.tolist(), FIELDS))
    a = np.array([row[0] for row in rows], values.dtype)
    start = np.array([row[1][0] for row in rows], np.uint32)
    length = np.array([row[1][1] for row in rows], np.uint32)
    bits = 8 * a.dtype.itemsize

    def extract(x: int, s: int, n: int) -> int:
        s, n = s & 255, n & 255
        if n == 0:
            return 0
        sign = x >> min(s + n - 1, bits - 1) & 1 if type[0] == "s" else 0
        raw = [x % 2**bits >> (s + i) & 1 if s + i < bits else sign for i in range(min(n, bits))]
        return sum(bit << i for i, bit in enumerate(raw)) + (sum(sign << i for i in range(min(n, bits), bits)))

    check(f"bfe.{type} d, a, b, c;", extract, a, start, length, out=a.dtype)

    def insert(x: int, y: int, s: int, n: int) -> int:
        s, n = s & 255, n & 255
        for i in range(min(n, max(0, bits - s))):
            y = y & ~(1 << (s + i)) | (x >> i & 1) << (s + i)
        return y

    if type[0] == "u":
        b = np.resize(values[::-1], len(a))
        check(
            f"bfi.b{bits} d, a, b, c, e;",
            lambda x, y, s, _, n: insert(x, y, s, n),
            a,
            b,
            start,
            np.zeros(len(a), np.uint32),
            length,
            out=a.dtype,
        )


@pytest.mark.parametrize("type", ("s32", "u32", "s64", "u64"))
def test_counting_bits(type: str) -> None:
    a = numbers(type)
    bits, word = 8 * a.dtype.itemsize, np.dtype(np.uint32)
    check(f"bfind.{type} d, a;", lambda x: (x if x >= 0 else ~x).bit_length() - 1, a, out=word)
    check(
        f"bfind.shiftamt.{type} d, a;",
        lambda x: bits - y if (y := (x if x >= 0 else ~x).bit_length()) else -1,
        a,
        out=word,
    )
    if type[0] == "u":
        check(f"clz.b{bits} d, a;", lambda x: bits - x.bit_length(), a, out=word)
        check(f"popc.b{bits} d, a;", lambda x: x.bit_count(), a, out=word)
        check(f"brev.b{bits} d, a;", lambda x: int(f"{x:0{bits}b}"[::-1], 2), a, out=a.dtype)


def test_lop3() -> None:
    a, b, c = (np.resize(numbers("u32", seed), 32) for seed in range(3))
    for table in (0x00, 0x80, 0x96, 0xE8, 0xF8, 0x1B, 0xFF):
        value = lambda x, y, z, table=table: sum(
            (table >> (4 * (x >> i & 1) + 2 * (y >> i & 1) + (z >> i & 1)) & 1) << i for i in range(32)
        )
        check(f"lop3.b32 d, a, b, c, {table};", value, a, b, c, out=a.dtype)


@pytest.mark.parametrize("mode", ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"))
def test_prmt(mode: str) -> None:
    a, b = numbers("u32", 1), numbers("u32", 2)
    selector = np.random.default_rng(3).integers(0, 2**16, len(a), dtype=np.uint32)

    def picked(x: int, y: int, s: int) -> int:
        data = (x | y << 32).to_bytes(8, "little")
        k = s & 3
        choices = {
            "f4e": [k, k + 1, k + 2, k + 3], "b4e": [k, k + 7, k + 6, k + 5], "rc8": [k] * 4,
            "ecl": [max(i, k) for i in range(4)], "ecr": [min(i, k) for i in range(4)],
            "rc16": [2 * (k & 1), 2 * (k & 1) + 1] * 2,
        }.get(mode)  # fmt: skip
        result = 0
        for i in range(4):
            nibble = s >> 4 * i & 15 if choices is None else choices[i] % 8
            byte = data[nibble & 7]
            result |= ((0xFF if byte & 0x80 else 0) if nibble & 8 else byte) << 8 * i
        return result

    check(f"prmt.b32{'.' + mode if mode else ''} d, a, b, c;", picked, a, b, selector, out=a.dtype)


def as_signed(x: int, bits: int) -> int:
    return x - 2**bits if x >> (bits - 1) & 1 else x


@pytest.mark.parametrize("first", ("s32", "u32"))
@pytest.mark.parametrize("second", ("s32", "u32"))
def test_dots_of_bytes(first: str, second: str) -> None:
    a, b = numbers("u32", 1), numbers("u32", 2)
    whole = np.dtype(np.int32 if "s32" in (first, second) else np.uint32)
    c = numbers("u32", 3).view(whole)

    def part(x: int, type: str, index: int, bits: int) -> int:
        value = x >> bits * index & (1 << bits) - 1
        return as_signed(value, bits) if type == "s32" else value

    check(
        f"dp4a.{first}.{second} d, a, b, c;",
        lambda x, y, z: z + sum(part(x, first, i, 8) * part(y, second, i, 8) for i in range(4)),
        a,
        b,
        c,
        out=whole,
    )
    for half, at in (("lo", 0), ("hi", 2)):
        check(
            f"dp2a.{half}.{first}.{second} d, a, b, c;",
            lambda x, y, z: z + sum(part(x, first, i, 16) * part(y, second, at + i, 8) for i in range(2)),  # noqa: B023
            a, b, c, out=whole,
        )  # fmt: skip


COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@pytest.mark.parametrize("type", TYPES)
def test_comparisons(type: str) -> None:
    a, b = pairs(type)
    for name, sign in COMPARE.items():
        expected = eval(f"a {sign} b")
        assert (run(f"setp.{name}.{type} d, a, b;", a, b, out=bool) == expected).all()
        whole = run(f"set.{name}.u32.{type} d, a, b;", a, b, out=np.uint32)
        assert (whole == np.where(expected, 0xFFFFFFFF, 0)).all()
    flag = np.resize(np.array([True, False, False]), len(a))
    first, second = run(f"setp.lt.and.{type} d0|d1, a, b, c;", a, b, flag, out=(bool, bool))
    assert (first == ((a < b) & flag)).all() and (second == (~(a < b) & flag)).all()
    assert (run(f"setp.ge.or.{type} d, a, b, !c;", a, b, flag, out=bool) == ((a >= b) | ~flag)).all()
    assert (run(f"setp.eq.xor.{type} d, a, b, c;", a, b, flag, out=bool) == ((a == b) ^ flag)).all()


def test_selecting() -> None:
    a, b = numbers("u32", 1), numbers("u32", 2)
    flag = np.resize(np.array([True, False]), len(a))
    assert (run("selp.b32 d, a, b, c;", a, b, flag, out=np.uint32) == np.where(flag, a, b)).all()
    sign = numbers("s32", 3)
    assert (run("slct.u32.s32 d, a, b, c;", a, b, sign, out=np.uint32) == np.where(sign >= 0, a, b)).all()


def test_predicates() -> None:
    p, q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert (run("and.pred d, a, b;", p, q, out=bool) == (p & q)).all()
    assert (run("or.pred d, a, b;", p, q, out=bool) == (p | q)).all()
    assert (run("xor.pred d, a, b;", p, q, out=bool) == (p ^ q)).all()
    assert (run("not.pred d, a;", p, out=bool) == ~p).all()
    assert (run("mov.pred d, a;", p, out=bool) == p).all()
    x = np.arange(4, dtype=np.uint32)
    assert run("mov.u32 d, 9; @a add.u32 d, b, 100; @!a add.u32 d, b, 200;", p, x, out=np.uint32).tolist() == [
        200,
        201,
        102,
        103,
    ]


def test_masks_and_extensions() -> None:
    a, b = np.resize(np.arange(0, 40, dtype=np.uint32), 80), np.repeat(np.array([0, 5], np.uint32), 40)
    check("bmsk.clamp.b32 d, a, b;", lambda x, n: ((1 << min(n, 32)) - 1) << min(x, 32), a, b, out=a.dtype)
    values, size = numbers("s32"), np.resize(np.array([1, 4, 8, 31, 32, 40], np.uint32), len(numbers("s32")))
    check(
        "szext.clamp.s32 d, a, b;",
        lambda x, n: as_signed(x % 2 ** min(n, 32), min(n, 32)),
        values,
        size,
        out=values.dtype,
    )
    check(
        "szext.clamp.u32 d, a, b;",
        lambda x, n: x % 2 ** min(n, 32),
        values.view(np.uint32),
        size,
        out=np.dtype(np.uint32),
    )


def test_unknown_instructions_are_named() -> None:
    with pytest.raises(EmulatorError, match=r"(?s)PTX line \d+: frobnicate.u32 is not supported.*frobnicate"):
        run("frobnicate.u32 d, a;", np.zeros(1, np.uint32), out=np.uint32)
