"""`tt` ops that read and change memory in one step."""

from collections.abc import Collection
from functools import cache
from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.enums import (
    MemSemantic,
    MemSyncScope,
    RMWOp,
)
from tilework.ir.tt.constraints import ANY, BOOL_LIKE, PTR_LIKE, SameEncoding, TensorSize, enum_property
from tilework.ir.tt.forms import SignatureForm
from tilework.ir.tt.memory_ops import loaded_type, verify_mask
from tilework.ir.tt.text_parts import Attributes, parse_keyword, parse_operands, print_enum, print_operands
from tilework.ir.types import (
    GLOBAL_ADDRESS_SPACE,
    PointerType,
    element_type,
    i32,
    int_attr,
)


class AtomicForm(SignatureForm):
    """The form of an atomic, with its ordering first: ``%old = tt.name sem, scope, %p, %v : (P, T) -> T``."""

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[Attributes, list[UnresolvedOperand]]:
        sem = parse_keyword(parser, MemSemantic)
        parser.parse_punctuation(",")
        scope = parse_keyword(parser, MemSyncScope)
        parser.parse_punctuation(",")
        return {"sem": sem, "scope": scope}, parse_operands(parser)

    def print_head(self, printer: Printer) -> Collection[str]:
        printer.print_string(" ")
        print_enum(printer, MemSemantic, self.properties["sem"])
        printer.print_string(", ")
        print_enum(printer, MemSyncScope, self.properties["scope"])
        printer.print_string(",")
        print_operands(printer, self.operands)
        return ("sem", "scope")


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


@cache
def rmw_properties(rmw: RMWOp, sem: MemSemantic, scope: MemSyncScope) -> Attributes:
    return {"atomic_rmw_op": int_attr(rmw, i32), **cas_properties(sem, scope)}


@cache
def cas_properties(sem: MemSemantic, scope: MemSyncScope) -> Attributes:
    return {"sem": int_attr(sem, i32), "scope": int_attr(scope, i32)}


@irdl_op_definition
class AtomicRMWOp(AtomicForm):
    """Change memory and give its old value.

    ``%old = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %mask : (!tt.ptr<f32>, f32, i1) -> f32``
    """

    name = "tt.atomic_rmw"
    ptr = operand_def(PTR_LIKE)
    val = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    result = result_def(ANY)
    atomic_rmw_op = prop_def(enum_property(RMWOp))
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), SameEncoding(), TensorSize())

    @classmethod
    def make(
        cls,
        rmw: RMWOp,
        ptr: SSAValue,
        value: SSAValue,
        mask: SSAValue | None,
        sem: MemSemantic,
        scope: MemSyncScope,
        loc: LocationAttr,
    ) -> Self:
        operands = (ptr, value) if mask is None else (ptr, value, mask)
        properties = rmw_properties(rmw, sem, scope)
        return create_op(cls, operands, (value.type,), loc, properties)

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[Attributes, list[UnresolvedOperand]]:
        rmw = parse_keyword(parser, RMWOp)
        parser.parse_punctuation(",")
        order, operands = AtomicForm.parse_head(parser)
        return {"atomic_rmw_op": rmw, **order}, operands

    def print_head(self, printer: Printer) -> Collection[str]:
        printer.print_string(" ")
        print_enum(printer, RMWOp, self.properties["atomic_rmw_op"])
        printer.print_string(",")
        return ("atomic_rmw_op", *AtomicForm.print_head(self, printer))

    def verify_(self) -> None:
        verify_atomic(self, self.ptr.type, self.val.type, self.result.type)
        verify_mask(self, self.mask, self.val.type)


@irdl_op_definition
class AtomicCASOp(AtomicForm):
    """Replace memory by `val` where it equals `cmp`, and give its old value.

    ``%old = tt.atomic_cas acq_rel, gpu, %p, %cmp, %v : (!tt.ptr<i32>, i32, i32) -> i32``
    """

    name = "tt.atomic_cas"
    ptr = operand_def(PTR_LIKE)
    cmp = operand_def(ANY)
    val = operand_def(ANY)
    result = result_def(ANY)
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), SameEncoding(), TensorSize())

    @classmethod
    def make(
        cls,
        ptr: SSAValue,
        cmp: SSAValue,
        value: SSAValue,
        sem: MemSemantic,
        scope: MemSyncScope,
        loc: LocationAttr,
    ) -> Self:
        properties = cas_properties(sem, scope)
        return create_op(cls, (ptr, cmp, value), (value.type,), loc, properties)

    def verify_(self) -> None:
        verify_atomic(self, self.ptr.type, self.val.type, self.result.type)
        if self.cmp.type != self.val.type:
            raise VerifyException(f"tt.atomic_cas cannot compare {self.val.type} with {self.cmp.type}")
