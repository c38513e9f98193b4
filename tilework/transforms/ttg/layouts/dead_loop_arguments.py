"""Find dead loop-carried values.

    scf.for ... iter_args(%p = %p0, %q = %q0) {           scf.for ... iter_args(%p = %p0, %q = %q0) {
      %v = tt.load %q                                       %v = tt.load %q
      %p1 = tt.addptr %p, %step                     ==>     %q1 = tt.addptr %q, %step
      %q1 = tt.addptr %q, %step                             scf.yield %p, %q1
      scf.yield %p1, %q1
    }

`%p` only keeps itself alive. A value is live if an op with side effects, control flow, or a used result of the loop
depends on it. Dead arguments yield themselves here; `canonicalize` and its relatives then drop them.
"""

from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import scf
from tilework.ir.effects import TERMINATORS, is_pure, writes
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of, end_of, owner_of

FOLLOWED = frozenset({scf.ForOp, scf.IfOp})  # their yielded values are as live as their results
TERMINATOR_NAMES = frozenset(kind.name for kind in TERMINATORS)


def cut_dead_loop_arguments(function: Operation) -> bool:
    """Let the dead arguments of all `scf.for` under `function` yield themselves; return True if there was one."""
    ops = ops_in_order(*function.regions)
    loops = [op for op in ops if type(op) is scf.ForOp and len(op._operands) > 3]
    if not loops:
        return False
    live = live_values(ops)
    changed = False
    for loop in loops:
        block = body_of(loop)
        end = end_of(block)
        kept = [
            yielded if argument in live or result in live else argument
            for argument, result, yielded in zip(block.args[1:], loop.results, end._operands, strict=True)
        ]
        if any(new is not old for new, old in zip(kept, end._operands, strict=True)):
            end.operands = kept
            changed = True
    return changed


def live_values(ops: Sequence[Operation]) -> set[SSAValue]:
    """Return the values on which side effects, control flow or used results depend."""
    roots: list[SSAValue] = []
    for op in ops:
        kind = type(op)
        if kind is scf.ForOp:
            roots += op._operands[:3]
        elif kind is scf.IfOp or kind is scf.WhileOp:
            roots += op._operands
        elif op.name in TERMINATOR_NAMES:
            if type(op.parent_op()) not in FOLLOWED:
                roots += op._operands
        elif writes(op) or (op.regions and not is_pure(op)):
            roots += op._operands
    return set(reached(roots, needed_for))


def needed_for(value: SSAValue) -> Sequence[SSAValue]:
    """Return the values that `value` is computed from."""
    if type(value) is OpResult and type(value.op) not in FOLLOWED:
        return value.op._operands
    is_followed = type(owner_of(value)) in FOLLOWED
    return [source for sources in sources_of(value) for source in sources] if is_followed else ()
