"""The LLVM types of scalars of the IR, in registers and in memory, on every target.

>>> register_type(bf16), register_type(f8E5M2), memory_type(i1)
(bfloat, i8, i8)

Integers and f16, bf16, f32, f64 are themselves, pointers are `ptr`, 8-bit floats are their bits in an `i8`. In memory
an `i1` (and any integer below a byte) takes one byte.
"""

from functools import cache

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute

from tilework.ir.types import PointerType, bit_width
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i8, i64, integer, ptr

FLOATS: dict[type[Attribute], Type] = {Float16Type: f16, BFloat16Type: bf16, Float32Type: f32, Float64Type: f64}


@cache
def register_type(type: Attribute) -> Type:
    """The LLVM type of a scalar: ``i32`` -> i32, ``bf16`` -> bfloat, ``f8E5M2`` -> i8, ``!tt.ptr<..>`` -> ptr."""
    if (found := FLOATS.get(type.__class__)) is not None:
        return found
    if isinstance(type, IntegerType):
        return integer(type.width.data)
    if isinstance(type, PointerType):
        return ptr
    if isinstance(type, IndexType):
        return i64
    if bit_width(type) == 8:
        return i8
    return ptr  # a buffer


@cache
def memory_type(type: Attribute) -> Type:
    """The LLVM type of an element in memory: that of a register, but at least a byte."""
    found = register_type(type)
    return integer(max(8, found.bits)) if found.kind == "int" else found


@cache
def element_bytes(type: Attribute) -> int:
    """Bytes between neighbours in memory."""
    return memory_type(type).bits // 8


def pointee_bytes(pointer: Attribute) -> int:
    """Bytes of one element behind a pointer type."""
    assert isinstance(pointer, PointerType), pointer
    return element_bytes(pointer.pointee)
