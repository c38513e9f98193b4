"""`ttc.print` and `ttc.assert`.

A print is one call of `tilework_print` (printing.py) with the addresses of its operands; a scalar gets a slot on the
stack:

    call void @tilework_print(ptr @description, i32 %x, i32 %y, i32 %z, ptr %addresses)

An assert that fails stores its code (interface.py: 1 + its position among the asserts of the module) as the fault of
this thread and ends the program; the range stops after it. In a function that is not inlined it ends that function,
which then returns zeros to the program. A warning of the sanitizer's is recorded instead (`checks.py`).
"""

from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.errors import SANITIZER_WARNING
from tilework.ir import ttc
from tilework.ir.nesting import ops_around
from tilework.ir.types import array_values, int_property
from tilework.targets.cpu.lower.interface_of import fault_codes
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.run.interface import PRINT_SYMBOL, TABLE
from tilework.targets.cpu.run.printing import describe, element_name
from tilework.targets.llvm.rules import text_of
from tilework.targets.llvm.scalar_types import memory_type
from tilework.targets.llvm.types import i8, i64, ptr, vector, void
from tilework.targets.llvm.values import Value, constant


@lowers(ttc.PrintOp)
def lower_print(low: Lowering, op: Operation) -> None:
    b = low.builder
    signs = array_values(op.properties["isSigned"])
    addresses = b.alloca(ptr, max(1, len(op.operands)), align=8)
    described = []
    for position, (operand, signed) in enumerate(zip(op.operands, signs, strict=True)):
        value, type = low[operand], operand.type
        if not isinstance(type, ttc.BufferType):
            slot = b.alloca(memory_type(type), align=8)
            low.write(type, value, slot)
            value = slot
        shape = type.shape if isinstance(type, ttc.BufferType) else ()
        described.append((shape, element_name(str(ttc.element_of(type))), bool(signed)))
        b.store(value, b.gep(addresses, position * 8), align=8)
    text = b.module.string(describe(text_of(op, "prefix"), bool(int_property(op, "hex")), described))
    b.call(PRINT_SYMBOL, void, [text, *low.program, addresses])


@lowers(ttc.AssertOp)
def lower_assert(low: Lowering, op: Operation) -> None:
    b = low.builder
    holds = low[op.operands[0]]
    if isinstance(type := op.operands[0].type, ttc.BufferType):
        holds = all_true(low, holds, prod(type.shape))
    with b.if_(b.not_(holds), weights=(1, 1 << 20)):
        if text_of(op, "message").startswith(SANITIZER_WARNING):
            warn(low, code_of(low, op))
        else:
            stop(low, code_of(low, op))


def warn(low: Lowering, code: int) -> None:
    """Leave the program, plus one, in the table of a sanitized launch, and go on."""
    b = low.builder
    low.uses_checks = True
    table = b.load(ptr, b.gep(low.arena, TABLE), align=8)
    b.store(b.add(low.program_id(), 1), b.gep(table, -8 * code), align=8)


def stop(low: Lowering, code: Value | int) -> None:
    """Set the fault code and end the function."""
    low.fault(code)
    result = low.builder.function.result
    low.builder.ret(None if result is void else Value(result, "zeroinitializer"))


def code_of(low: Lowering, op: Operation) -> int:
    """The code of an op that can fail."""
    if op not in low.codes:
        module = next(outer for outer in ops_around(op) if isinstance(outer, ModuleOp))
        low.codes.update(fault_codes(module))
    return low.codes[op]


def all_true(low: Lowering, address: Value, count: int) -> Value:
    """Return True if none of `count` bytes is zero."""
    b = low.builder
    width = min(count, low.target.vector_bytes)
    whole = count - count % width
    with b.loop_carrying(constant(i64, 0), whole, width, [constant(vector(i8, width), 255)], unroll=1) as loop:
        loop.next([b.umin(loop.carried[0], b.load(vector(i8, width), b.gep(address, loop.index), align=1))])
    least = b.reduce("umin", loop.results[0])
    if whole < count:
        rest = b.load(vector(i8, count - whole), b.gep(address, whole), align=1)
        least = b.umin(least, b.reduce("umin", rest))
    return b.icmp("ne", least, 0)
