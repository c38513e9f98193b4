"""The table of rules, and the values that rules compute: element types as NumPy dtypes, integers of the widths of the
IR, block pointers and tensor descriptors.

Integers are signless in the IR: they are held as signed NumPy integers (`i1` as bool) and viewed as unsigned by ops
that are unsigned. Pointers are int64 addresses. `bf16` and the 8-bit floats are `ml_dtypes`.

    >>> storage(bf16)
    dtype(bfloat16)

A block pointer or a descriptor describes a block of a strided array. Element `i` of a block at `offsets` is at
`base + sum((offsets[d] + i[d]) * strides[d])` elements, and is in bounds if every index is in `[0, shape[d])`.

    >>> view = BlockView(base=1000, shape=(3, 4), strides=(4, 1), element=f32, block=(2, 2))
    >>> addresses, inside = view.at((2, 0), checked=(0, 1))
    >>> addresses.tolist(), inside.tolist()
    ([[1032, 1036], [1048, 1052]], [[True, True], [False, False]])

`RULES` has one rule for each op:

    @evaluates(tt.SplatOp)
    def eval_splat(machine: Machine, op: Operation, src: Array) -> Array:
        return np.broadcast_to(src, shape_of(op.results[0].type))

A rule receives the machine, the op and the values of its operands, and returns the value of the result, or a list of
the values of all results. An *elementwise* rule also works if an array replaces a scalar of the program; the combine
region of a reduction that has only such ops is executed on whole sub-arrays at once.

A rule raises `Fault` with the reason alone; the machine, which knows the op and the running program, converts it to an
`EvaluationError`:

    kernel.py:7:13: error: tt.load reads element 1030 of argument 'x', which has 1024 elements [program (1, 0, 0)]
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Self

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation

from tilework.ir.locations import location_text
from tilework.ir.types import PointerType, Shape, bit_width, element_type
from tilework.numerics import rounding
from tilework.numerics.formats import IR_NAMES
from tilework.numerics.rounding import F32, F64, SIGNED, UNSIGNED, Array

Rule = Callable[..., Any]

RULES: dict[type[Operation], Rule] = {}
ELEMENTWISE: set[type[Operation]] = set()


def evaluates(*ops: type[Operation], elementwise: bool = False) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of each of `ops`."""

    def register(rule: Rule) -> Rule:
        for op in ops:
            assert op not in RULES, f"two rules for {op.name}"
            RULES[op] = rule
        if elementwise:
            ELEMENTWISE.update(ops)
        return rule

    return register


def rules(table: dict[type[Operation], Rule], elementwise: bool = False) -> None:
    """Register a table of short rules."""
    for op, rule in table.items():
        evaluates(op, elementwise=elementwise)(rule)


class Fault(Exception):
    """The reason of an `EvaluationError`, raised where neither op nor program is known."""


class EvaluationError(Exception):
    """Execution stopped at `location` (text such as ``kernel.py:7:13``): the op named `op` and the `reason`."""

    def __init__(self, reason: str, op: str, location: str, program: tuple[int, int, int]) -> None:
        super().__init__(f"{location}: error: {op} {reason} [program {program}]")
        self.reason, self.op, self.location, self.program = reason, op, location, program


def fault_at(fault: Fault, op: Operation, program: tuple[int, int, int]) -> EvaluationError:
    """Return the error for a `fault` that `op` of `program` raised."""
    return EvaluationError(str(fault), op.name, location_text(op.location, innermost=True) or "<unknown>", program)


BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)


