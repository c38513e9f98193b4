"""A product of what the same iteration computes from another one runs an iteration late, under the next computation.

    for k:  s = dot(q, K[k])                  s = dot(q, K[0]); p, x = softmax(s)
            p, x = softmax(s)          ==>    for k:  s = dot(q, K[k + 1])               both in the background
            acc = dot(p, V[k], acc * x)               acc = dot(p, V[k], acc * x)
                                                      wait for s; p', x' = softmax(s), while acc is summed
                                                      wait for acc; p, x = p', x'

`late_ops` are those of the second product: itself, what becomes of its sum on the way there, and what costs nothing. The
schedule gives them a stage of their own; the other product starts first. Attention in forward direction is such a loop.

The first product is computed once too often, with zeros where a copy by threads did nothing. A copy by TMA is made for it (the
descriptor says what exists), for which the descriptor must be there: it may not be one that the loop makes.
"""

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.effects import is_elementwise
from tilework.ir.nesting import body_of, is_inside
from tilework.ir.types import is_tensor
from tilework.transforms.ttg.pipeline.loops import body_ops, producers, users_in, yield_of

Dot = ttng.WarpGroupDotOp
DESCRIBED = (tt.DescriptorLoadOp, tt.DescriptorGatherOp)
SUM = 2  # the operand that is the sum so far
FREE: frozenset[type[Operation]] = frozenset(
    {
        tt.BroadcastOp,
        tt.ExpandDimsOp,
        ttg.LocalAllocOp,
        ttg.MemDescTransOp,
        ttg.MemDescReshapeOp,
        ttg.ConvertLayoutOp,
    }
)


def late_ops(loop: Operation) -> tuple[Operation, set[Operation]] | None:
    """The product that starts first, and the ops of the one that follows from it; None if `loop` is not of this form."""
    ops = body_ops(loop)
    dots = [op for op in ops if type(op) is Dot]
    if len(dots) != 2 or any(type(op) in DESCRIBED and is_made_in(op.operands[0], loop) for op in ops):
        return None
    first, second = dots
    left = second.operands[0]
    if not is_tensor(left.type) or not follows(second, first, loop):
        return None
    (use, *others) = second.results[0].uses
    if others or use.operation is not yield_of(loop):
        return None
    late: set[Operation] = {second}
    if not collect_path(body_of(loop).args[1 + use.index], second, late):
        return None
    for op in reversed(ops):
        if type(op) in FREE and op is not left.owner and set(users_in(op, body_of(loop))) <= late:
            late.add(op)
    return first, late


def is_made_in(value: SSAValue, loop: Operation) -> bool:
    """`value` differs between iterations."""
    owner = value.owner
    return owner is body_of(loop) or (isinstance(owner, Operation) and is_inside(owner, loop))


def follows(dot: Operation, other: Operation, loop: Operation) -> bool:
    """The left factor of `dot` is computed from `other` in the same iteration."""
    left = dot.operands[0]
    pending = [left.op] if isinstance(left, OpResult) and left.op.parent is body_of(loop) else []
    seen: set[Operation] = set()
    while pending:
        op = pending.pop()
        if op is other:
            return True
        if op not in seen:
            seen.add(op)
            pending += producers(op, body_of(loop))
    return False


def collect_path(value: SSAValue, dot: Operation, late: set[Operation]) -> bool:
    """Add what becomes of `value` until it is the sum of `dot` to `late`; False if it becomes anything else."""
    for use in value.uses:
        op = use.operation
        if op is dot and use.index == SUM:
            continue
        if not is_elementwise(op) and type(op) is not ttg.ConvertLayoutOp:
            return False
        late.add(op)
        if not collect_path(op.results[0], dot, late):
            return False
    return True
