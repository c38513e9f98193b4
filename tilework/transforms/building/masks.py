"""The operand that says where, or whether, an op does something: masks of accesses, predicates of waits and arrivals.

set_mask(load, narrowed(code, load, %go_on))      tt.load %p, %m   ==>   tt.load %p, (splat %go_on) & %m
"""

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.forms import SEGMENTS
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
    """The condition under which `op` does something, if it has one."""
    if (place := MASKS.get(type(op))) is None:
        return None
    sizes = op.properties.get(SEGMENTS)
    has_mask = len(op.operands) > place if sizes is None else array_values(sizes)[place] > 0
    return op.operands[place] if has_mask else None


def set_mask(op: Operation, mask: SSAValue) -> None:
    """Let `op` do something where `mask` holds, whatever it asked before."""
    place, before = MASKS[type(op)], mask_of(op)
    op.operands = (*op.operands[:place], mask, *op.operands[place + (before is not None) :])
    if (sizes := op.properties.get(SEGMENTS)) is not None:
        counts = array_values(sizes)
        op.properties[SEGMENTS] = i32_array(*counts[:place], 1, *counts[place + 1 :])


def narrowed(code: Emitter, op: Operation, condition: SSAValue) -> SSAValue:
    """The mask of `op` where `condition`, one for all its elements, holds too."""
    if is_tensor(tile := op.operands[0].type):
        condition = code.append(tt.SplatOp.make(condition, with_element(tile, i1), code.loc))  # pyright: ignore
    return condition if (own := mask_of(op)) is None else code.binary(arith.AndIOp, condition, own)
