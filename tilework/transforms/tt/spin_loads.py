"""A load that a `while` waits for is read again in every round.

    scf.while : () -> () {                               scf.while : () -> () {
      %v = tt.load %flag                                   %v = tt.load %flag {isVolatile = true}
      %go = arith.cmpi eq, %v, %zero          ==>          %go = arith.cmpi eq, %v, %zero
      scf.condition(%go)                                   scf.condition(%go)
    } do { scf.yield }                                   } do { scf.yield }

As a plain load it would see the same memory every time: the loop has no effect and is deleted, or the load is hoisted and the
loop never ends. A load waits if its address is the same in every round and its value decides whether there is another one;
no other load is touched, so that loops which work on memory stay as fast as they are. What volatile means every later pass and
code generator knows already. Calls have been inlined; in a function that is not, what it reads for such a loop is treated alike.
Stage: TTIR to TTIR. Cost: one walk, and one over each `scf.while`.
"""

from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import tt
from tilework.ir.functions import callee_of, ops_in_order
from tilework.ir.nesting import LOOPS, blocks_within, home_of
from tilework.ir.types import i1, int_attr
from tilework.transforms.passes import names_pass

VOLATILE = int_attr(1, i1)


@names_pass("tt-spin-loads")
def mark_spins(functions: Mapping[str, Operation]) -> None:
    """The loads of one module that loops wait for, in the loops and in the functions that they call."""
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
    """Read again what is at the same address in every round; gives the functions that are called, which may read too."""
    called: set[str] = set()
    for op in ops:
        if type(op) is tt.CallOp:
            called.add(callee_of(op))
        elif type(op) is tt.LoadOp and is_same_every_round(op.operands[0], inside):
            op.properties["isVolatile"] = VOLATILE
    return called


def deciding_ops(loop: Operation, inside: set[Block]) -> list[Operation]:
    """The loads and calls in `loop` that its condition depends on, through any number of rounds."""
    condition = loop.regions[0].block.last_op
    assert type(condition) is scf.ConditionOp, "the first region of a while ends with its condition"

    def needs(value: SSAValue) -> Iterator[SSAValue]:
        found = inputs(value.op) if isinstance(value, OpResult) else incoming(value)  # pyright: ignore[reportArgumentType]
        return (one for one in found if home_of(one) in inside)

    start = [value for value in condition.operands[:1] if home_of(value) in inside]
    ops = (value.owner for value in reached(start, needs))
    return [op for op in ops if type(op) is tt.LoadOp or type(op) is tt.CallOp]


def inputs(op: Operation) -> Iterator[SSAValue]:
    """What the results of `op` depend on: its operands, and those of the ops in it."""
    yield from op.operands
    for block in blocks_within(op):
        for inner in block.ops:
            yield from inner.operands


def incoming(argument: BlockArgument) -> list[SSAValue]:
    """What an argument of a block of a loop may be."""
    parent = argument.block.parent_op()
    if type(parent) is scf.WhileOp:
        return [value for sources in sources_of(argument) for value in sources]
    return list(inputs(parent)) if parent is not None else []


def is_same_every_round(value: SSAValue, inside: set[Block]) -> bool:
    """Nothing that `value` is computed from changes in the loop."""
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
