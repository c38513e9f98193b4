"""Masks of memory accesses and predicates of waits and arrivals; barriers between accesses.

set_mask(load, narrowed(code, load, %go_on))      tt.load %p, %m   ==>   tt.load %p, (splat %go_on) & %m
"""

from collections.abc import Callable
from typing import Any, TypeVar

from xdsl.ir import Block, Operation, SSAValue

from tilework.ir import arith, tt, ttg, ttng
from tilework.ir.fields import SEGMENTS
from tilework.ir.llvm import GpuBarrierOp
from tilework.ir.scf import LOOPS
from tilework.ir.types import array_values, i1, i32_array, is_tensor, with_element
from tilework.transforms.building.emitter import Emitter

MASKS: dict[type[Operation], int] = {
    tt.LoadOp: 1,
    tt.StoreOp: 2,
    tt.AtomicRMWOp: 2,
    tt.AtomicCASOp: 3,
    tt.HistogramOp: 1,
    ttg.AsyncCopyGlobalToLocalOp: 2,
    ttng.ArriveBarrierOp: 1,
    ttng.WaitBarrierOp: 2,
}


def mask_of(op: Operation) -> SSAValue | None:
    """The mask or predicate of `op`, if it has one."""
    if (index := MASKS.get(type(op))) is None:
        return None
    sizes = op.properties.get(SEGMENTS)
    has_mask = len(op.operands) > index if sizes is None else array_values(sizes)[index] > 0
    return op.operands[index] if has_mask else None


def set_mask(op: Operation, mask: SSAValue) -> None:
    """Make `mask` the mask of `op`, replacing the one it has."""
    index, before = MASKS[type(op)], mask_of(op)
    op.operands = (*op.operands[:index], mask, *op.operands[index + (before is not None) :])
    if (sizes := op.properties.get(SEGMENTS)) is not None:
        counts = array_values(sizes)
        op.properties[SEGMENTS] = i32_array(*counts[:index], 1, *counts[index + 1 :])


def narrowed(code: Emitter, op: Operation, condition: SSAValue) -> SSAValue:
    """The mask of `op` where `condition`, one for all its elements, holds too."""
    if is_tensor(tile := op.operands[0].type):
        condition = code.append(tt.SplatOp.make(condition, with_element(tile, i1), code.loc))  # pyright: ignore
    return condition if (own := mask_of(op)) is None else code.binary(arith.AndIOp, condition, own)


# Barriers between accesses to memory that must not overtake each other.

Accesses = TypeVar("Accesses", bound=Any)  # they have `|`, `conflicts(later)` and `written`


def order(block: Block, before: Accesses, of: Callable[[Operation], Accesses], none: Accesses) -> Accesses:
    """Insert barriers into a block, and return the accesses since the last one at its end. `of` returns the accesses of
    an op and its regions."""
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
        inside = before | own if type(op) in LOOPS and own.written else before  # accesses of the iteration before
        for end in [order(inner, inside, of, none) for region in op.regions for inner in region.blocks]:
            before |= end
    return before
