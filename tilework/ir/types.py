"""Types and attributes, interned: equal arguments give the same object.

Building an attribute in xDSL verifies it (about 13 us); a compile builds the same few hundred times. Every type
and constant of the compiler is therefore made by the cached functions here; of numbers and strings, the most recent
ones are cached:

    >>> str(tensor_type((128,), pointer_type(f32)))
    'tensor<128x!tt.ptr<f32>>'
    >>> tensor_type((128,), i32) is tensor_type((128,), i32)
    True

The questions passes ask of types (`is_tensor`, `element_type`, `shape_of`) are here too, as plain functions that
cost no more than an attribute look-up.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    NoneAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.utils.exceptions import VerifyException

if TYPE_CHECKING:
    from xdsl.parser import AttrParser
    from xdsl.printer import Printer

Shape: TypeAlias = tuple[int, ...]
Tensor: TypeAlias = TensorType[Attribute]

NO_ENCODING = NoneAttr()
GLOBAL_ADDRESS_SPACE = 1
RECENT = 1 << 14  # cached names, numbers and locations: each kernel has others, and a process may compile thousands


def cached_hash(self: ParametrizedAttribute) -> int:
    """`__hash__`, computed once. Assign it in the class body, or the decorator replaces it."""
    if (memo := vars(self).get("_hash")) is None:
        memo = vars(self)["_hash"] = hash((type(self), self.parameters))
    return memo


for hashed_often in (IntegerType, IntegerAttr, TensorType):  # xDSL's own compare every field, and these fields theirs
    hashed_often.__hash__ = cached_hash


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """The address of a `pointee`: ``!tt.ptr<f32>``; of a whole block: ``!tt.ptr<tensor<64x32xf16>>``.

    The address space is printed unless it is 1 (global memory): ``!tt.ptr<f32, 3>``.
    """

    name = "tt.ptr"
    pointee: Attribute
    address_space: IntegerAttr = param_def()
    __hash__ = cached_hash

    @classmethod
    def parse_parameters(cls, parser: "AttrParser") -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            pointee = parser.parse_type()
            position = parser.pos
            space = parser.parse_integer() if parser.parse_optional_punctuation(",") else GLOBAL_ADDRESS_SPACE
            if not 0 <= space < 1 << 31:
                parser.raise_error(f"there is no address space {space}", position)
        return (pointee, int_attr(space, i32))

    def print_parameters(self, printer: "Printer") -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.pointee)
            if (space := self.address_space.value.data) != GLOBAL_ADDRESS_SPACE:
                printer.print_string(f", {space}")


def read_block(parser: "AttrParser") -> Attribute:
    """The block of a descriptor, ``<tensor<64x64xf16, #shared>>``; Triton 3.8 writes ``<64x64xf16, #shared>``."""
    with parser.in_angle_brackets():
        if (block := parser.parse_optional_type()) is not None:
            return block
        shape, element = parser.parse_ranked_shape()
        encoding = parser.parse_attribute() if parser.parse_optional_punctuation(",") else NO_ENCODING
        return tensor_type(tuple(shape), element, encoding)


@irdl_attr_definition
class TensorDescType(ParametrizedAttribute, TypeAttribute):
    """A view of a global array that is read and written in blocks: ``!tt.tensordesc<tensor<64x64xf16>>``."""

    name = "tt.tensordesc"
    block: Attribute
    __hash__ = cached_hash

    @classmethod
    def parse_parameters(cls, parser: "AttrParser") -> Sequence[Attribute]:
        return (read_block(parser),)

    def verify(self) -> None:
        if not isinstance(self.block, TensorType):
            raise VerifyException(f"a tensor descriptor is of a ranked tensor, not of {self.block}")


i1, i4, i8, i16, i32, i64 = (IntegerType(width) for width in (1, 4, 8, 16, 32, 64))
f16, bf16, f32, f64 = Float16Type(), BFloat16Type(), Float32Type(), Float64Type()
f8E4M3FN, f8E4M3FNUZ = Float8E4M3FNType(), Float8E4M3FNUZType()
f8E5M2, f8E5M2FNUZ = Float8E5M2Type(), Float8E5M2FNUZType()
index = IndexType()

FLOAT_WIDTHS: dict[type[Attribute], int] = {
    type(float): float.bitwidth for float in (f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, f16, bf16, f32, f64)
}


@cache
def integer_type(width: int) -> IntegerType:
    """The signless integer of `width` bits."""
    return IntegerType(width)


@cache
def tensor_type(shape: Shape, element: Attribute, encoding: Attribute = NO_ENCODING) -> Tensor:
    """``tensor<SHAPExELEMENT>``, with an encoding in TTGIR. `shape` is a tuple of ints."""
    return TensorType(element, shape, encoding)


