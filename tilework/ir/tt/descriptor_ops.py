"""`tt` ops on tensor descriptors: a global array read and written in blocks, bounds checked by the hardware."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import IntegerType, LocationAttr, Signedness
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.enums import CacheModifier, DescriptorReduceKind, EvictionPolicy, PaddingOption
from tilework.ir.tt.constraints import DESCRIPTOR, I32, I32_TENSOR, I64, POINTER, TENSOR, TensorSize, enum_property
from tilework.ir.tt.forms import PickForm
from tilework.ir.tt.memory_ops import LOAD_DEFAULTS, cache_properties, parse_cache_clauses, print_cache_clauses
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_bracketed,
    parse_conversion_type,
    parse_descriptor,
    parse_keyword,
    parse_pointer,
    parse_types,
    print_access,
    print_attr_dict,
    print_bracketed,
    print_conversion_type,
    print_enum,
    print_operands,
    print_types,
    print_unprefixed,
    resolve_access,
)
from tilework.ir.types import (
    PointerType,
    TensorDescType,
    bit_width,
    element_type,
    i32,
    i64,
    int_attr,
    integer_type,
    shape_of,
    tensordesc_type,
    with_element,
)


@cache
def signless(type: Attribute) -> Attribute:
    """`type` with ``ui8`` and ``si8`` read as ``i8``: what every op but a descriptor sees."""
    element = element_type(type)
    if isinstance(element, IntegerType) and element.signedness.data != Signedness.SIGNLESS:
        return with_element(type, integer_type(element.width.data))
    return type


@cache
def block_type(descriptor: Attribute) -> Attribute:
    """The signless type of one block of a descriptor."""
    assert isinstance(descriptor, TensorDescType), descriptor
    return signless(descriptor.block)


@cache
def padding_property(padding: PaddingOption) -> Attributes:
    return {"padding": int_attr(padding, i32)}


@irdl_op_definition
class MakeTensorDescOp(IRDLOperation):
    """Describe a global array by its base, sizes and strides.

    ``%d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>``
    """

    name = "tt.make_tensor_descriptor"
    base = operand_def(POINTER)
    shape = var_operand_def(I32)
    strides = var_operand_def(I64)
    padding = prop_def(enum_property(PaddingOption), default_value=int_attr(PaddingOption.ZERO, i32))
    result = result_def(DESCRIPTOR)
    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(
        cls,
        base: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        block_type: Attribute,
        padding: PaddingOption,
        loc: LocationAttr,
    ) -> Self:
        return create_op(cls, (base, *shape, *strides), (tensordesc_type(block_type),), loc, padding_property(padding))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        base = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        shape = parse_bracketed(parser)
        parser.parse_punctuation(",")
        strides = parse_bracketed(parser)
        if len(shape) != len(strides):
            parser.raise_error("tt.make_tensor_descriptor needs as many sizes as strides")
        properties, attributes = parse_attr_dict(cls, parser)
        parser.parse_punctuation(":")
        pointer = parse_pointer(parser)
        parser.parse_punctuation(",")
        result = parse_descriptor(parser)
        operands = [parser.resolve_operand(base, pointer)]
        operands += [parser.resolve_operand(size, i32) for size in shape]
        operands += [parser.resolve_operand(stride, i64) for stride in strides]
        return cls.create(
            operands=operands,
            result_types=(result,),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        base, *rest = self.operands
        rank = len(rest) // 2
        print_operands(printer, (base,))
        for group in (rest[:rank], rest[rank:]):
            printer.print_string(", ")
            print_bracketed(printer, group)
        default = self.properties.get("padding") == int_attr(PaddingOption.ZERO, i32)
        print_attr_dict(self, printer, ("padding",) if default else ())
        printer.print_string(" : ")
        print_unprefixed(printer, base.type)
        printer.print_string(", ")
        print_unprefixed(printer, self.results[0].type)

    def verify_(self) -> None:
        base, block = self.base.type, block_type(self.result.type)
        assert isinstance(base, PointerType)
        if signless(base.pointee) != element_type(block):
            raise VerifyException(f"tt.make_tensor_descriptor from {base} cannot give {self.result.type}")
        if len(self.shape) != (rank := len(shape_of(block))):
            raise VerifyException(f"tt.make_tensor_descriptor of rank {rank} has {len(self.shape)} sizes")


def verify_access(op: IRDLOperation, descriptor: Attribute, value: Attribute, indices: Sequence[SSAValue]) -> None:
    """`value` is a block of the descriptor, perhaps without leading dimensions of size 1."""
    block = block_type(descriptor)
    if len(indices) != len(shape_of(block)):
        raise VerifyException(f"{op.name} needs {len(shape_of(block))} indices for {descriptor}, got {len(indices)}")
    whole, part = shape_of(block), shape_of(value)
    dropped = len(whole) - len(part)
    fits = dropped >= 0 and whole[dropped:] == part and all(size == 1 for size in whole[:dropped])
    if not fits or element_type(block) != element_type(value):
        raise VerifyException(f"tensor descriptor block and tensor types must match: {block}, {value}")


# From the operand, the type written for it and the type of the block: the type of a descriptor.
DescriptorTyping = Callable[[Parser, UnresolvedOperand, Attribute, Attribute], Attribute]


def written_type(parser: Parser, operand: UnresolvedOperand, written: Attribute, block: Attribute) -> Attribute:
    return written


@irdl_op_definition
class DescriptorLoadOp(IRDLOperation):
    """Read a block: ``%v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>``."""

    name = "tt.descriptor_load"
    desc = operand_def(DESCRIPTOR)
    indices = var_operand_def(I32)
    cache = prop_def(enum_property(CacheModifier), default_value=LOAD_DEFAULTS["cache"])
    evict = prop_def(enum_property(EvictionPolicy), default_value=LOAD_DEFAULTS["evict"])
    result = result_def(TENSOR)
    traits = traits_def(MemoryReadEffect(), TensorSize())

    @classmethod
    def make(
        cls,
        desc: SSAValue,
        indices: Sequence[SSAValue],
        loc: LocationAttr,
        *,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
        type: Attribute | None = None,
    ) -> Self:
        return create_op(
            cls,
            (desc, *indices),
            (block_type(desc.type) if type is None else type,),
            loc,
            cache_properties(cache, evict),
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.parse_as(parser, written_type)

    @classmethod
    def parse_as(cls, parser: Parser, typed: DescriptorTyping) -> Self:
        """The op, its descriptor of the type that `typed` chooses."""
        desc = parser.parse_unresolved_operand()
        indices = parse_bracketed(parser)
        clauses = parse_cache_clauses(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        descriptor, places = resolve_access(parser, desc, typed(parser, desc, source, result), indices)
        return cls.create(
            operands=(descriptor, *places),
            result_types=(result,),
            properties={**clauses, **properties},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_access(printer, self.operands[0], self.operands[1:])
        print_cache_clauses(printer, self.properties)
        print_attr_dict(self, printer, ("cache", "evict"))
        print_conversion_type(printer, self.operands[0].type, self.results[0].type)

    def verify_(self) -> None:
        verify_access(self, self.desc.type, self.result.type, self.indices)


@irdl_op_definition
class DescriptorStoreOp(IRDLOperation):
    """Write a block: ``tt.descriptor_store %d[%i, %j], %v : !tt.tensordesc<tensor<8x8xf16>>, tensor<8x8xf16>``."""

    name = "tt.descriptor_store"
    desc = operand_def(DESCRIPTOR)
    src = operand_def(TENSOR)
    indices = var_operand_def(I32)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(cls, desc: SSAValue, src: SSAValue, indices: Sequence[SSAValue], loc: LocationAttr) -> Self:
        return create_op(cls, (desc, src, *indices), (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return cls.parse_as(parser, written_type)

    @classmethod
    def parse_as(cls, parser: Parser, typed: DescriptorTyping) -> Self:
        """The op, its descriptor of the type that `typed` chooses."""
        desc = parser.parse_unresolved_operand()
        indices = parse_bracketed(parser)
        parser.parse_punctuation(",")
        src = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        parser.parse_punctuation(":")
        written = parser.parse_type()
        parser.parse_punctuation(",")
        source_type = parser.parse_type()
        descriptor, places = resolve_access(parser, desc, typed(parser, desc, written, source_type), indices)
        source = parser.resolve_operand(src, source_type)
        return cls.create(operands=(descriptor, source, *places), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        desc, src, *indices = self.operands
        print_access(printer, desc, indices)
        printer.print_string(",")
        print_operands(printer, (src,))
        print_attr_dict(self, printer, ("kind",))
        printer.print_string(" : ")
        print_types(printer, (desc.type, src.type))

    def verify_(self) -> None:
        verify_access(self, self.desc.type, self.src.type, self.indices)


@cache
def kind_property(kind: DescriptorReduceKind) -> Attributes:
    return {"kind": int_attr(kind, i32)}


@irdl_op_definition
class DescriptorReduceOp(IRDLOperation):
    """Combine a block with memory atomically: ``tt.descriptor_reduce add, %d[%i, %j], %v : ...``."""

    name = "tt.descriptor_reduce"
    desc = operand_def(DESCRIPTOR)
    src = operand_def(TENSOR)
    indices = var_operand_def(I32)
    kind = prop_def(enum_property(DescriptorReduceKind))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(
        cls,
        kind: DescriptorReduceKind,
        desc: SSAValue,
        src: SSAValue,
        indices: Sequence[SSAValue],
        loc: LocationAttr,
    ) -> Self:
        return create_op(cls, (desc, src, *indices), (), loc, kind_property(kind))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        kind = parse_keyword(parser, DescriptorReduceKind)
        parser.parse_punctuation(",")
        store = DescriptorStoreOp.parse(parser)
        op = cls.create(operands=tuple(store.operands), properties={"kind": kind}, attributes=store.attributes)
        store.drop_all_references()
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_enum(printer, DescriptorReduceKind, self.properties["kind"])
        printer.print_string(",")
        DescriptorStoreOp.print(self, printer)  # pyright: ignore[reportArgumentType]

    def verify_(self) -> None:
        verify_access(self, self.desc.type, self.src.type, self.indices)


def verify_rows(op: IRDLOperation, descriptor: Attribute, x_offsets: Attribute, rows: Attribute) -> None:
    """Rows of a two-dimensional array, one per offset: the limits of the hardware's gather and scatter."""
    block = block_type(descriptor)
    width, offsets = shape_of(block), shape_of(x_offsets)
    if len(width) != 2 or width[0] != 1:
        raise VerifyException(f"block must have exactly 1 row, but got '{block}'")
    if len(offsets) != 1:
        raise VerifyException(f"{op.name} needs a 1-D tensor of offsets, but got {x_offsets}")
    bits, word = bit_width(block), op.name.removeprefix("tt.descriptor_")
    if len(shape_of(rows)) != 2 or shape_of(rows)[0] != offsets[0]:
        raise VerifyException(f"result tensor must have as many rows as indices ({offsets[0]}), but got '{rows}'")
    if shape_of(rows)[1] != width[1]:
        raise VerifyException(f"result tensor number of columns must match block ({width[1]}), but got '{rows}'")
    if element_type(rows) != element_type(block):
        raise VerifyException(
            f"result tensor element type must match block ('{element_type(block)}'), but got '{rows}'"
        )
    if offsets[0] < 8:
        raise VerifyException(f"{word} must have at least 8 rows, but got {offsets[0]}")
    if bits > 32:
        raise VerifyException(f"{op.name} must have elements of at most 32 bits, but got {element_type(block)}")
    if width[1] < 32 // bits * 8:
        raise VerifyException(
            f"{word} of '{element_type(block)}' must have at least {32 // bits * 8} columns, but got {width[1]}"
        )


