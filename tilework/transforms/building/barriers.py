"""Barriers between accesses to memory that must not overtake each other."""

from collections.abc import Callable
from typing import Any, TypeVar

from xdsl.ir import Block, Operation

from tilework.ir.llvm import GpuBarrierOp
from tilework.ir.nesting import LOOPS

Accesses = TypeVar("Accesses", bound=Any)  # they have `|`, `conflicts(later)` and `written`


def order(block: Block, before: Accesses, of: Callable[[Operation], Accesses], none: Accesses) -> Accesses:
    """Put barriers into a block; what has been done at its end since the last one. `of` tells the accesses of an op and those in it."""
    for op in list(block.ops):
        if type(op) is GpuBarrierOp:
            before = none
            continue
        own = of(op)
        if own == none:
            continue
        if before.conflicts(own):
            block.insert_op_before(GpuBarrierOp.make(op.location), op)
            before = none
        if not op.regions:
            before |= own
            continue
        inside = before | own if type(op) in LOOPS and own.written else before  # what the iteration before has done
        for end in [order(inner, inside, of, none) for region in op.regions for inner in region.blocks]:
            before |= end
    return before
