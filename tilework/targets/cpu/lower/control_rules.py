"""Rules of loops, of scalar memory (buffers, and reads outside of nests), and of the program that runs.

Polls in running programs look for the end of their launch (Ctrl-C, a failed assert elsewhere), and for launches that
need a thread.

A program has fuel, a counter in its arena that loops and programs decrease by an estimate of the nanoseconds that they
took. When none is left, the function whose address is in the arena is called (`pool_code.py`), and a code other than 0
ends the program, as a failed assert does.

    for i in range(n): cheap        ==>        for j in range(0, n, 4096):
                                                   burn(4096 * cost); for i in range(j, min(j + 4096, n)): cheap
    for i in range(n): costly       ==>        for i in range(n): burn(cost); costly
    while c: cheap                  ==>        the same every so many rounds, which are counted in a register

So the innermost code does not change, and burning is one subtraction in memory every few microseconds. Loops that are
known to be short have nothing of this, and nests, which are short compared with what a user notices, neither.
"""

from collections.abc import Iterable, Sequence
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from tilework.ir import arith, math, scf, tt, ttc, ttg
from tilework.ir.llvm import licm_hints
from tilework.ir.types import array_values, axis_of
from tilework.targets.cpu.lower.checks import stop
from tilework.targets.cpu.lower.interface_of import may_wait
from tilework.targets.cpu.lower.lowering import Lowering, buffer_bytes, lowers
from tilework.targets.cpu.lower.nest_access import element_address, is_volatile
from tilework.targets.cpu.run.interface import FUEL, FULL, POLL
from tilework.targets.llvm.builder import Builder, unwritten
from tilework.targets.llvm.control_rules import Rounds, for_loop, may_wrap
from tilework.targets.llvm.control_rules import lower_while as while_loop
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import i1, i32, i64, ptr
from tilework.targets.llvm.values import Value, constant
from tilework.transforms.folding.arith import constant_int

SYMBOL = "tilework.poll"
COSTLY = 2_000  # ns: a round that takes longer counts as work of its own
PORTION = 10_000  # ns of cheap rounds that are burnt at once
SHORT = 20_000  # ns: shorter loops do not poll
LEAST = 200  # ns: the least that a program burns
PROGRAMS = 32  # cheap programs between two checks of the fuel
SPINS = 1_000  # rounds of a loop that waits before it lets others run
RARE = (1, 1 << 20)
MOST = 1 << 30
PER_OP, PER_FUNCTION, PER_MULTIPLICATION, PER_CALL = 0.1, 2.0, 0.05, 100.0  # ns, of an element and of a call


def cost_of(ops: Iterable[Operation]) -> float:
    """Estimate the nanoseconds that ops take; a loop of unknown length burns its own fuel and counts as one round."""
    return sum(cost_of_op(op) for op in ops)


def cost_of_op(op: Operation) -> float:
    kind = type(op)
    if kind is ttc.NestOp:
        body = sum(PER_FUNCTION if is_function(inner) else PER_OP for inner in op.regions[0].block.ops)
        return prod(array_values(op.properties["shape"])) * body
    if kind is ttc.DotOp:
        a, b = map(ttc.buffer_of, op.operands[:2])
        return prod(a.shape) * b.shape[-1] * PER_MULTIPLICATION
    if kind is scf.ForOp:
        inner = 1 + cost_of(op.regions[0].block.ops)
        trips = trip_count(op)
        return inner * trips if trips is not None and inner * trips <= SHORT else inner
    if kind is tt.CallOp:
        return PER_CALL
    buffers = [operand.type for operand in op.operands if isinstance(operand.type, ttc.BufferType)]
    one = PER_FUNCTION if is_function(op) else PER_OP
    own = 10 * PER_OP * max(prod(type.shape) for type in buffers) if buffers else one
    return own + sum(cost_of(block.ops) for region in op.regions for block in region.blocks)


def is_function(op: Operation) -> bool:
    """An elementary function, or a division."""
    return op.name.startswith("math.") or type(op) in SLOW


