"""Elements in their memory types, and small elements packed into 32-bit registers, as memory and matrix units use them.

    elements = unpack_register(low, packed, f16)    # two halves, the first in the lowest bits
    pack_register(low, elements)                    # `packed` again: nothing is built

A tensor is a tuple of elements, so a loaded register is unpacked, and packed again where it is used. `Lowering.packed`
maps the names of elements to the register that holds them, so that packing them again costs nothing. Four bytes that
come from two registers take one byte permutation.
"""

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, Operation

from tilework.ir.types import element_type
from tilework.targets.gpu.device import AccessShape, Emission
from tilework.targets.llvm import scalars
from tilework.targets.llvm.scalar_types import memory_type, register_type
from tilework.targets.llvm.types import Type, i8, i16, i32, i64, integer, vector
from tilework.targets.llvm.values import Value, constant

REGISTER_BITS = 32


def held_type(element: Attribute) -> Type:
    """Return the type of an element in memory; pointers are integers."""
    held = memory_type(element)
    return i64 if held.is_pointer else held


def to_memory(low: Emission, element: Attribute, value: Value) -> Value:
    """Convert a register to its memory type."""
    b = low.builder
    return b.ptrtoint(value, i64) if value.type.is_pointer else scalars.to_memory(b, element, value)


def from_memory(low: Emission, element: Attribute, value: Value) -> Value:
    """Convert a value loaded from memory to its register type."""
    return scalars.from_memory(low.builder, element, value)


def pack_register(low: Emission, elements: Sequence[Value]) -> Value:
    """Pack elements into one register, the first in the lowest bits; a single 64-bit element is returned unchanged."""
    b = low.builder
    if len(elements) == 1:
        return b.bitcast(elements[0], i32) if elements[0].type.bits == REGISTER_BITS else elements[0]
    if (packed := low.packed.get(tuple([element.text for element in elements]))) is not None:
        return packed
    if len(elements) == 4:
        if (packed := chosen_bytes(low, elements)) is not None:
            return packed
        first, second, third, fourth = (b.zext(b.bitcast(element, i8), i32) for element in elements)
        choose = low.gpu.choose_bytes
        return choose(b, choose(b, first, second, 0x0040), choose(b, third, fourth, 0x0040), 0x5410)
    return b.bitcast(b.build_vector(elements), i32)


def chosen_bytes(low: Emission, elements: Sequence[Value]) -> Value | None:
    """Pack four bytes that come from at most two registers; None if they do not."""
    positions = [low.held_in.get(element.text) for element in elements]
    found = [position for position in positions if position is not None]
    sources = list({packed.text: packed for packed, _ in found}.values())
    if None in positions or len(sources) > 2:
        return None
    first, second = sources[0], sources[-1]
    chosen = [at + 4 * (packed.text != first.text) for packed, at in found]
    return low.gpu.choose_bytes(low.builder, first, second, sum(at << 4 * index for index, at in enumerate(chosen)))


def pack_registers(low: Emission, elements: Sequence[Value]) -> list[Value]:
    """Pack elements of less than 32 bits into registers; the last one is padded with zeros."""
    each = REGISTER_BITS // elements[0].type.bits
    filled = [*elements, *[constant(elements[0].type, 0)] * (-len(elements) % each)]
    return [pack_register(low, filled[start : start + each]) for start in range(0, len(filled), each)]


def fills_registers(value: Any) -> bool:
    """Return True if a value is small elements that fill whole 32-bit registers."""
    return (
        value.__class__ is tuple
        and len(value) > 1
        and value[0].type.bits in (8, 16)
        and not value[0].type.bits * len(value) % REGISTER_BITS
    )


def unpack_register(low: Emission, packed: Value, element: Type) -> list[Value]:
    """Return the elements of a packed register."""
    b = low.builder
    if element.bits == REGISTER_BITS:
        return [b.bitcast(packed, element)]
    elements = b.lanes(b.bitcast(packed, vector(element, REGISTER_BITS // element.bits)))
    low.packed[tuple([found.text for found in elements])] = packed
    low.held_in.update({found.text: (packed, at) for at, found in enumerate(elements) if found.constant is None})
    return elements


def access_shape(bits: int, width: int) -> AccessShape:
    """Return the registers that an access of `width` elements uses."""
    total = bits * width
    if total <= 16:
        return AccessShape(i16, 1, total)
    register = i64 if bits == 64 else i32
    return AccessShape(register, max(1, total // register.bits), register.bits)


def pack(low: Emission, values: Sequence[Value], register: Type) -> list[Value]:
    """Pack elements in memory types into values of type `register`, the first in the lowest bits."""
    b = low.builder
    bits = values[0].type.bits
    if bits > register.bits:
        raise AssertionError("an element is wider than a register")
    if bits == register.bits:
        return [b.bitcast(value, register) for value in values]
    each = register.bits // bits
    if len(values) < each:
        (value,) = values
        return [b.zext(b.bitcast(value, integer(bits)), register)]
    if register is i32:
        return pack_registers(low, values)
    return [b.bitcast(b.build_vector(list(values)), register)]


def unpack(low: Emission, loaded: Sequence[Value], held: Type, width: int) -> list[Value]:
    """Return the `width` elements that packed values hold."""
    b = low.builder
    register = loaded[0].type
    if held.bits == register.bits:
        return [b.bitcast(value, held) for value in loaded]
    each = register.bits // held.bits
    if width < each:
        return [b.bitcast(b.trunc(loaded[0], integer(held.bits)), held)]
    if register is i32:
        return [element for value in loaded for element in unpack_register(low, value, held)]
    return b.lanes(b.bitcast(loaded[0], vector(held, each)))


def in_groups(
    registers: Sequence[Value], each: int, convert: Callable[[list[Value]], list[Value]]
) -> tuple[Value, ...]:
    """Apply a function to groups of `each` registers; the last group may be smaller."""
    groups = [list(registers[first : first + each]) for first in range(0, len(registers), each)]
    return tuple([value for group in groups for value in convert(group)])


def convert_packed(low: Any, op: Operation, convert: Callable[[list[Value]], list[Value]]) -> tuple[Value, ...]:
    """Apply a function to the operand of a conversion, in groups that fill a 32-bit register before or after it."""
    registers = low[op.operands[0]]
    is_of_bytes = i8 in (registers[0].type, register_type(element_type(op.results[0].type)))
    return in_groups(registers, 4 if is_of_bytes else 2, convert)
