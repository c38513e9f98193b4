"""`ttc.print`, `ttc.assert`, and `ttc.check`: the checks that the sanitizer inserts before each access.

A launch of a sanitized kernel passes one slot more than the kernel has parameters: the address of the *table*, i64
words that `NAME_range` keeps at byte TABLE of the arena.

    -code    0, or 1 + the linear id of a program in which the assert of this code, a warning, did not hold
    0        0, or 1 once a check has failed: programs that have not begun are left out then
    1        the address that must not be touched
    2        the code of the check (interface.py)
    3 4 5    the program
    6        the number of entries
    7 ..     entries of three words: first byte, byte behind the last, 1 if it is an address of unknown extent

There is one entry per parameter, then one per array that was registered; an entry of an argument that is no array is
empty. Addresses must be multiples of the size of an element, counted from the start of the array (which need not be
aligned); those of atomics, also counted from 0. A chunk whose first and last address are in one of the arrays it may
come from is good, whatever its mask; only otherwise one function of the module tests the active lanes one by one. A
check that fails sets the fault code and ends the function; its caller ends too.

A print is one call of `tilework_print` (printing.py) with the addresses of its operands; a scalar gets a slot on the
stack:

    call void @tilework_print(ptr @description, i32 %x, i32 %y, i32 %z, ptr %addresses)

An assert that fails stores its code (interface.py: 1 + its position among the asserts of the module) as the fault of
this thread and ends the program; the range stops after it. In a function that is not inlined it ends that function,
which then returns zeros to the program. A warning of the sanitizer's is recorded instead.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.errors import SANITIZER_WARNING
from tilework.ir import ttc
from tilework.ir.nesting import ops_around
from tilework.ir.types import array_values, int_property
from tilework.targets.cpu.lower.interface_of import fault_codes
from tilework.targets.cpu.lower.lanes import Kind, Linear, OpenNest
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.lower.nest_access import lane_addresses, mask_bits, mask_of, pointer_vector
from tilework.targets.cpu.run.interface import ENTRIES, ENTRY_FIELDS, PRINT_SYMBOL, TABLE
from tilework.targets.llvm.builder import Builder, unwritten
from tilework.targets.llvm.rules import text_of
from tilework.targets.llvm.scalar_types import memory_type, pointee_bytes
from tilework.targets.llvm.types import i1, i8, i32, i64, ptr, vector, void
from tilework.targets.llvm.values import Value, constant


@lowers(ttc.PrintOp)
def lower_print(low: Lowering, op: Operation) -> None:
    from tilework.targets.cpu.run.printing import describe, element_name  # lazily: few kernels print

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


STOPPED = 0
ANYWHERE = -1  # instead of the bits of the arguments
MOST_BITS = 63
MOST_ARRAYS = 4  # that are tried without a call
SYMBOL = "tilework.check"
RARE = (1, 1 << 20)


@lowers(ttc.CheckOp)
def lower_check(low: Lowering, op: Operation) -> Value:
    """Outside of nests: one address."""
    pointer, *mask = (low[operand] for operand in op.operands)
    check(low, op, [pointer], lambda: pointer, lambda: low.builder.zext(mask[0] if mask else constant(i1, 1), i64))
    return pointer


def emit_check(nest: OpenNest, op: Operation) -> None:
    """Check the addresses of all lanes of a nest."""
    pointer, *rest = op.operands
    address = nest.kind(pointer)
    if isinstance(address, Linear) and address.sum is not None:
        address = pointer_vector(nest, address) if nest.lanes > 1 else lane_addresses(nest, address)[0]
    nest.kinds[op.results[0]] = address
    mask = mask_of(nest, rest) or constant(i1, 1)
    found = extremes(nest, address)
    addresses = (lambda: found[0]) if nest.lanes == 1 else (lambda: pointer_vector(nest, address))
    check(nest.low, op, found, addresses, lambda: lane_bits(nest, mask))


def extremes(nest: OpenNest, address: Kind) -> list[Value]:
    """Addresses that bound all others: those of the first lane and of the last, or all."""
    if not isinstance(address, Linear):
        assert isinstance(address, Value)
        return [address]
    first = nest.base(address)
    return [first] if nest.lanes == 1 else [first, nest.b.gep(first, nest.b.mul(address.stride, nest.lanes - 1))]


def lane_bits(nest: OpenNest, mask: Kind) -> Value:
    """The lanes that are on, as the bits of an i64."""
    b = nest.b
    if isinstance(mask, Value) and not mask.type.is_vector:
        return b.select(mask, constant(i64, (1 << nest.lanes) - 1), constant(i64, 0))
    return mask_bits(nest, mask)


def check(
    low: Lowering, op: Operation, extremes: list[Value], addresses: Callable[[], Value], bits: Callable[[], Value]
) -> None:
    """Stop unless the address of every active lane is in an array it may come from."""
    b = low.builder
    low.uses_checks = True
    size, slots = pointee_bytes(op.operands[0].type), array_values(op.properties["arguments"])
    table = b.load(ptr, b.gep(low.arena, TABLE), align=8)
    strict = size - 1 if text_of(op, "verb") == "updates" else 0  # an atomic
    with b.if_(b.not_(all_inside(low, table, extremes, size, strict, slots)), weights=RARE):
        found = addresses()
        held = b.alloca(found.type, align=64)
        b.store(found, held, align=64)
        which = sum(1 << slot for slot in slots) if slots and max(slots) < MOST_BITS else ANYWHERE
        constants = [*(constant(i64, value) for value in (size, strict, which)), constant(i32, code_of(low, op))]
        if (inner := unwritten(low.module, SYMBOL, i1, TYPES, ("cold", "noinline", "nounwind"))) is not None:
            write_check(inner)
        failed = b.call(SYMBOL, i1, [table, held, bits(), *constants, *low.program])
        with b.if_(failed, weights=RARE):
            stop(low, code_of(low, op))


def all_inside(
    low: Lowering, table: Value, extremes: list[Value], size: int, strict: int, slots: Sequence[int]
) -> Value:
    """True if all addresses are in one array, and aligned; false where that is not cheap to find out."""
    b = low.builder
    if not slots or len(slots) > MOST_ARRAYS:
        return constant(i1, 0)
    addresses = [b.ptrtoint(address, address.type.with_scalar(i64)) for address in extremes]
    inside: Value | None = None
    for slot in slots:
        start, end = (
            b.load(i64, b.gep(table, 8 * (ENTRIES + ENTRY_FIELDS * slot + field)), align=8) for field in (0, 1)
        )
        extent = b.sub(b.umax(b.sub(end, start), constant(i64, size - 1)), size - 1)
        offsets = [b.sub(address, like(b, start, address)) for address in addresses]
        here = reduce(b.and_, [every(b, b.icmp("ult", offset, like(b, extent, offset))) for offset in offsets])
        if size > 1:
            here = b.and_(here, is_multiple(b, reduce(b.or_, offsets), size - 1))
        inside = here if inside is None else b.or_(inside, here)
    assert inside is not None
    return b.and_(inside, is_multiple(b, reduce(b.or_, addresses), strict)) if strict else inside


def is_multiple(b: Builder, addresses: Value, low_bits: int) -> Value:
    return every(b, b.icmp("eq", b.and_(addresses, low_bits), constant(addresses.type, 0)))


def like(b: Builder, value: Value, other: Value) -> Value:
    """A scalar in as many lanes as `other` has."""
    return b.splat(value, other.type.count) if other.type.is_vector else value


def every(b: Builder, condition: Value) -> Value:
    return b.icmp("eq", b.mask_bits(condition), -1) if condition.type.is_vector else condition


def emit_assert(nest: OpenNest, op: Operation) -> None:
    """A condition of one element, for all lanes at once."""
    low, holds = nest.low, nest.vector(op.operands[0])
    with low.builder.if_(low.builder.not_(every(low.builder, holds)), weights=RARE):
        stop(low, code_of(low, op))


def stop_with_callee(low: Lowering) -> None:
    """End the caller of a function that has stopped."""
    b = low.builder
    code = b.load(i32, low.arena, align=4)
    with b.if_(b.icmp("ne", code, 0), weights=RARE):
        stop(low, code)


def begin_range(b: Builder, args: Value, slots: int, arena: Value) -> Value:
    """Load the table, at the start of `NAME_range`."""
    table = b.load(ptr, b.gep(args, 8 * slots), align=8)
    b.store(table, b.gep(arena, TABLE), align=8)
    return table


def leave_if_stopped(b: Builder, table: Value) -> None:
    """Return before a program begins, if another one has failed."""
    stopped = b.load(i64, b.gep(table, 8 * STOPPED), align=8, ordering="monotonic")
    with b.if_(b.icmp("ne", stopped, 0), weights=RARE):
        b.ret(constant(i32, 0))


TYPES = (ptr, ptr, *(i64,) * 4, *(i32,) * 4)


def write_check(b: Builder) -> None:
    """``i1 @tilework.check(table, addresses, bits, size, strict, which, code, x, y, z)``: return True if some lane is
    bad, testing one by one; the first of all failures is recorded. An address that may come from an entry of unknown
    extent may come from anywhere.
    """
    table, addresses, bits, size, strict, which, *report = b.function.args
    count, entries = b.load(i64, b.gep(table, 8 * (ENTRIES - 1)), align=8), b.gep(table, 8 * ENTRIES)

    def entry_fields(index: Value) -> list[Value]:
        entry = b.gep(entries, b.mul(index, 8 * ENTRY_FIELDS))
        return [b.load(i64, b.gep(entry, 8 * field), align=8) for field in range(ENTRY_FIELDS)]

    def has_bit(mask: Value, index: Value) -> Value:
        return b.trunc(b.lshr(mask, b.umin(index, constant(i64, MOST_BITS))), i1)

    with b.loop_carrying(constant(i64, 0), count, 1, [which]) as widened:
        unknown = b.icmp("ne", entry_fields(widened.index)[2], 0)
        wide = b.and_(has_bit(which, widened.index), unknown)
        widened.next([b.select(wide, constant(i64, ANYWHERE), widened.carried[0])])
    with b.loop(constant(i64, 0), b.sub(constant(i64, 64), b.ctlz(bits))) as lane, b.if_(has_bit(bits, lane)):
        good = b.function.block("good")
        address = b.load(i64, b.gep(addresses, lane, i64), align=8)
        aligned = b.icmp("eq", b.and_(address, strict), 0)
        with b.loop(constant(i64, 0), b.select(aligned, count, constant(i64, 0))) as index:
            start, end, _ = entry_fields(index)
            inside = b.and_(b.icmp("uge", address, start), b.icmp("ult", address, end))
            fits = b.icmp("uge", b.sub(end, address), size)
            multiple = b.icmp("eq", b.and_(b.sub(address, start), b.sub(size, 1)), 0)
            with b.if_(reduce(b.and_, [has_bit(widened.results[0], index), inside, fits, multiple])):
                b.br(good)
        first = b.compare_exchange(table, constant(i64, 0), constant(i64, 1), align=8)[1]
        with b.if_(first):
            for field, value in enumerate((address, *report), 1):
                b.store(b.zext(value, i64), b.gep(table, 8 * field), align=8)
        b.ret(constant(i1, 1))
        b.enter(good)
    b.ret(constant(i1, 0))
