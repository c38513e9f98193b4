"""Rules of `canonicalize` for structured control flow and warp-specialized partitions.

    scf.for with a carried value that never changes     the value itself
    scf.for of no iteration, or of one                  its initial values, or its body
    scf.if true                                         its first branch
    scf.if that yields values from outside              arith.select
    two scf.if in a row on one condition                one scf.if
    scf.while that carries what it does not need        less to carry

An op that loses results is rebuilt around its old regions; nothing inside is copied.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.value_flows import Edge, branch_edges, reached
from tilework.ir import arith, cf, scf, ttg
from tilework.ir.arith import SelectOp, divide_up
from tilework.ir.attr_text import is_true
from tilework.ir.cf import make_br, make_cond_br
from tilework.ir.nesting import body_of, enclosing_op, end_of, start_of
from tilework.ir.rewrite import erase_op, move_before, recreate, replace_all_uses
from tilework.ir.types import i1, int_property
from tilework.transforms.folding.arith import constant_int, producer
from tilework.transforms.folding.worklist import Driver, Rewrite


def inline_body(op: Operation, block: Block, arguments: Sequence[SSAValue], driver: Driver) -> bool:
    """Replace `op` by the ops of `block`, run once with `arguments`. Returns True."""
    for old, new in zip(block.args, arguments, strict=True):
        driver.replace_value(old, new)
    end = end_of(block)
    move_before(op, *(inner for inner in block.ops if inner is not end))
    return driver.replace(op, end._operands)


def is_inside(value: SSAValue, op: Operation) -> bool:
    """Return True if `value` is defined inside a region of `op`."""
    return op.is_ancestor(value.owner)


def with_results(op: Operation, keep: Sequence[int], operands: Sequence[SSAValue], driver: Driver) -> bool:
    """Rebuild `op` around its regions with only the results `keep`; the others are unused. Returns True."""
    regions = [op.detach_region(region) for region in tuple(op.regions)]
    new = recreate(op, operands=operands, result_types=[op.results[i].type for i in keep], regions=regions)
    driver.insert(op, new)
    for position, index in enumerate(keep):
        new.results[position].name_hint = op.results[index].name_hint
        driver.replace_value(op.results[index], new.results[position])
    return driver.erase(op)


def keep_operands(op: Operation, keep: Sequence[int], driver: Driver, first: int = 0) -> None:
    """Keep the operands before `first` and, of those after it, the ones in `keep`."""
    operands = op._operands
    driver.set_operands(op, (*operands[:first], *(operands[first + i] for i in keep)))


def keep_arguments(block: Block, keep: Sequence[int], first: int = 0) -> None:
    """Keep the arguments of a block before `first`, and the ones in `keep` of those after it; the others are unused."""
    for index in reversed(range(first, len(block.args))):
        if index - first not in keep:
            block.erase_arg(block.args[index])


# Loops


def rewrite_for(op: Operation, driver: Driver) -> bool:
    return drop_invariant_arguments(op, driver) or run_known_trip_count(op, driver)


def drop_invariant_arguments(op: Operation, driver: Driver) -> bool:
    """Replace a carried value that is yielded unchanged, or never read, by its initial value; merge equal ones."""
    block = body_of(op)
    initial, carried, end = op._operands[3:], block.args[1:], end_of(block)
    first: dict[tuple[SSAValue, SSAValue], int] = {}  # the kept ones, by initial and yielded value
    for i, (start, argument, yielded) in enumerate(zip(initial, carried, end._operands, strict=True)):
        is_unused = argument.first_use is None and op.results[i].first_use is None
        if argument is not yielded and start is not yielded and not is_unused:
            first.setdefault((start, yielded), i)
    keep = list(first.values())
    if len(keep) == len(carried):
        return False
    yields = end._operands
    for i in range(len(carried)):
        if i not in keep:
            same = first.get((initial[i], yields[i]))
            driver.replace_value(carried[i], initial[i] if same is None else carried[same])
            driver.replace_value(op.results[i], initial[i] if same is None else op.results[same])
    keep_operands(end, keep, driver)
    keep_arguments(block, keep, first=1)
    return with_results(op, keep, (*op._operands[:3], *(initial[i] for i in keep)), driver)


def run_known_trip_count(op: Operation, driver: Driver) -> bool:
    """Replace a loop of no iteration by its initial values, one of a single iteration by its body, and an empty one by
    the values it yields."""
    lower, upper, step, *initial = op._operands
    if lower is upper:
        return driver.replace(op, initial)
    low, high, by = (constant_int(value) for value in (lower, upper, step))
    if low is None or high is None:
        return False
    if low >= high:
        return driver.replace(op, initial)
    if by is None or by <= 0:
        return False
    block = body_of(op)
    if divide_up(high - low, by) == 1:
        return inline_body(op, block, (lower, *initial), driver)
    end = end_of(block)
    if block.first_op is end and not any(is_inside(value, op) for value in end._operands):
        return driver.replace(op, end._operands)
    return False


# Branches


def rewrite_if(op: Operation, driver: Driver) -> bool:
    known = constant_int(op._operands[0])
    if known is not None:
        return take_branch(op, bool(known), driver)
    return (
        drop_unused_results(op, driver)
        or combine_nested(op, driver)
        or values_to_selects(op, driver)
        or swap_branches(op, driver)
        or drop_empty_else(op, driver)
        or combine_with_previous(op, driver)
        or propagate_condition(op, driver)
    )


def take_branch(op: Operation, known: bool, driver: Driver) -> bool:
    block = op.regions[0 if known else 1].first_block
    if block is None:
        return driver.erase(op)
    return inline_body(op, block, (), driver)


def keep_results(op: Operation, keep: Sequence[int], driver: Driver) -> bool:
    for region in op.regions:
        if (block := region.first_block) is not None:
            keep_operands(end_of(block), keep, driver)
    return with_results(op, keep, op._operands, driver)


def drop_unused_results(op: Operation, driver: Driver) -> bool:
    keep = [i for i, result in enumerate(op.results) if result.first_use is not None]
    if len(keep) == len(op.results):
        return False
    return keep_results(op, keep, driver)


def values_to_selects(op: Operation, driver: Driver) -> bool:
    """Replace results whose two values come from outside by selects."""
    if not op.results:
        return False
    yielded = [end_of(region.first_block)._operands for region in op.regions]
    keep: list[int] = []
    for i, (if_true, if_false) in enumerate(zip(*yielded, strict=True)):
        if if_true is if_false and not is_inside(if_true, op):
            driver.replace_value(op.results[i], if_true)
        elif is_inside(if_true, op) or is_inside(if_false, op) or is_running(if_true) or is_running(if_false):
            keep.append(i)
        else:
            select = driver.insert(op, SelectOp.make(op._operands[0], if_true, if_false, op.location))
            driver.replace_value(op.results[i], select.results[0])
    if len(keep) == len(op.results):
        return False
    return keep_results(op, keep, driver)


def is_running(value: SSAValue) -> bool:
    """Return True for an asynchronous dot that may still run: a branch may pass it on, but a select would read it."""
    owner = value.owner
    if not isinstance(owner, Operation):
        return False
    if owner.name == "ttng.warp_group_dot":  # by name: most compilations have no such op and do not import `ttng`
        return is_true(owner.properties["isAsync"])
    return owner.name == "ttng.warp_group_dot_wait" and int_property(owner, "pendings") != 0


def swap_branches(op: Operation, driver: Driver) -> bool:
    """``if not c {A} else {B}`` is ``if c {B} else {A}``."""
    inverse = producer(op._operands[0], arith.XOrIOp)
    if inverse is None or constant_int(inverse.operands[1]) != 1 or op.regions[1].first_block is None:
        return False
    first, second = (op.detach_region(region) for region in tuple(op.regions))
    op.add_region(second)
    op.add_region(first)
    return driver.set_operands(op, (inverse.operands[0],))


def drop_empty_else(op: Operation, driver: Driver) -> bool:
    block = op.regions[1].first_block
    if block is None or op.results or block.first_op is not end_of(block):
        return False
    region = op.regions[1]
    region.detach_block(block)
    block.erase()
    driver.push(op)
    return True


def combine_with_previous(op: Operation, driver: Driver) -> bool:
    """Merge two consecutive `scf.if` on the same condition: the second moves into the first."""
    previous = op.prev_op
    if type(previous) is not scf.IfOp or previous._operands[0] is not op._operands[0]:
        return False
    count = len(previous.results)
    for side in (0, 1):
        first, second = previous.regions[side].first_block, op.regions[side].first_block
        if second is None:
            continue
        if first is None:
            previous.regions[side].add_block(Block((scf.YieldOp.create(location=op.location),)))
            first = previous.regions[side].blocks[0]
        end = end_of(first)
        for i in range(count):  # uses of the first op's results inside the second are what that branch yields
            for use in tuple(previous.results[i].uses):
                if enclosing_op(use.operation, second) is not None:
                    use.operation.operands[use.index] = end._operands[i]
        *moved, moved_end = second.ops
        move_before(end, *moved)
        for inner in moved:
            driver.push(inner)
        driver.set_operands(end, (*end._operands, *moved_end._operands))
        erase_op(moved_end)
    regions = [previous.detach_region(region) for region in tuple(previous.regions)]
    types = [result.type for result in (*previous.results, *op.results)]
    merged = recreate(previous, result_types=types, regions=regions)
    driver.insert(op, merged)
    for old, new in zip((*previous.results, *op.results), merged.results, strict=True):
        driver.replace_value(old, new)
    driver.erase(op)
    return driver.erase(previous)


def combine_nested(op: Operation, driver: Driver) -> bool:
    """``if a { if b {X} else {Y} } else {Y}`` is ``if a & b {X} else {Y}``, when `Y` only yields values, or is empty.
    A result that the first branch takes from elsewhere is a select."""
    outer = op.regions[0].first_block
    if outer is None or type(inner := outer.first_op) is not scf.IfOp or inner.next_op is not end_of(outer):
        return False
    without, inner_without = (only_yields(either.regions[1]) for either in (op, inner))
    if without is None or inner_without is None:
        return False
    block, end = body_of(inner), end_of(outer)
    yielded: list[SSAValue] = []
    selects: list[int] = []
    for i, value in enumerate(end._operands):
        if value.owner is not inner:
            if is_running(value) or is_running(without[i]):
                return False
            selects.append(i)
            yielded.append(value)
        elif inner_without[value.index] is without[i]:  # pyright: ignore[reportAttributeAccessIssue]
            yielded.append(end_of(block)._operands[value.index])  # pyright: ignore[reportAttributeAccessIssue]
        else:
            return False
    condition = op._operands[0]
    both = arith.AndIOp.create(operands=(condition, inner._operands[0]), result_types=(i1,), location=op.location)
    driver.insert(op, both)
    for i in selects:
        select = driver.insert(op, SelectOp.make(condition, yielded[i], without[i], op.location))
        driver.replace_value(op.results[i], select.results[0])
    move_before(inner, *(moved for moved in block.ops if moved is not end_of(block)))
    driver.set_operands(end, yielded)
    driver.erase(inner)
    return driver.set_operands(op, both.results)


def only_yields(region: Region) -> Sequence[SSAValue] | None:
    """Return what a branch yields if it does nothing else: nothing if it is empty."""
    block = region.first_block
    if block is None:
        return ()
    return end_of(block)._operands if block.first_op is end_of(block) else None


def propagate_condition(op: Operation, driver: Driver) -> bool:
    """Replace the condition by true inside the first branch, and by false inside the second."""
    condition = op._operands[0]
    if condition.has_one_use():
        return False
    changed = False
    for known, region in ((1, op.regions[0]), (0, op.regions[1])):
        if (block := region.first_block) is None:
            continue
        uses = [use for use in condition.uses if enclosing_op(use.operation, block) is not None]
        if uses:
            driver.use_constant(uses, op, known, condition)
            changed = True
    return changed


# While


def rewrite_while(op: Operation, driver: Driver) -> bool:
    before, after = (region.blocks[0] for region in op.regions)
    return (
        drop_invariant_inputs(op, before, after, driver)
        or drop_unneeded_outputs(op, before, after, driver)
        or drop_unused_inputs(op, before, after, driver)
        or replace_passed_condition(before, after, driver)
    )


def drop_invariant_inputs(op: Operation, before: Block, after: Block, driver: Driver) -> bool:
    """Replace an input that the second region yields unchanged by its initial value."""
    condition, end = end_of(before), end_of(after)
    keep: list[int] = []
    for i, (initial, yielded) in enumerate(zip(op._operands, end._operands, strict=True)):
        returns = yielded.owner is after and condition._operands[1 + yielded.index] is before.args[i]  # pyright: ignore
        if yielded is initial or (returns and not is_inside(initial, op)):
            driver.replace_value(before.args[i], initial)
        else:
            keep.append(i)
    return len(keep) < len(op._operands) and keep_inputs(op, keep, before, end, driver)


def drop_unused_inputs(op: Operation, before: Block, after: Block, driver: Driver) -> bool:
    keep = [i for i, argument in enumerate(before.args) if argument.first_use is not None]
    return len(keep) < len(before.args) and keep_inputs(op, keep, before, end_of(after), driver)


def keep_inputs(op: Operation, keep: Sequence[int], before: Block, end: Operation, driver: Driver) -> bool:
    keep_operands(end, keep, driver)
    keep_arguments(before, keep)
    return with_results(op, range(len(op.results)), [op._operands[i] for i in keep], driver)


def drop_unneeded_outputs(op: Operation, before: Block, after: Block, driver: Driver) -> bool:
    """Drop yielded values that come from outside, are yielded twice, or have no uses."""
    condition = end_of(before)
    passed = condition._operands[1:]
    keep: list[int] = []
    for i, value in enumerate(passed):
        first = passed.index(value)
        if not is_inside(value, op):
            driver.replace_value(after.args[i], value)
            driver.replace_value(op.results[i], value)
        elif first < i:
            driver.replace_value(after.args[i], after.args[first])
            driver.replace_value(op.results[i], op.results[first])
        elif after.args[i].first_use is not None or op.results[i].first_use is not None:
            keep.append(i)
    if len(keep) == len(passed):
        return False
    keep_operands(condition, keep, driver, first=1)
    keep_arguments(after, keep)
    return with_results(op, keep, op._operands, driver)


def replace_passed_condition(before: Block, after: Block, driver: Driver) -> bool:
    """Replace the condition, where it is passed on to the second region, by true."""
    condition, *passed = end_of(before)._operands
    for argument, value in zip(after.args, passed, strict=True):
        if value is condition and argument.first_use is not None:
            driver.replace_value(argument, driver.constant(start_of(after), 1, argument.type))
            return True
    return False


def visit_parent(op: Operation, driver: Driver) -> bool:
    """Revisit the op around a region, whose yielded values have been simplified."""
    parent = op.parent_op()
    if type(parent) in REWRITES and parent is not None:
        driver.push(parent)
    return False


# `ttg.warp_specialize`: drop unused captures and results.
#
#     ttg.warp_specialize(%p, %n, %p)                                  ttg.warp_specialize(%p)
#     default { ttg.warp_yield %x : i32 }                       ==>    default { ttg.warp_yield }
#     partition0(%a: .., %b: i32, %c: ..) { store %a, store %c }       partition0(%a: ..) { store %a, store %a }
#
# A capture that no partition uses is dropped, a value that is captured twice is captured once, and results without uses
# are dropped.


def rewrite_warp_specialize(op: Operation, driver: Driver) -> bool:
    """Drop unused captures and results. True if there were any."""
    assert isinstance(op, ttg.WarpSpecializeOp), op.name
    partitions = op.partitions
    merged = merge_captures(op, partitions)
    captures = [region.blocks[0].args for region in partitions]
    kept = [index for index in range(len(op.operands)) if any(args[index].first_use is not None for args in captures)]
    wanted = [index for index, result in enumerate(op.results) if result.first_use is not None]
    if len(kept) == len(op.operands) and len(wanted) == len(op.results):
        return merged
    for region in partitions:
        keep_arguments(region.blocks[0], kept)
    for block in op.regions[0].blocks:
        if (last := block.last_op) is not None and type(last) is ttg.WarpYieldOp and len(wanted) < len(op.results):
            keep_operands(last, wanted, driver)
    return with_results(op, wanted, [op.operands[index] for index in kept], driver)


def merge_captures(op: Operation, partitions: Sequence[Region]) -> bool:
    """Use the first of several captures of one value. True if a use changed."""
    first: dict[object, int] = {}
    changed = False
    for index, value in enumerate(op.operands):
        earlier = first.setdefault(value, index)
        if earlier == index:
            continue
        for region in partitions:
            args = region.blocks[0].args
            changed |= args[index].first_use is not None
            replace_all_uses(args[index], args[earlier])
    return changed


REWRITES: dict[type[Operation], Rewrite] = {
    scf.YieldOp: visit_parent,
    scf.ConditionOp: visit_parent,
    scf.ForOp: rewrite_for,
    scf.IfOp: rewrite_if,
    scf.WhileOp: rewrite_while,
    ttg.WarpSpecializeOp: rewrite_warp_specialize,
}


# ---- Clean up blocks and branches between the rounds of `canonicalize`.
#
#       cf.cond_br %c, ^bb1, ^bb2
#     ^bb1:
#       cf.br ^bb3(%x : i32)               cf.cond_br %c, ^bb3(%x : i32), ^bb2
#     ^bb2:                                ^bb2:
#       %y = ...                     ==>     %y = ...
#       cf.br ^bb3(%y : i32)                 cf.br ^bb3(%y : i32)
#     ^bb3(%a: i32):                       ^bb3(%a: i32):
#       tt.return %a : i32                   tt.return %a : i32
#     ^bb4:                                // ^bb4 could not be reached
#       tt.return %x : i32
#
# Blocks come from early returns and inlined functions, so they form no loops. A function of one block costs nothing.


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
    return propagate_branch_condition(end, condition, (taken[0], other[0]), driver)


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


def propagate_branch_condition(end: Operation, condition: SSAValue, targets: Sequence[Block], driver: Driver) -> bool:
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
