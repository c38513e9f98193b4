"""`ttng` ops that copy blocks between global and shared memory by descriptor (TMA).

ttng.barrier_expect %bar, 8192, %true : ...
ttng.async_tma_copy_global_to_local %desc[%i, %j] %buffer, %bar, %true : DESC, BAR -> BUFFER     done at the barrier
ttng.async_tma_copy_local_to_global %desc[%i, %j] %buffer : DESC, BUFFER                       done at a store_wait
ttng.async_tma_store_wait {pendings = 0 : i32}
"""

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import CacheModifier, DescriptorReduceKind, EvictionPolicy
from tilework.ir.tt.constraints import DESCRIPTOR, I1, I32, I32_TENSOR
from tilework.ir.tt.descriptor_ops import block_type, kind_property, verify_rows
from tilework.ir.tt.forms import BareForm
from tilework.ir.tt.memory_ops import cache_properties, parse_cache_clauses, print_cache_clauses
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_bracketed,
    parse_keyword,
    parse_operands,
    parse_types,
    print_access,
    print_attr_dict,
    print_enum,
    print_operands,
    print_types,
    resolve_access,
)
from tilework.ir.ttg.memdesc_types import BARRIER, MEMDESC, MemDescType
from tilework.ir.ttg.shared_memory_ops import require_mutable
from tilework.ir.ttg.text import hidden_properties
from tilework.ir.ttng.barrier_ops import verify_barrier
from tilework.ir.ttng.warp_group_dot_ops import pendings_property
from tilework.ir.types import element_type, i1, int_attr, shape_of, tensor_type
from tilework.layouts.encodings import NvmmaShared

MAX_COORDINATES = 5


@cache
def tma_properties(cache: CacheModifier, evict: EvictionPolicy, is_volatile: bool) -> Attributes:
    return {**cache_properties(cache, evict), "isVolatile": int_attr(is_volatile, i1)}


TMA_DEFAULTS = tma_properties(CacheModifier.NONE, EvictionPolicy.NORMAL, False)


def verify_memory(op: IRDLOperation, memory: Attribute) -> None:
    """What a load writes is laid out by TMA's own swizzle; Triton asks nothing of the other copies."""
    if op.name == "ttng.async_tma_copy_global_to_local" and not isinstance(encoding_of(memory), NvmmaShared):
        raise VerifyException(f"TMA result must have NVMMA shared layout: {memory}")


def verify_block(op: IRDLOperation, descriptor: Attribute, coordinates: int, memory: Attribute) -> None:
    """A block of the descriptor, perhaps without leading dimensions of size 1, and a number for each dimension."""
    assert isinstance(memory, MemDescType)
    if not 1 <= coordinates <= MAX_COORDINATES:
        raise VerifyException(f"TMA copies must have between 1 and 5 coordinates, but got {coordinates}")
    verify_memory(op, memory)
    block, part = shape_of(block_type(descriptor)), memory.dims
    dropped = len(block) - len(part)
    if dropped < 0 or block[dropped:] != part or any(size != 1 for size in block[:dropped]):
        raise VerifyException(f"{op.name} on blocks of {block_type(descriptor)} does not fit {memory}")
    if element_type(block_type(descriptor)) != memory.element_type:
        raise VerifyException(f"{op.name} on blocks of {block_type(descriptor)} does not fit {memory}")


