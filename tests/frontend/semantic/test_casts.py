"""Casts: the ops of every pair of types, and the values against NumPy."""

import numpy as np
import pytest

from tests.frontend.semantic.arith_kernel import NUMPY, Kernel
from tests.frontend.semantic.test_arith import FLOATS, INTS, build, samples
from tests.rows import row
from tilework.ir.types import int_property
from tilework.language.dtypes import (
    block_type,
    dtype,
    float16,
    float32,
    float64,
    int1,
    int8,
    int32,
    int64,
    pointer_type,
    uint32,
    uint64,
)

BOOL_AND_INTS = ["int1", *INTS]
STANDARD = [*BOOL_AND_INTS, *FLOATS]
E5, E4, E4B15 = dtype("fp8e5"), dtype("fp8e4nv"), dtype("fp8e4b15")

OPS = [
    ("int32", "int8", ["arith.trunci"]),
    ("int8", "int32", ["arith.extsi"]),
    ("int8", "uint32", ["arith.extsi"]),
    ("uint8", "int32", ["arith.extui"]),
    ("int1", "int32", ["arith.extui"]),
    ("int32", "uint32", []),
    ("int32", "int1", ["arith.cmpi"]),
    ("fp32", "int1", ["arith.cmpf"]),
    ("fp16", "int1", ["arith.extf", "arith.cmpf"]),
    ("int1", "fp32", ["arith.uitofp"]),
    ("int32", "fp16", ["arith.sitofp"]),
    ("uint32", "bf16", ["arith.uitofp"]),
    ("fp32", "int8", ["arith.fptosi"]),
    ("fp32", "uint8", ["arith.fptoui"]),
    ("bf16", "int32", ["arith.extf", "arith.fptosi"]),
    ("fp16", "fp32", ["arith.extf"]),
    ("fp64", "fp16", ["arith.truncf"]),
    ("fp32", "bf16", ["arith.truncf"]),
    ("fp16", "bf16", ["arith.extf", "arith.truncf"]),
    ("bf16", "fp64", ["arith.extf", "arith.extf"]),
    ("fp8e5", "fp16", ["tt.fp_to_fp"]),
    ("fp8e4nv", "fp32", ["tt.fp_to_fp"]),
    ("fp8e4nv", "fp64", ["tt.fp_to_fp", "arith.extf"]),
    ("fp32", "fp8e5", ["tt.fp_to_fp"]),
    ("bf16", "fp8e4nv", ["tt.fp_to_fp"]),
    ("fp8e5", "fp8e4nv", ["tt.fp_to_fp", "tt.fp_to_fp"]),
]


def cast(source: dtype, target: dtype, rounding: str | None = None) -> Kernel:
    return build("cast", source, Target(target), rounding)


class Target:
    """A dtype as a plain argument: `build` makes an operand of a bare dtype."""

    def __init__(self, target: dtype) -> None:
        self.scalar = target


@row(("source", "target", "ops"), OPS)
def test_ops(source: str, target: str, ops: list[str]) -> None:
    k = cast(dtype(source), dtype(target))
    assert k.ops == ops
    assert k.results[0].type == block_type(dtype(target), [16])


@pytest.mark.parametrize("source", STANDARD)
@row("target", STANDARD)
def test_values(source: str, target: str) -> None:
    x = samples(source)
    if source in FLOATS and target in INTS:
        x = np.abs(x) if target.startswith("u") else x  # out of range is the hardware's business
    expected = reference_cast(x, NUMPY[target])
    np.testing.assert_array_equal(cast(dtype(source), dtype(target)).run(x), expected)


def reference_cast(x: np.ndarray, target: np.dtype) -> np.ndarray:
    """NumPy's cast, with one rounding where ml_dtypes would round twice."""
    if target == np.bool_:
        return x != 0
    if target.name in ("float16", "bfloat16") and x.dtype.kind in "iu":
        with np.errstate(over="ignore"):
            return np.array([float(value) for value in x.tolist()]).astype(np.float32).astype(target)
    return x.astype(target)


def test_a_cast_to_the_same_type_is_free() -> None:
    k = Kernel(block_type(int32, [16]))
    assert k.semantic.cast(k.args[0], int32) is k.args[0]


def test_a_number_can_be_cast() -> None:
    k = Kernel()
    assert k.returns(k.semantic.cast(3, float16)).run() == 3


def test_nan_is_true() -> None:
    assert cast(float32, int1).run(np.full(16, np.nan, np.float32)).all()


@pytest.mark.parametrize("name", ["fp8e5", "fp8e4nv"])
def test_fp8_values(name: str) -> None:
    every = np.arange(256, dtype=np.uint8).view(NUMPY[name])
    every = every[np.isfinite(every.astype(np.float32))]
    for start in range(0, len(every) - 15, 16):
        part = every[start : start + 16]
        np.testing.assert_array_equal(cast(dtype(name), float32).run(part), part.astype(np.float32))
        np.testing.assert_array_equal(cast(float32, dtype(name)).run(part.astype(np.float32)), part)
    large = cast(float32, dtype(name)).run(np.array([1e6, -1e6, np.inf, -np.inf] * 4, np.float32))
    np.testing.assert_array_equal(np.abs(large.astype(np.float32)), np.float32(57344 if name == "fp8e5" else 448))


def test_rounding_modes() -> None:
    assert cast(float32, float16, "rtne").ops == ["arith.truncf"]
    x = np.array([1 + 2**-11 + 2**-12, -(1 + 2**-11 + 2**-12)] * 8, np.float32)
    np.testing.assert_array_equal(cast(float32, float16, "rtz").run(x), np.array([1, -1] * 8, np.float16))
    op = cast(float32, E5, "rtz").all_ops[0]
    assert int_property(op, "rounding") == 0


