"""`tt` ops that load and store through pointers."""

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
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

from tilework.ir.create import create_op
from tilework.ir.enums import (
    CacheModifier,
    EvictionPolicy,
    PaddingOption,
)
from tilework.ir.tt.constraints import (
    ANY,
    BOOL_LIKE,
    I1_PROPERTY,
    I32_ARRAY,
    PTR_LIKE,
    SameEncoding,
    TensorSize,
    enum_property,
)
from tilework.ir.tt.text_parts import (
    SEGMENTS,
    Attributes,
    parse_at_most,
    parse_attr_dict,
    parse_clause,
    parse_type,
    print_attr_dict,
    print_clause,
    print_operands,
    print_type,
    resolve_defined,
)
from tilework.ir.types import (
    PointerType,
    array_values,
    element_type,
    i1,
    i32,
    i32_array,
    int_attr,
    is_pointer,
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


@cache
def load_properties(
    masked: bool,
    filled: bool,
    cache: CacheModifier,
    evict: EvictionPolicy,
    is_volatile: bool,
    boundary_check: tuple[int, ...],
    padding: PaddingOption | None,
) -> Attributes:
    properties = {
        **cache_properties(cache, evict),
        "boundaryCheck": i32_array(*boundary_check),
        "isVolatile": int_attr(is_volatile, i1),
        SEGMENTS: i32_array(1, int(masked), int(filled)),
    }
    if padding is not None:
        properties["padding"] = int_attr(padding, i32)
    return properties


LOAD_DEFAULTS = load_properties(False, False, CacheModifier.NONE, EvictionPolicy.NORMAL, False, (), None)
STORE_DEFAULTS: Attributes = {
    **cache_properties(CacheModifier.NONE, EvictionPolicy.NORMAL),
    "boundaryCheck": i32_array(),
}


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


def print_memory_attr_dict(op: IRDLOperation, printer: Printer, defaults: Attributes) -> None:
    """The attribute dictionary without the clauses and the defaults."""
    elided = [
        name for name, value in op.properties.items() if name in ("cache", "evict") or defaults.get(name) == value
    ]
    print_attr_dict(op, printer, elided)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Read memory: ``%v = tt.load %p, %mask, %other cacheModifier = ca : tensor<64x!tt.ptr<f32>>``.

    Elements with a false mask are `other`, or undefined without it. `boundaryCheck` and `padding` are for block
    pointers only: the dimensions that may reach outside the tensor, and what is read there.
    """

    name = "tt.load"
    ptr = operand_def(PTR_LIKE)
    mask = opt_operand_def(BOOL_LIKE)
    other = opt_operand_def(ANY)
    result = result_def(ANY)
    boundary_check = prop_def(I32_ARRAY, default_value=LOAD_DEFAULTS["boundaryCheck"], prop_name="boundaryCheck")
    padding = opt_prop_def(enum_property(PaddingOption))
    cache = prop_def(enum_property(CacheModifier), default_value=LOAD_DEFAULTS["cache"])
    evict = prop_def(enum_property(EvictionPolicy), default_value=LOAD_DEFAULTS["evict"])
    is_volatile = prop_def(I1_PROPERTY, default_value=LOAD_DEFAULTS["isVolatile"], prop_name="isVolatile")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), SameEncoding(), TensorSize())

    @classmethod
    def make(
        cls,
        ptr: SSAValue,
        mask: SSAValue | None,
        other: SSAValue | None,
        loc: LocationAttr,
        *,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
        is_volatile: bool = False,
        boundary_check: Sequence[int] = (),
        padding: PaddingOption | None = None,
    ) -> Self:
        operands = [value for value in (ptr, mask, other) if value is not None]
        properties = load_properties(
            mask is not None, other is not None, cache, evict, is_volatile, tuple(boundary_check), padding
        )
        return create_op(cls, operands, (loaded_type(ptr.type),), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Also reads the older form that names the type of the result."""
        ptr, *rest = parse_at_most(parser, 3)
        clauses = parse_cache_clauses(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        pointer, loaded = resolve_pointer(parser, ptr)
        types = (mask_type(loaded), loaded)
        operands = [pointer, *(parser.resolve_operand(v, t) for v, t in zip(rest, types, strict=False))]
        segments = i32_array(1, int(len(rest) > 0), int(len(rest) > 1))
        return cls.create(
            operands=operands,
            result_types=(loaded,),
            properties={**clauses, **properties, SEGMENTS: segments},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_cache_clauses(printer, self.properties)
        print_memory_attr_dict(self, printer, LOAD_DEFAULTS)
        print_type(printer, self.operands[0].type)

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


def resolve_pointer(parser: Parser, ptr: object) -> tuple[SSAValue, Attribute]:
    """The pointer operand and the type behind it, after ``: T`` where T is the type of either."""
    type = parse_type(parser)
    if is_pointer(element_type(type)):
        return parser.resolve_operand(ptr, type), loaded_type(type)  # pyright: ignore[reportArgumentType]
    return resolve_defined(parser, ptr), type  # pyright: ignore[reportArgumentType]


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


@cache
def store_properties(cache: CacheModifier, evict: EvictionPolicy, boundary_check: tuple[int, ...]) -> Attributes:
    return {**cache_properties(cache, evict), "boundaryCheck": i32_array(*boundary_check)}


STORE_DEFAULTS = store_properties(CacheModifier.NONE, EvictionPolicy.NORMAL, ())


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write memory where the mask is true: ``tt.store %p, %v, %mask : tensor<64x!tt.ptr<f32>>``."""

    name = "tt.store"
    ptr = operand_def(PTR_LIKE)
    value = operand_def(ANY)
    mask = opt_operand_def(BOOL_LIKE)
    boundary_check = prop_def(I32_ARRAY, default_value=STORE_DEFAULTS["boundaryCheck"], prop_name="boundaryCheck")
    cache = prop_def(enum_property(CacheModifier), default_value=STORE_DEFAULTS["cache"])
    evict = prop_def(enum_property(EvictionPolicy), default_value=STORE_DEFAULTS["evict"])
    traits = traits_def(MemoryWriteEffect(), SameEncoding(), TensorSize())

    @classmethod
    def make(
        cls,
        ptr: SSAValue,
        value: SSAValue,
        mask: SSAValue | None,
        loc: LocationAttr,
        *,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
        boundary_check: Sequence[int] = (),
    ) -> Self:
        operands = (ptr, value) if mask is None else (ptr, value, mask)
        properties = store_properties(cache, evict, tuple(boundary_check))
        return create_op(cls, operands, (), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Also reads the older form that names the type of the value."""
        ptr, *rest = parse_at_most(parser, 3)
        clauses = parse_cache_clauses(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        pointer, stored = resolve_pointer(parser, ptr)
        types = (stored, mask_type(stored))
        return cls.create(
            operands=[pointer, *(parser.resolve_operand(v, t) for v, t in zip(rest, types, strict=False))],
            properties={**clauses, **properties},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_cache_clauses(printer, self.properties)
        print_memory_attr_dict(self, printer, STORE_DEFAULTS)
        print_type(printer, self.operands[0].type)

    def verify_(self) -> None:
        stored = loaded_type(self.ptr.type)
        if self.value.type != stored:
            raise VerifyException(
                f"failed to verify that value type matches ptr type: tt.store to {self.ptr.type} takes {stored}, "
                f"not {self.value.type}"
            )
        verify_mask(self, self.mask, stored)
        verify_boundary(self)
