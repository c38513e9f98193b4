"""Floating-point arithmetic (f16, bf16, f32, f64, and pairs of halves in one register), and comparisons of integers and
floats.

    add.rn.ftz.f32  %f1, %f2, %f3      fma.rn.f16x2  %r1, %r2, %r3, %r4      ex2.approx.f32  %f1, %f2
    setp.lt.s32  %p1, %r1, %r2         set.eq.u32.s32  %r1, %r2, %r3         slct.b32.s32  %r1, %r2, %r3, %r4

Approximate instructions give the correctly rounded value, which is within the documented error, and keep the documented
special cases. `.ftz` flushes denormal inputs and results to zero; `.sat` clamps the result to [0, 1].

`Format` is a float format of PTX: correctly rounded arithmetic, and the GPU's treatment of NaN and denormal numbers.

>>> Format.of("f32").add(np.float32([1]), np.float32([2**-30]), "rp")
array([1.0000001], dtype=float32)
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tilework.light_dataclass import light_dataclass
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.integers import upper_half
from tilework.numerics.rounding import BF16, F16, F32, F64
from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import Instruction, Operand, Sink, pair
from tilework.oracles.emulator.translate import Mask, Op, Rule, Translator, Unsupported, elementwise, rule, unsigned

DTYPES = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
NANS = {
    "f16": 0x7FFF,
    "bf16": 0x7FFF,
    "f32": 0x7FFFFFFF,
    "f64": 0xFFF8000000000000,
}  # results of invalid operations on numbers


@light_dataclass
class Format(Arithmetic):
    """A float format under its PTX name."""

    name: str

    @staticmethod
    @cache
    def of(name: str) -> "Format":  # pyright: ignore[reportIncompatibleMethodOverride]
        plain = Arithmetic.of(DTYPES[name])
        return Format(plain.dtype, plain.least, plain.dropped, name)

    @staticmethod
    def of_dtype(dtype: np.dtype[Any]) -> "Format":
        return Format.of(next(name for name, found in DTYPES.items() if found == dtype))

    def canonical(self, values: Array, operands: Sequence[Array] = ()) -> Array:
        """Replace NaNs by those that the GPU produces: a fixed one; f64 keeps the payload of the last operand that is
        NaN.

        An H200 takes the second of two NaNs in `add.f64`; other instructions were measured with one NaN.
        """
        return self.propagate(values, operands[::-1] if self.dtype == F64 else (), NANS[self.name])

    def flush(self, values: Array) -> Array:
        """Flush denormals to zeros of the same sign."""
        tiny = (np.abs(values) < self.dtype.type(self.least)) & (values != 0)
        if not np.count_nonzero(tiny):
            return values
        return np.where(tiny, np.copysign(self.dtype.type(0), values), values).astype(self.dtype)


PACKED = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
FLOATS = ("f16", "bf16", "f32", "f64", *PACKED)
Function = Callable[..., Array]


def mode_of(ins: Instruction) -> str:
    return next((modifier for modifier in ins.modifiers if modifier in ("rn", "rz", "rm", "rp", "rna")), "rn")


def read_float(t: Translator, operand: Operand, type: str) -> Callable[[], Array]:
    """Return a function that reads an operand in its format: one element per thread, or (threads, 2) if packed."""
    if type in PACKED:
        format = Format.of(PACKED[type])
        whole = np.dtype(f"u{2 * format.dtype.itemsize}")
        value = t.read(operand, whole)
        if value.ndim == 0:
            constant = np.broadcast_to(value.reshape(1).view(format.dtype), (t.threads, 2))
            return lambda: constant
        pairs = value.view(format.dtype).reshape(-1, 2)
        return lambda: pairs
    format = Format.of(type)
    bits = t.read(operand, format.bits) if type == "bf16" else t.read(operand, format.dtype)
    values = bits.view(format.dtype)
    return lambda: values


def write_float(t: Translator, operand: Operand, type: str) -> Callable[[Array, Mask], None]:
    format = Format.of(PACKED.get(type, type))
    if type in PACKED:
        out = t.write(operand, np.dtype(f"u{2 * format.dtype.itemsize}")).view(format.dtype).reshape(-1, 2)

        def put_pairs(values: Array, mask: Mask) -> None:
            np.copyto(out, values, where=mask if mask is True else mask[:, None])

        return put_pairs
    single = t.write(operand, format.bits).view(format.dtype)
    return lambda values, mask: np.copyto(single, values, where=mask)


def element(ins: Instruction, t: Translator, function: Function, count: int) -> Op:
    """Return an operation on `count` operands per thread, with the modifiers that all share."""
    type, format = type_and_format(ins)
    reads = [read_float(t, operand, type) for operand in ins.operands[1 : 1 + count]]
    put = write_float(t, ins.operands[0], type)
    flush, saturate, relu = "ftz" in ins.modifiers, "sat" in ins.modifiers, "relu" in ins.modifiers

    def op(mask: Mask) -> None:
        values = [read() for read in reads]
        if flush:
            values = [format.flush(value) for value in values]
        result = function(*values)
        if flush:
            result = format.flush(result)
        if saturate:
            result = saturated(result, format)
        if relu:
            result = np.where(
                result > format.dtype.type(0), result, np.where(np.isnan(result), result, format.dtype.type(0))
            )
        put(format.canonical(np.asarray(result, format.dtype), values), mask)

    return op


def saturated(values: Array, format: Format) -> Array:
    one, zero = format.dtype.type(1), format.dtype.type(0)
    return np.where(values >= one, one, np.where(values > zero, values, zero)).astype(format.dtype)


def float_rule(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register a rule for the floating-point forms of instructions."""
    return rule(*(f"{opcode}.{type}" for opcode in opcodes for type in FLOATS))


