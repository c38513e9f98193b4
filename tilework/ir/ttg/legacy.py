"""The text of `ttg` ops that only older compilers wrote.

The first had no memory descriptors: shared memory was a tensor with a shared encoding. The next took parts of memory with
an op for all of them:

    %b = triton_gpu.alloc_tensor : tensor<3x64x64xf16, #shared>
    %s = tensor.extract_slice %b[%i, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<3x64x64xf16, #shared> to tensor<64x64xf16, #shared>
    %s = triton_gpu.memdesc_subview %m[%i, %c0, %c0] : !ttg.memdesc<3x64x64xf16, ...> -> !ttg.memdesc<64x64xf16, ..., 3x64x64>

These ops are read into the classes here, which exist until the end of the text: `shared_tensors.py` translates them then,
because what each becomes depends on the rest of the module.

Nor had the first `#triton_gpu.dot_op` a `kWidth`: it was what fits a register of 32 bits. Which number that is depends on
the elements, so such an encoding gets its value from the tensor type it is written in.
"""

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, IntAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, OpResult, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer

from tilework.ir.encoding_text import make_encoding, read_fields
from tilework.ir.encodings import EncodingAttr, encoding_attr
from tilework.ir.tt.memory_ops import loaded_type, mask_type
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_bracketed,
    parse_conversion_type,
    parse_operands,
    parse_type,
    resolve_defined,
)
from tilework.ir.ttg.text import OperandForm
from tilework.ir.types import PointerType, Tensor, bit_width, element_type, i32, i64, shape_of, tensor_type
from tilework.layouts.encodings import DotOperand, NvidiaMma

DYNAMIC = -(1 << 63)  # stands for an offset that is an operand, in MLIR's lists of offsets


def constant_offset(value: SSAValue) -> int | None:
    """The value of an integer constant, or None."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        attribute = value.op.properties["value"]
        return attribute.value.data if isinstance(attribute, IntegerAttr) else None
    return None


@irdl_op_definition
class MemDescSubviewOp(IRDLOperation):
    """One of several buffers, or a part of one: ``%s = ttg.memdesc_subview %m[%i, %c0, %c0] : T -> U``."""

    name = "ttg.memdesc_subview"
    src = operand_def()
    offsets = var_operand_def()
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> "MemDescSubviewOp":
        src = parser.parse_unresolved_operand()
        offsets = parse_bracketed(parser)
        _, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        values = [parser.resolve_operand(src, source), *(parser.resolve_operand(offset, i32) for offset in offsets)]
        return cls.create(operands=values, result_types=(result,), attributes=attributes)


@irdl_op_definition
class AllocTensorOp(IRDLOperation):
    """Shared memory: ``%b = triton_gpu.alloc_tensor : tensor<3x16x16xf16, #shared>``."""

    name = "ttg.alloc_tensor"
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> "AllocTensorOp":
        _, attributes = parse_attr_dict(cls, parser)
        return cls.create(result_types=(parse_type(parser),), attributes=attributes)


@irdl_op_definition
class DeallocTensorOp(OperandForm):
    """The memory is not used any more: ``triton_gpu.dealloc_tensor %b : tensor<3x16x16xf16, #shared>``."""

    name = "ttg.dealloc_tensor"
    src = operand_def()


@irdl_op_definition
class InsertSliceAsyncOp(IRDLOperation):
    """Start copying into one of several buffers; the result is all of them.

    ``%c = triton_gpu.insert_slice_async %ptrs, %b, %i, %mask, %other {axis = 0 : i32} : tensor<..> -> tensor<.., #shared>``
    """

    name = "ttg.insert_slice_async"
    src = operand_def()
    dst = operand_def()
    index = operand_def()
    mask_and_other = var_operand_def()
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> "InsertSliceAsyncOp":
        position = parser.pos
        operands = parse_operands(parser)
        _, attributes = parse_attr_dict(cls, parser)
        source, buffer = parse_conversion_type(parser)
        if not 3 <= len(operands) <= 5:
            parser.raise_error(
                f"'{cls.name}' has pointers, a buffer, an index, perhaps a mask and a value: 3 to 5 operands, "
                f"not {len(operands)}",
                position,
            )
        if not isinstance(element_type(source), PointerType):
            parser.raise_error(f"'{cls.name}' reads from pointers, not from {source}", position)
        loaded = loaded_type(source)
        values = [parser.resolve_operand(operands[0], source), parser.resolve_operand(operands[1], buffer)]
        values.append(resolve_defined(parser, operands[2]))
        for operand, type in zip(operands[3:], (mask_type(loaded), loaded), strict=False):
            values.append(parser.resolve_operand(operand, type))
        return cls.create(operands=values, result_types=(buffer,), attributes=attributes)


