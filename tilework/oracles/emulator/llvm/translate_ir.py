"""The translation of one function for one workgroup into closures over its values; rules for instructions are written
against it.

A value has a slot in `t.slots`, a constant too. A rule returns a function of a mask of threads (True: all of them) and
of the values of the operands, whose result is the value of the instruction:

    @rule("freeze")
    def freeze(ins, t):
        return lambda mask, value: defined(value)

Rules of intrinsics are found by the longest prefix of their names, so that types at the end need not be spelt out.

"""

from collections.abc import Callable
from collections.abc import Sequence as Row
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import FORMAT_OF
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
)
from tilework.oracles.emulator.llvm.lane_values import (
    REASONS,
    Scalar,
    Value,
    any_of,
    either,
    merge,
    parts,
    undefined_of,
)
from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import EmulatorError, Unsupported

if TYPE_CHECKING:
    from tilework.oracles.emulator.llvm.workgroup import Workgroup

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
