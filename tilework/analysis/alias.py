"""The buffers of shared memory that each memory descriptor may refer to, and the slot of a ring buffer.

    %a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, ...>             {%a}
    %b = ttg.memdesc_index %a[%i]                                        {%a}
    %c = scf.if %p { scf.yield %b } else { scf.yield %other }            {%a, %other}

A buffer is identified by the result of its `ttg.local_alloc`. Views refer to the memory of their operand; arguments and
results of loops and branches refer to all that may flow in. A descriptor that is poison, or an argument of a function,
refers to none.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import Pair, control_flows, pairs, parent_of, reached
from tilework.ir import amdg, arith, scf, ttg, ttng
from tilework.ir.arith import SGE, SelectOp, predicate_of
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import end_of, ops_behind
from tilework.ir.rewrite import constant_value
from tilework.ir.ttg.memory_types import is_memdesc
from tilework.ir.types import int_property

Aliases = dict[SSAValue, tuple[SSAValue, ...]]
"""The buffers of each descriptor, in program order."""

VIEWS = frozenset(
    {
        ttg.MemDescIndexOp,
        ttg.MemDescReinterpretOp,
        ttg.MemDescReshapeOp,
        ttg.MemDescSubsliceOp,
        ttg.MemDescTransOp,
    }
)


def aliases(root: Operation) -> Aliases:
    """Return the buffers of every memory descriptor under `root`; those that refer to none are absent."""
    buffers: list[SSAValue] = []
    edges: dict[SSAValue, list[SSAValue]] = {}
    for op in ops_in_order(*root.regions):
        if type(op) is ttg.LocalAllocOp:
            buffers.append(op.results[0])
        for source, target in value_flows(op):
            if is_memdesc(source.type) and is_memdesc(target.type):
                edges.setdefault(source, []).append(target)
    found: Aliases = {}
    for buffer in buffers:
        for value in reached([buffer], lambda value: edges.get(value, ())):
            found[value] = (*found.get(value, ()), buffer)
    return found


def value_flows(op: Operation) -> Sequence[Pair]:
    """Return (source, target) for each value that `op` passes on, or a part of it: views, loops, branches, yields."""
    kind = type(op)
    if kind in VIEWS:
        return [(op.operands[0], op.results[0])]
    rule = FLOWS.get(kind)
    return (control_flows(op) or ()) if rule is None else rule(op)


def specialize_flows(op: Operation) -> list[Pair]:
    assert isinstance(op, ttg.WarpSpecializeOp)
    return pairs(op.operands, *(region.blocks[0].args for region in op.partitions if region.blocks))


def return_flows(op: Operation) -> list[Pair]:
    return pairs(op.operands, parent_of(op).results)


FLOWS: dict[type[Operation], Callable[[Operation], list[Pair]]] = {
    arith.SelectOp: lambda op: [(operand, op.results[0]) for operand in op.operands[1:]],
    ttg.WarpSpecializeOp: specialize_flows,
    ttg.WarpYieldOp: return_flows,
    ttg.MaskReturnOp: return_flows,
    ttng.WarpGroupDotWaitOp: lambda op: pairs(op.operands, op.results),
}


# The slot of a ring buffer that an access in a loop refers to, if the loop counts modulo the number of slots: accesses
# of different slots need no order.
#
#     %following = %slot + 1;  %next = %following >= 3 ? 0 : %following;  yield %next     slot (iteration + start) mod 3
#
# In iteration t the argument is (t + start) mod 3, and the yielded value one more. A loop may carry the buffer itself
# instead of its index. Accesses of one iteration are independent if their slots differ. Between those of two
# iterations there is a barrier, if the later one comes after a wait for copies.
#
# An asynchronous dot still reads after such a barrier. Slots decide nothing for loops that leave one running.

MOST_ITERATIONS = 8
COPY_WAITS = frozenset({amdg.AsyncWaitOp, ttg.AsyncWaitOp})


class Slot(NamedTuple):
    """One of `count` buffers: (iteration + start) mod count."""

    count: int
    start: int

    def is_apart(self, other: "Slot", iterations: int = 0) -> bool:
        """Return True if `other`, so many iterations later, is never the same buffer."""
        return self.count == other.count and (self.start - other.start - iterations) % self.count != 0


BufferSlot = tuple[SSAValue, Slot | None]  # memory, and the slot in it


def in_other_slots(before: Operation, after: Operation) -> bool:
    """Return True if both ops are in a loop and access different slots of the same ring buffer in every iteration."""
    body = before.parent
    if body is None or after.parent is not body or type(body.parent_op()) is not scf.ForOp:
        return False
    pairs = [(mine, theirs) for ring, mine in slots_of(before) for other, theirs in slots_of(after) if ring is other]
    if (
        not pairs
        or not (is_behind_wait(after) or comes_before_wait(before))
        or (left := iterations_in_flight(body)) is None
    ):
        return False
    return all(
        mine is not None
        and theirs is not None
        and all(mine.is_apart(theirs, iterations) for iterations in range(left + 1))
        for mine, theirs in pairs
    )


def is_behind_wait(op: Operation) -> bool:
    """Return True if a wait for copies, and with it a barrier, comes before `op` in its block."""
    before = op.prev_op
    while before is not None and type(before) not in COPY_WAITS:
        before = before.prev_op
    return before is not None


def comes_before_wait(op: Operation) -> bool:
    """Return True if a wait for copies comes after `op` in its block, so that later iterations run after the wait."""
    return any(type(after) in COPY_WAITS for after in ops_behind(op))


def is_drained(body: Block) -> bool:
    """Return True if the block is the body of a loop that waits for all its dots."""
    return iterations_in_flight(body) == 0


def iterations_in_flight(body: Block) -> int | None:
    """Return how many iterations of a loop have dots that may run when an iteration ends: 0, or 1, its own; None if
    unknown."""
    if type(body.parent_op()) is not scf.ForOp:
        return None
    started = waited = 0  # dots of the iteration, and those of them that were waited for
    seen = False
    for op in body.ops:
        kind = type(op)
        if kind is ttng.WarpGroupDotOp:
            started += 1
        elif kind is ttng.WarpGroupDotWaitOp:
            left = int_property(op, "pendings")
            if left <= started:
                seen, waited = True, started - left
        elif op.regions and any(type(inner) is ttng.WarpGroupDotOp for inner in op.walk()):
            return None
    if waited == started:
        return 0
    return 1 if seen else None


def slots_of(op: Operation) -> list[BufferSlot]:
    """Return the memory behind the operands of `op`, and the slot of each."""
    return [slot_behind(value, frozenset()) for value in op.operands if is_memdesc(value.type)]


def slot_behind(value: SSAValue, seen: frozenset[SSAValue]) -> BufferSlot:
    slot = None
    while isinstance(value, OpResult) and type(value.op) in VIEWS:
        slot = slot_at(value.op.operands[1]) if type(value.op) is ttg.MemDescIndexOp else slot
        value = value.op.operands[0]
    if slot is None and isinstance(value, BlockArgument) and value not in seen:
        return carried_slot(value, seen | {value}) or (value, None)
    return value, slot


def carried_slot(argument: BlockArgument, seen: frozenset[SSAValue]) -> BufferSlot | None:
    """Return the slot of a buffer that a loop passes on to its next iteration."""
    loop = argument.block.parent_op()
    if type(loop) is not scf.ForOp or argument.index == 0:
        return None
    first, yielded = loop.operands[2 + argument.index], end_of(argument.block).operands[argument.index - 1]
    index = first.owner
    if not isinstance(index, ttg.MemDescIndexOp):
        return None
    (ring, slot), start = slot_behind(yielded, seen), constant_value(index.operands[1])
    if slot is None or ring is not index.operands[0] or not isinstance(start, int):
        return None
    return (ring, Slot(slot.count, start)) if (slot.start - 1 - start) % slot.count == 0 else None


def slot_at(index: SSAValue, seen: frozenset[SSAValue] = frozenset()) -> Slot | None:
    if isinstance(index, BlockArgument):
        return counter(index, seen)
    if (found := counted(index)) is not None and (slot := counter(found[0], seen)) is not None:
        return Slot(slot.count, slot.start + 1)
    return None


def counter(argument: BlockArgument, seen: frozenset[SSAValue]) -> Slot | None:
    """Return the slot of an argument that the loop counts around, or that is the last iteration's value of another
    one."""
    loop = argument.block.parent_op()
    if type(loop) is not scf.ForOp or argument.index == 0 or argument in seen:
        return None
    start, yielded = (
        constant_value(loop.operands[2 + argument.index]),
        end_of(argument.block).operands[argument.index - 1],
    )
    if not isinstance(start, int):
        return None
    if (around := counted(yielded)) is not None and around[0] is argument:
        return Slot(around[1], start)
    other = slot_at(yielded, seen | {argument})
    return Slot(other.count, start) if other is not None and (other.start - 1 - start) % other.count == 0 else None


def counted(value: SSAValue) -> tuple[BlockArgument, int] | None:
    """Return the argument and the limit if `value` is the next one, counting around."""
    select = value.owner
    if not isinstance(select, SelectOp) or constant_value(select.operands[1]) != 0:
        return None
    compare, following = select.operands[0].owner, select.operands[2].owner
    if not isinstance(compare, arith.CmpiOp) or compare.operands[0] is not select.operands[2]:
        return None
    if not isinstance(following, arith.AddiOp) or constant_value(following.operands[1]) != 1:
        return None
    argument, limit = following.operands[0], carried_constant(compare.operands[1])
    is_at_least = predicate_of(compare) == SGE
    return (argument, limit) if is_at_least and isinstance(argument, BlockArgument) and isinstance(limit, int) else None


def carried_constant(value: SSAValue, depth: int = 0) -> object:
    """Return the constant that `value` is, also if a loop carries it over a few iterations."""
    if not isinstance(value, BlockArgument):
        return constant_value(value)
    loop = value.block.parent_op()
    if type(loop) is not scf.ForOp or value.index == 0 or depth > MOST_ITERATIONS:
        return None
    start = constant_value(loop.operands[2 + value.index])
    yielded = end_of(value.block).operands[value.index - 1]
    return start if carried_constant(yielded, depth + 1) == start else None
