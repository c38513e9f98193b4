"""Functions of floats: LLVM's and those of the hardware, in double precision and rounded to the type."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics import extremes
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.libdevice_in_numpy import round_half_away
from tilework.numerics.rounding import F16, F32, F64, UNSIGNED, narrow, narrow_to_zero
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Float, dtype_of
from tilework.oracles.emulator.llvm.lane_values import Scalar, Value, any_of
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Translator,
    element,
    elementwise,
    float_elementwise,
    floating,
    intrinsic,
    literal,
    quiet_nan,
)

LEAST = np.float32(2.0**-126)


def fraction(x: Array) -> Array:
    return np.minimum(x - np.floor(x), np.nextafter(1.0, 0.0))


def median(a: Array, b: Array, c: Array) -> Array:
    return np.fmax(np.fmin(a, b), np.fmin(np.fmax(a, b), c))


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp2": np.exp2, "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sqrt": np.sqrt, "pow": np.power, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
    "roundeven": np.rint, "round": round_half_away, "exp10": lambda x: np.power(10.0, x),
}  # fmt: skip
HARDWARE: dict[str, Callable[..., Array]] = {
    "amdgcn.exp2": np.exp2, "amdgcn.log": np.log2, "amdgcn.sqrt": np.sqrt, "amdgcn.rcp": lambda x: 1.0 / x,
    "amdgcn.rsq": lambda x: 1.0 / np.sqrt(x), "amdgcn.sin": lambda x: np.sin(2 * np.pi * fraction(x)),
    "amdgcn.cos": lambda x: np.cos(2 * np.pi * fraction(x)), "amdgcn.fract": fraction, "amdgcn.tanh": np.tanh,
    "amdgcn.fmed3": median,
}  # fmt: skip
EXACT: dict[str, Callable[..., Array]] = {
    "maxnum": extremes.greater_number, "minnum": extremes.lesser_number, "maximum": extremes.greater, "minimum": extremes.lesser,
    "maximumnum": extremes.greater_number, "minimumnum": extremes.lesser_number,
    "canonicalize": lambda x: x, "arithmetic.fence": lambda x: x,
}  # fmt: skip


def rounded_function(function: Callable[..., Array], dtype: Any, flushes: bool) -> Callable[..., Array]:
    """Computed in doubles; the hardware's functions of f32 know no denormal numbers."""

    def computed(*args: Array) -> Array:
        wide = [flushed(arg) if flushes else arg for arg in args]
        found = narrow(function(*(arg.astype(F64) for arg in wide)), dtype)
        return flushed(found) if flushes else found

    return computed


def flushed(values: Array) -> Array:
    return np.where(np.abs(values) < LEAST, np.copysign(np.float32(0), values), values)


@intrinsic(*FUNCTIONS, *HARDWARE)
def function(ins: Instruction, t: Translator) -> Compute:
    dtype = floating(ins)
    name = ".".join(ins.callee.split(".")[1:3]) if ins.callee.startswith("llvm.amdgcn") else ins.callee.split(".")[1]
    found = HARDWARE.get(name)
    flushes = found is not None and dtype == F32 and name not in ("amdgcn.fract", "amdgcn.fmed3")
    return float_elementwise(ins, rounded_function(found or FUNCTIONS[name], dtype, flushes))


@intrinsic(*EXACT)
def exact(ins: Instruction, t: Translator) -> Compute:
    name = ins.callee.removeprefix("llvm.").rpartition(".")[0]
    return float_elementwise(ins, EXACT[name])


@intrinsic("fabs", "copysign")
def signs(ins: Instruction, t: Translator) -> Compute:
    dtype = floating(ins)
    bits = UNSIGNED[dtype.itemsize]
    rest = bits.type((1 << 8 * dtype.itemsize - 1) - 1)

    def cleared(a: Array) -> Array:
        return (np.ascontiguousarray(a).view(bits) & rest).view(dtype)

    def signed(a: Array, b: Array) -> Array:
        return (np.ascontiguousarray(cleared(a)).view(bits) | (np.ascontiguousarray(b).view(bits) & ~rest)).view(dtype)

    return elementwise(ins, cleared if "fabs" in ins.callee else signed)


