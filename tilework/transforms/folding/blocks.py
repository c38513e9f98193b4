"""Clean up blocks and branches between the rounds of `canonicalize`.

      cf.cond_br %c, ^bb1, ^bb2
    ^bb1:
      cf.br ^bb3(%x : i32)               cf.cond_br %c, ^bb3(%x : i32), ^bb2
    ^bb2:                                ^bb2:
      %y = ...                     ==>     %y = ...
      cf.br ^bb3(%y : i32)                 cf.br ^bb3(%y : i32)
    ^bb3(%a: i32):                       ^bb3(%a: i32):
      tt.return %a : i32                   tt.return %a : i32
    ^bb4:                                // ^bb4 could not be reached
      tt.return %x : i32

Blocks come from early returns and inlined functions, so they form no loops. A function of one block costs nothing.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.value_flows import Edge, branch_edges, reached
from tilework.ir import cf
from tilework.ir.arith import SelectOp
from tilework.ir.cf import make_br, make_cond_br
from tilework.ir.nesting import end_of, start_of
from tilework.transforms.folding.arith import constant_int
from tilework.transforms.folding.worklist import Driver


def simplify_blocks(region: Region, driver: Driver) -> bool:
    """Simplify the control flow of a function body until nothing changes. True if anything did."""
    if region.first_block is region.last_block:
        return False
    changed = erase_unreachable_blocks(region, driver)
    again = True
    while again:
        again = False
        for block in tuple(region.blocks):
            if block.parent is not region:
                continue
            end = block.last_op
            if (rule := RULES.get(type(end))) is not None and end is not None and rule(end, driver):
                again = True
        again |= erase_unreachable_blocks(region, driver)
        again |= drop_unused_arguments(region, driver)
        changed |= again
    return changed


def erase_unreachable_blocks(region: Region, driver: Driver) -> bool:
    """Erase the blocks that no path from the entry reaches."""
    entry = region.first_block
    assert entry is not None, "a function body has an entry block"
    reachable = set(reached([entry], lambda block: end_of(block).successors))
    dead = [block for block in region.blocks if block not in reachable]
    for block in dead:
        for op in block.walk():
            for value in op._operands:
                driver.push_owner(value)
        region.detach_block(block)
        block.drop_all_references()
    return bool(dead)


def has_one_predecessor(block: Block) -> bool:
    return block.first_use is not None and block.has_one_use()


def replace_end(end: Operation, new: Operation, driver: Driver) -> bool:
    driver.insert(end, new)
    return driver.erase(end)


def pass_through(edge: Edge) -> Edge | None:
    """The edge out of a block that only branches on, or None."""
    block, passed = edge
    end = block.first_op
    if type(end) is not cf.BranchOp or end.successors[0] is block:
        return None
    if any(use.operation is not end for argument in block.args for use in argument.uses):
        return None
    values = tuple(passed[value.index] if value.owner is block else value for value in end.operands)  # pyright: ignore
    return end.successors[0], values


def simplify_br(end: Operation, driver: Driver) -> bool:
    (target,) = branch_edges(end)
    block = end.parent
    if block is None or target[0] is block:
        return False
    if has_one_predecessor(target[0]) and target[0].prev_block is not None:
        merge_into(block, end, target, driver)
        return True
    if (further := pass_through(target)) is not None:
        return replace_end(end, make_br(*further, end.location), driver)
    return False


def merge_into(block: Block, end: Operation, target: Edge, driver: Driver) -> None:
    """Append the target of the branch `end`, whose only predecessor is `block`."""
    successor, passed = target
    for argument, value in zip(successor.args, passed, strict=True):
        driver.replace_value(argument, value)
    driver.erase(end)
    region = successor.parent
    assert region is not None, "a block is in a region"
    region.detach_block(successor)
    for op in tuple(successor.ops):
        op.detach()
        block.add_op(op)


def simplify_cond_br(end: Operation, driver: Driver) -> bool:
    condition = end.operands[0]
    taken, other = branch_edges(end)
    known = constant_int(condition)
    if known is None:
        known = condition_from_predecessor(end, condition)
    if known is not None:
        return replace_end(end, make_br(*(taken if known else other), end.location), driver)
    further_taken, further_other = pass_through(taken), pass_through(other)
    if further_taken is not None or further_other is not None:
        new = make_cond_br(condition, *(further_taken or taken), *(further_other or other), end.location)
        return replace_end(end, new, driver)
    if taken[0] is other[0]:
        return join_edges(end, condition, taken, other, driver)
    return propagate_condition(end, condition, (taken[0], other[0]), driver)


def condition_from_predecessor(end: Operation, condition: SSAValue) -> int | None:
    """The value of the same condition that the only branch to this block implies."""
    block = end.parent
    if block is None or not has_one_predecessor(block) or block.first_use is None:
        return None
    use = block.first_use
    if type(use.operation) is not cf.ConditionalBranchOp or use.operation.operands[0] is not condition:
        return None
    return int(use.index == 0)


def join_edges(end: Operation, condition: SSAValue, taken: Edge, other: Edge, driver: Driver) -> bool:
    """Both edges reach the same block: select the values passed to it."""
    block = end.parent
    if taken[1] != other[1] and any(use.operation is not end for use in taken[0].uses):
        return False
    assert block is not None, "a terminator is in a block"
    values: list[SSAValue] = []
    for if_true, if_false in zip(taken[1], other[1], strict=True):
        if if_true is if_false:
            values.append(if_true)
        else:
            select = driver.insert(end, SelectOp.make(condition, if_true, if_false, end.location))
            values.append(select.results[0])
    return replace_end(end, make_br(taken[0], values, end.location), driver)


def propagate_condition(end: Operation, condition: SSAValue, targets: Sequence[Block], driver: Driver) -> bool:
    """Replace the condition by a constant in blocks that only this branch reaches."""
    changed = False
    for known, target in zip((1, 0), targets, strict=True):
        if not has_one_predecessor(target):
            continue
        uses = [use for use in condition.uses if use.operation.parent is target]
        if uses:
            driver.use_constant(uses, start_of(target), known, condition)
            changed = True
    return changed


def drop_unused_arguments(region: Region, driver: Driver) -> bool:
    """Erase block arguments without uses, and the branch operands for them."""
    changed = False
    for block in tuple(region.blocks)[1:]:
        keep = [i for i, argument in enumerate(block.args) if argument.first_use is not None]
        if len(keep) == len(block.args):
            continue
        for end in {use.operation: None for use in block.uses}:
            kept = [
                (target, tuple(passed[i] for i in keep) if target is block else passed)
                for target, passed in branch_edges(end)
            ]
            if len(kept) == 1:
                replace_end(end, make_br(*kept[0], end.location), driver)
            else:
                replace_end(end, make_cond_br(end.operands[0], *kept[0], *kept[1], end.location), driver)
        for argument in reversed(block.args):
            if argument.first_use is None:
                block.erase_arg(argument)
        changed = True
    return changed


RULES: dict[type[Operation] | type[None], Callable[[Operation, Driver], bool]] = {
    cf.BranchOp: simplify_br,
    cf.ConditionalBranchOp: simplify_cond_br,
}
