"""Formats, rounding and arithmetic against their definitions, in fractions: every code, ties, subnormals, overflow."""

import math
from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilework.numerics import arithmetic, integers, rounding
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.formats import E2M1, FORMATS, TF32, Format, nearest_odd, round_fraction, rounded
from tilework.numerics.rounding import (
    BF16,
    F16,
    F32,
    F64,
    FLOATS,
    FORMAT_OF,
    bits_of,
    from_e4b15,
    from_integer,
    narrow,
    narrow_to_zero,
    saturate,
    to_e4b15,
    to_integer,
    to_tf32,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # overflow is what is tested
SHORT = {name: dtype for name, dtype in FLOATS.items() if dtype.itemsize <= 2}
MODES = ("rn", "rz", "rm", "rp")


def codes_of(format: Format) -> np.ndarray:
    """All codes of finite numbers that are not negative."""
    return np.arange(format.largest + 1, dtype=np.uint16).astype(f"u{format.bits // 8}")


def hard_numbers(format: Format) -> np.ndarray:
    """Numbers of a format, the midpoints between them, what lies just beside both, and what lies beyond."""
    numbers = np.array([format.number(int(code)) for code in codes_of(format)])
    numbers = numbers[:: max(1, len(numbers) // 3000)]
    last = numbers[-1]
    middles = np.append((numbers[:-1] + numbers[1:]) / 2, last + (last - numbers[-2]) / 2)
    near = np.concatenate([numbers, middles, [last * 1.2, 1e300, 5e-324, 2.0**-149]])
    beside = [near, np.nextafter(near, 0), np.nextafter(near, np.inf)]
    return np.concatenate([*beside, *(-x for x in beside)])


@pytest.mark.parametrize("name", SHORT)
def test_a_format_and_ml_dtypes_agree_on_every_code(name: str) -> None:
    format, dtype = FORMATS[name], SHORT[name]
    numbers = codes_of(format).view(dtype).astype(np.float64)
    assert numbers.tolist() == [format.number(code) for code in range(format.largest + 1)]
    assert format.limit == float(ml_dtypes.finfo(dtype).max)
    beyond = np.array([format.overflow, format.nan], f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    assert not np.isfinite(beyond).any() and np.isnan(beyond[1])
    negative_zero = np.array([1 << (format.bits - 1)], f"u{dtype.itemsize}").view(dtype).astype(np.float64)
    assert (negative_zero == 0).all() == format.has_negative_zero
    every = np.arange(1 << min(format.bits, 16)).astype(f"u{dtype.itemsize}")
    values = [format.value(int(code)) for code in every]
    np.testing.assert_array_equal(every.view(dtype).astype(np.float64), values)


@given(st.floats(allow_nan=False))
def test_rounding_agrees_with_numpy(value: float) -> None:
    single, half, brain = (FORMATS[name] for name in ("fp32", "fp16", "bf16"))
    with np.errstate(over="ignore"):
        assert rounded(value, single) == float(np.float32(value))
        assert rounded(value, half) == float(np.float16(value))
        assert rounded(rounded(value, single), brain) == float(np.float32(value).astype(BF16))


@pytest.mark.parametrize("name", SHORT)
def test_rounding_to_a_format(name: str) -> None:
    format, dtype = FORMATS[name], SHORT[name]
    values = hard_numbers(format)
    wanted = np.array([rounded(x, format) for x in values.tolist()])
    exact = [round_fraction(Fraction(x), format) if x else x for x in values[::7].tolist()]
    np.testing.assert_array_equal(wanted[::7], exact)
    with np.errstate(over="ignore", invalid="ignore"):
        got, singles = narrow(values, dtype).astype(np.float64), values.astype(np.float32)
        own = singles.astype(dtype).astype(np.float64)  # ml_dtypes and NumPy are right from float32
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(got[finite], wanted[finite])
    assert not np.isfinite(got[~finite]).any()
    keeps_sign = finite & ((wanted != 0) | format.has_negative_zero)
    assert (np.signbit(got) == np.signbit(wanted))[keeps_sign].all()
    near = np.array([rounded(float(x), format) for x in singles])
    np.testing.assert_array_equal(own[np.isfinite(near)], near[np.isfinite(near)])
    cut = narrow(saturate(values, dtype), dtype).astype(np.float64)
    assert np.abs(cut).max() == format.limit and (cut[finite] == wanted[finite]).all()
    if format.overflow < 1 << (format.bits - 1) and format.overflow != format.nan:  # those with infinity
        zero = narrow_to_zero(values, dtype).astype(np.float64)
        inside = np.abs(values) <= format.limit
        assert (np.abs(zero) <= np.abs(values)).all()
        step = np.abs(wanted - zero)
        assert ((step == 0) | (np.abs(wanted) > np.abs(values)))[inside].all() and (
            np.abs(zero[~inside]) == format.limit
        ).all()


def test_nan_stays_nan_with_its_sign_where_there_is_one() -> None:
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF], np.uint64)
    for dtype in FORMAT_OF:
        with np.errstate(invalid="ignore"):
            for nan in (bits.view(F64), bits.view(F64).astype(F32)):
                for converted in (narrow(nan, dtype), narrow_to_zero(nan, dtype), narrow(saturate(nan, dtype), dtype)):
                    assert np.isnan(converted.astype(np.float64)).all(), dtype


def exact_rounding(value: Fraction, format: Format, mode: str) -> float:
    """The neighbour of a number that a direction asks for."""
    near = round_fraction(value, format)
    if math.isinf(near):
        away = mode == "rn" or (mode == "rp" and near > 0) or (mode == "rm" and near < 0)
        return near if away else math.copysign(format.limit, near)
    down = mode == "rm" or (mode == "rz" and value > 0)
    up = mode == "rp" or (mode == "rz" and value < 0)
    dtype = FLOATS[format.name]
    step = np.array(near).astype(dtype)
    if (Fraction(near) > value and down) or (Fraction(near) < value and up):
        bits = int(bits_of(step)) & (1 << (format.bits - 1)) - 1
        outward = (near < 0 or (near == 0 and value < 0)) == down
        number = (
            format.number(bits + 1)
            if outward and bits < format.largest
            else math.inf
            if outward
            else format.number(bits - 1)
        )
        return -number if value < 0 else number
    return near


def operands(dtype: np.dtype, seed: int, count: int = 60) -> np.ndarray:
    format = FORMAT_OF[dtype]
    random = np.random.default_rng(seed)
    raw = random.integers(0, format.largest, count, dtype=np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    edges = np.array([0, 1, 2, format.largest, format.largest - 1, 1 << format.fraction, (1 << format.fraction) - 1])
    plain = random.normal(size=count).astype(dtype)
    values = np.concatenate([edges.astype(f"u{dtype.itemsize}").view(dtype), plain, raw])
    return random.permutation(np.where(random.random(values.size) < 0.5, -values, values).astype(dtype))


@pytest.mark.parametrize("dtype", [F16, BF16, F32, F64], ids=str)
def test_arithmetic_in_every_direction(dtype: np.dtype) -> None:
    """Against fractions; a sum that cancels is +0, but -0 rounding down, unless all terms are +0."""
    compute, format = Arithmetic.of(dtype), FORMAT_OF[dtype]
    edges = operands(dtype, 3, 0)
    pairs = [*np.meshgrid(edges, edges), np.resize(edges, edges.size**2)]
    a, b, c = (np.concatenate([operands(dtype, seed), pairs[seed].ravel()]) for seed in range(3))
    with np.errstate(over="ignore"):
        product = -(a[:8].astype(np.float64) * b[:8].astype(np.float64)).astype(dtype)
    c[:8] = np.where(np.isfinite(product), product, c[:8])
    columns = [[Fraction(float(x)) for x in column] for column in (a, b, c)]
    with np.errstate(all="ignore"):
        for mode in MODES:
            results = {
                "+": compute.add(a, b, mode),
                "*": compute.multiply(a, b, mode),
                "/": compute.divide(a, b, mode),
                "fma": compute.fma(a, b, c, mode),
            }
            for index, (x, y, z) in enumerate(zip(*columns, strict=True)):
                exact = {"+": x + y, "*": x * y, "/": x / y if y else None, "fma": x * y + z}
                signs = {
                    "+": (a[index], b[index]),
                    "fma": (np.copysign(1.0, float(a[index])) * np.copysign(1.0, float(b[index])), c[index]),
                }
                for name, value in exact.items():
                    got = float(results[name][index])
                    if value:
                        assert got == exact_rounding(value, format, mode), (name, mode, a[index], b[index], c[index])
                        assert (got < 0) == (value < 0) or got == 0
                        assert math.copysign(1, got) == (1 if value > 0 else -1)
                    elif value == 0 and name in signs:
                        negative = [math.copysign(1, float(term)) < 0 for term in signs[name]]
                        assert math.copysign(1, got) == (-1 if all(negative) or (mode == "rm" and any(negative)) else 1)
            roots = compute.square_root(np.abs(a), mode).astype(np.float64)
            for x, root in zip(np.abs(a).astype(np.float64).tolist(), roots.tolist(), strict=True):
                scale = Fraction(4) ** 600
                exact_root = Fraction(math.isqrt(int(Fraction(x) * scale * 4**120) // 1), 2**720) if x else Fraction(0)
                if x and exact_root**2 != Fraction(x):
                    exact_root += Fraction(1, 2**722)
                assert root == (exact_rounding(exact_root, format, mode) if x else 0.0)


EXACT = {
    arithmetic.add: lambda got, x, y: x + y - got,
    arithmetic.multiply: lambda got, x, y: x * y - got,
    arithmetic.divide: lambda got, x, y: x / y - got,
    arithmetic.fma: lambda got, x, y, z: x * y + z - got,
    arithmetic.square_root: lambda got, x: x - got * got,
    arithmetic.reciprocal_root: lambda got, x: 1 - x * got * got,
}  # has the sign of what a double misses, in fractions


@pytest.mark.parametrize("function", EXACT, ids=lambda function: function.__name__)
def test_the_sign_of_what_a_double_misses(function: Callable[..., arithmetic.Rounded]) -> None:
    """Results of narrower formats are rounded by it where a double lies in the middle of two numbers."""
    exact = EXACT[function]
    of_roots = function in (arithmetic.square_root, arithmetic.reciprocal_root)
    dtype = F32 if function is arithmetic.reciprocal_root else F64
    count = exact.__code__.co_argcount - 1
    given = [operands(dtype, seed, 200).astype(np.float64) for seed in range(count)]
    given[0][:20] = 4.0 ** np.arange(-10, 10)  # exact roots
    given = [np.abs(column) if of_roots else column for column in given]
    used = np.logical_and.reduce([column != 0 for column in given])
    given = [column[used] for column in given]
    with np.errstate(all="ignore"):
        results, signs = function(*given)
    missing = []
    for got, *numbers in zip(results.tolist(), *(column.tolist() for column in given), strict=True):
        if math.isfinite(got):
            rest = exact(Fraction(got), *map(Fraction, numbers))
            missing.append((rest > 0) - (rest < 0))
        else:
            missing.append(-math.copysign(1, got))
    assert signs.tolist() == missing


def test_integers_to_floats_and_back() -> None:
    random = np.random.default_rng(0)
    edges = [
        0,
        1,
        -1,
        2**53 + 1,
        -(2**53) - 1,
        2**63 - 1,
        -(2**63),
        2**62 + 2**54 + 1,
        2**24 + 1,
        65519,
        65520,
        2**63 - 513,
    ]
    values = np.array([*edges, *random.integers(-(2**63), 2**63 - 1, 200).tolist()], np.int64)
    for column in (values, values.view(np.uint64), values.astype(np.int32)):
        for dtype in (F16, BF16, F32, F64):
            wanted = [round_fraction(Fraction(x), FORMAT_OF[dtype]) if x else 0.0 for x in column.tolist()]
            with np.errstate(over="ignore"):
                assert from_integer(column, dtype).astype(np.float64).tolist() == wanted
                for mode in MODES:
                    directed = [
                        exact_rounding(Fraction(x), FORMAT_OF[dtype], mode) if x else 0.0 for x in column.tolist()
                    ]
                    assert Arithmetic.of(dtype).integer(column, mode).astype(np.float64).tolist() == directed
        if column.dtype.kind == "i":
            assert [rounded(nearest_odd(x), FORMATS["bf16"]) for x in column.tolist()] == from_integer(
                column, BF16
            ).tolist()
    floats = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.9, 3e9, 127.999, -128.5, 2.0**63, 2.0**64])
    for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        limits = np.iinfo(kind)
        wanted = [min(max(math.trunc(x), limits.min), limits.max) if math.isfinite(x) else x for x in floats.tolist()]
        wanted = [0 if x != x else limits.max if x == np.inf else limits.min if x == -np.inf else x for x in wanted]
        assert to_integer(floats, np.dtype(kind)).tolist() == wanted


def test_tf32_and_the_format_no_library_knows() -> None:
    values = np.concatenate([hard_numbers(FORMATS["bf16"]), [2.0**-140, 1 + 2.0**-11, 1 + 3 * 2.0**-11]])
    values = values[np.abs(values) < 3.4e38].astype(F32)
    near = to_tf32(bits_of(values), "rn").view(F32)
    assert near.tolist() == [rounded(x, TF32) for x in values.tolist()]
    away, cut = (to_tf32(bits_of(values), mode).view(F32) for mode in ("rna", "rz"))
    assert (np.abs(cut) <= np.abs(values)).all() and (np.abs(away) >= np.abs(near)).all()
    beyond = np.array([0x7F800000, 0xFF800000, 0x7F800001, 0x7FFFFFFF], np.uint32)
    assert (to_tf32(beyond, "rn") == beyond).all()
    codes = np.arange(256, dtype=np.uint8)
    numbers = from_e4b15(codes).astype(np.float64)
    format = FORMATS["fp8e4b15"]
    assert numbers[:128].tolist() == [format.number(code) for code in range(128)]
    assert (to_e4b15(from_e4b15(codes)) == np.where(codes & 0x7F == 0x7F, codes - 1, codes)).all()
    assert from_e4b15(to_e4b15(np.array([2.0, -np.inf, 2.0**-18], F16))).tolist() == [1.75, -1.75, 2.0**-17]


def test_microscaling_formats() -> None:
    numbers = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    np.testing.assert_array_equal(rounding.decode_e2m1(np.arange(16)), numbers)
    assert np.signbit(rounding.decode_e2m1(np.array([8])))[0]
    values = np.concatenate([np.linspace(-7, 7, 1121), [np.inf, -np.inf, -0.0, 5.0, 0.25, 0.75, 1e-300]])
    wanted = np.clip([rounded(x, E2M1) if abs(x) <= 6 else x for x in values.tolist()], -6, 6)
    np.testing.assert_array_equal(rounding.decode_e2m1(rounding.encode_e2m1(values)), wanted)
    scales = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(
        rounding.decode_e8m0(scales), scales.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    )
    assert rounding.decode_e8m0(scales)[0] == 2.0**-127
    assert (rounding.encode_e8m0(rounding.decode_e8m0(scales)) == scales).all()
    assert rounding.encode_e8m0(np.array([0, -1, np.inf, 1e-320, 1e300, 6.0])).tolist() == [
        255,
        255,
        255,
        0,
        254,
        129,
    ]
    packed = np.array([[0x21, 0xF8]], np.uint8)
    assert rounding.unpack_e2m1(packed, 1).tolist() == [[0.5, 1, -0.0, -6]]
    assert rounding.unpack_e2m1(packed, 0).tolist() == [[0.5, -0.0], [1, -6]]


def test_integer_facts() -> None:
    random = np.random.default_rng(1)
    for kind in ("i1", "u1", "i4", "u4", "i8", "u8"):
        info, width = np.iinfo(kind), 8 * np.dtype(kind).itemsize
        edges = [info.min, info.max, 0, 1, info.max - 1]
        x = np.array([*edges, *random.integers(info.min, info.max, 40, np.dtype(kind)).tolist()], kind)
        y = np.roll(x, 3)
        numbers, others, mask = [int(v) for v in x], [int(v) for v in y], (1 << width) - 1
        assert integers.high_product(x, y).tolist() == [a * b >> width for a, b in zip(numbers, others, strict=True)]
        assert integers.one_bits(x).tolist() == [(a & mask).bit_count() for a in numbers]
        assert integers.leading_zeros(x).tolist() == [width - (a & mask).bit_length() for a in numbers]
        low = [((a & mask) & -(a & mask)).bit_length() for a in numbers]
        assert integers.first_set(x).tolist() == low
        assert integers.trailing_zeros(x).tolist() == [index - 1 if index else width for index in low]
        flipped = [int(f"{a & mask:0{width}b}"[::-1], 2) for a in numbers]
        assert (integers.unsigned(integers.reversed_bits(x)) == np.array(flipped, f"u{width // 8}")).all()
    x, y = np.array([0x33221180, -1], np.int32), np.array([0x77665544, 0], np.int32)
    chosen = integers.selected_bytes(x, y, np.array([0x7480, 0x3B04], np.int32))
    assert integers.unsigned(chosen).tolist() == [0x7744FF80, 0xFFFFFF00]
    assert integers.low_24(np.array([0x1FFFFFF, 0x7FFFFF], np.int32)).tolist() == [-1, 0x7FFFFF]
