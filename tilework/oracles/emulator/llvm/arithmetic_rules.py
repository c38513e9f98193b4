"""Element-wise rules: integers, floats, comparisons, conversions, and math functions of LLVM and of the hardware.

Math functions are computed in double precision and rounded to the type.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic, greater, greater_number, lesser, lesser_number
from tilework.numerics.integers import leading_zeros, one_bits, reversed_bits, trailing_zeros
from tilework.numerics.libdevice_in_numpy import round_half_away
from tilework.numerics.rounding import F16, F32, F64, UNSIGNED, from_integer, narrow, narrow_to_zero, to_integer
from tilework.oracles.emulator.llvm.ir import Float, Instruction, Int, Pointer, Sequence, dtype_of
from tilework.oracles.emulator.llvm.translate_ir import (
    IMPOSSIBLE,
    Compute,
    Mask,
    Scalar,
    Translator,
    Unsupported,
    Value,
    any_of,
    bitcast,
    either,
    element,
    elementwise,
    float_elementwise,
    floating,
    integer,
    intrinsic,
    literal,
    quiet_nan,
    rule,
    signed,
    unsigned,
)
from tilework.oracles.emulator.memory import LOCAL_BASE, SHARED_BASE, Array

BASES = {3: SHARED_BASE, 5: LOCAL_BASE}  # of spaces inside of flat addresses


def wrapped(function: Callable[[Array, Array], Array], kind: Int) -> Callable[[Array, Array], Array]:
    """Return an operation on bits whose result is truncated to the type."""
    return lambda a, b: unsigned(function(a, b), kind)


PLAIN: dict[str, Any] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
LOGIC: dict[str, Any] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@rule("add", "sub", "mul")
def arithmetic(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    if kind.bits == 1:
        return elementwise(ins, np.logical_and if ins.opcode == "mul" else np.logical_xor)
    function = PLAIN[ins.opcode]
    is_whole = dtype_of(kind).kind != "O" and kind.bits == 8 * dtype_of(kind).itemsize
    return elementwise(ins, function if is_whole else wrapped(function, kind))


@rule("and", "or", "xor")
def logic(ins: Instruction, t: Translator) -> Compute:
    return elementwise(ins, LOGIC[ins.opcode])


def with_poison(ins: Instruction, function: Callable[[Array, Array], tuple[Array, Array]]) -> Compute:
    """Return an operation that also reports where its result is poison."""

    def one(x: Scalar, y: Scalar) -> Scalar:
        data, wrong = function(x[0], y[0])
        undefined = either(x[1], y[1])
        return data, either(undefined, wrong.astype(np.uint8) * np.uint8(IMPOSSIBLE)) if wrong.any() else undefined

    if isinstance(ins.type, Sequence):
        return lambda mask, a, b: list(map(one, a, b))
    return lambda mask, a, b: one(a, b)


@rule("shl", "lshr", "ashr")
def shift(ins: Instruction, t: Translator) -> Compute:
    kind, opcode = integer(ins), ins.opcode

    def shifted(a: Array, b: Array) -> tuple[Array, Array]:
        wrong = b >= kind.bits
        if kind.bits == 1:
            return a, wrong
        amount = np.minimum(b, b.dtype.type(kind.bits - 1) if b.dtype.kind != "O" else kind.bits - 1)
        if opcode == "shl":
            return unsigned(np.left_shift(a, amount), kind), wrong
        if opcode == "lshr":
            return np.right_shift(a, amount), wrong
        values = signed(a, kind.bits)
        return unsigned(np.right_shift(values, amount.astype(values.dtype)), kind), wrong

    return with_poison(ins, shifted)


@rule("udiv", "sdiv", "urem", "srem")
def divide(ins: Instruction, t: Translator) -> Compute:
    kind, is_signed, is_rest = integer(ins), ins.opcode[0] == "s", ins.opcode.endswith("rem")

    def divided(a: Array, b: Array) -> tuple[Array, Array]:
        wrong = b == 0
        x, y = (signed(a, kind.bits), signed(b, kind.bits)) if is_signed else (a, b)
        y = np.where(wrong, y.dtype.type(1) if y.dtype.kind != "O" else 1, y)
        if not is_signed:
            return (x % y if is_rest else x // y), wrong
        if x.dtype.kind == "O":
            quotient = np.where((x < 0) != (y < 0), -(abs(x) // abs(y)), abs(x) // abs(y))
        else:
            quotient = x // y
            quotient = quotient + ((quotient * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)  # towards zero
        return unsigned(x - quotient * y if is_rest else quotient, kind), wrong

    return with_poison(ins, divided)


COMPARE: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@rule("icmp")
def compare(ins: Instruction, t: Translator) -> Compute:
    predicate = ins.extra["predicate"]
    function = COMPARE[predicate[-2:]]
    if predicate[0] != "s":
        return elementwise(ins, function)
    width = integer(ins, ins.operands[0][0]).bits
    return elementwise(ins, lambda a, b: function(signed(a, width), signed(b, width)))


@rule("fcmp")
def compare_floats(ins: Instruction, t: Translator) -> Compute:
    predicate = ins.extra["predicate"]
    if predicate in ("true", "false"):
        return elementwise(ins, lambda a, b: np.full(1, predicate == "true"))
    if predicate in ("ord", "uno"):
        return elementwise(ins, lambda a, b: (np.isnan(a) | np.isnan(b)) ^ (predicate == "ord"))
    function = COMPARE[predicate[1:]]
    if predicate[0] == "u":
        return elementwise(ins, lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b))
    return elementwise(ins, lambda a, b: function(a, b) & ~(np.isnan(a) | np.isnan(b)))


FLOATS: dict[str, str] = {"fadd": "add", "fmul": "multiply", "fdiv": "divide"}


@rule("fadd", "fsub", "fmul", "fdiv", "frem", "fneg")
def float_arithmetic(ins: Instruction, t: Translator) -> Compute:
    """Quotients end in V_DIV_FIXUP, whose NaN for 0 / 0 and inf / inf is negative."""
    dtype = floating(ins)
    if ins.opcode == "fneg":
        return elementwise(ins, np.negative)
    if ins.opcode == "frem":
        return float_elementwise(ins, lambda a, b: narrow(np.fmod(a.astype(np.float64), b.astype(np.float64)), dtype))
    operations = Arithmetic.of(dtype)
    if ins.opcode == "fsub":
        return float_elementwise(ins, np.subtract if operations.is_native else lambda a, b: operations.add(a, -b))
    return float_elementwise(ins, getattr(operations, FLOATS[ins.opcode]), is_negative=ins.opcode == "fdiv")


@intrinsic("fma", "fmuladd")
def fused(ins: Instruction, t: Translator) -> Compute:
    return float_elementwise(ins, Arithmetic.of(floating(ins)).fma)


# conversions


@rule("trunc", "zext", "sext")
def resize(ins: Instruction, t: Translator) -> Compute:
    kind, source = integer(ins), integer(ins, ins.operands[0][0])
    if ins.opcode != "sext":
        return elementwise(ins, lambda a: unsigned(a, kind))
    if source.bits == 1:
        ones = (1 << kind.bits) - 1
        return elementwise(ins, lambda a: unsigned(np.where(a, ones, 0), kind))
    return elementwise(ins, lambda a: unsigned(signed(a, source.bits), kind))


@rule("fptrunc", "fpext")
def resize_float(ins: Instruction, t: Translator) -> Compute:
    dtype = floating(ins)
    return float_elementwise(ins, lambda a: narrow(a, dtype))


@rule("fptosi", "fptoui")
@intrinsic("fptosi.sat", "fptoui.sat")
def to_int(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    is_signed = "si" in (ins.callee or ins.opcode)
    width = max(8, 8 * dtype_of(kind).itemsize)
    target = np.dtype(f"{'i' if is_signed else 'u'}{width // 8}")
    return elementwise(ins, lambda a: unsigned(to_integer(a, target), kind))


@rule("sitofp", "uitofp")
def from_int(ins: Instruction, t: Translator) -> Compute:
    dtype, source = floating(ins), integer(ins, ins.operands[0][0])
    if ins.opcode == "uitofp":
        return elementwise(ins, lambda a: from_integer(a.astype(np.uint8) if a.dtype == bool else a, dtype))
    if source.bits == 1:
        return elementwise(ins, lambda a: from_integer(-a.astype(np.int8), dtype))
    return elementwise(ins, lambda a: from_integer(signed(a, source.bits), dtype))


@rule("ptrtoint", "inttoptr", "ptrtoaddr")
def pointer_bits(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    return elementwise(ins, lambda a: unsigned(a, kind))


@rule("addrspacecast")
def change_space(ins: Instruction, t: Translator) -> Compute:
    source, target = element(ins.operands[0][0]), element(ins.type)
    assert isinstance(source, Pointer) and isinstance(target, Pointer)
    start, end = BASES.get(source.space, 0), BASES.get(target.space, 0)
    dtype = dtype_of(target)
    return elementwise(ins, lambda a: (a.astype(np.uint64) + np.uint64(start) - np.uint64(end)).astype(dtype))


@rule("bitcast")
def same_bits(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: bitcast(ins.type, ins.operands[0][0], value)


# intrinsics on integers


def limits(kind: Int, is_signed: bool) -> tuple[int, int]:
    return (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if is_signed else (0, (1 << kind.bits) - 1)


@intrinsic("smin", "smax", "umin", "umax")
def extreme(ins: Instruction, t: Translator) -> Compute:
    name = ins.callee.split(".")[1]
    function: Any = np.minimum if name.endswith("min") else np.maximum
    kind = integer(ins)
    if name[0] == "u":
        return elementwise(ins, function)
    return elementwise(ins, lambda a, b: unsigned(function(signed(a, kind.bits), signed(b, kind.bits)), kind))


@intrinsic("uadd.sat", "usub.sat", "sadd.sat", "ssub.sat")
def saturating(ins: Instruction, t: Translator) -> Compute:
    name, kind = ins.callee.split(".")[1], integer(ins)
    low, high = limits(kind, name[0] == "s")
    sign = 1 if name.endswith("add") else -1

    def computed(a: Array, b: Array) -> Array:
        x, y = (signed(a, kind.bits), signed(b, kind.bits)) if name[0] == "s" else (a, b)
        wide = object if kind.bits > 32 else np.int64
        return unsigned(np.clip(x.astype(wide) + sign * y.astype(wide), low, high), kind)

    return elementwise(ins, computed)


@intrinsic(*(f"{sign}{name}.with.overflow" for sign in "us" for name in ("add", "sub", "mul")))
def overflowing(ins: Instruction, t: Translator) -> Compute:
    name = ins.callee.split(".")[1]
    kind, function = integer(ins, ins.operands[0][0]), PLAIN[name[1:]]
    low, high = limits(kind, name[0] == "s")

    def computed(mask: Mask, a: Scalar, b: Scalar) -> Value:
        (x, p), (y, q) = a, b
        if name[0] == "s":
            x, y = signed(x, kind.bits), signed(y, kind.bits)
        exact = function(x.astype(object), y.astype(object))
        wrong = ((exact < low) | (exact > high)).astype(bool)
        return [(unsigned(exact, kind), either(p, q)), (wrong, either(p, q))]

    return computed


@intrinsic("abs")
def absolute(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    return elementwise(ins, lambda x: unsigned(np.abs(signed(x, kind.bits)), kind), 1)


def at_width(function: Callable[[Array], Array], kind: Int, fill: int) -> Callable[[Array], Array]:
    """Count bits of a type that may be narrower than its array; `fill` is the value of the extra bits."""
    return lambda a: unsigned(function(a) - (8 * a.dtype.itemsize - kind.bits) * fill, kind)


@intrinsic("ctpop", "ctlz", "cttz", "bitreverse", "bswap")
def bit_counts(ins: Instruction, t: Translator) -> Compute:
    name, kind = ins.callee.split(".")[1], integer(ins)
    functions: dict[str, Any] = {
        "ctpop": lambda a: unsigned(one_bits(a), kind),
        "ctlz": at_width(leading_zeros, kind, 1),
        "cttz": lambda a: unsigned(np.minimum(trailing_zeros(a), kind.bits), kind),
        "bitreverse": reversed_bits,
        "bswap": lambda a: a.byteswap(),
    }
    if kind.bits > 64:  # Python's integers
        if name not in WIDE_COUNTS:
            raise Unsupported(ins, "of more than 64 bits")
        functions[name] = np.frompyfunc(lambda value: WIDE_COUNTS[name](int(value), kind.bits), 1, 1)
    return elementwise(ins, functions[name], 1)


WIDE_COUNTS: dict[str, Callable[[int, int], int]] = {
    "ctpop": lambda value, width: value.bit_count(),
    "ctlz": lambda value, width: width - value.bit_length(),
    "cttz": lambda value, width: (value & -value).bit_length() - 1 if value else width,
}


@intrinsic("fshl", "fshr")
def funnel(ins: Instruction, t: Translator) -> Compute:
    """Shift two concatenated integers; of more than 32 bits, in Python's integers."""
    kind, is_left = integer(ins), ins.callee.startswith("llvm.fshl")
    wide: Any = np.uint64 if kind.bits <= 32 else int
    holds = np.dtype(np.uint64 if kind.bits <= 32 else object)

    def shifted(a: Array, b: Array, c: Array) -> Array:
        both = a.astype(holds) << wide(kind.bits) | b.astype(holds)
        amount = c.astype(holds) % wide(kind.bits)
        return unsigned(both << amount >> wide(kind.bits) if is_left else both >> amount, kind)

    return elementwise(ins, shifted)