@irdl_op_definition
class AsyncTMACopyGlobalToLocalOp(IRDLOperation):
    """Start copying a block to shared memory; its bytes are counted by the barrier.

    ``ttng.async_tma_copy_global_to_local %d[%i, %j] %m, %b, %p cacheModifier = ca : DESC, BARRIER -> MEMORY``
    """

    name = "ttng.async_tma_copy_global_to_local"
    desc = operand_def(DESCRIPTOR)
    coord = var_operand_def(I32)
    barrier = operand_def(BARRIER)
    dst = operand_def(MEMDESC)
    pred = operand_def(I1)
    cache = prop_def(IntegerAttr, default_value=TMA_DEFAULTS["cache"])
    evict = prop_def(IntegerAttr, default_value=TMA_DEFAULTS["evict"])
    is_volatile = prop_def(IntegerAttr, default_value=TMA_DEFAULTS["isVolatile"], prop_name="isVolatile")
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(
        cls,
        desc: SSAValue,
        coord: Sequence[SSAValue],
        barrier: SSAValue,
        dst: SSAValue,
        pred: SSAValue,
        loc: LocationAttr,
        *,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
        is_volatile: bool = False,
    ) -> Self:
        properties = tma_properties(cache, evict, is_volatile)
        return create_op(cls, (desc, *coord, barrier, dst, pred), (), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        desc = parser.parse_unresolved_operand()
        coord = parse_bracketed(parser)
        dst, barrier, pred = parse_operands(parser)
        clauses = parse_cache_clauses(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        parser.parse_punctuation(":")
        descriptor_type, barrier_type = parse_types(parser)
        parser.parse_punctuation("->")
        memory_type = parser.parse_type()
        descriptor, places = resolve_access(parser, desc, descriptor_type, coord)
        rest = parser.resolve_operands((barrier, dst, pred), (barrier_type, memory_type, i1), parser.pos)
        return cls.create(
            operands=(descriptor, *places, *rest), properties={**clauses, **properties}, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        desc, *coord, barrier, dst, pred = self.operands
        print_access(printer, desc, coord)
        print_operands(printer, (dst, barrier, pred))
        print_cache_clauses(printer, self.properties)
        print_attr_dict(self, printer, hidden_properties(self, TMA_DEFAULTS, ("cache", "evict")))
        printer.print_string(" : ")
        print_types(printer, (desc.type, barrier.type))
        printer.print_string(" -> ")
        printer.print_attribute(dst.type)

    def verify_(self) -> None:
        verify_barrier(self.barrier.type)
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_block(self, self.desc.type, len(self.coord), self.dst.type)


class StoreForm(IRDLOperation):
    """A block goes out: ``ttng.async_tma_copy_local_to_global %d[%i, %j] %m : DESC, MEMORY``."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties = cls.parse_kind(parser)
        desc = parser.parse_unresolved_operand()
        coord = parse_bracketed(parser)
        src = parser.parse_unresolved_operand()
        given, attributes = parse_attr_dict(cls, parser)
        parser.parse_punctuation(":")
        descriptor_type, memory_type = parse_types(parser)
        descriptor, places = resolve_access(parser, desc, descriptor_type, coord)
        memory = parser.resolve_operand(src, memory_type)
        return cls.create(
            operands=(descriptor, *places, memory), properties={**given, **properties}, attributes=attributes
        )

    @classmethod
    def parse_kind(cls, parser: Parser) -> Attributes:
        """What comes before the descriptor."""
        return {}

    def print(self, printer: Printer) -> None:
        desc, *coord, src = self.operands
        print_access(printer, desc, coord)
        print_operands(printer, (src,))
        print_attr_dict(self, printer, ("kind",))
        printer.print_string(" : ")
        print_types(printer, (desc.type, src.type))


@irdl_op_definition
class AsyncTMACopyLocalToGlobalOp(StoreForm):
    """Start copying shared memory to a block: ``ttng.async_tma_copy_local_to_global %d[%i, %j] %m : DESC, MEMORY``."""

    name = "ttng.async_tma_copy_local_to_global"
    desc = operand_def(DESCRIPTOR)
    coord = var_operand_def(I32)
    src = operand_def(MEMDESC)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, desc: SSAValue, coord: Sequence[SSAValue], src: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (desc, *coord, src), (), loc)

    def verify_(self) -> None:
        verify_block(self, self.desc.type, len(self.coord), self.src.type)


@irdl_op_definition
class AsyncTMAReduceOp(StoreForm):
    """Start combining a block with shared memory: ``ttng.async_tma_reduce add, %d[%i, %j] %m : DESC, MEMORY``."""

    name = "ttng.async_tma_reduce"
    desc = operand_def(DESCRIPTOR)
    coord = var_operand_def(I32)
    src = operand_def(MEMDESC)
    kind = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(
        cls,
        kind: DescriptorReduceKind,
        desc: SSAValue,
        coord: Sequence[SSAValue],
        src: SSAValue,
        loc: LocationAttr,
    ) -> Self:
        return create_op(cls, (desc, *coord, src), (), loc, kind_property(kind))

    @classmethod
    def parse_kind(cls, parser: Parser) -> Attributes:
        kind = parse_keyword(parser, DescriptorReduceKind)
        parser.parse_punctuation(",")
        return {"kind": kind}

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_enum(printer, DescriptorReduceKind, self.properties["kind"])
        printer.print_string(",")
        StoreForm.print(self, printer)

    def verify_(self) -> None:
        verify_block(self, self.desc.type, len(self.coord), self.src.type)


def contents(memory: Attribute) -> Attribute:
    """The tensor that the memory holds."""
    assert isinstance(memory, MemDescType)
    return tensor_type(memory.dims, memory.element_type)


class RowsForm(IRDLOperation):
    """Rows by number: ``ttng.async_tma_gather %d[%x, %y] %m, %b, %p : DESC, X, i32, BARRIER, MEMORY, i1``.

    `WRITTEN` is the order in which the operands after the offsets are written; their types keep the order of the op.
    """

    WRITTEN: ClassVar[tuple[int, ...]] = ()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        first = [parser.parse_unresolved_operand(), *parse_bracketed(parser)]
        rest = parse_operands(parser)
        if len(rest) != len(cls.WRITTEN):
            parser.raise_error(f"{cls.name} takes {len(cls.WRITTEN)} operands after its offsets, not {len(rest)}")
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        parser.parse_punctuation(":")
        ordered = [rest[cls.WRITTEN.index(place)] for place in range(len(rest))]
        values = parser.resolve_operands([*first, *ordered], parse_types(parser), position)
        return cls.create(operands=values, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        desc, x_offsets, y_offset, *rest = self.operands
        print_access(printer, desc, (x_offsets, y_offset))
        print_operands(printer, [rest[place] for place in self.WRITTEN])
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        print_types(printer, [operand.type for operand in self.operands])


@irdl_op_definition
class AsyncTMAGatherOp(RowsForm):
    """Start copying rows to shared memory: ``ttng.async_tma_gather %d[%x, %y] %m, %b, %p : ...``."""

    name = "ttng.async_tma_gather"
    WRITTEN: ClassVar[tuple[int, ...]] = (1, 0, 2)
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    barrier = operand_def(BARRIER)
    dst = operand_def(MEMDESC)
    pred = operand_def(I1)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(
        cls,
        desc: SSAValue,
        x_offsets: SSAValue,
        y_offset: SSAValue,
        barrier: SSAValue,
        dst: SSAValue,
        pred: SSAValue,
        loc: LocationAttr,
    ) -> Self:
        return create_op(cls, (desc, x_offsets, y_offset, barrier, dst, pred), (), loc)

    def verify_(self) -> None:
        verify_barrier(self.barrier.type)
        require_mutable("cannot store into immutable memory", self.dst.type)
        verify_rows(self, self.desc.type, self.x_offsets.type, contents(self.dst.type))


@irdl_op_definition
class AsyncTMAScatterOp(RowsForm):
    """Start copying shared memory to rows: ``ttng.async_tma_scatter %d[%x, %y] %m : ...``."""

    name = "ttng.async_tma_scatter"
    WRITTEN: ClassVar[tuple[int, ...]] = (0,)
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    src = operand_def(MEMDESC)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, desc: SSAValue, x_offsets: SSAValue, y_offset: SSAValue, src: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (desc, x_offsets, y_offset, src), (), loc)

    def verify_(self) -> None:
        verify_rows(self, self.desc.type, self.x_offsets.type, contents(self.src.type))


@irdl_op_definition
class AsyncTMAStoreWaitOp(BareForm):
    """Wait until at most `pendings` copies to global memory still read: ``ttng.async_tma_store_wait {pendings = 0 : i32}``."""

    name = "ttng.async_tma_store_wait"
    pendings = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, pendings: int, loc: LocationAttr) -> Self:
        return create_op(cls, (), (), loc, pendings_property(pendings))
