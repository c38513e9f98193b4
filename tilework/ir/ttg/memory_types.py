"""The types of `ttg`: a tensor in shared memory, and what orders copies into it.

    !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>     three buffers of 64x64, one encoding for each of them
    !ttg.memdesc<64x16xf16, #shared, #smem, 64x64>         16 columns of a buffer of 64x64
    !ttg.async.token

A memory descriptor is an address with a shape, not a value: two of them may name the same memory. `dims` is its
shape, `alloc_dims` the shape of the buffer it is a part of; the encoding describes the last dimensions of that
buffer.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import Kind, exactly, is_element
from tilework.ir.encodings import SHARED_MEMORY, EncodingAttr, SharedMemoryAttr, encoding_attr
from tilework.ir.types import Shape, bit_width, cached_hash, i64
from tilework.layouts.encodings import (
    Encoding,
    NvmmaShared,
    PaddedShared,
    Shared,
    SharedLinear,
    SwizzledShared,
    is_power_of_two,
)
from tilework.layouts.to_linear import shape_per_cta

if TYPE_CHECKING:
    from xdsl.parser import AttrParser, Parser
    from xdsl.printer import Printer


@irdl_attr_definition
class MemDescType(ParametrizedAttribute, TypeAttribute):
    """Memory that holds a tensor: ``!ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>``."""

    name = "ttg.memdesc"
    shape: ArrayAttr[IntAttr]
    element_type: Attribute
    encoding: Attribute
    memory_space: Attribute
    mutable: IntAttr
    alloc_shape: ArrayAttr[IntAttr]
    __hash__ = cached_hash

    @property
    def dims(self) -> Shape:
        """The shape."""
        if (memo := vars(self).get("_dims")) is None:
            memo = vars(self)["_dims"] = tuple(dim.data for dim in self.shape)
        return memo

    @property
    def alloc_dims(self) -> Shape:
        """The shape of the whole buffer."""
        if (memo := vars(self).get("_alloc_dims")) is None:
            memo = vars(self)["_alloc_dims"] = tuple(dim.data for dim in self.alloc_shape)
        return memo

    @property
    def is_mutable(self) -> bool:
        """The memory may be written through it."""
        return self.mutable.data != 0

    @classmethod
    def parse_parameters(cls, parser: "AttrParser") -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            dims, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            encoding = parser.parse_attribute()
            more = parser.parse_optional_punctuation(",")
            mutable = parser.parse_optional_keyword("mutable") if more else None
            space, alloc = SHARED_MEMORY, None  # the first memory descriptors did not say where they are
            if more and mutable is None:
                space = parser.parse_attribute()
                more = parser.parse_optional_punctuation(",")
                mutable = parser.parse_optional_keyword("mutable") if more else None
            if more and (mutable is None or parser.parse_optional_punctuation(",")):
                alloc = parser.parse_dimension_list()
                if not alloc:
                    parser.raise_error("`mutable` or the shape of the buffer is expected here")
        return parameters(tuple(dims), element, encoding, mutable is not None, tuple(alloc or dims), space)

    def print_parameters(self, printer: "Printer") -> None:
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{dim}x" for dim in self.dims))
            printer.print_attribute(self.element_type)
            printer.print_string(", ")
            printer.print_attribute(self.encoding)
            printer.print_string(", ")
            printer.print_attribute(self.memory_space)
            printer.print_string(self.suffix())

    def suffix(self) -> str:
        """``, mutable, 64x64``, what follows the memory space; the buffer's shape only where it differs."""
        suffix = ", mutable" if self.is_mutable else ""
        return suffix if self.alloc_dims == self.dims else f"{suffix}, {'x'.join(map(str, self.alloc_dims))}"

    def verify(self) -> None:
        dims, alloc = self.dims, self.alloc_dims
        if not dims:
            raise VerifyException("rank 0 memdesc is not allowed")
        if dims[0] == 0:
            raise VerifyException(f"shape has 0 dimension: {listed(dims)}")
        if dims[0] < 0 or any(not is_power_of_two(dim) for dim in dims[1:]):
            raise VerifyException(f"shape must have power-of-2 and non-zero dimensions; got {listed(dims)}")
        if not is_element(self.element_type):
            raise VerifyException(f"memory holds floats, integers or pointers, not {self.element_type}")
        if len(alloc) < len(dims):
            raise VerifyException(
                f"alloc shape must have at least as many dimensions as shape: {listed(alloc)}; {listed(dims)}"
            )
        if any(size < dim for size, dim in zip(alloc[len(alloc) - len(dims) :], dims, strict=True)):
            raise VerifyException(
                f"shape must be less than or equal to allocShape. shape = {listed(dims)}, allocShape = {listed(alloc)}"
            )
        if not isinstance(self.encoding, EncodingAttr) or not isinstance(self.encoding.data, Shared):
            raise VerifyException(f"{self.encoding} is not a valid encoding")
        if not isinstance(self.memory_space, SharedMemoryAttr):
            raise VerifyException(f"memorySpace must be SharedMemorySpace for shared encoding. Got {self.memory_space}")
        if (rank := self.encoding.data.rank) not in (len(dims), len(dims) - 1):
            raise VerifyException(f"rank must be equal to or one less than the shape size. Got {rank} and {len(dims)}")
        verify_block_shape(self.encoding.data, alloc[len(alloc) - rank :])


