"""What the first warp of a region of `ttg.warp_specialize`, or of a loop, does alone.

    ttng.tensormap_create ...                all warps
    scf.for ... {                            the first one: the copies and the barriers that count them are one thread's work,
      ttng.wait_barrier %empty[%i]           and a warp that came late to a wait might find the phase after the next
      ttng.barrier_expect %full[%i]          being counted, which looks like the one it waits for
      ttng.async_tma_copy_global_to_local
    }

A run is a number of neighbours in the block of a region which only wait, arm barriers, start copies by TMA and compute
scalars for that, and of which nothing is used elsewhere. In loops that all warps run nobody waits alone: a branch leads the
others around some fifty instructions, which is 2 to 4 % of attention.
"""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tilework.analysis.allocation import async_regions
from tilework.ir import ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.functions import ops_in_order
from tilework.ir.types import is_tensor

BY_ONE_THREAD = frozenset({ttng.BarrierExpectOp, ttng.AsyncTMACopyGlobalToLocalOp})
ALONE = BY_ONE_THREAD | {ttng.WaitBarrierOp}
EARLY = 3  # buffers of a ring


@dataclass
class FirstWarp:
    """The runs by their first ops, and all ops in them."""

    runs: dict[Operation, Sequence[Operation]] = field(default_factory=dict)
    inside: set[Operation] = field(default_factory=set)

    def leave(self, concerns: Callable[[Operation], bool]) -> None:
        """Let all warps do runs of ordinary loops with an op that concerns all; a barrier in front of a run stays there."""
        for first, run in [*self.runs.items()]:
            if any(concerns(inner) for op in run for inner in op.walk()) and not async_regions(first):
                self.inside -= {inner for op in self.runs.pop(first) for inner in op.walk()}


def first_warp(module: ModuleOp) -> FirstWarp:
    """The runs of a module."""
    found = FirstWarp()
    for op in ops_in_order(*module.regions):
        if type(op) is ttg.WarpSpecializeOp:
            for region in (op.default_region, *op.partitions):
                for block in region.blocks:
                    add_runs(block, found, ALONE)
        elif type(op) is scf.ForOp and op not in found.inside and is_early(op.body.block):
            add_runs(op.body.block, found, BY_ONE_THREAD)
    return found


def is_early(block: Block) -> bool:
    """Whether copies are for an iteration behind the next: then they may start a little later."""
    from tilework.analysis.cost import COPIES, ring_size  # lazily: only loops have early copies

    return min((ring_size(op) or 0 for op in block.ops if type(op) in COPIES), default=0) >= EARLY


def add_runs(block: Block, found: FirstWarp, kinds: Set[type[Operation]]) -> None:
    run: list[Operation] = []
    for op in block.ops:
        if op is not block.last_op and is_alone(op, kinds) and (run or not is_scalar(op)):
            run.append(op)
        elif run:
            close(run, found)
            run = []


def close(run: list[Operation], found: FirstWarp) -> None:
    """Keep a run up to its last op with effects, if no value leaves it."""
    while is_scalar(run[-1]):
        run.pop()
    ops = {inner for op in run for inner in op.walk()}
    if BY_ONE_THREAD.isdisjoint(type(op) for op in ops):
        return
    if all(use.operation in ops for op in run for result in op.results for use in result.uses):
        found.runs[run[0]] = run
        found.inside |= ops


def is_scalar(op: Operation) -> bool:
    """An op without effects and without tensors, that all warps may do."""
    return not op.regions and is_pure(op) and not any(is_tensor(result.type) for result in op.results)


def is_alone(op: Operation, kinds: Set[type[Operation]]) -> bool:
    if type(op) in (scf.ForOp, scf.IfOp):
        return all(is_alone(inner, kinds) for region in op.regions for block in region.blocks for inner in block.ops)
    return type(op) in kinds or is_scalar(op)
