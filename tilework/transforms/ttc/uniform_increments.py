"""Carry a scalar amount instead of a tile that a loop increments by the same amount everywhere.

    scf.for ... iter_args(%p = %start)                     scf.for ... iter_args(%moved = 0)
      %x = tt.load %p                                        %p = tt.addptr %start, splat(%moved)
      %next = tt.addptr %p, splat(%s)               ==>      %x = tt.load %p
      scf.yield %next                                        %sum = arith.addi %moved, %s
                                                             scf.yield %sum

Holds for pointers (`tt.addptr`) and integers (`arith.addi`), for amounts that are splats of scalars or constants, and
for several such steps in a row. Pointers are moved by 64-bit amounts: their sum may not fit the type of one step.
Stage: TTIR to TTIR. Cost: one walk.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import arith, scf, tt
from tilework.ir.arith import binary, convert
from tilework.ir.nesting import end_of, start_of
from tilework.ir.rewrite import constant, constant_value, erase_op, insert_before, put, recreate, replace_all_uses
from tilework.ir.types import bit_width, element_type, i64, is_integer, is_pointer, is_tensor, with_element
from tilework.transforms.passes import module_pass


@module_pass("ttc-uniform-increments")
def uniform_increments(module: ModuleOp) -> None:
    for loop in tuple(module.walk(reverse=True)):  # inner loops first
        if type(loop) is scf.ForOp:
            rewrite_loop(loop)


def rewrite_loop(loop: Operation) -> None:
    """Replace every carried tile of `loop` that only moves uniformly."""
    found = {
        index: steps
        for index, initial in enumerate(loop.operands[3:])
        if is_tensor(initial.type) and (steps := uniform_steps(loop, index)) is not None
    }
    if found:
        carry_amounts(loop, found)


def uniform_steps(loop: Operation, index: int) -> list[SSAValue] | None:
    """The scalars by which carried tile `index` grows in one iteration, or None if it changes in another way."""
    block = loop.regions[0].block
    argument = block.args[index + 1]
    value = end_of(block).operands[index]
    is_moving = is_pointer(element_type(value.type)) or is_integer(element_type(value.type))
    steps: list[SSAValue] = []
    while value is not argument and is_moving:
        if not isinstance(value, OpResult) or value.op.parent is not block:
            return None
        op = value.op
        if type(op) is not tt.AddPtrOp and type(op) is not arith.AddiOp:
            return None
        value, step = op.operands
        if type(op) is arith.AddiOp and not is_uniform(step):
            value, step = step, value
        if not is_uniform(step):
            return None
        steps.append(step)
    return steps or None


def is_uniform(value: SSAValue) -> bool:
    """Return True if every element of the tile is the same scalar."""
    if not isinstance(value, OpResult):
        return False
    return type(value.op) is tt.SplatOp or (type(value.op) is arith.ConstantOp and constant_value(value) is not None)


def carry_amounts(loop: Operation, found: dict[int, list[SSAValue]]) -> None:
    """Rebuild `loop` with a scalar instead of each tile in `found`."""
    block = loop.regions[0].block
    end, first = end_of(block), start_of(block)
    operands, types = list(loop.operands), [result.type for result in loop.results]
    yielded = list(end.operands)
    for index, steps in found.items():
        initial, location = loop.operands[3 + index], loop.location
        element = element_type(initial.type)
        type = i64 if is_pointer(element) else element  # of the sum of the steps
        zero = put(loop, constant(0, type, location))
        operands[3 + index], types[index] = zero, type
        old = block.args[index + 1]
        amount = block.insert_arg(type, index + 1, old.location)
        replace_all_uses(old, moved_tile(initial, amount, first))
        block.erase_arg(old)
        yielded[index] = total(amount, steps, end)
    end.operands = yielded
    new = recreate(loop, operands=operands, result_types=types, regions=(loop.regions[0],))
    insert_before(loop, new)
    for index, (old, result) in enumerate(zip(loop.results, new.results, strict=True)):
        if index in found and old.first_use is not None:
            replace_all_uses(old, moved_tile(loop.operands[3 + index], result, loop))
        else:
            replace_all_uses(old, result)
    erase_op(loop)


def moved_tile(initial: SSAValue, amount: SSAValue, before: Operation) -> SSAValue:
    """`initial`, every element moved by `amount`."""
    location = before.location
    splat = tt.SplatOp.make(amount, with_element(initial.type, amount.type), location)  # pyright: ignore
    if is_pointer(element_type(initial.type)):
        moved = tt.AddPtrOp.make(initial, splat.results[0], location)
    else:
        moved = binary(arith.AddiOp, initial, splat.results[0], location)
    insert_before(before, splat, moved)
    return moved.results[0]


def total(amount: BlockArgument, steps: list[SSAValue], end: Operation) -> SSAValue:
    """Add all steps to `amount`, in front of the yield."""
    value: SSAValue = amount
    for step in steps:
        scalar = step_scalar(step, end)
        if bit_width(scalar.type) < bit_width(amount.type):
            scalar = put(end, convert(arith.ExtSIOp, scalar, amount.type, end.location))
        value = put(end, binary(arith.AddiOp, value, scalar, end.location))
    return value


def step_scalar(step: SSAValue, end: Operation) -> SSAValue:
    """The scalar that a uniform tile repeats."""
    assert isinstance(step, OpResult)
    if type(step.op) is tt.SplatOp:
        return step.op.operands[0]
    index = constant_value(step)
    assert index is not None
    return put(end, constant(index, element_type(step.type), end.location))