def float_function(*opcodes: str, count: int) -> Callable[[Callable[[Instruction, Format, str], Function]], Rule]:
    """Register a factory of the function of `count` operands that an instruction computes, in its format and rounding
    mode."""

    def register(function: Callable[[Instruction, Format, str], Function]) -> Rule:
        def made(ins: Instruction, t: Translator) -> Op:
            return element(ins, t, function(ins, type_and_format(ins)[1], mode_of(ins)), count)

        return float_rule(*opcodes)(made)

    return register


def type_and_format(ins: Instruction) -> tuple[str, Format]:
    type = ins.modifiers[-1]
    if type not in FLOATS:
        raise Unsupported(ins, f"the type .{type}")
    return type, Format.of(PACKED.get(type, type))


@float_rule("add", "sub", "mul")
def arithmetic(ins: Instruction, t: Translator) -> Op:
    type, format = type_and_format(ins)
    mode = mode_of(ins)
    if len(ins.modifiers) >= 2 and ins.modifiers[-2] == "f32" and type in ("f16", "bf16"):
        return mixed(ins, t, mode)
    functions: dict[str, Function] = {
        "add": lambda a, b: format.add(a, b, mode),
        "sub": lambda a, b: format.add(a, -b, mode),
        "mul": lambda a, b: format.multiply(a, b, mode),
    }
    return element(ins, t, functions[ins.opcode], 2)


def mixed(ins: Instruction, t: Translator, mode: str) -> Op:
    """``add.f32.f16 %f1, %h1, %f2``: the narrow operand is widened first."""
    narrow, single = Format.of(ins.modifiers[-1]), Format.of("f32")
    first, second = read_float(t, ins.operands[1], ins.modifiers[-1]), read_float(t, ins.operands[2], "f32")
    put = write_float(t, ins.operands[0], "f32")
    sign = np.float32(-1 if ins.opcode == "sub" else 1)
    if ins.opcode == "mul" or narrow.name not in ("f16", "bf16"):
        raise Unsupported(ins)
    return lambda mask: put(single.canonical(single.add(first().astype(np.float32), sign * second(), mode)), mask)


@float_function("fma", "mad", count=3)
def multiply_add(ins: Instruction, format: Format, mode: str) -> Function:
    return lambda a, b, c: format.fma(a, b, c, mode)


@float_function("div", count=2)
def divide(ins: Instruction, format: Format, mode: str) -> Function:
    return approximate_quotient if "approx" in ins.modifiers else lambda a, b: format.divide(a, b, mode)


def approximate_quotient(a: Array, b: Array) -> Array:
    quotient = a / b
    size = np.abs(b)
    beyond = (size > np.float32(2.0**126)) & np.isfinite(size)
    missing = np.where(np.isinf(a) | np.isnan(a), np.float32(np.nan), np.copysign(np.float32(0), quotient))
    return np.where(beyond, missing, quotient)


@float_rule("neg")
def negate(ins: Instruction, t: Translator) -> Op:
    """Flip the sign. A NaN of f32 becomes the canonical one, and a NaN of f64 keeps its sign: an H200 adds 0 to do
    it."""
    return sign_bits(ins, t, lambda bits, sign: bits ^ sign)


@float_rule("abs")
def absolute(ins: Instruction, t: Translator) -> Op:
    return sign_bits(ins, t, lambda bits, sign: bits & ~sign)


