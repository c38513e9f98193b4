"""`tt.atomic_rmw` and `tt.atomic_cas` on global memory.

Of the threads that hold copies of an element, one performs the atomic; where the old value is used, the others get it through
the op's scratch memory. A scalar is done by the first thread, and all get its result the same way. What is masked off touches
nothing and gives 0.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.ir.types import is_float, is_tensor
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.device import Atomic
from tilework.targets.gpu.global_access import both, copied_registers, pointee, store_predicate, width_of
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, number_of
from tilework.targets.gpu.shared_access import Move
from tilework.targets.gpu.words import from_memory, held_type, to_memory
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.values import Value, constant

BITWISE = (RMWOp.AND, RMWOp.OR, RMWOp.XOR, RMWOp.EXCH)
READING = (MemSemantic.RELAXED, MemSemantic.ACQUIRE)
Change = Callable[[int, Atomic], Sequence[Value]]  # from a register on


@lowers(tt.AtomicRMWOp)
def lower_rmw(low: Lowering, op: Operation) -> Registers:
    pointers, given, *masked = op.operands
    mask = masked[0] if masked else None
    element = pointee(pointers.type)
    gpu, held, values = low.gpu, held_type(element), low[given]
    kind = RMWOp(number_of(op, "atomic_rmw_op"))
    if only_reads(op, kind, values[0]):
        return perform(low, op, mask, 1, lambda place, at: gpu.atomic_load(low, at, held))
    counts = is_float(element) and kind is not RMWOp.FADD and kind not in BITWISE
    if counts or not gpu.has_atomic(kind, held):
        raise low.refuse(op, f"an atomic {kind.name.lower()} on {element}")
    width = gpu.atomic_width(kind, held, width_of(low, pointers, mask, held.bits))

    def change(place: int, at: Atomic) -> Sequence[Value]:
        changes = [to_memory(low, element, value) for value in values[place : place + width]]
        return gpu.atomic_rmw(low, at, kind, changes)

    return perform(low, op, mask, width, change)


@lowers(tt.AtomicCASOp)
def lower_cas(low: Lowering, op: Operation) -> Registers:
    element = pointee(op.operands[0].type)
    held = held_type(element)
    if not low.gpu.has_atomic(None, held):
        raise low.refuse(op, f"an atomic on {held.bits} bits")

    def change(place: int, at: Atomic) -> Sequence[Value]:
        compared, value = (to_memory(low, element, low[operand][place]) for operand in op.operands[1:])
        return low.gpu.atomic_cas(low, at, compared, value)

    return perform(low, op, None, 1, change)


def only_reads(op: Operation, kind: RMWOp, value: Value) -> bool:
    """Adding 0 to a scalar is a way to read it with an ordering."""
    is_zero = kind is RMWOp.ADD and value.constant == 0
    return is_zero and not is_tensor(op.results[0].type) and number_of(op, "sem", 4) in READING


def perform(low: Lowering, op: Operation, mask: SSAValue | None, width: int, change: Change) -> Registers:
    """Let the one thread that should do so change each group of `width` registers, and tell all what was there before."""
    pointers = op.operands[0]
    element, addresses = pointee(pointers.type), low[pointers]
    sem, scope = MemSemantic(number_of(op, "sem", 4)), MemSyncScope(number_of(op, "scope", 1))
    is_used = op.results[0].first_use is not None
    masks: Registers | None = low[mask] if mask is not None else None
    mine, copies = store_predicate(low, pointers.type), copied_registers(pointers.type)
    found: dict[int, Value] = {}
    for first in range(0, len(addresses), width):
        if not first & copies:
            may = both(low, mine, masks[first] if masks is not None else None)
            old = change(first, Atomic(addresses[first], may, sem, scope, is_used))
            found.update(enumerate([from_memory(low, element, value) for value in old], first))
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
    move.store_words(mine, found)
    low.barrier()
    return move.load()


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
