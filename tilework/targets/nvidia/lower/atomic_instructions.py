"""Atomics as PTX, since LLVM's own forget ordering and scope.

@%p atom.global.gpu.acq_rel.add.f32 %old, [%ptr], %value;
"""

from collections.abc import Sequence

from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.targets.gpu.device import Emission, Order
from tilework.targets.gpu.words import pack, unpack
from tilework.targets.llvm.types import Type, bf16, f16, i16, integer
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower.inline_ptx import guarded, listed, ptx

SCOPES = {MemSyncScope.GPU: "gpu", MemSyncScope.CTA: "cta", MemSyncScope.SYS: "sys"}
ORDERINGS = {
    MemSemantic.RELAXED: "relaxed",
    MemSemantic.ACQUIRE: "acquire",
    MemSemantic.RELEASE: "release",
    MemSemantic.ACQ_REL: "acq_rel",
}
INSTRUCTIONS = {  # name, and the letter of the type that it works on
    RMWOp.AND: ("and", "b"),
    RMWOp.OR: ("or", "b"),
    RMWOp.XOR: ("xor", "b"),
    RMWOp.EXCH: ("exch", "b"),
    RMWOp.ADD: ("add", "u"),
    RMWOp.MAX: ("max", "s"),
    RMWOp.MIN: ("min", "s"),
    RMWOp.UMAX: ("max", "u"),
    RMWOp.UMIN: ("min", "u"),
}


def operation(kind: RMWOp, held: Type, width: int) -> str:
    """``add.noftz.v4.f16x2``."""
    if kind is not RMWOp.FADD:
        name, letter = INSTRUCTIONS[kind]
        return f"{name}.{letter}{held.bits}"
    if held is not f16 and held is not bf16:
        return f"add{f'.v{width}' if width > 1 else ''}.f{held.bits}"
    name, pairs = ("f16" if held is f16 else "bf16"), width // 2
    return f"add.noftz{f'.v{pairs}' if pairs > 1 else ''}.{name}{'x2' if pairs else ''}"


def change(
    low: Emission, kind: RMWOp, address: Value, values: Sequence[Value], may: Value | None, order: Order
) -> Sequence[Value]:
    held, width = values[0].type, len(values)
    text = f"atom.global.{SCOPES[order.scope]}.{ORDERINGS[order.sem]}.{operation(kind, held, width)}"
    return access(low, text, held, address, [values], may, width, order.is_used)


def exchange(
    low: Emission, address: Value, compared: Value, value: Value, may: Value | None, order: Order
) -> Sequence[Value]:
    text = f"atom.global.{ORDERINGS[order.sem]}.{SCOPES[order.scope]}.cas.b{value.type.bits}"
    return access(low, text, value.type, address, [[compared], [value]], may, 1, order.is_used)


def read(low: Emission, address: Value, held: Type, may: Value | None, order: Order) -> Sequence[Value]:
    text = f"ld.global.{ORDERINGS[order.sem]}.{SCOPES[order.scope]}.b{held.bits}"
    return access(low, text, held, address, [], may, 1, order.is_used)


def access(
    low: Emission,
    text: str,
    held: Type,
    address: Value,
    given: Sequence[Sequence[Value]],
    may: Value | None,
    width: int,
    is_used: bool,
) -> list[Value]:
    """One instruction on `width` neighbours, each of `given` an operand of it; the old values, 0 if it may not run."""
    word = integer(min(32, held.bits * width)) if held.bits < 32 else held if held.bits == 32 else integer(64)
    count = held.bits * width // word.bits
    outputs = count if is_used or count > 1 or held is bf16 else 0  # ptxas 13.0 dies of atom.add.bf16 into _
    inputs: list[Value] = [address]
    spelled = [listed(0, outputs) or "_", f"[${outputs}]"]
    for group in given:
        packed = pack(low, group, word)
        spelled.append(listed(outputs + len(inputs), len(packed)))
        inputs += packed
    line, inputs = guarded(f"{text} {', '.join(spelled)};", inputs, may, outputs)
    if may is not None:
        line = "".join(f"mov.b{word.bits} ${output}, 0; " for output in range(outputs)) + line
    old = ptx(low.builder, line, [word] * outputs, inputs, effect="write")
    return unpack(low, old, held, width) if outputs else []


def add_by_exchange(low: Emission, address: Value, value: Value, may: Value | None, order: Order) -> Value:
    """Add to a bf16 where there is no instruction: exchange until nobody came between."""
    b, sem, scope = low.builder, ORDERINGS[order.sem], SCOPES[order.scope]

    def change() -> list[Value]:
        (seen,) = ptx(b, f"ld.relaxed.{scope}.global.b16 $0, [$1];", [i16], [address], effect="write")
        origin, again, done = b.block, b.function.block("again"), b.function.block("changed")
        b.br(again)
        with b.scope():
            b.resume(again)
            old, close = b.open_phi(i16, seen, origin)
            new = b.bitcast(b.fadd(b.bitcast(old, bf16), value), i16)
            line = f"atom.{sem}.{scope}.global.cas.b16 $0, [$1], $2, $3;"
            (found,) = ptx(b, line, [i16], [address, old, new], effect="write")
            close(found, b.block)
            b.cond_br(b.icmp("eq", found, old), done, again)
        b.resume(done)
        return [b.bitcast(old, bf16)]

    return change()[0] if may is None else b.if_else(may, change, lambda: [constant(bf16, 0.0)])[0]
