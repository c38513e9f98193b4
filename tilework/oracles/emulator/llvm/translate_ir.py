"""The translation of one function for one workgroup into closures over its values; rules for instructions are written
against it.

A value has a slot in `t.slots`, a constant too. A rule returns a function of a mask of threads (True: all of them) and
of the values of the operands, whose result is the value of the instruction:

    @rule("freeze")
    def freeze(ins, t):
        return lambda mask, value: defined(value)

Rules of intrinsics are found by the longest prefix of their names, so that types at the end need not be spelt out.

A value is an array over the threads of a workgroup, with the elements that are undefined.

A scalar is a pair (data, undefined). `data` has an element per thread, or one for all of them; `undefined` is None, or
has for each thread the reason why its element is undefined (0: it is defined). Vectors, structures and buffer resources
are lists of values, so that an element can be extracted, inserted or shuffled without a copy.
"""

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Row
from functools import cache, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import FORMAT_OF, UNSIGNED
from tilework.oracles.emulator.llvm.ir import (
    Expression,
    Float,
    Function,
    Instruction,
    Int,
    Literal,
    Local,
    Many,
    Pointer,
    Sequence,
    Struct,
    Symbol,
    Type,
    Typed,
    Undefined,
    Zero,
    dtype_of,
    leaves,
    size_of,
)
from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import EmulatorError, Unsupported

if TYPE_CHECKING:
    from tilework.oracles.emulator.llvm.workgroup import Workgroup

Scalar = tuple[Array, Array | None]
Value = Any  # Scalar or a list of values

REASONS = (
    "",
    "undef or poison",
    "LDS that was never written",
    "a lane that is not active",
    "a shift by too much, or a division by zero",
)
POISON, UNWRITTEN, INACTIVE, IMPOSSIBLE = range(1, len(REASONS))


def either(a: Array | None, b: Array | None) -> Array | None:
    """Return the undefined elements if one of two is undefined."""
    return b if a is None else a if b is None else np.maximum(a, b)


def any_of(scalars: Iterable[Scalar]) -> Array | None:
    return reduce(either, (undefined for _, undefined in scalars), None)


def merge(mask: Array, new: Value, old: Value) -> Value:
    """Return `new` where the mask is set, else `old`."""
    if isinstance(new, list):
        return [merge(mask, one, other) for one, other in zip(new, old, strict=True)]
    data = np.where(mask, new[0], old[0])
    if new[1] is None and old[1] is None:
        return data, None
    zero = np.uint8(0)
    return data, np.where(mask, zero if new[1] is None else new[1], zero if old[1] is None else old[1])


def undefined_of(kind: Type, why: int = POISON) -> Value:
    if isinstance(kind, Sequence | list) or hasattr(kind, "fields"):
        return [undefined_of(part, why) for part in parts(kind)]
    if kind == Pointer(8):
        return [undefined_of(Int(64), why), undefined_of(Int(64), why)]
    return np.zeros(1, dtype_of(kind)), np.full(1, why, np.uint8)


def parts(kind: Any) -> list[Type]:
    return [kind.element] * kind.count if isinstance(kind, Sequence) else list(kind.fields)


def flatten(value: Value) -> list[Scalar]:
    """Return the scalars of a value, in memory order."""
    if not isinstance(value, list):
        return [value]
    return [leaf for part in value for leaf in flatten(part)]


def unflatten(kind: Type, scalars: list[Scalar]) -> Value:
    """Return the value of this type that has these scalars, which are consumed."""
    if isinstance(kind, Sequence) or hasattr(kind, "fields"):
        return [unflatten(part, scalars) for part in parts(kind)]
    return scalars.pop(0)


def to_bytes(kind: Type, value: Value) -> tuple[Array, Array | None]:
    """Return the bytes of a value without padding, [thread or 1, byte], and the reasons why they are undefined."""
    scalars, kinds = flatten(value), [leaf for _, leaf in leaves(kind)]
    if all(leaf == Int(1) for leaf in kinds) and len(kinds) > 1:
        rows = np.stack(np.broadcast_arrays(*(data for data, _ in scalars)), axis=-1)
        return np.packbits(rows, axis=-1, bitorder="little"), any_of(scalars)
    columns = [bits(data, leaf) for (data, _), leaf in zip(scalars, kinds, strict=True)]
    if len({column.dtype for column in columns}) == 1:
        rows = np.stack(np.broadcast_arrays(*columns), axis=-1) if len(columns) > 1 else columns[0][:, None]
        return np.ascontiguousarray(rows).view(np.uint8), any_of(scalars)
    count = max(len(column) for column in columns)
    rows = [
        np.ascontiguousarray(np.broadcast_to(column, count)).view(np.uint8).reshape(count, -1) for column in columns
    ]
    return np.concatenate(rows, axis=1), any_of(scalars)


