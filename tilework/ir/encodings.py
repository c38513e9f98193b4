"""Encodings as attributes: what stands after the comma of ``tensor<16x32xf32, #blocked>``.

The values are those of `layouts/encodings.py`; an attribute wraps one and adds only its text:

    >>> blocked = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
    >>> str(encoding_attr(blocked))
    '#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>'
    >>> encoding_attr(blocked) is encoding_attr(Blocked((1, 4), (4, 8), (4, 1), (1, 0)))
    True

Passes ask types for the plain value with `encoding_of` and change it with `with_encoding`. In a module the text is
shortened by aliases: those with an `ALIAS_STEM` are defined at the top (`#blocked`, `#mma`, `#shared` ...), slices and
dot operands are written out with their parent by name.

Older spellings are read too: `#triton_gpu.` for `#ttg.`, `shared` for the two kinds of shared encodings, `mma`, and
`CTAsPerCGA`, `CTASplitNum`, `CTAOrder` for `CGALayout`.
"""

from functools import cache
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import NoneAttr, TensorType
from xdsl.ir import Attribute, Data, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from tilework.ir.encoding_text import READERS, encoding_parts
from tilework.ir.types import PointerType, Tensor, TensorDescType, shape_of, tensor_type, tensordesc_type
from tilework.layouts.encodings import (
    Blocked,
    DotOperand,
    Encoding,
    Linear,
    NvidiaMma,
    NvmmaShared,
    PaddedShared,
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import to_linear


class EncodingAttr(Data[Any]):
    """What all encodings share; `data` is the value of `layouts/encodings.py`."""

    def __hash__(self) -> int:
        return hash(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Any:
        return READERS[cls.name](parser)

    def print_parameter(self, printer: Printer) -> None:
        for part in encoding_parts(self.data):
            if isinstance(part, str):
                printer.print_string(part)
            else:
                printer.print_attribute(encoding_attr(part))


@irdl_attr_definition
class BlockedAttr(EncodingAttr):
    """``#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>``."""

    name = "ttg.blocked"
    ALIAS_STEM: ClassVar[str] = "blocked"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class SliceAttr(EncodingAttr):
    """``#ttg.slice<{dim = 1, parent = #blocked}>``; has no alias."""

    name = "ttg.slice"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class DotOperandAttr(EncodingAttr):
    """``#ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>``; has no alias."""

    name = "ttg.dot_op"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class NvidiaMmaAttr(EncodingAttr):
    """``#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>``."""

    name = "ttg.nvidia_mma"
    ALIAS_STEM: ClassVar[str] = "mma"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class LinearAttr(EncodingAttr):
    """``#ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], block = []}>``."""

    name = "ttg.linear"
    ALIAS_STEM: ClassVar[str] = "linear"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class SwizzledSharedAttr(EncodingAttr):
    """``#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>``."""

    name = "ttg.swizzled_shared"
    ALIAS_STEM: ClassVar[str] = "shared"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class NvmmaSharedAttr(EncodingAttr):
    """``#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>``."""

    name = "ttg.nvmma_shared"
    ALIAS_STEM: ClassVar[str] = "shared"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class SharedLinearAttr(EncodingAttr):
    """``#ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>``."""

    name = "ttg.shared_linear"
    ALIAS_STEM: ClassVar[str] = "shared"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class PaddedSharedAttr(EncodingAttr):
    """``#ttg.padded_shared<[16:+4] {order = [1, 0], shape = [16, 32]}>``."""

    name = "ttg.padded_shared"
    ALIAS_STEM: ClassVar[str] = "shared"
    __hash__ = EncodingAttr.__hash__


@irdl_attr_definition
class SharedMemoryAttr(ParametrizedAttribute):
    """The memory space of a block: ``#ttg.shared_memory``, written ``#smem``."""

    name = "ttg.shared_memory"
    ALIAS_STEM: ClassVar[str] = "smem"


CLASSES: dict[type, type[EncodingAttr]] = {
    Blocked: BlockedAttr,
    Slice: SliceAttr,
    DotOperand: DotOperandAttr,
    NvidiaMma: NvidiaMmaAttr,
    Linear: LinearAttr,
    SwizzledShared: SwizzledSharedAttr,
    NvmmaShared: NvmmaSharedAttr,
    SharedLinear: SharedLinearAttr,
    PaddedShared: PaddedSharedAttr,
}
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
