"""Two groups of warps with work between their products start these in turn: while one has the tensor cores, the other works.

    give_turn {only = 1}                                          the first group is first
    for n:
        take_turn                                                 the other one has started its products
        s = q @ k[n];  acc = acc * a + p @ v[n - 1]               started
        give_turn
        wait for s;  p, a = softmax(s)                            while the other one's products run
    take_turn {only = 0}                                          nothing is left over

Without turns both groups may wait for their products at the same time, and compute at the same time while tensor cores rest.
Where tensor cores are the limit they hardly ever do, and who waits for its turn keeps them waiting (docs/cost-model.md has
figures). The groups run the same code, so that they give and take equally often. Who has the turn must not wait for all warps: the
others wait for the turn.
"""

from collections.abc import Iterable

from xdsl.ir import Operation

from tilework.analysis.cost import TENSOR, loop_cost
from tilework.analysis.scratch import scratch_size
from tilework.ir import ttg, ttng
from tilework.ir.module_facts import find_target
from tilework.ir.rewrite import insert_after, insert_before

FIRST, LAST = 0, 1  # groups
WRITES = frozenset({ttg.LocalAllocOp, ttg.LocalStoreOp})


def turns_pay(loop: Operation) -> bool:
    """Whether something else than tensor cores is the limit of `loop`."""
    cost = loop_cost(loop)
    return cost is not None and cost.limit != TENSOR


def may_meet(ops: Iterable[Operation]) -> bool:
    """Whether all warps may have to meet in one of `ops`: something goes from one to another through shared memory."""
    inside = (inner for op in ops for inner in op.walk())
    return any(type(op) in WRITES or scratch_size(op, find_target(op)) > 0 for op in inside)


def take_turns(loop: Operation, first: Operation, last: Operation) -> None:
    """Let the two groups of warps that run `loop` start its products, from `first` to `last`, in turn."""
    insert_before(first, ttng.TakeTurnOp.make(first.location))
    insert_after(last, ttng.GiveTurnOp.make(last.location))
    insert_before(loop, ttng.GiveTurnOp.make(loop.location, LAST))
    insert_after(loop, ttng.TakeTurnOp.make(loop.location, FIRST))
