"""Dominators: block A dominates block B if every path from the entry to B passes through A.

    ^bb0
   /    \\            ^bb0 dominates all; ^bb1 and ^bb2 dominate only themselves,
^bb1    ^bb2         so the dominator tree is ^bb0 -> (^bb1, ^bb2, ^bb3).
   \\    /
    ^bb3
"""

from xdsl.ir import Block, Region

from tilework.ir.nesting import successors


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
