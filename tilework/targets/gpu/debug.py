"""`tt.print` and `tt.assert`, by the facilities of each GPU's runtime.

    pid (0, 0, 0) idx (  5) x: 2.500000

The first thread that holds an element of a tensor prints it; every thread prints a scalar, or a prefix alone. Values
are passed as to C's `printf`: floats as double, small integers as i32. An assert fails in the threads that hold a false
element; a barrier follows an assert on a tensor.
"""

from collections.abc import Sequence
from functools import reduce

from xdsl.ir import Attribute, Operation

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.functions import symbol_of
from tilework.ir.locations import source_positions
from tilework.ir.nesting import ops_around
from tilework.ir.types import Shape, array_values, element_type, int_property, is_float, is_tensor, shape_of
from tilework.targets.gpu.global_access import copied_registers
from tilework.targets.gpu.lowering import Lowering, lowers
from tilework.targets.gpu.views import coordinates
from tilework.targets.llvm.rules import text_of
from tilework.targets.llvm.scalar_types import memory_type
from tilework.targets.llvm.scalars import widen
from tilework.targets.llvm.types import f64, i32, i64, integer
from tilework.targets.llvm.values import Value


@lowers(tt.PrintOp)
def lower_print(low: Lowering, op: Operation) -> None:
    start, text = "pid (%u, %u, %u)", text_of(op, "prefix").replace("%", "%%")
    program = [low.gpu.program_id(low.builder, axis, low.facts.num_ctas > 1) for axis in range(3)]
    show = low.gpu.printer(low.builder)
    shown = tt.visible_sizes(op)
    if not op.operands:
        show(f"{start}{text}\n", program)
    signs = array_values(op.properties["isSigned"])
    for index, (operand, is_signed) in enumerate(zip(op.operands, signs, strict=True)):
        which = f"(operand {index}) " if len(op.operands) > 1 else ""
        element = element_type(operand.type)
        form = spelling(element, bool(int_property(op, "hex")), bool(is_signed))
        given = low[operand]
        if not is_tensor(operand.type):
            show(f"{start} idx (){text}{which}{form}\n", [*program, argument(low, element, given[0], form)])
            continue
        layout, copies = layout_of(operand.type), copied_registers(operand.type)
        index_format = ", ".join(f"%{len(str(extent - 1))}u" for extent in shown[index])
        with low.only_if(low.is_first_copy(layout)):
            for register, spot in enumerate(coordinates(low, layout)):
                if not register & copies:
                    values = [*program, *spot, argument(low, element, given[register], form)]
                    with low.only_if(is_shown(low, spot, shape_of(operand.type), shown[index])):
                        show(f"{start} idx ({index_format}){text}{which}{form}\n", values)


def is_shown(low: Lowering, spot: Sequence[Value], shape: Shape, sizes: Shape) -> Value | None:
    """Return a condition that holds if an element is not padding; None if there is no padding."""
    inside = [
        low.builder.icmp("ult", coordinate, size)
        for coordinate, extent, size in zip(spot, shape, sizes, strict=True)
        if size != extent
    ]
    return reduce(low.builder.and_, inside) if inside else None


def spelling(element: Attribute, as_hex: bool, is_signed: bool) -> str:
    """Return the conversion specifier of C's printf for a value."""
    held = memory_type(element)
    if held.is_pointer:
        return "%p"
    bits = held.bits
    if as_hex:
        return f"0x%0{bits // 4}{'ll' if bits == 64 else ''}x"
    if is_float(element):
        return "%f"
    return f"%{'ll' if bits == 64 else ''}{'i' if is_signed else 'u'}"


def argument(low: Lowering, element: Attribute, value: Value, form: str) -> Value:
    """Convert a value to the type that printf expects."""
    b = low.builder
    if form == "%p":
        return value
    if form == "%f":
        return b.fpext(widen(b, value, element), f64)
    bits = b.bitcast(value, integer(value.type.bits))
    wanted = i64 if value.type.bits == 64 else i32
    is_signed = form == "%i" and value.type.bits > 1
    return b.sext(bits, wanted) if is_signed else b.zext(bits, wanted)


@lowers(tt.AssertOp)
def lower_assert(low: Lowering, op: Operation) -> None:
    b, (condition,) = low.builder, op.operands
    holds = reduce(b.and_, low[condition])
    if holds.constant != 1:
        file, line, _ = next(iter(source_positions(op.location)), ("unknown", 0, 0))
        function = next((symbol_of(outer) for outer in ops_around(op) if type(outer) is tt.FuncOp), "unknown")
        with b.if_(b.not_(holds), weights=(1, 1 << 20)):
            low.shows_locations = True
            low.gpu.fail(b, text_of(op, "message"), file, line, function)
    if is_tensor(condition.type):
        low.barrier()
