"""Encodings as attributes: what stands after the comma of ``tensor<16x32xf32, #blocked>``.

The values are those of `layouts/encodings.py`; an attribute wraps one and adds only its text:

    >>> from tilework.layouts.encodings import Blocked
    >>> blocked = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
    >>> str(encoding_attr(blocked))
    '#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>'
    >>> encoding_attr(blocked) is encoding_attr(Blocked((1, 4), (4, 8), (4, 1), (1, 0)))
    True

Passes ask types for the plain value with `encoding_of` and change it with `with_encoding`. In a module the text is
shortened by aliases: those with an `ALIAS_STEM` are defined at the top (`#blocked`, `#mma`, `#shared` ...), slices and
dot operands are written out with their parent by name.

Older spellings are read too (`ir/legacy/`).
"""

from functools import cache
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilework.ir.encoding_text import encoding_parts, read_encoding
from tilework.ir.types import PointerType, Tensor, TensorDescType, shape_of, tensor_type, tensordesc_type
from tilework.layouts.encodings import KINDS, Distributed, DotOperand, Encoding, NvidiaMma, Shared
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import to_linear


class EncodingAttr(Data[Any]):
    """What all encodings share; `data` is the value of `layouts/encodings.py`."""

    def __hash__(self) -> int:
        return hash(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        return read_encoding(cls.name.removeprefix("ttg."), parser)

    def print_parameter(self, printer: Printer) -> None:
        for part in encoding_parts(self.data):
            if isinstance(part, str):
                printer.print_string(part)
            else:
                printer.print_attribute(encoding_attr(part))


def attribute_class(kind: type[Encoding]) -> type[EncodingAttr]:
    """The attribute of a kind of encodings: ``BlockedAttr`` for ``Blocked``."""
    body = {"name": f"ttg.{kind.NAME}", "__hash__": EncodingAttr.__hash__, "__doc__": kind.__doc__}
    if kind.ALIAS is not None:
        body["ALIAS_STEM"] = kind.ALIAS
    return irdl_attr_definition(type(f"{kind.__name__}Attr", (EncodingAttr,), {"__module__": __name__, **body}))


@irdl_attr_definition
class SharedMemoryAttr(ParametrizedAttribute):
    """The memory space of a block: ``#ttg.shared_memory``, written ``#smem``."""

    name = "ttg.shared_memory"
    ALIAS_STEM: ClassVar[str] = "smem"


CLASSES: dict[type[Encoding], type[EncodingAttr]] = {kind: attribute_class(kind) for kind in KINDS}
ENCODING_CLASSES = frozenset(CLASSES.values())
SHARED_MEMORY = SharedMemoryAttr()


@cache
def encoding_attr(encoding: Encoding) -> EncodingAttr:
    """The attribute of `encoding`, always the same object."""
    return CLASSES[type(encoding)](encoding)


def encoding_of(type: Attribute) -> Encoding | None:
    """The encoding of a tensor, a memory descriptor, or of the block that a pointer or tensor descriptor names."""
    if type.__class__ is PointerType:
        type = cast(PointerType, type).pointee
    elif type.__class__ is TensorDescType:
        type = cast(TensorDescType, type).block
    attribute: Any = getattr(type, "encoding", None)
    return attribute.data if attribute.__class__ in ENCODING_CLASSES else None


def distributed_of(type: Attribute) -> Distributed | None:
    """How the elements of a tensor lie in registers; None for memory, scalars and bare tensors."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, Distributed) else None


def spread_of(type: Attribute) -> Distributed:
    """The same of a tensor that is known to be spread over threads."""
    encoding = distributed_of(type)
    assert encoding is not None, f"{type} has no layout over threads"
    return encoding


def tensor_core_of(type: Attribute) -> NvidiaMma | None:
    """The instruction that gives a tensor as its result, if tensor cores do."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, NvidiaMma) else None


def shared_of(type: Attribute) -> Shared | None:
    """How the elements of a memory descriptor or of the blocks of a tensor descriptor lie in shared memory."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, Shared) else None


def dot_operand_of(type: Attribute) -> DotOperand | None:
    """The layout of a tensor that is laid out as an operand of a dot."""
    encoding = encoding_of(type)
    return encoding if isinstance(encoding, DotOperand) else None


def operand_index(type: Attribute) -> int | None:
    """0 or 1 for a tensor that is laid out as operand A or B of a dot."""
    return None if (encoding := dot_operand_of(type)) is None else encoding.op_idx


def is_accumulator(type: Attribute) -> bool:
    """Whether a tensor is laid out as tensor cores give their results."""
    return (encoding := distributed_of(type)) is not None and encoding.is_accumulator


@cache
def with_encoding(type: Attribute, encoding: Encoding | None) -> Tensor:
    """The tensor type `type` laid out in another way; None takes the encoding away."""
    assert isinstance(type, TensorType), type
    attribute = NoneAttr() if encoding is None else encoding_attr(encoding)
    return tensor_type(shape_of(type), type.element_type, attribute)


@cache
def descriptor_with_encoding(type: Attribute, encoding: Encoding | None) -> TensorDescType:
    """``!tt.tensordesc<tensor<64x64xf16>>`` with a shared encoding for its block."""
    assert isinstance(type, TensorDescType), type
    return tensordesc_type(with_encoding(type.block, encoding))


@cache
def layout_of(type: Attribute) -> LinearLayout:
    """The linear layout of a tensor or memory descriptor; of the last dimensions of its allocation for the latter."""
    encoding = encoding_of(type)
    assert encoding is not None, f"{type} has no encoding"
    shape = getattr(type, "alloc_dims", None) or shape_of(type)
    return to_linear(encoding, shape[len(shape) - encoding.rank :])


ENCODING_ATTRIBUTES = cast("list[type[Attribute]]", [*CLASSES.values(), SharedMemoryAttr])
