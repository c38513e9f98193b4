"""`tt.atomic_rmw` and `tt.atomic_cas` on global memory.

    @%p atom.global.gpu.acq_rel.add.f32 %old, [%ptr], %value;

LLVM's own atomics forget ordering and scope, so all are written as PTX. Of the threads that hold copies of an element, one
performs the atomic; where the old value is used, the others get it through the op's scratch memory. A scalar is done by the
first thread, and all get its result the same way. What is masked off touches nothing and gives 0.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.ir.types import is_float, is_tensor
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.assembly import ptx
from tilework.targets.gpu.global_access import (
    access_text,
    copied_registers,
    number_of,
    pack,
    pointee,
    store_predicate,
    unpack,
    width_of,
    words,
)
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.shared_access import Move, from_memory, held_type, to_memory
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import bf16, f16, i16, integer
from tilework.targets.llvm.values import Value, constant

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
BITWISE = (RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.EXCH)
Change = Callable[[int, Value | None], Sequence[Value]]


def ordering_of(op: Operation) -> tuple[str, str]:
    """``("acq_rel", "gpu")``."""
    return ORDERINGS[MemSemantic(number_of(op, "sem", 4))], SCOPES[MemSyncScope(number_of(op, "scope", 1))]


@lowers(tt.AtomicRMWOp)
def lower_rmw(low: Lowering, op: Operation) -> Registers:
    pointers, given, *masked = op.operands
    mask = masked[0] if masked else None
    element = pointee(pointers.type)
    addresses, values = low[pointers], low[given]
    sem, scope = ordering_of(op)
    kind = RMWOp(number_of(op, "atomic_rmw_op", 0))
    if kind is RMWOp.FADD and register_type(element) is bf16 and low.facts.capability < 90:
        return perform(
            low, op, mask, 1, lambda at, may: [add_by_exchange(low, addresses[at], values[at], may, sem, scope)]
        )
    if only_reads(op, kind, values[0], sem):
        text = f"ld.global.{sem}.{scope}.b{held_type(element).bits}"
        return perform(low, op, mask, 1, lambda at, may: access(low, op, text, addresses[at], [], may, 1))
    width = vector_width(low, op, kind, pointers, mask, element)
    text = f"atom.global.{scope}.{sem}.{operation(low, op, kind, element, width)}"

    def change(at: int, may: Value | None) -> Sequence[Value]:
        held = [to_memory(low, element, value) for value in values[at : at + width]]
        return access(low, op, text, addresses[at], [held], may, width)

    return perform(low, op, mask, width, change)


@lowers(tt.AtomicCASOp)
def lower_cas(low: Lowering, op: Operation) -> Registers:
    pointers, compared, given = op.operands
    element = pointee(pointers.type)
    sem, scope = ordering_of(op)
    bits = held_type(element).bits
    if bits not in (16, 32, 64):
        raise low.refuse(op, f"an atomic on {bits} bits")
    text = f"atom.global.{sem}.{scope}.cas.b{bits}"

    def change(at: int, may: Value | None) -> Sequence[Value]:
        held = [[to_memory(low, element, low[operand][at])] for operand in (compared, given)]
        return access(low, op, text, low[pointers][at], held, may, 1)

    return perform(low, op, None, 1, change)


def only_reads(op: Operation, kind: RMWOp, value: Value, sem: str) -> bool:
    """Adding 0 to a scalar is a way to read it with an ordering."""
    is_zero = kind is RMWOp.ADD and value.constant == 0
    return is_zero and not is_tensor(op.results[0].type) and sem in ("relaxed", "acquire")


def vector_width(
    low: Lowering, op: Operation, kind: RMWOp, pointers: SSAValue, mask: SSAValue | None, element: Attribute
) -> int:
    """How many neighbours one instruction adds to: pairs of f16, and 16 bytes of floats from sm_90 on."""
    bits = held_type(element).bits
    if kind is not RMWOp.FADD or bits > 32:
        return 1
    width = width_of(low, pointers, mask, bits)
    return width if low.facts.capability >= 90 else min(width, 32 // bits)


def operation(low: Lowering, op: Operation, kind: RMWOp, element: Attribute, width: int) -> str:
    """``add.noftz.v4.f16x2``."""
    held = held_type(element)
    if kind is RMWOp.FADD:
        if held is not f16 and held is not bf16:
            return f"add{f'.v{width}' if width > 1 else ''}.f{held.bits}"
        name, pairs = ("f16" if held is f16 else "bf16"), width // 2
        return f"add.noftz{f'.v{pairs}' if pairs > 1 else ''}.{name}{'x2' if pairs else ''}"
    if held.bits < 32 or (is_float(element) and kind not in BITWISE):
        raise low.refuse(op, f"an atomic {kind.name.lower()} on {element}")
    name, letter = INSTRUCTIONS[kind]
    return f"{name}.{letter}{held.bits}"


def perform(low: Lowering, op: Operation, mask: SSAValue | None, width: int, change: Change) -> Registers:
    """Let the one thread that should do so change each group of `width` registers, and tell all what was there before."""
    b = low.builder
    pointers = op.operands[0]
    masks: Registers | None = low[mask] if mask is not None else None
    copies = copied_registers(pointers.type)
    mine = store_predicate(low, pointers.type)
    found: dict[int, Value] = {}
    for first in range(0, len(low[pointers]), width):
        if first & copies:
            continue
        may = mine
        if masks is not None:
            may = masks[first] if may is None else b.and_(may, masks[first])
        if may is not None and may.constant == 1:
            may = None
        found.update(enumerate(change(first, may), first))
    return told(low, op, found, copies, mine)


def told(low: Lowering, op: Operation, found: dict[int, Value], copies: int, mine: Value | None) -> Registers:
    """The old values, in all threads that hold the elements."""
    assert low.allocation is not None
    result, element = op.results[0], pointee(op.operands[0].type)
    count = len(low[op.operands[0]])
    if result.first_use is None:
        return (constant(register_type(element), 0),) * count
    if op not in low.allocation.scratch:
        return tuple(found[register & ~copies] for register in range(count))
    if low.facts.num_ctas > 1 and shared_by_blocks(result.type):
        raise low.refuse(op, "an atomic whose result several blocks of a cluster use")
    places = dense(layout_of(result.type)) if is_tensor(result.type) else SCALAR
    move = Move(low, low.scratch_address(op), places, element)
    store_if(low, move, mine, found)
    low.barrier()
    return move.load()


def store_if(low: Lowering, move: Move, mine: Value | None, found: dict[int, Value]) -> None:
    """Write registers to shared memory under a predicate: a branch would have to come together again before the barrier."""
    for offset, members in move.groups(0):
        held = [to_memory(low, move.element, found[member]) for member in members]
        word, count = words(move.held.bits, len(held))
        packed = pack(low, held, word)
        line = f"st.shared{access_text(word, count, move.held.bits, len(held))} [$0], {listed([f'${1 + at}' for at in range(count)])};"
        if mine is not None:
            line = f"@${1 + count} {line}"
        ptx(low.builder, line, [], [move.address(offset), *packed, *([] if mine is None else [mine])], effect="write")


SCALAR = LinearLayout({"register": [], "lane": [], "warp": []}, (("offset", 1),))


def shared_by_blocks(type: Attribute) -> bool:
    """Whether several blocks hold the same elements."""
    return not is_tensor(type) or not all(layout_of(type).by_in.get("block", ()))


def dense(tensor: LinearLayout) -> LinearLayout:
    """An offset for each different element of a block: neighbouring registers first, then lanes, then warps."""
    taken = 0
    bases: dict[str, list[tuple[int]]] = {}
    for name in ("register", "lane", "warp"):
        bases[name] = []
        for column in tensor.by_in[name]:
            bases[name].append((1 << taken if column else 0,))
            taken += bool(column)
    return LinearLayout(bases, (("offset", 1 << taken),))


def access(
    low: Lowering,
    op: Operation,
    text: str,
    address: Value,
    given: Sequence[Sequence[Value]],
    may: Value | None,
    width: int,
) -> list[Value]:
    """One instruction on `width` neighbours, each of `given` an operand of it; the old values, 0 if it may not run."""
    b, element = low.builder, pointee(op.operands[0].type)
    held = held_type(element)
    word = integer(min(32, held.bits * width)) if held.bits < 32 else held if held.bits == 32 else integer(64)
    count = held.bits * width // word.bits
    used = op.results[0].first_use is not None or count > 1 or held is bf16  # ptxas 13.0 dies of atom.add.bf16 into _
    outputs = [f"${place}" for place in range(count)] if used else ["_"]
    inputs: list[Value] = [address]
    spelled = [f"[${len(outputs) if used else 0}]"]
    for group in given:
        packed = pack(low, group, word)
        first = len(inputs) + (count if used else 0)
        inputs += packed
        spelled.append(listed([f"${first + place}" for place in range(len(packed))]))
    line = f"{text} {listed(outputs)}, {', '.join(spelled)};"
    if may is not None:
        zeros = "".join(f"mov.b{word.bits} {output}, 0; " for output in outputs) if used else ""
        line = f"{zeros}@${len(inputs) + (count if used else 0)} {line}"
        inputs.append(may)
    old = ptx(b, line, [word] * count if used else [], inputs, effect="write")
    if not used:
        return [constant(register_type(element), 0)] * width
    return [from_memory(low, element, value) for value in unpack(low, old, held, width)]


def listed(names: Sequence[str]) -> str:
    return f"{{{', '.join(names)}}}" if len(names) > 1 else names[0]


def add_by_exchange(low: Lowering, address: Value, value: Value, may: Value | None, sem: str, scope: str) -> Value:
    """Add to a bf16 where there is no instruction: exchange until nobody came between."""
    b = low.builder

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
