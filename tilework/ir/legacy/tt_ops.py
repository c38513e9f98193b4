"""Names of `tt` ops that older compilers wrote: they are read as the ops of today and never built.

    %y = tt.view %x : tensor<64xf32> -> tensor<8x8xf32>          tt.reshape %x allow_reorder
    %v = tt.experimental_descriptor_load %d[%i] : !tt.ptr<i8> -> tensor<64xf32>
                                                                 tt.descriptor_load %d[%i]

A descriptor used to be an argument of type ``!tt.ptr<i8>`` whose blocks only its uses know. The first use gives the
argument its type of today, ``!tt.tensordesc<tensor<64xf32>>``; the other uses must agree.
"""

from functools import cache

from xdsl.ir import Attribute, BlockArgument
from xdsl.parser import Parser, UnresolvedOperand

from tilework.ir.create import set_type
from tilework.ir.declare import Op
from tilework.ir.enums import InputPrecision
from tilework.ir.form_reader import OLDER, Reader, Reading, compile_reader, resolve_defined
from tilework.ir.forms import FORMS
from tilework.ir.property_text import UNIT, is_true
from tilework.ir.tt.descriptor_ops import DescriptorLoadOp, DescriptorStoreOp
from tilework.ir.tt.shape_ops import ReshapeOp
from tilework.ir.types import (
    TensorDescType,
    element_type,
    i1,
    i8,
    i32,
    i32_array,
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
    """Without `hex` and `isSigned`."""
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

    return compile_reader(cls, FORMS[cls].text, older)


class ExperimentalDescriptorLoadOp(Op):
    """``tt.experimental_descriptor_load %d[%i] : !tt.ptr<i8> -> T`` is ``tt.descriptor_load``."""

    name = "tt.experimental_descriptor_load"

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorLoadOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        return descriptor_reader(DescriptorLoadOp, "result")(parser, DescriptorLoadOp)  # pyright: ignore[reportReturnType]


class ExperimentalDescriptorStoreOp(Op):
    """``tt.experimental_descriptor_store %d[%i], %v : !tt.ptr<i8>, T`` is ``tt.descriptor_store``."""

    name = "tt.experimental_descriptor_store"

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorStoreOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        return descriptor_reader(DescriptorStoreOp, "src")(parser, DescriptorStoreOp)  # pyright: ignore[reportReturnType]


OLD_TT_OPS = (ExperimentalDescriptorLoadOp, ExperimentalDescriptorStoreOp, ViewOp)