SLOW = (arith.DivfOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, tt.ExternElementwiseOp, math.SqrtOp)


def trip_count(loop: Operation) -> int | None:
    """The trip count of an `scf.for`, if it is known."""
    low, high, step = (constant_int(operand) for operand in loop.operands[:3])
    if low is None or high is None or step is None or step < 1:
        return None
    return max(0, -(-(high - low) // step))


def rounds_at_once(cost: float) -> int:
    """Return the rounds of a loop between two checks of the fuel."""
    return 1 if cost >= COSTLY else max(2, int(PORTION / max(cost, 0.25)))


def fuel_of(cost: float) -> int:
    return min(MOST, max(1, int(cost)))


def burn(low: Lowering, cost: float, waits: bool = False) -> None:
    """Use up fuel; end the function if there is none and the launch is over."""
    b = low.builder
    with b.if_(is_empty(b, low.arena, fuel_of(cost)), weights=RARE):
        poll_launch(low, waits)


def is_empty(b: Builder, arena: Value, amount: int) -> Value:
    """Take some fuel; true if none is left."""
    address = b.gep(arena, FUEL)
    left = b.sub(b.load(i32, address, align=4), constant(i32, amount))
    b.store(left, address, align=4)
    return b.icmp("slt", left, 0)


def poll_launch(low: Lowering, waits: int) -> None:
    """Poll the launch, and end the function if it is over."""
    b = low.builder
    code = call_poll(b, low.module, low.arena, waits)
    with b.if_(b.icmp("ne", code, 0), weights=RARE):
        stop(low, code)


def call_poll(b: Builder, module: Module, arena: Value, waits: int = False) -> Value:
    if (inner := unwritten(module, SYMBOL, i32, [ptr, i32], ("cold", "noinline", "nounwind"))) is not None:
        write_poll(inner)
    return b.call(SYMBOL, i32, [arena, constant(i32, int(waits))])


def write_poll(b: Builder) -> None:
    """``i32 @tilework.poll(ptr arena, i32 waits)``: the launch's answer; 0 where there is no launch to poll."""
    arena, waits = b.function.args
    poll = b.load(ptr, b.gep(arena, POLL), align=8)
    with b.if_(b.icmp("eq", poll, constant(ptr, 0))):
        b.store(constant(i32, FULL), b.gep(arena, FUEL), align=4)
        b.ret(constant(i32, 0))
    b.ret(b.call(poll, i32, [arena, waits]))


class Counted(Rounds):
    """Rounds counted down in a register."""

    def __init__(self, low: Lowering, cost: float, waits: bool = False) -> None:
        self.low, self.cost, self.waits = low, cost, waits
        self.rounds = SPINS if waits else rounds_at_once(cost)
        self.start = [constant(i32, self.rounds)]

    def next(self, left: Sequence[Value]) -> Sequence[Value]:
        """The fuel that is left; the last unit of it polls first."""
        low, b = self.low, self.low.builder
        if self.rounds == 1:
            burn(low, self.cost, self.waits)
            return left

        def look() -> list[Value]:
            if self.waits:
                poll_launch(low, True)
            else:
                burn(low, self.cost * self.rounds)
            return [constant(i32, self.rounds)]

        fewer = b.sub(left[0], constant(i32, 1))
        return b.if_else(b.icmp("eq", fewer, 0), look, lambda: [fewer], weights=(1, self.rounds))


@lowers(scf.ForOp, overrides=True)
def lower_for(low: Lowering, op: Operation) -> list[Value]:
    """Lower a loop; one that may be long polls, in every round or between portions of cheap rounds."""
    start, end, step, *carried = (low[operand] for operand in op.operands)
    b, block, type_ = low.builder, op.regions[0].block, start.type
    cost = 1 + cost_of(block.ops)
    trips, rounds, hints = trip_count(op), rounds_at_once(cost), licm_hints(op)
    if trips is not None and trips * cost <= SHORT:
        with for_loop(b, start, end, step, carried, may_wrap(end, step), hints=hints) as (loop, index):
            loop.next(low.region(block, [index, *loop.carried]))
        return list(loop.results)
    if rounds > 1 and type_.bits < 64:
        first, last, wide = (b.sext(value, i64) for value in (start, end, step))
        stride = b.mul(wide, rounds)
        with b.loop_carrying(first, last, stride, carried, hints=hints) as outer:
            burn(low, cost * rounds)
            bound = b.smin(b.add(outer.index, stride), last)
            begin, limit, by = outer.index, bound, wide
            if step.constant == 1:  # the last sum fits
                begin, limit, by = b.trunc(begin, type_), b.trunc(limit, type_), step
            with b.loop_carrying(begin, limit, by, outer.carried, runs=True, hints=hints) as loop:
                index = loop.index if loop.index.type is type_ else b.trunc(loop.index, type_)
                loop.next(low.region(block, [index, *loop.carried]))
            outer.next(loop.results)
        return list(outer.results)
    counted = Counted(low, cost)
    with for_loop(b, start, end, step, [*counted.start, *carried], may_wrap(end, step), hints=hints) as (loop, index):
        left, *values = loop.carried
        following = low.region(block, [index, *values])
        loop.next([*counted.next([left]), *following])
    return list(loop.results[1:])


@lowers(scf.WhileOp, overrides=True)
def lower_while(low: Lowering, op: Operation) -> list[Value]:
    ops = [inner for region in op.regions for inner in region.block.ops]
    return while_loop(low, op, Counted(low, 1 + cost_of(ops), may_wait(op)))


@lowers(tt.GetProgramIdOp, elementwise=True)
def lower_program_id(low: Lowering, op: Operation) -> Value:
    return low.program[axis_of(op)]


@lowers(tt.GetNumProgramsOp, elementwise=True)
def lower_num_programs(low: Lowering, op: Operation) -> Value:
    return low.grid[axis_of(op)]


@lowers(ttg.BarrierOp)
def lower_barrier(low: Lowering, op: Operation) -> None:
    """Lower a barrier to a fence. One thread runs a program, so there is no thread to wait for."""
    low.builder.fence("seq_cst")


# Buffers


@lowers(ttc.AllocOp)
def lower_alloc(low: Lowering, op: Operation) -> Value:
    return low.buffer_offset(low.offsets[op.results[0]])


@lowers(ttc.TableOp)
def lower_table(low: Lowering, op: Operation) -> Value:
    """A constant array in the object file."""
    value = op.properties["value"]
    assert isinstance(value, DenseIntOrFPElementsAttr)
    data = value.data.data
    data *= buffer_bytes(ttc.buffer_of(op.results[0])) // len(data)
    return low.module.data(f"table.{len(low.module.globals)}", data)


@lowers(ttc.ReadOp)
def lower_read(low: Lowering, op: Operation) -> Value:
    """Outside of a nest: one scalar."""
    return low.read(op.results[0].type, element_address(low, op, 0, low.values.__getitem__))


@lowers(ttc.WriteOp)
def lower_write(low: Lowering, op: Operation) -> None:
    low.write(op.operands[0].type, low[op.operands[0]], element_address(low, op, 1, low.values.__getitem__))


@lowers(tt.LoadOp)
def lower_load(low: Lowering, op: Operation) -> Value:
    """Outside of a nest: one scalar; masked off without `other`, it is 0."""
    type_ = op.results[0].type
    address, *rest = (low[operand] for operand in op.operands)

    def read() -> Value:
        return low.read(type_, address, volatile=is_volatile(op))

    if not rest:
        return read()
    other = rest[1] if len(rest) > 1 else constant(register_type(type_), 0)
    (value,) = low.builder.if_else(rest[0], lambda: [read()], lambda: [other])
    return value


@lowers(tt.StoreOp)
def lower_store(low: Lowering, op: Operation) -> None:
    address, value, *mask = (low[operand] for operand in op.operands)
    if mask and mask[0].constant == 0:
        return
    with low.builder.if_(mask[0] if mask else constant(i1, 1)):
        low.write(op.operands[1].type, value, address)
