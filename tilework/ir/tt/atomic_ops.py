"""`tt` ops that read and change memory in one step."""

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import ANY, BOOL_LIKE, PTR_LIKE, SameEncoding, TensorSize, enum_property
from tilework.ir.declare import Op
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.ir.tt.memory_ops import loaded_type, verify_mask
from tilework.ir.types import GLOBAL_ADDRESS_SPACE, PointerType, element_type


def verify_atomic(op: IRDLOperation, ptr: Attribute, value: Attribute, result: Attribute) -> None:
    """Pointer, value and result of an atomic agree; the memory is global."""
    element = element_type(ptr)
    assert isinstance(element, PointerType), element
    if (space := element.address_space.value.data) != GLOBAL_ADDRESS_SPACE:
        raise VerifyException(f"{op.name} needs pointers of address space {GLOBAL_ADDRESS_SPACE}, not {space}")
    if loaded_type(ptr) != value or result != value:
        operand = "cmp" if op.name == AtomicCASOp.name else "value"
        detail = f"{op.name} on {ptr} takes and gives {loaded_type(ptr)}, not {value} and {result}"
        raise VerifyException(f"failed to verify that ptr type matches {operand} type: {detail}")


class AtomicRMWOp(Op):
    """Change memory and give its old value.

    ``%old = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %mask : (!tt.ptr<f32>, f32, i1) -> f32``
    """

    name = "tt.atomic_rmw"
    atomic_rmw_op = prop_def(enum_property(RMWOp))
    ptr = operand_def(PTR_LIKE)
    val = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    result = result_def(ANY)
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    form = "$atomic_rmw_op, $sem, $scope, $operands {} : signature"
    infer = {"result": "val"}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        verify_atomic(self, self.ptr.type, self.val.type, self.result.type)
        verify_mask(self, self.mask, self.val.type)


ORDERED = "tilework.ordered"


def mark_ordered(op: Operation) -> None:
    """Let programs take turns at an atomic, and its elements come in their order."""
    op.attributes[ORDERED] = UnitAttr()


def is_ordered(op: Operation) -> bool:
    return ORDERED in op.attributes


class TakeTurnOp(Op):
    """Wait until all programs before this one (x fastest) have passed their turn on: ``tt.take_turn``."""

    name = "tt.take_turn"
    form = "{}"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


class PassTurnOp(Op):
    """Let the next program have its turn, behind all that this one has done so far: ``tt.pass_turn``."""

    name = "tt.pass_turn"
    form = "{}"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


class AtomicCASOp(Op):
    """Replace memory by `val` where it equals `cmp`, and give its old value.

    ``%old = tt.atomic_cas acq_rel, gpu, %p, %cmp, %v : (!tt.ptr<i32>, i32, i32) -> i32``

    A mask, which padded tiles have, leaves elements out.
    """

    name = "tt.atomic_cas"
    ptr = operand_def(PTR_LIKE)
    cmp = operand_def(ANY)
    val = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    result = result_def(ANY)
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    form = "$sem, $scope, $operands {} : signature"
    infer = {"result": "val"}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        verify_atomic(self, self.ptr.type, self.val.type, self.result.type)
        if self.cmp.type != self.val.type:
            raise VerifyException(f"tt.atomic_cas cannot compare {self.val.type} with {self.cmp.type}")
        verify_mask(self, self.mask, self.val.type)