def sign_bits(ins: Instruction, t: Translator, function: Callable[[Array, Any], Array]) -> Op:
    type, format = type_and_format(ins)
    read, put = read_float(t, ins.operands[1], type), write_float(t, ins.operands[0], type)
    sign = format.bits.type(1 << (8 * format.dtype.itemsize - 1))
    flush = "ftz" in ins.modifiers

    def op(mask: Mask) -> None:
        value = format.flush(read()) if flush else read()
        result = function(np.ascontiguousarray(value).view(format.bits), sign).view(format.dtype)
        put(format.canonical(result, [value]) if format.name in ("f32", "f64") else result, mask)

    return op


@float_rule("min", "max")
def extreme(ins: Instruction, t: Translator) -> Op:
    """Return the other operand if one is NaN, unless `.NaN`; -0 is less than +0. Three operands are possible for
    f32."""
    _, format = type_and_format(ins)
    keeps_nan, xors = "NaN" in ins.modifiers, "xorsign" in ins.modifiers
    wants_max = ins.opcode == "max"

    vectorized: Any = (np.maximum if keeps_nan else np.fmax) if wants_max else (np.minimum if keeps_nan else np.fmin)
    simple = not xors and format.name != "bf16"

    def pick(a: Array, b: Array) -> Array:
        if simple:
            value = vectorized(a, b)
            if np.count_nonzero(value) == np.size(value):  # NumPy does not order -0 and +0
                return value
        x, y = (np.abs(a), np.abs(b)) if xors else (a, b)
        less = (x < y) | ((x == y) & np.signbit(x) & ~np.signbit(y))
        value = np.where(less != wants_max, x, y)
        if not keeps_nan:
            value = np.where(np.isnan(x), y, np.where(np.isnan(y), x, value))
        if xors:
            value = np.where(np.signbit(a) != np.signbit(b), -np.abs(value), np.abs(value))
        if keeps_nan:
            value = np.where(np.isnan(x) | np.isnan(y), format.dtype.type(np.nan), value)
        return value.astype(format.dtype)

    if len(ins.operands) == 4:
        return element(ins, t, lambda a, b, c: pick(pick(a, b), c), 3)
    return element(ins, t, pick, 2)


@float_function("sqrt", count=1)
def square_root(ins: Instruction, format: Format, mode: str) -> Function:
    return lambda a: format.square_root(a, mode)


@float_function("rcp", count=1)
def reciprocal(ins: Instruction, format: Format, mode: str) -> Function:
    one = format.dtype.type(1)
    if format.name == "f64" and "approx" in ins.modifiers:  # looks at the upper 32 bits, and leaves the others zero
        return lambda a: upper_half(1.0 / upper_half(format.flush(a)))
    return lambda a: format.divide(np.broadcast_to(one, a.shape), a, mode)


@float_function("rsqrt", count=1)
def reciprocal_root(ins: Instruction, format: Format, mode: str) -> Function:
    if format.name == "f64" and "ftz" in ins.modifiers:
        return lambda a: upper_half(1.0 / np.sqrt(upper_half(format.flush(a))))
    return lambda a: format.nearest(1.0 / np.sqrt(format.wide(a)))


APPROXIMATE: dict[str, Callable[[Array], Array]] = {
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
}  # fmt: skip


@float_function(*APPROXIMATE, count=1)
def approximate(ins: Instruction, format: Format, mode: str) -> Function:
    function = APPROXIMATE[ins.opcode]

    def value(a: Array) -> Array:
        wide = format.wide(a)
        if ins.opcode in ("sin", "cos"):
            wide = np.where(np.isinf(wide), np.nan, wide)
        return format.nearest(function(wide))

    return value


@elementwise("copysign")
def copysign(ins: Instruction, a: Array, b: Array) -> Array:
    """The second operand with the sign of the first."""
    return np.copysign(b, a)


TESTS: dict[str, Callable[[Array, Any], Array]] = {
    "finite": lambda a, least: np.isfinite(a),
    "infinite": lambda a, least: np.isinf(a),
    "number": lambda a, least: ~np.isnan(a),
    "notanumber": lambda a, least: np.isnan(a),
    "normal": lambda a, least: np.isfinite(a) & (np.abs(a) >= least),
    "subnormal": lambda a, least: (np.abs(a) < least) & (a != 0),
}


@elementwise("testp", result=np.bool_)
def testp(ins: Instruction, a: Array) -> Array:
    if ins.modifiers[0] not in TESTS:
        raise Unsupported(ins)
    return TESTS[ins.modifiers[0]](a, a.dtype.type(type_and_format(ins)[1].least))


# comparisons

