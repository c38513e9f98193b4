"""`ttg` ops on shared memory: allocation, loads and stores, views, asynchronous copies, and scratch memory in global
memory.

The result of a view names memory of its operand; nothing is copied. Asynchronous copies are ``cp.async``:

    %a = ttg.async_copy_global_to_local %ptrs, %buffer mask %m : ...     start
    %b = ttg.async_commit_group tokens %a                                all since the last commit are one group
    %c = ttg.async_wait %b {num = 2 : i32}                               at most two groups are still in flight
    %x = ttg.local_load %buffer token %c : ...

`ttg.fetch` prefetches global memory into L2.
"""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Self

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    BOOL_LIKE,
    I1_PROPERTY,
    I32,
    I32_ARRAY,
    I32_PROPERTY,
    INT_TENSOR,
    POINTER,
    PTR_LIKE,
    RUN_PROPERTY,
    TENSOR,
    TensorSize,
    flags_property,
)
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.encodings import encoding_of, layout_of, shared_of
from tilework.ir.enums import AddrSpace
from tilework.ir.fields import (
    CONVERSION,
    default_prop,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from tilework.ir.tt.memory_ops import cache_prop, evict_prop, loaded_type, mask_type, verify_mask
from tilework.ir.tt.reduce_ops import verify_dot_shapes
from tilework.ir.tt.shape_ops import verify_order, verify_result
from tilework.ir.types import Shape, array_values, element_type, i8, i32_array, pointer_type, shape_of, string_attr
from tilework.layouts.encodings import Blocked, Shared
from tilework.layouts.infer import infer_memdesc_reshape, infer_memdesc_trans

if TYPE_CHECKING:
    pass
from tilework.ir.ttg.memory_types import MEMDESC, TOKEN, MemDescType, buffer_bytes, listed, memdesc_type, retyped


def verify_copy(source: Attribute, target: Attribute) -> None:
    """A tensor and memory, one copied to the other: the same shape and elements, and a rank that the encoding has."""
    memory = source if isinstance(source, MemDescType) else target
    assert isinstance(memory, MemDescType)
    before, after = shape_of(source), shape_of(target)
    if before != after:
        raise VerifyException(f"source shape [{listed(before)}] must match [destination shape {listed(after)}]")
    tensor = target if memory is source else source
    if (element := element_type(tensor)) != memory.element_type:
        pair = (memory.element_type, element) if memory is source else (element, memory.element_type)
        raise VerifyException(f"source element type '{pair[0]}' must match destination element type '{pair[1]}'")
    encoding = encoding_of(memory)
    if encoding is not None and encoding.rank != len(before):
        raise VerifyException(f"source has rank {len(before)} but memdesc encoding has rank {encoding.rank}")


class LocalAllocOp(Op):
    """Shared memory, perhaps filled with a tensor: ``%m = ttg.local_alloc %x : (T) -> !ttg.memdesc<...>``.

    Memory that is filled here and not mutable has the value of the tensor: the op is then as good as pure.
    """

    name = "ttg.local_alloc"
    src = opt_operand_def(TENSOR)
    alignment = opt_prop_def(I32_PROPERTY)
    result = result_def(MEMDESC)
    form = "(? $src) {} : signature"
    traits = traits_def(MemoryAllocEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        type = self.result.type
        assert isinstance(type, MemDescType)
        if type.dims != type.alloc_dims:
            raise VerifyException(f"result shape and its alloc shape must match: {type}")
        if self.src is not None:
            verify_copy(self.src.type, type)
        elif not type.is_mutable:
            raise VerifyException(f"uninitialized alloc must have a mutable memdesc type, but got {type}")


class LocalDeallocOp(Op):
    """The memory is not used any more: ``ttg.local_dealloc %m : !ttg.memdesc<...>``."""

    name = "ttg.local_dealloc"
    src = operand_def(MEMDESC)
    form = "$src {} : type($src)"
    traits = traits_def(MemoryFreeEffect())


class LocalLoadOp(Op):
    """Read shared memory: ``%x = ttg.local_load %m token %t : !ttg.memdesc<...> -> tensor<...>``.

    The token, if there is one, is that of a wait for the copies that wrote the memory.
    """

    name = "ttg.local_load"
    src = operand_def(MEMDESC)
    token = opt_operand_def(TOKEN)
    result = result_def(TENSOR)
    form = "$src(? token $token) {} : type($src) -> type($result)"
    traits = traits_def(MemoryReadEffect(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, type: Attribute, loc: LocationAttr, token: SSAValue | None = None) -> Self:
        return create_op(cls, (src,) if token is None else (src, token), (type,), loc)

    def verify_(self) -> None:
        verify_copy(self.src.type, self.result.type)


class LocalDotOp(Op):
    """``d = a @ b + c`` with both factors in shared memory, one multiplication at a time: each thread reads what it
    multiplies next.

    ``%d = ttg.local_dot %a, %b, %c : !ttg.memdesc<64x32xf16, ...> * !ttg.memdesc<32x64xf16, ...> -> tensor<64x64xf32,
    #blocked>``

    Factors may have fewer bits than the sums. Only what becomes LLVM text has it
    (`transforms/ttg/dots_from_memory.py`).
    """

    name = "ttg.local_dot"
    a = operand_def(MEMDESC)
    b = operand_def(MEMDESC)
    c = operand_def(TENSOR)
    d = result_def(TENSOR)
    form = "$a, $b, $c {} : type($a) * type($b) -> type($d)"
    infer = {"d": "c"}
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        verify_dot_shapes(self, shape_of(self.a.type), shape_of(self.b.type), shape_of(self.d.type))
        if not isinstance(encoding_of(self.d.type), Blocked):
            raise VerifyException(f"ttg.local_dot needs a blocked layout of its sums: {self.d.type}")


class LocalStoreOp(Op):
    """Write shared memory: ``ttg.local_store %x, %m : tensor<...> -> !ttg.memdesc<..., mutable>``."""

    name = "ttg.local_store"
    src = operand_def(TENSOR)
    dst = operand_def(MEMDESC)
    form = "$src, $dst {} : type($src) -> type($dst)"
    traits = traits_def(MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_copy(self.src.type, self.dst.type)


def verify_indexed(
    memory: Attribute, indices: Attribute, values: Attribute, axis: int, role: str, moved: str, layouts: str
) -> None:
    """Check the types of a gather or scatter along an axis: there are as many `values` as `indices`, in the same
    layout. Messages call the memory `role` and the values `moved`, and say `layouts` if these differ."""
    assert isinstance(memory, MemDescType)
    shape, index_shape = memory.dims, shape_of(indices)
    if shape_of(values) != index_shape:
        raise VerifyException(f"{moved} shape must match indices shape")
    if element_type(values) != memory.element_type:
        raise VerifyException(f"{moved} element type must match {role} element type")
    if len(shape) != len(index_shape):
        raise VerifyException(f"{role} and indices must have the same rank")
    if not 0 <= axis < len(shape):
        raise VerifyException(f"axis {axis % (1 << 32)} is out of bounds for {role} rank {len(shape)}")
    if encoding_of(indices) != encoding_of(values):
        raise VerifyException(layouts)
    encoding = encoding_of(memory)
    if encoding is not None and encoding.rank != len(shape):
        raise VerifyException(f"{role} has rank {len(shape)} but memdesc encoding has rank {encoding.rank}")
    for dim, (wanted, size) in enumerate(zip(index_shape, shape, strict=True)):
        if dim != axis and wanted > size:
            raise VerifyException(f"indices of dimension {dim} reach {wanted}, but the {role} has {size} elements")


class LocalGatherOp(Op):
    """Read elements of shared memory by their index along an axis: ``r[i, j] = m[idx[i, j], j]`` for axis 0.

    ``%r = ttg.local_gather %m[%idx] token %t {axis = 0 : i32} : !ttg.memdesc<...>, tensor<...> -> tensor<...>``
    """

    name = "ttg.local_gather"
    src = operand_def(MEMDESC)
    indices = operand_def(INT_TENSOR)
    token = opt_operand_def(TOKEN)
    axis = prop_def(I32_PROPERTY)
    result = result_def(TENSOR)
    form = "$src[$indices](? token $token) {} : type($src), type($indices) -> type($result)"
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        layouts = "indices and result must have the same layout"
        axis = self.axis.value.data
        verify_indexed(self.src.type, self.indices.type, self.result.type, axis, "source", "result", layouts)


class LocalScatterOp(Op):
    """Write elements of shared memory by their index along an axis: ``m[i, idx[i, j]] = v[i, j]`` for axis 1. One of
    several values for an element remains.

    ``ttg.local_scatter %m[%idx], %v token %t {axis = 1 : i32} : !ttg.memdesc<...>, tensor<...>, tensor<...>``
    """

    name = "ttg.local_scatter"
    dst = operand_def(MEMDESC)
    indices = operand_def(INT_TENSOR)
    values = operand_def(TENSOR)
    token = opt_operand_def(TOKEN)
    axis = prop_def(I32_PROPERTY)
    form = "$dst[$indices], $values(? token $token) {} : type($dst), type($indices), type($values)"
    traits = traits_def(MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        require_mutable("Cannot store into immutable memory", self.dst.type)
        layouts = "values must have the same layout as indices"
        axis = self.axis.value.data
        verify_indexed(self.dst.type, self.indices.type, self.values.type, axis, "destination", "values", layouts)


def require_mutable(message: str, type: Attribute) -> None:
    """Refuse to write memory that is not ``mutable``."""
    assert isinstance(type, MemDescType)
    if not type.is_mutable:
        raise VerifyException(f"{message}: {type}")


class BarrierOp(Op):
    """All threads of the block wait for each other, and see each other's accesses to the memory that is named:
    ``ttg.barrier local|global_read``."""

    name = "ttg.barrier"
    addr_space = prop_def(flags_property(AddrSpace), prop_name="addrSpace")
    form = "$addr_space {}"

    def makes_visible(self, spaces: int) -> bool:
        """Return True if accesses to one of the `spaces` are visible behind the barrier."""
        return self.addr_space.value.data & spaces != 0


def is_local_barrier(op: Operation | None) -> bool:
    """Return True for a barrier that makes accesses to shared memory visible."""
    return isinstance(op, BarrierOp) and op.makes_visible(AddrSpace.LOCAL)


DEFAULT_BACKEND = "default"


class GlobalScratchAllocOp(Op):
    """Global memory of this program: ``%p = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 128 : i32} :
    T``.

    Memory of another `backend` than "default" is given by tools that are not here.
    """

    name = "ttg.global_scratch_alloc"
    nbytes = prop_def(I32_PROPERTY)
    alignment = prop_def(I32_PROPERTY)
    backend = prop_def(StringAttr, default_value=string_attr(DEFAULT_BACKEND))
    result = result_def(POINTER)
    form = "{} : type($result)"
    infer = {"result": pointer_type(i8)}
    traits = traits_def(MemoryAllocEffect())

    @property
    def is_default(self) -> bool:
        """Return True if a launch gives the memory."""
        return self.backend.data == DEFAULT_BACKEND


def view_types(op: Operation) -> tuple[MemDescType, MemDescType]:
    """The types of the memory and of the view, which agree on the elements and on `mutable`; some views may lose it."""
    source, result = op.operands[0].type, op.results[0].type
    assert isinstance(source, MemDescType) and isinstance(result, MemDescType)
    if source.element_type != result.element_type and not isinstance(op, MemDescReinterpretOp):
        raise VerifyException(f"result element type must match desc element type: {source}, {result}")
    may_lose = source.is_mutable and isinstance(op, MemDescIndexOp | MemDescSubsliceOp | MemDescReinterpretOp)
    if source.is_mutable != result.is_mutable and not may_lose:
        raise VerifyException(f"result mutability must match source mutability: {source}, {result}")
    return source, result


@cache
def indexed_type(type: MemDescType) -> MemDescType:
    """Return the type of one buffer of several."""
    return retyped(type, type.dims[1:])


class MemDescIndexOp(Op):
    """One of several buffers: ``%b = ttg.memdesc_index %m[%i] : !ttg.memdesc<3x64x64...> ->
    !ttg.memdesc<64x64...>``."""

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
    """A part at fixed offsets: ``%s = ttg.memdesc_subslice %m[0, 16] : !ttg.memdesc<64x64..> -> !ttg.memdesc<64x16..,
    64x64>``.

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
    """Check that only dimensions that shrink have offsets, that these are multiples of the new size, and that no
    swizzle is cut."""
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
            element = inverse.apply(**{f"dim{axis}": step if axis == dim else 0 for axis in range(len(source.dims))})
            if element["offset"] & (element["offset"] - 1):
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


@cache
def copied_mask_type(pointers: Attribute) -> Attribute:
    return mask_type(loaded_type(pointers))


class AsyncCopyGlobalToLocalOp(Op):
    """Start copying elements from pointers to shared memory.

    ``%t = ttg.async_copy_global_to_local %p, %m mask %k other %o {contiguity = 8 : i32} : tensor<...> -> <64x64xf16,
    ...>``

    `contiguity` is the least number of elements that are contiguous both in memory and in the buffer.
    """

    name = "ttg.async_copy_global_to_local"
    src = operand_def(PTR_LIKE)
    dst = operand_def(MEMDESC)
    mask = opt_operand_def(BOOL_LIKE)
    other = opt_operand_def(TENSOR)
    cache = cache_prop()
    evict = evict_prop()
    is_volatile = default_prop(I1_PROPERTY, False, "isVolatile")
    contiguity = default_prop(RUN_PROPERTY, 1)
    token = result_def(TOKEN)
    form = (
        "$src, $dst(? mask $mask)(? other $other)(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : "
        "type($src) -> bare($dst)"
    )
    infer = {"mask": (copied_mask_type, "src"), "other": (loaded_type, "src")}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        loaded = loaded_type(self.src.type)
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_copy(loaded, self.dst.type)
        verify_mask(self, self.mask, loaded)
        if self.other is not None and self.other.type != loaded:
            raise VerifyException(f"{self.name} of {loaded} cannot take {self.other.type} as other")


class AsyncCommitGroupOp(Op):
    """All copies since the last commit are one group: ``%g = ttg.async_commit_group tokens %a, %b``."""

    name = "ttg.async_commit_group"
    tokens = var_operand_def(TOKEN)
    token = result_def(TOKEN)
    form = "(? tokens $tokens) {}"


class AsyncWaitOp(Op):
    """Wait until at most `num` groups are under way: ``%t = ttg.async_wait %g {num = 2 : i32}``."""

    name = "ttg.async_wait"
    tokens = var_operand_def(TOKEN)
    num = prop_def(I32_PROPERTY)
    token = result_def(TOKEN)
    form = "(? $tokens) {}"

    def verify_(self) -> None:
        if self.num.value.data < 0:
            raise VerifyException(f"ttg.async_wait for {self.num.value.data} groups: the number is not negative")


LINE = 128  # bytes that are fetched at a time


class FetchOp(Op):
    """Prefetch the memory of pointers into L2, the cache of all multiprocessors, without waiting for it.

    ``ttg.fetch %p mask %m : tensor<4096x!tt.ptr<bf16>, #blocked>``
    """

    name = "ttg.fetch"
    src = operand_def(PTR_LIKE)
    mask = opt_operand_def(BOOL_LIKE)
    form = "$src(? mask $mask) {} : type($src)"
    infer = {"mask": (copied_mask_type, "src")}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())  # that it writes keeps it

    def verify_(self) -> None:
        verify_mask(self, self.mask, loaded_type(self.src.type))
