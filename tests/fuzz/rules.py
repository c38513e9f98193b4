"""The types of generated kernels, and what NumPy says about them: promotion, casts and operators, written a second
time.

    promote(INT8, UINT8)                   UINT8
    promote(FP16, FP16, division=True)     FP32
    promote(BF16, weak="int")              BF16

Nothing of tilework is used here, so that the generated kernels also check the frontend: each statement of a kernel
asserts the dtype that these rules foresee.
"""

import operator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class DType:
    """`code` is the spelling of signatures, `tl` the name in `tilework.language`."""

    code: str
    tl: str
    kind: str  # bool, int, float
    bits: int
    signed: bool
    numpy: Any

    @property
    def is_int(self) -> bool:
        return self.kind == "int"

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_bool(self) -> bool:
        return self.kind == "bool"


BOOL = DType("u1", "int1", "bool", 1, False, np.bool_)
INT8 = DType("i8", "int8", "int", 8, True, np.int8)
INT16 = DType("i16", "int16", "int", 16, True, np.int16)
INT32 = DType("i32", "int32", "int", 32, True, np.int32)
INT64 = DType("i64", "int64", "int", 64, True, np.int64)
UINT8 = DType("u8", "uint8", "int", 8, False, np.uint8)
UINT16 = DType("u16", "uint16", "int", 16, False, np.uint16)
UINT32 = DType("u32", "uint32", "int", 32, False, np.uint32)
UINT64 = DType("u64", "uint64", "int", 64, False, np.uint64)
FP16 = DType("fp16", "float16", "float", 16, True, np.float16)
BF16 = DType("bf16", "bfloat16", "float", 16, True, ml_dtypes.bfloat16)
FP32 = DType("fp32", "float32", "float", 32, True, np.float32)
FP64 = DType("fp64", "float64", "float", 64, True, np.float64)
FP8E5 = DType("fp8e5", "float8e5", "float", 8, True, ml_dtypes.float8_e5m2)
FP8E4NV = DType("fp8e4nv", "float8e4nv", "float", 8, True, ml_dtypes.float8_e4m3fn)
FP8E4B8 = DType("fp8e4b8", "float8e4b8", "float", 8, True, ml_dtypes.float8_e4m3fnuz)
FP8E5B16 = DType("fp8e5b16", "float8e5b16", "float", 8, True, ml_dtypes.float8_e5m2fnuz)

INTS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
FLOATS = (FP16, BF16, FP32, FP64)
ARITHMETIC = (BOOL, *INTS, *FLOATS)
KINDS = ("bool", "int", "float")


def promote(a: DType, b: DType | None = None, *, weak: str = "", division: bool = False) -> DType | None:
    """The type in which `a` and `b` (or `a` and a number of kind `weak`) are combined; None when they cannot be."""
    if weak:
        if KINDS.index(weak) <= KINDS.index(a.kind):
            return widened(a) if division else a
        b = FP32 if weak == "float" else INT32
    assert b is not None, "two types, or one and a number"
    if FP64 in (a, b):
        return FP64
    if FP32 in (a, b):
        return FP32
    if FP16 in (a, b):
        return FP32 if division else FP16
    if BF16 in (a, b):
        return BF16 if a is b and not division else FP32
    if division and a.signed != b.signed:
        return None
    if a.signed == b.signed:
        return a if a.bits >= b.bits else b
    unsigned, signed = (b, a) if a.signed else (a, b)
    return unsigned if unsigned.bits >= signed.bits else signed


def widened(a: DType) -> DType:
    """Return the type in which a division is computed."""
    return FP32 if a in (FP16, BF16) else a


def summed(a: DType) -> DType:
    """The type of `tl.sum`."""
    if a.is_float or a.bits >= 32:
        return a
    return INT32 if a.signed else UINT32


def extreme(a: DType) -> DType:
    """The type of `tl.max` and `tl.min`."""
    if a in (FP16, BF16):
        return FP32
    return INT32 if not a.is_float and a.bits < 32 else a


def convert(x: Array, to: DType) -> Array:
    """`x` as a `to`; integers wrap, floats round to nearest even."""
    x = np.asarray(x)
    if to.is_bool:
        return x != 0
    if x.dtype == np.bool_:
        x = x.astype(np.int32)
    if to.is_float and x.dtype.kind in "iu" and to.bits == 16:
        return x.astype(np.float64).astype(to.numpy)
    return x.astype(to.numpy)


INTEGER_DIVISION = {
    "//": lambda x, y: np.where((x < 0) != (y < 0), -(np.abs(x) // np.abs(y)), np.abs(x) // np.abs(y)).astype(x.dtype),
    "%": lambda x, y: np.fmod(x, y),
}
OPERATORS = {
    **{"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": np.fmod},
    **{"&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": np.left_shift, ">>": np.right_shift},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne},
}
MODULO_2 = {"+": operator.xor, "-": operator.xor, "*": operator.and_}


def apply(symbol: str, x: Array, y: Array, dtype: DType, arithmetic_shift: bool = False) -> Array:
    """``x symbol y`` with both converted to `dtype` first."""
    x, y = convert(x, dtype), convert(y, dtype)
    with np.errstate(all="ignore"):
        if dtype.is_bool and symbol in MODULO_2:
            return MODULO_2[symbol](x, y)
        if dtype.is_int and symbol in INTEGER_DIVISION:
            return INTEGER_DIVISION[symbol](x, y)
        if symbol == ">>" and dtype.is_int and arithmetic_shift != dtype.signed:
            other = np.dtype(f"{'i' if arithmetic_shift else 'u'}{dtype.bits // 8}")
            return np.right_shift(x.view(other), y.view(other)).view(dtype.numpy)
        return OPERATORS[symbol](x, y)
