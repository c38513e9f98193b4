"""Step 4 of the pipeliner: the number of copy groups that may still be in flight at each `ttg.async_wait`.

    %g1 = ttg.async_commit_group tokens %a
    %g2 = ttg.async_commit_group tokens %b         one group was committed after %g1, so
    %w = ttg.async_wait %g1 {num = 1 : i32}        one group may be in flight when %g1 is complete

Groups complete in order. The count for a token is the minimum number of commits on any path from its definition to the
wait; a token that a loop carries comes from before the loop or from an earlier iteration. An unknown path counts as 0:
wait for all groups.

Waits without a commit between them are merged into the first, with the smallest count.
"""

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import scf, ttg
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import start_of
from tilework.ir.rewrite import erase_op, put, replace_all_uses
from tilework.ir.types import i32, int_attr, int_property
from tilework.transforms.ttg.pipeline.loops import LOOPS, enclosing_op, yield_of

FAR = 1 << 20  # more groups than can be in flight
BRANCHES = LOOPS | {scf.IfOp}


def update_waits(root: Operation) -> None:
    """Set the count of every wait for one token under `root`, then merge waits."""
    waits = [op for op in ops_in_order(*root.regions) if type(op) is ttg.AsyncWaitOp]
    for wait in waits:
        if len(wait.operands) == 1:
            pending = commits_since(wait.operands[0], wait, frozenset())
            wait.properties["num"] = int_attr(pending if pending < FAR else 0, i32)
    for block in dict.fromkeys(wait.parent for wait in waits if wait.parent is not None):
        merge_waits(block)


def commits_since(token: SSAValue, at: Operation, seen: frozenset[SSAValue]) -> int:
    """Return the minimum number of commits between the definition of `token` and `at`."""
    if token in seen:
        return FAR  # another iteration of the loop is never shorter
    if isinstance(token, OpResult):
        made = token.op
        if type(made) is not ttg.AsyncCommitGroupOp or made.parent is None:
            return 0
        after = made.next_op
        return 0 if after is None else commits_between(made.parent, after, at)
    assert isinstance(token, BlockArgument), token
    loop = token.block.parent_op()
    if loop is None or type(loop) is not scf.ForOp or token.index == 0:
        return 0
    here = commits_between(token.block, start_of(token.block), at)
    before = commits_since(loop.operands[2 + token.index], loop, seen | {token})
    around = commits_since(yield_of(loop).operands[token.index - 1], yield_of(loop), seen | {token})
    return here + min(before, around)


def commits_between(block: Block, start: Operation, end: Operation) -> int:
    """Return the minimum number of commits from `start`, an op of `block`, to `end`, which may be nested deeper."""
    stop = enclosing_op(end, block)
    if stop is None:
        return 0
    count = 0
    current: Operation | None = start
    while current is not None and current is not stop:
        count += commits_in(current)
        current = current.next_op
    if current is None:
        return 0
    if stop is not end:
        inner = next(b for region in stop.regions for b in region.blocks if enclosing_op(end, b) is not None)
        if inner.first_op is not None:
            count += commits_between(inner, inner.first_op, end)
    return count


def commits_in(op: Operation) -> int:
    """Return the minimum number of commits inside `op`."""
    if type(op) is ttg.AsyncCommitGroupOp:
        return 1
    if type(op) is scf.IfOp:
        branches = [sum(map(commits_in, region.blocks[0].ops)) if region.blocks else 0 for region in op.regions]
        return min(branches, default=0)
    return 0


def merge_waits(block: Block) -> None:
    """Merge waits of `block` that no commit or branch separates."""
    group: list[Operation] = []
    for op in (*block.ops, None):
        if op is not None and type(op) is ttg.AsyncWaitOp:
            group.append(op)
        elif op is None or type(op) is ttg.AsyncCommitGroupOp or type(op) in BRANCHES:
            if len(group) > 1:
                merge(group)
            group = []


def merge(waits: list[Operation]) -> None:
    """Replace `waits` by one wait at the first of them."""
    first = waits[0]
    pending = min(int_property(wait, "num") for wait in waits)
    tokens = list(dict.fromkeys(token for wait in waits for token in wait.operands))
    joined = put(first, ttg.AsyncWaitOp.make(tokens, pending, first.location))
    for wait in waits:
        replace_all_uses(wait.results[0], joined)
        erase_op(wait)