def bits(data: Array, kind: Type) -> Array:
    """Return a scalar as unsigned integers of its size in memory."""
    if data.dtype.kind == "b":
        return data.view(np.uint8)
    if data.dtype.kind == "O":  # wider than 64 bits: two halves
        raw = b"".join(int(one).to_bytes(size_of(kind), "little") for one in data)
        return np.frombuffer(raw, f"V{size_of(kind)}")
    return np.ascontiguousarray(data).view(UNSIGNED[data.dtype.itemsize])


def from_bytes(kind: Type, rows: Array, undefined: Array | None) -> Value:
    """Return the value of a type from its bytes [thread, byte]."""
    kinds = [leaf for _, leaf in leaves(kind)]
    if all(leaf == Int(1) for leaf in kinds) and len(kinds) > 1:
        columns = np.unpackbits(rows, axis=-1, count=len(kinds), bitorder="little").view(bool)
        return unflatten(kind, [(columns[:, index], undefined) for index in range(len(kinds))])
    found: list[Scalar] = []
    at = 0
    for leaf in kinds:
        size = size_of(leaf)
        found.append((from_row(leaf, np.ascontiguousarray(rows[:, at : at + size])), undefined))
        at += size
    return unflatten(kind, found)


def from_row(kind: Type, row: Array) -> Array:
    """Return a scalar from contiguous bytes."""
    dtype = dtype_of(kind)
    if dtype.kind == "O":
        return np.array([int.from_bytes(one.tobytes(), "little") for one in row], object)
    if dtype.kind == "b":
        return (row[:, 0] & 1).astype(bool)
    return row.view(dtype)[:, 0]


def bitcast(to: Type, kind: Type, value: Value) -> Value:
    """Return the same bits as another type."""
    if not isinstance(to, Sequence) and not isinstance(kind, Sequence):
        data, undefined = value
        return (data if data.dtype == dtype_of(to) else np.ascontiguousarray(data).view(dtype_of(to))), undefined
    source, target = [leaf for _, leaf in leaves(kind)], [leaf for _, leaf in leaves(to)]
    if len(source) == len(target) and size_of(source[0]) == size_of(target[0]) and Int(1) not in (source[0], target[0]):
        found = [bitcast(b, a, one) for a, b, one in zip(source, target, flatten(value), strict=True)]
        return unflatten(to, found)
    scalars = flatten(value)
    if any(undefined is not None for _, undefined in scalars) and len(target) != len(source):
        return bitcast_by_parts(to, source, target, scalars)
    return from_bytes(to, *to_bytes(kind, value))


def bitcast_by_parts(to: Type, source: list[Type], target: list[Type], scalars: list[Scalar]) -> Value:
    """Bitcast each element separately, so that an undefined one does not affect the others."""
    if len(source) % len(target) and len(target) % len(source):
        whole = Sequence(len(source), source[0], True)
        return from_bytes(to, *to_bytes(whole, list(scalars)))
    found: list[Scalar] = []
    if len(source) >= len(target):
        width = len(source) // len(target)
        for index, leaf in enumerate(target):
            some = scalars[index * width : (index + 1) * width]
            found += flatten(from_bytes(leaf, *to_bytes(Sequence(width, source[0], True), list(some))))
    else:
        width = len(target) // len(source)
        for leaf, one in zip(source, scalars, strict=True):
            found += flatten(from_bytes(Sequence(width, target[0], True), *to_bytes(leaf, one)))
    return unflatten(to, found)


def signed(data: Array, width: int) -> Array:
    """Return the bits as a signed integer."""
    if width in (8, 16, 32, 64):
        return data.view(f"i{width // 8}")
    if data.dtype.kind == "O":
        return (data ^ (1 << width - 1)) - (1 << width - 1)
    wide = data.astype(np.int64)
    return (wide ^ (1 << width - 1)) - (1 << width - 1)


