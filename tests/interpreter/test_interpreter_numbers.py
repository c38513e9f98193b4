"""Numbers that the compiled code cannot be asked about yet: library functions, directed rounding, single roundings."""

from typing import Any

import ml_dtypes
import numpy as np

import tilework.language as tl
from tilework.language.extra import libdevice
from tilework.language.extra.cuda.libdevice import TABLE
from tilework.numerics.rounding import F16, narrow_to_zero
from tilework.oracles.interpreter import InterpretedFunction
from tilework.oracles.interpreter.tensors import convert, scalar_as


@InterpretedFunction
def apply(x, out, FN: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, FN(tl.load(x + i)))


@InterpretedFunction
def apply2(x, y, out, FN: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, FN(tl.load(x + i), tl.load(y + i)))


def call(name: str, x: Any, *y: Any) -> Any:
    out = np.zeros(x.shape, np.float64)
    (apply2 if y else apply)[(1,)](x, *y, out, getattr(libdevice, name), x.size)
    return out


def test_every_library_function_is_known() -> None:
    """Functions of one argument; `tests/frontend/semantic/test_libdevice_table.py` compares the values of all."""
    unknown = []
    for name, symbols in TABLE.items():
        for types in symbols:
            if len(types) != 1:
                continue
            x = np.full(4, 0.5).astype(
                {"fp32": "f4", "fp64": "f8", "int32": "i4", "int64": "i8"}.get(types[0].name, "u4")
            )
            if types[0].name == "uint64":
                x = x.astype("u8")
            try:
                call(name, x)
            except Exception as error:
                assert "cannot be interpreted" in str(error), (name, error)
                unknown.append(name)
    assert not unknown


def test_registers_of_the_gpu() -> None:
    out = np.zeros(3, np.int64)
    registers[(1,)](out, num_warps=2)
    assert out[0] > 10**18 and out[1] == 0 and out[2] == 66


@InterpretedFunction
def registers(out):
    tl.extra.cuda.gdc_wait()
    tl.store(out, tl.extra.cuda.globaltimer())
    tl.store(out + 1, tl.extra.cuda.smid())
    tl.store(out + 2, tl.extra.cuda.num_threads() + tl.extra.cuda.num_warps())
    tl.extra.cuda.gdc_launch_dependents()


def test_conversions_round_once() -> None:
    barely = np.float64(1 + 2**-8 + 2**-40)  # through float32 it would become a tie
    assert float(convert(np.asarray(barely), tl.float64, tl.bfloat16)) == 1 + 2**-7
    big = np.int64((1 << 62) + (1 << 54) + 1)
    assert int(convert(np.asarray(big), tl.int64, tl.bfloat16).astype(np.float64)) == (1 << 62) + (1 << 55)
    assert scalar_as(2**53 + 1, tl.float32) == np.float32(2**53)
    assert int(convert(np.asarray(np.float32(300.7)), tl.float32, tl.uint8)) == 44
    assert convert(np.asarray(np.float32(1e6)), tl.float32, tl.float8e5).astype(np.float32) == 57344
    assert narrow_to_zero(np.asarray(np.float32(-65519.99)), F16) == np.float16(-65504)


def test_saturation_of_floats_to_integers() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, -0.9, 3e9], np.float32)
    assert convert(values, tl.float32, tl.int32).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0, 2**31 - 1]
    assert convert(values, tl.float32, tl.uint32).tolist() == [0, 2**32 - 1, 0, 2**32 - 1, 0, 0, 3000000000]
    assert convert(values, tl.float32, tl.int64).tolist()[1:3] == [2**63 - 1, -(2**63)]


def test_every_bf16_product_is_rounded_once() -> None:
    random = np.random.default_rng(1)
    x, y = (random.normal(size=256).astype(ml_dtypes.bfloat16) for _ in range(2))
    out = np.zeros(256, ml_dtypes.bfloat16)
    multiply[(1,)](x, y, out)
    exact = x.astype(np.float64) * y.astype(np.float64)
    assert np.array_equal(
        out.astype(np.float64), exact.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    )


@InterpretedFunction
def multiply(x, y, out):
    i = tl.arange(0, 256)
    tl.store(out + i, tl.load(x + i) * tl.load(y + i))
