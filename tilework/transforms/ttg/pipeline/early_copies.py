"""Start copies as soon as the barrier that frees their buffers allows: at the top of a turn instead of its end.

    %w = ttg.async_wait                                  %w = ttg.async_wait
    products that read slot t, in the background  ==>    products that read slot t, in the background
    wait for them                                        copies to slot t + 2
    copies to slot t + 2                                 wait for them

Where a loop waits for all its products in each turn, those of the turn before are over for every warp behind the barrier of
the wait. What they read is free then: the second barrier of the turn, in front of the copies, is not needed. They start behind the last
product of the turn; where registers are scarce, behind the first one, so that their addresses do not live through what lies between
(sageattention on an H200, 128 registers: 0.591 ms behind the last one, 0.540 behind the first; with all registers 0.606 and 0.623).
Which slot is whose is proved (`analysis/ring_slots.py`).
"""

from xdsl.ir import Operation

from tilework.analysis.ring_slots import in_other_slots, is_drained, slots_of
from tilework.ir import ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import move_behind
from tilework.transforms.ttg.pipeline.loops import body_ops, producers

READERS = (ttng.WarpGroupDotOp, ttg.LocalLoadOp)
STARTS = (ttg.AsyncCopyGlobalToLocalOp, ttg.AsyncCommitGroupOp)


def start_copies_early(loop: Operation, is_limited: bool = False) -> None:
    """Move the copies of `loop` right behind the start of its products, if nobody needs what they overwrite; behind the first
    of them if registers are limited.
    """
    ops = body_ops(loop)
    wait = next((op for op in ops if type(op) is ttg.AsyncWaitOp), None)
    if wait is None or not is_drained(body_of(loop)) or sum(type(op) is ttg.AsyncWaitOp for op in ops) > 1:
        return
    products = [op for op in ops[ops.index(wait) :] if type(op) is ttng.WarpGroupDotOp]
    if not products:
        return
    at = products[0 if is_limited else -1]
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
    if not all(type(op) in STARTS or (is_pure(op) and op not in products) for op in moved):
        return
    move_behind(at, *(op for op in late if op in moved))


def are_apart(reader: Operation, copy: Operation) -> bool:
    """`reader` reads another ring than `copy` writes, or another slot."""
    ((target, _),) = slots_of(copy)
    return all(ring is not target for ring, _ in slots_of(reader)) or in_other_slots(reader, copy)
