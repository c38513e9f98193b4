"""Rules of ops that work in the background: copies by threads (``cp.async``) and products of warp groups (``wgmma``).

    %a = ttg.async_copy_global_to_local ...       the data is taken now, the buffer is worth nothing until it is waited for
    %g = ttg.async_commit_group tokens %a         ends a group
    ttg.async_wait %g {num = 1 : i32}             all groups but the last one are done

Tokens carry no facts: as on the hardware, what counts is which groups were committed before the wait.

An asynchronous `ttng.warp_group_dot` gives an `InFlight`. It may be the accumulator of the next dot, and it may be carried
and rearranged; anything else is a fault until it went through a `ttng.warp_group_dot_wait` that leaves few enough behind.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tilework.ir import tt, ttg, ttng
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.access_rules import pointee
from tilework.oracles.evaluator.compound_values import Dot, InFlight
from tilework.oracles.evaluator.dot_rules import product
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.shared_memory import MemView
from tilework.oracles.evaluator.table import Rule, evaluates

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

# Ops that pass an unfinished product on, or rearrange it, without looking at it.
CARRIERS = frozenset(
    {
        scf.ForOp,
        scf.WhileOp,
        scf.IfOp,
        scf.ExecuteRegionOp,
        tt.CallOp,
        tt.TransOp,
        tt.ReshapeOp,
        ttg.ConvertLayoutOp,
        ttng.WarpGroupDotOp,
        ttng.WarpGroupDotWaitOp,
    }
)


@evaluates(ttg.AsyncCopyGlobalToLocalOp)
def eval_async_copy(machine: "Machine", op: Operation, pointer: Array, view: MemView, *rest: Array) -> None:
    """Lanes that are masked off write zero, whatever `other` says: that is what ``cp.async`` does."""
    _, _, masked, _ = machine.integers(op, "operandSegmentSizes")
    values = machine.memory.load(pointer, rest[0] if masked else None, pointee(op.operands[0].type))
    machine.open_copies.append(machine.shared.start(view, values.reshape(view.places.shape), op, True))


@evaluates(ttg.AsyncCommitGroupOp)
def eval_async_commit_group(machine: "Machine", op: Operation, *tokens: Any) -> None:
    machine.groups.append(machine.open_copies)
    machine.open_copies = []


@evaluates(ttg.AsyncWaitOp)
def eval_async_wait(machine: "Machine", op: Operation, *tokens: Any) -> None:
    done = max(0, len(machine.groups) - machine.integer(op, "num"))
    for group in machine.groups[:done]:
        machine.shared.finish(group)
    machine.groups = machine.groups[done:]


@evaluates(ttng.WarpGroupDotOp)
def eval_warp_group_dot(machine: "Machine", op: Operation, a: Any, b: MemView, c: Any, *use_c: Array) -> Any:
    if isinstance(a, InFlight):
        raise Fault("multiplies the result of an asynchronous dot before its ttng.warp_group_dot_wait")
    memory = [view for view in (a, b) if isinstance(view, MemView)]
    lhs = machine.shared.read(a, True) if isinstance(a, MemView) else a
    rhs = machine.shared.read(b, True)
    accumulator = c.value if isinstance(c, InFlight) else c
    if use_c and not use_c[0]:
        accumulator = np.zeros_like(accumulator)
    value = product(machine, op, lhs, rhs, accumulator)
    if not machine.integer(op, "isAsync"):
        finish_dots(machine, 0)
        return value
    dot = Dot()
    machine.dots.append((dot, machine.shared.hold(memory, op)))
    return InFlight(value, dot)


@evaluates(ttng.WarpGroupDotWaitOp)
def eval_warp_group_dot_wait(machine: "Machine", op: Operation, *inputs: Any) -> Any:
    finish_dots(machine, machine.integer(op, "pendings"))
    return [one.value if isinstance(one, InFlight) and one.dot.is_done else one for one in inputs]


def finish_dots(machine: "Machine", pendings: int) -> None:
    """All but the last `pendings` dots are done."""
    count = max(0, len(machine.dots) - pendings)
    for dot, _ in machine.dots[:count]:
        dot.is_done = True
    machine.shared.release((reader for _, reader in machine.dots[:count]), by_warps=True)
    machine.dots = machine.dots[count:]


def has_background_dots(module: ModuleOp | Operation) -> bool:
    """Whether some product of the module is asynchronous."""
    return any(type(op) is ttng.WarpGroupDotOp and is_async(op) for op in module.walk())


def is_async(op: Operation) -> bool:
    flag = op.properties.get("isAsync")
    return isinstance(flag, IntegerAttr) and bool(flag.value.data)


def guarded(rule: Rule) -> Callable[..., Any]:
    """`rule` for operands that are not in flight."""

    def checked(machine: "Machine", op: Operation, *operands: Any) -> Any:
        for operand in operands:
            if operand.__class__ is InFlight:
                raise Fault("uses the result of an asynchronous dot before its ttng.warp_group_dot_wait")
        return rule(machine, op, *operands)

    return checked
