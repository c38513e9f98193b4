"""Atomics of a whole tile that shared memory can combine, before each element that was hit is changed once.

    %at = tt.addptr (tt.splat %counts), (tt.load %p)    several elements may hit one address
    tt.atomic_rmw add, acq_rel, gpu, %at, %ones         the old value is not used

An element within `entries` of the splat pointer goes to a table in shared memory, any other one to global memory as
before; how many do so is only known at run time. Operations on integers can be done in any order and combined in
advance. After the tile each entry of the table that is not neutral is one atomic, neighbours by neighbouring lanes.
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

NEUTRAL: dict[RMWOp, int] = {  # 32-bit identity elements
    RMWOp.ADD: 0, RMWOp.OR: 0, RMWOp.XOR: 0, RMWOp.AND: -1,
    RMWOp.MAX: -(1 << 31), RMWOp.MIN: (1 << 31) - 1, RMWOp.UMAX: 0, RMWOp.UMIN: -1,
}  # fmt: skip
LEAST, MOST = 512, 2048  # elements of a tile that pay for two barriers, entries of the table
MOVES = (ttg.ConvertLayoutOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, tt.AddPtrOp)
DATA = (tt.LoadOp, tt.GatherOp, ttg.LocalLoadOp)
REACH = 64  # ops that are inspected


class Window(NamedTuple):
    """The global memory that a table caches."""

    base: SSAValue
    entries: int  # of 32 bits


def window(op: Operation) -> Window | None:
    """Return the window of an atomic that shared memory can combine, if it is one."""
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
    """Return the one pointer from which all pointers of a tile are derived."""
    while isinstance(pointers, OpResult) and type(pointers.op) in MOVES:
        pointers = pointers.op.operands[0]
    return pointers.op.operands[0] if isinstance(pointers, OpResult) and type(pointers.op) is tt.SplatOp else None


def depends_on_data(value: SSAValue) -> bool:
    """Return True if a value is computed from loaded data, a few ops away."""

    def makers(values: Iterable[SSAValue]) -> list[Operation]:
        return [value.op for value in values if isinstance(value, OpResult)]

    found = reached(makers([value]), lambda op: makers(op.operands))
    return any(type(op) in DATA for op in islice(found, REACH))
