"""Which buffer of a ring an access in a loop means, where the loop counts around: two of them need no order if they differ.

    %following = %slot + 1;  %next = %following >= 3 ? 0 : %following;  yield %next          slot (turn + start) mod 3

In turn t the argument is (t + start) mod 3 and what is yielded for it one more. Accesses of one turn are apart if their slots
are. Between those of two turns lies a barrier, if the later one comes behind a wait for copies.

A product in the background still reads behind such a barrier. Slots tell nothing about loops that leave one running.
"""

from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.alias import VIEWS
from tilework.ir import ttg, ttng
from tilework.ir.arith_ext import SelectOp
from tilework.ir.integer_ops import SGE, predicate_of
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import constant_value
from tilework.ir.ttg.memdesc_types import is_memdesc

MOST_TURNS = 8


class Slot(NamedTuple):
    """One of `count` buffers: (turn + start) mod count."""

    count: int
    start: int

    def is_apart(self, other: "Slot", turns: int = 0) -> bool:
        """Never is `other`, so many turns later, the same buffer."""
        return self.count == other.count and (self.start - other.start - turns) % self.count != 0


Place = tuple[SSAValue, Slot | None]  # memory, and which buffer of it


def in_other_slots(before: Operation, after: Operation) -> bool:
    """Both ops are in a loop, in no turn of which they touch the same buffer, though the same ring."""
    body = before.parent
    if body is None or after.parent is not body or not is_behind_wait(after) or (left := turns_left(body)) is None:
        return False
    pairs = [(mine, theirs) for ring, mine in slots_of(before) for other, theirs in slots_of(after) if ring is other]
    return bool(pairs) and all(
        mine is not None and theirs is not None and all(mine.is_apart(theirs, turns) for turns in range(left + 1))
        for mine, theirs in pairs
    )


def is_behind_wait(op: Operation) -> bool:
    """A wait for copies, and with it a barrier, comes before `op` in its block."""
    before = op.prev_op
    while before is not None and type(before) is not ttg.AsyncWaitOp:
        before = before.prev_op
    return before is not None


def is_drained(body: Block) -> bool:
    """The block is the body of a loop that waits for all its products, behind them."""
    return turns_left(body) == 0


def turns_left(body: Block) -> int | None:
    """How many turns of a loop have products that may run when a turn ends: 0, or 1, its own; None if nobody knows."""
    if type(body.parent_op()) is not scf.ForOp:
        return None
    started = waited = 0  # products of the turn, and those of them that were waited for
    seen = False
    for op in body.ops:
        kind = type(op)
        if kind is ttng.WarpGroupDotOp:
            started += 1
        elif kind is ttng.WarpGroupDotWaitOp:
            left = op.properties["pendings"].value.data  # pyright: ignore
            if left <= started:
                seen, waited = True, started - left
        elif op.regions and any(type(inner) is ttng.WarpGroupDotOp for inner in op.walk()):
            return None
    if waited == started:
        return 0
    return 1 if seen else None


def slots_of(op: Operation) -> list[Place]:
    """The memory behind the operands of `op`, and the slot of it that each is."""
    found: list[Place] = []
    for value in op.operands:
        if is_memdesc(value.type):
            slot = None
            while isinstance(value, OpResult) and type(value.op) in VIEWS:
                slot = slot_at(value.op.operands[1]) if type(value.op) is ttg.MemDescIndexOp else slot
                value = value.op.operands[0]
            found.append((value, slot))
    return found


def slot_at(index: SSAValue, seen: frozenset[SSAValue] = frozenset()) -> Slot | None:
    if isinstance(index, BlockArgument):
        return counter(index, seen)
    if (found := counted(index)) is not None and (slot := counter(found[0], seen)) is not None:
        return Slot(slot.count, slot.start + 1)
    return None


def counter(argument: BlockArgument, seen: frozenset[SSAValue]) -> Slot | None:
    """The slot of an argument that the loop counts around, or that is what another one was in the turn before."""
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
    """The argument and the limit that `value` is the number after, going around."""
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
    """The constant that `value` is, also where a loop carries it over a few turns."""
    if not isinstance(value, BlockArgument):
        return constant_value(value)
    loop = value.block.parent_op()
    if type(loop) is not scf.ForOp or value.index == 0 or depth > MOST_TURNS:
        return None
    start = constant_value(loop.operands[2 + value.index])
    yielded = end_of(value.block).operands[value.index - 1]
    return start if carried_constant(yielded, depth + 1) == start else None
