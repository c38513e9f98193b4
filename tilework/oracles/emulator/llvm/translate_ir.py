"""One function for one workgroup, as closures over its values: what rules for instructions are written against.

A value has a slot in `t.slots`, a constant too. A rule gives what to do for a mask of threads (True: all of them):

    @rule("freeze")
    def freeze(ins, t):
        (a,), out = t.inputs(ins), t.output(ins)
        return lambda mask: t.put(out, defined(t.slots[a]), mask)

Rules of intrinsics are found by the longest beginning of their names, so that types at the end need not be spelt out.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import (
    Expression,
    Function,
    Instruction,
    Literal,
    Local,
    Many,
    Symbol,
    Typed,
    Undefined,
    Zero,
)
from tilework.oracles.emulator.llvm.ir_types import Float, Int, Pointer, Sequence, Struct, Type, dtype_of
from tilework.oracles.emulator.llvm.lane_values import REASONS, Scalar, Value, either, merge, parts, undefined_of
from tilework.oracles.emulator.syntax import EmulatorError

if TYPE_CHECKING:
    from tilework.oracles.emulator.llvm.workgroup import Workgroup

Mask = Any  # True, or one bool per thread
Op = Callable[[Mask], Any]
Rule = Callable[[Instruction, "Translator"], Op]
RULES: dict[str, Rule] = {}
INTRINSICS: dict[str, Rule] = {}
COLLECTIVE: set[str] = set()
FAMILIES = (
    "scalar_rules",
    "vector_rules",
    "math_rules",
    "access_rules",
    "atomic_rules",
    "lane_rules",
    "matrix_rules",
    "fp8_rules",
)


class Unsupported(EmulatorError):
    """An instruction, or a form of one, that the emulator does not have."""

    def __init__(self, ins: Instruction, why: str = "") -> None:
        what = ins.callee or ins.opcode
        super().__init__(f"LLVM line {ins.line}: {what} is not supported{': ' if why else ''}{why}\n  {ins.text}")


def rule(*opcodes: str) -> Callable[[Rule], Rule]:
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(opcodes, function))
        return function

    return register


def intrinsic(*names: str, collective: bool = False) -> Callable[[Rule], Rule]:
    """For functions of these names, without ``llvm.``. Lanes of a wave that execute a `collective` one wait for one another first."""

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
    """The intrinsic that a name means: ``llvm.smin.i32`` is ``smin``."""
    words = callee.removeprefix("llvm.").split(".")
    while words:
        if (name := ".".join(words)) in INTRINSICS:
            return name
        words.pop()
    return None


class Translator:
    """The slots of one function, laid out for one place that it is called from."""

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

    def inputs(self, ins: Instruction) -> list[int]:
        return [self.slot(typed) for typed in ins.operands]

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
        raise EmulatorError(f"{operand} is no constant")

    def evaluate(self, ins: Instruction) -> Value:
        """A constant expression: the instruction, executed once."""
        inner = Translator(self.function, self.group)
        op = inner.translate(ins)
        op(True)
        return inner.slots[inner.output(ins)]

    def literal(self, ins: Instruction, index: int) -> int:
        """An operand that has to be a number in the text."""
        operand = ins.operands[index][1]
        if not isinstance(operand, Literal | Zero):
            raise Unsupported(ins, f"operand {index} is not a number")
        return int(operand.value) if isinstance(operand, Literal) else 0

    def is_zero(self, ins: Instruction, index: int) -> bool:
        """Whether an operand is the number 0 in the text."""
        operand = ins.operands[index][1]
        return isinstance(operand, Zero) or (isinstance(operand, Literal) and not int(operand.value))

    # results

    def put(self, slot: int, value: Value, mask: Mask) -> None:
        old = self.slots[slot]
        self.slots[slot] = value if mask is True or old is None else merge(mask, value, old)

    def everywhere(self, value: Scalar) -> tuple[Array, Array | None]:
        """A scalar with an element for each thread."""
        threads = self.group.threads
        data, undefined = value
        return np.broadcast_to(data, threads), None if undefined is None else np.broadcast_to(undefined, threads)

    def waves(self, data: Array) -> Array:
        """[wave, lane] of a scalar."""
        return np.broadcast_to(data, self.group.threads).reshape(-1, self.group.wave)

    def require(self, value: Value, mask: Mask, ins: Instruction, use: str) -> None:
        """An undefined value must not be used so."""
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
        return found(ins, self)


def elementwise(ins: Instruction, t: Translator, function: Callable[..., Array], slots: list[int] | None = None) -> Op:
    """A rule of an instruction that does the same to each element of a vector: `function` gets arrays and gives one."""
    inputs, out, memory = t.inputs(ins) if slots is None else slots, t.output(ins), t.slots
    if isinstance(ins.type, Sequence):

        def many(mask: Mask) -> None:
            rows = zip(*(memory[slot] for slot in inputs), strict=True)
            t.put(out, [applied(function, row) for row in rows], mask)

        return many
    if len(inputs) == 2:
        a, b = inputs

        def two(mask: Mask) -> None:
            (x, p), (y, q) = memory[a], memory[b]
            value = function(x, y), (None if p is None and q is None else either(p, q))
            if mask is True or memory[out] is None:
                memory[out] = value
            else:
                memory[out] = merge(mask, value, memory[out])

        return two
    return lambda mask: t.put(out, applied(function, [memory[slot] for slot in inputs]), mask)


def applied(function: Callable[..., Any], operands: Any) -> Scalar:
    undefined = None
    for _, one in operands:
        if one is not None:
            undefined = either(undefined, one)
    return function(*(data for data, _ in operands)), undefined


def element(kind: Type) -> Type:
    """The type of the elements of a vector; of anything else, itself."""
    return kind.element if isinstance(kind, Sequence) and kind.is_vector else kind


def integer(ins: Instruction, kind: Type | None = None) -> Int:
    found = element(ins.type if kind is None else kind)
    if isinstance(found, Pointer):
        return Int(8 * dtype_of(found).itemsize)
    if not isinstance(found, Int):
        raise Unsupported(ins, f"{found} is no integer")
    return found


def floating(ins: Instruction) -> Any:
    """The NumPy type of a float instruction."""
    found = element(ins.type)
    if not isinstance(found, Float):
        raise Unsupported(ins, f"{found} is no float")
    return dtype_of(found)
