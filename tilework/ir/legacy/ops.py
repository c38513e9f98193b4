"""Ops that older compilers wrote: they are read and translated, and never built.

    %y = tt.view %x : tensor<64xf32> -> tensor<8x8xf32>          tt.reshape %x allow_reorder
    %v = tt.experimental_descriptor_load %d[%i] : !tt.ptr<i8> -> tensor<64xf32>
                                                                 tt.descriptor_load %d[%i]

A descriptor used to be an argument of type ``!tt.ptr<i8>`` whose blocks only its uses know. The first use gives the
argument its type of today, ``!tt.tensordesc<tensor<64xf32>>``; the other uses must agree.

The first compilers had no memory descriptors: shared memory was a tensor with a shared encoding. The next ones had one
op for all views of memory:

    %b = triton_gpu.alloc_tensor : tensor<3x64x64xf16, #shared>
    %s = tensor.extract_slice %b[%i, 0, 0] [1, 64, 64] [1, 1, 1]
             : tensor<3x64x64xf16, #shared> to tensor<64x64xf16, #shared>
    %s = triton_gpu.memdesc_subview %m[%i, %c0, %c0]
             : !ttg.memdesc<3x64x64xf16, ...> -> !ttg.memdesc<64x64xf16, ..., 3x64x64>

These exist until the end of the text: `shared_tensors.py` translates them then, because the translation of each depends
on the rest of the module.
"""

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, BlockArgument, Dialect
from xdsl.parser import Parser, UnresolvedOperand

from tilework.ir.attr_text import UNIT, is_true
from tilework.ir.constraints import I32
from tilework.ir.create import set_type
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.enums import AddrSpace, InputPrecision
from tilework.ir.fields import operand_def, prop_def, result_def, var_operand_def
from tilework.ir.form_text import OLDER, Reader, Reading, compile_reader, resolve_defined
from tilework.ir.locations import unknown
from tilework.ir.tt.memory_ops import DescriptorLoadOp, DescriptorStoreOp
from tilework.ir.tt.shape_ops import ReshapeOp
from tilework.ir.ttg.shared_memory_ops import BarrierOp
from tilework.ir.types import (
    TensorDescType,
    element_type,
    i1,
    i8,
    i32,
    i32_array,
    i64,
    int_attr,
    is_pointer,
    is_tensor,
    pointer_type,
    tensordesc_type,
)


def read_access(parser: Parser, reading: Reading) -> None:
    """``tt.load %p : f32``: the type is that of the element, not of the pointer."""
    written = reading.types["ptr"]
    if isinstance(written, Attribute) and not is_pointer(element_type(written)):
        reading.types["ptr"] = resolve_defined(parser, reading.operands["operands"][0]).type


def read_flags(parser: Parser, reading: Reading) -> None:
    """``{allow_reorder = true}``."""
    for name in ("allow_reorder", "efficient_layout"):
        if is_true(reading.properties.pop(name, None)):
            reading.properties[name] = UNIT


def read_dot(parser: Parser, reading: Reading) -> None:
    """``{allowTF32 = true, transA = false, transB = false}``; what is true of the latter is left to
    `shared_tensors.py`, which puts a `tt.trans` before the op."""
    for name in ("transA", "transB"):
        if not is_true(reading.attributes.get(name)):
            reading.attributes.pop(name, None)
    if (allowed := reading.attributes.pop("allowTF32", None)) is not None:
        precision = InputPrecision.TF32 if is_true(allowed) else InputPrecision.IEEE
        reading.properties.setdefault("inputPrecision", int_attr(precision, i32))


def read_print(parser: Parser, reading: Reading) -> None:
    """Read a print without `hex` and `isSigned`, and set their defaults."""
    reading.properties.setdefault("hex", int_attr(0, i1))
    reading.properties.setdefault("isSigned", i32_array(*[0] * len(reading.operands.get("operands", ()))))


OLDER.update(
    {
        "tt.load": read_access,
        "tt.store": read_access,
        "tt.reshape": read_flags,
        "tt.dot": read_dot,
        "tt.print": read_print,
        "ttc.print": read_print,
    }
)


class ViewOp(Op):
    """``tt.view %x : T -> U`` is ``tt.reshape %x allow_reorder : T -> U``."""

    name = "tt.view"

    @classmethod
    def parse(cls, parser: Parser) -> ReshapeOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        op = ReshapeOp.parse(parser)
        op.properties["allow_reorder"] = UNIT
        return op


def descriptor_type(parser: Parser, operand: UnresolvedOperand, written: Attribute, block: Attribute) -> Attribute:
    """The type of the descriptor `operand`; an argument written as ``!tt.ptr<i8>`` becomes one of `block`."""
    if written != pointer_type(i8):
        return written
    value = resolve_defined(parser, operand)
    if not isinstance(value, BlockArgument):
        parser.raise_error(f"the descriptor %{operand.operand_name} must be an argument of the function", operand.span)
    if not is_tensor(block):
        parser.raise_error(f"a descriptor reads and writes tensors, not {block}")
    wanted = tensordesc_type(block)
    if isinstance(value.type, TensorDescType) and value.type != wanted:
        parser.raise_error(
            f"the descriptor %{operand.operand_name} is of {value.type.block}, not {block}", operand.span
        )
    set_type(value, wanted)
    return wanted