ORDERED: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def float_comparison(ins: Instruction, t: Translator, name: str, type: str) -> Callable[[], Array]:
    """Compare two operands: `lt` is false for NaN, `ltu` true; `num` and `nan` test for NaN."""
    format = Format.of(PACKED.get(type, type))
    first, second = (read_float(t, operand, type) for operand in ins.operands[1:3])
    flush = "ftz" in ins.modifiers

    def both() -> tuple[Array, Array, Array]:
        a, b = first(), second()
        if flush:
            a, b = format.flush(a), format.flush(b)
        return a, b, np.isnan(a) | np.isnan(b)

    if name == "num":
        return lambda: ~both()[2]
    if name == "nan":
        return lambda: both()[2]
    unordered = name not in ORDERED and name.endswith("u")
    compare = ORDERED.get(name.removesuffix("u") if unordered else name)
    if compare is None:
        raise Unsupported(ins)

    if not unordered and compare is not np.not_equal and not flush:
        return lambda: compare(first(), second())  # false where one is NaN

    def op() -> Array:
        a, b, missing = both()
        result = compare(a, b)
        if not np.count_nonzero(missing):
            return result
        return result | missing if unordered else result & ~missing

    return op


COMPARE = ORDERED | {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(ins: Instruction, t: Translator, type: str) -> Callable[[], Array]:
    """Return a function that compares two operands of the given type."""
    name = ins.modifiers[0]
    if type in FLOATS:
        return float_comparison(ins, t, name, type)
    if name not in COMPARE:
        raise Unsupported(ins)
    dtype = t.type_of(type, ins)
    if name in ("lo", "ls", "hi", "hs"):
        dtype = unsigned(dtype)
    a, b = (t.read(operand, dtype) for operand in ins.operands[1:3])
    compare = COMPARE[name]
    return lambda: compare(a, b)


@rule("setp")
def setp(ins: Instruction, t: Translator) -> Op:
    """``setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3``: %p1 is the comparison, %p2 its opposite, each combined with %p3."""
    firsts = pair(ins.operands[0])
    compare = comparison(ins, t, ins.modifiers[-1])
    if ins.modifiers[-1] in ("f16x2", "bf16x2"):
        first, second = (t.write(operand, bool) for operand in firsts)

        def packed(mask: Mask) -> None:
            both = compare()
            np.copyto(first, both[:, 0], where=mask)
            np.copyto(second, both[:, 1], where=mask)

        return packed
    combined = combiner(ins, t)
    out = t.write(firsts[0], bool)
    if isinstance(firsts[1], Sink):
        return lambda mask: np.copyto(out, combined(compare()), where=mask)
    opposite = t.write(firsts[1], bool)

    def op(mask: Mask) -> None:
        value = compare()
        found = combined(value), combined(~value)  # the predicate may be one of the results
        np.copyto(out, found[0], where=mask)
        np.copyto(opposite, found[1], where=mask)

    return op


def combiner(ins: Instruction, t: Translator) -> Callable[[Array], Array]:
    """Return the function that combines a comparison with the predicate, if there is one."""
    combine = next((COMBINE[modifier] for modifier in ins.modifiers[1:] if modifier in COMBINE), None)
    if combine is None:
        return lambda value: value
    other = t.predicate(ins.operands[3])
    return lambda value: combine(value, other())


@rule("set")
def set_value(ins: Instruction, t: Translator) -> Op:
    """Like setp, but the result is all ones, or 1.0 if its type is a float."""
    result, type = ins.modifiers[-2:]
    compare = comparison(ins, t, type)
    combined = combiner(ins, t)
    dtype = np.dtype(t.type_of(result, ins))
    out = t.write(ins.operands[0], dtype)
    true = dtype.type(1) if dtype.kind == "f" else np.array(-1).astype(dtype)
    if result in ("bf16", "f16x2", "bf16x2"):
        raise Unsupported(ins)
    return lambda mask: np.copyto(out, np.where(combined(compare()), true, dtype.type(0)), where=mask)


@rule("slct")
def slct(ins: Instruction, t: Translator) -> Op:
    """a where c >= 0, else b."""
    c = t.read(ins.operands[3], t.type_of(ins.modifiers[-1], ins))
    return choice(ins, t, ins.modifiers[-2], lambda: c >= 0)


@rule("selp")
def selp(ins: Instruction, t: Translator) -> Op:
    return choice(ins, t, ins.modifiers[-1], t.predicate(ins.operands[3]))


def choice(ins: Instruction, t: Translator, type: str, chosen: Callable[[], Array]) -> Op:
    dtype = unsigned(t.type_of(type, ins))
    out, a, b = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype), t.read(ins.operands[2], dtype)
    return lambda mask: np.copyto(out, np.where(chosen(), a, b), where=mask)
