"""The ops of `triton_gpu` that nobody writes today.

The first compilers had no memory descriptors: shared memory was a tensor with a shared encoding. The next took parts of
memory with an op for all of them:

    %b = triton_gpu.alloc_tensor : tensor<3x64x64xf16, #shared>
    %s = tensor.extract_slice %b[%i, 0, 0] [1, 64, 64] [1, 1, 1] : tensor<3x64x64xf16, #shared> to tensor<64x64xf16, #shared>
    %s = triton_gpu.memdesc_subview %m[%i, %c0, %c0] : !ttg.memdesc<3x64x64xf16, ...> -> !ttg.memdesc<64x64xf16, ..., 3x64x64>

They exist until the end of the text: `shared_tensors.py` translates them then, because what each becomes depends on the
rest of the module.
"""

from typing import Self

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, Dialect
from xdsl.irdl import operand_def, prop_def, result_def, var_operand_def
from xdsl.parser import Parser, UnresolvedOperand

from tilework.ir.constraints import I32
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.form_reader import resolve_defined
from tilework.ir.types import i64

DYNAMIC = -(1 << 63)  # stands for an offset that is an operand, in MLIR's lists of offsets


class MemDescSubviewOp(Op):
    """One of several buffers, or a part of one: ``%s = ttg.memdesc_subview %m[%i, %c0, %c0] : T -> U``."""

    name = "triton_gpu.memdesc_subview"
    src = operand_def()
    offsets = var_operand_def(I32)
    result = result_def()
    form = "$src[$offsets] {} : type($src) -> type($result)"


class AllocTensorOp(Op):
    """Shared memory: ``%b = triton_gpu.alloc_tensor : tensor<3x16x16xf16, #shared>``."""

    name = "triton_gpu.alloc_tensor"
    result = result_def()
    form = "{} : type($result)"


class DeallocTensorOp(Op):
    """The memory is not used any more: ``triton_gpu.dealloc_tensor %b : tensor<3x16x16xf16, #shared>``."""

    name = "triton_gpu.dealloc_tensor"
    src = operand_def()
    form = "$src {} : type($src)"


class InsertSliceAsyncOp(Op):
    """Start copying into one of several buffers; the result is all of them.

    ``%c = triton_gpu.insert_slice_async %ptrs, %b, %i, %mask, %other {axis = 0 : i32} : tensor<..> -> tensor<.., #shared>``
    """

    name = "triton_gpu.insert_slice_async"
    src = operand_def()
    dst = operand_def()
    index = operand_def()
    mask_and_other = var_operand_def()
    result = result_def()
    form = "$operands {} : type($src) -> type($dst)"
    infer = {"result": "dst"}


class SliceOp(Op):
    """A place in buffers: ``%b[%i, 0, 0] [1, 16, 16] [1, 1, 1]``, offsets, sizes and strides."""

    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """An arrow may stand for the word between the types."""
        written = [parser.parse_unresolved_operand()]
        if (is_insert := cls is InsertSliceOp) and parser.parse_keyword("into"):
            written.append(parser.parse_unresolved_operand())
        dynamic: list[UnresolvedOperand] = []

        def parse_offset() -> int:
            if (operand := parser.parse_optional_unresolved_operand()) is None:
                return parser.parse_integer()
            dynamic.append(operand)
            return DYNAMIC

        place: dict[str, Attribute] = {}
        for name, parse in (
            ("offsets", parse_offset),
            ("sizes", parser.parse_integer),
            ("strides", parser.parse_integer),
        ):
            numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse)
            place[f"static_{name}"] = DenseArrayBase.from_list(i64, numbers)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        if parser.parse_optional_punctuation("->") is None:
            parser.parse_keyword("into" if is_insert else "to")
        types.append(parser.parse_type())
        values = [parser.resolve_operand(*pair) for pair in zip(written, types, strict=False)]
        values += [resolve_defined(parser, offset) for offset in dynamic]
        return cls.create(operands=values, result_types=types[1:], properties=place, attributes=attributes)


class ExtractSliceOp(SliceOp):
    """One of several buffers, or a part of one; also written ``tensor.extract_slice``.

    ``%s = tensor.extract_slice %b[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<3x16x16xf16, #shared> to tensor<16x16xf16, #shared>``
    """

    name = "triton_gpu.extract_slice"
    buffer = operand_def()
    offsets = var_operand_def()


class InsertSliceOp(SliceOp):
    """Write a tensor into one of several buffers; the result is all of them. Also written ``tensor.insert_slice``.

    ``%c = tensor.insert_slice %x into %b[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<16x16xf16, #a> into tensor<.., #shared>``
    """

    name = "triton_gpu.insert_slice"
    src = operand_def()
    buffer = operand_def()
    offsets = var_operand_def()


TRITON_GPU = Dialect("triton_gpu", dialect_ops("triton_gpu"))
OLD_OPS = frozenset(TRITON_GPU.operations)
