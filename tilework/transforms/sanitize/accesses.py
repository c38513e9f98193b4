"""The accesses to memory that are checked, and what reports call them."""

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt

VERBS: dict[type[Operation], str] = {
    tt.LoadOp: "reads",
    tt.StoreOp: "writes",
    tt.AtomicRMWOp: "updates",
    tt.AtomicCASOp: "updates",
}
MASKS: dict[type[Operation], int] = {tt.LoadOp: 1, tt.StoreOp: 2, tt.AtomicRMWOp: 2}


def mask_of(access: Operation) -> SSAValue | None:
    """The condition under which an access happens."""
    position = MASKS.get(type(access))
    return access.operands[position] if position is not None and len(access.operands) > position else None
