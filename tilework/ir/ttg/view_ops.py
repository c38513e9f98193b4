"""`ttg` ops that look at memory in another way: the result names memory of the operand, nothing is copied."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I32, I32_ARRAY
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.encodings import layout_of, shared_of
from tilework.ir.forms import CONVERSION
from tilework.ir.tt.inference import verify_order, verify_result
from tilework.ir.ttg.memdesc_types import MEMDESC, MemDescType, buffer_bytes, memdesc_type, retyped
from tilework.ir.types import Shape, array_values, i32_array
from tilework.layouts.encodings import Shared
from tilework.layouts.infer import infer_memdesc_reshape, infer_memdesc_trans


def view_types(op: IRDLOperation) -> tuple[MemDescType, MemDescType]:
    """The types of the memory and of the view, which agree on the elements and on `mutable`; one of several buffers may lose it."""
    source, result = op.operands[0].type, op.results[0].type
    assert isinstance(source, MemDescType) and isinstance(result, MemDescType)
    if source.element_type != result.element_type and not isinstance(op, MemDescReinterpretOp):
        raise VerifyException(f"result element type must match desc element type: {source}, {result}")
    if source.is_mutable != result.is_mutable and not (source.is_mutable and isinstance(op, MemDescIndexOp)):
        raise VerifyException(f"result mutability must match source mutability: {source}, {result}")
    return source, result


@cache
def indexed_type(type: MemDescType) -> MemDescType:
    """One buffer of several."""
    return retyped(type, type.dims[1:])


class MemDescIndexOp(Op):
    """One of several buffers: ``%b = ttg.memdesc_index %m[%i] : !ttg.memdesc<3x64x64...> -> !ttg.memdesc<64x64...>``."""

    name = "ttg.memdesc_index"
    src = operand_def(MEMDESC)
    index = operand_def(I32)
    result = result_def(MEMDESC)
    form = "$src[$index] {} : type($src) -> type($result)"
    infer = {"result": (indexed_type, "src")}
    traits = traits_def(Pure())

    def verify_(self) -> None:
        source, result = view_types(self)
        if len(result.dims) != len(source.dims) - 1:
            raise VerifyException(f"result rank must be input rank - 1: {source}, {result}")
        if source.alloc_dims != source.dims:
            raise VerifyException(f"We don't support memdesc_index of a subview: {source}")
        if result.alloc_dims != result.dims:
            raise VerifyException(f"alloc shape must match shape for both result and src: {source}, {result}")
        if result.dims != source.dims[1:]:
            raise VerifyException(f"result shape must equal to srcShape[1:]: {source}, {result}")


class MemDescSubsliceOp(Op):
    """A part at fixed offsets: ``%s = ttg.memdesc_subslice %m[0, 16] : !ttg.memdesc<64x64..> -> !ttg.memdesc<64x16.., 64x64>``.

    The part must not cut the pattern of a swizzle: a step in a split dimension moves one bit of the offset.
    """

    name = "ttg.memdesc_subslice"
    src = operand_def(MEMDESC)
    offsets = prop_def(I32_ARRAY)
    result = result_def(MEMDESC)
    form = "$src$offsets {} : type($src) -> type($result)"
    traits = traits_def(Pure())

    @classmethod
    def make(cls, src: SSAValue, offsets: Sequence[int], shape: Shape, loc: LocationAttr) -> Self:
        type = retyped(src.type, shape, keep_alloc=True)  # pyright: ignore[reportArgumentType]
        return create_op(cls, (src,), (type,), loc, {"offsets": i32_array(*offsets)})

    def verify_(self) -> None:
        source, result = view_types(self)
        offsets = array_values(self.offsets)
        if len(offsets) != len(source.dims):
            raise VerifyException(f"offsets must have the same rank as input: {list(offsets)}, {source}")
        if len(result.dims) != len(source.dims):
            raise VerifyException(f"result rank must equal to input rank: {source}, {result}")
        if source.encoding != result.encoding:
            raise VerifyException(f"src and result must have the same encoding: {source}, {result}")
        if result.alloc_dims != source.alloc_dims:
            raise VerifyException(f"src and result must have the same alloc shape: {source}, {result}")
        verify_offsets(offsets, source, result)


def verify_offsets(offsets: Sequence[int], source: MemDescType, result: MemDescType) -> None:
    """Only dimensions that shrink have offsets, these are multiples of the new size, and no swizzle is cut."""
    for dim, (offset, old, new) in enumerate(zip(offsets, source.dims, result.dims, strict=True)):
        if new > old:
            raise VerifyException(f"result shape cannot be larger than input shape at dimension {dim}: {new}, {old}")
        if new == old and offset:
            raise VerifyException(f"A non zero offset found in a dimension that is not being split: {offset}, {dim}")
        if new != old and offset % new:
            raise VerifyException(f"The split offset may not touch the tile: {offset} is not a multiple of {new}")
        if offset + new > old:
            raise VerifyException(f"dimension {dim} has {old} elements, but {new} from {offset} are taken")
    split = [dim for dim, (old, new) in enumerate(zip(source.dims, result.dims, strict=True)) if old != new]
    encoding = shared_encoding(source)
    if not split or encoding.intervals:
        return
    if encoding.rank != len(source.dims):
        raise VerifyException(f"a buffer of several is taken with ttg.memdesc_index, not sliced: {source}")
    inverse = layout_of(source).pseudoinvert()
    for dim in split:
        step = result.dims[dim]
        while step < source.dims[dim]:
            place = inverse.apply(**{f"dim{axis}": step if axis == dim else 0 for axis in range(len(source.dims))})
            if place["offset"] & (place["offset"] - 1):
                raise VerifyException(f"We don't support splitting along the swizzling pattern: {source}, {result}")
            step *= 2


@cache
def transposed_memdesc(type: MemDescType, order: tuple[int, ...]) -> MemDescType:
    """`type` with dimension i taken from dimension ``order[i]``, with the encoding that leaves the memory as it is."""
    encoding = infer_memdesc_trans(shared_encoding(type), order, type.dims)
    extra = len(type.alloc_dims) - len(order)
    alloc = (*type.alloc_dims[:extra], *(type.alloc_dims[extra + axis] for axis in order))
    shape = tuple(type.dims[axis] for axis in order)
    return memdesc_type(shape, type.element_type, encoding, type.is_mutable, alloc, type.memory_space)


def shared_encoding(type: MemDescType) -> Shared:
    """The encoding of memory."""
    encoding = shared_of(type)
    assert encoding is not None, type
    return encoding


class MemDescTransOp(Op):
    """Permute dimensions: ``%y = ttg.memdesc_trans %x {order = array<i32: 1, 0>} : !ttg.memdesc<...> -> ...``."""

    name = "ttg.memdesc_trans"
    src = operand_def(MEMDESC)
    order = prop_def(I32_ARRAY)
    result = result_def(MEMDESC)
    form = CONVERSION
    infer = {"result": (transposed_memdesc, "src", "order")}
    traits = traits_def(Pure())

    def verify_(self) -> None:
        source, result = view_types(self)
        order = array_values(self.order)
        verify_order(self.name, order, source, result)
        verify_result(result, transposed_memdesc, source, order)


@cache
def reshaped_memdesc(type: MemDescType, shape: Shape) -> MemDescType:
    """The same memory in another shape, with the encoding that says so."""
    return retyped(type, shape, infer_memdesc_reshape(type.dims, shared_encoding(type), shape))


class MemDescReshapeOp(Op):
    """The same elements in another shape: ``%y = ttg.memdesc_reshape %x : !ttg.memdesc<...> -> !ttg.memdesc<...>``."""

    name = "ttg.memdesc_reshape"
    src = operand_def(MEMDESC)
    result = result_def(MEMDESC)
    form = CONVERSION
    traits = traits_def(Pure())

    @classmethod
    def make(cls, src: SSAValue, shape: Shape, loc: LocationAttr) -> Self:
        return create_op(cls, (src,), (reshaped_memdesc(src.type, tuple(shape)),), loc)  # pyright: ignore

    def verify_(self) -> None:
        source, result = view_types(self)
        if prod(source.dims) != prod(result.dims):
            raise VerifyException(f"number of src and dst elements of reshape must be the same: {source}, {result}")
        if source.alloc_dims != source.dims:
            raise VerifyException(f"memdesc_reshape of memdesc_subslice is not supported: {source}")
        verify_result(result, reshaped_memdesc, source, result.dims)


class MemDescReinterpretOp(Op):
    """Contiguous memory under another type: ``%y = ttg.memdesc_reinterpret %x : !ttg.memdesc<...> -> ...``."""

    name = "ttg.memdesc_reinterpret"
    src = operand_def(MEMDESC)
    result = result_def(MEMDESC)
    form = CONVERSION
    traits = traits_def(Pure())

    def verify_(self) -> None:
        source, result = view_types(self)
        for type in (source, result):
            if type.alloc_dims[len(type.alloc_dims) - len(type.dims) :] != type.dims:
                raise VerifyException(f"ttg.memdesc_reinterpret needs a whole buffer, but got {type}")
        if buffer_bytes(result) > buffer_bytes(source):
            raise VerifyException(f"{result} is larger than the memory behind it, {source}")
