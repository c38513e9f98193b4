"""Use the flag of warp-group dots that ignores the accumulator instead of writing zeros to it.

    scf.for iter_args(%acc = 0) {                        scf.for iter_args(%acc = 0, %flag = false) {
      %d = ttng.warp_group_dot %a, %b, %acc       ==>      %d = ttng.warp_group_dot %a, %b, %acc, %flag
      %s = arith.select %e, 0, %d                          %f = arith.select %e, false, true
      scf.yield %s                                         scf.yield %d, %f

The instruction has a flag that makes it ignore the accumulator, while zeros cost a register move for each element, and
a wait for the preceding dot. The loop carries a flag: false where the accumulator counts as zero. It starts as false if
the accumulator is initially zero, and becomes false where a `select` or `scf.if` on a scalar resets it, before or after
the dot.

The result of the loop is reset too, if its last iteration resets it. An accumulator that is reset after the dot must
have no other use in the loop, since it is not zero any more. fp8 dots that accumulate in parts are left alone.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilework.ir import scf, ttng
from tilework.ir.arith import SelectOp
from tilework.ir.create import add_result
from tilework.ir.functions import functions, ops_in_order
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import (
    constant,
    constant_value,
    defining_op,
    erase_op,
    insert_after,
    insert_before,
    is_dead,
    replace_uses,
)
from tilework.ir.scf import also_yield
from tilework.ir.types import bit_width, element_type, f32, i1, int_property, is_float, is_tensor, shape_of
from tilework.light_dataclass import light_dataclass
from tilework.transforms.folding.tiles import is_zero
from tilework.transforms.folding.worklist import Driver
from tilework.transforms.passes import module_pass
from tilework.transforms.tt.flag_logic import choice_of


@module_pass("tritongpu-optimize-accumulator-init")
def optimize_accumulator_init(module: ModuleOp) -> None:
    changed = False
    for dot in [inner for inner in ops_in_order(*module.regions) if type(inner) is ttng.WarpGroupDotOp]:
        loop = dot.parent_op()
        if isinstance(loop, scf.ForOp) and may_ignore_accumulator(dot):
            changed |= optimize(dot, loop)
    if changed:
        for function in functions(module):
            Driver({}).run(function)  # hoists constants


def may_ignore_accumulator(dot: Operation) -> bool:
    """Return True if the dot does not use its flag, and is one chain of instructions."""
    a, _, c, *flag = dot.operands
    if flag and constant_value(flag[0]) != 1:
        return False
    limit = int_property(dot, "maxNumImpreciseAcc")
    element = a.type.element_type  # pyright: ignore[reportAttributeAccessIssue]
    in_parts = is_float(element) and bit_width(element) == 8 and element_type(c.type) == f32
    return not (in_parts and limit < shape_of(a.type)[-1])


@light_dataclass
class Reset:
    """An op whose result is zero where `condition` is `when`, and `other` elsewhere."""

    op: Operation
    condition: SSAValue
    when: bool
    other: SSAValue
    index: int = 0

    @property
    def result(self) -> SSAValue:
        return self.op.results[self.index]


def reset_of(value: SSAValue, body: Block) -> Reset | None:
    """Return the select or `scf.if` of the loop that defines `value`, if one of its sides is zero."""
    op, choice = defining_op(value), choice_of(value)
    if op is None or op.parent is not body or choice is None or is_tensor(choice[0].type):
        return None
    condition, *sides = choice
    zero = [is_zero(side) for side in sides]
    if zero[0] == zero[1]:
        return None
    other = sides[1] if zero[0] else sides[0]
    inside = defining_op(other)
    if inside is not None and inside.parent_op() is op:
        return None
    return Reset(op, condition, zero[0], other, value.index)  # pyright: ignore[reportAttributeAccessIssue]


def optimize(dot: Operation, loop: scf.ForOp) -> bool:
    """Replace zeros of the accumulator of `dot` by a flag; return False if there are none."""
    accumulator = dot.operands[2]
    if is_zero(accumulator):
        false = constant(0, i1, dot.location)
        insert_before(loop, false)
        use_flag(dot, false.results[0])
        return True
    body = loop.regions[0].blocks[0]
    before = reset_of(accumulator, body)
    carried = before.other if before is not None else accumulator
    if not isinstance(carried, BlockArgument) or carried.owner is not body or carried.index == 0:
        return False
    index = carried.index - 1
    after = reset_of(end_of(body).operands[index], body) if before is None else None
    if after is not None and any(use.operation is not dot for use in carried.uses):
        after = None
    starts_at_zero = before is None and is_zero(loop.operands[3 + index])
    if before is None and after is None and not starts_at_zero:
        return False
    carry_flag(dot, loop, index, starts_at_zero, before, after)
    return True


def carry_flag(
    dot: Operation, loop: scf.ForOp, index: int, starts_at_zero: bool, before: Reset | None, after: Reset | None
) -> None:
    """Add the flag to the loop and to the dot, and remove the zeros."""
    body = loop.regions[0].blocks[0]
    false, true = constant(0, i1, loop.location), constant(1, i1, loop.location)
    insert_before(loop, true, false)
    no, yes = false.results[0], true.results[0]
    loop.operands = (*loop.operands, no if starts_at_zero else yes)
    flag: SSAValue = body.insert_arg(i1, len(body.args))
    following = yes
    if before is not None:
        flag = choose(before, no, flag)
        dot.operands[2] = before.other
        drop(before)
    end = end_of(body)
    if after is not None:
        following = choose(after, no, yes)
        end.operands[index] = after.other
        drop(after)
    use_flag(dot, flag)
    also_yield(body, [following])
    last = add_result(loop, i1)
    if after is not None:
        reset_result(loop, index, last)


def choose(reset: Reset, no: SSAValue, otherwise: SSAValue) -> SSAValue:
    """Return the flag at `reset`: `no` where its result is zero."""
    on_true, on_false = (no, otherwise) if reset.when else (otherwise, no)
    select = SelectOp.make(reset.condition, on_true, on_false, reset.op.location)
    insert_before(reset.op, select)
    return select.results[0]


def drop(reset: Reset) -> None:
    """Remove the zeros if they have no other use; a branch with other results loses only this one."""
    if is_dead(reset.op):
        erase_op(reset.op)
    elif reset.result.first_use is None and isinstance(reset.op, scf.IfOp):
        for region in reset.op.regions:
            end_of(region.blocks[0]).operands[reset.index] = reset.other


def use_flag(dot: Operation, flag: SSAValue) -> None:
    dot.operands = (*dot.operands[:3], flag)


def reset_result(loop: scf.ForOp, index: int, flag: SSAValue) -> None:
    """Select zero for the accumulator after the loop where the flag is false."""
    result = loop.results[index]
    if result.first_use is not None:
        zero = constant(0, result.type, loop.location)
        select = SelectOp.make(flag, result, zero.results[0], loop.location)
        insert_after(loop, zero, select)
        replace_uses(result, select.results[0], lambda user: user is not select)
