"""How narrow a dot operand was when it came from memory.

    %a = tt.load %p : tensor<64x32x!tt.ptr<i8>, #blocked>
    %x = arith.sitofp %a : tensor<64x32xi8, #blocked> to tensor<64x32xf16, #blocked>       8 bits, not 16

A thread that holds 4 bytes of the narrow type holds 4 neighbours along K; the wide operand then keeps them together
(``kWidth = 4``), so that the conversion happens in registers and the layout can be moved in front of it.
"""

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.effects import is_elementwise
from tilework.ir.types import bit_width

VIEWS = frozenset({ttg.ConvertLayoutOp, tt.TransOp, tt.ReshapeOp, tt.JoinOp, tt.BroadcastOp, tt.ExpandDimsOp})
LOADS = frozenset({tt.LoadOp, tt.DescriptorLoadOp, tt.DescriptorGatherOp})


def loaded_bits(operand: SSAValue) -> int:
    """The bits of the narrowest element loaded for `operand`; a join of two halves counts for half a width."""
    bits, joined = bit_width(operand.type), False
    seen: set[Operation] = set()
    queue = [operand]
    while queue:
        value = queue.pop()
        op = value.owner
        if not isinstance(op, Operation) or op in seen:
            continue
        seen.add(op)
        kind = type(op)
        if kind in LOADS:
            bits = min(bits, bit_width(value.type))
        elif kind is ttg.Fp4ToFpOp:
            bits = min(bits, 4)
        elif kind in VIEWS or is_elementwise(op):
            joined = joined or kind is tt.JoinOp
            queue += op.operands
    return bits // 2 if joined else bits


def k_width(a: SSAValue, b: SSAValue) -> int:
    """How many neighbours along K a thread of `mma.sync` holds, for both operands."""
    return max(32 // min(loaded_bits(a), loaded_bits(b)), 1)
