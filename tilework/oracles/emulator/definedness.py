"""Undefined registers, and registers that a wgmma is still using.

An undefined value may be moved and computed with, as compilers do (``%r2`` below is undefined in lane 5 and so is
``%r3``); using it in an address, a predicate, a store or a matrix is an error.

    @%p1 ld.global.u32 %r2, [%rd1];        // %p1 is false in lane 5
    add.u32            %r3, %r2, 1;
    st.global.u32      [%rd2], %r3;        // reported here

The accumulator of a wgmma is undefined until wgmma.wait_group; a plain mov renames it, any other use is an error.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import Address, Instruction, Not, Operand, Pair, Reg, Vector
from tilework.oracles.emulator.translate import Mask, Op, Translator

NO_RESULT = {"nanosleep"}
USES = {"st", "red", "atom", "mma", "wgmma", "stmatrix", "mbarrier", "cp"}  # their operands must be defined
QUIET_SPACES = {"param", "local"}  # copies of structures with holes

Report = Callable[[str, str, Instruction, int], None]  # kind, what, instruction, thread


def registers(operand: Operand | Any) -> Iterator[str]:
    """Yield the names of the registers in an operand."""
    match operand:
        case Reg(name):
            yield name
        case Not(Reg(name)):
            yield name
        case Vector(items):
            for item in items:
                yield from registers(item)
        case Pair(first, second):
            yield from registers(first)
            yield from registers(second)
        case Address(base, _, parts):
            yield from registers(base)
            for part in parts:
                yield from registers(part)
        case _:
            pass


def results(ins: Instruction) -> tuple[str, ...]:
    """Return the registers that an instruction writes: those of its first operand, unless that is an address."""
    if not ins.operands or ins.opcode in NO_RESULT or isinstance(ins.operands[0], Address):
        return ()
    if ins.opcode == "wgmma" and "mma_async" not in ins.modifiers:
        return ()
    return tuple(registers(ins.operands[0]))


class Definedness:
    """Tracks which registers of each translator are defined, by thread."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.defined: WeakKeyDictionary[Translator, dict[str, Array]] = WeakKeyDictionary()
        self.flight: dict[tuple[int, str], Array] = {}  # index of the wgmma group that a register belongs to
        self.finished: Array = np.zeros(0, np.int64)  # groups of each thread that are done

    def start(self, threads: int) -> None:
        """Begin a new block, in which nothing is defined."""
        for arrays in self.defined.values():
            for array in arrays.values():
                array[:] = False
        self.flight.clear()
        self.finished = np.zeros(threads, np.int64)

    def array(self, t: Translator, name: str) -> Array:
        arrays = self.defined.setdefault(t, {})
        found = arrays.get(name)
        if found is None:
            found = arrays[name] = np.zeros(t.threads, bool)
        return found

    def require(self, t: Translator, ins: Instruction, names: tuple[str, ...], mask: Array, use: str) -> None:
        self.require_all(ins, [(name, self.array(t, name)) for name in names], mask, use)

    def require_all(self, ins: Instruction, named: Sequence[tuple[str, Array]], mask: Array, use: str) -> None:
        """Like `require`, for registers that have been looked up."""
        for name, defined in named:
            missing = mask > defined  # and not
            if np.count_nonzero(missing):
                thread = int(missing.argmax())
                self.report("uninitialised register", f"{name} is used as {use} and was never written", ins, thread)
                defined[mask] = True  # report it once

    def require_landed(self, t: Translator, ins: Instruction, names: tuple[str, ...], mask: Array) -> None:
        """Report registers that belong to a wgmma in flight."""
        if not self.flight:
            return
        for name in names:
            groups = self.flight.get((id(t), name))
            if groups is None:
                continue
            if np.count_nonzero(early := mask & (groups > self.finished)):
                thread = int(np.flatnonzero(early)[0])
                self.report(
                    "used before its wait", f"{name} belongs to a wgmma that has not been waited for", ins, thread
                )
                groups[early] = 0

    def take_off(self, t: Translator, names: frozenset[str], threads: Array, groups: Array) -> None:
        """Record that a wgmma has been issued: it owns these registers until its group is complete."""
        for name in names:
            key = (id(t), name)
            array = self.flight.get(key)
            if array is None:
                array = self.flight[key] = np.zeros(t.threads, np.int64)
            array[threads] = groups + 1

    def watch(self, ins: Instruction, t: Translator) -> Op:
        """Return the check to run before an instruction, a function of the mask of active threads."""
        written = results(ins)
        rest = ins.operands if not written else ins.operands[1:]
        address_names = tuple(name for operand in rest if isinstance(operand, Address) for name in registers(operand))
        values = tuple(name for operand in rest if not isinstance(operand, Address) for name in registers(operand))
        if ins.opcode == "wgmma" and "mma_async" in ins.modifiers:
            return self.watch_matrix(ins, t, written, values)
        outs = [self.array(t, name) for name in written]
        strict = ins.opcode in USES and not QUIET_SPACES.intersection(ins.modifiers)
        addresses = [(name, self.array(t, name)) for name in address_names]
        operands = [(name, self.array(t, name)) for name in values] if strict else []
        chosen = self.chosen(ins, t) if ins.opcode == "selp" else None
        packs = ins.opcode == "mov" and len(values) > 1
        is_move = ins.opcode == "mov" and len(values) == 1 == len(written)
        moved = next(zip(written, values, strict=True)) if is_move else None
        first, *others = [self.array(t, name) for name in values] or [None]
        if strict:
            first = None

        def before(mask: Mask) -> None:
            if addresses:
                self.require_all(ins, addresses, mask, "an address")
            if operands:
                self.require_all(ins, operands, mask, "an operand")
            if self.flight:
                if moved is not None:
                    self.rename(t, *moved, mask)
                else:
                    self.require_landed(t, ins, values + address_names + written, mask)
            if not outs:
                return
            good: Any = True
            if chosen is not None:
                good = chosen()
            elif first is not None:
                good = first
                for other in others:
                    good = good | other if packs else good & other
            for out in outs:
                np.copyto(out, good, where=mask)

        return before

    def watch_matrix(self, ins: Instruction, t: Translator, written: tuple[str, ...], values: tuple[str, ...]) -> Op:
        """Like `watch` for wgmma, which may take an accumulator that another wgmma is still working on; they execute in
        order."""
        outs = [self.array(t, name) for name in written]
        operands = [(name, self.array(t, name)) for name in values]

        def before(mask: Mask) -> None:
            self.require_all(ins, operands, mask, "an operand")
            for out in outs:
                np.copyto(out, True, where=mask)

        return before

    def chosen(self, ins: Instruction, t: Translator) -> Callable[[], Array]:
        """Return a function that computes in which threads the operand that a selp selects is defined."""
        sides = []
        for operand in ins.operands[1:3]:
            names = tuple(registers(operand))
            sides.append(self.array(t, names[0]) if names else np.ones(t.threads, bool))
        predicate = t.predicate(ins.operands[3])
        return lambda: np.where(predicate(), sides[0], sides[1])

    def rename(self, t: Translator, to: str, source: str, mask: Array) -> None:
        groups = self.flight.get((id(t), source))
        if groups is None:
            self.flight.pop((id(t), to), None)
            return
        array = self.flight.setdefault((id(t), to), np.zeros(t.threads, np.int64))
        np.copyto(array, groups, where=mask)