@intrinsic("amdgcn.ubfe", "amdgcn.sbfe")
def bit_field(ins: Instruction, t: Translator) -> Compute:
    kind, is_signed = integer(ins), "sbfe" in ins.callee

    def field(a: Array, offset: Array, width: Array) -> Array:
        width = width.astype(np.int64) & 31
        low = a.astype(np.int64) >> (offset.astype(np.int64) & 31) & ((1 << width) - 1)
        sign = np.where(width > 0, 1 << np.maximum(width - 1, 0), 0) if is_signed else 0
        return unsigned((low ^ sign) - sign, kind)

    return elementwise(ins, field)


@intrinsic("amdgcn.perm")
def permuted_bytes(ins: Instruction, t: Translator) -> Compute:
    def chosen(high: Array, low: Array, selector: Array) -> Array:
        both = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
        found = np.zeros(1, np.uint64)
        for index in range(4):
            code = selector.astype(np.uint64) >> np.uint64(8 * index) & np.uint64(255)
            byte = both >> (code & np.uint64(7)) * np.uint64(8) & np.uint64(255)
            sign = (both >> ((code & np.uint64(3)) * np.uint64(16) + np.uint64(15)) & np.uint64(1)) * np.uint64(255)
            byte = np.where(code < 8, byte, np.where(code < 12, sign, np.where(code == 12, 0, 255)).astype(np.uint64))
            found = found | byte << np.uint64(8 * index)
        return found.astype(np.uint32)

    return elementwise(ins, chosen)


