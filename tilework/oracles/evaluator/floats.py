"""Element types as NumPy dtypes, and integers of the widths that the IR has.

Integers are signless in the IR: they are held as signed NumPy integers (`i1` as bool) and viewed as unsigned where an
op asks for it. Pointers are int64 addresses. `bf16` and the 8-bit floats are `ml_dtypes`.

    >>> storage(bf16)
    dtype(bfloat16)
"""

from functools import cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute

from tilework.ir.types import PointerType, bit_width, element_type
from tilework.numerics import rounding
from tilework.numerics.formats import IR_NAMES
from tilework.numerics.rounding import F32, F64, SIGNED, UNSIGNED, Array
from tilework.oracles.evaluator.evaluation_errors import Fault

BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)


@cache
def storage(type: Attribute) -> np.dtype[Any]:
    """The dtype that holds an element of `type`; odd integer widths sit sign-extended in the next wider one."""
    element = element_type(type)
    if (format := IR_NAMES.get(str(element))) is not None:
        return rounding.FLOATS[format]
    if isinstance(element, (PointerType, IndexType)):
        return INT64
    if isinstance(element, IntegerType) and (width := element.width.data) <= 64:
        return BOOL if width == 1 else SIGNED[next(size for size in SIGNED if width <= size * 8)]
    raise Fault(f"has a value of type {element}, which has no NumPy form")


@cache
def memory_bytes(type: Attribute) -> int:
    """Bytes between neighbours in memory: one for `i1` and narrower integers, eight for pointers."""
    return max(1, bit_width(type) // 8)


def unsigned(value: Array) -> Array:
    """The same bits read as an unsigned integer; booleans become 0 and 1."""
    value = np.asarray(value)
    return value.astype(np.uint8) if value.dtype == BOOL else value.view(UNSIGNED[value.dtype.itemsize])


def signed(value: Array) -> Array:
    """The bits as a signed integer; a true `i1` is -1."""
    return -value.astype(np.int8) if value.dtype == BOOL else value


def fit(value: Array, type: Attribute) -> Array:
    """An integer result of any dtype, wrapped to the width of `type`."""
    width, dtype = bit_width(type), storage(type)
    if width == 1:
        return (value & value.dtype.type(1)).astype(BOOL) if value.dtype != BOOL else value
    value = value.astype(dtype, copy=False)
    if (spare := dtype.itemsize * 8 - width) > 0:
        value = (value << dtype.type(spare)) >> dtype.type(spare)
    return value


def wide(value: Array) -> Array:
    """A float in a format NumPy computes with: f32, or f64 as it is. Always exact."""
    return value if value.dtype == F64 or value.dtype == F32 else value.astype(F32)


def to_integer(value: Array, type: Attribute, is_unsigned: bool) -> Array:
    """A float truncated to an integer. Out of range the hardware's limits apply (those of 16 bits for narrower types,
    which then keep the low bits), and NaN is 0."""
    kinds = UNSIGNED if is_unsigned else SIGNED
    return fit(rounding.to_integer(value, kinds[max(2, storage(type).itemsize)]), type)
