"""Rules of control flow and of scalar memory: `scf`, `cf`, returns, buffers, and reads outside of nests.

Only scalars are carried by loops and branches; tiles stay where they are, in their buffers.
"""

from math import prod

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.ir import tt, ttc
from tilework.ir.types import array_values
from tilework.targets.cpu.lower.interface_of import may_wait
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.lower.nest_access import is_volatile
from tilework.targets.cpu.lower.poll import SHORT, Counted, burn, cost_of, rounds_at_once, trip_count
from tilework.targets.llvm.branches import Branches
from tilework.targets.llvm.scalar_types import element_bytes, register_type
from tilework.targets.llvm.types import array, i1, i8, i32, i64
from tilework.targets.llvm.values import Value, constant


def lower_body(low: Lowering, region: Region) -> None:
    """The body of a function, from its entry block on."""
    blocks = list(region.blocks)
    if len(blocks) == 1:
        low.lower_block(blocks[0])
        return

    def bind(arg: SSAValue, made: list[Value]) -> None:
        (low[arg],) = made

    low.branches = Branches(low.builder, blocks, lambda type: (register_type(type),), bind)
    low.branches.run(low.lower_block)


@lowers(cf.BranchOp)
def lower_br(low: Lowering, op: Operation) -> None:
    low.branches.jump(op.successors[0], [low[value] for value in op.operands])


@lowers(cf.ConditionalBranchOp)
def lower_cond_br(low: Lowering, op: Operation) -> None:
    b = low.builder
    _, first, _ = array_values(op.properties["operandSegmentSizes"])
    values = [low[value] for value in op.operands[1:]]
    sides = [b.new_block("edge", inherit=True) for _ in range(2)]
    b.cond_br(low[op.operands[0]], sides[0], sides[1])
    for side, target, carried in zip(sides, op.successors, (values[:first], values[first:]), strict=True):
        b.enter(side)
        low.branches.jump(target, carried)


@lowers(tt.ReturnOp)
def lower_return(low: Lowering, op: Operation) -> None:
    low.builder.ret_all([low[operand] for operand in op.operands])


@lowers(scf.ForOp)
def lower_for(low: Lowering, op: Operation) -> tuple[Value, ...]:
    start, end, step, *carried = (low[operand] for operand in op.operands)
    b, block, type_ = low.builder, op.regions[0].block, start.type
    cost = 1 + cost_of(block.ops)
    trips = trip_count(op)
    if trips is None or trips * cost > SHORT:
        return lower_long_for(low, block, cost, start, end, step, carried)
    if step.constant != 1 and end.constant is None and type_.bits < 64:
        start, end, step = (b.sext(value, i64) for value in (start, end, step))  # the last sum may not fit into `type_`
    with b.loop_carrying(start, end, step, carried) as loop:
        index = loop.index if loop.index.type is type_ else b.trunc(loop.index, type_)
        loop.next(low.region(block, [index, *loop.carried]))
    return loop.results


def lower_long_for(
    low: Lowering, block: Block, cost: float, start: Value, end: Value, step: Value, carried: list[Value]
) -> tuple[Value, ...]:
    """A loop that looks up now and then; a cheap one runs in portions (`poll.py`)."""
    b, type_ = low.builder, start.type
    rounds = rounds_at_once(cost)
    if rounds > 1 and type_.bits < 64:
        first, last, wide = (b.sext(value, i64) for value in (start, end, step))
        stride = b.mul(wide, rounds)
        with b.loop_carrying(first, last, stride, carried) as outer:
            burn(low, cost * rounds)
            bound = b.smin(b.add(outer.index, stride), last)
            begin, limit, by = outer.index, bound, wide
            if step.constant == 1:  # the last sum fits
                begin, limit, by = b.trunc(begin, type_), b.trunc(limit, type_), step
            with b.loop_carrying(begin, limit, by, outer.carried, runs=True) as loop:
                index = loop.index if loop.index.type is type_ else b.trunc(loop.index, type_)
                loop.next(low.region(block, [index, *loop.carried]))
            outer.next(loop.results)
        return outer.results
    if step.constant != 1 and type_.bits < 64:
        start, end, step = (b.sext(value, i64) for value in (start, end, step))
    counted = Counted(low, cost)
    with b.loop_carrying(start, end, step, [counted.start, *carried]) as loop:
        index = loop.index if loop.index.type is type_ else b.trunc(loop.index, type_)
        left, *values = loop.carried
        following = low.region(block, [index, *values])
        loop.next([counted.next(left), *following])
    return loop.results[1:]


