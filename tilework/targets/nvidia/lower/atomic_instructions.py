"""Atomics as PTX, since LLVM's own forget ordering and scope.

@%p atom.global.gpu.acq_rel.add.f32 %old, [%ptr], %value;
"""

from collections.abc import Sequence

from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.target import Feature
from tilework.targets.gpu.device import Atomic, Emission, Gpu
from tilework.targets.gpu.words import pack, unpack
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, bf16, f16, i16, integer
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower.inline_ptx import guarded, listed, ptx, shared_word

# the letter of the type that an instruction works on, where it is not that of unsigned integers
LETTERS = dict.fromkeys((RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.EXCH), "b") | {RMWOp.MAX: "s", RMWOp.MIN: "s"}


def operation(kind: RMWOp, held: Type, width: int) -> str:
    """``add.noftz.v4.f16x2``."""
    if kind is not RMWOp.FADD:
        return f"{kind.keyword.removeprefix('u')}.{LETTERS.get(kind, 'u')}{held.bits}"
    if held is not f16 and held is not bf16:
        return f"add{f'.v{width}' if width > 1 else ''}.f{held.bits}"
    name, pairs = ("f16" if held is f16 else "bf16"), width // 2
    return f"add.noftz{f'.v{pairs}' if pairs > 1 else ''}.{name}{'x2' if pairs else ''}"


def ordering(at: Atomic) -> str:
    """``acq_rel.gpu``."""
    return f"{at.sem.keyword}.{at.scope.keyword}"


class AtomicInstructions(Gpu):
    """The part of `NvidiaGpu` that is about atomics."""

    def atomic_width(self, kind: RMWOp, held: Type, most: int) -> int:
        """Pairs of f16, and 16 bytes of floats where there are vector atomics."""
        if kind is not RMWOp.FADD or held.bits > 32:
            return 1
        if self.has(Feature.VECTOR_ATOMICS):
            return most
        return 1 if held is bf16 else min(most, 32 // held.bits)

    def has_atomic(self, kind: RMWOp | None, held: Type) -> bool:
        return held.bits >= (16 if kind is None or kind is RMWOp.FADD else 32)

    def atomic_rmw(self, low: Emission, at: Atomic, kind: RMWOp, values: Sequence[Value]) -> Sequence[Value]:
        held = values[0].type
        if kind is RMWOp.FADD and held is bf16 and not self.has(Feature.BF16_ATOMICS):
            return [add_by_exchange(low, at, values[0])]
        change = operation(kind, held, len(values))
        if at.is_of_tile and not at.is_used and at.sem is MemSemantic.RELAXED and kind is not RMWOp.EXCH:
            return access(
                low, at, f"red.global.{at.scope.keyword}.relaxed.{change}", held, [values], len(values), False
            )
        return access(low, at, f"atom.global.{at.scope.keyword}.{at.sem.keyword}.{change}", held, [values], len(values))

    def change_shared(self, b: Builder, address: Value, may: Value | None, kind: RMWOp, value: Value) -> None:
        line = f"red.shared.{operation(kind, value.type, 1)} [$0], $1;"
        line, inputs = guarded(line, [shared_word(b, address), value], may)
        ptx(b, line, [], inputs, effect="write")

    def fence(self, b: Builder, scope: MemSyncScope) -> None:
        ptx(b, f"fence.acq_rel.{scope.keyword};", [], [], effect="write")

    def atomic_cas(self, low: Emission, at: Atomic, compared: Value, value: Value) -> Sequence[Value]:
        text = f"atom.global.{ordering(at)}.cas.b{value.type.bits}"
        return access(low, at, text, value.type, [[compared], [value]])

    def atomic_load(self, low: Emission, at: Atomic, held: Type) -> Sequence[Value]:
        return access(low, at, f"ld.global.{ordering(at)}.b{held.bits}", held, [])


def access(
    low: Emission,
    at: Atomic,
    text: str,
    held: Type,
    given: Sequence[Sequence[Value]],
    width: int = 1,
    gives: bool = True,
) -> list[Value]:
    """One instruction on `width` neighbours, each of `given` an operand of it; the old values, 0 if it may not run."""
    word = integer(min(32, held.bits * width)) if held.bits < 32 else held if held.bits == 32 else integer(64)
    count = held.bits * width // word.bits
    is_kept = gives and (at.is_used or count > 1 or held is bf16)  # ptxas 13.0 dies of atom.add.bf16 into _
    outputs = count if is_kept else 0
    inputs: list[Value] = [at.address]
    spelled = [*([listed(0, outputs) or "_"] if gives else []), f"[${outputs}]"]
    for group in given:
        packed = pack(low, group, word)
        spelled.append(listed(outputs + len(inputs), len(packed)))
        inputs += packed
    line, inputs = guarded(f"{text} {', '.join(spelled)};", inputs, at.may, outputs)
    if at.may is not None:
        line = "".join(f"mov.b{word.bits} ${output}, 0; " for output in range(outputs)) + line
    old = ptx(low.builder, line, [word] * outputs, inputs, effect="write")
    return unpack(low, old, held, width) if outputs else []


def add_by_exchange(low: Emission, at: Atomic, value: Value) -> Value:
    """Add to a bf16 where there is no instruction: exchange until nobody came between."""
    b = low.builder

    def change() -> list[Value]:
        (seen,) = ptx(b, f"ld.relaxed.{at.scope.keyword}.global.b16 $0, [$1];", [i16], [at.address], effect="write")

        def exchange(old: Value) -> tuple[Value, Value]:
            new = b.bitcast(b.fadd(b.bitcast(old, bf16), value), i16)
            line = f"atom.{ordering(at)}.global.cas.b16 $0, [$1], $2, $3;"
            (found,) = ptx(b, line, [i16], [at.address, old, new], effect="write")
            return found, b.icmp("eq", found, old)

        return [b.bitcast(b.until(seen, exchange), bf16)]

    return change()[0] if at.may is None else b.if_else(at.may, change, lambda: [constant(bf16, 0.0)])[0]
