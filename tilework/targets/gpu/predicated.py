"""Stores to shared memory that only some threads make, without a branch.

    @%p st.shared.v4.b32 [%rd4], {%r1, %r2, %r3, %r4};

A barrier follows such stores, and every thread of a warp must come to it together. Behind a branch, that depends on where LLVM
puts the blocks.
"""

from tilework.targets.gpu.assembly import ptx
from tilework.targets.gpu.global_access import access_text, pack, words
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.shared_access import Move, to_memory
from tilework.targets.llvm.values import Value


def store_if(low: Lowering, condition: Value | None, move: Move, registers: Registers) -> None:
    """`move.store(registers)` where the condition holds; everywhere without one."""
    if condition is None or condition.constant == 1:
        move.store(registers)
        return
    for offset, members in move.groups(0):
        word, count = words(move.held.bits, len(members))
        given = pack(low, [to_memory(low, move.element, registers[member]) for member in members], word)
        names = [f"${place + 1}" for place in range(count)]
        source = f"{{{', '.join(names)}}}" if count > 1 else names[0]
        kind = access_text(word, count, move.held.bits, len(members))
        inputs = [move.address(offset), *given, condition]
        ptx(low.builder, f"@${count + 1} st.shared{kind} [$0], {source};", [], inputs, effect="write")
