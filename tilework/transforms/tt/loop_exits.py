"""Rewrite loops that the frontend has marked because they end early (`count_exits.py`) or skip iterations.

Few kernels have any: only these pay for more than a walk.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached
from tilework.ir import scf, tt
from tilework.ir.effects import is_speculatable, writes
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of, end_of
from tilework.ir.rewrite import defining_op, move_before, replace_all_uses
from tilework.ir.scf import COUNTED, SKIPS
from tilework.ir.types import i32, is_tensor
from tilework.transforms.building.emitter import Emitter, narrowed, set_mask
from tilework.transforms.passes import Pass, module_pass

# Loads that a `continue` may skip run in front of the branch, where the pipeliner can start them early; skipped ones
# read nothing.
#
#     for k in range(n):                         for k in range(n):
#         if mask[k] == 0: continue                  runs = mask[k] != 0
#         a = load(p + k)               ==>          a = load(p + k, mask=runs)
#         acc = dot(a, b, acc)                       if runs: acc = dot(a, b, acc)
#
# The ops that compute their addresses move with them, and so do the pointers of the next iteration, which become
# selects. Everything else remains in the branch: the dots of skipped iterations are not computed. A skipped load by
# descriptor gets coordinates in front of its array, where nothing is read. Loads after an op with an effect remain, and
# so do those whose address cannot be computed ahead.
#
# The frontend marks loops with `continue`; no other loop is touched.
# Stage: TTIR to TTIR. Cost: one walk; for each such loop two over its body.

DOTS = (tt.DotOp, tt.DotScaledOp)
IN_FRONT = -(2**30)  # a coordinate at which a whole block is in front of any array


def lift_skipped_loads(loop: Operation) -> None:
    """Lift the loads of a loop that the frontend has marked, if it would be pipelined."""
    has_dots = any(type(op) in DOTS for op in body_of(loop).walk())
    if has_dots or "tt.num_stages" in loop.attributes:
        lift_branches(body_of(loop))
        lift_carried(loop)


def lift_branches(block: Block) -> None:
    """Lift loads out of the branches of `block`, inner ones first."""
    for op in tuple(block.ops):
        if type(op) is not scf.IfOp:
            continue
        for region, holds in zip(op.regions, (True, False), strict=True):
            if (inner := region.first_block) is not None:
                lift_branches(inner)
                lift_loads(op, inner, holds)


def lift_loads(branch: Operation, block: Block, holds: bool) -> None:
    """Lift the loads of one side of `branch`."""
    predicate: SSAValue | None = None
    for op in tuple(block.ops):
        if writes(op):
            return
        is_load = isinstance(op, tt.LoadOp | tt.DescriptorLoadOp) and is_tensor(op.results[0].type)
        if not is_load or (needed := movable(op.operands, block)) is None:
            continue
        code = Emitter(op.location)
        if predicate is None:
            predicate = branch.operands[0] if holds else code.negated(branch.operands[0])
        move_before(branch, *needed)
        if isinstance(op, tt.LoadOp):
            set_mask(op, narrowed(code, op, predicate))
        else:  # in front of the array where the predicate is false
            op.operands[1] = code.select(predicate, op.operands[1], code.constant(IN_FRONT, i32))
        code.insert_before(branch)
        move_before(branch, op)


def movable(values: Sequence[SSAValue], block: Block) -> list[Operation] | None:
    """The ops of `block` that `values` need, in order; None if one of them cannot move. Results of branches become
    selects."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        op = defining_op(value)
        if op is None or op.parent is not block or op in found:
            continue
        if isinstance(op, scf.IfOp) and isinstance(value, OpResult):
            if (chosen := selected(op, value)) is None:
                return None
            pending.append(chosen)
        elif op.regions or not is_speculatable(op):
            return None
        else:
            found.add(op)
            pending += op.operands
    return [op for op in block.ops if op in found]


def selected(branch: Operation, result: OpResult) -> SSAValue | None:
    """Replace one result of `branch` by a select in front of it; None if the values of its two sides cannot be computed
    there."""
    sides = [region.blocks[0] for region in branch.regions]
    for side in sides:
        if (needed := movable([end_of(side).operands[result.index]], side)) is None:
            return None
        move_before(branch, *needed)
    code = Emitter(branch.location)
    chosen = code.select(branch.operands[0], *(end_of(side).operands[result.index] for side in sides))
    code.insert_before(branch)
    replace_all_uses(result, chosen)
    return chosen


def lift_carried(loop: Operation) -> None:
    """Compute values that loads of the next iteration need, and branches yield, in front of the branches, and select
    them."""
    body, last = body_of(loop), end_of(body_of(loop))

    def needs(value: SSAValue) -> Sequence[SSAValue]:
        if isinstance(value, BlockArgument):
            return [last.operands[value.index - 1]] if value.block is body and value.index else ()
        op = defining_op(value)
        if isinstance(op, scf.IfOp) and isinstance(value, OpResult) and op.parent is body:
            return () if (chosen := selected(op, value)) is None else (chosen,)
        return () if op is None or op.parent is not body or op.regions else op.operands

    loads = [op for op in body.ops if isinstance(op, tt.LoadOp | tt.DescriptorLoadOp)]
    for _ in reached([value for load in loads for value in load.operands], needs):
        pass


class CountExitsPass(Pass):
    """Count the iterations of loops that end early; with `may_alias` any two parameters may be the same memory."""

    name = "triton-count-exits"
    may_alias: bool = False

    def run(self, module: ModuleOp) -> None:
        found = [op for op in ops_in_order(*module.regions) if type(op) is scf.WhileOp and COUNTED in op.attributes]
        for loop in reversed(found):  # inner ones first
            from tilework.transforms.tt.count_exits import count_exits  # lazily: few kernels need it

            del loop.attributes[COUNTED]
            count_exits(loop, module, self.may_alias)


@module_pass("triton-lift-skipped-loads")
def lift_marked_loads(module: ModuleOp) -> None:
    for loop in [op for op in ops_in_order(*module.regions) if type(op) is scf.ForOp and SKIPS in op.attributes]:
        lift_skipped_loads(loop)
