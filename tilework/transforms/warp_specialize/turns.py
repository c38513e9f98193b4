"""Two groups of warps with work between their products start these in turn: while one has the tensor cores, the other works.

    for n:
        take_turn %barriers, %phase                               the other one has started its products
        s = q @ k[n];  acc = acc * a + p @ v[n - 1]               started
        give_turn %barriers
        wait for s;  p, a = softmax(s)                            while the other one's products run

Without turns both groups may wait for their products at the same time, and compute at the same time while tensor cores rest.
Where tensor cores are the limit they hardly ever do, and who waits for its turn keeps them waiting (docs/cost-model.md has
figures). The groups run the same code, so that they give and take equally often, and the phase runs on from loop to loop. Who has the
turn must not wait for all warps: the others wait for the turn. The barriers are mbarriers: of named ones one group would have waited once
more than the other, and racecheck then takes what a barrier of all orders for a race (benchmarks/results/sanitizer-h200.txt).
"""

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tilework.analysis.cost import TENSOR, loop_cost
from tilework.analysis.scratch import scratch_size
from tilework.ir import ttg, ttng
from tilework.ir.module_facts import find_target, num_warps
from tilework.ir.nesting import body_of, ops_around
from tilework.ir.rewrite import insert_after, insert_before
from tilework.ir.types import i32
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.warp_specialize.rings import carry, make_barriers

GROUPS = 2
CLEARLY = 1.1  # at 1.03 turns cost as much as they gain, at 1.2 they gain
WRITES = frozenset({ttg.LocalAllocOp, ttg.LocalStoreOp})


def turns_pay(loop: Operation) -> bool:
    """Whether something else than tensor cores is clearly the limit of `loop`."""
    cost = loop_cost(loop)
    return cost is not None and cost.bound > CLEARLY * cost.cycles[TENSOR]


def may_meet(ops: Iterable[Operation]) -> bool:
    """Whether all warps may have to meet in one of `ops`: something goes from one to another through shared memory."""
    inside = (inner for op in ops for inner in op.walk())
    return any(type(op) in WRITES or scratch_size(op, find_target(op)) > 0 for op in inside)


def take_turns(loop: Operation, first: Operation, last: Operation) -> None:
    """Let the two groups of warps that run `loop` start its products, from `first` to `last`, in turn."""
    specialized = next(op for op in ops_around(loop) if isinstance(op, ttg.WarpSpecializeOp))
    code = Emitter(loop.location)
    barriers = make_barriers(code, GROUPS, num_warps(loop) // GROUPS)
    code.insert_before(specialized)
    ((phase,),) = carry(frozenset({body_of(loop)}), body_of(specialized), 1, flip, loop.location).values()
    insert_before(first, ttng.TakeTurnOp.make(barriers, phase, first.location))
    insert_after(last, ttng.GiveTurnOp.make(barriers, last.location))


def flip(code: Emitter, phase: list[SSAValue]) -> list[SSAValue]:
    return [code.binary(arith.XOrIOp, phase[0], code.constant(1, i32))]
