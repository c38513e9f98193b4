"""Other names for what is the same today, and a `dot_op` without a width.

The first `#triton_gpu.dot_op` had no `kWidth`: it was the number of elements in 32 bits, so such an
encoding gets its value from the tensor type it is written in.
"""

from xdsl.dialects.builtin import IntAttr, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilework.ir.encodings import EncodingAttr, encoding_attr, make_encoding, read_fields
from tilework.ir.types import Tensor, bit_width, shape_of, tensor_type
from tilework.layouts.encodings import DotOperand, NvidiaMma

OPS = {
    "func": "tt.func",
    "func.func": "tt.func",
    "func.return": "tt.return",
    "return": "tt.return",
    "tensor.extract_slice": "triton_gpu.extract_slice",
    "tensor.insert_slice": "triton_gpu.insert_slice",
    "ttg.memdesc_subview": "triton_gpu.memdesc_subview",
}
TYPES = {"tt.memdesc": "ttg.memdesc"}
PREFIXES = {"triton_gpu": "ttg", "triton_nvidia_gpu": "ttng"}
DOT_OPERAND = "triton_gpu.dot_op"


def modern_name(name: str) -> str:
    """`triton_gpu.num-warps` is `ttg.num-warps` today."""
    prefix, dot, rest = name.partition(".")
    return f"{PREFIXES[prefix]}.{rest}" if dot and prefix in PREFIXES else name


@irdl_attr_definition
class UnsizedDotOperandAttr(ParametrizedAttribute):
    """``#triton_gpu.dot_op<{opIdx = 0, parent = #mma}>``; printed so outside of a tensor type, which
    would give it a width."""

    name = DOT_OPERAND
    op_idx: IntAttr
    parent: EncodingAttr

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string(f"<{{opIdx = {self.op_idx.data}, parent = ")
        printer.print_attribute(self.parent)
        printer.print_string("}>")


def read_dot_operand(parser: AttrParser) -> Attribute:
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
