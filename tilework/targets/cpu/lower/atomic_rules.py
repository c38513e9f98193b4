"""Atomics: `tt.atomic_rmw` and `tt.atomic_cas` on one element; nests that hold one run element by element.

Integers use the processor's instruction. Floats (addition, minimum, maximum, in any format) read the old value,
compute, and try to exchange until no other thread came between. Comparison in `tt.atomic_cas` is of bits: NaN equals
itself. A masked-off atomic touches nothing and gives 0. All programs run in one process, so every scope is the whole of
it.

Order. A single atomic is acquire and release, whatever its `sem`: users build locks of relaxed ones too, which hold on
GPUs because threads there do not run ahead. Ordered ones are done between `tt.ordered_begin` and `tt.ordered_end`,
one after the other. Those of a tile are relaxed, with a fence before and one after the nest (`fork.py`), unless they
only count (hazards.py, which keeps everything else out of a nest that fences surround).
"""

from collections.abc import Callable

from xdsl.ir import Attribute, Operation

from tilework.ir import tt, ttc
from tilework.ir.enums import RMWOp
from tilework.ir.types import int_property, is_float
from tilework.targets.cpu.lower.control_rules import RARE, poll_launch
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.run.interface import LAUNCHED
from tilework.targets.llvm.rules import CHANGES
from tilework.targets.llvm.scalar_types import element_bytes, register_type
from tilework.targets.llvm.scalars import INTEGER_OF, narrow, widen
from tilework.targets.llvm.types import Type, i8, i32, i64, integer, ptr
from tilework.targets.llvm.values import Value, constant

SPINS, RESTS = 1024, 2  # polls of the ticket between two rests (`run/pool_code.py`)
FLOAT_OPS = {RMWOp.FADD: "fadd", RMWOp.ADD: "fadd", RMWOp.MAX: "maximum", RMWOp.MIN: "minimum"}


def ordering_of(op: Operation) -> str:
    return "monotonic" if type(op.parent_op()) is ttc.NestOp else "acq_rel"


@lowers(tt.AtomicRMWOp)
def lower_atomic_rmw(low: Lowering, op: Operation) -> Value:
    address, value, *mask = (low[operand] for operand in op.operands)
    kind, type_ = RMWOp(int_property(op, "atomic_rmw_op")), op.results[0].type
    ordering = ordering_of(op)

    def change() -> list[Value]:
        if is_float(type_) and kind in FLOAT_OPS:
            return [float_loop(low, address, value, type_, FLOAT_OPS[kind], ordering)]
        held = to_bits(low, value, type_)
        old = low.builder.atomic_rmw(CHANGES[kind], address, held, ordering=ordering, align=element_bytes(type_))
        return [from_bits(low, old, type_)]

    if not mask:
        return change()[0]
    return low.builder.if_else(mask[0], change, lambda: [constant(register_type(type_), 0)])[0]


@lowers(tt.OrderedBeginOp)
def lower_ordered_begin(low: Lowering, op: Operation) -> None:
    """Threads take programs in their order, so the program that is waited for has begun, or is next in its thread."""
    b = low.builder
    launch, program = launch_of(low), low.program_id()

    def look(rounds: Value) -> tuple[Value, Value]:
        ticket = b.load(i64, b.gep(launch, low.ticket), align=8, ordering="acquire")
        with b.if_(b.icmp("eq", b.and_(rounds, SPINS - 1), 0), weights=RARE):
            poll_launch(low, RESTS)
        return b.add(rounds, 1), b.icmp("eq", ticket, program)

    with b.if_(b.icmp("ne", launch, constant(ptr, 0))):
        b.until(constant(i32, 1), look)


@lowers(tt.OrderedEndOp)
def lower_ordered_end(low: Lowering, op: Operation) -> None:
    b = low.builder
    launch = launch_of(low)
    with b.if_(b.icmp("ne", launch, constant(ptr, 0))):
        address = b.gep(launch, low.ticket)
        b.atomic_rmw("xchg", address, b.add(low.program_id(), 1), ordering="release", align=8)


def launch_of(low: Lowering) -> Value:
    """The record that all threads of a launch share; 0 where one thread runs all programs."""
    return low.builder.load(ptr, low.builder.gep(low.arena, LAUNCHED), align=8)


@lowers(tt.AtomicCASOp)
def lower_atomic_cas(low: Lowering, op: Operation) -> Value:
    address, expected, value = (low[operand] for operand in op.operands)
    type_, ordering = op.results[0].type, ordering_of(op)
    old, _ = low.builder.compare_exchange(
        address,
        to_bits(low, expected, type_),
        to_bits(low, value, type_),
        ordering=ordering,
        failure="acquire" if ordering == "acq_rel" else ordering,
        align=element_bytes(type_),
    )
    return from_bits(low, old, type_)


def bits_type(type: Attribute) -> Type:
    """The integer that an atomic instruction moves."""
    return integer(8 * element_bytes(type))


def to_bits(low: Lowering, value: Value, type: Attribute) -> Value:
    """The bits of a value as memory holds them."""
    if value.type.is_pointer:
        return low.builder.ptrtoint(value, i64)
    return low.builder.bitcast(low.to_memory(type, value), bits_type(type))


def from_bits(low: Lowering, held: Value, type: Attribute) -> Value:
    wanted = register_type(type)
    if wanted.is_pointer:
        return low.builder.inttoptr(held, wanted)
    if wanted in INTEGER_OF and wanted is not i8:
        return low.builder.bitcast(held, wanted)
    return low.from_memory(type, held)


def float_loop(low: Lowering, address: Value, value: Value, type: Attribute, name: str, ordering: str) -> Value:
    """Exchange until the old value is still there; gives the value before."""
    b = low.builder
    held, size = bits_type(type), element_bytes(type)
    combine: Callable[[Value, Value], Value] = getattr(b, name)
    seen = b.load(held, address, align=size, ordering="monotonic")
    addend = widen(b, value, type)

    def exchange(old: Value) -> tuple[Value, Value]:
        new = narrow(b, combine(widen(b, from_bits(low, old, type), type), addend), type)
        return b.compare_exchange(address, old, to_bits(low, new, type), ordering=ordering, weak=True, align=size)

    return from_bits(low, b.until(seen, exchange), type)