@cache
def pointer_type(pointee: Attribute, address_space: int = GLOBAL_ADDRESS_SPACE) -> PointerType:
    """``!tt.ptr<pointee>``."""
    return PointerType(pointee, int_attr(address_space, i32))


@cache
def tensordesc_type(block: Attribute) -> TensorDescType:
    """``!tt.tensordesc<block>``."""
    return TensorDescType(block)


@lru_cache(maxsize=RECENT)
def int_attr(value: int, type: Attribute) -> IntegerAttr:
    """``value : type``; the value is taken modulo the width, as MLIR prints it (signed; `true`/`false` for i1)."""
    if isinstance(type, IntegerType):
        width = type.width.data
        value &= (1 << width) - 1
        if width > 1 and value >> (width - 1):
            value -= 1 << width
        elif width == 1 and value:
            value = -1
    return IntegerAttr(value, type)  # pyright: ignore[reportCallIssue, reportArgumentType]


@cache
def i32_array(*values: int) -> DenseArrayBase:
    """``array<i32: 1, 0>``."""
    return DenseArrayBase.from_list(i32, values)


@cache
def array_values(array: Attribute) -> tuple[int, ...]:
    """The integers of ``array<i32: 1, 0>``."""
    assert isinstance(array, DenseArrayBase), array
    return tuple(int(value) for value in array.iter_values())  # pyright: ignore[reportAttributeAccessIssue]


@lru_cache(maxsize=RECENT)
def string_attr(text: str) -> StringAttr:
    """``"text"``."""
    return StringAttr(text)


def is_descriptor(type: Attribute) -> bool:
    return type.__class__ is TensorDescType


def int_property(op: Operation, name: str, default: int = 0) -> int:
    """Return an integer property, or the code of an enum property; `default` if `op` does not have it."""
    found = op.properties.get(name)
    return default if found is None else found.value.data  # pyright: ignore[reportAttributeAccessIssue]


def with_shape(type: Attribute, shape: Shape) -> Tensor:
    """A tensor of `shape` with the elements and the layout of another."""
    assert isinstance(type, TensorType), type
    return tensor_type(shape, type.element_type, type.encoding)


def axis_of(op: Operation) -> int:
    return int_property(op, "axis")


def is_tensor(type: Attribute) -> bool:
    """A ranked tensor, with or without encoding."""
    return type.__class__ is TensorType  # final; `isinstance` calls the ABC for every other type


def element_type(type: Attribute) -> Attribute:
    """The element of a tensor; any other type is its own element."""
    return type.element_type if type.__class__ is TensorType else type  # pyright: ignore[reportAttributeAccessIssue]


def shape_of(type: Attribute) -> Shape:
    """The dimensions of a tensor or memory descriptor; () for a scalar."""
    if type.__class__ is not TensorType:
        return getattr(type, "dims", ())
    if (memo := vars(type).get("_shape")) is None:
        memo = vars(type)["_shape"] = tuple(type.get_shape())  # pyright: ignore[reportAttributeAccessIssue]
    return memo


def is_odd(type: Attribute) -> bool:
    """A tensor with a size that is no power of two."""
    return any(size & (size - 1) for size in shape_of(type))


@cache
def with_element(type: Attribute, element: Attribute) -> Attribute:
    """`type` with another element: same shape and encoding, or the scalar itself."""
    return tensor_type(shape_of(type), element, type.encoding) if isinstance(type, TensorType) else element


def is_pointer(type: Attribute) -> bool:
    """A scalar pointer (to data or to a block)."""
    return type.__class__ is PointerType


def is_block_pointer(type: Attribute) -> bool:
    """``!tt.ptr<tensor<...>>``."""
    return isinstance(type, PointerType) and isinstance(type.pointee, TensorType)


def is_float(type: Attribute) -> bool:
    """A scalar float of any width."""
    return type.__class__ in FLOAT_WIDTHS


def is_integer(type: Attribute) -> bool:
    """A scalar integer (not `index`)."""
    return type.__class__ is IntegerType


@cache
def bit_width(type: Attribute) -> int:
    """Bits of one element: ``tensor<4xf16>`` gives 16, pointers and `index` 64; memory descriptors as tensors."""
    element = getattr(type, "element_type", type)
    if isinstance(element, IntegerType):
        return element.width.data
    return FLOAT_WIDTHS.get(element.__class__, 64)


def tile_bits(type: Attribute) -> int:
    """Bits of all elements: ``tensor<4x8xf16>`` gives 512."""
    return prod(shape_of(type)) * bit_width(type)