@pytest.mark.parametrize(
    ("source", "target", "rounding", "message"),
    [
        ("fp32", "fp16", "up", "Invalid rounding mode: up"),
        ("fp32", "fp64", "rtz", "only for truncating fp conversions"),
        ("fp32", "int32", "rtne", "only for truncating fp conversions"),
        ("fp16", "fp8e5", "rtz", "cannot round toward zero"),
        ("fp64", "fp32", "rtz", "cannot round toward zero"),
        ("fp32", "fp8e4nv", "rtz", "cannot round toward zero"),
    ],
)
def test_rounding_errors(source: str, target: str, rounding: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cast(dtype(source), dtype(target), rounding)


@pytest.mark.parametrize(
    ("source", "target"),
    [("fp8e5", "int32"), ("fp8e5", "int1"), ("int32", "fp8e5"), ("fp64", "fp8e5"), ("bf16", "fp8e4b15")],
)
def test_casts_that_do_not_exist(source: str, target: str) -> None:
    with pytest.raises(AssertionError, match=rf"cannot cast {source}\[.*\] to {target}: convert through"):
        cast(dtype(source), dtype(target))


def test_unavailable_fp8() -> None:
    k = Kernel(float32, supported_fp8_dtypes=("fp8e5",))
    with pytest.raises(ValueError, match=r"fp8e4b8 not supported in this architecture.*fp8e5"):
        k.semantic.cast(k.args[0], dtype("fp8e4b8"))


def e4b15_from_fp16(x: np.ndarray) -> np.ndarray:
    """The reference conversion: clamp, double, round half up into the high byte."""
    bits = x.view(np.uint16)
    doubled = np.minimum(bits & 0x7FFF, 0x3F00) * 2 + 0x80
    return ((bits & 0x8000 | doubled) >> 8).astype(np.uint8)


def test_fp8e4b15() -> None:
    """Every byte becomes the half whose exponent has the same bias, and comes back unchanged up to 1.75."""
    for start in range(0, 256, 16):
        byte = np.arange(start, start + 16, dtype=np.uint8)
        sign, rest = byte & 0x80, (byte & 0x7F).astype(np.uint16)
        half = (sign.astype(np.uint16) << 8 | rest << 7).view(np.float16)
        np.testing.assert_array_equal(cast(E4B15, float16).run(byte), half)
        np.testing.assert_array_equal(cast(E4B15, float32).run(byte), half.astype(np.float32))
        np.testing.assert_array_equal(cast(float16, E4B15).run(half).view(np.uint8), e4b15_from_fp16(half))
    assert cast(float32, E4B15).ops[0] == "tt.fp_to_fp"
    assert cast(E4B15, E5).ops[-1] == "tt.fp_to_fp"
    wide = np.array([1.0, -1.0, 3.0, np.inf, 0.3, -0.0, 1e-4, 2**-14] * 2, np.float32)
    expected = e4b15_from_fp16(np.array([1.0, -1.0, 3.0, np.inf, 0.2998, -0.0, 1e-4, 2**-14] * 2, np.float16))
    np.testing.assert_array_equal(cast(float32, E4B15).run(wide).view(np.uint8), expected)


BITCASTS = [
    ("fp32", "int32", ["tt.bitcast"]),
    ("int32", "fp32", ["tt.bitcast"]),
    ("fp16", "bf16", ["tt.bitcast"]),
    ("int8", "fp8e5", ["tt.bitcast"]),
    ("int32", "uint32", []),
    ("fp8e4b15", "int8", []),
    ("fp8e4b15", "fp8e5", ["tt.bitcast"]),
]


@pytest.mark.parametrize(("source", "target", "ops"), BITCASTS)
def test_bitcast(source: str, target: str, ops: list[str]) -> None:
    k = build("bitcast", dtype(source), Target(dtype(target)))
    assert k.ops == ops
    assert k.results[0].dtype.name == target


def test_bitcast_errors() -> None:
    with pytest.raises(ValueError, match="Cannot bitcast data-type of size 32 to data-type of size 16"):
        build("bitcast", int32, Target(dtype("int16")))


POINTER = pointer_type(float32)


@pytest.mark.parametrize("method", ["cast", "bitcast"])
@pytest.mark.parametrize(
    ("source", "target", "ops"),
    [
        (POINTER, int64, ["tt.ptr_to_int"]),
        (POINTER, uint64, ["tt.ptr_to_int"]),
        (POINTER, int1, ["tt.ptr_to_int", "arith.cmpi"]),
        (int64, POINTER, ["tt.int_to_ptr"]),
        (uint64, POINTER, ["tt.int_to_ptr"]),
        (POINTER, pointer_type(int8), ["tt.bitcast"]),
        (POINTER, pointer_type(float32, const=True), []),
    ],
)
def test_pointer_casts(method: str, source: dtype, target: dtype, ops: list[str]) -> None:
    k = build(method, source, Target(target))
    assert k.ops == ops
    assert k.results[0].type == block_type(target, [16])


@pytest.mark.parametrize(
    ("source", "target"),
    [(POINTER, int32), (POINTER, float32), (int32, POINTER), (uint32, POINTER), (float64, POINTER)],
)
def test_pointer_cast_errors(source: dtype, target: dtype) -> None:
    with pytest.raises(AssertionError, match="only 64-bit integers hold an address"):
        cast(source, target)
