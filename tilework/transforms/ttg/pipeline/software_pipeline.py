"""Pipeline the loops that have a schedule.

Six steps: loads to copies (`lower_loads.py`), prologue and kernel loop (`expand.py`), asynchronous warp-group dots
(`wgmma.py`), the counts of waits, copies as early as buffers allow, and asynchronous stores by descriptor.
A loop whose schedule cannot be expanded is left alone.
Stage: TTGIR to TTGIR. Cost: AxisInfo, and a copy of the body per stage.
"""

from collections.abc import Callable
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.alias import in_other_slots, is_drained, slots_of
from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.cost import own_ops
from tilework.ir import scf, ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.encodings import shared_of
from tilework.ir.functions import functions, ops_in_order
from tilework.ir.module_facts import MAX_REGISTERS
from tilework.ir.nesting import body_of, start_of
from tilework.ir.rewrite import erase_op, insert_after, move_behind, put, replace_all_uses, replace_op
from tilework.ir.tt.memory_ops import block_type
from tilework.ir.ttg.memory_types import MemDescType, memdesc_type
from tilework.ir.types import element_type, i32, int_attr, int_property, shape_of
from tilework.transforms.building.tma import STORES, start_store, stored_value
from tilework.transforms.common.canonicalize import FOLDS
from tilework.transforms.folding import arith as folding_arith
from tilework.transforms.folding import casts as folding_casts
from tilework.transforms.folding.worklist import Driver, rule_table
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark
from tilework.transforms.ttg.pipeline.expand import Order, expand, problem
from tilework.transforms.ttg.pipeline.latencies import Facts
from tilework.transforms.ttg.pipeline.loops import (
    LOOPS,
    body_ops,
    enclosing_op,
    loops_in,
    num_stages,
    producers,
    yield_of,
)
from tilework.transforms.ttg.pipeline.lower_loads import buffer_descriptors, called_for, lower_loads
from tilework.transforms.ttg.pipeline.schedule import Schedule, complete, erase_schedule
from tilework.transforms.ttg.pipeline.wgmma import launch_dots

# Start copies as soon as the barrier that frees their buffers allows: at the top of an iteration instead of its end.
#
#     %w = ttg.async_wait                                  %w = ttg.async_wait
#     asynchronous dots that read slot t            ==>    asynchronous dots that read slot t
#     wait for them                                        copies to slot t + 2
#     copies to slot t + 2                                 wait for them
#
# Where a loop waits for all its dots in each iteration, those of the preceding iteration are complete in every warp
# after the barrier of the wait. Their operands are free then: the second barrier of the iteration, before the copies,
# is not needed. The copies start after the last dot of the iteration; where registers are scarce, after the first one,
# so that their addresses are not live in between (sageattention on an H200, 128 registers: 0.591 ms after the last one,
# 0.540 after the first; with all registers 0.606 and 0.623). `analysis/alias.py` determines which slots are free.

READERS = (ttng.WarpGroupDotOp, ttg.LocalLoadOp)
STARTS = (ttg.AsyncCopyGlobalToLocalOp, ttg.AsyncCommitGroupOp)


def start_copies_early(loop: Operation, is_limited: bool = False) -> None:
    """Move the copies of `loop` directly after the start of its last dot, or of its first if registers are limited, if
    their buffers are free.
    """
    ops = body_ops(loop)
    wait = next((op for op in ops if type(op) is ttg.AsyncWaitOp), None)
    if wait is None or not is_drained(body_of(loop)) or sum(type(op) is ttg.AsyncWaitOp for op in ops) > 1:
        return
    dots = [op for op in ops[ops.index(wait) :] if type(op) is ttng.WarpGroupDotOp]
    if not dots:
        return
    at = dots[0 if is_limited else -1]
    late = ops[ops.index(at) + 1 :]
    starts = [op for op in late if type(op) in STARTS]
    copies = [op for op in starts if type(op) is ttg.AsyncCopyGlobalToLocalOp]
    readers = [op for op in ops if type(op) in READERS]
    if not copies or not all(are_apart(reader, copy) for reader in readers for copy in copies):
        return
    moved = set(starts)
    for op in reversed(late):
        if op in moved:
            moved.update(producer for producer in producers(op, body_of(loop)) if producer in late)
    if not all(type(op) in STARTS or (is_pure(op) and op not in dots) for op in moved):
        return
    move_behind(at, *(op for op in late if op in moved))


def are_apart(reader: Operation, copy: Operation) -> bool:
    """Return True if `reader` reads another ring or another slot than `copy` writes."""
    ((target, _),) = slots_of(copy)
    return all(ring is not target for ring, _ in slots_of(reader)) or in_other_slots(reader, copy)


# Step 5 of the pipeliner: stores by descriptor run asynchronously in loops.
#
#     tt.descriptor_store %d[%i, %j], %x       ttng.async_tma_store_wait {pendings = 0}    until the buffer is free
#                                       ==>    ttg.local_store %x, %buffer
#                                              ttng.fence_async_shared
#                                              ttng.async_tma_copy_local_to_global %d[%i, %j] %buffer
#
# The wait for a store moves to the next store, or after the loop. Stores of the same shape share a buffer.

DESCRIPTOR_SLOTS = 2  # the store of the preceding iteration may still read its descriptor


