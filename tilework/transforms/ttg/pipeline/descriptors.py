"""Descriptors that a loop makes: several places in global memory for each, used in turn.

    %d = tt.make_tensor_descriptor ...   ==>   %slot = %scratch + 128 * %counter
                                               (the tensor map at %slot, see building/tensormap.py)
                                               %counter' = %counter + 1 >= n ? 0 : %counter + 1

A copy that was started with the descriptor of an earlier iteration may still read it. A counter goes through the
branches its descriptor is made in: ``%c' = scf.if ... { ... yield %counter' } else { yield %counter }``.
"""

from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import erase_op, replace_all_uses
from tilework.ir.scf_ext import also_carry, also_give, also_yield, both_sides
from tilework.ir.types import i32, is_descriptor
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.tensormap import TENSORMAP_BYTES, write_tensormap
from tilework.transforms.tt.flag_logic import choice_of
from tilework.transforms.ttg.pipeline.loops import enclosing_op, ops_outside_loops
from tilework.transforms.ttg.pipeline.lowering import next_in_turn

Replaced = Callable[[Operation, list[Operation]], None]


def called_for(value: SSAValue, body: Block) -> bool:
    """Whether a call under `body` may have made the descriptor `value`: it lies where that of the iteration before was."""
    op = value.owner
    if not isinstance(op, Operation) or enclosing_op(op, body) is None:
        return False
    if type(op) is tt.CallOp or not is_descriptor(value.type):
        return is_descriptor(value.type)
    _, *sides = choice_of(value) or (value,)
    return any(called_for(side, body) for side in sides)


def buffer_descriptors(loop: Operation, slots: int, replaced: Replaced) -> None:
    """Give each descriptor that `loop` makes `slots` places.

    `replaced` is told which ops of the body took the place of which.
    """
    makes = list(ops_outside_loops(body_of(loop), tt.MakeTensorDescOp))
    if not makes:
        return
    code = Emitter(loop.location)
    scratch = [
        code.append(ttg.GlobalScratchAllocOp.make(slots * TENSORMAP_BYTES, TENSORMAP_BYTES, make.location))
        for make in makes
    ]
    zero, one = code.constant(0, i32), code.constant(1, i32)
    code.insert_before(loop)
    body, counters = body_of(loop), also_carry(loop, [zero] * len(makes))
    for make, memory, counter in zip(makes, scratch, counters, strict=True):
        code = Emitter(make.location)
        offset = code.binary(arith.MuliOp, code.constant(TENSORMAP_BYTES, i32), counter)
        slot = code.append(tt.AddPtrOp.make(memory, offset, code.loc))
        descriptor = write_tensormap(code, make, slot)
        following, _ = next_in_turn(code, counter, code.constant(slots, i32), zero, one)
        new = list(code.ops)
        code.insert_before(make)
        replace_all_uses(make.results[0], descriptor)
        if make.parent is body:
            replaced(make, new)
        following = leave_branches(following, counter, make.parent, body)
        erase_op(make)
        also_yield(body, [following])


def leave_branches(value: SSAValue, otherwise: SSAValue, block: Block | None, body: Block) -> SSAValue:
    """`value`, computed in `block`, as a value of `body`; `otherwise` where the branch is not taken."""
    while block is not None and block is not body:
        branch = block.parent_op()
        assert branch is not None and type(branch) is scf.IfOp, "descriptors are made in branches of a loop body"
        for side in both_sides(branch):
            also_yield(side, [value if side is block else otherwise])
        block, value = branch.parent, also_give(branch, value.type)
    return value