@intrinsic("amdgcn.mul.u24", "amdgcn.mul.i24", "amdgcn.mulhi.u24", "amdgcn.mulhi.i24")
def multiply_24(ins: Instruction, t: Translator) -> Compute:
    is_signed, shift = ".i24" in ins.callee, np.int64(32 if "mulhi" in ins.callee else 0)
    sign = np.int64(1 << 23 if is_signed else 0)

    def low(a: Array) -> Array:
        return ((a.astype(np.int64) & 0xFFFFFF) ^ sign) - sign

    return elementwise(ins, lambda a, b: unsigned(low(a) * low(b) >> shift, Int(32)))


LEAST = np.float32(2.0**-126)


def fraction(x: Array) -> Array:
    return np.minimum(x - np.floor(x), np.nextafter(1.0, 0.0))


def median(a: Array, b: Array, c: Array) -> Array:
    return np.fmax(np.fmin(a, b), np.fmin(np.fmax(a, b), c))


FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp2": np.exp2, "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "sqrt": np.sqrt, "pow": np.power, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint, "roundeven": np.rint, "round": round_half_away,
    "exp10": lambda x: np.power(10.0, x),
}  # fmt: skip
HARDWARE: dict[str, Callable[..., Array]] = {
    "amdgcn.exp2": np.exp2, "amdgcn.log": np.log2, "amdgcn.sqrt": np.sqrt, "amdgcn.rcp": lambda x: 1.0 / x,
    "amdgcn.rsq": lambda x: 1.0 / np.sqrt(x), "amdgcn.sin": lambda x: np.sin(2 * np.pi * fraction(x)),
    "amdgcn.cos": lambda x: np.cos(2 * np.pi * fraction(x)), "amdgcn.fract": fraction, "amdgcn.tanh": np.tanh,
    "amdgcn.fmed3": median,
}  # fmt: skip
EXACT: dict[str, Callable[..., Array]] = {
    "maxnum": greater_number, "minnum": lesser_number, "maximum": greater,
    "minimum": lesser, "maximumnum": greater_number, "minimumnum": lesser_number,
    "canonicalize": lambda x: x, "arithmetic.fence": lambda x: x,
}  # fmt: skip


def rounded_function(function: Callable[..., Array], dtype: Any, flushes: bool) -> Callable[..., Array]:
    """Compute in doubles; the hardware's f32 functions flush denormal numbers."""

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
    """The bits of the mask: signalling and quiet NaN, -inf, -normal, -denormal, -0, and the positive ones in reverse
    order."""
    classes = literal(ins, 1)
    kind = element(ins.operands[0][0])
    assert isinstance(kind, Float)
    least = Arithmetic.of(dtype_of(kind)).least

    def found(a: Array) -> Array:
        x = a.astype(F64)
        negative, size = np.signbit(x), np.abs(x)
        step = np.where(size == 0, 0, np.where(size < least, 1, np.where(np.isinf(x), 3, 2)))
        bit = np.where(np.isnan(x), 1, np.where(negative, 5 - step, 6 + step))
        return (classes >> bit & 1).astype(bool) | (np.isnan(x) & bool(classes & 3))

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