def pipeline_stores(root: Operation, default_stages: int) -> None:
    """Make the stores by descriptor in the loops under `root` asynchronous."""
    for loop in loops_in(root):
        if num_stages(loop, default_stages) > 1:
            body = body_of(loop)
            stores = [
                store
                for store in own_ops(loop)
                if type(store) in STORES and buffer_type(store) is not None and not called_for(store.operands[0], body)
            ]
            if stores:
                pipeline_loop(loop, stores)


def buffer_type(store: Operation) -> MemDescType | None:
    """Return the type of the buffer that TMA reads; None if the descriptor has no suitable layout."""
    encoding, value = shared_of(block_type(store.operands[0].type)), stored_value(store)
    shape = shape_of(value.type)
    if encoding is None or encoding.rank != len(shape) or encoding.without_leading(0) is None:
        return None
    return memdesc_type(shape, element_type(value.type), encoding, True)


def pipeline_loop(loop: Operation, stores: list[Operation]) -> None:
    """Rewrite the `stores` of `loop`."""
    buffers: dict[MemDescType, SSAValue] = {}
    for store in stores:
        kind = buffer_type(store)
        assert kind is not None
        if kind not in buffers:
            buffers[kind] = put(loop, ttg.LocalAllocOp.make(None, kind, store.location))
        rewrite_store(store, buffers[kind])
    deallocs = [ttg.LocalDeallocOp.make(buffer, loop.location) for buffer in reversed(buffers.values())]
    insert_after(loop, ttng.AsyncTMAStoreWaitOp.make(0, loop.location), *deallocs)
    buffer_descriptors(loop, DESCRIPTOR_SLOTS, lambda old, new: None)


def rewrite_store(store: Operation, buffer: SSAValue) -> None:
    """Wait for the preceding store, fill the buffer, and start the copy."""
    location = store.location
    replace_op(
        store,
        ttng.AsyncTMAStoreWaitOp.make(0, location),
        ttg.LocalStoreOp.make(stored_value(store), buffer, location),
        ttng.FenceAsyncSharedOp.make(False, location),
        start_store(store, buffer),
        results=(),
    )


ARITHMETIC = rule_table(FOLDS, {**folding_arith.REWRITES, **folding_casts.REWRITES})


class PipelinePass(Pass):
    name = "tritongpu-pipeline"
    num_stages: int = 3
    early_copies: bool = False
    two_blocks: bool = False

    def run(self, module: ModuleOp) -> None:
        for loop, schedule in lower_loops(module, partial(lower_loads, early_copies=self.early_copies)):
            order = schedule.in_order(loop)
            if is_feasible(loop, order):  # otherwise the lowered loop is correct, but slow
                expand(loop, order, schedule.slack)
        erase_schedule(module)
        if loops_in(module):
            fold_arithmetic(module)
        launch_dots(module, self.num_stages, self.two_blocks)
        update_waits(module)
        for loop in loops_in(module) if self.early_copies else ():
            start_copies_early(loop, MAX_REGISTERS in module.attributes)
        pipeline_stores(module, self.num_stages)


class TestPipelineLowerLoopPass(Pass):
    """The first step alone, with the schedule in attributes."""

    name = "tritongpu-test-pipeline-lower-loop"
    num_stages: int = 3

    def run(self, module: ModuleOp) -> None:
        for loop, schedule in lower_loops(module):
            schedule.write(loop)


def lower_loops(
    module: ModuleOp, lower: Callable[[Operation, Schedule, AxisFacts], None] = lower_loads, peels: bool = False
) -> list[tuple[Operation, Schedule]]:
    """Lower the loads of all loops with a feasible schedule."""
    facts = Facts(module)
    lowered: list[tuple[Operation, Schedule]] = []
    for loop in loops_in(module):
        if (schedule := Schedule.read(loop)) is None:
            continue
        if len(schedule.slots) < len(body_ops(loop)):
            complete(loop, schedule, schedule.clusters[0])
        if is_feasible(loop, schedule.in_order(loop), peels):
            lower(loop, schedule, facts.axes)
            lowered.append((loop, schedule))
    return lowered


def is_feasible(loop: Operation, order: Order, peels: bool = False) -> bool:
    """Return True if the ops of `loop` can run in `order`; otherwise a remark says why."""
    reason = problem(loop, order, peels)
    if reason is not None:
        remark(loop, f"the loop is not pipelined: {reason}")
    return reason is None


def fold_arithmetic(module: ModuleOp) -> None:
    """Fold the counters and predicates of the first iterations."""
    for function in functions(module):
        Driver(ARITHMETIC).run(function)


# Step 4 of the pipeliner: the number of copy groups that may still be in flight at each `ttg.async_wait`.
#
#     %g1 = ttg.async_commit_group tokens %a
#     %g2 = ttg.async_commit_group tokens %b         one group was committed after %g1, so
#     %w = ttg.async_wait %g1 {num = 1 : i32}        one group may be in flight when %g1 is complete
#
# Groups complete in order. The count for a token is the minimum number of commits on any path from its definition to
# the wait; a token that a loop carries comes from before the loop or from an earlier iteration. An unknown path counts
# as 0: wait for all groups.
#
# Waits without a commit between them are merged into the first, with the smallest count.

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