@cache
def descriptor_reader(cls: type[DescriptorLoadOp] | type[DescriptorStoreOp], block: str) -> Reader:
    """The reader of `cls` for text where the descriptor may be written as ``!tt.ptr<i8>``."""

    def older(parser: Parser, reading: Reading) -> None:
        written, type = reading.types["desc"], reading.types[block]
        assert isinstance(written, Attribute) and isinstance(type, Attribute)
        reading.types["desc"] = descriptor_type(parser, reading.operands["desc"][0], written, type)

    return compile_reader(cls, cls.form, older)


class ExperimentalDescriptorLoadOp(Op):
    """``tt.experimental_descriptor_load %d[%i] : !tt.ptr<i8> -> T`` is ``tt.descriptor_load``."""

    name = "tt.experimental_descriptor_load"

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorLoadOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        read = descriptor_reader(DescriptorLoadOp, "result")
        return read(parser, DescriptorLoadOp)  # pyright: ignore[reportReturnType]


class ExperimentalDescriptorStoreOp(Op):
    """``tt.experimental_descriptor_store %d[%i], %v : !tt.ptr<i8>, T`` is ``tt.descriptor_store``."""

    name = "tt.experimental_descriptor_store"

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorStoreOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        read = descriptor_reader(DescriptorStoreOp, "src")
        return read(parser, DescriptorStoreOp)  # pyright: ignore[reportReturnType]


class GpuBarrierOp(Op):
    """``gpu.barrier`` is ``ttg.barrier all``."""

    name = "gpu.barrier"
    spaces: ClassVar[AddrSpace] = AddrSpace.ALL

    @classmethod
    def parse(cls, parser: Parser) -> BarrierOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        return cls.create(attributes=parser.parse_optional_attr_dict())

    @classmethod
    def create(  # pyright: ignore[reportIncompatibleMethodOverride]
        cls, *, attributes: Mapping[str, Attribute], **_: object
    ) -> BarrierOp:
        """Build the op of today, from the generic form too."""
        op = BarrierOp.make(cls.spaces, unknown)
        op.attributes.update(attributes)
        return op


class LocalBarrierOp(GpuBarrierOp):
    """``ttg.local_barrier`` is ``ttg.barrier local``."""

    name = "ttg.local_barrier"
    spaces = AddrSpace.LOCAL


TRANSLATED_OPS = (ExperimentalDescriptorLoadOp, ExperimentalDescriptorStoreOp, ViewOp, GpuBarrierOp, LocalBarrierOp)


DYNAMIC = -(1 << 63)  # means an offset that is an operand, in MLIR's lists of offsets


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

    ``%c = triton_gpu.insert_slice_async %ptrs, %b, %i, %mask, %other {axis = 0 : i32} : tensor<..> -> tensor<..,
    #shared>``
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
    """A slice of buffers: ``%b[%i, 0, 0] [1, 16, 16] [1, 1, 1]``, offsets, sizes and strides."""

    static_offsets = prop_def(DenseArrayBase)
    static_sizes = prop_def(DenseArrayBase)
    static_strides = prop_def(DenseArrayBase)
    result = result_def()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """An arrow may replace the keyword between the types."""
        written = [parser.parse_unresolved_operand()]
        if (is_insert := cls is InsertSliceOp) and parser.parse_keyword("into"):
            written.append(parser.parse_unresolved_operand())
        dynamic: list[UnresolvedOperand] = []

        def parse_offset() -> int:
            if (operand := parser.parse_optional_unresolved_operand()) is None:
                return parser.parse_integer()
            dynamic.append(operand)
            return DYNAMIC

        slice_properties: dict[str, Attribute] = {}
        for name, parse in (
            ("offsets", parse_offset),
            ("sizes", parser.parse_integer),
            ("strides", parser.parse_integer),
        ):
            integers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parse)
            slice_properties[f"static_{name}"] = DenseArrayBase.from_list(i64, integers)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = [parser.parse_type()]
        if parser.parse_optional_punctuation("->") is None:
            parser.parse_keyword("into" if is_insert else "to")
        types.append(parser.parse_type())
        values = [parser.resolve_operand(*pair) for pair in zip(written, types, strict=False)]
        values += [resolve_defined(parser, offset) for offset in dynamic]
        return cls.create(operands=values, result_types=types[1:], properties=slice_properties, attributes=attributes)


class ExtractSliceOp(SliceOp):
    """One of several buffers, or a part of one; also written ``tensor.extract_slice``.

    ``%s = tensor.extract_slice %b[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<3x16x16xf16, #shared> to tensor<16x16xf16,
    #shared>``
    """

    name = "triton_gpu.extract_slice"
    buffer = operand_def()
    offsets = var_operand_def()


class InsertSliceOp(SliceOp):
    """Write a tensor into one of several buffers; the result is all of them. Also written ``tensor.insert_slice``.

    ``%c = tensor.insert_slice %x into %b[%i, 0, 0] [1, 16, 16] [1, 1, 1] : tensor<16x16xf16, #a> into tensor<..,
    #shared>``
    """

    name = "triton_gpu.insert_slice"
    src = operand_def()
    buffer = operand_def()
    offsets = var_operand_def()


TRITON_GPU = Dialect("triton_gpu", dialect_ops("triton_gpu"))
OLD_OPS = frozenset(TRITON_GPU.operations)