@irdl_op_definition
class DescriptorGatherOp(PickForm):
    """Read rows by index: ``%v = tt.descriptor_gather %d[%rows, %col] : (...) -> tensor<8x128xf16>``."""

    name = "tt.descriptor_gather"
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    result = result_def(TENSOR)
    traits = traits_def(MemoryReadEffect(), TensorSize())

    @classmethod
    def make(cls, desc: SSAValue, x_offsets: SSAValue, y_offset: SSAValue, type: Attribute, loc: LocationAttr) -> Self:
        return create_op(cls, (desc, x_offsets, y_offset), (type,), loc)

    def verify_(self) -> None:
        verify_rows(self, self.desc.type, self.x_offsets.type, self.result.type)


@irdl_op_definition
class DescriptorScatterOp(IRDLOperation):
    """Write rows by index: ``tt.descriptor_scatter %d[%rows, %col], %v : ...``."""

    name = "tt.descriptor_scatter"
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    src = operand_def(TENSOR)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(cls, desc: SSAValue, src: SSAValue, x_offsets: SSAValue, y_offset: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (desc, x_offsets, y_offset, src), (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = [parser.parse_unresolved_operand(), *parse_bracketed(parser)]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        parser.parse_punctuation(":")
        values = parser.resolve_operands(operands, parse_types(parser), position)
        return cls.create(operands=values, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        desc, x_offsets, y_offset, src = self.operands
        print_access(printer, desc, (x_offsets, y_offset))
        printer.print_string(",")
        print_operands(printer, (src,))
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        print_types(printer, [operand.type for operand in self.operands])

    def verify_(self) -> None:
        verify_rows(self, self.desc.type, self.x_offsets.type, self.src.type)
