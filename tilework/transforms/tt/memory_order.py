"""Keep memory accesses of reproducible kernels in program order, whichever threads execute them; mark loads of spin
loops volatile.

    %x = tt.load %p                %x = tt.load %p
    tt.store %p, %y        ==>     ttg.barrier all
                                   tt.store %p, %y

Threads of a program do not wait for each other. One thread may load an element that another stores, depending on
layouts and the number of warps: then the later access can overtake the earlier one. So the pass inserts a barrier
between two accesses of which one writes. It does not compare arrays: any two may overlap. In front of a loop or a
branch one barrier replaces those that it would need inside. In a kernel with several blocks each block starts with the
accesses of its predecessors. Loops with a barrier are not pipelined, as their loads would be in front of the stores of
the iteration before.
Stage: TTIR to TTIR, for GPUs. Cost: one walk, and one over each loop and branch.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import NamedTuple

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import scf, tt, ttg
from tilework.ir.effects import is_pure, reads, writes
from tilework.ir.functions import callee_of, ops_in_order
from tilework.ir.nesting import blocks_within, home_of, successors
from tilework.ir.scf import LOOPS
from tilework.ir.types import i1, int_attr
from tilework.transforms.building.emitter import order
from tilework.transforms.passes import function_pass, names_pass

SEEN_BY_NO_LOAD = frozenset({tt.PrintOp, tt.AssertOp, ttg.BarrierOp})


class Accesses(NamedTuple):
    """The memory accesses since the last barrier."""

    read: bool = False
    written: bool = False

    def __or__(self, other: "Accesses") -> "Accesses":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Accesses(self.read or other.read, self.written or other.written)

    def conflicts(self, later: "Accesses") -> bool:
        return (self.written and (later.read or later.written)) or (self.read and later.written)


NONE = Accesses()


@function_pass("tt-memory-in-order")
def memory_in_order(function: Operation) -> None:
    blocks = function.regions[0].blocks
    anything = of_blocks(blocks) if len(blocks) > 1 else NONE
    ends: dict[Block, Accesses] = {}
    for block in blocks:  # a block that comes later may have been run before this one
        before = [ends.get(other, anything) for other in blocks if block in successors(other)]
        ends[block] = order(block, union(before), accesses, NONE)


def accesses(op: Operation) -> Accesses:
    """The accesses of an op, with those inside its regions."""
    if type(op) in SEEN_BY_NO_LOAD or is_pure(op):
        return NONE
    if op.regions:
        return of_blocks([block for region in op.regions for block in region.blocks])
    return Accesses(reads(op), writes(op))


def of_blocks(blocks: Iterable[Block]) -> Accesses:
    return union(accesses(op) for block in blocks for op in block.ops)


def union(parts: Iterable[Accesses]) -> Accesses:
    return reduce(or_, parts, NONE)


# Spin loops: a load that a `while` waits for is volatile, so that every iteration reads memory.
#
#     scf.while : () -> () {                               scf.while : () -> () {
#       %v = tt.load %flag                                   %v = tt.load %flag {isVolatile = true}
#       %go = arith.cmpi eq, %v, %zero          ==>          %go = arith.cmpi eq, %v, %zero
#       scf.condition(%go)                                   scf.condition(%go)
#     } do { scf.yield }                                   } do { scf.yield }
#
# A plain load would see the same memory every time: the loop would have no effect and be deleted, or the load would be
# hoisted and the loop never end. A load belongs to a spin loop if its address is loop-invariant and its value decides
# whether there is another iteration; no other load is touched, so that other loops keep their speed. Later passes and
# code generators respect `isVolatile`. Loads in functions that were not inlined, and that such a loop calls, are
# treated alike.
# Stage: TTIR to TTIR. Cost: one walk, and one over each `scf.while`.

VOLATILE = int_attr(1, i1)


@names_pass("tt-spin-loads")
def mark_spins(functions: Mapping[str, Operation]) -> None:
    """Mark the loads of one module that loops wait for, in the loops and in the functions that they call."""
    called: set[str] = set()
    for loop in [
        op for function in functions.values() for op in ops_in_order(*function.regions) if type(op) is scf.WhileOp
    ]:
        inside = set(blocks_within(loop))
        called |= make_volatile(deciding_ops(loop, inside), inside)
    waiting = list(called)
    while waiting:
        if (function := functions.get(waiting.pop())) is None:
            continue
        loops = set[Block]().union(
            *(blocks_within(inner) for inner in ops_in_order(*function.regions) if type(inner) in LOOPS)
        )
        further = make_volatile(ops_in_order(*function.regions), loops) - called
        called |= further
        waiting += further


def make_volatile(ops: Iterable[Operation], inside: set[Block]) -> set[str]:
    """Make the loads volatile whose address is loop-invariant. Return the called functions, which may load too."""
    called: set[str] = set()
    for op in ops:
        if type(op) is tt.CallOp:
            called.add(callee_of(op))
        elif type(op) is tt.LoadOp and is_invariant(op.operands[0], inside):
            op.properties["isVolatile"] = VOLATILE
    return called


def deciding_ops(loop: Operation, inside: set[Block]) -> list[Operation]:
    """The loads and calls in `loop` that its condition depends on, through any number of iterations."""
    condition = loop.regions[0].block.last_op
    assert type(condition) is scf.ConditionOp, "the first region of a while ends with its condition"

    def needs(value: SSAValue) -> Iterator[SSAValue]:
        found = inputs(value.op) if isinstance(value, OpResult) else incoming(value)  # pyright: ignore
        return (one for one in found if home_of(one) in inside)

    start = [value for value in condition.operands[:1] if home_of(value) in inside]
    ops = (value.owner for value in reached(start, needs))
    return [op for op in ops if type(op) is tt.LoadOp or type(op) is tt.CallOp]


def inputs(op: Operation) -> Iterator[SSAValue]:
    """The values that the results of `op` depend on: its operands, and those of the ops in it."""
    yield from op.operands
    for block in blocks_within(op):
        for inner in block.ops:
            yield from inner.operands


def incoming(argument: BlockArgument) -> list[SSAValue]:
    """The values that an argument of a block of a loop may have."""
    parent = argument.block.parent_op()
    if type(parent) is scf.WhileOp:
        return [value for sources in sources_of(argument) for value in sources]
    return list(inputs(parent)) if parent is not None else []


def is_invariant(value: SSAValue, inside: set[Block]) -> bool:
    """Return True if nothing that `value` is computed from changes in the loop."""
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen or home_of(value) not in inside:
            continue
        if not isinstance(value, OpResult) or value.op.regions or type(value.op) in CHANGING:
            return False
        seen.add(value)
        waiting += value.op.operands
    return True


CHANGING = (tt.LoadOp, tt.AtomicRMWOp, tt.AtomicCASOp, tt.CallOp)
