"""Store tiles that cross blocks (carried by loops, yielded by branches, passed to functions) in buffers.

A loop-carried tile has one buffer, updated in place: the nest that computes the new value writes it, behind all reads
of the old one. Where the old value is still read later, or read at other indices (transposed, gathered), the new value
goes to a temporary first and is copied at the end of the body:

    scf.for ... iter_args(%acc = %zero)          nest: write 0 to %b
      %next = arith.addf %acc, %x         ==>    scf.for ...
      scf.yield %next                              nest: read %b, add, write %b

A dot adds to the buffer of the carried tile itself.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.analysis.value_flows import reached
from tilework.ir import cf, scf, tt, ttc
from tilework.ir.create import create_op
from tilework.ir.effects import ELEMENTWISE
from tilework.ir.fields import SEGMENTS
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import blocks_within, end_of, home_of, location_of
from tilework.ir.rewrite import erase_op, insert_before, recreate, replace_values
from tilework.ir.types import array_values, element_type, i32_array, is_tensor, shape_of
from tilework.transforms.ttc.loops.nests import Buffer, Item, Nest, Root, slot
from tilework.transforms.ttc.loops.schedule import Schedule, at_index, is_lazy_value, lazy_operands, writing

if TYPE_CHECKING:
    from tilework.transforms.ttc.tile_loops import Converter

Updates = Sequence[tuple[SSAValue, Buffer]]


def tiles(values: Sequence[SSAValue]) -> list[SSAValue]:
    return [value for value in values if is_tensor(value.type)]


def scalars(values: Sequence[SSAValue]) -> list[SSAValue]:
    return [value for value in values if not is_tensor(value.type)]


def exact_buffer(schedule: Schedule, value: SSAValue) -> Buffer:
    """A buffer of the type of `value`, empty."""
    return schedule.new_buffer(value.type, location_of(value), exact=True)


# Updating buffers at the end of a block.


def update(schedule: Schedule, updates: Updates) -> None:
    """Write the new value of each buffer, as if all were written at once."""
    targets = {buffer for _, buffer in updates}
    changed = [(value, buffer) for value, buffer in updates if schedule.scope.buffer(value) is not buffer]
    for value, _ in changed:
        stored = schedule.scope.buffer(value)
        if (stored is None and schedule.scope.home(value) is None) or stored in targets:
            schedule.add(Root(at_index((value,)), lambda nest, values: None, location_of(value)), shape_of(value.type))
    copies: list[tuple[Buffer, Buffer, SSAValue]] = []
    for value, buffer in changed:
        nest = waiting_home(schedule, value)
        if nest is not None and is_last_reader(schedule, nest, buffer):
            nest.last.append(writing(value, buffer))
        else:
            copies.append((staged(schedule, value, targets), buffer, value))
    for source, buffer, value in copies:
        copy(schedule, source, buffer, value)


def waiting_home(schedule: Schedule, value: SSAValue) -> Nest | None:
    """The waiting nest that computes or reads `value` at its index."""
    full = at_index((value,))[0]
    for item in schedule.items:
        if isinstance(item, Nest) and (value in item.values or full in item.choices):
            return item
    return None


def is_last_reader(schedule: Schedule, nest: Nest, buffer: Buffer) -> bool:
    """Return True if no later item uses `buffer`, and `nest` itself only at its own index."""
    behind = schedule.items[schedule.items.index(nest) + 1 :]
    return nest.reads.get(buffer, True) and not any(uses(item, buffer) for item in behind)


def uses(item: Item, buffer: Buffer) -> bool:
    if isinstance(item, Nest):
        return buffer in item.reads
    return any(operand is buffer.value for op in item.ops for operand in op.operands)


def staged(schedule: Schedule, value: SSAValue, targets: set[Buffer]) -> Buffer:
    """A buffer with `value` that no update overwrites."""
    stored = schedule.scope.buffer(value)
    if stored is not None and stored not in targets:
        return stored
    if stored is None:
        return schedule.materialise(value)
    temporary = exact_buffer(schedule, value)
    nest = waiting_home(schedule, value)
    assert nest is not None, "the old value was read before the updates"
    nest.add_late(writing(value, temporary))
    return temporary


def copy(schedule: Schedule, source: Buffer, target: Buffer, value: SSAValue) -> None:
    """Add a nest that copies a buffer, after all others."""
    shape = tuple(size for size in shape_of(value.type) if size > 1)
    nest = schedule.new_nest(shape, location_of(value), len(schedule.items))
    full = at_index((value,))[0]
    nest.choices[full] = source
    nest.read(source, full[1])
    nest.last.append(writing(value, target))


# Loops and branches.


def keep_for_loop(schedule: Schedule, op: Operation) -> None:
    """Compute before the loop what every iteration would have to recompute."""
    inside = set(blocks_within(op))
    used = tiles([operand for inner in ops_in_order(*op.regions) for operand in inner.operands])

    def keep_or_follow(value: SSAValue) -> Sequence[SSAValue]:
        if not is_lazy_value(value) or schedule.scope.buffer(value) is not None:
            return ()
        if schedule.costs.is_kept(value):
            schedule.materialise(value)
            return ()
        return lazy_operands(value)

    for _ in reached([value for value in reversed(used) if home_of(value) not in inside], keep_or_follow):
        pass


def carried_buffer(schedule: Schedule, initial: SSAValue) -> Buffer:
    """A buffer that holds `initial`: its own if nothing else needs that, else a new one."""
    own = schedule.scope.buffer(initial)
    if own is not None and own.exact and own.is_reusable and own.scope is schedule.scope and initial.has_one_use():
        return own
    buffer = exact_buffer(schedule, initial)
    schedule.write(initial, buffer)
    return buffer


def convert_for(converter: "Converter", op: Operation) -> None:
    schedule, block = converter.schedule, op.regions[0].block
    keep_for_loop(schedule, op)
    pairs = [(arg, carried_buffer(schedule, initial)) for arg, initial in carried_pairs(op)]
    schedule.flush(op)
    yielded = end_of(block)
    with converter.inside(pairs):
        converter.loops.append((op, dict(pairs)))
        converter.convert_block(block)
        converter.loops.pop()
        buffers = dict(pairs)
        new = [(v, buffers[arg]) for v, arg in zip(yielded.operands, block.args[1:], strict=True) if arg in buffers]
        update(schedule, new)
        schedule.bases.keep(block.args[1:])
        end_block(converter, yielded)
    converter.keep(op, [buffer for _, buffer in pairs])
    converter.control.append(op)


def carried_pairs(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """The tile arguments of the body of a loop with their initial values."""
    arguments = op.regions[0].block.args
    initial = op.operands[3:] if type(op) is scf.ForOp else op.operands
    return [
        (a, v) for a, v in zip(arguments[len(arguments) - len(initial) :], initial, strict=True) if is_tensor(a.type)
    ]


def end_block(converter: "Converter", terminator: Operation) -> None:
    """Emit the waiting items; the terminator passes only scalars."""
    converter.schedule.flush(terminator)
    terminator.operands = scalars(terminator.operands)


def convert_if(converter: "Converter", op: Operation) -> None:
    """A result that one branch passes on, and the other replaces, is updated in place."""
    schedule = converter.schedule
    passed = passed_tiles(op)
    buffers = [exact_buffer(schedule, result) for result in tiles(op.results)]
    pairs = [(value, buffer) for value, buffer in zip(passed, buffers, strict=True) if value is not None]
    for value, buffer in pairs:
        schedule.write(value, buffer)
    schedule.flush(op)
    for region in op.regions:
        if not region.blocks:
            continue
        with converter.inside(pairs):
            block = region.block
            converter.convert_block(block)
            update(schedule, list(zip(tiles(end_of(block).operands), buffers, strict=True)))
            end_block(converter, end_of(block))
    converter.keep(op, buffers)
    converter.control.append(op)


def passed_tiles(op: Operation) -> list[SSAValue | None]:
    """Return for each tile that branches yield the earlier tile that a branch yields and only `op` uses, or None."""
    yielded = [tiles(end_of(region.block).operands) for region in op.regions if region.blocks]
    inside = set(blocks_within(op))
    found: list[SSAValue | None] = []
    for values in zip(*yielded, strict=True):
        passed = [
            value
            for value in dict.fromkeys(values)
            if value not in found
            and home_of(value) not in inside
            and all(use.operation.parent_block() in inside for use in value.uses)
        ]
        found.append(passed[0] if passed and len(set(values)) > 1 else None)
    return found


def convert_while(converter: "Converter", op: Operation) -> None:
    """The tiles passed on by the condition are those of the first block where it passes them unchanged."""
    schedule = converter.schedule
    before, after = (region.block for region in op.regions)
    keep_for_loop(schedule, op)
    pairs = [(arg, carried_buffer(schedule, initial)) for arg, initial in carried_pairs(op)]
    schedule.flush(op)
    own = {buffer for _, buffer in pairs}
    passed: list[Buffer] = []
    with converter.inside(pairs):
        converter.convert_block(before)
        condition = end_of(before)
        for value in tiles(condition.operands):
            buffer = schedule.scope.buffer(value)
            if buffer is None or buffer not in own:
                buffer = exact_buffer(schedule, value)
                schedule.write(value, buffer)
            passed.append(buffer)
        end_block(converter, condition)
    for buffer in (*own, *passed):
        buffer.writer = None
    with converter.inside(list(zip(tiles(after.args), passed, strict=True))):
        converter.convert_block(after)
        yielded = end_of(after)
        update(schedule, list(zip(tiles(yielded.operands), [buffer for _, buffer in pairs], strict=True)))
        end_block(converter, yielded)
    converter.keep(op, passed)
    converter.control.append(op)


def convert_branch(converter: "Converter", op: Operation) -> None:
    target = op.successors[0]
    pairs = [
        (v, converter.arguments[arg]) for v, arg in zip(op.operands, target.args, strict=True) if is_tensor(v.type)
    ]
    update(converter.schedule, pairs)
    end_block(converter, op)


def split_edges(region: Region) -> None:
    """Give each conditional branch that passes tiles a block of its own for them."""
    for block in tuple(region.blocks):
        op = block.last_op
        if not isinstance(op, cf.ConditionalBranchOp) or not tiles(op.operands):
            continue
        condition, *values = op.operands
        first = array_values(op.properties[SEGMENTS])[1]
        targets: list[Block] = []
        for target, passed in zip(op.successors, (values[:first], values[first:]), strict=True):
            edge = Block()
            branch = create_op(cf.BranchOp, passed, (), op.location)
            branch.successors = (target,)
            edge.add_op(branch)
            region.insert_block_after(edge, block)
            targets.append(edge)
        op.operands = (condition,)
        op.properties[SEGMENTS] = i32_array(1, 0, 0)
        op.successors = targets


# Functions.


def buffer_for(type: Attribute) -> Attribute:
    return ttc.buffer_type(shape_of(type), element_type(type)) if is_tensor(type) else type


def convert_signature(function: Operation) -> list[SSAValue]:
    """Pass tiles in buffers. Return the new parameters: buffers of the caller for the returned tiles."""
    type = function.properties["function_type"]
    inputs, outputs = [buffer_for(t) for t in type.inputs], list(type.outputs)  # pyright: ignore
    returned = [buffer_for(t) for t in outputs if is_tensor(t)]
    kept = tuple(t for t in outputs if not is_tensor(t))
    function.properties["function_type"] = tt.function_type((*inputs, *returned), kept)
    attrs = function.properties.get("arg_attrs")
    if returned and isinstance(attrs, ArrayAttr):
        function.properties["arg_attrs"] = ArrayAttr([*attrs, *(DictionaryAttr({}) for _ in returned)])
    entry = function.regions[0].blocks[0]
    return [entry.insert_arg(t, len(entry.args)) for t in returned]


def convert_call(converter: "Converter", op: Operation) -> None:
    schedule = converter.schedule
    operands = [converter.whole(operand) for operand in op.operands]
    buffers = [exact_buffer(schedule, result) for result in tiles(op.results)]
    operands += map(slot, buffers)
    schedule.flush(op)
    plain = scalars(op.results)
    new = recreate(op, operands=operands, result_types=[result.type for result in plain])
    insert_before(op, new)
    replace_values(plain, new.results)
    converter.keep(op, buffers)
    converter.dead.append(op)


def convert_return(converter: "Converter", op: Operation) -> None:
    for value, buffer in zip(tiles(op.operands), converter.returned, strict=True):
        converter.schedule.write(value, buffer)
    end_block(converter, op)


# Dots.


def convert_dot(converter: "Converter", op: Operation) -> None:
    """Add the dot to the buffer of the accumulator, in place where its old value is not needed."""
    schedule = converter.schedule
    a, b = (schedule.materialise(operand, exact=True) for operand in op.operands[:2])
    target = accumulator(converter, op)
    dot = create_op(ttc.DotOp, [slot(x) for x in (a, b, target)], (), op.location, op.properties)
    converter.keep(op, [target], schedule.append(dot))
    converter.dead.append(op)


def accumulator(converter: "Converter", op: Operation) -> Buffer:
    """A buffer that holds the third operand of a dot and may be overwritten."""
    schedule, initial = converter.schedule, op.operands[2]
    if (carried := carried_target(converter, op)) is not None:
        if schedule.scope.buffer(initial) is carried:
            return carried
        nest = schedule.add(Root(at_index((initial,)), lambda nest, values: None, op.location), shape_of(initial.type))
        if is_last_reader(schedule, nest, carried):
            nest.last.append(writing(initial, carried))
            carried.writer = nest
            return carried
    return carried_buffer(schedule, initial)


def carried_target(converter: "Converter", op: Operation) -> Buffer | None:
    """The buffer of the loop-carried tile whose next value `op` computes, if its old value has no other use."""
    if not converter.loops or not op.results[0].has_one_use():
        return None
    loop, buffers = converter.loops[-1]
    use = op.results[0].first_use
    assert use is not None
    if type(use.operation) is not scf.YieldOp or use.operation.parent is not loop.regions[0].block:
        return None
    if op.parent is not use.operation.parent:
        return None
    argument = loop.regions[0].block.args[use.index + 1]
    return buffers[argument] if flows_only_into(argument, op) else None


def flows_only_into(value: SSAValue, op: Operation) -> bool:
    """Return True if `value` only flows, through elementwise ops, into the accumulator of `op`."""
    while value.has_one_use():
        use = value.first_use
        assert use is not None
        if use.operation is op:
            return use.index == 2
        if type(use.operation) not in ELEMENTWISE or use.operation.parent is not op.parent:
            return False
        value = use.operation.results[0]
    return value.first_use is None and value.owner is op.parent


def finish_control(op: Operation) -> None:
    """Drop the tiles that a loop or branch still carries; nothing uses them any more."""
    for region in op.regions:
        for block in region.blocks:
            for argument in reversed(tiles(block.args)):
                block.erase_arg(argument)  # pyright: ignore[reportArgumentType]
    if not tiles(op.results):
        return
    plain = scalars(op.results)
    new = recreate(op, result_types=[result.type for result in plain], regions=tuple(op.regions))
    insert_before(op, new)
    replace_values(plain, new.results)
    erase_op(op)
