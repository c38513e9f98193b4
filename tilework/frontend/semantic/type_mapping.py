"""Language types as IR types.

    ir_type(float32)                      f32
    ir_type(uint8)                        i8              signless: the sign is in the op (divui, extui ...)
    ir_type(pointer_type(int1))           !tt.ptr<i1>
    ir_type(block_type(float16, [4, 8]))  tensor<4x8xf16>

Only the element of a tensor descriptor keeps its sign (``!tt.tensordesc<tensor<16x16xui32>>``), because the hardware
reduces through it. `fp8e4b15` exists in no instruction set: it travels as `i8`, and `casts.py` converts it.

One value may be several IR values: `ir_types` lists them in the order of `_flatten_ir`.
"""

from functools import cache

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Attribute

from tilework.ir import types as ir
from tilework.language import core as tl
from tilework.language.descriptor_values import tensor_descriptor_type
from tilework.language.dtypes import block_type, dtype, pointer_type
from tilework.numerics.formats import IR_NAMES

INTEGERS = {"int8": ir.i8, "int16": ir.i16, "int32": ir.i32, "int64": ir.i64}
SCALARS: dict[str, Attribute] = {
    "int1": ir.i1,
    **{f"{sign}{type}": bits for type, bits in INTEGERS.items() for sign in ("", "u")},
    **{name: getattr(ir, in_ir) for in_ir, name in IR_NAMES.items()},
    "fp8e4b15": ir.i8,
}

NO_RUNTIME_PART = (tl.constexpr_type, tl.slice_type)


@cache
def ir_type(ty: tl.base_type) -> Attribute:
    """The IR type of one runtime value; a descriptor's is that of the descriptor alone."""
    if isinstance(ty, block_type):
        return ir.tensor_type(ty.sizes, ir_type(ty.element_ty))
    if isinstance(ty, pointer_type):
        return ir.pointer_type(ir_type(ty.element_ty), ty.address_space)
    if isinstance(ty, tensor_descriptor_type):
        element = descriptor_element(ty.block_type.element_ty)
        return ir.tensordesc_type(ir.tensor_type(ty.block_type.sizes, element))
    if isinstance(ty, dtype) and ty.name in SCALARS:
        return SCALARS[ty.name]
    raise TypeError(f"a value of type {ty} has no single IR value")


@cache
def descriptor_element(element: dtype) -> Attribute:
    """The element inside a descriptor type: integers keep their sign, and a bool is a byte as in memory."""
    if not isinstance(ir_type(element), IntegerType):
        return ir_type(element)
    sign = Signedness.SIGNED if element.is_int_signed() else Signedness.UNSIGNED
    return IntegerType(max(element.primitive_bitwidth, 8), sign)


def ir_types(ty: tl.base_type) -> list[Attribute]:
    """Every IR type inside a value of type `ty`: one for a tensor, none for a constant, one per part of a tuple."""
    if isinstance(ty, dtype):
        return [] if ty.is_void() else [ir_type(ty)]
    if isinstance(ty, NO_RUNTIME_PART):
        return []
    if isinstance(ty, tensor_descriptor_type):
        return [ir_type(ty), *ir_types(ty.shape_type), *ir_types(ty.strides_type)]
    return [part for element in element_types(ty) for part in ir_types(element)]


def element_types(ty: tl.base_type) -> list[tl.base_type]:
    """The types of the parts of a tuple or an aggregate, in order."""
    if isinstance(ty, tl.tuple_type):
        return ty.types
    if isinstance(ty, tl._aggregate_type):
        return [field for _, field in ty.fields]
    raise TypeError(f"a value of type {ty} cannot exist at run time")
