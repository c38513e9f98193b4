"""cvt against exact values."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.ptx import run
from tests.emulator.test_floating import DTYPES, MODES, bits, numbers, rounded
from tests.rows import row

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def dtype_of(type: str) -> np.dtype:
    return DTYPES.get(type) or np.dtype(f"{'i' if type[0] == 's' else 'u'}{int(type[1:]) // 8}")


def integers(type: str) -> np.ndarray:
    dtype = dtype_of(type)
    raw = np.random.default_rng(1).integers(0, 2**64, 40, dtype=np.uint64)
    edges = np.array(
        [0, 1, 2**7, 2**8 - 1, 2**15, 2**16 - 1, 2**24 + 1, 2**31, 2**32 - 1, 2**53 + 1, 2**63, 2**64 - 1], np.uint64
    )
    return np.concatenate([edges, raw]).astype(f"u{dtype.itemsize}").view(dtype)


def register(array: np.ndarray) -> np.ndarray:
    """8-bit values live in 16-bit registers."""
    return (
        array.astype(np.int16 if array.dtype.kind == "i" else np.uint16)
        if array.dtype.itemsize == 1
        else bits(array)
        if array.dtype.kind not in "iu"
        else array
    )


@pytest.mark.parametrize("source", INTEGERS)
@row("result", INTEGERS)
def test_between_integers(result: str, source: str) -> None:
    a = integers(source)
    wide = dtype_of(result)
    holder = np.dtype(f"{wide.kind}{max(2, wide.itemsize)}")
    np.testing.assert_array_equal(
        run(f"cvt.{result}.{source} d, a;", register(a), out=holder), a.astype(wide).astype(holder)
    )
    info = np.iinfo(wide)
    cut = np.array([max(info.min, min(info.max, int(x))) for x in a], wide)
    np.testing.assert_array_equal(run(f"cvt.sat.{result}.{source} d, a;", register(a), out=holder), cut.astype(holder))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("result", ("f16", "f32", "f64"))
@row("source", INTEGERS)
def test_integers_to_floats(result: str, source: str, mode: str) -> None:
    a = integers(source)
    got = run(f"cvt.{mode}.{result}.{source} d, a;", register(a), out=f"u{DTYPES[result].itemsize}").view(
        DTYPES[result]
    )
    assert got.astype(np.float64).tolist() == [rounded(Fraction(int(x)), result, mode) for x in a]


@pytest.mark.parametrize("mode", WHOLE)
@pytest.mark.parametrize("source", ("f16", "f32", "f64"))
@row("result", INTEGERS)
def test_floats_to_integers(result: str, source: str, mode: str) -> None:
    a = numbers(source, 2)
    a = np.concatenate([a, np.array([0.5, 1.5, 2.5, -0.5, -1.5, 127.5, 1e4, -1e4, np.inf, -np.inf], a.dtype)])
    wide = dtype_of(result)
    holder = np.dtype(f"{wide.kind}{max(2, wide.itemsize)}")
    got = run(f"cvt.{mode}.{result}.{source} d, a;", bits(a), out=holder)
    info = np.iinfo(wide)
    for x, value in zip(WHOLE[mode](a.astype(np.float64)).tolist(), got.tolist(), strict=True):
        expected = info.max if x >= info.max else info.min if x <= info.min else int(x)
        assert value == expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("result", "source"), (("f16", "f32"), ("f32", "f64"), ("f16", "f64"), ("bf16", "f32")))
def test_narrowing(result: str, source: str, mode: str) -> None:
    a = numbers(source, 3)
    got = run(f"cvt.{mode}.{result}.{source} d, a;", bits(a), out=f"u{DTYPES[result].itemsize}").view(DTYPES[result])
    assert got.astype(np.float64).tolist() == [
        rounded(Fraction(x), result, mode) for x in a.astype(np.float64).tolist()
    ]


@pytest.mark.parametrize(("result", "source"), (("f32", "f16"), ("f64", "f32"), ("f32", "bf16"), ("f64", "f16")))
def test_widening(result: str, source: str) -> None:
    a = numbers(source, 3)
    got = run(f"cvt.{result}.{source} d, a;", bits(a), out=f"u{DTYPES[result].itemsize}").view(DTYPES[result])
    np.testing.assert_array_equal(got, a.astype(np.float64).astype(DTYPES[result]))


@pytest.mark.parametrize("mode", WHOLE)
def test_whole_floats(mode: str) -> None:
    a = np.array([0.5, 1.5, -0.5, -2.5, 1e30, np.inf, -0.0, 2.3], np.float32)
    got = run(f"cvt.{mode}.f32.f32 d, a;", bits(a), out=np.uint32).view(np.float32)
    np.testing.assert_array_equal(got, WHOLE[mode](a))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(a))


def test_saturating_to_one() -> None:
    a = np.array([-1, 0.5, 2, np.nan], np.float32)
    np.testing.assert_array_equal(
        run("cvt.sat.f32.f32 d, a;", bits(a), out=np.uint32).view(np.float32), np.array([0, 0.5, 1, 0], np.float32)
    )


@pytest.mark.parametrize("type", ("f16", "bf16"))
def test_pairs(type: str) -> None:
    a, b = numbers("f32", 1), numbers("f32", 2)
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    got = run(f"cvt.rn.{type}x2.f32 d, a, b;", bits(a), bits(b), out=np.uint32).view(DTYPES[type]).reshape(-1, 2)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(got[:, 1].astype(np.float32), a.astype(DTYPES[type]).astype(np.float32))
        np.testing.assert_array_equal(got[:, 0].astype(np.float32), b.astype(DTYPES[type]).astype(np.float32))
    relu = run(f"cvt.rn.relu.{type}x2.f32 d, a, b;", bits(a), bits(b), out=np.uint32).view(DTYPES[type]).reshape(-1, 2)
    np.testing.assert_array_equal(relu.astype(np.float32), np.maximum(got.astype(np.float32), 0))


TINY = {"e4m3": (np.dtype(ml_dtypes.float8_e4m3fn), 448.0), "e5m2": (np.dtype(ml_dtypes.float8_e5m2), 57344.0)}


@pytest.mark.parametrize("type", TINY)
def test_fp8(type: str) -> None:
    dtype, limit = TINY[type]
    a = np.concatenate(
        [
            numbers("f32", 5, 200),
            np.array([limit, 2 * limit, -1e9, np.inf, -np.inf, 2.0**-10, 2.0**-9 * 1.5], np.float32),
        ]
    )
    b = a[::-1].copy()
    got = run(f"cvt.rn.satfinite.{type}x2.f32 d, a, b;", bits(a), bits(b), out=np.uint16).view(np.uint8).reshape(-1, 2)
    expected = np.clip(a, -limit, limit).astype(dtype).view(np.uint8)
    np.testing.assert_array_equal(got[:, 1], expected)
    np.testing.assert_array_equal(got[:, 0], expected[::-1])
    codes = np.arange(0, 256, 2, dtype=np.uint8)
    words = np.ascontiguousarray(np.stack([codes, codes + 1], 1)).view(np.uint16)[:, 0]
    halves = run(f"cvt.rn.f16x2.{type}x2 d, a;", words, out=np.uint32).view(np.float16).reshape(-1, 2)
    np.testing.assert_array_equal(
        halves.astype(np.float32).ravel(), np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    )
    back = run(
        f"cvt.rn.satfinite.{type}x2.f16x2 d, a;", np.ascontiguousarray(halves).view(np.uint32)[:, 0], out=np.uint16
    )
    finite = np.isfinite(halves.astype(np.float32)).all(axis=1)
    np.testing.assert_array_equal(back[finite], words[finite])


def test_tf32() -> None:
    a = np.concatenate([numbers("f32", 6), np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, np.inf], np.float32)])
    got = run("cvt.rna.tf32.f32 d, a;", bits(a), out=np.uint32)
    assert (got & 0x1FFF == 0).all()
    unit = np.spacing(np.abs(a[:-1].astype(np.float64)).astype(np.float32)).astype(np.float64) * 2**13
    assert (np.abs(got.view(np.float32)[:-1].astype(np.float64) - a[:-1]) <= unit / 2).all()
    assert got.view(np.float32)[-3:].tolist() == [1 + 2.0**-10, 1 + 2 * 2.0**-10, np.inf]


def test_packing_integers() -> None:
    a, b = np.array([1, -5, 40000, -40000], np.int32), np.array([2, 300, -40000, 7], np.int32)
    got = run("cvt.pack.sat.s16.s32 d, a, b;", a, b, out=np.uint32).view(np.int16).reshape(-1, 2)
    np.testing.assert_array_equal(got[:, 1], np.clip(a, -32768, 32767))
    np.testing.assert_array_equal(got[:, 0], np.clip(b, -32768, 32767))
