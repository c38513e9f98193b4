"""`tt` ops that load and store through pointers."""

from functools import cache

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
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
from tilework.ir.declare import Op, op_definition
from tilework.ir.enums import (
    CacheModifier,
    EvictionPolicy,
    PaddingOption,
)
from tilework.ir.forms import ACCESS
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_clause,
    print_clause,
)
from tilework.ir.types import (
    PointerType,
    array_values,
    element_type,
    i1,
    i32,
    i32_array,
    int_attr,
    shape_of,
    with_element,
)


@cache
def loaded_type(pointer: Attribute) -> Attribute:
    """What a load from `pointer` gives: ``tensor<8x!tt.ptr<f32>>`` gives ``tensor<8xf32>``."""
    element = element_type(pointer)
    assert isinstance(element, PointerType), f"a pointer or a tensor of pointers is loaded from, not {pointer}"
    return with_element(pointer, element.pointee)


@cache
def mask_type(value: Attribute) -> Attribute:
    """The type of a mask for `value`: ``tensor<8xf32>`` gives ``tensor<8xi1>``."""
    return with_element(value, i1)


@cache
def cache_properties(cache: CacheModifier, evict: EvictionPolicy) -> Attributes:
    """The properties `cache` and `evict` of any memory op."""
    return {"cache": int_attr(cache, i32), "evict": int_attr(evict, i32)}


LOAD_DEFAULTS = cache_properties(CacheModifier.NONE, EvictionPolicy.NORMAL)


def parse_cache_clauses(parser: Parser) -> Attributes:
    """``cacheModifier = K`` and ``evictionPolicy = K``, each perhaps missing."""
    found = {
        "cache": parse_clause(parser, "cacheModifier", CacheModifier),
        "evict": parse_clause(parser, "evictionPolicy", EvictionPolicy),
    }
    return {name: value for name, value in found.items() if value is not None}


def print_cache_clauses(printer: Printer, properties: Attributes) -> None:
    """The two clauses where they are not the default."""
    print_clause(printer, "cacheModifier", CacheModifier, properties.get("cache"), CacheModifier.NONE)
    print_clause(printer, "evictionPolicy", EvictionPolicy, properties.get("evict"), EvictionPolicy.NORMAL)


@op_definition
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
    boundary_check = prop_def(I32_ARRAY, default_value=i32_array(), prop_name="boundaryCheck")
    padding = opt_prop_def(enum_property(PaddingOption))
    cache = prop_def(enum_property(CacheModifier), default_value=LOAD_DEFAULTS["cache"])
    evict = prop_def(enum_property(EvictionPolicy), default_value=LOAD_DEFAULTS["evict"])
    is_volatile = prop_def(I1_PROPERTY, default_value=int_attr(0, i1), prop_name="isVolatile")
    form = ACCESS
    infer = {"result": (loaded_type, "ptr"), "mask": (mask_type, "result"), "other": "result"}
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
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


def verify_mask(op: IRDLOperation, mask: SSAValue | None, value: Attribute) -> None:
    """The mask has an i1 for each element of `value`."""
    if mask is not None and mask.type != mask_type(value):
        raise VerifyException(
            f"failed to verify that mask type matches ptr type: {op.name} of {value} needs a mask of {mask_type(value)}, "
            f"but got {mask.type}"
        )


def verify_boundary(op: IRDLOperation) -> None:
    """Boundary checks are for block pointers and name their dimensions."""
    if not (axes := array_values(op.properties["boundaryCheck"])):
        return
    pointer = op.operands[0].type
    if not (isinstance(pointer, PointerType) and shape_of(pointer.pointee)):
        raise VerifyException(f"boundaryCheck is for block pointers, but {op.name} has {pointer}")
    rank = len(shape_of(pointer.pointee))
    if any(not 0 <= axis < rank for axis in axes):
        raise VerifyException(f"boundaryCheck {list(axes)} is out of range for {pointer}")


@op_definition
class StoreOp(Op):
    """Write memory where the mask is true: ``tt.store %p, %v, %mask : tensor<64x!tt.ptr<f32>>``."""

    name = "tt.store"
    ptr = operand_def(PTR_LIKE)
    value = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    boundary_check = prop_def(I32_ARRAY, default_value=i32_array(), prop_name="boundaryCheck")
    cache = prop_def(enum_property(CacheModifier), default_value=LOAD_DEFAULTS["cache"])
    evict = prop_def(enum_property(EvictionPolicy), default_value=LOAD_DEFAULTS["evict"])
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
