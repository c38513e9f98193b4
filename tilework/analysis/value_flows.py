"""The flow of values through control flow, into loops, to the next iteration, out of branches; dominators of blocks.

%r = scf.for ... iter_args(%x = %a) {        %a -> %x,  %a -> %r
  scf.yield %b                               %b -> %r,  %b -> %x
}
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from tilework.ir import cf, scf
from tilework.ir.nesting import body_of, end_of, owner_of, successors

Pair = tuple[SSAValue, SSAValue]
Edge = tuple[Block, tuple[SSAValue, ...]]  # the target of a branch, and the values passed to it
Node = TypeVar("Node", bound=Hashable)


def reached(start: Iterable[Node], following: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """Yield `start` and all nodes reached from it by `following`, each once: ``reached([5], lambda n: [n // 2])`` gives
    5, 2, 1, 0."""
    pending, seen = list(start), set[Node]()
    while pending:
        if (node := pending.pop()) not in seen:
            seen.add(node)
            yield node
            pending += following(node)


def control_flows(op: Operation) -> list[Pair] | None:
    """Return (source, target) for each value that `op` passes on; None for an op that is no control flow."""
    if (rule := RULES.get(type(op))) is None:
        return None
    return [(source, target) for index, source in enumerate(op.operands) for target in rule(op, index)]


def targets_of(op: Operation, index: int) -> Sequence[SSAValue] | None:
    """Return the values that operand `index` becomes where `op` passes it on; None for an op that is no control
    flow."""
    rule = RULES.get(type(op))
    return None if rule is None else rule(op, index)


def sources_of(value: SSAValue) -> tuple[list[SSAValue], list[SSAValue]]:
    """Return the values that `value` may be where a loop or branch passes it on: values defined before that op, and
    values defined in it."""
    op, index = owner_of(value), value.index  # pyright: ignore[reportAttributeAccessIssue]
    if type(op) is scf.ForOp and (position := index if isinstance(value, OpResult) else index - 1) >= 0:
        return [op.operands[3 + position]], [end_of(body_of(op)).operands[position]]
    if type(op) is scf.WhileOp:
        before, after = (region.blocks[0] for region in op.regions)
        if value.owner is before:
            return [op.operands[index]], [end_of(after).operands[index]]
        return [], [end_of(before).operands[1 + index]]
    if type(op) is scf.IfOp:
        return [], [end_of(region.blocks[0]).operands[index] for region in op.regions]
    return [], []


def branch_edges(end: Operation) -> list[Edge]:
    """Return the successors of a branch, with the values passed to each; [] for other terminators."""
    if type(end) is cf.BranchOp:
        return [(end.successors[0], tuple(end.operands))]
    if type(end) is not cf.ConditionalBranchOp:
        return []
    (taken, other), (_, *values) = end.successors, end.operands
    split = len(taken.args)
    return [(taken, tuple(values[:split])), (other, tuple(values[split:]))]


def pairs(sources: Sequence[SSAValue], *targets: Sequence[SSAValue]) -> list[Pair]:
    """Return each source with the target at the same index of every list."""
    return [pair for values in targets for pair in zip(sources, values, strict=True)]


def entry_args(op: Operation, region: int = 0) -> Sequence[SSAValue]:
    """Return the arguments of the first block of a region."""
    return op.regions[region].blocks[0].args


def parent_of(op: Operation) -> Operation:
    parent = op.parent_op()
    assert parent is not None, f"{op.name} is inside of an op with regions"
    return parent


def from_yield(op: Operation, index: int) -> Sequence[SSAValue]:
    """Return the targets of a yielded value: a result of the parent op, and for loops the next iteration."""
    parent = parent_of(op)
    if type(parent) is scf.WhileOp:
        return (entry_args(parent)[index],)
    return (parent.results[index], *([entry_args(parent)[1 + index]] if type(parent) is scf.ForOp else []))


def from_condition(op: Operation, index: int) -> Sequence[SSAValue]:
    loop = parent_of(op)
    return (loop.results[index - 1], entry_args(loop, 1)[index - 1]) if index else ()


def from_branch(op: Operation, index: int) -> Sequence[SSAValue]:
    """The arguments of both targets come one after the other, after the condition if there is one."""
    position = index - (type(op) is cf.ConditionalBranchOp)
    arguments = [argument for block in op.successors for argument in block.args]
    return arguments[position : position + 1] if position >= 0 else ()


RULES: dict[type[Operation], Callable[[Operation, int], Sequence[SSAValue]]] = {
    scf.ForOp: lambda op, index: (entry_args(op)[index - 2], op.results[index - 3]) if index >= 3 else (),
    scf.WhileOp: lambda op, index: (entry_args(op)[index],),
    scf.IfOp: lambda op, index: (),
    scf.YieldOp: from_yield,
    scf.ConditionOp: from_condition,
    **dict.fromkeys((cf.BranchOp, cf.ConditionalBranchOp), from_branch),
}
CONTROL_FLOW = frozenset(RULES)


def joined_values(op: Operation) -> list[tuple[SSAValue, ...]] | None:
    """Return the values that are joined by a loop or branch, and so have one type; None for other ops."""
    if type(op) is scf.ForOp:
        body = body_of(op)
        return list(zip(op.operands[3:], body.args[1:], end_of(body).operands, op.results, strict=True))
    if type(op) is scf.WhileOp:
        before, after = (region.blocks[0] for region in op.regions)
        entering = list(zip(op.operands, before.args, end_of(after).operands, strict=True))
        return [*entering, *zip(end_of(before).operands[1:], after.args, op.results, strict=True)]
    if type(op) is scf.IfOp:
        ends = [end_of(region.blocks[0]).operands for region in op.regions] if op.results else []
        return list(zip(op.results, *ends, strict=True))
    if op.successors:
        return [(source, target) for source, target in control_flows(op) or ()]
    return [] if type(op) in (scf.YieldOp, scf.ConditionOp) else None


# Dominators: block A dominates block B if every path from the entry to B passes through A.
#
#     ^bb0
#    /    \            ^bb0 dominates all; ^bb1 and ^bb2 dominate only themselves,
# ^bb1    ^bb2         so the dominator tree is ^bb0 -> (^bb1, ^bb2, ^bb3).
#    \    /
#     ^bb3


def dominator_children(region: Region) -> dict[Block, list[Block]]:
    """Return the dominator tree of the reachable blocks: each block with the blocks it immediately dominates."""
    order = reverse_postorder(region)
    position = {block: i for i, block in enumerate(order)}
    parents: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in successors(block):
            parents[successor].append(block)
    above: dict[Block, Block] = {order[0]: order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            candidates = [parent for parent in parents[block] if parent in above]
            nearest = candidates[0]
            for other in candidates[1:]:
                nearest = common_ancestor(nearest, other, above, position)
            if above.get(block) is not nearest:
                above[block] = nearest
                changed = True
    children: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order[1:]:
        children[above[block]].append(block)
    return children


def reverse_postorder(region: Region) -> list[Block]:
    """Return the reachable blocks, each before those it reaches unless there is a loop."""
    entry = region.first_block
    assert entry is not None, "a region with control flow has an entry block"
    finished: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(successors(entry)))]
    while stack:
        block, rest = stack[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                stack.append((successor, iter(successors(successor))))
                break
        else:
            finished.append(block)
            stack.pop()
    return finished[::-1]


def common_ancestor(a: Block, b: Block, above: dict[Block, Block], position: dict[Block, int]) -> Block:
    while a is not b:
        while position[a] > position[b]:
            a = above[a]
        while position[b] > position[a]:
            b = above[b]
    return a
