"""Turn a tensor select into a result of an `scf.if` with the same condition.

    %s = arith.select %c, %z, %a                %s = scf.if %c -> (T) {
    scf.if %c { store }                  ==>      store
    use %s                                        scf.yield %z
                                                } else {
                                                  scf.yield %a
                                                }
                                                use %s

A select of a tensor costs a register move for each element, the existing branch costs no more. The `scf.if` must
be in the block of the select, after it, and every other use of the select after that. Inside the branches, and inside
those of any other `scf.if` on the same condition, the select is one of its operands. Scalars are left alone:
selecting one is a single instruction.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from itertools import takewhile

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.ir import scf
from tilework.ir.arith import SelectOp
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import enclosing_op, ops_behind
from tilework.ir.rewrite import block_of, erase_op, replace_op
from tilework.ir.scf import SKIPS, also_give, also_yield, both_sides
from tilework.ir.types import is_tensor
from tilework.transforms.passes import module_pass


@module_pass("tritongpu-combine-tensor-select-and-if")
def combine_tensor_select_and_if(module: ModuleOp) -> None:
    selects = [inner for inner in ops_in_order(*module.regions) if type(inner) is SelectOp and is_candidate(inner)]
    chosen: dict[Operation, list[Operation]] = {}
    for select in selects:
        use_operands_in_branches(select)
        if select.results[0].first_use is None:
            erase_op(select)
        elif is_tensor(select.results[0].type) and (branch := matching_branch(select)) is not None:
            chosen.setdefault(branch, []).append(select)
    for branch, members in chosen.items():
        give_results(branch, members)


def is_candidate(select: Operation) -> bool:
    """Return True if an `scf.if` has the condition of `select`."""
    return any(type(use.operation) is scf.IfOp for use in select.operands[0].uses)


def use_operands_in_branches(select: Operation) -> None:
    """Replace uses in branches on the condition of `select` by the operand of that side."""
    condition, on_true, on_false = select.operands
    for use in tuple(select.results[0].uses):
        side = known_side(use.operation, condition)
        if side is not None:
            use.operation.operands[use.index] = on_true if side else on_false


def known_side(op: Operation, condition: SSAValue) -> bool | None:
    """Return the value of `condition` wherever `op` runs; None if it is unknown."""
    region = op.parent_region()
    while region is not None and (parent := region.parent) is not None:
        if type(parent) is scf.IfOp and parent.operands[0] is condition:
            return region is parent.regions[0]
        region = parent.parent_region()
    return None


def matching_branch(select: Operation) -> Operation | None:
    """Return the first `scf.if` after `select` on the same condition, before all users; None if there is none."""
    condition, block = select.operands[0], block_of(select)
    if (around := block.parent_op()) is not None and SKIPS in around.attributes:
        return None  # pointers of the next iteration must not wait for computations of this one
    users = {enclosing_op(use.operation, block) for use in select.results[0].uses}
    candidates = takewhile(lambda op: op not in users, ops_behind(select))
    return next((op for op in candidates if type(op) is scf.IfOp and op.operands[0] is condition), None)


def give_results(branch: Operation, selects: list[Operation]) -> None:
    """Make the tensors of `selects` further results of `branch`."""
    for side, index in zip(both_sides(branch), (1, 2), strict=True):
        also_yield(side, [select.operands[index] for select in selects])
    for select in selects:
        replace_op(select, results=(also_give(branch, select.results[0].type),))
