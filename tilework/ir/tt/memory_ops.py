"""`tt` ops that access memory through pointers: loads, stores and atomics."""

from functools import cache

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    ANY,
    BOOL_LIKE,
    I1_PROPERTY,
    I32_ARRAY,
    PTR_LIKE,
    SameEncoding,
    TensorSize,
    enum_property,
)
from tilework.ir.declare import Op
from tilework.ir.enums import CacheModifier, EvictionPolicy, MemSemantic, MemSyncScope, PaddingOption, RMWOp
from tilework.ir.fields import (
    default_prop,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from tilework.ir.forms import ACCESS
from tilework.ir.types import GLOBAL_ADDRESS_SPACE, PointerType, array_values, element_type, i1, shape_of, with_element


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