@cache
def storage(type: Attribute) -> np.dtype[Any]:
    """Return the dtype that holds an element of `type`; odd integer widths are sign-extended to the next wider one."""
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
    """Return the bytes between neighbours in memory: one for `i1` and narrower integers, eight for pointers."""
    return max(1, bit_width(type) // 8)


def unsigned(value: Array) -> Array:
    """Return the same bits as an unsigned integer; booleans become 0 and 1."""
    value = np.asarray(value)
    return value.astype(np.uint8) if value.dtype == BOOL else value.view(UNSIGNED[value.dtype.itemsize])


def signed(value: Array) -> Array:
    """Return the bits as a signed integer; a true `i1` is -1."""
    return -value.astype(np.int8) if value.dtype == BOOL else value


def fit(value: Array, type: Attribute) -> Array:
    """Wrap an integer result of any dtype to the width of `type`."""
    width, dtype = bit_width(type), storage(type)
    if width == 1:
        return (value & value.dtype.type(1)).astype(BOOL) if value.dtype != BOOL else value
    value = value.astype(dtype, copy=False)
    if (spare := dtype.itemsize * 8 - width) > 0:
        value = (value << dtype.type(spare)) >> dtype.type(spare)
    return value


def wide(value: Array) -> Array:
    """Return a float in a format in which NumPy computes: f32, or f64 unchanged. Always exact."""
    return value if value.dtype == F64 or value.dtype == F32 else value.astype(F32)


def to_integer(value: Array, type: Attribute, is_unsigned: bool) -> Array:
    """Truncate a float to an integer. Out-of-range values are clamped as in hardware (to 16 bits for narrower types,
    which then keep the low bits), and NaN is 0."""
    kinds = UNSIGNED if is_unsigned else SIGNED
    return fit(rounding.to_integer(value, kinds[max(2, storage(type).itemsize)]), type)


@dataclass(frozen=True)
class BlockView:
    """A strided array of `element`, read and written in blocks of shape `block`."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Attribute
    block: Shape
    offsets: tuple[int, ...] = ()
    pad_with_nan: bool = False
    round_to_tf32: bool = False  # on loads

    def advanced(self, steps: tuple[int, ...]) -> Self:
        """Return the block pointer moved by `steps` elements in each dimension."""
        return replace(self, offsets=tuple(a + b for a, b in zip(self.offsets, steps, strict=True)))

    def at(self, offsets: tuple[int, ...], checked: tuple[int, ...]) -> tuple[Array, Array]:
        """Return the addresses of the block at `offsets`, and which of them are in bounds in the `checked`
        dimensions."""
        indices = [offset + np.arange(size, dtype=np.int64) for offset, size in zip(offsets, self.block, strict=True)]
        return self.of_indices(np.ix_(*indices), self.block, checked)

    def of_indices(self, indices: tuple[Array, ...], block: Shape, checked: tuple[int, ...]) -> tuple[Array, Array]:
        """Like `at` for one index array per dimension, which broadcast to `block`."""
        address = np.full(block, self.base, np.int64)
        inside = np.ones(block, BOOL)
        for dim, (index, stride) in enumerate(zip(indices, self.strides, strict=True)):
            address = address + index * np.int64(stride * memory_bytes(self.element))
            if dim in checked:
                inside = inside & (index >= 0) & (index < self.shape[dim])
        return address, inside


@dataclass(frozen=True)
class DescriptorAt:
    """A descriptor that is read from memory when it is used: at `address`, of blocks of `type`."""

    address: int
    type: Attribute


@dataclass
class Tensormap:
    """A descriptor that a kernel wrote to memory; TMA sees it after a fence."""

    view: BlockView
    is_acquired: bool = False


@dataclass(eq=False)
class Dot:
    """An asynchronous dot of a warp group; `is_done` once a wait has completed it."""

    is_done: bool = False


@dataclass(frozen=True, eq=False)
class InFlight:
    """The result of a `Dot`, which may be rearranged but not used before its wait."""

    value: Array
    dot: Dot

    def reshape(self, shape: tuple[int, ...]) -> "InFlight":
        return InFlight(self.value.reshape(shape), self.dot)

    def transpose(self, order: tuple[int, ...]) -> "InFlight":
        return InFlight(self.value.transpose(order), self.dot)
