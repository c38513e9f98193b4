"""Rules of loops, of scalar memory (buffers, and reads outside of nests), and of the program that runs."""

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from tilework.ir import scf, tt, ttc
from tilework.ir.llvm import GpuBarrierOp, licm_hints
from tilework.ir.types import axis_of
from tilework.targets.cpu.lower.interface_of import may_wait
from tilework.targets.cpu.lower.lowering import Lowering, buffer_bytes, lowers
from tilework.targets.cpu.lower.nest_access import element_address, is_volatile
from tilework.targets.cpu.lower.poll import SHORT, Counted, burn, cost_of, rounds_at_once, trip_count
from tilework.targets.llvm.control_rules import for_loop, may_wrap
from tilework.targets.llvm.control_rules import lower_while as while_loop
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import i1, i64
from tilework.targets.llvm.values import Value, constant


@lowers(scf.ForOp, overrides=True)
def lower_for(low: Lowering, op: Operation) -> list[Value]:
    """A loop that may be long looks up now and then; a cheap one runs in portions (`poll.py`)."""
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


@lowers(GpuBarrierOp)
def lower_barrier(low: Lowering, op: Operation) -> None:
    """One thread runs a program, so it waits for no other; but other programs see the accesses before it first."""
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
