"""Names of `ttg` ops that older compilers wrote: read as the ops of today, or refused with what to write instead.

    %s = triton_gpu.memdesc_subview %m[%i, %c0, %c0] : !ttg.memdesc<3x64x64xf16, ...> -> !ttg.memdesc<64x64xf16, ...>
                                                                 ttg.memdesc_index %m[%i]
    %s = triton_gpu.memdesc_subview %m[%c0, %c16] : !ttg.memdesc<64x64xf16, ...> -> !ttg.memdesc<64x16xf16, ...>
                                                                 ttg.memdesc_subslice %m[0, 16]

The first compilers had no memory descriptors: shared memory was a tensor with a shared encoding, filled by
`insert_slice_async`. Such modules cannot be read op by op.
"""

from collections.abc import Sequence
from typing import ClassVar, NoReturn

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.parser import Parser

from tilework.ir.tt.text import parse_attr_dict, parse_bracketed, parse_conversion_type
from tilework.ir.ttg.types import MemDescType, retyped
from tilework.ir.ttg.views import MemDescIndexOp, MemDescSubsliceOp, offsets_property
from tilework.ir.types import i32


def constant_offset(value: SSAValue) -> int | None:
    """The value of an integer constant, or None."""
    if isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp):
        attribute = value.op.properties["value"]
        return attribute.value.data if isinstance(attribute, IntegerAttr) else None
    return None


@irdl_op_definition
class MemDescSubviewOp(IRDLOperation):
    """``ttg.memdesc_subview %m[%i, %j] : T -> U`` is `ttg.memdesc_index` or `ttg.memdesc_subslice`."""

    name = "ttg.memdesc_subview"

    @classmethod
    def parse(cls, parser: Parser) -> IRDLOperation:  # pyright: ignore[reportIncompatibleMethodOverride]
        position = parser.pos
        src = parser.parse_unresolved_operand()
        offsets = parse_bracketed(parser)
        _, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        memory = parser.resolve_operand(src, source)
        places = [parser.resolve_operand(offset, i32) for offset in offsets]
        numbers = [constant_offset(place) for place in places]
        if not isinstance(source, MemDescType) or not isinstance(result, MemDescType):
            parser.raise_error("ttg.memdesc_subview takes and gives memory descriptors", position)
        if len(result.dims) == len(source.dims) - 1 and not any(number != 0 for number in numbers[1:]):
            type = retyped(result, result.dims)
            return MemDescIndexOp.create(operands=(memory, places[0]), result_types=(type,), attributes=attributes)
        if len(result.dims) == len(source.dims) and None not in numbers:
            return subslice(memory, source, result, [number or 0 for number in numbers], attributes)
        parser.raise_error(
            "a part of a buffer has constant offsets, one of several buffers an index and zeros", position
        )


def subslice(
    memory: SSAValue, source: MemDescType, result: MemDescType, offsets: Sequence[int], attributes: dict[str, Attribute]
) -> MemDescSubsliceOp:
    """The part of `memory` at `offsets`."""
    return MemDescSubsliceOp.create(
        operands=(memory,),
        result_types=(retyped(source, result.dims, keep_alloc=True),),
        properties=offsets_property(tuple(offsets)),
        attributes=attributes,
    )


class GoneOp(IRDLOperation):
    """An op whose modules cannot be read any more; `INSTEAD` says what they would be today."""

    INSTEAD: ClassVar[str] = ""

    @classmethod
    def parse(cls, parser: Parser) -> NoReturn:
        parser.raise_error(f"'{cls.name}' is of a compiler that had tensors in shared memory; {cls.INSTEAD}")


@irdl_op_definition
class AllocTensorOp(GoneOp):
    """``triton_gpu.alloc_tensor : tensor<3x16x16xf16, #shared>``."""

    name = "ttg.alloc_tensor"
    INSTEAD: ClassVar[str] = "today: ttg.local_alloc : () -> !ttg.memdesc<..., mutable>"


@irdl_op_definition
class InsertSliceAsyncOp(GoneOp):
    """``triton_gpu.insert_slice_async %ptr, %buffer, %i, %mask {axis = 0}``."""

    name = "ttg.insert_slice_async"
    INSTEAD: ClassVar[str] = "today: ttg.memdesc_index, ttg.async_copy_global_to_local and ttg.async_commit_group"


@irdl_op_definition
class ExtractSliceOp(GoneOp):
    """``triton_gpu.extract_slice %buffer[%i, 0, 0][1, 16, 16][1, 1, 1]``."""

    name = "ttg.extract_slice"
    INSTEAD: ClassVar[str] = "today: ttg.memdesc_index"


OLD_NAMES = frozenset({AllocTensorOp, ExtractSliceOp, InsertSliceAsyncOp, MemDescSubviewOp})