def parse_place(parser: Parser) -> tuple[list[UnresolvedOperand], Attributes]:
    """``[%i, 0, 0] [1, 16, 16] [1, 1, 1]``: the offsets that are operands, and all as MLIR's properties."""
    dynamic: list[UnresolvedOperand] = []

    def parse_offset() -> int:
        if (operand := parser.parse_optional_unresolved_operand()) is None:
            return parser.parse_integer()
        dynamic.append(operand)
        return DYNAMIC

    lists = [parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse_offset)]
    for _ in range(2):
        lists.append(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
    names = ("static_offsets", "static_sizes", "static_strides")
    return dynamic, {name: DenseArrayBase.from_list(i64, numbers) for name, numbers in zip(names, lists, strict=True)}


def parse_place_types(parser: Parser, word: str) -> tuple[Attribute, Attribute]:
    """``: T to U``, or ``: T into U``; an arrow is read too."""
    source = parse_type(parser)
    if parser.parse_optional_punctuation("->") is None:
        parser.parse_keyword(word)
    return source, parser.parse_type()


@irdl_op_definition
class ExtractSliceOp(IRDLOperation):
    """One of several buffers, or a part of one; also written ``triton_gpu.extract_slice``.

    ``%s = tensor.extract_slice %b[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<3x16x16xf16, #shared> to tensor<16x16xf16, #shared>``
    """

    name = "ttg.extract_slice"
    buffer = operand_def()
    offsets = var_operand_def()
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> "ExtractSliceOp":
        buffer = parser.parse_unresolved_operand()
        dynamic, place = parse_place(parser)
        _, attributes = parse_attr_dict(cls, parser)
        source, result = parse_place_types(parser, "to")
        values = [parser.resolve_operand(buffer, source), *(resolve_defined(parser, offset) for offset in dynamic)]
        return cls.create(operands=values, result_types=(result,), properties=place, attributes=attributes)


@irdl_op_definition
class InsertSliceOp(IRDLOperation):
    """Write a tensor into one of several buffers; the result is all of them. Also written ``triton_gpu.insert_slice``.

    ``%c = tensor.insert_slice %x into %b[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<16x16xf16, #a> into tensor<.., #shared>``
    """

    name = "ttg.insert_slice"
    src = operand_def()
    buffer = operand_def()
    offsets = var_operand_def()
    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> "InsertSliceOp":
        tensor = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        buffer = parser.parse_unresolved_operand()
        dynamic, place = parse_place(parser)
        _, attributes = parse_attr_dict(cls, parser)
        source, target = parse_place_types(parser, "into")
        values = [parser.resolve_operand(tensor, source), parser.resolve_operand(buffer, target)]
        values += [resolve_defined(parser, offset) for offset in dynamic]
        return cls.create(operands=values, result_types=(target,), properties=place, attributes=attributes)


OLD_NAMES = frozenset(
    {AllocTensorOp, DeallocTensorOp, ExtractSliceOp, InsertSliceAsyncOp, InsertSliceOp, MemDescSubviewOp}
)


@irdl_attr_definition
class UnsizedDotOperandAttr(ParametrizedAttribute):
    """``#triton_gpu.dot_op<{opIdx = 0, parent = #mma}>``; printed so, should it stand where no tensor gives it a width."""

    name = "triton_gpu.dot_op"
    op_idx: IntAttr
    parent: EncodingAttr

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{{opIdx = {self.op_idx.data}, parent = ")
        printer.print_attribute(self.parent)
        printer.print_string("}>")


def read_old_dot_operand(parser: AttrParser) -> Attribute:
    """``<{opIdx = 0, parent = #mma, kWidth = 2}>``, perhaps without the width."""
    position = parser.pos
    fields = read_fields("dot_op", parser)
    index, parent = fields.get("opIdx"), fields.get("parent")
    if "kWidth" not in fields and isinstance(parent, NvidiaMma) and index in (0, 1):
        return UnsizedDotOperandAttr(IntAttr(index), encoding_attr(parent))
    return encoding_attr(make_encoding("dot_op", fields, parser, position))


def sized(type: Attribute) -> Tensor | None:
    """The tensor type `type` with a width in its `dot_op`, or None where nothing is missing."""
    if not isinstance(type, TensorType) or not isinstance(type.encoding, UnsizedDotOperandAttr):
        return None
    written = type.encoding
    encoding = DotOperand(written.op_idx.data, written.parent.data, max(32 // bit_width(type), 1))
    return tensor_type(shape_of(type), type.element_type, encoding_attr(encoding))