@intrinsic("ldexp", "amdgcn.ldexp")
def scaled(ins: Instruction, t: Translator) -> Compute:
    dtype = floating(ins)
    operations, default = Arithmetic.of(dtype), quiet_nan(dtype)

    def times_power(a: Array, b: Array) -> Array:
        return operations.propagate(narrow(np.ldexp(a.astype(F64), b.view(np.int32)), dtype), (a,), default)

    return elementwise(ins, times_power)


@intrinsic("frexp", "amdgcn.frexp.mant", "amdgcn.frexp.exp")
def parts(ins: Instruction, t: Translator) -> Compute:
    dtype = dtype_of(element(ins.operands[0][0]))
    exponent = np.int16 if "i16" in ins.callee else np.int32

    def computed(mask: Mask, value: Scalar) -> Value:
        data, undefined = value
        mantissa, power = np.frexp(data.astype(F64))
        pair = [
            (Arithmetic.of(dtype).propagate(narrow(mantissa, dtype), (data,), quiet_nan(dtype)), undefined),
            (power.astype(exponent).view(f"u{exponent().itemsize}"), undefined),
        ]
        return pair if "llvm.frexp" in ins.callee else pair[".exp." in ins.callee]

    return computed


@intrinsic("is.fpclass")
def is_class(ins: Instruction, t: Translator) -> Compute:
    """Bits of the number: signalling and quiet NaN, then -inf, -normal, -denormal, -0, and the same upwards."""
    classes = literal(ins, 1)
    kind = element(ins.operands[0][0])
    assert isinstance(kind, Float)
    least = Arithmetic.of(dtype_of(kind)).least

    def found(a: Array) -> Array:
        x = a.astype(F64)
        negative, size = np.signbit(x), np.abs(x)
        step = np.where(size == 0, 0, np.where(size < least, 1, np.where(np.isinf(x), 3, 2)))
        number = np.where(np.isnan(x), 1, np.where(negative, 5 - step, 6 + step))
        return (classes >> number & 1).astype(bool) | (np.isnan(x) & bool(classes & 3))

    return elementwise(ins, found, 1)


@intrinsic("amdgcn.cvt.pkrtz")
def pack_to_zero(ins: Instruction, t: Translator) -> Compute:
    half = Arithmetic.of(F16)

    def packed(data: Array) -> Array:
        return half.propagate(narrow_to_zero(data, F16), (data,), quiet_nan(F16))

    return lambda mask, *values: [(packed(data), undefined) for data, undefined in values]


@intrinsic("amdgcn.fdot2", "amdgcn.fdot2.f32.bf16")
def dot_two(ins: Instruction, t: Translator) -> Compute:
    def computed(mask: Mask, a: list[Scalar], b: list[Scalar], c: Scalar, clamp: Scalar) -> Scalar:
        total = c[0].astype(F64)
        for (x, _), (y, _) in zip(a, b, strict=True):
            total = total + x.astype(F64) * y.astype(F64)
        return Arithmetic.of(F32).propagate(total.astype(F32), (), quiet_nan(F32)), any_of([*a, *b, c])

    return computed


@intrinsic("amdgcn.sdot4", "amdgcn.udot4", "amdgcn.sudot4")
def dot_four(ins: Instruction, t: Translator) -> Compute:
    where, signs = (0, 1, 2), ("sdot4" in ins.callee,) * 2
    if "sudot4" in ins.callee:
        where, signs = (1, 3, 4), (bool(literal(ins, 0)), bool(literal(ins, 2)))

    def lanes(data: Array, is_signed: bool) -> Array:
        shifts = np.arange(0, 32, 8, dtype=np.uint32)
        return (data[:, None] >> shifts & np.uint32(255)).astype(np.uint8).view(np.int8 if is_signed else np.uint8)

    def computed(mask: Mask, *values: Scalar) -> Scalar:
        used = [values[index] for index in where]
        x, y, z = (data for data, _ in used)
        products = lanes(x, signs[0]).astype(np.int64) * lanes(y, signs[1])
        total = products.sum(axis=-1) + z.view(np.int32).astype(np.int64)
        return total.astype(np.uint32), any_of(used)

    return computed