@lowers(scf.IfOp)
def lower_if(low: Lowering, op: Operation) -> tuple[Value, ...]:
    def side(region: Region) -> list[Value]:
        return low.region(region.block, []) if region.blocks else []

    then, otherwise = op.regions
    return low.builder.if_else(low[op.operands[0]], lambda: side(then), lambda: side(otherwise))


@lowers(scf.WhileOp)
def lower_while(low: Lowering, op: Operation) -> tuple[Value, ...]:
    b = low.builder
    before, after = op.regions
    origin = b.block
    header, body, done = (b.function.block(name) for name in ("while", "do", "done"))
    counted = Counted(low, 1 + cost_of([*before.block.ops, *after.block.ops]), may_wait(op))
    b.br(header)
    with b.scope():
        b.resume(header)
        left, close_left = b.open_phi(i32, counted.start, origin)
        opened = [b.open_phi(low[operand].type, low[operand], origin) for operand in op.operands]
        condition, *values = low.region(before.block, [made for made, _ in opened])
        b.end(f"br {condition.typed}, label %{body.name}, label %{done.name}")  # both blocks are placed in any case
        b.resume(body)
        following = low.region(after.block, values)
        left = counted.next(left)
        latch = b.block
        b.br(header)
        close_left(left, latch)
        for (_, close), value in zip(opened, following, strict=True):
            close(value, latch)
    b.resume(done)
    return tuple(values)


# Buffers


@lowers(ttc.AllocOp)
def lower_alloc(low: Lowering, op: Operation) -> Value:
    return low.buffer_offset(low.offsets[op.results[0]])


@lowers(ttc.TableOp)
def lower_table(low: Lowering, op: Operation) -> Value:
    """A constant array in the object file."""
    value, type_ = op.properties["value"], op.results[0].type
    assert isinstance(value, DenseIntOrFPElementsAttr) and isinstance(type_, ttc.BufferType)
    size = element_bytes(type_.element) * prod(type_.shape)
    data = value.data.data
    data *= size // len(data)
    spelled = "".join(f"\\{byte:02X}" for byte in data)
    name = f"table.{len(low.module.globals)}"
    text = f'c"{spelled}"'
    return low.module.global_variable(name, array(i8, size), text, linkage="private", constant=True, align=64)


@lowers(ttc.ReadOp)
def lower_read(low: Lowering, op: Operation) -> Value:
    """Outside of a nest: one scalar."""
    return low.read(op.results[0].type, element_address(low, op, 0))


@lowers(ttc.WriteOp)
def lower_write(low: Lowering, op: Operation) -> None:
    low.write(op.operands[0].type, low[op.operands[0]], element_address(low, op, 1))


def element_address(low: Lowering, op: Operation, position: int) -> Value:
    """The address of an element of the buffer that is operand `position`; its indices follow."""
    b, type_ = low.builder, op.operands[position].type
    assert isinstance(type_, ttc.BufferType)
    index, scale = constant(i64, 0), element_bytes(type_.element)
    for operand, size in zip(reversed(op.operands[position + 1 :]), reversed(type_.shape), strict=True):
        index = b.add(index, b.mul(b.sext(low[operand], i64), scale))
        scale *= size
    return b.gep(low[op.operands[position]], index)


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
