"""Make an op do nothing where a predicate is false: the copies of an op that run before the first or after the last
iteration that exists.

    tt.store %p, %v                  ==>   tt.store %p, %v, (splat %pred)
    tt.load %p, %m                   ==>   tt.load %p, (splat %pred) & %m
    scf.if %c { ... }                ==>   scf.if %pred & %c { ... }
    ttng.barrier_expect %b, 64, %q   ==>   ttng.barrier_expect %b, 64, %pred & %q

Ops without effects may run all the same, and so may waits, commits (an empty group) and accesses to shared memory that
belongs to the loop, and descriptors, which nobody uses then. Anything else with an effect cannot be predicated, and the loop is not pipelined.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.arith_ext import binary
from tilework.ir.effects import is_pure, writes
from tilework.ir.llvm import AssumeOp
from tilework.ir.scf_ext import make_if, make_yield
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.masks import narrowed, set_mask

Rule: TypeAlias = Callable[[Operation, SSAValue], list[Operation]]

GUARDED: tuple[type[Operation], ...] = (
    *(tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, ttg.AsyncCopyGlobalToLocalOp),
    *(ttng.WaitBarrierOp, ttng.ArriveBarrierOp),
)
HARMLESS: frozenset[type[Operation]] = frozenset(
    {
        AssumeOp,
        ttg.AsyncCommitGroupOp,
        ttg.AsyncWaitOp,
        ttg.LocalAllocOp,
        ttg.LocalLoadOp,
        ttg.LocalStoreOp,
        ttng.FenceAsyncSharedOp,
        ttng.TensormapCreateOp,
        ttng.TensormapFenceproxyAcquireOp,
        ttng.WarpGroupDotOp,
        ttng.WarpGroupDotWaitOp,
    }
)


def can_predicate(op: Operation) -> bool:
    """`op` may be run where it should not count."""
    return type(op) in RULES or is_harmless(op)


def is_harmless(op: Operation) -> bool:
    """`op` may run as it is where it should not count."""
    return type(op) in HARMLESS or is_pure(op) or (type(op) not in RULES and not writes(op))


def predicated(op: Operation, pred: SSAValue) -> list[Operation]:
    """The detached `op` made conditional: itself or its substitute, which is last, behind what computes its mask."""
    return [op] if is_harmless(op) else RULES[type(op)](op, pred)


def in_branch(op: Operation, pred: SSAValue) -> list[Operation]:
    """As `predicated`; what is not worth running in vain is not run: a product gives the sum so far, other effects wait in a branch."""
    otherwise = [op.operands[2]] if type(op) in (tt.DotOp, tt.DotScaledOp) else []
    if len(otherwise) != len(op.results) or (not otherwise and can_predicate(op)):
        return predicated(op, pred)
    then = Region(Block([op, make_yield(op.results, op.location)]))
    other = Region(Block([make_yield(otherwise, op.location)])) if otherwise else None
    return [make_if(pred, [value.type for value in op.results], then, other, op.location)]


def guarded(op: Operation, pred: SSAValue) -> list[Operation]:
    """An access by pointers, a wait or an arrival, which may have no mask yet."""
    code = Emitter(op.location)
    set_mask(op, narrowed(code, op, pred))
    return [*code.ops, op]


def conditional(op: Operation, pred: SSAValue, position: int) -> list[Operation]:
    """An op with a predicate of its own, the operand at `position`."""
    combined = binary(arith.AndIOp, pred, op.operands[position], op.location)
    op.operands[position] = combined.results[0]
    return [combined, op]


RULES: dict[type[Operation], Rule] = {
    scf.IfOp: partial(conditional, position=0),
    **dict.fromkeys(
        (ttng.BarrierExpectOp, ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp),
        lambda op, pred: conditional(op, pred, len(op.operands) - 1),
    ),
    **dict.fromkeys(GUARDED, guarded),
}