def unsigned(data: Array, kind: Int) -> Array:
    """Return an integer of any type as bits of this one."""
    dtype = dtype_of(kind)
    if dtype.kind == "b":
        return (data & 1).astype(bool)
    if dtype.kind == "O":
        return data.astype(object) & ((1 << kind.bits) - 1)
    if data.dtype.kind == "O":
        data = np.array([int(one) & (1 << kind.bits) - 1 for one in data], dtype)
    found = data.astype(dtype)
    return found if kind.bits == 8 * dtype.itemsize else found & dtype.type((1 << kind.bits) - 1)


Mask = Any  # True, or one bool per thread
Op = Callable[[Mask], None]
Compute = Callable[..., Value]  # of a mask and the values of the operands
Rule = Callable[[Instruction, "Translator"], Compute]
RULES: dict[str, Rule] = {}
INTRINSICS: dict[str, Rule] = {}
COLLECTIVE: set[str] = set()
FAMILIES = ("arithmetic_rules", "vector_rules", "access_rules", "matrix_rules")


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, function))
        return function

    return register


def intrinsic(*names: str, collective: bool = False) -> Callable[[Rule], Rule]:
    """Register a rule for functions of these names, without ``llvm.``. Lanes of a wave that execute a `collective` one
    wait for one another first."""

    def register(function: Rule) -> Rule:
        INTRINSICS.update(dict.fromkeys(names, function))
        if collective:
            COLLECTIVE.update(names)
        return function

    return register


@cache
def load_rules() -> None:
    for family in FAMILIES:
        import_module(f"tilework.oracles.emulator.llvm.{family}")


def known_name(callee: str) -> str | None:
    """Return the intrinsic of a name: ``llvm.smin.i32`` is ``smin``."""
    parts = callee.removeprefix("llvm.").split(".")
    while parts:
        if (name := ".".join(parts)) in INTRINSICS:
            return name
        parts.pop()
    return None


class Translator:
    """The slots of one function, laid out for one call site."""

    def __init__(self, function: Function, group: "Workgroup") -> None:
        self.function, self.group = function, group
        self.slots: list[Value] = []
        self.names: dict[str, int] = {}
        self.fixed: dict[int, Value] = {}  # slots of constants

    def clear(self) -> None:
        """Forget the values of the last workgroup."""
        self.slots[:] = [None] * len(self.slots)
        for slot, value in self.fixed.items():
            self.slots[slot] = value

    # operands

    def name(self, name: str) -> int:
        if name not in self.names:
            self.names[name] = len(self.slots)
            self.slots.append(None)
        return self.names[name]

    def slot(self, typed: Typed) -> int:
        kind, operand = typed
        if isinstance(operand, Local):
            return self.name(operand.name)
        slot = len(self.slots)
        self.fixed[slot] = self.constant(kind, operand)
        self.slots.append(self.fixed[slot])
        return slot

    def output(self, ins: Instruction) -> int:
        return self.name(ins.result if ins.result is not None else f"of line {ins.line}")

    def constant(self, kind: Type, operand: Any) -> Value:
        match operand:
            case Undefined():
                return undefined_of(kind)
            case Zero() | Literal() if isinstance(kind, Sequence | Struct):
                return [self.constant(part, Zero()) for part in parts(kind)]
            case Zero():
                return np.zeros(1, dtype_of(kind)), None
            case Literal(value):
                if isinstance(kind, Int) and kind.bits > 1:
                    value = int(value) & (1 << kind.bits) - 1
                return np.array([value], dtype_of(kind)), None
            case Many(items, is_splat):
                assert isinstance(kind, Sequence | Struct)
                found = [self.constant(*item) for item in items]
                return found * len(parts(kind)) if is_splat else found
            case Symbol(name):
                if name not in self.group.symbols:
                    raise EmulatorError(f"@{name} is used and is neither a variable nor a function of this module")
                return np.array([self.group.symbols[name]], dtype_of(kind)), None
            case Expression(ins):
                return self.evaluate(ins)
            case _:
                raise EmulatorError(f"{operand} is no constant")

    def evaluate(self, ins: Instruction) -> Value:
        """Return a constant expression: the instruction, executed once."""
        inner = Translator(self.function, self.group)
        inner.translate(ins)(True)
        return inner.slots[inner.output(ins)]

    # results

    def put(self, slot: int, value: Value, mask: Mask) -> None:
        old = self.slots[slot]
        self.slots[slot] = value if mask is True or old is None else merge(mask, value, old)

    def everywhere(self, value: Scalar) -> tuple[Array, Array | None]:
        """Return a scalar with an element for each thread."""
        threads = self.group.threads
        data, undefined = value
        return np.broadcast_to(data, threads), None if undefined is None else np.broadcast_to(undefined, threads)

    def waves(self, data: Array) -> Array:
        """Return [wave, lane] of a scalar."""
        return np.broadcast_to(data, self.group.threads).reshape(-1, self.group.wave)

    def require(self, value: Value, mask: Mask, ins: Instruction, use: str) -> None:
        """Report the use of an undefined value."""
        if isinstance(value, list):
            for part in value:
                self.require(part, mask, ins, use)
        elif value[1] is not None:
            why = np.where(self.group.active(mask), value[1], 0)
            if why.any():
                thread = int(np.flatnonzero(why)[0])
                reason = REASONS[int(why[thread])]
                self.group.report("undefined value", f"{use} depends on {reason}", ins, thread)

    # instructions

    def translate(self, ins: Instruction) -> Op:
        found = RULES.get(ins.opcode)
        if ins.opcode == "call":
            name = known_name(ins.callee)
            found = INTRINSICS[name] if name is not None else RULES["asm"] if not ins.callee else None
        if found is None:
            raise Unsupported(ins)
        compute = found(ins, self)
        if compute is nothing:
            return nothing
        inputs, out, memory = [self.slot(typed) for typed in ins.operands], self.output(ins), self.slots

        def op(mask: Mask) -> None:
            value = compute(mask, *[memory[slot] for slot in inputs])
            old = memory[out]
            memory[out] = value if mask is True or old is None else merge(mask, value, old)

        return op