def verify_block_shape(encoding: Shared, shape: Shape) -> None:
    """Check that a buffer of `shape` holds what its layout repeats, or is all that the layout describes."""
    if isinstance(encoding, SharedLinear | PaddedShared):
        for dim, ((_, found), size) in enumerate(zip(encoding.layout.outs, shape, strict=True)):
            if size != found:
                raise VerifyException(f"Mismatch in expected shape for dimension {dim}. Expected: {size}, got: {found}")
    if isinstance(encoding, NvmmaShared) and encoding.swizzling_byte_width and encoding.element_bit_width:
        dim = max(encoding.rank - (2 if encoding.transposed else 1), 0)
        least = encoding.swizzling_byte_width * 8 // encoding.element_bit_width // (2 if encoding.fp4_padded else 1)
        if (size := shape_per_cta(encoding, shape)[dim]) < least:
            raise VerifyException(
                f"block shape along the contiguous dimension {dim} is too small for the swizzle byte size "
                f"{encoding.swizzling_byte_width} in an NVMMASharedLayout, got {size} but expected at least {least}"
            )


def listed(dims: Shape) -> str:
    """``64, 32``, for messages."""
    return ", ".join(map(str, dims))


@irdl_attr_definition
class AsyncTokenType(ParametrizedAttribute, TypeAttribute):
    """A token of copies that may not have finished: ``!ttg.async.token``."""

    name = "ttg.async.token"


async_token = AsyncTokenType()


def parameters(
    dims: Shape, element: Attribute, encoding: Attribute, mutable: bool, alloc: Shape, space: Attribute
) -> Sequence[Attribute]:
    """Return the parameters of a `MemDescType`."""
    return dimensions(dims), element, encoding, space, FLAGS[mutable], dimensions(alloc)


@cache
def dimensions(dims: Shape) -> ArrayAttr[IntAttr]:
    return ArrayAttr(IntAttr(dim) for dim in dims)


FLAGS = (IntAttr(0), IntAttr(1))


@cache
def memdesc_type(
    shape: Shape,
    element: Attribute,
    encoding: Encoding | Attribute,
    mutable: bool = False,
    alloc_shape: Shape | None = None,
    space: Attribute = SHARED_MEMORY,
) -> MemDescType:
    """``!ttg.memdesc<SHAPExELEMENT, encoding, #smem>``; `encoding` is the plain value or its attribute."""
    attribute = encoding if isinstance(encoding, Attribute) else encoding_attr(encoding)
    return MemDescType.new(parameters(shape, element, attribute, mutable, alloc_shape or shape, space))


@cache
def retyped(type: MemDescType, shape: Shape, encoding: Encoding | None = None, keep_alloc: bool = False) -> MemDescType:
    """`type` with another shape, and perhaps encoding; the buffer has that shape too unless `keep_alloc`."""
    attribute = type.encoding if encoding is None else encoding_attr(encoding)
    alloc = type.alloc_dims if keep_alloc else shape
    return memdesc_type(shape, type.element_type, attribute, type.is_mutable, alloc, type.memory_space)


def is_memdesc(type: Attribute) -> bool:
    return type.__class__ is MemDescType


@cache
def buffer_bytes(type: MemDescType) -> int:
    """The bytes of the elements of `type`, without padding."""
    count = 1
    for dim in type.dims:
        count *= dim
    return count * max(8, bit_width(type.element_type)) // 8


def read_memdesc(parser: "Parser") -> MemDescType:
    """``<64xf16, #shared, #smem>``, where the form fixes the kind of type."""
    return MemDescType.new(MemDescType.parse_parameters(parser))


MEMDESC = Kind("a memory descriptor", is_memdesc, bare=read_memdesc)
TOKEN = exactly("an async token", async_token)
BARRIER = Kind("memory of i64, a barrier", lambda type: isinstance(type, MemDescType) and type.element_type == i64)


@cache
def barrier_type(ctas: int, count: int | None = None) -> MemDescType:
    """Return the type of an mbarrier in each block of a cluster, or of `count` of them: ``3x2xi64`` for two blocks."""
    cga = tuple((1 << bit,) for bit in range(ctas.bit_length() - 1))
    shape = (ctas,) if count is None else (count, ctas)
    return memdesc_type(shape, i64, SwizzledShared(1, 1, 1, (0,), cga), True)


def as_mutable(type: Attribute) -> MemDescType:
    """Memory of the same form that may be written."""
    assert isinstance(type, MemDescType), type
    return memdesc_type(type.dims, type.element_type, type.encoding, True, type.alloc_dims, type.memory_space)
