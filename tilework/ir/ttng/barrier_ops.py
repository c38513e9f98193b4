"""`ttng` ops on mbarriers, fences and clusters.

A barrier is an i64 in shared memory. A phase of it ends when as many arrivals as it was made for, and all bytes it was
told to expect, have come:

    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.barrier_expect %b, 8192, %true : ...           an arrival, and 8192 bytes to come
    ttng.wait_barrier %b, %phase : ...                  until the phase with this parity has ended
"""

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import I1, I32
from tilework.ir.tt.forms import BareForm
from tilework.ir.tt.text_parts import (
    SEGMENTS,
    UNIT,
    Attributes,
    parse_attr_dict,
    parse_operands,
    parse_type,
    parse_types,
    print_attr_dict,
    print_operands,
    print_type,
)
from tilework.ir.ttg.memdesc_types import BARRIER, MEMDESC, MemDescType
from tilework.ir.ttg.text import OperandForm, parse_number, print_number
from tilework.ir.types import i1, i32, i32_array, int_attr


def verify_barrier(type: Attribute) -> None:
    """One barrier: ``1xi64``."""
    assert isinstance(type, MemDescType)
    if type.dims != (1,):
        raise VerifyException(f"barrier allocation must be a descriptor of 1xi64 type, but got {type}")


@cache
def count_property(count: int) -> Attributes:
    return {"count": int_attr(count, i32)}


class CountedForm(IRDLOperation):
    """A barrier, a number and perhaps a predicate: ``ttng.arrive_barrier %b, 2, %p : T``."""

    NUMBER: ClassVar[str] = "count"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        barrier = parser.parse_unresolved_operand()
        number = parse_number(parser)
        pred: UnresolvedOperand | None = None
        if parser.parse_optional_punctuation(","):
            pred = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        if pred is None and parser.parse_optional_punctuation(","):
            pred = parser.parse_unresolved_operand()
        operands = [parser.resolve_operand(barrier, parse_type(parser))]
        if pred is not None:
            operands.append(parser.resolve_operand(pred, i1))
        return cls.create(operands=operands, properties={**properties, cls.NUMBER: number}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        barrier, *pred = self.operands
        print_operands(printer, (barrier,))
        print_number(printer, self.properties[self.NUMBER])
        if pred:
            printer.print_string(",")
            print_operands(printer, pred)
        print_attr_dict(self, printer, (self.NUMBER,))
        print_type(printer, barrier.type)


@irdl_op_definition
class InitBarrierOp(CountedForm):
    """Make a barrier that waits for `count` arrivals: ``ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.init_barrier"
    alloc = operand_def(BARRIER)
    count = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, alloc: SSAValue, count: int, loc: LocationAttr) -> Self:
        return create_op(cls, (alloc,), (), loc, count_property(count))

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


@irdl_op_definition
class InvalBarrierOp(OperandForm):
    """The memory of the barrier may be used for something else: ``ttng.inval_barrier %b : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.inval_barrier"
    alloc = operand_def(BARRIER)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


@cache
def size_property(size: int) -> Attributes:
    return {"size": int_attr(size, i32)}


@irdl_op_definition
class BarrierExpectOp(CountedForm):
    """Arrive, and expect bytes of asynchronous copies: ``ttng.barrier_expect %b, 8192, %p : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.barrier_expect"
    NUMBER: ClassVar[str] = "size"
    alloc = operand_def(BARRIER)
    pred = operand_def(I1)
    size = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, alloc: SSAValue, size: int, pred: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (alloc, pred), (), loc, size_property(size))

    def print(self, printer: Printer) -> None:
        """Here the attributes come before the predicate."""
        barrier, pred = self.operands
        print_operands(printer, (barrier,))
        print_number(printer, self.properties["size"])
        print_attr_dict(self, printer, ("size",))
        printer.print_string(",")
        print_operands(printer, (pred,))
        print_type(printer, barrier.type)

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


@irdl_op_definition
class ArriveBarrierOp(CountedForm):
    """Arrive `count` times: ``ttng.arrive_barrier %b, 2, %p : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.arrive_barrier"
    alloc = operand_def(BARRIER)
    pred = opt_operand_def(I1)
    count = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, alloc: SSAValue, count: int, loc: LocationAttr, pred: SSAValue | None = None) -> Self:
        return create_op(cls, (alloc,) if pred is None else (alloc, pred), (), loc, count_property(count))

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)
        if (count := self.count.value.data) < 1:
            raise VerifyException(f"count must be greater than or equal to 1, but got {count}")


