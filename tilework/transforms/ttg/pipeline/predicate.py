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
from tilework.ir.forms import SEGMENTS
from tilework.ir.llvm import AssumeOp
from tilework.ir.rewrite import recreate
from tilework.ir.types import i1, i32_array, is_tensor, with_element

Rule: TypeAlias = Callable[[Operation, SSAValue], list[Operation]]

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
    blocks = [Block([op, scf.YieldOp.create(operands=op.results, location=op.location)])]
    if otherwise:
        blocks.append(Block([scf.YieldOp.create(operands=otherwise, location=op.location)]))
    regions = [Region(blocks[0]), Region(blocks[1:])]
    types = [value.type for value in op.results]
    return [scf.IfOp.create(operands=(pred,), result_types=types, regions=regions, location=op.location)]


def both(pred: SSAValue, other: SSAValue, op: Operation) -> Operation:
    return binary(arith.AndIOp, pred, other, op.location)


def masked(op: Operation, pred: SSAValue, position: int, segments: tuple[int, ...] = ()) -> list[Operation]:
    """An access by pointers: its mask is, or will be, the operand at `position`."""
    new: list[Operation] = []
    wanted = with_element(op.operands[0].type, i1)
    mask = pred
    if is_tensor(wanted):
        new.append(splat := tt.SplatOp.make(pred, wanted, op.location))  # pyright: ignore[reportArgumentType]
        mask = splat.results[0]
    operands = list(op.operands)
    if len(operands) > position:
        new.append(combined := both(mask, operands[position], op))
        op.operands[position] = combined.results[0]
        return [*new, op]
    properties = {**op.properties, SEGMENTS: i32_array(*segments)} if segments else op.properties
    return [*new, replaced(op, recreate(op, operands=(*operands, mask), properties=properties))]


def conditional(op: Operation, pred: SSAValue, position: int) -> list[Operation]:
    """An op with a predicate of its own, the operand at `position`."""
    combined = both(pred, op.operands[position], op)
    op.operands[position] = combined.results[0]
    return [combined, op]


def predicate_wait(op: Operation, pred: SSAValue) -> list[Operation]:
    """A wait, which may have no predicate yet."""
    assert isinstance(op, ttng.WaitBarrierOp)
    if op.pred is not None:
        return conditional(op, pred, 2)
    wait = ttng.WaitBarrierOp.make(op.alloc, op.phase, pred, tuple(op.deps), op.location)
    wait.attributes = dict(op.attributes)
    return [replaced(op, wait)]


def predicate_arrive(op: Operation, pred: SSAValue) -> list[Operation]:
    """An arrival, which may have no predicate yet."""
    assert isinstance(op, ttng.ArriveBarrierOp)
    if op.pred is not None:
        return conditional(op, pred, 1)
    return [replaced(op, recreate(op, operands=(*op.operands, pred)))]


def replaced(op: Operation, new: Operation) -> Operation:
    """`new`, for the detached `op`, which lets go of its operands."""
    op.drop_all_references()
    return new


RULES: dict[type[Operation], Rule] = {
    scf.IfOp: partial(conditional, position=0),
    tt.LoadOp: partial(masked, position=1, segments=(1, 1, 0)),
    tt.StoreOp: partial(masked, position=2),
    tt.AtomicRMWOp: partial(masked, position=2),
    ttg.AsyncCopyGlobalToLocalOp: partial(masked, position=2, segments=(1, 1, 1, 0)),
    **dict.fromkeys(
        (ttng.BarrierExpectOp, ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp),
        lambda op, pred: conditional(op, pred, len(op.operands) - 1),
    ),
    ttng.WaitBarrierOp: predicate_wait,
    ttng.ArriveBarrierOp: predicate_arrive,
}
