"""`tt` ops that access memory: loads, stores and atomics, through pointers, descriptors and block pointers."""

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Self, cast

from xdsl.dialects.builtin import IntegerAttr, IntegerType, LocationAttr, Signedness, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    ANY,
    BLOCK_POINTER,
    BOOL_LIKE,
    DESCRIPTOR,
    I1_PROPERTY,
    I32,
    I32_ARRAY,
    I32_TENSOR,
    I64,
    POINTER,
    PTR_LIKE,
    TENSOR,
    SameEncoding,
    TensorSize,
    enum_property,
)
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.enums import (
    CacheModifier,
    DescriptorReduceKind,
    EvictionPolicy,
    MemSemantic,
    MemSyncScope,
    PaddingOption,
    RMWOp,
)
from tilework.ir.fields import (
    ACCESS,
    default_prop,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from tilework.ir.types import (
    GLOBAL_ADDRESS_SPACE,
    PointerType,
    Shape,
    TensorDescType,
    array_values,
    bit_width,
    element_type,
    i1,
    i32,
    i32_array,
    int_attr,
    integer_type,
    pointer_type,
    shape_of,
    tensor_type,
    tensordesc_type,
    with_element,
)


@cache
def loaded_type(pointer: Attribute) -> Attribute:
    """Return the type of a load from `pointer`: ``tensor<8x!tt.ptr<f32>>`` gives ``tensor<8xf32>``."""
    element = element_type(pointer)
    assert isinstance(element, PointerType), f"a pointer or a tensor of pointers is loaded from, not {pointer}"
    return with_element(pointer, element.pointee)


@cache
def mask_type(value: Attribute) -> Attribute:
    """The type of a mask for `value`: ``tensor<8xf32>`` gives ``tensor<8xi1>``."""
    return with_element(value, i1)


def cache_prop() -> IntegerAttr:
    """A property for the cache levels of an access."""
    return default_prop(enum_property(CacheModifier), CacheModifier.NONE)


def evict_prop() -> IntegerAttr:
    """A property for the eviction priority of the cache line."""
    return default_prop(enum_property(EvictionPolicy), EvictionPolicy.NORMAL)


class LoadOp(Op):
    """Read memory: ``%v = tt.load %p, %mask, %other cacheModifier = ca : tensor<64x!tt.ptr<f32>>``.

    Elements with a false mask are `other`, or undefined without it. `boundaryCheck` and `padding` are for block
    pointers only: the dimensions that may reach outside the tensor, and what is read there.
    """

    name = "tt.load"
    ptr = operand_def(PTR_LIKE)
    mask = opt_operand_def(BOOL_LIKE)
    other = opt_operand_def(ANY)
    result = result_def(ANY)
    boundary_check = default_prop(I32_ARRAY, (), "boundaryCheck")
    padding = opt_prop_def(enum_property(PaddingOption))
    cache = cache_prop()
    evict = evict_prop()
    is_volatile = default_prop(I1_PROPERTY, False, "isVolatile")
    form = ACCESS
    infer = {"result": (loaded_type, "ptr"), "mask": (mask_type, "result"), "other": "result"}
    traits = traits_def(MemoryReadEffect(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        loaded = loaded_type(self.ptr.type)
        if self.result.type != loaded:
            raise VerifyException(
                f"failed to verify that result matches ptr type: tt.load from {self.ptr.type} gives {loaded}, "
                f"not {self.result.type}"
            )
        verify_mask(self, self.mask, loaded)
        if self.other is not None and self.mask is None:
            raise VerifyException("tt.load with other needs a mask")
        if self.other is not None and self.other.type != loaded:
            raise VerifyException(
                f"failed to verify that other matches ptr type: tt.load of {loaded} cannot take {self.other.type}"
            )
        verify_boundary(self)


def verify_mask(op: Operation, mask: SSAValue | None, value: Attribute) -> None:
    """The mask has an i1 for each element of `value`."""
    if mask is not None and mask.type != mask_type(value):
        raise VerifyException(
            f"failed to verify that mask type matches ptr type: {op.name} of {value} needs a mask of"
            f" {mask_type(value)}, "
            f"but got {mask.type}"
        )


def verify_boundary(op: Operation) -> None:
    """Boundary checks are for block pointers and name their dimensions."""
    if not (axes := array_values(op.properties["boundaryCheck"])):
        return
    pointer = op.operands[0].type
    if not (isinstance(pointer, PointerType) and shape_of(pointer.pointee)):
        raise VerifyException(f"boundaryCheck is for block pointers, but {op.name} has {pointer}")
    rank = len(shape_of(pointer.pointee))
    if any(not 0 <= axis < rank for axis in axes):
        raise VerifyException(f"boundaryCheck {list(axes)} is out of range for {pointer}")


class StoreOp(Op):
    """Write memory where the mask is true: ``tt.store %p, %v, %mask : tensor<64x!tt.ptr<f32>>``."""

    name = "tt.store"
    ptr = operand_def(PTR_LIKE)
    value = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    boundary_check = default_prop(I32_ARRAY, (), "boundaryCheck")
    cache = cache_prop()
    evict = evict_prop()
    form = ACCESS
    infer = {"value": (loaded_type, "ptr"), "mask": (mask_type, "value")}
    traits = traits_def(MemoryWriteEffect(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        stored = loaded_type(self.ptr.type)
        if self.value.type != stored:
            raise VerifyException(
                f"failed to verify that value type matches ptr type: tt.store to {self.ptr.type} takes {stored}, "
                f"not {self.value.type}"
            )
        verify_mask(self, self.mask, stored)
        verify_boundary(self)


def verify_atomic(op: Operation, ptr: Attribute, value: Attribute, result: Attribute) -> None:
    """Pointer, value and result of an atomic agree; the memory is global."""
    element = element_type(ptr)
    assert isinstance(element, PointerType), element
    if (space := element.address_space.value.data) != GLOBAL_ADDRESS_SPACE:
        raise VerifyException(f"{op.name} needs pointers of address space {GLOBAL_ADDRESS_SPACE}, not {space}")
    if loaded_type(ptr) != value or result != value:
        operand = "cmp" if op.name == AtomicCASOp.name else "value"
        detail = f"{op.name} on {ptr} takes and gives {loaded_type(ptr)}, not {value} and {result}"
        raise VerifyException(f"failed to verify that ptr type matches {operand} type: {detail}")


class AtomicRMWOp(Op):
    """Change memory and give its old value.

    ``%old = tt.atomic_rmw fadd, acq_rel, gpu, %p, %v, %mask : (!tt.ptr<f32>, f32, i1) -> f32``
    """

    name = "tt.atomic_rmw"
    atomic_rmw_op = prop_def(enum_property(RMWOp))
    ptr = operand_def(PTR_LIKE)
    val = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    result = result_def(ANY)
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    form = "$atomic_rmw_op, $sem, $scope, $operands {} : signature"
    infer = {"result": "val"}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        verify_atomic(self, self.ptr.type, self.val.type, self.result.type)
        verify_mask(self, self.mask, self.val.type)


ORDERED = "tilework.ordered"


def mark_ordered(op: Operation) -> None:
    """Make an atomic deterministic: programs execute it in the order of their ids, each for its elements in order."""
    op.attributes[ORDERED] = UnitAttr()


def is_ordered(op: Operation) -> bool:
    return ORDERED in op.attributes


class OrderedBeginOp(Op):
    """Wait until all programs before this one (x fastest) have executed `tt.ordered_end`: ``tt.ordered_begin``."""

    name = "tt.ordered_begin"
    form = "{}"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


class OrderedEndOp(Op):
    """Release the next program from `tt.ordered_begin`, after all memory accesses so far: ``tt.ordered_end``."""

    name = "tt.ordered_end"
    form = "{}"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


class AtomicCASOp(Op):
    """Replace memory by `val` where it equals `cmp`, and give its old value.

    ``%old = tt.atomic_cas acq_rel, gpu, %p, %cmp, %v : (!tt.ptr<i32>, i32, i32) -> i32``

    A mask, which padded tiles have, leaves elements out.
    """

    name = "tt.atomic_cas"
    ptr = operand_def(PTR_LIKE)
    cmp = operand_def(ANY)
    val = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    result = result_def(ANY)
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    form = "$sem, $scope, $operands {} : signature"
    infer = {"result": "val"}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        verify_atomic(self, self.ptr.type, self.val.type, self.result.type)
        if self.cmp.type != self.val.type:
            raise VerifyException(f"tt.atomic_cas cannot compare {self.val.type} with {self.cmp.type}")
        verify_mask(self, self.mask, self.val.type)


# ---- `tt` ops on tensor descriptors and block pointers.
#
# A descriptor describes a global array that is read and written in blocks, with bounds checked by the hardware. A block
# pointer is one pointer to a whole block of a tensor in memory.


def element_pointer(block: Attribute) -> Attribute:
    """A pointer to an element of what `block` points to."""
    assert isinstance(block, PointerType), f"expected a pointer to a block, but got {block}"
    return pointer_type(element_type(block.pointee), block.address_space.value.data)


class MakeTensorPtrOp(Op):
    """A block of a tensor in memory, as one pointer.

    ``%p = tt.make_tensor_ptr %base, [%m, %n], [%sm, %sn], [%i, %j] {order = array<i32: 1, 0>} : <tensor<64x32xf16>>``
    """

    name = "tt.make_tensor_ptr"
    base = operand_def(POINTER)
    shape = var_operand_def(I64)
    strides = var_operand_def(I64)
    offsets = var_operand_def(I32)
    order = prop_def(I32_ARRAY)
    result = result_def(BLOCK_POINTER)
    form = "$base, [$shape], [$strides], [$offsets] {} : bare($result)"
    infer = {"base": (element_pointer, "result")}
    SAME_SIZES = True
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(
        cls,
        base: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        block_shape: Sequence[int],
        order: Sequence[int],
        loc: LocationAttr,
    ) -> Self:
        pointer = base.type
        assert isinstance(pointer, PointerType), pointer
        space = pointer.address_space.value.data
        block = tensor_type(tuple(block_shape), pointer.pointee)
        return create_op(
            cls, (base, *shape, *strides, *offsets), (pointer_type(block, space),), loc, {"order": i32_array(*order)}
        )

    def verify_(self) -> None:
        base, result = self.base.type, self.result.type
        assert isinstance(base, PointerType) and isinstance(result, PointerType)
        if base.pointee != element_type(result.pointee) or base.address_space != result.address_space:
            raise VerifyException(f"tt.make_tensor_ptr from {base} cannot give {result}")
        rank = len(shape_of(result.pointee))
        if len(self.shape) != rank:
            raise VerifyException(f"tt.make_tensor_ptr of rank {rank} has {len(self.shape)} sizes")
        if sorted(order := array_values(self.order)) != list(range(rank)):
            raise VerifyException(f"order must be a permutation of [0, ..., rank - 1], got {list(order)}")


class AdvanceOp(Op):
    """Move a block pointer by elements: ``%q = tt.advance %p, [%i, %j] : <tensor<64x32xf16>>``."""

    name = "tt.advance"
    ptr = operand_def(BLOCK_POINTER)
    offsets = var_operand_def(I32)
    result = result_def(BLOCK_POINTER)
    form = "$ptr, [$offsets] {} : bare($result)"
    infer = {"result": "ptr"}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        if self.ptr.type != self.result.type:
            raise VerifyException(f"tt.advance of {self.ptr.type} cannot give {self.result.type}")
        pointer = self.ptr.type
        assert isinstance(pointer, PointerType)
        if len(self.offsets) != (rank := len(shape_of(pointer.pointee))):
            raise VerifyException(f"tt.advance of rank {rank} has {len(self.offsets)} offsets")


@cache
def signless(type: Attribute) -> Attribute:
    """`type` with ``ui8`` and ``si8`` read as ``i8``: what every op but a descriptor sees."""
    element = element_type(type)
    if isinstance(element, IntegerType) and element.signedness.data != Signedness.SIGNLESS:
        return with_element(type, integer_type(element.width.data))
    return type


@cache
def block_type(descriptor: Attribute) -> Attribute:
    """The signless type of one block of a descriptor."""
    return signless(cast(TensorDescType, descriptor).block)  # or an im2col descriptor of `ttng`


class MakeTensorDescOp(Op):
    """Describe a global array by its base, sizes and strides.

    ``%d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16>>``
    """

    name = "tt.make_tensor_descriptor"
    base = operand_def(POINTER)
    shape = var_operand_def(I32)
    strides = var_operand_def(I64)
    padding = default_prop(enum_property(PaddingOption), PaddingOption.ZERO)
    result = result_def(DESCRIPTOR)
    form = "$base, [$shape], [$strides] {} : bare($base), bare($result)"
    SAME_SIZES = True
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(
        cls,
        base: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        block_type: Attribute,
        padding: PaddingOption,
        loc: LocationAttr,
    ) -> Self:
        return create_op(
            cls, (base, *shape, *strides), (tensordesc_type(block_type),), loc, {"padding": int_attr(padding, i32)}
        )

    def verify_(self) -> None:
        base, block = self.base.type, block_type(self.result.type)
        assert isinstance(base, PointerType)
        if signless(base.pointee) != element_type(block):
            raise VerifyException(f"tt.make_tensor_descriptor from {base} cannot give {self.result.type}")
        if len(self.shape) != (rank := len(shape_of(block))):
            raise VerifyException(f"tt.make_tensor_descriptor of rank {rank} has {len(self.shape)} sizes")


def is_block(descriptor: Attribute, shape: Shape, element: Attribute) -> bool:
    """Return True if this is a block of the descriptor, perhaps without leading dimensions of size 1."""
    block = block_type(descriptor)
    whole, dropped = shape_of(block), len(shape_of(block)) - len(shape)
    fits = dropped >= 0 and whole[dropped:] == shape and all(size == 1 for size in whole[:dropped])
    return fits and element_type(block) == element


def verify_access(op: Operation, descriptor: Attribute, value: Attribute, indices: Sequence[SSAValue]) -> None:
    """`value` is a block of the descriptor (`is_block`), at as many indices as that has dimensions."""
    block = block_type(descriptor)
    if len(indices) != len(shape_of(block)):
        raise VerifyException(f"{op.name} needs {len(shape_of(block))} indices for {descriptor}, got {len(indices)}")
    verify_contents(block, shape_of(value), element_type(value))
    if not is_block(descriptor, shape_of(value), element_type(value)):
        raise VerifyException(f"tensor descriptor block and tensor types must match: {block}, {value}")


def verify_contents(block: Attribute, shape: Shape, element: Attribute) -> None:
    """Check that memory or a tensor of `shape` has as many elements as a block, of the same type."""
    if element_type(block) != element:
        raise VerifyException(
            "descriptor block and tensor element types must match, but got descriptor element type "
            f"'{element_type(block)}' and tensor element type '{element}'"
        )
    if (wanted := prod(shape_of(block))) != (found := prod(shape)):
        raise VerifyException(
            "descriptor block and tensor must have the same number of elements, but got descriptor block with "
            f"{wanted} elements tensor with {found} elements"
        )


class DescriptorLoadOp(Op):
    """Read a block: ``%v = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>``."""

    name = "tt.descriptor_load"
    desc = operand_def(DESCRIPTOR)
    indices = var_operand_def(I32)
    cache = cache_prop()
    evict = evict_prop()
    result = result_def(TENSOR)
    form = "$desc[$indices](? cacheModifier = $cache)(? evictionPolicy = $evict) {} : type($desc) -> type($result)"
    infer = {"result": (block_type, "desc")}
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        verify_access(self, self.desc.type, self.result.type, self.indices)


class DescriptorStoreOp(Op):
    """Write a block: ``tt.descriptor_store %d[%i, %j], %v : !tt.tensordesc<tensor<8x8xf16>>, tensor<8x8xf16>``."""

    name = "tt.descriptor_store"
    desc = operand_def(DESCRIPTOR)
    src = operand_def(TENSOR)
    indices = var_operand_def(I32)
    form = "$desc[$indices], $src {} : type($desc), type($src)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        verify_access(self, self.desc.type, self.src.type, self.indices)


class DescriptorReduceOp(Op):
    """Combine a block with memory atomically: ``tt.descriptor_reduce add, %d[%i, %j], %v : ...``."""

    name = "tt.descriptor_reduce"
    kind = prop_def(enum_property(DescriptorReduceKind))
    desc = operand_def(DESCRIPTOR)
    src = operand_def(TENSOR)
    indices = var_operand_def(I32)
    form = "$kind, $desc[$indices], $src {} : type($desc), type($src)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        verify_access(self, self.desc.type, self.src.type, self.indices)


def verify_rows(op: Operation, descriptor: Attribute, x_offsets: Attribute, rows: Attribute) -> None:
    """Rows of a two-dimensional array, one per offset: the limits of the hardware's gather and scatter."""
    block = block_type(descriptor)
    width, offsets = shape_of(block), shape_of(x_offsets)
    if len(width) != 2 or width[0] != 1:
        raise VerifyException(f"descriptor block must have exactly 1 row, but got '{block}'")
    if len(offsets) != 1:
        raise VerifyException(f"{op.name} needs a 1-D tensor of offsets, but got {x_offsets}")
    bits = bit_width(block)
    if len(shape_of(rows)) != 2 or shape_of(rows)[0] != offsets[0]:
        raise VerifyException(f"result tensor must have as many rows as indices ({offsets[0]}), but got '{rows}'")
    if shape_of(rows)[1] != width[1]:
        raise VerifyException(f"result tensor number of columns must match block ({width[1]}), but got '{rows}'")
    if element_type(rows) != element_type(block):
        raise VerifyException(
            f"result tensor element type must match block ('{element_type(block)}'), but got '{rows}'"
        )
    if offsets[0] < 8:
        raise VerifyException(f"must have at least 8 rows, but got {offsets[0]}")
    if bits > 32:
        raise VerifyException(f"{op.name} must have elements of at most 32 bits, but got {element_type(block)}")
    if width[1] < 32 // bits * 8:
        raise VerifyException(
            f"must have at least {32 // bits * 8} columns for {element_type(block)}, but got {width[1]}"
        )


class DescriptorGatherOp(Op):
    """Read rows by index: ``%v = tt.descriptor_gather %d[%rows, %col] : (...) -> tensor<8x128xf16>``."""

    name = "tt.descriptor_gather"
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    result = result_def(TENSOR)
    form = "$desc[$x_offsets, $y_offset] {} : signature"
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        verify_rows(self, self.desc.type, self.x_offsets.type, self.result.type)


class DescriptorScatterOp(Op):
    """Write rows by index: ``tt.descriptor_scatter %d[%rows, %col], %v : ...``."""

    name = "tt.descriptor_scatter"
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    src = operand_def(TENSOR)
    form = "$desc[$x_offsets, $y_offset], $src {} : type($operands)"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        verify_rows(self, self.desc.type, self.x_offsets.type, self.src.type)