@irdl_op_definition
class WaitBarrierOp(IRDLOperation):
    """Wait for a phase to end: ``ttng.wait_barrier %b, %phase, %p deps %m : !ttg.memdesc<1xi64, ...>, T``.

    `deps` is the memory that the barrier stands for: it is in use until here.
    """

    name = "ttng.wait_barrier"
    alloc = operand_def(BARRIER)
    phase = operand_def(I32)
    pred = opt_operand_def(I1)
    deps = var_operand_def(MEMDESC)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(
        cls,
        alloc: SSAValue,
        phase: SSAValue,
        loc: LocationAttr,
        pred: SSAValue | None = None,
        deps: Sequence[SSAValue] = (),
    ) -> Self:
        given = () if pred is None else (pred,)
        segments = {SEGMENTS: i32_array(1, 1, len(given), len(deps))}
        return create_op(cls, (alloc, phase, *given, *deps), (), loc, segments)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        alloc, phase, *pred = parse_operands(parser)
        deps = parse_operands(parser) if parser.parse_optional_keyword("deps") else []
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        parser.parse_punctuation(":")
        barrier, *types = parse_types(parser)
        operands = [parser.resolve_operand(alloc, barrier), parser.resolve_operand(phase, i32)]
        operands += [parser.resolve_operand(value, i1) for value in pred]
        operands += parser.resolve_operands(deps, types, position)
        segments = {SEGMENTS: i32_array(1, 1, len(pred), len(deps))}
        return cls.create(operands=operands, properties={**properties, **segments}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        deps = self.deps
        print_operands(printer, self.operands[: len(self.operands) - len(deps)])
        if deps:
            printer.print_string(" deps")
            print_operands(printer, deps)
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        printer.print_list([self.alloc.type, *(value.type for value in deps)], printer.print_attribute)

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


@cache
def increment_property(no_increment: bool) -> Attributes:
    return {"noIncrement": UNIT} if no_increment else {}


@irdl_op_definition
class AsyncCopyMbarrierArriveOp(OperandForm):
    """Arrive when the copies of this thread are done: ``ttng.async_copy_mbarrier_arrive %b {noIncrement} : T``."""

    name = "ttng.async_copy_mbarrier_arrive"
    barrier = operand_def(BARRIER)
    no_increment = opt_prop_def(UnitAttr, prop_name="noIncrement")
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, operand: SSAValue, loc: LocationAttr, no_increment: bool = False) -> Self:
        return create_op(cls, (operand,), (), loc, increment_property(no_increment))

    def verify_(self) -> None:
        verify_barrier(self.barrier.type)


@cache
def flag_property(name: str, value: bool) -> Attributes:
    return {name: int_attr(value, i1)}


@irdl_op_definition
class FenceAsyncSharedOp(BareForm):
    """Writes of threads are seen by TMA and tensor cores: ``ttng.fence_async_shared {bCluster = false}``."""

    name = "ttng.fence_async_shared"
    b_cluster = prop_def(IntegerAttr, prop_name="bCluster")
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, loc: LocationAttr, b_cluster: bool = False) -> Self:
        return create_op(cls, (), (), loc, flag_property("bCluster", b_cluster))


@irdl_op_definition
class ClusterArriveOp(BareForm):
    """This thread has come to the barrier of the cluster: ``ttng.cluster_arrive {relaxed = false}``."""

    name = "ttng.cluster_arrive"
    relaxed = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, loc: LocationAttr, relaxed: bool = False) -> Self:
        return create_op(cls, (), (), loc, flag_property("relaxed", relaxed))


@irdl_op_definition
class ClusterWaitOp(BareForm):
    """Wait until all threads of the cluster have arrived: ``ttng.cluster_wait``."""

    name = "ttng.cluster_wait"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
