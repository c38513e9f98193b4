"""`ttg` ops that make, read and write shared memory, and scratch memory in global memory."""

from functools import cache
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.encodings import encoding_of
from tilework.ir.tt.constraints import POINTER, TENSOR, TensorSize
from tilework.ir.tt.forms import BareForm, SignatureForm
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_conversion_type,
    parse_type,
    print_attr_dict,
    print_conversion_type,
    print_operands,
    print_type,
)
from tilework.ir.ttg.memdesc_types import MEMDESC, TOKEN, MemDescType, async_token, listed
from tilework.ir.ttg.text import OperandForm, parse_optional_word, print_optional_word
from tilework.ir.types import element_type, i8, i32, int_attr, pointer_type, shape_of


def verify_copy(source: Attribute, target: Attribute) -> None:
    """A tensor and memory, one copied to the other: the same shape and elements, and a rank that the encoding has."""
    memory = source if isinstance(source, MemDescType) else target
    assert isinstance(memory, MemDescType)
    before, after = shape_of(source), shape_of(target)
    if before != after:
        raise VerifyException(f"source shape [{listed(before)}] must match [destination shape {listed(after)}]")
    tensor = target if memory is source else source
    if (element := element_type(tensor)) != memory.element_type:
        pair = (memory.element_type, element) if memory is source else (element, memory.element_type)
        raise VerifyException(f"source element type '{pair[0]}' must match destination element type '{pair[1]}'")
    encoding = encoding_of(memory)
    if encoding is not None and encoding.rank != len(before):
        raise VerifyException(f"source has rank {len(before)} but memdesc encoding has rank {encoding.rank}")


@cache
def alignment_property(alignment: int | None) -> Attributes:
    return {} if alignment is None else {"alignment": int_attr(alignment, i32)}


@irdl_op_definition
class LocalAllocOp(SignatureForm):
    """Shared memory, perhaps filled with a tensor: ``%m = ttg.local_alloc %x : (T) -> !ttg.memdesc<...>``.

    Memory that is filled here and not mutable has the value of the tensor: the op is then as good as pure.
    """

    name = "ttg.local_alloc"
    src = opt_operand_def(TENSOR)
    alignment = opt_prop_def(IntegerAttr)
    result = result_def(MEMDESC)
    traits = traits_def(MemoryAllocEffect(), MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue | None, type: Attribute, loc: LocationAttr, alignment: int | None = None) -> Self:
        return create_op(cls, () if src is None else (src,), (type,), loc, alignment_property(alignment))

    def verify_(self) -> None:
        type = self.result.type
        assert isinstance(type, MemDescType)
        if type.dims != type.alloc_dims:
            raise VerifyException(f"result shape and its alloc shape must match: {type}")
        if self.src is not None:
            verify_copy(self.src.type, type)
        elif not type.is_mutable:
            raise VerifyException(f"uninitialized alloc must have a mutable memdesc type, but got {type}")


@irdl_op_definition
class LocalDeallocOp(OperandForm):
    """The memory is not used any more: ``ttg.local_dealloc %m : !ttg.memdesc<...>``."""

    name = "ttg.local_dealloc"
    src = operand_def(MEMDESC)
    traits = traits_def(MemoryFreeEffect())


@irdl_op_definition
class LocalLoadOp(IRDLOperation):
    """Read shared memory: ``%x = ttg.local_load %m token %t : !ttg.memdesc<...> -> tensor<...>``.

    The token, if there is one, is that of a wait for the copies that wrote the memory.
    """

    name = "ttg.local_load"
    src = operand_def(MEMDESC)
    token = opt_operand_def(TOKEN)
    result = result_def(TENSOR)
    traits = traits_def(MemoryReadEffect(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, type: Attribute, loc: LocationAttr, token: SSAValue | None = None) -> Self:
        return create_op(cls, (src,) if token is None else (src, token), (type,), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        src = parser.parse_unresolved_operand()
        token = parse_optional_word(parser, "token")
        properties, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        operands = [parser.resolve_operand(src, source)]
        if token is not None:
            operands.append(parser.resolve_operand(token, async_token))
        return cls.create(operands=operands, result_types=(result,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        src, *token = self.operands
        print_operands(printer, (src,))
        print_optional_word(printer, "token", token[0] if token else None)
        print_attr_dict(self, printer)
        print_conversion_type(printer, src.type, self.results[0].type)

    def verify_(self) -> None:
        verify_copy(self.src.type, self.result.type)


@irdl_op_definition
class LocalStoreOp(IRDLOperation):
    """Write shared memory: ``ttg.local_store %x, %m : tensor<...> -> !ttg.memdesc<..., mutable>``."""

    name = "ttg.local_store"
    src = operand_def(TENSOR)
    dst = operand_def(MEMDESC)
    traits = traits_def(MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, dst: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (src, dst), (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        src = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        dst = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        source, target = parse_conversion_type(parser)
        operands = (parser.resolve_operand(src, source), parser.resolve_operand(dst, target))
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        src, dst = self.operands
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        print_conversion_type(printer, src.type, dst.type)

    def verify_(self) -> None:
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_copy(self.src.type, self.dst.type)


def require_mutable(message: str, type: Attribute) -> None:
    """Refuse to write memory that is not ``mutable``."""
    assert isinstance(type, MemDescType)
    if not type.is_mutable:
        raise VerifyException(f"{message}: {type}")


@irdl_op_definition
class LocalBarrierOp(BareForm):
    """All threads of the block wait for each other's accesses to shared memory: ``ttg.local_barrier``."""

    name = "ttg.local_barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@cache
def scratch_properties(nbytes: int, alignment: int) -> Attributes:
    return {"nbytes": int_attr(nbytes, i32), "alignment": int_attr(alignment, i32)}


@irdl_op_definition
class GlobalScratchAllocOp(IRDLOperation):
    """Global memory of this program: ``%p = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 128 : i32} : T``."""

    name = "ttg.global_scratch_alloc"
    nbytes = prop_def(IntegerAttr)
    alignment = prop_def(IntegerAttr)
    result = result_def(POINTER)
    traits = traits_def(MemoryAllocEffect())

    @classmethod
    def make(cls, nbytes: int, alignment: int, loc: LocationAttr) -> Self:
        return create_op(cls, (), (pointer_type(i8),), loc, scratch_properties(nbytes, alignment))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties, attributes = parse_attr_dict(cls, parser)
        return cls.create(result_types=(parse_type(parser),), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attr_dict(self, printer)
        print_type(printer, self.results[0].type)
