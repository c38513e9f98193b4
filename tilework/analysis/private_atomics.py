"""Atomics of a whole tile that shared memory can collect, before each place that was hit is changed once.

    %at = tt.addptr (tt.splat %counts), (tt.load %p)      where depends on data: several elements may hit one place
    tt.atomic_rmw add, acq_rel, gpu, %at, %ones           what was there is not read

An element within `words` of the splat pointer goes to a table in shared memory, any other one to global memory as before; how
many do so is only known when the program runs. Operations on integers can be done in any order and combined in advance. Behind
the tile each place of the table that is not neutral is one atomic, neighbours by neighbouring lanes.
"""

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached
from tilework.ir import tt, ttg
from tilework.ir.encodings import layout_of
from tilework.ir.enums import RMWOp
from tilework.ir.types import element_type, is_tensor

NEUTRAL: dict[RMWOp, int] = {  # integers of 32 bits that change nothing
    RMWOp.ADD: 0, RMWOp.OR: 0, RMWOp.XOR: 0, RMWOp.AND: -1,
    RMWOp.MAX: -(1 << 31), RMWOp.MIN: (1 << 31) - 1, RMWOp.UMAX: 0, RMWOp.UMIN: -1,
}  # fmt: skip
LEAST, MOST = 512, 2048  # elements of a tile that pay for two barriers, words of shared memory
MOVES = (ttg.ConvertLayoutOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, tt.AddPtrOp)
DATA = (tt.LoadOp, tt.GatherOp, ttg.LocalLoadOp)
REACH = 64  # ops that are looked at


class Window(NamedTuple):
    """The global memory that a table stands for."""

    base: SSAValue
    words: int


def window(op: Operation) -> Window | None:
    """What to collect of an atomic, if anything."""
    if type(op) is not tt.AtomicRMWOp or op.results[0].first_use is not None:
        return None
    pointers, values = op.operands[:2]
    element = element_type(values.type)
    if not is_tensor(values.type) or not isinstance(element, IntegerType) or element.width.data != 32:
        return None
    layout = layout_of(values.type)
    elements, kind = 1 << layout.total_out_bits, RMWOp(op.atomic_rmw_op.value.data)
    if kind not in NEUTRAL or elements < LEAST or layout.in_size("block") > 1:
        return None
    base = splat_below(pointers)
    return Window(base, min(elements, MOST)) if base is not None and depends_on_data(pointers) else None


def splat_below(pointers: SSAValue) -> SSAValue | None:
    """The one pointer that all pointers of a tile are counted from."""
    while isinstance(pointers, OpResult) and type(pointers.op) in MOVES:
        pointers = pointers.op.operands[0]
    return pointers.op.operands[0] if isinstance(pointers, OpResult) and type(pointers.op) is tt.SplatOp else None


def depends_on_data(value: SSAValue) -> bool:
    """Whether a value is computed from what memory holds, a few ops away."""

    def makers(values: Iterable[SSAValue]) -> list[Operation]:
        return [value.op for value in values if isinstance(value, OpResult)]

    found = reached(makers([value]), lambda op: makers(op.operands))
    return any(type(op) in DATA for op in islice(found, REACH))