def nothing(mask: Mask, *values: Value) -> None:
    """The operation of an instruction without an effect."""


def elementwise(ins: Instruction, function: Callable[..., Array], count: int | None = None) -> Compute:
    """Return an operation that applies `function` to each element of a vector: it takes arrays of the first `count`
    operands and returns one."""
    if isinstance(ins.type, Sequence):
        return lambda mask, *values: [applied(function, row) for row in zip(*values[:count], strict=True)]
    if len(ins.operands) == 2 and count is None:
        return lambda mask, a, b: (function(a[0], b[0]), either(a[1], b[1]))
    return lambda mask, *values: applied(function, values[:count])


def float_elementwise(ins: Instruction, function: Callable[..., Array], is_negative: bool = False) -> Compute:
    """`elementwise` for floats, with the NaNs of the hardware: the first NaN operand, quieted, else one without
    payload."""
    dtype = floating(ins)
    operations, default = Arithmetic.of(dtype), quiet_nan(dtype, is_negative)
    return elementwise(ins, lambda *values: operations.propagate(function(*values), values, default))


def quiet_nan(dtype: Any, is_negative: bool = False) -> int:
    """Return the bits of the NaN of an invalid operation on numbers."""
    format = FORMAT_OF[dtype]
    return format.nan | is_negative << format.bits - 1


def applied(function: Callable[..., Any], operands: Row[Scalar]) -> Scalar:
    return function(*(data for data, _ in operands)), any_of(operands)


def fixed(ins: Instruction, index: int) -> int | None:
    """Return an operand that is a literal; None if it is not."""
    operand = ins.operands[index][1]
    return int(operand.value) if isinstance(operand, Literal) else 0 if isinstance(operand, Zero) else None


def literal(ins: Instruction, index: int) -> int:
    """Return an operand that has to be a literal."""
    if (found := fixed(ins, index)) is None:
        raise Unsupported(ins, f"operand {index} is not a number")
    return found


def element(kind: Type) -> Type:
    """Return the element type of a vector; any other type itself."""
    return kind.element if isinstance(kind, Sequence) and kind.is_vector else kind


def integer(ins: Instruction, kind: Type | None = None) -> Int:
    found = element(ins.type if kind is None else kind)
    if isinstance(found, Pointer):
        return Int(8 * dtype_of(found).itemsize)
    if not isinstance(found, Int):
        raise Unsupported(ins, f"{found} is no integer")
    return found


def floating(ins: Instruction) -> Any:
    """Return the NumPy type of a float instruction."""
    found = element(ins.type)
    if not isinstance(found, Float):
        raise Unsupported(ins, f"{found} is no float")
    return dtype_of(found)
